"""Sync by rsync over ssh: the canonical host pulls from a machine that only needs an ssh server.

A machine that reaches the host itself does it the other way round (`pull_rsync`).

One ssh call lists the waiting handoffs and moves the filed ones to processed/ (`remote_scan`). rsync runs only if there
are new files, into a quarantine folder. Files that match the listing go into the mirror; others wait for the next run.
seen.json records fetched files with their size and times, so that nothing is fetched twice and edits are noticed. If it
is lost, files are fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadSetup
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.repository import parse_remote
from truekeep.handoffs.inbox import PROCESSED, is_handoff_name
from truekeep.handoffs.sync import pull_rsync
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import MAX_FILE_BYTES, Arrivals, Mirror, RemoteRepository, name_repository, unwanted
from truekeep.handoffs.sync.processes import Ran, find_tool, run_tool
from truekeep.handoffs.sync.push_memory import publish_for, push_memory, told_published
from truekeep.handoffs.sync.remote_scan import (
    MAX_FILES,
    NoAnswer,
    Receipt,
    RemoteHandoff,
    RemoteScan,
    folder_of,
    parse_survey,
    render_script,
)
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable
from truekeep.handoffs.sync.ssh import FAILED, host_of, remote_shell, rsync_host, ssh_command, unreachable
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.publication import Head

QUARANTINE = "quarantine"
MEMORY = "seen.json"
MAX_SCAN_BYTES = 64 << 20
MAX_RUN_BYTES = 256 << 20
_MAX_BATCH_BYTES, _MAX_BATCH_FILES = 32 << 20, 4_000
_MIN_FREE_BYTES = 16 << 20
_TRANSFER_STEPS = 5  # all transfers of a run may take this many step timeouts
_PARTIAL = (23, 24)  # rsync's exit codes for a partial transfer
_MAX_NOTES = 20
_MAX_SETTLE_WAIT = 5.0  # seconds
_WARNINGS = {
    "root": "skipped a repository whose name contains control characters",
    "symlink": "{folder} is reached through a symlink and is skipped",
    "denied": "{folder} cannot be read",
    "odd": "{folder} contains symlinks, hard links or names with control characters; they are skipped",
}

Key = tuple[str, str, str]  # remote root, inbox and name


class FetchedHandoff(NamedTuple):
    """A handoff that waits on the other machine and was already fetched."""

    size: int
    modified: int
    changed: int
    digest: str
    place: str  # the folder in the mirror

    def is_same(self, found: RemoteHandoff) -> bool:
        return (self.size, self.modified, self.changed) == (found.size, found.modified, found.changed)


class FetchPlan(NamedTuple):
    """Which of a machine's waiting handoffs to fetch."""

    seen: dict[Key, FetchedHandoff]  # already fetched and still waiting there
    new: tuple[RemoteHandoff, ...]
    settling: int
    notes: tuple[str, ...]


def contact(route: Route, here: LocalMachine) -> Contact:
    """Fetch new handoffs from one machine, and move the processed ones away there."""
    if not here.is_host:
        return pull_rsync.contact(route, here)
    host = host_of(route)
    if not route.texts("repos"):
        raise BadSetup(
            f"route {route.name} has no repositories", hint="set repos to a list of patterns such as '~/repos/*'"
        )
    mirror = Mirror.of(here.state, route.name)
    seen = _still_kept(read_memory(mirror.base), mirror)
    receipts = {key: _receipt(key, item) for key, (item, is_done) in seen.items() if is_done}
    published, unpublished = publish_for(route, here)
    head = published.head if published is not None else None
    survey, said = _ask(route, here, host, receipts.values(), head)
    known = {key: item for key, (item, _) in seen.items()}
    plan = plan_fetch(known, survey, settle=here.settle)
    if plan.settling and here.settle <= _MAX_SETTLE_WAIT:  # just written: wait, as ingest does
        time.sleep(here.settle + 1)  # the times are whole seconds
        survey, said = _ask(route, here, host, receipts.values(), head)
        plan = plan_fetch(known, survey, settle=here.settle)
    machine = printable(survey.machine).strip()[:80] or route.name
    moved = [
        key
        for key, item in receipts.items()
        if key not in plan.seen and f"{item.folder}/{item.name}" not in survey.unmoved
    ]
    notes = [*_notes(survey, machine, said), *plan.notes, *unpublished]
    try:
        brought, waiting = _fetch(route, here, host, mirror, machine, survey, plan, notes)
    finally:
        with suppress(OSError):  # only means fetching again
            write_memory(mirror.base, plan.seen)
    if published is not None and survey.incoming and survey.memory != published.head.manifest:
        notes += push_memory(route, here, host, machine, survey.incoming, published)
    return Contact(
        route.name,
        "",
        True,
        brought=brought,
        receipts=len(moved),
        waiting=plan.settling + waiting,
        machines=(machine,),
        notes=tuple(notes[:_MAX_NOTES]),
        **told_published(published),
    )


# --- Scan -----------------------------------------------------------------------------------------------------------


def _ask(
    route: Route, here: LocalMachine, host: str, receipts: Iterable[Receipt], head: Head | None = None
) -> tuple[RemoteScan, str]:
    """Scan the machine. Returns the scan and the last line of its error output."""
    mark = secrets.token_hex(8)
    inboxes = tuple(dict.fromkeys(here.writers.values()))
    memory = (head.manifest, head.render().decode().strip()) if head is not None else None
    script = render_script(route.texts("repos"), inboxes, receipts, mark=mark, memory=memory)
    command = [*ssh_command(route), "--", host, "sh -s"]
    ran = _run_limited(command, most=MAX_SCAN_BYTES, seconds=here.seconds, given=script)
    if ran.code in (FAILED, -1):
        raise unreachable(host, ran, port=route.number("port", 0))
    if ran.code == -signal.SIGXFSZ:
        raise Unreachable(f"{host} sends too much output", "check what its login prints, and its inboxes")
    try:
        return parse_survey(ran.out, inboxes, mark=mark), ran.last_words
    except NoAnswer as error:
        if error.is_started:
            raise Unreachable(
                f"the connection to {host} broke", "nothing was lost; the next run tries again"
            ) from error
        words = ran.last_words or printable(error.text).strip() or f"exit {ran.code}"
        raise Unreachable(
            f"{host} does not run commands for this login: {words}",
            f"it needs a login shell; try `ssh {host} sh -c id`",
        ) from error


def _run_limited(command: Sequence[str], *, most: int, seconds: float, given: bytes) -> Ran:
    """Run a program with a limit on the size of its output and of any file it writes."""
    find_tool(command[0])
    limit = f'ulimit -f {most // 512}; ulimit -v {4 << 20} 2>/dev/null; exec "$@"'
    return run_tool(["sh", "-c", limit, "sh", *command], seconds=seconds, given=given, max_output=most)


def plan_fetch(seen: Mapping[Key, FetchedHandoff], survey: RemoteScan, *, settle: float) -> FetchPlan:
    """Sort the waiting handoffs: already fetched, to fetch, and still being written by that machine's clock."""
    known: dict[Key, FetchedHandoff] = {}
    new: list[RemoteHandoff] = []
    settling = 0
    refused: list[str] = []
    first, last = survey.between
    for found in survey.files:
        if not is_handoff_name(found.name):
            continue
        key = (found.root, found.inbox, found.name)
        before = seen.get(key)
        path = f"{found.folder}/{found.name}"
        if before is not None and before.is_same(found) and survey.unmoved.get(path) != "changed":
            known[key] = before
        elif why := unwanted(found.name, found.size):
            refused.append(f"{printable(path)[:200]} {why}")
        elif settle and first - settle <= found.modified <= last + 1:
            settling += 1
        else:
            new.append(found)
    if len(refused) > 5:
        refused[5:] = [f"and {len(refused) - 5} more files are skipped"]
    return FetchPlan(known, tuple(new), settling, tuple(refused))


def _notes(survey: RemoteScan, machine: str, said: str) -> Iterator[str]:
    for folder, what in survey.odd[:10]:
        yield f"{machine}: {_WARNINGS.get(what, '{folder} cannot be used').format(folder=printable(folder)[:200])}"
    if not survey.origins:
        yield f"{machine}: no repository of this route has an inbox"
    if not survey.is_whole:
        yield f"{machine} has too many files; the next runs fetch the rest"
    if stuck := [path for path, why in survey.unmoved.items() if why == "stuck"]:
        what = f"{len(stuck)} filed handoffs could not be moved to {PROCESSED}/, such as {printable(stuck[0])[:200]}"
        yield f"{machine}: {what}{f': {said}' if said else ''}"


# --- Transfer -------------------------------------------------------------------------------------------------------


def _fetch(
    route: Route,
    here: LocalMachine,
    host: str,
    mirror: Mirror,
    machine: str,
    survey: RemoteScan,
    plan: FetchPlan,
    notes: list[str],
) -> tuple[int, int]:
    """Fetch new handoffs into the mirror. Returns how many came and how many wait for the next run."""
    brought = waiting = count = total = 0
    is_cut = False
    places: dict[str, RemoteRepository] = {}
    until = time.monotonic() + _TRANSFER_STEPS * here.seconds
    for some in _batches(plan.new):
        count, total = count + len(some), total + sum(found.size for found in some)
        if count > MAX_FILES or total > MAX_RUN_BYTES or time.monotonic() > until:
            waiting += len(some)
            is_cut = True
            continue
        with _quarantine(here.state, route.name) as folder:
            ran = _pull(route, here, host, some, folder)
            for found, data in _read_whole(folder, some):
                if data is None:
                    waiting += 1
                    continue
                if found.root not in places:
                    name = name_repository(machine, parse_remote(survey.origins.get(found.root, "")), found.root)
                    places[found.root] = mirror.place(machine, found.root, name)
                place = places[found.root]
                try:
                    brought += bool(mirror.take(place, found.inbox, found.name, data))
                except UnsafePath as error:
                    notes.append(f"{machine}: {error.message}")
                    continue
                plan.seen[found.root, found.inbox, found.name] = FetchedHandoff(
                    found.size,
                    found.modified,
                    found.changed,
                    hashlib.sha256(data).hexdigest(),
                    place.folder.name,
                )
        if not ran.ok:
            _report_failure(host, machine, ran, notes, port=route.number("port", 0))
    if is_cut:
        notes.append(f"{machine} has more handoffs than one run fetches; the next runs fetch the rest")
    return brought, waiting


def _batches(new: Sequence[RemoteHandoff]) -> Iterator[list[RemoteHandoff]]:
    some: list[RemoteHandoff] = []
    size = 0
    for found in new:
        if some and (len(some) == _MAX_BATCH_FILES or size + found.size > _MAX_BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(found)
        size += found.size
    if some:
        yield some


@contextmanager
def _quarantine(state: Path, route: str) -> Iterator[Path]:
    """A temporary folder for fetched files. Runs never overlap, so each route has one fixed name."""
    folder = state / QUARANTINE / route
    file_io.make_private(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)  # left by a run that was killed
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pull(route: Route, here: LocalMachine, host: str, some: Sequence[RemoteHandoff], folder: Path) -> Ran:
    """Fetch these files with rsync. Their names are passed on stdin, never through a command line or shell."""
    size = sum(found.size for found in some)
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < 2 * size + _MIN_FREE_BYTES:
        raise _no_space_here(folder)
    os.mkdir(folder / "come", 0o700)
    os.mkdir(folder / "coming", 0o700)
    names = b"".join(os.fsencode(f"{found.folder}/{found.name}"[1:]) + b"\0" for found in some)
    there = rsync_host(host)
    command = [
        "rsync", remote_shell(route),
        "--files-from=-", "--from0", "--relative", "--no-implied-dirs", "--times", "--no-recursive", "--no-links",
        "--no-devices", "--no-specials", "--no-perms", "--no-owner", "--no-group", "--chmod=D700,F600", "--whole-file",
        "--no-inplace", "--no-partial", f"--temp-dir={folder / 'coming'}", f"--max-size={MAX_FILE_BYTES}",
        "--timeout=60",
        f"{there}:/", f"{folder / 'come'}/",
    ]  # fmt: skip
    return _run_limited(command, most=MAX_FILE_BYTES + (1 << 20), seconds=here.seconds, given=names)


def _read_whole(folder: Path, some: Sequence[RemoteHandoff]) -> Iterator[tuple[RemoteHandoff, bytes | None]]:
    """The fetched files; None for one that is missing or differs from the scan."""
    with ExitStack() as stack:
        opened: dict[str, int | None] = {}
        for found in some:
            if found.folder not in opened:
                opened[found.folder] = inside = _open_below(folder / "come", found.folder)
                if inside is not None:
                    stack.callback(os.close, inside)
            inside = opened[found.folder]
            yield found, None if inside is None else _read_one(inside, found)


def _read_one(folder: int, found: RemoteHandoff) -> bytes | None:
    try:
        data, stamp = file_io.read_file(folder, found.name, limit=MAX_FILE_BYTES)
    except (OSError, UnsafePath, ChangedSince):
        return None
    # Not every file system can store the times that a wrong clock produces.
    is_dated = 0 <= found.modified < 1 << 31
    if len(data) != found.size or (is_dated and stamp.mtime_ns // 1_000_000_000 != found.modified):
        return None
    return data


def _open_below(base: Path, path: str) -> int | None:
    """Open a folder below another, without following symlinks; None if that fails."""
    descriptor = file_io.open_root(str(base))
    for part in path.strip("/").split("/"):
        above = descriptor
        try:
            descriptor = file_io.open_folder(above, part)
        except (OSError, UnsafePath):
            return None
        finally:
            os.close(above)
    return descriptor


def _report_failure(host: str, machine: str, ran: Ran, notes: list[str], *, port: int) -> None:
    """Handle an rsync failure: a note if only some files failed, else raise Unreachable."""
    said = ran.err.lower()
    words = next((line for line in ran.err.splitlines() if line.startswith("rsync:")), ran.last_words)[:200]
    if "no space left" in said or "quota exceeded" in said:
        where = host if "[sender]" in words else "this host"
        raise Unreachable(f"no space left on {where}", "free some space; nothing was lost")
    if ran.code not in _PARTIAL:
        raise _broken(host, ran, said, words, port)
    notes.append(f"{machine}: {words}")


def _broken(host: str, ran: Ran, said: str, words: str, port: int) -> Unreachable:
    if "command not found" in said or ran.code == 127:
        return Unreachable(f"rsync is not installed on {host}", "install rsync there")
    if "is your shell clean" in said or "protocol version mismatch" in said:
        return Unreachable(
            f"the login shell on {host} prints text, which breaks rsync",
            f"make `ssh {host} true` print nothing: check .bashrc and similar files there",
        )
    if ran.code in (FAILED, -1):
        return unreachable(host, ran, port=port)
    if ran.code == 30 or "timeout" in said:
        return Unreachable(f"{host} took too long", "nothing was lost; the next run continues")
    detail = f": {words}" if words else f" (exit {ran.code})"
    return Unreachable(f"rsync from {host} failed{detail}", "nothing was lost; the next run continues")


def _no_space_here(folder: Path) -> Unreachable:
    return Unreachable("no space left on this host", f"free some space for {folder.parent.parent}; nothing was lost")


# --- Fetched files --------------------------------------------------------------------------------------------------


def read_memory(base: Path) -> dict[Key, FetchedHandoff]:
    """Read the record of fetched files; empty if it cannot be read."""
    found: dict[Key, FetchedHandoff] = {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        for root, inbox, name, *rest in json.loads((base / MEMORY).read_bytes())["seen"]:
            size, modified, changed, digest, place = rest
            if all(isinstance(item, int) for item in (size, modified, changed)) and "/" not in f"{place}":
                seen = FetchedHandoff(size, modified, changed, str(digest), str(place))
                found[str(root), str(inbox), str(name)] = seen
    return found


def write_memory(base: Path, seen: Mapping[Key, FetchedHandoff]) -> None:
    data = json.dumps({"seen": [[*key, *item] for key, item in sorted(seen.items())]}).encode()
    with suppress(OSError):
        if (base / MEMORY).read_bytes() == data:
            return
    file_io.write_whole(base / MEMORY, data)


def _still_kept(seen: Mapping[Key, FetchedHandoff], mirror: Mirror) -> dict[Key, tuple[FetchedHandoff, bool]]:
    """The fetched handoffs that are still in the mirror, each with True if ingest has processed it.

    Others are fetched again; the ledger recognises a handoff that was filed before.
    """
    places = {item.place: Arrivals(mirror.base / item.place) for item in seen.values()}
    found: dict[Key, tuple[FetchedHandoff, bool]] = {}
    for key, item in seen.items():
        is_done = places[item.place].find(key[1], key[2], item.digest)
        if is_done is not None:
            found[key] = (item, is_done)
    return found


def _receipt(key: Key, item: FetchedHandoff) -> Receipt:
    root, inbox, name = key
    return Receipt(folder_of(root, inbox), name, item.digest)
