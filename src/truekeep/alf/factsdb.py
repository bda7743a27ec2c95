"""memory/facts.db, a pattern of the community: entity, key and value in a SQLite file, a record for each fact.

Nobody has written down how its tables look, so they are known by the names of their columns. The file is another
program's and may hold anything: it is opened for reading, nothing is left beside it, no code of its schema runs (views,
triggers and computed columns are passed over), and one that cannot be read gives a reason and never an exception of the
database.
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

from truekeep.alf.ids import own_id
from truekeep.alf.moment import shown_moment
from truekeep.alf.own import own_record, tags_of
from truekeep.alf.records import Record

FACTS = "memory/facts.db"
MAX_BYTES = 1_000_000  # of one value; a longer one is a document and no fact

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

_ENTITIES = {
    "person": "person", "people": "person", "family": "person", "friend": "person", "user": "person",
    "project": "project", "repository": "project", "tool": "tool", "software": "tool", "automation": "tool",
    "infrastructure": "service", "service": "service", "server": "service",
    "organization": "organization", "company": "organization", "team": "organization",
    "location": "location", "place": "location",
}  # fmt: skip


class UnreadableFacts(Exception):
    """Why facts cannot be read, or not all of them. `given`: how many had been told before."""

    def __init__(self, what: str, *, given: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.given = given


class Fact(NamedTuple):
    """One row, as `raw_source_format.truekeep` of its record has it."""

    table: str
    entity: str
    key: str
    value: str


class Table(NamedTuple):
    """A table that holds facts: the columns that are known, by what they mean."""

    name: str
    columns: Mapping[str, str]
    has_rowid: bool


def facts_of(path: str, *, agent: str, mtime_ns: int) -> Iterator[Record]:
    """A record for each fact of a database, one at a time. Raises UnreadableFacts; without a file there are none."""
    given = 0
    try:
        with _reading(path) as db:
            for record in _iter_records(db, agent, mtime_ns) if db is not None else ():
                yield record
                given += 1
    except UnreadableFacts as error:
        raise UnreadableFacts(error.what, given=given) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise UnreadableFacts("another program is writing it", given=given) from error
    except (apsw.Error, LookupError) as error:
        raise UnreadableFacts(f"it is damaged or no database ({error})", given=given) from error


# --- The file -------------------------------------------------------------------------------------------------------


@contextmanager
def _reading(path: str) -> Iterator[apsw.Connection | None]:
    """The database, open for reading; None where there is no file.

    A database in WAL mode has a file of shared memory beside it while somebody uses it. Where there is none nobody
    writes, and it is read as it stands: a reader would have to make that file.
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


def _find_tables(db: apsw.Connection) -> list[Table]:
    """The tables that hold facts, by name. Only stored columns count: a computed one is code."""
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
            found.append(Table(name, columns, not has_no_rowid))
    return found


# --- Without some ---------------------------------------------------------------------------------------------------


def without_facts(
    data: bytes, gone: Collection[Fact], is_said: Callable[[str], bool]
) -> tuple[bytes, frozenset[Fact]] | None:
    """A database without these facts and without rows of which a text must not be said, and which rows these were.

    It is written anew in memory, so that nothing of them is left in free pages. None where that is not safe: a damaged
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


def _iter_records(db: apsw.Connection, agent: str, mtime_ns: int) -> Iterator[Record]:
    tables = _find_tables(db)
    if not tables:
        raise UnreadableFacts("it has no table with an entity, a key and a value")
    encoding: Any = db.execute("PRAGMA encoding").get
    for table in tables:
        before: tuple[str, str] | None = None
        occurrence = 0
        for row in _iter_rows(db, table):
            said = {meaning: _text(value, encoding) for meaning, value in row.items()}
            if not said["entity"] or not said["value"]:
                continue
            same = (said["entity"], said["key"])
            occurrence = occurrence + 1 if same == before else 0
            before = same
            yield _fact_record(table, said, occurrence, agent, mtime_ns)


def _iter_rows(db: apsw.Connection, table: Table) -> Iterator[dict[str, bytes | None]]:
    """The rows, those of one entity and key together, as bytes: damaged text is text all the same.

    Sorting happens in SQLite, which puts what is too much for memory into a temporary file of its own.
    """
    quoted = {meaning: _quoted(column) for meaning, column in table.columns.items()}
    selected = ", ".join(
        f"CASE WHEN typeof({at}) != 'blob' AND octet_length({at}) <= {MAX_BYTES} THEN CAST({at} AS BLOB) END"
        for at in quoted.values()
    )
    order = "1, 2, rowid" if table.has_rowid else "1, 2, 3"  # entity, key, and the value if nothing else tells
    for values in db.execute(f"SELECT {selected} FROM {_quoted(table.name)} ORDER BY {order}"):  # noqa: S608
        yield dict(zip(quoted, values, strict=True))


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _text(value: bytes | None, encoding: str) -> str:
    """A value as one can read it. What is no text at all is nothing."""
    if value is None:
        return ""
    text = value.decode(encoding, "replace").strip()
    return "" if "\0" in text or text.count("\ufffd") > len(text) // 4 else text


def _fact_record(table: Table, said: Mapping[str, str], occurrence: int, agent: str, mtime_ns: int) -> Record:
    entity, key, category = said["entity"], said["key"], said.get("category", "")
    changed = shown_moment(mtime_ns)
    created = _moment(said.get("created_at", ""))
    name = "\0".join((table.name, entity, key, str(occurrence)))
    return own_record(
        id=own_id(agent, "fact", name),
        agent=agent,
        content=f"{entity} · {key}: {said['value']}" if key else f"{entity}: {said['value']}",
        memory_type="preference",
        namespace="facts",
        source={"origin": "workspace", "origin_file": FACTS},
        temporal={
            "created_at": created or changed,
            "updated_at": _moment(said.get("updated_at", "")) or created or changed,
            "observed_at": created,
            "last_accessed_at": _moment(said.get("accessed_at", "")),
            "access_count": _count(said.get("access_count", "")),
        },
        category=category,
        confidence=_share(said.get("confidence", "")),
        entities=[{"name": entity, "type": _ENTITIES.get(category.casefold(), "other")}],
        tags=tags_of("facts", category),
        raw_source_format={"truekeep": {"table": table.name, "entity": entity, "key": key, "value": said["value"]}},
    )


def _moment(text: str) -> str | None:
    """A moment as databases keep it: ISO with or without an offset (then UTC), or seconds or milliseconds."""
    if text.isascii() and text.replace(".", "", 1).isdecimal() and len(text) < 30:
        seconds = float(text)
        seconds = seconds / 1000 if seconds > 1e11 else seconds
        return shown_moment(int(seconds) * 1_000_000_000) if 1e8 < seconds < 1e11 else None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _share(text: str) -> float | None:
    """A number from 0 to 1; anything else says nothing about how sure a fact is."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
