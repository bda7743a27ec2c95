"""Import an archive into a workspace. Files that differ are never overwritten unless `replace` is given.

New files are written together and noted in the ledger; replaced files go through the ledger with their old content, so
that `truekeep undo` can restore them. Flagged files are only imported with a person's approval, or from an archive that
was made on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, EditedSince, StorageFailed
from truekeep.core.file_io import ChangedSince
from truekeep.core.machine import person
from truekeep.integrations.alf.archive_file import is_own_archive, open_archive, require_undamaged
from truekeep.integrations.alf.export import write_agent_id
from truekeep.integrations.alf.files import UNKNOWN_TIME, portable_mode
from truekeep.integrations.alf.import_flags import Flag, FlaggedArchive, iter_flags
from truekeep.integrations.alf.import_plan import (
    BLOCKED,
    DIFFERENT,
    HELD,
    NEW,
    SAME,
    ImportPlan,
    PlannedImport,
    plan_import,
)
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.record_ids import AGENT_ID_FILE
from truekeep.integrations.alf.writer import Progress
from truekeep.integrations.alf.zip_container import ArchiveProblem
from truekeep.memory.import_files import list_importing, record_import
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import FILE_LIMIT, Incoming, Staging, WriteFailed
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.memory.transaction import MemoryTransaction

_MAX_BATCH_FILES, _MAX_BATCH_BYTES = 64, 16 << 20  # replaced in one transaction


class ImportReport(NamedTuple):
    """The result of an import, or of a dry run."""

    root: Path
    agent: str
    plan: ImportPlan
    problems: tuple[ArchiveProblem, ...]  # of lines and entries that were skipped
    replaced: int
    written: int
    is_host: bool = False  # this machine became the canonical host, because the workspace had none
    flags: tuple[Flag, ...] = ()
    is_own: bool = False  # the archive was made on this machine
    dry_run: bool = False


class ImportOptions(NamedTuple):
    """How an archive is imported."""

    replace: bool = False  # overwrite files that differ
    keep: bool = False  # keep files that differ
    dry_run: bool = False
    salvage: bool = False  # import the intact files of a damaged archive
    large: bool = False  # accept any unpacked size
    trust: bool = False  # import flagged files and executable bits
    skip_flagged: bool = False
    identities: tuple[str, ...] = ()  # private keys


TRUST, SKIP, STOP = "trust", "skip", "stop"
Ask = Callable[[tuple[Flag, ...]], str]
"""Shows the flags to a person and returns TRUST, SKIP or STOP."""


def import_archive(
    source: Path,
    root: Path,
    options: ImportOptions,
    *,
    now: Callable[[], datetime] | None = None,
    ask: Ask | None = None,
    progress: Progress = lambda *_: None,
) -> ImportReport:
    """Import an archive into a workspace, which is created if it does not exist.

    If there are flagged files and neither `trust` nor `skip_flagged` is set, `ask` decides before anything is written;
    without `ask` the import is refused.
    """
    problems: list[ArchiveProblem] = []
    on_damage = (lambda error: problems.append(error.problem)) if options.salvage else None
    with open_archive(source, identities=options.identities, large=options.large) as reader:
        if options.salvage:
            problems += reader.problems
        else:
            require_undamaged(reader)
        archive = ArchiveReader(reader, on_damage=on_damage)
        agent = archive.find_agent_id() if options.salvage else archive.agent_id
        plan = plan_import(archive, str(root), on_damage=on_damage)
        _require_same_agent(root, agent, replace=options.replace)
        is_own = is_own_archive(source)
        written = [file for file in plan.files if file.state == NEW or (file.state == DIFFERENT and not options.keep)]
        flags = () if is_own else tuple(iter_flags(written, plan.unlisted, str(root)))
        if options.skip_flagged and not options.trust:
            plan = _hold_back(plan, flags)
        report = ImportReport(root, agent or "", plan, tuple(dict.fromkeys(problems)), 0, 0, False, flags, is_own)
        if options.dry_run:
            return report._replace(dry_run=True)
        _require_importable(root, plan, options)
        is_trusted = is_own or options.trust
        if not is_trusted and not options.skip_flagged and any(flag.holds_back for flag in flags):
            is_trusted = _ask_for_approval(flags, ask)
            plan = plan if is_trusted else _hold_back(plan, flags)
        is_host = not os.path.lexists(root / ".truekeep" / "host")
        Workspace.init(root, is_bare=True, now=now)
        with Workspace.open(root, now=now) as workspace, workspace.writing("import") as transaction:
            count = _write_new(workspace, transaction, plan.of(NEW), source.name, progress, executable=is_trusted)
            replaced = plan.of(DIFFERENT) if options.replace else []
            if options.replace:
                _replace(transaction, replaced, source.name, workspace.stamp(), progress)
                _set_times(transaction, plan.of(SAME))
            if is_trusted:  # an earlier import may have left out the executable bits of files that are the same
                existing = [*replaced, *(plan.of(SAME) if not is_own else ())]
                plan = _note_executables(plan, _make_executable(transaction, existing))
            if agent:
                write_agent_id(workspace.path, agent)
    return report._replace(plan=plan, replaced=len(replaced), written=count, is_host=is_host)


# --- Checks before anything is written ------------------------------------------------------------------------------


def _require_same_agent(root: Path, agent: str | None, *, replace: bool) -> None:
    with suppress(OSError, UnicodeDecodeError):
        here = (root / AGENT_ID_FILE).read_text(encoding="utf-8").strip()
        if here and agent and here.lower() != agent and not replace:
            raise BadInput(
                f"{root} belongs to agent {here}, the archive to {agent}",
                hint="import it into another folder, or add --replace",
            )


def _require_importable(root: Path, plan: ImportPlan, options: ImportOptions) -> None:
    """Refuse blocked files, files that differ without a decision, and files that cannot be replaced."""
    blocked = [] if options.salvage else plan.of(BLOCKED)
    if blocked:
        first = blocked[0]
        raise BadInput(
            f"{_count(blocked)} blocked, such as {first.listed.path}: {first.why}; nothing was written",
            hint="`--dry-run` lists them; `--salvage` leaves them out",
        )
    different = plan.of(DIFFERENT)
    if different and not (options.replace or options.keep):
        raise BadInput(
            f"{_count(different)} different in the workspace, such as {different[0].listed.path}; nothing was written",
            hint="`--dry-run` lists them; --replace imports the archive's, --keep keeps yours",
        )
    for file in different if options.replace else ():
        size = sum(map(len, file.pieces()))
        if max(size, os.lstat(root / file.listed.path).st_size) > FILE_LIMIT:
            raise BadInput(
                f"{file.listed.path} is too large to be replaced; nothing was written",
                hint="move yours away and run it again, or keep it with --keep",
            )


def _count(files: Sequence[PlannedImport]) -> str:
    return "1 file is" if len(files) == 1 else f"{len(files)} files are"


def _ask_for_approval(flags: tuple[Flag, ...], ask: Ask | None) -> bool:
    """True if a person approves of the flagged files, False if they are to be skipped. Raises FlaggedArchive."""
    answer = ask(flags) if ask is not None else STOP
    if answer == STOP:
        raise FlaggedArchive(flags)
    return answer == TRUST


def _hold_back(plan: ImportPlan, flags: Sequence[Flag]) -> ImportPlan:
    """The plan without its flagged files."""
    reasons: dict[str, list[str]] = {}
    for flag in flags:
        if flag.holds_back:
            reasons.setdefault(flag.path, []).append(flag.what)
    why = {path: "; ".join(dict.fromkeys(whats)) for path, whats in reasons.items()}
    files = (
        file._replace(state=HELD, why=why[file.listed.path]) if file.listed.path in why else file for file in plan.files
    )
    return plan._replace(files=tuple(files))


# --- Writing --------------------------------------------------------------------------------------------------------


def _write_new(
    workspace: Workspace,
    transaction: MemoryTransaction,
    files: Sequence[PlannedImport],
    archive_name: str,
    progress: Progress,
    *,
    executable: bool,
) -> int:
    """Write new files all together. The ledger only gets a note: it would store each file a second time."""
    with list_importing(workspace.path, [file.listed.path for file in files]):
        count = _take_in(transaction, files, progress, executable=executable)
    if files:
        at, name = workspace.stamp(), printable(archive_name)[:200]
        record_import(workspace.path, name, at, {file.listed.path: file.listed.sha256 for file in files})
        note = f"{name}: {len(files):,} new file{'' if len(files) == 1 else 's'}"
        transaction.act(Staging(transaction.vault), LedgerEntry(at=at, verb="imported", actor=person(), note=note))
    return count


def _take_in(
    transaction: MemoryTransaction, files: Sequence[PlannedImport], progress: Progress, *, executable: bool
) -> int:
    def incoming() -> Iterator[Incoming]:
        now_ns = int(datetime.now(UTC).timestamp() * 1e9)
        for file in files:
            at = file.listed.mtime_ns if file.listed.mtime_ns != UNKNOWN_TIME else now_ns
            mode = portable_mode(file.listed.mode)
            yield Incoming(file.listed.path, file.pieces(), mode if executable else mode & ~0o111, at)

    try:
        count = transaction.vault.take_in(incoming(), lambda number: progress("files", number, len(files)))
    except WriteFailed as failure:
        why = failure.error.strerror or str(failure.error)
        raise StorageFailed(f"{failure.path} cannot be written: {why}", hint="nothing new was written") from failure
    except ChangedSince as error:
        raise EditedSince(f"{error} was created meanwhile", hint="look at it and run the import again") from error
    progress("files", len(files), len(files))
    return count


def _replace(
    transaction: MemoryTransaction, files: Sequence[PlannedImport], archive_name: str, at: str, progress: Progress
) -> None:
    """Replace files that differ. The ledger keeps the old content for undo."""
    number = 0
    for batch in _batches(files):
        progress("replacing", number, len(files))
        staging = Staging(transaction.vault)
        for file in batch:
            staging.put(file.listed.path, b"".join(file.pieces()), 0)
        transaction.act(
            staging, LedgerEntry(at=at, verb="imported", actor=person(), note=printable(archive_name)[:200])
        )
        _set_times(transaction, batch)
        number += len(batch)
    progress("replacing", len(files), len(files))


def _batches(files: Sequence[PlannedImport]) -> Iterator[list[PlannedImport]]:
    """Groups of files that fit into memory together."""
    batch: list[PlannedImport] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _MAX_BATCH_FILES or size + file.listed.size > _MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.listed.size
    if batch:
        yield batch


def _set_times(transaction: MemoryTransaction, files: Sequence[PlannedImport]) -> None:
    for file in files:
        transaction.vault.forget_folders()
        if file.listed.mtime_ns != UNKNOWN_TIME:
            transaction.vault.set_time(file.listed.path, file.listed.mtime_ns)


def _make_executable(transaction: MemoryTransaction, files: Sequence[PlannedImport]) -> int:
    """Set the executable bits that the archive has; returns the number of files that were changed."""
    transaction.vault.forget_folders()
    wanted = [(file.listed.path, bits) for file in files if (bits := portable_mode(file.listed.mode) & 0o111)]
    return sum(transaction.vault.add_mode(path, bits) for path, bits in wanted)


def _note_executables(plan: ImportPlan, count: int) -> ImportPlan:
    note = (f"{count:,} file{'' if count == 1 else 's'} made executable, as in the archive",) if count else ()
    return plan._replace(notes=(*plan.notes, *note))
