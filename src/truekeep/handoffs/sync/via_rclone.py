"""Sync by rclone bisync: a folder on any rclone remote, with a subfolder for each machine.

    <remote>/<machine>/…           one machine's exchange; that machine syncs only this, the host syncs all of them
    <remote>/truekeep-memory/…     the memory that the host publishes for copies (`rclone_memory`)

Both ends run on timers, so bisync is regularly interrupted and resynced. That is harmless: an exchange contains only
copies, and `protocol` repairs what a resync restores or drops. This module knows how to call each version of bisync and
what its errors mean.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from truekeep.core import file_io
from truekeep.handoffs.sync import protocol
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.mirror import MAX_FILE_BYTES, ORIGIN, Mirror
from truekeep.handoffs.sync.outbox import opened_outbox
from truekeep.handoffs.sync.processes import Ran, find_tool, run_tool
from truekeep.handoffs.sync.push_memory import publish_for, receive_memory, told_memory, told_published
from truekeep.handoffs.sync.rclone_memory import RclonePublication
from truekeep.handoffs.sync.receipts import read_signer
from truekeep.handoffs.sync.routes import Route
from truekeep.handoffs.sync.runner import LocalMachine, Unreachable

FOLDER = "rclone"
KEEPER = "truekeep.txt"
_RECOVERS = (1, 66)  # first version in which bisync recovers from an interruption
_STALE_LOCK_SECONDS = 3600.0  # used where the system cannot tell if the process lives
_KEEPER_TEXT = b"This folder is carried by truekeep. What is in it are copies; nothing here needs to be edited.\n"
_KEEPER_MTIME = 1_700_000_000  # the same everywhere, so that the file never differs
_AGAIN = ("--resync", "all files were changed", "prior lock file", "directory not found")
_STAMP = re.compile(r"\A\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (?:[A-Z]+ *: )?")
_GLOB = re.compile(r"([*?\[\]{}\\])")


def contact(route: Route, here: LocalMachine) -> Contact:
    """Run this machine's side of an rclone route."""
    return _collect(route, here) if here.is_host else _offer(route, here)


def _offer(route: Route, here: LocalMachine) -> Contact:
    base = here.exchange(route)
    carrier = Bisync(route, here)
    with opened_outbox(route, here) as outbox:
        offered = protocol.offer(base, outbox.waiting(), machine=here.machine)
        left_out = len(outbox.notes)
        carrier.carry()
        found = protocol.receipts(base, machine=here.folder, key=route.text("host_key"))
        cleared = outbox.clear(found.done, machine=here.machine)
        protocol.withdraw(base, outbox.cleared(found.done))  # reaches the remote in the next run
        notes = [*found.notes(route), *carrier.notes, *offered.notes, *outbox.notes]
    came = receive_memory(RclonePublication(route, here, _explain(route)), route, here, notes)
    return Contact(
        route.name, "", True, brought=offered.new, receipts=cleared, refused=found.refused, waiting=left_out,
        machines=(here.machine,), notes=tuple(dict.fromkeys(notes)), **told_memory(came),
    )  # fmt: skip


def _collect(route: Route, here: LocalMachine) -> Contact:
    base = here.exchange(route)
    mirror = Mirror.of(here.state, route.name)
    carrier = Bisync(route, here)
    receipts = _give_receipts(base, mirror, here)  # for handoffs processed before this run
    carrier.carry()
    taken = [protocol.collect(source, mirror, here.writers) for _, source in protocol.iter_machines(base)]
    if late := _give_receipts(base, mirror, here):
        carrier.carry()
    notes = [*carrier.notes, *(note for item in taken for note in item.notes)]
    published, unpublished = publish_for(route, here)
    notes += unpublished
    if published is not None:
        RclonePublication(route, here, _explain(route)).write(published)
    return Contact(
        route.name, "", True, **told_published(published),
        brought=sum(item.brought for item in taken),
        receipts=receipts + late,
        waiting=sum(item.waiting for item in taken),
        machines=tuple(dict.fromkeys(name for item in taken for name in item.machines)),
        notes=tuple(dict.fromkeys(notes))[: protocol.MAX_NOTES],
    )  # fmt: skip


def _explain(route: Route) -> Callable[[Ran], Unreachable]:
    return lambda ran: Unreachable(f"rclone: {said(ran)}", hint=_hint(ran, route.text("remote")))


def _give_receipts(base: Path, mirror: Mirror, here: LocalMachine) -> int:
    signer = read_signer()
    return sum(
        protocol.give_receipts(source, mirror, here.writers, machine=machine, signer=signer)
        for machine, source in protocol.iter_machines(base)
    )


class Bisync:
    """A pair of folders that rclone bisync keeps in sync."""

    def __init__(self, route: Route, here: LocalMachine) -> None:
        self.notes: list[str] = []
        self._local = here.exchange(route)
        self._work = here.state / FOLDER / route.name
        self._flags = route.texts("flags")
        self._seconds = here.seconds
        remote = route.text("remote")
        if not remote:
            raise Unreachable("the route has no remote", hint=f"remove and add route {route.name} again, with --remote")
        if ":" not in remote:
            remote = os.path.expanduser(remote)
            if not os.path.isabs(remote):
                raise Unreachable(
                    f"{remote} is not an rclone remote", hint="give one such as drive:handoffs, or an absolute path"
                )
        self._path = remote.removeprefix(":local:") if ":" not in remote.removeprefix(":local:") else ""
        if here.is_host:
            # On a resync, bisync's first path wins. Handoffs are complete on the remote for the host, and locally for
            # the machine that wrote them.
            self._remote, self._paths = remote, (remote, str(self._local))
        else:
            self._remote = remote + ("" if remote.endswith((":", "/")) else "/") + here.folder
            self._paths = (str(self._local), self._remote)
        self._rules = filter_rules(here)
        self._version = rclone_version()

    def carry(self) -> None:
        """Sync both folders. After an interrupted or failed run, resync."""
        self._prepare()
        was_interrupted = self._unlock()
        is_first = not any(self._work.glob("*.path2.lst"))
        if not is_first and self._path and not os.path.isdir(self._path):
            # Creating it would write into the mount point of a disk that is not mounted.
            raise Unreachable(
                f"{self._path} is gone",
                hint="mount its disk; if it was removed on purpose, create the folder. Nothing was lost",
            )
        resync = is_first or (was_interrupted and self._version < _RECOVERS)
        ran = self._start(resync=resync)
        if not ran.ok and not resync and _needs_new_start(ran):
            self.notes.append(f"rclone was resynced: {said(ran)}")
            ran = self._start(resync=True)
        elif was_interrupted:
            self.notes.append("an earlier rclone run was interrupted and has been recovered")
        if not ran.ok:
            raise Unreachable(f"rclone bisync: {said(ran)}", hint=_hint(ran, self._remote))
        both = ran.err.count("New or changed in both paths")
        if both:
            self.notes.append(f"{both} files changed at both ends; rclone kept both versions")

    def _prepare(self) -> None:
        for folder in (self._local, self._work):
            file_io.make_private(folder)
        _write(self._work, "filters.txt", self._rules.encode())
        # One file that never changes: bisync refuses a folder that is empty, or in which every file changed.
        if _write(self._local, KEEPER, _KEEPER_TEXT):
            os.utime(self._local / KEEPER, (_KEEPER_MTIME, _KEEPER_MTIME))

    def _start(self, *, resync: bool) -> Ran:
        if resync:
            ran = self._run("mkdir", "--", self._remote)
            if not ran.ok:
                raise Unreachable(f"rclone mkdir: {said(ran)}", hint=_hint(ran, self._remote))
        given = ["--workdir", str(self._work), "--filter-from", str(self._work / "filters.txt")]
        given += ["--max-size", f"{MAX_FILE_BYTES}b", "--max-delete", "100"]  # withdrawing everything is normal
        if self._version >= _RECOVERS:
            given += ["--conflict-resolve", "none", "--resilient", "--recover", "--max-lock", "2m"]
        if resync:
            given.append("--resync")
        return self._run("bisync", *given, *self._flags, "--", *self._paths)

    def _run(self, verb: str, *arguments: str) -> Ran:
        steady = ("--ask-password=false", "--contimeout", "15s", "--low-level-retries", "3", "--stats", "0")
        return run_tool(["rclone", verb, *steady, *arguments], seconds=self._seconds)

    def _unlock(self) -> bool:
        """Remove the lock of a killed bisync. True if there was one."""
        found = False
        for lock in self._work.glob("*.lck"):
            if _is_held(lock):
                raise Unreachable(
                    "an earlier rclone is still running", hint="wait until it has finished, then run this again"
                )
            with suppress(FileNotFoundError):
                lock.unlink()
                found = True
        return found


def _is_held(lock: Path) -> bool:
    """True if the bisync that wrote a lock is running. No other truekeep is: it would have the sync lock."""
    try:
        text = lock.read_text(encoding="utf-8", errors="replace")
        age = time.time() - lock.stat().st_mtime
    except OSError:
        return False
    match = re.search(r'"PID":"(\d+)"', text) or re.match(r"(\d+)\s*\Z", text)
    if match is None:
        return False
    process = int(match[1])
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    try:
        return b"rclone" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return not os.path.isdir("/proc/self") and age < _STALE_LOCK_SECONDS


def filter_rules(here: LocalMachine) -> str:
    """rclone filters that let only the files of an exchange through."""
    above = "/*/*" if here.is_host else "/*"
    rules = [f"- *{file_io.TEMPORARY}", "- *.partial", f"+ /{KEEPER}"]
    if here.is_host:
        rules.append(f"+ /*/{KEEPER}")
    rules += [f"+ {above}/{ORIGIN}", f"+ {above}/{protocol.RECEIPTS}/*"]
    rules += [f"+ {above}/{_plain(inbox)}/*" for inbox in sorted(set(here.writers.values()))]
    return "\n".join((*rules, "- **", ""))


def _plain(text: str) -> str:
    """The text escaped for a filter rule."""
    return _GLOB.sub(r"\\\1", text)


def rclone_version() -> tuple[int, int]:
    return _version_of(find_tool("rclone"))


@functools.cache
def _version_of(path: str) -> tuple[int, int]:
    ran = run_tool([path, "version"], seconds=20)
    match = re.search(rb"rclone v(\d+)\.(\d+)", ran.out)
    if match is None:
        raise Unreachable(f"cannot read the version of {path}", hint="install rclone 1.58 or newer")
    version = int(match[1]), int(match[2])
    if version < (1, 58):
        raise Unreachable(f"rclone {version[0]}.{version[1]} has no bisync", hint="install rclone 1.58 or newer")
    return version


def _needs_new_start(ran: Ran) -> bool:
    """True if bisync lost its history. Only newer versions say so by exit code, so the messages count too."""
    return ran.code != -1 and (ran.code in (3, 7) or any(words in ran.err for words in _AGAIN))


def said(ran: Ran) -> str:
    """The most informative line of rclone's error output."""
    lines = [_STAMP.sub("", line.strip()) for line in ran.err.splitlines() if "EXPERIMENTAL" not in line]
    lines = [line for line in lines if line and not line.startswith(("Bisync aborted", "Usage", "Tip:"))]
    for start in ("Bisync critical error: ", "Failed to ", "CRITICAL"):
        for line in reversed(lines):
            if line.startswith(start):
                return line.removeprefix("Bisync critical error: ")[:300]
    return lines[-1][:300] if lines else f"it ended with {ran.code}"


def _hint(ran: Ran, remote: str) -> str:
    words = ran.err.lower()
    name = remote.partition(":")[0]
    if "didn't find section" in words or "didn't find backend" in words:
        return f"create the remote {name} with `rclone config`; `rclone listremotes` lists the existing ones"
    if "no space" in words or "quota" in words or "insufficient" in words:
        return "free some space and run it again; nothing was lost"
    if any(word in words for word in ("401", "403", "unauthorized", "permission denied", "token", "password")):
        return f"test the login with `rclone lsd {name}:`" if ":" in remote else "correct its permissions"
    return "nothing was lost; the next run tries again"


def _write(folder: Path, name: str, data: bytes) -> bool:
    """Write a small file unless it already has this content. True if it was written."""
    path = folder / name
    with suppress(OSError):
        if path.read_bytes() == data:
            return False
    file_io.write_whole(path, data)
    return True
