"""The memory files as the index is to have them: all that a scan finds, without what decay removed from search.

The index notes by which decay record it was made. After the record changed, the logs that differ are read again; until
all of them are in, the index is noted as mixed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from truekeep.core.derived_db import read_meta, write_meta
from truekeep.core.errors import TruekeepError
from truekeep.core.sqlite import transaction
from truekeep.memory.document_scan import scan_workspace
from truekeep.memory.file_scan import Changes, FileScan, MemoryFile, day_in, find_changes, is_up_to_date
from truekeep.search.decay_record import (
    DECAY_FILE,
    MIXED,
    DecayRecord,
    before_archive,
    is_affected_by,
    read_decay_record,
)

if TYPE_CHECKING:
    import apsw

    from truekeep.search.embedders import Embedder
    from truekeep.search.refresh import PreparedFile, RefreshReport


class MemoryFileScanner:
    """The memory files of one workspace, and those of its extra paths."""

    def __init__(self, root: str, state: str, extra: Sequence[str], *, note: Callable[[str], None]) -> None:
        self.record_path = os.path.join(state, DECAY_FILE)
        self.root = root
        self._state = state
        self._extra = extra
        self._note = note
        self._decay: DecayRecord | None = None  # as it was at the last scan
        self._indexed_decay = ""  # the stamp of the record that the index had then

    @property
    def watched_paths(self) -> list[str]:
        """The folders and files with memory files in them, as far as they exist."""
        paths = [self.root, *(self._locate(path) for path in self._extra)]
        return [path for path in paths if os.path.exists(path)]

    def _locate(self, extra: str) -> str:
        return os.path.join(self.root, os.path.expanduser(extra))

    def scan(self) -> FileScan:
        """Scan every memory file; notes say what could not be listed."""
        scan = scan_workspace(self.root, self._extra)
        self._decay = self._read_decay()
        for folder in scan.unlisted_folders:
            self._note(f"{folder} cannot be listed; the index keeps what it has of it")
        for path in self._extra:
            if not os.path.exists(self._locate(path)):
                self._note(f"extra path {path} does not exist")
        return scan

    def files(self, scan: FileScan) -> Iterator[MemoryFile]:
        """The files of a scan. In memory/archive, only logs that decay put there are of the store `archive`."""
        for file in scan.files():
            if file.store == "archive" and not (self._decay is not None and self._decay.has_put_away(file.path)):
                file = file._replace(store="logs" if day_in(before_archive(file.path)) else "documents")
            yield file

    def is_indexed(self, db: apsw.Connection, scan: FileScan) -> bool:
        """Whether the index has all files as this scan saw them."""
        self._indexed_decay = str(read_meta(db, "decay", ""))
        return bool(scan.fingerprint) and read_meta(db, "mark") == scan.fingerprint and not self.is_record_new

    @property
    def is_record_new(self) -> bool:
        """Whether the index was made by another decay record than there is now."""
        return self._indexed_decay != self._stamp()

    def is_decay_applied(self, db: apsw.Connection) -> bool:
        """Whether the index leaves out exactly what the decay record removes from search."""
        self._decay = self._read_decay()
        self._indexed_decay = str(read_meta(db, "decay", ""))
        return not self.is_record_new

    def count_waiting(self, db: apsw.Connection) -> int:
        """The number of files that changed since they were indexed.

        A file that was indexed in the moment in which it was written is read again by the next search, and is not
        counted: as far as its stat shows, nothing changed.
        """
        waiting = self.find_changes(db, scan_workspace(self.root, self._extra))
        same = (
            "SELECT count(*) FROM files WHERE path = ? AND is_settled = 0"
            " AND size = ? AND mtime_ns = ? AND ctime_ns = ? AND inode = ?"
        )
        unsettled = sum(int(db.execute(same, (file.path, *file.stat)).get) for file in waiting.changed)
        return len(waiting.changed) - unsettled + len(waiting.gone)

    def find_changes(self, db: apsw.Connection, scan: FileScan) -> Changes:
        """Compare a scan with the index. Logs that the decay record affects otherwise than before count as changed."""
        self._decay = self._read_decay()
        files = list(self.files(scan))
        changes = find_changes(db, files, unlisted=scan.unlisted_folders)
        if self.is_decay_applied(db):
            return changes
        is_affected = is_affected_by(self._indexed_decay, self._decay)
        changed = {file.path for file in changes.changed}
        rows: Any = db.execute("SELECT path, id FROM files WHERE store = 'logs'")
        known = {path: file_id for path, file_id in rows if path not in changed and is_affected(path)}
        changes.changed.extend(file for file in files if file.path in known)
        changes.known.update(known)
        return changes

    def index_changes(
        self,
        db: apsw.Connection,
        changes: Changes,
        embedder: Embedder | None,
        *,
        fingerprint: str = "",
        until: float | None = None,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> RefreshReport:
        """Refresh the index by the decay record, and note by which; until all of it is in, the index is mixed.

        `fingerprint`: of the scan with these changes, noted once the index has all files as they were then.
        """
        from truekeep.search.refresh import prepare, refresh  # here: a search that finds nothing new needs none of it

        decay, stamp = self._decay, self._stamp()

        def read(file: MemoryFile, known_digest: bytes | None) -> PreparedFile:
            return prepare(file, decay, known_digest)

        before = str(read_meta(db, "decay", ""))
        if changes.changed or changes.gone or before != stamp:
            with transaction(db):
                write_meta(db, "mark", "")
                if before != stamp:
                    write_meta(db, "decay", MIXED)
        report = refresh(db, changes, embedder, until=until, progress=progress, read=read)
        if before != stamp and before == self._indexed_decay and not report.left:
            with transaction(db):
                write_meta(db, "decay", stamp)
        if fingerprint and not report.left and is_up_to_date(db, changes.changed):
            with transaction(db):
                write_meta(db, "mark", fingerprint)
        return report

    def _read_decay(self) -> DecayRecord | None:
        """The decay record. If it cannot be read, a note says so and nothing is left out."""
        try:
            return read_decay_record(self._state)
        except TruekeepError as error:
            self._note(f"{error.message}; so nothing is left out of search ({error.hint})")
            return None

    def _stamp(self) -> str:
        return self._decay.stamp if self._decay is not None else ""
