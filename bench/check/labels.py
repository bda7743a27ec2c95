"""Labels by hand: which alarms are right, and which references of a document are false.

They are public project documents, so a label names its place: path, line and claim. A label with `"by": "reading"` was
found by reading the document, whatever truekeep said; the others judge an alarm.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.check.repositories import PublicRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    path: str
    line: int
    claim: str
    kind: str
    right: bool  # the document is wrong here, and its owner would be glad to be told
    verdict: str = ""
    by: str = "alarm"  # or "reading"

    def is_about(self, alarm: FoundAlarm) -> bool:
        same_place = (self.path, self.line) == (alarm.path, alarm.line)
        return same_place and (self.claim in alarm.claim or alarm.claim in self.claim)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAlarm:
    """What a check said about one place."""

    path: str
    line: int
    claim: str
    kind: str
    verdict: str
    confidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How right the alarms at one setting are, and how much of what is known to be false they find."""

    right: int
    wrong: int
    unlabelled: int
    found: int
    known: int

    @property
    def share_right(self) -> float | None:
        judged = self.right + self.wrong
        return self.right / judged if judged else None

    @property
    def share_found(self) -> float | None:
        return self.found / self.known if self.known else None

    def __add__(self, other: Score) -> Score:
        return Score(**{key: value + getattr(other, key) for key, value in asdict(self).items()})


NOTHING = Score(right=0, wrong=0, unlabelled=0, found=0, known=0)


def load_labels(repository: PublicRepository) -> list[Label]:
    file = repository.label_file
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [Label(**json.loads(line)) for line in lines]


def save_labels(repository: PublicRepository, labels: Iterable[Label]) -> None:
    """Write the labels of a repository in order, each place once; a later label replaces an earlier one."""
    by_place = {(one.path, one.line, one.claim, one.kind): one for one in labels}
    rows = [json.dumps(asdict(by_place[place]), ensure_ascii=False) + "\n" for place in sorted(by_place)]
    repository.label_file.parent.mkdir(exist_ok=True)
    repository.label_file.write_text("".join(rows), encoding="utf-8")


def judge(alarm: FoundAlarm, labels: Sequence[Label]) -> bool | None:
    """Whether an alarm is right; None if nobody said. A label of the same claim counts before one that contains it."""
    about = [label for label in labels if label.is_about(alarm)]
    about.sort(key=lambda label: (label.claim != alarm.claim, label.kind != alarm.kind))
    return about[0].right if about else None


def score(alarms: Sequence[FoundAlarm], labels: Sequence[Label]) -> Score:
    answers = [judge(alarm, labels) for alarm in alarms]
    known = [label for label in labels if label.right and label.by == "reading"]
    found = [label for label in known if any(label.is_about(alarm) for alarm in alarms)]
    return Score(
        right=answers.count(True),
        wrong=answers.count(False),
        unlabelled=answers.count(None),
        found=len(found),
        known=len(known),
    )


def sheet_row(alarm: FoundAlarm, line: str) -> dict[str, Any]:
    """One row for a person to judge, with the line of the document. Never committed."""
    return {**asdict(alarm), "text": line, "right": None}
