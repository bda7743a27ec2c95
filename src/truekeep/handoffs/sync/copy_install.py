"""Installs what the host published as the copy on this machine: whole, or not at all.

A new generation is a folder of its own. Files that did not change are hard links to those of the generation before;
others come from packs, each compared with its digest. When everything is there and synced, the folder gets its mark,
and one rename of the symlink `current` makes it the one that is read. A run that ends before leaves a folder without a
mark, which the next run removes. What somebody edited in a copy is kept aside, and the host's text comes back.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from truekeep.core import file_io
from truekeep.core.errors import Busy, StorageFailed, TruekeepError
from truekeep.core.memory_copy import CURRENT, GENERATIONS, HEAD, INCOMING, MARK, CopySource, read_source
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.publication import (
    MAX_MANIFEST_BYTES,
    MAX_PACK_BYTES,
    OBJECTS,
    Head,
    PackReader,
    PublicationManifest,
    PublishedFile,
    UnusablePublication,
    digest_of,
    parse_head,
    parse_manifest,
)

MANIFEST = "manifest"  # in the state folder of a generation
EDITED = "edited"
_FREE_BYTES = 16 << 20
_FILE_MODE = 0o444  # of memory: an editor says that it is only read
_UNUSABLE = (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError)
_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EACCES)


class PublicationSource(Protocol):
    """Where a publication is read from: a folder, or a git tree."""

    def read_head(self) -> bytes | None: ...  # None: the host published nothing here
    def read_object(self, digest: str, limit: int) -> bytes | None: ...


class IncomingFolder:
    """A publication in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read_head(self) -> bytes | None:
        with suppress(OSError):
            return file_io.read_regular(self.folder / HEAD, follow=False)
        return None

    def read_object(self, digest: str, limit: int) -> bytes | None:
        with suppress(OSError):
            path = self.folder / OBJECTS / digest
            return file_io.read_regular(path, follow=False) if path.lstat().st_size <= limit else None
        return None

    def drop_damaged(self) -> None:
        """Remove objects that are not what their names say, and let the host send them again."""
        with suppress(OSError):
            for name in os.listdir(self.folder / OBJECTS):
                data = self.read_object(name, MAX_PACK_BYTES)
                if data is None or digest_of(data) != name:
                    with suppress(OSError):
                        os.unlink(self.folder / OBJECTS / name)
        with suppress(OSError):
            os.unlink(self.folder / MANIFEST)  # by which the host knows what is here

    def drop_unused(self, used: Iterable[str]) -> None:
        """Remove objects of earlier states."""
        kept = set(used)
        with suppress(OSError):
            for name in os.listdir(self.folder / OBJECTS):
                if name not in kept:
                    with suppress(OSError):
                        os.unlink(self.folder / OBJECTS / name)


class NewGeneration(NamedTuple):
    """A generation that is about to be used."""

    path: Path
    before: Path | None  # the one in use, unless what is derived from it must not be carried over
    same: tuple[str, ...]  # paths that did not change since


class CopyReport(NamedTuple):
    """What a contact brought."""

    files: int = 0
    changed: int = -1  # files that differ from before; -1: the same state as before
    edited: tuple[str, ...] = ()  # where edits of the copy are kept
    as_of: str = ""
    deleted: tuple[str, ...] = ()  # files that somebody had deleted in the copy

    @property
    def notes(self) -> list[str]:
        said = []
        if self.edited:
            said.append(f"{_files(self.edited)} edited here; the edits are kept, as {self.edited[0]}.")
        if self.deleted:
            said.append(f"{_files(self.deleted)} deleted here, as {self.deleted[0]}; the host's memory counts.")
        return [f"{' '.join(said)} To change memory, leave a handoff: `truekeep handoff new`"] if said else []


def _files(paths: Sequence[str]) -> str:
    return "1 file of the copy was" if len(paths) == 1 else f"{len(paths)} files of the copy were"


class CopyFolder:
    """The copy on this machine."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))  # generations are compared by their paths

    @property
    def incoming(self) -> Path:
        return self.root / INCOMING

    def current(self) -> Path | None:
        """The generation in use."""
        path = Path(os.path.realpath(self.root / CURRENT))
        return path if (path / STATE / MARK).is_file() else None

    def key(self) -> str:
        """The key that the generation in use is signed with; "" if there is none."""
        current = self.current()
        found = _read_mark(current).get("key") if current is not None else None
        return found if isinstance(found, str) else ""

    def receive(
        self,
        source: PublicationSource,
        *,
        key: str = "",
        route: str = "",
        every: int = 0,
        finish: Callable[[NewGeneration], None] = lambda _: None,
    ) -> CopyReport | None:
        """Install what the source has; None if it has nothing. `finish` completes a generation before it is used."""
        raw = source.read_head()
        if raw is None:
            return None
        head = parse_head(raw, key=key)
        try:
            lock = self.root / "lock.d"
            file_io.make_private(lock)
            with file_io.locked(str(lock)) as is_locked:
                if not is_locked:
                    raise Busy("another truekeep is installing the copy", hint="wait until it has finished")
                return self._receive(source, head, raw, route, every, finish)
        except TruekeepError:
            raise
        except _UNUSABLE as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._no_space() from error
            raise UnusablePublication(
                f"what came from {head.host} cannot be installed: {str(error)[:200] or type(error).__name__}",
                hint="the earlier copy still answers; `truekeep sync run` on the host sends it again",
            ) from error

    def _receive(
        self,
        source: PublicationSource,
        head: Head,
        raw: bytes,
        route: str,
        every: int,
        finish: Callable[[NewGeneration], None],
    ) -> CopyReport:
        current = self.current()
        known = read_source(current) if current is not None else None
        if known is not None and current is not None:
            before = _read_mark(current)
            _check_order(head, before, self.root)
            if known.manifest == head.manifest:
                if not self._is_finished(head):
                    self._finish_switch(current, head, raw)
                elif head.as_of != known.as_of:
                    file_io.write_whole(self.root / HEAD, raw)
                return CopyReport(head.files, edited=(), as_of=head.as_of)
        packed = source.read_object(head.manifest, MAX_MANIFEST_BYTES)
        if packed is None or digest_of(packed) != head.manifest:
            raise UnusablePublication(
                "the host's memory has not come completely", hint="nothing was lost; the next run continues"
            )
        manifest = parse_manifest(packed)
        earlier = _read_manifest(current) if current is not None else {}
        name = f"{head.sequence}-{head.manifest[:12]}"
        edited = self._keep_edits(current, earlier, name) if current is not None else {}
        kept = tuple(place for place in edited.values() if place)
        may_carry = known is not None and _may_keep(known, head)
        same = {
            file.path
            for file in manifest.files
            if file.path not in edited and (old := earlier.get(file.path)) is not None and old[:4] == file[:4]
        }
        linked = same if may_carry else set()  # files of a state that is removed after the switch get new stats by it
        self._remove_earlier(current)  # now for the same reason
        self._check_space(manifest, linked)
        path = self.root / GENERATIONS / name
        shutil.rmtree(path, ignore_errors=True)  # of a run that was killed just before the switch
        try:
            self._build(path, current, manifest, linked, source)
            finish(NewGeneration(path, current if may_carry else None, tuple(sorted(same))))
            self._complete(path, head, packed, route, every, kept)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        self._switch(path)
        self._finish_switch(path, head, raw)
        deleted = tuple(path for path, place in edited.items() if not place)
        return CopyReport(len(manifest.files), len(manifest.files) - len(same), kept, head.as_of, deleted)

    # Building.

    def _build(
        self, path: Path, current: Path | None, manifest: PublicationManifest, same: set[str], source: PublicationSource
    ) -> None:
        file_io.make_private(path / STATE / "logs")
        made = {""}
        wanted: dict[int, list[PublishedFile]] = {}
        for file in manifest.files:
            folder = file.path.rpartition("/")[0]
            if folder not in made:
                os.makedirs(path / folder, 0o700, exist_ok=True)
                made.add(folder)
            if file.path not in same or current is None or not _link(f"{current}/{file.path}", f"{path}/{file.path}"):
                wanted.setdefault(file.pack, []).append(file)
        for number, files in sorted(wanted.items()):
            name, size = manifest.packs[number]
            data = source.read_object(name, MAX_PACK_BYTES)
            if data is None or len(data) != size or digest_of(data) != name:
                raise UnusablePublication(
                    "the host's memory has not come completely", hint="nothing was lost; the next run continues"
                )
            pack = PackReader(data)
            for file in files:
                mode = 0o600 if file.path.startswith(f"{STATE}/") else _FILE_MODE
                _write(f"{path}/{file.path}", pack.read(file.digest, file.size), file.mtime_ns, mode)

    def _complete(
        self, path: Path, head: Head, manifest: bytes, route: str, every: int, edited: tuple[str, ...]
    ) -> None:
        """Write the mark, the last file of a generation, when all others are on the disk."""
        (path / STATE / MANIFEST).write_bytes(manifest)
        opened = file_io.open_root(str(path))
        try:
            if file_io.can_sync_together():
                file_io.sync_together([opened])
            else:
                os.sync()
        finally:
            os.close(opened)
        mark = {
            name: getattr(head, name) for name in ("host", "host_id", "generation", "sequence", "as_of", "manifest")
        }
        mark |= {"route": route, "private": head.private, "key": head.key, "edited": edited}
        mark |= {"every": every} if every else {}
        file_io.write_whole(path / STATE / MARK, json.dumps(mark).encode())

    def _switch(self, path: Path) -> None:
        beside = self.root / f".{CURRENT}.new"  # one name: what a killed run left is replaced
        with suppress(FileNotFoundError):
            os.unlink(beside)
        os.symlink(os.path.join(GENERATIONS, path.name), beside)
        os.replace(beside, self.root / CURRENT)
        opened = file_io.open_root(str(self.root))
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

    def _is_finished(self, head: Head) -> bool:
        """False if a run was killed after the switch, before its tidying; or if the host has a new name since."""
        with suppress(OSError, TruekeepError):
            done = parse_head((self.root / HEAD).read_bytes())
            return (done.manifest, done.host) == (head.manifest, head.host)
        return False

    def _finish_switch(self, current: Path, head: Head, raw: bytes) -> None:
        """Remove earlier generations but the last, which somebody may be reading; that too if a file became private."""
        sources = {path: read_source(path) for path in self._generations() if path != current}
        kept = {path: source.sequence for path, source in sources.items() if source and _may_keep(source, head)}
        last = max(kept, key=lambda path: kept[path], default=None)
        for path in sources:
            if path != last:
                shutil.rmtree(path, ignore_errors=True)
        file_io.write_whole(self.root / HEAD, raw)

    def _generations(self) -> list[Path]:
        folder = Path(os.path.realpath(self.root / GENERATIONS))
        try:
            return [folder / name for name in os.listdir(folder)]
        except OSError:
            return []

    def _remove_earlier(self, current: Path | None) -> None:
        for path in self._generations():
            if path != current:
                shutil.rmtree(path, ignore_errors=True)

    # Edits, and room.

    def _keep_edits(self, current: Path, earlier: Mapping[str, PublishedFile], name: str) -> dict[str, str]:
        """Keep what somebody changed in the copy: where each edit is now, by its path; "" for a deleted file."""
        edited: dict[str, str] = {}
        for path in find_edits(current, earlier):
            try:
                edited[path] = self._keep_edit(current, path, name) if os.path.lexists(current / path) else ""
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise StorageFailed(
                    f"{current / path} was edited here, and the edit cannot be kept: {error.strerror or error}",
                    hint="move it out of the copy, and run it again; until then the copy stays as it is",
                ) from error
        return edited

    def _keep_edit(self, current: Path, path: str, name: str) -> str:
        """Keep the contents of one file, never over an edit that was kept before. Gives the place."""
        found = current / path
        data = os.fsencode(os.readlink(found)) if found.is_symlink() else file_io.read_regular(found, follow=False)
        number, place = 1, self.root / EDITED / name / path
        while os.path.lexists(place):
            with suppress(OSError):
                if file_io.read_regular(place, follow=False) == data:  # of a run that ended before its switch
                    return str(place)
            number += 1
            place = self.root / EDITED / f"{name}-{number}" / path
        file_io.make_private(place.parent)
        with open(place, "xb") as file:
            file.write(data)
        return str(place)

    def _check_space(self, manifest: PublicationManifest, same: set[str]) -> None:
        needed = sum(file.size + 4096 for file in manifest.files if file.path not in same)
        space = os.statvfs(self.root)
        if space.f_bavail * space.f_frsize < 2 * needed + _FREE_BYTES:
            raise self._no_space()

    def _no_space(self) -> StorageFailed:
        return StorageFailed(
            f"no space left for the copy of memory in {self.root}",
            hint="free some space" + ("; the earlier copy still answers" if self.current() is not None else ""),
        )


def find_edits(generation: Path, manifest: Mapping[str, PublishedFile] | None = None) -> list[str]:
    """The memory files of a copy that are not as the host sent them: changed, removed or added."""
    known = _read_manifest(generation) if manifest is None else manifest
    found = [path for path, file in known.items() if not _is_as_sent(f"{generation}/{path}", file)]
    return sorted([*found, *(path for path in _iter_markdown(generation) if path not in known)])


def _is_as_sent(path: str, file: PublishedFile) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and (info.st_size, info.st_mtime_ns) == (file.size, file.mtime_ns)


def _iter_markdown(generation: Path) -> Iterator[str]:
    for at, folders, names in os.walk(generation):
        inside = os.path.relpath(at, generation)
        if inside == ".":
            folders[:] = [name for name in folders if name != STATE]
        yield from (name if inside == "." else f"{inside}/{name}" for name in names if name.endswith(".md"))


def _may_keep(source: CopySource, head: Head) -> bool:
    """True if nothing of an earlier state became private since, as far as the host of both can know."""
    return source.host_id == head.host_id and head.purged <= source.sequence


def _check_order(head: Head, before: Mapping[str, object], root: Path) -> None:
    """Refuse a state that is older than the one here, or of a second host."""
    generation, sequence, host_id = before.get("generation"), before.get("sequence"), before.get("host_id")
    if not isinstance(generation, int) or not isinstance(sequence, int):
        return
    if head.generation == generation and head.host_id != host_id:
        raise UnusablePublication(
            f"{before.get('host')} and {head.host} both publish as the canonical host; the copy of"
            f" {before.get('host')} stays",
            hint="`truekeep host show` on each says who took over; `truekeep host take` on the one that is to be it",
        )
    if head.order < (generation, sequence):
        raise UnusablePublication(
            f"what came from {head.host} is older than the copy here, and was not installed",
            hint=f"if {head.host} was restored from a backup, remove {root}: the next `truekeep sync run` makes it",
        )


def _read_mark(generation: Path) -> dict[str, object]:
    try:
        found = json.loads((generation / STATE / MARK).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_published_files(generation: Path) -> dict[str, str]:
    """The paths of the files that the host sent, in order, with their digests."""
    return {path: file.digest for path, file in sorted(_read_manifest(generation).items())}


def _read_manifest(generation: Path) -> dict[str, PublishedFile]:
    try:
        return {file.path: file for file in parse_manifest((generation / STATE / MANIFEST).read_bytes()).files}
    except (OSError, UnusablePublication):
        return {}


def _link(old: str, new: str) -> bool:
    """Make a hard link; False where the file system has none: then the file is written."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError as error:
        if error.errno in (*_NO_LINKS, errno.ENOENT):
            return False
        raise
    return True


def _write(path: str, data: bytes, mtime_ns: int, mode: int) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(opened, left) :]
        os.utime(opened, ns=(mtime_ns, mtime_ns))
        os.fchmod(opened, mode)
    finally:
        os.close(opened)
