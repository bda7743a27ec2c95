"""What a source file defines: the text of a file goes in, names with their scopes and lines come out.

This is lexing, not parsing. One regular expression per language tells comments and strings from code; then a walker
looks for what the code defines: by indentation (Python), by keywords and braces (JavaScript, Rust, Go ...), by the
words before a bracket (Java, C ...), by lines (Ruby, shell, SQL ...) or by keys (YAML, TOML ...). So a repository is
read in about a second, and a file of any content in linear time: what looks ahead cannot go back, or pays with fuel.

A name that is called, imported or mentioned is not defined. When in doubt a definition is missed rather than invented,
for an invented one makes a thing that is gone look alive. Locals and parameters do not count.

All texts are bytes and all offsets count bytes. Nothing here reads a file or knows what a claim is. The module of a
language is imported when a file of it is met: `languages` says which.
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
from truekeep.verify.languages.walker import WalkResult

__all__ = ["Definition", "body_digest", "clean", "definitions", "is_config", "language_of", "names"]


def clean(data: bytes, language: str) -> bytes:
    """The same length and the same lines, with comments and docstrings blanked.

    Other strings stay: they hold flags, names of settings and environment variables.
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
    """Every name that a cleaned file defines, once for every time. Fast: this runs over a whole repository."""
    walk = _walker(language)
    if walk is None:
        return []
    found = [cleaned[mark.begin - 1 : mark.end - 1] for mark in walk(cleaned, language).marks]
    return found if cleaned.isascii() else [name for name in found if _is_text(name)]


def definitions(cleaned: bytes, language: str) -> list[Definition]:
    """The same names, each with its scope, lines and offsets, in the order of the file."""
    walk = _walker(language)
    if walk is None:
        return []
    walked = walk(cleaned, language)
    marks = [mark for mark in walked.marks if _is_text(cleaned[mark.begin - 1 : mark.end - 1])]
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
    """The `walk` of the module that knows a language; None when its files define nothing."""
    if language not in WALKERS:
        return None
    walk: Callable[[bytes, str], WalkResult] = import_module(f"{__name__}.{WALKERS[language]}").walk
    return walk


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
