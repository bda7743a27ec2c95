"""Decides which memory files stay on the canonical host: by a list of patterns, and by what they contain.

A pattern matches too much rather than too little: letter case and Unicode forms do not count, `*` also matches `/`, a
pattern without `/` matches a name in any folder, and one that matches a folder matches everything in it. A file that
has the very bytes of a private file, now or at an earlier publication, is private as well: a renamed, copied or
hard-linked file does not leave by its new name.
"""

from __future__ import annotations

import fnmatch
import unicodedata
from collections.abc import Mapping, Sequence

ALWAYS = ("SOUL.md", "*/USER.md")  # a USER.md in a folder is another person's, or another agent's
MAX_KNOWN = 50_000  # digests of private files that are remembered


class PrivateFiles:
    """The private files of one publication."""

    def __init__(self, patterns: Sequence[str], known: Mapping[str, str] | None = None) -> None:
        """`known`: digests of earlier private files, with the path that each had."""
        self._patterns = [_fold(pattern) for pattern in (*ALWAYS, *patterns) if pattern.strip("/ ")]
        # What is not on the list any more is not private any more.
        self.known = {digest: path for digest, path in (known or {}).items() if self.is_listed(path)}

    def is_listed(self, path: str) -> bool:
        """True if a pattern matches a path, its name, or a folder above it."""
        parts = _fold(path).split("/")
        places = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return any(
            fnmatch.fnmatchcase(place, pattern) or ("/" not in pattern and fnmatch.fnmatchcase(part, pattern))
            for pattern in self._patterns
            for place, part in zip(places, parts, strict=True)
        )

    def note(self, path: str, digest: str) -> None:
        """Remember the content of a private file."""
        self.known[digest] = path
        while len(self.known) > MAX_KNOWN:
            del self.known[next(iter(self.known))]

    def same_as(self, digest: str, size: int) -> str:
        """The private file with the same content; "" if there is none. Empty files are not compared."""
        return self.known.get(digest, "") if size else ""


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).removeprefix("./").strip("/")
