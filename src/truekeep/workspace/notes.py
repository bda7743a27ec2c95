"""Corrections and gating policies: list the rows, and add one.

Agents get these tables before they begin, so a text is refused if it holds a credential, invisible characters, or
orders about other instructions. A machine that may not write leaves nothing: there are no handoffs for these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, NotCanonical
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import BEGIN_MARK, END_MARK, Splice
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.lessons import (
    CORRECTION,
    MAX_CELL_CHARS,
    POLICY,
    Lesson,
    LessonFile,
    LessonTable,
    plan_row,
    read_lessons,
)
from truekeep.memory.staging import Staging
from truekeep.text.injection import find_instructions
from truekeep.text.secrets.scanner import find_secrets
from truekeep.text.unicode import find_hidden, printable

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

MAX_ATTEMPTS = 3
MAX_NOTE = 200  # characters of a ledger note


class LessonRow(NamedTuple):
    """A row of a table."""

    path: str
    line: int
    number: str
    entry: int | None  # None: the row existed already


class Notes:
    """The corrections and gating policies of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self, table: LessonTable) -> LessonFile:
        """The rows of a table, and the rows that cannot be read."""
        return read_lessons(table, self._workspace.files.read(table.path))

    def add_correction(self, wrong: str, *, instead: str, applies: str = "", actor: str) -> LessonRow:
        """Note a mistake and what to do instead."""
        day = self._workspace.today().isoformat()
        cells = {"day": day, "wrong": wrong, "instead": instead, "applies": applies}
        return self._add(CORRECTION, cells, verb="corrected", note=wrong, actor=actor)

    def add_policy(self, trigger: str, *, action: str, because: str = "", actor: str) -> LessonRow:
        """Note a rule: when this, do that, because that went wrong."""
        cells = {"trigger": trigger, "action": action, "wrong": because}
        return self._add(POLICY, cells, verb="gated", note=trigger, actor=actor)

    def _add(self, table: LessonTable, cells: Mapping[str, str], *, verb: str, note: str, actor: str) -> LessonRow:
        for role, text in cells.items():
            _check_cell(role, text, is_needed=role in table.main)
        try:
            for _ in range(MAX_ATTEMPTS):
                try:
                    return self._write(table, cells, verb, note, actor)
                except EditedSince as error:
                    overtaken = error
            raise overtaken
        except NotCanonical as error:
            error.hint = (
                "the table is kept on the canonical host: run it there; from here, `truekeep handoff new --document"
                f" .learnings/LEARNINGS.md` proposes a lesson; {error.hint}"
            )
            raise

    def _write(self, table: LessonTable, cells: Mapping[str, str], verb: str, note: str, actor: str) -> LessonRow:
        with self._workspace.writing("note what was learned") as transaction:
            staging = Staging(transaction.vault)
            text = _read_table(staging, table.path)
            planned = plan_row(table, text, cells)
            if isinstance(planned, Lesson):
                return LessonRow(table.path, planned.line, planned.number, None)
            offset, inserted = len(text[: planned.offset].encode()), planned.inserted.encode()
            staging.splice(Splice(path=table.path, offset=offset, removed=b"", inserted=inserted), 0)
            shown = printable(" ".join(note.split()))[:MAX_NOTE]
            transaction.act(staging, LedgerEntry(at=self._workspace.stamp(), verb=verb, actor=actor, note=shown))
            entry = next(transaction.ledger.entries(limit=1))
            return LessonRow(table.path, planned.line, planned.number, entry.id)


def _read_table(staging: Staging, path: str) -> str:
    try:
        return (staging.read(path) or b"").decode()
    except UnsafePath as error:
        raise BadInput(str(error), hint="put a plain file there and run it again") from error
    except ChangedSince as error:
        raise EditedSince(f"{path} changed while it was read", hint="run it again") from error
    except UnicodeDecodeError as error:
        hint = "open it in an editor and save it as UTF-8"
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start})", hint=hint) from error


CELL_NAMES = {
    "wrong": "what went wrong",
    "instead": "what to do instead",
    "applies": "what it applies to",
    "trigger": "the trigger",
    "action": "the action",
}


def _check_cell(role: str, text: str, *, is_needed: bool) -> None:
    """Raise if this text may not be in the table."""
    what = CELL_NAMES.get(role, role)
    if not any(character.isalnum() for character in text):
        if is_needed or text.strip():
            raise BadInput(f"{what} says nothing", hint="say it in a few words")
        return
    if len(text) > MAX_CELL_CHARS:
        raise BadInput(f"{what} has {len(text)} characters", hint=f"at most {MAX_CELL_CHARS}: details belong on a card")
    if found := find_secrets(text):
        raise BadInput(f"{what} looks like a credential ({found[0].rule})", hint="leave it out; nothing was written")
    if runs := find_hidden(text):
        raise BadInput(f"{what} has invisible characters ({runs[0].kind})", hint="type it again")
    if BEGIN_MARK in text or END_MARK in text:
        raise BadInput(f"{what} repeats a text that truekeep wrote for agents", hint="say it in your own words")
    if orders := find_instructions(text):
        raise BadInput(
            f"{what} gives orders about other instructions: {orders[0].excerpt!r}",
            hint="say what to do, not what to ignore; nothing was written",
        )
