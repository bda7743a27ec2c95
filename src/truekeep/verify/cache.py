"""Cache of what verification reads: facts by blob, the file list of each checkout, rename records, answers from git.

It is one SQLite file beside the index, and everything in it can be computed again. Facts belong to a blob (its id and
language), so worktrees, clones and old commits share them, and a second run reads only what changed. Deleting the file
costs time only: the code of a claim as it was when the memory was written is then read from git again (see
`verifier`). A damaged file is replaced by an empty one; if the file cannot be written, the cache continues in memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import apsw

from truekeep.core.derived_db import UNWRITABLE, DerivedDatabase, Schema
from truekeep.core.formats import FACTS
from truekeep.core.sqlite import DAMAGE

SCHEMA = Schema(
    FACTS,
    """
CREATE TABLE blob (id INTEGER PRIMARY KEY, oid BLOB NOT NULL, language TEXT NOT NULL, UNIQUE (oid, language));
CREATE TABLE names (id INTEGER PRIMARY KEY, keys BLOB NOT NULL);      -- CRC-32 of what it defines; no row: not parsed
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
""",
    required=("blob", "verdict", "answer"),
    page_size=8192,
    is_wal=True,  # a search reads while a check writes
    busy_ms=2_000,
)


_KEYS = {
    "names": "SELECT id, keys FROM names WHERE id BETWEEN ? AND ?",
    "words": "SELECT id, keys FROM words WHERE id BETWEEN ? AND ?",
    "mentions": "SELECT id, keys FROM mentions WHERE id BETWEEN ? AND ?",
    "unparsed words": "SELECT id, keys FROM words WHERE id BETWEEN ? AND ? AND id NOT IN (SELECT id FROM names)",
}
_Result = TypeVar("_Result")


class FactsCache:
    """The open cache file, or a copy of it in memory if the file cannot be written."""

    def __init__(self, path: str) -> None:
        self._database = DerivedDatabase(path, SCHEMA)
        self._db = self._database.db

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def transaction(self, *, required: bool = False) -> Iterator[None]:
        """Write everything or nothing. If the file cannot be written, continue in memory.

        `required`: the caller needs the rows that it writes. Raise StoreLost if the commit fails, so that it can retry.
        """
        if self._db.in_transaction:
            yield
            return
        try:
            with self._detect_damage():
                self._db.execute("BEGIN IMMEDIATE")
        except UNWRITABLE:
            self._continue_in_memory()
            self._db.execute("BEGIN")
        try:
            yield
        except BaseException:
            with contextlib.suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            raise
        try:
            with self._detect_damage():
                self._db.execute("COMMIT")
        except apsw.Error as error:
            with contextlib.suppress(apsw.Error):
                self._db.execute("ROLLBACK")
            self._continue_in_memory()
            if required:
                raise StoreLost from error

    def _continue_in_memory(self) -> None:
        """Continue with a copy in memory. Raise StoreDamaged if the file cannot be read, so that the copy is empty."""
        is_whole = self._database.move_to_memory()
        self._db = self._database.db
        if not is_whole:
            raise StoreDamaged

    @contextmanager
    def _detect_damage(self) -> Iterator[None]:
        """Run a query; if the file turns out to be damaged, recreate it and raise StoreDamaged."""
        try:
            yield
        except DAMAGE as error:
            self.recreate()
            raise StoreDamaged from error

    def recreate(self) -> None:
        """Replace a damaged file with an empty one."""
        self._database.remake()
        self._db = self._database.db

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._detect_damage():
            return list(self._db.execute(sql, _plain(values)))

    def row(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        with self._detect_damage():
            for row in self._db.execute(sql, _plain(values)):
                return tuple(row)
        return None

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run one write. Outside a transaction, skip it if the file is busy or cannot be written."""
        try:
            with self._detect_damage():
                self._db.execute(sql, _plain(values))
        except UNWRITABLE:
            if self._db.in_transaction:
                raise

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with self._detect_damage():
            self._db.executemany(sql, map(_plain, values))

    # Facts.

    def blob_ids(self, wanted: Sequence[tuple[bytes, str]]) -> dict[tuple[bytes, str], int]:
        """Return the ids of the blobs that are already in the cache."""
        found: dict[tuple[bytes, str], int] = {}
        with self._detect_damage():
            for item in wanted:
                for (number,) in self._db.execute("SELECT id FROM blob WHERE oid = ? AND language = ?", item):
                    found[item] = number
        return found

    def add_blob(self, oid: bytes, language: str, names: bytes, words: bytes, mentions: bytes) -> int:
        with self._detect_damage():
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
        """Yield the id and keys of each blob in these ranges, ordered by id."""
        with self._detect_damage():
            for first, last in ranges:
                yield from self._db.execute(_KEYS[table], (first, last))

    # Answers that are slow to get from git.

    def answer(self, key: str) -> str | None:
        row = self.row("SELECT value FROM answer WHERE key = ?", (key,))
        return str(row[0]) if row else None

    def remember(self, key: str, value: str) -> None:
        self.run("INSERT OR REPLACE INTO answer VALUES (?, ?)", (key, value))


def read_rows(path: str, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Query a cache file without opening it for writing. Return no rows if it is missing or of another version.

    A damaged file raises apsw.Error and is not changed.
    """
    from urllib.parse import quote

    if not os.path.isfile(path) or os.path.islink(path):
        return []
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    # With immutable=1, SQLite creates no files beside the database, so this also works on a read-only disk.
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
                return list(db.execute(sql, values)) if version == FACTS.number else []
            finally:
                db.close()
        except apsw.Error:  # another process is writing it, or the disk is read-only: try the other mode
            if way == ways[-1]:
                raise
    raise AssertionError("unreachable")


def _plain(values: Sequence[Any]) -> tuple[Any, ...]:
    """Escape what SQLite cannot store: a file name may contain bytes that are not valid text."""
    return tuple(
        value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
        for value in values
    )


class StoreLost(Exception):
    """A required write was lost. The cache is in memory now; run the operation again."""


class StoreDamaged(Exception):
    """The file was damaged and is now empty: everything read from it before must be read again."""


def retry_if_damaged(act: Callable[[], _Result]) -> _Result:
    """Run an operation on the cache; run it a second time if the cache turned out to be damaged."""
    try:
        return act()
    except StoreDamaged:
        return act()
