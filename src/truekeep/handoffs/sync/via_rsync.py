"""rsync over ssh: the canonical host pulls from a machine that does nothing but answer ssh.

One trip asks what waits there and leaves the receipts for what was filed (`survey`). Only if something is new does
rsync run, into a quarantine; what is there as it was announced goes into the mirror, everything else waits for the next
run. What the other machine had waiting when it was last asked is remembered, with the stamps that it told: so nothing
is fetched twice, an edit is seen, and a machine with nothing new costs one trip. To lose that memory costs a transfer.
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
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadSetup
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.git import parse_remote
from truekeep.handoffs.inbox import PROCESSED, is_letter_name
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import LARGEST, Mirror, RemoteRepository, name_repository, unwanted
from truekeep.handoffs.sync.processes import Ran, find_tool, run_tool
from truekeep.handoffs.sync.remote_scan import (
    MOST_FILES,
    NoAnswer,
    Receipt,
    RemoteHandoff,
    RemoteScan,
    checksum,
    folder_of,
    parse_survey,
    render_script,
)
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable
from truekeep.handoffs.sync.ssh import FAILED, host_of, ssh_command, unreachable
from truekeep.text.unicode import printable

QUARANTINE = "quarantine"
MEMORY = "seen.json"
MOST_ANSWER = 64 << 20  # bytes of a survey
MOST_BYTES = 256 << 20  # that are fetched in one run,
_PORTION_BYTES, _PORTION_FILES = 32 << 20, 4_000  # and by one rsync
_ROOM = 16 << 20  # bytes that stay free on the disk
_STEPS = 5  # times the patience, for all of a run's transfers together
_PARTIAL = (23, 24)  # rsync's exit codes for "all but some"
_NOTES = 20
_SHORT = 5.0  # seconds of settling that a run waits for
_ODD = {
    "root": "a repository there has a name with control characters; it is passed over",
    "symlink": "{folder} is reached through a symlink, which is not followed",
    "denied": "{folder} cannot be read",
    "odd": "{folder} has symlinks, hard links or names with control characters in it; they are left there",
}

Key = tuple[str, str, str]  # root, inbox and name, there


class FetchedHandoff(NamedTuple):
    """A handoff that waits on the other machine and has been brought here."""

    size: int
    modified: int
    changed: int
    digest: str
    checksum: int
    place: str  # the folder in the mirror
    name: str  # and the name that it got there

    def is_same(self, found: RemoteHandoff) -> bool:
        return (self.size, self.modified, self.changed) == (found.size, found.modified, found.changed)


class FetchPlan(NamedTuple):
    """What to do about what a machine has waiting."""

    seen: dict[Key, FetchedHandoff]  # of what it still has
    new: tuple[RemoteHandoff, ...]
    settling: int
    notes: tuple[str, ...]


def contact(route: Route, here: LocalMachine) -> Contact:
    """Bring what is new from one machine, and tell it what was dealt with since the last time."""
    if not here.is_host:
        raise Unreachable("rsync is pulled by the canonical host", "keep this route there, and none here")
    host = host_of(route)
    if not route.texts("repos"):
        raise BadSetup(f"{route.name} names no repositories", hint="repos is a list of patterns, as '~/repos/*'")
    mirror = Mirror.of(here.state, route.name)
    seen = _still_kept(read_memory(mirror.base), mirror)
    receipts = {key: _receipt(key, item) for key, (item, is_done) in seen.items() if is_done}
    survey, said = _ask(route, here, host, receipts.values())
    known = {key: item for key, (item, _) in seen.items()}
    plan = plan_fetch(known, survey, settle=here.settle)
    if plan.settling and here.settle <= _SHORT:  # left just now: wait for it, as ingest does
        time.sleep(here.settle + 1)  # stamps are told in whole seconds
        survey, said = _ask(route, here, host, receipts.values())
        plan = plan_fetch(known, survey, settle=here.settle)
    machine = printable(survey.machine).strip()[:80] or route.name
    told = [
        key
        for key, item in receipts.items()
        if key not in plan.seen and f"{item.folder}/{item.name}" not in survey.unmoved
    ]
    notes = [*_notes(survey, machine, said), *plan.notes]
    try:
        brought, waiting = _fetch(route, here, host, mirror, machine, survey, plan, notes)
    finally:
        with suppress(OSError):  # costs a transfer, no handoff
            write_memory(mirror.base, plan.seen)
    return Contact(
        route.name,
        "",
        True,
        brought=brought,
        receipts=len(told),
        waiting=plan.settling + waiting,
        machines=(machine,),
        notes=tuple(notes[:_NOTES]),
    )


# --- The trip -------------------------------------------------------------------------------------------------------


def _ask(route: Route, here: LocalMachine, host: str, receipts: Iterable[Receipt]) -> tuple[RemoteScan, str]:
    """The survey, and what the machine complained of meanwhile."""
    mark = secrets.token_hex(8)
    inboxes = tuple(dict.fromkeys(here.writers.values()))
    script = render_script(route.texts("repos"), inboxes, receipts, mark=mark)
    command = [*ssh_command(route), "--", host, "sh -s"]
    ran = _run_limited(command, most=MOST_ANSWER, seconds=here.seconds, given=script)
    if ran.code in (FAILED, -1):
        raise unreachable(host, ran, port=route.number("port", 0))
    if ran.code == -signal.SIGXFSZ:
        raise Unreachable(f"{host} answers without end", "look at what its login prints, and at its inboxes")
    try:
        return parse_survey(ran.out, inboxes, mark=mark), ran.last_words
    except NoAnswer as error:
        if error.is_started:
            raise Unreachable(f"the answer of {host} broke off", "nothing is lost; the next run asks again") from error
        words = ran.last_words or printable(error.text).strip() or f"exit {ran.code}"
        raise Unreachable(
            f"{host} lets in and runs no commands: {words}",
            f"it needs a shell for this login; try `ssh {host} sh -c id`",
        ) from error


def _run_limited(command: Sequence[str], *, most: int, seconds: float, given: bytes) -> Ran:
    """Run a program that can write no file larger than this, its output included: it may be told to."""
    find_tool(command[0])
    limit = f'ulimit -f {most // 512}; ulimit -v {4 << 20} 2>/dev/null; exec "$@"'
    return run_tool(["sh", "-c", limit, "sh", *command], seconds=seconds, given=given, max_output=most)


def plan_fetch(seen: Mapping[Key, FetchedHandoff], survey: RemoteScan, *, settle: float) -> FetchPlan:
    """Of what waits there: what is known, what to fetch, what is still being written by that machine's own clock."""
    known: dict[Key, FetchedHandoff] = {}
    new: list[RemoteHandoff] = []
    settling = 0
    refused: list[str] = []
    first, last = survey.between
    for found in survey.files:
        if not is_letter_name(found.name):
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
        refused[5:] = [f"and {len(refused) - 5} more are left there for such reasons"]
    return FetchPlan(known, tuple(new), settling, tuple(refused))


def _notes(survey: RemoteScan, machine: str, said: str) -> Iterator[str]:
    for folder, what in survey.odd[:10]:
        yield f"{machine}: {_ODD.get(what, 'something is odd about {folder}').format(folder=printable(folder)[:200])}"
    if not survey.origins:
        yield f"{machine}: nothing that this route looks for has an inbox"
    if not survey.is_whole:
        yield f"{machine} has more than {MOST_FILES} files in one inbox, or too many in all; the rest comes later"
    if stuck := [path for path, why in survey.unmoved.items() if why == "stuck"]:
        told = f"{len(stuck)} filed handoffs could not be moved to {PROCESSED}/, such as {printable(stuck[0])[:200]}"
        yield f"{machine}: {told}{f': {said}' if said else ''}"


# --- The transfer ---------------------------------------------------------------------------------------------------


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
    """Bring what is new into the mirror. Gives how many came and how many have to wait."""
    brought = waiting = count = total = 0
    is_cut = False
    places: dict[str, RemoteRepository] = {}
    until = time.monotonic() + _STEPS * here.seconds
    for some in _portions(plan.new):
        count, total = count + len(some), total + sum(found.size for found in some)
        if count > MOST_FILES or total > MOST_BYTES or time.monotonic() > until:
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
                    kept = mirror.take(place, found.inbox, found.name, data)
                except UnsafePath as error:
                    notes.append(f"{machine}: {error.message}")
                    continue
                brought += bool(kept)
                plan.seen[found.root, found.inbox, found.name] = FetchedHandoff(
                    found.size,
                    found.modified,
                    found.changed,
                    hashlib.sha256(data).hexdigest(),
                    checksum(data),
                    place.folder.name,
                    kept or found.name,
                )
        if not ran.ok:
            _judge(host, machine, ran, notes, port=route.number("port", 0))
    if is_cut:
        notes.append(f"{machine} has more than one run brings; the rest comes with the next ones")
    return brought, waiting


def _portions(new: Sequence[RemoteHandoff]) -> Iterator[list[RemoteHandoff]]:
    some: list[RemoteHandoff] = []
    size = 0
    for found in new:
        if some and (len(some) == _PORTION_FILES or size + found.size > _PORTION_BYTES):
            yield some
            some, size = [], 0
        some.append(found)
        size += found.size
    if some:
        yield some


@contextmanager
def _quarantine(state: Path, route: str) -> Iterator[Path]:
    """An empty folder for whatever comes; gone afterwards. Runs never overlap, so it has one name for each route."""
    folder = state / QUARANTINE / route
    file_io.make_private(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)  # left by a run that was killed
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pull(route: Route, here: LocalMachine, host: str, some: Sequence[RemoteHandoff], folder: Path) -> Ran:
    """Let rsync bring these files. Their names go through its own channel, never through a command line or a shell."""
    size = sum(found.size for found in some)
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < 2 * size + _ROOM:
        raise _no_space_here(folder)
    os.mkdir(folder / "come", 0o700)
    os.mkdir(folder / "coming", 0o700)
    names = b"".join(os.fsencode(f"{found.folder}/{found.name}"[1:]) + b"\0" for found in some)
    user, at, name = host.rpartition("@")
    there = f"{user}{at}[{name}]" if ":" in name and not name.startswith("[") else host
    command = [
        "rsync",
        "--rsh=" + " ".join("'" + word.replace("'", "''") + "'" for word in ssh_command(route)),
        "--files-from=-", "--from0", "--relative", "--no-implied-dirs", "--times", "--no-recursive", "--no-links",
        "--no-devices", "--no-specials", "--no-perms", "--no-owner", "--no-group", "--chmod=D700,F600", "--whole-file",
        "--no-inplace", "--no-partial", f"--temp-dir={folder / 'coming'}", f"--max-size={LARGEST}", "--timeout=60",
        f"{there}:/", f"{folder / 'come'}/",
    ]  # fmt: skip
    return _run_limited(command, most=LARGEST + (1 << 20), seconds=here.seconds, given=names)


def _read_whole(folder: Path, some: Sequence[RemoteHandoff]) -> Iterator[tuple[RemoteHandoff, bytes | None]]:
    """The files that came, each as it was announced; None for one that did not, or is another by now."""
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
        data, stamp = file_io.read_file(folder, found.name, limit=LARGEST)
    except (OSError, UnsafePath, ChangedSince):
        return None
    # A file system need not be able to keep every time that a wrong clock can give.
    is_dated = 0 <= found.modified < 1 << 31
    if len(data) != found.size or (is_dated and stamp.mtime_ns // 1_000_000_000 != found.modified):
        return None
    return data


def _open_below(base: Path, path: str) -> int | None:
    """A folder below another, opened part by part, following no symlink."""
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


def _judge(host: str, machine: str, ran: Ran, notes: list[str], *, port: int) -> None:
    """What it means that rsync did not end well: a note for some files that would not come, else raised."""
    said = ran.err.lower()
    words = next((line for line in ran.err.splitlines() if line.startswith("rsync:")), ran.last_words)[:200]
    if "no space left" in said or "quota exceeded" in said:
        where = host if "[sender]" in words else "this host"
        raise Unreachable(f"no space left on {where}", "make room; nothing is lost and the next run goes on")
    if ran.code not in _PARTIAL:
        raise _broken(host, ran, said, words, port)
    notes.append(f"{machine}: {words}")


def _broken(host: str, ran: Ran, said: str, words: str, port: int) -> Unreachable:
    if "command not found" in said or ran.code == 127:
        return Unreachable(f"rsync is not installed on {host}", "install rsync there")
    if "is your shell clean" in said or "protocol version mismatch" in said:
        return Unreachable(
            f"a login on {host} prints something, which rsync cannot read past",
            f"`ssh {host} true` must print nothing: look at .bashrc and the like there",
        )
    if ran.code in (FAILED, -1):
        return unreachable(host, ran, port=port)
    if ran.code == 30 or "timeout" in said:
        return Unreachable(f"{host} took too long", "nothing is lost; the next run goes on")
    told = f": {words}" if words else f" (exit {ran.code})"
    return Unreachable(f"rsync from {host} broke off{told}", "nothing is lost; the next run goes on")


def _no_space_here(folder: Path) -> Unreachable:
    return Unreachable("no space left on this host", f"make room where {folder.parent.parent} is; nothing is lost")


# --- The memory -----------------------------------------------------------------------------------------------------


def read_memory(base: Path) -> dict[Key, FetchedHandoff]:
    """What waited there at the last time and was brought. What cannot be read was never seen."""
    found: dict[Key, FetchedHandoff] = {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        for root, inbox, name, *rest in json.loads((base / MEMORY).read_bytes())["seen"]:
            size, modified, changed, digest, check, place, kept = rest
            if all(isinstance(item, int) for item in (size, modified, changed, check)) and "/" not in f"{place}{kept}":
                seen = FetchedHandoff(size, modified, changed, str(digest), check, str(place), str(kept))
                found[str(root), str(inbox), str(name)] = seen
    return found


def write_memory(base: Path, seen: Mapping[Key, FetchedHandoff]) -> None:
    data = json.dumps({"seen": [[*key, *item] for key, item in sorted(seen.items())]}).encode()
    with suppress(OSError):
        if (base / MEMORY).read_bytes() == data:
            return
    file_io.write_whole(base / MEMORY, data)


def _still_kept(seen: Mapping[Key, FetchedHandoff], mirror: Mirror) -> dict[Key, tuple[FetchedHandoff, bool]]:
    """What the mirror still has of it, and whether ingest has dealt with it.

    What it has no more, it shall get again: the ledger knows a handoff that was filed before.
    """
    shelves: dict[tuple[str, str], _MirrorInbox] = {}
    found: dict[Key, tuple[FetchedHandoff, bool]] = {}
    for key, item in seen.items():
        where = (item.place, key[1])
        if where not in shelves:
            shelves[where] = _MirrorInbox(mirror.base / item.place / key[1])
        is_done = shelves[where].is_done(item)
        if is_done is not None:
            found[key] = (item, is_done)
    return found


class _MirrorInbox:
    """One inbox in the mirror, asked for handoffs by what is in them: ingest may have given them other names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[int, list[tuple[Path, bool]]] | None = None
        self._digests: dict[tuple[Path, int], str] = {}

    def is_done(self, item: FetchedHandoff) -> bool | None:
        """Whether it is dealt with; None when it is not here at all."""
        if self._digest(self._folder / PROCESSED / item.name, item.size) == item.digest:
            return True
        with suppress(OSError):
            if (self._folder / item.name).lstat().st_size == item.size:
                return False  # and if it were another one, its turn comes first
        same = [
            is_done
            for path, is_done in self._by_size().get(item.size, ())
            if self._digest(path, item.size) == item.digest
        ]
        return any(same) if same else None

    def _digest(self, path: Path, size: int) -> str:
        if (path, size) not in self._digests:
            self._digests[path, size] = ""
            with suppress(OSError):
                if path.lstat().st_size == size:
                    data = file_io.read_regular(path, follow=False)
                    self._digests[path, size] = hashlib.sha256(data).hexdigest()
        return self._digests[path, size]

    def _by_size(self) -> dict[int, list[tuple[Path, bool]]]:
        if self._sizes is None:
            self._sizes = {}
            for folder, is_done in ((self._folder, False), (self._folder / PROCESSED, True)):
                with suppress(OSError):
                    for entry in os.scandir(folder):
                        if entry.is_file(follow_symlinks=False) and is_letter_name(entry.name):
                            size = entry.stat(follow_symlinks=False).st_size
                            self._sizes.setdefault(size, []).append((Path(entry.path), is_done))
        return self._sizes


def _receipt(key: Key, item: FetchedHandoff) -> Receipt:
    root, inbox, name = key
    return Receipt(folder_of(root, inbox), name, item.size, item.digest, item.checksum)
