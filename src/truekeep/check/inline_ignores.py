"""Comments in a document that take lines out of a check.

    Text <!-- truekeep: ignore -->          this line
    <!-- truekeep: ignore -->               alone on its line: the block below it, up to the next blank line
    <!-- truekeep: ignore-start -->         up to ignore-end, or to the end of the file
    <!-- truekeep: ignore-file -->          the whole file

`{/* truekeep: ignore */}` is the same in .mdx, and `.. truekeep: ignore` in .rst.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMENT = re.compile(
    r"(?:<!--|\{/\*|^\s*\.\.)[ \t]*truekeep:[ \t]*(ignore(?:-start|-end|-file)?)[ \t]*(?:-->|\*/\}|$)", re.MULTILINE
)


class IgnoredLines(NamedTuple):
    """The lines of one document that are not checked."""

    is_whole_file: bool = False
    numbers: frozenset[int] = frozenset()

    def has(self, line: int) -> bool:
        return self.is_whole_file or line in self.numbers


def find_ignored_lines(text: str) -> IgnoredLines:
    if "truekeep:" not in text:
        return IgnoredLines()
    found: set[int] = set()
    is_open = is_waiting = in_block = False
    for number, line in enumerate(text.split("\n"), start=1):
        match = _COMMENT.search(line)
        word = match[1] if match is not None else ""
        if word == "ignore-file":
            return IgnoredLines(is_whole_file=True)
        is_open = word == "ignore-start" or (is_open and word != "ignore-end")
        is_text = bool(_COMMENT.sub("", line).strip(" \t\r>-*+"))
        in_block = is_text and (in_block or is_waiting)
        is_waiting = (is_waiting and not is_text) or (word == "ignore" and not is_text)
        if is_open or in_block or word == "ignore":
            found.add(number)
    return IgnoredLines(numbers=frozenset(found))
