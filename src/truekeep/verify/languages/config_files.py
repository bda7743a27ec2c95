"""Config files: YAML, TOML, JSON, INI, .env and properties. Every key is a definition."""

from __future__ import annotations

from collections.abc import Sequence

from truekeep.verify.languages.lexer import BLANK, framed, repaint, without_text_blocks
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, column_of, dedent_to, join, trimmed

_PATTERNS = Patterns(
    {
        "yaml": rb"\n((?:\h|-\h)*+)(?P<key>[\w.$/@*<~+-][^\s:#\"'{}\[\],&!|>%]*+(?:[ ][\w./()-]++)*+|\"[^\"\n]++\""
        rb"|'[^'\n]++')\h*+:(?=\s)",
        "yaml block": rb"(\n(\h*+(?:-\h++)*+)[^\n]*?(?:(?<=:)|(?<=-))\h++(?:[&!]\S++\h++)?[|>][-+0-9]*+"
        rb"[ \t\r]*+(?=\n))",
        "toml": rb"\n(\h*+)(?:\[\[?\h*+(?P<table>[^\]\n]++)\]|(?P<key>(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
        rb"(?:\h*+\.\h*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+'))*+)\h*+=)",
        "ini": rb"\n(\h*+)(?:\[(?P<table>[^\]\n]++)\]|(?P<key>[A-Za-z0-9_][\w./-]*+(?:[ ][\w.-]++)*+)\h*+[=:])",
        "env": rb"\n(\h*+)(?:export\h++)?(?P<key>[A-Za-z_][\w.-]*+)\h*+=",
        "properties": rb"\n(\h*+)(?P<key>(?:[^\s=:\\#!]|\\[^\n])++)\h*+[=:]",
        "dotted": rb"\"([^\"\n]++)\"|'([^'\n]++)'|([\w-]++)",
        "json": rb"\"([^\"\\\n]{1,200}+)\"(?=\s*+:)|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|[{}\[\]]",
    }
)


def walk(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> WalkResult:  # noqa: ARG001
    return _walk_json(cleaned) if language == "json" else _walk_keys(cleaned, language)


def _walk_keys(cleaned: bytes, language: str) -> WalkResult:
    text = framed(cleaned)
    if language == "toml" and (b'"""' in text or b"'''" in text):
        text = framed(repaint(cleaned, language, without_text_blocks))
    elif language == "yaml" and (b"|" in text or b">" in text):
        text = _without_scalars(text)
    found: list[DefinitionMark] = []
    parents: list[tuple[int, bytes]] = []
    table = b""
    for match in _PATTERNS[language].finditer(text):
        kind = match.lastgroup or ""
        begin, end = match.span(kind)
        if language == "yaml":
            indent = len(match[1].expandtabs(8))
            while parents and indent <= parents[-1][0]:
                parents.pop()
            scope = parents[-1][1] if parents else b""
            if text[begin] in b"\"'":
                begin, end = begin + 1, end - 1
            found.append(DefinitionMark(begin, end, "key", scope, begin))
            if len(parents) < 50:
                parents.append((indent, join(scope, text[begin:end])))
        elif language == "toml":
            scope = _add_dotted(text, begin, end, b"" if kind == "table" else table, found)
            table = scope if kind == "table" else table
        elif kind == "table":
            table = match[kind].strip()
            found.append(DefinitionMark(begin, end, "key", b"", begin))
        else:
            found.append(DefinitionMark(begin, end, "key", table, begin))
    return WalkResult(found, text, _finish)


def _without_scalars(text: bytes) -> bytes:
    """Blank the lines of YAML block scalars, which are indented more than their key."""
    parts: list[bytes] = []
    at = 0
    while match := _PATTERNS["yaml block"].search(text, at):
        end = dedent_to(len(match[2])).search(text, match.end())
        stop = end.start() if end else len(text)
        parts += (text[at : match.end()], text[match.end() : stop].translate(BLANK))
        at = stop
    parts.append(text[at:])
    return b"".join(parts)


def _add_dotted(text: bytes, begin: int, end: int, scope: bytes, found: list[DefinitionMark]) -> bytes:
    """Add every part of `a."b".c`; return the whole key."""
    for match in _PATTERNS["dotted"].finditer(text, begin, end):
        group = match.lastindex or 0
        found.append(DefinitionMark(*match.span(group), "key", scope, begin))
        scope = join(scope, match[group])
    return scope


def _walk_json(cleaned: bytes) -> WalkResult:
    text = framed(cleaned)
    found: list[DefinitionMark] = []
    stack: list[tuple[bytes, DefinitionMark | None]] = [(b"", None)]
    mark: DefinitionMark | None = None
    for match in _PATTERNS["json"].finditer(text):
        byte = text[match.start()]
        if match[1] is not None:
            mark = DefinitionMark(*match.span(1), "key", stack[-1][0], match.start())
            found.append(mark)
        elif byte in b"{[":
            scope = stack[-1][0]
            stack.append((join(scope, text[mark.begin : mark.end]) if mark and len(stack) < 20 else scope, mark))
            mark = None
        elif byte in b"}]" and len(stack) > 1:
            opened = stack.pop()[1]
            if opened is not None:
                opened.stop = match.end()
    return WalkResult(found, text, _finish)


def _finish(cleaned: bytes, text: bytes, marks: list[DefinitionMark], language: str) -> None:
    source = b"\n" + cleaned
    fuel = 20 * len(text)
    for index, mark in enumerate(marks):
        if mark.stop < 0:
            mark.stop = line = text.find(b"\n", mark.end)
            if language == "yaml" and fuel > 0:
                dedent = dedent_to(column_of(text, mark.begin)).search(text, line)
                mark.stop = dedent.start() if dedent else len(text)
                fuel -= mark.stop - line
            elif language == "toml" and index + 1 < len(marks):
                mark.stop = max(line, text.rfind(b"\n", line, marks[index + 1].start))
        mark.stop = trimmed(source, mark.end, mark.stop)
