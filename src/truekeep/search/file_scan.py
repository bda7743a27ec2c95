"""What is memory, and of which kind: the files that the index covers, seen by one sweep over the workspace.

The sweep looks (names and stats), it does not read; refresh reads what changed. Drafts that wait for review are not
memory, nor are instructions to the agent, hidden folders, or anything behind a symlink.
"""

from __future__ import annotations

import errno
import os
import re
import stat
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
_PROJECT = re.compile(r"memory/(?:projects/|project-)([^/]+)\.md\Z")
_CARDS = CARDS + "/"
_ARCHIVE = ARCHIVE + "/"
_make = tuple.__new__
_ROOT_FILES = (INDEX, "USER.md", "TOOLS.md")
_ROOT_FOLDERS = ("rules", ".learnings")


Stat = tuple[int, int, int, int]  # size, mtime_ns, ctime_ns, inode, as in Source


class MemoryFile(NamedTuple):
    """One file of memory as the sweep sees it."""

    path: str  # as shown and stored: relative to the workspace; extra paths in full
    store: Store
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    location: str  # where to open it

    @property
    def stat(self) -> Stat:
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def store_of(path: str) -> Store:
    """Which store a path belongs to: curated memory, topic documents, the log of a day, or what was put away."""
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
    """The day that a log's name gives, or nothing."""
    match = _LOG.match(path)
    return match[1] if match else ""


def project_in(path: str) -> str:
    """The project that a project file's name gives, or nothing."""
    match = _PROJECT.match(path)
    return match[1] if match else ""


class ScannedFolder(NamedTuple):
    """One folder as it was listed."""

    location: str
    shown: str  # its path, as sources have it
    files: list[tuple[str, Stat]]

    @property
    def state(self) -> int:
        """Its files in one number, from their paths and stats. Numbers hash the same in every process."""
        above = crc32(self._above.encode())
        return sum([hash((crc32(name.encode(), above), info)) for name, info in self.files])

    @property
    def _above(self) -> str:
        return f"{self.shown}/" if self.shown else ""

    def sources(self) -> Iterator[MemoryFile]:
        above = self._above
        for name, info in self.files:
            yield _source(f"{above}{name}", info, f"{self.location}/{name}")


class FileScan(NamedTuple):
    """All memory files as one look saw them: names and stats."""

    folders: list[ScannedFolder]
    extra: list[MemoryFile]
    problems: list[str]  # folders that cannot be listed
    odd: list[str]  # what has the name of a memory file and is a FIFO, a device or a socket

    @property
    def mark(self) -> str:
        """What was seen in a few characters, the same in every process; nothing where a folder cannot be listed."""
        if self.problems:
            return ""
        count = len(self.extra) + sum(len(folder.files) for folder in self.folders)
        state = sum(folder.state for folder in self.folders)
        state += sum(hash((crc32(source.path.encode()), source.stat)) for source in self.extra)
        return f"{count} {state:x}"

    def sources(self) -> Iterator[MemoryFile]:
        for folder in self.folders:
            yield from folder.sources()
        yield from self.extra


def look(root: str, extra: Sequence[str] = ()) -> FileScan:
    """Look at every memory file there is, without reading one."""
    problems: list[str] = []
    odd: list[str] = []
    folders = [_root_files(root, odd)]
    for shown in (*_ROOT_FOLDERS, "memory"):
        folders += _walk(os.path.join(root, shown), shown, problems, odd)
    return FileScan(folders, list(_elsewhere(root, extra, problems, odd)), problems, odd)


def sweep(root: str, extra: Sequence[str] = ()) -> Iterator[MemoryFile]:
    """Every memory file there is, without reading one."""
    return look(root, extra).sources()


def _root_files(root: str, odd: list[str]) -> ScannedFolder:
    files: list[tuple[str, Stat]] = []
    for name in _ROOT_FILES:
        with suppress(OSError):
            info = os.lstat(os.path.join(root, name))
            if stat.S_ISREG(info.st_mode):
                files.append((name, _stat(info)))
            elif _is_odd(info.st_mode):
                odd.append(name)
    return ScannedFolder(root, "", files)


def _elsewhere(root: str, extra: Sequence[str], problems: list[str], odd: list[str]) -> Iterator[MemoryFile]:
    """The files of extra paths, where the rules of the workspace do not cover them already."""
    seen: set[str] = set()
    for location in extra:
        full = os.path.normpath(os.path.join(root, os.path.expanduser(location)))
        inside = os.path.relpath(os.path.realpath(full), os.path.realpath(root))
        if inside == "." or inside.split(os.sep)[0] in (*_ROOT_FOLDERS, *_ROOT_FILES, "memory", ".truekeep"):
            continue
        is_inside = not inside.startswith("..")
        if is_inside and os.path.islink(full):
            continue
        for source in _extra(full, inside.replace(os.sep, "/") if is_inside else full, problems, odd):
            if source.path not in seen and (is_inside or not source.location.startswith(root + os.sep)):
                seen.add(source.path)
                yield source


def _walk(location: str, shown: str, problems: list[str], odd: list[str]) -> Iterator[ScannedFolder]:
    """A folder and those below it with their Markdown files; links and hidden names are left out."""
    waiting = [(location, shown)]
    while waiting:
        location, shown = waiting.pop()
        try:
            opened = os.open(location, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                problems.append(shown)
            continue
        try:
            files, names, others = _list(opened)
        except OSError:
            problems.append(shown)
            continue
        finally:
            os.close(opened)
        odd += [f"{shown}/{name}" for name in others]
        yield ScannedFolder(location, shown, files)
        waiting += [(f"{location}/{name}", f"{shown}/{name}") for name in names if f"{shown}/{name}" != REVIEW]


def _list(folder: int) -> tuple[list[tuple[str, Stat]], list[str], list[str]]:
    """The Markdown files of an open folder, the names of its folders, and what is called like a file and is none.

    Through the folder's number a stat is quicker.
    """
    files: list[tuple[str, Stat]] = []
    names: list[str] = []
    odd: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or not (name.isascii() or _is_text(name)):
                continue
            try:
                if name.endswith(".md"):
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        files.append((name, (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)))
                        continue
                    if _is_odd(info.st_mode):
                        odd.append(name)
                if entry.is_dir(follow_symlinks=False):
                    names.append(name)
            except OSError:
                continue  # it vanished between the listing and the look
    return files, names, odd


def _is_odd(mode: int) -> bool:
    """Whether reading may wait for ever: a FIFO, a device or a socket."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _extra(location: str, shown: str, problems: list[str], odd: list[str]) -> Iterator[MemoryFile]:
    if os.path.islink(location):
        return
    if os.path.isdir(location):
        for folder in _walk(location, shown, problems, odd):
            yield from folder.sources()
        return
    try:
        info = os.lstat(location)
    except OSError:
        return
    if stat.S_ISREG(info.st_mode):
        yield _source(shown, _stat(info), location)
    elif _is_odd(info.st_mode):
        odd.append(shown)


def _stat(info: os.stat_result) -> Stat:
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino


def _source(path: str, info: Stat, location: str) -> MemoryFile:
    store: Store = "cards" if path.startswith(_CARDS) else store_of(path)
    # Ten thousand of them are made when one file changed, so without the detour over keywords.
    return _make(MemoryFile, (path, store, *info, location))


def _is_text(name: str) -> bool:
    """Whether a name can be written down; one that is not UTF-8 cannot be shown or asked for."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class Changes(NamedTuple):
    """What a sweep found to be different from the index."""

    changed: list[MemoryFile]
    gone: list[int]  # file ids
    total: int
    known: dict[str, int]  # file ids of changed files that are in the index in an older state


def compare(
    db: apsw.Connection, sources: Iterable[MemoryFile], *, transcripts: bool = False, unseen: Sequence[str] = ()
) -> Changes:
    """Which of the files seen are not in the index as they are, and which of the index's files are gone.

    `unseen` are folders that could not be listed, filled while the sources are: what was in them is not gone.
    """
    where = "= 'transcripts'" if transcripts else "!= 'transcripts'"
    rows = db.execute(
        f"SELECT path, id, size, mtime_ns, ctime_ns, inode, is_settled, store FROM files WHERE store {where}"  # noqa: S608
    )
    noted = {row[0]: row[1:] for row in rows}
    changed: list[MemoryFile] = []
    known: dict[str, int] = {}
    total = 0
    for source in sources:
        total += 1
        row = noted.pop(source.path, None)
        if row is None or row[1:] != (source.size, source.mtime_ns, source.ctime_ns, source.inode, 1, source.store):
            changed.append(source)
            if row is not None:
                known[source.path] = row[0]
    hidden = tuple(f"{folder}/" for folder in unseen)
    gone = [row[0] for path, row in noted.items() if not hidden or not path.startswith(hidden)]
    return Changes(changed, gone, total, known)


def has_all(db: apsw.Connection, sources: Iterable[MemoryFile]) -> bool:
    """Whether the index has all these files as they were seen, and none that may change without its times moving."""
    wanted = "SELECT size, mtime_ns, ctime_ns, inode, is_settled, store FROM files WHERE path = ?"
    return all(db.execute(wanted, (source.path,)).fetchone() == (*source.stat, 1, source.store) for source in sources)
