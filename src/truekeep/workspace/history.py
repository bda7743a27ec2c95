"""The history of memory: ledger entries, blame, differences, undo."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, EditedSince, NotFound, TruekeepError
from truekeep.core.file_io import UnsafePath
from truekeep.memory.history import HistoryEntry
from truekeep.text.secrets.scanner import mask_lines
from truekeep.text.unified_diff import difference

if TYPE_CHECKING:
    from truekeep.memory.history import BlamedLine, Undoing
    from truekeep.memory.ledger import HandoffRow, LedgerEntry, LedgerFilters, LedgerQuery
    from truekeep.workspace.workspace import Workspace


_ENTRIES = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_PLACE = re.compile(r"(.+?):(\d+)\Z", re.DOTALL)


class PlannedChange(NamedTuple):
    """A file that an undo would change."""

    path: str
    difference: tuple[str, ...]


class UndoPlan(NamedTuple):
    """What undoing an entry would write."""

    undoes: int
    files: tuple[PlannedChange, ...]
    notes: tuple[str, ...]


class UndoResult(NamedTuple):
    """The entry that undid another."""

    undone: int
    entry: int
    files: tuple[str, ...]
    notes: tuple[str, ...]


class UndoFailure(NamedTuple):
    """An entry that could not be undone."""

    entry: int
    code: str
    message: str
    hint: str


class UndoReport(NamedTuple):
    """The result of undoing several entries."""

    undone: tuple[UndoResult, ...]
    failed: tuple[UndoFailure, ...]
    passed: tuple[int, ...]  # in a range: undone already, or without a file


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

    def recent(
        self, path: str | None = None, *, limit: int | None = None, sought: LedgerQuery | None = None
    ) -> Sequence[HistoryEntry]:
        return [HistoryEntry(*item) for item in self.entries(path, limit=limit, sought=sought)]

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

    def newest(self) -> int:
        """The number of the newest entry; 0 if there is none."""
        return next((entry.id for entry in self._context.ledger.entries(limit=1)), 0)

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

    def blame_place(self, place: str) -> tuple[str, int | None, Sequence[BlamedLine]]:
        """A file, the number of the one line that FILE:LINE names, and the blamed lines."""
        match = _PLACE.match(place)
        file, number = (match[1], int(match[2])) if match else (place, None)
        lines = self.blame(file)
        if number is not None and not 1 <= number <= len(lines):
            raise BadInput(f"{file} has {many(len(lines), 'line')}", hint="give an existing line number")
        return file, number, lines if number is None else lines[number - 1 : number]

    def differences(self, path: str, entries: Collection[int]) -> dict[int, tuple[str, ...]]:
        """The changes of these entries to a file, line by line; credentials are masked."""
        found = self._context.history.differences(path, entries)
        return {entry: tuple(mask_lines("\n".join(lines)).split("\n")) for entry, lines in found.items()}

    def is_undoable(self, number: int) -> bool:
        """True if the entry changed a file and is not undone yet. Only undoing it shows whether that is safe."""
        entry = self._context.ledger.get_entry(number)
        return entry is not None and bool(entry.paths) and entry.undone_by is None

    def last_undoable(self) -> tuple[LedgerEntry, HandoffRow | None]:
        """The newest entry that changed a file and is neither undone nor an undo itself."""
        for entry, record in self.entries():
            if entry.paths and entry.undone_by is None and entry.verb != "undone":
                return entry, record
        raise NotFound("nothing is left to undo", hint="`truekeep history` lists the entries")

    def plan_undo(self, number: int) -> Undoing:
        """The changes that undo would make; nothing is written."""
        return self._context.history.plan_undo(number)

    def preview_undo(self, number: int) -> UndoPlan:
        """The changes that undo would make, for a person."""
        planned = self.plan_undo(number)
        files = (
            PlannedChange(
                change.path, difference(change.before.data if change.before else None, change.data, change.path)
            )
            for change in planned.changes
        )
        return UndoPlan(planned.entry.id, tuple(files), planned.notes)

    def undo(self, number: int, *, seen: str = "") -> tuple[LedgerEntry, list[str]]:
        """Revert an entry, unless a person edited the file since, or the plan differs from the one they have `seen`."""
        with self._context.writing("undo"):
            return self._context.history.undo(number, seen=seen)

    def undo_entry(self, number: int) -> UndoResult:
        """Revert an entry."""
        made, notes = self.undo(number)
        return UndoResult(number, made.id, made.paths, tuple(notes))

    def parse_entries(self, given: Collection[str]) -> tuple[Sequence[int], Collection[int]]:
        """The entries that `12`, or `12-23`, name, newest first, and those of them that only a range names."""
        named, ranged = set[int](), set[int]()
        for text in given:
            match = _ENTRIES.fullmatch(text)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= first <= last:
                raise BadInput(f"{text!r} names no entry", hint="write 12, or 12-23 for all from 12 to 23")
            if match and not match[2]:
                named.add(first)
                continue
            newest = self.newest()
            if last > newest:  # a slip of the finger would take back all that there is
                hint = f"the newest is {newest}; `truekeep history` lists them"
                raise NotFound(f"there is no entry {last}", hint=hint)
            ranged.update(range(first, last + 1))
        return sorted(named | ranged, reverse=True), ranged - named

    def undo_several(
        self, numbers: Sequence[int], ranged: Collection[int], on_done: Callable[[UndoResult | TruekeepError], None]
    ) -> tuple[UndoReport, int]:
        """Undo one after the other, with the exit code of the last failure.

        An entry that cannot be undone does not stop the others; a full disk or another writer does.
        """
        done: list[UndoResult] = []
        failed: list[UndoFailure] = []
        passed: list[int] = []
        code = 0
        for number in numbers:
            if number in ranged and not self.is_undoable(number):
                passed.append(number)
                continue
            try:
                done.append(self.undo_entry(number))
                on_done(done[-1])
            except TruekeepError as error:
                code = error.exit_code
                failed.append(UndoFailure(number, error.code, error.message, error.hint))
                on_done(error)
                if not isinstance(error, (BadInput, EditedSince)):
                    break  # the next one would meet it, too
        return UndoReport(tuple(done), tuple(failed), tuple(passed)), code
