"""The part of the wake brief that says how the work stands: handover, heartbeat and working context.

Each has parts of several repositories: those of the agent's own repository come first and are worth more. What the
handover says is not said again from the working context.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from truekeep.core.dates import shown_age
from truekeep.memory.card import short_name
from truekeep.sessions.handover import STAMP, RepositoryHandover, find_stamp, handover_name, is_of, split_handovers
from truekeep.sessions.packing import BriefPiece, BriefSection, cut, visible

HANDOVER, HEARTBEAT, CONTEXT = "HANDOVER.md", "HEARTBEAT.md", "memory/active-context.md"
UNSAID = "Nothing was said."  # written into empty parts of the handover
MAX_OTHER_HANDOVERS = 3  # of other repositories, the latest
_HEARTBEAT_PARTS = ("now", "next", "blockers")  # as `truekeep checkpoint` writes them
_FRONT = re.compile(r"\A---\r?\n.*?\n---[ \t]*\r?\n", re.DOTALL)
_CONTEXT_STAMP = re.compile(r"\(\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?:, .*)?\)\Z")

Read = Callable[[str], str | None]
"""Returns a memory file's text by path; None if it does not exist."""

NamedSection = tuple[str, BriefSection]


class Moment(NamedTuple):
    """When the brief is made, and how old a heartbeat may be."""

    today: date
    now: datetime | None = None  # in local time; None: the age of a heartbeat is not judged
    heartbeat_minutes: int = 0  # 0: it is not judged


def state_sections(read: Read, repository: str, moment: Moment) -> Iterator[NamedSection]:
    """The state after the last sessions."""
    handovers = list(_handovers(read, repository, moment.today))
    yield from (("handover", section) for section in handovers)
    yield from _heartbeat(read, moment)
    told = {piece.text.strip() for section in handovers for piece in section.pieces}
    yield from _context(read, repository, moment.today, told)


# --- Handover --------------------------------------------------------------------------------------------------------


def _handovers(read: Read, repository: str, today: date) -> Iterator[BriefSection]:
    """The handover of this repository, those made outside of repositories, then the latest of others."""
    parts = split_handovers(plain_text(read(HANDOVER)))
    here = [part for part in parts if not repository or not part.repository or is_of(part, repository)]
    here.sort(key=lambda part: not is_of(part, repository))
    others = [part for part in parts if part not in here]
    shown = [(part, 1.0 - 0.1 * min(at, 3)) for at, part in enumerate(here)]
    shown += [(part, 0.7 - 0.1 * at) for at, part in enumerate(others[:MAX_OTHER_HANDOVERS])]
    for number, (part, worth) in enumerate(shown):
        pieces = tuple(piece for piece in cut(part.text, falling(worth)) if piece.text.strip() != UNSAID)
        counted = len(others[MAX_OTHER_HANDOVERS:]) if number == len(shown) - 1 else 0
        if pieces:
            yield BriefSection(_handover_title(part, repository, today), f"truekeep get {HANDOVER}", pieces, counted)


def _handover_title(part: RepositoryHandover, repository: str, today: date) -> str:
    day = day_in(part.text)
    about = [HANDOVER, *([shown_age((today - day).days)] if day else [])]
    if part.repository and repository and not is_of(part, repository):
        about.append(f"of {visible(handover_name(short_name(part.repository))[:60])}")
    elif part.repository and not repository:
        about.append(f"of {visible(handover_name(part.repository)[:60])}")
    return f"Handover ({', '.join(about)})"


# --- Heartbeat -------------------------------------------------------------------------------------------------------


def _heartbeat(read: Read, moment: Moment) -> Iterator[NamedSection]:
    text = plain_text(read(HEARTBEAT))
    pieces = tuple(piece for piece in cut(text, falling(0.96)) if _is_status(piece)) if text else ()
    if not pieces:
        return
    about = ""
    if overdue := overdue_since(text, moment.now, moment.heartbeat_minutes):
        about = f", of {overdue:%Y-%m-%d %H:%M}: older than its interval of {moment.heartbeat_minutes} minutes"
    elif day := day_in(text):
        about = f", {shown_age((moment.today - day).days)}"
    yield "heartbeat", BriefSection(f"Heartbeat ({HEARTBEAT}{about})", f"truekeep get {HEARTBEAT}", pieces)


def overdue_since(text: str, now: datetime | None, minutes: int) -> datetime | None:
    """When a heartbeat was written, if that is longer ago than its interval; None if it is not, or cannot be told.

    The time changes only with the next heartbeat, so that a brief stays the same in between.
    """
    stamp = find_stamp("\n".join(line for line in text.split("\n") if line.strip()))
    if stamp is None or now is None or not minutes:
        return None
    try:
        at = datetime.fromisoformat(stamp["at"])  # local, as it was written
    except ValueError:
        return None
    return at if now.replace(tzinfo=None) - at > timedelta(minutes=minutes) else None


def _is_status(piece: BriefPiece) -> bool:
    """Whether a piece of the heartbeat says how work stands. OpenClaw's own heartbeat is a list of things to check."""
    if not piece.under:
        return STAMP.match(piece.text) is not None
    title = piece.under[0].line.lstrip("# ")
    if title.casefold() in _HEARTBEAT_PARTS:
        return True
    from truekeep.text.headings import states_status  # here: a heartbeat by truekeep needs no phrases

    return states_status(title)


# --- Working context -------------------------------------------------------------------------------------------------


def _context(read: Read, repository: str, today: date, told: Collection[str]) -> Iterator[NamedSection]:
    """The working context: sections of other repositories are worth less, and what the handover says is left out."""
    text = plain_text(read(CONTEXT))
    if not text:
        return
    found = cut(text, falling(0.8))
    stamped = {piece.under[0] for piece in found if piece.under and _CONTEXT_STAMP.match(piece.text)}
    kept = [piece for piece in found if piece.text.strip() not in told or not stamped.intersection(piece.under)]
    filled = {piece.under[0] for piece in kept if piece.under and not _CONTEXT_STAMP.match(piece.text)}
    pieces = []
    for piece in kept:
        section = piece.under[0] if piece.under else None
        if section in stamped and section not in filled:
            continue
        is_elsewhere = section in stamped and not _is_section_of(section.line.lstrip("# "), repository)
        pieces.append(piece._replace(value=piece.value - 0.4) if is_elsewhere else piece)
    day = day_in(text)
    age = f", {shown_age((today - day).days)}" if day else ""
    if pieces:
        yield "context", BriefSection(f"Working context ({CONTEXT}{age})", f"truekeep get {CONTEXT}", tuple(pieces))


def _is_section_of(title: str, repository: str) -> bool:
    return not repository or is_of(RepositoryHandover(title, ""), repository)


# --- Text ------------------------------------------------------------------------------------------------------------


def falling(worth: float) -> Callable[[str, int, int], float]:
    """Earlier pieces are worth more."""
    return lambda _, number, __: worth - number * 0.004


def plain_text(text: str | None) -> str:
    """The text without frontmatter."""
    if not text:
        return ""
    text = plain_newlines(text)
    return _FRONT.sub("", text, count=1).strip("\n") if text.startswith("---") else text.strip("\n")


def plain_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def day_in(text: str) -> date | None:
    """The date in the head of a state file; None if there is none."""
    match = re.search(r"\b([0-9]{4}-[0-9]{2}-[0-9]{2})\b", text[:400])
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None
