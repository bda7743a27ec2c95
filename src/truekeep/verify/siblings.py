"""What the names beside a name say about it: a witness that needs no history.

A document that lists the functions of a file speaks about that file. If the names around one are all defined there, and
this one is nowhere in the code, then it is not of another project: it was there once, or was never written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from truekeep.verify.path_claims import PLACEHOLDER
from truekeep.verify.question import Question
from truekeep.verify.symbol_claims import is_source
from truekeep.verify.verdict import CODE, CONFIRMED, UNLIKE_SIBLINGS, UNVERIFIABLE, Verdict, gone

_NEAR = 6  # lines
_MIN_SIBLINGS = 4  # names that are defined in one file
_SHARE_DEFINED = 0.8  # of the names near it
_CALLS = ("a call", "a declaration")
_UNKNOWN = ("never-seen", "only-mentioned")


def judge_by_siblings(questions: Sequence[Question], found: Mapping[int, Verdict | None]) -> dict[int, Verdict | None]:
    """Verdicts on functions that no code has, in lists of functions that one file has."""
    by_document: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        if question.claim.kind in ("symbol", "method") and question.claim.why in _CALLS:
            by_document[question.memory].append(question)
    answers: dict[int, Verdict | None] = {}
    for members in by_document.values():
        members.sort(key=lambda question: question.claim.line)
        lines = [question.claim.line for question in members]
        for question in members:
            verdict = found.get(id(question))
            if verdict is None or verdict.verdict != UNVERIFIABLE or verdict.reason not in _UNKNOWN:
                continue
            line = question.claim.line
            near = members[bisect_left(lines, line - _NEAR) : bisect_right(lines, line + _NEAR)]
            if path := _file_of(question, near, found):
                names = sorted({one.claim.name for one in near if one.claim.name != question.claim.name})[:3]
                why = f"no code here has it; {', '.join(names)} beside it are in {path}"
                answers[id(question)] = gone(question, UNLIKE_SIBLINGS, why, place=path, rank=CODE)
    return answers


def _file_of(question: Question, near: Sequence[Question], found: Mapping[int, Verdict | None]) -> str:
    """The file that has nearly all names near this one; empty if there is none."""
    claim = question.claim
    if claim.may_be_past or claim.is_weak or PLACEHOLDER.match(claim.name):
        return ""
    homes: dict[str, str] = {}
    names = {one.claim.name for one in near} - {claim.name}
    for one in near:
        verdict = found.get(id(one))
        if verdict is not None and verdict.verdict == CONFIRMED and verdict.reason == "defined":
            homes[one.claim.name] = verdict.place.rpartition(":")[0]
    (path, count), *_ = Counter(homes.values()).most_common(1) or [("", 0)]
    is_listed = count >= _MIN_SIBLINGS and count >= len(names) * _SHARE_DEFINED
    return path if is_listed and is_source(path) else ""
