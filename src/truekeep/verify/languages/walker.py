"""The types that walkers return, and helpers for offsets and indents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from truekeep.verify.languages.patterns import compile_pattern


class DefinitionMark:
    """A definition found by a walker. Offsets refer to the walker's text; an offset of -1 is set at the end."""

    __slots__ = ("begin", "end", "kind", "scope", "start", "stop")

    def __init__(self, begin: int, end: int, kind: str, scope: bytes, start: int = -1, stop: int = -1) -> None:
        self.begin = begin
        self.end = end
        self.kind = kind
        self.scope = scope
        self.start = start
        self.stop = stop


Finish = Callable[[bytes, bytes, list[DefinitionMark], str], None]


class WalkResult(NamedTuple):
    """The definitions a walker found, its text, and a function that sets where each definition begins and ends."""

    marks: list[DefinitionMark]
    text: bytes
    finish: Finish


Walk = Callable[[bytes, str, Sequence[tuple[int, int]] | None], WalkResult]
"""A walker: the code of a file, its language, and the spans of it that matter (None: all).

It may leave out definitions whose names are outside of these spans."""


def join(scope: bytes, name: bytes) -> bytes:
    """Return the scope inside a definition. A long scope does not grow, because nesting is unlimited."""
    return scope + b"." + name if scope and name and len(scope) < 500 else scope or name


def trimmed(text: bytes, begin: int, stop: int) -> int:
    """Return the end of a body without trailing blanks."""
    stop = min(stop, len(text))
    while stop > begin:
        tail = text[max(begin, stop - 500) : stop]
        bare = tail.rstrip()
        if bare:
            return stop - len(tail) + len(bare)
        stop -= len(tail)
    return begin


def is_text(data: bytes) -> bool:
    """Whether these bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def indent_of(text: bytes, line: int, end: int) -> int:
    return len(text[line:end]) - len(text[line:end].lstrip(b" \t"))


def column_of(text: bytes, at: int) -> int:
    return at - (text.rfind(b"\n", 0, at) + 1)


@cache
def dedent_to(indent: int) -> re.Pattern[bytes]:
    """Return a pattern for the next line that is indented no more than this."""
    return compile_pattern(rb"\n\h{0,%d}[^ \t\r\n]" % min(indent, 1000))
