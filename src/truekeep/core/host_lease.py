"""Whose turn it is to write a workspace: the tenures of its canonical hosts.

A workspace may be synced by any tool, and such tools know nothing of locks: the last writer wins, or a conflict copy
appears. So each machine writes only its own file, hosts/<machine id>.toml, and who is canonical follows from all of
them together: the one that holds the highest generation and has not released it. Times are told to people and decide
nothing, because clocks differ. The file `host` is the first tenure of a workspace, generation 1. Whatever else lies
beside these files under such a name is a sync tool's second version and counts as one more witness.

Two machines with the same highest generation, or a file that cannot be read, are no answer, and then nobody writes.
"""

from __future__ import annotations

import os
import re
import tomllib
from contextlib import suppress
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadSetup, NotCanonical, SplitHost
from truekeep.core.machine import FIRST, HOSTS, Machine, has_routes
from truekeep.core.toml import render_text

_BYTES = 4_096  # of one file
_FILES = 256
_GENERATIONS = 1_000_000_000
_LONGEST = 200  # characters of a name
_ID = re.compile(r"[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PASSING = (".tmp", ".part", ".partial", file_io.TEMPORARY)  # what a tool has not finished copying
_KEYS = ("id", "name", "generation", "taken_at", "taken_from", "released_at", "wrote_at")


class Tenure(NamedTuple):
    """One machine's time as canonical host."""

    id: str
    name: str
    generation: int
    taken_at: str = ""
    taken_from: str = ""  # for people: whoever had it then
    released_at: str = ""
    wrote_at: str = ""  # the first write of the last day with one
    others: tuple[tuple[str, str | int], ...] = ()  # what a newer truekeep keeps there


class UnreadableLease(NamedTuple):
    """A file that should say who may write, and does not."""

    file: str
    why: str


class Overlap(NamedTuple):
    """A machine that went on writing when another one had taken over already."""

    former: Tenure
    later: Tenure
    is_sure: bool  # else it wrote on the very day, perhaps before


class HostStatus(NamedTuple):
    """What all the files together say. One tenure for each machine, its latest; the highest generation first."""

    tenures: tuple[Tenure, ...]
    unreadable: tuple[UnreadableLease, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def generation(self) -> int:
        return self.tenures[0].generation if self.tenures else 0

    @property
    def rivals(self) -> tuple[Tenure, ...]:
        """Who holds the highest generation and has not released it. One is right; an older generation is over."""
        return tuple(item for item in self.tenures if item.generation == self.generation and not item.released_at)

    @property
    def canonical(self) -> Tenure | None:
        return self.rivals[0] if len(self.rivals) == 1 and not self.unreadable else None

    @property
    def is_split(self) -> bool:
        """Whether it cannot be told who may write."""
        return bool(self.unreadable) or len(self.rivals) > 1

    def find(self, machine_id: str) -> Tenure | None:
        return next((item for item in self.tenures if item.id == machine_id), None)

    def holders(self) -> str:
        """The names of those who have it, or had it last. Namesakes are told apart by their ids."""
        names = [item.name for item in self.tenures]
        latest = [item for item in self.tenures if item.generation == self.generation]
        return " and ".join(
            sorted(
                item.name if names.count(item.name) == 1 else f"{item.name} ({item.id[:8]})"
                for item in self.rivals or latest
            )
        )

    def overlaps(self) -> tuple[Overlap, ...]:
        """Who wrote after the next one had taken over, as far as the clocks of both can be believed."""
        found = []
        for former in self.tenures:
            later = min(
                (item for item in self.tenures if item.generation > former.generation),
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


def next_tenure(standing: HostStatus, machine_id: str, name: str, *, at: str) -> Tenure:
    """What a machine that takes over writes: it ends every tenure that is known here."""
    generation = standing.generation + 1
    if generation > _GENERATIONS:
        raise BadSetup(f"a file in .truekeep/{HOSTS} names generation {standing.generation}", hint="look at it")
    return Tenure(id=machine_id, name=name, generation=generation, taken_at=at, taken_from=standing.holders())


# Files.


def read_standing(path: str) -> HostStatus:
    """What the files of a state folder say. One that cannot be read is named, and never an error."""
    top = file_io.open_root(path)
    try:
        return _LeaseReader(top).read()
    finally:
        os.close(top)


def has_tenures(path: str) -> bool:
    """Whether any machine has a file of its own."""
    try:
        return any(_ID.match(name) for name in os.listdir(os.path.join(path, HOSTS)))
    except OSError:
        return False


def write_tenure(path: str, tenure: Tenure) -> None:
    """Write a machine's own file whole. The lock's holder alone does."""
    name = f"{tenure.id}.toml"
    top = file_io.open_root(path)
    try:
        with suppress(FileExistsError):
            os.mkdir(HOSTS, dir_fd=top)
            os.fsync(top)
        folder = file_io.open_folder(top, HOSTS, shown=f".truekeep/{HOSTS}")
        try:
            file_io.write_beside(folder, name, render_tenure(tenure).encode())
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
    """Reads every file that says who may write."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._found: dict[str, Tenure] = {}
        self._unreadable: list[UnreadableLease] = []
        self._copies: list[str] = []

    def read(self) -> HostStatus:
        names = sorted(name for name in os.listdir(self._top) if name.startswith(FIRST) and not _is_passing(name))
        if HOSTS in names:
            self._read_folder()
        if FIRST in names:
            self._take(self._top, FIRST, FIRST)
        copies = [name for name in names if name not in (FIRST, HOSTS)]
        for name in self._few(copies, "."):
            self._copies.append(name)
            self._take(self._top, name, name)
        ordered = sorted(self._found.values(), key=lambda item: (-item.generation, item.id))
        return HostStatus(tuple(ordered), tuple(self._unreadable), tuple(self._copies))

    def _read_folder(self) -> None:
        try:
            folder = file_io.open_folder(self._top, HOSTS)
        except (OSError, file_io.UnsafePath) as error:
            self._unreadable.append(UnreadableLease(HOSTS, _why(error)))
            return
        try:
            names = sorted(name for name in os.listdir(folder) if _ID.search(name) and not _is_passing(name))
            for name in self._few(names, HOSTS):
                if not (name.endswith(".toml") and _ID.fullmatch(name.removesuffix(".toml"))):
                    self._copies.append(f"{HOSTS}/{name}")
                self._take(folder, name, f"{HOSTS}/{name}")
        finally:
            os.close(folder)

    def _few(self, names: list[str], folder: str) -> list[str]:
        if len(names) > _FILES:
            self._unreadable.append(UnreadableLease(folder, f"holds {len(names)} files that name hosts"))
        return names[:_FILES]

    def _take(self, folder: int, name: str, shown: str) -> None:
        for attempt in range(2):
            try:
                raw, _ = file_io.read_file(folder, name, limit=_BYTES)
                tenure = parse_tenure(raw)
            except FileNotFoundError:
                return  # gone since it was listed
            except file_io.ChangedSince:
                if attempt:
                    self._unreadable.append(UnreadableLease(shown, "is being written"))
                continue
            except (OSError, file_io.UnsafePath, ValueError, RecursionError) as error:
                self._unreadable.append(UnreadableLease(shown, _why(error)))
                return
            known = self._found.get(tenure.id)
            self._found[tenure.id] = tenure if known is None else _joined(known, tenure)
            return


def _is_passing(name: str) -> bool:
    return name.startswith(".") or name.endswith(_PASSING)


def _why(error: Exception) -> str:
    if isinstance(error, file_io.UnsafePath):
        return error.what
    if isinstance(error, OSError):
        return error.strerror or "cannot be opened"
    return str(error)[:_LONGEST] if isinstance(error, ValueError) else "is nested too deeply"


def _joined(known: Tenure, more: Tenure) -> Tenure:
    """Two versions of one machine's tenure. In any order they give the same: the later one, ended if any says so."""
    if known.generation != more.generation:
        return max(known, more, key=lambda item: item.generation)
    return known._replace(
        taken_at=min(filter(None, (known.taken_at, more.taken_at)), default=""),
        released_at=max(known.released_at, more.released_at),
        wrote_at=max(known.wrote_at, more.wrote_at),
    )


# Words.


def parse_tenure(raw: bytes) -> Tenure:
    """The text of a tenure, or of `host`. ValueError where it does not say which machine, or which generation."""
    try:
        values = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8 text") from error
    machine = values.get("id")
    if not isinstance(machine, str) or not _ID.fullmatch(machine):
        raise ValueError("names no machine")
    is_first = "generation" not in values and "since" in values  # as `host` has it
    generation = 1 if is_first else values.get("generation")
    if type(generation) is not int or not 1 <= generation <= _GENERATIONS:
        raise ValueError("names no generation")
    released_at = _time(values.get("released_at", ""))
    if "released_at" in values and not released_at:
        raise ValueError("does not say when it was released")
    others = tuple((key, value) for key, value in values.items() if key not in _KEYS and isinstance(value, (str, int)))
    return Tenure(
        id=machine,
        name=_name(values.get("name")) or "?",
        generation=generation,
        taken_at=_time(values.get("since" if is_first else "taken_at")),
        taken_from=_name(values.get("taken_from")),
        released_at=released_at,
        wrote_at=_time(values.get("wrote_at")),
        others=() if is_first else others,
    )


def render_tenure(tenure: Tenure) -> str:
    values = [(key, getattr(tenure, key)) for key in _KEYS]
    lines = [f"{key} = {_rendered(value)}\n" for key, value in values if value != ""]
    return "".join([*lines, *(f"{quoted(key)} = {_rendered(value)}\n" for key, value in tenure.others)])


def _name(value: object) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _time(value: object) -> str:
    return value if isinstance(value, str) and _TIME.fullmatch(value) else ""


def _rendered(value: str | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quoted(value)


def quoted(text: str) -> str:
    """A text as TOML has it, with a mark for what is no text."""
    return render_text(text.encode("utf-8", "replace").decode())


def refusal(standing: HostStatus, machine: Machine, what: str) -> NotCanonical:
    """Why this machine may not write, who may, and what to run instead."""
    here = f"this machine ({machine.name}) may not {what}"
    send = ", `truekeep sync run` sends them" if has_routes() else ""
    instead = f"`truekeep handoff new` and `truekeep checkpoint` leave handoffs{send}"
    if standing.unreadable:
        file, why = standing.unreadable[0]
        return SplitHost(
            f"{here}: .truekeep/{file} {why}, so nobody can tell which machine is the canonical host",
            hint=f"put the file right, or delete it once you know which machine it was of; here, {instead}",
            host="",
            story=story(standing),
        )
    if standing.is_split:
        return SplitHost(
            f"{here}: {standing.holders()} each hold themselves for the canonical host, and none may write",
            hint="see what each of them filed (`truekeep history` there), then run `truekeep host take` on the one that"
            f" stays; until then, {instead}",
            host="",
            story=story(standing),
        )
    found = standing.canonical
    if found is None:
        return NotCanonical(
            f"{here}: nobody is the canonical host since {standing.holders()} released it",
            hint=f"`truekeep host take` on the machine that is to be it; until then, {instead}",
            host="",
        )
    name = found.name if found.name != machine.name else f"another machine that is called {found.name} too"
    own = standing.find(machine.id)
    since = f", which took over on {found.taken_at[:10]}" if own and not own.released_at and found.taken_at else ""
    return NotCanonical(
        f"{here}: the canonical host is {name}{since}",
        hint=f"run it there; here, {instead}; if that machine is lost: `truekeep host take`",
        host=found.name,
    )


def story(standing: HostStatus) -> list[str]:
    """Who took over when and from whom, and who wrote last, a line each."""
    lines = [
        f"{item.name} ({item.id[:8]}): generation {item.generation}"
        + (f", took over {shown_time(item.taken_at)}" if item.taken_at else "")
        + (f" from {item.taken_from}" if item.taken_from else "")
        + (f", released it {shown_time(item.released_at)}" if item.released_at else "")
        + (f", last wrote on {item.wrote_at[:10]}" if item.wrote_at else ", has not written since")
        for item in standing.tenures
    ]
    lines += [f".truekeep/{file} {why}" for file, why in standing.unreadable]
    if standing.is_split:
        lines += [f".truekeep/{name} is a second version that a sync tool left" for name in standing.copies]
    return lines


def shown_time(stamp: str) -> str:
    return f"{stamp[:10]} {stamp[11:16]} UTC"
