"""The history of memory: ledger entries, blame, differences, undo."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput, NotFound
from truekeep.core.file_io import UnsafePath
from truekeep.text.secrets.scanner import mask_lines

if TYPE_CHECKING:
    from truekeep.memory.history import BlamedLine, Undoing
    from truekeep.memory.ledger import HandoffRow, LedgerEntry, LedgerFilters, LedgerQuery
    from truekeep.workspace.workspace import Workspace


class MemoryHistory:
    """The history of one workspace's memory."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def entries(
        self, path: str | None = None, *, limit: int | None = None, sought: LedgerQuery | None = None
    ) -> Iterator[tuple[LedgerEntry, HandoffRow | None]]:
        """Ledger entries with their handoffs, newest first: all, those that changed a file, or those that match."""
        ledger = self._context.ledger
        inside = self._workspace.files.relative(path) if path else None
        for entry in ledger.entries(path=inside, limit=limit, sought=sought):
            yield entry, ledger.handoff_of(entry)

    def find(
        self, sought: LedgerQuery, *, most: int, before: int = 0, after: int = 0
    ) -> list[tuple[LedgerEntry, HandoffRow | None]]:
        """One page of matching entries, newest first: the newest, those before an entry, or those just after one."""
        ledger = self._context.ledger
        found = ledger.find_entries(sought, most=most, before=before, after=after)
        return [(entry, ledger.handoff_of(entry)) for entry in found]

    def get(self, number: int) -> tuple[LedgerEntry, HandoffRow | None]:
        """One entry and its handoff."""
        ledger = self._context.ledger
        entry = ledger.get_entry(number) if 0 < number < 2**62 else None
        if entry is None:
            raise NotFound(f"there is no entry {number}", hint="`truekeep history` lists the entries")
        return entry, ledger.handoff_of(entry)

    def last(self, path: str) -> LedgerEntry | None:
        """The last entry that changed a file, by its path in the workspace; the file may be gone."""
        return next(self._context.ledger.entries(path=path, limit=1), None)

    def versions(self, number: int, path: str) -> tuple[bytes | None, bytes | None] | None:
        """A file before and after an entry; None if the entry did not change it."""
        return self._context.ledger.around(number, path)

    def names(self) -> LedgerFilters:
        """The verbs, writers and machines that entries have, for filters."""
        return self._context.ledger.names()

    def count_by_verb(self, since: str) -> list[tuple[str, int]]:
        """The number of entries of each verb since a time."""
        return self._context.ledger.count_by_verb(since)

    def blame(self, path: str) -> list[BlamedLine]:
        """Every line of a file with the entry that wrote it; credentials are masked."""
        try:
            lines = self._context.history.lines(self._workspace.files.relative(path))
        except UnsafePath as error:
            raise BadInput(str(error), hint="name a plain file of the workspace") from error
        masked = mask_lines("\n".join(line.text for line in lines)).split("\n")
        return [replace(line, text=text) for line, text in zip(lines, masked, strict=False)]

    def differences(self, path: str, entries: Collection[int]) -> dict[int, tuple[str, ...]]:
        """The changes of these entries to a file, line by line; credentials are masked."""
        found = self._context.history.differences(path, entries)
        return {entry: tuple(mask_lines("\n".join(lines)).split("\n")) for entry, lines in found.items()}

    def is_undoable(self, number: int) -> bool:
        """True if the entry changed a file and is not undone yet. Only undoing it shows whether that is safe."""
        entry = self._context.ledger.get_entry(number)
        return entry is not None and bool(entry.paths) and entry.undone_by is None

    def plan_undo(self, number: int) -> Undoing:
        """The changes that undo would make; nothing is written."""
        return self._context.history.plan_undo(number)

    def undo(self, number: int, *, seen: str = "") -> tuple[LedgerEntry, list[str]]:
        """Revert an entry, unless a person edited the file since, or the plan differs from the one they have `seen`."""
        with self._context.writing("undo"):
            return self._context.history.undo(number, seen=seen)
