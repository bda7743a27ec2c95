"""Finds the definitions in a source file, with their scopes and lines.

- `lexer` and `tokens` separate comments and strings from code, for every language. This is fast: it runs on every file
  of a repository.
- `syntax_tree` finds the definitions of most languages: a tree-sitter grammar parses, a query in `queries/` says what
  counts. This takes several times as long, so it runs only on files that contain a name that a claim asks for.
- `python` goes by indentation, `line_based` by lines, `schemas` by braces, `config_files` by keys; `registry` says
  which module reads what.

A name that is called, imported or mentioned is not a definition. In doubt, a definition is missed rather than invented,
because an invented one would confirm something that is gone. Locals and parameters do not count.

All texts are bytes and all offsets count bytes. Nothing here reads files or knows about claims. The module of a
language, and its grammar, are imported when the first file in that language is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from importlib import import_module

from truekeep.verify.languages.definition import Definition, body_digest
from truekeep.verify.languages.lexer import repaint, without_comments
from truekeep.verify.languages.registry import MARKUP, WALKERS, has_grammar, is_config, language_of
from truekeep.verify.languages.tokens import LEXES
from truekeep.verify.languages.walker import Walk, is_text

__all__ = [
    "Definition",
    "body_digest",
    "clean",
    "definitions",
    "definitions_on_line",
    "has_grammar",
    "is_config",
    "language_of",
    "names",
]


def clean(data: bytes, language: str) -> bytes:
    """Blank comments and docstrings without changing lengths or lines.

    Other strings are kept: they contain flags, settings and environment variables.
    """
    if language in MARKUP:
        from truekeep.verify.languages.markup import clean_markup

        return clean_markup(data)
    if language not in LEXES:
        return data
    if language == "python":
        from truekeep.verify.languages.python import without_docstrings

        return repaint(data, language, without_docstrings)
    return repaint(data, language, without_comments)


def names(cleaned: bytes, language: str) -> list[bytes]:
    """Return every name that a cleaned file defines, with repetitions."""
    walk = _walker(language)
    if walk is None:
        return []
    found = [cleaned[mark.begin - 1 : mark.end - 1] for mark in walk(cleaned, language, None).marks]
    return found if cleaned.isascii() else [name for name in found if is_text(name)]


def definitions(cleaned: bytes, language: str, wanted: Collection[str] | None = None) -> list[Definition]:
    """Return the definitions with their scopes, lines and offsets, in file order; or only those with a wanted name."""
    if wanted is None:
        return list(_definitions(cleaned, language, None))
    needles = [re.escape(name.encode("utf-8", "surrogateescape")) for name in wanted]
    spans = sorted(match.span() for needle in needles for match in re.finditer(needle, cleaned))
    return [one for one in _definitions(cleaned, language, spans) if one.name in wanted] if spans else []


def definitions_on_line(cleaned: bytes, language: str, line: int) -> list[Definition]:
    """Return the definitions whose name is on a line, which counts from 1."""
    begin = 0
    for _ in range(line - 1):
        begin = cleaned.find(b"\n", begin) + 1
        if not begin:
            return []
    end = cleaned.find(b"\n", begin)
    span = begin, end if end >= 0 else len(cleaned)
    return [one for one in _definitions(cleaned, language, [span]) if one.line == line]


def _definitions(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> list[Definition]:
    return _find(cleaned, language, near) if has_grammar(language) else _find_all(cleaned, language)


@lru_cache(maxsize=2)
def _find_all(cleaned: bytes, language: str) -> list[Definition]:
    return _find(cleaned, language, None)


def _find(cleaned: bytes, language: str, near: Sequence[tuple[int, int]] | None) -> list[Definition]:
    walk = _walker(language)
    if walk is None:
        return []
    walked = walk(cleaned, language, near)
    marks = [mark for mark in walked.marks if is_text(cleaned[mark.begin - 1 : mark.end - 1])]
    walked.finish(cleaned, walked.text, marks, language)
    breaks = [match.start() for match in re.finditer(b"\n", cleaned)]
    found = []
    for mark in marks:  # a walker's text begins with a line break, so its offsets are one too high
        begin, end = mark.begin - 1, mark.end - 1
        stop = min(max(mark.stop - 1, end), len(cleaned))
        found.append(
            Definition(
                cleaned[begin:end].decode(),
                mark.scope.decode("utf-8", "replace"),
                mark.kind,
                bisect_left(breaks, begin) + 1,
                bisect_left(breaks, max(begin, stop - 1)) + 1,
                max(0, min(mark.start - 1, begin)),
                stop,
            )
        )
    found.sort(key=lambda one: (one.line, one.start))
    return found


@cache
def _walker(language: str) -> Walk | None:
    """Return the `walk` function for a language; None if its files define nothing."""
    if language not in WALKERS:
        return None
    walk: Walk = import_module(f"{__name__}.{WALKERS[language]}").walk
    return walk
