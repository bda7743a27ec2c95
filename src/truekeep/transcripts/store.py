"""The transcript database, .truekeep/transcripts/archive.sqlite: sessions, turns, and how far each source was read.

It is the only copy once a harness has deleted its file, so every commit is synced, and turns and their source offset
are written together: after a crash, lines are read again but no turn is stored twice. Credentials were masked before
text comes here. Removed data is overwritten.

    session    one conversation; a fork has a parent and the number of turns shared with it
    block      about 32,000 characters of a session's own turns, one JSON array a line, compressed with zlib
    source     a file, or a session in OpenClaw's database: its stat, and the offset up to which it was read
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

import apsw

from truekeep.core.formats import TRANSCRIPTS, newer_state
from truekeep.core.sqlite import transaction
from truekeep.transcripts.parser import Progress, Turn

VERSION = TRANSCRIPTS.number
BLOCK_CHARACTERS = 32_768  # large enough to compress well, small enough to rewrite for one turn
MAX_TITLE_LENGTH = 160
_APPLICATION = 0x746B7472  # "tktr"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

_SCHEMA = """
CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,        -- what people ask for it by: the harness's id, with ~2 where two have the same
  harness TEXT NOT NULL, native TEXT NOT NULL, machine TEXT NOT NULL,
  cwd TEXT NOT NULL, branch TEXT NOT NULL, repository TEXT NOT NULL, started_at TEXT NOT NULL,
  shown TEXT NOT NULL UNIQUE,       -- its path in search results
  pointer TEXT NOT NULL,            -- where the original is, or was
  parent INTEGER, shared INTEGER NOT NULL,  -- it begins with that many turns of another session
  turns INTEGER NOT NULL,           -- its own, after those
  loose INTEGER NOT NULL,           -- 1: the last one stood in a line without an end, and may change
  title TEXT NOT NULL, head BLOB,   -- its first words; the digest of its first two turns
  state INTEGER NOT NULL,           -- 0: to be compared with others, 1: may still follow one, 2: settled
  last_at TEXT NOT NULL, kept_at TEXT NOT NULL, version INTEGER NOT NULL
);
CREATE INDEX session_head ON session(head) WHERE head IS NOT NULL;
CREATE INDEX session_native ON session(native);
CREATE INDEX session_parent ON session(parent) WHERE parent IS NOT NULL;
CREATE INDEX session_open ON session(state) WHERE state = 0;
CREATE TABLE block (
  id INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, turns INTEGER NOT NULL, data BLOB NOT NULL,
  UNIQUE (session, first)
);
CREATE TABLE shared_lines (         -- of a fork: the lines of its own original for the turns that it shares
  session INTEGER PRIMARY KEY, data BLOB NOT NULL
);
CREATE TABLE source (
  key BLOB PRIMARY KEY,             -- digest of the original's path, which itself may hold what must not be stored
  shown TEXT NOT NULL, session INTEGER, is_copy INTEGER NOT NULL,
  size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
  offset INTEGER NOT NULL, line INTEGER NOT NULL, has_spoken INTEGER NOT NULL, has_ended INTEGER NOT NULL,
  is_skipping INTEGER NOT NULL, head BLOB NOT NULL, tail BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX source_session ON source(session) WHERE session IS NOT NULL;
CREATE INDEX source_shown ON source(shown);
"""

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
TO_COMPARE, FOLLOWING, SETTLED = 0, 1, 2


class TranscriptStoreDamaged(Exception):
    """The transcript database is damaged."""


class StoredSession(NamedTuple):
    """A session in the store."""

    id: int
    name: str
    harness: str
    native: str
    machine: str
    cwd: str
    branch: str
    repository: str
    started_at: str
    shown: str
    pointer: str
    parent: int | None
    shared: int
    turns: int
    loose: int
    title: str
    head: bytes | None
    state: int
    last_at: str
    kept_at: str
    version: int

    @property
    def total(self) -> int:
        """The number of turns, including those shared with its parent."""
        return self.shared + self.turns

    @property
    def moment(self) -> datetime:
        """The time of its last turn."""
        return datetime.strptime(self.last_at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)

    @property
    def settled_turns(self) -> int:
        return self.total - self.loose


class TranscriptSource(NamedTuple):
    """A source: the state in which it was read, and how far."""

    key: bytes
    shown: str
    session: int | None = None
    is_copy: bool = False  # its session is read from another source
    size: int = -1
    mtime_ns: int = -1
    ctime_ns: int = -1
    offset: int = 0
    line: int = 0
    has_spoken: bool = False
    has_ended: bool = False
    is_skipping: bool = False  # inside a line that is too long to be dialogue
    head: bytes = b""
    tail: bytes = b""

    @property
    def stamp(self) -> tuple[int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns

    @property
    def progress(self) -> Progress:
        return Progress(self.line, self.has_spoken, self.has_ended)


def key_of(place: str) -> bytes:
    return blake2b(os.fsencode(place), digest_size=16).digest()


class TranscriptStore:
    """The open transcript database."""

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.path = path
        if not read_only:
            _make_room(path)
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        try:
            self.db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError):
            if not read_only:
                raise
            # Not writable for us: then no process writes it here, and it can be opened as immutable.
            uri = f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
            self.db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            self.db.set_busy_timeout(5000)
            self._prepare(read_only)
        except (*DAMAGE, apsw.SQLError) as error:
            self.db.close()
            raise TranscriptStoreDamaged(str(error)) from error
        except BaseException:
            self.db.close()
            raise

    def _prepare(self, read_only: bool) -> None:
        version: Any = self.db.execute("PRAGMA user_version").get
        if version > VERSION:
            raise newer_state(self.path, version, TRANSCRIPTS)
        if version and self.db.execute("PRAGMA application_id").get != _APPLICATION:
            raise TranscriptStoreDamaged("it is another program's database")
        if read_only:
            if version == 0:
                raise TranscriptStoreDamaged("it is empty")
            return
        self.db.execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
        if version == 0:
            self.db.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL").fetchall()
            with self.transaction():
                if self.db.execute("PRAGMA user_version").get == 0:  # not created by another process meanwhile
                    self.db.execute(_SCHEMA)
                    self.db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self.db.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        self.db.close()

    def transaction(self) -> AbstractContextManager[None]:
        return transaction(self.db)

    # Sources.

    def sources(self) -> dict[bytes, TranscriptSource]:
        return {source.key: source for source in map(_as_source, self.db.execute("SELECT * FROM source"))}

    def write_source(self, source: TranscriptSource) -> None:
        marks = ", ".join("?" * len(source))
        self.db.execute(f"INSERT OR REPLACE INTO source VALUES ({marks})", source)  # noqa: S608

    def find_shown(self, shown: str) -> StoredSession | None:
        """The session with this path in search results, or with a source of this path."""
        for statement in (
            "SELECT * FROM session WHERE shown = ?",
            "SELECT session.* FROM source JOIN session ON session.id = source.session WHERE source.shown = ?",
        ):
            row: Any = self.db.execute(statement, (shown,)).fetchone()
            if row is not None:
                return as_kept(row)
        return None

    # Sessions.

    def sessions(self) -> list[StoredSession]:
        return [as_kept(row) for row in self.db.execute("SELECT * FROM session ORDER BY last_at DESC, id DESC")]

    def browse(
        self,
        *,
        harness: str = "",
        machine: str = "",
        repository: str = "",
        since: str = "",
        before: str = "",
        first: int = 0,
        most: int = 50,
    ) -> tuple[list[StoredSession], int]:
        """A page of sessions with turns of their own, latest first, and the total number.

        `since` and `before` are times in the stored format.
        """
        asked = (
            ("harness = ?", harness),
            ("machine = ?", machine),
            ("repository = ?", repository),
            ("last_at >= ?", since),
            ("last_at < ?", before),
        )
        where = " AND ".join(("turns > 0", *(condition for condition, value in asked if value)))
        values = [value for _, value in asked if value]
        total: Any = self.db.execute(f"SELECT count(*) FROM session WHERE {where}", values).get  # noqa: S608
        rows = self.db.execute(
            f"SELECT * FROM session WHERE {where} ORDER BY last_at DESC, id DESC LIMIT ? OFFSET ?",  # noqa: S608
            (*values, most, first),
        )
        return [as_kept(row) for row in rows], int(total)

    def choices(self, column: str, most: int = 200) -> list[str]:
        """The values of a column, most frequent first."""
        assert column in ("harness", "machine", "repository")
        rows: Any = self.db.execute(
            f"SELECT {column} FROM session WHERE turns > 0 AND {column} != '' GROUP BY 1"  # noqa: S608
            " ORDER BY count(*) DESC, 1 LIMIT ?",
            (most,),
        )
        return [str(row[0]) for row in rows]

    def find_session(self, session: int) -> StoredSession | None:
        row: Any = self.db.execute("SELECT * FROM session WHERE id = ?", (session,)).fetchone()
        return as_kept(row) if row is not None else None

    def get_session(self, session: int) -> StoredSession:
        found = self.find_session(session)
        assert found is not None, session
        return found

    def named(self, prefix: str) -> list[StoredSession]:
        """The sessions with this name prefix; only the exact match if there is one."""
        rows = self.db.execute(
            "SELECT * FROM session WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name", (prefix.casefold(),)
        )
        found = [as_kept(row) for row in rows]
        exact = [kept for kept in found if kept.name == prefix.casefold()]
        return exact or found

    def add_session(self, kept: StoredSession) -> int:
        """Add a session without turns. Its name and path are made unique."""
        shown = kept.shown
        taken: Any = self.db.execute("SELECT id FROM session WHERE shown = ?", (shown,)).fetchone()
        if taken is not None:  # from an earlier state of the same source
            self.db.execute("UPDATE session SET shown = ? WHERE id = ?", (f"{shown}~{taken[0]}", taken[0]))
        row = kept._replace(id=0, name=self._free_name(kept.native))
        marks = ", ".join("?" * (len(row) - 1))
        self.db.execute(
            f"INSERT INTO session({', '.join(StoredSession._fields[1:])}) VALUES ({marks})",  # noqa: S608
            row[1:],
        )
        return self.db.last_insert_rowid()

    def _free_name(self, native: str) -> str:
        plain = native.casefold()
        base = plain if _NAME.fullmatch(plain) else f"session-{key_of(native).hex()[:12]}"
        name, number = base, 1
        while self.db.execute("SELECT 1 FROM session WHERE name = ?", (name,)).fetchone() is not None:
            number += 1
            name = f"{base}~{number}"
        return name

    def change(self, session: int, **values: Any) -> None:
        """Set some columns and increase the version."""
        columns = ", ".join(f"{name} = ?" for name in values)
        self.db.execute(
            f"UPDATE session SET {columns}, version = version + 1 WHERE id = ?",  # noqa: S608
            (*values.values(), session),
        )

    def remove(self, session: int) -> None:
        for table, column in (("block", "session"), ("shared_lines", "session"), ("session", "id")):
            self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (session,))  # noqa: S608

    # Turns.

    def append(self, session: int, turns: Iterable[Turn], *, after_line: int, loose: int) -> None:
        """Append turns to a session, replacing a turn from an incomplete last line."""
        kept = self.get_session(session)
        count, tail = kept.turns, list[Turn]()
        row: Any = self.db.execute(
            "SELECT id, first, data FROM block WHERE session = ? ORDER BY first DESC LIMIT 1", (session,)
        ).fetchone()
        if row is not None:
            tail = [turn for turn in _unpack(row[2]) if not kept.loose or turn.line <= after_line]
            count = row[1]
            self.db.execute("DELETE FROM block WHERE id = ?", (row[0],))
        count = self._write_blocks(session, count, (*tail, *turns))
        state = TO_COMPARE if kept.state == FOLLOWING else kept.state
        self.change(session, turns=count, loose=loose, state=state, title=kept.title or self._title(session))

    def divide(self, session: int, *, parent: int | None, shared: int) -> None:
        """Keep only the turns after the first `shared` ones, which belong to the parent."""
        turns = self.turns(session)
        lines = [turn.line for turn in islice(turns, shared)]
        count = self._write_blocks(-session, 0, turns)
        for table in ("block", "shared_lines"):
            self.db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608
        self.db.execute("UPDATE block SET session = ? WHERE session = ?", (session, -session))
        if lines:
            data = zlib.compress(json.dumps(lines, separators=(",", ":")).encode(), 6)
            self.db.execute("INSERT INTO shared_lines VALUES (?, ?)", (session, data))
        self.change(session, parent=parent, shared=shared, turns=count, title=self._title(session))

    def _write_blocks(self, session: int, first: int, turns: Iterable[Turn]) -> int:
        """Write turns from an index on. Returns the index after them."""
        for block in _blocks(turns):
            self.db.execute(
                "INSERT INTO block(session, first, turns, data) VALUES (?, ?, ?, ?)",
                (session, first, len(block), _pack(block)),
            )
            first += len(block)
        return first

    def _title(self, session: int) -> str:
        """The first words of a session, the user's if there are any."""
        first = list(islice(self.own_turns(session), 8))
        chosen = next((turn for turn in first if turn.role == "user"), first[0] if first else None)
        return " ".join(chosen.text[: 4 * MAX_TITLE_LENGTH].split())[:MAX_TITLE_LENGTH] if chosen is not None else ""

    def own_turns(self, session: int, *, start: int = 0, stop: int | None = None) -> Iterator[Turn]:
        """The session's own turns, or a range of them."""
        at = start
        while stop is None or at < stop:
            row: Any = self.db.execute(
                "SELECT first, data FROM block WHERE session = ? AND first <= ? ORDER BY first DESC LIMIT 1",
                (session, at),
            ).fetchone()
            block = _unpack(row[1])[at - row[0] :] if row is not None else []
            if not block:
                return
            yield from block if stop is None else block[: stop - at]
            at += len(block)

    def turns(self, session: int) -> Iterator[Turn]:
        """The whole conversation including shared turns, with the line numbers of its own source."""
        row: Any = self.db.execute("SELECT data FROM shared_lines WHERE session = ?", (session,)).fetchone()
        lines: Iterator[int] = iter(json.loads(zlib.decompress(row[0])) if row is not None else ())
        for part, stop in self.parts(session):
            for turn in self.own_turns(part, stop=stop):
                yield turn if part == session else turn._replace(line=next(lines, turn.line))

    def some_turns(self, session: int, *, start: int, stop: int) -> Iterator[Turn]:
        """A range of turns of the whole conversation, from 0. Reads only the blocks needed."""
        row: Any = self.db.execute("SELECT data FROM shared_lines WHERE session = ?", (session,)).fetchone()
        lines: list[int] = json.loads(zlib.decompress(row[0])) if row is not None else []
        at = 0
        for part, count in self.parts(session):
            first, last = max(0, start - at), min(count, stop - at)
            if first < last:
                for number, turn in enumerate(self.own_turns(part, start=first, stop=last), at + first):
                    yield turn._replace(line=lines[number]) if part != session and number < len(lines) else turn
            at += count

    def parts(self, session: int) -> list[tuple[int, int]]:
        """The sessions that make up a conversation, in order, each with its number of turns used."""
        parts: list[tuple[int, int]] = []
        kept: StoredSession | None = self.get_session(session)
        stop = kept.total if kept else 0
        while kept is not None:
            if stop > kept.shared:
                parts.append((kept.id, stop - kept.shared))
            stop = min(stop, kept.shared)
            kept = self.find_session(kept.parent) if kept.parent is not None else None
        return parts[::-1]

    def count(self) -> int:
        """The number of sessions with turns."""
        count: Any = self.db.execute("SELECT count(*) FROM session WHERE turns > 0").get
        return int(count)

    def tidy(self) -> None:
        """Return free pages to the file system and checkpoint the write-ahead log."""
        self.db.execute("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def size(self) -> int:
        """Bytes on disk."""
        total = 0
        for suffix in ("", "-wal"):
            with suppress(OSError):
                total += os.stat(self.path + suffix).st_size
        return total


# --- Blocks ---------------------------------------------------------------------------------------------------------


def _blocks(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    block: list[Turn] = []
    size = 0
    for turn in turns:
        block.append(turn)
        size += len(turn.text)
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block


def _pack(block: list[Turn]) -> bytes:
    lines = (
        json.dumps([turn.line, turn.role, turn.at, turn.text], ensure_ascii=False, separators=(",", ":"))
        for turn in block
    )
    return zlib.compress("\n".join(lines).encode("utf-8", "replace"), 6)


def _unpack(data: bytes) -> list[Turn]:
    try:
        rows = [json.loads(line) for line in zlib.decompress(data).decode().split("\n")]
        return [Turn(role=role, text=text, line=line, at=at) for line, role, at, text in rows]
    except (zlib.error, ValueError) as error:
        raise apsw.CorruptError("a block of the transcript store cannot be unpacked") from error


def as_kept(row: Any) -> StoredSession:
    return StoredSession(*row)


def _as_source(row: Any) -> TranscriptSource:
    return TranscriptSource(*row)


def _make_room(path: str) -> None:
    """Create the folder and the file, readable by the owner only."""
    folder = os.path.dirname(path)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if os.path.islink(folder):
        raise OSError(errno.ELOOP, "it is a symlink", folder)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
