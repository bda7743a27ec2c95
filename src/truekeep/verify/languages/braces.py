"""What languages with braces share: a stack of those that are open, and ways past the others."""

from __future__ import annotations

import re
from functools import cache

from truekeep.verify.languages.lexer import ANGLE, BRACE, BRACKET, CLOSING, PAREN
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.walker import DefinitionMark, dedent_to, indent_of, join

OPEN = "open"  # the file, a class, a module: everything counts that a keyword introduces
CODE = "code"  # the body of a function or a block: only named functions and types count
_PAIRS = {PAREN: "()", BRACKET: "[]", BRACE: "{}"}
_PATTERNS = Patterns(
    {
        "()": rb"[()]",
        "[]": rb"[\[\]]",
        "{}": rb"[{}]",
        "blanks": rb"\s*+",
        "end of line": rb"[ \t\r]*+\n",
        "angle": rb"=>|->|[<>(\[{;}]",
        "separators": rb"[\s;,]*+",
        "quoted name": rb"([\"'])[\w$.@/:+*-]{1,80}+\1",
    }
)


class Frame:
    """An open brace: how to read what stands in it, what that belongs to, and the definition that ends with it."""

    __slots__ = ("first", "mark", "mode", "scope", "start")

    def __init__(self, mode: str, scope: bytes, mark: DefinitionMark | None, first: int) -> None:
        self.mode = mode
        self.scope = scope
        self.mark = mark
        self.first = first  # how many definitions were found before it
        self.start = -1  # where the next member begins, when it has decorators


class Braces:
    """A text with braces, and a stack of those that are open.

    Looking for a closing bracket costs fuel. Without fuel all are taken for missing, so that no text takes long.
    """

    __slots__ = ("entered", "found", "fuel", "nested", "stack", "text")

    def __init__(self, text: bytes, nested: re.Pattern[bytes], mode: str = OPEN) -> None:
        self.text = text
        self.nested = nested
        self.found: list[DefinitionMark] = []
        self.stack = [Frame(mode, b"", None, 0)]
        self.entered = -1  # a brace that is on the stack and is read again for what stands behind it
        self.fuel = len(text) // 4 + 2000

    def add(self, begin: int, end: int, kind: str, start: int = -1, scope: bytes | None = None) -> DefinitionMark:
        mark = DefinitionMark(begin, end, kind, self.stack[-1].scope if scope is None else scope, start)
        self.found.append(mark)
        return mark

    def push(self, mode: str, mark: DefinitionMark | None = None, scope: bytes | None = None) -> None:
        """Go into a brace. What stands in it belongs to the definition, if it has one, or to the given scope."""
        if scope is None:
            scope = self.stack[-1].scope if mark is None else join(mark.scope, self.text[mark.begin : mark.end])
        self.stack.append(Frame(mode, scope, mark, len(self.found)))

    def pop(self, at: int) -> None:
        if len(self.stack) > 1:
            mark = self.stack.pop().mark
            if mark is not None:
                mark.stop = at

    def enter(self, opened: int, mark: DefinitionMark | None = None, scope: bytes | None = None) -> int:
        """Go into the body of a function, or over it when it defines nothing."""
        end = self.leaf(opened)
        if end < 0:
            self.push(CODE, mark, scope)
            self.entered = opened
            return opened
        if mark is not None:
            mark.stop = end
        return end

    def leaf(self, opened: int) -> int:
        """The offset behind a block that is laid out as usual and in which nothing is defined, or -1.

        This is a short cut. Such a block ends with the first line that is not indented more than its own.
        """
        text = self.text
        if self.fuel < 0 or (line := _PATTERNS["end of line"].match(text, opened + 1)) is None:
            return -1
        begin = text.rfind(b"\n", max(0, opened - 300), opened) + 1
        close = dedent_to(indent_of(text, begin, opened)).search(text, line.end() - 1) if begin else None
        end = close.end() if close else len(text)
        self.fuel -= 1 + (end - opened) // 100
        if (
            close is None
            or text[end - 1] != CLOSING
            or text.count(b"{", opened, end) != text.count(b"}", opened, end)
            or self.nested.search(text, opened, close.start())
        ):
            return -1
        return end

    def close(self, at: int) -> int:
        """The offset behind the bracket that closes this one; just behind this one when none does."""
        text, fuel = self.text, self.fuel
        opener = text[at]
        depth = 0
        for match in _PATTERNS[_PAIRS[opener]].finditer(text, at) if fuel > 0 else ():
            fuel -= 1
            if text[match.start()] == opener:
                depth += 1
                if fuel < 0:
                    break
            elif depth == 1:
                self.fuel = fuel
                return match.end()
            else:
                depth -= 1
        self.fuel = fuel - (len(text) - at) // 100
        return at + 1

    def angles(self, at: int) -> int:
        """The offset behind the angle bracket of a type that closes this one, or where it cannot be a type."""
        text = self.text
        limit = at + 3000
        depth = 0
        while match := _PATTERNS["angle"].search(text, at, limit):
            at = match.end()
            byte = text[match.start()]
            if byte == ANGLE:
                depth += 1
            elif match[0] == b">":
                depth -= 1
                if not depth:
                    break
            elif byte in b"([{":
                at = self.close(match.start())
            elif byte in b";}":
                break
        return at

    def hop(self, at: int, stops: bytes) -> int:
        """The offset of the next of these bytes that is not inside of brackets."""
        text = self.text
        search = _stops(stops).search
        while match := search(text, at):
            if text[match.start()] not in b"([{":
                return match.start()
            at = self.close(match.start())
        return len(text)

    def skip(self, at: int) -> int:
        """The offset of the next byte that is not blank."""
        match = _PATTERNS["blanks"].match(self.text, at)
        return match.end() if match else at

    def skip_separators(self, at: int) -> int:
        """The offset of the next byte that is neither blank nor parts members."""
        match = _PATTERNS["separators"].match(self.text, at)
        return match.end() if match else at

    def is_at(self, at: int, byte: int) -> bool:
        return at < len(self.text) and self.text[at] == byte


def is_quoted_name(source: bytes, begin: int, end: int) -> bool:
    """Whether the string that stands here holds a name and nothing else."""
    quoted = _PATTERNS["quoted name"].match(source, begin)
    return quoted is not None and quoted.end() == end


@cache
def _stops(stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[(\[{" + re.escape(stops) + rb"]")
