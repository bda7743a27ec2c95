"""Disconnects: restores every file to its state before connect, or only removes truekeep's part if it was edited since.

Harnesses come first, through their own commands. Those reformat their files, so afterwards the old bytes are restored
if nothing else changed. User edits are never lost: when in doubt, a file stays as the harness left it, and its backup
is named. An inbox with handoffs stays.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from truekeep.core import file_io
from truekeep.core.harness_files import UnreadableHarnessFile, read_bytes
from truekeep.core.harness_paths import Homes
from truekeep.core.model import WRITERS
from truekeep.core.repository import find_top
from truekeep.handoffs.inbox import PROCESSED, is_handoff_name, keep_untracked
from truekeep.integrations.harnesses.apply import ConnectReport, discard_leftovers, real_path, write_file
from truekeep.integrations.harnesses.base import HarnessCommand, run_call
from truekeep.integrations.harnesses.installed import UNKNOWN, InstalledFile, InstallRecord, Keep, digest_of
from truekeep.integrations.harnesses.instruction_block import IGNORE_MARKS, RULE_MARKS
from truekeep.integrations.harnesses.plan import (
    HARNESSES,
    USER,
    ConnectProblem,
    FileRefused,
    Now,
    find_programs,
    is_linked,
    read_now,
    read_within,
    refuse_linked,
    rule_bounds,
)
from truekeep.integrations.harnesses.plugin_files import MARKET_FILES
from truekeep.text.managed_block import BlockMarkers, BrokenBlock, cut_block

Way = Literal["put back", "take out", "remove", "leave"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """The plan for one file."""

    path: Path
    way: Way
    now: Now
    after: bytes | None = None  # None: the file is removed
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Everything that disconnect will do, in this order: commands, configurations, files, folders."""

    owners: frozenset[str]
    harnesses: tuple[str, ...] = ()  # no longer needed by any place
    calls: tuple[HarnessCommand, ...] = ()
    configs: tuple[Path, ...] = ()
    returns: tuple[Return, ...] = ()
    folders: tuple[Path, ...] = ()
    inboxes: tuple[Path, ...] = ()  # of the places, whoever created them
    has_leftovers: bool = False  # a connect was killed before it could record anything
    problems: tuple[ConnectProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        parts = (self.calls, self.configs, self.folders, self.owners, self.changes, self.has_leftovers)
        return not any(parts)

    @property
    def changes(self) -> tuple[Return, ...]:
        return tuple(item for item in self.returns if item.way != "leave")


def plan_disconnect(
    roots: Sequence[Path | None],
    named: Sequence[str],
    homes: Homes,
    record: InstallRecord,
    *,
    everything: bool,
    cards: Path | None,
    writers: Mapping[str, str] = WRITERS,
) -> Leave:
    """Plan disconnecting these harnesses in these places; None is the user's own files."""
    chosen = tuple(named) or tuple(HARNESSES)
    leaving = {f"{name}@{root or USER}" for name in chosen for root in roots}
    if everything:
        known = record.owners.union(*(kept.owners for kept in record.files.values()))
        leaving |= {owner for owner in known if owner.partition("@")[0] in chosen}
    free = tuple(name for name in chosen if not record.owners_left(name, leaving))
    problems: list[ConnectProblem] = []
    notes: list[str] = []
    told = Path(record.cards) if record.cards else cards
    calls = list(_calls(free, homes, told, problems, notes))
    returns = list(_returns(leaving, homes, record, problems))
    known_roots = {Path(owner.partition("@")[2]) for owner in leaving if not owner.endswith(f"@{USER}")}
    for home in (*sorted(known_roots), None) if everything else roots:
        returns.extend(_unrecorded(home, chosen, homes, record, problems))
    configs = [
        path
        for name in free
        for path in map(real_path, HARNESSES[name].watched(homes))
        if str(path) in record.files and record.files[str(path)].owners <= leaving
    ]
    folders = sorted((Path(path) for path, owners in record.folders.items() if owners <= leaving), reverse=True)
    if record.owners - leaving:
        folders = [folder for folder in folders if not homes.keep.is_relative_to(folder)]  # the record is still needed
    return Leave(
        owners=frozenset(leaving & record.owners),
        harnesses=free,
        calls=tuple(calls),
        configs=tuple(configs),
        returns=tuple(returns),
        folders=tuple(folders),
        inboxes=tuple(
            home / inbox for home in sorted(known_roots) for inbox in _left_by(home, leaving, record, writers)
        ),
        has_leftovers=not record.owners and homes.keep.exists(),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _left_by(root: Path, leaving: set[str], record: InstallRecord, writers: Mapping[str, str]) -> list[str]:
    """The inboxes of a repository that no connected harness uses; other writers' inboxes go with the last harness."""
    is_last = not any(owner.partition("@")[2] == str(root) for owner in record.owners - leaving)
    return [
        folder
        for writer, folder in writers.items()
        if (f"{writer}@{root}" in leaving if writer in HARNESSES else is_last)
    ]


def _calls(
    free: Iterable[str], homes: Homes, cards: Path | None, problems: list[ConnectProblem], notes: list[str]
) -> Iterator[HarnessCommand]:
    programs = find_programs(homes)
    for name in free:
        try:
            calls = HARNESSES[name].plan_leave(programs[name] or name, homes, cards)
        except UnreadableHarnessFile as error:
            problems.append(ConnectProblem(str(error.path), error.what, "correct the file, then disconnect again"))
            continue
        if calls and programs[name] is None:
            notes.append(f"{name} is no longer installed; its files are restored if nothing else changed")
        elif calls:
            yield from calls


def _returns(
    leaving: set[str], homes: Homes, record: InstallRecord, problems: list[ConnectProblem]
) -> Iterator[Return]:
    keep = Keep(homes.keep)
    for name, kept in record.files.items():
        if kept.kind == "config" or not kept.owners <= leaving:
            continue
        path = Path(name)
        try:
            now = read_now(path)
            if now.data is not None and digest_of(now.data) != kept.before:
                item = _way_back(path, now, now.data, kept, keep)
                if item.way in ("put back", "take out"):
                    refuse_linked(now)
                yield item
        except (FileRefused, BrokenBlock) as error:
            problems.append(ConnectProblem(name, f"{error}", "remove truekeep's lines by hand"))


def _way_back(path: Path, now: Now, data: bytes, kept: InstalledFile, keep: Keep) -> Return:
    if digest_of(data) == kept.after and kept.before is None:
        return Return(path=path, way="remove", now=now)
    before = keep.saved(kept.before) if kept.before else None
    if digest_of(data) == kept.after and before is not None:
        return Return(path=path, way="put back", now=now, after=before)
    if kept.kind == "own":
        return Return(path=path, way="leave", now=now, why="it was edited since")
    bare = cut_block(cut_block(data, RULE_MARKS), IGNORE_MARKS)
    if bare == data:
        return Return(path=path, way="leave", now=now, after=data, why="truekeep's part is no longer in it")
    if not bare and kept.before is None:
        return Return(path=path, way="remove", now=now)
    return Return(path=path, way="take out", now=now, after=bare)


def _unrecorded(
    root: Path | None, chosen: Sequence[str], homes: Homes, record: InstallRecord, problems: list[ConnectProblem]
) -> Iterator[Return]:
    """truekeep's blocks that are not in the record: it was lost, or another machine connected this repository."""
    paths: dict[Path, tuple[BlockMarkers, tuple[Path, ...]]] = {}
    for name in chosen:
        path = HARNESSES[name].rule_path(homes, root)
        if path is not None:
            paths[path] = RULE_MARKS, rule_bounds(name, path, root, homes)
    if root and {"claude", "codex"} <= set(chosen):
        paths[root / ".gitignore"] = IGNORE_MARKS, (root,)
    seen = set(record.files)
    for path, (marks, bounds) in paths.items():
        if str(real_path(path)) in seen:
            continue
        seen.add(str(real_path(path)))
        try:
            now = read_within(path, bounds)
            if now.data and (bare := cut_block(now.data, marks)) != now.data:
                if is_linked(now.real):
                    what = "it contains truekeep's block and has a second hard link, which replacing it would break"
                    problems.append(ConnectProblem(str(path), what, "remove truekeep's lines by hand"))
                    continue
                yield Return(path=path, way="take out", now=now, after=bare)
        except BrokenBlock as error:
            problems.append(ConnectProblem(str(path), f"truekeep's block is broken: {error}", "remove it by hand"))
        except FileRefused:
            continue


def apply_leave(leave: Leave, homes: Homes, *, log: Callable[[str], None]) -> ConnectReport:
    """Carry out a disconnect plan. Running it again after a crash is safe."""
    report = ConnectReport(problems=list(leave.problems))
    keep = Keep(homes.keep)
    with keep.lock():
        record = keep.read()
        discard_leftovers(keep, record)
        stay: set[str] = set()  # backups that are still needed
        for name in leave.harnesses:
            calls = [call for call in leave.calls if call.harness == name]
            configs = [path for path in map(real_path, HARNESSES[name].watched(homes)) if path in leave.configs]
            if _part(name, calls, configs, homes, keep, record, report, stay, log):
                for path in configs:
                    record.files.pop(str(path), None)
                _remove_trees(name, homes, report)
                keep.write(record)
        for item in leave.returns:
            if _bring(item, report):
                record.files.pop(str(item.now.real), None)
        _release(record, leave.owners, stuck={problem.where for problem in report.problems})
        keep.write(record)
        above = [folder for folder in leave.folders if keep.path.is_relative_to(folder)]
        _remove_folders([folder for folder in leave.folders if folder not in above], record)
        keep.write(record)
        for inbox in leave.inboxes:
            _leave_inbox(inbox, report)
        if not record.owners and not record.files:
            keep.forget(keep.names() - stay)  # files that could not be restored keep their backup
            keep.clear()
            _remove_folders(above, record)
    return report


def _part(
    name: str,
    calls: Sequence[HarnessCommand],
    configs: Sequence[Path],
    homes: Homes,
    keep: Keep,
    record: InstallRecord,
    report: ConnectReport,
    stay: set[str],
    log: Callable[[str], None],
) -> bool:
    """Remove truekeep from one harness and restore its files. True on success."""
    try:
        first = {path: read_bytes(path) for path in configs}
    except UnreadableHarnessFile as error:
        report.problems.append(ConnectProblem(str(error.path), error.what, "correct it, then disconnect again"))
        return False
    for call in calls:
        log(call.shown)
        wrong = run_call(call, homes)
        if wrong:
            hint = "run it by hand to see more, then disconnect again"
            report.problems.append(ConnectProblem(call.shown, wrong, hint))
            return False
        report.done.append(f"ran {call.shown}")
    for path in configs:
        try:
            _restore(name, path, first[path], keep, record.files[str(path)], report, stay)
        except (FileRefused, UnreadableHarnessFile, file_io.ChangedSince, OSError) as error:
            what = "it was changed since" if isinstance(error, file_io.ChangedSince) else str(error)
            report.problems.append(ConnectProblem(str(path), what, "disconnect again"))
            return False
    return True


def _restore(
    name: str, path: Path, first: bytes | None, keep: Keep, kept: InstalledFile, report: ConnectReport, stay: set[str]
) -> None:
    """Restore a harness's file if nothing else changed it; else only remove truekeep's part."""
    now = read_now(path)
    if now.data is None:
        return
    harness = HARNESSES[name]
    rest = harness.cut(path, now.data)
    before = keep.saved(kept.before) if kept.before not in (None, UNKNOWN) else None
    is_untouched = first is not None and digest_of(first) == kept.after
    known = b"{}" if kept.before is None and path.suffix == ".json" else before or b""
    is_same = kept.before != UNKNOWN and (before is not None or kept.before is None)
    if is_linked(now.real):
        rest, is_same = now.data, False  # stays as the harness wrote it, with its second hard link
        if now.data == before:
            return
    if is_same and (is_untouched or harness.says_the_same(path, known, rest)):
        if before is None:
            _remove_file(now)
            report.done.append(f"removed {path}")
        elif before != now.data or (now.stamp and now.stamp.mode != kept.mode):
            write_file(now, before, mode=kept.mode)
            report.done.append(f"put {path} back")
        return
    if rest != now.data:
        write_file(now, rest)
        report.done.append(f"removed truekeep from {path}")
    if kept.before not in (None, UNKNOWN):
        stay.add(kept.before or "")
        why = "it has a second hard link" if is_linked(now.real) else "it was changed since"
        report.done.append(f"left {path} as it is, because {why}; backup: {_shown(keep, kept)}")


def _shown(keep: Keep, kept: InstalledFile) -> str:
    return str(keep.backup_path(kept.before or ""))


def _bring(item: Return, report: ConnectReport) -> bool:
    """Carry out the plan for one file. True if the record may forget it."""
    if item.way == "leave":
        report.done.append(f"left {item.path}: {item.why}")
        return True
    try:
        if item.after is None:
            _remove_file(item.now)
        else:
            write_file(item.now, item.after)
    except file_io.ChangedSince:
        report.problems.append(ConnectProblem(str(item.path), "it was changed since", "disconnect again"))
        return False
    except OSError as error:
        report.problems.append(
            ConnectProblem(str(item.path), error.strerror or "", "correct it, then disconnect again")
        )
        return False
    verb = {"put back": "restored", "take out": "removed truekeep's part from", "remove": "removed"}[item.way]
    report.done.append(f"{verb} {item.path}")
    return True


def _remove_file(now: Now) -> None:
    if now.stamp is None:
        return
    folder = file_io.open_root(str(now.real.parent))
    try:
        file_io.remove(folder, now.real.name, now.stamp, shown=str(now.real))
        os.fsync(folder)
    finally:
        os.close(folder)


def _release(record: InstallRecord, owners: frozenset[str], *, stuck: set[str]) -> None:
    """Remove the owners; files that could not be restored keep their entry, so that the next run tries again."""
    record.owners -= owners
    for path, kept in list(record.files.items()):
        if kept.kind == "config" or not kept.owners <= owners:
            kept.owners -= owners
        elif path not in stuck:
            del record.files[path]
    for users in record.folders.values():
        users -= owners


def _remove_trees(name: str, homes: Homes, report: ConnectReport) -> None:
    for tree in HARNESSES[name].trees(homes):
        if tree.is_dir() and not tree.is_symlink() and _is_ours(tree):
            shutil.rmtree(tree, ignore_errors=True)
            report.done.append(f"removed {tree}")


def _is_ours(tree: Path) -> bool:
    """True if a cache contains only copies of the plugin and the harness's own markers."""
    names = {Path(name).name for name in MARKET_FILES}
    return all(path.name in names or path.name.startswith(".") for path in tree.rglob("*") if not path.is_dir())


def _remove_folders(folders: Sequence[Path], record: InstallRecord) -> None:
    """Remove folders that connect created and that are empty, deepest first."""
    for folder in folders:
        with suppress(OSError):
            (folder / PROCESSED).rmdir()
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            pass  # not empty
        record.folders.pop(str(folder), None)


def _leave_inbox(folder: Path, report: ConnectReport) -> None:
    """Report an inbox that stays, and give it a .gitignore: the repository's ignore lines were removed."""
    waiting, filed = (sum(map(is_handoff_name, _names(place))) for place in (folder, folder / PROCESSED))
    if not waiting and not filed:
        return
    held = [f"handoffs wait in it ({waiting})"] if waiting else []
    held += [f"it has filed handoffs ({filed})"] if filed else []
    report.done.append(f"left {folder}: {', '.join(held)}")
    if find_top(folder) is None:
        return
    try:
        keep_untracked(folder)
    except OSError as error:
        hint = "add this folder to .gitignore, or `git add` will add its handoffs"
        report.problems.append(ConnectProblem(str(folder), error.strerror or "", hint))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
