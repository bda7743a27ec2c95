"""Recall, told as one story: look at the files, bring the index up to date, ask it, say how far to trust the answer.

A search never fails for want of an index. What is not in yet, because there was no time or no disk to write to, is
searched by its words in memory; a damaged index is set aside and made again; an index that no longer fits the settings
goes on answering while its successor is built beside it.

    file.py        the index as a file: opened, locked, set aside, replaced
    embedders.py   whose vectors it holds, and who answers
    files.py       memory files, compared and taken in
    sessions.py    sessions of harnesses, likewise
    indexing.py    a run of `index`: all of it, or a successor
    lookout.py     when all files were last looked at
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from truekeep.core.config import SearchConfig
from truekeep.core.derived_db import UnusableDatabase, read_meta
from truekeep.core.errors import BadInput, Busy, StorageFailed, TruekeepError
from truekeep.core.sqlite import DAMAGE
from truekeep.memory.file_scan import STORES, Changes, FileScan, MemoryFile
from truekeep.search.embedder_choice import Embedders, is_built_in
from truekeep.search.embedders import Embedder
from truekeep.search.index_file import IndexFile, index_in_background
from truekeep.search.index_schema import open_index
from truekeep.search.scan_cache import lookout_of
from truekeep.search.searcher import Filter, Hit, IndexResult, Searcher
from truekeep.search.transcript_index import Sessions
from truekeep.search.workspace_files import MemoryFileScanner

if TYPE_CHECKING:
    from truekeep.search.build import IndexReport, Tell
    from truekeep.search.excerpt import Excerpt

TIME_TO_REFRESH = 1.0  # seconds that a search spends on bringing the index up to date
TIME_FOR_FILES = 3.0  # seconds that it spends on files that are not in the index
_LONGEST_QUERY = 100_000

Ask = Callable[[Searcher, Filter], IndexResult]  # one question, wherever it is put


class SearchResult(NamedTuple):
    """Hits, and what to know about them."""

    hits: tuple[Hit, ...]
    query: str
    mode: str  # hybrid, words
    provider: str
    model: str
    ranking: str
    notes: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    waiting: int = 0  # changed files that are not in the index yet


class Status(NamedTuple):
    """How the index stands."""

    files: Mapping[str, int]
    chunks: int
    waiting: int  # files that changed since
    unembedded: int
    provider: str
    model: str
    size: int
    indexed_at: str
    problem: str = ""


class SearchService:
    """What one workspace remembers, found by words and by meaning."""

    def __init__(
        self,
        root: str,
        state: str,
        settings: SearchConfig,
        *,
        now: Callable[[], datetime],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.notes: list[str] = []  # what to know about the last act
        self._root = root
        self._settings = settings
        self._now = now
        self._environ = environ
        self._lookout = lookout_of(state)
        self._file = IndexFile(state, self._lookout, now=now, note=self._note)
        self._embedders = Embedders(
            settings, state, environ, note=self._note, index_in_background=self._index_in_background
        )
        self._files = MemoryFileScanner(root, state, settings.extra_paths, note=self._note)
        self._sessions = Sessions(state, settings, now=now, environ=environ)
        self._searcher: Searcher | None = None

    def close(self) -> None:
        self._searcher = None
        self._file.close()
        self._sessions.close()

    def _note(self, what: str) -> None:
        self.notes.append(what)

    def _index_in_background(self) -> str:
        return index_in_background(self._root, self._environ)

    # Searching.

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        filter_: Filter = Filter(),  # noqa: B008
        formula: str = "truekeep",
        lambda_mmr: float | None = None,
        half_life: float | None = None,
        within: float = 0.0,
    ) -> SearchResult:
        """Ask the index. `within`: where the files were looked at so many seconds ago and all was in, that will do."""
        if not query.strip():
            raise BadInput("there is nothing to search for", hint='truekeep search "which port does staging use"')
        self.notes = []
        query = query[:_LONGEST_QUERY].encode("utf-8", "replace").decode()  # half a character is none
        today = self._now().date()

        def ask(searcher: Searcher, filter_: Filter) -> IndexResult:
            return searcher.search(
                query,
                limit=limit,
                today=today,
                filter_=filter_,
                formula=formula,
                lambda_mmr=lambda_mmr,
                half_life=half_life,
            )

        searcher, left, found = self._ask_index(ask, filter_, within)
        found = self._with_files(found, left, ask, filter_, limit)
        if not found.is_match and not filter_.stores and self._settings.transcripts:
            found = self._with_transcripts(found, searcher, ask, filter_, limit)
        self._note_how(found)
        name = searcher.embedder
        return SearchResult(
            hits=found.hits,
            query=query,
            mode=found.mode,
            provider=name.provider if name else "none",
            model=name.model if name else "",
            ranking=formula,
            notes=tuple(dict.fromkeys(self.notes)),
            corrections=found.query.corrections,
            waiting=len(left),
        )

    def _ask_index(self, ask: Ask, filter_: Filter, within: float) -> tuple[Searcher, list[MemoryFile], IndexResult]:
        """Ask the index as it is now; one that turns out to be damaged is set aside, and its successor asked.

        Gives also who answered, and the files that are not in it.
        """
        for attempt in range(2):
            try:
                searcher, left = self._ready(transcripts=filter_.has_transcripts, within=within)
                return searcher, left, ask(searcher, filter_)
            except apsw.SQLError as error:  # a table is missing: somebody emptied the file behind our back
                if attempt:
                    raise StorageFailed(f"{self._file.path}: {error}", hint="`truekeep index --rebuild`") from error
                self._file.set_aside(str(error))
            except DAMAGE as error:
                if attempt:
                    raise StorageFailed(f"{self._file.path}: {error}", hint="check the disk") from error
                self._file.set_aside(str(error))
        raise AssertionError("unreachable")

    def _note_how(self, found: IndexResult) -> None:
        """Say so where the hits were found otherwise than by words and meaning together."""
        if (
            found.hits
            and found.mode == "hybrid"
            and not any(hit.matched and not all("~" in word for word in hit.matched) for hit in found.hits)
        ):
            self._note("no memory has these words; these are the nearest in meaning")
        if found.failure:
            self._note(f"meaning could not be asked ({found.failure}); these are found by words alone")

    def _ready(self, *, transcripts: bool, within: float = 0.0) -> tuple[Searcher, list[MemoryFile]]:
        """The index, as fresh as there is time for, and the files that are not in it."""
        if not within:
            return self._fresh(transcripts)
        with self._lookout.turn():
            with suppress(UnusableDatabase, apsw.Error, OSError):
                searcher = self._open()
                if self._lookout.is_good(self._file.opened, transcripts, within):
                    return searcher, []
            return self._fresh(transcripts)

    def _fresh(self, transcripts: bool) -> tuple[Searcher, list[MemoryFile]]:
        """The index after a look at all files, and those that are not in it yet."""
        begun = time.monotonic()
        looked = self._files.scan()
        try:
            searcher = self._open()
        except DAMAGE:
            raise
        except (UnusableDatabase, apsw.Error, OSError) as error:
            what = error.reason if isinstance(error, UnusableDatabase) else str(error)
            self._note(f"the index cannot be used ({what}); these are found in the files, by words alone")
            return Searcher(open_index(":memory:"), None), list(looked.files())
        left = [] if self._files.is_indexed(searcher.db, looked) else self._catch_up(searcher, looked)
        if transcripts:
            self._catch_up_transcripts(searcher)
        if left or self.notes:
            self._lookout.forget()
        else:
            self._lookout.note(self._file.opened, transcripts, begun)
        return searcher, left

    def _catch_up(self, searcher: Searcher, looked: FileScan) -> list[MemoryFile]:
        """Take in what changed while there is time. Returns what is left."""
        changes = self._files.find_changes(searcher.db, looked)
        if not (changes.changed or changes.gone or self._files.is_record_new):
            return []
        quick = _quick(searcher)
        try:
            with self._file.lock() as held:
                if not held:
                    self._note("another truekeep is indexing; what changed meanwhile is found by its words")
                    return changes.changed
                until = time.monotonic() + TIME_TO_REFRESH
                done = self._files.index_changes(
                    searcher.db, changes, quick, fingerprint=looked.fingerprint, until=until
                )
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self._note(f"the index could not be brought up to date ({error})")
            return changes.changed
        self.notes += done.unread
        rest = self._index_in_background() if done.left or (searcher.embedder is not None and quick is None) else ""
        if done.left:
            self._note(f"{done.left} changed files are not in the index yet; {rest}")
            return sorted(changes.changed, key=lambda source: -source.mtime_ns)[-done.left :]
        return []

    def _catch_up_transcripts(self, searcher: Searcher) -> None:
        try:
            with self._file.lock() as held:
                if held:
                    until = time.monotonic() + TIME_TO_REFRESH
                    done = self._sessions.refresh(searcher.db, _quick(searcher), until=until)
                    if done.left:
                        rest = self._index_in_background()
                        self._note(f"{done.left} transcripts are not in the index yet; {rest}")
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self._note(f"transcripts could not be brought up to date ({error})")

    def _with_files(
        self,
        found: IndexResult,
        left: Sequence[MemoryFile],
        ask: Ask,
        filter_: Filter,
        limit: int,
    ) -> IndexResult:
        """The same search over files that are not in the index, by their words, in memory."""
        if not left:
            return found
        db = open_index(":memory:")
        try:
            changes = Changes(sorted(left, key=lambda source: -source.mtime_ns), [], len(left), {})
            done = self._files.index_changes(db, changes, None, until=time.monotonic() + TIME_FOR_FILES)
            if done.left:
                self._note(f"{done.left} files were not looked at; `truekeep index` takes them in")
            extra = ask(Searcher(db, None), filter_)
        finally:
            db.close()
        paths = {source.path for source in left}
        kept = [hit for hit in found.hits if hit.path not in paths]
        merged = sorted((*kept, *extra.hits), key=lambda hit: -hit.score)[:limit]
        known = {term.word for term in extra.query.terms if term.chunks}
        corrections = tuple(pair for pair in found.query.corrections if pair[0] not in known)
        query = found.query._replace(corrections=corrections)
        return found._replace(hits=tuple(merged), mode=found.mode if kept else "words", query=query)

    def _with_transcripts(
        self,
        found: IndexResult,
        searcher: Searcher,
        ask: Ask,
        filter_: Filter,
        limit: int,
    ) -> IndexResult:
        """The same search over what was said in sessions, for a question that memory has no answer to."""
        self._catch_up_transcripts(searcher)
        other = ask(searcher, filter_._replace(stores=("transcripts",)))
        named = tuple(hit for hit in other.hits if "exact" in hit.parts or not other.query.identifiers)
        if not other.is_match or not named:
            return found
        self._note("nothing in memory matches; the first are from session transcripts")
        return found._replace(hits=(*named, *found.hits)[:limit])

    # Opening.

    def _open(self, *, for_writing: bool = False) -> Searcher:
        """The index as it is on disk now, and whose vectors it holds."""
        db = self._file.open(for_writing=for_writing)
        if self._searcher is None or self._searcher.db is not db:
            self._searcher = None
            try:
                self._searcher = Searcher(db, self._embedders.find_answering(db))
            except BaseException:
                self._file.close()
                raise
        return self._searcher

    def _usable(self) -> Searcher:
        """The index, or an error that says why there is none."""
        path = self._file.path
        try:
            return self._open()
        except UnusableDatabase as error:
            raise StorageFailed(f"{path}: {error.reason}", hint="upgrade truekeep, or delete the index") from error
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{path}: {error}", hint="check the disk; `truekeep index` makes it") from error

    # Indexing.

    def index(self, *, rebuild: bool = False, tell: Tell = lambda *_: None, wait: float = 10.0) -> IndexReport:
        """Bring the index up to date, all of it; build it anew beside itself when it no longer fits."""
        from truekeep.search.build import Indexing

        started = time.monotonic()
        self.notes = []
        run = Indexing(
            file=self._file,
            open=lambda: self._open(for_writing=True),
            embedders=self._embedders,
            files=self._files,
            sessions=self._sessions,
            now=self._now,
            note=self._note,
            tell=tell,
        )
        with self._file.lock(wait=wait) as held:
            if not held:
                raise Busy("another truekeep is indexing", hint="wait for it to end and run it again")
            try:
                done = run.run(rebuild=rebuild)
            except (*DAMAGE, apsw.SQLError) as error:
                self._file.set_aside(str(error))
                done = run.run(rebuild=False)
        notes = tuple(dict.fromkeys((*self.notes, *done.notes)))
        return done._replace(notes=notes, seconds=time.monotonic() - started)

    def watch(
        self, tell: Callable[[IndexReport], None], *, stop: Any = None, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Follow edits: index, then again whenever a memory file changes, until stopped."""
        import watchfiles

        tell(self.index())
        record = self._files.record_path
        state = os.path.dirname(record) + os.sep

        def is_memory(_: object, path: str) -> bool:
            # A folder that is moved is one event; what is in it is seen by the sweep.
            if path.startswith(state):
                return path == record
            return path.endswith(".md") or "." not in os.path.basename(path)

        for _ in watchfiles.watch(
            *self._files.watched_paths,
            watch_filter=is_memory,
            debounce=400,
            step=50,
            stop_event=stop,
            raise_interrupt=False,
        ):
            try:
                done = self.index()
            except TruekeepError as error:
                warn(error.message)  # the next change tries again
                continue
            if done.changed or done.removed:
                tell(done)

    def count_old_sessions(self) -> int:
        """How many sessions in the index are past their age."""
        return len(self._sessions.find_past_age(self._usable().db)) if os.path.exists(self._file.path) else 0

    def let_go(self) -> int:
        """Take out of the index what was forgotten on purpose. Gives the number of sessions that were past their age.

        Any search or refresh does the same; this is for whoever has just decided it.
        """
        from truekeep.search.refresh import refresh

        self.notes = []
        if not os.path.exists(self._file.path):
            return 0
        searcher = self._usable()
        with self._file.lock(wait=5.0) as held:
            if not held:
                self._note("another truekeep is indexing; what was forgotten leaves the index after that")
                return 0
            old = self._sessions.find_past_age(searcher.db)
            if old:
                refresh(searcher.db, Changes([], old, 0, {}), None)
        if not self._files.is_decay_applied(searcher.db):
            self._ready(transcripts=False)
        return len(old)

    # Looking.

    def status(self) -> Status:
        empty: dict[str, int] = dict.fromkeys(STORES, 0)
        try:
            searcher = self._open()
            db = searcher.db
            rows: Any = db.execute("SELECT store, count(*) FROM files GROUP BY store").fetchall()
            return Status(
                files=empty | dict(rows),
                chunks=db.execute("SELECT count(*) FROM chunks").get,
                waiting=self._files.count_waiting(db),
                unembedded=db.execute("SELECT count(*) FROM unembedded").get,
                provider=searcher.embedder.provider if searcher.embedder else "none",
                model=searcher.embedder.model if searcher.embedder else "",
                size=os.path.getsize(self._file.path),
                indexed_at=read_meta(db, "indexed_at", ""),
            )
        except (UnusableDatabase, apsw.Error, OSError) as error:
            what = error.reason if isinstance(error, UnusableDatabase) else str(error)
            return Status(empty, 0, 0, 0, "none", "", 0, "", problem=what)

    def read_transcript(self, path: str, *, first: int, lines: int, today: date) -> Excerpt:
        """The dialogue of an indexed session."""
        return self._sessions.read(self._usable().db, path, first=first, lines=lines, today=today)


def _quick(searcher: Searcher) -> Embedder | None:
    """The embedder that answers, where nobody has to wait for its vectors."""
    return searcher.embedder if searcher.embedder is not None and is_built_in(searcher.embedder) else None
