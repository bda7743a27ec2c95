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
from truekeep.core.model import REVIEW
from truekeep.handoffs.sync.private_files import PrivateFiles
from truekeep.handoffs.sync.publication import (
    HEAD,
    OBJECTS,
    Head,
    PackReader,
    PublicationManifest,
    PublishedFile,
    UnusablePublication,
    digest_of,
    is_memory_path,
    parse_head,
    render_manifest,
    render_pack,
)
from truekeep.handoffs.sync.receipts import Signer
from truekeep.memory.file_scan import FileStat, is_settled

RENEW_SECONDS = 300  # a head that is not older is not sent again for its time alone
NOTES = "notes.json"
_PACK_BYTES = 4 << 20  # of contents in one pack
_SMALL_PACK = 256 << 10
_MOST_PACKS = 24
_MAX_DEAD_SHARE = 0.3


class MemorySource(NamedTuple):
    """One file that may be published."""

    path: str
    stat: FileStat
    read: Callable[[], bytes | None]  # None: gone, or not a regular file any more


Describe = Callable[[Collection[str]], bytes]
"""Makes a file for the publication, about the files with these paths and no others."""


class HostIdentity(NamedTuple):
    """The host that publishes."""

    id: str
    name: str
    generation: int


class Withheld(NamedTuple):
    """A file that stays on the host although no pattern names it."""

    path: str
    same_as: str


class Publication(NamedTuple):
    """What is published now."""

    folder: Path
    head: Head
    objects: tuple[str, ...]  # of this state, the manifest last
    private: tuple[str, ...]
    withheld: tuple[Withheld, ...]


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


class _Known(NamedTuple):
    """A file of the last publication."""

    stat: tuple[int, ...]
    digest: str
    size: int
    mtime_ns: int


class PublicationStore:
    """The publications of one host for machines that get the same files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._notes = _read_notes(folder / NOTES)

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
    ) -> Publication:
        """Publish the state that these sources give. The caller keeps other truekeeps from writing meanwhile.

        `described` are files that are made for it, by path: they tell of nothing that is private. `after`: the machines
        may have a state of another folder, with numbers up to this one. What that had and this has not may be private.
        """
        file_io.make_private(self.folder / OBJECTS)
        private = PrivateFiles(patterns, self._notes.private)
        listed = list(sources)
        kept = [source for source in listed if private.is_listed(source.path)]
        for source in kept:
            data = source.read()
            if data:
                private.note(source.path, digest_of(data))
        files, contents, withheld = self._read(
            [source for source in listed if not private.is_listed(source.path)], private
        )
        self._describe(described, files, contents)
        if not self._notes.sequence:  # nobody knows what the machines have
            after = max(after, published_sequence(self.folder))
        is_purge = (
            after > 0
            or not self._notes.sequence
            or any(path not in files and private.is_listed(path) for path in self._notes.files)
            or any(private.same_as(known.digest, known.size) for known in self._notes.files.values())
        )
        packs = self._pack(files, contents, is_purge=is_purge)
        manifest = PublicationManifest(tuple(_located(files, packs)), tuple((pack.name, pack.size) for pack in packs))
        raw = render_manifest(manifest)
        sequence = self._next_sequence(digest_of(raw), at, after)
        head = Head(
            PUBLICATION, __version__, host.name, host.id, host.generation, sequence, at, digest_of(raw), len(raw),
            len(files), len(kept) + len(withheld), sequence if is_purge else self._notes.purged, signer.public,
        ).signed(signer)  # fmt: skip
        self._write(raw, head)
        before = self._notes
        self._notes = _Notes(sequence, head.purged, files, packs, private.known, _names(packs, head.manifest))
        _write_notes(self.folder / NOTES, self._notes)
        self._drop_unused({*self._notes.objects, *(() if is_purge else before.objects)})
        return Publication(
            self.folder, head, self._notes.objects, tuple(sorted(source.path for source in kept)), tuple(withheld)
        )

    def _read(
        self, sources: Sequence[MemorySource], private: PrivateFiles
    ) -> tuple[dict[str, _Known], dict[str, bytes], list[Withheld]]:
        """The files to publish, the contents that are new, and what is withheld for its content."""
        files: dict[str, _Known] = {}
        contents: dict[str, bytes] = {}
        withheld: list[Withheld] = []
        packed = {digest for pack in self._notes.packs for digest in pack.digests}
        for source in sources:
            if not is_memory_path(source.path) or source.path.startswith(f"{REVIEW}/"):
                continue
            known = self._notes.files.get(source.path)
            if known is None or known.stat != tuple(source.stat):
                data = source.read()
                if data is None:
                    continue
                known = _known(source, data)
                if known.digest not in packed:
                    contents[known.digest] = data
            if same := private.same_as(known.digest, known.size):
                withheld.append(Withheld(source.path, same))
                contents.pop(known.digest, None)
                continue
            files[source.path] = known
        return files, contents, withheld

    def _describe(
        self, described: Mapping[str, Describe], files: dict[str, _Known], contents: dict[str, bytes]
    ) -> None:
        """Add what is told of the files."""
        paths = set(files)
        for path, describe in described.items():
            data = describe(paths)
            known = _Known((), digest_of(data), len(data), 0)
            files[path] = known
            contents[known.digest] = data

    def _pack(self, files: Mapping[str, _Known], contents: dict[str, bytes], *, is_purge: bool) -> list[_Pack]:
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

    def _unpack(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
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
    files: Mapping[str, _Known] = {}
    packs: Sequence[_Pack] = ()
    private: Mapping[str, str] = {}
    objects: tuple[str, ...] = ()


def _known(source: MemorySource, data: bytes) -> _Known:
    size, mtime_ns, ctime_ns, _ = source.stat
    is_sure = is_settled(mtime_ns, ctime_ns) and size == len(data)
    return _Known(tuple(source.stat) if is_sure else (), digest_of(data), len(data), max(0, mtime_ns))


def _located(files: Mapping[str, _Known], packs: Sequence[_Pack]) -> Iterator[PublishedFile]:
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
        files = {
            str(name): _Known(tuple(stat), str(digest), int(size), int(mtime_ns))
            for name, (stat, digest, size, mtime_ns) in given["files"].items()
        }
        packs = [_Pack(str(name), int(size), dict(digests)) for name, size, digests in given["packs"]]
        return _Notes(
            int(given["sequence"]), int(given["purged"]), files, packs, dict(given["private"]), tuple(given["objects"])
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return _Notes()


def _write_notes(path: Path, notes: _Notes) -> None:
    file_io.write_whole(path, json.dumps(notes._asdict(), separators=(",", ":")).encode())
