"""Finds where statements begin and end in languages with brackets."""

from __future__ import annotations

import re

from truekeep.verify.languages.lexer import NEWLINE, SEMICOLON
from truekeep.verify.languages.patterns import Patterns

_PATTERNS = Patterns(
    {
        "statement end": rb"[(\[{)\]};\n]",
        "goes on": rb"\s*+(?:[.?:|&=+*/<>)]|-(?!-)|where\b|extends\b|implements\b|with\b)",
    }
)


class Statements:
    """Finds where statements end. This costs fuel; without fuel a statement ends with its line."""

    def __init__(self, text: bytes, *, semicolons: bool) -> None:
        self.text = text
        self.semicolons = semicolons
        self.pairs: dict[int, int] | None = None
        self.fuel = len(text) + 1000

    def end(self, at: int) -> int:
        text = self.text
        search = _PATTERNS["statement end"].search
        if self.pairs is None:
            self.pairs = bracket_pairs(text)
        while match := search(text, at):
            at = match.end()
            byte = text[match.start()]
            self.fuel -= 1
            if self.fuel < 0:
                return match.start()
            if byte in b"([{":
                at = self.pairs.get(match.start(), at)
            elif byte == SEMICOLON:
                return at if self.semicolons else match.start()
            elif byte != NEWLINE or not (self.semicolons or goes_on(text, match.start())):
                return match.start()
        return len(text)


def bracket_pairs(text: bytes) -> dict[int, int]:
    """Map each closed bracket to the offset after its closing bracket."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    opener = {41: 40, 93: 91, 125: 123}
    for match in re.finditer(rb"[()\[\]{}]", text):
        at = match.start()
        if text[at] in b"([{":
            stack.append(at)
        elif stack and text[stack[-1]] == opener[text[at]]:
            pairs[stack.pop()] = at + 1
    return pairs


def goes_on(text: bytes, at: int) -> bool:
    """Whether a statement continues after this line break."""
    before = text[max(0, at - 80) : at].rstrip()[-2:]
    if before[-1:] in (b"=", b"+", b"|", b"&", b"?", b":", b"(", b"*", b".", b"\\", b"<") or before == b"=>":
        return True
    return _PATTERNS["goes on"].match(text, at) is not None
