"""What differs between two versions of a file, for a person to read. Pure text."""

from __future__ import annotations

from truekeep.disk import decode_text
from truekeep.hidden import printable

MOST_COMPARED = 1_000_000  # old lines times new lines
MOST_SHOWN = 200


def difference(old: bytes | None, new: bytes | None, path: str) -> tuple[str, ...]:
    """A unified difference, line by line. None stands for "no such file"."""
    before, after = _lines(old), _lines(new)
    names = (path if old is not None else "nothing", path if new is not None else "nothing")
    if len(before) * len(after) > MOST_COMPARED and before != after:
        # Comparing line by line is quadratic at worst, and nobody reads it: say how much, and show the new text.
        head = (f"--- {names[0]}", f"+++ {names[1]}", f"@@ {len(before)} lines become {len(after)} @@")
        return (*head, *(f"+{line}" for line in after[:MOST_SHOWN]))
    from difflib import unified_diff

    return tuple(unified_diff(before, after, names[0], names[1], lineterm="", n=3))


def _lines(data: bytes | None) -> list[str]:
    if data is None:
        return []
    text = decode_text(data)
    if text is None:
        return [f"({len(data)} bytes that are not text)"]
    return [printable(line) for line in text.removesuffix("\n").split("\n")]
