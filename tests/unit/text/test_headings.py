"""What headings say: essentials of memory, kinds of knowledge, standing rules."""

from __future__ import annotations

import pytest

from tests.support.phrases import golden_sentences
from truekeep.text.headings import essential_kind, knowledge_category, plain_heading, states_rule


def test_golden_headings() -> None:
    golden = golden_sentences("headings")
    categories = golden.pop("category")
    said = {title: (kind, essential_kind(title) or "none") for kind, titles in golden.items() for title in titles}
    said |= {title: (kind, knowledge_category(title)) for kind, titles in categories.items() for title in titles}
    assert {title: both for title, both in said.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("🎯 Current focus", "Current focus"),
        ("**Bold** `code` [link](x.md):", "Bold code link"),
        ("⚠️ (draft) notes", "(draft) notes"),
        ("🎯", "🎯"),
        ("📌 【技能】知识", "【技能】知识"),
    ],
)
def test_a_heading_without_its_decoration(title: str, plain: str) -> None:
    assert plain_heading(title) == plain


@pytest.mark.parametrize(
    "line",
    [
        "- **NEVER** push to main",
        "NEVER post there.",
        "**Niemals** kontaktieren",
        "**НИКОГДА** не обновлять",
        "- **禁止**推送",
    ],
)
def test_a_standing_rule(line: str) -> None:
    assert states_rule(line)


@pytest.mark.parametrize("line", ["It never worked on Windows.", "Он никогда не работал."])
def test_a_sentence_with_the_same_word_is_no_rule(line: str) -> None:
    assert not states_rule(line)
