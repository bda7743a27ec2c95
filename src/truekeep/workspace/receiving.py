"""Completes a copy of the host's memory on this machine: its settings, its search index, the host's verdicts.

Everything here is derived. What was derived from the generation before is carried over, so that one changed file costs
one changed file; files that did not change are only noted with their new stats.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from truekeep.core.config import Config
from truekeep.core.errors import BadSetup, Busy, TruekeepError
from truekeep.core.formats import FACTS, INDEX, SURVEY, read_format
from truekeep.core.machine import own_state
from truekeep.core.memory_copy import CURRENT, EVERY_MINUTES, copy_root
from truekeep.core.state_dir import STATE
from truekeep.core.toml import render_text
from truekeep.handoffs.sync.copy_install import CopyFolder, CopyReport, IncomingFolder, NewGeneration, PublicationSource
from truekeep.handoffs.sync.publication import (
    MAX_MANIFEST_BYTES,
    OBJECTS,
    UnusablePublication,
    parse_head,
    parse_manifest,
)
from truekeep.handoffs.sync.routes import Route, read_routes
from truekeep.verify.line_origins import parse_published_origins
from truekeep.verify.results import save_host_verdicts
from truekeep.workspace.workspace import Workspace

ROUTE_FILE = "route.json"  # beside a head that the host sent: which route brought it
_CARRIED = (INDEX, SURVEY, FACTS)  # with tables of files: the first two


def receiver(progress: Callable[[str, int, int], None] = lambda *_: None) -> Callable[..., CopyReport | None]:
    """A function that installs what a route brings."""

    def receive(source: PublicationSource, route: Route) -> CopyReport | None:
        repositories = _repositories(route.texts("repos"))
        return CopyFolder(Path(copy_root())).receive(
            source,
            key=route.text("host_key"),
            route=route.name,
            every=route.number("every", EVERY_MINUTES),
            finish=lambda made: complete_copy(made, repositories, progress),
        )

    return receive


def receive_sent(progress: Callable[[str, int, int], None] = lambda *_: None) -> CopyReport | None:
    """Install what the host sent here by rsync; None if it sent nothing."""
    copy = CopyFolder(Path(copy_root()))
    incoming = IncomingFolder(copy.incoming)
    incoming.drop_unused(_used(incoming))  # first: what became private is gone, wherever this run ends
    try:
        return receiver(progress)(incoming, _sent_by(incoming.folder, _known_key(incoming, copy)))
    except UnusablePublication:
        incoming.drop_damaged()
        raise


def _known_key(incoming: IncomingFolder, copy: CopyFolder) -> str:
    """The host's key: of a paired route here, else of the copy that is here; "" if nothing is known of a host yet.

    Raises UnusablePublication if what came names another key and no route here is paired, so that `connect machine`
    could not change it.
    """
    paired: list[str] = []
    with suppress(BadSetup):
        paired = [key for route in read_routes(Path(own_state())).values() if (key := route.text("host_key"))]
    raw = incoming.read_head()
    given = parse_head(raw) if raw is not None else None
    if paired:
        return given.key if given is not None and given.key in paired else paired[0]
    known = copy.key()
    if given is not None and known and given.key != known:
        raise UnusablePublication(
            f"the memory that came is signed with another key than that of the copy here, and was not installed: it"
            f" names {given.host} as the host",
            hint=f"if the host moved or lost its key: `rm {copy.root / CURRENT}` here, then `truekeep sync run` on the"
            " host; if not, someone else wrote it",
        )
    return known


def _sent_by(folder: Path, key: str) -> Route:
    """The host's route to this machine, as it said with what it sent."""
    try:
        given: Any = json.loads((folder / ROUTE_FILE).read_bytes())
        repos = tuple(str(item) for item in given["repos"])
        every = int(given.get("every", EVERY_MINUTES))
        return Route("host", "rsync", {"repos": repos, "every": every, "host_key": key})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Route("host", "rsync", {"host_key": key})


def _used(incoming: IncomingFolder) -> set[str]:
    try:
        head = parse_head(incoming.read_head() or b"")
        packs = parse_manifest(incoming.read_object(head.manifest, MAX_MANIFEST_BYTES) or b"").packs
    except TruekeepError:  # nothing came, or not all of it
        with suppress(OSError):
            return set(os.listdir(incoming.folder / OBJECTS))
        return set()
    return {head.manifest, *(name for name, _ in packs)}


def _repositories(own: Iterable[str]) -> tuple[str, ...]:
    """The repositories of this machine that claims are checked against: those of all its routes."""
    found = dict.fromkeys(own)
    with suppress(BadSetup):
        for route in read_routes(Path(own_state())).values():
            found |= dict.fromkeys(route.texts("repos"))
    return tuple(found)


def complete_copy(
    made: NewGeneration, repositories: Sequence[str], progress: Callable[[str, int, int], None] = lambda *_: None
) -> None:
    """Make a new generation ready to be read."""
    state = made.path / STATE
    (state / "config.toml").write_text(_render_config(repositories, _read_json(state / "known-settings.json")))
    if made.before is not None:
        _carry(made.before, made.path, made.same)
    workspace = Workspace(made.path)
    with workspace, suppress(Busy):
        _check_state(workspace)
        given = _read_json(state / "known-verdicts.json")
        if isinstance(given.get("memories"), dict):
            lease = workspace.state.host_status().canonical
            host = lease.name if lease is not None else "the host"
            with suppress(ValueError, TypeError, KeyError, LookupError):
                save_host_verdicts(workspace.context.facts, host, given, made.same)
        workspace.search.index(progress=progress)


def _check_state(workspace: Workspace) -> None:
    """Raise UnusablePublication if a state file that the host sent would stop a reader of the copy."""
    origins = workspace.state.path / "known-origins.json"
    what = origins.name
    try:
        if origins.exists():
            parse_published_origins(origins.read_bytes())
        what = "known-settings.json"
        _ = workspace.config
        what = "record of who is the host"
        for lease in workspace.state.host_status().unreadable:
            raise ValueError(f"{lease.file} {lease.why}")
    except (ValueError, TruekeepError) as error:
        raise UnusablePublication(
            f"the host's {what} cannot be used: {str(error)[:200]}",
            hint="the earlier copy still answers; `truekeep sync run` on the host, with the newest truekeep",
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    """A table that the host sent; empty if it sent none."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnusablePublication(f"the host's {path.name} cannot be read", hint="`truekeep sync run` on the host")
    return found


def _render_config(repositories: Sequence[str], settings: dict[str, Any]) -> str:
    """The settings of a copy: this machine's repositories, and what the host says about decay and the heartbeat."""
    lines = [
        "# Made for the copy of the host's memory; `truekeep sync run` writes it again.",
        f"repositories = [{', '.join(map(render_text, repositories))}]",
        "[limits]",
        f"heartbeat_minutes = {_number(settings.get('heartbeat_minutes'), Config().limits.heartbeat_minutes)}",
        "[decay]",
    ]
    extra = settings.get("extra_paths")
    inside = [path for path in extra if isinstance(path, str) and _is_inside(path)] if isinstance(extra, list) else []
    lines[4:4] = ["[recall]", f"extra_paths = [{', '.join(map(render_text, inside))}]"]
    given = settings.get("decay")
    for key, default in Config().decay._asdict().items():
        lines.append(f"{key} = {_number(given.get(key) if isinstance(given, dict) else None, default)}")
    return "\n".join(lines) + "\n"


def _is_inside(path: str) -> bool:
    """True for a path in the copy: what the host sends names nothing else of this machine."""
    parts = path.split("/")
    return path.isprintable() and not path.startswith(("/", "~")) and all(part not in ("", ".", "..") for part in parts)


def _number(value: object, default: float) -> float:
    return value if type(value) is type(default) and isinstance(value, (int, float)) else default


def _carry(before: Path, after: Path, same: Sequence[str]) -> None:
    """Copy what was derived from the generation before, and note the new stats of the files that did not change."""
    for known in _CARRIED:
        old, new = before / STATE / known.file, after / STATE / known.file
        if read_format(str(old)) != known.number:
            continue
        try:
            _copy_database(old, new)
            if known is not FACTS:
                _note_stats(new, after, same)
        except apsw.Error:
            for path in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
                with suppress(FileNotFoundError):
                    path.unlink()


def _copy_database(old: Path, new: Path) -> None:
    source = apsw.Connection(str(old), flags=apsw.SQLITE_OPEN_READONLY)
    source.set_busy_timeout(5_000)
    os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    target = apsw.Connection(str(new))
    try:
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(10_000)
    finally:
        target.close()
        source.close()


def _note_stats(database: Path, root: Path, same: Sequence[str]) -> None:
    """A hard link has a new time of change: without this note every file would be read again."""
    db = apsw.Connection(str(database))
    try:
        with db:
            for path in same:
                info = os.lstat(f"{root}/{path}")
                db.execute(
                    "UPDATE files SET ctime_ns = ?, inode = ? WHERE path = ? AND size = ? AND mtime_ns = ?",
                    (info.st_ctime_ns, info.st_ino, path, info.st_size, info.st_mtime_ns),
                )
    finally:
        db.close()
