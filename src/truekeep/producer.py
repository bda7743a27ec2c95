"""A machine that only produces: it judges and leaves handoffs and keeps its own transcripts. It writes no memory.

What it has to remember for that is in the machine's own state folder; there is no workspace to put it in.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.host import machine_name, own_state, person
from truekeep.model import WRITERS

if TYPE_CHECKING:
    from truekeep.adopt.leave import Adopted
    from truekeep.adopt.note import Skipped
    from truekeep.checkpoint import Checkpoint
    from truekeep.filing import Filing, Unposted
    from truekeep.leaving import Left
    from truekeep.transcripts.archive import Archive
    from truekeep.transcripts.sync import Synced


def _now() -> datetime:
    return datetime.now().astimezone()


def judge(letters: Sequence[Unposted]) -> list[Filing]:
    """What ingest would make of handoffs, as far as this machine can tell: it knows no cards."""
    from truekeep.config import Config
    from truekeep.filing import Candidate, EmptyShelf, plan_filing

    config = Config()
    filings = []
    for raw, name, _ in letters:
        known = raw if len(raw) <= config.limits.handoff_bytes else None
        candidate = Candidate(raw=known, name=name, size=len(raw), repository="", writer="lint")
        filings.append(plan_filing(candidate, EmptyShelf(), config, today=_now().date()))
    return filings


def leave(checkpoint: Checkpoint, root: Path, writer: str) -> Left:
    """What a session learned, or a person says, as handoffs in an inbox of the repository."""
    from truekeep.closeout import note_checkpoint
    from truekeep.journal import check_writer
    from truekeep.leaving import Left, clean, leave_handoffs

    safe, notes = clean(checkpoint)
    check_writer(writer)
    who = writer or person()  # people have no inbox of their own, so the entry names them
    left = leave_handoffs(safe, root, writer=who, writers=WRITERS, now=_now(), machine=machine_name())
    note_checkpoint(str(root), writer)
    return Left((), tuple(left), tuple(notes))


def count_waiting(folder: Path) -> int | None:
    """How many handoffs wait in the inboxes of the repository that a folder is in; None outside of any."""
    from truekeep.inbox import find_inboxes, is_letter_name
    from truekeep.repo import find_top

    root = find_top(folder)
    if root is None:
        return None
    inboxes = [inbox.path for inbox in find_inboxes([root], WRITERS) if inbox.path.is_dir()]
    return sum(is_letter_name(path.name) and path.is_file() for inbox in inboxes for path in inbox.iterdir())


def adopt(
    harness: str, *, given: Path | None, repository: Path | None, dry_run: bool
) -> tuple[list[Adopted], list[Skipped]]:
    """Leave handoffs for what a harness remembers on its own; what is about the user, in the current repository."""
    from truekeep.adopt.leave import Desk, bring
    from truekeep.repo import find_top

    here = find_top(repository.absolute() if repository is not None else Path.cwd())
    os.makedirs(own_state(), mode=0o700, exist_ok=True)
    desk = Desk(here, WRITERS, judge, lambda _: False, Path(own_state()) / "adopted.json", knows_filed=False)
    folders = [here] if here is not None else []
    return bring(harness, desk, folders=folders, now=_now(), given=given, repository=repository, dry_run=dry_run)


def archive() -> Archive:
    from truekeep.transcripts.archive import Archive

    return Archive(own_state())


def sync_transcripts(*, force: bool, tell: Callable[[int, int], None] = lambda *_: None) -> Synced:
    from truekeep.config import Config

    days = Config().transcripts.keep_days
    return archive().sync_here(machine=machine_name(), now=_now(), keep_days=days, force=force, tell=tell)
