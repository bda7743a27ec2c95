"""Documents and logs that are copies of others, and sections and lines that a document repeats.

A copy is a whole text that is somewhere else as well: the same lines, or all of its lines inside a larger file. Reports
of a series are alike because one program writes them, so files that differ in a day only are not compared, nor is what
a harness keeps of sessions, nor what is in a folder of backups. Nothing here proposes a draft: the file to keep is
named, and a person deletes the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from truekeep.core.model import INDEX
from truekeep.memory.file_scan import is_dated, is_log
from truekeep.text.program_text import find_program_lines

MIN_LINES = 5  # of a text that is worth telling about
MIN_LINES_INSIDE = 10  # of a text that is a part of another
MIN_CHARS = 300
_SAME = "the same text"
_TELLING_CHARS = 20  # of a line that is no mere "Done"
_MIN_ADDED = 2  # headings with a day, in a file to which days are added; or of one text, in one to which reports are
_COMMON = 6  # files that have a line which is everywhere, and tells nothing
CURATED = (INDEX, "USER.md", "TOOLS.md")  # what is said there is to be said once
_MIN_REPEATED = 2  # list items in a row
_MIN_REPEATED_CHARS = 80
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.{20,})")
_NUMBERS = re.compile(r"\d+")
_BACKUP_FOLDER = re.compile(r"(?:^|/)(?:[^/]*[-_. ])?(?:backups?|snapshots?)(?:[-_. ][^/]*)?/", re.IGNORECASE)


class CopiedFile(NamedTuple):
    """A file, or a section of one, that is somewhere else as well."""

    path: str  # the copy
    line: int  # where the repeated section begins; 0 for a whole file
    kept: str  # the file that has all of it
    kept_line: int
    why: str  # "the same text", "all of it is there", "the same section" or "the same lines"
    lines: int

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path

    @property
    def kept_place(self) -> str:
        return f"{self.kept}:{self.kept_line}" if self.kept_line else self.kept


class _Text(NamedTuple):
    lines: tuple[str, ...]
    telling: frozenset[str]


def find_copies(texts: Mapping[str, str], is_linked: Callable[[str], bool] = lambda _: False) -> list[CopiedFile]:
    """The copies among documents and logs, whole files first. `is_linked`: whether another memory points at a file."""
    texts = {path: text for path, text in texts.items() if not _BACKUP_FOLDER.search(path)}
    read = {path: _read(text) for path, text in texts.items()}
    found: dict[str, CopiedFile] = {}
    for copy in (*_same_files(read, is_linked), *_parts(read)):
        if copy.why == _SAME or not (_is_program_made(texts[copy.path]) or _is_program_made(texts[copy.kept])):
            found.setdefault(copy.path, copy)
    left = {path: text for path, text in texts.items() if path not in found}
    sections = [item for path, text in left.items() for item in _sections(path, text)]
    told = {item.path for item in sections}
    lines = [
        item for path in CURATED if path in left and path not in told for item in _repeated_lines(path, left[path])
    ]
    return [*found.values(), *sections, *lines]


def _read(text: str) -> _Text:
    lines = tuple(line.strip() for line in text.split("\n") if line.strip())
    telling = frozenset(line for line in lines if len(line) >= _TELLING_CHARS)
    return _Text(lines, telling)


def _is_program_made(text: str) -> bool:
    """Whether a program wrote most of a file, or a harness kept it of a session."""
    kinds = Counter(find_program_lines(text).values())
    return 2 * (kinds["session"] + kinds["generated"]) > text.count("\n")


def _same_files(read: Mapping[str, _Text], is_linked: Callable[[str], bool]) -> Iterator[CopiedFile]:
    by_text: dict[tuple[str, ...], list[str]] = {}
    for path, text in read.items():
        if len(text.telling) >= MIN_LINES and sum(map(len, text.lines)) >= MIN_CHARS:
            by_text.setdefault(text.lines, []).append(path)
    for paths in by_text.values():
        kept, *others = sorted(paths, key=lambda path: (not is_linked(path), is_dated(path), path.count("/"), path))
        for other in others:
            if not _are_series(kept, other):
                yield CopiedFile(other, 0, kept, 0, _SAME, len(read[other].lines))


def _parts(read: Mapping[str, _Text]) -> Iterator[CopiedFile]:
    """Files that are wholly inside another one. What was put together on one day is made of parts, and left alone."""
    places: dict[str, list[str]] = {}
    for path, text in read.items():
        for line in text.telling:
            places.setdefault(line, []).append(path)
    for path, text in read.items():
        if len(text.telling) < MIN_LINES_INSIDE or is_dated(path):
            continue
        rare = [line for line in text.telling if len(places[line]) <= _COMMON]
        shared = Counter(other for line in rare for other in places[line] if other != path)
        for other, _ in shared.most_common(3):
            larger = read[other]
            # Every line: who deletes the copy must lose nothing, not even a short one.
            is_all = set(text.lines[1:]) <= set(larger.lines) and len(larger.telling) > len(text.telling)
            if is_all and not is_dated(other):
                yield CopiedFile(path, 0, other, 0, "all of it is there", len(text.lines))
                break


def _are_series(one: str, other: str) -> bool:
    """Whether two files are one report on two days."""
    return is_dated(one) and is_dated(other) and _NUMBERS.sub("", one) == _NUMBERS.sub("", other)


def _sections(path: str, text: str) -> Iterator[CopiedFile]:
    """The first section that a document, or the log of a day, has twice.

    A file to which days are added repeats itself, which is fine, and so does what programs write: often, and alike.
    """
    headings = Counter(line.strip() for line in text.split("\n") if line.startswith("#"))
    days = sum(count for heading, count in headings.items() if is_dated(heading))
    is_added_to = days >= _MIN_ADDED or max(headings.values(), default=0) > _MIN_ADDED
    if not is_log(path) and (is_dated(path) or is_added_to):
        return
    by_program = find_program_lines(text) if is_log(path) else {}
    places: dict[tuple[str, ...], list[int]] = {}
    for line, section in _split(text.split("\n")):
        body = tuple(item.strip() for item in section if item.strip())
        if sum(len(item) >= _TELLING_CHARS for item in body) >= MIN_LINES and line not in by_program:
            places.setdefault(body, []).append(line)
    for body, lines in places.items():
        if len(lines) == 2 or (len(lines) > 2 and not is_log(path)):
            yield CopiedFile(path, lines[1], path, lines[0], "the same section", len(body))
            return


def _repeated_lines(path: str, text: str) -> Iterator[CopiedFile]:
    """Runs of list items that a curated document has a second time, in the same order."""
    by_program = find_program_lines(text)
    items = [
        (number, match[1].strip())
        for number, line in enumerate(text.split("\n"), 1)
        if number not in by_program and (match := _ITEM.match(line)) is not None
    ]
    first: dict[str, int] = {}
    at = 0
    while at < len(items):
        start = first.setdefault(items[at][1], at)
        length = 0
        while start + length < at < len(items) - length and items[start + length][1] == items[at + length][1]:
            length += 1
        chars = sum(len(item) for _, item in items[at : at + length])
        if length >= _MIN_REPEATED and chars >= _MIN_REPEATED_CHARS:
            yield CopiedFile(path, items[at][0], path, items[start][0], "the same lines", length)
        at += max(length, 1)


def _split(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """The sections of a text, each with the line of its heading."""
    start, section = 1, list[str]()
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            yield start, section
            start, section = number, [line]
        else:
            section.append(line)
    yield start, section
