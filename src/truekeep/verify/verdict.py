"""The Verdict type: the result of checking one claim against the code, with its reason, evidence and rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

from truekeep.verify.claim import Claim

if TYPE_CHECKING:
    from truekeep.verify.question import Question

CONFIRMED, MOVED, CHANGED, GONE, UNVERIFIABLE = VERDICTS = ("confirmed", "moved", "changed", "gone", "unverifiable")

GONE_BEFORE = "gone-before"  # the reason if the line was written after the removal
OF_ITS_DAY = "of-its-day"  # the reason if a log or another record of a day says it
# Reasons for a name that is gone: what the code had when it had the name.
REMOVED, REMOVED_VALUE, NO_LONGER_USED = "removed", "removed-value", "no-longer-used"
PACKAGE_LEFT = "package-left"  # nothing of the folder at the top that had it is here any more
ONLY_IN_TESTS = "only-in-tests"  # tests or examples still have the name
NEVER_SEEN, NOT_THERE = "never-seen", "not-there"  # the folder is there, and the file is not

FOLDER_LEFT = "folder-left"  # a path that never was, in a folder that is not here any more
DEPENDENCY_LEFT = "dependency-left"  # no manifest lists it any more, and no code names it
LEAST_VERSION = "least-version"  # the manifest asks for a newer one
MODULE_MISSING = "module-missing"  # an example imports what an own package does not have
NOT_A_COMMAND = "not-a-command"  # what a command runs by name, and nothing here is called so
UNLIKE_SIBLINGS = "unlike-siblings"  # a file has the names beside it, and no code has this one
NOT_READ = "not-read"  # a setting that no file has

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

    @property
    def is_outlived(self) -> bool:
        """Whether it was so on the day that a log tells of, and is not so any more: no alarm, but readers are told."""
        return self.reason == OF_ITS_DAY


class Evidence(TypedDict, total=False):
    """What else a verdict may say; see Verdict."""

    candidates: tuple[str, ...]
    commit: str
    day: str
    is_dirty: bool
    seen: str


def confirmed(
    question: Question, reason: str, why: str, place: str = "", *, rank: int = CODE, **evidence: Unpack[Evidence]
) -> Verdict:
    return Verdict(question.claim, CONFIRMED, reason, why, place, rank=rank, **evidence)


def moved(
    question: Question, reason: str, why: str, place: str, *, rank: int = CODE, **evidence: Unpack[Evidence]
) -> Verdict:
    return Verdict(question.claim, MOVED, reason, why, place, rank=rank, **evidence)


def changed(question: Question, reason: str, why: str, place: str, **evidence: Unpack[Evidence]) -> Verdict:
    return Verdict(question.claim, CHANGED, reason, why, place, rank=CODE, **evidence)


def gone(
    question: Question, reason: str, why: str, *, place: str = "", rank: int = GIT, **evidence: Unpack[Evidence]
) -> Verdict:
    return Verdict(question.claim, GONE, reason, why, place, rank=rank, **evidence)


def unverifiable(
    question: Question, reason: str, why: str, *, candidates: tuple[str, ...] = (), place: str = ""
) -> Verdict:
    return Verdict(question.claim, UNVERIFIABLE, reason, why, place, candidates)
