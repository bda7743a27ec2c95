"""Checks of the installation: permissions, locks, repositories, hooks, the schedule, and this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import apsw

from truekeep.core.dates import as_stamp, many
from truekeep.core.errors import TruekeepError, as_argument
from truekeep.core.harness_paths import find_homes
from truekeep.core.machine import machine_name, own_id_path
from truekeep.core.model import WRITERS
from truekeep.core.sqlite import SIDECAR_SUFFIXES, remove_database
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.receipts import KEY_FILE
from truekeep.integrations.doctor.sqlite_checks import opened, size_of
from truekeep.integrations.doctor.state_checks import CONFIG, line_of_key
from truekeep.integrations.harnesses.codex import TRUST_HINT, TRUST_STEP, UNTRUSTED
from truekeep.integrations.harnesses.installed import Keep
from truekeep.integrations.harnesses.plan import USER, bundle_files
from truekeep.integrations.harnesses.status import probe_hook, see_connections
from truekeep.integrations.schedule import cron
from truekeep.integrations.schedule.base import backend
from truekeep.integrations.schedule.config import job_name, read_settings, settings_path
from truekeep.integrations.schedule.earlier_ingester import HINT, describe, find_ingester
from truekeep.integrations.schedule.install import find, install
from truekeep.memory.ledger import set_aside
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.check import CheckContext, CheckResult, Found, problem
from truekeep.workspace.pipeline import receipt_alarms
from truekeep.workspace.schedule_log import judge_runs, read_runs

_OTHER_USERS = 0o007
_PRIVATE = (
    *("sessions", "checkpoints", "connect", "transcripts", "exchange", "git", "sync.toml", "schedule.toml"),
    KEY_FILE,
)
_INNER = ("", "hosts", "logs", "transcripts", "contacts", "synced")  # state folders that truekeep writes to
_MEMORY = ("", "memory", "memory/cards", "memory/handoff-inbox", "rules", ".learnings")
_MAX_CLOCK_SKEW = timedelta(minutes=10)
_LOCKS = {"": "writes", "index.lock": "indexes", "logs": "runs the schedule", "transcripts": "reads transcripts"}
_DATABASES = ("ledger.sqlite", "catalog.sqlite", "survey.sqlite", "facts.sqlite", "index.sqlite")
_MAX_SHOWN = 3


# --- Permissions ----------------------------------------------------------------------------------------------------


def check_permissions(context: CheckContext) -> Found:
    """Check who may read and write the state and the memory folders."""
    if context.has_state:
        if os.statvfs(context.state).f_flag & os.ST_RDONLY:
            yield problem("is on a read-only disk", context.root, "mount it for writing; reading still works")
            return
        yield from _exposed([context.state])
        owner = os.stat(context.root).st_uid
        yield from _misowned(_entries(context.state), owner)
        yield from _unwritable(_entries(context.state))
        for folder in _MEMORY:  # may be intended: reported, not changed
            path = os.path.join(context.root, folder) if folder else context.root
            with suppress(FileNotFoundError, NotADirectoryError):
                info = os.lstat(path)
                if stat.S_ISDIR(info.st_mode) and not info.st_mode & stat.S_IWUSR:
                    yield problem("this folder is not writable", path, f"`chmod u+w {path}`")
                elif folder and stat.S_ISLNK(info.st_mode):
                    what = "is a symlink, which truekeep does not follow"
                    yield problem(what, path, "replace it with a folder; the next ingest files what waits for it")
    if os.path.isdir(context.own):
        own = [os.path.join(context.own, name) for name in sorted(os.listdir(context.own))]
        if os.lstat(context.own).st_mode & _OTHER_USERS:
            yield from _exposed([path for path in own if os.path.basename(path) in _PRIVATE])
        yield from _misowned([context.own, *own], os.stat(os.path.dirname(context.own)).st_uid)
        yield from _unwritable([context.own, *own])


def _entries(state: str) -> list[str]:
    """The state folder, its entries, and the entries of its own folders."""
    found = [state]
    for folder in _INNER:
        base = os.path.join(state, folder) if folder else state
        if os.path.islink(base):
            continue
        with suppress(OSError):
            found += [os.path.join(base, name) for name in sorted(os.listdir(base))]
    return [path for path in dict.fromkeys(found) if os.path.lexists(path) and not os.path.islink(path)]


def _exposed(paths: Sequence[str]) -> Iterator[CheckResult]:
    for path in paths:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode & _OTHER_USERS and not os.path.islink(path):
            what = f"readable by other users of this machine ({mode:04o})"
            yield problem(
                what, path, fix=partial(_close, path, mode & ~_OTHER_USERS), fix_summary="remove their access"
            )


def _close(path: str, mode: int) -> str:
    os.chmod(path, mode)
    return f"removed access for others: {mode:04o}"


def _misowned(paths: Sequence[str], owner: int) -> Iterator[CheckResult]:
    """Files with another owner than their folder, left by a run as another user."""
    wrong = [path for path in paths if os.path.lexists(path) and os.lstat(path).st_uid != owner]
    if not wrong:
        return

    def give() -> str:
        group = os.stat(os.path.dirname(wrong[0])).st_gid
        for path in wrong:
            os.chown(path, owner, group, follow_symlinks=False)
        return f"changed the owner to user {owner}"

    what = f"{many(len(wrong), 'file')} of user {os.lstat(wrong[0]).st_uid} in a folder of user {owner}"
    is_root = os.geteuid() == 0
    hint = "" if is_root else f"`sudo chown -R {owner} {os.path.dirname(wrong[0])}`"
    yield problem(what, wrong[0], hint, give if is_root else None, "change their owner")


def _unwritable(paths: Sequence[str]) -> Iterator[CheckResult]:
    wrong = []
    for path in paths:
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | stat.S_IWUSR
            if (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and mode & needed != needed:
                wrong.append((path, stat.S_IMODE(mode) | needed))
    if not wrong:
        return

    def permit() -> str:
        for path, mode in wrong:
            os.chmod(path, mode)
        return f"{len(wrong)} made readable and writable for their owner"

    what = f"{many(len(wrong), 'path')} of truekeep's own cannot be written"
    yield problem(what, wrong[0][0], fix=permit, fix_summary="make them writable for their owner")


# --- Receipts -------------------------------------------------------------------------------------------------------


def check_receipts(context: CheckContext) -> Found:
    """Check that this producer can verify its host's receipts."""
    for alarm in receipt_alarms():
        yield problem(alarm.message, os.path.join(context.own, "sync.toml"), alarm.hint)


# --- Locks ----------------------------------------------------------------------------------------------------------


def check_locks(context: CheckContext) -> Found:
    """Report running processes, and stale SQLite journals and git locks. Kernel locks cannot be stale."""
    held = _kernel_locks()
    for name, does in _LOCKS.items() if context.has_state else ():
        path = os.path.join(context.state, name) if name else context.state
        with suppress(OSError):
            pid = held.get(os.stat(path).st_ino)
            if pid is not None and _has_open(pid, path):
                yield f"process {pid} ({_process(pid)}) {does}"
    if context.has_state and not context.newer:
        for name in _DATABASES:
            yield from _journals(context, os.path.join(context.state, name), held)
    for base in dict.fromkeys((context.state, context.own) if context.has_state else (context.own,)):
        old = [path for path in _git_locks(os.path.join(base, "git")) if context.is_old(path)]
        if old:
            what = f"{many(len(old), 'stale git lock')} in truekeep's own repository"
            yield problem(what, context.shown(old[0]), fix=partial(_unlink, old), fix_summary="remove them")
    yield from _checkout_locks(context)


def _kernel_locks() -> dict[int, int]:
    """Process id by locked inode, from /proc/locks. Its device numbers are unreliable and ignored."""
    found: dict[int, int] = {}
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) > 5 and words[1] != "->" and words[4].isdigit():
                    found[int(words[5].rpartition(":")[2])] = int(words[4])
    except (OSError, ValueError):
        pass
    return found


def _has_open(pid: int, path: str) -> bool:
    wanted = os.path.realpath(path)
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}") == wanted:
                    return True
    return False


def _process(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(400).split(b"\0")
    except OSError:
        return "?"
    return os.fsdecode(b" ".join(word for word in words if word))[-80:] or "?"


def _journals(context: CheckContext, path: str, held: dict[int, int]) -> Found:
    """SQLite journals left beside a database by a killed process."""
    left = [path + tail for tail in SIDECAR_SUFFIXES if tail != "-shm" and size_of(path + tail)]
    if not left or any(_is_held(file, held) for file in (path, *left, f"{path}-shm")):
        return
    where = context.shown(left[0])
    if not os.path.lexists(path):
        is_derived = not path.endswith("ledger.sqlite")
        fix_summary = "remove it" if is_derived else "keep it under another name"
        yield problem(
            "belongs to a database that is gone", where, fix=lambda: _orphan(context, path), fix_summary=fix_summary
        )
    else:
        yield problem(
            "was left by a killed run", where, fix=lambda: _apply_journal(path), fix_summary="let SQLite apply it"
        )


def _is_held(path: str, held: dict[int, int]) -> bool:
    try:
        return os.stat(path).st_ino in held
    except OSError:
        return False


def _orphan(context: CheckContext, path: str) -> str:
    if not path.endswith("ledger.sqlite"):
        remove_database(path)
        return "removed: it was derived"
    return f"kept as {os.path.basename(set_aside(path, stamp=context.stamp()))}-wal"


def _apply_journal(path: str) -> str:
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(2000)
        db.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018 - the first query applies the journal
        if db.execute("PRAGMA journal_mode").get == "wal":
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.close()
    return "applied"


def _git_locks(folder: str) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        yield from (os.path.join(base, name) for name in names if name.endswith(".lock"))


def _checkout_locks(context: CheckContext) -> Found:
    """Old locks in user repositories. An open `git commit` may hold one, so they are only reported."""
    roots = expand_repositories(context.config.repositories) if context.has_state else []
    for root in roots:
        path = os.path.join(root, ".git", "index.lock")
        if context.is_old(path):
            yield problem("is a git lock older than an hour", path, f"if no git is running there: `rm {path}`")


def _unlink(paths: Sequence[str]) -> str:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
    return f"removed {len(paths)}"


# --- Repositories ---------------------------------------------------------------------------------------------------


def check_folders(context: CheckContext) -> Found:
    """Check that the configured folders exist."""
    config = context.config
    text = ""
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(context.state, CONFIG), encoding="utf-8") as file:
        text = file.read(1_000_000)
    hint = "correct the configuration, or restore the folder"
    for key, patterns in (("repositories", config.repositories), ("verify.checkouts", config.verify.checkouts)):
        for pattern in patterns:
            if not expand_repositories((pattern,)):
                has_signs = any(sign in pattern for sign in "*?[")
                what = f"{key}: {pattern} {'matches no folder' if has_signs else 'is not a folder'}"
                yield problem(what, _place(text, key, pattern), hint)
    for path in config.recall.extra_paths:
        if not os.path.exists(os.path.join(context.root, os.path.expanduser(path))):
            what = f"recall.extra_paths: {path} does not exist"
            yield problem(what, _place(text, "recall.extra_paths", path), hint)
    roots = expand_repositories(config.repositories)
    for name, folder in config.writers.items():
        is_added = WRITERS.get(name) != folder
        if is_added and not any((root / folder).is_dir() for root in (*roots, Path(context.root))):
            where = _place(text, f"writers.{name}", folder)
            what = f"writers.{name}: no repository has an inbox {folder}"
            yield problem(what, where, "run `truekeep connect` in the repository to create it")
    bare = [root for root in roots if not any((root / folder).is_dir() for folder in config.writers.values())]
    if roots:
        more = f", {len(bare)} of them without an inbox (run `truekeep connect` there)" if bare else ""
        yield f"{len(roots)} {'repository' if len(roots) == 1 else 'repositories'}{more}"


def _place(text: str, key: str, value: str) -> str:
    """The place of a configuration value: its own line, else its key's line."""
    first = line_of_key(text, key)
    lines = text.splitlines()
    line = next((at for at in range(first, len(lines) + 1) if first and value in lines[at - 1]), first)
    return f"{STATE}/{CONFIG}:{line}" if line else f"{STATE}/{CONFIG}"


# --- Hooks ----------------------------------------------------------------------------------------------------------


def check_hooks(context: CheckContext) -> Found:
    """Check that connected harnesses still are connected, and that the hook answers."""
    homes = find_homes()
    try:
        record = Keep(homes.keep).read()
    except TruekeepError as error:
        yield problem(error.message, str(homes.keep), error.hint)
        return
    if not record.owners:
        yield "no harness is connected here; run `truekeep connect`"
        return
    cards = Path(os.path.realpath(os.path.join(context.root, "memory", "cards"))) if context.has_state else None
    told: set[str] = set()
    connected: set[str] = set()
    only_rule: set[str] = set()
    has_program = False  # of a harness that uses the plugin
    for place in record.places:
        root = Path(place) if place != USER else None
        again = f"`truekeep connect --repo {as_argument(place)}`" if root is not None else "`truekeep connect --user`"
        if root is not None and not root.is_dir():
            hint = f"run `truekeep disconnect --repo {as_argument(place)}`, or restore it"
            yield problem("was connected but no longer exists", place, hint)
            continue
        for item in see_connections(homes, root=root, cards=cards):
            if f"{item.harness}@{place}" not in record.owners:
                continue
            has_program |= item.program is not None and item.harness != "openclaw"
            connected |= {item.harness} if item.is_connected and item.hooks not in _WITHOUT_HOOKS else set()
            only_rule |= {item.harness} if item.has_rule and not item.is_connected else set()
            problems = [_trust_problem(said) for said in item.problems]
            if not item.is_connected and item.program is not None and not problems:
                problems = [("was connected, but its files no longer mention truekeep", again)]
            for said, hint in problems:
                what = f"{item.harness}: {said}"
                if what not in told:
                    told.add(what)
                    yield problem(what, place, hint or again)
    changed = [path for path, text in bundle_files(homes).items() if _text(path) != text]
    if changed and has_program:
        what = f"{many(len(changed), 'file')} of the plugin missing or changed"
        yield problem(what, str(changed[0]), "run `truekeep connect` to restore them")
    probe = probe_hook()
    if not probe.is_well:
        yield problem(f"the hook does not answer: {probe.why}", hint="put `truekeep` on the PATH that harnesses have")
    elif connected or only_rule:
        yield _said_of_hooks(sorted(connected), sorted(only_rule - connected), probe.seconds)


_WITHOUT_HOOKS = ("untrusted", "modified", "off")


def _trust_problem(said: str) -> tuple[str, str]:
    """A problem and what to do; "" if connecting again helps."""
    return (said.replace(TRUST_STEP, UNTRUSTED), TRUST_HINT) if TRUST_STEP in said else (said, "")


def _said_of_hooks(connected: list[str], only_rule: list[str], seconds: float) -> str:
    rule = f"{', '.join(only_rule)}: only the closeout rule is there, no hooks" if only_rule else ""
    hooks = f"{', '.join(connected)} connected; the hook answers in {seconds:.1f} s" if connected else ""
    return "; ".join(filter(None, (hooks, rule)))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# --- The schedule ---------------------------------------------------------------------------------------------------


def check_timer(context: CheckContext) -> Found:
    """Check that the installed timer still exists, can run, and runs on time."""
    name = job_name(context.path if context.has_state else None)
    try:
        known = read_settings(name)
    except TruekeepError as error:
        yield problem(error.message, str(settings_path()), error.hint)
        return
    there = find(name)
    if there is None:
        if known is not None:
            what = f"the {known.system} timer is gone"
            yield problem(what, str(settings_path()), "run `truekeep schedule install`, or `truekeep schedule remove`")
        else:
            yield "no timer is installed; run `truekeep schedule install`"
        return
    system, installed = there
    command = backend(system).command(name)
    where = installed.where[0]
    if command and not (os.path.isfile(command[0]) and os.access(command[0], os.X_OK)):
        fix_summary = "install it again, with this truekeep"
        yield problem(
            f"the timer runs {command[0]}, which does not exist",
            where,
            fix=lambda: _reinstall(context),
            fix_summary=fix_summary,
        )
    every = installed.every or (known.every if known is not None else 30)
    installed_at = known.installed_at if known is not None else ""
    health = judge_runs(read_runs(context.runs_folder), every=every, installed_at=installed_at, now=context.now())
    asleep = system == "cron" and not cron.is_running()
    if health.is_overdue:
        since = f"since {health.since:%Y-%m-%d %H:%M}" if health.since is not None else "ever"
        hint = (
            "start the cron daemon; none is running"
            if asleep
            else "run `truekeep schedule status`; is the timer enabled?"
        )
        yield problem(f"it did not run {since}", where, hint)
    yield f"every {every} minutes by {system}" + (", but no cron daemon is running: start it" if asleep else "")


def check_ingester(context: CheckContext) -> Found:
    """Check that no other ingester files handoffs into this memory."""
    found = find_ingester(Path(context.root))
    for told in describe(found):
        yield problem(told, "crontab", HINT)
    if not found.lines and found.scripts:
        yield f"no crontab line runs {found.scripts[0]}"


def _reinstall(context: CheckContext) -> str:
    path = context.path if context.has_state else None
    name = job_name(path)
    known, there = read_settings(name), find(name)
    every = (known.every if known is not None else 0) or (there[1].every if there is not None else 0) or 30
    hours = known.hours if known is not None else None
    at = as_stamp(context.now())
    placed = install(path, every=every, hours=hours, system=there[0] if there else "auto", at=at)
    return f"installed again by {placed.system}"


# --- The machine ----------------------------------------------------------------------------------------------------


def check_machine(context: CheckContext) -> Found:
    """Check that this machine has a stable id of its own."""
    path = own_id_path()
    if os.path.exists(path):
        raw = b""
        with suppress(OSError), open(path, "rb") as file:
            raw = file.read(200).strip()
        if not raw or not raw.isascii():
            hint = (
                "delete it, so that a new id is created; then run `truekeep host take` if this was the canonical host"
            )
            yield problem("contains no id, so this machine cannot be identified", path, hint)
    machine = context.machine
    if machine is None:
        yield f"{machine_name()} has no id yet; it is created when needed"
        return
    if context.has_state:
        own = context.host_status.find(machine.id)
        if own is not None and own.name != machine.name:
            yield f"this machine was called {own.name}; if it is a clone of that machine, give it an id of its own"
    if os.environ.get("TRUEKEEP_MACHINE_ID"):
        yield "its id comes from TRUEKEEP_MACHINE_ID, which hooks and timers must have as well"
    yield f"{machine.name} ({machine.id[:8]})"


def check_clock(context: CheckContext) -> Found:
    """Check that the last ledger entry is not in the future, which means a wrong clock."""
    path = os.path.join(context.state, "ledger.sqlite")
    latest = ""
    with suppress(OSError, apsw.Error, UnicodeDecodeError):
        if os.path.getsize(path) and not os.path.islink(path):
            with opened(path) as db:
                latest = str(db.execute("SELECT at FROM entry ORDER BY id DESC LIMIT 1").get or "")
    try:
        moment = datetime.fromisoformat(latest) if latest else None
    except ValueError:
        return
    if moment is not None and moment.tzinfo is not None and moment > context.now() + _MAX_CLOCK_SKEW:
        what = f"the last entry is from {latest}, but it is {context.now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} now"
        yield problem(what, context.shown(path), "correct the clock; if only the entry is wrong, no action is needed")
