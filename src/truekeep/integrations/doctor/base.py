"""Values of `truekeep doctor`: what its checks look at, and what they report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.config import Config
from truekeep.core.errors import BadSetup, NewerState
from truekeep.core.host_lease import read_host_status
from truekeep.core.machine import Machine, known_machine, own_state
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostStatus

WELL, MENDED, BROKEN = "well", "mended", "broken"
STALE_SECONDS = 3600.0  # no process is still writing a small file after this long


class CheckProblem(NamedTuple):
    """A problem that a check found."""

    what: str
    where: str = ""
    hint: str = ""  # what the user should do
    fix: Callable[[], str] | None = None  # fixes it and returns what was done
    fix_summary: str = ""  # what `fix` would do


class CheckResult(NamedTuple):
    """The result of one check, as shown to the user."""

    name: str
    state: str
    what: str = ""
    where: str = ""
    done: str = ""
    hint: str = ""


Found = Iterator[CheckProblem | str]  # problems, and plain text for information


class CheckContext:
    """The machine and the workspace, if there is one, that the checks look at."""

    def __init__(self, path: Path | None, *, now: Callable[[], datetime] | None = None) -> None:
        self.path = path
        self.now = now or (lambda: datetime.now().astimezone())
        self.own = own_state()

    @property
    def root(self) -> str:
        assert self.path is not None
        return str(self.path)

    @property
    def state(self) -> str:
        """The state folder of the workspace."""
        return os.path.join(self.root, STATE)

    @property
    def has_state(self) -> bool:
        return self.path is not None and os.path.isdir(self.state) and not os.path.islink(self.state)

    @cached_property
    def newer(self) -> NewerState | None:
        """The error if a newer truekeep wrote the workspace, which is then left alone; else None."""
        try:
            StateFolder(Path(self.root)).check_format()
        except NewerState as error:
            return error
        except BadSetup:
            return None
        return None

    @cached_property
    def machine(self) -> Machine | None:
        """This machine; None if it has no id yet, or one that cannot be read."""
        try:
            return known_machine()
        except (OSError, ValueError):
            return None

    @cached_property
    def host_status(self) -> HostStatus:
        return read_host_status(self.state)

    @property
    def is_host(self) -> bool:
        """True if this machine is the canonical host."""
        found = self.host_status.canonical
        return found is not None and self.machine is not None and found.id == self.machine.id

    @cached_property
    def config(self) -> Config:
        """The configuration, or the defaults if it cannot be read."""
        try:
            return StateFolder(Path(self.root)).config()
        except BadSetup:
            return Config()

    def open(self) -> Workspace:
        """Open the workspace without checks, for fixes."""
        return Workspace(Path(self.root), now=self.now)

    def stamp(self) -> str:
        return self.now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    def is_old(self, path: str) -> bool:
        """True if the file is too old for a process to be still writing it."""
        try:
            return self.now().timestamp() - os.lstat(path).st_mtime > STALE_SECONDS
        except OSError:
            return False

    def shown(self, path: str) -> str:
        """The path to show; relative inside the workspace."""
        inside = self.root + os.sep if self.path is not None else ""
        return path.removeprefix(inside) if inside and path.startswith(inside) else path
