"""The sections of a file: what is written below a heading hides no other, and no byte changes that is not ours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.memory.sections import newline_of, sections_of, with_sections, within

LINES = st.sampled_from(
    [
        "<pre>", "</pre>", "<script>", "  <style x>", "<!-- todo", "-->", "<!-- done -->", "<?php", "<!DOCTYPE",
        "<![CDATA[", "]]>", "<div>", "</div>", "<b>x</b>", "```", "````", "```sh", "```x``` inline", "~~~", "  ```",
        "- ```", "- item", "  more", "    code", "# One", "## Two", "##", "### Three", "text", "", "> ```", "> <pre>",
        "1. <!-- x", "Title", "===", "\t# tab", "\\<pre>", "a\r\nb", "a\rb", "---", "-", "  ---", "  ## In", "    ```",
        "    ## deep", "10. ten", "=", " ~~~~", "> T", "> ---", "* * *", "- ## x", "\t```",
    ]
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=12).map("\n".join)


def seen_by_line(text: str, below: int) -> list[str]:
    """What looks like a heading to who reads line by line and knows that fences end, however far they are indented."""
    found, fence = [], ""
    for line in text.split("\n"):
        if fence:
            fence = "" if len(line.strip()) >= len(fence) and not line.strip().strip(fence[0]) else fence
        elif marks := re.match(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})", line):
            fence = marks[1]
        elif re.match(rf" {{0,3}}#{{1,{below}}}(?:\s|\Z)", line):
            found.append(line)
    return found


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.lists(TEXTS.filter(str.strip), min_size=3, max_size=3), st.sampled_from([2, 3]))
def test_no_text_hides_the_heading_behind_it(texts: list[str], below: int) -> None:
    fit = [within(text, below) for text in texts]
    file = "# T\n\n" + "\n".join(f"## {name}\n\n{text}\n" for name, text in zip("abc", fit, strict=True))
    assert sections_of(file) == dict(zip("abc", fit, strict=True))
    replaced = with_sections(file, [("b", "new")], path="X.md", title="T")
    assert sections_of(replaced) == {"a": fit[0], "b": "new", "c": fit[2]}
    assert [within(text, below) for text in fit] == fit
    assert [seen_by_line(text, below) for text in fit] == [[], [], []]
    for text, written in zip(texts, fit, strict=True):
        words = "".join(text.split()).replace("#", "")
        assert words in "".join(written.split()).replace("#", "").replace("\\<", "<") or "\\<" in text


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("<pre>", "\\<pre>"),
        ("a\n  <!-- todo\nb", "a\n  \\<!-- todo\nb"),
        ("<!-- importance: 0.9 -->\nx", "<!-- importance: 0.9 -->\nx"),
        ("<pre>\n# x\n</pre>", "<pre>\n### x\n</pre>"),
        ("<details>\n<summary>x</summary>", "<details>\n<summary>x</summary>"),
        ("```\n<pre>", "```\n<pre>\n```"),
        ("- a\n  ```\n  # b", "- a\n  ```\n  # b\n  ```"),
        ("- a\n  ```\n  # b\n\ntext", "- a\n  ```\n  ### b\n\ntext"),
        ("```x``` is code\n# One", "```x``` is code\n### One"),
        ("##\nx", "###\nx"),
        ("1. ```sh\n   # one\n   ```", "1. ```sh\n   # one\n   ```"),
        ("- ```\n  x", "- ```\n  x\n  ```"),
        ("- ```\n  ## x\n  ```", "- ```\n  ## x\n  ```"),
        ("- item\n  ## 23:58, ada", "- item\n  ### 23:58, ada"),
        ("10. item\n    ## 23:58, ada", "10. item\n    ### 23:58, ada"),
        ("- run\n\n      # code", "- run\n\n      # code"),
        ("make\n\n    # code", "make\n\n    # code"),
        ("<div>\n## 23:59, ada\n</div>", "<div>\n### 23:59, ada\n</div>"),
        ("<!--\n    ## 13:00, ada\n-->", "<!--\n    ### 13:00, ada\n-->"),
        ("```\nx\n    ```\n## 23:59, ada", "```\nx\n    ```\n### 23:59, ada\n```"),
        ("````\n```\n## x\n```\n````", "````\n```\n## x\n```\n````"),
        ("11:00, ada, other\n---", "11:00, ada, other\n\n---"),
        ("a\nb\n===\n---\nc", "a\nb\n\n===\n\n---\nc"),
        ("- item\n  ---", "- item\n\n  ---"),
        ("- a\n-\n- b", "- a\n-\n- b"),
        ("a | b\n--- | ---\n1 | 2", "a | b\n--- | ---\n1 | 2"),
        ("```\nTitle\n---\n```", "```\nTitle\n---\n```"),
    ],
)
def test_what_is_open_is_closed_and_the_rest_stays(text: str, fit: str) -> None:
    assert within(text) == fit


def test_a_file_of_mixed_newlines_keeps_every_other_byte() -> None:
    text = "# Beat\r\n\r\nmine\nand mine\r\n\r\n## Next\r\n\r\nold\n\r\n## Notes\n\nkeep\r\nthis\rand\n"
    after = with_sections(text, [("Next", "new\nlines")], path="X.md", title="T")
    assert after == text.replace("## Next\r\n\r\nold\n\r\n", "## Next\r\n\r\nnew\r\nlines\r\n\r\n")
    added = with_sections(text, [("Now", "x")], path="X.md", title="T")
    assert added == text + "\r\n## Now\r\n\r\nx\r\n"


@pytest.mark.parametrize(("text", "newline"), [("", "\n"), ("a\r\nb\nc\n", "\n"), ("a\r\nb\r\nc\n", "\r\n")])
def test_most_lines_decide(text: str, newline: str) -> None:
    assert newline_of(text) == newline


STAMP = "Updated 2026-11-15 12:00"
OLD = "Updated 2020-01-01 00:00"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# T\n\n## A\n\nx\n", f"# T\n\n{STAMP}\n\n## A\n\nx\n"),
        (f"# T\n\n{OLD}\n\n## A\n\nx\n", f"# T\n\n{STAMP}\n\n## A\n\nx\n"),
        (f"# T\n\n## A\n\nx\n\n## Notes\n\n{OLD}\n", f"# T\n\n{STAMP}\n\n## A\n\nx\n\n## Notes\n\n{OLD}\n"),
        ("# T\nmine\n\n## A\n\nx\n", f"# T\n\n{STAMP}\n\nmine\n\n## A\n\nx\n"),
        ("## A\n\nx\n", f"{STAMP}\n\n## A\n\nx\n"),
        ("---\nk: v\n---\n\n## A\n\nx\n", f"---\nk: v\n---\n{STAMP}\n\n\n## A\n\nx\n"),
        (f"# T\r\n\r\n{OLD}\r\n\r\n## A\r\n\r\nx\r\n", f"# T\r\n\r\n{STAMP}\r\n\r\n## A\r\n\r\nx\r\n"),
    ],
)
def test_the_stamp_below_the_title_is_ours_and_no_other(before: str, after: str) -> None:
    assert with_sections(before, [("A", "x")], path="X.md", title="T", stamp=STAMP) == after
    assert with_sections(after, [("A", "x")], path="X.md", title="T", stamp=STAMP) == after
