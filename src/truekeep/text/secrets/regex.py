"""Regular expressions for untrusted text. They run on RE2, which takes linear time on any text.

Without RE2, the import error goes to the caller: text that was not searched must not be stored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any


@functools.cache
def compiled(pattern: str) -> Any:
    import re2  # heavy, and most commands do not read untrusted text

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def compile_bytes(alternatives: Iterable[str]) -> Any:
    """An expression that reads every text: over bytes instead of characters, which takes a fraction of the states."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 32 << 20  # a bound, not a use: with the default of 8 MiB a hostile text makes states be rebuilt
    return re2.compile("|".join(alternatives).encode("ascii"), options)
