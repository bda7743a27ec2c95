"""Lines of Markdown: what is a heading here is one for the parser, and what only looks like one is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.text.markdown import outline
from truekeep.text.markdown_lines import closes_fence, iter_lines, open_fence, opening_fence, without_indent

LINES = [
    "## h", "# t", " ## h", "  ## h", "   ## h", "    ## h", "\t## h", "##", "#x", "####### x", "## h ##", "text", "",
    "```", "~~~", "````", "```x``` y", "```sh", "  ```", "   ```", "    ```", "- item", "-", "1. one", "2. two",
    "  - sub", "* * *", "---", "===", "> quote", "> ```", "<div>", "</div>", "<pre>", "</pre>", "<!--", "-->",
    "<!-- x -->", "<b>", "text <!--", "  <div>", "- ```", "- <!--", "- ## h", "-     code", "  more", "-\tx", "<?x",
    "?>",
]  # fmt: skip


def headings(text: str) -> list[tuple[int, int, str]]:
    return [
        (number, line.level, line.title)
        for number, line in enumerate(iter_lines(text), start=1)
        if line.kind == "heading"
    ]


@pytest.mark.slow
@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(LINES), max_size=7).map("\n".join))
def test_headings_are_the_parsers(text: str) -> None:
    text += "\n  <x>\n\n## end"  # an indented tag: outline takes the parser
    assert headings(text) == [(found.line, found.level, found.text) for found in outline(text).headings]


@pytest.mark.parametrize(
    "text",
    [
        "<div>\n## 23:58, ada\n</div>",
        "<pre>\n\n## 23:58, ada\n</pre>",
        "<!--\n\n## 23:58, ada\n-->",
        "- item\n  ## 23:58, ada",
        "- item\n\n  ## 23:58, ada",
        "- item\nlazy\n  ## 23:58, ada",
        "- ## 23:58, ada",
        "> ## 23:58, ada",
    ],
)
def test_what_only_looks_like_a_heading_says_so(text: str) -> None:
    assert not headings(text)
    assert any("\\## 23:58, ada" in line.text for line in iter_lines(text))


@pytest.mark.parametrize("text", ["```sh\n# comment\n```", "- x\n  ```sh\n  # comment\n  ```", "    # comment"])
def test_code_keeps_its_comments(text: str) -> None:
    assert "\n".join(line.text for line in iter_lines(text)) == text
    assert not headings(text)


@pytest.mark.parametrize("closing", ["    ```", "``", "~~~", "``` x", "> ```"])
def test_a_fence_is_closed_by_its_own_marks(closing: str) -> None:
    assert headings(f"```\n{closing}\n## h") == []
    assert open_fence(f"```\n{closing}\n## h") == "```"
    assert headings(f"```\n{closing}\n````\n## h") == [(4, 2, "h")]


def test_words_in_three_backticks_open_no_fence() -> None:
    assert headings("```npm test``` passes\n\n## Next") == [(3, 2, "Next")]


@pytest.mark.parametrize(
    "line", [">" * 20_000, "- " * 20_000, " " * 50_000 + "#", "<a " * 20_000, "[" * 20_000, "* " * 9_999]
)
def test_no_line_takes_long(line: str) -> None:
    assert len(list(iter_lines(f"{line}\n{line}\n\n## h"))) == 4


@pytest.mark.parametrize(
    ("line", "marks"),
    [
        ("```", "```"),
        ("~~~~ python", "~~~~"),
        ("```py {1}", "```"),
        ("```npm test``` passes", ""),
        ("``", ""),
        ("~~~ `a`", "~~~"),
    ],
)
def test_lines_that_open_a_fence(line: str, marks: str) -> None:
    assert opening_fence(line) == marks


@pytest.mark.parametrize(
    ("line", "marks", "is_closing"),
    [
        ("```", "```", True),
        ("`````  ", "```", True),
        ("```", "````", False),
        ("```py", "```", False),
        ("~~~", "```", False),
    ],
)
def test_lines_that_close_a_fence(line: str, marks: str, is_closing: bool) -> None:
    assert closes_fence(line, marks) is is_closing


def test_an_indent_of_more_than_three_blanks_stays() -> None:
    assert [without_indent(" " * count + "x") for count in range(5)] == ["x", "x", "x", "x", "    x"]
