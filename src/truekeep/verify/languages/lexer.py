"""Separates comments and strings from code and replaces them without changing the length or lines of a text.

A token that spans lines ends at its closing mark or at the end of the file. In the latter case the rest of the text is
lexed again with single-line patterns, so that one unclosed mark does not hide the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from truekeep.verify.languages.patterns import Patterns, compile_pattern
from truekeep.verify.languages.tokens import LEXES, TEMPLATE, TOKENS, Token

BACKSLASH, EQUALS, NEWLINE, SEMICOLON, CLOSING = b"\\=\n;}"
_BYTE_ORDER = b"\xef\xbb\xbf"
BLANK = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))
_PATTERNS = Patterns({"template rest": TEMPLATE})

Paint = Callable[[re.Match[bytes]], bytes]
Odd = list[re.Match[bytes]]
Painter = Callable[[bytes, Odd], Paint]


class _Lexis(NamedTuple):
    """The tokens of a language as one alternation.

    The last group of a match tells what it is: nothing for a string, "comment", "statement" for a Python string on
    lines of its own. A painter puts others aside: "nested" is a template literal up to the code in it, "open" is what
    ends with the text.
    """

    tokens: re.Pattern[bytes]
    single: re.Pattern[bytes]


@cache
def _lexis(language: str) -> _Lexis:
    comments, strings = ([TOKENS[name] for name in group] for group in LEXES[language])

    def compiled(pattern: Callable[[Token], bytes]) -> re.Pattern[bytes]:
        comment = b"(?:" + b"|".join(map(pattern, comments)) + b")(?P<comment>)"
        return compile_pattern(b"(?:" + b"|".join((comment, *map(pattern, strings))) + rb")(?P<open>\Z)?+")

    return _Lexis(compiled(lambda token: token.pattern), compiled(lambda token: token.single or token.pattern))


def repaint(data: bytes, language: str, painter: Painter) -> bytes:
    """Replace each comment and string with what the painter returns for it, of the same length."""
    lexis = _lexis(language)
    text = framed(data)  # a pattern may begin with the break before a line; what is closed ends before the last
    odd: Odd = []
    painted = lexis.tokens.sub(painter(text, odd), text)
    at = odd[-1].start() if odd and odd[-1].end() == len(text) else -1
    if any(match.lastgroup == "nested" for match in odd):
        painted, at = _paint_templates(text, lexis, painter(text, []))
    if at >= 0:
        painted = painted[:at] + lexis.single.sub(painter(text[at:], []), text[at:])
    return _BYTE_ORDER + painted[4:-1] if data.startswith(_BYTE_ORDER) else painted[1:-1]


def framed(text: bytes) -> bytes:
    """Put a text between line breaks, so that every line follows one. A byte order mark is replaced."""
    if text.startswith(_BYTE_ORDER):
        text = b"\n" * len(_BYTE_ORDER) + text[len(_BYTE_ORDER) :]
    return b"\n" + text + b"\n"


def _paint_templates(text: bytes, lexis: _Lexis, paint: Paint) -> tuple[bytes, int]:
    """Like `sub`, for a text with nested code inside template literals, which needs a stack.

    Also return where an unclosed token begins, or -1.
    """
    braces = _braced_tokens(lexis)
    depths: list[int] = []
    parts: list[bytes] = []
    at = begin = 0
    while match := (braces if depths else lexis.tokens).search(text, at):
        parts.append(text[at : match.start()])
        at = match.end()
        begin = begin if depths else match.start()
        token = match[0]
        opens = match.lastgroup == "nested"
        if token == b"{":
            depths[-1] += 1
        elif token == b"}":
            depths[-1] -= 1
        if token not in b"{}" or depths[-1] < 0:
            token = paint(match)
        parts.append(token)
        if depths and depths[-1] < 0:
            depths.pop()
            if rest := _PATTERNS["template rest"].match(text, at):
                parts.append(paint(rest))
                at = rest.end()
                opens = rest.lastgroup == "nested"
        if opens:
            depths.append(0)
    parts.append(text[at:])
    return b"".join(parts), begin if depths or at == len(text) else -1


@cache
def _braced_tokens(lexis: _Lexis) -> re.Pattern[bytes]:
    return compile_pattern(lexis.tokens.pattern + rb"|[{}]")


def without_comments(text: bytes, odd: Odd) -> Paint:  # noqa: ARG001 - a painter may look around
    def paint(match: re.Match[bytes]) -> bytes:
        group = match.lastgroup
        if group is None:
            return match[0]
        if group != "comment":
            odd.append(match)
        is_comment = "comment" in match.re.groupindex and match["comment"] is not None
        return match[0].translate(BLANK) if is_comment else match[0]

    return paint


def without_strings(text: bytes, odd: Odd) -> Paint:  # noqa: ARG001
    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup is not None:
            odd.append(match)
        return b'"' * (match.end() - match.start())

    return paint


def without_text_blocks(text: bytes, odd: Odd) -> Paint:  # noqa: ARG001
    """Return a painter that blanks multi-line strings, whose lines are not code."""

    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup == "open":
            odd.append(match)
        return match[0].translate(BLANK) if b"\n" in match[0].lstrip() else match[0]

    return paint


def opaque(cleaned: bytes, language: str) -> bytes:
    """Return the framed text with the content of every string replaced by quotes."""
    return framed(repaint(cleaned, language, without_strings))
