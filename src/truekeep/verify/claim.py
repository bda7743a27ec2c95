"""A claim: something a memory names that can be checked now. Only the value; `claims` finds them."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 7  # of extraction and checks: results stored under another version are computed again

KINDS = (
    "path", "directory", "line", "symbol", "method", "flag", "env", "commit", "version", "package", "script", "port",
    "unit", "container", "bundle", "url", "decision",
)  # fmt: skip


class Claim(NamedTuple):
    """One thing that a memory names, and where it does."""

    kind: str
    text: str  # as it stands in the memory
    start: int  # offset of the first character
    end: int
    line: int
    column: int
    name: str  # what is looked for: a path, the last part of a symbol, a number
    place: str = ""  # the file that the memory names for it; the path of a line; the owner of a script
    owner: str = ""  # the class or module of a method; the command of a flag; the package of a version; a commit's repo
    first: int = 0  # of a line or a range of lines
    last: int = 0
    near: str = ""  # the symbol that a line is said to hold; the unit that is said to have a port
    quote: str = ""  # the code that is quoted beside a line
    is_weak: bool = False  # counts only where the repository knows it
    is_past: bool = False  # said to be gone, or never there: nothing to check
    may_be_past: bool = False  # the sentence speaks of loss somewhere: no reason to call this lost as well
    is_definite: bool = False  # "defined in", not only "in"
    why: str = ""

    @property
    def shown(self) -> str:
        """How it is called away from its sentence: a bare number of a line needs its file."""
        is_bare = self.kind == "line" and ":" not in self.text and "#" not in self.text
        return f"{self.place or self.name}:{self.text}" if is_bare else self.text
