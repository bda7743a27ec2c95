"""Regular expressions for untrusted text. They run on RE2, which takes linear time on any text.

Without RE2, the import error goes to the caller: text that was not searched must not be stored.
"""

from __future__ import annotations

from typing import Any


def compile_linear(
    pattern: str | bytes, *, captures: bool = True, is_bytes: bool = False, memory: int | None = None
) -> Any:
    """Compile an expression with RE2.

    Without `captures`, matches have no groups, which is faster. With `is_bytes`, the expression reads bytes instead of
    UTF-8 characters, which takes a fraction of the states. `memory` is a limit in bytes: with the default of 8 MiB, a
    large expression has its states built again and again.
    """
    import re2  # heavy, and most commands do not read untrusted text

    options = re2.Options()
    options.log_errors = False
    options.never_capture = not captures
    if is_bytes:
        options.encoding = re2.Options.Encoding.LATIN1
    if memory is not None:
        options.max_mem = memory
    return re2.compile(pattern, options)
