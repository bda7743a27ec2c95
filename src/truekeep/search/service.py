"""Search over one workspace: scan the files, bring the index up to date, ask it, and note how far to trust the answer.

A search never fails for want of an index. Files that are not in it yet, because there was no time or no disk to write
to, are searched by their words in memory; a damaged index is set aside and rebuilt; an index that no longer fits the
settings answers until its replacement is built beside it.

    index_file.py         the index file: opened, locked, set aside, replaced
    embedder_choice.py    whose vectors the index has, and which embedder answers
    workspace_files.py    memory files, compared with the index and indexed
    transcript_index.py   sessions of harnesses, likewise
    build.py              a run of `truekeep index`
    scan_cache.py         when the files were last scanned
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from truekeep.core.config import SearchConfig
from truekeep.core.derived_db import UnusableDatabase, read_meta
from truekeep.core.errors import BadInput, Busy, StorageFailed, TruekeepError
from truekeep.core.formats import INDEX, newer_state, read_format
from truekeep.core.sqlite import DAMAGE
from truekeep.memory.file_scan import STORES, Changes, FileScan, MemoryFile
from truekeep.search.embedder_choice import Embedders, is_built_in
from truekeep.search.embedders import Embedder
from truekeep.search.index_file import IndexFile, index_in_background
from truekeep.search.index_schema import open_index
from truekeep.search.passages import SIZES
from truekeep.search.scan_cache import scan_cache_of
from truekeep.search.searcher import Filter, Hit, IndexResult, Searcher, is_repository
from truekeep.search.workspace_files import MemoryFileScanner
from truekeep.text.words import cjk_pairs

if TYPE_CHECKING:
    from truekeep.search.build import IndexProgress, IndexReport
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.transcript_index import TranscriptIndex

READ_ONLY = "this workspace is read-only, so its index is not updated"
TIME_TO_REFRESH = 1.0  # seconds that a search spends on bringing the index up to date
TIME_FOR_FILES = 3.0  # seconds that it spends on files that are not in the index
_MAX_QUERY_LENGTH = 100_000
WEAK_EVIDENCE = "these may not answer: no passage has much of the question together"
_MOST_MISSING = 6  # words that a note names
_MOST_REPOSITORIES = 8

Ask = Callable[[Searcher, Filter], IndexResult]  # the same question for several indexes


class SearchResult(NamedTuple):
    """The hits of one search, with notes about them."""

    hits: tuple[Hit, ...]
    query: str
    mode: str  # hybrid, words
    provider: str
    model: str
    ranking: str
    notes: tuple[str, ...] = ()
    corrections: tuple[tuple[str, str], ...] = ()
    waiting: int = 0  # changed files that are not in the index yet
    doubt: str = ""  # why the answer is most likely not in memory; also among the notes
    evidence: str = "enough"  # for an answer among the hits: "none" with a doubt, "weak" with a note, or "enough"

    @property
    def caution(self) -> str:
        """What to read before the hits; empty if they have what the question asks."""
        return self.doubt or (WEAK_EVIDENCE if self.evidence == "weak" else "")


class Status(NamedTuple):
    """The size and state of the index."""

    files: Mapping[str, int]
    chunks: int
    waiting: int  # changed files that are not indexed yet
    unembedded: int
    provider: str
    model: str
    size: int
    indexed_at: str
    problem: str = ""


class SearchService:
    """Searches one workspace by words and by meaning."""

    def __init__(
        self,
        root: str,
        state: str,
        settings: SearchConfig,
        *,
        now: Callable[[], datetime],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.notes: list[str] = []  # about the last call
        self._root = root
        self._settings = settings
        self._now = now
        self._environ = environ
        self._scan_cache = scan_cache_of(state)
        self._file = IndexFile(state, self._scan_cache, now=now, note=self._note)
        self._embedders = Embedders(
            settings, state, environ, note=self._note, index_in_background=self._index_in_background
        )
        self._files = MemoryFileScanner(root, state, settings.extra_paths, note=self._note)
        self._state = state
        self._searcher: Searcher | None = None

    def close(self) -> None:
        self._searcher = None
        self._file.close()
        if "_transcripts" in self.__dict__:
            self._transcripts.close()

    @cached_property
    def _transcripts(self) -> TranscriptIndex:
        from truekeep.search.transcript_index import TranscriptIndex  # here: most searches ask no transcript

        return TranscriptIndex(self._state, self._settings, now=self._now, environ=self._environ)

    def _note(self, text: str) -> None:
        self.notes.append(text)

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
        sizes: Sequence[int] = SIZES,
    ) -> SearchResult:
        """Find memory. `within`: skip the scan if one found every file in the index so many seconds ago."""
        if not query.strip():
            raise BadInput("there is nothing to search for", hint='truekeep search "which port does staging use"')
        self.notes = []
        query = query[:_MAX_QUERY_LENGTH].encode("utf-8", "replace").decode()  # without half characters
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
                sizes=sizes,
            )

        searcher, left, found = self._ask_index(ask, filter_, within)
        found = self._with_files(found, left, ask, filter_, limit)
        if not found.is_match and not filter_.stores and self._settings.transcripts:
            found = self._with_transcripts(found, searcher, ask, filter_, limit)
        doubt = _doubt(found) if not left else ""
        evidence = "none" if doubt else "weak" if found.evidence == "weak" and found.hits and not left else "enough"
        if evidence != "enough":
            self._note(doubt or WEAK_EVIDENCE)
        if found.failure:
            self._note(f"search by meaning failed ({found.failure}); these are found by words alone")
        if filter_.repository and not found.hits:
            self._note_unknown_repository(searcher, filter_.repository)
        embedder = searcher.embedder
        return SearchResult(
            hits=found.hits,
            query=query,
            mode=found.mode,
            provider=embedder.provider if embedder else "none",
            model=embedder.model if embedder else "",
            ranking=formula,
            notes=tuple(dict.fromkeys(self.notes)),
            corrections=found.query.corrections,
            waiting=len(left),
            doubt=doubt,
            evidence=evidence,
        )

    def _ask_index(self, ask: Ask, filter_: Filter, within: float) -> tuple[Searcher, list[MemoryFile], IndexResult]:
        """Ask the index; if it turns out to be damaged, set it aside and ask the new one.

        Gives the searcher, the files that are not in its index, and the answer.
        """
        for attempt in range(2):
            try:
                searcher, left = self._ready(transcripts=filter_.has_transcripts, within=within)
                return searcher, left, ask(searcher, filter_)
            except apsw.SQLError as error:  # a table is missing: another program emptied the file
                if attempt:
                    raise StorageFailed(f"{self._file.path}: {error}", hint="`truekeep index --rebuild`") from error
                self._file.set_aside(str(error))
            except DAMAGE as error:
                if attempt:
                    raise StorageFailed(f"{self._file.path}: {error}", hint="check the disk") from error
                self._file.set_aside(str(error))
        raise AssertionError("unreachable")

    def _note_unknown_repository(self, searcher: Searcher, name: str) -> None:
        """Note that no memory is of the repository that was asked for, and of which ones there is memory."""
        known = searcher.find_repositories()
        if not any(is_repository(name, one) for one in known):
            others = f"; there is memory of {', '.join(known[:_MOST_REPOSITORIES])}" if known else ""
            self._note(f"no memory is of a repository {name}{others}")

    def _ready(self, *, transcripts: bool, within: float = 0.0) -> tuple[Searcher, list[MemoryFile]]:
        """The index, as up to date as there is time for, and the files that are not in it."""
        if not within:
            return self._scan_and_open(transcripts)
        with self._scan_cache.one_at_a_time():
            with suppress(UnusableDatabase, apsw.Error, OSError):
                searcher = self._open()
                if self._scan_cache.is_recent(self._file.opened, transcripts, within):
                    return searcher, []
            return self._scan_and_open(transcripts)

    def _scan_and_open(self, transcripts: bool) -> tuple[Searcher, list[MemoryFile]]:
        """The index after a scan, and the files that are not in it yet."""
        started = time.monotonic()
        scan = self._files.scan()
        try:
            searcher = self._open()
        except DAMAGE:
            raise
        except (UnusableDatabase, apsw.Error, OSError) as error:
            why = f"the index cannot be used ({_reason(error)})" if self._file.can_write() else READ_ONLY
            self._note(f"{why}; these are found in the files, by words alone")
            return Searcher(open_index(":memory:"), None), list(self._files.files(scan))
        left = [] if self._files.is_indexed(searcher.db, scan) else self._refresh_files(searcher, scan)
        if transcripts:
            self._refresh_transcripts(searcher)
        if left or self.notes:
            self._scan_cache.forget()
        else:
            self._scan_cache.note(self._file.opened, transcripts, started)
        return searcher, left

    def _refresh_files(self, searcher: Searcher, scan: FileScan) -> list[MemoryFile]:
        """Index what changed while there is time. Gives the files that are left."""
        changes = self._files.find_changes(searcher.db, scan)
        if not (changes.changed or changes.gone or self._files.is_record_new):
            return []
        if not self._file.can_write():
            self._note(f"{READ_ONLY}; changed files are searched by their words")
            return changes.changed
        embedder = _local_embedder(searcher)
        try:
            with self._file.lock() as is_locked:
                if not is_locked:
                    self._note("another truekeep is indexing; changed files are searched by their words")
                    return changes.changed
                until = time.monotonic() + TIME_TO_REFRESH
                done = self._files.index_changes(
                    searcher.db, changes, embedder, fingerprint=scan.fingerprint, until=until
                )
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self._note(f"updating the index failed ({error})")
            return changes.changed
        self.notes += done.unread
        needs_vectors = searcher.embedder is not None and embedder is None
        rest = self._index_in_background() if done.left or needs_vectors else ""
        if done.left:
            self._note(f"{done.left} changed files are not in the index yet; {rest}")
            return sorted(changes.changed, key=lambda source: -source.mtime_ns)[-done.left :]
        return []

    def _refresh_transcripts(self, searcher: Searcher) -> None:
        if not self._file.can_write():
            return
        try:
            with self._file.lock() as is_locked:
                if is_locked:
                    until = time.monotonic() + TIME_TO_REFRESH
                    done = self._transcripts.refresh(searcher.db, _local_embedder(searcher), until=until)
                    if done.left:
                        rest = self._index_in_background()
                        self._note(f"{done.left} transcripts are not in the index yet; {rest}")
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self._note(f"updating transcripts failed ({error})")

    def _with_files(
        self,
        found: IndexResult,
        left: Sequence[MemoryFile],
        ask: Ask,
        filter_: Filter,
        limit: int,
    ) -> IndexResult:
        """Add the hits of files that are not in the index, found by words in memory."""
        if not left:
            return found
        db = open_index(":memory:")
        try:
            changes = Changes(sorted(left, key=lambda source: -source.mtime_ns), [], len(left), {})
            done = self._files.index_changes(db, changes, None, until=time.monotonic() + TIME_FOR_FILES)
            if done.left:
                self._note(f"{done.left} files were not searched; `truekeep index` indexes them")
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
        """Add hits from session transcripts, for a question that memory has no answer to."""
        self._refresh_transcripts(searcher)
        other = ask(searcher, filter_._replace(stores=("transcripts",)))
        named = tuple(hit for hit in other.hits if "exact" in hit.parts or not other.query.identifiers)
        if not other.is_match or not named:
            return found
        self._note("nothing in memory matches; the first are from session transcripts")
        return found._replace(hits=(*named, *found.hits)[:limit])

    # Opening.

    def _open(self, *, for_writing: bool = False) -> Searcher:
        """The index that is on disk now, with the embedder whose vectors it has."""
        db = self._file.open(for_writing=for_writing)
        if self._searcher is None or self._searcher.db is not db:
            self._searcher = None
            try:
                self._searcher = Searcher(db, self._embedders.find_answering(db, for_writing=for_writing))
            except BaseException:
                self._file.close()
                raise
        return self._searcher

    def _usable(self) -> Searcher:
        """The index. Raises StorageFailed if there is none to use."""
        path = self._file.path
        try:
            return self._open()
        except UnusableDatabase as error:
            if error.is_newer:
                raise newer_state(path, read_format(path), INDEX) from error
            raise StorageFailed(f"{path}: {error.reason}", hint="`truekeep index --rebuild` makes it anew") from error
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{path}: {error}", hint="check the disk; `truekeep index` makes it") from error

    # Indexing.

    def index(
        self, *, rebuild: bool = False, progress: IndexProgress = lambda *_: None, wait: float = 10.0
    ) -> IndexReport:
        """Bring all of the index up to date; rebuild it if it no longer fits the settings."""
        from truekeep.search.build import IndexRun  # here: a search builds nothing

        started = time.monotonic()
        self.notes = []
        run = IndexRun(
            file=self._file,
            open=lambda: self._open(for_writing=True),
            embedders=self._embedders,
            files=self._files,
            sessions=self._transcripts,
            now=self._now,
            note=self._note,
            progress=progress,
        )
        with self._file.lock(wait=wait) as is_locked:
            if not is_locked:
                raise Busy("another truekeep is indexing", hint="wait for it to end and run it again")
            try:
                done = run.run(rebuild=rebuild)
            except (*DAMAGE, apsw.SQLError) as error:
                self._file.set_aside(str(error))
                done = run.run(rebuild=False)
        notes = tuple(dict.fromkeys((*self.notes, *done.notes)))
        return done._replace(notes=notes, seconds=time.monotonic() - started)

    def watch(
        self,
        on_indexed: Callable[[IndexReport], None],
        *,
        stop: Any = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Index now, and again whenever a memory file changes, until stopped."""
        import watchfiles

        on_indexed(self.index())
        record = self._files.record_path
        state = os.path.dirname(record) + os.sep

        def is_memory(_: object, path: str) -> bool:
            # Moving a folder is one event; the scan sees what is in it.
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
                on_indexed(done)

    def count_old_sessions(self) -> int:
        """The number of sessions in the index that are past their age."""
        return len(self._transcripts.find_past_age(self._usable().db)) if os.path.exists(self._file.path) else 0

    def drop_expired(self) -> int:
        """Remove expired log entries and old sessions from the index now, not at the next search.

        Gives the number of sessions.
        """
        self.notes = []
        if not os.path.exists(self._file.path):
            return 0
        searcher = self._usable()
        with self._file.lock(wait=5.0) as is_locked:
            if not is_locked:
                self._note("another truekeep is indexing; expired entries leave the index after that")
                return 0
            old = self._transcripts.find_past_age(searcher.db)
            if old:
                from truekeep.search.refresh import refresh  # loads what masks credentials

                refresh(searcher.db, Changes([], old, 0, {}), None)
        if not self._files.is_decay_applied(searcher.db):
            self._ready(transcripts=False)
        return len(old)

    # State.

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
            return Status(empty, 0, 0, 0, "none", "", 0, "", problem=_reason(error))

    def read_transcript(self, path: str, *, first: int, lines: int, today: date) -> Excerpt:
        """Some lines of an indexed session."""
        return self._transcripts.read(self._usable().db, path, first=first, lines=lines, today=today)


def _doubt(found: IndexResult) -> str:
    """What no memory has, if that makes it likely that the answer is not there; empty otherwise."""
    query = found.query
    if query.is_unknown:
        nearest = "; these are the nearest in meaning" if found.hits and found.mode == "hybrid" else ""
        return f"no memory has these words{nearest}"
    if query.missing:
        return f"no memory has {', '.join(query.missing[:_MOST_MISSING])}"
    if found.evidence != "none" or not found.hits:
        return ""
    absent = [term.word for term in query.terms if not term.chunks and not cjk_pairs(term.word)]
    if not absent:
        return WEAK_EVIDENCE
    return f"no memory has {', '.join(absent[:_MOST_MISSING])}; these are the nearest notes, and may not answer"


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, UnusableDatabase) else str(error)


def _local_embedder(searcher: Searcher) -> Embedder | None:
    """The embedder that answers, if it is the built-in one: a search does not wait for any other."""
    return searcher.embedder if searcher.embedder is not None and is_built_in(searcher.embedder) else None
