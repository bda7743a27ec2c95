"""A run of `index`: everything is brought up to date, in the index that is there or in a successor that fits better."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from truekeep.core.derived_db import UnusableDatabase, write_meta
from truekeep.core.errors import StorageFailed
from truekeep.core.formats import INDEX, newer_state, read_format
from truekeep.core.sqlite import DAMAGE, transaction
from truekeep.search.embedder_choice import carry_vectors, find_misfit, write_embedder
from truekeep.search.refresh import embed_waiting, remove_stale_cache

if TYPE_CHECKING:
    from truekeep.search.embedder_choice import Embedders
    from truekeep.search.embedders import Embedder
    from truekeep.search.index_file import IndexFile
    from truekeep.search.searcher import Searcher
    from truekeep.search.transcript_index import Sessions
    from truekeep.search.workspace_files import MemoryFileScanner

_LARGE_CACHE = 60_000  # vectors

Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, and how much there is


class IndexReport(NamedTuple):
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
    seconds: float = 0.0


class _BuildResult(NamedTuple):
    changed: int
    removed: int
    embedded: int
    told: tuple[str, ...]


class Indexing(NamedTuple):
    """Whoever runs this holds the lock on the file."""

    file: IndexFile
    open: Callable[[], Searcher]  # the file for writing, and whoever answers from it
    embedders: Embedders
    files: MemoryFileScanner
    sessions: Sessions
    now: Callable[[], datetime]
    note: Callable[[str], None]
    tell: Tell

    def run(self, *, rebuild: bool) -> IndexReport:
        """Bring the index up to date, all of it; build it anew beside itself when it no longer fits."""
        searcher = self._open()
        embedder, failure = self.embedders.find_wanted()
        if not failure:
            embedder, failure = self.embedders.check_model(searcher.db, embedder)
        why = "asked for" if rebuild else find_misfit(searcher.db, embedder)
        if failure:
            self.note(f"{failure}; what is new is indexed by its words until it answers")
            if why:  # the index that is there has vectors, a new one would have none
                embedder, why = searcher.embedder, ""
        self.file.clear_successor()
        try:
            if why:
                done = self._rebuild(searcher.db, embedder)
                searcher = self.open()
            else:
                done = self._refresh(searcher.db, embedder)
        except apsw.FullError as error:
            raise StorageFailed(
                f"{self.file.path}: the disk is full", hint="make room; the old index still answers"
            ) from error
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            hint = "check the disk, or `truekeep index --rebuild`; the old index still answers"
            raise StorageFailed(f"{self.file.path}: {error}", hint=hint) from error
        groups: Any = searcher.db.execute("SELECT store = 'transcripts', count(*) FROM files GROUP BY 1").fetchall()
        counts: dict[Any, Any] = dict(groups)
        return IndexReport(
            files=counts.get(0, 0),
            chunks=searcher.db.execute("SELECT count(*) FROM chunks").get,
            changed=done.changed,
            removed=done.removed,
            embedded=done.embedded,
            transcripts=counts.get(1, 0),
            provider=embedder.provider if embedder else "none",
            model=embedder.model if embedder else "",
            rebuilt=why,
            notes=done.told,
        )

    def _open(self) -> Searcher:
        path = self.file.path
        try:
            return self.open()
        except UnusableDatabase as error:
            if error.is_newer:
                raise newer_state(path, read_format(path), INDEX) from error
            self.file.set_aside(error.reason)
            return self.open()
        except DAMAGE:
            raise
        except (apsw.Error, OSError) as error:
            raise StorageFailed(f"{path}: {error}", hint="check the disk and the permissions") from error

    def _rebuild(self, old: apsw.Connection, embedder: Embedder | None) -> _BuildResult:
        with self.file.successor() as db:
            carry_vectors(old, db, embedder)
            done = self._refresh(db, embedder)
            db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('optimize')")
        return done

    def _refresh(self, db: apsw.Connection, embedder: Embedder | None) -> _BuildResult:
        embedder = self.embedders.borrowing(embedder)
        looked = self.files.scan()
        changes = self.files.find_changes(db, looked)
        done = self.files.index_changes(
            db, changes, embedder, fingerprint=looked.fingerprint, progress=self._progress("files")
        )
        changed, removed, embedded = done.files, done.removed, done.embedded
        told = [*done.unread]
        failure = done.failure
        if not failure:
            more = self.sessions.refresh(db, embedder, progress=self._progress("transcripts"))
            changed, removed, embedded = changed + more.files, removed + more.removed, embedded + more.embedded
            told += more.unread
            failure = more.failure
        if embedder is not None and not failure:
            late, failure = embed_waiting(db, embedder, progress=self._progress("vectors"))
            embedded += late
        if failure:
            told.append(f"no vectors for now ({failure}); the words are in, and the next `truekeep index` tries again")
        if db.execute("SELECT count(*) FROM embedding_cache").get > _LARGE_CACHE:
            remove_stale_cache(db)
        with transaction(db):
            write_embedder(db, embedder)
            write_meta(db, "indexed_at", self.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        return _BuildResult(changed, removed, embedded, tuple(told))

    def _progress(self, what: str) -> Callable[[int, int], None]:
        return lambda at, total: self.tell(what, at, total)
