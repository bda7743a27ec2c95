"""Which pages of a SQLite database a run of writes changes, read from its write-ahead log.

The record keeps the ledger by its pages, so that a change costs the pages it changes, however long the ledger is, and
the file comes back byte for byte. While a watch is open, a reader of the state before it keeps SQLite from moving pages
out of the log, so that the log has all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import apsw

from truekeep.core.errors import Busy

PAGE = 4096  # SQLite's own default, which the ledger has
_LOG_HEADER, _FRAME_HEADER = 32, 24


class LedgerWatch:
    """Watches a database from now on. Only its own process may write it meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _identity(path)
        self._db: apsw.Connection | None = None
        if self._file is not None:
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            self._db.set_busy_timeout(5_000)
            _empty_log(self._db)
            self._db.execute("BEGIN")
            self._db.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def changed(self) -> tuple[Mapping[int, bytes], int] | None:
        """The pages that changed, by number from 0, and how many there are; None if nothing did. Ends the watch."""
        numbers = set(_pages_in_log(Path(f"{self._path}-wal"))) if self._db is not None else set()
        self.close()
        if _identity(self._path) is None:
            return None
        is_new = self._file != _identity(self._path)
        if not numbers and not is_new:
            return None
        with open_emptied(self._path):
            count = self._path.stat().st_size // PAGE
            chosen = range(count) if is_new else sorted(number for number in numbers if number < count)
            return dict(_read_pages(self._path, chosen)), count

    def close(self) -> None:
        if self._db is not None:
            if self._db.in_transaction:
                self._db.execute("COMMIT")
            self._db.close()
            self._db = None


class open_emptied:  # noqa: N801 - used as a function
    """Keep a database open with everything in the file itself and an empty log, while its pages are read."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)

    def __enter__(self) -> None:
        self._db.set_busy_timeout(5_000)
        _empty_log(self._db)
        if self._db.pragma("page_size") != PAGE:
            self._db.close()
            raise ValueError("the ledger has pages of another size")

    def __exit__(self, *_: object) -> None:
        self._db.close()


def write_pages(path: Path, pages: Mapping[int, bytes], count: int) -> None:
    """Write pages into a database that nobody has open; with none in all, remove it."""
    for tail in ("-wal", "-shm"):
        Path(f"{path}{tail}").unlink(missing_ok=True)
    if not count:
        path.unlink(missing_ok=True)
        return
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b") as file:
        for number, data in sorted(pages.items()):
            file.seek(number * PAGE)
            file.write(data)
        file.truncate(count * PAGE)


def _empty_log(db: apsw.Connection) -> None:
    for is_busy, *_ in db.execute("PRAGMA wal_checkpoint(TRUNCATE)"):
        if is_busy:
            raise Busy("another program reads the ledger of a working folder", hint="end it; nothing is lost")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.stat()
    except FileNotFoundError:
        return None
    return (info.st_dev, info.st_ino) if info.st_size else None


def _pages_in_log(path: Path) -> Iterator[int]:
    """The numbers of the pages in a write-ahead log, from 0; also of frames that were rolled back: no harm in that."""
    try:
        with path.open("rb") as file:
            header = file.read(_LOG_HEADER)
            size = int.from_bytes(header[8:12], "big") if len(header) == _LOG_HEADER else 0
            while size and len(frame := file.read(_FRAME_HEADER)) == _FRAME_HEADER:
                yield int.from_bytes(frame[:4], "big") - 1
                file.seek(size, os.SEEK_CUR)
    except FileNotFoundError:
        return


def _read_pages(path: Path, numbers: range | list[int]) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        for number in numbers:
            file.seek(number * PAGE)
            yield number, file.read(PAGE)
