"""The files of a workspace, in the format's three tiers: raw files, included artifacts, and referenced ones.

No link is followed, and folders of other repositories or programs are skipped; everything left out is reported with the
reason. A file that changes while it is read raises ChangedSince.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.integrations.alf.documents import JsonObject
from truekeep.integrations.alf.sections import daily_log_date
from truekeep.integrations.alf.timestamps import format_midnight, format_timestamp
from truekeep.integrations.alf.zip_container import is_ordinary, unsafe_name

RAW, INCLUDED, REFERENCED = "raw", "included", "referenced"
ARTIFACT_THRESHOLD = 102_400  # bytes; a larger artifact is only referenced
MAX_TEXT_BYTES = 32 << 20  # a larger file gets no records
PIECE_BYTES = 1 << 18
FOREIGN_NAMES = frozenset({".git", ".truekeep", ".openclaw", "node_modules", ".venv", "__pycache__", ".DS_Store"})
_PROTECTED_NAMES = frozenset({".git", ".truekeep"})  # in any letter case: some file systems ignore it
ARCHIVE_SUFFIXES = (".alf", ".alf-delta", ".alf.age", ".alf-delta.age")
CONTROL_FILES = frozenset({".alf-agent-id", ".alf-sync-log.md"})  # of the format's own tools
MAX_OPEN_FOLDERS = 256
UNKNOWN_TIME = -62_135_596_800 * 10**9  # the beginning of the year 1: the archive states no time for the file
_LATEST_TIME = 253_402_300_799 * 10**9  # the last second of the year 9999
UPSTREAM_ROOT = frozenset(
    f"{name}.md" for name in ("SOUL", "IDENTITY", "AGENTS", "USER", "TOOLS", "HEARTBEAT", "BOOTSTRAP", "MEMORY")
)


class ListedFile(NamedTuple):
    """One file of the agent, in the workspace or in an archive: a line of truekeep/files.jsonl."""

    path: str
    entry: str | None  # None if it is only referenced
    size: int
    mtime_ns: int
    mode: int
    sha256: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def tier(self) -> str:
        return REFERENCED if self.entry is None else RAW if self.entry.startswith("raw/") else INCLUDED

    @property
    def timestamp(self) -> str:
        """The time by which its records are sorted: the date in its name, else its mtime."""
        day = daily_log_date(self.path)
        return format_midnight(day) if day is not None else format_timestamp(self.mtime_ns)

    def as_line(self) -> JsonObject:
        return {**self._asdict(), "partitions": list(self.partitions)}


def is_same_file(one: ListedFile | None, other: ListedFile) -> bool:
    """Compares everything but the digest and the partitions."""
    return one is not None and one[:5] == other[:5]


class OmittedFile(NamedTuple):
    """A file or folder that is left out of the archive."""

    path: str
    why: str


def workspace_path(entry: str) -> str:
    """The workspace file of an archive entry; empty for other entries."""
    for prefix in ("raw/openclaw/", "artifacts/"):
        path = entry.removeprefix(prefix)
        if path != entry and path:
            return path
    return ""


def entry_name(path: str, tier: str) -> str | None:
    if tier == RAW:
        return f"raw/openclaw/{path}"
    return f"artifacts/{path}" if tier == INCLUDED else None


def tier_of(path: str, size: int, *, plain: bool = False) -> str | None:
    """The tier of a file; None if it is left out. `plain`: as upstream's adapter, which takes no artifacts."""
    is_root = "/" not in path
    if path.startswith("memory/"):
        return RAW
    if plain:
        return RAW if path in UPSTREAM_ROOT else None
    if (is_root and path.endswith(".md")) or path.startswith(("rules/", ".learnings/", "skills/")):
        return RAW
    return INCLUDED if size <= ARTIFACT_THRESHOLD else REFERENCED


def refusal_reason(path: str) -> str:
    """Why a file at this path is neither exported nor imported; empty if it may be."""
    if why := unsafe_name(path) or unsafe_name(f"raw/openclaw/{path}"):
        return f"the name {why}"
    is_foreign = not FOREIGN_NAMES.isdisjoint(path.split("/")) or not _PROTECTED_NAMES.isdisjoint(
        path.casefold().split("/")
    )
    if is_foreign or path in CONTROL_FILES or path.endswith(file_io.TEMPORARY):
        return "belongs to another program"
    return ""


def clamp_time(mtime_ns: int) -> int:
    """A file time, limited to the years 1 to 9999, which the format can express."""
    return mtime_ns if UNKNOWN_TIME <= mtime_ns <= _LATEST_TIME else max(UNKNOWN_TIME, min(mtime_ns, _LATEST_TIME))


def portable_mode(mode: int) -> int:
    """File permissions for an archive: the owner can read and write, nobody else can write."""
    return mode & 0o755 | 0o600


class WorkspaceTree:
    """The folder of a workspace, open for an export."""

    def __init__(self, root: str, *, plain: bool = False) -> None:
        self.root = root
        self._plain = plain
        self._folders: dict[str, int] = {"": file_io.open_root(root)}
        self._user = os.geteuid()
        self.omitted: list[OmittedFile] = []

    def close(self) -> None:
        for descriptor in self._folders.values():
            os.close(descriptor)
        self._folders.clear()

    def __enter__(self) -> WorkspaceTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def scan(self) -> list[ListedFile]:
        """Every file that belongs to the agent, sorted by path."""
        self.omitted.clear()
        found: list[ListedFile] = []
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                descriptor = self._folder(folder)
            except FileNotFoundError:
                continue  # deleted meanwhile
            except (PermissionError, UnsafePath) as error:
                why = error.what if isinstance(error, UnsafePath) else "permission denied"
                self.omitted.append(OmittedFile(folder, why))
                continue
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    self._add(entry, path, found, folders)
        self.omitted.sort()
        return sorted(found)

    def _add(self, entry: os.DirEntry[str], path: str, found: list[ListedFile], folders: list[str]) -> None:
        name = entry.name
        if path == ".openclaw":
            self.omitted.append(OmittedFile(path, "what OpenClaw knows of this workspace"))
        if name in FOREIGN_NAMES or path in CONTROL_FILES or name.endswith(file_io.TEMPORARY):
            return
        try:
            if not path.isascii():
                path.encode()
            info = entry.stat(follow_symlinks=False)
        except UnicodeEncodeError:
            self.omitted.append(OmittedFile(os.fsencode(path).decode("utf-8", "replace"), "its name is not UTF-8"))
            return
        except OSError:
            return  # deleted meanwhile
        is_regular = stat.S_ISREG(info.st_mode)
        # The names of the folders above were checked before they were entered.
        if not (is_ordinary(path) and name.casefold() not in _PROTECTED_NAMES) and (why := refusal_reason(path)):
            self.omitted.append(OmittedFile(path, why))
        elif not is_regular and stat.S_ISDIR(info.st_mode):
            is_memory = tier_of(f"{path}/", 0, plain=self._plain) == RAW  # which may be a repository itself
            if not is_memory and os.path.lexists(os.path.join(self.root, path, ".git")):
                self.omitted.append(OmittedFile(path, "a repository of its own"))
            else:
                folders.append(path)
        elif not is_regular and stat.S_ISLNK(info.st_mode):
            self.omitted.append(OmittedFile(path, "a symbolic link"))
        elif not is_regular:
            self.omitted.append(OmittedFile(path, "not a regular file"))
        elif path.endswith(ARCHIVE_SUFFIXES):
            self.omitted.append(OmittedFile(path, "an archive"))
        elif not (info.st_uid == self._user and info.st_mode & stat.S_IRUSR) and not self._is_readable(path):
            self.omitted.append(OmittedFile(path, "permission denied"))
        elif tier := tier_of(path, info.st_size, plain=self._plain):
            mode = portable_mode(stat.S_IMODE(info.st_mode))
            found.append(ListedFile(path, entry_name(path, tier), info.st_size, clamp_time(info.st_mtime_ns), mode))

    def _is_readable(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return os.access(name, os.R_OK, dir_fd=self._folder(folder), effective_ids=True)

    def read(self, file: ListedFile) -> bytes:
        """The content of a file. Raises ChangedSince if it changed since the scan."""
        folder, _, name = file.path.rpartition("/")
        try:
            data, stamp = file_io.read_file(self._folder(folder), name, limit=1 << 40, shown=file.path)
        except OSError as error:
            raise ChangedSince(file.path) from error
        if (stamp.size, clamp_time(stamp.mtime_ns)) != (file.size, file.mtime_ns):
            raise ChangedSince(file.path)
        return data

    def pieces(self, file: ListedFile) -> Iterator[bytes]:
        """The content of a file, piece by piece. Raises ChangedSince if it changed since the scan."""
        folder, _, name = file.path.rpartition("/")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(name, flags, dir_fd=self._folder(folder))
        except OSError as error:
            raise ChangedSince(file.path) from error
        try:
            left = file.size
            while piece := os.read(descriptor, PIECE_BYTES):
                left -= len(piece)
                yield piece
            info = os.fstat(descriptor)
            if left or clamp_time(info.st_mtime_ns) != file.mtime_ns or not stat.S_ISREG(info.st_mode):
                raise ChangedSince(file.path)
        finally:
            os.close(descriptor)

    def _folder(self, path: str) -> int:
        """The descriptor of a folder; opened when first used."""
        found = self._folders.get(path)
        if found is None:
            if len(self._folders) > MAX_OPEN_FOLDERS:
                for other in [other for other in self._folders if other]:
                    os.close(self._folders.pop(other))
            found = self._open_folder(path)
        return found

    def _open_folder(self, path: str) -> int:
        found = self._folders.get(path)
        if found is None:
            above, _, name = path.rpartition("/")
            found = self._folders[path] = file_io.open_folder(self._open_folder(above), name, shown=path)
        return found
