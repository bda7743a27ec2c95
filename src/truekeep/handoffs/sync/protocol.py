"""The exchange: how one machine offers handoffs to the canonical host through a tool that only copies files.

    <place>/origin.json        machine, repository, and the digest of every handoff; written only by the producer
    <place>/<inbox>/<name>     the handoffs
    <place>/receipts/<digest>  signed by the host once it has processed the handoff; written only by the host

Each file has one writer, so the tool has nothing to merge. The host takes a handoff only if its digest is the one in
origin.json, so it never takes an incomplete file, and keeps a copy. The producer removes a handoff from the exchange
when a valid receipt has come back (`receipts`). Everything in an exchange is a copy: the next run repairs what a tool
loses, restores or duplicates.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.handoffs.sync.mirror import (
    MAX_FILE_BYTES,
    ORIGIN,
    Arrivals,
    Mirror,
    name_repository,
    place_name,
    unwanted,
)
from truekeep.handoffs.sync.outbox import Outgoing
from truekeep.handoffs.sync.receipts import MAX_RECEIPT_BYTES, Done, Receipts, Signer, judge
from truekeep.text.unicode import printable

RECEIPTS = "receipts"
MAX_FILES = 10_000  # per place and run; keeps origin.json below the file size limit
MAX_NOTES = 20
_DIGEST_LENGTH = 64
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_PLACE = re.compile(r"[a-z0-9][a-z0-9-]{0,60}\Z")


def is_place(name: str) -> bool:
    return _PLACE.match(name) is not None


class ExchangeSource(Protocol):
    """Reads one machine's places from a folder or a git tree."""

    def places(self) -> Iterable[str]: ...
    def read(self, path: str) -> bytes | None: ...  # None: missing, not a regular file, or too large


class FolderSource:
    """Reads a machine's places from a folder."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def places(self) -> list[str]:
        try:
            with os.scandir(self.base) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def read(self, path: str, *, limit: int = MAX_FILE_BYTES) -> bytes | None:
        *folders, name = path.split("/")
        try:
            opened = file_io.open_root(str(self.base))
            try:
                for folder in folders:
                    above = opened
                    opened = file_io.open_folder(above, folder)
                    os.close(above)
                return file_io.read_file(opened, name, limit=limit)[0]
            finally:
                os.close(opened)
        except (OSError, ValueError, UnsafePath, ChangedSince):
            return None


class Offer(NamedTuple):
    """The content of a place's origin.json."""

    place: str
    machine: str
    repository: str
    root: str
    files: Mapping[str, str]  # inbox/name: digest


class OfferReport(NamedTuple):
    """Result of offering handoffs."""

    new: int
    notes: tuple[str, ...]


class ExchangeReport(NamedTuple):
    """Result of collecting handoffs."""

    brought: int
    waiting: int  # listed but missing or incomplete
    machines: tuple[str, ...]
    notes: tuple[str, ...]


def read_offers(source: ExchangeSource) -> Iterator[Offer]:
    """The offers of a machine's valid places."""
    for place in source.places():
        if _PLACE.match(place):
            told = _read_offer(source, place)
            if told.machine:
                yield told


def _read_offer(source: ExchangeSource, place: str) -> Offer:
    """Parse a place's origin.json; an empty offer if it is invalid. Its values are untrusted."""
    try:
        given: Any = json.loads(source.read(f"{place}/{ORIGIN}") or b"")
        files = given.get("files")
        machine, root = printable(str(given["machine"]))[:80], printable(str(given["root"]))[:1000]
        repository = printable(str(given["repository"]))[:300]
        if "/" not in repository and not repository.startswith(f"{machine}:"):
            repository = name_repository(machine, "", root)  # a plain name would be one of the host's own folders
        return Offer(
            place,
            machine,
            repository,
            root,
            {str(key): str(value) for key, value in files.items()} if isinstance(files, dict) else {},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Offer(place, "", "", "", {})


# --- Producer -------------------------------------------------------------------------------------------------------


def offer(base: Path, outgoing: Iterable[Outgoing], *, machine: str) -> OfferReport:
    """Copy waiting handoffs into the exchange, and restore missing ones."""
    places = {place: _OutgoingPlace(base, place) for place in FolderSource(base).places() if _PLACE.match(place)}
    notes: list[str] = []
    new = 0
    for item in outgoing:
        root = str(item.file.inbox.root)
        name = place_name(machine, root)
        if name not in places:
            places[name] = _OutgoingPlace(base, name)
        place = places[name]
        place.introduce(machine, name_repository(machine, item.remote, root), root)
        why = "is too large" if item.file.raw is None else unwanted(item.file.name, item.file.size)
        if why:
            notes.append(f"{printable(str(item.file.inbox.path / item.file.name))} {why} and is not sent")
        elif len(place.promises) < MAX_FILES:
            try:
                new += place.add(item)
            except UnsafePath as error:
                notes.append(f"{printable(str(item.file.inbox.path / item.file.name))} {error.what}")
        elif not place.is_full:
            place.is_full = True
            notes.append(f"{printable(root)} has more than {MAX_FILES} handoffs waiting; the next runs send the rest")
    for place in places.values():
        place.promise()
    return OfferReport(new, tuple(notes[:MAX_NOTES]))


class _OutgoingPlace:
    """Updates one of the producer's places: first the files, then origin.json."""

    def __init__(self, base: Path, name: str) -> None:
        self.source = FolderSource(base)
        self.name, self.folder = name, base / name
        self.told = _read_offer(self.source, name)
        self.promises: dict[str, str] = {}  # digest: inbox/name of complete files
        self.is_full = False
        self._lost: dict[str, str] = {}
        for path, digest in self.told.files.items():
            if not _is_inside(path) or not _DIGEST.match(digest):
                continue
            if self._digest(path) == digest:
                self.promises[digest] = path
            else:
                self._lost[digest] = path
        self._taken = {*self.promises.values(), *self._lost.values()}

    def introduce(self, machine: str, repository: str, root: str) -> None:
        who = printable(machine)[:80], printable(repository)[:300], printable(root)[:1000]
        self.told = Offer(self.name, *who, self.told.files)

    def add(self, item: Outgoing) -> int:
        """Offer a handoff. Returns 1 if it was not offered before."""
        if item.digest in self.promises:
            return 0
        assert item.file.raw is not None
        lost = self._lost.get(item.digest, "")
        if lost.rpartition("/")[0] != item.file.inbox.folder or unwanted(lost.rpartition("/")[2], 0):
            lost = ""
        path = lost or self._free(item.file.inbox.folder, item.file.name, item.file.raw)
        if self._digest(path) != item.digest:
            folder, _, name = path.rpartition("/")
            file_io.make_private(self.folder / folder)
            file_io.write_whole(self.folder / folder / name, item.file.raw)
        self.promises[item.digest] = path
        self._taken.add(path)
        return 0 if lost else 1

    def promise(self) -> None:
        """Write origin.json with the files that are there."""
        if self.told.machine:
            _write_origin(self.folder, self.told, {path: digest for digest, path in self.promises.items()})

    def _free(self, inbox: str, name: str, data: bytes) -> str:
        """A free path for a handoff; other files of that name stay."""
        stem = name.removesuffix(".md")
        for number in range(1, 1000):
            path = f"{inbox}/{name}" if number == 1 else f"{inbox}/{stem}-{number}.md"
            if path in self._taken:
                continue
            if not os.path.lexists(self.folder / path):
                return path
            there = self.source.read(f"{self.name}/{path}")
            if there is not None and data.startswith(there):
                return path  # the same file, or an incomplete copy of it
        raise UnsafePath(printable(name), "was offered too often under this name")

    def _digest(self, path: str) -> str:
        data = self.source.read(f"{self.name}/{path}")
        return "" if data is None else hashlib.sha256(data).hexdigest()


def _write_origin(folder: Path, told: Offer, files: Mapping[str, str]) -> None:
    origin = {
        "machine": told.machine,
        "repository": told.repository,
        "root": told.root,
        "files": dict(sorted(files.items())),
    }
    data = json.dumps(origin, indent=1).encode()
    if FolderSource(folder).read(ORIGIN) != data:
        file_io.make_private(folder)
        file_io.write_whole(folder / ORIGIN, data)


def receipts(base: Path, *, machine: str, key: str) -> Receipts:
    """The valid receipts for this machine's own places."""
    done: dict[str, set[str]] = {}
    refused = unsigned = 0
    for place in FolderSource(base).places():
        if not _PLACE.match(place):
            continue
        promised = set(_read_offer(FolderSource(base), place).files.values())
        found = judge(key, machine, (place,), _iter_receipts(base / place, promised))
        if digests := found.done.get(place):
            done[place] = digests
        refused += found.refused + found.elsewhere
        unsigned += found.unsigned
    return Receipts(done, refused, unsigned)


def _iter_receipts(folder: Path, promised: set[str]) -> Iterator[tuple[str, bytes]]:
    """Unverified receipts of a place: those for current offers first, up to a limit."""
    source = FolderSource(folder)
    for digest in sorted(_receipted(folder), key=lambda digest: digest not in promised)[: 2 * MAX_FILES]:
        data = source.read(f"{RECEIPTS}/{digest}", limit=MAX_RECEIPT_BYTES)
        yield digest, b"unreadable" if data is None else data


def withdraw(base: Path, done: Done) -> int:
    """Remove processed handoffs, then their receipts, from the exchange. Returns the number of handoffs.

    A resync may have restored a handoff that was removed before: it is no longer listed, but its receipt names it.
    """
    count = 0
    source = FolderSource(base)
    for place, digests in done.items():
        folder = base / place
        told = _read_offer(source, place)
        left = {path: digest for path, digest in told.files.items() if digest not in digests}
        if told.machine:
            _write_origin(folder, told, left)
        for path in _iter_files(folder):
            if path in left:
                continue
            data = None if path in told.files else source.read(f"{place}/{path}")
            if path in told.files or (data is not None and hashlib.sha256(data).hexdigest() in digests):
                with suppress(OSError):
                    os.unlink(folder / path)
                    count += 1
        _remove_receipts(folder / RECEIPTS, digests)
    return count


def _remove_receipts(folder: Path, digests: set[str]) -> None:
    """Remove receipts and a tool's conflict copies of them."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name[:_DIGEST_LENGTH] in digests:
                with suppress(OSError):
                    os.unlink(folder / name)


def _iter_files(folder: Path) -> Iterator[str]:
    """The handoff files in a place, listed or not."""
    for at, folders, names in os.walk(folder):
        inside = os.path.relpath(at, folder)
        if inside == ".":
            folders[:] = [name for name in folders if name != RECEIPTS]
            continue
        yield from (f"{inside}/{name}" for name in names)


# --- Host -----------------------------------------------------------------------------------------------------------


def iter_machines(base: Path) -> Iterator[tuple[str, FolderSource]]:
    """The machines in a shared folder, each with its places."""
    for name in FolderSource(base).places():
        if not name.startswith("."):
            yield name, FolderSource(base / name)


def collect(source: ExchangeSource, mirror: Mirror, writers: Mapping[str, str]) -> ExchangeReport:
    """Copy complete handoffs into the mirror."""
    brought = waiting = 0
    machines: dict[str, None] = {}
    notes: list[str] = []
    inboxes = set(writers.values())
    for told in read_offers(source):
        machines[told.machine] = None
        place = mirror.place(told.machine, told.root, told.repository)
        arrivals = Arrivals(place.folder)
        for number, (path, digest) in enumerate(sorted(told.files.items())):
            if number == MAX_FILES:
                notes.append(f"{told.machine} offers more than {MAX_FILES} handoffs; the next runs fetch the rest")
                break
            inbox, _, name = path.rpartition("/")
            if inbox not in inboxes or unwanted(name, 0) or not _DIGEST.match(digest):
                notes.append(f"{told.machine} offers {printable(path)[:120]}, which is not a handoff")
                continue
            if arrivals.find(inbox, name, digest) is not None:
                continue
            data = source.read(f"{told.place}/{path}")
            if data is None or hashlib.sha256(data).hexdigest() != digest:
                waiting += 1  # not complete yet
                continue
            try:
                brought += bool(mirror.take(place, inbox, name, data))
            except UnsafePath as error:
                notes.append(f"{told.machine} offers {printable(path)[:120]}, which {error.what}")
    return ExchangeReport(brought, waiting, tuple(machines), tuple(notes[:MAX_NOTES]))


def find_done(source: ExchangeSource, mirror: Mirror, writers: Mapping[str, str]) -> Iterator[tuple[str, set[str]]]:
    """Digests that a machine still offers and ingest has processed, by place."""
    inboxes = set(writers.values())
    for told in read_offers(source):
        arrivals = Arrivals(mirror.place(told.machine, told.root, told.repository).folder)
        done = set()
        for path, digest in told.files.items():
            inbox, _, name = path.rpartition("/")
            if inbox in inboxes and not unwanted(name, 0) and arrivals.find(inbox, name, digest):
                done.add(digest)
        yield told.place, done


def give_receipts(
    source: FolderSource, mirror: Mirror, writers: Mapping[str, str], *, machine: str, signer: Signer
) -> int:
    """Write receipts for processed handoffs that a machine still offers. Returns how many are new.

    Other content in place of a receipt, from an older truekeep or a stranger, is replaced.
    """
    count = 0
    for place, done in find_done(source, mirror, writers):
        folder = source.base / place / RECEIPTS
        for digest in done:
            receipt = signer.render(machine, [place], digest)
            if source.read(f"{place}/{RECEIPTS}/{digest}", limit=MAX_RECEIPT_BYTES) == receipt:
                continue
            with suppress(OSError):
                file_io.make_private(folder)
                _write_receipt(folder / digest, receipt)
                count += 1
    return count


def _write_receipt(path: Path, receipt: bytes) -> None:
    """Write a receipt without fsync: after a crash, an incomplete one is invalid and is written again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(receipt)


def _receipted(folder: Path) -> set[str]:
    try:
        return {name for name in os.listdir(folder / RECEIPTS) if _DIGEST.match(name)}
    except OSError:
        return set()


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return (
        len(parts) > 1
        and parts[0] != RECEIPTS
        and all(part not in ("", ".", "..") and "\0" not in part for part in parts)
    )
