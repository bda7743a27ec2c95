"""Variants: nearly the same words that say another thing are told apart from other words for the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.phrases import golden_sentences
from truekeep.memory.contradictions import differ_in, find_variant, statements_of

GOLDEN = golden_sentences("contradictions")


def test_golden_pairs_that_contradict_each_other() -> None:
    def is_found(one: str, other: str) -> bool:
        among_others = f"- Something both say.\n- {one}", f"{other}\n\nSomething both say."
        return find_variant(one, other) is not None and find_variant(*among_others) is not None

    assert [pair for pair in GOLDEN["different"] if not is_found(*pair)] == []


def test_golden_pairs_that_say_the_same() -> None:
    assert [pair for pair in GOLDEN["same"] if find_variant(*pair) is not None] == []


def test_what_only_one_says_is_an_addition() -> None:
    more = "- `DEBUG` is off in production.\n- Ask Ola."
    assert find_variant("- `DEBUG` is off in production.", more) is None
    assert find_variant(more, "- `DEBUG` is off in production.") is None
    both = "- `DEBUG` is off in production.\n- `DEBUG` is on in development."
    assert find_variant(both, "- `DEBUG` is off in production.") is None  # the first one knows of both


def test_topics_that_name_different_things() -> None:
    body = "It runs at night and is kept for a month."
    assert find_variant(body, body, ("Backup of the shop", "Backup of the blog")) is not None
    assert find_variant(body, body, ("Incident review May", "Incident review June")) is not None
    assert find_variant(body, body, ("Nightly backups", "How backups are made")) is None
    assert find_variant(f"{body} On NFS.", f"{body} On NFS.", ("SQLite, NFS", "SQLite, drives")) is None


def test_it_says_what_they_differ_in() -> None:
    assert differ_in("Deploys are allowed.", "Deploys are not allowed.") == "a negation"
    assert differ_in("Enable it for all.", "Disable it for all.") == "an opposite"
    assert differ_in("Ask Ola for access.", "Ask Nuno for access.") == "a name"
    assert differ_in("It keeps 3 copies.", "It keeps 4 copies.") == "a number"
    assert differ_in("Copy the blue script.", "Copy the red script.") == "a word"
    assert differ_in("Tabs over spaces.", "Spaces over tabs.") == "the order"


def test_code_and_tables_are_compared_line_by_line() -> None:
    fence = "```\nexport LEVEL={}\nmake\n```"
    assert find_variant(fence.format("debug"), fence.format("info")) is not None
    rows = "| env | url |\n|---|---|\n| prod | {} |"
    assert find_variant(rows.format("a.example/x"), rows.format("b.example/x")) is not None
    assert find_variant(rows.format("a.example/x"), rows.format("a.example/x")) is None


def test_a_long_text_takes_no_long_time() -> None:
    text = "\n".join(f"- word{number % 7} and word{number % 11} are number {number}" for number in range(3_000))
    assert len(statements_of(text)) == 400
    assert find_variant(text, text.upper()) is None
    assert find_variant("a " * 50_000, "b " * 50_000) is None


WORDS = "the a not on off Ada tabs spaces over 3 4 never before `x` runs. safe;".split()  # noqa: SIM905
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@pytest.mark.slow
@given(TEXT, TEXT)
@settings(max_examples=400, deadline=None)
def test_it_is_the_same_both_ways(one: str, other: str) -> None:
    assert bool(differ_in(one, other)) == bool(differ_in(other, one))
    assert differ_in(one, one) == ""
    assert find_variant(one, one) is None


@pytest.mark.slow
@given(st.text(max_size=200), st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read(one: str, other: str) -> None:
    find_variant(one, other, (other[:20], one[:20]))
