"""Go: a declaration begins its line, and each field has its own line."""

from __future__ import annotations

from truekeep.verify.languages.braces import Braces
from truekeep.verify.languages.lexer import BRACE, CLOSING, PAREN, opaque
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.statements import finish_braces
from truekeep.verify.languages.walker import DefinitionMark, WalkResult

_PATTERNS = Patterns(
    {
        "event": rb"[\n{}](?:(?<=\n)(?:"
        rb"func\h*+(?:\(\s*+(?:NAME\h++)?\*?\h*+(?P<receiver>NAME)[^()]*+\)\h*+)?(?P<function>NAME)(?=\h*+[(\[])"
        rb"|(?P<keyword>const|var)\h++(?:(?P<list>\()|(?P<names>NAMES))"
        rb"|\h*+type\h++(?:(?P<types>\()|(?P<type>NAME)(?=[ \t\[])))|(?<=[{}]))",
        "nested": rb"\n\h*+type\h",
        "shape": rb"\h*+(?:\[[^\n]*?\]\h*+)?(?:=\h*+)?(?P<shape>struct|interface)\h*+\{",
        "field": rb"(?P<names>NAMES)(?=\h++[^\s;}\"]|\()",
        "inner": rb"\h*+(?:\[[^\n\]]*+\]|\*|map\[[^\n\]]*+\])*+(?P<shape>struct|interface)\h*+\{",
        "item": rb"[\s;]*+(?P<names>NAMES)",
        "name": b"NAME",
        "header": rb"[{(\[;}=\n]",
    }
)


def walk(cleaned: bytes, language: str) -> WalkResult:
    go = _Go(opaque(cleaned, language), _PATTERNS["nested"])
    go.walk()
    return WalkResult(go.found, go.text, finish_braces)


class _Go(Braces):
    """Walks Go. Modes besides the common ones: struct, interface."""

    __slots__ = ()

    def walk(self) -> None:
        text = self.text
        search = _PATTERNS["event"].search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode in ("struct", "interface"):
                at = self.member(at, mode)
                continue
            match = search(text, at)
            if match is None:
                break
            start, at = match.span()
            kind = match.lastgroup
            if text[start] == CLOSING:
                self.pop(at)
            elif text[start] == BRACE:
                at = self.enter(start) if start != self.entered else at
            elif kind == "function":
                receiver = match["receiver"]
                label = "method" if receiver else "function"
                at = self.function(self.add(*match.span(kind), label, start + 1, receiver or b""))
            elif kind == "type":
                at = self.type(self.add(*match.span(kind), "type", self.skip(start)))
            elif kind == "types":
                at = self.listed(match.start(kind), "type")
            elif kind is not None:
                label = "constant" if match["keyword"] == b"const" else "variable"
                if kind == "list":
                    at = self.listed(match.start(kind), label)
                else:
                    self.add_all(*match.span(kind), label, start + 1)

    def add_all(self, begin: int, end: int, kind: str, start: int) -> list[DefinitionMark]:
        spans = (name.span() for name in _PATTERNS["name"].finditer(self.text, begin, end))
        return [self.add(first, last, kind, start) for first, last in spans if self.text[first:last] != b"_"]

    def function(self, mark: DefinitionMark) -> int:
        """Enter a body: the first brace that does not belong to a type."""
        text = self.text
        at = mark.end
        limit = at + 5000
        while match := _PATTERNS["header"].search(text, at, limit):
            place = match.start()
            if text[place] in b"([":
                at = self.close(place)
            elif text[place] != BRACE:
                mark.stop = place
                return place
            elif text[max(0, place - 12) : place].rstrip().endswith((b"struct", b"interface")):
                at = self.close(place)
            else:
                return self.enter(place, mark)
        return at

    def type(self, mark: DefinitionMark) -> int:
        match = _PATTERNS["shape"].match(self.text, mark.end)
        if match is None:
            return mark.end
        mark.kind = match["shape"].decode()
        self.push(mark.kind, mark)
        return match.end()

    def listed(self, opened: int, kind: str) -> int:
        """Handle the items of `const (`, `var (` or `type (`."""
        close = self.close(opened)
        at = opened + 1
        while (item := _PATTERNS["item"].match(self.text, at, close)) is not None:
            marks = self.add_all(*item.span("names"), kind, item.start("names"))
            at = item.end()
            if kind == "type" and marks:
                depth = len(self.stack)
                at = self.type(marks[0])
                while len(self.stack) > depth and at < close:
                    at = self.member(at, self.stack[-1].mode)
            at = self.hop(at, b"\n;)")
            for mark in marks:
                mark.stop = at if mark.stop < 0 else mark.stop
        return max(close, at)

    def member(self, at: int, mode: str) -> int:
        text = self.text
        at = self.skip_separators(at)
        if at >= len(text) or text[at] == CLOSING:
            self.pop(at + 1)
            return at + 1
        match = _PATTERNS["field"].match(text, at)
        if match is None or (mode == "interface") != (text[match.end()] == PAREN):
            return self.hop(at, b"\n;}")
        marks = self.add_all(*match.span("names"), "field" if mode == "struct" else "method", at)
        at = match.end()
        if mode == "struct" and marks and (inner := _PATTERNS["inner"].match(text, at)):
            self.push(inner["shape"].decode(), marks[0])
            return inner.end()
        at = self.hop(at, b"\n;}")
        for mark in marks:
            mark.stop = at
        return at
