"""Importance tags in daily logs, `- [decision|i=0.9] Moved to SQLite`: the entries they make, and how long those last.

An entry is a list item with all that is indented below it, or a paragraph, that begins with a tag; the most important
tag in it counts. An entry without a tag never expires, nor does one whose tag cannot be read. Text only;
`maintenance/decay.py` decides what is removed, and when.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Literal, NamedTuple

from truekeep.text.markdown_lines import MAX_ITEMS_PER_LINE, MarkdownLine, Scan, begins, item_width

Tier = Literal["structural", "potential", "contextual"]

_SIGN = "i="  # a text without it has no tag
_OPENED = re.compile(r"((?:\[[ xX]\][ \t]+)?)(\*\*|__|[*_`]|)\[([^\[\]|]{0,80})\|[ \t]*i=")
_NUMBER = re.compile(r"(?:\d{1,9}(?:\.\d{0,30})?|\.\d{1,30})\Z", re.ASCII)
MAX_NUMBER_CHARS = 60  # of an importance, valid or not
_SHOWN = 20


class TaggedEntry(NamedTuple):
    """An entry of a log that begins with a tag."""

    first: int  # lines, counted from 1
    last: int
    kind: str
    importance: float  # of the most important tag in it
    text: str  # without tags


class BadTag(NamedTuple):
    """A tag that cannot be read."""

    line: int
    what: str


class Tiers(NamedTuple):
    """The importance from which an entry is kept for ever, and for how many days the others are kept."""

    structural: float = 0.8  # from here on for ever
    potential: float = 0.4
    potential_days: int = 30
    contextual_days: int = 7


def tier_of(importance: float, tiers: Tiers) -> Tier:
    if importance >= tiers.structural:
        return "structural"
    return "potential" if importance >= tiers.potential else "contextual"


def expires_on(day: date, importance: float, tiers: Tiers) -> date | None:
    """The first day on which an entry of this day's log is expired; None if it never expires."""
    tier = tier_of(importance, tiers)
    if tier == "structural":
        return None
    try:
        return day + timedelta(days=tiers.potential_days if tier == "potential" else tiers.contextual_days)
    except OverflowError:
        return None


def expired(text: str, day: date, tiers: Tiers, on: date) -> list[TaggedEntry]:
    """The entries of a day's log that are expired on a day."""
    if _SIGN not in text or (on - day).days < min(tiers.potential_days, tiers.contextual_days):
        return []
    entries, _ = parse_entries(text)
    return [entry for entry in entries if (end := expires_on(day, entry.importance, tiers)) is not None and end <= on]


def blank_expired(text: str, day: date, tiers: Tiers, on: date) -> str:
    """A day's log with empty lines instead of expired entries, so that line numbers stay the same."""
    gone = expired(text, day, tiers, on)
    if not gone:
        return text
    lines = text.split("\n")
    for entry in gone:
        lines[entry.first - 1 : entry.last] = [""] * (entry.last - entry.first + 1)
    return "\n".join(lines)


def parse_entries(text: str) -> tuple[list[TaggedEntry], list[BadTag]]:
    """The entries of a log, in order, and the tags that cannot be read. Not in code, comments and quotations."""
    if _SIGN not in text:
        return [], []
    reader = _EntryReader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.see(number, line.removesuffix("\r"))
    reader.close()
    return reader.entries, reader.bad


class _Tag(NamedTuple):
    """A tag at the beginning of a text, and the text without it."""

    kind: str
    importance: float
    rest: str
    what: str = ""  # what is wrong with it


def _tag_of(content: str) -> _Tag | None:
    """The tag that a text begins with."""
    opened = _OPENED.match(content)
    if opened is None:
        return None
    box, marks, kind = opened[1], opened[2], opened[3].strip()
    end = content.find("]", opened.end(), opened.end() + MAX_NUMBER_CHARS)
    if end < 0:
        return _Tag("", 0.0, content, f"[{kind[:_SHOWN]}|i=… is not closed")
    if content[end + 1 : end + 2] == "(":
        return None  # a link
    said = content[opened.end() : end].strip()
    rest = content[end + 1 :]
    rest = rest.removeprefix(marks) if marks and rest.startswith(marks) else marks + rest
    rest = box + rest.lstrip(": \t")
    if not kind:
        return _Tag("", 0.0, rest, f"[|i={said[:_SHOWN]}] does not say what kind of entry it is")
    if not said or not _NUMBER.match(said):
        return _Tag(kind, 0.0, rest, f"[{kind[:_SHOWN]}|i={said[:_SHOWN]}]: the importance is not a number from 0 to 1")
    importance = float(said)
    if importance > 1:
        return _Tag(kind, 0.0, rest, f"[{kind[:_SHOWN]}|i={said[:_SHOWN]}]: the importance is above 1")
    return _Tag(kind, importance, rest)


def _peel_items(bare: str, column: int) -> tuple[str, list[int]]:
    """The text of the list items that a line begins, and the columns where their contents begin."""
    columns: list[int] = []
    while len(columns) < MAX_ITEMS_PER_LINE and (width := item_width(bare)):
        column += width
        columns.append(column)
        content = bare[width:]
        bare = content.lstrip(" ")
        column += len(content) - len(bare)
        if column - columns[-1] > 3:
            return content, columns  # code
    return bare, columns


class _EntryReader:
    """The open list items, by the columns of their contents, and the open entry."""

    def __init__(self) -> None:
        self.entries: list[TaggedEntry] = []
        self.bad: list[BadTag] = []
        self._scan = Scan()
        self._items: list[int] = []
        self._first = 0  # of the open entry; 0: none is open
        self._last = 0
        self._column = -1  # where the content of its item begins; -1: it is a paragraph
        self._margin = 0  # where its item begins
        self._kind = ""
        self._importance = 0.0
        self._is_bad = False  # something in it has a tag that cannot be read
        self._text: list[str] = []

    def see(self, number: int, raw: str) -> None:
        scan = self._scan
        is_more, was_html, fence, floor = scan.is_paragraph, scan.is_html, scan.fence, scan.floor
        line = scan.see(raw)
        flat = raw.expandtabs(4) if "\t" in raw else raw
        bare = flat.lstrip(" ")
        column = len(flat) - len(bare)
        if not bare:
            if self._first and self._column < 0:
                self.close()
            return
        if (fence and column >= floor) or (was_html and (not self._items or column >= self._items[0])):
            self._go_on(number, flat, column)
        else:
            self._see_text(number, line, bare, column, is_more=is_more)

    def _see_text(self, number: int, line: MarkdownLine, bare: str, column: int, *, is_more: bool) -> None:
        is_more = is_more and line.kind == "text" and not begins(bare)
        if not is_more or _OPENED.match(bare):
            while self._items and column < self._items[-1]:
                self._items.pop()
            if self._first and (self._column < 0 or column < self._column):
                self.close()
        elif self._first and self._column >= 0 and column <= self._margin:
            self.close()  # a parser takes it for more of the item; whoever wrote it at the margin may not have
        content, is_item = bare, False
        if not is_more:
            if column - (self._items[-1] if self._items else 0) > 3:
                self._extend(number, " " * column + bare)  # code
                return
            content, columns = _peel_items(bare, column)
            self._items += columns
            is_item = bool(columns)
        tag = _tag_of(content) if line.kind == "text" else None
        if tag is None:
            self._extend(number, " " * column + bare)
        elif tag.what:
            self.bad.append(BadTag(number, tag.what))
            self._is_bad = True
            self._extend(number, " " * column + bare)
        elif self._first:
            if tag.importance > self._importance:
                self._kind, self._importance = tag.kind, tag.importance
            self._extend(number, " " * column + bare[: len(bare) - len(content)] + tag.rest)
        else:
            self._first = self._last = number
            self._column = self._items[-1] if is_item else -1
            self._margin = column
            self._kind, self._importance, self._is_bad = tag.kind, tag.importance, False
            self._text = [tag.rest]

    def _go_on(self, number: int, flat: str, column: int) -> None:
        """Add a line of code or HTML to the open entry, if it is inside of it."""
        if self._first and (self._column < 0 or column < self._column):
            self.close()
        self._extend(number, flat)

    def _extend(self, number: int, flat: str) -> None:
        if self._first:
            self._last = number
            indent = len(flat) - len(flat.lstrip(" "))
            self._text.append(flat[min(indent, max(0, self._column)) :])

    def close(self) -> None:
        if self._first and not self._is_bad:
            text = "\n".join(self._text).strip()
            self.entries.append(TaggedEntry(self._first, self._last, self._kind, self._importance, text))
        self._first = 0
