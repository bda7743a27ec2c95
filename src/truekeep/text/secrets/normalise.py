"""Other forms of a text: as a reader sees it, and with long runs joined across line breaks."""

from __future__ import annotations

import functools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class SqueezedText(NamedTuple):
    """A text with pieces removed, and a map back to the original offsets."""

    text: str
    gaps: list[int]
    """Ascending places in `text` before which something was taken out."""
    removed: list[int]
    """How many characters were taken out up to and including each gap."""

    def origin(self, place: int) -> int:
        gap = bisect_right(self.gaps, place)
        return place + self.removed[gap - 1] if gap else place


def squeeze(text: str, cuts: Iterable[tuple[int, int]]) -> SqueezedText:
    pieces: list[str] = []
    gaps: list[int] = []
    removed: list[int] = []
    end = total = 0
    for start, stop in cuts:
        pieces.append(text[end:start])
        gaps.append(start - total)
        total += stop - start
        removed.append(total)
        end = stop
    pieces.append(text[end:])
    return SqueezedText(text="".join(pieces), gaps=gaps, removed=removed)


_HIDDEN = (
    (0x00, 0x08),
    (0x0B, 0x0C),
    (0x0E, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Characters that show nothing, and so can stand inside a token without being seen."""

COMPATIBLE = (
    (0x2074, 0x2079),
    (0x2080, 0x2089),
    (0x2460, 0x2468),
    (0x24B6, 0x24EA),
    (0xFF01, 0xFF5E),
    (0x1D400, 0x1D6A3),
    (0x1D7CE, 0x1D7FF),
    (0x1F130, 0x1F149),
)
"""Full-width, circled, raised and mathematical forms of ASCII, each of which NFKC turns into one character.

One for one, so that folding them moves no offset.
"""


@functools.cache
def _veils() -> tuple[re.Pattern[str], re.Pattern[str]]:
    def members(ranges: Iterable[tuple[int, int]]) -> str:
        return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)

    # Markdown writers escape underscores, so a backslash before one hides a prefix as well as any hidden character.
    hidden = rf"[{members(_HIDDEN)}\ud800-\udfff]+|\\(?=_)"
    return re.compile(hidden), re.compile(f"[{members(COMPATIBLE)}]+")


def fold(text: str) -> SqueezedText:
    """The text as a reader sees it: without hidden characters, and with look-alikes of ASCII replaced."""
    hidden, compatible = _veils()
    if not text.isascii():
        text = compatible.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return squeeze(text, (cut.span() for cut in hidden.finditer(text)))


_RUN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=~%$")
_LONG_RUN = 10


def join(text: str) -> SqueezedText:
    """The text without line breaks inside a long run of token characters."""
    return squeeze(text, _iter_seams(text))


def _iter_seams(text: str) -> Iterator[tuple[int, int]]:
    at = -1
    while (at := text.find("\n", at + 1)) >= 0:
        left, right = at, at + 1
        while left and at - left < 10 and text[left - 1] in " \t\r\\":
            left -= 1
        while right - at < 10 and text[right : right + 1] in _INDENT:
            right += 1
        if text[left - 1 : left] not in _RUN or text[right : right + 1] not in _RUN:
            continue
        before, after = text[max(0, left - _LONG_RUN) : left], text[right : right + _LONG_RUN]
        if (len(before) == _LONG_RUN and _RUN.issuperset(before)) or (
            len(after) == _LONG_RUN and _RUN.issuperset(after)
        ):
            yield left, right
            at = right - 1


_INDENT = frozenset(" \t>")


def iter_veils() -> Iterator[str]:
    """Expressions over UTF-8 bytes for what `fold` removes, one for each run that differs only in the last byte."""
    yield r"\\_"
    for first, last in (*_HIDDEN, *COMPATIBLE):
        for block in range(first >> 6, (last >> 6) + 1):
            low, high = (chr(c).encode() for c in (max(first, block << 6), min(last, (block << 6) + 63)))
            yield "".join(rf"\x{byte:02x}" for byte in low[:-1]) + rf"[\x{low[-1]:02x}-\x{high[-1]:02x}]"
