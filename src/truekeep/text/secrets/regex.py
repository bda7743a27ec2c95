"""The expressions of the secret scanner, compiled with RE2."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from truekeep.text.linear_regex import compile_linear

_GATE_MEMORY = 32 << 20


@functools.cache
def compiled(pattern: str) -> Any:
    return compile_linear(pattern)


def compile_bytes(alternatives: Iterable[str]) -> Any:
    """A gate, which reads every text."""
    return compile_linear("|".join(alternatives).encode("ascii"), captures=False, is_bytes=True, memory=_GATE_MEMORY)
