"""Languages that define things with a keyword and a body in braces.

Rust, Kotlin, Swift, Scala, Groovy, PHP, Zig, Protocol Buffers and GraphQL: a table for each, and one walker for all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from truekeep.verify.languages.braces import CODE, OPEN, Braces, is_quoted_name
from truekeep.verify.languages.lexer import BRACE, CLOSING, EQUALS, NEWLINE, PAREN, SEMICOLON, opaque
from truekeep.verify.languages.patterns import Patterns, compile_pattern
from truekeep.verify.languages.statements import finish_braces
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, join

_PATTERNS = Patterns(
    {
        "name": b"NAME",
        "header": rb"[{(\[;}=\n]",
        "header goes on": rb"\s*+(?:\{|:|->|,|(?:@[\w.]++\s*+)*+(?:(?:internal|private|protected|public)\s++)?"
        rb"constructor\b"
        rb"|(?:where|throws|rethrows|async|extends|with|derives|implements)\b)",
        "attribute": rb"#!?(?=\[)|@[\w.:]++",
        "more cases": rb"(?:\s*+=\s*+[^\s,]++)?\s*+,\s*+(NAME)",
        "php": rb"\bnew\s++(?:readonly\s++)?class\b[^;{}]*+$",
        "kotlin": rb"\bobject\b\h*+(?::[^;{}]*+)?$",
        "php parameter": rb"(?:(?:public|protected|private|readonly)\s++)++(?:[\w\\?|&]++\s++)*?\$(NAME)",
        "kotlin parameter": rb"(?<!\w)va[lr]\s++(NAME)\s*+:",
    }
)


class _Keywords(NamedTuple):
    """The patterns of a language with definition keywords."""

    modifiers: bytes
    """Modifiers and attributes before a keyword on its line."""
    declarations: bytes
    """The declarations; the name of the matching group is the kind."""
    modes: dict[str, str]
    """How to read the body of each kind that has one."""
    nested: bytes = rb"(?!)"
    """The start of a declaration that counts inside functions. It may match too often."""
    local: frozenset[str] = frozenset()
    """The kinds that count only outside functions."""
    members: dict[str, bytes] = {}  # noqa: RUF012 - a NamedTuple has no mutable state
    """The pattern of one member, for modes that list members."""
    separators: bytes = b",}"
    """The end of a member."""
    newline: bool = False
    """Whether a header ends with its line."""
    scopes: frozenset[str] = frozenset()
    """The kinds that only provide a scope for their members, such as `impl`."""


_FIELDS, _CASES, _ENUM = "fields", "cases", "enum"


@cache
def _keywords(language: str) -> _Keywords:
    return _KEYWORDS[language]()


def _rust() -> _Keywords:
    return _Keywords(
        rb"(?:#!?\[[^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+\]\h*+)*+(?:(?:pub(?:\h*+\([^()\n]*+\))?|default|unsafe"
        rb"|async|extern(?:\h++\"++)?|const(?=\h++(?:fn|unsafe|async|extern)\b))\h++)*+",
        rb"fn\s++(?:r#)?(?P<function>NAME)(?=\s*+[(<])"
        rb"|struct\s++(?P<struct>NAME)"
        rb"|static\s++(?:(?:mut|ref)\s++)?(?P<static>NAME)(?=\s*+:)"
        rb"|enum\s++(?P<enum>NAME)(?=\s*+[{<])"
        rb"|union\s++(?P<union>NAME)(?=\s*+[{<])"
        rb"|trait\s++(?P<trait>NAME)"
        rb"|type\s++(?:r#)?(?P<type>NAME)(?=\s*+[:;=<]|\s++where\b)"
        rb"|mod\s++(?P<module>NAME)(?=\s*+[{;])"
        rb"|macro_rules!\s*+(?P<macro>NAME)"
        rb"|const\s++(?!_\b)(?P<const>NAME)(?=\s*+[:=])"
        rb"|impl\b(?P<impl>)(?=[\s<])",
        {
            **dict.fromkeys(("trait", "module", "impl"), OPEN),
            **dict.fromkeys(("function", "macro"), CODE),
            **dict.fromkeys(("struct", "union"), _FIELDS),
            "enum": _CASES,
        },
        nested=rb"(?:fn|struct|static|enum|union|trait|type|mod|macro_rules|const|impl)\b",
        members={
            _FIELDS: rb"(?:pub(?:\s*+\([^()]*+\))?\s++)?(?:r#)?(?P<field>NAME)(?=\s*+:(?!:))",
            _CASES: rb"(?P<variant>NAME)(?=\s*+[,}({=])",
        },
        scopes=frozenset(("impl",)),
    )


def _kotlin() -> _Keywords:
    return _Keywords(
        rb"(?:@[\w.:]++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|protected|internal|open|abstract|final|override"
        rb"|suspend|inline|operator|infix|tailrec|external|const|lateinit|data|sealed|annotation|inner|value|expect"
        rb"|actual|fun(?=\h++interface\b))\h++)*+",
        rb"fun\s++(?:<[^(){}]*?>\s*+)?(?:(?P<receiver>[\w.]+(?:<[^(){}]*?>)?\??)\.)?(?P<function>`[^`\n]++`|NAME)"
        rb"(?=\s*+[(<])"
        rb"|va[lr]\s++(?:<[^(){}]*?>\s*+)?(?:[\w.]+(?:<[^(){}=]*?>)?\??\.)?(?P<property>NAME)"
        rb"(?=\s*+(?:[:=;{]|by\b|get\b)|[ \t\r]*+\n)"
        rb"|enum\s++class\s++(?P<enum>NAME)"
        rb"|class\s++(?P<class>NAME)"
        rb"|interface\s++(?P<interface>NAME)"
        rb"|(?:companion\s++)?object\s++(?P<object>NAME)"
        rb"|companion\s++object\b(?P<companion>)"
        rb"|typealias\s++(?P<type>NAME)",
        {
            **dict.fromkeys(("class", "interface", "object", "companion"), OPEN),
            **dict.fromkeys(("function", "property"), CODE),
            "enum": _CASES,
        },
        nested=rb"(?:fun|class|interface|object|enum|typealias)\s",
        local=frozenset(("property",)),
        members={_CASES: rb"(?P<constant>NAME)(?=\s*+[,;({}])"},
        newline=True,
        scopes=frozenset(("companion",)),
    )


def _swift() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|fileprivate|internal|open|package|static|final"
        rb"|override|mutating|nonmutating|lazy|weak|unowned|required|convenience|dynamic|optional|indirect|prefix"
        rb"|postfix|infix|nonisolated|isolated|class(?=\h++(?:func|var|let)\b))(?:\(\w++\))?\h++)*+",
        rb"func\s++(?P<function>`?NAME`?|[-+*/%=<>!&|^~?.]++)(?=\s*+[(<])"
        rb"|(?P<init>init|subscript)[?!]?(?=\s*+[(<])"
        rb"|var\s++(?P<property>NAME)|let\s++(?P<constant>NAME)"
        rb"|class\s++(?P<class>NAME)|struct\s++(?P<struct>NAME)|actor\s++(?P<actor>NAME)"
        rb"|enum\s++(?P<enum>NAME)|protocol\s++(?P<protocol>NAME)"
        rb"|extension\s++(?P<extension>[\w.]++)"
        rb"|(?:typealias|associatedtype)\s++(?P<type>NAME)"
        rb"|case\h++(?P<case>NAME)"
        rb"|macro\s++(?P<macro>NAME)(?=\s*+[(<])",
        {
            **dict.fromkeys(("class", "struct", "protocol", "actor", "extension"), OPEN),
            **dict.fromkeys(("function", "init", "property"), CODE),
            "enum": _ENUM,
        },
        nested=rb"(?:func|class|struct|actor|enum|protocol|extension|typealias)\s",
        local=frozenset(("property", "constant", "case", "init")),
        newline=True,
        scopes=frozenset(("extension",)),
    )


def _scala() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:private|protected|final|sealed|abstract|implicit|lazy|override|inline"
        rb"|transparent|opaque|open|case(?=\h++(?:class|object)\b))(?:\[\w++\])?\h++)*+",
        rb"def\s++(?P<function>`[^`\n]++`|NAME|[-+*/%=<>!&|^~?:]++)"
        rb"|va[lr]\s++(?P<property>NAME)(?=\s*+[:=,])"
        rb"|class\s++(?P<class>NAME)|trait\s++(?P<trait>NAME)|object\s++(?P<object>NAME)"
        rb"|enum\s++(?P<enum>NAME)"
        rb"|given\s++(?P<given>NAME)(?=\s*+[:\[(])"
        rb"|type\s++(?P<type>NAME)(?=\s*+[=\[<>]|\h*+\n)"
        rb"|case\h++(?P<case>NAME)(?=\h*+[\n,(])",
        {
            **dict.fromkeys(("class", "trait", "object"), OPEN),
            **dict.fromkeys(("function", "property"), CODE),
            "enum": _ENUM,
        },
        nested=rb"(?:def|class|trait|object|enum)\s",
        local=frozenset(("property", "case", "type", "given")),
        newline=True,
    )


def _groovy() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|protected|static|final|abstract|synchronized)\h++)*+",
        rb"class\s++(?P<class>NAME)|interface\s++(?P<interface>NAME)|trait\s++(?P<trait>NAME)|enum\s++(?P<enum>NAME)"
        rb"|def\s++(?:(?P<function>NAME)(?=\h*+\()|(?P<property>NAME)(?=\h*+=))"
        rb"|(?!return\b|new\b|else\b|throw\b|def\b)[A-Z\w][\w.<>\[\]]*+\h++(?P<method>NAME)(?=\h*+JSPARENS\h*+\{)",
        {
            **dict.fromkeys(("class", "interface", "trait", "enum"), OPEN),
            **dict.fromkeys(("function", "method"), CODE),
        },
        nested=rb"(?:class|def)\s",
        local=frozenset(("property",)),
        newline=True,
    )


def _php() -> _Keywords:
    return _Keywords(
        rb"(?:#\[[^\n]*?\]\h*+)*+"
        rb"(?P<modifiers>(?:(?:public|protected|private|static|abstract|final|readonly|var)\b\s++)*+)",
        rb"function\s++&?\s*+(?P<function>NAME)(?=\s*+\()"
        rb"|class\s++(?P<class>NAME)(?=\s*+\{|\s++(?:extends|implements)\b)"
        rb"|interface\s++(?P<interface>NAME)(?=\s*+\{|\s++extends\b)"
        rb"|trait\s++(?P<trait>NAME)(?=\s*+\{)"
        rb"|enum\s++(?P<enum>NAME)(?=\s*+[{:]|\s++implements\b)"
        rb"|const\s++(?:[\w\\?|]++\s++)?(?P<const>NAME)(?=\s*+=)"
        rb"|\\?define\s*+\(\s*+(?P<define>\"++)(?=\s*+,)"
        rb"|(?:[\w\\?|&()]++\s++)?\$(?P<field>NAME)(?=\s*+[;=,{])"
        rb"|case\h++(?P<case>NAME)(?=\s*+[;=])",
        {"function": CODE, **dict.fromkeys(("class", "interface", "trait", "enum"), OPEN)},
        nested=rb"(?:function|class|interface|trait)\s|\\?define\s*+\(",
        local=frozenset(("field", "case")),
    )


def _zig() -> _Keywords:
    return _Keywords(
        rb"(?:(?:pub|export|extern(?:\h++\"++)?|inline|threadlocal|comptime)\h++)*+",
        rb"fn\s++(?P<function>NAME)(?=\s*+\()"
        rb"|(?:const|var)\s++(?P<constant>NAME)(?=\s*+[:=])"
        rb"|(?P<field>NAME)(?=\s*+:[^\n]*,[ \t\r]*+\n)",
        {"function": CODE, "constant": OPEN},
        nested=rb"fn\s",
        local=frozenset(("constant", "field")),
    )


def _protobuf() -> _Keywords:
    return _Keywords(
        rb"",
        rb"message\s++(?P<message>NAME)(?=\s*+\{)|enum\s++(?P<enum>NAME)(?=\s*+\{)"
        rb"|service\s++(?P<service>NAME)(?=\s*+\{)|oneof\s++(?P<oneof>NAME)(?=\s*+\{)"
        rb"|rpc\s++(?P<method>NAME)(?=\s*+\()"
        rb"|(?:(?:repeated|optional|required)\s++)?(?!option\b)(?:map\s*+<[^<>\n]*+>|[\w.]++)\s++(?P<field>NAME)"
        rb"(?=\s*+=\s*+\d)"
        rb"|(?P<constant>NAME)(?=\s*+=\s*+-?\d)",
        dict.fromkeys(("message", "enum", "service", "oneof"), OPEN),
        local=frozenset(("field", "constant")),
    )


def _graphql() -> _Keywords:
    return _Keywords(
        rb"(?:extend\h++)?",
        rb"type\s++(?P<type>NAME)|interface\s++(?P<interface>NAME)|input\s++(?P<input>NAME)|enum\s++(?P<enum>NAME)"
        rb"|union\s++(?P<union>NAME)|scalar\s++(?P<scalar>NAME)|directive\s++@(?P<directive>NAME)"
        rb"|fragment\s++(?P<fragment>NAME)|(?:query|mutation|subscription)\s++(?P<operation>NAME)",
        {
            **dict.fromkeys(("type", "interface", "input"), _FIELDS),
            **dict.fromkeys(("fragment", "operation"), CODE),
            "enum": _CASES,
        },
        members={_FIELDS: rb"(?P<field>NAME)(?=\s*+[(:])", _CASES: rb"(?P<constant>NAME)"},
        separators=b",\n}",
    )


_KEYWORDS: dict[str, Callable[[], _Keywords]] = {
    "rust": _rust,
    "kotlin": _kotlin,
    "swift": _swift,
    "scala": _scala,
    "groovy": _groovy,
    "php": _php,
    "zig": _zig,
    "protobuf": _protobuf,
    "graphql": _graphql,
}
_ANONYMOUS = {"php": b"class", "kotlin": b"object"}  # the word before the body of an anonymous class
_LABELS = {
    "const": "constant", "static": "constant", "define": "constant", "actor": "class", "case": "variant",
    "init": "method", "message": "class", "oneof": "field", "operation": "function", "fragment": "function",
}  # fmt: skip


@cache
def _events(language: str) -> re.Pattern[bytes]:
    """Return a pattern for braces, and for declarations at the beginning of a line or after a brace."""
    table = _keywords(language)
    return compile_pattern(rb"[\n;{}](?:\h*+" + table.modifiers + rb"(?:" + table.declarations + rb")|(?<=[{}]))")


@cache
def _nested(language: str) -> re.Pattern[bytes]:
    table = _keywords(language)
    return compile_pattern(rb"\n\h*+" + table.modifiers + rb"(?:" + table.nested + rb")")


@cache
def _member(language: str, mode: str) -> re.Pattern[bytes]:
    return compile_pattern(_keywords(language).members[mode])


def walk(cleaned: bytes, language: str) -> WalkResult:
    walk = _KeywordWalker(opaque(cleaned, language), cleaned, language)
    walk.walk()
    return WalkResult(walk.found, walk.text, finish_braces)


class _KeywordWalker(Braces):
    """Walks a language with definition keywords."""

    __slots__ = ("language", "source", "table")

    def __init__(self, text: bytes, cleaned: bytes, language: str) -> None:
        super().__init__(text, _nested(language))
        self.language = language
        self.source = b"\n" + cleaned
        self.table = _keywords(language)

    def walk(self) -> None:
        text = self.text
        search = _events(self.language).search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode in (_FIELDS, _CASES):
                at = self.member(at, mode)
                continue
            match = search(text, at)
            if match is None:
                break
            start, at = match.span()
            kind = match.lastgroup
            byte = text[start]
            if byte == CLOSING:
                self.pop(start + 1)
                if self.stack[-1].mode in (_FIELDS, _CASES):
                    at = start + 1
                    continue
            elif byte == BRACE and start != self.entered:
                at = self.brace(start, at, is_plain=kind is None)
            if kind is not None and (self.stack[-1].mode != CODE or kind not in self.table.local):
                at = self.declare(match, kind)

    def brace(self, start: int, at: int, *, is_plain: bool) -> int:
        """Handle a block without a name."""
        if is_plain:
            word = _ANONYMOUS.get(self.language)
            low = max(0, start - 300)
            if (
                word
                and self.text.find(word, low, start) >= 0
                and _PATTERNS[self.language].search(self.text, low, start)
            ):
                self.push(OPEN)
                return at
            if (end := self.leaf(start)) >= 0:
                return end
        self.push(CODE)
        return at

    def declare(self, match: re.Match[bytes], kind: str) -> int:
        text, frame = self.text, self.stack[-1]
        begin, end = match.span(kind)
        mark: DefinitionMark | None = None
        scope: bytes | None = None
        if kind not in self.table.scopes:
            if not self.counts(match, kind):
                return match.end()
            if text[begin] in b'"`':
                begin, end = begin + 1, end - 1
            label = "method" if kind == "function" and frame.scope and frame.mode != CODE else _LABELS.get(kind, kind)
            mark = self.add(begin, end, label)
            if self.language == "kotlin" and kind == "function" and match["receiver"] and not frame.scope:
                mark.scope = match["receiver"].partition(b"<")[0].rstrip(b"?")
            if kind == "case" and self.language in ("swift", "scala"):
                return self.cases(end)
        elif kind == "extension":
            scope = match[kind]
        if kind not in self.table.modes:
            return match.end()
        opened = self.header_end(match.end(), mark, kind)
        if opened < 0:
            return match.end()
        mode = self.table.modes[kind]
        if kind == "impl":
            scope = _impl_type(text[match.end() : opened])
        if mode == CODE:
            return self.enter(opened, mark, scope)
        self.push(mode, mark, scope)
        self.entered = opened
        return opened if mode in (OPEN, _ENUM) else opened + 1

    def counts(self, match: re.Match[bytes], kind: str) -> bool:
        if kind == "case" and self.language != "php":
            return self.stack[-1].mode == _ENUM
        if kind == "field" and self.language == "php":
            return bool(match["modifiers"])
        if kind == "define":
            return is_quoted_name(self.source, *match.span(kind))
        return kind != "constant" or self.language != "zig" or self.stack[-1].mode != CODE

    def cases(self, at: int) -> int:
        """Handle the further names of `case a, b(Int), c`."""
        while True:
            if self.is_at(at, PAREN):
                at = self.close(at)
            more = _PATTERNS["more cases"].match(self.text, at)
            if more is None:
                return at
            self.add(*more.span(1), "variant")
            at = more.end()

    def header_end(self, at: int, mark: DefinitionMark | None, kind: str) -> int:
        """Return the offset of the brace that opens a body, or -1."""
        text = self.text
        has_fields = {"kotlin": ("class", "enum"), "scala": ("class",), "php": ("function",)}.get(self.language, ())
        limit = at + 5000
        while self.fuel > 0 and (match := _PATTERNS["header"].search(text, at, limit)):
            byte = text[match.start()]
            at = match.end()
            self.fuel -= 1
            if byte == BRACE:
                return match.start()
            if byte in b"([":
                at = self.close(match.start())
                if byte == PAREN and kind in has_fields and mark is not None:
                    self.fields(match.start(), at, mark)
                    has_fields = ()
            elif byte == NEWLINE:
                before = text[max(0, match.start() - 40) : match.start()].rstrip()[-1:]
                goes_on = before in (b",", b":", b"(") or _PATTERNS["header goes on"].match(text, at) is not None
                if self.table.newline and not goes_on:
                    return -1
            elif byte == EQUALS:
                is_operator = text[match.start() - 1] in b"=<>!" or text[at] in b"=>"
                if not is_operator and self.language not in ("rust", "zig"):
                    return -1
            else:
                return -1
        return -1

    def fields(self, opened: int, end: int, mark: DefinitionMark) -> None:
        """Handle the parameters of a constructor that are also fields."""
        name = self.text[mark.begin : mark.end]
        if end - opened > 10_000 or (self.language == "php" and name != b"__construct"):
            return
        scope = mark.scope if self.language == "php" else join(mark.scope, name)
        pattern = _PATTERNS["php parameter" if self.language == "php" else "kotlin parameter"]
        for match in pattern.finditer(self.text, opened, end):
            self.add(*match.span(1), "field", scope=scope)

    def member(self, at: int, mode: str) -> int:
        """Handle a field of a struct or a variant of an enum; return the offset after it."""
        text = self.text
        before = at
        at = self.skip_separators(at)
        if at >= len(text) or text[at] == CLOSING:
            self.pop(at + 1)
            return at + 1
        if attribute := _PATTERNS["attribute"].match(text, at):
            at = attribute.end()
            return self.close(at) if at < len(text) and text[at] in b"[(" else at
        match = _member(self.language, mode).match(text, at)
        if match is None:
            if self.language == "kotlin":  # the members follow the constants
                self.stack[-1].mode = OPEN
                return max(before, text.rfind(b"\n", before, at))
            return self.hop(at, self.table.separators)
        kind = match.lastgroup or ""
        mark = self.add(*match.span(kind), kind, at)
        at = match.end()
        opened = self.skip(at)
        if self.language == "kotlin" and self.is_at(opened, PAREN):
            opened = self.skip(self.close(opened))
        if mode == _CASES and self.is_at(opened, BRACE):
            self.push(OPEN if self.language == "kotlin" else _FIELDS, mark)
            self.entered = opened
            return opened if self.language == "kotlin" else opened + 1
        if self.language != "graphql" or mode == _FIELDS:
            at = self.hop(at, b",;}" if self.language == "kotlin" else self.table.separators)
        mark.stop = at
        if self.language == "kotlin" and self.is_at(at, SEMICOLON):
            self.stack[-1].mode = OPEN
        return at


def _impl_type(header: bytes) -> bytes:
    """Return the type that an `impl` is for."""
    header = header[-600:]
    for _ in range(6):
        header, count = re.subn(rb"(?<!-)<[^<>]*+>", b"", header)
        if not count:
            break
    target = re.split(rb"\bfor\b", re.split(rb"\bwhere\b", header)[0])[-1]
    words = [word for word in _PATTERNS["name"].findall(target) if word not in (b"dyn", b"mut", b"const")]
    return words[-1] if words else b""
