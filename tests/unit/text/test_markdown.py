"""The quick scanner must see exactly the headings that a CommonMark parser sees."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from truekeep.text import markdown
from truekeep.text.markdown import TooComplex, outline, peel_fence, strip_comments

PIECES = st.sampled_from(
    [
        "## Type",
        "##  Title  ##",
        "##",
        "## #",
        "#x",
        "####### seven",
        "# One",
        " ## indented",
        "    ## code",
        "\t## tab",
        "```",
        "````",
        "``",
        "```md",
        "``` a`b",
        "~~~",
        "~~~~ `x`",
        "  ```",
        "   ~~~",
        "- ```",
        "  - x",
        "- item",
        "1. one",
        "> ## quoted",
        "> ```",
        "<!--",
        "-->",
        "<!-- one line -->",
        " <!-- x",
        "<div>",
        "</div>",
        "<pre>",
        "<script>",
        "<?php",
        "text",
        "",
        "   ",
        "text\\",
        "---",
        "===",
        "[a]: /b",
        "| a | b |",
        "<https://a.example>",
        "<!DOCTYPE x>",
        "*",
        "-",
    ]
)


@pytest.mark.slow
@given(st.lists(PIECES, max_size=14).map("\n".join))
@example("- a\n  ```\n## x\n  ```")
@example("<!-->\n## x")
@example("<!--\n## x\n--> ## y\n## z")
@example("```\n## in\n```` \n## out")
@settings(max_examples=600, deadline=None)
def test_scanner_agrees_with_the_parser(text: str) -> None:
    quick, full = outline(text), markdown._parsed_outline(text)
    assert [(h.level, h.text, h.start, h.end, h.line) for h in quick.headings] == [
        (h.level, h.text, h.start, h.end, h.line) for h in full.headings
    ]


@pytest.mark.slow
@given(st.text(alphabet="#`~<>!- \nabc", max_size=60))
@settings(max_examples=600, deadline=None)
def test_scanner_agrees_on_any_characters(text: str) -> None:
    assert [h.line for h in outline(text).headings] == [h.line for h in markdown._parsed_outline(text).headings]


def test_headings_in_fences_and_comments_are_text() -> None:
    text = "## A\n```\n## B\n```\n<!--\n## C\n-->\n## D ##\n"
    assert [(h.text, h.line) for h in outline(text).headings] == [("A", 1), ("D", 8)]


@pytest.mark.parametrize(("text", "line"), [("## A\n```\n## B", 2), ("x\n<!-- never\n## B", 2), ("```\na\n```", None)])
def test_what_is_never_closed_is_named(text: str, line: int | None) -> None:
    assert outline(text).open_at == line


@pytest.mark.slow
def test_a_hundred_thousand_headings_are_read_in_one_pass() -> None:
    assert len(outline("## x\n" * 100_000).headings) == 100_000


def test_a_huge_text_that_needs_the_parser_is_refused() -> None:
    with pytest.raises(TooComplex):
        outline("<div>\n" + "x\n" * markdown.PARSER_LIMIT)


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("```markdown\n---\na\n```", "---\na\n"),
        ("~~~~\n```\ncode\n```\n~~~~\n", "```\ncode\n```\n"),
        ("````md\n```\ncode\n```\n````", "```\ncode\n```\n"),
        ("```\na\n```\nafter", None),
        ("```\na\n```\nb\n```\nc\n```", None),
        ("```\nnever closed", None),
        ("no fence", None),
        ("```bash\nmake lint\n```", None),
    ],
)
def test_only_one_fence_around_everything_is_peeled(text: str, inner: str | None) -> None:
    assert peel_fence(text) == (text if inner is None else inner)


def test_comments_are_stripped() -> None:
    assert strip_comments("a<!-- b -->c<!-- d") == "ac"
