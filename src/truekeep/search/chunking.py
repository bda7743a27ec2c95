"""Text → chunks: pieces of about 400 tokens that overlap by 80 and begin and end at lines, as OpenClaw cuts them.

The rules are OpenClaw's chunker, version 5 (docs/format.md, Chunks), so that a chunk's digest is the same in both
indexes. Sizes are weights, not characters: a CJK character costs about as many tokens as four Latin letters.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple

VERSION = 5  # of the rules; recall.CHUNKING names it
BUDGET = 1600
OVERLAP = 320

_ENTRY = re.compile(r"- |#{1,6}(?:\s|\Z)")
_NOTES = re.compile(r"<!--\s*(?:trigger|importance|project):.{0,500}?-->", re.IGNORECASE)

# Where the weight of a character changes, and to what. One UTF-16 unit weighs 1 unless listed.
_WEIGHTS = (
    (0x0000, 1), (0x00B7, 4), (0x00B8, 1), (0x1100, 12), (0x1200, 1), (0x2E80, 12), (0x2F00, 12), (0x2FE0, 1),
    (0x2FF0, 12), (0x3000, 4), (0x3100, 12), (0x3130, 12), (0x3190, 12), (0x3200, 12), (0x3400, 12), (0x4DC0, 1),
    (0x4E00, 4), (0xA000, 12), (0xA4D0, 1), (0xA960, 12), (0xA980, 1), (0xAC00, 4), (0xD7A4, 1), (0xD7B0, 12),
    (0xD800, 1), (0xF900, 12), (0xFB00, 1), (0xFE30, 8), (0xFE50, 1), (0xFF00, 4), (0xFF61, 8), (0xFFE0, 4),
    (0xFFE7, 8), (0xFFF0, 1), (0x10000, 2), (0x1AFF0, 16), (0x1B170, 2), (0x1D360, 12), (0x1D372, 2), (0x1F200, 16),
    (0x1F300, 2), (0x20000, 16), (0x32000, 2),
)  # fmt: skip
_STARTS = tuple(start for start, _ in _WEIGHTS)
_ASTRAL = 0x10000


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
    """About four times the number of tokens."""
    if text.isascii():
        return len(text)
    return sum(_weight(character) for character in text)


def _weight(character: str) -> int:
    code = ord(character)
    return 1 if code < 0xB7 else _WEIGHTS[bisect_right(_STARTS, code) - 1][1]


def split_chunks(text: str, *, by_entry: bool = False, budget: int = BUDGET, overlap: int = OVERLAP) -> list[Chunk]:
    """The chunks of a text. By entry: every list item and heading begins a chunk of its own, as in MEMORY.md."""
    if text.isascii() and not by_entry:
        lines = text.split("\n")
        if len(text) < budget or max(map(len, lines)) < budget:
            return _split_plain(lines, budget, overlap)
    chunks: list[Chunk] = []
    held: list[tuple[int, str, int]] = []  # line number, segment, cost
    size = 0
    for number, line in enumerate(text.split("\n"), 1):
        if by_entry and held and _ENTRY.match(line):
            _emit(held, chunks)
            held, size = [], 0
        for segment, cost in _segments(line, budget):
            if held and size + cost > budget:
                _emit(held, chunks)
                held = _tail(held, min(overlap, max(0, budget - cost)))
                size = sum(kept for _, _, kept in held)
            held.append((number, segment, cost))
            size += cost
    _emit(held, chunks)
    return chunks


def _split_plain(lines: list[str], budget: int, overlap: int) -> list[Chunk]:
    """The same for the usual text, where every character weighs 1 and no line is too long: by running totals."""
    ends = [0, *accumulate(len(line) + 1 for line in lines)]
    chunks: list[Chunk] = []
    first, count = 0, len(lines)
    while True:
        after = bisect_right(ends, ends[first] + budget) - 1  # the first line that no longer fits
        text = "\n".join(lines[first:after])
        if text and not text.isspace():
            chunks.append(Chunk(first + 1, after, text))
        if after >= count:
            return chunks
        window = min(overlap, max(0, budget - (ends[after + 1] - ends[after])))
        first = bisect_left(ends, ends[after] - window)  # whole lines from the end while they fit
        if first == after and window > 1:  # not even the last line fits: its end does
            first = after - 1
            lines[first] = lines[first][-(window - 1) :]
            ends[first] = ends[after] - len(lines[first]) - 1


def _emit(held: list[tuple[int, str, int]], chunks: list[Chunk]) -> None:
    if not held:
        return
    text = "\n".join(segment for _, segment, _ in held)
    if text and not text.isspace():
        chunks.append(Chunk(held[0][0], held[-1][0], text))


def _tail(held: list[tuple[int, str, int]], window: int) -> list[tuple[int, str, int]]:
    """The overlap with the next chunk: whole lines from the end while they fit, else the end of the last one."""
    kept: list[tuple[int, str, int]] = []
    size = 0
    for number, segment, cost in reversed(held):
        if size + cost > window:
            break
        kept.append((number, segment, cost))
        size += cost
    if kept:
        kept.reverse()
        return kept
    number, segment, _ = held[-1]
    end = _ending(segment, window - 1)
    return [(number, end, weigh(end) + 1)] if end else []


def _ending(text: str, weight: int) -> str:
    """The longest end of a text that weighs no more than this."""
    if weight <= 0:
        return ""
    if text.isascii():
        return text[-weight:]
    start, total = len(text), 0
    while start and (total := total + _weight(text[start - 1])) <= weight:
        start -= 1
    return text[start:]


def _segments(line: str, budget: int) -> list[tuple[str, int]]:
    """A line, or the pieces of one that is too long, each with its cost."""
    if line.isascii():
        if len(line) <= budget:
            return [(line, len(line) + 1)]
        return [
            (line[start : start + budget], len(line[start : start + budget]) + 1)
            for start in range(0, len(line), budget)
        ]
    pieces: list[tuple[str, int]] = []
    for piece in _units(line, budget):
        weight = weigh(piece)
        if weight <= budget:
            pieces.append((piece, weight + 1))
        else:
            pieces.extend(_by_weight(piece, budget))
    return pieces


def _units(line: str, budget: int) -> list[str]:
    """Pieces of so many UTF-16 units, no character broken."""
    pieces: list[str] = []
    start = units = 0
    for position, character in enumerate(line):
        width = 2 if ord(character) >= _ASTRAL else 1
        if units + width > budget:
            pieces.append(line[start:position])
            start, units = position, 0
        units += width
    pieces.append(line[start:])
    return pieces


def _by_weight(piece: str, budget: int) -> list[tuple[str, int]]:
    pieces: list[tuple[str, int]] = []
    start = total = 0
    for position, character in enumerate(piece):
        weight = _weight(character)
        if total + weight > budget and position > start:
            pieces.append((piece[start:position], total + 1))
            start, total = position, 0
        total += weight
    pieces.append((piece[start:], total + 1))
    return pieces
