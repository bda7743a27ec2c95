"""Languages whose definitions begin at the start of a line: Ruby, shell, Lua, Perl, Elixir, SQL, make, CSS and others.

A table for each, and one walker for all.
"""

from __future__ import annotations

import re
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
    """How a body ends: with an "end", a "brace", a "dedent", a "semicolon" or with its "line"."""
    scopes: tuple[str, ...] = ()
    """The kinds that contain other definitions."""
    opaque: bool = True
    """Whether the content of strings is ignored."""


_LINES: dict[str, _LineLanguage] = {
    "ruby": _LineLanguage(
        rb"\n(\h*+)(?:(?:private|protected|public|module_function|private_class_method|memoize|helper_method)\h++)?+(?:"
        rb"def\h++(?:self\.|[\w:]++\.)?+(?P<function>[\w\x80-\xff]++[?!]?+(?:=(?=\h*+[\w(]))?|[-+*/%=<>!~^&|\[\]]++@?)"
        rb"|class\h*+<<\h*+(?P<singleton>self)\b|class\h++(?P<class>[\w:]++)|module\h++(?P<module>[\w:]++)"
        rb"|[cm]?attr_(?:accessor|reader|writer)\b[ \t(]*+(?P<fields>:\w[^\n]*+)"
        rb"|(?:alias_method|define_method|scope|has_many|has_one|belongs_to|has_and_belongs_to_many|attribute)[ \t(]++"
        rb":(?P<generated>\w++[?!]?+)"
        rb"|alias\h++:?(?P<alias>\w++[?!]?+)"
        rb"|(?P<constant>[A-Z]\w*+)\h*+(?:\|\|)?=(?![=~>]))",
        "end",
        ("class", "module"),
    ),
    "lua": _LineLanguage(
        rb"\n(\h*+)(?:local\h++)?+(?:function\h++(?P<function>[\w.:]++)"
        rb"|(?P<assigned>[A-Za-z_][\w.]*+)\h*+=\h*+function\b"
        rb"|(?<=\n)(?P<variable>[A-Za-z_][\w.]*+)\h*+=(?!=)"
        rb"|(?<=\nlocal )(?P<local>[A-Za-z_]\w*+)\h*+=(?!=)(?!\h*+require\b))",
        "end",
    ),
    "elixir": _LineLanguage(
        rb"\n(\h*+)(?:(?:defp?|defmacrop?|defguardp?|defdelegate)\h++(?P<function>[a-z_]\w*+[?!]?+)"
        rb"|def(?:module|protocol)\h++(?P<module>[\w.]++)|@(?:typep?|opaque|callback|macrocallback)\h++(?P<type>\w++)"
        rb"|@(?P<constant>(?!(?:doc|moduledoc|spec|impl|typep?|opaque|callback|behaviour|typedoc|tag|describetag)\b)"
        rb"[a-z_]\w*+)\h++[^\s|=,)])",
        "end",
        ("module",),
    ),
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
    "haskell": _LineLanguage(
        rb"\n()(?:(?:data|newtype|class|type)\h++(?:(?:family|instance)\h++)?(?:[^\n=]*?=>\h*+)?(?P<type>[A-Z][\w']*+)"
        rb"|(?P<function>[a-z_][\w']*+)(?=(?:\h*+,\h*+[\w']++)*+\h*+(?:\n\h++)?::)|module\h++(?P<module>[\w.]++))",
        "dedent",
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
    "terraform": _LineLanguage(
        rb"\n(\h*+)(?:(?:resource|data)\h++\"[\w.-]++\"\h++\"(?P<resource>[\w.-]++)\""
        rb"|(?:variable|output|module|provider)\h++\"(?P<variable>[\w.-]++)\"|(?P<locals>locals)\h*+\{"
        rb"|(?P<setting>[A-Za-z_][\w-]*+)\h*+=(?![=>]))",
        "brace",
        opaque=False,
    ),
    "css": _LineLanguage(
        rb"\n(\h*+)(?:(?P<variable>--[\w-]++|\$[\w-]++|@[\w-]++)\h*+:|@mixin\h++(?P<function>[\w-]++)"
        rb"|\.(?P<rule>[A-Za-z_][\w-]*+)(?=[^\n;:{}]*+(?:::?[\w-]++[^\n;:{}]*+)*+[,{\n]))",
        "brace",
    ),
}
_LABELS = {
    "assigned": "function", "plain": "function", "local": "variable", "inner": "type", "value": "function",
    "generated": "alias", "rule": "class", "setting": "variable",
}  # fmt: skip
_LISTS = {  # patterns for the names in a list
    "fields": ("field", rb":(\w++[?!]?+)"),
    "targets": ("target", rb"(?:^|(?<=\s))(?!\.[A-Z])([^\s$(){}]++)(?=\s|$)"),
    "settings": ("variable", rb"(?:^|(?<=\s))([A-Za-z_]\w*+)(?:=(?:\"[^\"]*+\"|'[^']*+')?|(?=\h|$))"),
}
_SEPARATORS = {"ruby": (b"::",), "lua": (b".", b":"), "perl": (b"::",), "elixir": (b".",)}
_PATTERNS = Patterns(
    {
        "body": rb"[^\n{};=]*?\s*+\{|\h*+=\h*+\{",
        "one line": rb";[^\n]*\bend\b|\bend[ \t\r]*+$|\)\h*+=\h|^\h*+=\h|,\h*+do:",
        "recipe": rb"(?:\n(?:\t[^\n]*+|\h*+(?=\n\t)))*+",
        **{kind: pattern for kind, (_, pattern) in _LISTS.items()},
    }
)


@cache
def _pattern_of(language: str) -> re.Pattern[bytes]:
    return compile_pattern(_LINES[language].pattern)


def walk(cleaned: bytes, language: str) -> WalkResult:
    table = _LINES[language]
    text = opaque(cleaned, language) if table.opaque else framed(cleaned)
    found: list[DefinitionMark] = []
    scopes: list[tuple[int, bytes]] = []
    local_block = False
    for match in _pattern_of(language).finditer(text):
        kind = match.lastgroup or ""
        indent, start = len(match[1].expandtabs(8)), match.end(1)
        while scopes and indent <= scopes[-1][0]:
            scopes.pop()
        scope = scopes[-1][1] if scopes else b""
        begin, end = match.span(kind)
        if kind == "singleton":
            scopes.append((indent, scope))
        elif kind in _LISTS:
            names = _PATTERNS[kind].finditer(text, begin, end)
            if kind == "settings" and b"=" not in match[kind]:
                names = iter(list(names)[:1])  # ENV name value
            found += (DefinitionMark(*name.span(1), _LISTS[kind][0], scope, start) for name in names)
        elif language == "terraform" and kind in ("locals", "setting"):
            local_block = kind == "locals" or (local_block and indent > 0)
            if kind == "setting" and (local_block or not indent):
                found.append(DefinitionMark(begin, end, "variable", b"", start))
        else:
            local_block = False
            for separator in _SEPARATORS.get(language, ()):
                if (cut := text.rfind(separator, begin, end)) >= 0:
                    scope = join(scope, text[begin:cut].replace(separator, b"."))
                    begin = cut + len(separator)
            if begin < end:
                label = match["what"].lower().decode() if kind == "created" else _LABELS.get(kind, kind)
                label = "method" if label == "function" and scope else label
                found.append(DefinitionMark(begin, end, label, scope, start))
                if kind in table.scopes:
                    scopes.append((indent, join(scope, text[begin:end])))
                elif language == "perl" and kind == "module":
                    scopes = [(-1, join(scope, text[begin:end]))]
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
        elif is_plain and style in ("end", "brace"):
            stop = ends.end(mark.end)
        elif style == "end" and not is_plain and not _PATTERNS["one line"].search(text, mark.end, line):
            close = _closing_word(column_of(text, mark.start)).search(text, line)
            stop = close.end() if close else line
            fuel -= 0 if close else len(text) - line
        elif style == "dedent":
            close = dedent_to(column_of(text, mark.start)).search(text, line)
            stop = close.start() if close else len(text)
        elif style == "semicolon":
            stop = text.find(b";", mark.end) + 1 or len(text)
        elif style == "recipe" and mark.kind == "target" and (recipe := _PATTERNS["recipe"].match(text, line)):
            stop = recipe.end()
        fuel -= stop - line
        mark.stop = trimmed(source, mark.end, stop)


@cache
def _closing_word(indent: int) -> re.Pattern[bytes]:
    return compile_pattern(rb"\n\h{%d}end\b" % min(indent, 1000))
