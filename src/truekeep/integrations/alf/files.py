"""The files of a workspace as an archive has them: what is memory, what is small enough to come along, what is named.

No link is followed, no folder that is another repository or another program's is entered; what is left out is told with
the reason. A file that changes while it is read is a Changed: half of one state and half of another is no state.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.integrations.alf.zip_container import is_usual, unsafe_name

RAW, INCLUDED, REFERENCED = "raw", "included", "referenced"
THRESHOLD = 102_400  # bytes: a larger artifact is only named
LONGEST_TEXT = 32 << 20  # bytes of a file that is read for its records
PIECE = 1 << 18
NOT_OURS = frozenset({".git", ".truekeep", ".openclaw", "node_modules", ".venv", "__pycache__", ".DS_Store"})
_NEVER = frozenset({".git", ".truekeep"})  # in whatever case: some disks do not tell them apart
ARCHIVES = (".alf", ".alf-delta", ".alf.age", ".alf-delta.age")
CONTROL = frozenset({".alf-agent-id", ".alf-sync-log.md"})  # of the format's own tools; written again on import
MOST_FOLDERS = 256  # held open at once: descriptors are few
NO_TIME = -62_135_596_800 * 10**9  # the first moment of the year 1: nobody knows when the file was written
_LATEST = 253_402_300_799 * 10**9  # the last second of the year 9999
UPSTREAM_ROOT = frozenset(
    f"{name}.md" for name in ("SOUL", "IDENTITY", "AGENTS", "USER", "TOOLS", "HEARTBEAT", "BOOTSTRAP", "MEMORY")
)


class Item(NamedTuple):
    """A file of the workspace."""

    path: str
    tier: str
    size: int
    mtime_ns: int
    mode: int

    @property
    def entry(self) -> str | None:
        """Its name in the archive; None for what is only named there."""
        return entry_for(self.path, self.tier)


class OmittedFile(NamedTuple):
    """What is not in the archive, and why."""

    path: str
    why: str


def path_of(entry: str) -> str:
    """The file in the workspace that an entry is; empty for entries of other kinds."""
    for prefix in ("raw/openclaw/", "artifacts/"):
        path = entry.removeprefix(prefix)
        if path != entry and path:
            return path
    return ""


def entry_for(path: str, tier: str) -> str | None:
    if tier == RAW:
        return f"raw/openclaw/{path}"
    return f"artifacts/{path}" if tier == INCLUDED else None


def tier_of(path: str, size: int, *, plain: bool = False) -> str | None:
    """Where a file goes. `plain`: as the format's own adapter has it, which takes no artifacts; None then means no."""
    is_root = "/" not in path
    if path.startswith("memory/"):
        return RAW
    if plain:
        return RAW if path in UPSTREAM_ROOT else None
    if (is_root and path.endswith(".md")) or path.startswith(("rules/", ".learnings/", "skills/")):
        return RAW
    return INCLUDED if size <= THRESHOLD else REFERENCED


def refusal(path: str) -> str:
    """Why a file is neither taken from such a place nor put there; empty where it may be."""
    if why := unsafe_name(path) or unsafe_name(f"raw/openclaw/{path}"):
        return f"the name {why}"
    is_theirs = not NOT_OURS.isdisjoint(path.split("/")) or not _NEVER.isdisjoint(path.casefold().split("/"))
    if is_theirs or path in CONTROL or path.endswith(file_io.TEMPORARY):
        return "belongs to another program"
    return ""


def sane_time(mtime_ns: int) -> int:
    """A file's time, held to the years that the format can write."""
    return mtime_ns if NO_TIME <= mtime_ns <= _LATEST else max(NO_TIME, min(mtime_ns, _LATEST))


def sane_mode(mode: int) -> int:
    """A file's permissions as they travel: whoever owns it can read and write it, and nobody else can write it."""
    return mode & 0o755 | 0o600


class WorkspaceTree:
    """A workspace's folder, held open for an export."""

    def __init__(self, root: str, *, plain: bool = False) -> None:
        self.root = root
        self._plain = plain
        self._folders: dict[str, int] = {"": file_io.open_root(root)}
        self._own = os.geteuid()  # whose files are read without asking, if their own bits say so
        self.omitted: list[OmittedFile] = []

    def close(self) -> None:
        for descriptor in self._folders.values():
            os.close(descriptor)
        self._folders.clear()

    def __enter__(self) -> WorkspaceTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def scan(self) -> list[Item]:
        """Every file that belongs to the agent, by path."""
        self.omitted.clear()
        found: list[Item] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            try:
                descriptor = self._folder(folder)
            except FileNotFoundError:
                continue  # gone by now
            except (PermissionError, UnsafePath) as error:
                what = error.what if isinstance(error, UnsafePath) else "it may not be read"
                self.omitted.append(OmittedFile(folder, what))
                continue
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    self._take(entry, path, found, waiting)
        self.omitted.sort()
        return sorted(found)

    def _take(self, entry: os.DirEntry[str], path: str, found: list[Item], waiting: list[str]) -> None:
        name = entry.name
        if name in NOT_OURS or path in CONTROL or name.endswith(file_io.TEMPORARY):
            return
        try:
            if not path.isascii():
                path.encode()
            info = entry.stat(follow_symlinks=False)
        except UnicodeEncodeError:
            self.omitted.append(OmittedFile(os.fsencode(path).decode("utf-8", "replace"), "its name is not UTF-8"))
            return
        except OSError:
            return  # gone by now
        is_plain = stat.S_ISREG(info.st_mode)
        # The folders above were looked at before they were entered.
        if not (is_usual(path) and name.casefold() not in _NEVER) and (why := refusal(path)):
            self.omitted.append(OmittedFile(path, why))
        elif not is_plain and stat.S_ISDIR(info.st_mode):
            is_memory = tier_of(f"{path}/", 0, plain=self._plain) == RAW  # also where it is kept in a repository
            if not is_memory and os.path.lexists(os.path.join(self.root, path, ".git")):
                self.omitted.append(OmittedFile(path, "a repository of its own"))
            else:
                waiting.append(path)
        elif not is_plain and stat.S_ISLNK(info.st_mode):
            self.omitted.append(OmittedFile(path, "a symbolic link"))
        elif not is_plain:
            self.omitted.append(OmittedFile(path, "no plain file"))
        elif path.endswith(ARCHIVES):
            self.omitted.append(OmittedFile(path, "an archive itself"))
        elif not (info.st_uid == self._own and info.st_mode & stat.S_IRUSR) and not self._is_readable(path):
            self.omitted.append(OmittedFile(path, "it may not be read"))
        elif tier := tier_of(path, info.st_size, plain=self._plain):
            found.append(Item(path, tier, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode)))

    def _is_readable(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return os.access(name, os.R_OK, dir_fd=self._folder(folder), effective_ids=True)

    def read(self, item: Item) -> bytes:
        """All of a file, as it was when the tree was scanned."""
        folder, _, name = item.path.rpartition("/")
        try:
            data, stamp = file_io.read_file(self._folder(folder), name, limit=1 << 40, shown=item.path)
        except OSError as error:
            raise ChangedSince(item.path) from error
        if (stamp.size, stamp.mtime_ns) != (item.size, item.mtime_ns):
            raise ChangedSince(item.path)
        return data

    def pieces(self, item: Item) -> Iterator[bytes]:
        """A file's bytes, piece by piece."""
        folder, _, name = item.path.rpartition("/")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(name, flags, dir_fd=self._folder(folder))
        except OSError as error:
            raise ChangedSince(item.path) from error
        try:
            left = item.size
            while piece := os.read(descriptor, PIECE):
                left -= len(piece)
                yield piece
            info = os.fstat(descriptor)
            if left or info.st_mtime_ns != item.mtime_ns or not stat.S_ISREG(info.st_mode):
                raise ChangedSince(item.path)
        finally:
            os.close(descriptor)

    def _folder(self, path: str) -> int:
        found = self._folders.get(path)
        if found is None:
            if len(self._folders) > MOST_FOLDERS:
                for other in [other for other in self._folders if other]:
                    os.close(self._folders.pop(other))
            found = self._opened(path)
        return found

    def _opened(self, path: str) -> int:
        found = self._folders.get(path)
        if found is None:
            above, _, name = path.rpartition("/")
            found = self._folders[path] = file_io.open_folder(self._opened(above), name, shown=path)
        return found
