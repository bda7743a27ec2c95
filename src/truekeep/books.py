"""Carries staged changes through so that a crash at any instant leaves a job to finish, never a loss.

The order is the design: the ledger has the whole batch as pending; then every file is written; then the batch is
done. The next run finishes what a killed one left: a file is as before (write it), as after (nothing to do), or a
person was faster (their edit stays, and the handoffs concerned are judged anew).
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Sequence
from contextlib import suppress

import apsw

from truekeep.disk import ChangedSince, Stamp, UnsafePath
from truekeep.errors import StorageFailed
from truekeep.ledger import Entry, Ledger, Record, Version, after_splices
from truekeep.vault import Change, Staging, Vault, WriteFailed

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class Refused(Exception):
    """One file could not be written, for a reason of its own. Nothing of the batch was."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path)
        self.path = path
        self.why = why


class Overtaken(Exception):
    """A person changed a file meanwhile. The rest of the batch is on disk; what concerned that file is forgotten."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(", ".join(paths))
        self.paths = tuple(paths)


class Books:
    """A vault and its ledger, kept in step."""

    def __init__(self, vault: Vault, ledger: Ledger) -> None:
        self.vault = vault
        self.ledger = ledger

    def commit(
        self, staging: Staging, entries: Sequence[Entry], records: Sequence[Record] = (), *, at: str
    ) -> dict[str, Stamp]:
        """Write a batch. Refused: nothing happened. Overtaken: a person's edit stays, the rest is written."""
        changes = staging.changes()
        try:
            batch = self.ledger.begin(changes, entries, records, at=at)
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
            overtaken = self._settle(batch, [_version_of(change) for change in changes])
            raise Overtaken(overtaken or [error.path]) from error
        self._finish(batch)
        return stamps

    def recover(self) -> int:
        """Finish what a killed run left. Gives the number of batches."""
        pending = self.ledger.pending()
        for batch, versions in pending:
            self._settle(batch, versions)
        return len(pending)

    def _settle(self, batch: int, versions: Sequence[Version]) -> list[str]:
        """Bring every file of a batch to its end, and say which ones a person had changed."""
        overtaken = []
        for version in versions:
            self.vault.discard_temporary(version.path)
            if not self._bring_forward(version):
                self.ledger.drop_change(batch, version.path)
                overtaken.append(version.path)
        self._finish(batch)
        return overtaken

    def _bring_forward(self, version: Version) -> bool:
        for _attempt in range(3):
            try:
                stored = self.vault.read(version.path)
            except (UnsafePath, ChangedSince):
                return False
            digest = hashlib.sha256(stored.data).digest() if stored else None
            if digest == version.after:
                return True
            if digest != version.before:
                return False
            data = after_splices(version, stored.data if stored else None)
            try:
                self.vault.apply([Change(version.path, stored, data)])
            except ChangedSince:
                continue
            except WriteFailed as failure:
                raise _refusal(failure.path, failure.error, finish=True) from failure
            return True
        return False

    def _finish(self, batch: int) -> None:
        with suppress(apsw.FullError, apsw.IOError):  # it stays pending, and the next run finds that all is in place
            self.ledger.finish(batch)


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
            f"{path} cannot be written: {why}", hint="make room or mend the disk and run it again; nothing is lost"
        )
    return Refused(path, why)
