"""A working folder: an ordinary workspace on the disk of a server process that follows the record in the database.

    <folder>/memory/        the workspace: files, and in .truekeep the ledger and what is derived
    <folder>/base.sqlite    which version the folder has, and the digest and stat of each file then
    <folder>/set-aside/     edits that could not be kept because the record has another text; never deleted

The record decides. A folder that a killed process left in between (`trusted` is not set) is compared with the record,
file by file, and what differs is set aside. An edit by hand in a folder that is whole is a change like any other.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import apsw

from truekeep.core import file_io
from truekeep.core.errors import Busy, StorageFailed
from truekeep.core.machine import Machine
from truekeep.core.sqlite import transaction
from truekeep.core.state_dir import STATE
from truekeep.memory.file_scan import is_settled
from truekeep.server.ledger_pages import LedgerWatch, write_pages
from truekeep.server.record import ChangedMeanwhile, FileState, Record, RecordChange
from truekeep.workspace.workspace import Workspace

MAX_FILE_BYTES = 64 << 20
_STATE_FILES = ("config.toml", "decay.toml")  # of .truekeep; all others are derived, of one machine, or the ledger
_SKIPPED_FOLDERS = (".git", STATE)
_BASE = """
CREATE TABLE IF NOT EXISTS file (
  path TEXT PRIMARY KEY, sha256 BLOB NOT NULL, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_MOST_TRIES = 20


class KnownFile(NamedTuple):
    """A file as it was when the folder last agreed with the record."""

    sha256: bytes
    stat: tuple[int, int, int, int]


class WorkingFolder:
    """One working folder. One process and one thread at a time uses it."""

    def __init__(self, folder: Path, record: Record, identity: Machine) -> None:
        self.folder = folder
        self.path = folder / "memory"
        self.record = record
        self._identity = identity
        file_io.make_private(folder)
        self._base = apsw.Connection(str(folder / "base.sqlite"))
        self._base.execute(_BASE)
        self._watch: LedgerWatch | None = None
        self._seen: dict[str, tuple[int, int, int, int]] = {}  # the stats with which changed files were read

    def close(self) -> None:
        self.stop_watching()
        self._base.close()

    def open(self, now: Callable[[], datetime] | None = None) -> Workspace:
        """The workspace in it. The deployment is its host, on whichever machine this is."""
        opened = Workspace(self.path, now=now)
        opened.context.__dict__["machine"] = self._identity  # where `this_machine()` would be kept
        return opened

    # What it has.

    @property
    def version(self) -> int:
        return self._state("version")

    @property
    def is_trusted(self) -> bool:
        return bool(self._state("trusted"))

    def _state(self, key: str) -> int:
        return int(self._base.execute("SELECT value FROM state WHERE key = ?", (key,)).get or 0)

    def _set_state(self, **values: int) -> None:
        self._base.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(values.items()))

    def distrust(self) -> None:
        """Note that files may differ from the record until `note_committed` or `follow`."""
        self._set_state(trusted=0)

    # From the record.

    def follow(self, *, is_reset: bool = False) -> int:
        """Bring the folder to the record's version; only what changed is read. Nobody else has it open."""
        is_whole = is_reset or not self.is_trusted
        base = 0 if is_whole else self.version
        if is_whole:
            self._prepare()
        self.distrust()
        for _ in range(_MOST_TRIES):
            with suppress(ChangedMeanwhile):
                change, version = self.record.changes_since(base)
                self._apply(change, version, is_whole)
                return version
        raise Busy("the workspace changes faster than it can be read", hint="try again in a moment")

    def _prepare(self) -> None:
        """The state files of a workspace, the same in every folder of the deployment."""
        (self.path / STATE).mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = self.open()
        opened.state.make(self._identity, (), at="2026-01-01T00:00:00Z", is_new=False)
        for name in _STATE_FILES:
            (self.path / STATE / name).unlink(missing_ok=True)  # the record has them, or there is none

    def _apply(self, change: RecordChange, version: int, is_whole: bool) -> None:
        known = self._known(None if is_whole else [file.path for file in change.files])
        wanted = [file for file in change.files if not self._has(file, known.get(file.path))]
        if is_whole:
            listed = {file.path for file in change.files if file.sha256 is not None}
            for path in [path for path, _ in self._scan() if path not in listed]:
                self._keep_if_edited(path, known.get(path))
                self._remove(path)
        for file in wanted:  # first what goes, as a file may become a folder
            if file.sha256 is None:
                self._remove(file.path)
        for contents in self.record.iter_contents([file.sha256 for file in wanted if file.sha256 is not None]):
            for file in wanted:
                if file.sha256 is not None and file.sha256 in contents:
                    self._write(file, contents[file.sha256])
        ledger = self.path / STATE / "ledger.sqlite"
        if is_whole or change.pages or self._state("pages") != (change.page_count or 0):
            write_pages(ledger, change.pages, change.page_count or 0)
        with transaction(self._base):
            if is_whole:
                self._base.execute("DELETE FROM file")
            self._note_files(change.files)
            self._set_state(version=version, pages=change.page_count or 0, trusted=1)

    def _has(self, file: FileState, known: KnownFile | None) -> bool:
        """True if the folder has this content and time already. An edit by hand of another content is set aside."""
        path = self.path / file.path
        try:
            info = path.lstat()
        except OSError:
            return file.sha256 is None
        if known is not None and known.stat == _stat(info):  # as the record had it before, or has it now
            return known.sha256 == file.sha256 and info.st_mtime_ns == file.mtime_ns
        data = _read(path)
        if data is not None and hashlib.sha256(data).digest() == file.sha256:
            os.utime(path, ns=(file.mtime_ns, file.mtime_ns))
            return True
        self._keep_if_edited(file.path, known)
        return False

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
            (self.path / path).unlink()

    def _write(self, file: FileState, data: bytes) -> None:
        path = self.path / file.path
        if path.is_dir() and not path.is_symlink():
            with suppress(OSError):
                path.rmdir()
        if path.is_dir() and not path.is_symlink():
            os.rename(path, self._aside(file.path))
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{hashlib.sha256(path.name.encode()).hexdigest()[:16]}{file_io.TEMPORARY}")
        beside.write_bytes(data)
        os.chmod(beside, 0o600 if file.path.startswith(f"{STATE}/") else 0o644)
        os.utime(beside, ns=(file.mtime_ns, file.mtime_ns))
        os.replace(beside, path)

    def _keep_if_edited(self, path: str, known: KnownFile | None) -> None:
        """Set a file aside, unless it is as the record had it before."""
        data = _read(self.path / path)
        if data is not None and (known is None or hashlib.sha256(data).digest() != known.sha256):
            self._aside(path).write_bytes(data)

    def _aside(self, path: str) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        place = self.folder / "set-aside" / stamp / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def edits_set_aside(self) -> list[str]:
        """Where edits are that the record did not take."""
        folder = self.folder / "set-aside"
        return sorted(str(path) for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []

    # To the record.

    def begin(self) -> None:
        """Begin to watch what is written; `changes` tells of it."""
        assert self._watch is None
        self._watch = LedgerWatch(self.path / STATE / "ledger.sqlite")

    def stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def changes(self) -> tuple[RecordChange, Mapping[bytes, bytes]]:
        """What differs from the record, and the contents that it may lack. Everything that was opened is closed."""
        files, contents = self.file_changes()
        watch, self._watch = self._watch, None
        assert watch is not None
        found = watch.changed()
        if found is None:
            return RecordChange(files), contents
        pages, count = found
        return RecordChange(files, pages, count), contents

    def file_changes(self) -> tuple[list[FileState], dict[bytes, bytes]]:
        known = self._known()
        files: list[FileState] = []
        contents: dict[bytes, bytes] = {}
        settled: list[tuple[object, ...]] = []  # the same content with other times: next time it is not read
        for path, info in self._scan():
            before = known.pop(path, None)
            if before is not None and before.stat == _stat(info):
                continue
            data = _read(self.path / path)
            if data is None:
                continue
            digest = hashlib.sha256(data).digest()
            if before is None or before.sha256 != digest or before.stat[1] != info.st_mtime_ns:
                files.append(FileState(path, digest, info.st_mtime_ns))
                contents[digest] = data
                self._seen[path] = _stat(info)
            else:
                settled.append((*_stat(info), path))
        with transaction(self._base):
            self._base.executemany(
                "UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ? WHERE path = ?", settled
            )
        gone = [FileState(path, None, 0) for path in known if not _is_regular(self.path / path)]
        return sorted([*files, *gone]), contents

    def note_committed(self, version: int, change: RecordChange) -> None:
        """The record has taken these changes: the folder agrees with it again."""
        with transaction(self._base):
            self._note_files(change.files)
            pages = {} if change.page_count is None else {"pages": change.page_count}
            self._set_state(version=version, trusted=1, **pages)

    def _note_files(self, files: Sequence[FileState]) -> None:
        self._base.executemany(
            "DELETE FROM file WHERE path = ?", [(file.path,) for file in files if file.sha256 is None]
        )
        rows = []
        for file in files:
            if file.sha256 is not None:
                seen = self._seen.pop(file.path, None)
                with suppress(OSError):
                    rows.append((file.path, file.sha256, *(seen or _stat((self.path / file.path).lstat()))))
        self._base.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _known(self, paths: Sequence[str] | None = None) -> dict[str, KnownFile]:
        if paths is None:
            rows = self._base.execute("SELECT * FROM file").fetchall()
        else:
            rows = [row for path in paths for row in self._base.execute("SELECT * FROM file WHERE path = ?", (path,))]
        return {str(path): KnownFile(bytes(digest), tuple(stat)) for path, digest, *stat in rows}  # type: ignore[arg-type]

    def _scan(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every regular file that belongs to the record."""
        yield from scan_memory(self.path)


def scan_memory(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of a workspace that belong to its record: all regular ones, and the settings; no link is followed."""
    for name in _STATE_FILES:
        with suppress(OSError):
            info = (root / STATE / name).lstat()
            if stat.S_ISREG(info.st_mode):
                yield f"{STATE}/{name}", info
    for folder, names, files in os.walk(root):
        at_top = folder == str(root)
        names[:] = sorted(name for name in names if not (name in _SKIPPED_FOLDERS and (at_top or name == ".git")))
        for name in sorted(files):
            if name.endswith(file_io.TEMPORARY):
                continue
            path = os.path.join(folder, name)
            with suppress(OSError):
                info = os.lstat(path)
                shown = os.path.relpath(path, root)
                if stat.S_ISREG(info.st_mode) and _is_text(shown):
                    yield shown, info


def _is_text(path: str) -> bool:
    """True if the database can keep this name."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file; None if it is none, or gone."""
    try:
        if path.lstat().st_size > MAX_FILE_BYTES:
            raise StorageFailed(f"{path} has more than {MAX_FILE_BYTES >> 20} MB", hint="move it out of memory")
        return file_io.read_regular(path, follow=False)
    except OSError:
        return None


def _stat(info: os.stat_result) -> tuple[int, int, int, int]:
    """What tells that a file did not change. Of one that may change again in this tick of the clock, nothing does."""
    is_sure = is_settled(info.st_mtime_ns, info.st_ctime_ns)
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns if is_sure else 0, info.st_ino
