"""Carries out a connect plan: record and back up what will change, write files, then run the harnesses' commands.

The record is written first, so that disconnect can undo a run that was killed at any point. Every step may be repeated.
A file that changed since the plan was made is left alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from truekeep.core import file_io
from truekeep.core.harness_files import read_bytes
from truekeep.core.harness_paths import Homes
from truekeep.integrations.harnesses.base import HarnessCommand, run_call
from truekeep.integrations.harnesses.installed import UNKNOWN, InstalledFile, InstallRecord, Keep, digest_of
from truekeep.integrations.harnesses.plan import HARNESSES, ConnectPlan, ConnectProblem, Now, PlannedEdit
from truekeep.text.managed_block import cut_block


@dataclass(slots=True)
class ConnectReport:
    """What was done, and what failed."""

    done: list[str] = field(default_factory=list)
    problems: list[ConnectProblem] = field(default_factory=list)


def apply_plan(plan: ConnectPlan, homes: Homes, *, log: Callable[[str], None]) -> ConnectReport:
    """Carry a plan out. Running it again after a crash is safe."""
    report = ConnectReport(problems=list(plan.problems))
    keep = Keep(homes.keep)
    with keep.lock():
        record = keep.read()
        discard_leftovers(keep, record)
        _note(plan, homes, keep, record)
        keep.write(record)
        for edit in plan.changes:
            try:
                write_file(edit.now, edit.after)
            except file_io.ChangedSince:
                hint = "see the plan again: truekeep connect --dry-run"
                report.problems.append(
                    ConnectProblem(str(edit.path), "it was changed since, so it was left alone", hint)
                )
                continue
            except OSError as error:
                report.problems.append(
                    ConnectProblem(str(edit.path), error.strerror or "", "check the permissions and the disk")
                )
                continue
            report.done.append(f"wrote {edit.path}")
        if plan.inboxes:
            for folder in plan.inboxes.missing:
                path = plan.inboxes.root / folder
                try:
                    _make_inbox(plan.inboxes.root, folder)
                except OSError as error:
                    report.problems.append(
                        ConnectProblem(str(path), error.strerror or "", "check the permissions and the disk")
                    )
                    continue
                report.done.append(f"made {path}")
        for harness in dict.fromkeys(call.harness for call in plan.calls):
            _join(harness, [call for call in plan.calls if call.harness == harness], homes, record, report, log)
            keep.write(record)
    return report


def _note(plan: ConnectPlan, homes: Homes, keep: Keep, record: InstallRecord) -> None:
    """Record everything that this plan will change, with its current state."""
    record.owners |= plan.owners
    record.cards = str(plan.cards) if plan.cards else record.cards
    for folder in keep.made:
        record.folders.setdefault(str(folder), set()).update(plan.owners)
    for edit in plan.edits:
        _note_edit(edit, keep, record)
        note_folders(record, edit.now.real, edit.owners)
    calling = {call.harness for call in plan.calls}
    for name in plan.harnesses:
        owners = {owner for owner in plan.owners if owner.startswith(f"{name}@")}
        paths = [*map(real_path, HARNESSES[name].watched(homes)), *HARNESSES[name].trees(homes)]
        for path in paths:
            note_folders(record, path, owners, will_make=name in calling)
        for path in HARNESSES[name].watched(homes):
            if name in calling:
                _note_watched(path, keep, record)
            if (kept := record.files.get(str(real_path(path)))) is not None:
                kept.owners |= owners
    if plan.inboxes:
        for inbox in plan.inboxes.folders:
            note_folders(record, plan.inboxes.root / inbox / "handoff", plan.inboxes.owners)


def _note_edit(edit: PlannedEdit, keep: Keep, record: InstallRecord) -> None:
    now = edit.now.data
    bare = now if now is None or edit.marks is None else cut_block(now, edit.marks)
    kept = record.files.get(str(edit.now.real))
    if kept is None:
        kept = record.files[str(edit.now.real)] = InstalledFile(kind=edit.kind)
        if bare is not None and edit.kind == "block":
            kept.before = keep.save(bare) if bare == now else UNKNOWN
        elif bare is not None and bare != edit.after:
            kept.before = keep.save(bare)
    elif now is None:
        kept.before = None
    elif edit.kind == "block" and digest_of(now) not in (kept.after, kept.before):
        kept.before = keep.save(bare or b"")  # edited since: back up this version
    if now is not None and edit.is_change:
        keep.save(now)
    kept.owners |= edit.owners
    kept.after = digest_of(edit.after)


def _note_watched(path: Path, keep: Keep, record: InstallRecord) -> None:
    real = real_path(path)
    now = read_bytes(real)
    kept = record.files.get(str(real))
    if kept is None:
        kept = record.files[str(real)] = InstalledFile(kind="config", before=None if now is None else keep.save(now))
        kept.mode = stat.S_IMODE(real.stat().st_mode) if now is not None else None
    elif now is None:
        kept.before = None
    elif digest_of(now) not in (kept.after, kept.before):
        keep.save(now)
        kept.before = UNKNOWN
    kept.after = UNKNOWN


def note_folders(record: InstallRecord, path: Path, owners: Iterable[str], *, will_make: bool = True) -> None:
    """Record the folders above a path that will be created, and those that an earlier connect created."""
    for folder in path.parents:
        if str(folder) in record.folders or (will_make and not os.path.lexists(folder)):
            record.folders.setdefault(str(folder), set()).update(owners)
        elif os.path.lexists(folder):
            return


def _join(
    name: str,
    calls: list[HarnessCommand],
    homes: Homes,
    record: InstallRecord,
    report: ConnectReport,
    log: Callable[[str], None],
) -> None:
    """Run one harness's commands until one fails, then record the state of its files."""
    for call in calls:
        log(call.shown)
        wrong = run_call(call, homes)
        if wrong:
            hint = f"run it by hand to see more, then `truekeep connect --harness {name}` again"
            report.problems.append(ConnectProblem(call.shown, wrong, hint))
            return
        report.done.append(f"ran {call.shown}")
    for path in HARNESSES[name].watched(homes):
        now = read_bytes(real_path(path))
        if now is None:
            record.files.pop(str(real_path(path)), None)
        else:
            record.files[str(real_path(path))].after = digest_of(now)


def real_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


def write_file(now: Now, data: bytes, *, mode: int | None = None) -> None:
    """Replace exactly the file that was read, atomically. Creates missing folders."""
    now.real.parent.mkdir(parents=True, exist_ok=True)
    folder = file_io.open_root(str(now.real.parent))
    try:
        file_io.write_beside(folder, now.real.name, data, mode=mode or (now.stamp.mode if now.stamp else None))
        try:
            if now.stamp is None:
                file_io.put_new(folder, now.real.name, shown=str(now.real))
            else:
                file_io.put_over(folder, now.real.name, now.stamp, shown=str(now.real))
        except file_io.ChangedSince:
            file_io.discard(folder, now.real.name)
            raise
        os.fsync(folder)
    finally:
        os.close(folder)


def discard_leftovers(keep: Keep, record: InstallRecord) -> None:
    """Remove temporary files of a killed run, after backing up their content if needed."""
    for path in map(Path, record.files):
        left = path.with_name(file_io.temporary_name(path.name))
        if left.is_file() and not left.is_symlink():
            keep.save(left.read_bytes())
            left.unlink()


def _make_inbox(root: Path, folder: str) -> None:
    above = file_io.open_root(str(root))
    for part in folder.split("/"):
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=above)
        try:
            inner = file_io.open_folder(above, part, shown=str(root / folder))
        finally:
            os.close(above)
        above = inner
    os.close(above)
