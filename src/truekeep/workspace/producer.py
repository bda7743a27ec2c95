"""A machine without the workspace: it judges and writes handoffs, and archives its own transcripts.

Its state is in the machine's own state folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.config import Config
from truekeep.core.errors import BadSetup
from truekeep.core.file_io import make_private
from truekeep.core.machine import machine_name, own_state, person
from truekeep.core.model import WRITERS
from truekeep.core.repository import find_top
from truekeep.handoffs.adopt.to_handoffs import AdoptionContext, bring
from truekeep.handoffs.inbox import find_inboxes, is_handoff_name
from truekeep.handoffs.policy.decision import IncomingHandoff, MemoryView
from truekeep.handoffs.policy.plan import plan_filing
from truekeep.memory.journal import check_writer
from truekeep.sessions.session_record import note_checkpoint
from truekeep.transcripts.service import Archive
from truekeep.workspace import card_writing, notes
from truekeep.workspace.checkpointing import CheckpointResult, clean, leave_handoffs

if TYPE_CHECKING:
    from truekeep.handoffs.adopt.note import SkippedNote
    from truekeep.handoffs.adopt.to_handoffs import AdoptionOutcome
    from truekeep.handoffs.policy.decision import Decision, UnsavedHandoff
    from truekeep.memory.lessons import LessonTable
    from truekeep.sessions.checkpoint import Checkpoint
    from truekeep.transcripts.importer import TranscriptImportReport
    from truekeep.workspace.card_text import CardAuthor, CardText
    from truekeep.workspace.card_writing import CardWriteResult
    from truekeep.workspace.notes import LessonAuthor, LessonRow


def _now() -> datetime:
    return datetime.now().astimezone()


def judge(letters: Sequence[UnsavedHandoff]) -> list[Decision]:
    """Judge handoffs as ingest would, but without knowing the cards."""
    config = Config()
    filings = []
    for raw, name, _ in letters:
        known = raw if len(raw) <= config.limits.handoff_bytes else None
        candidate = IncomingHandoff(raw=known, name=name, size=len(raw), repository="", writer="lint")
        filings.append(plan_filing(candidate, MemoryView(), config, today=_now().date()))
    return filings


def leave(checkpoint: Checkpoint, root: Path | None, writer: str) -> CheckpointResult:
    """Write a checkpoint as handoffs into an inbox of the repository."""
    if root is None:
        raise BadSetup(
            "no workspace on this machine, and this folder is not a repository",
            hint="run it in a repository, or give one with --repo",
        )
    safe, notes = clean(checkpoint)
    check_writer(writer)
    who = writer or person()  # people have no inbox of their own, so the entry names them
    left = leave_handoffs(safe, root, writer=who, writers=WRITERS, now=_now(), machine=machine_name())
    note_checkpoint(str(root), writer)
    return CheckpointResult((), tuple(left), tuple(notes))


def leave_card(wanted: CardText, by: CardAuthor, *, is_update: bool, anyway: bool) -> CardWriteResult:
    """Write a new card as a handoff into the repository's inbox."""
    if by.root is None or is_update:
        raise BadSetup(
            "there is no workspace on this machine",
            hint="in a repository, a new card is left as a handoff; what is on a card is changed on the host",
        )
    return card_writing.leave_card(wanted, by, judge, Config(), anyway=anyway)


def leave_lesson(table: LessonTable, cells: Mapping[str, str], by: LessonAuthor) -> LessonRow:
    """Write a correction or gating policy as a handoff into the repository's inbox."""
    if by.root is None:
        raise BadSetup(
            "no workspace on this machine, and this folder is not a repository",
            hint="run it in a repository, or give one with --repo",
        )
    notes.check_cells(table, cells)
    return notes.leave_lesson(table, cells, by.root, by.writer, WRITERS, machine=machine_name(), now=_now())


def count_waiting(folder: Path) -> int | None:
    """The number of handoffs waiting in the repository that contains a folder; None outside of a repository."""
    root = find_top(folder)
    if root is None:
        return None
    inboxes = [inbox.path for inbox in find_inboxes([root], WRITERS) if inbox.path.is_dir()]
    return sum(is_handoff_name(path.name) and path.is_file() for inbox in inboxes for path in inbox.iterdir())


def adopt(
    harness: str, *, given: Path | None, repository: Path | None, dry_run: bool
) -> tuple[list[AdoptionOutcome], list[SkippedNote]]:
    """Write handoffs for a harness's own notes; notes about the user go into the current repository."""
    here = find_top(repository.absolute() if repository is not None else Path.cwd())
    make_private(own_state())
    desk = AdoptionContext(here, WRITERS, judge, lambda _: False, Path(own_state()) / "adopted.json", knows_filed=False)
    folders = [here] if here is not None else []
    return bring(harness, desk, folders=folders, now=_now(), given=given, repository=repository, dry_run=dry_run)


def archive() -> Archive:
    return Archive(own_state())


def sync_transcripts(*, force: bool, progress: Callable[[int, int], None] = lambda *_: None) -> TranscriptImportReport:
    days = Config().transcripts.keep_days
    return archive().sync_here(machine=machine_name(), now=_now(), keep_days=days, force=force, progress=progress)
