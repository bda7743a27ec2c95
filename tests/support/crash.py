"""The crash proof's own program: runs one command again and again, and stops it at every call that changes the disk.

`python -m tests.support.crash loop BASE SCENARIO MODE` counts the state-changing calls of one command (files, folders,
SQLite commits). For n = 1, 2, 3 … it copies a prepared place, forks, and lets the n-th call die, tear, lose its
unsynced data or fail; then it runs the command again and compares with a run that nothing disturbed. It prints what it
found as JSON. `python -m tests.support.crash strace BASE SCENARIO MODE SEED COUNT` does the same with the kernel's own
calls, for a sample of them: strace stops `python -m tests.support.crash once BASE SCENARIO` from outside.

Everything is forked from one warm interpreter, and always at the same path, so a point costs milliseconds and the
bytes can be compared one to one.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import apsw

from tests.support.helpers import CODEX, NOW, Place, a_card, a_document_handoff, a_handoff, tree
from truekeep.core import file_io
from truekeep.core.errors import BadInput, TruekeepError
from truekeep.core.model import IngestReport
from truekeep.handoffs import ingest
from truekeep.memory.ledger import Ledger
from truekeep.workspace.card_text import CardAuthor, parse_card_text
from truekeep.workspace.notes import LessonAuthor
from truekeep.workspace.workspace import Workspace

BATCH = 3  # small, so that a run has several batches and a document is written by two of them
LATER = datetime(2095, 1, 1, tzinfo=UTC)  # for prune: everything is old then
SECRET = "AKIA" + "Z7Q4WXN2LPK8RTVB"  # made up
START, STOP = "/truekeep-crash-start", "/truekeep-crash-stop"  # looked for, never there: marks in strace's record
KILLS = ("before", "after", "power")
SYSTEM_CALLS = (
    *("openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat"),
    *("unlink", "unlinkat", "mkdir", "mkdirat", "ftruncate", "fallocate", "fchmod"),
)
FAILURES = ("once-ENOSPC", "once-EACCES", "once-EIO", "stay-ENOSPC", "stay-EIO")


# The scenarios.


@dataclass(frozen=True, slots=True)
class Scenario:
    """One command over a prepared place."""

    prepare: Callable[[Place], None]
    act: Callable[[Workspace], object]
    now: datetime = NOW
    is_repeatable: bool = False  # running it again after the end finds nothing to do
    is_atomic: bool = True  # after recovery it has happened as a whole, or not at all
    evidence: str = ""  # a file that must be there at the end
    most: int = 10_000  # calls to visit: after those it is another scenario


def _earlier(place: Place) -> None:
    """What was filed before: two cards, a document, and a draft that waits."""
    place.leave(a_handoff(), "2026-11-10-0900-proxy.md")
    place.leave(
        _card("backup-window.md", "Backup window", "Backups run at two in the morning."), "2026-11-10-0901-b.md"
    )
    place.leave(a_document_handoff("### Lint\nRun make lint before a push."), "2026-11-10-0902-lint.md")
    place.leave(_card("", "Queue names", "Queues are named by team, then purpose."), "2026-11-10-0903-queues.md")
    place.ingest()


def _card(name: str, topic: str, body: str, action: str = "create-card") -> str:
    return a_handoff(title=topic, action=action, card=name or None, content=a_card(topic, body))


def _waiting(place: Place) -> None:
    """One handoff for every way that a handoff can go."""
    _earlier(place)
    create = _card("gateway.md", "Gateway timeouts", "The gateway gives up after thirty seconds.")
    update = _card("staging-proxy.md", "Proxy in front of staging", "Staging answers on port 9443 only.", "update-card")
    already = "\n" + _card("backup-window.md", "Backup window", "Backups run at two in the morning.")
    secret = a_document_handoff(f"### Keys\nThe access key is {SECRET} and nothing else.")
    codex = place.repo / CODEX
    place.leave(create, "2026-11-14-0900-create.md")
    place.leave(update, "2026-11-14-0901-update.md")
    place.leave(a_document_handoff("### First\nThe first of two additions."), "2026-11-14-0902-append.md")
    place.leave(
        a_document_handoff("### Second\nThe second of two additions."), "2026-11-14-0903-append.md", inbox=codex
    )
    place.leave(_card("", "No place", "A card that names no target waits for a person."), "2026-11-14-0904-review.md")
    place.leave(create, "2026-11-14-0905-duplicate.md")
    place.leave(secret, "2026-11-14-0906-secret.md")
    place.leave(already, "2026-11-14-0907-already.md")
    place.leave(
        a_document_handoff("### Naming\nBranches carry a ticket.", "rules/naming.md"), "2026-11-14-0908-rule.md"
    )


def _filed(place: Place) -> None:
    _waiting(place)
    place.ingest()


def _damaged(place: Place) -> None:
    _waiting(place)
    (place.workspace / ".truekeep" / "ledger.sqlite").write_bytes(b"not a database at all\n" * 400)


def _ingest_plainly(workspace: Workspace) -> object:
    """As on a system that cannot exchange two files."""
    file_io._calls["renameat2"] = None
    return workspace.handoffs.ingest()


def _draft(workspace: Workspace) -> str:
    return next(draft.id for draft in workspace.review.drafts() if "queues" in draft.name)


def _approve(workspace: Workspace) -> object:
    return workspace.review.approve(_draft(workspace), target="memory/cards/queue-names.md")


def _undo(workspace: Workspace) -> object:
    number = next(
        entry.id for entry, _ in workspace.history.entries() if entry.verb == "promoted" and "Gateway" in entry.note
    )
    return workspace.history.undo(number)


def _add_to_card(workspace: Workspace) -> object:
    wanted = parse_card_text("Staging is restarted at night.", is_update=True)
    return workspace.cards.write(wanted, CardAuthor("ada", "ada", NOW), update="staging-proxy.md")


def _drop(workspace: Workspace) -> object:
    return workspace.cards.drop("staging-proxy", reason="gone", actor="ada")


def _aged(place: Place) -> None:
    """Logs of which something has expired, and two of which nothing is left."""
    _earlier(place)
    for day, text in (
        ("2026-10-01", "- [lesson|i=0.7] Patches of lists are not merged\n- [decision|i=0.9] SQLite it is\n"),
        ("2026-10-02", "- [context|i=0.2] Looked at the queue\n  twice\n"),
        ("2026-10-03", "[context|i=0.2] Nothing notable\n"),
        ("2026-11-14", "- [context|i=0.2] Looked at the proxy\n"),
    ):
        (place.workspace / "memory" / f"{day}.md").write_text(f"# {day}\n\n{text}")


def _decay(workspace: Workspace) -> object:
    return workspace.maintenance.decay(archive=True)


def _doubled(place: Place) -> None:
    """Two cards that say the same, and a draft for one of them and a third one, which a person has removed since."""
    _earlier(place)
    cards = place.workspace / "memory" / "cards"
    body = "File locks are not reliable on network mounts; keep the database on a local disk.\n"
    for name, more in (("locks", ""), ("mounts", "Copy it at night.\n")):
        (cards / f"{name}.md").write_text(f"---\ntopic: {name}\ncreated: 2026-10-01\n---\n\n{body}{more}")
    with place.open() as workspace:
        workspace.maintenance.duplicates()
    (cards / "mounts.md").unlink()
    (cards / "shares.md").write_text(f"---\ntopic: shares\ncreated: 2026-10-02\n---\n\n{body}Shares are slow.\n")


def _proposed(place: Place) -> None:
    _doubled(place)
    with place.open() as workspace:
        workspace.maintenance.duplicates()


def _merge(workspace: Workspace) -> object:
    return workspace.review.approve(next(draft.id for draft in workspace.review.drafts() if draft.drops))


def _gate(workspace: Workspace) -> object:
    return workspace.notes.add_policy("releasing the shop", action="run the smoke test", by=LessonAuthor("ada"))


SCENARIOS = {
    "ingest": Scenario(_waiting, lambda workspace: workspace.handoffs.ingest(), is_repeatable=True, is_atomic=False),
    "plain": Scenario(_waiting, _ingest_plainly, is_repeatable=True, is_atomic=False),
    "approve": Scenario(_filed, _approve),
    "reject": Scenario(_filed, lambda workspace: workspace.review.reject(_draft(workspace), reason="not ours")),
    "undo": Scenario(_filed, _undo),
    "add": Scenario(_filed, _add_to_card),
    "drop": Scenario(_filed, _drop),
    "gate": Scenario(_filed, _gate),
    "prune": Scenario(
        _filed, lambda workspace: workspace.handoffs.prune(force=True), LATER, is_repeatable=True, is_atomic=False
    ),
    "propose": Scenario(_doubled, lambda workspace: workspace.maintenance.duplicates(), is_repeatable=True),
    "merge": Scenario(_proposed, _merge),
    "decay": Scenario(_aged, _decay, is_repeatable=True, is_atomic=False),
    "mend": Scenario(
        _damaged,
        lambda workspace: workspace.handoffs.ingest(),
        is_repeatable=True,
        is_atomic=False,
        evidence=f"ledger.sqlite.damaged-{NOW:%Y%m%dT%H%M%SZ}",
        most=9,
    ),
}


# What a place looks like.


@dataclass(frozen=True, slots=True)
class State:
    """Everything that two runs are compared by."""

    files: dict[str, str]  # the workspace's memory
    letters: dict[str, str]  # the inboxes and their processed/
    handoffs: list[tuple[object, ...]]
    entries: list[tuple[object, ...]]
    loose_files: dict[str, str]  # the same files, with their lines in order

    def loosely(self) -> State:
        """The same where a handoff failed alone and was filed later: the order of filings does not count."""
        handoffs = [(row[0], "", *[""] * 5, row[7], row[8], "") for row in self.handoffs]
        entries: list[tuple[object, ...]] = [("", row[1], "", row[3], "", row[5], row[6]) for row in self.entries]
        entries.sort(key=repr)
        return State(self.loose_files, self.letters, handoffs, entries, self.loose_files)


def look(base: Path) -> State:
    handoffs, entries = _story(base)
    files = _without_temporary(tree(base / "workspace"))
    loose = {
        name: hashlib.sha256(b"".join(sorted((base / "workspace" / name).read_bytes().split(b"\n")))).hexdigest()
        for name in files
    }
    return State(files, dict(tree(base / "repos")), handoffs, entries, loose)


def _without_temporary(files: Any) -> dict[str, str]:
    return {name: digest for name, digest in files.items() if file_io.TEMPORARY not in name}


def _ledger_path(base: Path) -> str:
    return str(base / "workspace" / ".truekeep" / "ledger.sqlite")


def _story(base: Path) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    db = apsw.Connection(_ledger_path(base))
    try:
        handoffs = db.execute(
            "SELECT hex(digest), name, title, writer, repository, inbox, received_at, outcome, target, reasons"
            " FROM handoff ORDER BY digest"
        ).fetchall()
        entries = db.execute(
            "SELECT at, verb, actor, hex(handoff), note, undoes, (SELECT group_concat(path) FROM (SELECT DISTINCT path"
            " FROM splice JOIN change ON change.id = splice.change WHERE splice.entry = entry.id ORDER BY path))"
            " FROM entry ORDER BY id"
        ).fetchall()
    finally:
        db.close()
    return handoffs, entries


def _digests(state: State) -> Counter[str]:
    return Counter(state.letters[name] for name in state.letters if "memory-handoffs" in name)


def _versions(base: Path) -> dict[str, set[str | None]]:
    """Every version that a file had in a run: what a reader may see."""
    seen: dict[str, set[str | None]] = {}
    db = apsw.Connection(_ledger_path(base))
    for path, before, after in db.execute("SELECT path, before, after FROM change"):
        seen.setdefault(path, set()).update(value.hex() if value else None for value in (before, after))
    db.close()
    return seen


def _unsettled(base: Path) -> list[str]:
    """What must not be there when a run has ended well."""
    problems = []
    for folder, _, names in os.walk(base):
        problems += [f"left behind: {folder}/{name}" for name in names if file_io.TEMPORARY in name]
    ledger = Ledger(_ledger_path(base))
    try:
        if ledger.pending():
            problems.append("a batch is still pending")
        paths = [row[0] for row in ledger._db.execute("SELECT DISTINCT path FROM change")]
        for path in paths:
            target = base / "workspace" / path
            if ledger.content(path) != (target.read_bytes() if target.exists() else None):
                problems.append(f"the ledger tells another story of {path} than the disk")
    finally:
        ledger.close()
    return problems


def _not_on_disk(base: Path) -> list[str]:
    """What the ledger calls done and the disk does not have."""
    done: dict[str, str | None] = {}
    pending: set[str] = set()
    db = apsw.Connection(_ledger_path(base))
    query = "SELECT path, after, state FROM change JOIN batch ON batch.id = change.batch ORDER BY change.id"
    for path, after, state in db.execute(query):
        if state == "done":
            done[path] = after.hex() if after else None
        else:
            pending.add(path)
    db.close()
    problems = []
    for path, wanted in done.items():
        target = base / "workspace" / path
        found = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else None
        if found != wanted and path not in pending:
            problems.append(
                f"power loss: the ledger calls {path} done, but the disk has {'another' if found else 'no'} file"
            )
    return problems


# The faults.


@dataclass(slots=True)
class Fault:
    """What happens at the n-th state-changing call of a process."""

    mode: str
    at: int
    base: Path
    calls: int = 0
    hit: str = ""
    memory: DiskMemory | None = None

    def around(self, kind: str, call: Callable[[], Any], *, torn: Callable[[], Any] | None = None) -> Any:
        self.calls += 1
        is_here = self.calls == self.at
        if is_here or (self.mode.startswith("stay-") and self.hit and self._concerns(kind)):
            self.hit = self.hit or kind
            if self.mode == "before":
                die()
            if self.mode == "after" and torn is not None:
                torn()
                die()
            if self.mode.startswith(("once-", "stay-")):
                raise _error(kind, self.mode[5:])
        try:
            return call()
        finally:
            if is_here and self.mode == "power":
                assert self.memory is not None
                self.memory.write_out(self.base.parent / "power")
            if is_here and self.mode in ("after", "power"):
                die()

    def _concerns(self, kind: str) -> bool:
        """On a full disk one can still remove and rename; on a broken one nothing works."""
        return self.mode == "stay-EIO" or kind in ("open", "write", "mkdir", "commit", "begin", "statement")


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(99)


def _error(kind: str, name: str) -> Exception:
    if kind in ("begin", "commit", "statement"):
        found = {"ENOSPC": apsw.FullError, "EACCES": apsw.ReadOnlyError, "EIO": apsw.IOError}[name]
        failure: Exception = found(f"injected {name}")
        return failure
    if kind == "fsync":
        name = "EIO"
    code = getattr(errno, name)
    return OSError(code, os.strerror(code))


_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "REPLACE")


def install(fault: Fault) -> None:
    """Put the fault around every call of this process that changes the disk."""
    if fault.mode == "power" and fault.memory is None:
        fault.memory = DiskMemory(fault.base)
    memory = fault.memory
    real_open, real_write, real_fsync = os.open, os.write, os.fsync

    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        def call() -> int:
            descriptor = real_open(path, flags, mode, dir_fd=dir_fd)
            if memory is not None:
                memory.made(descriptor)
            return descriptor

        if not flags & os.O_CREAT:
            return real_open(path, flags, mode, dir_fd=dir_fd)
        descriptor: int = fault.around("open", call)
        return descriptor

    def write(descriptor: int, data: Any) -> int:
        def torn() -> None:
            real_write(descriptor, bytes(data)[: len(data) // 2])

        written: int = fault.around("write", lambda: real_write(descriptor, data), torn=torn)
        return written

    def fsync(descriptor: int) -> None:
        def call() -> None:
            real_fsync(descriptor)
            if memory is not None:
                memory.synced(descriptor)

        fault.around("fsync", call)

    def wrapped(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def other(*arguments: Any, **options: Any) -> Any:
            def call() -> Any:
                places = memory.places(name, arguments, options) if memory is not None else ()
                done = real(*arguments, **options)
                if memory is not None:
                    memory.changed(name, *places)
                return done

            return fault.around(name, call)

        return other

    real_renameat2 = file_io._renameat2

    def renameat2(folder: int, old: str, new: str, flags: int, shown: str) -> bool:
        def call() -> bool:
            done = real_renameat2(folder, old, new, flags, shown)
            if memory is not None and done:
                above = memory.path_of(folder)
                memory.changed("exchange" if flags == 2 else "rename", f"{above}/{old}", f"{above}/{new}")
            return done

        done: bool = fault.around("rename", call)
        return done

    class Connection(apsw.Connection):
        def execute(self, statements: Any, *arguments: Any, **options: Any) -> Any:
            word = str(statements).split(None, 1)[0].upper() if self.filename else ""  # what is in memory cannot fail
            if word in ("BEGIN", "COMMIT"):
                return fault.around(word.lower(), lambda: super(Connection, self).execute(statements))
            if word in _WRITES and not self.in_transaction:
                return fault.around("statement", lambda: super(Connection, self).execute(statements, *arguments))
            return super().execute(statements, *arguments, **options)

        def __exit__(self, *problem: Any) -> Any:
            if problem[0] is not None or not self.filename:
                return super().__exit__(*problem)
            try:
                return fault.around("commit", lambda: super(Connection, self).__exit__(None, None, None))
            except apsw.Error as error:
                super().__exit__(type(error), error, None)
                raise

    real = {name: wrapped(name) for name in ("rename", "replace", "link", "unlink", "mkdir", "fchmod")}
    for name, function in {"open": open_, "write": write, "fsync": fsync, **real}.items():
        setattr(os, name, function)
    file_io._renameat2 = renameat2
    apsw.Connection = Connection  # type: ignore[misc]


@dataclass(slots=True)
class DiskMemory:
    """What would be on the disk after a power loss at its worst: synced data, and names in synced folders, only.

    A rename is one step, as on every file system with a journal, and is kept once either folder is synced. SQLite's
    own files are taken as they are (it syncs its log at every commit); the catalogue, which does not sync, is dropped.
    """

    base: Path
    live: dict[str, int] = field(default_factory=dict)  # path: number of the file; folders are number 0
    kept: dict[str, int] = field(default_factory=dict)
    data: dict[int, bytes | None] = field(default_factory=dict)  # what is synced of a file; None: nothing of it
    waiting: list[tuple[str, tuple[str, ...], dict[str, int | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder, names, files in os.walk(self.base):
            names[:] = [name for name in names if name != ".truekeep"]
            self.live.update((os.path.join(folder, name), 0) for name in names)
            for name in files:
                path = os.path.join(folder, name)
                number = self.live[path] = len(self.data) + 1
                self.data[number] = Path(path).read_bytes()
        self.kept = dict(self.live)

    def _is_ours(self, path: str) -> bool:
        return path.startswith(f"{self.base}/") and "/.truekeep" not in path.removesuffix(file_io.TEMPORARY)

    @staticmethod
    def path_of(descriptor: int) -> str:
        return os.readlink(f"/proc/self/fd/{descriptor}")

    def places(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[str, ...]:
        if name == "fchmod":
            return ()
        folders: tuple[int | None, ...]
        if name in ("rename", "link", "replace"):
            folders = (options.get("src_dir_fd"), options.get("dst_dir_fd"))
        else:
            folders = (options.get("dir_fd"),)
        places = zip(folders, arguments, strict=False)
        return tuple(f"{self.path_of(folder)}/{path}" if folder is not None else str(path) for folder, path in places)

    def made(self, descriptor: int) -> None:
        path = self.path_of(descriptor)
        if self._is_ours(path) and path not in self.live:
            number = len(self.data) + 1
            self.data[number] = None
            self._note(path, {path: number})

    def changed(self, name: str, *paths: str) -> None:
        if not paths or not all(self._is_ours(path) for path in paths):
            return
        live = self.live
        first = paths[0]
        if name == "mkdir":
            self._note(first, {first: 0})
        elif name == "unlink":
            self._note(first, {first: None})
        elif name == "link":
            self._note(paths[1], {paths[1]: live[first]})
        elif name == "exchange":
            self._note(first, {first: live[paths[1]], paths[1]: live[first]}, paths[1])
        else:
            self._note(first, {first: None, paths[1]: live[first]}, paths[1])

    def _note(self, path: str, step: dict[str, int | None], other: str = "") -> None:
        folders = tuple(os.path.dirname(item) for item in (path, other or path))
        self.waiting.append((path, folders, step))
        _take(self.live, step)

    def synced(self, descriptor: int) -> None:
        path = self.path_of(descriptor)
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            if (number := self.live.get(path)) is not None:
                self.data[number] = Path(path).read_bytes()
            return
        rest = []
        for item in self.waiting:
            if path in item[1]:
                _take(self.kept, item[2])
            else:
                rest.append(item)
        self.waiting = rest

    def write_out(self, target: Path) -> None:
        """Make the place as it would be found after the power came back."""
        shutil.rmtree(target, ignore_errors=True)
        for path, number in sorted(self.kept.items()):
            place = target / Path(path).relative_to(self.base)
            if not self._is_reachable(path):
                continue
            if number == 0:
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("wb") as file:
                    file.write(self.data[number] or b"")
                if os.path.exists(path):
                    shutil.copystat(path, place)
        state = Path("workspace") / ".truekeep"
        shutil.copytree(self.base / state, target / state, ignore=shutil.ignore_patterns("catalog.sqlite*"))

    def _is_reachable(self, path: str) -> bool:
        above = os.path.dirname(path)
        return above == str(self.base) or (self.kept.get(above) == 0 and self._is_reachable(above))


def _take(names: dict[str, int], step: dict[str, int | None]) -> None:
    for path, number in step.items():
        if number is None:
            names.pop(path, None)
        else:
            names[path] = number


# One process, forked.


@dataclass(frozen=True, slots=True)
class Ending:
    """How a forked run ended."""

    is_killed: bool
    kind: str = ""  # clean, failed (a report that says so), error (a TruekeepError), unexpected
    calls: int = 0
    hit: str = ""
    what: str = ""
    processed: int = 0


def run(base: Path, act: Callable[[Workspace], object], now: datetime, fault: Fault | None = None) -> Ending:
    """Run a verb in a forked process, with or without a fault."""
    outcome = base.parent / "outcome.json"
    outcome.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        with outcome.open("w") as file:
            if fault is not None:
                install(fault)
            ending = _act(base, act, now)
            ending["calls"], ending["hit"] = (fault.calls, fault.hit) if fault else (0, "")
            json.dump(ending, file)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return Ending(True)
    return Ending(False, **json.loads(outcome.read_text()))


def _act(base: Path, act: Callable[[Workspace], object], now: datetime) -> dict[str, Any]:
    ingest.BATCH = BATCH
    workspace = None
    try:
        workspace = Workspace.open(base / "workspace", now=lambda: now)
        done = act(workspace)
        workspace.close()
    except TruekeepError as error:
        return {"kind": "error", "what": f"{error.code}: {error.message}"}
    except Exception:  # noqa: BLE001 - that is what we look for
        return {"kind": "unexpected", "what": traceback.format_exc(limit=-6)}
    if not isinstance(done, IngestReport):
        return {"kind": "clean", "what": ""}
    is_clean = not done.warnings and not done.count("failed") and not done.count("skipped")
    return {"kind": "clean" if is_clean else "failed", "what": "; ".join(done.warnings), "processed": done.processed}


# The loop.


class Loop:
    """One scenario and one mode, at every point."""

    def __init__(self, base: Path, name: str, mode: str) -> None:
        self.scenario, self.mode = SCENARIOS[name], mode
        self.base, self.template = base / "run", base / "template"
        self.problems: list[str] = []
        self.kinds: Counter[str] = Counter()
        prepare(base, name)
        self.first = look(self.template) if name != "mend" else None
        self._reset()
        _act(self.base, self.scenario.act, self.scenario.now)  # here, so that every fork finds all of it imported
        gc.freeze()
        self._reset()
        self.expect_clean(run(self.base, self.scenario.act, self.scenario.now), "an undisturbed run")
        self.last = look(self.base)
        self.versions = _versions(self.base)

    def _reset(self) -> None:
        shutil.rmtree(self.base, ignore_errors=True)
        shutil.copytree(self.template, self.base, symlinks=True)

    def expect_clean(self, ending: Ending, what: str) -> None:
        if ending.is_killed or ending.kind not in ("clean", "failed"):
            self.problems.append(f"{what} ended {ending.kind}: {ending.what}")

    def run(self) -> dict[str, Any]:
        at = 1
        while len(self.problems) < 12 and at <= self.scenario.most:
            self._reset()
            fault = Fault(self.mode, at, self.base)
            ending = run(self.base, self.scenario.act, self.scenario.now, fault)
            if not ending.is_killed and not ending.hit:
                break
            found = self._check(ending)
            self.problems += [f"{self.mode} call {at} ({ending.hit}): {problem}" for problem in found]
            self.kinds[ending.hit or "killed"] += 1
            at += 1
        return {"points": sum(self.kinds.values()), "kinds": dict(self.kinds), "problems": self.problems}

    def _check(self, ending: Ending) -> list[str]:
        problems: list[str] = []
        if self.mode == "power":
            problems += self._lose_power()
        if ending.kind == "unexpected":
            problems.append(f"an exception that nobody can act on: {ending.what}")
        problems += check_now(self.base, self.template, self.versions if ending.is_killed else None)
        if ending.kind == "clean" and self._state() != self.last.loosely():
            problems.append("it reported a clean end, but not everything is done")
        if self.scenario.is_atomic:
            problems += self._recover()
        else:
            self.expect_clean(run(self.base, self.scenario.act, self.scenario.now), "the next run")
        problems += self._check_end()
        return problems

    def _state(self) -> State:
        return look(self.base).loosely()

    def _lose_power(self) -> list[str]:
        shutil.rmtree(self.base)
        os.rename(self.base.parent / "power", self.base)
        return _not_on_disk(self.base) if self.first else []

    def _recover(self) -> list[str]:
        """The next writing command finishes the job or finds nothing of it; then the command can be given again."""
        self.expect_clean(run(self.base, lambda workspace: workspace.handoffs.ingest(), self.scenario.now), "an ingest")
        state = look(self.base)
        problems = [] if state in (self.first, self.last) else _differences(state, self.last, "half happened")
        again = run(self.base, _or_refused(self.scenario.act), self.scenario.now)
        self.expect_clean(again, "the same command again")
        return problems

    def _check_end(self) -> list[str]:
        problems = _unsettled(self.base)
        state = look(self.base)
        if self.mode in KILLS:
            problems += _differences(state, self.last, "not as undisturbed")
        else:
            problems += _differences(state.loosely(), self.last.loosely(), "not as undisturbed")
        if self.scenario.evidence and not (self.base / "workspace/.truekeep" / self.scenario.evidence).exists():
            problems.append(f"{self.scenario.evidence} is gone")
        if self.scenario.is_repeatable:
            third = run(self.base, self.scenario.act, self.scenario.now)
            self.expect_clean(third, "the third run")
            if third.processed or third.what or look(self.base) != state:
                problems.append(f"the third run found something to do: {third}")
        return problems


class Strace(Loop):
    """The same loop with the kernel's own calls, stopped from outside; a seeded sample of them."""

    def __init__(self, base: Path, name: str, mode: str) -> None:
        super().__init__(base, name, mode)
        self.program = [sys.executable, "-m", "tests.support.crash", "once", str(base), name]

    def sample(self, seed: int, count: int) -> dict[str, Any]:
        calls = self._calls()
        chosen = sorted(random.Random(seed).sample(calls, min(count, len(calls))))
        for name, at in chosen:
            self._reset()
            done = self._strace("-e", f"inject={name}:{self._injection(name)}:when={at}")
            code = "" if done.returncode < 0 or done.returncode > 128 else f"exit {done.returncode}"
            kind = "unexpected" if done.returncode == 70 else ""
            found = self._check(Ending(not code, kind, 1, name, done.stderr))
            self.problems += [f"{name} {at} ({code or 'killed'}): {problem}" for problem in found]
            self.kinds[f"{name} {code or 'killed'}"] += 1
        return {"points": len(chosen), "of": len(calls), "kinds": dict(self.kinds), "problems": self.problems}

    def _injection(self, name: str) -> str:
        if self.mode == "after":
            return "signal=KILL"
        return "error=EIO" if "sync" in name else "error=ENOSPC"

    def _strace(self, *options: str) -> subprocess.CompletedProcess[str]:
        record = str(self.base.parent / "strace")
        return subprocess.run(
            ["strace", "-f", "-qq", "-o", record, *options, *self.program],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def _calls(self) -> list[tuple[str, int]]:
        """Every state-changing call between the two marks, as (name, how many of that name came before it)."""
        self._reset()
        self._strace("-e", f"trace={','.join(SYSTEM_CALLS)},stat,newfstatat,statx")
        counts: Counter[str] = Counter()
        calls = []
        is_ours = False
        lines = (self.base.parent / "strace").read_text(errors="replace").splitlines()
        main = lines[0].split()[0]
        for process, line in (line.split(None, 1) for line in lines):
            name = line.partition("(")[0]
            if START in line or STOP in line:
                is_ours = START in line
            if process == main and name in SYSTEM_CALLS:  # strace counts for each process by itself
                counts[name] += 1
                if is_ours and (name != "openat" or "O_CREAT" in line):
                    calls.append((name, counts[name]))
        return calls


def prepare(base: Path, name: str) -> None:
    """Make the place at BASE/run and keep it as BASE/template."""
    shutil.rmtree(base / "run", ignore_errors=True)
    (base / "run").mkdir(parents=True)
    SCENARIOS[name].prepare(Place.make(base / "run"))
    shutil.copytree(base / "run", base / "template", symlinks=True)


def check_now(base: Path, template: Path, versions: dict[str, set[str | None]] | None) -> list[str]:
    """What must hold in the very moment of the crash, before anything was put right."""
    problems = []
    before, now = tree(template / "repos"), tree(base / "repos")
    lost = Counter(before.values()) - Counter(now.values())
    twice = Counter(now.values()) - Counter(before.values())
    if twice or (lost and not _is_pruned(before, now)):
        problems.append(f"handoffs lost {dict(lost)}, twice {dict(twice)}")
    if versions is not None:
        old, new = _without_temporary(tree(template / "workspace")), _without_temporary(tree(base / "workspace"))
        problems += [
            f"a reader sees {path} as no run ever wrote it"
            for path in old.keys() | new.keys()
            if new.get(path) not in {old.get(path)} | versions.get(path, set())
        ]
    return problems


def _is_pruned(before: Any, now: Any) -> bool:
    """Prune may remove what was in processed/, and nothing else."""
    waiting = Counter(digest for name, digest in before.items() if "/processed/" not in name)
    return not waiting - Counter(now.values()) and all("/processed/" in name for name in before.keys() - now.keys())


def _or_refused(act: Callable[[Workspace], object]) -> Callable[[Workspace], object]:
    def again(workspace: Workspace) -> object:
        try:
            return act(workspace)
        except (BadInput, StopIteration):
            return None  # it has happened already

    return again


def _differences(found: State, wanted: State, what: str) -> list[str]:
    problems = []
    for name in ("files", "letters", "handoffs", "entries"):
        one, other = getattr(found, name), getattr(wanted, name)
        if one == other:
            continue
        if isinstance(one, dict):
            parts = [f"{key}: {one.get(key)} != {other.get(key)}" for key in sorted(one.keys() | other.keys())]
            shown = [part for part in parts if len(set(part.partition(": ")[2].split(" != "))) > 1]
        else:
            shown = [f"found {_short(item)}" for item in one if item not in other]
            shown += [f"wanted {_short(item)}" for item in other if item not in one]
        problems.append(f"{what}: {name}: {'; '.join(shown)[:700] or 'another order'}")
    return problems


def _short(item: tuple[object, ...]) -> str:
    """A handoff by its name, outcome and target; an entry by its verb, note and paths."""
    return " ".join(str(item[place]) for place in ((1, 7, 8) if len(item) == 10 else (1, 4, 6)))


def once(base: Path, name: str) -> int:
    """One run with the fixed clock and no wrappers; marks its beginning and end for strace."""
    scenario = SCENARIOS[name]
    Path(START).exists()
    ending = _act(base / "run", scenario.act, scenario.now)
    Path(STOP).exists()
    if ending["kind"] == "unexpected":
        print(ending["what"], file=sys.stderr)
        return 70
    return 7 if ending["kind"] == "error" else 1 if ending["kind"] == "failed" else 0


def main(arguments: list[str]) -> int:
    verb, base, name = arguments[0], Path(arguments[1]), arguments[2]
    if verb == "once":
        return once(base, name)
    if verb == "strace":
        mode, seed, count = arguments[3], int(arguments[4]), int(arguments[5])
        print(json.dumps(Strace(base, name, mode).sample(seed, count)))
        return 0
    print(json.dumps(Loop(base, name, arguments[3]).run()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
