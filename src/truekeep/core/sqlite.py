"""SQLite helpers: transactions, errors that mean damage, removing a database, and reading another program's database.

Another program's database is opened read-only while that program may be using it, and no file is left beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

import apsw

SIDECAR_SUFFIXES = ("-wal", "-shm", "-journal")  # files that SQLite keeps beside a database
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, UnicodeDecodeError)


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at its first statement."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            if db.in_transaction:
                db.execute("ROLLBACK")
        raise


def remove_database(path: str) -> None:
    """Remove a database and its sidecar files."""
    for tail in ("", *SIDECAR_SUFFIXES):
        with suppress(FileNotFoundError):
            os.unlink(path + tail)


class ReadOnlyDatabase:
    """Another program's database, open for reading. Raises OSError or apsw.Error."""

    def __init__(self, path: str, *, busy_ms: int = 1_000) -> None:
        self._path = path
        # A WAL database that no process has open has no -shm file. Even a reader would create one and could not remove
        # it; but then no process writes either, so the file can be opened as immutable.
        self._immutable_stamp = stamp_of(path) if _is_wal(path) and not os.path.exists(path + "-shm") else None
        try:
            self.db = self._connect(busy_ms)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError):
            if self._immutable_stamp is not None:
                raise
            self._immutable_stamp = stamp_of(path)  # the WAL files are not readable for us, or cannot be created
            self.db = self._connect(busy_ms)

    def _connect(self, busy_ms: int) -> apsw.Connection:
        mode = "mode=ro" if self._immutable_stamp is None else "mode=ro&immutable=1"
        name = f"file:{quote(os.path.abspath(self._path))}?{mode}"
        db = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            db.set_busy_timeout(busy_ms)
            db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            db.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        self.db.close()

    def has_changed(self) -> bool:
        """True if a database opened as immutable was written since: what was read may be inconsistent."""
        return self._immutable_stamp is not None and self._immutable_stamp != stamp_of(self._path)


def stamp_of(path: str) -> tuple[int, int, int]:
    """Size and times of a database and its write-ahead log; they change with every write."""
    info = os.stat(path)
    size, newest, changed = info.st_size, info.st_mtime_ns, info.st_ctime_ns
    with suppress(OSError):
        log = os.stat(path + "-wal")
        size, newest, changed = size + log.st_size, max(newest, log.st_mtime_ns), max(changed, log.st_ctime_ns)
    return size, newest, changed


def _is_wal(path: str) -> bool:
    with open(path, "rb") as file:
        header = file.read(20)
    return header.startswith(b"SQLite format 3\0") and header[18:20] == b"\2\2"
