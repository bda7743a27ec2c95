"""Base class for walkers of languages with braces: a stack of open braces, and functions to skip brackets."""

from __future__ import annotations

import re
from functools import cache

from truekeep.verify.languages.lexer import ANGLE, BRACE, BRACKET, CLOSING, PAREN
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.walker import DefinitionMark, dedent_to, indent_of, join

OPEN = "open"  # the file, a class, a module: every declaration counts
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
    """An open brace: how to read its content, the scope of the content, and the definition that ends with it."""

    __slots__ = ("first", "mark", "mode", "scope", "start")

    def __init__(self, mode: str, scope: bytes, mark: DefinitionMark | None, first: int) -> None:
        self.mode = mode
        self.scope = scope
        self.mark = mark
        self.first = first  # how many definitions were found before it
        self.start = -1  # where the next member begins, when it has decorators


class Braces:
    """A text with braces, and a stack of the open ones.

    Searching for a closing bracket costs fuel. Without fuel, closing brackets count as missing, which bounds the time.
    """

    __slots__ = ("entered", "found", "fuel", "nested", "stack", "text")

    def __init__(self, text: bytes, nested: re.Pattern[bytes], mode: str = OPEN) -> None:
        self.text = text
        self.nested = nested
        self.found: list[DefinitionMark] = []
        self.stack = [Frame(mode, b"", None, 0)]
        self.entered = -1  # a brace already on the stack that is read again for what follows it
        self.fuel = len(text) // 4 + 2000

    def add(self, begin: int, end: int, kind: str, start: int = -1, scope: bytes | None = None) -> DefinitionMark:
        mark = DefinitionMark(begin, end, kind, self.stack[-1].scope if scope is None else scope, start)
        self.found.append(mark)
        return mark

    def push(self, mode: str, mark: DefinitionMark | None = None, scope: bytes | None = None) -> None:
        """Enter a brace. Its content belongs to the definition, if there is one, or to the given scope."""
        if scope is None:
            scope = self.stack[-1].scope if mark is None else join(mark.scope, self.text[mark.begin : mark.end])
        self.stack.append(Frame(mode, scope, mark, len(self.found)))

    def pop(self, at: int) -> None:
        if len(self.stack) > 1:
            mark = self.stack.pop().mark
            if mark is not None:
                mark.stop = at

    def enter(self, opened: int, mark: DefinitionMark | None = None, scope: bytes | None = None) -> int:
        """Enter the body of a function, or skip it if it defines nothing."""
        end = self.leaf(opened)
        if end < 0:
            self.push(CODE, mark, scope)
            self.entered = opened
            return opened
        if mark is not None:
            mark.stop = end
        return end

    def leaf(self, opened: int) -> int:
        """Return the offset after a conventionally indented block without definitions, or -1.

        This is a shortcut: such a block ends at the first line that is not indented more than its own.
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
        """Return the offset after the matching closing bracket; if there is none, just after this bracket."""
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
        """Return the offset after the matching angle bracket, or where the text can no longer be a type."""
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
        """Return the offset of the next of these bytes outside brackets."""
        text = self.text
        search = _stops(stops).search
        while match := search(text, at):
            if text[match.start()] not in b"([{":
                return match.start()
            at = self.close(match.start())
        return len(text)

    def skip(self, at: int) -> int:
        """Return the offset of the next byte that is not blank."""
        match = _PATTERNS["blanks"].match(self.text, at)
        return match.end() if match else at

    def skip_separators(self, at: int) -> int:
        """Return the offset of the next byte that is neither blank nor a separator of members."""
        match = _PATTERNS["separators"].match(self.text, at)
        return match.end() if match else at

    def is_at(self, at: int, byte: int) -> bool:
        return at < len(self.text) and self.text[at] == byte


def is_quoted_name(source: bytes, begin: int, end: int) -> bool:
    """Whether the string at this offset contains only a name."""
    quoted = _PATTERNS["quoted name"].match(source, begin)
    return quoted is not None and quoted.end() == end


@cache
def _stops(stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[(\[{" + re.escape(stops) + rb"]")
