"""Reads memory/facts.db, a community convention: entity, key and value in a SQLite file.

No document defines its tables, so they are recognised by their column names. The file belongs to another program and
may hold anything: it is opened read-only, nothing is left beside it, and no code of its schema runs (views, triggers
and computed columns are skipped). A file that cannot be read raises UnreadableFacts, never a database error.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

FACTS_DB_PATH = "memory/facts.db"
MAX_VALUE_BYTES = 1_000_000  # a longer value is a document, not a fact

_COLUMNS = {
    "entity": ("entity", "subject", "entity_name", "who", "topic"),
    "key": ("key", "attribute", "predicate", "property", "relation", "fact_key", "name"),
    "value": ("value", "object", "fact_value", "fact", "content", "val"),
    "category": ("category", "type", "kind", "entity_type"),
    "created_at": ("created_at", "created", "timestamp", "added_at", "date"),
    "updated_at": ("updated_at", "updated", "modified_at", "last_updated"),
    "accessed_at": ("last_accessed", "last_accessed_at", "accessed_at"),
    "access_count": ("access_count", "accesses"),
    "confidence": ("confidence", "score", "certainty", "importance"),
}
"""What a column may be called, most telling first. A table without the first three holds no facts."""


class UnreadableFacts(Exception):
    """Facts could not be read, or not all of them. `given`: how many were read before the error."""

    def __init__(self, what: str, *, given: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.given = given


class Fact(NamedTuple):
    """The identity of one row."""

    table: str
    entity: str
    key: str
    value: str


class FactTable(NamedTuple):
    """A table of facts: its known columns by their meaning."""

    name: str
    columns: Mapping[str, str]
    has_rowid: bool


class FactRow(NamedTuple):
    """One row of a table of facts."""

    table: str
    values: Mapping[str, str]  # by meaning: entity, key, value, created_at ...
    occurrence: int  # 0 for the first row with this entity and key, then 1, 2 ...

    @property
    def fact(self) -> Fact:
        return Fact(self.table, self.values["entity"], self.values["key"], self.values["value"])

    @property
    def updated_at(self) -> str | None:
        return fact_time(self.values.get("updated_at", "")) or self.created_at

    @property
    def created_at(self) -> str | None:
        return fact_time(self.values.get("created_at", ""))


def iter_facts(path: str) -> Iterator[FactRow]:
    """Every fact of a database, one at a time. Raises UnreadableFacts; a missing file has none."""
    given = 0
    try:
        with _open_for_reading(path) as db:
            for row in _iter_fact_rows(db) if db is not None else ():
                yield row
                given += 1
    except UnreadableFacts as error:
        raise UnreadableFacts(error.what, given=given) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise UnreadableFacts("another program is writing it", given=given) from error
    except (apsw.Error, LookupError) as error:
        raise UnreadableFacts(f"it is damaged or no database ({error})", given=given) from error


def fact_time(text: str) -> str | None:
    """A time of a database as ISO 8601 in UTC. It may be ISO with or without an offset, seconds or milliseconds."""
    try:
        if text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) < 30:
            seconds = float(text)
            seconds = seconds / 1000 if seconds > 1e11 else seconds
            if not 1e8 < seconds < 1e11:
                return None
            at = datetime.fromtimestamp(int(seconds), UTC)
        else:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


# --- The file -------------------------------------------------------------------------------------------------------


@contextmanager
def _open_for_reading(path: str) -> Iterator[apsw.Connection | None]:
    """The database, open for reading; None where there is no file.

    A database in WAL mode has a file of shared memory beside it while a program uses it. Without that file no program
    writes, and the database is read as immutable: a normal reader would have to create the file.
    """
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise UnreadableFacts(f"it cannot be looked at: {error.strerror}") from error
    if not stat.S_ISREG(info.st_mode):
        raise UnreadableFacts("it is a link or no ordinary file")
    beside = {tail for tail in ("-wal", "-shm", "-journal") if _has_bytes(path + tail)}
    if beside == {"-wal"}:
        raise UnreadableFacts("its last changes are still in its log; open it once with the program that it belongs to")
    mode = "mode=ro" if beside else "mode=ro&immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(f"file:{quote(os.path.abspath(path))}?{mode}", flags=flags)
    try:
        db.set_busy_timeout(2_000)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        page: Any = db.execute("PRAGMA page_size").get
        if info.st_size % page:  # SQLite would read the missing part of a page as zeros
            raise UnreadableFacts("its end is cut off")
        yield db
        if not beside and _stamp(path) != (info.st_ino, info.st_size, info.st_mtime_ns):
            raise UnreadableFacts("it was written to while it was read")
    finally:
        db.close()


def _has_bytes(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def _find_tables(db: apsw.Connection) -> list[FactTable]:
    """The tables of facts, by name. Only stored columns count: a computed one is code."""
    found = []
    listed: Any = db.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    for name, has_no_rowid in sorted(listed.fetchall()):
        there = {
            column.casefold(): column for (column,) in db.execute("SELECT name FROM pragma_table_info(?)", (name,))
        }
        columns: dict[str, str] = {}
        for meaning, names in _COLUMNS.items():
            known = next((there[one] for one in names if one in there and there[one] not in columns.values()), None)
            if known is not None:
                columns[meaning] = known
        if {"entity", "key", "value"} <= columns.keys():
            found.append(FactTable(name, columns, not has_no_rowid))
    return found


# --- Without some ---------------------------------------------------------------------------------------------------


def without_facts(
    data: bytes, gone: Collection[Fact], is_said: Callable[[str], bool]
) -> tuple[bytes, frozenset[Fact]] | None:
    """A copy of a database without these facts and without rows that contain a forbidden text, and the removed rows.

    It is rebuilt in memory, so that nothing of them is left in free pages. None where that is not safe: a damaged
    file, tables of an extension (an index for search keeps words of its own), rows that have no number.
    """
    if len(data) < 100:
        return None
    is_log = data[18:20] == b"\x02\x02"  # WAL mode: nothing in memory can be opened so
    db = apsw.Connection(":memory:")
    try:
        db.deserialize("main", data[:18] + b"\x01\x01" + data[20:] if is_log else data)
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        for pragma in ("temp_store = MEMORY", "foreign_keys = OFF", "secure_delete = ON"):
            db.execute(f"PRAGMA {pragma}")
        virtual: Any = db.execute("SELECT count(*) FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'").get
        checked: Any = db.execute("PRAGMA integrity_check(1)").get
        if virtual or checked != "ok":
            return None
        went = frozenset(_delete_rows(db, gone, is_said))
        db.execute("VACUUM")
        made = db.serialize("main")
    except (apsw.Error, LookupError):
        return None
    finally:
        db.close()
    return (made[:18] + data[18:20] + made[20:] if is_log else made), went


def _delete_rows(db: apsw.Connection, gone: Collection[Fact], is_said: Callable[[str], bool]) -> Iterator[Fact]:
    encoding: Any = db.execute("PRAGMA encoding").get
    for table in _find_tables(db):
        if not table.has_rowid:
            continue
        name = _quoted(table.name)
        found: list[int] = []
        listed: Any = db.execute("SELECT name FROM pragma_table_info(?)", (table.name,))
        columns = [column for (column,) in listed.fetchall()]
        selected = ", ".join(f"CAST({_quoted(column)} AS BLOB)" for column in columns)
        for number, *values in db.execute(f"SELECT rowid, {selected} FROM {name}"):  # noqa: S608
            said = dict(zip(columns, (_text(value, encoding) for value in values), strict=True))
            fact = Fact(table.name, *(said[table.columns[meaning]] for meaning in Fact._fields[1:]))
            whole = f"{fact.entity} · {fact.key}: {fact.value}"
            if fact in gone or is_said(whole) or any(map(is_said, said.values())):
                found.append(number)
                yield fact
        db.executemany(f"DELETE FROM {name} WHERE rowid = ?", [(number,) for number in found])  # noqa: S608


# --- Facts ----------------------------------------------------------------------------------------------------------


def _iter_fact_rows(db: apsw.Connection) -> Iterator[FactRow]:
    tables = _find_tables(db)
    if not tables:
        raise UnreadableFacts("it has no table with an entity, a key and a value")
    encoding: Any = db.execute("PRAGMA encoding").get
    for table in tables:
        before: tuple[str, str] | None = None
        occurrence = 0
        for row in _iter_rows(db, table):
            values = {meaning: _text(value, encoding) for meaning, value in row.items()}
            if not values["entity"] or not values["value"]:
                continue
            same = (values["entity"], values["key"])
            occurrence = occurrence + 1 if same == before else 0
            before = same
            yield FactRow(table.name, values, occurrence)


def _iter_rows(db: apsw.Connection, table: FactTable) -> Iterator[dict[str, bytes | None]]:
    """The rows, sorted by entity and key, as bytes: damaged text counts as text.

    Sorting happens in SQLite, which puts what is too much for memory into a temporary file of its own.
    """
    quoted = {meaning: _quoted(column) for meaning, column in table.columns.items()}
    selected = ", ".join(
        f"CASE WHEN typeof({at}) != 'blob' AND octet_length({at}) <= {MAX_VALUE_BYTES} THEN CAST({at} AS BLOB) END"
        for at in quoted.values()
    )
    order = "1, 2, rowid" if table.has_rowid else "1, 2, 3"  # entity, key, and the value if nothing else tells
    for values in db.execute(f"SELECT {selected} FROM {_quoted(table.name)} ORDER BY {order}"):  # noqa: S608
        yield dict(zip(quoted, values, strict=True))


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _text(value: bytes | None, encoding: str) -> str:
    """A value as text; empty if it is not text."""
    if value is None:
        return ""
    text = value.decode(encoding, "replace").strip()
    return "" if "\0" in text or text.count("\ufffd") > len(text) // 4 else text
