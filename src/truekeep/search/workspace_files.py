"""The memory files as the index is to have them: all that one look sees, without what was forgotten on purpose.

The index notes by which record of the forgotten it was made. Where there is another one by now, the logs that differ by
it are read again; until all of them are in, the index is noted as a mixture, so that nobody takes it for either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from truekeep.core.errors import TruekeepError
from truekeep.core.sqlite import transaction
from truekeep.search.file_scan import Changes, FileScan, MemoryFile, compare, has_all, look, sweep
from truekeep.search.index_schema import read_meta, write_meta

if TYPE_CHECKING:
    import apsw

    from truekeep.search.embedders import Embedder
    from truekeep.search.expired import DecayRecord
    from truekeep.search.refresh import PreparedFile, RefreshReport

_DECAY_FILE = "decay.toml"  # as decayed.NAME, which is loaded where there is one
_MIXED = "?"  # as decayed.MIXED


class MemoryFileScanner:
    """The memory files of one workspace, and those of its extra paths."""

    def __init__(self, root: str, state: str, extra: Sequence[str], *, note: Callable[[str], None]) -> None:
        self.record_path = os.path.join(state, _DECAY_FILE)
        self._root = root
        self._state = state
        self._extra = extra
        self._note = note
        self._decayed: DecayRecord | None = None  # what was forgotten on purpose, when the files were last looked at
        self._noted = ""  # the stamp of what the index had then

    @property
    def places(self) -> list[str]:
        """Where memory files are, as far as these folders and files are there."""
        places = [self._root, *(self._locate(path) for path in self._extra)]
        return [path for path in places if os.path.exists(path)]

    def _locate(self, extra: str) -> str:
        return os.path.join(self._root, os.path.expanduser(extra))

    def look(self) -> FileScan:
        """Every memory file as it is now; what cannot be looked at is said."""
        looked = look(self._root, self._extra)
        self._decayed = self._read_decayed()
        for folder in looked.problems:
            self._note(f"{folder} cannot be listed; what is known of it stays")
        for path in self._extra:
            if not os.path.exists(self._locate(path)):
                self._note(f"extra path {path} does not exist")
        return looked

    def is_all_in(self, db: apsw.Connection, looked: FileScan) -> bool:
        """Whether the index has all files just as they were seen: a mark tells, and no file need be compared."""
        self._noted = str(read_meta(db, "decay", ""))
        return bool(looked.mark) and read_meta(db, "mark") == looked.mark and not self.is_record_new

    @property
    def is_record_new(self) -> bool:
        """Whether the index was made by another record of the forgotten than there was at the last look."""
        return self._noted != self._stamp()

    def is_forgotten(self, db: apsw.Connection) -> bool:
        """Whether the index leaves out just what is forgotten on purpose by now."""
        self._decayed = self._read_decayed()
        self._noted = str(read_meta(db, "decay", ""))
        return not self.is_record_new

    def count_waiting(self, db: apsw.Connection) -> int:
        """How many files are not in the index as they are now, or are in it no longer rightly."""
        waiting = self._compare(db, list(sweep(self._root, self._extra)))
        return len(waiting.changed) + len(waiting.gone)

    def compare(self, db: apsw.Connection, looked: FileScan) -> Changes:
        """What differs from the index: files by their stats, and logs of which something was forgotten or came back."""
        return self._compare(db, list(looked.sources()), unseen=looked.problems)

    def _compare(self, db: apsw.Connection, sources: Sequence[MemoryFile], *, unseen: Sequence[str] = ()) -> Changes:
        changes = compare(db, sources, unseen=unseen)
        if self.is_forgotten(db):
            return changes
        from truekeep.search.expired import find_concerned

        is_concerned = find_concerned(self._noted, self._decayed)
        changed = {source.path for source in changes.changed}
        rows: Any = db.execute("SELECT path, id FROM files WHERE store = 'logs'")
        known = {path: file_id for path, file_id in rows if path not in changed and is_concerned(path)}
        changes.changed.extend(source for source in sources if source.path in known)
        changes.known.update(known)
        return changes

    def take_in(
        self,
        db: apsw.Connection,
        changes: Changes,
        embedder: Embedder | None,
        *,
        mark: str = "",
        until: float | None = None,
        tell: Callable[[int, int], None] = lambda *_: None,
    ) -> RefreshReport:
        """Refresh by what was forgotten on purpose, and note by what; until all of it is in, the index is a mixture.

        `mark`: of the look that saw these changes. It is noted where the index then has all files just as they were.
        """
        from truekeep.search.refresh import prepare, refresh

        decayed, stamp = self._decayed, self._stamp()

        def read(source: MemoryFile, noted: bytes | None) -> PreparedFile:
            return prepare(source, decayed, noted)

        before = str(read_meta(db, "decay", ""))
        if changes.changed or changes.gone or before != stamp:
            with transaction(db):
                write_meta(db, "mark", "")
                if before != stamp:
                    write_meta(db, "decay", _MIXED)
        done = refresh(db, changes, embedder, until=until, tell=tell, read=read)
        if before != stamp and before == self._noted and not done.left:
            with transaction(db):
                write_meta(db, "decay", stamp)
        if mark and not done.left and has_all(db, changes.changed):
            with transaction(db):
                write_meta(db, "mark", mark)
        return done

    def _read_decayed(self) -> DecayRecord | None:
        """What was forgotten on purpose. A record that cannot be read is told, and forgets nothing."""
        if not os.path.lexists(self.record_path):
            return None
        from truekeep.search.expired import read_decayed

        try:
            return read_decayed(self._state)
        except TruekeepError as error:
            self._note(f"{error.message}; so nothing is left out of search ({error.hint})")
            return None

    def _stamp(self) -> str:
        return self._decayed.stamp if self._decayed is not None else ""
