"""The bench on real workspaces: digests, samples, labels and sealed questions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from bench.real import labels
from bench.real.answers import Judged, judge, shows_all
from bench.real.findings import CONFIRMED_SAMPLE, Finding, from_reconcile, from_tidy, from_verify, sheet_row, to_judge
from bench.real.labels import Question, Tally, add_labels, load_labels, open_questions, seal_questions, tally
from bench.real.workspaces import PublicWorkspace, load_workspaces
from cryptography.fernet import Fernet, InvalidToken

from tests.support.helpers import Place

WORKSPACE = PublicWorkspace(repository="somebody/openclaw-workspace", commit="0" * 40, half="tuning")


def a_finding(kind: str = "gone", line: int = 3, text: str = "src/a.py") -> Finding:
    return Finding(kind=kind, path="MEMORY.md", line=line, text=text, evidence="deleted in abc")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "LABELS", tmp_path / "labels")
    monkeypatch.setattr(labels, "QUESTIONS", tmp_path / "questions")


def test_a_label_says_nothing_about_the_notes() -> None:
    finding = a_finding()
    assert add_labels(WORKSPACE, [{**sheet_row(Path("/nowhere"), finding), "right": True}]) == 1
    stored = (labels.LABELS / "somebody.jsonl").read_text(encoding="ascii")
    assert json.loads(stored) == {"id": finding.id, "kind": "gone", "right": True}


def test_labels_are_kept_and_replaced_by_later_ones() -> None:
    one, other = a_finding(), a_finding(line=4)
    add_labels(
        WORKSPACE, [{"id": one.id, "kind": "gone", "right": True}, {"id": other.id, "kind": "gone", "right": None}]
    )
    add_labels(WORKSPACE, [{"id": one.id, "kind": "gone", "right": False}])
    assert load_labels(WORKSPACE) == {one.id: False}
    assert tally([one, other], load_labels(WORKSPACE)) == {"gone": Tally(wrong=1, unlabelled=1)}


def test_moved_is_another_finding_when_it_names_another_place() -> None:
    here = Finding(kind="moved", path="a.md", line=1, text="x", evidence="src/x.py")
    there = Finding(kind="moved", path="a.md", line=1, text="x", evidence="lib/x.py")
    assert here.id != there.id
    assert a_finding().id == Finding(kind="gone", path="MEMORY.md", line=3, text="src/a.py", evidence="other words").id


def test_the_sample_of_confirmations_does_not_depend_on_their_order() -> None:
    many = [a_finding("confirmed", line) for line in range(500)]
    chosen = to_judge(many)
    assert len(chosen) == CONFIRMED_SAMPLE
    assert chosen == to_judge(reversed(many))


def test_questions_are_read_only_with_the_key() -> None:
    key = Fernet.generate_key()
    seal_questions(WORKSPACE, key, [{"text": "Which port?", "files": ["memory/ports.md"]}])
    assert b"port" not in (labels.QUESTIONS / "somebody.sealed").read_bytes()
    (question,) = open_questions(WORKSPACE, key)
    assert (question.text, question.files) == ("Which port?", ("memory/ports.md",))
    with pytest.raises(InvalidToken):
        open_questions(WORKSPACE, Fernet.generate_key())


def test_the_lines_that_answer_are_sealed_with_a_question() -> None:
    key = Fernet.generate_key()
    parts = [[["memory/ports.md", 3], ["TOOLS.md", 7]], [["USER.md", 1]]]
    seal_questions(WORKSPACE, key, [{"text": "Which port, and whose?", "files": ["memory/ports.md"], "parts": parts}])
    (question,) = open_questions(WORKSPACE, key)
    assert question.parts == ((("memory/ports.md", 3), ("TOOLS.md", 7)), (("USER.md", 1),))


def test_an_answer_is_right_if_it_shows_a_line_of_every_part() -> None:
    answer = "1. memory/ports.md#L3  logs\n ▸ - **Port:** 8443\n> | owner | Ann |"
    assert shows_all(answer, [["- Port: 8080", "- Port: 8443"], ["| owner | Ann |"]])
    assert not shows_all(answer, [["- Port: 8443"], ["| owner | Bob |"]])
    assert shows_all(answer, [["- **Port:** 8443"]])


def test_a_question_is_asked_at_both_doors(place: Place) -> None:
    (place.workspace / "memory/2026-11-14.md").write_text("# Ports\n\nThe staging proxy answers on port 8443.\n")
    environment = {**os.environ, "TRUEKEEP_WORKSPACE": str(place.workspace)}
    question = Question(text="which port does staging use", files=(), parts=((("memory/2026-11-14.md", 3),),))
    expected = Judged(parts=1, terminal=True, mcp=True, is_doubted=False, is_cautioned=False)
    assert judge(question, place.workspace, environment) == expected
    unknown = judge(Question(text="xyzzyq quuxle", files=()), place.workspace, environment)
    assert (unknown.parts, unknown.is_doubted, unknown.is_cautioned) == (0, True, True)


def test_findings_are_read_from_the_answers_of_the_commands() -> None:
    claim = {"verdict": "moved", "line": 7, "text": "a.py", "place": "src/a.py", "why": "renamed"}
    verified = {"files": [{"path": "TOOLS.md", "claims": [claim, {**claim, "verdict": "unverifiable"}]}]}
    assert [(one.kind, one.line, one.evidence) for one in from_verify(verified)] == [("moved", 7, "src/a.py")]
    draft = {"target": "memory/cards/x.md"}
    tidied = {
        "decay": {"entries": [], "archived": []},
        "duplicates": {"duplicates": [], "copies": []},
        "promote": {"proposed": [draft]},
    }
    assert [(one.kind, one.path) for one in from_tidy(tidied)] == [("tidy", "memory/cards/x.md")]
    assert [one.kind for one in from_reconcile({"disagreements": [{"subject": "port"}]})] == ["reconcile"]


def test_both_halves_have_workspaces_and_none_is_in_both() -> None:
    tuning, report = load_workspaces("tuning"), load_workspaces("report")
    assert min(len(tuning), len(report)) >= 6
    assert not {one.repository for one in tuning} & {one.repository for one in report}
