"""Sessions of harnesses in the search index: what was said, for search only, never taken as fact.

A session is read from the transcript archive, and from its harness's own file while that is newer.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep.core.errors import NotFound
from truekeep.memory.file_scan import FILE_LIMIT, MemoryFile, find_changes
from truekeep.search.chunking import split_chunks
from truekeep.search.file_metadata import About
from truekeep.search.refresh import PreparedFile, RefreshReport, refresh
from truekeep.transcripts.locations import find_transcripts, is_own_housekeeping
from truekeep.transcripts.parser import Turn, iter_dialogue, iter_turns
from truekeep.transcripts.service import Archive
from truekeep.transcripts.session_file import read_lines, read_session

if TYPE_CHECKING:
    import apsw

    from truekeep.core.config import SearchConfig
    from truekeep.search.embedders import Embedder
    from truekeep.search.excerpt import Excerpt

_ARCHIVE = "archive:"  # the location of an archived session is this and its id


class TranscriptIndex:
    """The sessions that one workspace can search."""

    def __init__(
        self, state: str, settings: SearchConfig, *, now: Callable[[], datetime], environ: Mapping[str, str]
    ) -> None:
        self._archive = Archive(state)
        self._settings = settings
        self._now = now
        self._environ = environ

    def close(self) -> None:
        self._archive.close()

    def refresh(
        self,
        db: apsw.Connection,
        embedder: Embedder | None,
        *,
        until: float | None = None,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> RefreshReport:
        """Bring the index up to date with the sessions there are."""
        changes = find_changes(db, self._sources() if self._settings.transcripts else (), transcripts=True)
        if not changes.changed and not changes.gone:
            return RefreshReport()
        return refresh(
            db, changes, embedder, until=until, progress=progress, read=lambda source, _: self._prepare(source)
        )

    def _sources(self) -> Iterator[MemoryFile]:
        """Session files that are newer than the archive, then the archived sessions."""
        since = self._oldest()
        home = Path(self._environ.get("HOME") or os.path.expanduser("~"))
        known = self._archive.originals()
        newer: set[str] = set()
        for file in find_transcripts(home=home, environ=self._environ, since=since):
            if known.get(file.shown) != (file.size, file.mtime_ns, file.ctime_ns):
                newer.add(file.shown)
                yield MemoryFile(
                    file.shown, "transcripts", file.size, file.mtime_ns, 0, 0, f"{file.harness}:{file.path}"
                )
        for kept in self._archive.sessions():
            at = int(kept.moment.timestamp()) * 1_000_000_000
            if kept.shown not in newer and at >= since * 1e9:
                place = f"{_ARCHIVE}{kept.id}"
                yield MemoryFile(kept.shown, "transcripts", kept.turns, at, kept.version, kept.id, place)

    def _oldest(self) -> float:
        """The time before which the last turn of a session is too old for search."""
        return (self._now() - timedelta(days=self._settings.transcript_days)).timestamp()

    def find_past_age(self, db: apsw.Connection) -> list[int]:
        """The file ids of indexed sessions that are past their age."""
        rows: Any = db.execute(
            "SELECT id FROM files WHERE store = 'transcripts' AND mtime_ns < ?", (int(self._oldest() * 1e9),)
        )
        return [row[0] for row in rows]

    def _prepare(self, source: MemoryFile) -> PreparedFile:
        """Read the dialogue of a session and cut it up, with the line of the session file for each line."""
        turns: Iterable[Turn] = ()
        if source.location.startswith(_ARCHIVE):
            kept = self._archive.get(int(source.location.removeprefix(_ARCHIVE)))
            harness, cwd, repository = kept.harness, kept.cwd, kept.repository
            turns = self._archive.own_turns(kept)  # what it shares with another session is found there
        else:
            harness, _, path = source.location.partition(":")
            session = read_session(Path(path), harness)
            cwd, repository = session.cwd, ""
            if not is_own_housekeeping(session, self._environ):
                turns = iter_turns(read_lines(Path(path)), harness)
        lines: list[str] = []
        origins: list[int] = []
        size = 0
        for line, origin in iter_dialogue(turns):
            lines.append(line)
            origins.append(origin)
            size += len(line)
            if size > FILE_LIMIT:
                break
        text = "\n".join(lines)
        cut = split_chunks(text)
        project = os.path.basename(cwd.rstrip("/"))
        day = datetime.fromtimestamp(source.mtime_ns / 1e9).astimezone().date().isoformat()
        about = About(f"{harness} {project}", day, repository or project, ())
        mapped = [origins[chunk.first - 1 : chunk.last] for chunk in cut]
        return PreparedFile(source, hashlib.sha256(text.encode()).digest(), True, about, cut, mapped)

    def read(self, db: apsw.Connection, path: str, *, first: int, lines: int, today: date) -> Excerpt:
        """Some lines of the dialogue of an indexed session."""
        from truekeep.search.excerpt import cut_transcript, local_day  # loads difflib, which a search does without

        row: Any = db.execute("SELECT origin FROM files WHERE path = ?", (path,)).fetchone()
        if row is not None and not row[0].startswith(_ARCHIVE):
            harness, _, file = row[0].partition(":")
            with suppress(FileNotFoundError):
                day = local_day(os.stat(file).st_mtime)
                turns = iter_turns(read_lines(Path(file)), harness)
                return cut_transcript(path, turns, day, first=first, lines=lines, today=today)
        kept = self._archive.find_shown(path)
        if kept is not None:
            day = kept.moment.astimezone().date()
            turns = self._archive.turns(kept)
            return cut_transcript(path, turns, day, first=first, lines=lines, today=today, repository=kept.repository)
        if row is None:
            raise NotFound(f"{path} is not in the index", hint="`truekeep search --store transcripts` finds sessions")
        raise NotFound(f"{path} is gone: its harness deleted it", hint="`truekeep transcripts sync` keeps the others")
