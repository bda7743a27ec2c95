"""The back ends that can run truekeep regularly: systemd, launchd and cron."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, cast

from truekeep.core.errors import BadInput, BadSetup
from truekeep.handoffs.sync.processes import Ran, ToolMissing, run_tool
from truekeep.integrations.schedule.config import Job

SYSTEMS = ("systemd", "launchd", "cron")
OURS = "written by `truekeep schedule install`; `truekeep schedule remove` takes it away"
_SECONDS = 30.0


class InstalledJob(NamedTuple):
    """A job as it is installed."""

    where: tuple[str, ...]  # files, or the crontab
    every: int  # minutes; 0 if unknown
    made: tuple[str, ...] = ()  # folders, and the crontab, that install made
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """The functions of each back-end module."""

    def missing(self) -> str:
        """Return why this back end cannot be used here; "" when it can."""

    def is_running(self) -> bool:
        """Whether this back end would run an installed job now."""

    def install(self, job: Job) -> InstalledJob:
        """Install a job, or update the one of this name."""

    def find(self, name: str) -> InstalledJob | None:
        """Return the job of this name, if it is installed."""

    def command(self, name: str) -> tuple[str, ...]:
        """Return the command that the job of this name runs; empty if unknown."""

    def remove(self, name: str, made: tuple[str, ...]) -> bool:
        """Remove a job and the folders that install made for it; False if there was none."""

    def next_run(self, name: str, now: datetime) -> datetime | None:
        """Return when it runs next, if known."""


def backend(system: str) -> Backend:
    return cast(Backend, import_module(f"truekeep.integrations.schedule.{system}"))


def choose(system: str) -> str:
    """Return the back end to use: the named one, else the first that is running."""
    if system != "auto":
        why = backend(system).missing()
        if why:
            raise BadSetup(f"{system} cannot be used here: {why}", hint="use --system auto")
        return system
    order = ("launchd", "cron") if sys.platform == "darwin" else ("systemd", "cron")
    there = [name for name in order if not backend(name).missing()]
    if not there:
        raise BadSetup(
            f"there is neither {' nor '.join(order)} here",
            hint="have another program run `truekeep schedule run --timer`",
        )
    return next((name for name in there if backend(name).is_running()), there[-1])


def ask(*arguments: str, given: bytes = b"") -> Ran:
    """Run a program of the system; a missing one counts as failed."""
    try:
        return run_tool(arguments, seconds=_SECONDS, given=given)
    except ToolMissing as error:
        return Ran(127, b"", f"{error.name} is not installed")


def check_ours(path: Path) -> None:
    """Raise BadInput if the file was not written by truekeep."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if path.is_symlink():
            raise BadInput(f"{path} is a symlink", hint="remove it, or choose another --system") from None
        return
    if path.is_symlink() or OURS not in text:
        raise BadInput(f"{path} was not written by truekeep", hint="move it away, or choose another --system")


def remove_made(folders: tuple[str, ...]) -> None:
    """Remove the folders that install made, if they are empty."""
    for folder in folders:
        if os.path.isabs(folder):
            with suppress(OSError):
                os.rmdir(folder)
