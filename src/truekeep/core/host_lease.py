"""Host leases: decide which machine may write a workspace.

A workspace may be synced by any tool, and such tools ignore locks: the last writer wins, or a conflict copy appears. So
each machine writes only its own lease file, hosts/<machine id>.toml. The canonical host is the machine with the highest
generation that has not released it. Times are only shown, because clocks differ. The file `host` is the first lease of
a workspace, generation 1. A sync tool's conflict copy of a lease file is read as one more version of that lease.

If two machines have the highest generation, or a lease file cannot be read, no machine may write.
"""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.dates import local_day, local_minute
from truekeep.core.errors import BadSetup, NotCanonical, SplitHost
from truekeep.core.machine import HOST_FILE, HOSTS_FOLDER, Machine, has_routes
from truekeep.core.toml import render_text

_MAX_LEASE_BYTES = 4_096  # of one file
_MAX_LEASE_FILES = 256
_MAX_GENERATION = 1_000_000_000
_MAX_NAME_LENGTH = 200  # characters of a name
_ID = re.compile(r"[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_UNFINISHED_SUFFIXES = (".tmp", ".part", ".partial", file_io.TEMPORARY)
_KEYS = ("id", "name", "generation", "taken_at", "taken_from", "released_at", "wrote_at")


class HostLease(NamedTuple):
    """One machine's term as canonical host."""

    id: str
    name: str
    generation: int
    taken_at: str = ""
    taken_from: str = ""  # names of the previous hosts, only shown
    released_at: str = ""
    wrote_at: str = ""  # the first write of the last day with one
    others: tuple[tuple[str, str | int], ...] = ()  # unknown keys, from a newer truekeep


class UnreadableLease(NamedTuple):
    """A lease file that cannot be read."""

    file: str
    why: str


class Overlap(NamedTuple):
    """A machine that wrote after another one had taken over."""

    former: HostLease
    later: HostLease
    is_sure: bool  # False: it wrote on the day of the takeover, perhaps before it


class HostStatus(NamedTuple):
    """All leases of a workspace: the latest of each machine, highest generation first."""

    leases: tuple[HostLease, ...]
    unreadable: tuple[UnreadableLease, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def generation(self) -> int:
        return self.leases[0].generation if self.leases else 0

    @property
    def rivals(self) -> tuple[HostLease, ...]:
        """Leases with the highest generation that were not released. More than one is a conflict."""
        return tuple(item for item in self.leases if item.generation == self.generation and not item.released_at)

    @property
    def canonical(self) -> HostLease | None:
        return self.rivals[0] if len(self.rivals) == 1 and not self.unreadable else None

    @property
    def is_split(self) -> bool:
        """True if the canonical host is unclear."""
        return bool(self.unreadable) or len(self.rivals) > 1

    def is_canonical(self, machine: Machine) -> bool:
        return self.canonical is not None and self.canonical.id == machine.id

    def find(self, machine_id: str) -> HostLease | None:
        return next((item for item in self.leases if item.id == machine_id), None)

    def holders(self) -> str:
        """Names of the current or last canonical hosts; equal names are followed by ids."""
        names = [item.name for item in self.leases]
        latest = [item for item in self.leases if item.generation == self.generation]
        return " and ".join(
            sorted(
                item.name if names.count(item.name) == 1 else f"{item.name} ({item.id[:8]})"
                for item in self.rivals or latest
            )
        )

    def overlaps(self) -> tuple[Overlap, ...]:
        """Machines that wrote after the next one had taken over, as far as both clocks are right."""
        found = []
        for former in self.leases:
            later = min(
                (item for item in self.leases if item.generation > former.generation),
                key=lambda item: item.generation,
                default=None,
            )
            if later is None or not former.wrote_at or not later.taken_at:
                continue
            if former.released_at and former.released_at <= later.taken_at:
                continue
            if former.wrote_at[:10] >= later.taken_at[:10]:
                found.append(Overlap(former, later, former.wrote_at > later.taken_at))
        return tuple(found)


def next_lease(host_status: HostStatus, machine_id: str, name: str, *, at: str) -> HostLease:
    """The lease of a machine that takes over; it supersedes every known lease."""
    generation = host_status.generation + 1
    if generation > _MAX_GENERATION:
        raise BadSetup(
            f"a file in .truekeep/{HOSTS_FOLDER} names generation {host_status.generation}", hint="correct or delete it"
        )
    return HostLease(id=machine_id, name=name, generation=generation, taken_at=at, taken_from=host_status.holders())


# --- Files -----------------------------------------------------------------------------------------------------------


def read_host_status(path: str) -> HostStatus:
    """Read all lease files of a state folder. Unreadable files are part of the result, not an error."""
    top = file_io.open_root(path)
    try:
        return _LeaseReader(top).read()
    finally:
        os.close(top)


def has_leases(path: str) -> bool:
    """True if there is at least one lease file."""
    try:
        return any(_ID.match(name) for name in os.listdir(os.path.join(path, HOSTS_FOLDER)))
    except OSError:
        return False


def write_lease(path: str, lease: HostLease) -> None:
    """Replace this machine's lease file atomically. The caller holds the workspace lock."""
    name = f"{lease.id}.toml"
    top = file_io.open_root(path)
    try:
        with suppress(FileExistsError):
            os.mkdir(HOSTS_FOLDER, dir_fd=top)
            os.fsync(top)
        folder = file_io.open_folder(top, HOSTS_FOLDER, shown=f".truekeep/{HOSTS_FOLDER}")
        try:
            file_io.write_beside(folder, name, render_lease(lease).encode())
            try:
                os.replace(file_io.temporary_name(name), name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                file_io.discard(folder, name)
                raise
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        os.close(top)


class _LeaseReader:
    """Reads every lease file."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._found: dict[str, HostLease] = {}
        self._unreadable: list[UnreadableLease] = []
        self._copies: list[str] = []

    def read(self) -> HostStatus:
        names = sorted(
            name for name in os.listdir(self._top) if name.startswith(HOST_FILE) and not _is_unfinished(name)
        )
        if HOSTS_FOLDER in names:
            self._read_folder()
        if HOST_FILE in names:
            self._read_lease(self._top, HOST_FILE, HOST_FILE)
        copies = [name for name in names if name not in (HOST_FILE, HOSTS_FOLDER)]
        for name in self._limited(copies, "."):
            self._copies.append(name)
            self._read_lease(self._top, name, name)
        ordered = sorted(self._found.values(), key=lambda item: (-item.generation, item.id))
        return HostStatus(tuple(ordered), tuple(self._unreadable), tuple(self._copies))

    def _read_folder(self) -> None:
        try:
            folder = file_io.open_folder(self._top, HOSTS_FOLDER)
        except (OSError, file_io.UnsafePath) as error:
            self._unreadable.append(UnreadableLease(HOSTS_FOLDER, _reason(error)))
            return
        try:
            names = sorted(name for name in os.listdir(folder) if _ID.search(name) and not _is_unfinished(name))
            for name in self._limited(names, HOSTS_FOLDER):
                if not (name.endswith(".toml") and _ID.fullmatch(name.removesuffix(".toml"))):
                    self._copies.append(f"{HOSTS_FOLDER}/{name}")
                self._read_lease(folder, name, f"{HOSTS_FOLDER}/{name}")
        finally:
            os.close(folder)

    def _limited(self, names: list[str], folder: str) -> list[str]:
        if len(names) > _MAX_LEASE_FILES:
            self._unreadable.append(UnreadableLease(folder, f"contains {len(names)} lease files"))
        return names[:_MAX_LEASE_FILES]

    def _read_lease(self, folder: int, name: str, shown: str) -> None:
        for attempt in range(2):
            try:
                raw, _ = file_io.read_file(folder, name, limit=_MAX_LEASE_BYTES)
                lease = parse_lease(raw)
            except FileNotFoundError:
                return  # removed since it was listed
            except file_io.ChangedSince:
                if attempt:
                    self._unreadable.append(UnreadableLease(shown, "is being written"))
                continue
            except (OSError, file_io.UnsafePath, ValueError, RecursionError) as error:
                self._unreadable.append(UnreadableLease(shown, _reason(error)))
                return
            known = self._found.get(lease.id)
            self._found[lease.id] = lease if known is None else _merge_versions(known, lease)
            return


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") or name.endswith(_UNFINISHED_SUFFIXES)


def _reason(error: Exception) -> str:
    if isinstance(error, file_io.UnsafePath):
        return error.what
    if isinstance(error, OSError):
        return error.strerror or "cannot be opened"
    return str(error)[:_MAX_NAME_LENGTH] if isinstance(error, ValueError) else "is nested too deeply"


def _merge_versions(known: HostLease, more: HostLease) -> HostLease:
    """Merge two versions of one machine's lease, in any order: the later one, released if either says so."""
    if known.generation != more.generation:
        return max(known, more, key=lambda item: item.generation)
    return known._replace(
        taken_at=min(filter(None, (known.taken_at, more.taken_at)), default=""),
        released_at=max(known.released_at, more.released_at),
        wrote_at=max(known.wrote_at, more.wrote_at),
    )


# --- Text ------------------------------------------------------------------------------------------------------------


def parse_lease(raw: bytes) -> HostLease:
    """Parse a lease file, or `host`. Raises ValueError without a valid machine id and generation."""
    try:
        values = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error
    machine = values.get("id")
    if not isinstance(machine, str) or not _ID.fullmatch(machine):
        raise ValueError("has no machine id")
    is_first = "generation" not in values and "since" in values  # the file `host`
    generation = 1 if is_first else values.get("generation")
    if type(generation) is not int or not 1 <= generation <= _MAX_GENERATION:
        raise ValueError("has no valid generation")
    released_at = _time(values.get("released_at", ""))
    if "released_at" in values and not released_at:
        raise ValueError("has an invalid released_at")
    others = tuple((key, value) for key, value in values.items() if key not in _KEYS and isinstance(value, (str, int)))
    return HostLease(
        id=machine,
        name=_name(values.get("name")) or "?",
        generation=generation,
        taken_at=_time(values.get("since" if is_first else "taken_at")),
        taken_from=_name(values.get("taken_from")),
        released_at=released_at,
        wrote_at=_time(values.get("wrote_at")),
        others=() if is_first else others,
    )


def render_lease(lease: HostLease) -> str:
    values = [(key, getattr(lease, key)) for key in _KEYS]
    lines = [f"{key} = {_render_value(value)}\n" for key, value in values if value != ""]
    return "".join([*lines, *(f"{quote_toml(key)} = {_render_value(value)}\n" for key, value in lease.others)])


def _name(value: object) -> str:
    return value[:_MAX_NAME_LENGTH] if isinstance(value, str) else ""


def _time(value: object) -> str:
    return value if isinstance(value, str) and _TIME.fullmatch(value) else ""


def _render_value(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quote_toml(value)


def quote_toml(text: str) -> str:
    """A TOML string; characters that are not valid Unicode are replaced."""
    return render_text(text.encode("utf-8", "replace").decode())


def refusal(host_status: HostStatus, machine: Machine, what: str) -> NotCanonical:
    """The error for a machine that is not the canonical host: who is, and what to run instead."""
    here = f"this machine ({machine.name}) may not {what}"
    send = ", which `truekeep sync run` sends" if has_routes() else ""
    instead = f"`truekeep handoff new` and `truekeep checkpoint` write handoffs{send}"
    if host_status.unreadable:
        file, why = host_status.unreadable[0]
        return SplitHost(
            f"{here}: .truekeep/{file} {why}, so the canonical host is unclear",
            hint=f"correct the file, or delete it once you know which machine it belongs to; here, {instead}",
            host="",
            story=lease_history(host_status),
        )
    if host_status.is_split:
        return SplitHost(
            f"{here}: {host_status.holders()} each claim to be the canonical host; writing is disabled",
            hint="compare what each of them wrote (`truekeep history` there), then run `truekeep host take` on the one"
            f" to keep; until then, {instead}",
            host="",
            story=lease_history(host_status),
        )
    found = host_status.canonical
    if found is None:
        return NotCanonical(
            f"{here}: there is no canonical host since {host_status.holders()} released it",
            hint=f"run `truekeep host take` on the new canonical host; until then, {instead}",
            host="",
        )
    name = found.name if found.name != machine.name else f"another machine also called {found.name}"
    own = host_status.find(machine.id)
    since = (
        f", which took over on {local_day(found.taken_at)}" if own and not own.released_at and found.taken_at else ""
    )
    return NotCanonical(
        f"{here}: the canonical host is {name}{since}",
        hint=f"run it there; here, {instead}; if that machine is lost: `truekeep host take`",
        host=found.name,
    )


def refuse_copy(host_status: HostStatus, machine: Machine, what: str) -> NotCanonical:
    """The error for a machine that has a copy of the host's memory: nothing writes a copy, whatever its leases say."""
    found = host_status.canonical
    name = found.name if found is not None else host_status.holders()
    return NotCanonical(
        f"this machine ({machine.name}) may not {what}: it has a copy of the memory of {name}",
        hint="run it there; here, `truekeep handoff new` and `truekeep checkpoint` write handoffs, which `truekeep sync"
        " run` sends; if that machine is lost: `truekeep host take`",
        host=name,
    )


def lease_history(host_status: HostStatus) -> list[str]:
    """One line for each lease: who took over when and from whom, and who wrote last."""
    lines = [
        f"{item.name} ({item.id[:8]}): generation {item.generation}"
        + (f", took over {local_minute(item.taken_at)}" if item.taken_at else "")
        + (f" from {item.taken_from}" if item.taken_from else "")
        + (f", released it {local_minute(item.released_at)}" if item.released_at else "")
        + (f", last wrote on {local_day(item.wrote_at)}" if item.wrote_at else ", has not written since")
        for item in host_status.leases
    ]
    lines += [f".truekeep/{file} {why}" for file, why in host_status.unreadable]
    if host_status.is_split:
        lines += [f".truekeep/{name} is a conflict copy left by a sync tool" for name in host_status.copies]
    return lines
