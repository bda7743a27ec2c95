"""Python: finds definitions by indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from truekeep.verify.languages.lexer import BLANK, EQUALS, NEWLINE, Odd, Paint, framed, repaint, without_text_blocks
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.walker import DefinitionMark, WalkResult, dedent_to, indent_of, join, trimmed

_PATTERNS = Patterns(
    {
        "complete expression": rb"[\w)\]}\x80-\xff](?<!\bin)(?<!\band)(?<!\bor)(?<!\bnot)(?<!\bif)(?<!\belse)(?<!\bis)"
        rb"(?<!\breturn)(?<!\byield)(?<!\bawait)(?<!\braise)(?<!\bassert)(?<!\bfrom)(?<!\bimport)$",
        "quoted return type": rb"\)\h*+->[^\n]*[\"']:$",
        "line": rb"\n(\h*+)(?:(?:async\h++)?(?:(def)|class)\h++(NAME)"
        rb"|(@)"
        rb"|(if|elif|else|try|except|finally|with|for|while|match|case|async)\b"
        rb"(?=[ \t:(\\\[{\"'])(?!\h*+(?::\h*+[\w\"'\[]|,|=|[-+*/|&%@^]=))"
        rb"|(?:self|cls)\.(NAME)(?:(?=(?:\h*+,\h*+(?:self|cls)\.NAME)*+\h*+=(?!=))"
        rb"|\h*+:(?=[^\n]*(?:[ ]=[ ]|(?:[^\s,(\[{}]|\w\[)[ \t\r]*+(?:\n|\Z))))"
        rb"|type\h++(NAME)\h*+(?:\[[^\n]*?\]\h*+)?=(?!=)"
        rb"|\(?(TARGETS)(?:,?\h*+\)?\h*+)(?:=(?!=)|:(?=\h*+[^\s=])))",
        "continued line": rb"\\\r?\n",
        "chain": rb"\h*+(NAME)\h*+=(?!=)",
        "self chain": rb"\h*+(?:,|=(?=[^=\n]*=(?!=)))\h*+(?:self|cls)\.(NAME)"
        rb"(?=\h*+(?:=(?!=)|,))",
        "name": b"NAME",
        "class head": rb"\h*+(?:\[[^\n]*?\]\h*+)?(?:PARENS)?"
        rb"\h*+:[ \t\r]*+(?:\n[ \t\r]*+(?=\n))*+\n(\h*+)",
        "block head": rb":[ \t\r]*+(?:\n[ \t\r]*+(?=\n))*+\n(\h*+)",
        "blank lines": rb"(?:[ \t\r]*+\n)*\h++(?=\r?\n)",
    }
)


def without_docstrings(text: bytes, odd: Odd) -> Paint:
    """Return a painter that blanks comments and strings that are statements. Strings that are values are kept.

    A string is a statement if it is on lines of its own and does not continue an expression: it follows nothing, a
    colon that ends a header, or a complete expression.
    """
    last = 0  # where the previous comment ended
    before = b""  # the end of the code before that

    def paint(match: re.Match[bytes]) -> bytes:
        nonlocal last, before
        group = match.lastgroup
        if group is None:
            return match[0]
        start, end = match.span()
        code = text[max(last, start - 200) : start].rstrip()
        is_header = code.endswith((b'":', b"':")) and _PATTERNS["quoted return type"].search(code) is not None
        code = b"):" if is_header else code[-12:]
        if group == "comment":
            before = code or before
            last = end
            return b" " * (end - start)
        if group == "open":
            odd.append(match)
        elif _ends_statement(code or (before if start - last < 200 else b"?"), match[0].lstrip(b" \t\r\nrRuU")):
            return match[0].translate(BLANK)
        return match[0]

    return paint


def _ends_statement(before: bytes, token: bytes) -> bool:
    """Whether a string on lines of its own after this code is a statement."""
    if not before:
        return True
    if before.endswith(b":"):
        return before[-2:-1] not in (b'"', b"'", b"")  # the colon of a dictionary
    return token.startswith((b'"""', b"'''")) and _PATTERNS["complete expression"].search(before) is not None


class _Block(NamedTuple):
    """A Python statement with a body."""

    indent: int
    kind: str
    """The kind of its body: "module", "class" or "def". A conditional has the kind of the block around it."""
    scope: bytes
    owner: bytes | None
    """The enclosing class, if any."""
    head: int
    """Where its header continues."""
    is_class: bool = False


_DEF, _DECORATOR, _COMPOUND, _ATTRIBUTE, _ALIAS, _TARGETS = 3, 4, 5, 6, 7, 8  # the groups of "line"


def walk(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> WalkResult:  # noqa: ARG001
    text = framed(cleaned)
    if b'"""' in text or b"'''" in text or (b"\\" in text and _PATTERNS["continued line"].search(text)):
        text = framed(repaint(cleaned, language, without_text_blocks))
    tabs = b"\t" in text
    found: list[DefinitionMark] = []
    top = outer = _Block(-1, "module", b"", None, 0)
    stack = [top]
    bodies: dict[int, tuple[int, int]] = {}
    decorated = (-1, 0)
    never = len(text) + 1
    local = never  # in a function: the indent of the lines of its body
    for match in _PATTERNS["line"].finditer(text):
        group = match.lastindex
        indent = match.end(1) - match.start() - 1
        if indent >= local and group in (_TARGETS, _COMPOUND):
            continue
        if tabs:
            indent = len(match[1].expandtabs(8))
        if indent <= outer.indent:
            while indent <= outer.indent:
                stack.pop()
                outer = stack[-1]
            local = never if tabs or outer.kind != "def" else outer.indent + 1
        kind = outer.kind
        if group == _DEF:
            begin, end = match.span(3)
            start = decorated[1] if decorated[0] == indent else match.end(1)
            decorated = (-1, 0)
            scope = outer.scope
            inner = join(scope, text[begin:end])
            if match[2] is None:
                found.append(DefinitionMark(begin, end, "class", scope, start))
                outer = _Block(indent, "class", inner, inner, end, True)
            else:
                found.append(DefinitionMark(begin, end, "method" if kind == "class" else "function", scope, start))
                outer = _Block(indent, "def", inner, outer.owner, end)
            stack.append(outer)
            local = never if tabs or outer.is_class else indent + 1
        elif group == _DECORATOR:
            if decorated[0] != indent:
                decorated = (indent, match.start(4))
        elif group == _ATTRIBUTE:
            if kind == "def" and outer.owner is not None:
                _add_attributes(text, match, found, outer.owner)
        elif kind == "def":
            continue
        elif group == _COMPOUND:
            outer = _Block(indent, kind, outer.scope, outer.owner, match.end())
            stack.append(outer)
        elif (indent == 0) if outer is top else _is_in_body(text, outer, indent, match.start(), bodies, tabs=tabs):
            decorated = (-1, 0)
            if group == _ALIAS:
                found.append(DefinitionMark(*match.span(7), "type", outer.scope, match.end(1)))
            else:
                _add_targets(text, match, found, outer.scope, is_field=kind == "class")
    return WalkResult(found, text, _finish)


def _is_in_body(
    text: bytes, block: _Block, indent: int, at: int, bodies: dict[int, tuple[int, int]], *, tabs: bool
) -> bool:
    """Whether a line is a statement of a block, not a continuation line or a line after the block.

    Only lines that may define something are matched, so one of the others may have ended the block.
    """
    if block.head not in bodies:
        if block.is_class:
            head = _PATTERNS["class head"].match(text, block.head)
        else:
            head = _PATTERNS["block head"].search(text, block.head, block.head + 2000)
        bodies[block.head] = (-1, 0) if head is None else (_width(head[1], tabs=tabs), head.end())
    expected, seen = bodies[block.head]
    if indent != expected or (seen < at and not tabs and dedent_to(block.indent).search(text, seen, at)):
        return False
    bodies[block.head] = (expected, max(seen, at))
    return True


def _width(blanks: bytes, *, tabs: bool) -> int:
    return len(blanks.expandtabs(8)) if tabs else len(blanks)


def _add_attributes(text: bytes, match: re.Match[bytes], found: list[DefinitionMark], owner: bytes) -> None:
    """Add the attributes of `self` that a method sets."""
    start = match.end(1)
    found.append(DefinitionMark(*match.span(6), "field", owner, start))
    at = match.end(6)
    while more := _PATTERNS["self chain"].match(text, at):
        found.append(DefinitionMark(*more.span(1), "field", owner, start))
        at = more.end()


def _add_targets(
    text: bytes, match: re.Match[bytes], found: list[DefinitionMark], scope: bytes, *, is_field: bool
) -> None:
    """Add the names on the left of an assignment."""
    names = match[8]
    begin, end = match.span(8)
    start, at = match.end(1), match.end()
    spans = [(begin, end)]
    if b"," in names or b"*" in names:
        if text[at - 1] != EQUALS:
            return
        spans = [name.span() for name in _PATTERNS["name"].finditer(text, begin, end)]
    if text[at - 1] == EQUALS:
        if text[end] == EQUALS and text[at : at + 300].partition(b"\n")[0].rstrip().endswith(b","):
            return  # name=value without blanks: an argument of a call that began on an earlier line
        while more := _PATTERNS["chain"].match(text, at):
            spans.append(more.span(1))
            at = more.end()
    for begin, end in spans:
        kind = "field" if is_field else "constant" if text[begin:end].isupper() else "variable"
        found.append(DefinitionMark(begin, end, kind, scope, start))


def _without_tokens(text: bytes, odd: Odd) -> Paint:  # noqa: ARG001
    """Return a painter that blanks everything, including line breaks, except the one before a string statement."""

    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup == "open":
            odd.append(match)
        token = match[0]
        return b"\n" + b" " * (len(token) - 1) if token[0] == NEWLINE else b" " * len(token)

    return paint


def _finish(cleaned: bytes, text: bytes, marks: list[DefinitionMark], language: str) -> None:
    """Set the end of each body: the next line that is indented less, ignoring lines in brackets and strings."""
    layout = _without_continuations(framed(repaint(cleaned, language, _without_tokens)))
    text = framed(cleaned)
    around: list[tuple[int, DefinitionMark]] = []  # the bodies around this one
    for mark in marks:
        limit = end = layout.find(b"\n", mark.end)
        blank = None
        if mark.kind in ("function", "method", "class") and layout[mark.end : end].rstrip().endswith(b":"):
            line = layout.rfind(b"\n", 0, mark.begin) + 1
            dedent = dedent_to(indent_of(layout, line, mark.begin)).search(layout, end)
            limit = dedent.start() if dedent else len(layout)
            if trimmed(text, end, limit) == end:  # only a docstring: it is blanked, but its lines remain
                blank = _PATTERNS["blank lines"].match(text, end + 1, limit + 1)
        mark.stop = blank.end() if blank else trimmed(text, mark.end, limit)
        while around and around[-1][0] <= mark.begin:
            around.pop()
        for _, outer in around:
            outer.stop = max(outer.stop, mark.stop)
        if limit > end:
            around.append((limit, mark))


def _without_continuations(text: bytes) -> bytes:
    """Put every statement on one line by blanking line breaks inside brackets."""
    parts: list[bytes] = []
    depth = at = opened = 0
    for match in re.finditer(rb"[()\[\]{}]", text):
        if match[0] in b"([{":
            if not depth:
                opened = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                parts += (text[at:opened], text[opened : match.end()].replace(b"\n", b" "))
                at = match.end()
    parts.append(text[at:])
    return b"".join(parts).replace(b"\\\n", b"  ").replace(b"\\\r\n", b"   ")
