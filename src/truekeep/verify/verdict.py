"""The Verdict type: the result of checking one claim against the code, with its reason, evidence and rank."""

from __future__ import annotations

from typing import NamedTuple

from truekeep.verify.claim import Claim

CONFIRMED, MOVED, CHANGED, GONE, UNVERIFIABLE = VERDICTS = ("confirmed", "moved", "changed", "gone", "unverifiable")

CODE, GIT, RECENT, OLDER, NOTHING = 1, 2, 3, 4, 5


class Verdict(NamedTuple):
    """The result of checking one claim."""

    claim: Claim
    verdict: str
    reason: str  # a stable word, for scripts
    why: str  # a sentence, for people
    place: str = ""  # where it is now: path, or path:line
    candidates: tuple[str, ...] = ()
    commit: str = ""
    day: str = ""  # of that commit
    rank: int = NOTHING
    is_dirty: bool = False  # the evidence is not committed
    seen: str = ""  # a digest of the definition's body or of the line

    @property
    def is_rot(self) -> bool:
        return self.verdict in (MOVED, GONE)


class Question(NamedTuple):
    """One claim of one memory, and when the memory was written."""

    claim: Claim
    memory: str  # the memory's own path
    written_at: int | None  # seconds; None if unknown


def confirmed(
    question: Question,
    reason: str,
    why: str,
    place: str = "",
    *,
    rank: int = CODE,
    seen: str = "",
    dirty: bool = False,
    candidates: tuple[str, ...] = (),
    commit: str = "",
    day: str = "",
) -> Verdict:
    return Verdict(question.claim, CONFIRMED, reason, why, place, candidates, commit, day, rank, dirty, seen)


def moved(
    question: Question,
    reason: str,
    why: str,
    place: str,
    *,
    commit: str = "",
    day: str = "",
    rank: int = CODE,
    seen: str = "",
    dirty: bool = False,
) -> Verdict:
    return Verdict(question.claim, MOVED, reason, why, place, (), commit, day, rank, dirty, seen)


def changed(
    question: Question,
    reason: str,
    why: str,
    place: str,
    *,
    commit: str = "",
    day: str = "",
    seen: str = "",
    dirty: bool = False,
) -> Verdict:
    return Verdict(question.claim, CHANGED, reason, why, place, (), commit, day, CODE, dirty, seen)


def gone(
    question: Question,
    reason: str,
    why: str,
    *,
    place: str = "",
    commit: str = "",
    day: str = "",
    candidates: tuple[str, ...] = (),
    rank: int = GIT,
    dirty: bool = False,
) -> Verdict:
    return Verdict(question.claim, GONE, reason, why, place, candidates, commit, day, rank, dirty)


def unverifiable(
    question: Question, reason: str, why: str, *, candidates: tuple[str, ...] = (), place: str = ""
) -> Verdict:
    return Verdict(question.claim, UNVERIFIABLE, reason, why, place, candidates)
