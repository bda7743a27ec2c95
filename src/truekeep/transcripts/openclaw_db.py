"""Reads sessions from OpenClaw's database, `agents/<id>/agent/openclaw-agent.sqlite`: one row per event.

The database belongs to OpenClaw and is in use. It is opened read-only and queried for a few hundred rows at a time, so
that no lock lasts, and no file is left beside it. Its schema changes often: tables and columns are checked first, and a
database with an unknown schema is reported and left alone.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import apsw

from truekeep.core.sqlite import ReadOnlyDatabase
from truekeep.transcripts.session_file import HEAD, MAX_LINE, load_zstd
from truekeep.transcripts.store import TranscriptSource

_EVENTS_PER_QUERY = 200
_KEYS = (("session_windows", "session_id"), ("session_nodes", "current_session_id"))
_PROGRAM_KEYS = frozenset(("cron", "hook", "heartbeat", "subagent", "dreaming"))
"""Parts of a session's key that mean that a program started it."""


class UnknownDatabase(Exception):
    """The database has a transcript schema that this truekeep does not know."""


class DatabaseSession(NamedTuple):
    """A session in the database: its number of events, and the last event's number."""

    session_id: str
    events: int
    last: int


class Database:
    """One agent's database, open for reading."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._visit = ReadOnlyDatabase(path)
        except apsw.Error as error:
            raise OSError(errno.EIO, f"it cannot be read ({error})", path) from error
        self._db = self._visit.db
        try:
            self._events = self._find_events()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def has_changed(self) -> bool:
        """True if what was read may be inconsistent, because the database was opened as immutable and then written."""
        return self._visit.has_changed()

    def _find_events(self) -> str:
        """The SQL expressions for an event's JSON and its compressed JSON; "" if there are no transcripts yet."""
        columns = self._columns("transcript_events")
        if not columns:
            if self._ask("SELECT 1 FROM sqlite_schema WHERE name LIKE '%transcript%event%'"):
                raise UnknownDatabase(f"it has transcripts in unknown tables (version {self._version()})")
            return ""
        if not {"session_id", "seq"} <= columns or not {"event_json", "event_zstd"} & columns:
            raise UnknownDatabase(f"its transcript_events table has unknown columns (version {self._version()})")
        return ", ".join(
            f"CASE WHEN octet_length({name}) <= {MAX_LINE} THEN CAST({name} AS BLOB) END" if name in columns else "NULL"
            for name in ("event_json", "event_zstd")
        )

    def _version(self) -> Any:
        return self._ask("PRAGMA user_version")[0][0]

    def _columns(self, table: str) -> set[str]:
        return {name for (name,) in self._ask("SELECT name FROM pragma_table_info(?)", table)}

    def _ask(self, statement: str, *values: Any) -> list[Any]:
        """All rows at once, so that no lock stays. Database errors become OSError."""
        try:
            return self._db.execute(statement, values).fetchall()
        except apsw.Error as error:
            raise OSError(errno.EIO, f"it cannot be read ({error})", self.path) from error

    def sessions(self) -> list[DatabaseSession]:
        """The sessions that may contain dialogue."""
        if not self._events:
            return []
        silent = self._silent()
        rows = self._ask(
            "SELECT session_id, count(*), max(seq) FROM transcript_events"
            " WHERE typeof(session_id) = 'text' AND typeof(seq) = 'integer' GROUP BY session_id"
        )
        return [DatabaseSession(*row) for row in rows if row[0] not in silent]

    def _silent(self) -> set[str]:
        """Sessions started by a schedule, a hook or another agent, and those that the user made OpenClaw forget."""
        found: set[str] = set()
        for table, column in _KEYS:
            if {column, "session_key"} <= self._columns(table):
                rows = self._ask(f"SELECT {column}, session_key FROM {table}")  # noqa: S608
                found.update(session for session, key in rows if _PROGRAM_KEYS & set(str(key).split(":")))
        if "session_id" in self._columns("memory_session_tombstones"):
            found.update(session for (session,) in self._ask("SELECT session_id FROM memory_session_tombstones"))
        return found

    def lines(self, session_id: str, *, after: int) -> Iterator[tuple[int, bytes]]:
        """The events after a number, with their numbers; an unreadable event is an empty line."""
        while True:
            rows = self._ask(
                f"SELECT seq, {self._events} FROM transcript_events"  # noqa: S608
                " WHERE session_id = ? AND seq > ? AND typeof(seq) = 'integer' ORDER BY seq LIMIT ?",
                *(session_id, after, _EVENTS_PER_QUERY),
            )
            for number, plain, packed in rows:
                yield number, _line(plain, packed)
                after = number
            if len(rows) < _EVENTS_PER_QUERY:
                return

    def head(self, session_id: str) -> bytes:
        """The first events as lines, enough to identify the session."""
        found = b""
        for _, line in self.lines(session_id, after=-(1 << 62)):
            found += line + b"\n"
            if len(found) >= HEAD:
                break
        return found[:HEAD]

    def has_only_grown(self, session_id: str, source: TranscriptSource) -> bool:
        """True if the events that were read are unchanged."""
        statement = "SELECT count(*) FROM transcript_events WHERE session_id = ? AND seq <= ?"
        ((count,),) = self._ask(statement, session_id, source.offset)
        return bool(count == source.line) and self.fingerprint(session_id, source.offset) == (source.head, source.tail)

    def fingerprint(self, session_id: str, last: int) -> tuple[bytes, bytes]:
        """Digests of the first event and of the last one that was read."""
        found = []
        for order, bound in (("ASC", -(1 << 62)), ("DESC", last)):
            rows = self._ask(
                f"SELECT {self._events} FROM transcript_events WHERE session_id = ? AND typeof(seq) = 'integer'"  # noqa: S608
                f" AND seq {'>=' if order == 'ASC' else '<='} ? ORDER BY seq {order} LIMIT 1",
                *(session_id, bound),
            )
            found.append(blake2b(_line(*rows[0]) if rows else b"", digest_size=16).digest())
        return found[0], found[1]


def _line(plain: bytes | None, packed: bytes | None) -> bytes:
    """An event as a line of a session file, without line breaks."""
    if plain is None and packed is not None:
        zstd = load_zstd()
        with suppress(zstd.ZstdError, EOFError, ValueError):
            unpacking = zstd.ZstdDecompressor()
            plain = unpacking.decompress(packed, max_length=MAX_LINE + 1)
            if not unpacking.eof:
                plain = None
    return plain.replace(b"\n", b" ") if plain is not None and len(plain) <= MAX_LINE else b""
