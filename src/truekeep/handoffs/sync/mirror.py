"""The mirror: copies of other machines' inboxes on the canonical host.

<state>/synced/<route>/<place>/ is one repository on one machine: its inboxes have the same folders as there, and
origin.json says whose they are. Ingest reads them like any other inbox and moves processed files to processed/, where
transports look for what to send receipts for. A file from another machine is only added as a regular file with a
checked name, atomically, and never replaces another.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.state_dir import SYNCED
from truekeep.handoffs.inbox import PROCESSED, is_handoff_name
from truekeep.text.unicode import printable

ORIGIN = "origin.json"
MAX_FILE_BYTES = 8 << 20  # ingest has a lower limit of its own
MAX_NAME_BYTES = 200
_SLUG = re.compile(r"[^a-z0-9]+")


class RemoteRepository(NamedTuple):
    """A repository on another machine."""

    folder: Path  # here
    machine: str
    repository: str  # as provenance names it
    root: str  # there


class Mirror:
    """The folder of one route."""

    def __init__(self, base: Path) -> None:
        self.base = base

    @classmethod
    def of(cls, state: Path, route: str) -> Mirror:
        return cls(state / SYNCED / route)

    def place(self, machine: str, root: str, repository: str) -> RemoteRepository:
        """The place of a repository on a machine; created if missing."""
        folder = self.base / place_name(machine, root)
        place = RemoteRepository(folder, printable(machine)[:80], printable(repository)[:300], root)
        origin = {"machine": place.machine, "repository": place.repository, "root": printable(root)[:1000]}
        if _origin(folder) != origin:
            file_io.make_private(folder)
            file_io.write_whole(folder / ORIGIN, json.dumps(origin, indent=1).encode())
        return place

    def places(self) -> list[RemoteRepository]:
        """Every repository that handoffs ever came from."""
        found = []
        with suppress(OSError):
            for entry in sorted(os.scandir(self.base), key=lambda entry: entry.name):
                origin = _origin(Path(entry.path)) if entry.is_dir(follow_symlinks=False) else None
                if origin is not None:
                    found.append(
                        RemoteRepository(Path(entry.path), origin["machine"], origin["repository"], origin["root"])
                    )
        return found

    def take(self, place: RemoteRepository, inbox: str, name: str, data: bytes) -> str:
        """Add a file and return its name here; "" if the same file is already here.

        Another file of the same name gets a number.
        """
        why = unwanted(name, len(data))
        if why:
            raise UnsafePath(printable(name), why)
        folder = place.folder / inbox
        file_io.make_private(folder)
        stem = name.removesuffix(".md")
        for number in range(1, 1000):
            chosen = name if number == 1 else f"{stem}-{number}.md"
            known = [path for path in (folder / chosen, folder / PROCESSED / chosen) if os.path.lexists(path)]
            if any(_same(path, data) for path in known):
                return ""
            if known:
                continue
            try:
                _write_new(folder, chosen, data)
            except ChangedSince:
                continue
            return chosen
        raise UnsafePath(printable(name), "arrived too often under this name")


class Arrivals:
    """Finds handoffs of one place by digest, reading only files with a matching name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, list[str]] = {}
        self._digests: dict[str, str] = {}

    def find(self, inbox: str, name: str, digest: str) -> bool | None:
        """True if a handoff was processed, False if it waits; None if it is not here.

        Its name here may have a number or digest appended, if another file had the name first.
        """
        for folder, is_done in ((inbox, False), (f"{inbox}/{PROCESSED}", True)):
            if any(self._digest(f"{folder}/{known}") == digest for known in self._like(folder, name)):
                return is_done
        return None

    def _like(self, folder: str, name: str) -> Iterator[str]:
        if folder not in self._names:
            try:
                self._names[folder] = sorted(os.listdir(self._folder / folder))
            except OSError:
                self._names[folder] = []
        names = self._names[folder]
        stem = name.removesuffix(".md")
        for number in range(bisect.bisect_left(names, stem), len(names)):
            if not names[number].startswith(stem):
                return
            if is_handoff_name(names[number]):
                yield names[number]

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            try:
                data = file_io.read_regular(self._folder / path, follow=False)
                self._digests[path] = hashlib.sha256(data).hexdigest()
            except OSError:
                self._digests[path] = ""
        return self._digests[path]


def all_places(state: Path) -> list[tuple[str, RemoteRepository]]:
    """The places of every current or former route."""
    found = []
    with suppress(OSError):
        for entry in sorted(os.scandir(state / SYNCED), key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                found += [(entry.name, place) for place in Mirror(Path(entry.path)).places()]
    return found


def name_repository(machine: str, remote: str, root: str) -> str:
    """The name of another machine's repository: its origin, else one that no local repository can have."""
    return remote or f"{machine}:{os.path.basename(root) or '/'}"


def place_name(machine: str, root: str) -> str:
    """The folder name for a repository on a machine."""
    key = hashlib.sha256(f"{machine}\0{root}".encode("utf-8", "surrogateescape")).hexdigest()[:10]
    return f"{slug(os.path.basename(root.rstrip('/'))) or 'root'}-{key}"


def slug(text: str) -> str:
    """The text as lower-case letters, digits and dashes."""
    return _SLUG.sub("-", text.lower()).strip("-")[:40].rstrip("-")


def unwanted(name: str, size: int) -> str:
    """Why a file of another machine is not accepted; "" if it is."""
    if "/" in name or name in ("", ".", "..") or any(char < " " or char == "\x7f" for char in name):
        return "has an invalid name"
    try:
        if len(name.encode()) > MAX_NAME_BYTES:
            return "has a name that is too long"
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    if not is_handoff_name(name):
        return "is not named like a handoff"
    return f"has {size} bytes, more than {MAX_FILE_BYTES}" if size > MAX_FILE_BYTES else ""


def _origin(folder: Path) -> dict[str, str] | None:
    try:
        given = json.loads(file_io.read_regular(folder / ORIGIN))
        return {key: str(given[key]) for key in ("machine", "repository", "root")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.lstat().st_size == len(data) and file_io.read_regular(path, follow=False) == data
    except OSError:
        return False


def _write_new(folder: Path, name: str, data: bytes) -> None:
    opened = file_io.open_root(str(folder))
    by = f".{os.getpid()}"
    try:
        file_io.write_beside(opened, name, data, mode=0o600, by=by)
        file_io.put_new(opened, name, by=by)
        os.fsync(opened)
    finally:
        file_io.discard(opened, name, by)
        os.close(opened)
