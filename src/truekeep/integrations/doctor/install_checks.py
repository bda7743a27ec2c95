"""The set-up around the state: permissions, locks, what the configuration names, hooks, the schedule, the machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import apsw

from truekeep.core.dates import many
from truekeep.core.errors import TruekeepError, as_argument
from truekeep.core.harness_paths import find_homes
from truekeep.core.machine import machine_name, own_id_path
from truekeep.core.model import WRITERS, as_stamp
from truekeep.core.sqlite import SIDECAR_SUFFIXES, remove_database
from truekeep.core.state_dir import STATE
from truekeep.handoffs.inbox import InboxReader, find_inboxes
from truekeep.handoffs.sync.receipts import KEY_FILE
from truekeep.integrations.doctor.base import Case, Found, Trouble
from truekeep.integrations.doctor.sqlite_checks import opened, size_of
from truekeep.integrations.doctor.state_checks import CONFIG, line_of_key
from truekeep.integrations.harnesses.installed import Keep
from truekeep.integrations.harnesses.plan import USER, bundle_files
from truekeep.integrations.harnesses.status import probe_hook, see_connections
from truekeep.integrations.schedule import cron
from truekeep.integrations.schedule.base import backend
from truekeep.integrations.schedule.config import job_name, read_settings, settings_path
from truekeep.integrations.schedule.install import find, install
from truekeep.memory.ledger import set_aside
from truekeep.verify.checkouts import expand_repositories
from truekeep.verify.same_name_checkouts import SAME_NAME_HINT, find_same_names
from truekeep.workspace.failures import failed_runs, noted_bugs
from truekeep.workspace.pipeline import receipt_alarms
from truekeep.workspace.schedule_log import judge_runs, read_runs

_OTHERS = 0o007
_PRIVATE = (
    *("sessions", "checkpoints", "connect", "transcripts", "exchange", "git", "sync.toml", "schedule.toml"),
    KEY_FILE,
)
_INNER = ("", "hosts", "logs", "transcripts", "contacts", "synced")  # folders of the state that truekeep writes into
_MEMORY = ("", "memory", "memory/cards", "memory/handoff-inbox", "rules", ".learnings")
_AHEAD = timedelta(minutes=10)
_LOCKS = {"": "writes", "index.lock": "indexes", "logs": "runs the schedule", "transcripts": "reads transcripts"}
_DATABASES = ("ledger.sqlite", "catalog.sqlite", "survey.sqlite", "facts.sqlite", "index.sqlite")
_SHOWN = 3


# --- Permissions ----------------------------------------------------------------------------------------------------


def check_permissions(case: Case) -> Found:
    """Who may read and write the state, and whether we may."""
    if case.has_state:
        if os.statvfs(case.state).f_flag & os.ST_RDONLY:
            yield Trouble("is on a disk that can only be read", case.root, "mount it for writing; reading goes on")
            return
        yield from _exposed([case.state])
        owner = os.stat(case.root).st_uid
        yield from _misowned(_entries(case.state), owner)
        yield from _unwritable(_entries(case.state))
        for folder in _MEMORY:  # a person may want it so: told, not changed
            path = os.path.join(case.root, folder) if folder else case.root
            with suppress(FileNotFoundError, NotADirectoryError):
                info = os.lstat(path)
                if stat.S_ISDIR(info.st_mode) and not info.st_mode & stat.S_IWUSR:
                    yield Trouble("memory cannot be written into this folder", path, f"`chmod u+w {path}`")
                elif folder and stat.S_ISLNK(info.st_mode):
                    what = "is a symlink: nothing is read or written there"
                    yield Trouble(what, path, "put a folder there; what waits for it is filed by the next ingest")
    if os.path.isdir(case.own):
        own = [os.path.join(case.own, name) for name in sorted(os.listdir(case.own))]
        if os.lstat(case.own).st_mode & _OTHERS:
            yield from _exposed([path for path in own if os.path.basename(path) in _PRIVATE])
        yield from _misowned([case.own, *own], os.stat(os.path.dirname(case.own)).st_uid)
        yield from _unwritable([case.own, *own])


def _entries(state: str) -> list[str]:
    """The state folder, what is in it, and what is in its own folders."""
    found = [state]
    for folder in _INNER:
        base = os.path.join(state, folder) if folder else state
        if os.path.islink(base):
            continue
        with suppress(OSError):
            found += [os.path.join(base, name) for name in sorted(os.listdir(base))]
    return [path for path in dict.fromkeys(found) if os.path.lexists(path) and not os.path.islink(path)]


def _exposed(paths: Sequence[str]) -> Iterator[Trouble]:
    for path in paths:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        if mode & _OTHERS and not os.path.islink(path):
            what = f"other users of this machine may look into it ({mode:04o})"
            yield Trouble(what, path, mend=partial(_close, path, mode & ~_OTHERS), cure="close it")


def _close(path: str, mode: int) -> str:
    os.chmod(path, mode)
    return f"closed to others: {mode:04o}"


def _misowned(paths: Sequence[str], owner: int) -> Iterator[Trouble]:
    """What belongs to somebody else than the folder around it: a run as another user left it."""
    wrong = [path for path in paths if os.path.lexists(path) and os.lstat(path).st_uid != owner]
    if not wrong:
        return

    def give() -> str:
        group = os.stat(os.path.dirname(wrong[0])).st_gid
        for path in wrong:
            os.chown(path, owner, group, follow_symlinks=False)
        return f"given to user {owner}"

    what = f"{many(len(wrong), 'file')} of user {os.lstat(wrong[0]).st_uid} in a folder of user {owner}"
    is_root = os.geteuid() == 0
    hint = "" if is_root else f"`sudo chown -R {owner} {os.path.dirname(wrong[0])}`"
    yield Trouble(what, wrong[0], hint, give if is_root else None, "give them back")


def _unwritable(paths: Sequence[str]) -> Iterator[Trouble]:
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

    what = f"{many(len(wrong), 'place')} of truekeep's own cannot be written"
    yield Trouble(what, wrong[0][0], mend=permit, cure="make them writable for their owner")


# --- Receipts -------------------------------------------------------------------------------------------------------


def check_receipts(case: Case) -> Found:
    """Whether this producer can tell its host's receipts from anybody else's."""
    for alarm in receipt_alarms():
        yield Trouble(alarm.message, os.path.join(case.own, "sync.toml"), alarm.hint)


# --- Locks ----------------------------------------------------------------------------------------------------------


def check_locks(case: Case) -> Found:
    """Who is at work. Our locks are the kernel's: nobody can leave one behind. SQLite's journals and git's can be."""
    held = _kernel_locks()
    for name, does in _LOCKS.items() if case.has_state else ():
        path = os.path.join(case.state, name) if name else case.state
        with suppress(OSError):
            pid = held.get(os.stat(path).st_ino)
            if pid is not None and _has_open(pid, path):
                yield f"process {pid} ({_process(pid)}) {does}"
    if case.has_state and not case.newer:
        for name in _DATABASES:
            yield from _journals(case, os.path.join(case.state, name), held)
    for base in dict.fromkeys((case.state, case.own) if case.has_state else (case.own,)):
        old = [path for path in _git_locks(os.path.join(base, "git")) if case.is_old(path)]
        if old:
            what = f"{many(len(old), 'lock')} of a killed git in truekeep's own repository"
            yield Trouble(what, case.shown(old[0]), mend=partial(_unlink, old), cure="remove them")
    yield from _checkout_locks(case)


def _kernel_locks() -> dict[int, int]:
    """Which process holds a lock on which inode, as far as the system tells. Of which disk, it tells unreliably."""
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


def _journals(case: Case, path: str, held: dict[int, int]) -> Found:
    """What SQLite leaves beside a database when its process is killed."""
    left = [path + tail for tail in SIDECAR_SUFFIXES if tail != "-shm" and size_of(path + tail)]
    if not left or any(_is_held(file, held) for file in (path, *left, f"{path}-shm")):
        return
    where = case.shown(left[0])
    if not os.path.lexists(path):
        is_derived = not path.endswith("ledger.sqlite")
        cure = "remove it" if is_derived else "keep it as evidence"
        yield Trouble("belongs to a database that is gone", where, mend=lambda: _orphan(case, path), cure=cure)
    else:
        yield Trouble("was left by a killed run", where, mend=lambda: _take_in(path), cure="let SQLite take it in")


def _is_held(path: str, held: dict[int, int]) -> bool:
    try:
        return os.stat(path).st_ino in held
    except OSError:
        return False


def _orphan(case: Case, path: str) -> str:
    if not path.endswith("ledger.sqlite"):
        remove_database(path)
        return "removed: it was derived"
    return f"kept as {os.path.basename(set_aside(path, stamp=case.stamp()))}-wal"


def _take_in(path: str) -> str:
    db = apsw.Connection(path)
    try:
        db.set_busy_timeout(2000)
        db.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018 - the first look takes it in
        if db.execute("PRAGMA journal_mode").get == "wal":
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.close()
    return "taken in"


def _git_locks(folder: str) -> Iterator[str]:
    for base, _, names in os.walk(folder):
        yield from (os.path.join(base, name) for name in names if name.endswith(".lock"))


def _checkout_locks(case: Case) -> Found:
    """A lock in a repository of yours: git itself may have it, in an open `git commit`, so it is only told."""
    roots = expand_repositories(case.config.repositories) if case.has_state else []
    for root in roots:
        path = os.path.join(root, ".git", "index.lock")
        if case.is_old(path):
            yield Trouble("git left it more than an hour ago", path, f"if no git is at work there: `rm {path}`")


def _unlink(paths: Sequence[str]) -> str:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
    return f"removed {len(paths)}"


# --- What the configuration names -----------------------------------------------------------------------------------


def check_repositories(case: Case) -> Found:
    """Whether what the configuration names is there."""
    config = case.config
    text = ""
    with suppress(OSError, UnicodeDecodeError), open(os.path.join(case.state, CONFIG), encoding="utf-8") as file:
        text = file.read(1_000_000)
    hint = "correct it in an editor, or bring the folder back"
    for key, patterns in (("repositories", config.repositories), ("verify.checkouts", config.verify.checkouts)):
        for pattern in patterns:
            if not expand_repositories((pattern,)):
                has_signs = any(sign in pattern for sign in "*?[")
                what = f"{key}: {pattern} {'matches no folder' if has_signs else 'is no folder'}"
                yield Trouble(what, _place(text, key, pattern), hint)
    for path in config.recall.extra_paths:
        if not os.path.exists(os.path.join(case.root, os.path.expanduser(path))):
            what = f"recall.extra_paths: {path} does not exist"
            yield Trouble(what, _place(text, "recall.extra_paths", path), hint)
    roots = expand_repositories(config.repositories)
    for name, folder in config.writers.items():
        is_added = WRITERS.get(name) != folder
        if is_added and not any((root / folder).is_dir() for root in (*roots, Path(case.root))):
            where = _place(text, f"writers.{name}", folder)
            what = f"writers.{name}: no repository has an inbox {folder}"
            yield Trouble(what, where, "`truekeep connect` makes it in the repository that you are in")
    yield from _not_handoffs(case, roots)
    folders = expand_repositories((*config.verify.checkouts, *config.repositories))
    machine = case.machine.name if case.machine is not None else ""
    for told in find_same_names(folders, state=case.state, machine=machine, writers=config.writers):
        yield Trouble(told, "", SAME_NAME_HINT)
    bare = [root for root in roots if not any((root / folder).is_dir() for folder in config.writers.values())]
    if roots:
        more = f", {len(bare)} of them without an inbox (`truekeep connect` makes it)" if bare else ""
        yield f"{len(roots)} {'repository' if len(roots) == 1 else 'repositories'}{more}"


def _not_handoffs(case: Case, roots: Sequence[Path]) -> Found:
    """Files in inboxes that ingest never takes."""
    looked = InboxReader(find_inboxes([*roots, Path(case.root)], case.config.writers), limit=0, settle=0)
    looked.waiting()
    looked.close()
    others = [str(path) for path in looked.others if case.is_old(str(path))]
    if others:
        what = (
            f"{many(len(others), 'file')} in inboxes {'is not a handoff' if len(others) == 1 else 'are not handoffs'}"
        )
        yield Trouble(what, case.shown(others[0]), "a handoff's name ends in .md: rename it, or move it away")


def _place(text: str, key: str, value: str) -> str:
    """Where a value of the configuration stands: its own line, else the line of its key."""
    first = line_of_key(text, key)
    lines = text.splitlines()
    line = next((at for at in range(first, len(lines) + 1) if first and value in lines[at - 1]), first)
    return f"{STATE}/{CONFIG}:{line}" if line else f"{STATE}/{CONFIG}"


# --- Hooks ----------------------------------------------------------------------------------------------------------


def check_hooks(case: Case) -> Found:
    """Whether the harnesses that were connected still are, and whether the hook answers."""
    homes = find_homes()
    try:
        record = Keep(homes.keep).read()
    except TruekeepError as error:
        yield Trouble(error.message, str(homes.keep), error.hint)
        return
    if not record.owners:
        yield "no harness is connected here; `truekeep connect` does"
        return
    cards = Path(os.path.realpath(os.path.join(case.root, "memory", "cards"))) if case.has_state else None
    told: set[str] = set()
    has_program = False  # of a harness that uses the plugin
    for place in record.places:
        root = Path(place) if place != USER else None
        again = f"`truekeep connect --repo {as_argument(place)}`" if root is not None else "`truekeep connect --user`"
        if root is not None and not root.is_dir():
            hint = f"`truekeep disconnect --repo {as_argument(place)}`, or bring it back"
            yield Trouble("was connected, and is gone", place, hint)
            continue
        for item in see_connections(homes, root=root, cards=cards):
            if f"{item.harness}@{place}" not in record.owners:
                continue
            has_program |= item.program is not None and item.harness != "openclaw"
            problems = [(problem, "") for problem in item.problems]
            if not item.is_connected and item.program is not None and not problems:
                problems = [("was connected, and its own files no longer name truekeep", again)]
            for problem, hint in problems:
                what = f"{item.harness}: {problem}"
                if what not in told:
                    told.add(what)
                    yield Trouble(what, place, hint or again)
    changed = [path for path, text in bundle_files(homes).items() if _text(path) != text]
    if changed and has_program:
        what = f"{many(len(changed), 'file')} of the plugin missing or changed"
        yield Trouble(what, str(changed[0]), "`truekeep connect` writes them again")
    probe = probe_hook()
    if not probe.is_well:
        yield Trouble(f"the hook does not answer: {probe.why}", hint="put `truekeep` on the PATH that harnesses have")
    else:
        names = sorted({owner.partition("@")[0] for owner in record.owners})
        yield f"{', '.join(names)} connected; the hook answers in {probe.seconds:.1f} s"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


# --- The schedule ---------------------------------------------------------------------------------------------------


def check_schedule(case: Case) -> Found:
    """Whether what was installed is still there, can run, and ran well."""
    name = job_name(case.path if case.has_state else None)
    try:
        known = read_settings(name)
    except TruekeepError as error:
        yield Trouble(error.message, str(settings_path()), error.hint)
        return
    there = find(name)
    if there is None:
        if known is not None:
            what = f"the timer that was installed by {known.system} is gone"
            yield Trouble(what, str(settings_path()), "`truekeep schedule install`, or `truekeep schedule remove`")
        else:
            yield "no timer is installed; `truekeep schedule install` installs one"
        return
    system, installed = there
    command = backend(system).command(name)
    where = installed.where[0]
    if command and not (os.path.isfile(command[0]) and os.access(command[0], os.X_OK)):
        cure = "install it again, with this truekeep"
        yield Trouble(f"the timer runs {command[0]}, which is not there", where, mend=lambda: _again(case), cure=cure)
    state = _runs_folder(case)
    every = installed.every or (known.every if known is not None else 30)
    health = judge_runs(
        read_runs(state), every=every, installed_at=known.installed_at if known is not None else "", now=case.now()
    )
    asleep = system == "cron" and not cron.is_running()
    if health.is_overdue:
        since = f"since {health.since:%Y-%m-%d %H:%M}" if health.since is not None else "ever"
        hint = (
            "no cron daemon runs here: start it" if asleep else "`truekeep schedule status`; is the timer switched on?"
        )
        yield Trouble(f"it did not run {since}", where, hint)
    yield f"every {every} minutes by {system}" + (", but no cron daemon runs here: start it" if asleep else "")


def check_runs(case: Case) -> Found:
    """Whether every step of the schedule went well when it was last done."""
    for failure in failed_runs(_runs_folder(case), now=case.now()):
        yield Trouble(failure.what, case.shown(failure.where), failure.hint)


def _runs_folder(case: Case) -> Path:
    return Path(case.state if case.has_state and case.is_host else case.own)


def _again(case: Case) -> str:
    path = case.path if case.has_state else None
    name = job_name(path)
    known, there = read_settings(name), find(name)
    every = (known.every if known is not None else 0) or (there[1].every if there is not None else 0) or 30
    quiet = known.quiet_hours if known is not None else None
    at = as_stamp(case.now())
    placed = install(path, every=every, quiet_hours=quiet, system=there[0] if there else "auto", at=at)
    return f"installed again by {placed.system}"


# --- The machine ----------------------------------------------------------------------------------------------------


def check_machine(case: Case) -> Found:
    """Whether this machine can be told from others, and stays the same."""
    path = own_id_path()
    if os.path.exists(path):
        raw = b""
        with suppress(OSError), open(path, "rb") as file:
            raw = file.read(200).strip()
        if not raw or not raw.isascii():
            hint = "delete it: a new id is made; then `truekeep host take`, if this was the canonical host"
            yield Trouble("holds no id, so this machine cannot be told from others", path, hint)
    machine = case.machine
    if machine is None:
        yield f"{machine_name()} has no id yet; the first command that needs one makes it"
        return
    if case.has_state:
        own = case.host_status.find(machine.id)
        if own is not None and own.name != machine.name:
            yield f"this machine was called {own.name}; if it is a clone of that one, give it an id of its own"
    if os.environ.get("TRUEKEEP_MACHINE_ID"):
        yield "its id comes from TRUEKEEP_MACHINE_ID, which hooks and timers must have as well"
    yield f"{machine.name} ({machine.id[:8]})"


def check_clock(case: Case) -> Found:
    """Whether time goes on: an entry of the future means that the clock is wrong, or was."""
    path = os.path.join(case.state, "ledger.sqlite")
    latest = ""
    with suppress(OSError, apsw.Error, UnicodeDecodeError):
        if os.path.getsize(path) and not os.path.islink(path):
            with opened(path) as db:
                latest = str(db.execute("SELECT at FROM entry ORDER BY id DESC LIMIT 1").get or "")
    try:
        moment = datetime.fromisoformat(latest) if latest else None
    except ValueError:
        return
    if moment is not None and moment.tzinfo is not None and moment > case.now() + _AHEAD:
        what = f"the last entry is of {latest}, and it is {case.now().astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        yield Trouble(what, case.shown(path), "set the clock right; if the entry is what is wrong, it passes by itself")


def check_bugs(case: Case) -> Found:
    """What truekeep noted of its own bugs."""
    for failure in noted_bugs(now=case.now()):
        yield Trouble(failure.what, failure.where, failure.hint)
