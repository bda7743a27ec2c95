"""The Definition type, and a digest of its code that ignores layout."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from truekeep.verify.languages.lexer import BACKSLASH
from truekeep.verify.languages.patterns import Patterns

_PATTERNS = Patterns(
    {
        "digest token": rb"\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?"
        rb"|`[^`]*+`?|[()\[\]{}]|\\\r?\n\s*+|\s++",
        "word": rb"[\w$\x80-\xff]+",
        "python header": rb"(?:^|\n)\h*+(?:async\h++)?(?:def|class)\h++(NAME)\h*+(?:\[[^\n]*?\])?"
        rb"(?:PARENS)?[^\n]*?:(?!:)",
    }
)


class Definition(NamedTuple):
    """A definition in a file."""

    name: str
    scope: str
    """The enclosing definitions, "Outer.Inner"; empty at the top level."""
    kind: str
    line: int
    """The line of the name, 1-based."""
    end: int
    """The last line of its body."""
    start: int
    """Start offset, including decorators and modifiers."""
    stop: int
    """End offset, after the body."""


def body_digest(cleaned: bytes, definition: Definition) -> str:
    """Return a short digest of a definition's code that ignores white space, comments and docstrings.

    White space inside strings counts, and so does the layout of a Python body.
    """
    body = cleaned[definition.start : definition.stop]
    header = _PATTERNS["python header"].search(body)
    layout = header is not None and header[1] == definition.name.encode()
    levels = [definition.start - (cleaned.rfind(b"\n", 0, definition.start) + 1)]
    depth = 0

    def squeeze(match: re.Match[bytes]) -> bytes:
        nonlocal depth
        token = match[0]
        if token in b"([{":
            depth += 1
        elif token in b")]}":
            depth = max(0, depth - 1)
        elif token[0] not in b"\"'`":
            if layout and not depth and token[0] != BACKSLASH and b"\n" in token:
                indent = len(token) - token.rfind(b"\n") - 1
                while len(levels) > 1 and indent < levels[-1]:
                    levels.pop()
                if indent > levels[-1]:
                    levels.append(indent)
                return b"\n%d " % len(levels)
            around = body[match.start() - 1 : match.start()] + body[match.end() : match.end() + 1]
            return b" " if len(around) == 2 and _PATTERNS["word"].fullmatch(around) else b""
        return token

    return hashlib.blake2b(_PATTERNS["digest token"].sub(squeeze, body.strip()), digest_size=8).hexdigest()
