"""One thing that a file defines, and a digest that stays when only its layout changes."""

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
    """One thing that a file defines."""

    name: str
    scope: str
    """What it stands in, "Outer.Inner"; empty at the top of the file."""
    kind: str
    line: int
    """Of the name, 1-based."""
    end: int
    """The last line of its body."""
    start: int
    """Offset of its beginning: decorators and modifiers belong to it."""
    stop: int
    """Offset behind its body."""


def body_digest(cleaned: bytes, definition: Definition) -> str:
    """A short digest of a definition's code, equal when only white space, comments or docstrings differ.

    White space inside of strings is code, and so is the layout of a Python body. The layout of other bodies is not.
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
