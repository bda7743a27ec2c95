"""Publishes the canonical host's memory for copies on other machines: which files, and what the host knows about them.

Besides the memory files, with the documents elsewhere in the workspace that search reads, go the leases of the
canonical host, the decay record, the verdicts of the last check, and the repository and day of lines that only the
ledger knows. The ledger, transcripts, drafts in review, other configuration and everything that is private stay here.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core import file_io
from truekeep.core.errors import NotCanonical
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import HOST_FILE, HOSTS_FOLDER, own_state, person
from truekeep.core.memory_copy import EVERY_MINUTES
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.private_files import ALWAYS, FilePatterns
from truekeep.handoffs.sync.publication_choice import MemorySource, PublicationChoice
from truekeep.handoffs.sync.publication_store import (
    Describe,
    HostIdentity,
    Publication,
    PublicationStore,
    published_sequence,
)
from truekeep.handoffs.sync.published_facts import shared_origins, shared_verdicts
from truekeep.handoffs.sync.receipts import read_signer
from truekeep.memory.document_scan import iter_workspace
from truekeep.memory.file_scan import stat_of, store_of
from truekeep.verify.claim import VERSION
from truekeep.verify.results import LineOrigin, digest_text, read_verdicts
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.handoffs.sync.routes import Route

FOLDER = "published"
ROUTES = "routes.json"  # the folder that each route was last served from
STATE_DOCUMENTS = ("HANDOVER.md", "HEARTBEAT.md", "AGENTS.md", "IDENTITY.md", "SOUL.md")  # read by no scan of memory
_OF_PROGRAMS = frozenset((".git", STATE, "node_modules", ".venv"))
_publishing = threading.Lock()  # routes run in parallel


def publisher(path: Path) -> Callable[[Route], Publication]:
    """A function that publishes the memory of a workspace for the machines of a route, and gives what is published.

    Routes that withhold the same files share one publication, which is made once in each run.
    """
    made: dict[tuple[str, ...], Publication] = {}

    def publish(route: Route) -> Publication:
        withheld = private_for(route)
        with _publishing:
            if withheld not in made or _read_served(published_folder(path)).get(route.name) != _key(withheld):
                with Workspace.open(path) as workspace:
                    made[withheld] = publish_memory(workspace, withheld, route.name)
            return made[withheld]

    return publish


def published_folder(path: Path) -> Path:
    """Where this machine keeps what it published of a workspace: outside of it, so that no sync tool or git has it."""
    return Path(own_state()) / FOLDER / hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:10]


def private_for(route: Route) -> tuple[str, ...]:
    """What a route withholds besides the configured list: its own list, and USER.md from another person's login."""
    login = route.text("host").rpartition("@")[0] if route.via == "rsync" else ""
    return tuple(sorted({*route.texts("private"), *(("USER.md",) if login and login != person() else ())}))


def _key(withheld: tuple[str, ...]) -> str:
    """The name of the folder for routes that withhold these files."""
    return hashlib.sha256("\0".join(withheld).encode()).hexdigest()[:10] if withheld else "all"


def publish_memory(workspace: Workspace, withheld: tuple[str, ...] = (), route: str = "") -> Publication:
    """Publish the state of memory now, as one whole: no other truekeep writes meanwhile.

    A route whose private list changed is served from another folder: its machines have a state of the one before.
    """
    context = workspace.context
    if not workspace.is_canonical:
        raise NotCanonical(f"this machine ({workspace.machine.name}) may not publish memory", hint="run it on the host")
    folder, key = published_folder(workspace.path), _key(withheld)
    signer = read_signer()
    with context.writing("publish memory", patient=True):
        lease = context.state.host_status().canonical
        host = HostIdentity(workspace.machine.id, workspace.machine.name, lease.generation if lease else 1)
        store = PublicationStore(folder / key)
        patterns = (*context.config.sync.private, *withheld)
        served = _read_served(folder)
        after = _last_of_others(folder, key) if served.get(route) != key else 0
        sources, public = iter_sources(workspace, patterns), context.config.sync.public
        published = store.publish(
            sources, descriptions(workspace), patterns, host, signer, at=context.stamp(), after=after, public=public
        )
        if served.get(route) != key:
            file_io.write_whole(folder / ROUTES, _json({**served, route: key}))
        return published


def preview_memory(workspace: Workspace, withheld: tuple[str, ...] = ()) -> PublicationChoice:
    """What would be published now for routes that withhold these files. Writes nothing."""
    context = workspace.context
    store = PublicationStore(published_folder(workspace.path) / _key(withheld))
    config = context.config.sync
    patterns = (*config.private, *withheld)
    return store.choose(iter_sources(workspace, patterns), patterns, config.public)[0]


def _read_served(folder: Path) -> dict[str, object]:
    """The folder that each route was last served from; a route that is not known may have a state of any."""
    with suppress(OSError, ValueError):
        found = json.loads(file_io.read_regular(folder / ROUTES, follow=False))
        return found if isinstance(found, dict) else {}
    return {}


def _last_of_others(folder: Path, key: str) -> int:
    """The highest number that the other folders published; 0 without any."""
    with suppress(OSError):
        return max((published_sequence(folder / name) for name in os.listdir(folder) if name != key), default=0)
    return 0


def iter_sources(workspace: Workspace, patterns: Sequence[str]) -> Iterator[MemorySource]:
    """Every file that may be published, and every private one: by `patterns`, wherever it is in the workspace."""
    root = workspace.path
    seen = set()
    for file in iter_workspace(str(root), workspace.config.recall.extra_paths):
        if file.path not in STATE_DOCUMENTS:
            seen.add(file.path)
            yield MemorySource(file.path, file.stat, _reader(workspace, file.path))
    for name in STATE_DOCUMENTS:
        with suppress(OSError):
            stat = stat_of(os.lstat(root / name))
            if not os.path.islink(root / name):
                seen.add(name)
                yield MemorySource(name, stat, _reader(workspace, name))
    yield from _state_files(workspace)
    yield from _passed_over(root, FilePatterns((*ALWAYS, *patterns)), seen)


def _passed_over(root: Path, listed: FilePatterns, seen: set[str]) -> Iterator[MemorySource]:
    """Private files that are no memory (ignored by git, or links): others may say what they say."""
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _OF_PROGRAMS]
        for name in files:
            full = os.path.join(folder, name)
            path = os.path.relpath(full, root).replace(os.sep, "/")
            if name.lower().endswith(".md") and path not in seen and listed.match(path):
                with suppress(OSError):  # a link that leads nowhere
                    yield MemorySource(path, stat_of(os.stat(full)), _plain_reader(Path(full), follow=True))


def _reader(workspace: Workspace, path: str) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        try:
            stored = workspace.context.vault.read(path)
        except (UnsafePath, ChangedSince, OSError):
            return None
        return stored.data if stored is not None else None

    return read


def _state_files(workspace: Workspace) -> Iterator[MemorySource]:
    folder = workspace.state.path
    names = [HOST_FILE, "decay.toml"]
    with suppress(OSError):
        names += [f"{HOSTS_FOLDER}/{name}" for name in sorted(os.listdir(folder / HOSTS_FOLDER))]
    for name in names:
        with suppress(OSError):
            stat = stat_of(os.lstat(folder / name))
            yield MemorySource(f"{STATE}/{name}", stat, _plain_reader(folder / name))


def _plain_reader(path: Path, *, follow: bool = False) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        with suppress(OSError):
            return file_io.read_regular(path, follow=follow)
        return None

    return read


def descriptions(workspace: Workspace) -> dict[str, Describe]:
    """The files that are made for a publication, by path."""
    return {
        f"{STATE}/known-verdicts.json": lambda choice: _json(_verdicts(workspace, choice)),
        f"{STATE}/known-origins.json": lambda choice: _json(_origins(workspace, choice)),
        f"{STATE}/known-settings.json": lambda choice: _json(_settings(workspace, choice)),
    }


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _verdicts(workspace: Workspace, choice: PublicationChoice) -> dict[str, object]:
    """The stored verdicts of the published memories, each with the digest of the text that it is about."""
    rows = read_verdicts(str(workspace.state.path / "facts.sqlite"), choice.published)
    return {"version": VERSION, "memories": shared_verdicts(rows, choice)}


def _origins(workspace: Workspace, choice: PublicationChoice) -> dict[str, list[object]]:
    """The repository and time of each line, for those of the memories of which only the ledger knows it."""
    ledger = workspace.context.ledger
    listed = sorted(choice.published)
    written = [
        path for path in listed if store_of(path) in ("documents", "logs") and ledger.last_digest(path) is not None
    ]
    repaired = ledger.last_repairs([path for path in listed if store_of(path) == "cards"])
    found: dict[str, list[object]] = {}
    for memory in workspace.verification.reader.read_all([*written, *repaired]):
        if any(line != LineOrigin() for line in memory.lines):
            found[memory.path] = [digest_text(memory.text), list(memory.origin), [list(line) for line in memory.lines]]
    return shared_origins(found, choice)


def _settings(workspace: Workspace, choice: PublicationChoice) -> dict[str, object]:
    """The settings of the host that readers need."""
    config = workspace.config
    return {
        "heartbeat_minutes": config.limits.heartbeat_minutes,
        "decay": config.decay._asdict(),
        "every": EVERY_MINUTES,
        "extra_paths": list(_extra_paths(workspace, choice)),
    }


def _extra_paths(workspace: Workspace, choice: PublicationChoice) -> Iterator[str]:
    """The further folders of the workspace that search reads and of which something is published."""
    folders = {path[: at + 1] for path in choice.published for at, mark in enumerate(path) if mark == "/"}
    for given in workspace.config.recall.extra_paths:
        full = os.path.normpath(os.path.join(workspace.path, os.path.expanduser(given)))
        inside = os.path.relpath(os.path.realpath(full), os.path.realpath(workspace.path)).replace(os.sep, "/")
        if inside in choice.published or f"{inside}/" in folders:
            yield inside
