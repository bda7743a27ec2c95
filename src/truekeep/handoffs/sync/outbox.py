"""The producer's side of sync: handoffs in this machine's repositories, cleared when the host has filed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.repository import remote_name
from truekeep.handoffs.inbox import InboxFile, InboxReader, find_inboxes
from truekeep.handoffs.sync.mirror import place_name
from truekeep.verify.checkouts import expand_repositories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truekeep.handoffs.sync.receipts import Done
    from truekeep.handoffs.sync.routes import Route
    from truekeep.handoffs.sync.runner import LocalMachine

MAX_HANDOFF_BYTES = 8 << 20
_SETTLE_SECONDS = 1.0  # a file changed more recently may still be being written


class Outgoing(NamedTuple):
    """A handoff to send."""

    file: InboxFile
    remote: str  # the name of the repository's origin; "" without one

    @property
    def digest(self) -> str:
        return self.file.digest.hex()


class Outbox:
    """The inboxes of some repositories on this machine."""

    def __init__(self, roots: Sequence[Path], writers: Mapping[str, str], *, settle: float = _SETTLE_SECONDS) -> None:
        self._inboxes = InboxReader(find_inboxes(roots, writers), limit=MAX_HANDOFF_BYTES, settle=settle)
        self._roots = roots
        self._names: dict[Path, str] = {}
        self.notes: list[str] = []
        self.stuck: set[tuple[str, str]] = set()  # place and digest of processed handoffs that cannot be moved

    def close(self) -> None:
        self._inboxes.close()

    def places(self, machine: str) -> set[str]:
        """The names that these repositories have in an exchange."""
        return {place_name(machine, str(root)) for root in self._roots}

    def waiting(self) -> Iterator[Outgoing]:
        """Every complete, readable handoff. Others wait for the next run."""
        for name, inbox in self._inboxes.waiting():
            found = self._inboxes.read(name, inbox)
            if isinstance(found, InboxFile) and found.raw is not None:
                if inbox.root not in self._names:
                    self._names[inbox.root] = remote_name(inbox.root)
                yield Outgoing(found, self._names[inbox.root])
            elif found is not None:
                why = "is too large" if isinstance(found, InboxFile) else found.why
                self.notes.append(f"{inbox.path / name} {why}")

    def clear(self, done: Done, *, machine: str) -> int:
        """Move handoffs that the host has processed to processed/. Returns their number."""
        count = 0
        for outgoing in self.waiting() if done else ():
            place = place_name(machine, str(outgoing.file.inbox.root))
            if outgoing.digest not in done.get(place, ()):
                continue
            if self._inboxes.clear(outgoing.file) is not None:
                count += 1
            else:
                self.stuck.add((place, outgoing.digest))
                where = outgoing.file.inbox.path / outgoing.file.name
                self.notes.append(f"{where} was filed but could not be moved to processed/")
        return count

    def cleared(self, done: Done) -> dict[str, set[str]]:
        """The processed handoffs, without those that could not be moved."""
        return {
            place: {digest for digest in digests if (place, digest) not in self.stuck}
            for place, digests in done.items()
        }


@contextmanager
def opened_outbox(route: Route, here: LocalMachine) -> Iterator[Outbox]:
    """Open the outbox of a route's repositories."""
    roots = expand_repositories(route.texts("repos"))
    outbox = Outbox(roots, here.writers, settle=here.settle)
    if not roots:
        outbox.notes.append(f"no repository here matches {', '.join(route.texts('repos')) or 'this route'}")
    try:
        yield outbox
    finally:
        outbox.close()
