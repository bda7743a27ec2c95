"""The handoffs that were processed before, for a new ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from truekeep.core.file_io import UnsafePath
from truekeep.core.model import HandoffOrigin
from truekeep.handoffs.inbox import Inbox, digest_in, iter_processed
from truekeep.handoffs.review import iter_drafts
from truekeep.memory.ledger import HandoffRow
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.draft import Draft
    from truekeep.memory.staging import MemoryFiles


def _iter_safe(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """The drafts; none if their folder is a symlink."""
    with suppress(UnsafePath):
        yield from drafts


def iter_processed_handoffs(
    vault: MemoryFiles, inboxes: Sequence[Inbox], *, limit: int, at: str
) -> Iterator[HandoffRow]:
    """Ledger rows for handoffs processed before, rebuilt from the drafts and the files in processed/."""
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
