"""What verification has seen before: facts by blob, the last look at each checkout, history, answers. All derived.

One SQLite file beside the index. Facts belong to a blob (its id and language), so worktrees, clones and old commits
share them, and a second run reads only what changed. Deleting the file costs time; what a memory's code looked like is
then read from git at the memory's day (see `check`). A damaged file is thrown away, whenever the damage is met, and
one that cannot be written is replaced by memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw

from truekeep.core.formats import FACTS, read_format
from truekeep.core.sqlite import remove_database

VERSION = FACTS.number

_SCHEMA = """
CREATE TABLE blob (id INTEGER PRIMARY KEY, oid BLOB NOT NULL, language TEXT NOT NULL, UNIQUE (oid, language));
CREATE TABLE names (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);      -- what a blob defines: CRC-32 of each name
CREATE TABLE words (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);      -- the words of its code
CREATE TABLE mentions (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);   -- the words of its comments, or of a document
CREATE TABLE outline (id INTEGER PRIMARY KEY, definitions TEXT NOT NULL);
CREATE TABLE body (
  id INTEGER NOT NULL, start INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (id, start)
) WITHOUT ROWID;
CREATE TABLE checkout (root TEXT PRIMARY KEY, listing BLOB, state TEXT NOT NULL);
CREATE TABLE history (repository TEXT PRIMARY KEY, newest TEXT NOT NULL, since INTEGER NOT NULL);
CREATE TABLE step (
  repository TEXT NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL
);
CREATE INDEX step_old ON step(repository, old);
CREATE INDEX step_new ON step(repository, new);
CREATE TABLE answer (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE verdict (
  path TEXT PRIMARY KEY, seal BLOB NOT NULL, at REAL NOT NULL, stamp TEXT NOT NULL, verdicts TEXT NOT NULL
);
CREATE TABLE print (                                                  -- code as it was when a memory was written
  memory TEXT NOT NULL, repository TEXT NOT NULL, claim TEXT NOT NULL,
  said TEXT NOT NULL,                                                 -- the memory's day, the words around the claim
  seen TEXT NOT NULL, day TEXT NOT NULL, at_commit TEXT NOT NULL,     -- bodies, and the commit that has them
  is_held INTEGER NOT NULL,                                           -- git does not tell it by the memory's day
  PRIMARY KEY (memory, repository, claim, said)
) WITHOUT ROWID;
CREATE TABLE url (url TEXT PRIMARY KEY, at REAL NOT NULL, status INTEGER NOT NULL, what TEXT NOT NULL);
"""


_Told = TypeVar("_Told")
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)
_UNWRITABLE = (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, apsw.IOError)


class FactsCache:
    """The file of facts, open; or its stand-in in memory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._db = self._open(path)

    def _open(self, path: str) -> apsw.Connection:
        for _ in range(2):
            try:
                return _connect(path)
            except (*_DAMAGED, _NotOurs):
                _remove(path)
            except (apsw.Error, OSError):
                break
        return _connect(":memory:")

    def close(self) -> None:
        with contextlib.suppress(apsw.Error):
            self._db.close()

    @contextmanager
    def transaction(self, *, vital: bool = False) -> Iterator[None]:
        """All of it or nothing. A store that cannot be written goes on in memory: it only ever saves time.

        `vital`: the caller goes on with what was written. Then a failed commit is StoreLost, and it begins again.
        """
        if self._db.in_transaction:
            yield
            return
        try:
            with self._sound():
                self._db.execute("BEGIN IMMEDIATE")
        except _UNWRITABLE:
            self._retreat()
            self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            with contextlib.suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            raise
        try:
            with self._sound():
                self._db.execute("COMMIT")
        except apsw.Error as error:
            with contextlib.suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            self._retreat()
            if vital:
                raise StoreLost from error

    def _retreat(self) -> None:
        """Carry everything into memory and leave the file alone. What cannot be read is begun anew there."""
        memory = apsw.Connection(":memory:")
        try:
            with memory.backup("main", self._db, "main") as backup:
                while not backup.done:
                    backup.step(10_000)
        except apsw.Error as error:
            memory.close()
            self._db = _connect(":memory:")
            raise StoreDamaged from error
        self._db = memory

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """A question to the file. Damage shows when a page is read: then the file is begun anew, and StoreDamaged."""
        try:
            yield
        except (*_DAMAGED, UnicodeDecodeError) as error:
            self.begin_anew()
            raise StoreDamaged from error

    def begin_anew(self) -> None:
        """Throw the file away: it is broken."""
        self.close()
        _remove(self.path)
        self._db = self._open(self.path)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._sound():
            return list(self._db.execute(sql, _plain(values)))

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        with self._sound():
            for row in self._db.execute(sql, _plain(values)):
                return tuple(row)
        return None

    def iter(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        with self._sound():
            yield from self._db.execute(sql, _plain(values))

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Write one thing; outside of a transaction it is left out when the file is busy or cannot be written."""
        try:
            with self._sound():
                self._db.execute(sql, _plain(values))
        except _UNWRITABLE:
            if self._db.in_transaction:
                raise

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with self._sound():
            self._db.executemany(sql, map(_plain, values))

    # Facts.

    def blob_ids(self, wanted: Sequence[tuple[bytes, str]]) -> dict[tuple[bytes, str], int]:
        """The ids of the blobs that are known already."""
        found: dict[tuple[bytes, str], int] = {}
        with self._sound():
            for item in wanted:
                for (number,) in self._db.execute("SELECT id FROM blob WHERE oid = ? AND language = ?", item):
                    found[item] = number
        return found

    def add_blob(self, oid: bytes, language: str, names: bytes, words: bytes, mentions: bytes) -> int:
        with self._sound():
            db = self._db
            for (number,) in db.execute("SELECT id FROM blob WHERE oid = ? AND language = ?", (oid, language)):
                return int(number)
            db.execute("INSERT INTO blob (oid, language) VALUES (?, ?)", (oid, language))
            number = db.last_insert_rowid()
            if names:
                db.execute("INSERT INTO names VALUES (?, ?)", (number, names))
            if words:
                db.execute("INSERT INTO words VALUES (?, ?)", (number, words))
            if mentions:
                db.execute("INSERT INTO mentions VALUES (?, ?)", (number, mentions))
            return number

    def keys(self, table: str, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """The keys of the blobs in these ranges, in the order of their ids."""
        assert table in ("names", "words", "mentions")
        with self._sound():
            for first, last in ranges:
                yield from self._db.execute(f"SELECT id, keys FROM {table} WHERE id BETWEEN ? AND ?", (first, last))  # noqa: S608

    # Answers that git took long to find.

    def answer(self, key: str) -> str | None:
        row = self.row("SELECT value FROM answer WHERE key = ?", (key,))
        return str(row[0]) if row else None

    def remember(self, key: str, value: str) -> None:
        self.run("INSERT OR REPLACE INTO answer VALUES (?, ?)", (key, value))


def read_rows(path: str, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Ask a file of facts without opening it for writing. Nothing where there is none, or another version's.

    What is damaged is apsw's error, and stays as it is.
    """
    from urllib.parse import quote

    if not os.path.isfile(path) or os.path.islink(path):
        return []
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    # As a file that nobody writes, SQLite leaves nothing beside it, and needs nothing there: the disk may be read-only.
    ways = ["immutable=1", "mode=ro"]
    with contextlib.suppress(OSError):
        if os.stat(f"{path}-wal").st_size:
            ways.reverse()
    for way in ways:
        try:
            db = apsw.Connection(f"file:{quote(path)}?{way}", flags=flags)
            try:
                db.set_busy_timeout(2_000)
                version = next(iter(db.execute("PRAGMA user_version")))[0]
                return list(db.execute(sql, values)) if version == VERSION else []
            finally:
                db.close()
        except apsw.Error:  # somebody writes it after all, or the disk is read-only: the other way
            if way == ways[-1]:
                raise
    raise AssertionError("unreachable")


def _plain(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values that a database takes: a file's name may hold bytes that are no text."""
    return tuple(
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
        for value in values
    )


class StoreLost(Exception):
    """What was just written could not be kept. The store is in memory now; do it again."""


class StoreDamaged(Exception):
    """The file was broken. It is begun anew and empty: what was read from it before must be asked for again."""


class _NotOurs(Exception):
    """A file of another version, or a link."""


def begun_anew(act: Callable[[], _Told]) -> _Told:
    """Do what asks the store; a second time when the store turned out to be damaged on the way."""
    try:
        return act()
    except StoreDamaged:
        return act()


def _remove(path: str) -> None:
    if path != ":memory:":
        with contextlib.suppress(OSError):
            remove_database(path)


def _connect(path: str) -> apsw.Connection:
    if path != ":memory:" and os.path.islink(path):
        raise _NotOurs  # what it leads to may be anything
    if read_format(path) > VERSION:
        path = ":memory:"  # a newer truekeep's is left alone
    db = apsw.Connection(path)
    db.set_busy_timeout(2_000)
    if path != ":memory:":
        with contextlib.suppress(apsw.Error):
            db.execute("PRAGMA journal_mode = WAL")  # a search reads while a check writes
    db.execute("PRAGMA synchronous = OFF")  # derived: a torn file is found out and thrown away
    version = next(iter(db.execute("PRAGMA user_version")))[0]
    if version == VERSION:
        return db
    if version or next(iter(db.execute("SELECT count(*) FROM sqlite_schema")))[0]:
        db.close()
        raise _NotOurs
    with contextlib.suppress(apsw.Error):
        db.execute("PRAGMA page_size = 8192")
    db.execute("BEGIN IMMEDIATE")
    if next(iter(db.execute("PRAGMA user_version")))[0] != VERSION:  # another process was faster
        db.execute(_SCHEMA)
        db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")
    return db
