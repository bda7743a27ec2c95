"""Expressions over untrusted text. All run on RE2, whose time is linear whatever the text holds.

When RE2 is missing the import error goes to the caller, because text that nobody looked at must not be kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any


@functools.cache
def compiled(pattern: str) -> Any:
    import re2  # here, and not above: start-up time, and most runs never read an untrusted text

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def compile_bytes(alternatives: Iterable[str]) -> Any:
    """For what reads every text: over bytes instead of characters, which takes a fraction of the states."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 32 << 20  # a bound, not a use: with the default of 8 MiB a hostile text makes states be rebuilt
    return re2.compile("|".join(alternatives).encode("ascii"), options)
