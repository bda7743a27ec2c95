"""The exchange: a folder that a producer and the canonical host share through some tool that only carries files.

    <place>/origin.json        whose it is, and the digest of every handoff in it; written by the producer alone
    <place>/<inbox>/<name>     the handoffs
    <place>/receipts/<digest>  empty: the host has dealt with it; written by the host alone

Nobody writes what the other one writes, so the tool has nothing to merge. The host takes a handoff only when it is the
one that origin.json promises, so half of one is never taken; it holds a copy of its own, and the producer takes its
handoff out of the exchange when the receipt has come back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from truekeep import disk
from truekeep.disk import ChangedSince, UnsafePath
from truekeep.hidden import printable
from truekeep.sync.mirror import LARGEST, ORIGIN, Mirror, Place, unwanted
from truekeep.sync.outbox import Outgoing

RECEIPTS = "receipts"
MOST_FILES = 20_000  # of one place, in one run
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class Offer(NamedTuple):
    """One place in the exchange, as its producer tells of it."""

    folder: Path
    machine: str
    repository: str
    root: str
    files: Mapping[str, str]  # inbox/name: digest


class Taken(NamedTuple):
    """What a look into the exchange gave."""

    brought: int
    waiting: int  # promised and not there yet, or not whole
    machines: tuple[str, ...]
    notes: tuple[str, ...]


# --- The producer's side --------------------------------------------------------------------------------------------


def offer(base: Path, outgoing: Iterable[Outgoing], *, machine: str) -> int:
    """Put what waits here into the exchange. Gives the number of handoffs that are new in it."""
    mirror = Mirror(base)
    places: dict[str, tuple[Place, dict[str, str]]] = {}
    new = 0
    for item in outgoing:
        root = str(item.letter.inbox.root)
        if root not in places:
            place = mirror.place(machine, root, item.repository)
            places[root] = (place, dict(_offer(place.folder).files))
        place, files = places[root]
        if item.digest in files.values() or item.letter.raw is None or unwanted(item.letter.name, item.letter.size):
            continue
        name = mirror.take(place, item.letter.inbox.folder, item.letter.name, item.letter.raw)
        if name:
            files[f"{item.letter.inbox.folder}/{name}"] = item.digest
            new += 1
    for place, files in places.values():
        _write_origin(place, files)
    return new


def _offer(folder: Path) -> Offer:
    """What a place says of itself; nothing in it is believed further than a name."""
    try:
        raw = _read(folder, ORIGIN, LARGEST)
        given: Any = json.loads(raw)
        files = given.get("files") if isinstance(given, dict) else None
        return Offer(
            folder,
            printable(str(given["machine"]))[:80],
            printable(str(given["repository"]))[:300],
            printable(str(given["root"]))[:1000],
            {str(key): str(value) for key, value in files.items()} if isinstance(files, dict) else {},
        )
    except (OSError, ValueError, KeyError, TypeError, UnsafePath, ChangedSince, RecursionError):
        return Offer(folder, "", "", "", {})


def _write_origin(place: Place, files: Mapping[str, str]) -> None:
    told = {
        "machine": place.machine,
        "repository": place.repository,
        "root": place.root,
        "files": dict(sorted(files.items())),
    }
    data = json.dumps(told, indent=1).encode()
    with suppress(OSError, UnsafePath, ChangedSince):
        if _read(place.folder, ORIGIN, LARGEST) == data:
            return
    folder = disk.open_root(str(place.folder))
    by = f".{os.getpid()}"
    try:
        disk.write_beside(folder, ORIGIN, data, mode=0o600, by=by)
        os.replace(disk.temporary_name(ORIGIN, by), ORIGIN, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def receipts(base: Path, *, machine: str) -> set[str]:
    """The digests that the host says it has dealt with, of this machine's own places."""
    found: set[str] = set()
    for told in offers(base):
        if told.machine == printable(machine)[:80]:
            with suppress(OSError):
                found |= {name for name in os.listdir(told.folder / RECEIPTS) if _DIGEST.match(name)}
    return found


def withdraw(base: Path, digests: set[str], *, machine: str) -> int:
    """Take handoffs that were dealt with, and their receipts, out of the exchange. Gives how many there were."""
    count = 0
    for told in offers(base):
        if told.machine != printable(machine)[:80]:
            continue
        left = {name: digest for name, digest in told.files.items() if digest not in digests}
        for name in told.files.keys() - left.keys():
            if _is_inside(name):
                with suppress(OSError):
                    os.unlink(told.folder / name)
                    count += 1
        if left != dict(told.files):
            _write_origin(Place(told.folder, told.machine, told.repository, told.root), left)
        for digest in digests:
            with suppress(OSError):
                os.unlink(told.folder / RECEIPTS / digest)
    return count


# --- The host's side ------------------------------------------------------------------------------------------------


def offers(base: Path) -> Iterator[Offer]:
    """Every place in the exchange."""
    with suppress(OSError):
        for entry in sorted(os.scandir(base), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                told = _offer(Path(entry.path))
                if told.machine:
                    yield told


def collect(base: Path, mirror: Mirror, writers: Mapping[str, str]) -> Taken:
    """Take what is whole into the mirror."""
    brought = waiting = 0
    machines: dict[str, None] = {}
    notes: list[str] = []
    inboxes = set(writers.values())
    for told in offers(base):
        machines[told.machine] = None
        place = mirror.place(told.machine, told.root, told.repository)
        done = _receipted(told.folder)
        for number, (name, digest) in enumerate(sorted(told.files.items())):
            if number == MOST_FILES:
                notes.append(f"{told.machine} offers more than {MOST_FILES} handoffs at once; the rest comes later")
                break
            inbox, _, last = name.rpartition("/")
            if digest in done:
                continue
            if inbox not in inboxes or unwanted(last, 0) or not _DIGEST.match(digest):
                notes.append(f"{told.machine} offers {printable(name)[:120]}, which is no handoff")
                continue
            try:
                data = _read(told.folder / inbox, last, LARGEST)
            except (OSError, UnsafePath, ChangedSince):
                waiting += 1
                continue
            if hashlib.sha256(data).hexdigest() != digest:
                waiting += 1  # not all of it is here yet
            elif mirror.take(place, inbox, last, data):
                brought += 1
    return Taken(brought, waiting, tuple(machines), tuple(notes[:20]))


def give_receipts(base: Path, mirror: Mirror, writers: Mapping[str, str]) -> int:
    """Tell the producers what has been dealt with, as long as they still offer it. Gives how many are new."""
    open_ = [(told, set(told.files.values()) - _receipted(told.folder)) for told in offers(base)]
    if not any(digests for _, digests in open_):
        return 0
    done = {item.digest() for item in mirror.kept(writers) if item.is_done}
    count = 0
    for told, digests in open_:
        for digest in digests & done:
            with suppress(OSError):
                os.makedirs(told.folder / RECEIPTS, mode=0o700, exist_ok=True)
                os.close(os.open(told.folder / RECEIPTS / digest, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
                count += 1
    return count


def _receipted(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder / RECEIPTS) if _DIGEST.match(name)}
    except OSError:
        return set()


def _is_inside(name: str) -> bool:
    return not name.startswith("/") and all(part not in ("", ".", "..") for part in name.split("/"))


def _read(folder: Path, name: str, limit: int) -> bytes:
    opened = disk.open_root(str(folder))
    try:
        return disk.read_file(opened, name, limit=limit)[0]
    finally:
        os.close(opened)
