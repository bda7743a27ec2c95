"""Definitions by tree-sitter: a grammar parses a file, and the language's query says which nodes define something.

A query is a file in `queries/`. These captures mean something to this module; those that begin with `_` are for
predicates:

- `@name` is the name of a definition, and any other capture of the same pattern (`@class`, `@method`, `@field` ...) is
  the definition; the capture's name is its kind. Two `@name` of one match are one name. `@declarator` replaces `@name`
  in C and C++: the name is the innermost node of the declarator.
- `@in` says what a definition belongs to when it is not inside of it (the receiver of a Go method).
- `@body` is a body that the grammar puts behind the definition, instead of into it.
- `@scope` with `@scope.name` is a node that defines nothing, but its members belong to that name (`impl`, `extension`).
- `@local` is code: variables and fields in it do not count, functions and types do. `@open` is the reverse.
- `@attribute` belongs to the definition behind it. `@ignore` is a name that only imports something.
- `@unparsed` is text that the grammar does not look into, such as the arguments of a Rust macro.

A kind may have a suffix: `.always` counts in functions as well, `.member` only where fields count, `.promoted` is a
parameter that is a field of the class around, `.global` belongs to nothing, `.leaf` is no scope for what is in it, and
`.rest` is a scope up to the end of the file. `; inherits: other` in the first line adds the patterns of another file.
When two patterns find the same name, the first one counts.

The files may be hostile. Parsing stops after a time limit. Text that was not parsed, and what the grammar takes for
an error, is searched for keywords with a name behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, simplefilter

from truekeep.verify.languages.lexer import framed, repaint, without_strings
from truekeep.verify.languages.markup import only_scripts
from truekeep.verify.languages.patterns import compile_pattern
from truekeep.verify.languages.preprocessor import without_cpp_macros, without_directives, without_macro_words
from truekeep.verify.languages.registry import GRAMMARS, MARKUP, Grammar
from truekeep.verify.languages.tokens import LEXES
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, is_text, join, trimmed

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Query, Tree

_SECONDS = 0.25  # of CPU time that parsing any file may take ...
_SECONDS_PER_BYTE = 1e-6  # ... and what its size adds: about five times what a usual file needs
_BEFORE_NAME = 600  # bytes before a wanted name in which its attributes end
_WHOLE_FILE_QUERIES = frozenset(("csharp",))  # `namespace A;` holds what follows, wherever that is
_SMALL = 20_000  # bytes that are parsed in any case
_MINIFIED_LINE = 400  # bytes of an average line of a file that a program wrote
_MAX_UNBALANCED = 500  # brackets that are not closed: recovering from them takes some grammars minutes
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_ONLY_ASCII = bytes(byte if byte < 128 else 95 for byte in range(256))  # bytes that are no UTF-8 crash some grammars
_TYPES = frozenset(
    (
        "class",
        "struct",
        "interface",
        "enum",
        "trait",
        "protocol",
        "record",
        "union",
        "object",
        "module",
        "namespace",
        "type",
    )
)
_FUNCTIONS = frozenset(("function", "method"))
_ALWAYS_COUNT = _TYPES | _FUNCTIONS | {"macro", "export", "given"}
_REGIONS = frozenset(("local", "open", "scope"))
_NOT_KINDS = frozenset(("name", "declarator", "in", "body"))
_TYPE_ARGUMENTS = re.compile(rb"<[^<>]*+>|\[[^\[\]]*+\]")
_QUALIFIERS = re.compile(rb"::|[.:\\]")
_LINE_BREAKS_OF_STATEMENTS = (b";", b"{", b"}", b"(", b",")
_KEYWORD = compile_pattern(
    rb"(?<=[\n;{}])\h*+(?:[a-z]++(?:\([a-z]*+\))?\h++){0,4}?"
    rb"(?P<keyword>class|struct|interface|enum(?:\h++(?:class|struct))?|trait|protocol|record|union|module|namespace|fn|fun|func"
    rb"|function|def|type|typealias|object(?=\h++\w++\h*+[:{(])|(?:const|static)(?=\h++[A-Z][A-Z0-9_]++\h*+[:=]))\h++"
    rb"(?:NAME(?:<[^<>\n]*+>)?\??\.)*+(?P<name>NAME)(?!\h*+[.=,)]\h)"
)
# The Kotlin grammar wants a line break or a semicolon behind the last member of a body, as in `{ fun f() {} }`.
_KOTLIN_ONE_LINE_BODY = re.compile(rb"(?<=[\w)}\]\"'?]) (?=\})")
# It takes `actual` and `expect` behind an annotation for names.
_KOTLIN_PLATFORM = compile_pattern(rb"(?<![\w.])(?:actual|expect)(?=\h++(?:[a-z]++\h++)*+[A-Za-z])")
# It does not know that a primary constructor may stand on a line of its own, either.
_KOTLIN_CONSTRUCTOR = compile_pattern(
    rb"(\bclass\h++\w++(?:<[^<>\n]*+>)?\h*+)\n(?=\h*+(?:(?:@\w++|[a-z]++)\h++)*+constructor\h*+\()"
)
_CPP = re.compile(rb"\n(?:(?:namespace|template|class|using)\b| *(?:public|private):)")
_CPP_QUALIFIED = re.compile(rb"\n[^\"\n]*\w::~?\w")  # not in a string, which may be C
_KEYWORD_KINDS = {
    **dict.fromkeys(("fn", "fun", "func", "def"), "function"),
    **dict.fromkeys(("const", "static"), "constant"),
    "typealias": "type",
}


def walk(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> WalkResult:
    """Find the definitions of a file without comments, or only those whose names are in these spans."""
    source = _parse_source(cleaned, language)
    if source.tree is None:
        found = list(_search_keywords(source.text, 0, len(source.text), source.language, b""))
    else:
        is_whole = near is None or source.grammar.query in _WHOLE_FILE_QUERIES
        ranges = None if is_whole else _ranges_around(near or (), source.text)
        found = _Sweep(source, _read_matches(source, ranges)).found
    return WalkResult(source.macros + found, source.text, _finish)


class _Source(NamedTuple):
    """A file as it is parsed."""

    text: bytes
    language: str
    grammar: Grammar
    tree: Tree | None
    """None if parsing took too long."""
    macros: list[DefinitionMark]


@lru_cache(maxsize=2)
def _parse_source(cleaned: bytes, language: str) -> _Source:
    text = framed(only_scripts(cleaned) if language in MARKUP else cleaned)
    if not is_text(text):
        text = text.translate(_ONLY_ASCII)
    macros: list[DefinitionMark] = []
    if language in ("c", "cpp", "csharp"):
        text = without_macro_words(without_directives(text, macros))
    elif language == "kotlin":
        text = _KOTLIN_PLATFORM.sub(b"      ", text)
        text = _KOTLIN_CONSTRUCTOR.sub(rb"\1 ", _KOTLIN_ONE_LINE_BODY.sub(b";", text))
    if language == "c" and _is_cpp(text):
        language = "cpp"
    if language == "cpp":
        text = without_cpp_macros(text)
    for grammar in GRAMMARS[language]:
        tree = _parse(text, grammar)
        if tree is None or not tree.root_node.has_error:
            break
    return _Source(text, language, grammar, tree, macros)


def _is_cpp(text: bytes) -> bool:
    """Whether a file with the ending of C is C++."""
    return bool(
        b"constexpr" in text
        or b"typename" in text
        or _CPP.search(text)
        or (b"::" in text and _CPP_QUALIFIED.search(text))
    )


def _ranges_around(near: Sequence[tuple[int, int]], text: bytes) -> list[tuple[int, int]] | None:
    """Return the parts of a text that decide what names in these spans are; None if they are most of it."""
    ranges: list[tuple[int, int]] = []
    size = 0
    for begin, end in near:  # the text begins with a line break, which these offsets do not count
        start, stop = max(0, begin - _BEFORE_NAME), end + 1
        if ranges and start <= ranges[-1][1]:
            start, last = ranges.pop()
            stop = max(stop, last)
            size -= last - start
        ranges.append((start, stop))
        size += stop - start
    return None if 2 * size > len(text) else ranges


@cache
def _language(grammar: Grammar) -> Language:
    from tree_sitter import Language

    return Language(getattr(import_module(grammar.module), grammar.function)())


@cache
def _parser(grammar: Grammar) -> Parser:
    from tree_sitter import Parser

    return Parser(_language(grammar))


@cache
def _query(grammar: Grammar) -> Query:
    from tree_sitter import Query

    return Query(_language(grammar), _query_text(grammar.query))


def _query_text(name: str) -> str:
    text = (files(__package__) / "queries" / f"{name}.scm").read_text(encoding="utf-8")
    inherited = re.match(r"; inherits: (\w+)\n", text)
    return text + _query_text(inherited[1]) if inherited else text


def _parse(text: bytes, grammar: Grammar) -> Tree | None:
    """Parse a text; None if that takes too long, because error recovery can take quadratic time."""
    is_minified = len(text) > _SMALL and len(text) > _MINIFIED_LINE * text.count(b"\n")
    if is_minified or any(
        abs(text.count(opening) - text.count(closing)) > _MAX_UNBALANCED for opening, closing in _BRACKETS
    ):
        return None
    parser = _parser(grammar)
    limit = _SECONDS + _SECONDS_PER_BYTE * len(text)
    _set_time_limit(parser, limit)
    begun = thread_time()
    while True:
        try:
            return parser.parse(text)
        except ValueError:  # the time is over; a parser that is not reset goes on where it stopped
            if thread_time() - begun >= limit / 2:  # its clock also runs while other processes have the CPU
                parser.reset()
                return None


def _set_time_limit(parser: Parser, seconds: float) -> None:
    """Limit the time of one call. The binding wants a callback instead, with which it crashes."""
    with catch_warnings():
        simplefilter("ignore", DeprecationWarning)
        # The stub of the binding hides the setter. 0 would mean no limit.
        parser.timeout_micros = max(1, int(1e6 * seconds))  # type: ignore[misc]


class _Definition(NamedTuple):
    """A definition as a query finds it."""

    start: int
    stop: int
    order: int
    """Which of the query's patterns found it."""
    name: tuple[int, int]
    kind: str
    suffix: str
    holder: bytes
    """What the code around its name says it belongs to: the receiver of a method; "exports"."""
    qualifier: bytes
    """What stands before its name: `a::b` of `a::b::name`."""


class _Matches(NamedTuple):
    """What a query found in a file."""

    definitions: dict[int, _Definition]
    """By where the name begins."""
    regions: dict[tuple[int, int], tuple[str, bytes]]
    """By start and stop: local, open or scope, and the name of a scope."""
    attributes: dict[int, int]
    """By stop, where each starts."""
    unparsed: list[tuple[int, int]]


def _find_matches(
    source: _Source, ranges: Sequence[tuple[int, int]] | None
) -> Iterator[tuple[int, dict[str, list[Node]]]]:
    """Run a query on parts of a syntax tree, or on all of it."""
    from tree_sitter import QueryCursor

    assert source.tree is not None
    cursor = QueryCursor(_query(source.grammar))
    if ranges is None:
        yield from cursor.matches(source.tree.root_node)
    for part in ranges or ():
        cursor.set_byte_range(*part)
        yield from cursor.matches(source.tree.root_node)


def _read_matches(source: _Source, ranges: Sequence[tuple[int, int]] | None) -> _Matches:
    text, tree = source.text, source.tree
    assert tree is not None
    found = _Matches({}, {}, {}, [])
    ignored: dict[int, int] = {}
    for order, captures in _find_matches(source, ranges):
        if "name" in captures or "declarator" in captures:
            definition = _read_definition(text, order, captures)
            if definition is not None:
                known = found.definitions.get(definition.name[0])
                if known is None or order < known.order:
                    found.definitions[definition.name[0]] = definition
            continue
        for capture, nodes in captures.items():
            node = nodes[0]
            span = node.start_byte, node.end_byte
            if capture in _REGIONS:
                scope = captures.get("scope.name")
                found.regions.setdefault(span, (capture, _bare_type(_text_of(text, scope[0])) if scope else b""))
            elif capture == "attribute":
                found.attributes[span[1]] = span[0]
            elif capture == "ignore":
                ignored[span[0]] = span[1]
            elif capture == "unparsed":
                found.unparsed.append(span)
    if tree.root_node.has_error:
        found.unparsed.extend((begin, _end_of_next_line(text, end)) for begin, end in _error_spans(tree.root_node))
    for begin, end in ignored.items():
        for name in [name for name in found.definitions if begin <= name < end] if end - begin < 2000 else ():
            del found.definitions[name]
    return found


def _end_of_next_line(text: bytes, at: int) -> int:
    line = text.find(b"\n", at) + 1
    return text.find(b"\n", line) + 1 or len(text) if line else len(text)


def _error_spans(root: Node) -> Iterator[tuple[int, int]]:
    """The outermost parts of a tree that the grammar could not make sense of."""
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node is not None
        if node.is_error:
            yield node.start_byte, node.end_byte
        if node.is_error or not node.has_error or not cursor.goto_first_child():
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent():
                    return


def _read_definition(text: bytes, order: int, captures: dict[str, list[Node]]) -> _Definition | None:
    kind, node = next((key, nodes[0]) for key, nodes in captures.items() if key not in _NOT_KINDS and key[0] != "_")
    kind, _, suffix = kind.partition(".")
    if "declarator" in captures:
        name, is_function = _innermost(captures["declarator"][0])
        begin, end = name.start_byte, name.end_byte
        if b"operator " in text[begin:end] and (opened := text.find(b"(", begin, end)) >= 0:  # a conversion of C++
            end = trimmed(text, begin, opened)
        if is_function and kind in ("variable", "field"):
            kind = "function"
    else:
        begin, end = captures["name"][0].start_byte, captures["name"][-1].end_byte
        if text.startswith(b"r#", begin):  # a word of Rust that is a keyword otherwise
            begin += 2
        if text[begin : begin + 1] in (b":", b"`") and end - begin > 1:  # a symbol of Ruby, a quoted name of Kotlin
            end -= text[begin] == text[end - 1]
            begin += 1
    qualifier = b""
    if "name" not in captures or not captures["name"][0].type.startswith(("string", "template")):
        begin, qualifier = _split_name(text, begin, end)
    if text[end - 1 : end] == b">" and not text.startswith(b"operator", begin):  # a specialization of a template
        end = max(begin, text.find(b"<", begin, end))
    if begin >= end or text[begin:end] == b"_" or text.find(b"\n", begin, end) >= 0:
        return None
    start, stop = _extent(text, node, captures)
    holder = _bare_type(_text_of(text, captures["in"][0])) if "in" in captures else b""
    return _Definition(start, stop, order, (begin, end), kind, suffix, holder, qualifier)


def _extent(text: bytes, node: Node, captures: dict[str, list[Node]]) -> tuple[int, int]:
    """Where a definition starts and stops; of `int a, b;`, where each of both does."""
    start, stop = node.start_byte, node.end_byte
    if "body" in captures:
        stop = captures["body"][0].end_byte
    elif "declarator" in captures:
        declarator = captures["declarator"][0]
        kind = node.child_by_field_name("type")
        if text.find(b",", kind.end_byte if kind else start, declarator.start_byte) >= 0:
            start = declarator.start_byte
        if text[declarator.end_byte : declarator.end_byte + 100].lstrip().startswith(b","):
            stop = declarator.end_byte
    return start, stop


def _innermost(node: Node) -> tuple[Node, bool]:
    """The name in a declarator of C, and whether it is that of a function."""
    is_function = False
    for _ in range(20):
        if node.type == "operator_cast":
            return node, True
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type.startswith("template_"):
            inner = node.child_by_field_name("name")
        elif inner is None:
            if not node.type.endswith("_declarator") or not node.named_child_count:
                break
            inner = node.named_children[-1]
            is_function = is_function and not node.type.startswith("parenthesized")
        else:
            is_function = node.type == "function_declarator"
        if inner is None:
            break
        node = inner
    return node, is_function


def _text_of(text: bytes, node: Node) -> bytes:
    return text[node.start_byte : node.end_byte]


def _bare_type(name: bytes) -> bytes:
    """A type as a scope is written: without its arguments, with points between its parts."""
    name = name[:500].strip(b"&*?! \t\r\n")
    for _ in range(6):
        name, count = _TYPE_ARGUMENTS.subn(b"", name)
        if not count:
            break
    words = name.replace(b"dyn ", b"").split()
    return _QUALIFIERS.sub(b".", words[-1] if words else b"")


def _split_name(text: bytes, begin: int, end: int) -> tuple[int, bytes]:
    """Where the last part of a qualified name begins, and what stands before it."""
    name = text[begin:end]
    if name.startswith((b"operator", b"-", b"#")) or not (
        cuts := list(_QUALIFIERS.finditer(name.partition(b"operator")[0]))
    ):
        return begin, b""
    cut = cuts[-1]
    return begin + cut.end() + len(name[cut.end() :]) - len(name[cut.end() :].lstrip()), _bare_type(name[: cut.start()])


class _Region(NamedTuple):
    start: int
    stop: int
    scope: bytes
    is_local: bool
    owner: bytes | None
    """The type around, if any."""
    outer: bytes | None = None
    """Of a definition: what it belongs to itself."""


class _Sweep:
    """Goes through a file's matches in order, and finds out what each definition belongs to and whether it counts."""

    def __init__(self, source: _Source, matches: _Matches) -> None:
        self.text = text = source.text
        self.found: list[DefinitionMark] = []
        self._attributes = matches.attributes
        self._stack = [_Region(0, len(text), b"", False, None)]
        items: list[tuple[int, int, int, _Definition | tuple[str, bytes] | None]] = [
            (one.start, -one.stop, one.order, one) for one in matches.definitions.values()
        ]
        items += [(start, -stop, -1, region) for (start, stop), region in matches.regions.items()]
        items += [(start, -stop, 0, None) for start, stop in matches.unparsed]
        items.sort(key=lambda item: item[:3])
        known = matches.definitions.keys()
        unparsed = 0
        for start, stop, _, item in items:
            while start >= self._stack[-1].stop and len(self._stack) > 1:
                self._stack.pop()
            if isinstance(item, _Definition):
                self._define(item)
            elif item is not None:
                self._enter(start, -stop, *item)
            elif start >= unparsed:
                unparsed = -stop
                marks = _search_keywords(text, max(0, start - 1), -stop, source.language, self._stack[-1].scope)
                self.found += (mark for mark in marks if mark.begin not in known)

    def _enter(self, start: int, stop: int, kind: str, name: bytes) -> None:
        top = self._stack[-1]
        if kind == "scope":
            self._stack.append(_Region(start, stop, name, False, name))
        else:
            self._stack.append(top._replace(start=start, stop=stop, is_local=kind == "local", outer=None))

    def _define(self, one: _Definition) -> None:
        top = self._stack[-1]
        is_sibling = top.outer is not None and (top.start, top.stop) == (one.start, one.stop)  # `x, y` of `int x, y`
        scope = (top.outer or b"") if is_sibling else top.scope
        if one.suffix == "promoted":
            scope = top.owner or b""
        elif one.suffix == "global" or one.holder.partition(b".")[0] in (b"exports", b"module"):
            scope = b""
        elif one.holder and one.holder != b"this":
            scope = one.holder if top.is_local or not scope else scope
        elif top.is_local and (one.suffix == "member" or (one.kind not in _ALWAYS_COUNT and one.suffix != "always")):
            return
        if one.qualifier:
            scope = join(scope, one.qualifier)
        kind = "method" if one.kind == "function" and scope and not top.is_local else one.kind
        name = self.text[slice(*one.name)]
        self.found.append(DefinitionMark(*one.name, kind, scope, self._statement_start(one.start), one.stop))
        if is_sibling or one.suffix == "leaf":
            return
        inner = join(scope, name)
        is_local = kind in _FUNCTIONS or (top.is_local and kind not in _TYPES)
        stop = len(self.text) if one.suffix == "rest" else one.stop
        owner = inner if kind in _TYPES else top.owner
        self._stack.append(_Region(one.start, stop, inner, is_local, owner, outer=scope))

    def _statement_start(self, start: int) -> int:
        """Where a definition begins with its modifiers on the same line, and its attributes."""
        text = self.text
        line = text.rfind(b"\n", max(0, start - 500), start) + 1
        if line:
            begin = max(line, *(text.rfind(mark, line, start) + 1 for mark in _LINE_BREAKS_OF_STATEMENTS))
            start = begin + len(text[begin:start]) - len(text[begin:start].lstrip())
        for _ in range(50):
            before = trimmed(text, max(0, start - 5000), start)
            if before not in self._attributes:
                break
            start = self._attributes[before]
        return start


def _search_keywords(text: bytes, start: int, stop: int, language: str, scope: bytes) -> Iterator[DefinitionMark]:
    """Find keywords with a name behind them in text that was not parsed."""
    part = repaint(text[start:stop], language, without_strings) if language in LEXES else text[start:stop]
    for match in _KEYWORD.finditer(part):
        keyword = match["keyword"].decode().split()[0]
        line = part.find(b"\n", match.end())
        end = trimmed(part, match.end(), line if line >= 0 else len(part))
        kind = _KEYWORD_KINDS.get(keyword, keyword)
        begin, behind = match.span("name")
        yield DefinitionMark(start + begin, start + behind, kind, scope, start + match.start("keyword"), start + end)


def _finish(cleaned: bytes, text: bytes, marks: list[DefinitionMark], language: str) -> None:  # noqa: ARG001
    """Leave out the blanks at the end of definitions. A syntax tree says where each begins and ends."""
    source = framed(cleaned)
    for mark in marks:
        mark.stop = trimmed(source, mark.end, mark.stop)
