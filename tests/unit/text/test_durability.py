"""Hints about lines that will not stand alone or will not last, and silence about the many that will."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from tests.support.phrases import golden_sentences
from truekeep.text.durability import MAX_EXCERPT, MAX_HINTS, WHY, DurabilityHint, find_hints
from truekeep.text.unicode import find_hidden


def test_golden_lines() -> None:
    wrong = [
        (code, line, found)
        for code, lines in golden_sentences("durability").items()
        for line in lines
        for found in [{hint.code for hint in find_hints([(1, line)])}]
        if (found if code == "none" else code not in found)
    ]
    assert wrong == []


def test_golden_lines_have_every_hint() -> None:
    assert set(golden_sentences("durability")) == {*WHY, "none"}


def test_a_hint_has_the_number_of_its_line_and_says_what_to_do() -> None:
    hints = find_hints([(7, "- Deploys are frozen this week.")])
    assert [(hint.code, hint.line, hint.why) for hint in hints] == [("relative-time", 7, WHY["relative-time"])]


def test_a_pronoun_inside_a_paragraph_has_its_noun_before_it() -> None:
    paragraph = [(4, "The ingest worker takes a kernel lock."), (5, "It is released when the process dies.")]
    assert find_hints(paragraph) == ()
    apart = [(4, "The ingest worker takes a kernel lock."), (5, ""), (6, "It is released when the process dies.")]
    assert [(hint.code, hint.line) for hint in find_hints(apart)] == [("dangling-reference", 6)]
    bullets = [(4, "- The worker takes a lock."), (5, "- It is released when the process dies.")]
    assert [(hint.code, hint.line) for hint in find_hints(bullets)] == [("dangling-reference", 5)]


def test_one_hint_of_a_code_per_line_and_several_codes() -> None:
    hints = find_hints([(3, "- TODO: yesterday and today the queue was stuck.")])
    assert [hint.code for hint in hints] == ["relative-time", "task-state"]
    assert hints[0] == DurabilityHint(
        code="relative-time",
        line=3,
        excerpt="- TODO: yesterday and today the queue was stuck.",
        why=WHY["relative-time"],
    )


def test_hints_are_capped() -> None:
    hints = find_hints((number, "- It is currently broken.") for number in range(1, 500))
    assert len(hints) == MAX_HINTS


def test_nothing_gives_nothing() -> None:
    assert find_hints([]) == ()
    assert find_hints(iter([(1, "The vendor caps requests at 100 a minute.")])) == ()


@pytest.mark.slow
@settings(deadline=None)  # the first example also compiles the patterns
@given(st.lists(st.text(st.characters(), max_size=80), max_size=6))
def test_any_text_is_taken_and_excerpts_are_safe_to_show(lines: list[str]) -> None:
    hints = find_hints([(number, f"- currently {line}") for number, line in enumerate(lines, 1)])
    for hint in hints:
        assert len(hint.excerpt) <= MAX_EXCERPT
        assert find_hidden(hint.excerpt) == ()
        assert "\n" not in hint.excerpt


@pytest.mark.parametrize(
    "piece",
    [
        "the currently ",
        "a b c ",
        "`",
        '"today" ',
        "commit 0123456 ",
        "fixed by x ",
        "ana changed ",
        "this file ",
        "a/",
        "- ",
        "we are ",
        "if it is in progress ",
        "next ",
    ],
)
def test_work_grows_with_the_text_and_no_faster(piece: str) -> None:
    assert_about_linear(lambda count: find_hints([(1, piece * count)]), 2_000, huge=100_000)
