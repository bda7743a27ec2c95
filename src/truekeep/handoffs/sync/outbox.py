"""The producer's side: what waits in this machine's repositories, and is cleared when the host has dealt with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.git import remote_name
from truekeep.handoffs.inbox import InboxReader, Letter, find_inboxes
from truekeep.handoffs.sync.mirror import place_name
from truekeep.verify.checkouts import expand_repositories

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truekeep.handoffs.sync.receipts import Done
    from truekeep.handoffs.sync.routes import Route
    from truekeep.handoffs.sync.runner import LocalMachine

LIMIT = 8 << 20  # bytes of a handoff that is sent
_SETTLE = 1.0  # seconds that a file must have been left alone


class Outgoing(NamedTuple):
    """A handoff that is to be sent."""

    letter: Letter
    remote: str  # the name of the repository's origin; empty without one

    @property
    def digest(self) -> str:
        return self.letter.digest.hex()


class Outbox:
    """The inboxes of some repositories on this machine."""

    def __init__(self, roots: Sequence[Path], writers: Mapping[str, str], *, settle: float = _SETTLE) -> None:
        self._inboxes = InboxReader(find_inboxes(roots, writers), limit=LIMIT, settle=settle)
        self._roots = roots
        self._names: dict[Path, str] = {}
        self.notes: list[str] = []
        self.stuck: set[tuple[str, str]] = set()  # place and digest of what was dealt with and cannot be moved away

    def close(self) -> None:
        self._inboxes.close()

    def places(self, machine: str) -> set[str]:
        """The names that these repositories have in an exchange."""
        return {place_name(machine, str(root)) for root in self._roots}

    def waiting(self) -> Iterator[Outgoing]:
        """Every handoff that is whole and readable. What is not waits for the next run."""
        for name, inbox in self._inboxes.waiting():
            found = self._inboxes.read(name, inbox)
            if isinstance(found, Letter) and found.raw is not None:
                if inbox.root not in self._names:
                    self._names[inbox.root] = remote_name(inbox.root)
                yield Outgoing(found, self._names[inbox.root])
            elif found is not None:
                why = "is too large" if isinstance(found, Letter) else found.why
                self.notes.append(f"{inbox.path / name} {why}")

    def clear(self, done: Done, *, machine: str) -> int:
        """Move what the host has dealt with to processed/. Gives how many there were."""
        count = 0
        for outgoing in self.waiting() if done else ():
            place = place_name(machine, str(outgoing.letter.inbox.root))
            if outgoing.digest not in done.get(place, ()):
                continue
            if self._inboxes.clear(outgoing.letter) is not None:
                count += 1
            else:
                self.stuck.add((place, outgoing.digest))
                where = outgoing.letter.inbox.path / outgoing.letter.name
                self.notes.append(f"{where} has been dealt with and could not be moved to processed/")
        return count

    def cleared(self, done: Done) -> dict[str, set[str]]:
        """Of what was dealt with: all but what could not be moved."""
        return {
            place: {digest for digest in digests if (place, digest) not in self.stuck}
            for place, digests in done.items()
        }


@contextmanager
def opened_outbox(route: Route, here: LocalMachine) -> Iterator[Outbox]:
    """What waits in the repositories that a route names."""
    roots = expand_repositories(route.texts("repos"))
    outbox = Outbox(roots, here.writers, settle=here.settle)
    if not roots:
        outbox.notes.append(f"no repository here is named by {', '.join(route.texts('repos')) or 'this route'}")
    try:
        yield outbox
    finally:
        outbox.close()
