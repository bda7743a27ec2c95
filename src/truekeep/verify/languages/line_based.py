"""Languages that are read line by line: Perl, shell, OCaml, Nim, SQL, make, Dockerfile, CSS. A table for each.

Either no grammar is on the package index (Nim), or reading lines copes better with dialects and templates (SQL,
shell, make).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from truekeep.verify.languages.lexer import framed, opaque
from truekeep.verify.languages.patterns import Patterns, compile_pattern
from truekeep.verify.languages.statements import Statements, bracket_pairs
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, column_of, dedent_to, join, trimmed


class _LineLanguage(NamedTuple):
    """The patterns of a language whose definitions begin at the start of a line. Group 1 is the indent."""

    pattern: bytes
    ends: str
    """How a body ends: with a "brace", a "dedent", a "semicolon", a "recipe" or with its "line"."""
    opaque: bool = True
    """Whether the content of strings is ignored."""


_LINES: dict[str, _LineLanguage] = {
    "perl": _LineLanguage(
        rb"\n(\h*+)(?:sub\h++(?P<function>\w++)|package\h++(?P<module>[\w:]++)|our\h++[$@%](?P<variable>\w++)"
        rb"|use\h++constant\h++(?P<constant>[A-Za-z_]\w*+)|(?<=\n)my\h++[$@%](?P<local>\w++)\h*+=(?![=~]))",
        "brace",
    ),
    "shell": _LineLanguage(
        rb"\n(\h*+)(?:function\h++(?P<function>[\w:.-]++)|(?P<plain>[\w:.-]++)\h*+\(\h*+\)(?=[ \t\r]*+[\n{(])"
        rb"|(?:(?:export|readonly|declare|typeset)\h++(?:-\w++\h++)*+)?+(?P<variable>[A-Za-z_]\w*+)(?:\[[^\]\n]*+\])?"
        rb"\+?=(?![=~])"
        rb"|alias\h++(?P<alias>[\w.-]++)=)",
        "brace",
    ),
    "ocaml": _LineLanguage(
        rb"\n(\h*+)(?:let\h++(?:rec\h++)?(?P<function>(?!_\b)[a-z_][\w']*+)"
        rb"|type\h++(?:nonrec\h++)?(?:'\w++\h++|\([^()\n]*+\)\h++)?(?P<type>[a-z_][\w']*+)"
        rb"|module\h++(?:type\h++)?(?P<module>[A-Z]\w*+)|(?:val|external)\h++(?P<value>[a-z_][\w']*+)"
        rb"|exception\h++(?P<exception>[A-Z]\w*+))",
        "dedent",
    ),
    "nim": _LineLanguage(
        rb"\n(\h*+)(?:(?:proc|func|method|iterator|template|macro|converter)\h++`?(?P<function>\w++)"
        rb"|(?<=\n)(?:const|let|var)\h++(?P<variable>\w++)|type\h++(?P<type>\w++)"
        rb"|(?P<inner>[A-Z]\w*+)\*?\h*+(?:\[[^\]\n]*+\])?\h*+=\h*+(?:ref|object|enum|distinct|tuple|ptr)\b)",
        "dedent",
    ),
    "sql": _LineLanguage(
        rb"(?i)\n(\h*+)create\h++(?:or\h++replace\h++)?(?:(?:global|local|temp|temporary|unique|materialized|unlogged"
        rb"|external|recursive|virtual)\h++)*+(?P<what>table|view|function|procedure|index|trigger|type|schema|sequence"
        rb"|database|extension|role|policy|domain)\h++(?:concurrently\h++)?(?:if\h++not\h++exists\h++)?"
        rb"(?:[\w\"`\[\]]++\.)*+[\"`\[]?(?P<created>\w++)",
        "semicolon",
    ),
    "make": _LineLanguage(
        rb"\n()(?:(?:(?:export|override)\h++)*+(?P<variable>[A-Za-z_][\w.-]*+)\h*+(?:\?|\+|!|:{1,3}+)?="
        rb"|define\h++(?P<local>[\w.-]++)"
        rb"|(?P<targets>[A-Za-z0-9_%./$(){}-][^\n:=#\t]*+)\h*+::?+(?!=)(?![^\n=#]*+=))",
        "recipe",
    ),
    "dockerfile": _LineLanguage(
        rb"(?i)\n(\h*+)(?:(?:env|arg)\h++(?P<settings>[A-Za-z_]\w*+[^\n]*+(?:(?:(?<=\\)|(?<=\\\r))\n[^\n]*+)*+)"
        rb"|from\h++[^\n]*?\has\h++(?P<stage>[\w.-]++))",
        "line",
        opaque=False,
    ),
    "css": _LineLanguage(
        rb"\n(\h*+)(?:(?P<variable>--[\w-]++|\$[\w-]++|@[\w-]++)\h*+:|@mixin\h++(?P<function>[\w-]++)"
        rb"|\.(?P<rule>[A-Za-z_][\w-]*+)(?=[^\n;:{}]*+(?:::?[\w-]++[^\n;:{}]*+)*+[,{\n]))",
        "brace",
    ),
}
_LABELS = {
    "plain": "function", "local": "variable", "inner": "type", "value": "function", "rule": "class",
}  # fmt: skip
_LISTS = {  # the names in what lists several
    "targets": ("target", rb"(?:^|(?<=\s))(?!\.[A-Z])([^\s$(){}]++)(?=\s|$)"),
    "settings": ("variable", rb"(?:^|(?<=\s))([A-Za-z_]\w*+)(?:=(?:\"[^\"]*+\"|'[^']*+')?|(?=\h|$))"),
}
_PATTERNS = Patterns(
    {
        "body": rb"[^\n{};=]*?\s*+\{|\h*+=\h*+\{",
        "recipe": rb"(?:\n(?:\t[^\n]*+|\h*+(?=\n\t)))*+",
        **{kind: pattern for kind, (_, pattern) in _LISTS.items()},
    }
)


@cache
def _pattern_of(language: str) -> re.Pattern[bytes]:
    return compile_pattern(_LINES[language].pattern)


def walk(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> WalkResult:  # noqa: ARG001
    table = _LINES[language]
    text = opaque(cleaned, language) if table.opaque else framed(cleaned)
    found: list[DefinitionMark] = []
    package = b""  # of Perl
    for match in _pattern_of(language).finditer(text):
        kind = match.lastgroup or ""
        scope, start = package, match.end(1)
        begin, end = match.span(kind)
        if kind in _LISTS:
            names = _PATTERNS[kind].finditer(text, begin, end)
            if kind == "settings" and b"=" not in match[kind]:
                names = iter(list(names)[:1])  # ENV name value
            found += (DefinitionMark(*name.span(1), _LISTS[kind][0], scope, start) for name in names)
            continue
        if language == "perl" and kind == "module":
            cut = text.rfind(b"::", begin, end)
            scope = text[begin:cut].replace(b"::", b".") if cut >= 0 else b""
            begin = cut + 2 if cut >= 0 else begin
            package = join(scope, text[begin:end])
        if begin < end:
            label = match["what"].lower().decode() if kind == "created" else _LABELS.get(kind, kind)
            label = "method" if label == "function" and scope else label
            found.append(DefinitionMark(begin, end, label, scope, start))
    return WalkResult(found, text, _finish)


def _finish(cleaned: bytes, text: bytes, marks: list[DefinitionMark], language: str) -> None:
    source = b"\n" + cleaned
    style = _LINES[language].ends
    ends = Statements(text, semicolons=False)
    pairs = bracket_pairs(text) if style == "brace" else {}
    fuel = 20 * len(text)
    for mark in marks:
        stop = line = text.find(b"\n", mark.end)
        is_plain = mark.kind in ("field", "constant", "variable", "alias", "type")
        while is_plain and text[line - 2 : line].rstrip(b"\r").endswith(b"\\"):
            stop = line = text.find(b"\n", line + 1) if line + 1 < len(text) else len(text)
        close: re.Match[bytes] | None = None
        if fuel < 0:
            pass
        elif style == "brace" and (opened := _PATTERNS["body"].match(text, mark.end)):
            stop = pairs.get(opened.end() - 1, line)
        elif is_plain and style == "brace":
            stop = ends.end(mark.end)
        elif style == "dedent":
            close = dedent_to(column_of(text, mark.start)).search(text, line)
            stop = close.start() if close else len(text)
        elif style == "semicolon":
            stop = text.find(b";", mark.end) + 1 or len(text)
        elif style == "recipe" and mark.kind == "target" and (recipe := _PATTERNS["recipe"].match(text, line)):
            stop = recipe.end()
        fuel -= stop - line
        mark.stop = trimmed(source, mark.end, stop)
