"""Imports new dialogue from the harnesses' session files, before they delete them.

    find        stats of every session file and database      unchanged ones are not opened
    read        new lines → turns, from the last offset        masked, without text that truekeep injected
    store       turns and offset in one transaction            a killed run reads again, but stores no turn twice
    settle      copies, resumed and forked sessions            each turn is stored once
    expire      sessions past their age                        together with their forks

A source that cannot be read does not affect the others. The harnesses' files are never changed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.file_io import UnsafePath
from truekeep.core.machine import below_home
from truekeep.core.sqlite import stamp_of
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.transcripts.forks import settle_all
from truekeep.transcripts.incremental import PORTION_CHARACTERS, Portion, fingerprint, has_only_grown, iter_portions
from truekeep.transcripts.locations import (
    TranscriptFile,
    find_agent_databases,
    is_own_housekeeping,
    iter_seen,
    render_shown,
)
from truekeep.transcripts.openclaw_db import Database, DatabaseSession, UnknownDatabase
from truekeep.transcripts.parser import Listener, Turn
from truekeep.transcripts.session_file import HEAD, Session, clean_name, open_session, parse_session
from truekeep.transcripts.store import DAMAGE, TO_COMPARE, StoredSession, TranscriptSource, TranscriptStore, key_of

FIRST_SANE = "2015"  # earlier years mean that the clock was never set
MAX_EXPIRED_MAJORITY = 20  # sessions that may expire at once even if they are most of the store
MAX_UNPACKED_BYTES = 16 << 30  # of a compressed file, which may be a decompression bomb
_BATCH_SECONDS = 2.0  # that a transaction may collect small files
_BATCH_BYTES = 32 << 20


class Where(NamedTuple):
    """Environment and settings of one import."""

    home: Path
    environ: Mapping[str, str]
    machine: str
    now: datetime
    keep_days: int  # 0 keeps sessions forever
    name_repository: Callable[[str], str]  # repository name of a working directory


class TranscriptImportReport(NamedTuple):
    """The result of one import."""

    originals: int  # existing session files and database sessions
    read: int  # sources with something new
    bytes: int  # read from files
    turns: int  # new
    sessions: int  # in the store
    expired: int
    size: int  # of the store, in bytes
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float


class Sync:
    """One import of all session files."""

    def __init__(
        self, store: TranscriptStore, where: Where, *, progress: Callable[[int, int], None] = lambda *_: None
    ) -> None:
        self._store = store
        self._where = where
        self._tell = progress
        self._known = store.sources()
        self._present: set[bytes] = set()
        self._originals = 0
        self._read = self._bytes = self._turns = 0
        self._problems: list[str] = []
        self._notes: list[str] = []
        self._batch = (0.0, 0)  # start time of the open transaction, and bytes read by then

    def run(self, *, force: bool = False) -> TranscriptImportReport:
        """Import new dialogue, then expire old sessions; with `force`, even if that is most of the store."""
        started = time.monotonic()
        try:
            self._read_files()
            self._read_databases()
        finally:
            self._commit()
        settle_all(self._store, self._present)
        expired = self._expire(force=force)
        if self._read or expired:
            self._store.tidy()
        return TranscriptImportReport(
            originals=self._originals,
            read=self._read,
            bytes=self._bytes,
            turns=self._turns,
            sessions=self._store.count(),
            expired=expired,
            size=self._store.size(),
            problems=tuple(self._problems),
            notes=tuple(self._notes),
            seconds=time.monotonic() - started,
        )

    # Files.

    def _read_files(self) -> None:
        where = self._where
        oldest = self._oldest()
        waiting: list[tuple[TranscriptFile, bytes]] = []
        for seen in iter_seen(home=where.home, environ=where.environ):
            key, info = key_of(seen.path), seen.info
            self._present.add(key)
            self._originals += 1
            known = self._known.get(key)
            if known is not None and known.stamp == (info.st_size, info.st_mtime_ns, info.st_ctime_ns):
                continue
            written = _moment(info.st_mtime_ns)
            if known is None and written < oldest and _is_sane(written, where.now):
                continue  # would expire at once
            waiting.append((seen.describe(), key))
        waiting.sort(key=lambda item: item[0].mtime_ns)  # originals before their forks
        for number, (file, key) in enumerate(waiting, 1):
            try:
                self._read_file(file, key)
            except FileNotFoundError:
                continue  # deleted by its harness since
            except UnsafePath as error:
                self._problems.append(str(error))
            except OSError as error:
                self._problems.append(f"{file.shown}: {error.strerror or error}")
            self._tell(number, len(waiting))

    def _read_file(self, file: TranscriptFile, key: bytes) -> None:
        is_packed = file.path.name.endswith(".zst")
        with open_session(file.path) as opened:
            descriptor = opened.fileno()
            info = os.fstat(descriptor)
            stamp = (info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            source = self._known.get(key) or TranscriptSource(key, file.shown)
            head = b""
            if is_packed or source.is_copy or not has_only_grown(descriptor, info.st_size, source):
                source = TranscriptSource(key, file.shown)
            if source.session is None:
                head = opened.read(HEAD)
            session = parse_session(head, file.harness, file.path.name)
            if is_own_housekeeping(session, self._where.environ, home=self._where.home):
                source = source._replace(has_ended=True)
            written = _moment(info.st_mtime_ns)
            about = (session, file.session_id, self._pointer(str(file.path)))
            for portion in iter_portions(opened, source, file.harness):
                self._bytes += portion.source.offset - source.offset
                ends = (b"", b"") if is_packed else fingerprint(descriptor, portion.source.offset)
                reached = _with_stamp(portion.source, stamp if portion.is_last else (-1, -1, -1), ends)
                source = self._keep(portion._replace(source=reached), source, about, written)
                if is_packed and source.offset > MAX_UNPACKED_BYTES:
                    self._store.write_source(_with_stamp(source, stamp, ends))
                    raise OSError(
                        errno.EFBIG, f"it unpacks to more than {MAX_UNPACKED_BYTES >> 30} GB; the rest is left out"
                    )
        self._read += 1

    # Databases.

    def _read_databases(self) -> None:
        where = self._where
        for file in find_agent_databases(home=where.home, environ=where.environ):
            path, key = str(file.path), key_of(str(file.path))
            try:
                self._read_database(path, key, file.shown)
            except UnknownDatabase as error:
                self._notes.append(f"{printable(path)}: {error}")
            except OSError as error:
                self._problems.append(f"{printable(path)}: {error.strerror or error}")

    def _read_database(self, path: str, key: bytes, shown: str) -> None:
        stamp = stamp_of(path)
        known = self._known.get(key)
        self._present.add(key)
        if known is not None and known.stamp == stamp:
            mine = [source.key for source in self._known.values() if source.shown.startswith(f"{shown}/")]
            self._present.update(mine)
            self._originals += len(mine)
            return
        database = Database(path)
        try:
            for told in database.sessions():
                self._read_session(database, told, f"{path}#{told.session_id}", shown)
            if database.has_changed():
                raise OSError(None, "it was written to while it was read; the next sync reads it again")
        finally:
            database.close()
        with self._writing():
            self._store.write_source(_with_stamp(TranscriptSource(key, shown), stamp, (b"", b"")))

    def _read_session(self, database: Database, told: DatabaseSession, place: str, shown: str) -> None:
        key = key_of(place)
        self._present.add(key)
        self._originals += 1
        known = self._known.get(key)
        if known is not None and (known.size, known.offset) == (told.events, told.last):
            return
        source = known or TranscriptSource(key, render_shown(f"{shown}/{told.session_id}"))
        if source.is_copy or not source.line or not database.has_only_grown(told.session_id, source):
            source = TranscriptSource(key, source.shown, offset=-(1 << 62))
        head = database.head(told.session_id) if source.session is None else b""
        about = (parse_session(head, "openclaw", told.session_id), told.session_id, self._pointer(place))
        listener = Listener("openclaw", breaks=True, progress=source.progress)
        turns: list[Turn] = []
        size = 0
        reached = source.offset
        for number, line in database.lines(told.session_id, after=source.offset):
            if (turn := listener.hear(line)) is not None:
                turns.append(turn)
                size += len(turn.text)
            reached = number
            if size >= PORTION_CHARACTERS:
                source = self._keep_events(database, told, listener, turns, reached, source, about)
                turns, size = [], 0
        self._keep_events(database, told, listener, turns, reached, source, about)
        self._read += 1

    def _keep_events(
        self,
        database: Database,
        told: DatabaseSession,
        listener: Listener,
        turns: list[Turn],
        reached: int,
        source: TranscriptSource,
        about: tuple[Session, str, str],
    ) -> TranscriptSource:
        line, spoken, ended = listener.progress
        there = source._replace(offset=reached, line=line, has_spoken=spoken, has_ended=ended)
        ends = database.fingerprint(told.session_id, reached)
        portion = Portion(turns, _with_stamp(there, (line, 0, 0), ends), 0, is_last=True)
        return self._keep(portion, source, about, None)

    # Keeping.

    def _keep(
        self, portion: Portion, before: TranscriptSource, about: tuple[Session, str, str], written: datetime | None
    ) -> TranscriptSource:
        """Store turns and the offset up to which they were read, together."""
        store, source = self._store, portion.source
        newest = self._newest(portion.turns, written)
        with self._writing():
            session = before.session
            if session is None and portion.turns:
                session = store.add_session(self._new_session(about, portion.turns[0], source.shown, newest))
            if session is not None and (portion.turns or store.get_session(session).loose):
                store.append(session, portion.turns, after_line=before.line, loose=portion.loose)
                store.db.execute("UPDATE session SET last_at = max(last_at, ?) WHERE id = ?", (newest, session))
            source = source._replace(session=session)
            store.write_source(source)
        self._turns += len(portion.turns)
        return source

    def _new_session(self, about: tuple[Session, str, str], first: Turn, shown: str, newest: str) -> StoredSession:
        session, native, pointer = about
        return StoredSession(
            id=0,
            name="",
            harness=session.harness,
            native=clean_name(native) or session.id,
            machine=self._where.machine,
            cwd=session.cwd,
            branch=session.branch,
            repository=clean_name(self._where.name_repository(session.cwd)) if session.cwd else "",
            started_at=session.started_at or first.at,
            shown=shown,
            pointer=pointer,
            parent=None,
            shared=0,
            turns=0,
            loose=0,
            title="",
            head=None,
            state=TO_COMPARE,
            last_at=newest,
            kept_at=_utc(self._where.now),
            version=0,
        )

    def _pointer(self, place: str) -> str:
        """The source's path for people, with a tilde for the home folder."""
        return withhold(printable(below_home(place, self._where.home)))

    def _newest(self, turns: Iterable[Turn], written: datetime | None) -> str:
        """The time of the last turn, else of the source's last write; now if that is not plausible."""
        now = self._where.now
        spoken = [_parse(turn.at) for turn in list(turns)[-1:]]
        moments = (moment for moment in (*spoken, written) if moment is not None and _is_sane(moment, now))
        return _utc(next(moments, now))

    # Transactions: small files share one, because each commit syncs the disk.

    def _writing(self) -> Any:
        if not self._store.db.in_transaction:
            self._store.db.execute("BEGIN IMMEDIATE")
            self._batch = (time.monotonic(), self._bytes)
        elif time.monotonic() - self._batch[0] > _BATCH_SECONDS or self._bytes - self._batch[1] > _BATCH_BYTES:
            self._commit()
            return self._writing()
        return self._store.db  # as a context manager, a savepoint: a failure rolls back only this file

    def _commit(self) -> None:
        if self._store.db.in_transaction:
            self._store.db.execute("COMMIT")

    # Expiry.

    def _oldest(self) -> datetime:
        days = self._where.keep_days
        return self._where.now - timedelta(days=days) if days else datetime.min.replace(tzinfo=UTC) + timedelta(days=2)

    def _expire(self, *, force: bool) -> int:
        """Remove sessions past their age, unless a younger one was forked from them."""
        self._forget_vanished()
        oldest = _utc(self._oldest())
        query = "SELECT 1 FROM session WHERE last_at < ? LIMIT 1"
        if not self._where.keep_days or self._store.db.execute(query, (oldest,)).fetchone() is None:
            return 0
        sessions = {kept.id: kept for kept in self._store.sessions()}
        needed: set[int] = set()
        for kept in sessions.values():
            at: StoredSession | None = kept if kept.last_at >= oldest else None
            while at is not None and at.id not in needed:
                needed.add(at.id)
                at = sessions.get(at.parent) if at.parent is not None else None
        old = [session for session in sessions if session not in needed]
        if not old:
            return 0
        if len(old) > MAX_EXPIRED_MAJORITY and 2 * len(old) > len(sessions) and not force:
            what = f"{len(old)} of {len(sessions)} sessions are older than {self._where.keep_days} days"
            self._notes.append(f"{what}: none was removed, because the clock may be wrong; use --force to remove them")
            return 0
        store = self._store
        with store.transaction():
            for session in old:
                store.remove(session)
                # Its source, if it still exists, is not read again until it changes.
                store.db.execute("UPDATE source SET session = NULL, is_copy = 1 WHERE session = ?", (session,))
        self._forget_vanished()
        return len(old)

    def _forget_vanished(self) -> None:
        """Remove sources that no longer exist and have no session."""
        rows: Any = self._store.db.execute("SELECT key FROM source WHERE session IS NULL")
        gone = [row for row in rows if row[0] not in self._present]
        if gone:
            with self._store.transaction():
                self._store.db.executemany("DELETE FROM source WHERE key = ?", gone)


def _with_stamp(source: TranscriptSource, stamp: tuple[int, int, int], ends: tuple[bytes, bytes]) -> TranscriptSource:
    size, mtime_ns, ctime_ns = stamp
    return source._replace(size=size, mtime_ns=mtime_ns, ctime_ns=ctime_ns, head=ends[0], tail=ends[1])


def _moment(nanoseconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _parse(at: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_sane(moment: datetime, now: datetime) -> bool:
    return f"{moment.year:04}" >= FIRST_SANE and moment <= now + timedelta(days=1)


def _utc(moment: datetime) -> str:
    return as_stamp(moment)


def salvage(damaged: str, store: TranscriptStore) -> int:
    """Copy the readable sessions of a damaged store. Returns how many."""
    saved = 0
    try:
        old = TranscriptStore(damaged, read_only=True)
    except Exception:  # noqa: BLE001 - damaged: any failure means that nothing can be read
        return 0
    try:
        ids: list[Any] = old.db.execute("SELECT id FROM session ORDER BY id").fetchall()
    except DAMAGE:
        ids = []
    for (session,) in ids:
        try:
            kept = old.get_session(session)
            turns = list(old.turns(session))
            if not turns:
                continue
            with store.transaction():
                number = store.add_session(kept._replace(parent=None, shared=0, turns=0, loose=0, state=TO_COMPARE))
                store.append(number, turns, after_line=0, loose=0)
            saved += 1
        except (*DAMAGE, AssertionError, TypeError):
            continue
    old.close()
    return saved
