"""Recall, told as one story: look at the files, bring the index up to date, ask it, say how far to trust the answer.

A search never fails for want of an index. What is not in yet, because there was no time or no disk to write to, is
searched by its words in memory; a damaged index is set aside and made again; an index that no longer fits the settings
goes on answering while its successor is built beside it.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from truekeep.config import Recall as Settings
from truekeep.embed import Embedder, EmbedderFailed, Versioned
from truekeep.embed.choice import choose, make_embedder
from truekeep.errors import BadInput, Busy, StorageFailed, TruekeepError
from truekeep.formats import INDEX, newer_state, read_format
from truekeep.index import schema
from truekeep.index.schema import DAMAGE, Unusable, open_index, read_meta, transaction, write_meta
from truekeep.index.search import Filter, Found, Hit, Searcher
from truekeep.index.sources import STORES, Changes, Look, Source, compare, has_all, look, sweep
from truekeep.transcripts.archive import Archive

if TYPE_CHECKING:
    from truekeep.decayed import Decayed
    from truekeep.excerpt import Excerpt
    from truekeep.index.refresh import Prepared, Refreshed
    from truekeep.transcripts.dialogue import Turn

INDEX_FILE = "index.sqlite"
LEXICON_FILE = "lexicon.bin"
TIME_TO_REFRESH = 1.0  # seconds that a search spends on bringing the index up to date
TIME_FOR_FILES = 3.0  # seconds that it spends on files that are not in the index
CHUNKING = "openclaw 5, 400 tokens, 80 overlap; titles 1"  # what a chunk is; a change rebuilds the index
_LONGEST_QUERY = 100_000
_TURN = 0.5  # seconds to wait for somebody else's look at the files
_ARCHIVE = "archive:"  # how the location of a session in the archive begins
_DECAY_FILE = "decay.toml"  # as decayed.NAME, which is loaded where there is one
_MIXED = "?"  # as decayed.MIXED


class Answer(NamedTuple):
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


class Indexed(NamedTuple):
    """What `index` did."""

    files: int
    chunks: int
    changed: int
    removed: int
    embedded: int
    transcripts: int
    provider: str
    model: str
    rebuilt: str  # why everything was indexed anew, or nothing
    notes: tuple[str, ...]
    seconds: float


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


class Lookout:
    """When the files were last looked at and all were in the index: of all who search one workspace in this process."""

    def __init__(self) -> None:
        self._turn = allocate_lock()
        self._looked: tuple[tuple[int, int] | None, dict[bool, float]] = (None, {})  # which index; transcripts or not

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One looks, and the others have its look. Whoever would wait for long goes on without."""
        mine = self._turn.acquire(timeout=_TURN)
        try:
            yield
        finally:
            if mine:
                self._turn.release()

    def is_good(self, index: tuple[int, int] | None, transcripts: bool, within: float) -> bool:
        known, looked = self._looked
        return known == index and time.monotonic() - looked.get(transcripts, -within) < within

    def note(self, index: tuple[int, int] | None, transcripts: bool, at: float) -> None:
        known, looked = self._looked
        self._looked = (index, {**(looked if known == index else {}), transcripts: at})

    def forget(self) -> None:
        self._looked = (None, {})


_lookouts: dict[str, Lookout] = {}  # by state folder


class Recall:
    """The index of one workspace."""

    def __init__(
        self,
        root: str,
        state: str,
        settings: Settings,
        *,
        now: Callable[[], datetime],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._root = root
        self._state = state
        self._settings = settings
        self._now = now
        self._environ = environ
        self._path = os.path.join(state, INDEX_FILE)
        self._searcher: Searcher | None = None
        self._opened: tuple[int, int] | None = None  # which file is open, should another take its place
        self._archive = Archive(state)
        self._embedders: dict[str, Embedder | None] = {}
        self._lookout = _lookouts.setdefault(os.path.join(root, state), Lookout())
        self._is_held = False  # whether this process holds the indexer's lock
        self._decayed: Decayed | None = None  # what was forgotten on purpose, when the files were last looked at
        self._noted = ""  # the stamp of what the index had then
        self.notes: list[str] = []

    def close(self) -> None:
        if self._searcher is not None:
            self._searcher.db.close()
        self._searcher = self._opened = None
        self._archive.close()

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
    ) -> Answer:
        """Ask the index. `within`: where the files were looked at so many seconds ago and all was in, that will do."""
        if not query.strip():
            raise BadInput("there is nothing to search for", hint='truekeep search "which port does staging use"')
        self.notes = []
        query = query[:_LONGEST_QUERY].encode("utf-8", "replace").decode()  # half a character is none
        options: dict[str, Any] = {
            "limit": limit,
            "today": self._today(),
            "formula": formula,
            "lambda_mmr": lambda_mmr,
            "half_life": half_life,
        }
        for attempt in range(2):
            try:
                searcher, left = self._ready(transcripts=filter_.transcripts, within=within)
                found = searcher.search(query, filter_=filter_, **options)
                break
            except apsw.SQLError as error:  # a table is missing: somebody emptied the file behind our back
                if attempt:
                    raise StorageFailed(f"{self._path}: {error}", hint="`truekeep index --rebuild`") from error
                self._set_aside(str(error))
            except DAMAGE as error:
                if attempt:
                    raise StorageFailed(f"{self._path}: {error}", hint="check the disk") from error
                self._set_aside(str(error))
        found = self._with_files(found, left, query, filter_, options)
        if not found.is_match and not filter_.stores and self._settings.transcripts:
            found = self._from_transcripts(found, searcher, query, filter_, options)
        if (
            found.hits
            and found.mode == "hybrid"
            and not any(hit.matched and not all("~" in word for word in hit.matched) for hit in found.hits)
        ):
            self.notes.append("no memory has these words; these are the nearest in meaning")
        if found.failure:
            self.notes.append(f"meaning could not be asked ({found.failure}); these are found by words alone")
        name = searcher.embedder
        return Answer(
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

    def _ready(self, *, transcripts: bool, within: float = 0.0) -> tuple[Searcher, list[Source]]:
        """The index, as fresh as there is time for, and the files that are not in it."""
        if not within:
            return self._fresh(transcripts)
        with self._lookout.turn():
            with suppress(Unusable, apsw.Error, OSError):
                searcher = self._open()
                if self._lookout.is_good(self._opened, transcripts, within):
                    return searcher, []
            return self._fresh(transcripts)

    def _fresh(self, transcripts: bool) -> tuple[Searcher, list[Source]]:
        """The index after a look at all files, and those that are not in it yet."""
        begun = time.monotonic()
        looked = self._look()
        self._decayed = self._read_decayed()
        try:
            searcher = self._open()
        except DAMAGE:
            raise
        except (Unusable, apsw.Error, OSError) as error:
            what = error.what if isinstance(error, Unusable) else str(error)
            self.notes.append(f"the index cannot be used ({what}); these are found in the files, by words alone")
            return Searcher(open_index(":memory:"), None), list(looked.sources())
        left = [] if self._is_all_in(searcher.db, looked) else self._take_changes(searcher, looked)
        if transcripts:
            self._catch_up_transcripts(searcher)
        if left or self.notes:
            self._lookout.forget()
        else:
            self._lookout.note(self._opened, transcripts, begun)
        return searcher, left

    def _is_all_in(self, db: apsw.Connection, looked: Look) -> bool:
        """Whether the index has all files just as they were seen: a mark tells, and no file need be compared."""
        self._noted = str(read_meta(db, "decay", ""))
        return bool(looked.mark) and read_meta(db, "mark") == looked.mark and self._noted == self._stamp()

    def _take_changes(self, searcher: Searcher, looked: Look) -> list[Source]:
        """Bring the index up to date with what was seen. Returns what is left."""
        changes = self._compare(searcher.db, list(looked.sources()), unseen=looked.problems)
        if changes.changed or changes.gone or self._noted != self._stamp():
            return self._catch_up(searcher, changes, looked.mark)
        return []

    def _compare(self, db: apsw.Connection, sources: Sequence[Source], *, unseen: Sequence[str] = ()) -> Changes:
        """What differs from the index: files by their stats, and logs of which something was forgotten or came back."""
        changes = compare(db, sources, unseen=unseen)
        self._decayed = self._read_decayed()
        self._noted = str(read_meta(db, "decay", ""))
        if self._noted == self._stamp():
            return changes
        from truekeep.decayed import find_concerned

        is_concerned = find_concerned(self._noted, self._decayed)
        changed = {source.path for source in changes.changed}
        rows: Any = db.execute("SELECT path, id FROM files WHERE store = 'logs'")
        known = {path: file_id for path, file_id in rows if path not in changed and is_concerned(path)}
        changes.changed.extend(source for source in sources if source.path in known)
        changes.known.update(known)
        return changes

    def _read_decayed(self) -> Decayed | None:
        """What was forgotten on purpose. A record that cannot be read is told, and forgets nothing."""
        if not os.path.lexists(os.path.join(self._state, _DECAY_FILE)):
            return None
        from truekeep.decayed import read_decayed

        try:
            return read_decayed(self._state)
        except TruekeepError as error:
            self.notes.append(f"{error.message}; so nothing is left out of search ({error.hint})")
            return None

    def _stamp(self) -> str:
        return self._decayed.stamp if self._decayed is not None else ""

    def _take_in(
        self,
        db: apsw.Connection,
        changes: Changes,
        embedder: Embedder | None,
        *,
        mark: str = "",
        until: float | None = None,
        tell: Callable[[int, int], None] = lambda *_: None,
    ) -> Refreshed:
        """Refresh by what was forgotten on purpose, and note by what; until all of it is in, the index is a mixture.

        `mark`: of the look that saw these changes. It is noted where the index then has all files just as they were.
        """
        from truekeep.index.refresh import prepare, refresh

        decayed, stamp = self._decayed, self._stamp()
        before = str(read_meta(db, "decay", ""))
        if changes.changed or changes.gone or before != stamp:
            with transaction(db):
                write_meta(db, "mark", "")
                if before != stamp:
                    write_meta(db, "decay", _MIXED)
        done = refresh(db, changes, embedder, until=until, tell=tell, read=lambda source: prepare(source, decayed))
        if before != stamp and before == self._noted and not done.left:
            with transaction(db):
                write_meta(db, "decay", stamp)
        if mark and not done.left and has_all(db, changes.changed):
            with transaction(db):
                write_meta(db, "mark", mark)
        return done

    def _look(self) -> Look:
        """Every memory file as it is now; what cannot be looked at is said."""
        looked = look(self._root, self._settings.extra_paths)
        self.notes += [f"{folder} cannot be listed; what is known of it stays" for folder in looked.problems]
        for path in self._settings.extra_paths:
            if not os.path.exists(os.path.join(self._root, os.path.expanduser(path))):
                self.notes.append(f"extra path {path} does not exist")
        return looked

    def _catch_up(self, searcher: Searcher, changes: Changes, mark: str) -> list[Source]:
        """Refresh while there is time. Returns what is left."""
        quick = searcher.embedder if searcher.embedder and searcher.embedder.provider == "static" else None
        try:
            with self._lock() as held:
                if not held:
                    self.notes.append("another truekeep is indexing; what changed meanwhile is found by its words")
                    return changes.changed
                until = time.monotonic() + TIME_TO_REFRESH
                done = self._take_in(searcher.db, changes, quick, mark=mark, until=until)
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self.notes.append(f"the index could not be brought up to date ({error})")
            return changes.changed
        self.notes += done.unread
        rest = self._go_on_in_background() if done.left or (searcher.embedder is not None and quick is None) else ""
        if done.left:
            self.notes.append(f"{done.left} changed files are not in the index yet; {rest}")
            return sorted(changes.changed, key=lambda source: -source.mtime_ns)[-done.left :]
        return []

    def _with_files(
        self,
        found: Found,
        left: Sequence[Source],
        query: str,
        filter_: Filter,
        options: Mapping[str, Any],
    ) -> Found:
        """The same search over files that are not in the index, by their words, in memory."""
        if not left:
            return found
        db = open_index(":memory:")
        try:
            changes = Changes(sorted(left, key=lambda source: -source.mtime_ns), [], len(left), {})
            done = self._take_in(db, changes, None, until=time.monotonic() + TIME_FOR_FILES)
            if done.left:
                self.notes.append(f"{done.left} files were not looked at; `truekeep index` takes them in")
            extra = Searcher(db, None).search(query, filter_=filter_, **options)
        finally:
            db.close()
        paths = {source.path for source in left}
        kept = [hit for hit in found.hits if hit.path not in paths]
        merged = sorted((*kept, *extra.hits), key=lambda hit: -hit.score)[: options["limit"]]
        known = {term.word for term in extra.query.terms if term.chunks}
        corrections = tuple(pair for pair in found.query.corrections if pair[0] not in known)
        query_ = found.query._replace(corrections=corrections)
        return found._replace(hits=tuple(merged), mode=found.mode if kept else "words", query=query_)

    def _from_transcripts(
        self,
        found: Found,
        searcher: Searcher,
        query: str,
        filter_: Filter,
        options: Mapping[str, Any],
    ) -> Found:
        self._catch_up_transcripts(searcher)
        asked = filter_._replace(stores=("transcripts",))
        other = searcher.search(query, filter_=asked, **options)
        named = tuple(hit for hit in other.hits if "exact" in hit.parts or not other.query.identifiers)
        if not other.is_match or not named:
            return found
        self.notes.append("nothing in memory matches; the first are from session transcripts")
        return found._replace(hits=(*named, *found.hits)[: options["limit"]])

    # Indexing.

    def index(
        self, *, rebuild: bool = False, tell: Callable[[str, int, int], None] = lambda *_: None, wait: float = 10.0
    ) -> Indexed:
        """Bring the index up to date, all of it; build it anew beside itself when it no longer fits."""
        started = time.monotonic()
        self.notes = []
        with self._lock(wait=wait) as held:
            if not held:
                raise Busy("another truekeep is indexing", hint="wait for it to end and run it again")
            try:
                return self._index(rebuild, tell, started)
            except (*DAMAGE, apsw.SQLError) as error:
                self._set_aside(str(error))
                return self._index(False, tell, started)

    def _index(self, rebuild: bool, tell: Callable[[str, int, int], None], started: float) -> Indexed:
        try:
            searcher = self._open(for_writing=True)
        except Unusable as error:
            if error.is_newer:
                raise newer_state(self._path, read_format(self._path), INDEX) from error
            self._set_aside(error.what)
            searcher = self._open(for_writing=True)
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{self._path}: {error}", hint="check the disk and the permissions") from error
        embedder, failure = self._wanted_embedder()
        if not failure:
            embedder, failure = self._checked_model(searcher.db, embedder)
        why = "asked for" if rebuild else self._misfit(searcher.db, embedder)
        if failure:
            self.notes.append(f"{failure}; what is new is indexed by its words until it answers")
            if why:  # the index that is there has vectors, a new one would have none
                embedder, why = searcher.embedder, ""
        self._clear_successor()
        try:
            if why:
                done = self._rebuild(searcher, embedder, tell)
                searcher = self._open()
            else:
                done = self._refresh_all(searcher.db, embedder, tell)
        except apsw.FullError as error:
            raise StorageFailed(
                f"{self._path}: the disk is full", hint="make room; the old index still answers"
            ) from error
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            hint = "check the disk, or `truekeep index --rebuild`; the old index still answers"
            raise StorageFailed(f"{self._path}: {error}", hint=hint) from error
        changed, removed, embedded, told = done
        groups: Any = searcher.db.execute("SELECT store = 'transcripts', count(*) FROM files GROUP BY 1").fetchall()
        counts: dict[Any, Any] = dict(groups)
        return Indexed(
            files=counts.get(0, 0),
            chunks=searcher.db.execute("SELECT count(*) FROM chunks").get,
            changed=changed,
            removed=removed,
            embedded=embedded,
            transcripts=counts.get(1, 0),
            provider=embedder.provider if embedder else "none",
            model=embedder.model if embedder else "",
            rebuilt=why,
            notes=tuple(dict.fromkeys((*self.notes, *told))),
            seconds=time.monotonic() - started,
        )

    def _refresh_all(
        self, db: apsw.Connection, embedder: Embedder | None, tell: Callable[[str, int, int], None]
    ) -> tuple[int, int, int, list[str]]:
        from truekeep.index.refresh import embed_waiting, remove_stale_cache

        told: list[str] = []
        embedder = self._borrowing(embedder)
        looked = self._look()
        changes = self._compare(db, list(looked.sources()), unseen=looked.problems)
        done = self._take_in(db, changes, embedder, mark=looked.mark, tell=lambda at, total: tell("files", at, total))
        changed, removed, embedded = done.files, done.removed, done.embedded
        told += done.unread
        failure = done.failure
        if not failure:
            more = self._refresh_transcripts(db, embedder, tell)
            changed, removed, embedded = changed + more.files, removed + more.removed, embedded + more.embedded
            told += more.unread
            failure = more.failure
        if embedder is not None and not failure:
            late, failure = embed_waiting(db, embedder, tell=lambda at, total: tell("vectors", at, total))
            embedded += late
        if failure:
            told.append(f"no vectors for now ({failure}); the words are in, and the next `truekeep index` tries again")
        if db.execute("SELECT count(*) FROM embedding_cache").get > 60_000:
            remove_stale_cache(db)
        with transaction(db):
            write_meta(db, "fingerprint", self._fingerprint(embedder))
            write_meta(db, "embedder", _name(embedder))
            write_meta(db, "indexed_at", self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        return changed, removed, embedded, told

    def _rebuild(
        self, old: Searcher, embedder: Embedder | None, tell: Callable[[str, int, int], None]
    ) -> tuple[int, int, int, list[str]]:
        """A new index beside the old one, which answers until the new one takes its place by a rename."""
        beside = self._path + ".new"
        db = open_index(beside)
        try:
            with transaction(db):
                for key in ("epoch", "probe", "probe_of"):
                    if (known := read_meta(old.db, key)) is not None:
                        write_meta(db, key, known)
            if embedder is not None and embedder.provider != "static":
                self._carry_cache(old.db, db, embedder)
            done = self._refresh_all(db, embedder, tell)
            db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('optimize')")
        except BaseException:
            db.close()
            self._clear_successor()  # a full disk must not stay full
            raise
        db.close()
        self.close()
        with suppress(FileNotFoundError):
            os.unlink(self._path + "-journal")  # left by a killed writer; it belongs to the old file
        os.replace(beside, self._path)
        return done

    def _carry_cache(self, old: apsw.Connection, new: apsw.Connection, embedder: Embedder) -> None:
        rows = old.execute(
            "SELECT * FROM embedding_cache WHERE provider = ? AND model = ? AND key = ?",
            (embedder.provider, embedder.model, embedder.key),
        )
        with transaction(new):
            new.executemany("INSERT OR IGNORE INTO embedding_cache VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _clear_successor(self) -> None:
        """What a killed rebuild left."""
        schema.remove_index(self._path + ".new")

    # Transcripts.

    def _transcript_sources(self) -> Iterator[Source]:
        """What the archive holds, and the session files that it does not hold as they are now."""
        from truekeep.transcripts.places import find_transcripts

        since = self._oldest_session()
        home = Path(self._environ.get("HOME") or os.path.expanduser("~"))
        known = self._archive.originals()
        newer: set[str] = set()
        for file in find_transcripts(home=home, environ=self._environ, since=since):
            if known.get(file.shown) != (file.size, file.mtime_ns, file.ctime_ns):
                newer.add(file.shown)
                yield Source(file.shown, "transcripts", file.size, file.mtime_ns, 0, 0, f"{file.harness}:{file.path}")
        for kept in self._archive.sessions():
            at = int(kept.moment.timestamp()) * 1_000_000_000
            if kept.shown not in newer and at >= since * 1e9:
                place = f"{_ARCHIVE}{kept.id}"
                yield Source(kept.shown, "transcripts", kept.turns, at, kept.version, kept.id, place)

    def _oldest_session(self) -> float:
        """Sessions that nobody spoke in since this moment are not searched."""
        return (self._now() - timedelta(days=self._settings.transcript_days)).timestamp()

    def count_old_sessions(self) -> int:
        """How many sessions in the index are past their age."""
        return len(self._old_sessions(self._usable().db)) if os.path.exists(self._path) else 0

    def _old_sessions(self, db: apsw.Connection) -> list[int]:
        rows: Any = db.execute(
            "SELECT id FROM files WHERE store = 'transcripts' AND mtime_ns < ?", (int(self._oldest_session() * 1e9),)
        )
        return [row[0] for row in rows]

    def let_go(self) -> int:
        """Take out of the index what was forgotten on purpose. Gives the number of sessions that were past their age.

        Any search or refresh does the same; this is for whoever has just decided it.
        """
        from truekeep.index.refresh import refresh

        self.notes = []
        if not os.path.exists(self._path):
            return 0
        searcher = self._usable()
        with self._lock(wait=5.0) as held:
            if not held:
                self.notes.append("another truekeep is indexing; what was forgotten leaves the index after that")
                return 0
            old = self._old_sessions(searcher.db)
            if old:
                refresh(searcher.db, Changes([], old, 0, {}), None)
        self._decayed = self._read_decayed()
        if str(read_meta(searcher.db, "decay", "")) != self._stamp():
            self._ready(transcripts=False)
        return len(old)

    def _refresh_transcripts(
        self,
        db: apsw.Connection,
        embedder: Embedder | None,
        tell: Callable[[str, int, int], None],
        *,
        until: float | None = None,
    ) -> Refreshed:
        sources = self._transcript_sources() if self._settings.transcripts else iter(())
        changes = compare(db, sources, transcripts=True)
        from truekeep.index.refresh import Refreshed, refresh

        if not changes.changed and not changes.gone:
            return Refreshed()
        return refresh(
            db,
            changes,
            embedder,
            until=until,
            tell=lambda at, total: tell("transcripts", at, total),
            read=lambda source: _read_transcript(source, self._environ, self._archive),
        )

    def _catch_up_transcripts(self, searcher: Searcher) -> None:
        quick = searcher.embedder if searcher.embedder and searcher.embedder.provider == "static" else None
        try:
            with self._lock() as held:
                if held:
                    until = time.monotonic() + TIME_TO_REFRESH
                    done = self._refresh_transcripts(searcher.db, quick, lambda *_: None, until=until)
                    if done.left:
                        rest = self._go_on_in_background()
                        self.notes.append(f"{done.left} transcripts are not in the index yet; {rest}")
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            self.notes.append(f"transcripts could not be brought up to date ({error})")

    # Embedders.

    def _wanted_embedder(self) -> tuple[Embedder | None, str]:
        """What the settings ask for, and why it cannot be had if it cannot."""
        try:
            return self._make(choose(self._settings, self._environ)), ""
        except EmbedderFailed as error:
            return None, error.told

    def _make(self, provider: str) -> Embedder | None:
        if provider not in self._embedders:
            self._embedders[provider] = make_embedder(
                provider, self._settings, self._environ, lexicon=os.path.join(self._state, LEXICON_FILE)
            )
        return self._embedders[provider]

    def _checked_model(self, db: apsw.Connection, embedder: Embedder | None) -> tuple[Embedder | None, str]:
        """Notice a model that changed under the same name: the same text must give the vector that it gave before."""
        if embedder is None or embedder.provider == "static":
            return embedder, ""
        epoch = int(read_meta(db, "epoch", 0))
        try:
            (probe,) = embedder.embed(["truekeep keeps memory true"])
        except EmbedderFailed as error:
            return Versioned(embedder, epoch), error.told
        before = read_meta(db, "probe")
        name = _name(embedder)
        if before is not None and read_meta(db, "probe_of") == name:
            known = array("f", before)
            alike = sum(a * b for a, b in zip(known, probe, strict=False)) if len(known) == len(probe) else 0.0
            if alike < 0.999:
                epoch += 1
                self.notes.append(
                    f"{embedder.provider} {embedder.model} is not the model it was; everything is embedded anew"
                )
        with transaction(db):
            write_meta(db, "probe", probe.tobytes())
            write_meta(db, "probe_of", name)
            write_meta(db, "epoch", epoch)
        return Versioned(embedder, epoch), ""

    def _borrowing(self, embedder: Embedder | None) -> Embedder | None:
        """OpenClaw's databases have the vectors of the same chunks, if the model is the same."""
        if embedder is None or embedder.provider in ("static", "transformer", "fastembed") or not self._settings.lend:
            return embedder
        from truekeep.embed.openclaw import Lending, find_databases

        databases = find_databases(environ=self._environ)
        return Lending(embedder, databases) if databases else embedder

    def _fingerprint(self, embedder: Embedder | None) -> str:
        return f"{CHUNKING}\n{_name(embedder)}"

    def _misfit(self, db: apsw.Connection, embedder: Embedder | None) -> str:
        """Why the index must be built anew, or nothing."""
        noted = read_meta(db, "fingerprint")
        if noted is None or noted == self._fingerprint(embedder):
            return ""
        return "the embedder changed" if noted.partition("\n")[2] != _name(embedder) else "the chunking changed"

    # The index as a file.

    def _open(self, *, for_writing: bool = False) -> Searcher:
        """The index as it is on disk now: a rebuilt one is noticed, a damaged one set aside."""
        try:
            info = os.stat(self._path)
            here = (info.st_dev, info.st_ino)
        except FileNotFoundError:
            here = None
            self._lookout.forget()  # another file may get its number
        if self._searcher is not None and here is not None and here == self._opened:
            return self._searcher
        self.close()
        self._opened = here
        try:
            db = open_index(self._path)
        except Unusable as error:
            if error.is_newer or for_writing:
                raise
            self._set_aside(error.what)
            db = open_index(self._path)
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError):
            if here is None or for_writing:
                raise
            db = open_index(self._path, read_only=True)
        info = os.stat(self._path)
        self._opened = (info.st_dev, info.st_ino)
        try:
            self._searcher = Searcher(db, self._answering_embedder(db))
        except BaseException:
            db.close()
            raise
        return self._searcher

    def _answering_embedder(self, db: apsw.Connection) -> Embedder | None:
        """The embedder whose vectors the index holds, whatever the settings ask for by now."""
        noted = read_meta(db, "embedder")
        wanted, failure = self._wanted_embedder()
        if noted is None:  # nothing was indexed yet
            if failure:
                self.notes.append(f"{failure}; these are found by words alone")
                return None
            if wanted is None or wanted.provider == "static":
                with suppress(apsw.Error), transaction(db):
                    write_meta(db, "fingerprint", self._fingerprint(wanted))
                    write_meta(db, "embedder", _name(wanted))
                return wanted
            self.notes.append(f"nothing has a vector of {wanted.provider} yet; these are found by words alone")
            self._go_on_in_background()
            return None
        epoch = int(read_meta(db, "epoch", 0))
        if _name(_versioned(wanted, epoch)) == noted:
            return wanted
        try:
            known = self._make(noted.partition("\t")[0])
        except EmbedderFailed:
            known = None
        if _name(_versioned(known, epoch)) != noted:
            known = None
        who = f"{known.provider} answers" if known is not None else "words alone answer"
        if failure:
            self.notes.append(f"{failure}; {who} until then")
        else:
            self.notes.append(f"the index is not yet rebuilt for the embedder in the settings; {who} until then")
            self._go_on_in_background()
        return known

    def _usable(self) -> Searcher:
        """The index, or an error that says why there is none."""
        try:
            return self._open()
        except Unusable as error:
            raise StorageFailed(f"{self._path}: {error.what}", hint="upgrade truekeep, or delete the index") from error
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{self._path}: {error}", hint="check the disk; `truekeep index` makes it") from error

    def _set_aside(self, what: str) -> None:
        """Move a damaged index out of the way; if another process was quicker, that is as good."""
        known = self._opened
        self.close()
        stamp = self._now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        kept = ""
        try:
            with self._lock(wait=5.0):
                info = os.lstat(self._path)
                if known is None or known == (info.st_dev, info.st_ino):
                    kept = os.path.basename(schema.set_aside(self._path, stamp=stamp))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise StorageFailed(f"{self._path} is damaged and cannot be moved: {error}", hint="delete it") from error
        where = f"; it is kept as {kept} and made anew" if kept else "; it is made anew"
        self.notes.append(f"the index was damaged ({what}){where}")

    @contextmanager
    def _lock(self, *, wait: float = 0.0) -> Iterator[bool]:
        """Be the only one who indexes; gives False when another does."""
        import fcntl

        if self._is_held:
            yield True
            return
        descriptor = os.open(
            os.path.join(self._state, "index.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        try:
            until = time.monotonic() + wait
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        yield False
                        return
                    time.sleep(0.1)
            self._is_held = True
            yield True
        finally:
            self._is_held = False
            os.close(descriptor)

    def _go_on_in_background(self) -> str:
        """Start an indexer of its own that outlives this process; if one runs already, it ends at once.

        Gives what becomes of the rest, in words.
        """
        by_hand = "`truekeep index` takes them in"
        if self._environ.get("TRUEKEEP_NO_BACKGROUND"):
            return by_hand
        import subprocess
        import sys

        try:
            subprocess.Popen(
                [sys.executable, "-m", "truekeep", "index", "--workspace", self._root, "--json"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return by_hand
        return "it goes on in the background"

    # Looking.

    def status(self) -> Status:
        empty: dict[str, int] = dict.fromkeys(STORES, 0)
        try:
            searcher = self._open()
            db = searcher.db
            rows: Any = db.execute("SELECT store, count(*) FROM files GROUP BY store").fetchall()
            files = empty | dict(rows)
            waiting = self._compare(db, list(sweep(self._root, self._settings.extra_paths)))
            return Status(
                files=files,
                chunks=db.execute("SELECT count(*) FROM chunks").get,
                waiting=len(waiting.changed) + len(waiting.gone),
                unembedded=db.execute("SELECT count(*) FROM unembedded").get,
                provider=searcher.embedder.provider if searcher.embedder else "none",
                model=searcher.embedder.model if searcher.embedder else "",
                size=os.path.getsize(self._path),
                indexed_at=read_meta(db, "indexed_at", ""),
            )
        except (Unusable, apsw.Error, OSError) as error:
            what = error.what if isinstance(error, Unusable) else str(error)
            return Status(empty, 0, 0, 0, "none", "", 0, "", problem=what)

    def read_transcript(self, path: str, *, first: int, lines: int, today: date) -> Excerpt:
        """The dialogue of an indexed session."""
        from truekeep.errors import NotFound
        from truekeep.excerpt import cut_transcript, local_day
        from truekeep.transcripts.dialogue import iter_turns
        from truekeep.transcripts.files import read_lines

        row: Any = self._usable().db.execute("SELECT origin FROM files WHERE path = ?", (path,)).fetchone()
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

    def watch(
        self, tell: Callable[[Indexed], None], *, stop: Any = None, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Follow edits: index, then again whenever a memory file changes, until stopped."""
        import watchfiles

        tell(self.index())
        folders = [
            self._root,
            *(os.path.join(self._root, os.path.expanduser(path)) for path in self._settings.extra_paths),
        ]
        folders = [path for path in folders if os.path.exists(path)]

        state = self._state + os.sep

        def is_memory(_: object, path: str) -> bool:
            # A folder that is moved is one event; what is in it is seen by the sweep.
            if path.startswith(state):
                return path == state + _DECAY_FILE
            return path.endswith(".md") or "." not in os.path.basename(path)

        for _ in watchfiles.watch(
            *folders, watch_filter=is_memory, debounce=400, step=50, stop_event=stop, raise_interrupt=False
        ):
            try:
                done = self.index()
            except TruekeepError as error:
                warn(error.message)  # the next change tries again
                continue
            if done.changed or done.removed:
                tell(done)

    def _today(self) -> date:
        return self._now().date()


def _name(embedder: Embedder | None) -> str:
    return "\t".join((embedder.provider, embedder.model, embedder.key)) if embedder is not None else "none"


def _versioned(embedder: Embedder | None, epoch: int) -> Embedder | None:
    """An embedder under the name that it has in the index; the embedded one never changes under its name."""
    return embedder if embedder is None or embedder.provider == "static" else Versioned(embedder, epoch)


def _read_transcript(source: Source, environ: Mapping[str, str], archive: Archive) -> Prepared:
    """The dialogue of a session as lines, each with the line of the session file that it came from."""
    import hashlib

    from truekeep.index.chunks import split_chunks
    from truekeep.index.passages import About
    from truekeep.index.refresh import FILE_LIMIT, Prepared
    from truekeep.transcripts.dialogue import iter_dialogue, iter_turns
    from truekeep.transcripts.files import read_lines, read_session
    from truekeep.transcripts.places import is_own_housekeeping

    turns: Iterable[Turn] = ()
    if source.location.startswith(_ARCHIVE):
        kept = archive.get(int(source.location.removeprefix(_ARCHIVE)))
        harness, cwd, repository = kept.harness, kept.cwd, kept.repository
        turns = archive.own_turns(kept)  # what it shares with another session is found there
    else:
        harness, _, path = source.location.partition(":")
        session = read_session(Path(path), harness)
        cwd, repository = session.cwd, ""
        if not is_own_housekeeping(session, environ):
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
    return Prepared(source, hashlib.sha256(text.encode()).digest(), True, about, cut, mapped)
