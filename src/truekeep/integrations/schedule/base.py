"""What each timer of a system can do for us; systemd, launchd and cron are the three that there are."""

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
    """A job as a back end has it."""

    where: tuple[str, ...]  # files, or the crontab
    every: int  # minutes; 0 where it cannot be told
    made: tuple[str, ...] = ()  # folders, and the crontab, that install made
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """A timer of the system, as a module."""

    def missing(self) -> str:
        """Why this one cannot be used here; empty when it can."""

    def is_running(self) -> bool:
        """Whether a job that is installed here would be run."""

    def install(self, job: Job) -> InstalledJob:
        """Install a job, or bring the one of this name up to date."""

    def find(self, name: str) -> InstalledJob | None:
        """The job of this name, if it is installed."""

    def command(self, name: str) -> tuple[str, ...]:
        """What the job of this name runs, word by word; nothing where that cannot be told."""

    def remove(self, name: str, made: tuple[str, ...]) -> bool:
        """Take a job away, and what install had made for it. Tells whether there was one."""

    def next_run(self, name: str, now: datetime) -> datetime | None:
        """When it runs next, if that is known."""


def backend(system: str) -> Backend:
    return cast(Backend, import_module(f"truekeep.integrations.schedule.{system}"))


def choose(system: str) -> str:
    """The back end to use: the one that is named, else one that would run."""
    if system != "auto":
        why = backend(system).missing()
        if why:
            raise BadSetup(f"{system} cannot be used here: {why}", hint="--system auto takes what there is")
        return system
    order = ("launchd", "cron") if sys.platform == "darwin" else ("systemd", "cron")
    there = [name for name in order if not backend(name).missing()]
    if not there:
        raise BadSetup(
            f"there is neither {' nor '.join(order)} here",
            hint="let something else run `truekeep schedule run --timer`",
        )
    return next((name for name in there if backend(name).is_running()), there[-1])


def ask(*arguments: str, given: bytes = b"") -> Ran:
    """Run a tool of the system; one that is missing has failed."""
    try:
        return run_tool(arguments, seconds=_SECONDS, given=given)
    except ToolMissing as error:
        return Ran(127, b"", f"{error.name} is not installed")


def check_ours(path: Path) -> None:
    """Raise if a file of somebody else has the place of ours."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        if path.is_symlink():
            raise BadInput(f"{path} is a symlink", hint="remove it, or choose another --system") from None
        return
    if path.is_symlink() or OURS not in text:
        raise BadInput(f"{path} was not written by truekeep", hint="move it away, or choose another --system")


def remove_made(folders: tuple[str, ...]) -> None:
    """Remove the folders that install made, if nobody has put anything there since."""
    for folder in folders:
        if os.path.isabs(folder):
            with suppress(OSError):
                os.rmdir(folder)
