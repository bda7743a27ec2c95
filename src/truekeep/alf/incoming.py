"""An archive put into a workspace. Nothing that differs is overwritten unless that is asked for.

New files come all together and are told of; what is replaced goes through the books, so that it can be had again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep import disk
from truekeep.alf.archive_file import opened, raise_problems
from truekeep.alf.container import Problem
from truekeep.alf.edition import Tell
from truekeep.alf.files import NO_TIME, sane_mode
from truekeep.alf.ids import AGENT_FILE
from truekeep.alf.restore import BLOCKED, DIFFERENT, NEW, SAME, Plan, Planned, plan_import
from truekeep.alf.snapshot import Snapshot
from truekeep.arriving import arriving, note_arrived
from truekeep.disk import ChangedSince
from truekeep.errors import BadInput, EditedSince, StorageFailed
from truekeep.host import person
from truekeep.ledger import Entry
from truekeep.vault import FILE_LIMIT, Incoming, Staging, WriteFailed
from truekeep.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.books import Books

_BATCH, _BATCH_BYTES = 64, 16 << 20  # files that are replaced together


class Imported(NamedTuple):
    """What an import did, or would do."""

    root: Path
    agent: str
    plan: Plan
    problems: tuple[Problem, ...]  # of lines and entries that were left behind
    replaced: int
    written: int
    is_host: bool = False  # whether this machine became the canonical host of it, as there was none here


def import_archive(
    source: Path,
    root: Path,
    *,
    replace: bool = False,
    keep: bool = False,
    dry_run: bool = False,
    salvage: bool = False,
    large: bool = False,
    identities: Sequence[str] = (),
    now: Callable[[], datetime] | None = None,
    tell: Tell = lambda *_: None,
) -> Imported:
    """Put an archive into a workspace. Nothing that differs is overwritten unless that is asked for."""
    problems: list[Problem] = []
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
        different = plan.of(DIFFERENT)
        done = Imported(root, agent or "", plan, tuple(dict.fromkeys(problems)), 0, 0)
        if dry_run:
            return done
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
        is_host = not os.path.lexists(root / ".truekeep" / "host")
        Workspace.init(root, is_bare=True, now=now)
        with Workspace.open(root, now=now) as workspace, workspace.writing("import") as books:
            new = plan.of(NEW)
            with arriving(workspace.path, [file.line.path for file in new]):
                count = _take_in(books, new, tell)
            if new:
                _note_new(books, new, source.name, workspace.stamp())
            if replace:
                _replace(books, different, source.name, workspace.stamp(), tell)
                _set_times(books, plan.of(SAME))
            if agent:
                _put_agent_id(workspace.path, agent)
    return done._replace(replaced=len(different) if replace else 0, written=count, is_host=is_host)


def _how_many(found: Sequence[Planned]) -> str:
    return "1 file is" if len(found) == 1 else f"{len(found)} files are"


def _check_agent(root: Path, agent: str | None, *, replace: bool) -> None:
    with suppress(OSError, UnicodeDecodeError):
        here = (root / AGENT_FILE).read_text(encoding="utf-8").strip()
        if here and agent and here.lower() != agent and not replace:
            raise BadInput(
                f"{root} is of agent {here}, the archive of {agent}",
                hint="import it into a folder of its own, or say --replace",
            )


def _check_replaceable(root: Path, files: Sequence[Planned]) -> None:
    """Refuse before anything is written: what is too large for the ledger, and what is damaged."""
    for file in files:
        size = sum(map(len, file.pieces()))
        if max(size, os.lstat(root / file.line.path).st_size) > FILE_LIMIT:
            raise BadInput(
                f"{file.line.path} is too large to be replaced; nothing was written",
                hint="move yours away and run it again, or leave it with --keep",
            )


def _take_in(books: Books, files: Sequence[Planned], tell: Tell) -> int:
    def incoming() -> Iterator[Incoming]:
        fresh = int(datetime.now(UTC).timestamp() * 1e9)
        for file in files:
            at = file.line.mtime_ns if file.line.mtime_ns != NO_TIME else fresh
            yield Incoming(file.line.path, file.pieces(), sane_mode(file.line.mode), at)

    try:
        count = books.vault.take_in(incoming(), lambda number: tell("files", number, len(files)))
    except WriteFailed as failure:
        why = failure.error.strerror or str(failure.error)
        raise StorageFailed(f"{failure.path} cannot be written: {why}", hint="nothing new was written") from failure
    except ChangedSince as error:
        raise EditedSince(f"{error} came to be meanwhile", hint="look at it and run it again") from error
    tell("files", len(files), len(files))
    return count


def _note_new(books: Books, files: Sequence[Planned], name: str, at: str) -> None:
    """New files are told of, not kept: the ledger would have each of them a second time."""
    from truekeep.hidden import printable

    shown, count = printable(name)[:200], len(files)
    note_arrived(Path(books.vault.root), shown, at, {file.line.path: file.line.sha256 for file in files})
    note = f"{shown}: {count:,} new file{'' if count == 1 else 's'}"
    books.act(Staging(books.vault), Entry(at=at, verb="imported", actor=person(), note=note))


def _replace(books: Books, files: Sequence[Planned], name: str, at: str, tell: Tell) -> None:
    """Files that differ, through the books, so that the old bytes can be had again."""
    from truekeep.hidden import printable

    number = 0
    for batch in _batches(files):
        tell("replacing", number, len(files))
        staging = Staging(books.vault)
        for file in batch:
            staging.put(file.line.path, b"".join(file.pieces()), 0)
        books.act(staging, Entry(at=at, verb="imported", actor=person(), note=printable(name)[:200]))
        _set_times(books, batch)
        number += len(batch)
    tell("replacing", len(files), len(files))


def _batches(files: Sequence[Planned]) -> Iterator[list[Planned]]:
    """Files that are replaced together: as many as memory should hold."""
    batch: list[Planned] = []
    size = 0
    for file in files:
        if batch and (len(batch) == _BATCH or size + file.line.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.line.size
    if batch:
        yield batch


def _set_times(books: Books, files: Sequence[Planned]) -> None:
    for file in files:
        books.vault.forget_folders()
        if file.line.mtime_ns != NO_TIME:
            books.vault.set_time(file.line.path, file.line.mtime_ns)


def _put_agent_id(root: Path, agent: str) -> None:
    with suppress(FileNotFoundError):
        if (root / AGENT_FILE).read_text(encoding="utf-8", errors="replace").strip().lower() == agent:
            return
    folder = disk.open_root(str(root))
    try:
        disk.write_beside(folder, AGENT_FILE, f"{agent}\n".encode())
        os.replace(disk.temporary_name(AGENT_FILE), AGENT_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        disk.discard(folder, AGENT_FILE)
        os.close(folder)
