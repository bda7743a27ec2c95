"""Memory as HTML: each claim is marked where it stands, once, and no text is lost by it."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truekeep.interfaces.web.markdown import ClaimMark, render_markdown

CLAIM = re.compile(r"<mark class=\"verdict (\w+)\"[^>]*>([^<]*)</mark>")


@pytest.mark.slow
@given(st.data())
def test_every_claim_is_marked_once_in_whatever_order_they_come(data: st.DataObject) -> None:
    """Paragraphs of several lines, lists and code; a word may be named in many lines, and twice in one."""
    words = st.sampled_from(("alpha", "beta", "`gamma`", "delta"))
    rows = data.draw(st.lists(st.lists(words, max_size=4), min_size=1, max_size=12))
    starts = data.draw(st.lists(st.sampled_from(("", "- ", "\n", "> ")), min_size=len(rows), max_size=len(rows)))
    lines: list[str] = []
    marks: list[ClaimMark] = []
    for start, row in zip(starts, rows, strict=True):
        lines += [""] if start == "\n" else []
        lines.append(start.strip("\n") + " ".join(row))
        for word in row:
            kind = "code" if word.startswith("`") else "plain"
            marks.append(ClaimMark(len(lines), word.strip("`"), kind, "why", is_code=kind == "code"))
    text = "\n".join(lines)
    # Claims of one line come as they stand in it; lines may come in any order.
    turns = data.draw(st.permutations(range(1, len(lines) + 1)))
    shown = render_markdown(text, marks=[mark for line in turns for mark in marks if mark.line == line])
    assert CLAIM.findall(shown) == [(mark.verdict, mark.text) for mark in marks]
    plain = html.unescape(re.sub(r"<[^>]*>", "", render_markdown(text)))
    assert html.unescape(re.sub(r"<[^>]*>", "", shown)) == plain


def test_a_claim_of_another_line_or_kind_is_not_marked() -> None:
    marks = [
        ClaimMark(3, "alpha", "gone", "why"),
        ClaimMark(1, "alpha", "moved", "why", is_code=True),
        ClaimMark(1, "beta", "confirmed", "why"),
    ]
    shown = render_markdown("alpha beta\n\nbeta\n", marks=marks)
    assert CLAIM.findall(shown) == [("confirmed", "beta")]
