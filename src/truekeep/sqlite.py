"""SQLite files, whatever is in them: one transaction, what tells of damage, and a file with all that lies beside it."""

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
