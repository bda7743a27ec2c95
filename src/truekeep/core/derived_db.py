"""Derived databases: search index, survey, catalogue of cards, verify cache. Each can be deleted and made again.

One way to open, create, replace and give up a database that holds nothing of its own:

    open_derived      open or create; a damaged, foreign or outdated file is UnusableDatabase
    DerivedDatabase   the same, and never fails: an unusable file is removed and created again, and where the file
                      cannot be written, or a newer truekeep wrote it, the work goes on in memory
    set_aside         keep a damaged file for a person to look at, and clear its place
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import apsw

from truekeep.core.formats import Format
from truekeep.core.sqlite import DAMAGE, remove_database, transaction

IN_MEMORY = ":memory:"
UNWRITABLE = (apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.FullError, apsw.IOError)
META_TABLE = "CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
_COPIED_PAGES = 10_000  # in one step of a copy into memory

_Result = TypeVar("_Result")


class Schema(NamedTuple):
    """The tables of a derived database, and how connections to it are set up."""

    format: Format
    tables: str  # SQL that creates them
    required: tuple[str, ...]  # a database without these tables is another program's
    pragmas: str = ""  # for each connection
    page_size: int = 4096
    is_wal: bool = False  # readers go on while one process writes; without it the file can be replaced by a rename
    busy_ms: int = 5_000


class UnusableDatabase(Exception):
    """The file is damaged, belongs to another program, or has another version."""

    def __init__(self, reason: str, *, is_newer: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_newer = is_newer


def open_derived(path: str, schema: Schema, *, read_only: bool = False) -> apsw.Connection:
    """Open a derived database, or create it. Raises UnusableDatabase, OSError, or apsw's error for the disk."""
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if path != IN_MEMORY:
        if not read_only:
            _create_private(path)
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        # The workspace may be reached through a symlink; the database itself may not be one.
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        flags |= apsw.SQLITE_OPEN_NOFOLLOW
    db = apsw.Connection(path, flags=flags)
    try:
        _set_up(db, schema, is_file=path != IN_MEMORY, read_only=read_only)
    except DAMAGE as error:
        db.close()
        raise UnusableDatabase(str(error)) from error
    except BaseException:
        db.close()
        raise
    return db


def _create_private(path: str) -> None:
    """Create the file before SQLite does, which would let other users read it."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    except PermissionError:
        return
    except OSError as error:
        if error.errno != errno.EROFS or not os.path.lexists(path):  # on a read-only disk it can still be read
            raise


def _set_up(db: apsw.Connection, schema: Schema, *, is_file: bool, read_only: bool) -> None:
    db.set_busy_timeout(schema.busy_ms)
    version: Any = db.execute("PRAGMA user_version").get
    if version == 0 and not read_only:
        db.execute(f"PRAGMA page_size = {schema.page_size}")
    elif version != schema.format.number:
        reason = f"it is of version {version}, this truekeep knows {schema.format.number}"
        raise UnusableDatabase(reason, is_newer=version > schema.format.number)
    elif missing := _missing_tables(db, schema):
        raise UnusableDatabase(f"it is some other database: it has no table {missing[0]}")
    if schema.is_wal and is_file:
        with suppress(apsw.Error):
            db.execute("PRAGMA journal_mode = WAL")
    # Derived: after a power loss, a torn file is noticed and made again.
    db.execute(f"PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; {schema.pragmas}")
    if version == 0 and not read_only:
        _create_tables(db, schema)


def _missing_tables(db: apsw.Connection, schema: Schema) -> list[str]:
    present = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    return [name for name in schema.required if name not in present]


def _create_tables(db: apsw.Connection, schema: Schema) -> None:
    with transaction(db):
        if db.execute("PRAGMA user_version").get == 0:  # else another process was faster
            if db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise UnusableDatabase("it is some other database")
            db.execute(schema.tables)
            db.execute(f"PRAGMA user_version = {schema.format.number}")


def set_aside(path: str, *, stamp: str) -> str:
    """Rename a damaged database to `<path>.damaged-<stamp>` and remove the one set aside before. Gives the new path."""
    kept = f"{path}.damaged-{stamp}"
    folder, name = os.path.split(path)
    for old in os.listdir(folder or "."):
        if old.startswith(f"{name}.damaged-"):
            with suppress(OSError):
                os.unlink(os.path.join(folder, old))
    os.replace(path, kept)
    remove_database(path)
    return kept


def read_meta(db: apsw.Connection, key: str, default: Any = None) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


def write_meta(db: apsw.Connection, key: str, value: Any) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


class DerivedDatabase:
    """A derived database that is opened on first use, and can always be used."""

    def __init__(self, path: str, schema: Schema) -> None:
        self.path = path
        self._schema = schema
        self._connection: apsw.Connection | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @property
    def db(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> apsw.Connection:
        for _ in range(2):
            try:
                return open_derived(self.path, self._schema)
            except UnusableDatabase as error:
                if error.is_newer:
                    break
                self._remove()
            except (apsw.Error, OSError):
                if not os.path.islink(self.path):
                    break
                self._remove()
        return open_derived(IN_MEMORY, self._schema)

    def _remove(self) -> None:
        if self.path != IN_MEMORY:
            with suppress(OSError):
                remove_database(self.path)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close()
        self._connection = None

    def remake(self) -> None:
        """Remove a damaged file. The next use creates an empty one."""
        self.close()
        self._remove()

    def move_to_memory(self) -> bool:
        """Go on in memory with a copy, and leave the file as it is. False: it cannot be read, and the copy is empty."""
        memory = apsw.Connection(IN_MEMORY)
        try:
            with memory.backup("main", self.db, "main") as backup:
                while not backup.done:
                    backup.step(_COPIED_PAGES)
        except apsw.Error:
            memory.close()
            self.close()
            self._connection = open_derived(IN_MEMORY, self._schema)
            return False
        self._connection = memory  # the file stays open for rows that are still being read from it
        return True

    def attempt(self, act: Callable[[], _Result]) -> _Result:
        """Call a function that uses the database; after damage or a failed write, call it again on an empty one."""
        try:
            return act()
        except DAMAGE:
            self.remake()
        except UNWRITABLE:
            self.move_to_memory()
        return act()
