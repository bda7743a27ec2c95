"""The Claim type: something a memory names that can be checked. `claims` extracts them."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 14  # of extraction and checks: results stored under another version are computed again

KINDS = (
    "path", "directory", "section", "line", "symbol", "method", "flag", "env", "commit", "version", "package", "script",
    "port", "unit", "container", "cron", "id", "bundle", "url", "decision",
)  # fmt: skip


class Claim(NamedTuple):
    """One thing that a memory names, and where it names it."""

    kind: str
    text: str  # as written in the memory
    start: int  # offset of the first character
    end: int
    line: int
    column: int
    name: str  # what to look for: a path, the last part of a symbol, a number
    place: str = ""  # the file that the memory names for it; the path of a line; the owner of a script
    owner: str = ""  # the class or module of a method; the command of a flag; the package of a version; a commit's repo
    first: int = 0  # of a line or a range of lines
    last: int = 0
    near: str = ""  # the symbol that a line is said to hold; the unit that is said to have a port
    quote: str = ""  # the code that is quoted beside a line
    is_weak: bool = False  # counts only where the repository knows it
    is_past: bool = False  # the memory says that it is gone or never existed: nothing to check
    may_be_past: bool = False  # the sentence mentions a removal, so a claim that is gone is not reported
    is_definite: bool = False  # "defined in", not only "in"
    why: str = ""

    @property
    def shown(self) -> str:
        """The claim as shown outside its sentence: a bare line number gets its file."""
        is_bare = self.kind == "line" and ":" not in self.text and "#" not in self.text
        return f"{self.place or self.name}:{self.text}" if is_bare else self.text
