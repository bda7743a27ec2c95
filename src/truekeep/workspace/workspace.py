"""Opens a workspace and offers its services; command line, hooks, MCP and web pages use nothing else.

Each service is a class in its own module, imported and created when it is first used. Reading needs no preparation;
writing needs this machine to be the canonical host, and takes the workspace's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep.core.config import Config
from truekeep.core.default_workspace import find_workspace, read_remembered
from truekeep.core.errors import BadSetup, as_argument
from truekeep.core.memory_copy import is_copy
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.workspace.context import WorkspaceContext

if TYPE_CHECKING:
    from truekeep.core.machine import Machine
    from truekeep.core.memory_copy import CopySource
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.workspace.cards import Cards
    from truekeep.workspace.files import FileBrowser
    from truekeep.workspace.handoffs import Handoffs
    from truekeep.workspace.health import Health
    from truekeep.workspace.history import MemoryHistory
    from truekeep.workspace.host import CanonicalHost
    from truekeep.workspace.init import InitReport
    from truekeep.workspace.maintenance import Maintenance
    from truekeep.workspace.notes import Notes
    from truekeep.workspace.repositories import Repositories
    from truekeep.workspace.review import ReviewQueue
    from truekeep.workspace.search import MemorySearch
    from truekeep.workspace.sessions import AgentSessions
    from truekeep.workspace.settings import Settings
    from truekeep.workspace.verification import Verification


def default_path() -> Path:
    """The workspace that commands use when none is named."""
    return _expand_user(Path(find_workspace()))


def _expand_user(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise BadSetup(f"{path}: {error}", hint="name the folder in full") from error


class Workspace:
    """One canonical memory."""

    def __init__(self, path: Path, *, now: Callable[[], datetime] | None = None) -> None:
        self.path = path
        self.context = WorkspaceContext(path, now or (lambda: datetime.now().astimezone()))

    @classmethod
    def open(cls, path: Path | None = None, *, now: Callable[[], datetime] | None = None) -> Workspace:
        """Open an existing workspace."""
        chosen = _expand_user(path or default_path())
        if not (chosen / STATE).is_dir():
            if chosen.exists() and not chosen.is_dir():
                raise BadSetup(f"{chosen} is not a folder", hint="name the folder of a workspace")
            problem = "is not a truekeep workspace" if chosen.is_dir() else "does not exist"
            raise BadSetup(f"{chosen} {problem}", hint=_how_to_begin(chosen))
        # A copy is read by the generation that is in use now, so that nobody sees parts of two.
        chosen = Path(os.path.realpath(chosen)) if is_copy(chosen) else Path(os.path.abspath(chosen))
        workspace = cls(chosen, now=now)
        workspace.state.check_format()
        return workspace

    @classmethod
    def init(
        cls,
        path: Path | None = None,
        *,
        repositories: Sequence[str] = (),
        is_bare: bool = False,
        now: Callable[[], datetime] | None = None,
    ) -> InitReport:
        """Create a workspace, or adopt an existing folder of Markdown memory without changing a file in it.

        A bare one gets no memory files of its own, because an import brings them.
        """
        from truekeep.workspace.init import init_workspace

        chosen = Path(os.path.abspath(_expand_user(path or default_path())))
        with cls(chosen, now=now) as workspace:
            return init_workspace(workspace.context, tuple(repositories), is_bare=is_bare)

    def close(self) -> None:
        self.context.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Settings and time.

    @property
    def state(self) -> StateFolder:
        return self.context.state

    @property
    def config(self) -> Config:
        return self.context.config

    @property
    def machine(self) -> Machine:
        return self.context.machine

    @property
    def notices(self) -> list[str]:
        """Messages to show the user after the command."""
        return self.context.notices

    @property
    def is_canonical(self) -> bool:
        """True if this machine is the canonical host, the one that may write the workspace."""
        return self.source is None and self.state.host().id == self.machine.id

    @property
    def source(self) -> CopySource | None:
        """Whose memory this is, if it is a copy of another machine's; None on the canonical host."""
        return self.context.source

    def now(self) -> datetime:
        return self.context.now()

    def today(self) -> date:
        return self.context.today()

    def stamp(self) -> str:
        """The current time, as the ledger writes it."""
        return self.context.stamp()

    # Writing, for callers that bring their own changes.

    @contextmanager
    def writing(self, purpose: str) -> Iterator[MemoryTransaction]:
        """Hold the write lock and give a transaction. `purpose` completes "this machine may not …"."""
        with self.context.writing(purpose, patient=True):
            self.context.note_write()
            yield self.context.transaction

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every other truekeep from writing."""
        with self.context.lock(patient=True):
            yield

    # Services, imported and created when they are first used.

    handoffs: Handoffs
    review: ReviewQueue
    cards: Cards
    files: FileBrowser
    history: MemoryHistory
    search: MemorySearch
    verification: Verification
    repositories: Repositories
    sessions: AgentSessions
    notes: Notes
    maintenance: Maintenance
    health: Health
    host: CanonicalHost
    settings: Settings

    def __getattr__(self, name: str) -> Any:
        if name not in _SERVICES:
            raise AttributeError(name)
        service = getattr(import_module(f"truekeep.workspace.{name}"), _SERVICES[name])(self)
        setattr(self, name, service)
        return service


_SERVICES = {
    "handoffs": "Handoffs",
    "review": "ReviewQueue",
    "cards": "Cards",
    "files": "FileBrowser",
    "history": "MemoryHistory",
    "search": "MemorySearch",
    "verification": "Verification",
    "repositories": "Repositories",
    "sessions": "AgentSessions",
    "notes": "Notes",
    "maintenance": "Maintenance",
    "health": "Health",
    "host": "CanonicalHost",
    "settings": "Settings",
}
"""The class of each service, in the module of the same name."""


def _how_to_begin(chosen: Path) -> str:
    """The hint for a folder that is not a workspace."""
    if str(chosen) == read_remembered() and "TRUEKEEP_WORKSPACE" not in os.environ:
        return (
            f"`truekeep init` chose it on this machine: bring it back, choose another with `truekeep init PATH`,"
            f" or start over there with `truekeep init {as_argument(chosen)}`"
        )
    command = "truekeep init" if chosen == default_path() else f"truekeep init {as_argument(chosen)}"
    return (
        f"`{command}` makes it, on the one machine that is to keep the memory; on any other,"
        " `truekeep connect machine` brings a copy of it, and `truekeep handoff new` leaves what it should know"
    )
