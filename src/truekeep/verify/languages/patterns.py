"""Compiles the patterns of this package, which use shorthands for readability."""

from __future__ import annotations

import re

_PARENS = rb"\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\)"
_NOTATION = {  # shorthands in patterns
    b"PARENS": _PARENS,  # brackets nested to a fixed depth: deeper ones fail at once, which keeps matching linear
    b"TARGETS": rb"\*?NAME(?:\h*+,\h*+\*?NAME)*+",
    b"NAME": rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+",
    b"WORD": rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+",
    rb"\h": rb"[ \t]",
}


def compile_pattern(pattern: bytes) -> re.Pattern[bytes]:
    for short, long in _NOTATION.items():
        pattern = pattern.replace(short, long)
    return re.compile(pattern, re.DOTALL)


class Patterns(dict[str, re.Pattern[bytes]]):
    """Patterns by name, each compiled on first use, because a repository needs few of them."""

    def __init__(self, sources: dict[str, bytes]) -> None:
        super().__init__()
        self._sources = sources

    def __missing__(self, name: str) -> re.Pattern[bytes]:
        self[name] = pattern = compile_pattern(self._sources[name])
        return pattern
