"""Journals (daily logs, monthly decisions, operations, projects, sub-agents) and the form of their entries.

On the canonical host an entry is written at once. On other machines it becomes a handoff: its first line has the
time and the writer, and the host chooses the file and the heading. The host knows itself which inbox it came from; what
the text adds about its origin is shown as a claim. Text only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.memory.card import parse_day, parse_journal
from truekeep.memory.sections import newline_of, plain_newlines, within
from truekeep.text.injection import find_instructions
from truekeep.text.markdown import TooComplex, outline, strip_comments
from truekeep.text.secrets.scanner import withhold

HARNESS_NAMES = ("claude", "codex", "openclaw")
STATUS = "Status"  # the one section that an entry from elsewhere may replace, in a project's file only
_TITLES = {
    "day": "{}",
    "month": "Decisions, {}",
    "operations": "Operations changelog",
    "project": "{}",
    "subagent": "Sub-agent {}",
}
_LABEL = re.compile(r"\([^()]+, ([^(),]+)\)\Z")  # of a writer and a repository: see author_label
_WRITER = re.compile(r"[^\W_][\w .-]{0,39}\Z")
_BY = re.compile(r"[^\W_][\w .-]{0,119}(?:, [^\W_][\w .-]{0,119})?\Z")
_WHEN = r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2})(?: ([+-][0-9]{4}))?"
_ENTRY = re.compile(rf"### {_WHEN}(?:, (.*))?\Z")
_STAMP = re.compile(rf"\({_WHEN}(?:, (.*))?\)\Z")
_ITEM = re.compile(r"[-*+][ \t]+(?=\S)")
_DATED = re.compile(rf"{_WHEN} |([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}) ")
_AT_END = re.compile(r" \(([^()]*)\)\Z")
_BLOCK = re.compile(r"[ \t]*(?:[-*+#>|<=]|```|~~~|[0-9]{1,9}[.)][ \t])")
_AHEAD = timedelta(hours=1)  # as far as clocks of machines that work together differ


class JournalAddition(NamedTuple):
    """The addition of a handoff to a journal: text below a heading, or the new text of a section."""

    path: str
    text: str  # empty: it says nothing
    section: str = ""
    at: datetime | None = None  # when it was said, by the host's clock
    future: str = ""  # the day or time that it claims, if that is still to come


class HandoffSource(NamedTuple):
    """The origin of a handoff as the host knows it: the inbox that it came from, and the host's own time."""

    writer: str
    repository: str
    machine: str  # empty: not known, or the host
    written: datetime | None  # as its name says
    now: datetime


def title_of(path: str) -> str:
    """The title in the first line of a journal."""
    kind, name = parse_journal(path) or ("day", path)
    return _TITLES[kind].format(name)


# --- Who speaks, and when --------------------------------------------------------------------------------------------


def author_label(writer: str, repository: str, machine: str = "") -> str:
    """The author of an entry: the writer, the machine if it is not the host, and the repository."""
    who = writer if _WRITER.match(writer) else _safe_name(writer)
    if where := _safe_name(machine):
        who = f"{who} on {where}" if who else f"on {where}"
    return ", ".join(part for part in (who, _safe_name(repository.rpartition("/")[2])) if part)


def labelled_repository(note: str) -> str:
    """The short name of the repository in the note of an entry, `log (claude, app)`; "" if it names none."""
    match = _LABEL.search(note)
    return match[1] if match else ""


def check_writer(writer: str) -> str:
    """Check the name of a writer: it is shown in headings that every agent reads."""
    if writer and (not _WRITER.match(writer) or find_instructions(writer) or withhold(writer) != writer):
        raise BadInput(
            f"{writer[:40]!r} cannot name a writer",
            hint="a short name: letters, digits, dots, dashes, spaces; at most 40 characters",
        )
    return writer


def _safe_name(name: str) -> str:
    """The name of a folder or a machine for a heading; empty if it gives orders to the reader."""
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-._")[:60]
    return "" if find_instructions(re.sub(r"[-_.]+", " ", plain)) else plain


def heading_of(path: str, at: datetime | None, by: str) -> str:
    """The heading of an entry: its hour in the log of its day, its day and hour in any other."""
    is_its_day = at is not None and parse_journal(path) == ("day", f"{at:%Y-%m-%d}")
    when = f"{at:%H:%M}" if at and is_its_day else f"{at:%Y-%m-%d %H:%M}" if at else ""
    return f"## {', '.join(part for part in (when, by) if part)}"


def stamp_of(at: datetime | None, by: str) -> str:
    """The line below a project's status."""
    return f"({', '.join(part for part in (f'{at:%Y-%m-%d %H:%M}' if at else '', by) if part)})"


def find_stamp(status: str, *, now: datetime) -> datetime | None:
    """The time of a status, from the line above it, which no handoff can write; a time in the future does not count."""
    match = _STAMP.match(status.lstrip().partition("\n")[0].rstrip())
    at = _moment(match[1], match[2]) if match else None
    return at if at and at <= now + _AHEAD else None


def _moment(when: str, zone: str | None) -> datetime | None:
    """A time in this machine's zone."""
    try:
        said = datetime.fromisoformat(when.replace(" ", "T") + (f"{zone[:3]}:{zone[3:]}" if zone else ""))
        return said.astimezone().replace(tzinfo=None) if zone else said
    except (ValueError, OverflowError):
        return None


# --- What travels ----------------------------------------------------------------------------------------------------


def sent_entry(at: datetime, by: str, text: str) -> str:
    """An entry as it is sent to the host."""
    return f"### {_sent(at, by)}\n\n{text}"


def sent_status(at: datetime, by: str, text: str) -> str:
    """A project's status as it is sent to the host."""
    return f"### {STATUS}\n\n({_sent(at, by)})\n\n{text}"


def sent_item(at: datetime, by: str, text: str) -> str:
    """A list item as it is sent to the host."""
    return f"- {at:%Y-%m-%d %H:%M %z} {_flat(text)}{f' ({by})' if by else ''}\n"


def dated_item(day: date, by: str, text: str) -> str:
    """A list item as it is written to a file."""
    return f"- {day.isoformat()} {_flat(text)}{f' ({by})' if by else ''}\n"


def _flat(text: str) -> str:
    return " ".join(re.sub(r"\A[-*+]\s+", "", text).split())


def _sent(at: datetime, by: str) -> str:
    return f"{at:%Y-%m-%d %H:%M %z}{f', {by}' if by else ''}"


def receive_entry(path: str, content: str, known: HandoffSource) -> JournalAddition:
    """Turn a handoff's content for a journal into what the host writes."""
    kind, name = parse_journal(path) or ("", "")
    if kind in ("month", "operations"):
        return _receive_list(path, content, known)
    if kind == "project" and _is_status(content):
        return _receive_status(path, content, known)
    first, _, rest = content.partition("\n")
    match = _ENTRY.match(first.rstrip())
    said = _said(match, known)
    future = said.future
    if kind == "day" and said.is_said and said.at is not None:
        path = _log_of(path, said.at)
    elif kind == "day" and (day := date.fromisoformat(name)) > known.now.date():
        path = _log_of(path, known.now)
        future = name if _is_far(day, known) else ""
    by, says = _author_and_claim(match[3] if match and said.is_said else "", known)
    heading = heading_of(path, said.at, f"{by} (says: {says})" if says else by)
    text = within(rest if said.is_said else content)
    return JournalAddition(path, "" if _is_empty(text) else f"{heading}\n\n{text}", at=said.at, future=future)


def _receive_status(path: str, content: str, known: HandoffSource) -> JournalAddition:
    """A project's status. Its time is in the line above it, or, from older versions, below it."""
    text = content.partition("\n")[2].strip()
    first, _, rest = text.partition("\n")
    match = _STAMP.match(first.rstrip())
    if match is None:
        rest, _, last = text.rpartition("\n")
        match = _STAMP.match(last)
    said = _said(match, known)
    text = within(rest if said.is_said else text, 3)
    by, says = _author_and_claim(match[3] if match and said.is_said else "", known)
    stamp = stamp_of(said.at, f"{by}; says: {says}" if says else by)
    filed = "" if _is_empty(text) else f"{stamp}\n\n{text}"
    return JournalAddition(path, filed, section=STATUS, at=said.at, future=said.future)


def _receive_list(path: str, content: str, known: HandoffSource) -> JournalAddition:
    """List items, each with its day and its author as the host knows them; other content, with both at its end."""
    folder, _, name = path.rpartition("/")
    day = min(known.written or known.now, known.now).date()
    items = [_receive_item(item, day, known) for item in _items(content)]
    future = next((item.future for item in items if item.future), "")
    if name[:1].isdigit() and items and items[0].month:
        path = f"{folder}/{items[0].month}.md"
    elif name[:1].isdigit() and name > f"{known.now:%Y-%m}.md":
        path = f"{folder}/{known.now:%Y-%m}.md"
        future = future or (name.removesuffix(".md") if _is_far(date.fromisoformat(f"{name[:7]}-01"), known) else "")
    if items:
        return JournalAddition(path, "".join(item.text for item in items), future=future)
    text = within(content)
    end = stamp_of(None, ", ".join(part for part in (day.isoformat(), _author_and_claim("", known)[0]) if part))
    return JournalAddition(path, "" if _is_empty(text) else f"{text}\n\n{end}", future=future)


class _JournalItem(NamedTuple):
    text: str
    month: str = ""  # of the moment that it was said, if it says so
    future: str = ""


def _receive_item(item: str, day: date, known: HandoffSource) -> _JournalItem:
    """A list item as it is written to a file. `day` is used if the item has none of its own."""
    match, end = _DATED.match(f"{item} "), _AT_END.search(item)
    said = _said(match if match and match[2] else None, known)
    when = said.at.date() if said.is_said and said.at else parse_day(match[0]) if match else None
    text = item[match.end() :] if match and when else item
    # Words in brackets are a name where truekeep wrote them, or where the repository's stands with them.
    claim = end[1] if end and (said.is_said or end[1].endswith(f", {_here(known)}")) and _BY.match(end[1]) else ""
    if claim:
        text = text[: text.rindex(" (")] if " (" in text else ""
    by, says = _author_and_claim(claim, known)
    future = said.future
    if when is not None and when > known.now.date():
        future = when.isoformat() if _is_far(when, known) else ""
        when = known.now.date()
    month = f"{when:%Y-%m}" if when and said.is_said else ""
    filed = dated_item(when or day, f"{by}; says: {says}" if says else by, text) if text.strip() else ""
    return _JournalItem(filed, month, future)


def _items(content: str) -> Iterator[str]:
    """The items of a plain list, or a plain paragraph as one item, each on one line; nothing for other content."""
    items: list[list[str]] = []
    is_list = _ITEM.match(content) is not None
    above = ""
    for line in content.strip().split("\n"):
        marked = _ITEM.match(line) if is_list else None
        if marked is not None:
            items.append([line[marked.end() :]])
        elif _BLOCK.match(line) or (items and line.strip() and not above.strip() and not line[:1].isspace()):
            return
        elif items:
            items[-1].append(line)
        else:
            items.append([line])
        above = line
    yield from (" ".join(" ".join(item).split()) for item in items)


def _is_status(content: str) -> bool:
    """Whether the content is nothing but a project's status."""
    try:
        headings = [heading for heading in outline(content).headings if heading.level <= 3]
    except TooComplex:
        return False
    return len(headings) == 1 and headings[0].start == 0 and headings[0].text.casefold() == STATUS.casefold()


class _StatementTime(NamedTuple):
    """The time of a statement, by the host's clock."""

    at: datetime | None
    future: str = ""  # the time that it claims, if that is still to come
    is_said: bool = False  # by the entry itself, not only by the name of its handoff


def _said(match: re.Match[str] | None, known: HandoffSource) -> _StatementTime:
    at = _moment(match[1], match[2]) if match else None
    if at is None:
        return _StatementTime(min(known.written, known.now) if known.written else None)
    if at > known.now + _AHEAD:
        return _StatementTime(known.now, f"{at:%Y-%m-%d %H:%M}", True)
    return _StatementTime(at, "", True)


def _author_and_claim(claim: str | None, known: HandoffSource) -> tuple[str, str]:
    """The author as the host knows it, and the author that the entry claims if that differs.

    People have no inbox of their own: what they log travels in a harness's, with their name on the machine it is from.
    If the host does not know the machine, the entry's own counts: handoffs may arrive in ways unknown to the host.
    """
    by = author_label(known.writer, known.repository, known.machine)
    if not claim or not _BY.match(claim):
        return by, ""
    here, there = _here(known), _safe_name(known.machine)
    who, _, where = claim.partition(", ")
    if who == here and not where:
        who, where = "", here
    name, _, on = f" {who}".rpartition(" on ") if " on " in f" {who}" else (who, "", "")
    is_same_place = where in ("", here)
    is_same_name = name.strip() in ("", author_label(known.writer, "")) or (bool(there) and who == there)
    if is_same_name and (not there or on in ("", there)) and is_same_place:
        return author_label(known.writer, known.repository, known.machine or on), ""
    if there and on == there and is_same_place and name.strip() not in HARNESS_NAMES:
        return author_label(name.strip(), known.repository, known.machine), ""  # a person: no inbox is theirs
    return by, who if is_same_place else claim


def _here(known: HandoffSource) -> str:
    return author_label("", known.repository)


def _is_empty(text: str) -> bool:
    return not strip_comments(text).strip()


def _is_far(day: date, known: HandoffSource) -> bool:
    """Whether this day is in the future in every time zone."""
    return (day - known.now.date()).days > 1


def _log_of(path: str, at: datetime) -> str:
    return f"{path.rpartition('/')[0]}/{at:%Y-%m-%d}.md"


# --- Into the file ---------------------------------------------------------------------------------------------------


def appended(existing: str, text: str, *, title: str) -> str:
    """The text to append to a journal, with the blank line before it; a new journal begins with its title."""
    newline = newline_of(existing)
    flat = plain_newlines(existing)
    text = text.strip("\n") + "\n"
    if not flat.strip():
        return f"# {title}\n\n{text}"
    is_list = text.startswith("- ") and flat.rstrip("\n").rpartition("\n")[2].startswith("- ")
    ends = len(flat) - len(flat.rstrip("\n"))
    return ("\n" * max(0, (1 if is_list else 2) - ends) + text).replace("\n", newline)
