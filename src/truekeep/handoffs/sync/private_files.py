"""Decides which memory files stay on the canonical host: by a list of patterns, and by what they contain.

A pattern matches too much rather than too little: letter case and Unicode forms do not count, `*` also matches `/`, a
pattern without `/` matches a name in any folder, and one that matches a folder matches everything in it. A file that
has the very bytes of a private file, now or at an earlier publication, is private as well: a renamed, copied or
hard-linked file does not leave by its new name.

What a private file says is recognised in others by its prints (`private_text`). Text that had left by a public file
before a private one had it stays public; a file that is on the list of public ones is sent as it is. Where the user's
own USER.md is sent, a USER.md in a folder keeps back only what the user's own does not say: backups of it are common.
"""

from __future__ import annotations

import fnmatch
import re
import struct
import unicodedata
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from truekeep.handoffs.sync.private_text import Print, prints_of

OTHERS = "*/USER.md"  # in a folder it is another person's, another agent's, or a backup
ALWAYS = ("SOUL.md", OTHERS)
OWN = "USER.md"
MAX_KNOWN = 50_000  # digests of private files that are remembered
MAX_PRINTS = 2_000_000
_PACKED = struct.Struct("<IQ")


class FilePatterns:
    """Patterns for paths."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = frozenset(_fold(pattern) for pattern in patterns if pattern.strip("/ "))
        self._of_paths = [re.compile(fnmatch.translate(pattern)).match for pattern in self.patterns]
        self._of_names = [re.compile(fnmatch.translate(item)).match for item in self.patterns if "/" not in item]
        self._folders: dict[str, bool] = {"": False}

    def match(self, path: str) -> bool:
        """True if a pattern matches a path, its name, or a folder above it."""
        folded = _fold(path)
        folder, _, name = folded.rpartition("/")
        return self._match_folder(folder) or self._match_one(folded, name)

    def _match_folder(self, path: str) -> bool:
        if path not in self._folders:
            above, _, name = path.rpartition("/")
            self._folders[path] = self._match_folder(above) or self._match_one(path, name)
        return self._folders[path]

    def _match_one(self, path: str, name: str) -> bool:
        return any(match(path) for match in self._of_paths) or any(match(name) for match in self._of_names)


class PrivateFile(NamedTuple):
    """What is remembered of a private file."""

    stat: tuple[int, ...]  # empty: to be read again
    prints: frozenset[Print]  # of its text now, and of earlier ones


class PrivateNotes(NamedTuple):
    """What an earlier publication knew of private files."""

    known: Mapping[str, str] = {}  # digests of private files, with the path that each had
    files: Mapping[str, PrivateFile] = {}
    exempt: frozenset[Print] = frozenset()  # had left before a private file had them
    patterns: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    own: frozenset[Print] = frozenset()  # of the USER.md that is sent

    def packed(self) -> dict[str, Any]:
        files = {path: [file.stat, _pack(file.prints)] for path, file in self.files.items()}
        return {**self._asdict(), "files": files, "exempt": _pack(self.exempt), "own": _pack(self.own)}

    @classmethod
    def unpacked(cls, given: Mapping[str, Any]) -> PrivateNotes:
        files = {str(path): PrivateFile(tuple(stat), _unpack(text)) for path, (stat, text) in given["files"].items()}
        patterns, public = tuple(map(str, given["patterns"])), tuple(map(str, given["public"]))
        own = _unpack(given.get("own", ""))
        return cls(dict(given["known"]), files, _unpack(given["exempt"]), patterns, public, own)


class FoundPrivate(NamedTuple):
    """A private file that is new or was edited."""

    path: str
    stat: tuple[int, ...]
    digest: str
    text: str


class PrivateFiles:
    """The private files of one publication."""

    def __init__(self, patterns: Sequence[str], public: Sequence[str] = (), before: PrivateNotes | None = None) -> None:
        self._before = before
        notes = before or PrivateNotes()
        self._listed, self._public = FilePatterns((*ALWAYS, *patterns)), FilePatterns(public)
        self._listed_but_others = FilePatterns(
            [pattern for pattern in (*ALWAYS, *patterns) if pattern not in (OTHERS, OWN)]
        )
        # What is not on the list any more is not private any more.
        self.known = {digest: path for digest, path in notes.known.items() if self.is_listed(path)}
        self.files = {path: file for path, file in notes.files.items() if self.is_listed(path)}
        self.exempt = set(notes.exempt)
        self.own: frozenset[Print] = frozenset()
        self.later: set[Print] = set()  # new text of files that were private before
        self.unread: list[str] = []  # nobody knows what these say
        self.has_new_patterns = before is not None and not self._listed.patterns <= {*notes.patterns}
        self.is_changed = before is None or self._settings != (notes.patterns, notes.public)

    @property
    def _settings(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(sorted(self._listed.patterns)), tuple(sorted(self._public.patterns))

    @property
    def notes(self) -> PrivateNotes:
        return PrivateNotes(self.known, self.files, frozenset(self.exempt), *self._settings, self.own)

    def is_listed(self, path: str) -> bool:
        return self._listed.match(path)

    def is_public(self, path: str) -> bool:
        """True for a file that the owner sends as it is, whatever private files say."""
        return bool(self._public.patterns) and self._public.match(path)

    def is_current(self, path: str, stat: tuple[int, ...]) -> bool:
        """True if the file is as it was when it was read last."""
        return path in self.files and self.files[path].stat == stat

    def note_own(self, text: str) -> None:
        """Remember the user's own USER.md, which is sent."""
        self.own = frozenset(prints_of(text, ""))
        self.is_changed |= self._before is not None and self.own != self._before.own

    def _is_others(self, path: str) -> bool:
        """True for a USER.md in a folder that no other pattern names."""
        return path != OWN and not self._listed_but_others.match(path)

    def note(self, file: FoundPrivate, *, was_published: Callable[[FoundPrivate, Collection[Print]], bool]) -> None:
        """Remember a private file. `was_published`: whether its text had left before it became private."""
        prints = prints_of(file.text, file.path)
        known = self.files.get(file.path)
        fresh = prints - (known.prints if known is not None else set()) - self._all_before
        if known is None and (self._is_newly_listed(file.path) or was_published(file, prints)):
            self.exempt -= prints
        else:
            self.later |= fresh
        self.is_changed |= bool(fresh) or known is None
        self.files[file.path] = PrivateFile(file.stat, frozenset(prints | (known.prints if known else set())))
        self.known[file.digest] = file.path
        while len(self.known) > MAX_KNOWN:
            del self.known[next(iter(self.known))]

    @cached_property
    def _all_before(self) -> set[Print]:
        return {mark for file in self._before.files.values() for mark in file.prints} if self._before else set()

    def _is_newly_listed(self, path: str) -> bool:
        return self._before is None or not FilePatterns(self._before.patterns).match(path)

    def prints(self) -> dict[Print, str]:
        """What must not leave, with the file that says it."""
        found: dict[Print, str] = {}
        for path, file in self.files.items():
            open_prints = self.own if self.own and self._is_others(path) else frozenset()
            for mark in file.prints - open_prints:
                if mark not in self.exempt and len(found) < MAX_PRINTS:
                    found.setdefault(mark, path)
        return found

    def same_as(self, digest: str, size: int, path: str) -> str:
        """The private file with the same content as the one at `path`; "" if there is none, or for an empty file."""
        found = self.known.get(digest, "") if size else ""
        return "" if path == OWN and found and self._is_others(found) else found


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower().removeprefix("./").strip("/")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold()).removeprefix("./").strip("/")


def _pack(prints: Collection[Print]) -> str:
    return b64encode(b"".join(_PACKED.pack(*item) for item in sorted(prints))).decode()


def _unpack(text: str) -> frozenset[Print]:
    return frozenset(_PACKED.iter_unpack(b64decode(text)))
