"""Find what a source file defines: the text of a file goes in, names with their scopes and lines come out.

- `lexer` and `tokens` tell comments and strings from code, for every language. This is light: it runs over whole
  repositories.
- `syntax_tree` finds the definitions of most languages: a tree-sitter grammar parses, a query in `queries/` says what
  counts.
- `python` goes by indentation, `line_based` by lines, `schemas` by braces, `config_files` by keys; `registry` says
  which reads what.

A name that is called, imported or mentioned is not defined. When in doubt a definition is missed rather than invented,
because an invented one makes code that is gone look alive. Locals and parameters do not count.

All texts are bytes and all offsets count bytes. Nothing here reads a file or knows what a claim is. The module of a
language, and its grammar, are imported when the first file of it is read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from importlib import import_module

from truekeep.verify.languages.definition import Definition, body_digest
from truekeep.verify.languages.lexer import repaint, without_comments
from truekeep.verify.languages.registry import MARKUP, WALKERS, is_config, language_of
from truekeep.verify.languages.tokens import LEXES
from truekeep.verify.languages.walker import WalkResult, is_text

__all__ = ["Definition", "body_digest", "clean", "definitions", "is_config", "language_of", "names"]


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
    """Return every name that a cleaned file defines, with repetitions. Fast, because it runs on a whole repository."""
    walk = _walker(language)
    if walk is None:
        return []
    found = [cleaned[mark.begin - 1 : mark.end - 1] for mark in walk(cleaned, language).marks]
    return found if cleaned.isascii() else [name for name in found if is_text(name)]


def definitions(cleaned: bytes, language: str) -> list[Definition]:
    """Return the definitions with their scopes, lines and offsets, in file order."""
    walk = _walker(language)
    if walk is None:
        return []
    walked = walk(cleaned, language)
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
def _walker(language: str) -> Callable[[bytes, str], WalkResult] | None:
    """Return the `walk` function for a language; None if its files define nothing."""
    if language not in WALKERS:
        return None
    walk: Callable[[bytes, str], WalkResult] = import_module(f"{__name__}.{WALKERS[language]}").walk
    return walk
