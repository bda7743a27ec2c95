"""Which side of the sync this machine is on, and where its part of it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.host import own_state, this_machine
from truekeep.model import WRITERS
from truekeep.sync.run import Here

if TYPE_CHECKING:
    from truekeep.workspace import Workspace


def side_of(workspace: Workspace | None) -> Here:
    """The canonical host keeps routes and mirror in its workspace; every other machine, in its own state folder."""
    if workspace is not None and workspace.is_canonical:
        config, machine = workspace.config, workspace.machine
        settle = config.limits.settle_seconds
        return Here(workspace.state.path, True, machine.name, config.writers, settle, id=machine.id)
    machine = this_machine()
    return Here(Path(own_state()), False, machine.name, WRITERS, 1.0, id=machine.id)
