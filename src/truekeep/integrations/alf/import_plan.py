"""An archive put into a workspace. Nothing that differs is overwritten unless that is asked for.

New files come all together and are told of; what is replaced goes through the books, so that it can be had again. What
programs would act upon, and texts with findings, come in only on a person's word, or from an archive made here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput, EditedSince, StorageFailed
from truekeep.core.file_io import ChangedSince
from truekeep.core.machine import person
from truekeep.integrations.alf.archive_file import opened, raise_problems
from truekeep.integrations.alf.files import NO_TIME, sane_mode
from truekeep.integrations.alf.import_files import (
    BLOCKED,
    DIFFERENT,
    HELD,
    NEW,
    SAME,
    ImportedFile,
    ImportPlan,
    plan_import,
)
from truekeep.integrations.alf.import_flags import Flag, FlaggedArchive, iter_flags
from truekeep.integrations.alf.own_archives import is_own_archive
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.record_ids import AGENT_FILE
from truekeep.integrations.alf.writer import Tell
from truekeep.integrations.alf.zip_container import ArchiveProblem
from truekeep.memory.import_files import arriving, note_arrived
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import FILE_LIMIT, Incoming, Staging, WriteFailed
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.memory.transaction import MemoryTransaction

_BATCH, _BATCH_BYTES = 64, 16 << 20  # files that are replaced together


class ImportReport(NamedTuple):
    """What an import did, or would do."""

    root: Path
    agent: str
    plan: ImportPlan
    problems: tuple[ArchiveProblem, ...]  # of lines and entries that were left behind
    replaced: int
    written: int
    is_host: bool = False  # whether this machine became the canonical host of it, as there was none here
    flags: tuple[Flag, ...] = ()  # what a person should know of what came, or would come
    is_own: bool = False  # whether this machine made the archive


TRUST, SKIP, STOP = "trust", "skip", "stop"
Ask = Callable[[tuple[Flag, ...]], str]
"""Shows the flags to a person, and gives one of the words above."""


def import_archive(
    source: Path,
    root: Path,
    *,
    replace: bool = False,
    keep: bool = False,
    dry_run: bool = False,
    salvage: bool = False,
    large: bool = False,
    trust: bool = False,
    skip_flagged: bool = False,
    identities: Sequence[str] = (),
    now: Callable[[], datetime] | None = None,
    ask: Ask | None = None,
    tell: Tell = lambda *_: None,
) -> ImportReport:
    """Put an archive into a workspace. Nothing that differs is overwritten unless that is asked for.

    Flagged files come with `trust`, stay in the archive with `skip_flagged`; else `ask` decides, before anything is
    written, and without it the import is refused.
    """
    problems: list[ArchiveProblem] = []
    hear = (lambda error: problems.append(error.problem)) if salvage else None
    with opened(source, identities=identities, large=large) as reader:
        if salvage:
            problems += reader.problems
        else:
            raise_problems(reader)
        snapshot = Snapshot(reader, salvage=hear)
        agent = snapshot.find_agent_id() if salvage else snapshot.agent_id
        plan = plan_import(snapshot, str(root), salvage=hear)
        _check_agent(root, agent, replace=replace)
        is_own = is_own_archive(source)
        written = [file for file in plan.files if file.state == NEW or (file.state == DIFFERENT and not keep)]
        flags = () if is_own else tuple(iter_flags(written, plan.unlisted, str(root)))
        if skip_flagged and not trust:
            plan = _hold_back(plan, flags)
        done = ImportReport(root, agent or "", plan, tuple(dict.fromkeys(problems)), 0, 0, flags=flags, is_own=is_own)
        if dry_run:
            return done
        different = plan.of(DIFFERENT)
        blocked = [] if salvage else plan.of(BLOCKED)
        if blocked:
            first = blocked[0]
            raise BadInput(
                f"{_how_many(blocked)} in the way, such as {first.line.path}: {first.why}; nothing was written",
                hint="`--dry-run` lists them; `--salvage` leaves them out",
            )
        if different and not (replace or keep):
            raise BadInput(
                f"{_how_many(different)} there and different, such as {different[0].line.path}; nothing was written",
                hint="`--dry-run` lists them; --replace takes the archive's, --keep leaves yours",
            )
        if replace:
            _check_replaceable(root, different)
        is_trusted = is_own or trust
        if not is_trusted and not skip_flagged and any(flag.holds_back for flag in flags):
            word = ask(flags) if ask is not None else STOP
            if word == STOP:
                raise FlaggedArchive(flags)
            is_trusted = word == TRUST
            plan = plan if is_trusted else _hold_back(plan, flags)
            different = plan.of(DIFFERENT)
        is_host = not os.path.lexists(root / ".truekeep" / "host")
        Workspace.init(root, is_bare=True, now=now)
        with Workspace.open(root, now=now) as workspace, workspace.writing("import") as books:
            new = plan.of(NEW)
            with arriving(workspace.path, [file.line.path for file in new]):
                count = _take_in(books, new, tell, executable=is_trusted)
            if new:
                _note_new(books, new, source.name, workspace.stamp())
            if replace:
                _replace(books, different, source.name, workspace.stamp(), tell)
                _set_times(books, plan.of(SAME))
            if is_trusted:  # bits that an earlier import left out; a file of one's own that lost them is left as it is
                again = [*(different if replace else ()), *(plan.of(SAME) if not is_own else ())]
                plan = _tell_executable(plan, _make_executable(books, again))
            if agent:
                _put_agent_id(workspace.path, agent)
    return done._replace(plan=plan, replaced=len(different) if replace else 0, written=count, is_host=is_host)


def _hold_back(plan: ImportPlan, flags: Sequence[Flag]) -> ImportPlan:
    """A plan in which flagged files stay in the archive, and what is there stays as it is."""
    why: dict[str, list[str]] = {}
    for flag in flags:
        if flag.holds_back:
            why.setdefault(flag.path, []).append(flag.what)
    held = {path: "; ".join(dict.fromkeys(words)) for path, words in why.items()}
    return plan._replace(
        files=tuple(
            file._replace(state=HELD, why=held[file.line.path]) if file.line.path in held else file
            for file in plan.files
        )
    )


def _how_many(found: Sequence[ImportedFile]) -> str:
    return "1 file is" if len(found) == 1 else f"{len(found)} files are"


def _check_agent(root: Path, agent: str | None, *, replace: bool) -> None:
    with suppress(OSError, UnicodeDecodeError):
        here = (root / AGENT_FILE).read_text(encoding="utf-8").strip()
        if here and agent and here.lower() != agent and not replace:
            raise BadInput(
                f"{root} is of agent {here}, the archive of {agent}",
                hint="import it into a folder of its own, or say --replace",
            )


def _check_replaceable(root: Path, files: Sequence[ImportedFile]) -> None:
    """Refuse before anything is written: what is too large for the ledger, and what is damaged."""
    for file in files:
        size = sum(map(len, file.pieces()))
        if max(size, os.lstat(root / file.line.path).st_size) > FILE_LIMIT:
            raise BadInput(
                f"{file.line.path} is too large to be replaced; nothing was written",
                hint="move yours away and run it again, or leave it with --keep",
            )


def _take_in(books: MemoryTransaction, files: Sequence[ImportedFile], tell: Tell, *, executable: bool) -> int:
    def incoming() -> Iterator[Incoming]:
        fresh = int(datetime.now(UTC).timestamp() * 1e9)
        for file in files:
            at = file.line.mtime_ns if file.line.mtime_ns != NO_TIME else fresh
            mode = sane_mode(file.line.mode)
            yield Incoming(file.line.path, file.pieces(), mode if executable else mode & ~0o111, at)

    try:
        count = books.vault.take_in(incoming(), lambda number: tell("files", number, len(files)))
    except WriteFailed as failure:
        why = failure.error.strerror or str(failure.error)
        raise StorageFailed(f"{failure.path} cannot be written: {why}", hint="nothing new was written") from failure
    except ChangedSince as error:
        raise EditedSince(f"{error} came to be meanwhile", hint="look at it and run it again") from error
    tell("files", len(files), len(files))
    return count


def _note_new(books: MemoryTransaction, files: Sequence[ImportedFile], name: str, at: str) -> None:
    """New files are told of, not kept: the ledger would have each of them a second time."""
    shown, count = printable(name)[:200], len(files)
    note_arrived(Path(books.vault.root), shown, at, {file.line.path: file.line.sha256 for file in files})
    note = f"{shown}: {count:,} new file{'' if count == 1 else 's'}"
    books.act(Staging(books.vault), LedgerEntry(at=at, verb="imported", actor=person(), note=note))


def _replace(books: MemoryTransaction, files: Sequence[ImportedFile], name: str, at: str, tell: Tell) -> None:
    """Files that differ, through the books, so that the old bytes can be had again."""
    number = 0
    for batch in _batches(files):
        tell("replacing", number, len(files))
        staging = Staging(books.vault)
        for file in batch:
            staging.put(file.line.path, b"".join(file.pieces()), 0)
        books.act(staging, LedgerEntry(at=at, verb="imported", actor=person(), note=printable(name)[:200]))
        _set_times(books, batch)
        number += len(batch)
    tell("replacing", len(files), len(files))


def _batches(files: Sequence[ImportedFile]) -> Iterator[list[ImportedFile]]:
    """Files that are replaced together: as many as memory should hold."""
    batch: list[ImportedFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _BATCH or size + file.line.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.line.size
    if batch:
        yield batch


def _set_times(books: MemoryTransaction, files: Sequence[ImportedFile]) -> None:
    for file in files:
        books.vault.forget_folders()
        if file.line.mtime_ns != NO_TIME:
            books.vault.set_time(file.line.path, file.line.mtime_ns)


def _make_executable(books: MemoryTransaction, files: Sequence[ImportedFile]) -> int:
    """Give files that were there the executable bits that the archive has; how many had to be given any."""
    books.vault.forget_folders()
    wanted = [(file.line.path, bits) for file in files if (bits := sane_mode(file.line.mode) & 0o111)]
    return sum(books.vault.add_mode(path, bits) for path, bits in wanted)


def _tell_executable(plan: ImportPlan, count: int) -> ImportPlan:
    told = (f"{count:,} file{'' if count == 1 else 's'} made executable, as in the archive",) if count else ()
    return plan._replace(notes=(*plan.notes, *told))


def _put_agent_id(root: Path, agent: str) -> None:
    with suppress(FileNotFoundError):
        if (root / AGENT_FILE).read_text(encoding="utf-8", errors="replace").strip().lower() == agent:
            return
    folder = file_io.open_root(str(root))
    try:
        file_io.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
        os.replace(file_io.temporary_name(AGENT_FILE), AGENT_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        file_io.discard(folder, AGENT_FILE)
        os.close(folder)
