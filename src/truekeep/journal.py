"""Journals: the logs of days, the decisions of months, operations, projects, sub-agents. How their entries read.

On the canonical host an entry is written at once. Elsewhere it travels in a handoff: its first line says when and by
whom, and the host decides in which file it stands, and under which heading. Text only.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import NamedTuple

from truekeep.card import parse_journal
from truekeep.errors import BadInput
from truekeep.markdown import TooComplex, outline
from truekeep.sections import newline_of, plain_newlines, within

STATUS = "Status"  # the one section that an entry from elsewhere may replace, in a project's file only
_TITLES = {
    "day": "{}",
    "month": "Decisions, {}",
    "operations": "Operations changelog",
    "project": "{}",
    "subagent": "Sub-agent {}",
}
_WRITER = re.compile(r"[^\W_][\w .-]{0,39}\Z")
_BY = re.compile(r"[^\W_][\w .-]{0,119}(?:, [^\W_][\w .-]{0,119})?\Z")
_WHEN = r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2})(?: ([+-]\d{4}))?"
_ENTRY = re.compile(rf"### {_WHEN}(?:, (.*))?\Z")
_STAMP = re.compile(rf"\({_WHEN}(?:, (.*))?\)\Z")


class Entry(NamedTuple):
    """What a handoff adds to a journal: below its heading, or as the new text of a section."""

    path: str
    text: str
    section: str = ""
    at: datetime | None = None  # when it was said, by the host's clock


def title_of(path: str) -> str:
    """What a journal is called in its first line."""
    kind, name = parse_journal(path) or ("day", path)
    return _TITLES[kind].format(name)


# --- Who speaks, and when --------------------------------------------------------------------------------------------


def speaker(writer: str, repository: str, machine: str = "") -> str:
    """Who speaks: the writer, on which machine if it is not the host, and in which repository."""
    who = writer if _WRITER.match(writer) else _safe_name(writer)
    if where := _safe_name(machine):
        who = f"{who} on {where}" if who else where
    return ", ".join(part for part in (who, _safe_name(repository.rpartition("/")[2])) if part)


def check_writer(writer: str) -> str:
    """The name of a writer, if it is one: it stands in headings that every agent reads."""
    from truekeep.instructions import find_instructions
    from truekeep.secrets import withhold

    if writer and (not _WRITER.match(writer) or find_instructions(writer) or withhold(writer) != writer):
        raise BadInput(
            f"{writer[:40]!r} cannot name a writer",
            hint="a short name: letters, digits, dots, dashes, spaces; at most 40 characters",
        )
    return writer


def _safe_name(name: str) -> str:
    """The name of a folder or a machine as it may stand in a heading; one that gives orders is left out."""
    from truekeep.instructions import find_instructions

    plain = re.sub(r"[^\w.-]+", "-", name).strip("-._")[:60]
    return "" if find_instructions(re.sub(r"[-_.]+", " ", plain)) else plain


def heading_of(path: str, at: datetime | None, by: str) -> str:
    """The heading of an entry in a log: its hour in a day's, its day and hour in any other."""
    kind = (parse_journal(path) or ("", ""))[0]
    when = f"{at:%H:%M}" if at and kind == "day" else f"{at:%Y-%m-%d %H:%M}" if at else ""
    return f"## {', '.join(part for part in (when, by) if part)}"


def stamp_of(at: datetime | None, by: str) -> str:
    """The line below a project's status."""
    return f"({', '.join(part for part in (f'{at:%Y-%m-%d %H:%M}' if at else '', by) if part)})"


def find_stamp(status: str, *, today: date) -> datetime | None:
    """When a status was said, by the line below it; a day that is still to come says nothing."""
    match = _STAMP.match(status.rstrip().rpartition("\n")[2])
    at = _moment(match[1], match[2]) if match else None
    return at if at and (at.date() - today).days <= 1 else None


def _moment(when: str, zone: str | None) -> datetime | None:
    """A moment by the clock of this machine."""
    try:
        said = datetime.fromisoformat(when.replace(" ", "T") + (f"{zone[:3]}:{zone[3:]}" if zone else ""))
        return said.astimezone().replace(tzinfo=None) if zone else said
    except (ValueError, OverflowError):
        return None


# --- What travels ----------------------------------------------------------------------------------------------------


def sent_entry(at: datetime, by: str, text: str) -> str:
    """An entry on its way to the host."""
    return f"### {_sent(at, by)}\n\n{text}"


def sent_status(at: datetime, by: str, text: str) -> str:
    """A project's status on its way to the host."""
    return f"### {STATUS}\n\n{text}\n\n({_sent(at, by)})"


def _sent(at: datetime, by: str) -> str:
    return f"{at:%Y-%m-%d %H:%M %z}{f', {by}' if by else ''}"


def receive_entry(path: str, content: str, *, written: datetime | None, by: str) -> Entry:
    """What the host makes of a handoff's content for a journal. `written` and `by` are for one that does not say."""
    kind = (parse_journal(path) or ("",))[0]
    if kind in ("day", "subagent"):
        first, _, rest = content.partition("\n")
        at, who, is_said = _said(_ENTRY.match(first.rstrip()), written, by)
        if kind == "day" and is_said:
            path = f"{path.rpartition('/')[0]}/{at:%Y-%m-%d}.md"
        return Entry(path, f"{heading_of(path, at, who)}\n\n{within(rest if is_said else content)}", at=at)
    if kind == "project" and _is_status(content):
        text, _, last = content.partition("\n")[2].strip().rpartition("\n")
        at, who, is_said = _said(_STAMP.match(last), written, by)
        text = within(text if is_said else f"{text}\n{last}", 3)
        return Entry(path, f"{text}\n\n{stamp_of(at, who)}", section=STATUS, at=at)
    return Entry(path, within(content))


def _is_status(content: str) -> bool:
    """Whether a project's status is all that it tells."""
    try:
        headings = [heading for heading in outline(content).headings if heading.level <= 3]
    except TooComplex:
        return False
    return len(headings) == 1 and headings[0].start == 0 and headings[0].text.casefold() == STATUS.casefold()


def _said(match: re.Match[str] | None, written: datetime | None, by: str) -> tuple[datetime | None, str, bool]:
    """When and by whom, as the entry itself says, else as its handoff does; and whether it says so."""
    at = _moment(match[1], match[2]) if match else None
    if match is None or at is None:
        return written, by, False
    return at, match[3] if match[3] and _BY.match(match[3]) else by, True


# --- Into the file ---------------------------------------------------------------------------------------------------


def appended(existing: str, text: str, *, title: str) -> str:
    """What is added to the end of a journal, the blank line before it included; a new one begins with its title."""
    newline = newline_of(existing)
    flat = plain_newlines(existing)
    text = text.strip("\n") + "\n"
    if not flat.strip():
        return f"# {title}\n\n{text}"
    is_list = text.startswith("- ") and flat.rstrip("\n").rpartition("\n")[2].startswith("- ")
    ends = len(flat) - len(flat.rstrip("\n"))
    return ("\n" * max(0, (1 if is_list else 2) - ends) + text).replace("\n", newline)
