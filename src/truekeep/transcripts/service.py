"""The transcript store's interface: sync, list, and read conversations.

The store is opened on first use; a missing store is empty. Two syncs never overlap. A damaged store is set aside, and a
new one is filled with what can still be read of it and from the harnesses' files.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from truekeep.core import file_io
from truekeep.core.errors import BadInput, Busy, NotFound, StorageFailed
from truekeep.core.repository import find_top, repository_name
from truekeep.text.unicode import clip, printable
from truekeep.transcripts.importer import Sync, TranscriptImportReport, Where, salvage
from truekeep.transcripts.parser import Turn
from truekeep.transcripts.store import DAMAGE, StoredSession, TranscriptStore, TranscriptStoreDamaged

FOLDER, FILE = "transcripts", "archive.sqlite"
_MAX_SUGGESTIONS = 8
_SHORTEST_NAME = 8  # characters of a session's name in a list
_TURNS = re.compile(r"(\d{1,9})?(-)?(\d{1,9})?")


class Conversation(NamedTuple):
    """A session with its turns, and where a fork's own turns begin."""

    kept: StoredSession
    turns: tuple[Turn, ...]
    parent: str  # name of the session it was forked from
    shared: int


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Each name as short as it can be and still mean only one of them."""
    ordered = sorted(names)
    short: dict[str, str] = {}
    for at, name in enumerate(ordered):
        near = [ordered[other] for other in (at - 1, at + 1) if 0 <= other < len(ordered)]
        shared = max((_common_length(name, other) for other in near), default=0)
        short[name] = name[: max(_SHORTEST_NAME, shared + 1)]
    return short


def _common_length(one: str, other: str) -> int:
    """The number of characters with which both begin."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(map(len, (one, other)))
    )


def parse_turns(text: str, total: int) -> tuple[int, int]:
    """The first and the last turn that 3, 3-9, 20- or -5 name."""
    if not text:
        return 1, total
    match = _TURNS.fullmatch(text.strip())
    if match is None or not (match[1] or match[3]):
        raise BadInput(f"--turns {text[:40]} is not a range", hint="3, 3-9, 20- or -5")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else total if match[2] else first
    if not 1 <= first <= last or first > total:
        raise BadInput(f"no turn {text[:40]}", hint=f"it has turns 1 to {total}")
    return first, min(last, total)


class Archive:
    """The transcript store of a workspace, or of a machine without one."""

    def __init__(self, state: str) -> None:
        self.path = os.path.join(state, FOLDER, FILE)
        self._store: TranscriptStore | None = None
        self._opened: tuple[int, int] | None = None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._opened = None

    def sync(
        self, where: Where, *, force: bool = False, progress: Callable[[int, int], None] = lambda *_: None
    ) -> TranscriptImportReport:
        """Import what the harnesses have written."""
        self.close()
        folder = os.path.dirname(self.path)
        try:
            file_io.make_private(folder)
            with file_io.locked(folder) as held:
                if not held:
                    raise Busy(
                        "another truekeep is reading transcripts",
                        hint="wait until it has finished, then run this again",
                    )
                try:
                    return self._sync(where, force, progress)
                except (TranscriptStoreDamaged, *DAMAGE) as error:
                    return self._rebuild(where, force, progress, str(error))
        except (apsw.Error, OSError) as error:
            hint = "nothing was lost; free some disk space or repair the disk, then run it again"
            raise StorageFailed(f"{self.path}: {error}", hint=hint) from error

    def sync_here(
        self,
        *,
        machine: str,
        now: datetime,
        keep_days: int,
        force: bool = False,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> TranscriptImportReport:
        """Import what this user's harnesses on this machine have written."""

        @cache
        def name_repository(cwd: str) -> str:
            folder = Path(cwd)
            top = find_top(folder) if folder.is_absolute() and folder.is_dir() else None
            return repository_name(top) if top is not None else folder.name

        home = Path(os.environ.get("HOME") or os.path.expanduser("~"))
        where = Where(home, os.environ, machine, now, keep_days, name_repository)
        return self.sync(where, force=force, progress=progress)

    def _sync(self, where: Where, force: bool, progress: Callable[[int, int], None]) -> TranscriptImportReport:
        store = TranscriptStore(self.path)
        try:
            return Sync(store, where, progress=progress).run(force=force)
        finally:
            store.close()

    def _rebuild(
        self, where: Where, force: bool, progress: Callable[[int, int], None], why: str
    ) -> TranscriptImportReport:
        kept = f"{self.path}.damaged-{where.now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        for suffix in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.replace(self.path + suffix, kept + suffix)
        store = TranscriptStore(self.path)
        saved = salvage(kept, store)
        store.close()
        done = self._sync(where, force, progress)
        note = (
            f"the transcript store was damaged ({why}); kept it as {os.path.basename(kept)} and saved {saved} sessions"
        )
        return done._replace(notes=(note, *done.notes))

    # Reading. A missing or unreadable store is empty.

    def _reader(self) -> TranscriptStore | None:
        try:
            info = os.stat(self.path)
        except OSError:
            self.close()
            return None
        here = (info.st_dev, info.st_ino)
        if self._store is None or self._opened != here:
            self.close()
            try:
                self._store, self._opened = TranscriptStore(self.path, read_only=True), here
            except (TranscriptStoreDamaged, OSError, apsw.Error):
                return None
        return self._store

    def originals(self) -> dict[str, tuple[int, int, int]]:
        """The stat of every completely imported source, by its path in search results."""
        with self._asking() as store:
            return {source.shown: source.stamp for source in store.sources().values()} if store is not None else {}

    def sessions(self, *, harness: str = "", repository: str = "", since: date | None = None) -> list[StoredSession]:
        """Every session with turns of its own, latest first.

        A repository is given in full, by its last part, or by a path.
        """
        wanted = repository.rstrip("/").removesuffix(".git").casefold()
        with self._asking() as store:
            return [
                kept
                for kept in (store.sessions() if store is not None else ())
                if kept.turns
                and (not harness or kept.harness == harness)
                and (not wanted or _is_about(kept, wanted))
                and (since is None or kept.moment.astimezone().date() >= since)
            ]

    def find_shown(self, shown: str) -> StoredSession | None:
        with self._asking() as store:
            return store.find_shown(shown) if store is not None else None

    def get(self, session: int) -> StoredSession:
        with self._asking() as store:
            kept = store.find_session(session) if store is not None else None
        if kept is None:
            raise FileNotFoundError(session)
        return kept

    def turns(self, kept: StoredSession) -> Iterator[Turn]:
        with self._asking() as store:
            yield from store.turns(kept.id) if store is not None else ()

    def own_turns(self, kept: StoredSession) -> Iterator[Turn]:
        with self._asking() as store:
            yield from store.own_turns(kept.id) if store is not None else ()

    @contextmanager
    def _asking(self) -> Iterator[TranscriptStore | None]:
        """The store; its database errors become OSError, so that callers do not take them for their own database's."""
        try:
            yield self._reader()
        except apsw.Error as error:
            raise OSError(errno.EIO, f"the transcript store cannot be read: {error}", self.path) from error

    def conversation(self, wanted: str, *, first: int = 1, most: int | None = None) -> Conversation:
        """A session, or some of its turns, by its name, a prefix of it, or its path in a search result."""
        with self._asking() as store:
            if store is None:
                raise NotFound("there are no transcripts yet", hint="run `truekeep transcripts sync` first")
            kept = _choose(store, wanted)
            parent = store.find_session(kept.parent) if kept.parent is not None else None
            stop = kept.total if most is None else first - 1 + most
            turns = tuple(store.some_turns(kept.id, start=first - 1, stop=stop))
            return Conversation(kept, turns, parent.name if parent else "", kept.shared)

    def browse(
        self,
        *,
        harness: str = "",
        machine: str = "",
        repository: str = "",
        since: date | None = None,
        until: date | None = None,
        first: int = 0,
        most: int = 50,
    ) -> tuple[list[StoredSession], int]:
        """A page of sessions of these days, latest first, and the total number."""
        begin = _moment(since) if since is not None else ""
        end = _moment(until + timedelta(days=1)) if until is not None and until < until.max else ""
        with self._asking() as store:
            if store is None:
                return [], 0
            return store.browse(
                harness=harness, machine=machine, repository=repository, since=begin, before=end, first=first, most=most
            )

    def choices(self) -> dict[str, list[str]]:
        """The harnesses, machines and repositories of sessions, most frequent first."""
        with self._asking() as store:
            names = ("harness", "machine", "repository")
            return {name: store.choices(name) if store is not None else [] for name in names}

    def turn_at(self, kept: StoredSession, line: int) -> int:
        """The number of the turn at a line of the source, or of the last one before it."""
        number = 1
        for at, turn in enumerate(self.turns(kept), 1):
            if turn.line > line:
                break
            number = at
        return number


def _choose(store: TranscriptStore, wanted: str) -> StoredSession:
    """The session with this name, prefix or path. Raises NotFound."""
    path = wanted.partition("#")[0]
    if path.startswith("transcripts/"):
        by_path = store.find_shown(path)
        found = [by_path] if by_path is not None else []
    else:
        found = store.named(wanted) if wanted else []
    if not found:
        hint = "run `truekeep transcripts list` to see the names"
        raise NotFound(f"no session named {printable(wanted)[:100]}", hint=hint)
    if len(found) > 1:
        near = [f"{kept.name} ({kept.last_at[:10]}, {clip(kept.title, 30)})" for kept in found[:_MAX_SUGGESTIONS]]
        near += [f"and {len(found) - _MAX_SUGGESTIONS} more"] * (len(found) > _MAX_SUGGESTIONS)
        what = f"{len(found)} sessions match {printable(wanted)[:100]}"
        raise BadInput(what, hint="say more: " + "; ".join(near), sessions=[kept.name for kept in found])
    return found[0]


def _moment(day: date) -> str:
    """The start of a local day in UTC."""
    try:
        return f"{datetime(day.year, day.month, day.day).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, OSError, ValueError):
        return ""


def _is_about(kept: StoredSession, repository: str) -> bool:
    """True if a session was in a repository, or below a folder."""
    name, cwd = kept.repository.casefold(), kept.cwd.casefold()
    return repository == name or name.endswith(f"/{repository}") or f"{cwd}/".startswith(f"{repository}/")
