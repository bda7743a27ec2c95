"""The ledger: what truekeep wrote, when, for which handoff, and the bytes before. For history, undo and recovery.

One SQLite file. A batch of changes is recorded here first, as pending, with every byte that it needs; then the files
are written; then the batch is marked done. A run that finds a pending batch finishes it. So nothing is written that
the ledger cannot explain, and nothing is filed twice. Changes are kept as splices, so a line added to a long file
costs a line; where a person edited in between, the version that truekeep found is kept whole, so every version can be
had again.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import apsw

from truekeep.core.dates import local_day
from truekeep.core.formats import LEDGER, newer_state
from truekeep.core.model import Finding, HandoffOrigin, Splice
from truekeep.core.sqlite import transaction

if TYPE_CHECKING:
    from truekeep.memory.staging import Change

VERSION = LEDGER.number
LOCK_WAIT_MS = 5000
_APPLICATION = 0x746B6C67  # "tklg"

_SCHEMA = """
CREATE TABLE handoff (
  digest BLOB PRIMARY KEY,          -- SHA-256 of the file's bytes
  name TEXT NOT NULL, title TEXT NOT NULL, writer TEXT NOT NULL, machine TEXT NOT NULL,
  repository TEXT NOT NULL, inbox TEXT NOT NULL, received_at TEXT NOT NULL,
  outcome TEXT NOT NULL,            -- as in Outcome; later approved, rejected, expired, undone, seen
  target TEXT NOT NULL,             -- the file it went to
  reasons TEXT NOT NULL,            -- JSON list of [code, message, line]
  batch INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE batch (
  id INTEGER PRIMARY KEY, at TEXT NOT NULL,
  state TEXT NOT NULL,              -- pending, called-off, done
  whole INTEGER NOT NULL            -- 1: all of it or nothing; 0: each file for itself
);
CREATE INDEX batch_open ON batch(state) WHERE state != 'done';
CREATE TABLE outcome (              -- what becomes of a handoff once its batch is done
  batch INTEGER NOT NULL, digest BLOB NOT NULL, outcome TEXT NOT NULL, target TEXT
);
CREATE TABLE entry (
  id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, at TEXT NOT NULL, verb TEXT NOT NULL, actor TEXT NOT NULL,
  handoff BLOB, note TEXT NOT NULL, undoes INTEGER
);
CREATE INDEX entry_batch ON entry(batch);
CREATE INDEX entry_handoff ON entry(handoff) WHERE handoff IS NOT NULL;
CREATE INDEX entry_undoes ON entry(undoes) WHERE undoes IS NOT NULL;
CREATE TABLE change (
  id INTEGER PRIMARY KEY, batch INTEGER NOT NULL, path TEXT NOT NULL,
  before BLOB, after BLOB,          -- SHA-256; NULL where there is no file
  found BLOB                        -- the bytes before, compressed, where they were not what the ledger last wrote
);
CREATE INDEX change_path ON change(path, id);
CREATE INDEX change_batch ON change(batch);
CREATE TABLE splice (
  change INTEGER NOT NULL, seq INTEGER NOT NULL, entry INTEGER NOT NULL,
  offset INTEGER NOT NULL, removed BLOB NOT NULL, inserted BLOB NOT NULL,
  PRIMARY KEY (change, seq)
) WITHOUT ROWID;
CREATE INDEX splice_entry ON splice(entry);
"""
# For questions across entries.
_QUESTIONS = """
CREATE INDEX IF NOT EXISTS entry_at ON entry(at);
CREATE INDEX IF NOT EXISTS entry_verb ON entry(verb);
CREATE INDEX IF NOT EXISTS entry_actor ON entry(actor);
CREATE INDEX IF NOT EXISTS handoff_machine ON handoff(machine);
CREATE INDEX IF NOT EXISTS handoff_writer ON handoff(writer);
CREATE INDEX IF NOT EXISTS handoff_received ON handoff(received_at, writer);
"""
# What ledgers of format 1 lack: the first ones all of it, others only what is for questions.
_SINCE_1 = """
DROP INDEX IF EXISTS batch_pending;
CREATE INDEX IF NOT EXISTS batch_open ON batch(state) WHERE state != 'done';
CREATE TABLE IF NOT EXISTS outcome (batch INTEGER NOT NULL, digest BLOB NOT NULL, outcome TEXT NOT NULL, target TEXT);
"""
MAX_PATHS_LOOKED_UP = 200  # of a query; beyond that, the newest entries are tried
_NOT_SENT = "outcome = 'seen' OR (outcome = 'already' AND title = '' AND target = '')"


class LedgerEntry(NamedTuple):
    """One entry: a filing, an approval, an undo."""

    at: str
    verb: str
    actor: str
    id: int = 0
    handoff: bytes | None = None
    note: str = ""
    undoes: int | None = None
    paths: tuple[str, ...] = ()
    undone_by: int | None = None


class HandoffRow(NamedTuple):
    """A handoff in the ledger."""

    digest: bytes
    origin: HandoffOrigin
    title: str
    received_at: str
    outcome: str
    target: str
    reasons: tuple[Finding, ...] = ()


class WriterActivity(NamedTuple):
    """The handoffs of one writer in one repository on one machine."""

    machine: str
    writer: str
    repository: str
    last_at: str
    filed: int
    held: int  # before a person, or turned away


class LedgerQuery(NamedTuple):
    """Which entries to find. Empty fields match everything."""

    who: str = ""  # whose act it is, or the writer of its handoff
    machine: str = ""  # that its handoff came from
    path: str = ""  # a part of the path of a file that it changed
    verb: str = ""
    since: str = ""  # a day or a moment
    until: str = ""  # a day, all of it, or a moment


class LedgerFilters(NamedTuple):
    """The values by which entries can be found."""

    who: tuple[str, ...]
    machines: tuple[str, ...]
    verbs: tuple[str, ...]


class Version(NamedTuple):
    """One change of a file: the bytes that were found, if a person had changed it, and the splices."""

    change: int
    path: str
    before: bytes | None
    after: bytes | None
    found: bytes | None
    splices: tuple[tuple[int, Splice], ...]


class Pending(NamedTuple):
    """A batch that was begun but not finished."""

    batch: int
    is_called_off: bool
    is_whole: bool
    versions: tuple[Version, ...]


class Ledger:
    """The ledger of one workspace, open."""

    def __init__(
        self, path: str, *, read_only: bool = False, known: Callable[[], Iterable[HandoffRow]] = lambda: ()
    ) -> None:
        """Open a ledger. A new one begins with `known`, the handoffs that were processed according to the files."""
        self.path = path
        try:
            self._db = _connect_read_only(path) if read_only else apsw.Connection(path)
            self._db.set_busy_timeout(LOCK_WAIT_MS)
            version = self._pragma("user_version")
            if version > VERSION:
                raise newer_state(path, version, LEDGER)
            if read_only:
                return
            if self._pragma("journal_mode") != "wal":
                self._pragma("journal_mode = WAL")
            self._pragma("synchronous = FULL")
            if version == 0:
                with transaction(self._db):
                    self._db.execute(_SCHEMA)
                    self._db.execute(_QUESTIONS)
                    self._remember(known())
                    self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self._db.execute(f"PRAGMA user_version = {VERSION}")
            elif version < VERSION:
                self._upgrade()
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise LedgerFileDamaged(path) from error
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
            raise Unwritable(path) from error
        except (apsw.IOError, apsw.FullError) as error:  # no room for SQLite's own lock file, which a reader needs, too
            if read_only or _has_log(path):
                raise
            raise Unwritable(path) from error

    def _upgrade(self) -> None:
        """Upgrade a ledger of an earlier format in one transaction."""
        can_wait = self._has_wholes()  # all that a reader or a writer needs is there; the next one does the rest
        failures = (apsw.BusyError, apsw.ReadOnlyError, apsw.FullError) if can_wait else ()
        with suppress(*failures), transaction(self._db):
            if self._pragma("user_version") == 1:  # nobody was faster
                if not can_wait:
                    self._db.execute("ALTER TABLE batch ADD COLUMN whole INTEGER NOT NULL DEFAULT 0")
                self._db.execute(_SINCE_1)
                self._db.execute(_QUESTIONS)
                self._db.execute("PRAGMA user_version = 2")

    def _has_wholes(self) -> bool:
        return bool(self._db.execute("SELECT count(*) FROM pragma_table_info('batch') WHERE name = 'whole'").get)

    def _pragma(self, text: str) -> Any:
        for row in self._db.execute(f"PRAGMA {text}"):
            return row[0]
        return 0

    def close(self) -> None:
        self._db.close()

    # Writing: begin, (files are written), finish.

    def begin(
        self,
        changes: Sequence[Change],
        entries: Sequence[LedgerEntry],
        records: Sequence[HandoffRow],
        outcomes: Sequence[tuple[bytes, str, str | None]],
        *,
        at: str,
        whole: bool,
    ) -> int:
        """Record a batch as pending. Splices refer to their entry by its position in `entries`."""
        db = self._db
        with transaction(self._db):
            db.execute("INSERT INTO batch(at, state, whole) VALUES (?, 'pending', ?)", (at, int(whole)))
            batch = db.last_insert_rowid()
            first = (db.execute("SELECT max(id) FROM entry").get or 0) + 1
            db.executemany(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (first + number, batch, entry.at, entry.verb, entry.actor, entry.handoff, entry.note, entry.undoes)
                    for number, entry in enumerate(entries)
                ],
            )
            change_id = db.execute("SELECT max(id) FROM change").get or 0
            rows = []
            splices: list[tuple[int, int, int, int, bytes, bytes]] = []
            for change in changes:
                change_id += 1
                before = change.before_digest
                found = None
                if change.before is not None and before != self.last_digest(change.path):
                    found = zlib.compress(change.before.data, 6)
                rows.append((change_id, batch, change.path, before, change.after_digest, found))
                splices.extend(
                    (change_id, seq, first + entry, splice.offset, splice.removed, splice.inserted)
                    for seq, (entry, splice) in enumerate(change.splices)
                )
            db.executemany("INSERT INTO change VALUES (?, ?, ?, ?, ?, ?)", rows)
            db.executemany("INSERT INTO splice VALUES (?, ?, ?, ?, ?, ?)", splices)
            db.executemany(
                "INSERT OR REPLACE INTO handoff VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_record_row(record, batch) for record in records],
            )
            db.executemany("INSERT INTO outcome VALUES (?, ?, ?, ?)", [(batch, *outcome) for outcome in outcomes])
        return int(batch)

    def finish(self, batch: int) -> None:
        """Mark a batch as done: its files are on disk, and the outcomes of its handoffs count from now on."""
        db = self._db
        with transaction(self._db):
            outcomes = db.execute("SELECT digest, outcome, target FROM outcome WHERE batch = ?", (batch,)).fetchall()
            db.executemany(
                "UPDATE handoff SET outcome = ?, target = coalesce(?, target) WHERE digest = ?",
                [(outcome, target, digest) for digest, outcome, target in outcomes],
            )
            db.execute("DELETE FROM outcome WHERE batch = ?", (batch,))
            db.execute("UPDATE batch SET state = 'done' WHERE id = ?", (batch,))

    def mark_for_rollback(self, batch: int) -> None:
        """Mark a batch to be rolled back. Recovery after a crash also rolls it back."""
        self._db.execute("UPDATE batch SET state = 'called-off' WHERE id = ?", (batch,))

    def cancel(self, batch: int) -> None:
        """Delete a batch that has written nothing to disk."""
        with transaction(self._db):
            self._forget_changes("SELECT id FROM change WHERE batch = ?", (batch,))
            self._db.execute("DELETE FROM entry WHERE batch = ?", (batch,))
            self._db.execute("DELETE FROM handoff WHERE batch = ?", (batch,))
            self._db.execute("DELETE FROM outcome WHERE batch = ?", (batch,))
            self._db.execute("DELETE FROM batch WHERE id = ?", (batch,))

    def drop_change(self, batch: int, path: str) -> None:
        """Delete one file's part of a pending batch, because a person edited it; its handoffs are decided again."""
        with transaction(self._db):
            self._db.execute(
                "DELETE FROM handoff WHERE batch = ? AND digest IN (SELECT handoff FROM entry WHERE id IN"
                " (SELECT entry FROM splice WHERE change IN (SELECT id FROM change WHERE batch = ? AND path = ?)))",
                (batch, batch, path),
            )
            self._forget_changes("SELECT id FROM change WHERE batch = ? AND path = ?", (batch, path))
            self._db.execute(
                "DELETE FROM entry WHERE batch = ? AND id NOT IN (SELECT entry FROM splice)"
                " AND (handoff IS NULL OR handoff NOT IN (SELECT digest FROM handoff))",
                (batch,),
            )

    def _forget_changes(self, query: str, values: tuple[object, ...]) -> None:
        ids = [row[0] for row in self._db.execute(query, values)]
        self._db.executemany("DELETE FROM splice WHERE change = ?", [(number,) for number in ids])
        self._db.executemany("DELETE FROM change WHERE id = ?", [(number,) for number in ids])

    def has_pending(self) -> bool:
        return bool(self._db.execute("SELECT count(*) FROM batch WHERE state != 'done'").get)

    def pending(self) -> list[Pending]:
        """The batches that a killed run left, with the intended content of each file."""
        rows: list[Any] = self._db.execute(
            "SELECT id, state, whole FROM batch WHERE state != 'done' ORDER BY id"
        ).fetchall()
        return [
            Pending(batch, state == "called-off", bool(whole), tuple(self._versions("batch = ?", batch)))
            for batch, state, whole in rows
        ]

    def _remember(self, records: Iterable[HandoffRow]) -> None:
        """Record handoffs that were processed before this ledger began."""
        self._db.executemany(
            "INSERT OR IGNORE INTO handoff VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_record_row(record, 0) for record in records),
        )

    # Reading.

    def find_handoff(self, digest: bytes) -> HandoffRow | None:
        for row in self._db.execute("SELECT * FROM handoff WHERE digest = ?", (digest,)):
            return _record(row)
        return None

    def find_handoffs(self, digests: Sequence[bytes]) -> dict[bytes, HandoffRow]:
        """Look up these handoffs in one query."""
        marks = ",".join("?" * len(digests))
        rows = self._db.execute(f"SELECT * FROM handoff WHERE digest IN ({marks})", tuple(digests))  # noqa: S608
        return {record.digest: record for record in map(_record, rows)}

    def remaining_verb(self, digest: bytes) -> str:
        """The verb of the entry that is left of a handoff whose other changes were dropped; empty without one."""
        verb = self._db.execute("SELECT verb FROM entry WHERE handoff = ? ORDER BY id DESC LIMIT 1", (digest,)).get
        return str(verb or "")

    def inboxes_of(self, repository: str, machine: str) -> list[tuple[str, str]]:
        """The inboxes of a machine that handoffs of a repository came from, the first one first, with their writers."""
        rows: Any = self._db.execute(
            "SELECT inbox, writer FROM handoff WHERE repository = ? AND machine = ?"
            " GROUP BY 1, 2 ORDER BY min(received_at), min(batch), min(name)",
            (repository, machine),
        )
        return [(str(inbox), str(writer)) for inbox, writer in rows]

    def received(self, since: str) -> list[WriterActivity]:
        """For each machine, writer and repository: the time of the last handoff, and how many arrived since a time."""
        rows: Any = self._db.execute(
            "SELECT machine, writer, repository, max(received_at),"  # noqa: S608
            " sum(received_at >= ?1 AND outcome IN ('promoted', 'routed', 'approved')),"
            " sum(received_at >= ?1 AND outcome IN ('review', 'refused', 'rejected', 'expired'))"
            f" FROM handoff WHERE NOT ({_NOT_SENT})"  # what is already there and goes nowhere is a test letter
            " GROUP BY 1, 2, 3",
            (since,),
        )
        return [
            WriterActivity(str(m), str(w), str(r), str(at), int(filed), int(held)) for m, w, r, at, filed, held in rows
        ]

    def received_by_day(self, since: str) -> list[tuple[str, str, int]]:
        """How many handoffs each writer sent on each local day, from a time on, the oldest day first."""
        rows: Any = self._db.execute(
            "SELECT date(received_at, 'localtime'), writer, count(*) FROM handoff"  # noqa: S608
            f" WHERE received_at >= ? AND NOT ({_NOT_SENT}) GROUP BY 1, 2 ORDER BY 1, 2",
            (since,),
        )
        return [(str(day), str(writer), int(count)) for day, writer, count in rows]

    def handoff_of(self, entry: LedgerEntry) -> HandoffRow | None:
        return self.find_handoff(entry.handoff) if entry.handoff else None

    def last_digest(self, path: str) -> bytes | None:
        """The digest of what the ledger last wrote to a path; None if it never wrote it, or removed it."""
        for row in self._db.execute("SELECT after FROM change WHERE path = ? ORDER BY id DESC LIMIT 1", (path,)):
            return row[0]  # type: ignore[no-any-return]
        return None

    def entries(
        self, *, path: str | None = None, limit: int | None = None, sought: LedgerQuery | None = None
    ) -> Iterator[LedgerEntry]:
        """Entries, newest first; with a path or a query, only those that match it."""
        conditions, values = self._conditions(sought) if sought is not None else ([], [])
        if path is not None:
            conditions.append(
                "id IN (SELECT splice.entry FROM change JOIN splice ON splice.change = change.id WHERE change.path = ?)"
            )
            values.append(path)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"SELECT id, at, verb, actor, handoff, note, undoes FROM entry{where} ORDER BY id DESC"  # noqa: S608
        if limit is not None:
            query += " LIMIT ?"
            values.append(limit)
        for row in self._db.execute(query, values).fetchall():
            yield self._entry(row)

    def find_entries(self, sought: LedgerQuery, *, most: int, before: int = 0, after: int = 0) -> list[LedgerEntry]:
        """A page of the entries that match a query, newest first: the newest, those before one, or those after one."""
        conditions, values = self._conditions(sought)
        if before:
            conditions.append("id < ?")
            values.append(before)
        if after:
            conditions.append("id > ?")
            values.append(after)
        query = (
            f"SELECT id, at, verb, actor, handoff, note, undoes FROM entry WHERE {' AND '.join(conditions) or '1'}"  # noqa: S608
            f" ORDER BY id {'ASC' if after else 'DESC'} LIMIT ?"
        )
        rows: list[Any] = self._db.execute(query, (*values, most)).fetchall()
        return [self._entry(row) for row in sorted(rows, reverse=True)]

    def _conditions(self, sought: LedgerQuery) -> tuple[list[str], list[object]]:
        """SQL conditions on entries. Rare values use an index; frequent ones are soon found among the newest."""
        conditions: list[str] = []
        values: list[object] = []

        def add(condition: str, *given: object) -> None:
            conditions.append(condition)
            values.extend(given)

        if sought.verb:
            add("verb = ?", sought.verb)
        if sought.since:
            add("at >= ?", sought.since)
        if sought.until:
            add("at <= ? || '~'", sought.until)  # so that a day has all its moments
        if sought.machine:
            add(*self._from("machine", sought.machine))
        if sought.who:
            condition, *given = self._from("writer", sought.who)
            add(f"(actor = ? OR {condition})", sought.who, *given)
        if sought.path:
            changes = "SELECT splice.entry FROM change JOIN splice ON splice.change = change.id WHERE"
            fits = "SELECT DISTINCT path FROM change WHERE instr(path, ?) LIMIT ?"
            few = self._some(fits, sought.path)
            if few is not None:
                add(f"id IN ({changes} change.path IN ({', '.join('?' * len(few))}))", *few)
            else:
                add(f"EXISTS ({changes} splice.entry = entry.id AND instr(+change.path, ?))", sought.path)
        return conditions, values

    def _from(self, column: str, name: str) -> tuple[str, *tuple[object, ...]]:
        """The SQL condition that an entry's handoff has this writer or machine."""
        few = self._some(f"SELECT digest FROM handoff WHERE {column} = ? LIMIT ?", name)  # noqa: S608
        if few is not None:
            return f"handoff IN ({', '.join('?' * len(few))})", *few
        return f"EXISTS (SELECT 1 FROM handoff WHERE digest = entry.handoff AND +{column} = ?)", name  # noqa: S608

    def _some(self, query: str, value: str) -> list[object] | None:
        """The result of a query if it is small."""
        found = [row[0] for row in self._db.execute(query, (value, MAX_PATHS_LOOKED_UP + 1))]
        return found if len(found) <= MAX_PATHS_LOOKED_UP else None

    def count_by_verb(self, since: str) -> list[tuple[str, int]]:
        """How many entries of each verb were made since a time, the most frequent first."""
        # The plus: by the few that are so new, not by the order of verbs.
        query = "SELECT verb, count(*) FROM entry WHERE at >= ? GROUP BY +verb ORDER BY 2 DESC, 1"
        rows: Any = self._db.execute(query, (since,))
        return [(str(verb), int(count)) for verb, count in rows]

    def names(self, most: int = 100) -> LedgerFilters:
        """The values by which entries can be found. Looks at each name once, however often it is used."""

        def all_of(table: str, column: str) -> list[str]:
            query = (
                f"WITH RECURSIVE known(one) AS (SELECT min({column}) FROM {table} UNION ALL"  # noqa: S608
                f" SELECT (SELECT min({column}) FROM {table} WHERE {column} > one) FROM known WHERE one IS NOT NULL)"
                " SELECT one FROM known WHERE one != '' LIMIT ?"
            )
            return [str(name) for (name,) in self._db.execute(query, (most,))]

        who = dict.fromkeys((*all_of("handoff", "writer"), *all_of("entry", "actor")))
        return LedgerFilters(tuple(who), tuple(all_of("handoff", "machine")), tuple(all_of("entry", "verb")))

    def paths_since(self, at: str, *, below: str, most: int) -> list[str]:
        """The files in a folder that were changed at this time or later, the latest first."""
        first = 0
        for number, when in self._db.execute("SELECT id, at FROM entry ORDER BY id DESC"):
            if str(when) < at:
                break
            first = int(number)
        if not first:
            return []
        rows = self._db.execute(
            # The plus: by the few entries, not by the many paths.
            "SELECT change.path FROM splice JOIN change ON change.id = splice.change WHERE splice.entry >= ?"
            " AND +change.path GLOB ? GROUP BY change.path ORDER BY max(splice.entry) DESC, change.path LIMIT ?",
            (first, f"{below}*", most),
        )
        return [str(path) for (path,) in rows]

    def last_repairs(self, paths: Sequence[str]) -> dict[str, tuple[int, str]]:
        """The newest repair of each of these files: the number and note of its entry."""
        query = (
            "SELECT change.path, entry.id, entry.note FROM change JOIN splice ON splice.change = change.id"
            " JOIN entry ON entry.id = splice.entry WHERE change.path IN (SELECT value FROM json_each(?))"
            " AND entry.verb = 'repaired' ORDER BY entry.id"
        )
        rows = self._db.execute(query, (json.dumps(list(paths)),))
        return {str(path): (int(number), str(note)) for path, number, note in rows}

    def has_entry(self, verb: str, note: str) -> bool:
        return bool(self._db.execute("SELECT count(*) FROM entry WHERE verb = ? AND note = ?", (verb, note)).get)

    def get_entry(self, number: int) -> LedgerEntry | None:
        query = "SELECT id, at, verb, actor, handoff, note, undoes FROM entry WHERE id = ?"
        for row in self._db.execute(query, (number,)):
            return self._entry(row)
        return None

    def _entry(self, row: Sequence[object]) -> LedgerEntry:
        number, at, verb, actor, handoff, note, undoes = row
        paths = self._db.execute(
            "SELECT DISTINCT change.path FROM splice JOIN change ON change.id = splice.change"
            " WHERE splice.entry = ? ORDER BY change.id",
            (number,),
        )
        return LedgerEntry(
            id=number,  # type: ignore[arg-type]
            at=str(at),
            verb=str(verb),
            actor=str(actor),
            handoff=handoff,  # type: ignore[arg-type]
            note=str(note),
            undoes=undoes,  # type: ignore[arg-type]
            paths=tuple(path for (path,) in paths),
            undone_by=self._undone_by(int(number)),  # type: ignore[call-overload]
        )

    def _undone_by(self, number: int) -> int | None:
        """The entry that undoes this one; None without one, or if it was undone itself."""
        by: int | None = self._db.execute("SELECT max(id) FROM entry WHERE undoes = ?", (number,)).get
        return by if by is not None and self._undone_by(by) is None else None

    def versions(self, path: str) -> Iterator[Version]:
        """Every change of a file, oldest first."""
        yield from self._versions("path = ?", path)

    def _versions(self, where: str, value: object) -> Iterator[Version]:
        query = f"SELECT id, path, before, after, found FROM change WHERE {where} ORDER BY id"  # noqa: S608
        rows: list[Any] = self._db.execute(query, (value,)).fetchall()
        for change, path, before, after, found in rows:
            splices = tuple(
                (entry, Splice(path=path, offset=offset, removed=removed, inserted=inserted))
                for entry, offset, removed, inserted in self._db.execute(
                    "SELECT entry, offset, removed, inserted FROM splice WHERE change = ? ORDER BY seq", (change,)
                )
            )
            data = zlib.decompress(found) if found is not None else None
            yield Version(change=change, path=path, before=before, after=after, found=data, splices=splices)

    def around(self, number: int, path: str) -> tuple[bytes | None, bytes | None] | None:
        """A file before and after an entry; None if the entry did not change it."""
        found: Any = self._db.execute(
            "SELECT change.id, before IS NULL, after IS NULL, min(seq), max(seq) FROM splice"
            " JOIN change ON change.id = splice.change WHERE splice.entry = ? AND +change.path = ? GROUP BY 1",
            (number, path),
        ).fetchone()
        if found is None:
            return None
        change, is_new, is_removed, first, last = found
        before = self._bytes_at(path, change, first)
        after = bytearray(before)
        own = "SELECT offset, length(removed), inserted FROM splice WHERE change = ? AND seq BETWEEN ? AND ?"
        _replay(after, self._db.execute(f"{own} ORDER BY seq", (change, first, last)))
        end = self._db.execute("SELECT max(seq) FROM splice WHERE change = ?", (change,)).get
        return None if is_new and not first else before, None if is_removed and last == end else bytes(after)

    def content(self, path: str, *, before: int = 2**62) -> bytes | None:
        """The bytes that the ledger last wrote to a file, or last wrote before a given change."""
        query = "SELECT id, after IS NULL FROM change WHERE path = ? AND id < ? ORDER BY id DESC LIMIT 1"
        last: Any = self._db.execute(query, (path, before)).fetchone()
        return None if last is None or last[1] else self._bytes_at(path, last[0], 2**62)

    def _bytes_at(self, path: str, change: int, seq: int) -> bytes:
        """A file's bytes within a change, after the splices before a given one. Starts at the last full content."""
        start: Any = self._db.execute(
            "SELECT id, found FROM change WHERE path = ? AND id <= ? AND (before IS NULL OR found IS NOT NULL)"
            " ORDER BY id DESC LIMIT 1",
            (path, change),
        ).fetchone() or (0, None)
        data = bytearray(zlib.decompress(start[1]) if start[1] is not None else b"")
        splices = self._db.execute(
            "SELECT offset, length(removed), inserted FROM change JOIN splice ON splice.change = change.id"
            " WHERE path = ?1 AND change.id >= ?2 AND (change.id < ?3 OR (change.id = ?3 AND seq < ?4))"
            " ORDER BY change.id, seq",
            (path, start[0], change, seq),
        )
        _replay(data, splices)
        return bytes(data)

    def sizes(self, path: str) -> list[tuple[str, int]]:
        """The size of a file after the last change of each local day, the oldest first."""
        rows: Any = self._db.execute(
            "SELECT batch.at, before IS NULL, found, sum(length(inserted) - length(removed)) FROM change"
            " JOIN batch ON batch.id = change.batch JOIN splice ON splice.change = change.id WHERE path = ?"
            " GROUP BY change.id ORDER BY change.id",
            (path,),
        )
        days: dict[str, int] = {}
        size = 0
        for at, is_new, found, grown in rows:
            size = 0 if is_new else len(zlib.decompress(found)) if found is not None else size
            size += grown
            days[local_day(str(at))] = size
        return sorted(days.items())

    def latest_at(self) -> str:
        """The time of the newest entry; empty without one."""
        return self._db.execute("SELECT at FROM entry ORDER BY id DESC LIMIT 1").get or ""


def base_of(version: Version, known: bytes | None) -> bytes:
    """The bytes that a change was made on: those found, none for a new file, else those that the ledger knew."""
    if version.before is None:
        return b""
    return version.found if version.found is not None else known or b""


def after_splices(version: Version, known: bytes | None) -> bytes | None:
    """A file's bytes after a change, from the bytes that the ledger knew before it."""
    data = base_of(version, known)
    for _, splice in version.splices:
        data = spliced(data, splice)
    return data if version.after is not None else None


def _replay(data: bytearray, splices: Iterable[Any]) -> None:
    """Apply splices in order: offset, number of bytes to remove, bytes to insert."""
    for offset, removed, inserted in splices:
        data[offset : offset + removed] = inserted


def spliced(data: bytes, splice: Splice) -> bytes:
    return b"".join((data[: splice.offset], splice.inserted, data[splice.offset + len(splice.removed) :]))


def before_splices(version: Version, after: bytes | None) -> bytes | None:
    """A file's bytes before a change, from the bytes after it."""
    data = after or b""
    for _, splice in reversed(version.splices):
        data = b"".join((data[: splice.offset], splice.removed, data[splice.offset + len(splice.inserted) :]))
    return data if version.before is not None else None


class LedgerFileDamaged(Exception):
    """The ledger's file is not a readable database."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Unwritable(Exception):
    """The ledger's file or folder is not writable; it may be readable."""


def _connect_read_only(path: str) -> apsw.Connection:
    """Open a ledger on a read-only disk, where SQLite cannot create its lock files."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{quote(path)}?immutable=1", flags=flags)


def _has_log(path: str) -> bool:
    """Whether a part of the ledger is in its write-ahead log, which a read-only connection would not see."""
    return os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0


def set_aside(path: str, *, stamp: str) -> str:
    """Rename a damaged ledger, to keep it as evidence, so that a new one can begin."""
    kept = f"{path}.damaged-{stamp}"
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, kept + suffix)
    return kept


def _record_row(record: HandoffRow, batch: int) -> tuple[object, ...]:
    origin = record.origin
    return (
        record.digest,
        origin.name,
        record.title,
        origin.writer,
        origin.machine,
        origin.repository,
        origin.inbox,
        record.received_at,
        record.outcome,
        record.target,
        json.dumps([[finding.code, finding.message, finding.line] for finding in record.reasons])
        if record.reasons
        else "[]",
        batch,
    )


def _record(row: Sequence[object]) -> HandoffRow:
    digest, name, title, writer, machine, repository, inbox, received_at, outcome, target, reasons, _ = row
    return HandoffRow(
        digest=digest,  # type: ignore[arg-type]
        origin=HandoffOrigin(
            writer=str(writer), machine=str(machine), repository=str(repository), inbox=str(inbox), name=str(name)
        ),
        title=str(title),
        received_at=str(received_at),
        outcome=str(outcome),
        target=str(target),
        reasons=tuple(
            Finding(code=code, message=message, line=line) for code, message, line in json.loads(str(reasons))
        ),
    )
