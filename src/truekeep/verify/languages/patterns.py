"""The notation that the patterns of this package are written in, and the compiling of them."""

from __future__ import annotations

import re

_PARENS = rb"\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\)"
_NOTATION = {  # what patterns are written in, so that they can be read
    # Brackets in brackets to a fixed depth: deeper ones fail at once, so that no text is looked at many times. The
    # second kind ends with the line of a statement: such brackets hold parameters and no code.
    b"JSPARENS": _PARENS.replace(rb"[^()]++|", rb"[^();]++|;(?!\s*\n)|").replace(rb"[^()]*+", rb"[^();]*+"),
    b"PARENS": _PARENS,
    b"TARGETS": rb"\*?NAME(?:\h*+,\h*+\*?NAME)*+",
    b"NAMES": rb"NAME(?:\h*+,\s*+NAME)*+",
    b"NAME": rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+",
    b"WORD": rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+",
    rb"\h": rb"[ \t]",
}


def compile_pattern(pattern: bytes) -> re.Pattern[bytes]:
    for short, long in _NOTATION.items():
        pattern = pattern.replace(short, long)
    return re.compile(pattern, re.DOTALL)


class Patterns(dict[str, re.Pattern[bytes]]):
    """Patterns by name. Each is compiled when it is first asked for: a repository needs few of them."""

    def __init__(self, sources: dict[str, bytes]) -> None:
        super().__init__()
        self._sources = sources

    def __missing__(self, name: str) -> re.Pattern[bytes]:
        self[name] = pattern = compile_pattern(self._sources[name])
        return pattern
