"""The post: which inboxes there are (repositories', the workspace's own, those of other machines), and what is in them.

Opens nothing but inboxes, and writes nothing. What becomes of a handoff is for `ingest`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadInput
from truekeep.core.file_io import UnsafePath
from truekeep.core.model import HandoffOrigin
from truekeep.core.state_dir import STATE, SYNCED
from truekeep.handoffs.inbox import Inbox, InboxReader, SkippedFile, digest_in, find_inboxes, iter_processed
from truekeep.memory.ledger import HandoffRow
from truekeep.text.unicode import printable
from truekeep.verify.checkouts import expand_repositories

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.handoffs.draft import Draft
    from truekeep.memory.staging import MemoryFiles


def all_inboxes(home: Path, config: Config, repositories: Sequence[Path] | None = None) -> list[Inbox]:
    """The inboxes of the named repositories, else of the configured ones; the workspace's own are always there."""
    roots = list(repositories) if repositories is not None else expand_repositories(config.repositories)
    for root in roots:
        if not root.is_dir():
            raise BadInput(f"{root} is not a folder", hint="name the repository's root with --repo")
    found = find_inboxes([Path(os.path.abspath(root)) for root in roots] + [home], config.writers)
    return found if repositories is not None else [*found, *_brought(home / STATE, config)]


def _brought(state: Path, config: Config) -> Iterator[Inbox]:
    """The inboxes of other machines, as they were brought here."""
    if not (state / SYNCED).is_dir():
        return
    from truekeep.handoffs.sync.mirror import all_places

    for _, place in all_places(state):
        for writer, folder in config.writers.items():
            if (place.folder / folder).is_dir():
                yield Inbox(place.folder, folder, writer, place.machine, place.repository, place.root)


def open_inboxes(home: Path, config: Config, repositories: Sequence[Path] | None = None) -> InboxReader:
    """The inboxes, to be read and cleared; whoever opens them closes them."""
    limits = config.limits
    found = all_inboxes(home, config, repositories)
    return InboxReader(found, limit=limits.handoff_bytes, settle=limits.settle_seconds)


def count_waiting(home: Path, config: Config) -> int:
    return look_into_inboxes(home, config)[0]


def look_into_inboxes(home: Path, config: Config) -> tuple[int, list[Path]]:
    """How many handoffs wait, and the files in the inboxes that are none."""
    inboxes = open_inboxes(home, config)
    try:
        return len(inboxes.waiting()), inboxes.others
    finally:
        inboxes.close()


def read_waiting(home: Path, config: Config) -> list[tuple[bytes, str, Path | None, str]]:
    """The handoffs that wait: bytes, name, repository's folder, and where each lies."""
    inboxes = open_inboxes(home, config)
    found: list[tuple[bytes, str, Path | None, str]] = []
    try:
        for name, inbox in inboxes.waiting():
            letter = inboxes.read(name, inbox)
            if letter is not None and not isinstance(letter, SkippedFile) and letter.raw is not None:
                root = None if inbox.there or inbox.root == home else inbox.root
                found.append((letter.raw, name, root, str(inbox.path / name)))
    finally:
        inboxes.close()
    return found


def is_looked_into(root: Path, home: Path, config: Config) -> bool:
    """Whether ingest scans this repository."""
    wanted = os.path.realpath(root)
    return any(os.path.realpath(known) == wanted for known in (*expand_repositories(config.repositories), home))


def told_until(inbox: Inbox, state: Path) -> float:
    """Until when the machine that an inbox was brought from has been told what was filed.

    A route that was removed has nobody left to tell.
    """
    from truekeep.handoffs.sync.contact_history import read_history
    from truekeep.handoffs.sync.routes import read_routes

    name = inbox.root.parent.name
    if name not in read_routes(state):
        return float("inf")
    last = read_history(state, name).last_ok_at
    try:
        return datetime.fromisoformat(last).timestamp()
    except ValueError:
        return 0.0


def _iter_safe(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Drafts; none where their folder is a link, since what lies elsewhere is not ours."""
    with suppress(UnsafePath):
        yield from drafts


def iter_dealt_with(vault: MemoryFiles, inboxes: Sequence[Inbox], *, limit: int, at: str) -> Iterator[HandoffRow]:
    """What the files tell of handoffs that were dealt with before: the drafts and the processed ones."""
    from truekeep.handoffs.review import iter_drafts
    from truekeep.text.secrets.scanner import withhold

    for draft in _iter_safe(iter_drafts(vault)):
        try:
            digest = bytes.fromhex(draft.digest)
        except ValueError:
            continue
        if len(digest) == 32:
            origin = HandoffOrigin(
                writer=draft.writer, machine=draft.machine, repository=draft.repository, inbox="", name=draft.name
            )
            yield HandoffRow(
                digest=digest,
                origin=origin,
                title="",
                received_at=draft.received_at,
                outcome="review",
                target=draft.path,
            )
    for inbox in inboxes:
        for folder, item in iter_processed(inbox):
            digest = digest_in(folder, item.name, limit=limit)
            origin = HandoffOrigin(
                writer=inbox.writer,
                machine="",
                repository="",
                inbox=withhold(printable(str(inbox.path))),
                name=withhold(printable(item.name)),
            )
            yield HandoffRow(digest=digest, origin=origin, title="", received_at=at, outcome="seen", target="")
