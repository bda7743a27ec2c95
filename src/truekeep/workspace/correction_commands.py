"""The desk for corrections and gating policies: rows that are added, and what there is.

A row is refused if it holds a credential, characters that nobody sees, or orders about other instructions: agents are
told of these tables before they begin. Where this machine may not write, nothing is left: no handoff goes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, NotCanonical
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import BEGIN_MARK, END_MARK, Splice
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.lessons import CELL, CORRECTION, POLICY, Lesson, LessonFile, LessonTable, plan_row, read_lessons
from truekeep.memory.staging import Staging
from truekeep.text.injection import find_instructions
from truekeep.text.secrets.scanner import find_secrets
from truekeep.text.unicode import find_hidden, printable

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

_RETRIES = 3


class LessonRow(NamedTuple):
    """A row, and whether it is new."""

    path: str
    line: int
    number: str
    entry: int | None  # None: it was there already


def add_correction(workspace: Workspace, wrong: str, *, instead: str, applies: str = "", actor: str) -> LessonRow:
    """Note a mistake and what to do instead."""
    said = {"day": workspace.today().isoformat(), "wrong": wrong, "instead": instead, "applies": applies}
    return _add(workspace, CORRECTION, said, verb="corrected", note=wrong, actor=actor)


def add_policy(workspace: Workspace, trigger: str, *, action: str, because: str = "", actor: str) -> LessonRow:
    """Note a rule: when this, do that, because that went wrong."""
    said = {"trigger": trigger, "action": action, "wrong": because}
    return _add(workspace, POLICY, said, verb="gated", note=trigger, actor=actor)


def list_lessons(workspace: Workspace, kind: LessonTable) -> LessonFile:
    """What a table says, and what of it cannot be read."""
    return read_lessons(kind, workspace.files.read(kind.path))


def _add(
    workspace: Workspace, kind: LessonTable, said: Mapping[str, str], *, verb: str, note: str, actor: str
) -> LessonRow:
    for role, text in said.items():
        _check(role, text, is_needed=role in kind.main)
    try:
        for _ in range(_RETRIES):
            try:
                return _write(workspace, kind, said, verb, note, actor)
            except EditedSince as error:
                overtaken = error
        raise overtaken
    except NotCanonical as error:
        error.hint = (
            "the table is kept on the canonical host: run it there; from here, `truekeep handoff new --document"
            f" .learnings/LEARNINGS.md` proposes a lesson; {error.hint}"
        )
        raise


def _write(
    workspace: Workspace, kind: LessonTable, said: Mapping[str, str], verb: str, note: str, actor: str
) -> LessonRow:
    with workspace.writing("note what was learned") as books:
        staging = Staging(books.vault)
        try:
            data = staging.read(kind.path) or b""
            text = data.decode()
        except UnsafePath as error:
            raise BadInput(str(error), hint="put a plain file there and run it again") from error
        except ChangedSince as error:
            raise EditedSince(f"{kind.path} changed while it was read", hint="run it again") from error
        except UnicodeDecodeError as error:
            hint = "open it in an editor and save it as UTF-8"
            raise BadInput(f"{kind.path} is not UTF-8 text (byte {error.start})", hint=hint) from error
        planned = plan_row(kind, text, said)
        if isinstance(planned, Lesson):
            return LessonRow(kind.path, planned.line, planned.number, None)
        offset, inserted = len(text[: planned.offset].encode()), planned.inserted.encode()
        staging.splice(Splice(path=kind.path, offset=offset, removed=b"", inserted=inserted), 0)
        told = printable(" ".join(note.split()))[:200]
        books.act(staging, LedgerEntry(at=workspace.stamp(), verb=verb, actor=actor, note=told))
        return LessonRow(kind.path, planned.line, planned.number, next(books.ledger.entries(limit=1)).id)


_CALLED = {
    "wrong": "what went wrong",
    "instead": "what to do instead",
    "applies": "what it applies to",
    "trigger": "the trigger",
    "action": "the action",
}


def _check(role: str, text: str, *, is_needed: bool) -> None:
    """A text that may stand in the table."""
    what = _CALLED.get(role, role)
    if not any(character.isalnum() for character in text):
        if is_needed or text.strip():
            raise BadInput(f"{what} says nothing", hint="say it in a few words")
        return
    if len(text) > CELL:
        raise BadInput(f"{what} has {len(text)} characters", hint=f"at most {CELL}: details belong on a card")
    if found := find_secrets(text):
        raise BadInput(f"{what} looks like a credential ({found[0].rule})", hint="leave it out; nothing was written")
    if runs := find_hidden(text):
        raise BadInput(f"{what} holds characters that nobody sees ({runs[0].kind})", hint="type it anew")
    if BEGIN_MARK in text or END_MARK in text:
        raise BadInput(f"{what} holds what truekeep itself had told", hint="say it in your own words")
    if orders := find_instructions(text):
        raise BadInput(
            f"{what} gives orders about other instructions: {orders[0].excerpt!r}",
            hint="say what to do, not what to ignore; nothing was written",
        )
