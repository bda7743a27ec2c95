"""Whether the text around a claim tells of what is over or to come, beyond the line that the claim is in.

Documents wrap their sentences, and a heading speaks for all lines below it. The words are those of `claims/tense`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekeep.verify.claim import Claim
from truekeep.verify.claims.tense import may_mention_loss

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_STARTS_BLOCK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s|\s*\||\s*(?:```|~~~)|\s*>|\s{0,3}#{1,6}\s")
_STOP = re.compile(r"[.!?](?:\s+|\Z)(?=[A-Z`*_(\[]|\Z)")
_CODE = re.compile(r"`[^`]*`")
_OF_OTHER_TIMES = re.compile(
    r"\b(?:removed|removals?|retired|retirement|deprecat\w+|histor(?:y|ical|ic)|legacy|obsolete|failed|abandoned"
    r"|previous(?:ly)?|former(?:ly)?|past|old|superseded|changelog|what changed|what's new|breaking changes|migrat\w+"
    r"|upgrad\w+|lessons|post-?mortem|completed|done|resolved|fixed|recent changes|recently|roadmap|future|planned"
    r"|plans?|proposed|proposals?|to-?dos?|next steps|backlog|ideas|open questions"
    r"|not yet|coming soon|wish-?list|before"
    r"|milestones?|phase \d+|step \d+|v?\d+\.\d+(?:\.\d+)?)\b|\b20\d\d-\d\d",
    re.IGNORECASE,
)


def is_told_as_past(lines: Sequence[str], claim: Claim, *, with_headings: bool = True) -> bool:
    """Whether the sentence of a claim, over its lines, or a heading above it speaks of another time than now."""
    if claim.line > len(lines):
        return False  # of a memory, whose text is not at hand
    if with_headings and any(
        _OF_OTHER_TIMES.search(_CODE.sub(" ", title)) for title in _headings_above(lines, claim.line)
    ):
        return True
    return may_mention_loss(_CODE.sub(" ", _sentence(lines, claim)))


def _headings_above(lines: Sequence[str], number: int) -> list[str]:
    """The titles of the sections that a line is in, without the title of the document."""
    found: list[str] = []
    level, fence = 7, False
    for line in reversed(lines[: number - 1]):
        if line.lstrip().startswith(("```", "~~~")):
            fence = not fence
        heading = None if fence else _HEADING.match(line)
        if heading is not None and len(heading[1]) < level:
            level = len(heading[1])
            if level > 1:
                found.append(heading[2])
    return found


def _sentence(lines: Sequence[str], claim: Claim) -> str:
    """The sentence around a claim, joined over the lines of its paragraph."""
    first = last = claim.line - 1
    while first > 0 and lines[first - 1].strip() and not _STARTS_BLOCK.match(lines[first]):
        if _HEADING.match(lines[first - 1]):
            break
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].strip() and not _STARTS_BLOCK.match(lines[last + 1]):
        last += 1
    before = " ".join(lines[first : claim.line - 1])
    at = len(before) + 1 + claim.column if before else claim.column
    text = " ".join(lines[first : last + 1])
    start = max((stop.end() for stop in _STOP.finditer(text) if stop.end() <= at), default=0)
    end = next((stop.start() for stop in _STOP.finditer(text) if stop.start() > at), len(text))
    return text[start:end]
