"""The bench of outcomes: what counts as a name that an agent acts on, and as right."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bench.outcome.arms import READ, WITHHELD, Count, Name, as_written, by_truekeep, judge_act, known_names, read_answer
from bench.outcome.memory import issue_questions, reported_problem, subjects_as_questions
from bench.outcome.run import ARMS, Result, count_acts, false_names, keep_answers
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


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "Keep carts\n\nCarts were lost after a restart, which nobody\nsaw in the logs.\n\nFixes #12",
            "Carts were lost after a restart, which nobody saw in the logs.",
        ),
        ("Keep carts\n\nFixes: #12", None),
        ("Keep carts\n\nNobody saw it in the logs of the last month or so.", None),
        ("Keep carts\n\n- a list of all that was done in here\n\nCloses org/shop#12", None),
    ],
)
def test_a_commit_that_closes_an_issue_describes_it(message: str, expected: str | None) -> None:
    assert reported_problem(message) == expected


def test_issues_of_the_next_months_are_questions(tmp_path: Path) -> None:
    rows = [
        {"title": "Carts are lost after a restart", "createdAt": "2026-02-01T10:00:00Z"},
        {"title": "Carts were lost long before that", "createdAt": "2025-12-01T10:00:00Z"},
    ]
    path = tmp_path / "acme+shop.issues.json"
    path.write_text(json.dumps(rows))
    asked = issue_questions(path, int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()))
    assert asked == [("issue", "Carts are lost after a restart")]
    assert issue_questions(tmp_path / "none.json", 0) == []


def test_results_are_kept_and_not_made_again(tmp_path: Path) -> None:
    names = [{"text": "merge_carts", "fact": ["gone"], "acts": dict.fromkeys(ARMS, "false") | {"truekeep": "spared"}}]
    answers = [{"months": 3, "source": "commit", "read": 10, "told": 2, "names": names}]
    assert keep_answers(tmp_path, "acme/shop", lambda: iter(answers)) == answers
    assert keep_answers(tmp_path, "acme/shop", lambda: iter(())) == answers
    counts = count_acts(answers, "commit")
    assert counts["believed", 0] == Count(false=1, read=10)
    assert counts["truekeep", 3] == Count(spared=1, read=12)
    results = [Result("acme/shop", "report", answers * 2)]
    assert false_names(results, "believed", "all") == {("acme/shop", "merge_carts")}
    assert false_names(results, "truekeep", "all") == set()
