"""The canonical host changes: this machine takes over, or ends its time. Whose turn it is, is in `tenure`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truekeep.core.errors import EditedSince
from truekeep.core.host_lease import HostStatus, Tenure, next_tenure, refusal
from truekeep.core.machine import HOSTS

if TYPE_CHECKING:
    from truekeep.workspace.context import WorkspaceContext


def take_host(rooms: WorkspaceContext, seen: HostStatus) -> Tenure:
    """Make this machine the canonical host, unless another one was faster than what the person has seen."""
    machine = rooms.machine
    with rooms.lock(patient=True):
        standing = rooms.state.standing()
        if (standing.generation, standing.holders()) != (seen.generation, seen.holders()):
            raise EditedSince("another machine was faster; nothing was done", hint="`truekeep host show` says which")
        own = f"{HOSTS}/{machine.id}.toml"  # may be anything: it is written anew
        others = standing._replace(unreadable=tuple(item for item in standing.unreadable if item.file != own))
        if others.unreadable:
            raise refusal(others, machine, "take over")
        tenure = standing.canonical
        if tenure is None or tenure.id != machine.id:
            tenure = next_tenure(standing, machine.id, machine.name, at=rooms.stamp())
            rooms.state.write_tenure(tenure)
        rooms.open_for_writing()
        rooms.note_take(tenure)
        return tenure


def release_host(rooms: WorkspaceContext) -> Tenure:
    """End this machine's tenure; then nobody writes until some machine takes over."""
    machine = rooms.machine
    standing = rooms.state.standing()
    own = standing.find(machine.id)
    if own is not None and own.released_at and own.generation == standing.generation:
        return own
    if own is None or own not in standing.rivals:
        raise refusal(standing, machine, "release what it does not have")
    with rooms.lock(patient=True) if standing.is_split else rooms.writing("release it", patient=True):
        rooms.open_for_writing()
        rooms.note_act("released-host", f"generation {own.generation}", at=rooms.stamp())
        # The very last write, so that whoever sees it has all the others.
        released = (rooms.state.standing().find(machine.id) or own)._replace(released_at=rooms.stamp())
        rooms.state.write_tenure(released)
    return released
