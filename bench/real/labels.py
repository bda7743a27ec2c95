"""Labels by hand, and the questions of each workspace.

A label says whether a finding is right, under the finding's digest. Questions would tell what stands in somebody's
notes, so they are committed sealed: only those who have the workspace have the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet

from bench.real.findings import Finding
from bench.real.workspaces import HERE, PublicWorkspace

LABELS = HERE / "labels"
QUESTIONS = HERE / "questions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    text: str
    files: tuple[str, ...]  # any of them answers; none: the answer is nowhere
    parts: tuple[tuple[tuple[str, int], ...], ...] = ()  # for each part of it the lines that answer, any of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many findings of one kind are right."""

    right: int = 0
    wrong: int = 0
    unlabelled: int = 0

    @property
    def share(self) -> float | None:
        judged = self.right + self.wrong
        return self.right / judged if judged else None

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            right=self.right + other.right,
            wrong=self.wrong + other.wrong,
            unlabelled=self.unlabelled + other.unlabelled,
        )


def load_labels(workspace: PublicWorkspace) -> dict[str, bool]:
    file = LABELS / f"{workspace.name}.jsonl"
    if not file.is_file():
        return {}
    rows = map(json.loads, file.read_text(encoding="ascii").splitlines())
    return {row["id"]: row["right"] for row in rows}


def add_labels(workspace: PublicWorkspace, sheet: Iterable[Mapping[str, Any]]) -> int:
    """Take the judged rows of a sheet: the digest, the kind and the answer, and nothing else."""
    file = LABELS / f"{workspace.name}.jsonl"
    old = file.read_text(encoding="ascii").splitlines() if file.is_file() else []
    rows = {row["id"]: row for row in map(json.loads, old)}
    before = len(rows)
    for row in sheet:
        if row["right"] is not None:
            rows[row["id"]] = {"id": row["id"], "kind": row["kind"], "right": bool(row["right"])}
    lines = [json.dumps(rows[digest]) + "\n" for digest in sorted(rows)]
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(lines), encoding="ascii")
    return len(rows) - before


def tally(findings: Iterable[Finding], labels: Mapping[str, bool]) -> dict[str, Tally]:
    counts: dict[str, Tally] = {}
    for finding in findings:
        answer = labels.get(finding.id)
        one = Tally(right=answer is True, wrong=answer is False, unlabelled=answer is None)
        counts[finding.kind] = counts.get(finding.kind, Tally()) + one
    return counts


def seal_questions(workspace: PublicWorkspace, key: bytes, questions: Iterable[Mapping[str, Any]]) -> None:
    kept = [{"text": one["text"], "files": one["files"], "parts": one.get("parts", [])} for one in questions]
    plain = json.dumps(kept, ensure_ascii=False)
    QUESTIONS.mkdir(exist_ok=True)
    (QUESTIONS / f"{workspace.name}.sealed").write_bytes(Fernet(key).encrypt(plain.encode()))


def open_questions(workspace: PublicWorkspace, key: bytes) -> list[Question]:
    file = QUESTIONS / f"{workspace.name}.sealed"
    if not file.is_file():
        return []
    rows = json.loads(Fernet(key).decrypt(file.read_bytes()))
    return [
        Question(
            text=row["text"],
            files=tuple(row["files"]),
            parts=tuple(tuple((path, line) for path, line in part) for part in row.get("parts", ())),
        )
        for row in rows
    ]
