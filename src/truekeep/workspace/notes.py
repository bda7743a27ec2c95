"""Corrections and gating policies: list the rows, and add one.

Agents get these tables before they begin, so a text is refused if it holds a credential, invisible characters, or
orders about other instructions. On a machine that may not write, a row is left as a handoff; a person reviews it on
the canonical host.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, NotCanonical
from truekeep.core.file_io import UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import BEGIN_MARK, END_MARK, Splice
from truekeep.core.repository import repository_name
from truekeep.handoffs.format import compose_handoff, handoff_name
from truekeep.handoffs.inbox import Inbox, deliver
from truekeep.memory.journal import author_label
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
    render_lesson,
)
from truekeep.memory.staging import Staging
from truekeep.memory.transaction import while_edited
from truekeep.text.injection import find_instructions
from truekeep.text.secrets.scanner import find_secrets
from truekeep.text.unicode import find_hidden, printable
from truekeep.workspace.tool_warning_file import refresh_lessons

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

MAX_NOTE = 200  # characters of a ledger note
_VERBS = {CORRECTION.word: "corrected", POLICY.word: "gated"}


class LessonRow(NamedTuple):
    """A row of a table."""

    path: str
    line: int
    number: str
    entry: int | None  # None: the row existed already, or was left as a handoff
    handoff: str = ""  # the handoff that was left for the canonical host


class LessonAuthor(NamedTuple):
    """Who adds a row, and the repository whose inbox takes it on a machine that may not write."""

    actor: str
    writer: str = ""
    root: Path | None = None


class Notes:
    """The corrections and gating policies of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self, table: LessonTable) -> LessonFile:
        """The rows of a table, and the rows that cannot be read."""
        return read_lessons(table, self._workspace.files.read(table.path))

    def add_correction(self, wrong: str, *, instead: str, applies: str = "", by: LessonAuthor) -> LessonRow:
        """Note a mistake and what to do instead."""
        return self.add(CORRECTION, correction_cells(wrong, instead, applies, self._workspace.today()), by)

    def add_policy(self, trigger: str, *, action: str, because: str = "", by: LessonAuthor) -> LessonRow:
        """Note a rule: when this, do that, because that went wrong."""
        return self.add(POLICY, policy_cells(trigger, action, because), by)

    def add(self, table: LessonTable, cells: Mapping[str, str], by: LessonAuthor) -> LessonRow:
        check_cells(table, cells)
        try:
            row = while_edited(lambda: self._write(table, cells, by.actor))
        except NotCanonical as error:
            if by.root is None:
                error.hint = f"in a repository, this leaves a handoff for the canonical host; {error.hint}"
                raise
        else:
            refresh_lessons(self._workspace.context)
            return row
        workspace = self._workspace
        machine, writers = workspace.machine.name, workspace.config.writers
        return leave_lesson(table, cells, by.root, by.writer, writers, machine=machine, now=workspace.now())

    def _write(self, table: LessonTable, cells: Mapping[str, str], actor: str) -> LessonRow:
        with self._workspace.writing("note what was learned") as transaction:
            staging = Staging(transaction.vault)
            text = _read_table(staging, table.path)
            planned = plan_row(table, text, cells)
            if isinstance(planned, Lesson):
                return LessonRow(table.path, planned.line, planned.number, None)
            offset, inserted = len(text[: planned.offset].encode()), planned.inserted.encode()
            staging.splice(Splice(path=table.path, offset=offset, removed=b"", inserted=inserted), 0)
            shown = printable(" ".join(cells[table.main[0]].split()))[:MAX_NOTE]
            verb = _VERBS[table.word]
            transaction.act(staging, LedgerEntry(at=self._workspace.stamp(), verb=verb, actor=actor, note=shown))
            entry = next(transaction.ledger.entries(limit=1))
            return LessonRow(table.path, planned.line, planned.number, entry.id)


def correction_cells(wrong: str, instead: str, applies: str, today: date) -> dict[str, str]:
    return {"day": today.isoformat(), "wrong": wrong, "instead": instead, "applies": applies}


def policy_cells(trigger: str, action: str, because: str) -> dict[str, str]:
    return {"trigger": trigger, "action": action, "wrong": because}


def check_cells(table: LessonTable, cells: Mapping[str, str]) -> None:
    """Raise if a text may not be in the table."""
    for role, text in cells.items():
        _check_cell(role, text, is_needed=role in table.main)


def leave_lesson(
    table: LessonTable,
    cells: Mapping[str, str],
    root: Path,
    writer: str,
    writers: Mapping[str, str],
    *,
    machine: str,
    now: datetime,
) -> LessonRow:
    """Leave a row as a handoff in the repository's inbox."""
    title = f"{table.word.capitalize()}: {' '.join(cells[table.main[0]].split())}"[:MAX_NOTE]
    by = author_label(writer or person(), repository_name(root), machine)
    text = compose_handoff(
        title=title,
        kind="workflow",
        summary=f"For {table.path}, from another machine.",
        evidence=[", ".join(part for part in ("truekeep note", by, now.isoformat()) if part)],
        document=table.path,
        content=render_lesson(table, cells),
    )
    chosen = writer if writer in writers else next(iter(writers))
    inbox = Inbox(root=root, folder=writers[chosen], writer=chosen)
    left = deliver(inbox, handoff_name(f"{now:%S} {title}", now), text.encode())
    return LessonRow(table.path, 0, "", None, str(left))


def _read_table(staging: Staging, path: str) -> str:
    try:
        return (staging.read(path) or b"").decode()
    except UnsafePath as error:
        raise BadInput(str(error), hint="put a plain file there and run it again") from error
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
