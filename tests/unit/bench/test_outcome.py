"""The bench of outcomes: what counts as a name that an agent acts on, and as right."""

from __future__ import annotations

from typing import Any

import pytest
from bench.outcome.arms import READ, WITHHELD, Name, as_written, by_truekeep, judge_act, known_names, read_answer
from bench.outcome.memory import subjects_as_questions
from bench.truth.judge import GONE, MOVED, TRUE, Fact

THERE = Fact("path", "app/carts.py", TRUE)
LOST = Fact("symbol", "merge_carts", GONE)
ELSEWHERE = Fact("path", "app/old.py", MOVED, "app/new.py")


@pytest.mark.parametrize(
    ("fact", "acted_on", "expected"),
    [
        (THERE, "app/carts.py", "true"),
        (THERE, WITHHELD, "withheld"),
        (THERE, "lib/carts.py", "withheld"),
        (LOST, "merge_carts", "false"),
        (LOST, WITHHELD, "spared"),
        (ELSEWHERE, "app/old.py", "false"),
        (ELSEWHERE, "app/new.py:12", "arrived"),
        (ELSEWHERE, "app/other.py", "false"),
        (ELSEWHERE, WITHHELD, "spared"),
    ],
)
def test_git_judges_what_was_acted_on(fact: Fact, acted_on: str, expected: str) -> None:
    assert judge_act(Name(fact.text, fact, None), acted_on) == expected


def answer(*hits: str, **verdicts: str) -> dict[str, Any]:
    told = [{"text": name, "verdict": verdict, "place": "app/new.py"} for name, verdict in verdicts.items()]
    return {"hits": [{"text": text, "verdicts": told} for text in hits]}


def test_names_are_read_once_and_only_in_the_first_characters() -> None:
    known = known_names([THERE, LOST])
    names, read, _ = read_answer(answer("`merge_carts()` is in `app/carts.py`.", "Again `app/carts.py`."), known)
    assert [name.text for name in names] == ["merge_carts", "app/carts.py"]
    assert read < READ
    names, read, _ = read_answer(answer("x" * READ, "`app/carts.py` is too far down."), known)
    assert (names, read) == ([], READ)


def test_names_without_marks_count() -> None:
    names, _, _ = read_answer(answer("merge_carts loses the last item; merging is slow"), known_names([LOST]))
    assert [name.text for name in names] == ["merge_carts"]


def test_lines_about_other_times_are_left_out() -> None:
    assert read_answer(answer("`merge_carts()` was removed."), known_names([LOST]))[0] == []


def test_verdicts_decide_what_is_acted_on() -> None:
    known = known_names([LOST, ELSEWHERE])
    hit = answer("`merge_carts()` and `app/old.py`", **{"merge_carts": "gone", "app/old.py": "moved"})
    names, _, _ = read_answer(hit, known)
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
