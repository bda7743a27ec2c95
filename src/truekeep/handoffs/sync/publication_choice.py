"""Chooses what a publication has of each memory file: the file, the file with lines masked, or nothing.

Files that did not change are not read again, unless what is private changed: then each is compared with it anew.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.model import INDEX, REVIEW
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.private_files import OWN, FoundPrivate, PrivateFiles
from truekeep.handoffs.sync.private_text import (
    MaskedText,
    Print,
    PrivateNames,
    PrivateText,
    mask_text,
    prints_of,
    tokenize,
)
from truekeep.handoffs.sync.publication import is_memory_path
from truekeep.memory.file_scan import FileStat, is_settled

if TYPE_CHECKING:
    Contents = Callable[[Collection[str]], Iterable[tuple[str, bytes]]]

_ALIKE = 0.5  # of the lines of a file: with more, it is an edited copy of a private one
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class MemorySource(NamedTuple):
    """One file that may be published."""

    path: str
    stat: FileStat
    read: Callable[[], bytes | None]  # None: gone, or not a regular file any more


class ChosenFile(NamedTuple):
    """A file of a publication."""

    stat: tuple[int, ...]  # empty: to be read again
    origin: str  # the digest of the file here
    digest: str  # of what is published of it; "": nothing
    size: int  # of what is published
    mtime_ns: int
    same_as: str = ""  # the private file for which lines are masked, or it is not published

    @property
    def is_masked(self) -> bool:
        return bool(self.digest) and self.digest != self.origin


class PublishedText(NamedTuple):
    """A file of which lines are masked."""

    original: str
    masked: MaskedText


class Withheld(NamedTuple):
    """A file that stays on the host although no pattern names it."""

    path: str
    same_as: str


class Masked(NamedTuple):
    """A file of which lines stay on the host."""

    path: str
    lines: tuple[int, ...]
    same_as: str


class PublicationChoice(NamedTuple):
    """What is published of all files."""

    files: dict[str, ChosenFile]  # those of which nothing is published, too
    contents: dict[str, bytes]  # by digest: of files that were read
    private: tuple[str, ...]
    texts: dict[str, PublishedText]
    is_purge: bool  # something that had left is private now
    names: PrivateNames

    @property
    def published(self) -> dict[str, ChosenFile]:
        return {path: file for path, file in self.files.items() if file.digest}

    @property
    def withheld(self) -> tuple[Withheld, ...]:
        return tuple(Withheld(path, file.same_as) for path, file in sorted(self.files.items()) if not file.digest)

    @property
    def masked(self) -> tuple[Masked, ...]:
        return tuple(
            Masked(path, tuple(n for n, line in enumerate(text.masked.lines, 1) if line is None), text.masked.same_as)
            for path, text in sorted(self.texts.items())
        )


def choose_files(
    sources: Iterable[MemorySource],
    private: PrivateFiles,
    before: Mapping[str, ChosenFile],
    earlier_contents: Contents,
) -> PublicationChoice:
    """Choose for all sources. `earlier_contents` gives what was published by digests."""
    kept: list[MemorySource] = []
    others: list[MemorySource] = []
    for source in sources:
        if private.is_listed(source.path):
            kept.append(source)
        elif is_memory_path(source.path) and not source.path.startswith(f"{REVIEW}/"):
            others.append(source)
    if kept and (data := next((source.read() for source in others if source.path == OWN), None)):
        private.note_own(decode(data))
    gone = _gone(before, others, earlier_contents)
    has_moved = _note_private(kept, private, before, gone)
    if private.later:
        _exempt(others, private, before)
    choice = _PublicationChooser(private, before).choose(others)
    is_purge = (
        has_moved
        or private.has_new_patterns
        or any(
            _is_less(file, now, private, path)
            for path, file in before.items()
            if (now := choice.files.get(path)) is not file
        )
        or any(private.same_as(file.origin, file.size, path) for path, file in before.items() if file.digest)
    )
    return choice._replace(private=tuple(sorted(source.path for source in kept)), is_purge=is_purge)


def _is_less(before: ChosenFile, now: ChosenFile | None, private: PrivateFiles, path: str) -> bool:
    """True if something that was published of a file is private now."""
    if not before.digest:
        return False
    if now is None:
        return private.is_listed(path)
    return not now.digest or (now.origin == before.origin and now.is_masked and now.digest != before.digest)


def _gone(
    before: Mapping[str, ChosenFile], sources: Sequence[MemorySource], earlier_contents: Contents
) -> Callable[[], list[set[Print]]]:
    """The prints of published files that are not there any more: one of them may be a private file now."""
    here = {source.path for source in sources}
    found: list[set[Print]] = []

    def prints() -> list[set[Print]]:
        if not found:
            lost = [
                file.digest for path, file in before.items() if file.digest and not (path in here or _is_state(path))
            ]
            found.extend(prints_of(decode(data), "") for _, data in earlier_contents(lost))
        return found

    return prints


def _note_private(
    kept: Sequence[MemorySource],
    private: PrivateFiles,
    before: Mapping[str, ChosenFile],
    gone: Callable[[], list[set[Print]]],
) -> bool:
    """Read the private files that are new or were edited. True if the text of one had left before, by another name."""
    origins = {file.origin for file in before.values() if file.digest}
    has_moved = False

    def was_published(file: FoundPrivate, prints: Collection[Print]) -> bool:
        nonlocal has_moved
        moved = file.digest in origins or any(len(old & set(prints)) > _ALIKE * len(old) for old in gone() if old)
        has_moved |= moved
        return moved or bool(before.get(file.path, _NOTHING).digest)

    for source in kept:
        if private.is_current(source.path, tuple(source.stat)):
            continue
        data = source.read()
        if data is None:
            private.unread.append(source.path)
        if data:
            stat = _sure_stat(source.stat, data)
            private.note(FoundPrivate(source.path, stat, digest_of(data), decode(data)), was_published=was_published)
    return has_moved


def _exempt(sources: Sequence[MemorySource], private: PrivateFiles, before: Mapping[str, ChosenFile]) -> None:
    """Text that a published file had before a private one did stays public."""
    earlier = PrivateText({mark: path for mark, path in private.prints().items() if mark not in private.later})
    later = PrivateText(dict.fromkeys(private.later, ""))
    for source in sources:
        known = before.get(source.path)
        if known is None or not known.digest:
            continue
        data = source.read()
        if data is None or digest_of(data) != known.origin:
            continue
        text = decode(data)
        if found := later.find(text):
            masked = earlier.find(text) if known.is_masked else {}
            private.exempt |= {mark for line, prints in found.items() if line not in masked for mark in prints}


class _PublicationChooser:
    def __init__(self, private: PrivateFiles, before: Mapping[str, ChosenFile]) -> None:
        self._private, self._before = private, before
        self._text = PrivateText(private.prints())
        self._files: dict[str, ChosenFile] = {}
        self._data: dict[str, bytes] = {}  # of what was read
        self._said: dict[str, dict[int, str]] = {}

    def choose(self, sources: Sequence[MemorySource]) -> PublicationChoice:
        for source in sources:
            self._look(source, is_again=self._private.is_changed)
        names = self._withheld() | set(self._private.files)
        if not self._private.is_changed and self._withheld() != {p for p, f in self._before.items() if not f.digest}:
            for source in sources:  # the names of more files, or of fewer, are private
                if source.path not in self._data:
                    self._look(source, is_again=True)
        published = [path for path, file in self._files.items() if file.digest]
        found = PrivateNames(names, published, self._private.is_listed)
        texts = dict(self._mask(found))
        contents = {self._files[path].digest: data for path, data in self._data.items() if self._files[path].digest}
        return PublicationChoice(self._files, contents, (), texts, is_purge=False, names=found)

    def _withheld(self) -> set[str]:
        return {path for path, file in self._files.items() if not file.digest}

    def _look(self, source: MemorySource, *, is_again: bool) -> None:
        """Read a file if it changed, or if there is something else to compare it with; decide if it is withheld."""
        known = self._before.get(source.path)
        is_same = known is not None and known.stat == tuple(source.stat)
        if known is not None and is_same and not known.is_masked and not is_again:
            self._files[source.path] = known
            return
        data = source.read()
        if data is None:
            return
        origin = digest_of(data)
        chosen = ChosenFile(_sure_stat(source.stat, data), origin, origin, len(data), max(0, source.stat[1]))
        if _is_state(source.path) or self._private.is_public(source.path):
            self._files[source.path], self._data[source.path] = chosen, data
            return
        same = self._private.same_as(origin, len(data), source.path) or self._compare(source.path, decode(data))
        self._files[source.path] = chosen._replace(digest="", size=0, same_as=same) if same else chosen
        self._data[source.path] = data

    def _compare(self, path: str, text: str) -> str:
        """Note the lines that a private file has, too; that file if they are most of the text."""
        said = {line: self._text.file_of(marks[0]) for line, marks in sorted(self._text.find(text).items())}
        if said:
            self._said[path] = said
        lines = text.split("\n")
        words = {line for line in tokenize(text).lines if lines[line].strip()}
        is_copy = len(words & said.keys()) > _ALIKE * len(words) and path not in _ALWAYS_SENT
        return next(iter(said.values())) if is_copy else ""

    def _mask(self, names: PrivateNames) -> Iterator[tuple[str, PublishedText]]:
        for path, data in list(self._data.items()):
            file = self._files[path]
            if not file.digest or _is_state(path) or self._private.is_public(path):
                continue
            text = decode(data)
            said, named = self._said.get(path, {}), list(names.find(path, text))
            if not said and not named:
                continue
            masked = mask_text(path, text, said, named)
            sent = encode(masked.text, data)
            self._data[path] = sent
            self._files[path] = file._replace(digest=digest_of(sent), size=len(sent), same_as=masked.same_as)
            yield path, PublishedText(text, masked)


_NOTHING = ChosenFile((), "", "", 0, 0)
_ALWAYS_SENT = (INDEX, "HANDOVER.md", "HEARTBEAT.md", "AGENTS.md", "IDENTITY.md")


def _is_state(path: str) -> bool:
    return path.startswith(f"{STATE}/")


def _sure_stat(stat: FileStat, data: bytes) -> tuple[int, ...]:
    """The stat by which a file is known again; none while an equal stat proves nothing."""
    size, mtime_ns, ctime_ns, _ = stat
    return tuple(stat) if is_settled(mtime_ns, ctime_ns) and size == len(data) else ()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def decode(data: bytes) -> str:
    """The text of a file; every byte can be got back from it with `encode`."""
    if data[:2] in _UTF16:
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            pass
    return data.decode("utf-8", "surrogateescape")


def encode(text: str, like: bytes) -> bytes:
    """A text as the file that it is from has it."""
    is_utf16 = like[:2] in _UTF16
    return text.encode("utf-16") if is_utf16 else text.encode("utf-8", "surrogateescape")
