"""Protocol Buffers and GraphQL, which have no grammar on the package index: names before braces, and their members."""

from __future__ import annotations

from collections.abc import Sequence

from truekeep.verify.languages.lexer import CLOSING, opaque
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.statements import Statements
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, join, trimmed

_PATTERNS = Patterns(
    {
        "protobuf": rb"(?<=[\s;{}])(?:message\s++(?P<class>NAME)|enum\s++(?P<enum>NAME)|service\s++(?P<service>NAME)"
        rb"|oneof\s++(?P<field>NAME)|extend\s++[\w.]++(?P<extend>))\s*+\{"
        rb"|(?<=[\s;{}])rpc\s++(?P<method>NAME)(?=\s*+\()"
        rb"|(?<=[\s;{}>])(?!option\b)(?P<member>NAME)(?=\s*+=\s*+-?\d)|[{}]",
        "graphql": rb"(?<=[\s;{}])(?:type\s++(?P<type>NAME)|interface\s++(?P<interface>NAME)|input\s++(?P<input>NAME)"
        rb"|enum\s++(?P<enum>NAME)|fragment\s++(?P<fragment>NAME)|(?:query|mutation|subscription)\s++(?P<operation>NAME))"
        rb"[^{}\n]*+\{"
        rb"|(?<=\n)\h*+(?:union\s++(?P<union>NAME)|scalar\s++(?P<scalar>NAME)|directive\s++@(?P<directive>NAME))"
        rb"|(?<=[\n{,])\h*+(?P<member>NAME)\s*+(?:\([^(){}]*+\)\s*+)?:|(?P<constant>NAME)(?=[\s,}@])|[{}()]",
    }
)
_LABELS = {"fragment": "function", "operation": "function"}
_CODE = frozenset(("fragment", "operation"))  # selections in them define nothing


def walk(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> WalkResult:  # noqa: ARG001
    text = opaque(cleaned, language)
    found: list[DefinitionMark] = []
    blocks: list[tuple[str, bytes, DefinitionMark | None]] = [("", b"", None)]
    for match in _PATTERNS[language].finditer(text):
        kind = match.lastgroup or ""
        around, scope, _ = blocks[-1]
        mark: DefinitionMark | None = None
        if kind and kind != "extend" and around not in _CODE and (kind != "constant" or around == "enum"):
            label = ("constant" if around == "enum" else "field") if kind == "member" else _LABELS.get(kind, kind)
            if kind != "member" or around:
                mark = DefinitionMark(*match.span(kind), label, scope)
                mark.start = match.start() + len(match[0]) - len(match[0].lstrip())
                found.append(mark)
        if match[0].endswith(b"{"):
            inner = join(scope, text[mark.begin : mark.end]) if mark else scope
            blocks.append((kind or around, inner, mark))
        elif text[match.start()] == CLOSING and len(blocks) > 1:
            opened = blocks.pop()[2]
            if opened is not None:
                opened.stop = match.end()
    return WalkResult(found, text, _finish)


def _finish(cleaned: bytes, text: bytes, marks: list[DefinitionMark], language: str) -> None:
    source = b"\n" + cleaned
    ends = Statements(text, semicolons=language == "protobuf")
    for mark in marks:
        mark.stop = trimmed(source, mark.end, mark.stop if mark.stop >= 0 else ends.end(mark.end))
