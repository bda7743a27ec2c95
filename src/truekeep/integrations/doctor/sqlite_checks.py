"""Checks an SQLite file without changing it or anything beside it: sound, damaged, foreign, or of which version.

A file without a journal is opened as immutable. One with a journal was left by a killed process or is in use: it is
copied first, so that SQLite can apply the journal to the copy.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import quote

import apsw

from truekeep.core.sqlite import DAMAGE, remove_database

MISSING, EMPTY, SOUND, DAMAGED, FOREIGN, OLDER, NEWER, BUSY, ODD = (
    "missing", "empty", "sound", "damaged", "foreign", "older", "newer", "busy", "odd",
)  # fmt: skip
_RETRY_SECONDS = 0.2


class DatabaseState(NamedTuple):
    """The state of a database file."""

    state: str
    why: str = ""


def look_into(path: str, *, version: int, tables: Sequence[str]) -> DatabaseState:
    """Check a database that should have this version and these tables."""
    for _ in range(3):
        before = _identity(path)
        found = _look(path, version, tables)
        if found.state not in (DAMAGED, FOREIGN) or _identity(path) == before:
            return found
        time.sleep(_RETRY_SECONDS)
    return DatabaseState(BUSY, "is being written right now")


def _look(path: str, version: int, tables: Sequence[str]) -> DatabaseState:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return DatabaseState(MISSING, "is missing")
    if not stat.S_ISREG(info.st_mode):
        return DatabaseState(ODD, "is a symlink" if stat.S_ISLNK(info.st_mode) else "is not a regular file")
    if not info.st_size:
        return DatabaseState(EMPTY, "is empty")
    try:
        with opened(path) as db:
            known = db.execute("PRAGMA user_version").get
            if known > version:
                return DatabaseState(NEWER, f"is of version {known}, this truekeep knows {version}")
            there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
            if not there.issuperset(tables):
                return DatabaseState(FOREIGN, "is another program's database")
            if known < version:
                return DatabaseState(OLDER, f"is of the older version {known}")
            said = db.execute("PRAGMA quick_check(1)").get
            return (
                DatabaseState(SOUND)
                if said == "ok"
                else DatabaseState(DAMAGED, f"is damaged ({_first_line(str(said))})")
            )
    except DAMAGE as error:
        return DatabaseState(DAMAGED, f"is damaged ({error})")
    except apsw.SQLError as error:
        return DatabaseState(FOREIGN, f"is another program's database ({error})")
    except (apsw.BusyError, apsw.LockedError):
        return DatabaseState(BUSY, "is being written right now")


@contextmanager
def opened(path: str) -> Iterator[apsw.Connection]:
    """Open a database read-only, with its journal applied."""
    tails = [tail for tail in ("-wal", "-journal") if size_of(path + tail)]
    if not tails:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        db = apsw.Connection(f"file:{quote(os.path.abspath(path))}?immutable=1", flags=flags)
        try:
            yield db
        finally:
            db.close()
        return
    with tempfile.TemporaryDirectory(prefix="truekeep-doctor-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        for tail in ("", *tails):
            with suppress(FileNotFoundError):  # a process has just finished using it
                shutil.copyfile(path + tail, copy + tail)
        db = apsw.Connection(copy)
        try:
            yield db
        finally:
            db.close()


def save_tables(path: str, beside: str) -> bool:
    """Copy all tables of a damaged database into a new file; False if some cannot be read.

    Indexes are rebuilt, so damage only in them loses nothing. (VACUUM would copy them.)
    """
    remove_database(beside)
    try:
        with opened(path) as old:
            new = apsw.Connection(beside)
            try:
                _copy(old, new)
                is_whole = bool(new.execute("PRAGMA integrity_check(1)").get == "ok")
            finally:
                new.close()
    except (apsw.Error, UnicodeDecodeError):
        is_whole = False
    if not is_whole:
        remove_database(beside)
    return is_whole


def _copy(old: apsw.Connection, new: apsw.Connection) -> None:
    made: list[tuple[str, str, str]] = [
        (kind, name, sql)
        for kind, name, sql in old.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid")
        if sql and not name.startswith("sqlite_")
    ]
    with new:
        for kind, name, sql in made:
            if kind == "table":
                new.execute(sql)
                rows = old.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - a name of the schema itself
                marks = ", ".join("?" * len(list(new.execute(f'PRAGMA table_info("{name}")'))))
                new.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)  # noqa: S608
        for kind, _, sql in made:
            if kind == "index":
                new.execute(sql)
    for pragma in ("application_id", "user_version"):
        new.execute(f"PRAGMA {pragma} = {int(old.execute(f'PRAGMA {pragma}').get)}")


def _identity(path: str) -> tuple[object, ...]:
    found: list[object] = []
    for tail in ("", "-wal", "-journal"):
        try:
            info = os.lstat(path + tail)
            found.append((info.st_ino, info.st_size, info.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def size_of(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:120]
