"""Finds all inboxes: those of repositories, the workspace's own, and those synced from other machines.

Opens only inboxes and writes nothing; `ingest` processes the handoffs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput
from truekeep.core.model import OPENCLAW_INBOX
from truekeep.core.state_dir import STATE, SYNCED
from truekeep.handoffs.inbox import Inbox, InboxReader, SkippedFile, find_inboxes
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.routes import read_routes
from truekeep.verify.checkouts import expand_repositories

if TYPE_CHECKING:
    from truekeep.core.config import Config


def all_inboxes(home: Path, config: Config, repositories: Sequence[Path] | None = None) -> list[Inbox]:
    """The inboxes of the given or configured repositories, and the workspace's own."""
    roots = list(repositories) if repositories is not None else expand_repositories(config.repositories)
    for root in roots:
        if not root.is_dir():
            raise BadInput(f"{root} is not a folder", hint="give the repository's root with --repo")
    writers = {**OPENCLAW_INBOX, **config.writers}
    found = find_inboxes([Path(os.path.abspath(root)) for root in roots] + [home], writers)
    return found if repositories is not None else [*found, *_synced_inboxes(home / STATE, config)]


def _synced_inboxes(state: Path, config: Config) -> Iterator[Inbox]:
    """The inboxes synced from other machines."""
    if not (state / SYNCED).is_dir():
        return
    from truekeep.handoffs.sync.mirror import all_places  # here: most machines sync nothing, and ingest runs often

    for _, place in all_places(state):
        for writer, folder in config.writers.items():
            if (place.folder / folder).is_dir():
                yield Inbox(place.folder, folder, writer, place.machine, place.repository, place.root)


def open_inboxes(home: Path, config: Config, repositories: Sequence[Path] | None = None) -> InboxReader:
    """Open the inboxes for reading and clearing. The caller closes the reader."""
    limits = config.limits
    found = all_inboxes(home, config, repositories)
    return InboxReader(found, limit=limits.handoff_bytes, settle=limits.settle_seconds)


def scan_inboxes(home: Path, config: Config) -> tuple[int, list[Path]]:
    """The number of waiting handoffs, and the inbox files that are not handoffs."""
    inboxes = open_inboxes(home, config)
    try:
        return len(inboxes.waiting()), inboxes.others
    finally:
        inboxes.close()


def read_waiting(home: Path, config: Config) -> list[tuple[bytes, str, Path | None, str]]:
    """The waiting handoffs: bytes, name, repository's folder, and path."""
    inboxes = open_inboxes(home, config)
    found: list[tuple[bytes, str, Path | None, str]] = []
    try:
        for name, inbox in inboxes.waiting():
            file = inboxes.read(name, inbox)
            if file is not None and not isinstance(file, SkippedFile) and file.raw is not None:
                root = None if inbox.there or inbox.root == home else inbox.root
                found.append((file.raw, name, root, str(inbox.path / name)))
    finally:
        inboxes.close()
    return found


def is_scanned(root: Path, home: Path, config: Config) -> bool:
    """True if ingest scans this repository."""
    wanted = os.path.realpath(root)
    return any(os.path.realpath(known) == wanted for known in (*expand_repositories(config.repositories), home))


def reported_until(inbox: Inbox, state: Path) -> float:
    """When the machine that an inbox was synced from last got receipts; infinity if its route was removed."""
    name = inbox.root.parent.name
    if name not in read_routes(state):
        return float("inf")
    last = read_history(state, name).last_ok_at
    try:
        return datetime.fromisoformat(last).timestamp()
    except ValueError:
        return 0.0
