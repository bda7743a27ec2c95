"""Which side of the sync this machine is on, and where its part of it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.errors import BadSetup
from truekeep.core.host_lease import refusal
from truekeep.core.machine import own_state, this_machine
from truekeep.core.model import WRITERS
from truekeep.handoffs.sync.routes import FILE, read_routes
from truekeep.handoffs.sync.runner import LocalMachine

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace


def side_of(workspace: Workspace | None) -> LocalMachine:
    """The canonical host keeps routes and mirror in its workspace; every other machine, in its own state folder."""
    if workspace is not None and workspace.is_canonical:
        config, machine = workspace.config, workspace.machine
        settle = config.limits.settle_seconds
        return LocalMachine(workspace.state.path, True, machine.name, config.writers, settle, id=machine.id)
    machine = this_machine()
    return LocalMachine(Path(own_state()), False, machine.name, WRITERS, 1.0, id=machine.id)


def check_side(workspace: Workspace | None) -> None:
    """Raise where somebody expects the routes of a host that this machine is not, or no longer.

    A machine with routes of its own has found its place, whatever it was before.
    """
    if workspace is None or workspace.is_canonical or is_producer():
        return
    host_status = workspace.host.status()
    if host_status.find(workspace.machine.id) or (workspace.state.path / FILE).exists():
        raise refusal(host_status, workspace.machine, "sync by the routes of this workspace")


def is_producer() -> bool:
    """Whether this machine has routes of its own. A file that cannot be read is told by whoever uses it."""
    try:
        return bool(read_routes(Path(own_state())))
    except BadSetup:
        return True


def is_astray(workspace: Workspace) -> bool:
    """Whether nobody can tell who files, or this machine was to file, never gave it up and has no other way."""
    host_status = workspace.host.status()
    own = host_status.find(workspace.machine.id)
    if host_status.is_split or (own is not None and host_status.canonical is None):
        return True
    return own is not None and own != host_status.canonical and not own.released_at and not is_producer()
