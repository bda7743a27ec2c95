"""JavaScript and TypeScript, and the scripts in templates."""

from __future__ import annotations

import re

from truekeep.verify.languages.braces import CODE, OPEN, Braces, Frame, is_quoted_name
from truekeep.verify.languages.lexer import ANGLE, BRACE, CLOSING, COLON, COMMA, EQUALS, NEWLINE, PAREN, QUOTE, opaque
from truekeep.verify.languages.markup import opaque_markup
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.registry import MARKUP
from truekeep.verify.languages.statements import finish_braces, goes_on
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, join

_FUNCTION = (  # what makes a value a function: up to its parameters, or up to its body
    rb"(?:async\b\s*+)?(?:function\b\s*+\*?\s*+(?:WORD\s*+)?(?P<params>)(?=[(<])"
    rb"|(?:WORD|(?:<[^;(){}]*?>\s*+)?JSPARENS(?:\s*+:(?:[^=;{}()]|=(?!>)){0,200}?)?)\s*+=>\s*+(?P<brace>\{)?)"
)
_SETS = rb"=\s*+(?=(?:async\b\s*+)?(?:function\b|\([^()]*+\)\s*+=>|class\b))"
_METHOD = (  # a name with parameters and a body, without a keyword before it
    rb"WORD(?<!\bif)(?<!\bfor)(?<!\bwhile)(?<!\bswitch)(?<!\bcatch)(?<!\bfunction)(?<!\bwith)(?<!\breturn)"
)
_BODY = rb"(?=\h*+JSPARENS\h*+(?::[^;{}=\n]++)?\{)"
_PATTERNS = Patterns(
    {
        "event": rb"[\n;{}](?:\h*+(?:"
        rb"(?:(?:export|default|declare|abstract|async)\h++)*+(?:"
        rb"function\b\s*+\*?\s*+(?P<function>WORD)"
        rb"|(?:return\h++)?class(?:\s++(?!extends\b|implements\b)(?P<class>WORD)(?=\s*+[{<]|\s++(?:extends|implements)\b)"
        rb"|(?P<unnamed>)(?=\s*+\{|\s++extends\b))"
        rb"|(?P<keyword>const|let|var)\s++(?:enum\s++(?P<constenum>WORD)|(?P<variable>WORD|[{\[]))"
        rb"|interface\s++(?P<interface>WORD)(?=\s*+[{<]|\s++extends\b)"
        rb"|enum\s++(?P<enum>WORD)(?=\s*+\{)"
        rb"|(?:namespace|module)\s++(?P<module>WORD(?:\.[\w$]++)*+|\"++)(?=\s*+\{)|global(?P<global>)(?=\s*+\{)"
        rb"|type\s++(?P<type>WORD)(?=\s*+[=<])"
        rb"|(?<=export )(?:type\h++)?(?P<exports>\{)|(?<=export )\*\s*+as\s++(?P<star>WORD)"
        rb"|(?<=export )(?P<equals>=\s*+\{)|(?<=default )(?P<default>(?:[\w$.]++\s*+\(\s*+)?\{))"
        rb"|(?:module\.)?exports(?:\.(?P<exported>WORD))?\s*+=(?![=>])\s*+(?P<value>)"
        rb"|(?P<holder>WORD(?:\.[\w$]++)*?)\.(?:prototype\.(?P<prototype>WORD)\s*+=(?![=>])\s*+"
        rb"|(?P<property>WORD)\s*+" + _SETS + rb")"
        rb"|(?:(?:async|get|set|static)\h++)*+\*?\h*+(?P<method>#?" + _METHOD + rb")" + _BODY + rb")"
        rb"|(?<=[{}]))",
        "nested": rb"\n\h*+(?:(?:async|export)\h++)*+(?:function\b|(?:return\h++)?class\b|(?:interface|enum|type)\h"
        rb"|(?:const|let|var)\s++WORD\s*+(?::[^=;\n]*+)?=\s*+"
        + _FUNCTION
        + rb"|WORD[.\w$]*+\s*+"
        + _SETS
        + rb"|(?:(?:get|set|static)\h++)*+\*?\h*+"
        + _METHOD
        + _BODY
        + rb")",
        "function": rb"\s*+" + _FUNCTION,
        "object": rb"\s*+\{",
        "class": rb"\s*+class\b",
        "import": rb"\s*+(?:require\s*+\(|await\s++import\s*+\()",
        "type": rb"\s*+(?:(?P<more>=>|[|&?:]|extends\b)"
        rb"|(?P<prefix>(?:is|keyof|typeof|infer|readonly|asserts|unique|new|abstract|in)\b)"
        rb"|(?P<open>[(\[{<])|(?P<word>[\w$.\x80-\xff]++|\"++|-)|(?P<stop>[^\s]))",
        "member": rb"(?:(?:public|private|protected|static|readonly|abstract|override|declare|async|get|set|accessor)"
        rb"\s++(?=[\w$#\[*\"\x80-\xff]))*+\*?\s*+(?P<name>#?WORD|\"++)(?:\s*+[?!])?(?=\s*+[(<:=;,}]|[ \t\r]*+\n)",
        "key": rb"(?:(?:async|get|set)\h++(?=[\w$#\[*\"]))?\*?\s*+(?P<name>WORD|\"++)(?=\s*+[(:,}<])",
        "variant": rb"(?P<name>WORD|\"++)(?=\s*+[=,}])",
        "static": rb"static\s*+\{",
        "decorator": rb"@[\w$.]++",
        "parameter": rb"(?:(?:public|private|protected|readonly|override)\s++)++(WORD)(?=\s*+[?:,=)])",
        "bound": rb"(?:[{,\[]|\.\.\.)\s*+(?:(?:WORD|\"++)\s*+:\s*+)?(WORD)(?=\s*+[,}\]=])",
        "next": rb"\s*+(WORD)(?=\s*+[,;:=]|[ \t\r]*+\n)",
        "export": rb"(?P<from>WORD)(?:\s++as\s++(?P<alias>WORD))?\s*+(?=[,}])",
        "from": rb"\s*+from\b",
        "wrapper": rb"[;!]?\(*+(?:async\s*+)?(?:function\b|[^\n]*=>)",
        "head": rb"[{<(;}]",
        "alias": rb"\s*+(?:[^{};()=\n]|\n\s*+[|&])*?\{",
    }
)
_MEMBERS = {"class": "member", "type": "member", "object": "key", "variant": "variant"}


def walk(cleaned: bytes, language: str) -> WalkResult:
    text = opaque_markup(cleaned) if language in MARKUP else opaque(cleaned, language)
    script = _Script(text, cleaned)
    script.walk()
    return WalkResult(script.found, script.text, finish_braces)


class _Script(Braces):
    """Walks JavaScript. Modes besides the common ones: class, type, object, variant (of an enum)."""

    __slots__ = ("source",)

    def __init__(self, text: bytes, cleaned: bytes) -> None:
        super().__init__(text, _PATTERNS["nested"])
        self.source = b"\n" + cleaned

    def walk(self) -> None:
        search = _PATTERNS["event"].search
        at = 0
        while at < len(self.text):
            frame = self.stack[-1]
            if frame.mode in (CODE, OPEN):
                match = search(self.text, at)
                if match is None:
                    break
                at = self.event(match)
            else:
                at = self.member(at, frame)

    def event(self, match: re.Match[bytes]) -> int:
        """Handle a brace, or a declaration at the beginning of a line or after a brace."""
        start, at = match.span()
        byte = self.text[start]
        kind = match.lastgroup
        if byte == CLOSING:
            self.pop(start + 1)
            if self.stack[-1].mode not in (CODE, OPEN):
                return start + 1
        elif byte == BRACE and start != self.entered:
            if kind is None and (end := self.leaf(start)) >= 0:
                return end
            self.push(OPEN if self.stack[-1].mode == OPEN and self.is_bare(start) else CODE)
        return at if kind is None else self.declaration(match, kind)

    def is_bare(self, opened: int) -> bool:
        """Whether a brace is a plain block, or the function around a whole file."""
        before = self.text[max(0, opened - 200) : opened].rstrip()
        if before[-1:] in (b";", b"}", b""):
            return True
        line = before[before.rfind(b"\n") + 1 :]
        return line.startswith((b"(", b";(", b"!")) and _PATTERNS["wrapper"].match(line) is not None

    def declaration(self, match: re.Match[bytes], kind: str) -> int:
        text = self.text
        at = match.end()
        is_open = self.stack[-1].mode == OPEN
        if kind == "function":
            return self.function(self.add(*match.span(kind), kind))
        if kind == "variable":
            return self.variable(*match.span(kind), match["keyword"], is_open=is_open)
        if kind == "method":
            return self.function(self.add(*match.span(kind), kind))
        if kind == "class":
            return self.block(at, "class", self.add(*match.span(kind), kind))
        if kind == "unnamed":
            return self.block(at, "class", None)
        if kind == "interface":
            return self.block(at, "type", self.add(*match.span(kind), kind))
        if kind in ("enum", "constenum"):
            return self.block(at, "variant", self.add(*match.span(kind), "enum"))
        if kind in ("module", "global"):
            named = kind == "module" and text[match.start(kind)] != QUOTE
            return self.block(at, OPEN, self.add(*match.span(kind), kind) if named else None)
        if kind == "type":
            return self.alias(self.add(*match.span(kind), kind))
        if kind == "exports":
            return self.exports(match.start(kind))
        if kind == "star":
            self.add(*match.span(kind), "export")
        elif kind in ("default", "equals"):
            self.push("object", None, b"")
        elif kind == "value":
            if match["exported"]:
                return self.value(at, self.add(*match.span("exported"), "variable", scope=b""))
            if opened := _PATTERNS["object"].match(text, at):
                self.push("object", None, b"")
                return opened.end()
        elif kind in ("prototype", "property"):
            holder = match["holder"].removeprefix(b"this").removeprefix(b"exports").strip(b".")
            return self.value(at, self.add(*match.span(kind), "method", scope=holder))
        return at

    def function(self, mark: DefinitionMark, at: int = -1) -> int:
        """Enter a body; without one, skip the parameters and the return type."""
        at = self.skip(mark.end if at < 0 else at)
        if self.text[mark.begin : mark.end] == b"constructor" and self.is_at(at, PAREN):
            end = self.close(at)
            if end - at < 5000:
                for field in _PATTERNS["parameter"].finditer(self.text, at, end):
                    self.add(*field.span(1), "field", scope=mark.scope)
        return self.parameters(at, mark)

    def parameters(self, at: int, mark: DefinitionMark | None, scope: bytes | None = None) -> int:
        """Skip the parameters of a function and enter its body."""
        if self.is_at(at, ANGLE):
            at = self.skip(self.angles(at))
        if not self.is_at(at, PAREN):
            return at
        end = self.close(at)
        at = self.skip(end)
        if self.is_at(at, COLON):
            end = self.type_end(at + 1)
            at = self.skip(end)
        if self.is_at(at, BRACE):
            return self.enter(at, mark, scope)
        if mark is not None:
            mark.stop = end
        return end

    def block(self, at: int, mode: str, mark: DefinitionMark | None, scope: bytes | None = None) -> int:
        """Enter a class or similar, skipping everything before its brace."""
        limit = at + 5000
        while match := _PATTERNS["head"].search(self.text, at, limit):
            byte = self.text[match.start()]
            if byte == BRACE:
                self.push(mode, mark, scope)
                self.entered = match.start()
                return match.start() if mode == OPEN else match.end()
            if byte == ANGLE:
                at = self.angles(match.start())
            elif byte == PAREN:
                at = self.close(match.start())
            else:
                break
        return at

    def alias(self, mark: DefinitionMark) -> int:
        """Handle a type alias: the first object in it lists its members."""
        at = self.skip(mark.end)
        if self.is_at(at, ANGLE):
            at = self.skip(self.angles(at))
        if not self.is_at(at, EQUALS):
            return mark.end
        if opened := _PATTERNS["alias"].match(self.text, at + 1, at + 2000):
            self.push("type", None, join(mark.scope, self.text[mark.begin : mark.end]))
            return opened.end()
        return at + 1

    def type_end(self, at: int) -> int:
        """Return the offset after a type, where a body, a value or the next statement begins."""
        text = self.text
        wants = True  # whether the type is not yet complete
        while match := _PATTERNS["type"].match(text, at):
            kind = match.lastgroup or ""
            start = match.start(kind)
            if not wants and kind != "more" and b"\n" in text[at:start]:
                break
            if kind == "open":
                byte = text[start]
                if byte == BRACE and not wants:
                    break
                at = self.angles(start) if byte == ANGLE else self.close(start)
                wants = False
            elif kind == "stop":
                return start
            else:
                at = match.end()
                wants = kind != "word"
        return at

    def variable(self, begin: int, end: int, keyword: bytes, *, is_open: bool) -> int:
        text = self.text
        if text[begin] in b"{[":
            return self.destructuring(begin, is_open=is_open)
        behind = end  # the result must not be after the line break that begins the next declaration
        at = self.skip(end)
        if text[at : at + 1] == b"!":
            at = self.skip(at + 1)
        if self.is_at(at, COLON):
            behind = self.type_end(at + 1)
            at = self.skip(behind)
        has_value = self.is_at(at, EQUALS)
        if has_value and _PATTERNS["import"].match(text, at + 1):
            return at + 1
        is_function = has_value and _PATTERNS["function"].match(text, at + 1) is not None
        if not is_open and not is_function:
            return behind
        label = "function" if is_function else "constant" if keyword == b"const" else "variable"
        mark = self.add(begin, end, label)
        if has_value:
            behind = at + 1
            if is_function or _PATTERNS["object"].match(text, behind) or _PATTERNS["class"].match(text, behind):
                return self.value(behind, mark)
        return self.further(behind, mark)

    def further(self, at: int, mark: DefinitionMark) -> int:
        """Handle the further names of `let a = 1, b`."""
        behind = at
        while True:
            behind = self.hop(behind, b",;\n)}")
            if not self.is_at(behind, COMMA):
                return at
            more = _PATTERNS["next"].match(self.text, behind + 1)
            if more is None:
                return at
            mark.stop = behind
            mark = self.add(*more.span(1), mark.kind)
            at = behind = more.end()

    def destructuring(self, opened: int, *, is_open: bool) -> int:
        end = self.close(opened)
        at = self.skip(end)
        if self.is_at(at, COLON):
            at = self.skip(self.type_end(at + 1))
        is_value = self.is_at(at, EQUALS) and not _PATTERNS["import"].match(self.text, at + 1)
        if is_open and is_value and end - opened < 5000:
            for bound in _PATTERNS["bound"].finditer(self.text, opened, end):
                self.add(*bound.span(1), "variable")
        return end

    def value(self, at: int, mark: DefinitionMark) -> int:
        """Enter the function, object or class that is assigned to a name."""
        text = self.text
        scope = join(mark.scope, text[mark.begin : mark.end])
        if function := _PATTERNS["function"].match(text, at):
            if mark.kind != "method":
                mark.kind = "function"
            at = function.end()
            if function["params"] is None:
                return self.enter(at - 1, None, scope) if function["brace"] else at
            return self.parameters(at, None, scope)
        if opened := _PATTERNS["object"].match(text, at):
            self.push("object", None, scope)
            return opened.end()
        if word := _PATTERNS["class"].match(text, at):
            mark.kind = "class"
            return self.block(word.end(), "class", None, scope)
        return at

    def exports(self, opened: int) -> int:
        """Handle `export { a as b }`: `as` and re-exports from another module define names."""
        end = self.close(opened)
        foreign = _PATTERNS["from"].match(self.text, end) is not None
        for match in _PATTERNS["export"].finditer(self.text, opened, end):
            group = "alias" if match["alias"] else "from"
            if (foreign or group == "alias") and match[group] != b"default":
                self.add(*match.span(group), "export")
        return end

    def member(self, at: int, frame: Frame) -> int:
        """Handle one member of a class, type, object or enum; return the offset after it."""
        text, mode = self.text, frame.mode
        at = self.skip_separators(at)
        if at >= len(text) or text[at] == CLOSING:
            self.pop(at + 1)
            return at + 1
        if decorator := _PATTERNS["decorator"].match(text, at):
            frame.start = at if frame.start < 0 else frame.start
            at = decorator.end()
            return self.close(at) if self.is_at(at, PAREN) else at
        start = at if frame.start < 0 else frame.start
        frame.start = -1
        if static := _PATTERNS["static"].match(text, at):
            return self.enter(static.end() - 1)
        match = _PATTERNS[_MEMBERS[mode]].match(text, at)
        if match is None:
            return self.rest(at, mode)
        begin, end = match.span("name")
        if text[begin] == QUOTE:
            if not is_quoted_name(self.source, begin, end):
                return self.rest(match.end(), mode)
            begin, end = begin + 1, end - 1
        elif mode == "type" and match["name"] == b"new":
            return self.rest(match.end(), mode)
        mark = self.add(begin, end, {"object": "key", "variant": "variant"}.get(mode, "field"), start)
        return self.member_rest(mark, match.end(), mode)

    def member_rest(self, mark: DefinitionMark, end: int, mode: str) -> int:
        text = self.text
        at = self.skip(end)
        byte = text[at] if at < len(text) else CLOSING
        if byte in b"(<" and mode != "variant":
            mark.kind = "method"
            depth = len(self.stack)
            at = self.function(mark, end)
            return at if len(self.stack) > depth or text[at - 1] == CLOSING else self.rest(at, mode)
        if byte == COLON and mode in ("type", "class"):
            opened = self.skip(at + 1)
            if mode == "type" and self.is_at(opened, BRACE):
                self.push("type", None, join(mark.scope, text[mark.begin : mark.end]))
                return opened + 1
            end = self.type_end(at + 1)
            at = self.skip(end)
            byte = text[at] if at < len(text) else CLOSING
        if (byte == EQUALS and mode == "class") or (byte == COLON and mode == "object"):
            value = self.value(at + 1, mark)
            if text[value - 1] in b"{}":
                return value
            end = value
        return self.rest(end, mode)

    def rest(self, at: int, mode: str) -> int:
        """Return the end of a member."""
        if mode in ("object", "variant"):
            return self.hop(at, b",}")
        stops = b";,\n}" if mode == "type" else b";\n}"
        at = self.hop(at, stops)
        while self.is_at(at, NEWLINE) and goes_on(self.text, at):
            at = self.hop(at + 1, stops)
        return at
