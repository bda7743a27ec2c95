"""Agent sessions: the wake brief, prompt hints, checkpoints, and the archive of transcripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.machine import own_state
from truekeep.core.state_dir import STATE
from truekeep.workspace.briefing import WakeRequest, delegation, hint, overdue_heartbeat, wake

if TYPE_CHECKING:
    from truekeep.sessions.checkpoint import Checkpoint
    from truekeep.sessions.packing import Brief
    from truekeep.transcripts.importer import TranscriptImportReport
    from truekeep.transcripts.service import Archive
    from truekeep.workspace.checkpointing import CheckpointResult
    from truekeep.workspace.workspace import Workspace


class AgentSessions:
    """The sessions of agents in one workspace.

    Hooks wait for this, so that the heavier modules are imported when they are needed.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def wake(
        self,
        root: Path | None = None,
        *,
        tokens: int | None = None,
        harness: str = "",
        budget: float = 0.0,
        loaded: Collection[str] | None = None,
        is_delegating: bool = False,
        repository: str = "",
    ) -> Brief:
        """The brief for an agent that starts in this repository. `budget`: seconds for checking cards.

        `loaded`: files that the harness has shown; None: the usual ones. `is_delegating`: with AGENTS.md.
        `repository`: its name, for an agent that works on another machine.
        """
        asked = WakeRequest(tokens, harness, loaded, is_delegating, repository)
        return wake(self._context, self._workspace.verification.summaries, root, asked, budget=budget)

    def delegation(self, root: Path | None = None) -> str:
        """What AGENTS.md of the workspace says about giving work to other agents; "" if nothing."""
        return delegation(self._context, root)

    def hint(
        self, prompt: str, *, repository: str, told: Sequence[str], root: Path | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Cards and rules for a prompt, as text for the agent, and their keys; those in `told` are left out."""
        summaries = self._workspace.verification.summaries
        return hint(self._context, summaries, prompt, repository=repository, told=told, root=root)

    def overdue_heartbeat(self) -> datetime | None:
        """When HEARTBEAT.md was last updated, if that is longer ago than its interval."""
        return overdue_heartbeat(self._context)

    def checkpoint(self, given: Checkpoint, *, root: Path | None = None, writer: str = "") -> CheckpointResult:
        """Save what a session learned: in memory on the canonical host, as handoffs on any other machine."""
        from truekeep.workspace.checkpointing import leave_checkpoint

        return leave_checkpoint(self._context, given, root=root, writer=writer)

    def transcripts(self) -> Archive:
        """The transcript archive: this workspace's on its canonical host, elsewhere the machine's own."""
        from truekeep.transcripts.service import Archive

        return Archive(str(self._context.path / STATE) if self._workspace.is_canonical else own_state())

    def sync_transcripts(
        self, *, force: bool = False, progress: Callable[[int, int], None] = lambda *_: None
    ) -> TranscriptImportReport:
        """Import the harnesses' sessions before they delete them. `force` lets even most of the archive expire."""
        context = self._context
        days = context.config.transcripts.keep_days
        return self.transcripts().sync_here(
            machine=context.machine.name, now=context.now(), keep_days=days, force=force, progress=progress
        )
