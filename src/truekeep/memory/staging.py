"""The memory files of a workspace. Only this module reads and writes them.

Reading gives bytes with a stamp. Writing happens in a Staging: edits pile up in memory, each with the splice that the
ledger will keep, and are then put on disk together, every file whole. What a person changed after it was read is
never overwritten.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, FileStamp, StrandedEdit, UnsafePath
from truekeep.core.model import INDEX, Splice

if TYPE_CHECKING:
    from truekeep.memory.memory_index import Pointers

FILE_LIMIT = 64 * 1024 * 1024
MAX_OPEN_FOLDERS = 256
MIN_FILES_FOR_SYNCFS = 32  # one sync of the file system is then cheaper than one for each file


class FileOnDisk(NamedTuple):
    """A memory file as it is on disk."""

    data: bytes
    stamp: FileStamp


class Change:
    """The change of one file: the bytes before and after, and the splices between, each with its entry."""

    def __init__(
        self, path: str, before: FileOnDisk | None, data: bytes | None, splices: list[tuple[int, Splice]] | None = None
    ) -> None:
        self.path = path
        self.before = before
        self.data = data
        self.splices = [] if splices is None else splices
        self.mode: int | None = before.stamp.mode if before else None

    @property
    def before_digest(self) -> bytes | None:
        return _digest(self.before.data) if self.before else None

    @property
    def after_digest(self) -> bytes | None:
        return _digest(self.data) if self.data is not None else None


class Incoming(NamedTuple):
    """A new file to be created."""

    path: str
    pieces: Iterable[bytes]
    mode: int
    mtime_ns: int


class WriteFailed(Exception):
    """The disk refused a file before anything became visible."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(path)
        self.path = path
        self.error = error


class MemoryFiles:
    """The folder of a workspace, kept open."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folders: dict[str, int] = {"": file_io.open_root(root)}

    def close(self) -> None:
        for descriptor in self._folders.values():
            os.close(descriptor)
        self._folders.clear()

    def read(self, path: str) -> FileOnDisk | None:
        """A file's bytes; None if it does not exist. Raises UnsafePath if it is not a regular file of the workspace."""
        folder, _, name = path.rpartition("/")
        try:
            return FileOnDisk(*file_io.read_file(self._folder(folder), name, limit=FILE_LIMIT, shown=path))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise UnsafePath(path, "has a name that the file system does not take") from error
            raise

    def names(self, folder: str) -> Iterator[os.DirEntry[str]]:
        """The entries of a folder; none if the folder does not exist."""
        try:
            descriptor = self._folder(folder)
        except FileNotFoundError:
            return
        with os.scandir(descriptor) as entries:
            yield from entries

    def _folder(self, path: str, *, make: bool = False) -> int:
        found = self._folders.get(path)
        if found is not None:
            return found
        above, _, name = path.rpartition("/")
        parent = self._folder(above, make=make)
        try:
            descriptor = file_io.open_folder(parent, name, shown=path)
        except FileNotFoundError:
            if not make:
                raise
            os.mkdir(name, dir_fd=parent)
            os.fsync(parent)
            descriptor = file_io.open_folder(parent, name, shown=path)
        self._folders[path] = descriptor
        return descriptor

    def forget_folders(self) -> None:
        """Close the open folders if there are many."""
        if len(self._folders) > MAX_OPEN_FOLDERS:
            for path in [path for path in self._folders if path]:
                os.close(self._folders.pop(path))

    def apply(self, changes: list[Change]) -> dict[str, FileStamp]:
        """Write all changes. First every file is written and synced to a temporary name, then each is moved into place.

        WriteFailed means that nothing became visible. ChangedSince means that a person was faster with one file; the
        ledger's pending batch says which of the others were already in place.
        """
        stamps: dict[str, FileStamp] = {}
        prepared: list[tuple[int, str]] = []
        together = len(changes) >= MIN_FILES_FOR_SYNCFS and file_io.can_sync_together()
        try:
            for change in changes:
                if change.data is not None:
                    folder, name = self._place(change.path)
                    prepared.append((folder, name))
                    stamps[change.path] = file_io.write_beside(
                        folder, name, change.data, mode=change.mode, sync=not together
                    )
            if together:
                file_io.sync_together({folder for folder, _ in prepared})
        except OSError as error:
            for folder, name in prepared:
                file_io.discard(folder, name)
            raise WriteFailed(change.path, error) from error
        touched: set[int] = set()
        waiting = dict.fromkeys(prepared)
        try:
            for change in changes:
                folder, name = self._place(change.path)
                touched.add(folder)
                if change.data is None:
                    if change.before is not None:
                        file_io.remove(folder, name, change.before.stamp, shown=change.path)
                elif change.before is None:
                    file_io.put_new(folder, name, shown=change.path)
                else:
                    file_io.put_over(folder, name, change.before.stamp, shown=change.path)
                waiting.pop((folder, name), None)
        except (ChangedSince, OSError) as error:
            for place in waiting:
                if not (isinstance(error, StrandedEdit) and place == (folder, name)):
                    file_io.discard(*place)
            raise
        for folder in touched:
            os.fsync(folder)
        return stamps

    def take_in(self, files: Iterable[Incoming], tell: Callable[[int], None] = lambda _: None) -> int:
        """Create new files with their times and modes. All are written to temporary names first.

        WriteFailed, or whatever the pieces raise, means that nothing became visible; ChangedSince, that something came
        to stand in one of the places meanwhile: those before it are there, the others are not.
        """
        waiting: list[str] = []
        together = file_io.can_sync_together()
        try:
            for number, file in enumerate(files):
                tell(number)
                self.forget_folders()
                waiting.append(file.path)
                self._write_incoming(file, sync=not together)
            if together and waiting:
                file_io.sync_together({self._folders[""]})
            count = len(waiting)
            waiting.reverse()
            while waiting:
                self.forget_folders()
                folder, name = self._place(waiting[-1])
                file_io.put_new(folder, name, shown=waiting[-1])
                waiting.pop()
            if together and count:
                file_io.sync_together({self._folders[""]})
            return count
        finally:
            for path in waiting:
                self.discard_temporary(path)

    def _write_incoming(self, file: Incoming, *, sync: bool) -> None:
        try:
            folder, name = self._place(file.path)
            with suppress(FileNotFoundError):
                os.unlink(file_io.temporary_name(name), dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(file_io.temporary_name(name), flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise WriteFailed(file.path, error) from error
        try:
            for piece in file.pieces:
                while piece:
                    piece = piece[os.write(descriptor, piece) :]
            os.fchmod(descriptor, file.mode)
            os.utime(descriptor, ns=(file.mtime_ns, file.mtime_ns))
            if sync:
                os.fsync(descriptor)
        except OSError as error:
            raise WriteFailed(file.path, error) from error
        finally:
            os.close(descriptor)

    def set_time(self, path: str, mtime_ns: int) -> None:
        """Set the time of a file, if the file system allows it."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError, UnsafePath):
            os.utime(name, ns=(mtime_ns, mtime_ns), dir_fd=self._folder(folder), follow_symlinks=False)

    def add_mode(self, path: str, bits: int) -> bool:
        """Add permissions to a regular file. Returns whether that changed anything."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError, UnsafePath):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=self._folder(folder))
            try:
                mode = os.fstat(descriptor).st_mode
                if stat.S_ISREG(mode) and mode | bits != mode:
                    os.fchmod(descriptor, stat.S_IMODE(mode) | bits)
                    return True
            finally:
                os.close(descriptor)
        return False

    def _place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder, make=True), name

    def read_temporary(self, path: str) -> bytes | None:
        """The temporary file that a killed run left beside a file."""
        folder, _, name = path.rpartition("/")
        with suppress(OSError, UnsafePath, ChangedSince):
            return file_io.read_file(self._folder(folder), file_io.temporary_name(name), limit=FILE_LIMIT)[0]
        return None

    def discard_temporary(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        with suppress(OSError, UnsafePath):
            file_io.discard(self._folder(folder), name)

    def put_back_temporary(self, path: str) -> None:
        """Move the bytes that an exchange took from a file back to it."""
        folder, _, name = path.rpartition("/")
        file_io.put_back(self._folder(folder), name)
        self.discard_temporary(path)

    def sync_folder(self, path: str) -> None:
        """Sync the folder of a file, and new folders above it, so that they survive a power loss."""
        folder = path.rpartition("/")[0]
        while True:
            with suppress(FileNotFoundError, UnsafePath):
                os.fsync(self._folder(folder))
            if not folder:
                return
            folder = folder.rpartition("/")[0]


class Staging:
    """Edits to be written together. Later edits see earlier ones.

    One that comes `after` another need not read the whole index again to know what it points at.
    """

    def __init__(self, vault: MemoryFiles, after: Staging | None = None) -> None:
        self._vault = vault
        self._known_index = after._index_after if after else None
        self._index_after: tuple[bytes, set[str] | None] | None = None
        self._changes: dict[str, Change] = {}
        self._read: dict[str, FileOnDisk | None] = {}
        self._pointers: Pointers | None = None
        self._index_before: FileOnDisk | None = None

    def read(self, path: str) -> bytes | None:
        change = self._changes.get(path)
        if change is not None:
            return change.data
        stored = self._stored(path)
        return stored.data if stored else None

    def found(self, path: str) -> bytes | None:
        """A file as it is on disk, without staged edits."""
        stored = self._stored(path)
        return stored.data if stored else None

    def _stored(self, path: str) -> FileOnDisk | None:
        """A file as it was when this batch first read it. Before writing, it is compared with this."""
        if path not in self._read:
            self._read[path] = self._vault.read(path)
        return self._read[path]

    def put(self, path: str, data: bytes | None, entry: int) -> None:
        """Replace a file's bytes, create it, or (None) remove it."""
        change = self._change(path)
        change.splices += [(entry, splice) for splice in _splices(path, change.data or b"", data or b"")]
        change.data = data

    def move(self, path: str, to: str, entry: int) -> None:
        """Create a file by moving one, with its bytes and permissions."""
        stored = self._stored(path)
        if stored is None or self._stored(to) is not None:
            raise ChangedSince(path if stored is None else to)
        self.put(to, stored.data, entry)
        self._changes[to].mode = stored.stamp.mode
        self.put(path, None, entry)

    def append(self, path: str, data: bytes, entry: int) -> None:
        """Append bytes to a file, or create it with them."""
        change = self._change(path)
        old = change.data or b""
        change.splices.append((entry, Splice(path=path, offset=len(old), removed=b"", inserted=data)))
        change.data = old + data

    def splice(self, splice: Splice, entry: int) -> None:
        """Apply one splice to a file."""
        change = self._change(splice.path)
        data = change.data or b""
        end = splice.offset + len(splice.removed)
        change.data = b"".join((data[: splice.offset], splice.inserted, data[end:]))
        change.splices.append((entry, splice))

    def remove_if_empty(self, path: str) -> None:
        """Remove a file if it is empty."""
        change = self._change(path)
        if not change.data:
            change.data = None

    def point_at(self, card_name: str, topic: str, entry: int, *, old_topic: str = "") -> None:
        """Give the index exactly one line for a card."""
        self.index().point_at(card_name, topic, entry, old_topic=old_topic)

    def unpoint(self, card_name: str, entry: int) -> list[str]:
        """Remove the lines that only link to a card from the index. Returns the lines that are left to a person."""
        return self.index().drop(card_name, entry)

    def index(self) -> Pointers:
        """The index with its staged edits."""
        if self._pointers is None:
            from truekeep.memory.memory_index import Pointers

            self._index_before = self._stored(INDEX)
            data = self._index_before.data if self._index_before else None
            known, linked = self._known_index or (None, None)
            self._pointers = Pointers(data, linked if data == known else None)
        return self._pointers

    def paths(self) -> Iterator[str]:
        """The files with staged edits, without the index."""
        yield from self._changes

    def changes(self) -> list[Change]:
        """Everything staged: cards and documents first, the index last, as a reader should find them."""
        changes = [change for change in self._changes.values() if change.splices]
        if self._pointers is not None and (splices := self._pointers.splices()):
            data = self._pointers.render()
            self._index_after = data, self._pointers.linked()
            changes.append(Change(INDEX, self._index_before, data, splices))
        return changes

    def _change(self, path: str) -> Change:
        change = self._changes.get(path)
        if change is None:
            stored = self._stored(path)
            change = self._changes[path] = Change(path, stored, stored.data if stored else None)
        return change


def _digest(data: bytes) -> bytes:
    import hashlib  # hooks only read

    return hashlib.sha256(data).digest()


def _splices(path: str, old: bytes, new: bytes) -> list[Splice]:
    """The splices that turn one text into the other, line by line, so that unchanged lines keep their owner."""
    if not old or not new:
        return [Splice(path=path, offset=0, removed=old, inserted=new)]
    from truekeep.text.line_diff import kept_lines  # hooks only read

    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    splices = []
    at = there = offset = 0
    for start, new_start, length in (*kept_lines(old_lines, new_lines), (len(old_lines), len(new_lines), 0)):
        removed, inserted = b"".join(old_lines[at:start]), b"".join(new_lines[there:new_start])
        if removed or inserted:
            splices.append(Splice(path=path, offset=offset, removed=removed, inserted=inserted))
        offset += len(inserted) + sum(map(len, new_lines[new_start : new_start + length]))
        at, there = start + length, new_start + length
    return splices
