"""Labels beside verdicts: which claim answers which label, and the measures that follow."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.truth.build import Label
from bench.truth.cards import FOREIGN, HISTORY, LOOK_ALIKE, SKIP, Mark
from bench.truth.judge import GONE, MOVED, TRUE

ROT = ("moved", "gone")
KINDS = {  # kind of a label → kinds by which the product may call it
    "path": {"path", "directory", "bundle"},
    "directory": {"path", "directory"},
    "symbol": {"symbol", "method", "env"},
    "method": {"symbol", "method"},
    "place": {"symbol", "method", "env"},
    "line": {"line"},
    "flag": {"flag"},
    "env": {"env", "symbol"},
    "commit": {"commit"},
    "script": {"script"},
    "package": {"package", "version"},
}


class Claim(NamedTuple):
    """What the product says about one thing in one card."""

    kind: str
    text: str
    line: int
    verdict: str
    place: str = ""
    reason: str = ""


class Answer(NamedTuple):
    """A label with the claim that answers it, or without one."""

    label: Label
    claim: Claim | None


class Outcome(NamedTuple):
    """All that was said about the cards of one repository."""

    answers: list[Answer]
    stray: list[tuple[str, Claim]]  # alarms in our own cards on something that nobody named
    unjudged: list[tuple[str, Claim]]  # alarms in documents on something without a label
    look_alikes: list[tuple[Label, list[Claim]]]  # any claim is one too many
    history: list[tuple[Label, list[Claim]]]  # alarms only
    foreign: list[tuple[Label, list[Claim]]]  # alarms only, on what never was in the repository


def parse_report(report: Mapping[str, Any]) -> dict[str, list[Claim]]:
    """card → claims, from what verify --json prints."""
    if report.get("schema") != "truekeep.verify/1":
        raise ValueError(f"not a report of verify: schema is {report.get('schema')!r}")
    found = {}
    for file in report["files"]:
        found[str(file["path"]).replace("\\", "/").rpartition("/")[2]] = [
            Claim(
                *(str(one["kind"]), str(one["text"]), int(one["line"]), str(one["verdict"])),
                *(str(one.get("place") or ""), str(one.get("reason") or "")),
            )
            for one in file["claims"]
        ]
    return found


# Which claim answers which label


def plain(text: str) -> str:
    """A text without what may be around it: backticks, quotes, brackets, a call's parentheses, ./ and a last slash."""
    text = text.strip().strip("`'\"*<>").removesuffix("()").removeprefix("./")
    return text.rstrip(".,;:").rstrip("/")


def holds(outer: str, inner: str) -> bool:
    """Whether a text has another one in it, not cut out of a longer word."""
    return bool(inner) and re.search(rf"(?<![\w-]){re.escape(inner)}(?![\w-])", outer) is not None


def fit(mark: Mark, claim: Claim) -> int:
    """How well a claim answers a mark of its line; 0 is not at all."""
    wanted, said = plain(mark.text), plain(claim.text)
    fitting = claim.kind in KINDS.get(mark.kind, set())
    if wanted == said:
        return 4 if fitting else 1
    if mark.kind == "line":
        path = re.split(r":\d|#L", mark.text)[0]
        if fitting:
            return 3 if holds(said, path) or holds(mark.text, said) or not re.search(r"[/.]", said) else 0
        return 1 if claim.kind == "path" and said == plain(path) else 0
    if fitting and (holds(said, wanted) or holds(wanted, said)):
        return 2
    return 0


def overlaps(mark: Mark, claim: Claim) -> bool:
    wanted, said = plain(mark.text), plain(claim.text)
    return wanted == said or holds(wanted, said) or holds(said, wanted)


def names(mark: Mark, claim: Claim) -> bool:
    """Whether a claim is about this, or about more than this."""
    return plain(mark.text) == plain(claim.text) or holds(plain(claim.text), plain(mark.text))


def answer(labels: Iterable[Label], reports: Mapping[str, Sequence[Claim]]) -> Outcome:
    by_line: dict[tuple[str, int], list[Label]] = defaultdict(list)
    for label in labels:
        by_line[label.card, label.mark.line].append(label)
    claims: dict[tuple[str, int], list[Claim]] = defaultdict(list)
    for card, found in reports.items():
        for claim in found:
            claims[card, claim.line].append(claim)
    outcome = Outcome([], [], [], [], [], [])
    for place, named in by_line.items():
        left = list(claims.get(place, ()))
        for label in named:
            mark = label.mark
            if mark.label == LOOK_ALIKE:
                outcome.look_alikes.append((label, left))
            elif mark.label in (HISTORY, FOREIGN):
                reach = overlaps if mark.label == HISTORY else names
                alarms = [one for one in left if one.verdict in ROT and reach(mark, one)]
                (outcome.history if mark.label == HISTORY else outcome.foreign).append((label, alarms))
            elif mark.label != SKIP:
                best = max(left, key=lambda claim: fit(mark, claim), default=None)
                outcome.answers.append(Answer(label, best if best and fit(mark, best) else None))
    for (card, line), said in claims.items():
        marks = [label.mark for label in by_line.get((card, line), ())]
        for claim in said:
            if claim.verdict in ROT and not any(overlaps(mark, claim) or fit(mark, claim) for mark in marks):
                if is_document(card):
                    outcome.unjudged.append((card, claim))
                elif not any(mark.label == LOOK_ALIKE for mark in marks):
                    outcome.stray.append((card, claim))
    return outcome


def is_document(card: str) -> bool:
    return "-doc-" in card


# Measures


def same_place(label: Label, claim: Claim) -> bool:
    said, wanted = claim.place.strip("`").removeprefix("./").rstrip("/"), label.mark.where.rstrip("/")
    match = re.fullmatch(r"(.+?)(?::|#L)(\d+)(?:-L?\d+)?", said)
    if label.mark.kind == "line":
        return match is not None and f"{match[1]}:{match[2]}" == wanted
    return said == wanted or (match is not None and match[1] == wanted)


def judge(label: Label, claim: Claim | None) -> str:
    """right, or the name of the mistake; unverifiable is one only for what rotted."""
    verdict = claim.verdict if claim else "none"
    match label.mark.label:
        case "true":
            return "false alarm" if verdict in ROT else "right"
        case "gone":
            return "right" if verdict in ROT else f"missed ({verdict})"
    assert claim or verdict == "none"
    if verdict not in ROT:
        return f"missed ({verdict})"
    return "right" if claim and verdict == "moved" and same_place(label, claim) else f"wrong place ({verdict})"


@dataclass(slots=True)
class Tally:
    """Counts of one group of labels."""

    labels: int = 0
    found: int = 0
    true: int = 0
    alarms: int = 0
    unverifiable: int = 0
    rot: int = 0
    caught: int = 0
    moved: int = 0
    moved_right: int = 0
    lines: int = 0
    lines_right: int = 0
    mentioned: int = 0
    mentioned_caught: int = 0
    called_moved: int = 0  # gone, and said to be elsewhere
    stray: int = 0
    look_alikes: int = 0
    look_alike_claims: int = 0
    look_alike_alarms: int = 0
    history: int = 0
    history_alarms: int = 0
    foreign: int = 0
    foreign_alarms: int = 0
    unjudged: int = 0
    kinds: dict[str, Tally] = field(default_factory=dict)

    def add(self, label: Label, claim: Claim | None) -> None:
        verdict = claim.verdict if claim else "none"
        mark, alarm = label.mark, verdict in ROT
        self.labels += 1
        self.found += claim is not None
        if mark.label == TRUE:
            self.true += 1
            self.alarms += alarm
            self.unverifiable += verdict == "unverifiable"
            return
        self.rot += 1
        self.caught += alarm
        self.mentioned += mark.mentioned
        self.mentioned_caught += mark.mentioned and alarm
        self.called_moved += mark.label == GONE and verdict == "moved"
        if mark.label == MOVED:
            right = judge(label, claim) == "right"
            if mark.kind == "line":
                self.lines += 1
                self.lines_right += right
            else:
                self.moved += 1
                self.moved_right += right

    def join(self, other: Tally) -> None:
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for kind, tally in other.kinds.items():
            self.kinds.setdefault(kind, Tally()).join(tally)

    @property
    def false_alarms(self) -> int:
        return self.alarms + self.stray + self.look_alike_alarms + self.history_alarms + self.foreign_alarms


COUNTS = [name for name in Tally.__slots__ if name != "kinds"]


def tally(outcome: Outcome) -> Tally:
    whole = Tally()
    for label, claim in outcome.answers:
        whole.add(label, claim)
        whole.kinds.setdefault(kind_of(label), Tally()).add(label, claim)
    whole.stray, whole.unjudged = len(outcome.stray), len(outcome.unjudged)
    whole.look_alikes = len(outcome.look_alikes)
    whole.look_alike_claims = sum(bool(claims) for _, claims in outcome.look_alikes)
    whole.look_alike_alarms = sum(one.verdict in ROT for _, claims in outcome.look_alikes for one in claims)
    whole.history = len(outcome.history)
    whole.history_alarms = sum(bool(alarms) for _, alarms in outcome.history)
    whole.foreign = len(outcome.foreign)
    whole.foreign_alarms = sum(bool(alarms) for _, alarms in outcome.foreign)
    return whole


def kind_of(label: Label) -> str:
    """The row of the table by kind: lines by what the card says of them, commits by what became of them."""
    kind, flags = label.mark.kind, label.mark.flags
    if "doc" in flags:
        return f"{kind}, real documents"
    if kind == "line":
        return "line, alone" if "bare" in flags else "line, quoted" if "quoted" in flags else "line of a definition"
    if "base name" in flags:
        return "path, name only"
    return "symbol in a file" if kind == "place" else kind
