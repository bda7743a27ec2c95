"""Writes staged changes through the ledger, so that a crash loses nothing: the next run finishes the batch.

The order is the design: the ledger has the whole batch as pending; then every file is written; then the batch is
done. After a crash, the next run looks at each file: as before, it is written; as after, it is done; otherwise a
person edited it, the edit stays, and its handoffs are decided again.
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import apsw

from truekeep.core.errors import EditedSince, StorageFailed
from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath
from truekeep.memory.ledger import HandoffRow, Ledger, LedgerEntry, Pending, Version, after_splices, before_splices
from truekeep.memory.staging import Change, MemoryFiles, Staging, WriteFailed

EDIT_PATIENCE = 5.0  # seconds
_PAUSE = 0.01
Result = TypeVar("Result")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class WriteRefused(Exception):
    """One file could not be written. Nothing of the batch was written."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path)
        self.path = path
        self.why = why


class EditedMeanwhile(Exception):
    """A person changed a file meanwhile. The rest of the batch is on disk; the changes of that file were dropped."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(", ".join(paths))
        self.paths = tuple(paths)


def while_edited(act: Callable[[], Result]) -> Result:
    """Do this again as long as another program changes the file meanwhile, as OpenClaw's gateway does a log."""
    deadline = time.monotonic() + EDIT_PATIENCE
    while True:
        try:
            return act()
        except (EditedSince, ChangedSince) as error:
            if time.monotonic() > deadline:
                if isinstance(error, ChangedSince):
                    what = f"{error.path} changed while it was read; nothing was written"
                    raise EditedSince(what, hint="run it again") from error
                raise
        time.sleep(_PAUSE)


class MemoryTransaction:
    """The memory files and their ledger, written together."""

    def __init__(self, vault: MemoryFiles, ledger: Ledger, *, before: Callable[[], None] = lambda: None) -> None:
        """`before` is called each time before something is written."""
        self.vault = vault
        self.ledger = ledger
        self._before = before

    def commit(
        self,
        staging: Staging,
        entries: Sequence[LedgerEntry],
        records: Sequence[HandoffRow] = (),
        *,
        at: str,
        outcomes: Sequence[tuple[bytes, str, str | None]] = (),
        whole: bool = True,
    ) -> dict[str, FileStamp]:
        """Write a batch. Refused: nothing happened.

        Overtaken: a person changed a file meanwhile, and that stays. If the batch is `whole`, nothing else happened
        either; if not, everything else is on disk, and what concerned that file is forgotten.
        """
        changes = staging.changes()
        self._before()
        try:
            batch = self.ledger.begin(changes, entries, records, outcomes, at=at, whole=whole)
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
            raise StorageFailed(
                f"the ledger cannot be written: {error}", hint="free some space and run it again; nothing was changed"
            ) from error
        try:
            stamps = self.vault.apply(changes)
        except WriteFailed as failure:
            with suppress(apsw.Error):  # if even that fails, the pending batch is finished by the next run
                self.ledger.cancel(batch)
            raise _refusal(failure.path, failure.error) from failure
        except ChangedSince as error:
            pending = Pending(batch, False, whole, tuple(_version_of(change) for change in changes))
            if overtaken := self._settle(pending):
                raise EditedMeanwhile(overtaken) from error
            return {}  # it was only saved again as it was, and all is written
        self._finish(batch)
        return stamps

    def act(
        self, staging: Staging, entry: LedgerEntry, outcomes: Sequence[tuple[bytes, str, str | None]] = ()
    ) -> dict[str, FileStamp]:
        """Write one action of a person: all of it, or raise the reason."""
        try:
            return self.commit(staging, [entry], at=entry.at, outcomes=outcomes)
        except WriteRefused as error:
            raise StorageFailed(f"{error.path} cannot be written: {error.why}", hint="nothing was changed") from error
        except EditedMeanwhile as error:
            raise EditedSince(
                f"{error} changed just now; that edit was kept, and nothing else was done",
                hint="look at it and run it again",
            ) from error

    def recover(self) -> int:
        """Finish the batches of a killed run. Returns their number."""
        pending = self.ledger.pending()
        for batch in pending:
            self._settle(batch)
        return len(pending)

    def _settle(self, pending: Pending, late: Sequence[str] = ()) -> list[str]:
        """Finish every file of a batch. Returns those that a person changed.

        `late`: the files where that was noticed only while writing. If there are any, the whole batch is rolled back.
        """
        overtaken = [
            version.path for version in pending.versions if not self._tidy(version, back=pending.is_called_off)
        ]
        back = pending.is_called_off or (pending.is_whole and bool(overtaken or late))
        if back and not pending.is_called_off:
            self.ledger.mark_for_rollback(pending.batch)
        for version in pending.versions:
            moved = version.path in overtaken or self._move(version, back=back)
            if not moved:
                overtaken.append(version.path)
            self.vault.sync_folder(version.path)
        if back:
            self.ledger.cancel(pending.batch)
            return list(dict.fromkeys((*late, *overtaken)))
        if overtaken and pending.is_whole:
            return self._settle(pending, overtaken)
        for path in overtaken:
            self.ledger.drop_change(pending.batch, path)
        self._finish(pending.batch)
        return overtaken

    def _tidy(self, version: Version, *, back: bool) -> bool:
        """Remove the temporary file beside a file. False if a person changed the file meanwhile.

        A kill between the two halves of an exchange leaves a person's last edit beside the file: it goes back. (On the
        way back, the same place may hold half of the earlier bytes, which are in the ledger anyway.)
        """
        aside = self.vault.read_temporary(version.path)
        found = self._digest(version.path)
        if aside is not None and found == version.after and not back:
            digest = hashlib.sha256(aside).digest()
            if digest not in (version.before, version.after):
                self.vault.put_back_temporary(version.path)
                return False
        self.vault.discard_temporary(version.path)
        return found in (version.before, version.after)

    def _digest(self, path: str) -> bytes | None:
        """The digest of a file as it is now; for something other than a regular file, a value that no version has."""
        try:
            stored = self.vault.read(path)
        except (UnsafePath, ChangedSince):
            return b"changed"
        return hashlib.sha256(stored.data).digest() if stored else None

    def _move(self, version: Version, *, back: bool) -> bool:
        """Move a file to its state after the batch, or back to that before. False if a person changed it meanwhile."""
        source, goal = (version.after, version.before) if back else (version.before, version.after)
        for _attempt in range(3):
            try:
                stored = self.vault.read(version.path)
            except (UnsafePath, ChangedSince):
                return False
            digest = hashlib.sha256(stored.data).digest() if stored else None
            if digest == goal:
                return True
            if digest != source:
                return False
            data = stored.data if stored else None
            moved = before_splices(version, data) if back else after_splices(version, data)
            try:
                self.vault.apply([Change(version.path, stored, moved)])
            except ChangedSince:
                continue
            except WriteFailed as failure:
                raise _refusal(failure.path, failure.error, finish=True) from failure
            return True
        return False

    def _finish(self, batch: int) -> None:
        try:
            self.ledger.finish(batch)
        except apsw.Error as error:
            raise StorageFailed(
                f"the ledger cannot be written: {error}", hint="everything is on disk; the next run notes that"
            ) from error


def _version_of(change: Change) -> Version:
    return Version(
        change=0,
        path=change.path,
        before=change.before_digest,
        after=change.after_digest,
        found=change.before.data if change.before else None,
        splices=tuple(change.splices),
    )


def _refusal(path: str, error: OSError, *, finish: bool = False) -> Exception:
    why = error.strerror or str(error)
    if error.errno in _NO_ROOM or finish:
        return StorageFailed(
            f"{path} cannot be written: {why}",
            hint="free some space or fix the disk, then run it again; nothing is lost",
        )
    return WriteRefused(path, why)
