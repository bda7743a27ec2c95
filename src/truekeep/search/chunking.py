"""Text → chunks: about 1,200 characters of whole lines, without overlap, which begin at a heading or an entry.

A question is answered by a few lines. A chunk is small enough for its words and its vector to be about one thing, and
large enough to hold a short section whole. CJK text says in one character what takes three Latin letters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.text.words import count_cjk

SIZE = 1_200
SHORT = 1_600  # a text up to here is not cut: it is a card, or of one thing
LEAST = 400  # what a chunk has before a heading or an entry ends it
LONGEST_LINE = 1_600  # characters of a line; the rest is a chunk of its own

_HEADING = re.compile(r"#{1,6}(?:\s|\Z)")
_ENTRY = re.compile(r"(?:[-*+|]|\d{1,3}[.)])\s")
_LINK = re.compile(rf"- \[[^\n]*\]\({CARDS}/[^\n]*\)")
_NOTES = re.compile(r"<!--\s*(?:trigger|importance|project):.{0,500}?-->", re.IGNORECASE)


class Chunk(NamedTuple):
    """A piece of a file: its lines, counted from 1 and inclusive, and their text."""

    first: int
    last: int
    text: str


def strip_notes(text: str) -> str:
    """A memory file without OpenClaw's own annotations, which are not content."""
    if "<!--" not in text:
        return text
    return "\n".join(
        _NOTES.sub("", line).rstrip() if "<!--" in line and _NOTES.search(line) else line for line in text.split("\n")
    )


def weigh(text: str) -> int:
    """The length of a text, in Latin letters."""
    return len(text) if text.isascii() else len(text) + 2 * count_cjk(text)


def is_link(line: str) -> bool:
    """Whether a line of the index links to a card. It is a chunk of its own: it is about that card only."""
    return line.startswith("- [") and _LINK.match(line) is not None


def split_chunks(text: str) -> list[Chunk]:
    """The chunks of a text. Chunks of blank lines are left out."""
    lines = text.split("\n")
    if len(text) <= SHORT and weigh(text) <= SHORT and not any(map(is_link, lines)):
        return _cut(lines, 0, len(lines))
    chunks: list[Chunk] = []
    start = entry = 0  # the first line of the chunk; the last line of it that another chunk could begin with
    size = size_before_entry = 0
    for at, line in enumerate(lines):
        is_heading = line.startswith("#") and _HEADING.match(line) is not None
        if at > start and (is_heading or not lines[at - 1] or _ENTRY.match(line)):
            entry, size_before_entry = at, size
        weight = weigh(line) + 1
        if (is_heading and size >= LEAST) or (at > start and (is_link(line) or is_link(lines[at - 1]))):
            end = at
        elif size and size + weight > SIZE:
            end = entry if size_before_entry >= LEAST else at
        else:
            size += weight
            continue
        chunks += _cut(lines, start, end)
        size = sum(weigh(left) + 1 for left in lines[end : at + 1])
        start, entry, size_before_entry = end, end, 0
    return chunks + _cut(lines, start, len(lines))


def _cut(lines: list[str], start: int, end: int) -> list[Chunk]:
    """Lines as a chunk, or as several if one of them is very long."""
    text = "\n".join(lines[start:end])
    if not text or text.isspace():
        return []
    if len(text) <= LONGEST_LINE or max(map(len, lines[start:end])) <= LONGEST_LINE:
        return [Chunk(start + 1, end, text)]
    pieces: list[Chunk] = []
    for at in range(start, end):
        line = lines[at]
        pieces += [
            Chunk(at + 1, at + 1, line[place : place + LONGEST_LINE]) for place in range(0, len(line), LONGEST_LINE)
        ]
    return [piece for piece in pieces if not piece.text.isspace()]
