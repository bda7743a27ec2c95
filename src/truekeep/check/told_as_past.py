"""Whether the text around a claim tells of what is over or to come, beyond the line that the claim is in.

Documents wrap their sentences, and a heading speaks for all lines below it. The words are those of `claims/tense`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekeep.text.markdown_lines import closes_fence, opening_fence
from truekeep.verify.claim import Claim
from truekeep.verify.claims.tense import may_mention_loss

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_STARTS_BLOCK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s|\s*\||\s*(?:```|~~~)|\s*>|\s{0,3}#{1,6}\s")
_STOP = re.compile(r"[.!?](?:\s+|\Z)(?=[A-Z`*_(\[]|\Z)")
_MAX_LINES, _MAX_CHARS = 12, 600  # of a sentence, on either side of the claim
_CODE = re.compile(r"`[^`]*`")
_OF_OTHER_TIMES = re.compile(
    r"\b(?:removed|removals?|retired|retirement|deprecat\w+|histor(?:y|ical|ic)|legacy|obsolete|failed|abandoned"
    r"|previous(?:ly)?|former(?:ly)?|past|superseded|changelog|what changed|what's new|breaking changes|migrat\w+"
    r"|upgrad\w+|lessons|post-?mortem|completed|resolved|fixed|recent changes|recently|roadmap|future|planned"
    r"|plans?|proposed|proposals?|to-?dos?|next steps|backlog|ideas|open questions"
    r"|not yet|coming soon|wish-?list"
    r"|milestones?|phase \d+|step \d+)\b|\b20\d\d-\d\d|\A\W*v?\d+\.\d+(?:\.\d+)?\b|\A\W*(?:old|done|before)\W*\Z",
    re.IGNORECASE,
)


_PLANNED = re.compile(
    r"\A\W*(?:planned|roadmap|to-?dos?|future(?: work)?|backlog|proposed|ideas|coming soon|wish-?list)\W*\Z",
    re.IGNORECASE,
)


_PLANNED_LINE = re.compile(
    r"\s*(?:[-*+]|\d+[.)])\s+(?:\[ \]\s*)?[\W_]{0,4}(?:todo|tbd|wip|planned|coming soon)\b"
    r"|[(\[*_](?:todo|tbd|wip|planned|coming soon)[)\]*_]", re.IGNORECASE
)  # fmt: skip


def is_planned_line(lines: Sequence[str], claim: Claim) -> bool:
    """Whether the line of a claim says that what it names is still to be made."""
    return claim.line <= len(lines) and _PLANNED_LINE.search(lines[claim.line - 1]) is not None


def is_planned(titles: Sequence[str]) -> bool:
    """Whether a title says that the section below it is of what is still to be made."""
    return any(_PLANNED.match(title) for title in titles)


def is_told_as_past(lines: Sequence[str], claim: Claim, titles: Sequence[str] = ()) -> bool:
    """Whether the sentence of a claim, over its lines, or a title above it speaks of another time than now."""
    if claim.line > len(lines):
        return False  # of a memory, whose text is not at hand
    if any(_OF_OTHER_TIMES.search(_CODE.sub(" ", title)) for title in titles):
        return True
    if claim.why == "a command" and "`" not in lines[claim.line - 1]:
        return False  # the lines of a code block are no sentence
    return may_mention_loss(_CODE.sub(" ", _sentence(lines, claim)))


def titles_above(text: str) -> list[tuple[str, ...]]:
    """For each line, the titles of the sections that it is in, without the title of the document."""
    found: list[tuple[str, ...]] = []
    open_sections: list[tuple[int, str]] = []
    titles: tuple[str, ...] = ()
    fence = ""
    for line in text.split("\n"):
        found.append(titles)
        bare = line.strip()
        if fence or (marks := opening_fence(bare)):
            fence = "" if fence and closes_fence(bare, fence) else fence or marks
        elif (heading := _HEADING.match(line)) is not None:
            level = len(heading[1])
            open_sections = [section for section in open_sections if section[0] < level] + [(level, heading[2])]
            titles = tuple(title for depth, title in open_sections if depth > 1)
    return found


def _sentence(lines: Sequence[str], claim: Claim) -> str:
    """The sentence around a claim, joined over the lines of its paragraph, as far as it is near."""
    first = last = claim.line - 1
    nearest, farthest = max(0, first - _MAX_LINES), min(len(lines), last + 1 + _MAX_LINES)
    while first > nearest and lines[first - 1].strip() and not _STARTS_BLOCK.match(lines[first]):
        if _HEADING.match(lines[first - 1]):
            break
        first -= 1
    while last + 1 < farthest and lines[last + 1].strip() and not _STARTS_BLOCK.match(lines[last + 1]):
        last += 1
    before = " ".join(lines[first : claim.line - 1])
    at = len(before) + 1 + claim.column if before else claim.column
    text = " ".join(lines[first : last + 1])
    cut = max(0, at - _MAX_CHARS)
    text, at = text[cut : at + _MAX_CHARS], at - cut
    start = max((stop.end() for stop in _STOP.finditer(text) if stop.end() <= at), default=0)
    end = next((stop.start() for stop in _STOP.finditer(text) if stop.start() > at), len(text))
    return text[start:end]
