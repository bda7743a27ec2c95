"""The role of this machine in sync, and the folder with its routes."""

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
    from collections.abc import Callable

    from truekeep.handoffs.sync.copy_install import CopyReport, PublicationSource
    from truekeep.handoffs.sync.publication_store import Publication
    from truekeep.handoffs.sync.routes import Route
    from truekeep.workspace.workspace import Workspace


def side_of(workspace: Workspace | None) -> LocalMachine:
    """The canonical host keeps routes and mirror in its workspace; every other machine, in its own state folder."""
    if workspace is not None and workspace.is_canonical:
        config, machine = workspace.config, workspace.machine
        settle = config.limits.settle_seconds
        publish = _publisher(workspace.path)
        return LocalMachine(
            workspace.state.path, True, machine.name, config.writers, settle, id=machine.id, publish=publish
        )
    machine = this_machine()
    return LocalMachine(Path(own_state()), False, machine.name, WRITERS, 1.0, id=machine.id, receive=_receive)


def _publisher(path: Path) -> Callable[[Route], Publication]:
    made: list[Callable[[Route], Publication]] = []

    def publish(route: Route) -> Publication:
        from truekeep.workspace.publishing import publisher  # heavy: needed only when a route runs

        if not made:
            made.append(publisher(path))
        return made[0](route)

    return publish


def _receive(source: PublicationSource, route: Route) -> CopyReport | None:
    from truekeep.workspace.receiving import receiver  # heavy: needed only when a route runs

    return receiver()(source, route)


def check_side(workspace: Workspace | None) -> None:
    """Raise if the workspace has sync routes, but this machine is not its host, or not any more.

    A machine with routes of its own is a producer, whatever it was before.
    """
    if workspace is None or workspace.is_canonical or is_producer():
        return
    host_status = workspace.host.status()
    if host_status.find(workspace.machine.id) or (workspace.state.path / FILE).exists():
        raise refusal(host_status, workspace.machine, "sync by the routes of this workspace")


def is_producer() -> bool:
    """True if this machine has sync routes of its own. Read errors surface when they are used."""
    try:
        return bool(read_routes(Path(own_state())))
    except BadSetup:
        return True


def is_astray(workspace: Workspace) -> bool:
    """True if no machine or several machines may write, or if this machine lost that without releasing it."""
    host_status = workspace.host.status()
    own = host_status.find(workspace.machine.id)
    if host_status.is_split or (own is not None and host_status.canonical is None):
        return True
    return own is not None and own != host_status.canonical and not own.released_at and not is_producer()
