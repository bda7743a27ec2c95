"""The canonical host: which machine may write, taking over, and releasing. The rules are in `core/host_lease`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekeep.core.errors import EditedSince
from truekeep.core.host_lease import HostLease, HostStatus, next_lease, refusal
from truekeep.core.machine import HOSTS_FOLDER

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace


class CanonicalHost:
    """The canonical host of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._context = workspace.context

    def status(self) -> HostStatus:
        """The machines that were and are the canonical host."""
        return self._context.state.host_status()

    def take(self, seen: HostStatus) -> HostLease:
        """Make this machine the canonical host, ending every tenure that is known here. Repeating it is harmless.

        `seen` is the status that the person saw; if another machine took over since, nothing is done.
        """
        context = self._context
        machine = context.machine
        with context.lock(patient=True):
            status = self.status()
            if (status.generation, status.holders()) != (seen.generation, seen.holders()):
                raise EditedSince(
                    "another machine was faster; nothing was done", hint="`truekeep host show` says which"
                )
            own_file = f"{HOSTS_FOLDER}/{machine.id}.toml"  # rewritten below, so it may be unreadable
            others = status._replace(unreadable=tuple(item for item in status.unreadable if item.file != own_file))
            if others.unreadable:
                raise refusal(others, machine, "take over")
            lease = status.canonical
            if lease is None or lease.id != machine.id:
                lease = next_lease(status, machine.id, machine.name, at=context.stamp())
                context.state.write_lease(lease)
            context.open_for_writing()
            context.note_take(lease)
            return lease

    def release(self) -> HostLease:
        """End this machine's tenure; no machine may write until one takes over. Repeating it is harmless."""
        context = self._context
        machine = context.machine
        status = self.status()
        own = status.find(machine.id)
        if own is not None and own.released_at and own.generation == status.generation:
            return own
        if own is None or own not in status.rivals:
            raise refusal(status, machine, "release what it does not have")
        with context.lock(patient=True) if status.is_split else context.writing("release it", patient=True):
            context.open_for_writing()
            context.note_act("released-host", f"generation {own.generation}", at=context.stamp())
            # The last write of all, so that a machine that sees it has all the others.
            released = (self.status().find(machine.id) or own)._replace(released_at=context.stamp())
            context.state.write_lease(released)
        return released
