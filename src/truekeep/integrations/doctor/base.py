"""What is examined, and what is found: the words of the doctor."""

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
HOUR = 3600.0  # seconds after which nobody is still writing a small file


class Trouble(NamedTuple):
    """Something that is wrong."""

    what: str
    where: str = ""
    hint: str = ""  # the next step, for a person
    mend: Callable[[], str] | None = None  # puts it right and says what was done
    cure: str = ""  # what `mend` would do


class CheckResult(NamedTuple):
    """What came of looking at one thing."""

    name: str
    state: str
    what: str = ""
    where: str = ""
    done: str = ""
    hint: str = ""


Found = Iterator[Trouble | str]  # what is wrong, and what is merely worth knowing


class Case:
    """One machine, and the workspace on it, if there is one."""

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
        """What a newer truekeep wrote here: then the workspace is left alone."""
        try:
            StateFolder(Path(self.root)).check_format()
        except NewerState as error:
            return error
        except BadSetup:
            return None
        return None

    @cached_property
    def machine(self) -> Machine | None:
        """This machine; None where it has no id yet, or one that cannot be read."""
        try:
            return known_machine()
        except (OSError, ValueError):
            return None

    @cached_property
    def host_status(self) -> HostStatus:
        return read_host_status(self.state)

    @property
    def is_host(self) -> bool:
        """Whether this machine is the one that may write the workspace."""
        found = self.host_status.canonical
        return found is not None and self.machine is not None and found.id == self.machine.id

    @cached_property
    def config(self) -> Config:
        """The configuration; where it cannot be read, the defaults."""
        try:
            return StateFolder(Path(self.root)).config()
        except BadSetup:
            return Config()

    def open(self) -> Workspace:
        """The workspace, whatever is wrong with it; for whoever mends."""
        return Workspace(Path(self.root), now=self.now)

    def stamp(self) -> str:
        return self.now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")

    def is_old(self, path: str) -> bool:
        """Whether nobody can still be writing a file that is written without the lock."""
        try:
            return self.now().timestamp() - os.lstat(path).st_mtime > HOUR
        except OSError:
            return False

    def shown(self, path: str) -> str:
        """A path as it is told: inside of the workspace, from there."""
        inside = self.root + os.sep if self.path is not None else ""
        return path.removeprefix(inside) if inside and path.startswith(inside) else path
