"""Which side of the sync this machine is on, and where its part of it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.host import machine_name, own_state
from truekeep.model import WRITERS
from truekeep.sync.run import Here

if TYPE_CHECKING:
    from truekeep.workspace import Workspace


def side_of(workspace: Workspace | None) -> Here:
    """The canonical host keeps routes and mirror in its workspace; every other machine, in its own state folder."""
    if workspace is not None and workspace.is_canonical:
        config = workspace.config
        return Here(workspace.state.path, True, workspace.machine.name, config.writers, config.limits.settle_seconds)
    return Here(Path(own_state()), False, machine_name(), WRITERS, 1.0)
