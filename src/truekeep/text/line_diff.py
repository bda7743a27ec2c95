"""Which lines two versions of a text have in common. Exact for texts that people edit, near-linear for large ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import AnyStr, NamedTuple

MOST_COMPARED = 1_000_000  # old lines times new lines; beyond that, lines that stand once in both are what stayed
_MOST_ALIKE = 60_000  # pairs of equal lines; beyond that, too: a text of one line over and over takes cubic time


class LineSpan(NamedTuple):
    """Lines of the old text, and those of the new text in their place: first, and end."""

    is_same: bool
    old: int
    old_end: int
    new: int
    new_end: int


def iter_spans(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> Iterator[LineSpan]:
    """Both texts from beginning to end: equal and changed lines in turns."""
    at = there = 0
    for start, other, length in kept_lines(old, new):
        if start > at or other > there:
            yield LineSpan(False, at, start, there, other)
        at, there = start + length, other + length
        yield LineSpan(True, start, at, other, there)
    if len(old) > at or len(new) > there:
        yield LineSpan(False, at, len(old), there, len(new))


def kept_lines(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal lines, in order: the start in the old text, the start in the new text, and the length."""
    head, tail = common_ends(old, new)
    if head:
        yield 0, 0, head
    first, second = old[head : len(old) - tail], new[head : len(new) - tail]
    for start, other, length in _kept_between(first, second):
        yield head + start, head + other, length
    if tail:
        yield len(old) - tail, len(new) - tail, tail


def common_ends(one: Sequence[AnyStr], other: Sequence[AnyStr]) -> tuple[int, int]:
    """How many items two sequences share at their start, and how many of the rest at their end."""
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next((at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head)
    return head, tail


def _kept_between(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> Iterator[tuple[int, int, int]]:
    if not old or not new:
        return
    if not _is_cheap(old, new):
        yield from _kept_anchors(old, new)
        return
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if block.size:
            yield block.a, block.b, block.size


def _is_cheap(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> bool:
    """Whether comparing every run of equal lines is fast enough."""
    if len(old) * len(new) > MOST_COMPARED:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= _MOST_ALIKE


def _kept_anchors(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> Iterator[tuple[int, int, int]]:
    """The longest sequence of lines that occur once in both texts, each with its equal neighbours."""
    once = Counter(new)
    places = {line: at for at, line in enumerate(new) if once[line] == 1}
    counts = Counter(old)
    pairs = [(at, places[line]) for at, line in enumerate(old) if counts[line] == 1 and line in places]
    start, other = 0, 0  # what is behind them is taken
    for at, there in _longest_rising(pairs):
        if at < start or there < other:
            continue  # a neighbour of the one before
        back = 0
        while at - back > start and there - back > other and old[at - back - 1] == new[there - back - 1]:
            back += 1
        length = back + _common_from(old, at, new, there)
        yield at - back, there - back, length
        start, other = at - back + length, there - back + length


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest increasing subsequence of pairs."""
    ends: list[int] = []  # the least second number with which a part of each length ends …
    owners: list[int] = []  # … and whose it is
    before: list[int] = []
    for number, (_, there) in enumerate(pairs):
        length = bisect_left(ends, there)
        before.append(owners[length - 1] if length else -1)
        ends[length : length + 1] = [there]
        owners[length : length + 1] = [number]
    found: list[tuple[int, int]] = []
    at = owners[-1] if owners else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _common_from(old: Sequence[AnyStr], at: int, new: Sequence[AnyStr], there: int) -> int:
    length = 0
    while at + length < len(old) and there + length < len(new) and old[at + length] == new[there + length]:
        length += 1
    return length
