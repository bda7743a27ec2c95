"""Two texts about one topic made into one: the old one as it is, and what the new one says besides. Pure.

What is new goes below the heading that it stands under, at the end of that section, else to the end of the text; what
has no heading, to the end of what the old text says before its sections. What the old text says already is not said
twice: a statement is known by its words, however it is wrapped or bulleted; code, by its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truekeep.markdown import Heading, TooComplex, fenced_lines, outline

_MARK = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_FENCE = re.compile("`{3,}|~{3,}")
_ENDED = re.compile(r"[.!?:;…。！？][)\]\"'`*_]*\Z")


class Statement(NamedTuple):
    """What is said as one: a sentence or list item on its lines, or a fence of code."""

    lines: tuple[str, ...]
    is_code: bool
    has_gap: bool  # a blank line stands before it
    end: int  # the line behind it, from 0

    @property
    def key(self) -> str:
        """The same for the same words."""
        if self.is_code:
            return "\n".join(line.strip() for line in self.lines)
        return _words(" ".join(_bare(line) for line in self.lines))

    @property
    def is_item(self) -> bool:
        return not self.is_code and _ITEM.match(self.lines[0]) is not None

    @property
    def is_below(self) -> bool:
        """Whether it belongs to what stands above it: an item in an item, or what it goes on with."""
        return self.lines[0][:1] in (" ", "\t")


class Part(NamedTuple):
    """A heading, or none, and what stands below it before the next one."""

    heading: Heading | None
    first: int  # its first line below the heading, from 0
    last: int  # the line behind it
    statements: tuple[Statement, ...]


def woven(old: str, new: str) -> str:
    """The old text with what the new one says besides. Both have plain newlines; nothing of the old one goes."""
    if not old.strip():
        return new
    lines, told = old.split("\n"), parts_of(old)
    known: dict[str, int] = {}  # a statement or line that is there, and the line behind it
    for part in told:
        for statement in part.statements:
            known.setdefault(statement.key, statement.end)
            for number, line in enumerate(() if statement.is_code else statement.lines, 1):
                known.setdefault(_words(_bare(line)), statement.end - len(statement.lines) + number)
    places = _Places(told)
    added: dict[int, list[tuple[str, bool]]] = {}  # behind which line, and whether a blank one stands before it
    for part in parts_of(new):
        fresh = [statement for statement in part.statements if not _is_known(statement, known)]
        at, headings = places.place(part.heading, has_text=bool(fresh))
        for heading in headings:
            added.setdefault(at, []).append((f"{'#' * heading.level} {heading.text}", True))
        anchor, is_begun = at, False
        for statement in part.statements:
            if statement not in fresh:
                anchor = known.get(statement.key, at)
                continue
            place = anchor if statement.is_below else at
            there = added.setdefault(place, [])
            joins = statement.is_below or (statement.is_item and _is_list(_line_above(lines, place, there)))
            has_gap = statement.has_gap if is_begun else not joins
            there.extend((line, has_gap and not number) for number, line in enumerate(statement.lines))
            anchor, is_begun = place, True
    return _inserted(lines, added)


def _is_known(statement: Statement, known: dict[str, int]) -> bool:
    if statement.key in known:
        return True
    return not statement.is_code and all(_words(_bare(line)) in known for line in statement.lines)


def _line_above(lines: Sequence[str], at: int, there: Sequence[tuple[str, bool]]) -> str:
    return there[-1][0] if there else next((line for line in reversed(lines[:at]) if line.strip()), "")


def _is_list(line: str) -> bool:
    return _ITEM.match(line) is not None or line[:1] in (" ", "\t")


def _inserted(lines: list[str], added: dict[int, list[tuple[str, bool]]]) -> str:
    out: list[str] = []
    for at in range(len(lines) + 1):
        for line, has_gap in added.get(at, ()):
            if has_gap and out and out[-1].strip():
                out.append("")
            out.append(line)
        if at == len(lines):
            break
        if at in added and lines[at].strip() and not (_is_list(lines[at]) and _is_list(out[-1])):
            out.append("")
        out.append(lines[at])
    return "\n".join(out)


class _Places:
    """Where a part of the new text belongs in the old one."""

    def __init__(self, told: Sequence[Part]) -> None:
        self._told = told
        self._path: list[tuple[Heading, int, int]] = []  # the headings above, where each is in the old text, or -1
        self._missing: list[Heading] = []  # of these, the ones that nothing was said below so far

    def place(self, heading: Heading | None, *, has_text: bool) -> tuple[int, list[Heading]]:
        """The line of the old text behind which it goes, and the headings that have to be written first."""
        if heading is None:
            return self._lead(), []
        self._path = [item for item in self._path if item[0].level < heading.level]
        self._missing = [item for item in self._missing if item.level < heading.level]
        above = self._path[-1] if self._path else None
        found = self._find(heading, above)
        if found is not None:
            self._path.append((heading, found, self._own_end(found)))
            return self._own_end(found), []
        if above is None:
            at = self._last_line(len(self._told))
        else:
            at = above[2] if above[1] < 0 else self._tree_end(above[1])
        self._path.append((heading, -1, at))
        self._missing.append(heading)
        if not has_text:
            return at, []
        headings, self._missing = self._missing, []
        return at, headings

    def _find(self, heading: Heading, above: tuple[Heading, int, int] | None) -> int | None:
        """The section of this name; below the same one, if that is there."""
        if above is not None and above[1] < 0:
            return None
        first = above[1] + 1 if above else 0
        for number in range(first, len(self._told)):
            own = self._told[number].heading
            if own is None:
                continue
            if above is not None and own.level <= above[0].level:
                return None
            if own.level == heading.level and own.text.casefold() == heading.text.casefold():
                return number
        return None

    def _lead(self) -> int:
        """Behind what is said before the sections; the text's own title is none."""
        for number, part in enumerate(self._told):
            if part.heading is not None and (part.heading.level > 1 or number > 1):
                return self._last_line(number)
        return self._last_line(len(self._told))

    def _own_end(self, number: int) -> int:
        return self._last_line(number + 1)

    def _tree_end(self, number: int) -> int:
        own = self._told[number].heading
        level = own.level if own is not None else 0
        for following in range(number + 1, len(self._told)):
            heading = self._told[following].heading
            if heading is not None and heading.level <= level:
                return self._last_line(following)
        return self._last_line(len(self._told))

    def _last_line(self, number: int) -> int:
        """Behind the last line that says something before a part."""
        while number > 0:
            part = self._told[number - 1]
            if part.last > part.first:
                return part.last
            if part.heading is not None:
                return part.first
            number -= 1
        return 0


def parts_of(text: str) -> list[Part]:
    """A text as its headings and what is said below them. What cannot be read is one part."""
    lines = text.split("\n")
    try:
        seen = outline(text)
        headings: Sequence[Heading] = seen.headings if seen.open_at is None else ()
        code = fenced_lines(text) if "```" in text or "~~~" in text else set()
    except TooComplex:
        headings, code = (), set()
    starts = [0, *(heading.line for heading in headings)]
    ends = [*(heading.line - 1 for heading in headings), len(lines)]
    parts = []
    for heading, first, end in zip((None, *headings), starts, ends, strict=True):
        last = end
        while last > first and not lines[last - 1].strip():
            last -= 1
        parts.append(Part(heading, first, last, tuple(_statements(lines, first, last, code))))
    return parts


def _statements(lines: Sequence[str], first: int, last: int, code: set[int]) -> Iterator[Statement]:
    said: list[str] = []
    is_code = has_gap = False
    for number in range(first, last):
        line = lines[number]
        is_in = number in code
        if said and (is_in != is_code or (_is_closed(said) if is_in else _begins(line, said))):
            yield Statement(tuple(said), is_code, has_gap, number)
            said, has_gap = [], False
        if not line.strip() and not is_in:
            has_gap = True
            continue
        is_code = is_in
        said.append(line)
    if said:
        yield Statement(tuple(said), is_code, has_gap, last)


def _is_closed(code: Sequence[str]) -> bool:
    """Whether these lines of code are a whole fence."""
    opened = _FENCE.search(code[0])
    last = code[-1].strip(" \t>")
    return len(code) > 1 and opened is not None and len(last) >= len(opened[0]) and not last.strip(opened[0][0])


def _begins(line: str, said: Sequence[str]) -> bool:
    """Whether a line says something of its own, and does not go on with what was said."""
    if not line.strip() or _ITEM.match(line):
        return True
    if _ITEM.match(said[0]) and line[:1] in (" ", "\t"):
        return False
    return _ENDED.search(said[-1].rstrip()) is not None


def _bare(line: str) -> str:
    match = _MARK.match(line)
    return line[match.end() :] if match else line


def _words(text: str) -> str:
    return " ".join(text.split())
