"""Characters that a reader cannot see: find them, remove them, or show them as escapes.

A handoff may contain text that a model reads and a person does not see: zero-width characters, bidirectional overrides,
tag characters, terminal codes. Characters that real writing needs stay, such as the joiners in an emoji family or a
Persian word. This module looks at characters only; `injection` looks at words.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.text.linear_regex import compile_linear

if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Match, Pattern

    Span = tuple[int, int, str]

MAX_MARKS = 16
"""More combining marks than this in a row belong to no writing system."""

MAX_DECODED = 200

# Words spaced out ("i g n o r e"): four or more single letters, parted by a few separators each. For lower case.
SPACED_LETTERS = r"(?:^|[^a-z0-9])([a-z](?:[\s.,*_|/~'+:;\-]{1,4}[a-z]){3,})"

_ASCII_VISIBLE = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_OWN_SIGNS = str.maketrans("", "", "▸…↳·–—")  # of our own output: text of nothing else but ASCII needs no RE2

_BLOCKED = (
    (0x0000, 0x0008, "control"),
    (0x000B, 0x000C, "control"),
    (0x000E, 0x001F, "control"),
    (0x007F, 0x009F, "control"),
    (0x00AD, 0x00AD, "zero-width"),
    (0x034F, 0x034F, "zero-width"),
    (0x061C, 0x061C, "bidi"),
    (0x115F, 0x1160, "filler"),
    (0x17B4, 0x17B5, "filler"),
    (0x180B, 0x180D, "variation"),
    (0x180E, 0x180E, "zero-width"),
    (0x180F, 0x180F, "variation"),
    (0x200B, 0x200D, "zero-width"),
    (0x200E, 0x200F, "bidi"),
    (0x202A, 0x202E, "bidi"),
    (0x2060, 0x2065, "zero-width"),
    (0x2066, 0x206F, "bidi"),
    (0x2800, 0x2800, "filler"),
    (0x3164, 0x3164, "filler"),
    (0xD800, 0xDFFF, "surrogate"),
    (0xE000, 0xF8FF, "private-use"),
    (0xFDD0, 0xFDEF, "noncharacter"),
    (0xFE00, 0xFE0F, "variation"),
    (0xFEFF, 0xFEFF, "zero-width"),
    (0xFFA0, 0xFFA0, "filler"),
    (0xFFF0, 0xFFFB, "zero-width"),
    (0xFFFE, 0xFFFF, "noncharacter"),
    (0x13430, 0x1343F, "zero-width"),
    (0x1BCA0, 0x1BCA3, "zero-width"),
    (0x1D173, 0x1D17A, "zero-width"),
    *((plane | 0xFFFE, plane | 0xFFFF, "noncharacter") for plane in range(0x10000, 0xE0000, 0x10000)),
    (0xE0000, 0xE00FF, "tag"),
    (0xE0100, 0xE01EF, "variation"),
    (0xE01F0, 0xE0FFF, "tag"),
    (0xEFFFE, 0xEFFFF, "noncharacter"),
    (0xF0000, 0xFFFFD, "private-use"),
    (0xFFFFE, 0xFFFFF, "noncharacter"),
    (0x100000, 0x10FFFD, "private-use"),
    (0x10FFFE, 0x10FFFF, "noncharacter"),
)
_STARTS = tuple(start for start, _, _ in _BLOCKED)

# Symbols that take part in emoji sequences. Unicode keeps this as a property the standard library does not carry.
_EMOJI = (
    (0x00A9, 0x00A9), (0x00AE, 0x00AE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122), (0x2139, 0x2139),
    (0x2194, 0x21AA), (0x231A, 0x23FF), (0x24C2, 0x24C2), (0x25AA, 0x25FE), (0x2600, 0x27BF), (0x2934, 0x2935),
    (0x2B05, 0x2B55), (0x3030, 0x3030), (0x303D, 0x303D), (0x3297, 0x3299), (0x1F000, 0x1FAFF),
)  # fmt: skip

# Scripts whose letters change shape or join, so that ZWJ and ZWNJ are spelling: Arabic to Samaritan, the Indic blocks
# and their South-East Asian relatives, Mongolian, the presentation forms, and the same families above U+FFFF.
_JOINING = (
    (0x0600, 0x08FF), (0x0900, 0x0DFF), (0x0F00, 0x109F), (0x1700, 0x18AF), (0x1900, 0x1CFF), (0xA800, 0xA8FF),
    (0xA900, 0xABFF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFE), (0x10A00, 0x10AFF), (0x10D00, 0x10D3F), (0x10E80, 0x10FFF),
    (0x11000, 0x11FFF), (0x1E900, 0x1E95F),
)  # fmt: skip
_HAN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD))
_MONGOLIAN = ((0x1820, 0x18AA),)

# Keyed by the Latin letter: its Cyrillic and Greek twins by shape, a few from elsewhere, and small capitals.
_LOOKALIKES = {
    "a": "\u0430\u0410\u03b1\u0391\u0251\u1d00",
    "b": "\u0412\u0432\u0392\u0299",
    "c": "\u0441\u0421\u03c2\u1d04",
    "d": "\u0501\u1d05",
    "e": "\u0435\u0415\u03b5\u0395\u1d07",
    "f": "\ua730",
    "g": "\u0261\u0262",
    "h": "\u04bb\u041d\u043d\u0397\u0570\u029c",
    "i": "\u0456\u0406\u04c0\u03b9\u0399\u0131\u0269\u026a",
    "j": "\u0458\u0408\u03f3\u1d0a",
    "k": "\u043a\u041a\u03ba\u039a\u1d0b",
    "l": "\u04cf\u029f",
    "m": "\u043c\u041c\u039c\u1d0d",
    "n": "\u043f\u03b7\u039d\u0274",
    "o": "\u043e\u041e\u03bf\u039f\u0585\u1d0f",
    "p": "\u0440\u0420\u03c1\u03a1\u1d18",
    "q": "\u051b",
    "r": "\u0433\u0280",
    "s": "\u0455\u0405\ua731",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b",
    "u": "\u03c5\u057d\u1d1c",
    "v": "\u0475\u03bd\u1d20",
    "w": "\u051d\u03c9\u1d21",
    "x": "\u0445\u0425\u03c7\u03a7",
    "y": "\u0443\u0423\u03b3\u03a5\u028f",
    "z": "\u0396\u1d22",
    "'": "\u2018\u2019\u02bc",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
}

_BOM = "\ufeff"
_ZWNJ = "\u200c"
_ZWJ = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_KEYCAP = "\u20e3"
_BLACK_FLAG = "\U0001f3f4"
_CANCEL_TAG = "\U000e007f"


class HiddenRun(NamedTuple):
    """Neighbouring hidden characters of one kind: `text[start:end]`."""

    start: int
    end: int
    kind: str
    decoded: str


def find_hidden(text: str) -> tuple[HiddenRun, ...]:
    """Every run of characters that a reader cannot see and that the script around it does not need."""
    return tuple(
        HiddenRun(start=start, end=end, kind=kind, decoded=_decode(text[start:end], kind))
        for start, end, kind in _spans(text)
    )


def strip_hidden(text: str) -> str:
    """The text without its hidden runs, for matching."""
    return _replace(text, _spans(text), lambda _chars, _kind: "")


def fold(text: str, *, newlines: bool = False) -> str:
    """A form for matching only: disguises undone, lower case, single spaces.

    With `newlines` every line break stays, so that a place in the folded text still has its line number.
    """
    if is_plain(text):
        text = text.lower()
    else:
        # Blanks of every sort part words, so they become spaces before the rest of the unseen is dropped.
        text = strip_hidden(_blanks().sub(" ", text))
        text = _lookalikes().sub(_latin, unicodedata.normalize("NFKC", text)).casefold()
    lines = [line.strip() for line in _join_spaced(text).replace("\r", " ").replace("\t", " ").split("\n")]
    text = "\n".join(lines) if newlines else " ".join(filter(None, lines))
    while "  " in text:  # rare once the indents are gone, and every pass halves the longest run
        text = text.replace("  ", " ")
    return text


def printable(text: str, *, newlines: bool = False) -> str:
    """The text made safe for a terminal or a log: hidden and control characters become escapes.

    It cannot be decoded again: a backslash of the text stays as it is.
    """
    if not is_plain(text) and not is_plain(text.translate(_OWN_SIGNS)):
        text = _replace(text, _spans(text), lambda chars, _kind: "".join(map(_escape, chars)))
        text = text.replace(_BOM, "\\ufeff").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    text = text.replace("\r\n", "\n") if newlines else text.replace("\n", "\\n").replace("\t", "\\t")
    return text.replace("\r", "\\r")


def clip(text: str, width: int) -> str:
    """The text on one line of at most `width` characters, safe to show."""
    shown = printable(" ".join(text[: 4 * width].split()))
    if len(shown) <= width and len(text) <= 4 * width:
        return shown
    # The cut may fall inside an emoji, and half of one is a hidden character again.
    return strip_hidden(shown[: width - 1]) + "…"


def reveal_hidden(text: str) -> str:
    """The text with hidden payloads spelled out, and a space for every other hidden character.

    The counterpart of `strip_hidden` for a matcher: a zero-width character may split a word or stand between two.
    """

    def reveal(chars: str, kind: str) -> str:
        payload = _spell(chars, kind)
        # Of a terminal code only the escape itself is unseen; what follows it could be the first letter of a word.
        return f" {payload} " if payload else "".join(" " if _kind(char) else char for char in chars)

    return _replace(text, _spans(text), reveal)


def is_plain(text: str) -> bool:
    """Whether the text is ASCII without control characters, as most texts are: it cannot hide anything."""
    return text.isascii() and not text.encode().translate(None, _ASCII_VISIBLE)


def _kind(char: str) -> str:
    code = ord(char)
    at = bisect_right(_STARTS, code) - 1
    _, last, kind = _BLOCKED[at]
    return kind if code <= last else ""


def _within(char: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    code = ord(char)
    for first, last in ranges:
        if code <= last:
            return code >= first
    return False


def _spans(text: str) -> list[Span]:
    """The hidden runs, in order."""
    spans: list[Span] = []
    if is_plain(text):
        return spans
    # RE2 takes UTF-8 only; a private-use character stands in for a lone surrogate, as both are blocked.
    try:
        data = text.encode()
    except UnicodeEncodeError:
        data = re.sub("[\ud800-\udfff]", "\ue000", text).encode()
    # Matching bytes and counting characters here is several times faster than RE2's own mapping of offsets.
    end = stop = 0
    for match in _suspects().finditer(data):
        first, last = match.span()
        start = end + len(data[stop:first].decode())
        end, stop = start + len(data[first:last].decode()), last
        _judge(text, start, end, spans)
    return spans


def _judge(text: str, start: int, end: int, spans: list[Span]) -> None:
    """Judge one unbroken stretch of blocked characters, marks and terminal codes.

    A character is excused only by direct neighbours that themselves stay. That makes stripping final: what is left has
    the neighbours it had before, so a second look comes to the same verdict.
    """
    kinds = [_kind(char) for char in text[start:end]]
    crowded = len(kinds) > MAX_MARKS and kinds.count("") - _code_tails(text, start, end) > MAX_MARKS
    kept_before = -1  # the place of the last excused character, for sequences such as symbol, selector, joiner
    at = start
    while at < end:
        kind, width = kinds[at - start], 1
        if kind == "control":
            width = _code_width(text, at, end)
        elif not kind:
            kind = "combining" if crowded else ""
        elif kind == "tag" and (flag := _flag_width(text, at)):
            kind, width = "", flag
        elif _is_excused(text, at, kept_before=kept_before, crowded=crowded):
            kind, kept_before = "", at
        if kind:
            if spans and spans[-1][1:] == (at, kind):
                spans[-1] = (spans[-1][0], at + width, kind)
            else:
                spans.append((at, at + width, kind))
        at += width


def _is_excused(text: str, at: int, *, kept_before: int, crowded: bool) -> bool:
    char = text[at]
    if at == 0:
        return char == _BOM
    before = text[at - 1]
    after = text[at + 1 : at + 2]
    if char in (_ZWJ, _ZWNJ):
        if not after:
            return False
        styled = before == _EMOJI_STYLE and kept_before == at - 1
        if char == _ZWJ and _within(after, _EMOJI) and (styled or _within(before, _EMOJI)):
            return True
        return _is_joining(before, crowded=crowded) and _is_joining(after, crowded=crowded)
    if char in "\ufe0e\ufe0f":
        if before in "0123456789#*":
            return after == _KEYCAP and not crowded
        return _within(before, _EMOJI)
    if "\U000e0100" <= char <= "\U000e01ef" or "\ufe00" <= char <= "\ufe02":
        return _within(before, _HAN)
    if "\u180b" <= char <= "\u180f":
        return _within(before, _MONGOLIAN) and (char != "\u180e" or (bool(after) and _within(after, _MONGOLIAN)))
    return False


def _is_joining(char: str, *, crowded: bool) -> bool:
    """Whether the character is a letter, or a mark that stays, of a script that uses joiners."""
    if not _within(char, _JOINING) or _kind(char):
        return False
    category = unicodedata.category(char)
    return category[0] == "L" or (category[0] == "M" and not crowded)


def _flag_width(text: str, at: int) -> int:
    """How many tag characters from here spell the region of a flag and close it; 0 if they do not."""
    if at == 0 or text[at - 1] != _BLACK_FLAG:
        return 0
    stop = at
    while stop - at < 6 and (
        "\U000e0030" <= text[stop : stop + 1] <= "\U000e0039" or "\U000e0061" <= text[stop : stop + 1] <= "\U000e007a"
    ):
        stop += 1
    return stop - at + 1 if stop - at >= 3 and text[stop : stop + 1] == _CANCEL_TAG else 0


def _code_width(text: str, at: int, end: int) -> int:
    """The width of the terminal code that starts here, or 1 for a lone control character."""
    # Only codes without room for words count as a whole. A title or link code can hold a sentence, so it stays visible.
    if text[at] == "\x9b":
        stop = at + 1
    elif text.startswith("\x1b[", at):
        stop = at + 2
    else:
        return 1
    while stop < end and "0" <= text[stop] <= "?":
        stop += 1
    while stop < end and " " <= text[stop] <= "/":
        stop += 1
    return stop + 1 - at if stop < end and "@" <= text[stop] <= "~" else 1


def _code_tails(text: str, start: int, end: int) -> int:
    """How many visible characters of this stretch belong to terminal codes."""
    tails, at = 0, start
    while at < end:
        width = _code_width(text, at, end)
        tails += width - 1
        at += width
    return tails


def _decode(chars: str, kind: str) -> str:
    named = " ".join(f"U+{ord(char):04X}" for char in chars[:22]) + (" …" if len(chars) > 22 else "")
    return _spell(chars, kind)[:MAX_DECODED] or named


def _spell(chars: str, kind: str) -> str:
    """The ASCII text that tag characters or variation selectors encode; empty if they encode none."""
    if kind == "tag":
        codes = [ord(char) - 0xE0000 for char in chars]
        return "".join(chr(code) for code in codes if 0x20 <= code < 0x7F)
    if kind == "variation":
        # One selector per byte, as the known encoders do it: sixteen in the first block, the rest in the supplement.
        codes = [_selector_byte(ord(char)) for char in chars]
        if all(0x20 <= code < 0x7F or code in (9, 10, 13) for code in codes):
            return "".join(chr(max(code, 0x20)) for code in codes)
    return ""


def _selector_byte(code: int) -> int:
    if 0xFE00 <= code <= 0xFE0F:
        return code - 0xFE00
    return code - 0xE0100 + 16 if code >= 0xE0100 else -1


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # the byte that could not be decoded
    if 0x20 <= code < 0x7F:
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _replace(text: str, spans: list[Span], shown: Callable[[str, str], str]) -> str:
    if not spans:
        return text
    pieces: list[str] = []
    at = 0
    for start, end, kind in spans:
        pieces += (text[at:start], shown(text[start:end], kind))
        at = end
    pieces.append(text[at:])
    return "".join(pieces)


def _join_spaced(text: str) -> str:
    # Lone surrogates are gone by now, so the text encodes; bytes spare RE2's wrapper the mapping of offsets.
    data = text.encode()
    spaced = _spaced()
    if spaced.search(data) is None:
        return text
    pieces: list[str] = []
    at = 0
    for match in spaced.finditer(data):
        start, end = match.span(1)
        if end < len(data) and (data[end] >= 0x80 or data[end : end + 1].isalnum()):
            end -= 1  # this letter opens a longer word
        pieces += (data[at:start].decode(), _join_letters(data[start:end].decode()))
        at = end
    pieces.append(data[at:].decode())
    return "".join(pieces)


def _join_letters(spaced: str) -> str:
    """Join letters across the narrowest gaps; wider gaps separate words."""
    letters = re.findall("[a-z]", spaced)
    *gaps, tail = re.split("[a-z]", spaced)[1:]
    if len(letters) < 4:
        return spaced
    narrow = min(map(len, gaps))
    pieces, breaks = [letters[0]], 0
    for gap, letter in zip(gaps, letters[1:], strict=True):
        breaks += gap.count("\n")
        if len(gap) > narrow:
            pieces.append("\n" * breaks or " ")
            breaks = 0
        pieces.append(letter)
    return "".join(pieces) + "\n" * breaks + tail


@cache
def _suspects() -> Any:
    blocked = "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last, kind in _BLOCKED if kind != "surrogate")
    return compile_linear(rf"(?:(?:\x1b\[|\x{{9b}})[0-?]*[ -/]*[@-~]|[{blocked}\p{{M}}])+")


@cache
def _spaced() -> Any:
    return compile_linear(SPACED_LETTERS)


@cache
def _blanks() -> Pattern[str]:
    return re.compile("[\\x0b\\x0c\\x1c-\\x1f\\x85\\u115f\\u1160\\u1680\\u2028\\u2029\\u2800\\u3164\\uffa0]")


@cache
def _lookalikes() -> Pattern[str]:
    return re.compile(f"[{''.join(_LOOKALIKES.values())}]")


@cache
def _twins() -> dict[str, str]:
    return {char: latin for latin, chars in _LOOKALIKES.items() for char in chars}


def _latin(match: Match[str]) -> str:
    return _twins()[match[0]]
