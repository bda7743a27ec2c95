"""The memory files, their kinds, and which of them changed: one scan, and one rule for every derived database.

A scan reads names and stats, never contents; the search index, the survey and the catalogue of cards compare it with
their own table of files (FILE_COLUMNS) and read only what changed. Drafts that wait for review are not memory, nor are
instructions to the agent, hidden folders, or anything behind a symlink.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple
from zlib import crc32

from truekeep.core.model import ARCHIVE, CARDS, INDEX, REVIEW

if TYPE_CHECKING:
    import apsw

Store = Literal["cards", "documents", "logs", "transcripts", "archive"]
STORES: tuple[Store, ...] = ("cards", "documents", "logs", "transcripts", "archive")

_LOG = re.compile(r"memory/(?:[^/]+/)*([0-9]{4}-[0-9]{2}-[0-9]{2})[^/]*\.md\Z")
_DATED = re.compile(r"(?<!\d)(?:19|20)\d\d[-_.年]?(?:0[1-9]|1[0-2])[-_.月]?(?:0[1-9]|[12]\d|3[01])(?!\d)")
_PROJECT = re.compile(r"memory/(?:projects/|project-)([^/]+)\.md\Z")
_CARDS = CARDS + "/"
_ARCHIVE = ARCHIVE + "/"
ROOT_FILES = (INDEX, "USER.md", "TOOLS.md")
ROOT_FOLDERS = ("rules", ".learnings")
FILE_LIMIT = 8_000_000  # bytes of one file that are read
CLOCK_TICK_NS = 2_000_000_000  # the coarsest clock that a file system has
FILE_COLUMNS = """
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, store TEXT NOT NULL, size INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  is_settled INTEGER NOT NULL       -- 0: read so shortly after a change that an equal stat proves nothing
"""

FileStat = tuple[int, int, int, int]  # size, mtime_ns, ctime_ns, inode


class MemoryFile(NamedTuple):
    """One memory file as a scan sees it."""

    path: str  # as shown and stored: relative to the workspace; extra paths in full
    store: Store
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    location: str  # where to open it

    @property
    def stat(self) -> FileStat:
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def store_of(path: str) -> Store:
    """The store that a path belongs to: curated memory, topic documents, daily logs, or the archive."""
    if path == INDEX or path.startswith(_CARDS):
        return "cards"
    if path.startswith(_ARCHIVE):
        return "archive"
    return "logs" if is_log(path) else "documents"


def is_log(path: str) -> bool:
    if path.startswith(_ARCHIVE):
        return False
    return _LOG.match(path) is not None or path.startswith(("memory/daily/", "memory/checkpoints/"))


def day_in(path: str) -> str:
    """The day in a log's name; empty if it has none."""
    match = _LOG.match(path)
    return match[1] if match else ""


def is_dated(path: str) -> bool:
    """Whether a file is of one day by its name or a folder's: what it says was so then."""
    return _DATED.search(path) is not None


def project_in(path: str) -> str:
    """The project in a project file's name; empty if it has none."""
    match = _PROJECT.match(path)
    return match[1] if match else ""


class ScannedFolder(NamedTuple):
    """The Markdown files of one folder: names and stats."""

    location: str
    shown: str  # its path, as MemoryFile has it
    entries: list[tuple[str, FileStat]]

    @property
    def fingerprint(self) -> int:
        """A number made of the paths and stats of its files. Numbers hash the same in every process."""
        prefix = crc32(self._prefix.encode())
        return sum([hash((crc32(name.encode(), prefix), info)) for name, info in self.entries])

    @property
    def _prefix(self) -> str:
        return f"{self.shown}/" if self.shown else ""

    def files(self) -> Iterator[MemoryFile]:
        prefix = self._prefix
        for name, info in self.entries:
            yield _memory_file(f"{prefix}{name}", info, f"{self.location}/{name}")


class FileScan(NamedTuple):
    """The names and stats of all memory files."""

    folders: list[ScannedFolder]
    extra: list[MemoryFile]
    unlisted_folders: list[str]  # listing them failed
    special_files: list[str]  # FIFOs, devices and sockets with the name of a memory file
    large_documents: Sequence[str] = ()  # left out for their size

    @property
    def fingerprint(self) -> str:
        """A short text that changes with any file, the same in every process; empty if a folder cannot be listed."""
        if self.unlisted_folders:
            return ""
        count = len(self.extra) + sum(len(folder.entries) for folder in self.folders)
        total = sum(folder.fingerprint for folder in self.folders)
        total += sum(hash((crc32(file.path.encode()), file.stat)) for file in self.extra)
        return f"{count} {total:x}"

    def files(self) -> Iterator[MemoryFile]:
        for folder in self.folders:
            yield from folder.files()
        yield from self.extra


def scan_files(root: str, extra: Sequence[str] = ()) -> FileScan:
    """List every memory file with its stat, without reading one."""
    unlisted: list[str] = []
    special: list[str] = []
    folders = [_root_files(root, special)]
    for shown in (*ROOT_FOLDERS, "memory"):
        folders += _walk(os.path.join(root, shown), shown, unlisted, special)
    return FileScan(folders, list(_extra_files(root, extra, unlisted, special)), unlisted, special)


def iter_files(root: str, extra: Sequence[str] = ()) -> Iterator[MemoryFile]:
    """Every memory file, without reading one."""
    return scan_files(root, extra).files()


def _root_files(root: str, special: list[str]) -> ScannedFolder:
    files: list[tuple[str, FileStat]] = []
    for name in ROOT_FILES:
        with suppress(OSError):
            info = os.lstat(os.path.join(root, name))
            if stat.S_ISREG(info.st_mode):
                files.append((name, stat_of(info)))
            elif _is_special(info.st_mode):
                special.append(name)
    return ScannedFolder(root, "", files)


def _extra_files(root: str, extra: Sequence[str], unlisted: list[str], special: list[str]) -> Iterator[MemoryFile]:
    """The files of extra paths that the rules of the workspace do not cover already."""
    seen: set[str] = set()
    for location in extra:
        full = os.path.normpath(os.path.join(root, os.path.expanduser(location)))
        inside = os.path.relpath(os.path.realpath(full), os.path.realpath(root))
        if inside == "." or inside.split(os.sep)[0] in (*ROOT_FOLDERS, *ROOT_FILES, "memory", ".truekeep"):
            continue
        is_inside = not inside.startswith("..")
        if is_inside and os.path.islink(full):
            continue
        for file in _extra_path(full, inside.replace(os.sep, "/") if is_inside else full, unlisted, special):
            if file.path not in seen and (is_inside or not file.location.startswith(root + os.sep)):
                seen.add(file.path)
                yield file


def _walk(location: str, shown: str, unlisted: list[str], special: list[str]) -> Iterator[ScannedFolder]:
    """A folder and those below it with their Markdown files, without links and hidden names."""
    waiting = [(location, shown)]
    while waiting:
        location, shown = waiting.pop()
        try:
            opened = os.open(location, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                unlisted.append(shown)
            continue
        try:
            files, names, others = list_folder(opened)
        except OSError:
            unlisted.append(shown)
            continue
        finally:
            os.close(opened)
        special += [f"{shown}/{name}" for name in others]
        yield ScannedFolder(location, shown, files)
        waiting += [(f"{location}/{name}", f"{shown}/{name}") for name in names if f"{shown}/{name}" != REVIEW]


def list_folder(descriptor: int) -> tuple[list[tuple[str, FileStat]], list[str], list[str]]:
    """The Markdown files of an open folder, its folders, and its special files. Stats are quicker by descriptor."""
    files: list[tuple[str, FileStat]] = []
    names: list[str] = []
    special: list[str] = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or not is_utf8(name):
                continue
            try:
                if name.endswith(".md"):
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        files.append((name, (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)))
                        continue
                    if _is_special(info.st_mode):
                        special.append(name)
                if entry.is_dir(follow_symlinks=False):
                    names.append(name)
            except OSError:
                continue  # it vanished between the listing and the stat
    return files, names, special


def _is_special(mode: int) -> bool:
    """True for a FIFO, a device or a socket, where a read may wait for ever."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _extra_path(location: str, shown: str, unlisted: list[str], special: list[str]) -> Iterator[MemoryFile]:
    if os.path.islink(location):
        return
    if os.path.isdir(location):
        for folder in _walk(location, shown, unlisted, special):
            yield from folder.files()
        return
    try:
        info = os.lstat(location)
    except OSError:
        return
    if stat.S_ISREG(info.st_mode):
        yield _memory_file(shown, stat_of(info), location)
    elif _is_special(info.st_mode):
        special.append(shown)


def stat_of(info: os.stat_result) -> FileStat:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino


def _memory_file(path: str, info: FileStat, location: str) -> MemoryFile:
    store: Store = "cards" if path.startswith(_CARDS) else store_of(path)
    # tuple.__new__ is much quicker than MemoryFile(...), and one changed file makes 10,000 of them.
    return tuple.__new__(MemoryFile, (path, store, *info, location))


def is_utf8(name: str) -> bool:
    """Whether a file name is valid text. Any other name cannot be shown or asked for."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class Changes(NamedTuple):
    """How the files of a scan differ from a database's table of files."""

    changed: list[MemoryFile]
    gone: list[int]  # file ids
    total: int
    known: dict[str, int]  # file ids of changed files that the table has in an older state


def find_changes(
    db: apsw.Connection,
    files: Iterable[MemoryFile],
    *,
    transcripts: bool = False,
    unlisted: Sequence[str] = (),
    table: str = "files",
) -> Changes:
    """Compare files with the table of files: which ones are new or changed, and which are gone.

    Files in `unlisted` folders are not gone.
    """
    where = "= 'transcripts'" if transcripts else "!= 'transcripts'"
    rows = db.execute(
        f"SELECT path, id, size, mtime_ns, ctime_ns, inode, is_settled, store FROM {table} WHERE store {where}"  # noqa: S608
    )
    noted = {row[0]: row[1:] for row in rows}
    changed: list[MemoryFile] = []
    known: dict[str, int] = {}
    total = 0
    for file in files:
        total += 1
        row = noted.pop(file.path, None)
        if row is None or row[1:] != (file.size, file.mtime_ns, file.ctime_ns, file.inode, 1, file.store):
            changed.append(file)
            if row is not None:
                known[file.path] = row[0]
    hidden = tuple(f"{folder}/" for folder in unlisted)
    gone = [row[0] for path, row in noted.items() if not hidden or not path.startswith(hidden)]
    return Changes(changed, gone, total, known)


def is_up_to_date(db: apsw.Connection, files: Iterable[MemoryFile]) -> bool:
    """Whether the table of files has all these files with these stats, each of them settled."""
    wanted = "SELECT size, mtime_ns, ctime_ns, inode, is_settled, store FROM files WHERE path = ?"
    return all(db.execute(wanted, (file.path,)).fetchone() == (*file.stat, 1, file.store) for file in files)


def is_settled(mtime_ns: int, ctime_ns: int) -> bool:
    """Whether a file that is read now can no longer change without its times changing."""
    return time.time_ns() - max(mtime_ns, ctime_ns) > CLOCK_TICK_NS


def read_memory_file(location: str) -> tuple[bytes, os.stat_result]:
    """The first FILE_LIMIT bytes of a regular file, and the stat that belongs to exactly these bytes."""
    for attempt in range(3):
        descriptor = os.open(location, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            data = b""
            while len(data) < FILE_LIMIT and (more := os.read(descriptor, FILE_LIMIT - len(data))):
                data += more
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns) or attempt == 2:
            return data, after
    raise AssertionError("unreachable")
