"""Changes a workspace, as the holder of its lease: edits by hand, waiting handoffs, decisions of reviewers.

Each change is one pass: the folder has the record's version; an ordinary service of the workspace writes it; the
changed files, the changed pages of the ledger and what became of the queue go to the record in one transaction. Only
then has it happened. If a pass ends before, the folder is put back to the record, and the next pass does it again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from truekeep.core import file_io
from truekeep.core.machine import Machine
from truekeep.core.model import WRITERS
from truekeep.handoffs.inbox import Inbox
from truekeep.handoffs.sync.mirror import place_name
from truekeep.server import decisions, handoff_queue, webhooks
from truekeep.server.accounts import note
from truekeep.server.decisions import ReviewDecision
from truekeep.server.handoff_queue import QueuedHandoff
from truekeep.server.record import Lease, Record, RecordChange
from truekeep.server.working_folder import WorkingFolder

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.memory.ledger import HandoffRow
    from truekeep.server.database import TeamDatabase
    from truekeep.workspace.workspace import Workspace

Result = TypeVar("Result")


class WorkspaceWriter:
    """The writing side of one workspace in one server process."""

    def __init__(self, database: TeamDatabase, workspace: int, folder: Path, identity: Machine, holder: str) -> None:
        self._database = database
        self._holder = holder
        self._inboxes = folder / "inboxes"
        self.record = Record(database, workspace)
        self.folder = WorkingFolder(folder, self.record, identity)
        self.lease: Lease | None = None

    def close(self) -> None:
        """Give the lease back."""
        if self.lease is not None:
            lease, self.lease = self.lease, None
            self.record.release(lease)
        self.folder.close()

    def work(self) -> int:
        """Do all that waits, if the lease can be had. Gives the number of changes."""
        self.lease = self.record.take_lease(self._holder)
        if self.lease is None:
            return 0
        if not self.folder.is_trusted or self.folder.version != self.record.version():
            self.folder.follow()
        count = self.take_edits()
        while batch := handoff_queue.take_batch(self._database, self.record.workspace):
            count += self._file(batch)
        for decision in decisions.waiting(self._database, self.record.workspace):
            self._decide(decision)
            count += 1
        return count

    # The three kinds of changes.

    def take_edits(self) -> int:
        """Bring edits by hand to the record."""
        files, contents = self.folder.file_changes()
        if not files:
            return 0
        paths = [file.path for file in files]
        self._commit(
            RecordChange(files),
            contents,
            lambda cursor: note(cursor, "by hand", "edited", workspace=self.record.workspace, files=paths[:100]),
        )
        return 1

    def _file(self, batch: Sequence[QueuedHandoff]) -> int:
        """File handoffs. Gives the number of those that the ledger knows now."""
        inboxes = self._lay_out(batch)

        def ingest(workspace: Workspace) -> dict[bytes, HandoffRow]:
            workspace.handoffs.ingest(inboxes=inboxes)
            return workspace.context.ledger.find_handoffs([item.digest for item in batch])

        def settle(cursor: Cursor[Any], known: dict[bytes, HandoffRow]) -> None:
            handoff_queue.settle(cursor, self.record.workspace, batch, known)

        return len(self._change(ingest, settle))

    def _lay_out(self, batch: Sequence[QueuedHandoff]) -> list[Inbox]:
        """Put handoffs into inboxes of their own: one for each writer, machine and repository."""
        shutil.rmtree(self._inboxes, ignore_errors=True)
        found: dict[Inbox, None] = {}
        for item in batch:
            place = item.repository or "elsewhere"
            root = self._inboxes / place_name(item.machine, place)
            folder = WRITERS.get(item.writer, WRITERS["claude"])
            shown = f"handed in from {item.machine}" if item.machine else "handed in"
            inbox = Inbox(root, folder, item.writer, item.machine, item.repository, place, shown)
            found[inbox] = None
            stem = item.name.removesuffix(".md")
            name = item.name if not (inbox.path / item.name).exists() else f"{stem}-{item.digest.hex()[:8]}.md"
            file_io.make_private(inbox.path)
            (inbox.path / name).write_bytes(item.raw)  # not synced: the queue has it
        return list(found)

    def _decide(self, decision: ReviewDecision) -> None:
        def settle(cursor: Cursor[Any], result: Mapping[str, Any]) -> None:
            decisions.settle(cursor, self.record.workspace, decision, result)

        self._change(lambda workspace: decisions.carry_out(workspace, decision), settle)

    # One pass.

    def _change(
        self, act: Callable[[Workspace], Result], settle: Callable[[Cursor[Any], Result], None] = lambda *_: None
    ) -> Result:
        self.folder.distrust()
        self.folder.begin()
        try:
            with self.folder.open() as workspace:
                result = act(workspace)
            change, contents = self.folder.changes()
        except BaseException:
            self.folder.stop_watching()
            raise
        self._commit(change, contents, lambda cursor: settle(cursor, result))
        return result

    def _commit(
        self, change: RecordChange, contents: Mapping[bytes, bytes], settle: Callable[[Cursor[Any]], None]
    ) -> None:
        assert self.lease is not None
        base = self.folder.version

        def note_all(cursor: Cursor[Any]) -> None:
            settle(cursor)
            webhooks.note_new_drafts(cursor, self.record.workspace, change, contents)

        self.folder.distrust()  # until the record has it
        version = self.record.commit(self.lease, base, change, contents, note_all)
        self.folder.note_committed(version, change)
