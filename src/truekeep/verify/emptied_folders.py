"""Folders that a document says are emptied again and again: that something is not in one of them is no news."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from truekeep.text.phrases import load_phrases
from truekeep.verify.claim import Claim
from truekeep.verify.question import Question
from truekeep.verify.verdict import GONE, MOVED, Verdict, unverifiable

_PATHS = ("path", "directory", "line")


@cache
def _pattern() -> re.Pattern[str]:
    words = load_phrases("claims").table("emptied")
    done, again = words["done"], words["again"]
    return re.compile(
        rf"\b(?:(?:{done})(?: [\w-]+){{0,2}}? (?:{again})|(?:{again}) (?:{done}))(?![\w-])", re.IGNORECASE
    )


def find_emptied_folders(claims: Sequence[Claim], lines: Sequence[str]) -> tuple[str, ...]:
    """The folders of which their own line says that they are emptied; of several, the nearest one before the words."""
    found = []
    for number in dict.fromkeys(claim.line for claim in claims if claim.kind == "directory"):
        if (match := _pattern().search(lines[number - 1])) is None:
            continue
        folders = [claim for claim in claims if claim.kind == "directory" and claim.line == number]
        in_front = [claim for claim in folders if claim.column <= match.start()]
        found.append((in_front[-1] if in_front else folders[0]).name.strip("/"))
    return tuple(found)


def excuse_emptied(question: Question, verdict: Verdict) -> Verdict:
    """Take back the alarm for a folder that is emptied regularly, and for what was in it."""
    claim = question.claim
    if verdict.verdict not in (GONE, MOVED) or claim.kind not in _PATHS:
        return verdict
    path = f"/{(claim.place if claim.kind == 'line' else claim.name).strip('/')}/"
    folder = next((folder for folder in question.emptied if f"/{folder}/" in path), "")
    if not folder:
        return verdict
    return unverifiable(question, "emptied", f"not there; {folder}/ is emptied regularly, as this document says")
