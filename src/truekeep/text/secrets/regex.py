"""The expressions of the secret scanner, compiled with RE2."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from truekeep.text.linear_regex import compile_linear

_GATE_MEMORY = 32 << 20
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


@functools.cache
def compiled(pattern: str) -> Any:
    return compile_linear(pattern)


def compile_bytes(alternatives: Iterable[str]) -> Any:
    """A gate, which reads every text."""
    pattern = _NOT_ASCII.sub(_as_bytes, "|".join(alternatives))
    return compile_linear(pattern.encode("ascii"), captures=False, is_bytes=True, memory=_GATE_MEMORY)


def _as_bytes(letter: re.Match[str]) -> str:
    """A letter, in both cases, as the bytes of its UTF-8."""
    cases = dict.fromkeys((letter[0], letter[0].upper(), letter[0].lower()))
    return "(?:" + "|".join(_escaped(case.encode()) for case in cases) + ")"


def _escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)
