"""Writes a checkpoint: memory on the canonical host, handoffs elsewhere. Each checkpoint is one ledger entry.

Logs are only appended to; the previous handover is in the ledger. The texts come from agents, so credentials are
masked, hidden characters are removed, and orders to the next reader are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.config import Config
from truekeep.core.dates import as_stamp
from truekeep.core.errors import BadInput, NotCanonical
from truekeep.core.file_io import UnsafePath
from truekeep.core.machine import person
from truekeep.core.repository import repository_name
from truekeep.handoffs.format import compose_handoff, handoff_name
from truekeep.handoffs.inbox import Inbox, deliver
from truekeep.handoffs.policy_store import place_journal
from truekeep.memory.journal import appended, author_label, check_writer
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.sections import with_sections
from truekeep.memory.staging import Staging
from truekeep.memory.transaction import while_edited
from truekeep.sessions.checkpoint import as_handoffs, checked, kinds_of, plan_writes
from truekeep.sessions.session_record import note_checkpoint
from truekeep.sessions.wake import place_of
from truekeep.text.encoding import decode_text
from truekeep.text.injection import find_instructions
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import strip_hidden
from truekeep.transcripts.injected_text import cut_injected

if TYPE_CHECKING:
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.sessions.checkpoint import Checkpoint, Write
    from truekeep.workspace.context import WorkspaceContext

Plan = Callable[[Callable[[str], "str | None"]], "Sequence[Write]"]
"""Plans the writes from the current texts of files."""


class CheckpointResult(NamedTuple):
    """The files that a checkpoint wrote, or the handoffs that it left for the canonical host."""

    paths: tuple[str, ...]
    handoffs: tuple[str, ...]
    notes: tuple[str, ...]


def leave_checkpoint(
    context: WorkspaceContext, given: Checkpoint, *, root: Path | None, writer: str
) -> CheckpointResult:
    """Save what a session learned: in memory on the canonical host, as handoffs on any other machine."""
    safe, notes = clean(given)
    repository = repository_name(root) if root is not None else ""
    by = author_label(check_writer(writer), repository)
    now = context.now()

    def plan(read: Callable[[str], str | None]) -> list[Write]:
        vault = context.vault
        return plan_writes(safe, read, lambda path: place_journal(path, vault), now=now, by=by, repository=repository)

    try:
        with context.writing("checkpoint", patient=True):
            note = f"{kinds_of(safe)} ({by})" if by else kinds_of(safe)
            paths = _write(context.transaction, plan, note=note, now=now)
        note_checkpoint(str(root or ""), writer)
        return CheckpointResult(tuple(paths), (), tuple(notes))
    except NotCanonical as error:
        if root is None:
            error.hint = f"in a repository, this leaves a handoff instead; {error.hint}"
            raise
    machine, writers = context.machine.name, context.config.writers
    left = leave_handoffs(safe, root, writer=writer or person(), writers=writers, now=now, machine=machine)
    note_checkpoint(str(root), writer)
    return CheckpointResult((), tuple(left), tuple(notes))


def clean(checkpoint: Checkpoint) -> tuple[Checkpoint, list[str]]:
    """The checkpoint made safe to write, and notes on what was changed. Orders to the reader are refused."""
    notes: list[str] = []
    for name, text in checkpoint.parts():
        orders = find_instructions(text)
        if orders:
            raise BadInput(
                f"{name.replace('_', ' ')} gives orders to the agent that will read it: {orders[0].excerpt!r}",
                hint="say what is so, not what to do with other instructions; nothing was written",
            )

    def safe(name: str, text: str) -> str:
        own = cut_injected(text)
        if own != text:
            notes.append(f"text that truekeep wrote for agents was left out of {name.replace('_', ' ')}")
        plain = strip_hidden(own).strip()
        masked = withhold(plain)
        if masked != plain:
            notes.append(f"a credential in {name.replace('_', ' ')} was masked")
        return masked

    values: dict[str, Any] = {}
    for name, value in checkpoint._asdict().items():
        if isinstance(value, str):
            values[name] = safe(name, value)
        elif name == "subagents":
            values[name] = tuple((label, safe(name, text)) for label, text in value)
        else:
            values[name] = tuple(safe(name, text) for text in value)
    return checked(type(checkpoint)(**values)), list(dict.fromkeys(notes))


def leave_handoffs(
    checkpoint: Checkpoint, root: Path, *, writer: str, writers: Mapping[str, str], now: datetime, machine: str
) -> list[str]:
    """Write a handoff for each entry, on a machine that may not write memory."""
    repository = repository_name(root)
    by = author_label(writer, repository, machine)
    letters = []
    for document, content in as_handoffs(checkpoint, now=now, by=by, project=place_of(repository).slug):
        title = f"Checkpoint for {document}"
        # The time makes each handoff unique, so that the same words can be left again.
        evidence = ", ".join(part for part in ("truekeep checkpoint", by, now.isoformat()) if part)
        summary = "What a session on another machine did."
        text = compose_handoff(title=title, summary=summary, evidence=[evidence], document=document, content=content)
        letters.append((handoff_name(f"{now:%S} {title}", now), text.encode()))  # its second, for the order
    if any(len(raw) > Config().limits.handoff_bytes for _, raw in letters):
        raise BadInput("the checkpoint is too long for a handoff; nothing was left", hint="say less, or in parts")
    chosen = writer if writer in writers else next(iter(writers))
    inbox = Inbox(root=root, folder=writers[chosen], writer=chosen)
    return [str(deliver(inbox, name, raw)) for name, raw in letters]


def _write(books: MemoryTransaction, plan: Plan, *, note: str, now: datetime) -> list[str]:
    """Plan with the files as they are, and write all of it or nothing. Gives the paths, in order."""
    return while_edited(lambda: _write_once(books, plan, note=note, now=now))


def _write_once(books: MemoryTransaction, plan: Plan, *, note: str, now: datetime) -> list[str]:
    staging = Staging(books.vault)

    def read(path: str) -> str | None:
        data = staging.read(path)
        return None if data is None else decode_text(data)

    writes = plan(read)
    paths: dict[str, None] = {}
    for write in writes:
        try:
            _stage(staging, write)
        except BadInput:
            if not write.is_optional:
                raise
        else:
            paths[write.path] = None
    books.act(staging, LedgerEntry(at=as_stamp(now), verb="checkpoint", actor=person(), note=note[:200]))
    return list(paths)


def _stage(staging: Staging, write: Write) -> None:
    try:
        data = staging.read(write.path)
    except UnsafePath as error:
        raise BadInput(str(error), hint="put a plain file there and run it again") from error
    try:
        text = data.decode() if data is not None else ""  # with its own line ends
    except UnicodeDecodeError as error:
        hint = "open it in an editor and save it as UTF-8"
        raise BadInput(f"{write.path} is not UTF-8 text", hint=hint) from error
    if write.mode == "overwrite":
        staging.put(write.path, write.text.encode(), 0)
    elif write.mode == "sections":
        new = with_sections(text, write.sections, path=write.path, title=write.title, stamp=write.text)
        staging.put(write.path, new.encode(), 0)
    else:
        staging.append(write.path, appended(text, write.text, title=write.title).encode(), 0)
