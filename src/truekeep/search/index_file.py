"""The index file: opened as it is on disk now, written by one process at a time, set aside if damaged."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import apsw

from truekeep.core import derived_db
from truekeep.core.derived_db import UnusableDatabase
from truekeep.core.errors import StorageFailed
from truekeep.core.formats import INDEX, read_format
from truekeep.core.sqlite import remove_database
from truekeep.search.index_schema import open_index

if TYPE_CHECKING:
    from truekeep.search.scan_cache import FileId, ScanCache

INDEX_FILE = "index.sqlite"


class IndexFile:
    """The index of one workspace, on disk."""

    def __init__(
        self, state: str, scan_cache: ScanCache, *, now: Callable[[], datetime], note: Callable[[str], None]
    ) -> None:
        self.path = os.path.join(state, INDEX_FILE)
        self.opened: FileId | None = None  # the file that is open; another one may take its place
        self._lock_path = os.path.join(state, "index.lock")
        self._db: apsw.Connection | None = None
        self._is_locked = False  # by this process
        self._scan_cache = scan_cache
        self._now = now
        self._note = note

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = self.opened = None

    def can_write(self) -> bool:
        """Whether its folder can be written: a disk may be read-only."""
        return os.access(os.path.dirname(self.path), os.W_OK)

    def open(self, *, for_writing: bool = False) -> apsw.Connection:
        """Open the index that is on disk now. A rebuilt one is noticed, a damaged one is set aside."""
        try:
            info = os.stat(self.path)
            here = (info.st_dev, info.st_ino)
        except FileNotFoundError:
            here = None
            self._scan_cache.forget()  # another file may get its inode
        if self._db is not None and here is not None and here == self.opened:
            return self._db
        self.close()
        self.opened = here
        try:
            db = open_index(self.path)
        except UnusableDatabase as error:
            if error.is_newer or for_writing:
                raise
            self.set_aside(error.reason)
            db = open_index(self.path)
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError):
            if here is None or for_writing:
                raise
            db = open_index(self.path, read_only=True)
        self._db = db
        info = os.stat(self.path)
        self.opened = (info.st_dev, info.st_ino)
        return db

    def set_aside(self, reason: str) -> None:
        """Rename a damaged index, unless another process was quicker, and note it."""
        known = self.opened
        self.close()
        stamp = self._now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        kept = ""
        try:
            with self.lock(wait=5.0):
                info = os.lstat(self.path)
                if known is None or known == (info.st_dev, info.st_ino):
                    if 0 < read_format(self.path) < INDEX.number:  # not damaged, and may hold text that is masked today
                        remove_database(self.path)
                        return
                    kept = os.path.basename(derived_db.set_aside(self.path, stamp=stamp))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageFailed(
                f"{self.path} is damaged and cannot be renamed: {error}", hint="delete it: it is derived"
            ) from error
        where = f"; it is kept as {kept} and rebuilt" if kept else "; it is rebuilt"
        self._note(f"the index was damaged ({reason}){where}")

    @contextmanager
    def lock(self, *, wait: float = 0.0) -> Iterator[bool]:
        """Take the indexer's lock. Gives False if another process has it."""
        if self._is_locked:
            yield True
            return
        descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + wait
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        yield False
                        return
                    time.sleep(0.1)
            self._is_locked = True
            yield True
        finally:
            self._is_locked = False
            os.close(descriptor)

    @contextmanager
    def replacement(self) -> Iterator[apsw.Connection]:
        """A new index beside this one, which is replaced by a rename at the end."""
        beside = self.path + ".new"
        db = open_index(beside)
        try:
            yield db
        except BaseException:
            db.close()
            self.clear_replacement()  # a full disk must not stay full
            raise
        db.close()
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path + "-journal")  # left by a killed writer; it belongs to the old file
        os.replace(beside, self.path)

    def clear_replacement(self) -> None:
        """Remove what a killed rebuild left."""
        remove_database(self.path + ".new")


def index_in_background(root: str, environ: Mapping[str, str]) -> str:
    """Start an indexer that outlives this process; it ends at once if one runs already.

    Gives a clause for a note that says who indexes the rest.
    """
    by_hand = "`truekeep index` indexes them"
    if environ.get("TRUEKEEP_NO_BACKGROUND"):
        return by_hand
    from truekeep.core import child_process  # loads subprocess, which a search does without

    try:
        child_process.start("index", "--workspace", os.path.abspath(root), "--json")
    except OSError:
        return by_hand
    return "indexing continues in the background"
