"""SQLite files, whatever is in them: one transaction, what tells of damage, and a file with all that lies beside it.

Another program's database is only ever visited: opened for reading, while that program may use it, and no file is left
beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

TAILS = ("-wal", "-shm", "-journal")  # how the names end of what SQLite keeps beside a database
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, UnicodeDecodeError)  # text that is none is damage


@contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """One batch: all of it or nothing, and the only writer from its first statement on."""
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
    """Remove a database and what SQLite keeps beside it."""
    for tail in ("", *TAILS):
        with suppress(FileNotFoundError):
            os.unlink(path + tail)


class Visit:
    """Another program's database, open for reading. Raises OSError, or apsw's error."""

    def __init__(self, path: str, *, busy_ms: int = 1_000) -> None:
        self._path = path
        # One in WAL mode that nobody has open has no -shm file. Even a reader would make one, and could not take it
        # away again; but then nobody writes either, and the file can be read as it stands.
        self._still = stamp_of(path) if _is_wal(path) and not os.path.exists(path + "-shm") else None
        try:
            self.db = self._connect(busy_ms)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError):
            if self._still is not None:
                raise
            self._still = stamp_of(path)  # the files that WAL needs are there but not for us, or cannot be made
            self.db = self._connect(busy_ms)

    def _connect(self, busy_ms: int) -> apsw.Connection:
        from urllib.parse import quote

        mode = "mode=ro" if self._still is None else "mode=ro&immutable=1"
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
        """Whether a database that was taken for unused was written to meanwhile: then what was read may be torn."""
        return self._still is not None and self._still != stamp_of(self._path)


def stamp_of(path: str) -> tuple[int, int, int]:
    """What changes when a database is written to, its log included."""
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
