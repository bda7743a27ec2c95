"""Sync by rsync over ssh from a machine that reaches the canonical host: handoffs go there, memory comes back.

The host need not reach this machine, which may sleep, or be behind a router. One ssh call runs `truekeep sync answer`
there: it takes handoffs that this machine put into a folder of its own, gives receipts for those that were filed, and
says which state of memory is the latest. rsync runs only if there is something to bring: handoffs up, or objects down.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadSetup
from truekeep.core.machine import person
from truekeep.core.memory_copy import INCOMING, copy_root
from truekeep.handoffs.sync import protocol
from truekeep.handoffs.sync.contact_history import Contact
from truekeep.handoffs.sync.copy_install import IncomingFolder
from truekeep.handoffs.sync.mirror import ORIGIN
from truekeep.handoffs.sync.outbox import opened_outbox
from truekeep.handoffs.sync.processes import Ran, run_tool
from truekeep.handoffs.sync.publication import MAX_MANIFEST_BYTES, MAX_PACK_BYTES, OBJECTS, digest_of, is_digest
from truekeep.handoffs.sync.push_memory import receive_memory, told_memory
from truekeep.handoffs.sync.receipts import judge
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.handoffs.sync.ssh import FAILED, host_of, remote_shell, rsync_host, ssh_command, unreachable
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.routes import Route
    from truekeep.handoffs.sync.runner import LocalMachine

_MARK = "truekeep answer "
_MAX_OBJECTS = 10_000
_SCRIPT = """
PATH=$PATH:$HOME/.local/bin
command -v truekeep >/dev/null 2>&1 || exit 8
exec truekeep sync answer --machine {machine} --login {login} </dev/null
"""
_PLAIN = ("--no-links", "--no-perms", "--no-owner", "--no-group", "--chmod=D700,F600", "--protect-args", "--timeout=60")


class HostAnswer(NamedTuple):
    """What the host said."""

    exchange: str  # the folder there for this machine's handoffs
    held: Mapping[str, str]  # by place: the digest of the offer that is there
    receipts: Mapping[str, Mapping[str, str]]  # by place and digest of the handoff
    notes: tuple[str, ...]
    waiting: int
    objects: str = ""  # the folder of what it publishes; "": it sends no memory to this machine
    names: tuple[str, ...] = ()
    head: bytes = b""


def render_answer(answer: HostAnswer) -> str:
    """An answer as one line of text; a login may print others before it."""
    return _MARK + json.dumps({**answer._asdict(), "head": answer.head.decode()}, separators=(",", ":"))


def parse_answer(said: bytes) -> HostAnswer:
    """Raises ValueError for anything else."""
    try:
        line = next(line for line in said.decode("utf-8", "replace").splitlines() if line.startswith(_MARK))
        given: Any = json.loads(line.removeprefix(_MARK))
        names = tuple(name for name in given["names"][:_MAX_OBJECTS] if is_digest(name))
        paths = [str(given[key]) for key in ("exchange", "objects")]
        if not all(path == "" or (path.startswith("/") and path.isprintable()) for path in paths) or not paths[0]:
            raise ValueError("a path of the host is none")
        return HostAnswer(
            paths[0], dict(given["held"]), {place: dict(found) for place, found in given["receipts"].items()},
            tuple(printable(str(note))[:500] for note in given["notes"][: protocol.MAX_NOTES]), int(given["waiting"]),
            paths[1], names, str(given["head"]).encode(),
        )  # fmt: skip
    except (StopIteration, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("not an answer") from error


def contact(route: Route, here: LocalMachine) -> Contact:
    """Bring this machine's handoffs to the host, and its memory here."""
    host = host_of(route)
    base = here.exchange(route)
    file_io.make_private(base)
    notes: list[str] = []
    answer = _ask(route, here, host)
    with opened_outbox(route, here) as outbox:
        places = outbox.places(here.machine).union(protocol.FolderSource(base).places())
        found = judge(route.text("host_key"), here.folder, places, _iter_receipts(answer))
        cleared = outbox.clear(found.done, machine=here.machine)
        protocol.withdraw(base, outbox.cleared(found.done))
        offered = protocol.offer(base, outbox.waiting(), machine=here.machine)
        left_out = len(dict.fromkeys(outbox.notes))
        notes += (*found.notes(route), *offered.notes, *outbox.notes)
    if read_offered(base) != dict(answer.held):
        _send(route, here, host, base, answer)
        answer = _ask(route, here, host)
    notes += answer.notes
    came = None
    if answer.objects and answer.head:
        came = receive_memory(_Pulled(route, here, host, answer), route, here, notes)
    return Contact(
        route.name, "", True, brought=offered.new, receipts=cleared, refused=found.refused,
        waiting=left_out + answer.waiting, machines=(here.machine,), notes=tuple(dict.fromkeys(notes)),
        **told_memory(came),
    )  # fmt: skip


def read_offered(base: Path) -> dict[str, str]:
    """By place: the digest of what is offered in a folder."""
    source = protocol.FolderSource(base)
    found = {place: source.read(f"{place}/{ORIGIN}") for place in source.places()}
    return {place: hashlib.sha256(data).hexdigest() for place, data in found.items() if data is not None}


def _iter_receipts(answer: HostAnswer) -> Iterator[tuple[str, bytes]]:
    for found in answer.receipts.values():
        for digest, receipt in found.items():
            if is_digest(digest):
                yield digest, str(receipt).encode()


def _ask(route: Route, here: LocalMachine, host: str) -> HostAnswer:
    script = _SCRIPT.format(machine=shlex.quote(here.folder), login=shlex.quote(person() or "-"))
    ran = run_tool([*ssh_command(route), "--", host, "sh -s"], seconds=here.seconds, given=script.encode())
    if ran.code in (FAILED, -1):
        raise unreachable(host, ran, port=route.number("port", 0))
    if ran.code == 8:
        raise Unreachable(f"{host} has no truekeep on the PATH of ssh", "install it there: `uv tool install truekeep`")
    if not ran.ok:
        said = printable(" ".join(ran.err.rpartition("truekeep: ")[2].split()))[:400]
        raise Unreachable(f"{host} did not answer: {said or f'exit {ran.code}'}", "`truekeep host show` there")
    try:
        return parse_answer(ran.out)
    except ValueError as error:
        raise Unreachable(f"{host} gave no answer that can be read", "update truekeep on both machines") from error


def _send(route: Route, here: LocalMachine, host: str, base: Path, answer: HostAnswer) -> None:
    """Bring this machine's folder there. Files come under their names when they are whole; the list of them last."""
    there = f"{rsync_host(host)}:{answer.exchange}/"
    both = ["rsync", remote_shell(route), "--recursive", *_PLAIN]
    for filters in (["--exclude", f"/*/{ORIGIN}", "--exclude", f"/*/{protocol.RECEIPTS}"], ["--delete-after"]):
        ran = run_tool([*both, *filters, f"{base}/", there], seconds=here.seconds * 5)
        if not ran.ok:
            raise _failed(route, host, ran, "handoffs could not be sent")


class _Pulled(IncomingFolder):
    """The host's publication, brought into this machine's folder for it when it is read."""

    def __init__(self, route: Route, here: LocalMachine, host: str, answer: HostAnswer) -> None:
        super().__init__(Path(copy_root()) / INCOMING)
        self._route, self._here, self._host, self._answer = route, here, host, answer
        self._is_complete = False

    def read_head(self) -> bytes | None:
        return self._answer.head

    def read_object(self, digest: str, limit: int) -> bytes | None:
        if not self._is_complete:
            self._bring()
        return super().read_object(digest, limit)

    def _bring(self) -> None:
        """Bring the objects that are not here. They are named by their digests, so one that is here is the same."""
        objects = self.folder / OBJECTS
        file_io.make_private(objects)
        self.drop_unused(self._answer.names)
        if missing := [name for name in self._answer.names if not (objects / name).is_file()]:
            size = max(MAX_PACK_BYTES, MAX_MANIFEST_BYTES)
            command = [
                "rsync", remote_shell(self._route), "--files-from=-", "--from0", "--no-recursive", *_PLAIN,
                "--whole-file", "--ignore-existing", f"--max-size={size}",
                f"{rsync_host(self._host)}:{self._answer.objects}/", f"{objects}/",
            ]  # fmt: skip
            given = "".join(f"{name}\0" for name in missing).encode()
            ran = run_tool(command, seconds=self._here.seconds * 5, given=given)
            if not ran.ok:
                raise _failed(self._route, self._host, ran, "memory could not be brought")
            self._drop_damaged(missing)
        self._is_complete = True

    def _drop_damaged(self, names: Sequence[str]) -> None:
        """The next run brings them again."""
        for name in names:
            path = self.folder / OBJECTS / name
            with suppress(OSError):
                if digest_of(path.read_bytes()) != name:
                    path.unlink()


def _failed(route: Route, host: str, ran: Ran, what: str) -> Unreachable:
    if ran.code in (FAILED, -1):
        return unreachable(host, ran, port=route.number("port", 0))
    said = ran.err.lower()
    if "no space left" in said or "quota exceeded" in said:
        return Unreachable(f"no space left: {what}", "free some space; nothing was lost")
    return Unreachable(f"{what}: {ran.last_words or f'exit {ran.code}'}", "nothing was lost; the next run tries again")


def check_answering(folder: str) -> str:
    """The name of another machine's folder, as it gives it. Raises BadSetup."""
    if not protocol.is_place(folder):
        raise BadSetup(f"{printable(folder)[:60]!r} names no machine", hint="truekeep on the other machine calls this")
    return folder
