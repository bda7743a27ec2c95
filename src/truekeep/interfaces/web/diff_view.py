"""Two versions of a file side by side: rows of lines, the words that changed marked. Pure text; no tags are made here.

Which words changed is found out while that is cheap; beyond that, a whole line is shown to replace another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from truekeep.text.encoding import decode_text
from truekeep.text.line_diff import LineSpan, common_ends, iter_spans
from truekeep.text.unicode import printable

CONTEXT = 3  # equal lines shown around a change
MAX_ROWS = 600
MIN_HIDDEN_LINES = 3  # fewer are shown
MAX_LINE_PAIRS = 2_500  # compared in one block; four times as many in all
MAX_WORD_PAIRS = 2_500  # compared in two lines; twenty times as many in all
MIN_SIMILARITY = 0.35  # share of equal words that makes two lines a pair
MAX_COMPARED_CHARACTERS = 400  # of a line, for pairing
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")
_STRETCHES = re.compile(r"\s+|\S+")

Lines = Sequence[str]


class DiffText(NamedTuple):
    """A part of a line, and whether it differs from the other side."""

    text: str
    is_changed: bool = False


class Cell(NamedTuple):
    """One line of one side."""

    number: int  # counted from 1
    pieces: tuple[DiffText, ...]


class DiffRow(NamedTuple):
    """A line on the left, one on the right, or both; or a number of lines that are the same and not shown."""

    left: Cell | None
    right: Cell | None
    kind: str = "same"  # same, changed, gap
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two versions, ready to be shown."""

    rows: tuple[DiffRow, ...]
    removed: int  # lines
    added: int
    only: str = ""  # "left" or "right" when the other side has no file
    is_cut: bool = False  # there are more rows than are shown
    note: str = ""

    @property
    def has_gaps(self) -> bool:
        return any(row.kind == "gap" for row in self.rows)


def compare(before: bytes | None, after: bytes | None, *, context: int | None = CONTEXT, most: int = MAX_ROWS) -> Sides:
    """Two versions of a file side by side; None for a missing file. Without a context, all lines are shown."""
    old, new = _lines(before), _lines(after)
    spans = list(iter_spans(old, new))
    removed = sum(span.old_end - span.old for span in spans if not span.is_same)
    added = sum(span.new_end - span.new for span in spans if not span.is_same)
    rows = tuple(islice(_rows(old, new, spans, context), most + 1))
    note = ""
    if not removed and not added and before != after and before is not None and after is not None:
        note = "Only line ends differ."
    only = "right" if before is None else "left" if after is None else ""
    return Sides(rows=rows[:most], removed=removed, added=added, only=only, is_cut=len(rows) > most, note=note)


def _lines(data: bytes | None) -> list[str]:
    if not data:
        return []
    text = decode_text(data)
    if text is None:
        return [f"({len(data)} bytes that are not text)"]
    return text.removesuffix("\n").split("\n")


def _rows(old: Lines, new: Lines, spans: Sequence[LineSpan], context: int | None) -> Iterator[DiffRow]:
    budget = _Budget()
    if len(spans) == 1 and spans[0].is_same and context is not None:
        return
    for number, span in enumerate(spans):
        if not span.is_same:
            yield from _changed(old, new, span, budget)
            continue
        _, i1, i2, j1, j2 = span
        count = i2 - i1
        first = count if context is None else (0 if number == 0 else context)
        last = 0 if context is None or number == len(spans) - 1 else context
        hidden = count - first - last
        if hidden <= MIN_HIDDEN_LINES:
            first, last, hidden = count, 0, 0
        yield from (_same(old[i1 + at], i1 + at, j1 + at) for at in range(first))
        if hidden:
            yield DiffRow(None, None, "gap", hidden)
        yield from (_same(old[i2 - at], i2 - at, j2 - at) for at in range(last, 0, -1))


def _same(line: str, left: int, right: int) -> DiffRow:
    pieces = (DiffText(_shown(line)),)
    return DiffRow(Cell(left + 1, pieces), Cell(right + 1, pieces))


class _Budget:
    """The remaining budget for comparing words."""

    def __init__(self) -> None:
        self.pairs = 4 * MAX_LINE_PAIRS
        self.words = 20 * MAX_WORD_PAIRS


def _changed(old: Lines, new: Lines, span: LineSpan, budget: _Budget) -> Iterator[DiffRow]:
    _, i1, i2, j1, j2 = span
    left_at, right_at = i1, j1
    for i, j in [*_pairs(old[i1:i2], new[j1:j2], budget), (i2 - i1, j2 - j1)]:
        # Unpaired lines are shown beside each other.
        while left_at < i1 + i or right_at < j1 + j:
            left = Cell(left_at + 1, (DiffText(_shown(old[left_at])),)) if left_at < i1 + i else None
            right = Cell(right_at + 1, (DiffText(_shown(new[right_at])),)) if right_at < j1 + j else None
            yield DiffRow(left, right, "changed")
            left_at, right_at = left_at + (left is not None), right_at + (right is not None)
        if left_at < i2 and right_at < j2:
            left_pieces, right_pieces = _pieces(_shown(old[left_at]), _shown(new[right_at]), budget)
            yield DiffRow(Cell(left_at + 1, left_pieces), Cell(right_at + 1, right_pieces), "changed")
            left_at, right_at = left_at + 1, right_at + 1


def _pairs(old: Lines, new: Lines, budget: _Budget) -> list[tuple[int, int]]:
    """Pairs of old and new lines of a block, in order."""
    size = len(old) * len(new)
    if not size or size > min(MAX_LINE_PAIRS, budget.pairs):
        return []
    budget.pairs -= size
    ours, theirs = (
        [frozenset(re.findall(r"\w+", line[:MAX_COMPARED_CHARACTERS])) for line in lines] for lines in (old, new)
    )
    # The best sum of likenesses from here to the end, as for the longest common subsequence.
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    like = [[_likeness(one, other) for other in theirs] for one in ours]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            paired = like[i][j] + best[i + 1][j + 1] if like[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    found, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if like[i][j] and best[i][j] == like[i][j] + best[i + 1][j + 1]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    shared = 2 * len(one & other) / (len(one) + len(other) or 1)
    return shared if shared >= MIN_SIMILARITY else 0.0


def _pieces(old: str, new: str, budget: _Budget) -> tuple[tuple[DiffText, ...], tuple[DiffText, ...]]:
    """Two lines, the words that differ marked."""
    ours, theirs = _tokens(old), _tokens(new)
    head, tail = common_ends(ours, theirs)
    ends = len(ours) - tail, len(theirs) - tail
    size = (ends[0] - head) * (ends[1] - head)
    if size <= min(MAX_WORD_PAIRS, budget.words):
        budget.words -= size
        matcher = SequenceMatcher(None, ours[head : ends[0]], theirs[head : ends[1]], autojunk=False)
        found = [
            LineSpan(tag == "equal", i1 + head, i2 + head, j1 + head, j2 + head)
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        ]
    else:
        found = [LineSpan(False, head, ends[0], head, ends[1])]
    spans = [
        LineSpan(True, 0, head, 0, head),
        *_joined(found, ours),
        LineSpan(True, ends[0], len(ours), ends[1], len(theirs)),
    ]
    left = [DiffText("".join(ours[i1:i2]), not same) for same, i1, i2, _, _ in spans if i1 < i2]
    right = [DiffText("".join(theirs[j1:j2]), not same) for same, _, _, j1, j2 in spans if j1 < j2]
    return tuple(left), tuple(right)


def _joined(spans: Sequence[LineSpan], words: Lines) -> list[LineSpan]:
    """The same spans, those that only a blank parts made one: words that changed together are marked together."""
    found: list[LineSpan] = []
    for number, (same, i1, i2, j1, j2) in enumerate(spans):
        is_blank = 0 < number < len(spans) - 1 and not "".join(words[i1:i2]).strip()
        if found and not found[-1].is_same and (not same or is_blank):
            found[-1] = LineSpan(False, found[-1].old, i2, found[-1].new, j2)
        else:
            found.append(LineSpan(same, i1, i2, j1, j2))
    return found


def _tokens(line: str) -> list[str]:
    # Other scripts may join letters: split only at blanks.
    return (_WORDS if line.isascii() else _STRETCHES).findall(line)


def _shown(line: str) -> str:
    return printable(line, newlines=True)
