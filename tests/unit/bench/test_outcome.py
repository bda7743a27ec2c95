"""The bench of outcomes: what counts as a name that an agent acts on, and as right."""

from __future__ import annotations

from typing import Any

import pytest
from bench.outcome.arms import READ, WITHHELD, Count, Name, as_written, by_truekeep, judge_act, known_names, names_of
from bench.outcome.memory import subjects_as_questions
from bench.truth.judge import GONE, MOVED, TRUE, Fact

THERE = Fact("path", "app/carts.py", TRUE)
LOST = Fact("symbol", "merge_carts", GONE)
ELSEWHERE = Fact("path", "app/old.py", MOVED, "app/new.py")


@pytest.mark.parametrize(
    ("fact", "acted_on", "expected"),
    [
        (THERE, "app/carts.py", Count(true=1)),
        (THERE, WITHHELD, Count(withheld=1)),
        (THERE, "lib/carts.py", Count(withheld=1)),
        (LOST, "merge_carts", Count(false=1)),
        (LOST, WITHHELD, Count(spared=1)),
        (ELSEWHERE, "app/old.py", Count(false=1)),
        (ELSEWHERE, "app/new.py:12", Count(arrived=1)),
        (ELSEWHERE, "app/other.py", Count(false=1)),
        (ELSEWHERE, WITHHELD, Count(spared=1)),
    ],
)
def test_git_judges_what_was_acted_on(fact: Fact, acted_on: str, expected: Count) -> None:
    assert judge_act(Name(fact.text, fact, None), acted_on) == expected


def answer(*hits: str, **verdicts: str) -> dict[str, Any]:
    told = [{"text": name, "verdict": verdict, "place": "app/new.py"} for name, verdict in verdicts.items()]
    return {"hits": [{"text": text, "verdicts": told} for text in hits]}


def test_names_are_read_once_and_only_in_the_first_characters() -> None:
    known = known_names([THERE, LOST])
    names, read = names_of(answer("`merge_carts()` is in `app/carts.py`.", "Again `app/carts.py`."), known)
    assert [name.text for name in names] == ["merge_carts", "app/carts.py"]
    assert read < READ
    names, read = names_of(answer("x" * READ, "`app/carts.py` is too far down."), known)
    assert (names, read) == ([], READ)


def test_names_without_marks_count() -> None:
    names, _ = names_of(answer("merge_carts loses the last item; merging is slow"), known_names([LOST]))
    assert [name.text for name in names] == ["merge_carts"]


def test_lines_about_other_times_are_left_out() -> None:
    assert names_of(answer("`merge_carts()` was removed."), known_names([LOST]))[0] == []


def test_verdicts_decide_what_is_acted_on() -> None:
    known = known_names([LOST, ELSEWHERE])
    hit = answer("`merge_carts()` and `app/old.py`", **{"merge_carts": "gone", "app/old.py": "moved"})
    names, _ = names_of(hit, known)
    assert [as_written(name) for name in names] == ["merge_carts", "app/old.py"]
    assert [by_truekeep(name) for name in names] == [WITHHELD, "app/new.py"]


def test_questions_are_subjects_without_their_marks() -> None:
    subjects = [
        "fix(cart): keep carts after a restart (#12)",
        "Bump actions/checkout from 3 to 4",
        "Typo",
        "v1.2.3 is out now again",
    ]
    assert list(subjects_as_questions(subjects)) == ["keep carts after a restart"]
