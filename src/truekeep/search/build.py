"""A run of `truekeep index`: bring the index up to date, or rebuild it beside itself if it no longer fits."""

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
from truekeep.search.left_out import find_left_out
from truekeep.search.refresh import embed_waiting, remove_stale_cache

if TYPE_CHECKING:
    from truekeep.search.embedder_choice import Embedders
    from truekeep.search.embedders import Embedder
    from truekeep.search.index_file import IndexFile
    from truekeep.search.searcher import Searcher
    from truekeep.search.transcript_index import TranscriptIndex
    from truekeep.search.workspace_files import MemoryFileScanner

_MAX_CACHED_VECTORS = 60_000

IndexProgress = Callable[[str, int, int], None]  # the step, how much of it is done, and how much there is


class IndexReport(NamedTuple):
    """The result of `truekeep index`."""

    files: int
    chunks: int
    changed: int
    removed: int
    embedded: int
    transcripts: int
    provider: str
    model: str
    rebuilt: str  # why the index was rebuilt; empty: it was not
    notes: tuple[str, ...]
    seconds: float = 0.0


class _BuildResult(NamedTuple):
    changed: int
    removed: int
    embedded: int
    notes: tuple[str, ...]


class IndexRun(NamedTuple):
    """One run of `truekeep index`. The caller holds the indexer's lock."""

    file: IndexFile
    open: Callable[[], Searcher]  # open the file for writing
    embedders: Embedders
    files: MemoryFileScanner
    sessions: TranscriptIndex
    now: Callable[[], datetime]
    note: Callable[[str], None]
    progress: IndexProgress

    def run(self, *, rebuild: bool) -> IndexReport:
        """Bring all of the index up to date; rebuild it if it no longer fits the settings."""
        searcher = self._open()
        embedder, failure = self.embedders.find_wanted()
        if not failure:
            embedder, failure = self.embedders.check_model(searcher.db, embedder)
        rebuilt = "asked for" if rebuild else find_misfit(searcher.db, embedder)
        if failure:
            self.note(f"{failure}; new text is indexed by its words until then")
            if rebuilt:  # the present index has vectors, a new one would have none
                embedder, rebuilt = searcher.embedder, ""
        self.file.clear_replacement()
        try:
            if rebuilt:
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
            rebuilt=rebuilt,
            notes=done.notes,
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
        with self.file.replacement() as db:
            carry_vectors(old, db, embedder)
            done = self._refresh(db, embedder)
            db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('optimize')")
        return done

    def _refresh(self, db: apsw.Connection, embedder: Embedder | None) -> _BuildResult:
        scan = self.files.scan()
        changes = self.files.find_changes(db, scan)
        done = self.files.index_changes(
            db, changes, embedder, fingerprint=scan.fingerprint, progress=self._step("files")
        )
        changed, removed, embedded = done.files, done.removed, done.embedded
        notes = [*done.unread, *find_left_out(self.files.root, scan)]
        failure = done.failure
        if not failure:
            more = self.sessions.refresh(db, embedder, progress=self._step("transcripts"))
            changed, removed, embedded = changed + more.files, removed + more.removed, embedded + more.embedded
            notes += more.unread
            failure = more.failure
        if embedder is not None and not failure:
            late, failure = embed_waiting(db, embedder, progress=self._step("vectors"))
            embedded += late
        if failure:
            notes.append(f"no vectors yet ({failure}); words are indexed, and the next `truekeep index` tries again")
        if db.execute("SELECT count(*) FROM embedding_cache").get > _MAX_CACHED_VECTORS:
            remove_stale_cache(db)
        with transaction(db):
            write_embedder(db, embedder)
            write_meta(db, "indexed_at", self.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        return _BuildResult(changed, removed, embedded, tuple(notes))

    def _step(self, step: str) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(step, done, total)
