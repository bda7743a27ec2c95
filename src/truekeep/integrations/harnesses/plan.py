"""Plans what `connect` changes: files, folders and harness commands. Touches nothing.

A harness is set up once per machine, whatever the number of repositories. A place (one repository, or the user) gets
the closeout rule, and a repository also its inboxes and ignore lines. A file that cannot be changed safely is reported
as a problem and does not stop the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.harness_files import UnreadableHarnessFile
from truekeep.core.harness_paths import Homes
from truekeep.integrations.harnesses import claude, codex, openclaw
from truekeep.integrations.harnesses.base import Harness, HarnessCommand, find_program
from truekeep.integrations.harnesses.installed import InstallRecord, Kind
from truekeep.integrations.harnesses.instruction_block import (
    CHECKPOINT_RULE,
    IGNORE_MARKS,
    RULE_MARKS,
    find_open_fence,
    render_ignored,
    render_rule,
)
from truekeep.integrations.harnesses.plugin_files import MARKET_FILES
from truekeep.text.managed_block import BlockMarkers, BrokenBlock, find_block, put_block
from truekeep.text.unified_diff import difference

HARNESSES: Mapping[str, Harness] = {"claude": claude, "codex": codex, "openclaw": openclaw}
USER = "user"
MAX_FILE_BYTES = 10_000_000
_IMPORT = re.compile(rb"^\s*@(?:\./)?AGENTS\.md\s*$", re.MULTILINE)


class Wish(NamedTuple):
    """What to connect, and where."""

    root: Path | None  # the repository; None for the user's own files
    named: tuple[str, ...]  # harnesses given by name
    is_named_place: bool  # --project or --user was given
    writers: Mapping[str, str]
    cards: Path | None  # this machine's cards, if it has a workspace

    @property
    def place(self) -> str:
        return str(self.root) if self.root else USER


class ConnectProblem(NamedTuple):
    """Something that cannot be done, and what to do about it."""

    where: str
    what: str
    hint: str = ""


class Now(NamedTuple):
    """A file's current state: its real path, bytes and stamp."""

    real: Path
    data: bytes | None
    stamp: file_io.FileStamp | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEdit:
    """A file that connect writes, unless it is already right."""

    path: Path
    now: Now
    after: bytes
    what: str
    kind: Kind
    marks: BlockMarkers | None
    owners: frozenset[str]

    @property
    def is_change(self) -> bool:
        return self.now.data != self.after

    @property
    def is_new(self) -> bool:
        return self.now.data is None

    @property
    def difference(self) -> tuple[str, ...]:
        return difference(self.now.data, self.after, self.path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInboxes:
    """Inboxes of one repository, relative to it; missing ones are created."""

    root: Path
    folders: tuple[str, ...]
    owners: frozenset[str]

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(folder for folder in self.folders if not (self.root / folder).is_dir())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectPlan:
    """Everything that connect will do, in this order: files, inboxes, commands."""

    place: str
    owners: frozenset[str]
    is_noted: bool  # the record has all of these owners
    cards: Path | None = None
    edits: tuple[PlannedEdit, ...] = ()
    inboxes: PlannedInboxes | None = None
    calls: tuple[HarnessCommand, ...] = ()
    rewritten: tuple[tuple[str, tuple[Path, ...]], ...] = ()  # user files that the commands change, by harness
    skipped: tuple[tuple[str, str], ...] = ()
    problems: tuple[ConnectProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[PlannedEdit, ...]:
        return tuple(edit for edit in self.edits if edit.is_change)

    @property
    def missing_folders(self) -> list[Path]:
        return [self.inboxes.root / folder for folder in self.inboxes.missing] if self.inboxes else []

    @property
    def is_empty(self) -> bool:
        return not self.changes and not self.calls and not (self.inboxes and self.inboxes.missing)

    @property
    def harnesses(self) -> tuple[str, ...]:
        return tuple(name for name in HARNESSES if f"{name}@{self.place}" in self.owners)


def find_programs(homes: Homes) -> dict[str, str | None]:
    return {name: find_program(harness.PROGRAM, homes) for name, harness in HARNESSES.items()}


def plan_connect(wish: Wish, homes: Homes, record: InstallRecord) -> ConnectPlan:
    """Plan everything that is still missing."""
    programs = find_programs(homes)
    chosen, skipped = _choose(wish, programs, homes)
    owners = frozenset(f"{name}@{wish.place}" for name in chosen)
    problems: list[ConnectProblem] = []
    edits: list[PlannedEdit] = []
    calls: list[HarnessCommand] = []
    notes: list[str] = []
    for name in chosen:
        if programs[name] is None:
            continue
        owner = frozenset((f"{name}@{wish.place}",))
        files = {**bundle_files(homes), **HARNESSES[name].files(homes)}
        try:
            standing = HARNESSES[name].look(homes, wish.cards)
            ours = [_own(path, text, owner) for path, text in files.items()]
            joining = HARNESSES[name].plan_join(programs[name] or "", homes, wish.cards)
        except UnreadableHarnessFile as error:
            problems.append(ConnectProblem(str(error.path), error.what, "correct the file, then connect again"))
            continue
        except FileRefused as error:
            problems.append(ConnectProblem(str(homes.market), f"truekeep's own files: {error}", error.hint))
            continue
        edits.extend(ours)
        calls.extend(joining)
        if standing.note:
            notes.append(f"{name}: {standing.note}")
        if name == "openclaw" and openclaw.rule_path(homes, wish.root) is None:
            notes.append(
                "openclaw: its workspace has no SOUL.md yet; connect again when it has, for the checkpoint rule"
            )
    rules = list(_rules(wish, chosen, homes, problems))
    edits.extend(rules)
    notes.extend(dict.fromkeys(filter(None, map(_fence_note, rules))))
    inboxes = _inboxes(wish, chosen, problems) if wish.root else None
    if wish.root and (wish.root / ".git").exists() and inboxes:
        edits.extend(_ignored(wish, inboxes.owners, problems))
    return ConnectPlan(
        place=wish.place,
        owners=owners,
        is_noted=owners <= record.owners,
        cards=wish.cards,
        edits=tuple(_merged(edits)),
        inboxes=inboxes,
        calls=tuple(calls),
        rewritten=tuple(
            (name, tuple(HARNESSES[name].watched(homes))) for name in dict.fromkeys(call.harness for call in calls)
        ),
        skipped=tuple(skipped),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def _choose(wish: Wish, programs: Mapping[str, str | None], homes: Homes) -> tuple[list[str], list[tuple[str, str]]]:
    """Installed harnesses, and named ones if repository files can be written without them."""
    chosen: list[str] = []
    skipped: list[tuple[str, str]] = []
    for name in wish.named or HARNESSES:
        is_wanted = bool(wish.named) or wish.is_named_place
        if programs[name]:
            chosen.append(name)
        elif is_wanted and name != "openclaw" and (wish.root or _has_settings(name, homes)):
            chosen.append(name)
            rest = "only files in this repository are written" if wish.root else "only the closeout rule is written"
            skipped.append((name, f"{_absence(name, homes)}; {rest}"))
        else:
            skipped.append((name, _absence(name, homes)))
    return chosen, skipped


def _absence(name: str, homes: Homes) -> str:
    """Why a harness counts as not installed. One with settings may be an alias, or an editor's own copy."""
    return "not on PATH, though it has settings here" if _has_settings(name, homes) else "not installed"


def _has_settings(name: str, homes: Homes) -> bool:
    settings = {"claude": homes.claude, "codex": homes.codex}.get(name)  # OpenClaw's folder contains our workspace
    return settings is not None and settings.is_dir()


def bundle_files(homes: Homes) -> dict[Path, str]:
    return {homes.market / name: text for name, text in MARKET_FILES.items()}


def _own(path: Path, text: str, owners: frozenset[str]) -> PlannedEdit:
    now = read_now(path)
    what = "the plugin" if path.name != "handler.js" and path.name != "HOOK.md" else "OpenClaw's hook pack"
    return PlannedEdit(path=path, now=now, after=text.encode(), what=what, kind="own", marks=None, owners=owners)


def _rules(wish: Wish, chosen: Sequence[str], homes: Homes, problems: list[ConnectProblem]) -> Iterator[PlannedEdit]:
    closeout = render_rule((name, wish.writers[name]) for name in ("claude", "codex"))
    for name in chosen:
        path = HARNESSES[name].rule_path(homes, wish.root)
        if path is None:
            continue
        bounds = rule_bounds(name, path, wish.root, homes)
        is_openclaw = name == "openclaw"  # it keeps the memory: it leaves checkpoints, and no handoffs to itself
        text, what = (CHECKPOINT_RULE, "the checkpoint rule") if is_openclaw else (closeout, "the closeout rule")
        if name == "claude" and wish.root and "codex" in chosen and _imports_agents(path):
            path = codex.rule_path(homes, wish.root) or path  # CLAUDE.md imports it: one rule is enough
        owner = frozenset((f"{name}@{wish.place}",))
        edit = _block(path, text, RULE_MARKS, bounds, what, owner, problems)
        if edit is not None:
            yield edit


def rule_bounds(name: str, path: Path, root: Path | None, homes: Homes) -> tuple[Path, ...]:
    """The folders that a harness's instruction file may be in, links followed."""
    if name == "openclaw":
        return (path.parent,)
    return (root,) if root else (homes.home, homes.claude, homes.codex)


def _fence_note(edit: PlannedEdit) -> str:
    """A warning if the rule is inside an unclosed code fence, which agents may take for an example."""
    line = find_open_fence(edit.after, edit.marks) if edit.marks else None
    if line is None:
        return ""
    return f"{edit.path}: the code fence of line {line} is not closed, so the rule reads as code; close it"


def _imports_agents(path: Path) -> bool:
    try:
        data = file_io.read_head(path, 1_000_000, follow=True)
        return _IMPORT.search(data) is not None and find_block(data, RULE_MARKS) is None
    except BrokenBlock:
        return False


def _ignored(wish: Wish, owners: frozenset[str], problems: list[ConnectProblem]) -> Iterator[PlannedEdit]:
    assert wish.root is not None
    text = render_ignored(wish.writers.values())
    path = wish.root / ".gitignore"
    edit = _block(path, text, IGNORE_MARKS, (wish.root,), "ignore lines for the inboxes", owners, problems)
    if edit is None or (not edit.is_change and not edit.now.data):
        return
    lines = {line.strip().strip("/") for line in (edit.now.data or b"").decode("utf-8", "replace").splitlines()}
    has_block = edit.now.data is not None and find_block(edit.now.data, IGNORE_MARKS) is not None
    if has_block or not {line.strip("/") for line in text.splitlines()} <= lines:
        yield edit


def _block(
    path: Path,
    text: str,
    marks: BlockMarkers,
    bounds: Sequence[Path],
    what: str,
    owners: frozenset[str],
    problems: list[ConnectProblem],
) -> PlannedEdit | None:
    """Plan truekeep's block in a user's file; None if that is not safe."""
    try:
        now = read_within(path, bounds)
        after = put_block(now.data or b"", text, marks)
        if after != now.data:
            refuse_linked(now)
    except BrokenBlock as error:
        problems.append(
            ConnectProblem(str(path), f"truekeep's block is broken: {error}", "correct or remove the block by hand")
        )
        return None
    except FileRefused as error:
        problems.append(ConnectProblem(str(path), str(error), error.hint))
        return None
    return PlannedEdit(path=path, now=now, after=after, what=what, kind="block", marks=marks, owners=owners)


def _inboxes(wish: Wish, chosen: Sequence[str], problems: list[ConnectProblem]) -> PlannedInboxes | None:
    assert wish.root is not None
    folders = []
    owners = frozenset(f"{name}@{wish.place}" for name in chosen if name in wish.writers)
    for name in chosen:
        if name not in wish.writers:
            continue
        at = wish.root
        for part in wish.writers[name].split("/"):
            at = at / part
            if at.is_symlink() or (at.exists() and not at.is_dir()):
                what = "is a symlink, which ingest does not follow" if at.is_symlink() else "is not a folder"
                problems.append(ConnectProblem(str(at), what, "put a folder there"))
                break
        else:
            folders.append(wish.writers[name])
    return PlannedInboxes(root=wish.root, folders=tuple(folders), owners=owners) if owners else None


def _merged(edits: Sequence[PlannedEdit]) -> Iterator[PlannedEdit]:
    """One edit per file, for all its owners: CLAUDE.md and AGENTS.md may be one file, and the plugin is shared."""
    found: dict[tuple[Path, str], PlannedEdit] = {}
    for edit in edits:
        key = (edit.now.real, edit.what)
        first = found.get(key)
        owners = edit.owners | (first.owners if first else frozenset())
        base = first or edit
        found[key] = PlannedEdit(
            path=base.path,
            now=base.now,
            after=base.after,
            what=base.what,
            kind=base.kind,
            marks=base.marks,
            owners=owners,
        )
    yield from found.values()


class FileRefused(Exception):
    """A file that truekeep does not write, and what to do about it."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def read_within(path: Path, bounds: Sequence[Path]) -> Now:
    """Read a user's text file. A symlink is followed only inside the repository or the home folder."""
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(bound)) for bound in bounds):
        raise FileRefused(
            f"it is a symlink to {real}, outside {bounds[0]}", "add the rule there by hand, or put a regular file here"
        )
    if path.is_symlink() and not real.exists():
        raise FileRefused(f"it is a broken symlink to {real}", "remove the symlink")
    now = read_now(real)
    data = now.data or b""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileRefused("it is not UTF-8 text", "save it as UTF-8") from error
    if b"\0" in data:
        raise FileRefused("it contains NUL bytes", "save it as UTF-8 text")
    return now


def refuse_linked(now: Now) -> None:
    """Raise FileRefused for a file with several hard links: replacing it would break the others."""
    if is_linked(now.real):
        what = "it has a second hard link, which replacing the file would break"
        raise FileRefused(what, "make one name a symlink to the other, or add the lines by hand")


def is_linked(path: Path) -> bool:
    try:
        return path.lstat().st_nlink > 1
    except OSError:
        return False


def read_now(path: Path) -> Now:
    """The file's current state; without bytes if it does not exist."""
    real = Path(os.path.realpath(path))
    try:
        folder = file_io.open_root(str(real.parent))
    except FileNotFoundError:
        return Now(real, None, None)
    except OSError as error:
        raise FileRefused(f"its folder cannot be opened: {error.strerror}", "check what is there") from error
    try:
        data, stamp = file_io.read_file(folder, real.name, limit=MAX_FILE_BYTES, shown=str(path))
    except FileNotFoundError:
        return Now(real, None, None)
    except file_io.UnsafePath as error:
        raise FileRefused(f"it {error.what}", "put a regular file there") from error
    except file_io.ChangedSince as error:
        raise FileRefused("it is being written right now", "run it again") from error
    except OSError as error:
        raise FileRefused(f"it cannot be read: {error.strerror}", "check its permissions") from error
    finally:
        os.close(folder)
    return Now(real, data, stamp)
