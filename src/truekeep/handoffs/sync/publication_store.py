"""The folder in which the host keeps what it published: head.json, objects, and its own notes about them.

A publication has a new number only if a file changed; else its head only gets a later time. Unchanged files are not
read again: their stats decide, as in a scan. New contents go into a new pack. A pack is written again without what is
not published any more if it is small, if that is much of it, or at once if that became private. The objects of the
previous state stay until the next one, for a machine that is just fetching it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from truekeep import __version__
from truekeep.core import file_io
from truekeep.core.errors import BadSetup, TruekeepError
from truekeep.core.formats import PUBLICATION
from truekeep.handoffs.sync.private_files import PrivateFiles, PrivateNotes
from truekeep.handoffs.sync.publication import (
    HEAD,
    OBJECTS,
    Head,
    PackReader,
    PublicationManifest,
    PublishedFile,
    UnusablePublication,
    digest_of,
    parse_head,
    render_manifest,
    render_pack,
)
from truekeep.handoffs.sync.publication_choice import (
    ChosenFile,
    Masked,
    MemorySource,
    PublicationChoice,
    Withheld,
    choose_files,
)
from truekeep.handoffs.sync.receipts import Signer

RENEW_SECONDS = 300  # a head that is not older is not sent again for its time alone
NOTES = "notes.json"
_PACK_BYTES = 4 << 20  # of contents in one pack
_SMALL_PACK = 256 << 10
_MOST_PACKS = 24
_MAX_DEAD_SHARE = 0.3


Describe = Callable[[PublicationChoice], bytes]
"""Makes a file for the publication, about the files that are published and no others."""


class HostIdentity(NamedTuple):
    """The host that publishes."""

    id: str
    name: str
    generation: int


class Publication(NamedTuple):
    """What is published now."""

    folder: Path
    head: Head
    objects: tuple[str, ...]  # of this state, the manifest last
    private: tuple[str, ...]
    withheld: tuple[Withheld, ...]
    masked: tuple[Masked, ...]


def has_state(head: bytes | None, published: Publication) -> bool:
    """True if a head that is somewhere else is of the state that is published."""
    return _head_there(head, published) is not None


def is_recent(head: bytes | None, published: Publication) -> bool:
    """True if it also tells the time well enough."""
    there = _head_there(head, published)
    if there is None:
        return False
    age = _seconds(published.head.as_of) - _seconds(there.as_of)
    return 0 <= age < RENEW_SECONDS


def _head_there(head: bytes | None, published: Publication) -> Head | None:
    try:
        found = parse_head(head or b"", key=published.head.key)
    except BadSetup:
        return None
    return found if found.manifest == published.head.manifest and found.order == published.head.order else None


def published_sequence(folder: Path) -> int:
    """The number of the state that is published in a folder; 0 if there is none."""
    try:
        return parse_head(file_io.read_regular(folder / HEAD, follow=False)).sequence
    except (OSError, TruekeepError):
        return 0


class PublicationStore:
    """The publications of one host for machines that get the same files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._notes = _read_notes(folder / NOTES)

    def choose(
        self, sources: Iterable[MemorySource], patterns: Sequence[str], public: Sequence[str] = ()
    ) -> tuple[PublicationChoice, PrivateFiles]:
        """What would be published of these sources now. Writes nothing."""
        private = PrivateFiles(patterns, public, self._notes.private if self._notes.sequence else None)
        return choose_files(sources, private, self._notes.files, self._unpack), private

    def publish(
        self,
        sources: Iterable[MemorySource],
        described: Mapping[str, Describe],
        patterns: Sequence[str],
        host: HostIdentity,
        signer: Signer,
        *,
        at: str,
        after: int = 0,
        public: Sequence[str] = (),
        sequence: int = 0,
    ) -> Publication:
        """Publish the state that these sources give. The caller keeps other truekeeps from writing meanwhile.

        `described` are files that are made for it, by path: they tell of nothing that is private. `after`: the machines
        may have a state of another folder, with numbers up to this one. What that had and this has not may be private.
        `sequence`: the number of this state, if it has one already.
        """
        file_io.make_private(self.folder / OBJECTS)
        choice, private = self.choose(sources, patterns, public)
        if private.unread:
            raise UnusablePublication(
                f"{private.unread[0]} is private and cannot be read, so that nobody knows where else its text is",
                hint="correct its permissions, and run it again; until then nothing new is sent",
            )
        files, contents = choice.published, choice.contents
        self._describe(described, choice, files, contents)
        before = self._notes
        if not before.sequence:  # nobody knows what the machines have
            after = max(after, published_sequence(self.folder))
        is_purge = after > 0 or not before.sequence or choice.is_purge
        packs = self._pack(files, contents, is_purge=is_purge)
        located, names = tuple(_located(files, packs)), tuple((pack.name, pack.size) for pack in packs)
        mark, raw = before.mark, render_manifest(PublicationManifest(located, names, before.mark))
        if is_purge:  # a state of its own, so that every copy is made anew
            mark = max(before.sequence + 1, after + 1, _seconds(at))
            raw = render_manifest(PublicationManifest(located, names, mark))
        sequence = sequence or self._next_sequence(digest_of(raw), at, after)
        stays = len(choice.private) + len(choice.withheld) + len(choice.masked)
        head = Head(
            PUBLICATION, __version__, host.name, host.id, host.generation, sequence, at, digest_of(raw), len(raw),
            len(files), min(1, stays), sequence if is_purge else before.purged, signer.public,
        ).signed(signer)  # fmt: skip
        self._write(raw, head)
        self._notes = _Notes(
            sequence, head.purged, mark, choice.files, packs, private.notes, _names(packs, head.manifest)
        )
        _write_notes(self.folder / NOTES, self._notes)
        self._drop_unused({*self._notes.objects, *(() if is_purge else before.objects)})
        return Publication(self.folder, head, self._notes.objects, choice.private, choice.withheld, choice.masked)

    def _describe(
        self,
        described: Mapping[str, Describe],
        choice: PublicationChoice,
        files: dict[str, ChosenFile],
        contents: dict[str, bytes],
    ) -> None:
        """Add what is told of the files."""
        for path, describe in described.items():
            data = describe(choice)
            files[path] = ChosenFile((), digest_of(data), digest_of(data), len(data), 0)
            contents[digest_of(data)] = data

    def _pack(self, files: Mapping[str, ChosenFile], contents: dict[str, bytes], *, is_purge: bool) -> list[_Pack]:
        """The packs that have everything: earlier ones that are still good, and new ones."""
        live = {known.digest for known in files.values()}
        good = [pack for pack in self._notes.packs if not _is_stale(pack, live, is_purge=is_purge)]
        if len(good) > _MOST_PACKS:
            good = [pack for pack in good if pack.size >= _SMALL_PACK]
        here: set[str] = set()
        packs: list[_Pack] = []
        for pack in good:
            if _is_whole(self.folder / OBJECTS / pack.name, pack.size):
                packs.append(pack)
                here.update(pack.digests)
        missing = sorted(live - here - contents.keys())
        contents.update(self._unpack(missing))
        if lost := [path for path, known in files.items() if known.digest not in here and known.digest not in contents]:
            raise UnusablePublication(f"{lost[0]} changed while it was read", hint="run it again")
        new = {digest: contents[digest] for digest in sorted(live - here)}
        return [*packs, *map(self._write_pack, _batches(new))]

    def _unpack(self, digests: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Contents from packs that are written again."""
        wanted = set(digests)
        for pack in self._notes.packs:
            if inside := wanted & pack.digests.keys():
                with suppress(OSError, UnusablePublication):
                    reader = PackReader(file_io.read_regular(self.folder / OBJECTS / pack.name, follow=False))
                    for digest in inside:
                        yield digest, reader.read(digest, pack.digests[digest])
                        wanted.discard(digest)

    def _write_pack(self, contents: Mapping[str, bytes]) -> _Pack:
        data = render_pack(contents)
        name = digest_of(data)
        file_io.write_whole(self.folder / OBJECTS / name, data)
        return _Pack(name, len(data), {digest: len(content) for digest, content in contents.items()})

    def _next_sequence(self, manifest: str, at: str, after: int) -> int:
        """The number of a state: the same for the same state. A host that lost its notes goes on above by the clock."""
        before = self._notes
        if not after and before.sequence and before.objects and before.objects[-1] == manifest:
            return before.sequence
        return max(before.sequence + 1, after + 1, _seconds(at))

    def _write(self, manifest: bytes, head: Head) -> None:
        """The manifest, then the head: whoever reads a head finds all that it names."""
        path = self.folder / OBJECTS / head.manifest
        if not _is_whole(path, len(manifest)):
            file_io.write_whole(path, manifest)
        file_io.write_whole(self.folder / HEAD, head.render())

    def _drop_unused(self, used: set[str]) -> None:
        with suppress(OSError):
            for name in os.listdir(self.folder / OBJECTS):
                if name not in used:
                    with suppress(OSError):
                        os.unlink(self.folder / OBJECTS / name)


class _Pack(NamedTuple):
    """A pack, with the digests and sizes of its contents."""

    name: str
    size: int
    digests: dict[str, int]


class _Notes(NamedTuple):
    """What the last publication was."""

    sequence: int = 0
    purged: int = 0
    mark: int = 0  # of the last purge, in the manifest
    files: Mapping[str, ChosenFile] = {}
    packs: Sequence[_Pack] = ()
    private: PrivateNotes = PrivateNotes()
    objects: tuple[str, ...] = ()


def _located(files: Mapping[str, ChosenFile], packs: Sequence[_Pack]) -> Iterator[PublishedFile]:
    places = {digest: number for number, pack in enumerate(packs) for digest in pack.digests}
    for path in sorted(files):
        known = files[path]
        yield PublishedFile(path, known.digest, known.size, known.mtime_ns, places[known.digest])


def _is_stale(pack: _Pack, live: set[str], *, is_purge: bool) -> bool:
    """True if a pack must be written again without what is not published any more."""
    dead = sum(size for digest, size in pack.digests.items() if digest not in live)
    if pack.digests.keys() <= live:
        return False
    return is_purge or pack.size < _SMALL_PACK or dead > _MAX_DEAD_SHARE * (sum(pack.digests.values()) or 1)


def _batches(contents: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    some: dict[str, bytes] = {}
    size = 0
    for digest, data in contents.items():
        if some and size + len(data) > _PACK_BYTES:
            yield some
            some, size = {}, 0
        some[digest] = data
        size += len(data)
    if some:
        yield some


def _names(packs: Sequence[_Pack], manifest: str) -> tuple[str, ...]:
    return (*(pack.name for pack in packs), manifest)


def _is_whole(path: Path, size: int) -> bool:
    try:
        return path.lstat().st_size == size
    except OSError:
        return False


def _seconds(stamp: str) -> int:
    try:
        return max(1, int(datetime.fromisoformat(stamp).timestamp()))
    except (ValueError, OverflowError):
        return 1


def _read_notes(path: Path) -> _Notes:
    """The notes of the last publication; none if they cannot be read: then everything is read and packed again."""
    try:
        given = json.loads(file_io.read_regular(path, follow=False))
        files = {str(name): ChosenFile(tuple(stat), *rest) for name, (stat, *rest) in given["files"].items()}
        packs = [_Pack(str(name), int(size), dict(digests)) for name, size, digests in given["packs"]]
        private, objects = PrivateNotes.unpacked(given["private"]), tuple(given["objects"])
        return _Notes(int(given["sequence"]), int(given["purged"]), int(given["mark"]), files, packs, private, objects)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _Notes()


def _write_notes(path: Path, notes: _Notes) -> None:
    given = {**notes._asdict(), "private": notes.private.packed()}
    file_io.write_whole(path, json.dumps(given, separators=(",", ":")).encode())
