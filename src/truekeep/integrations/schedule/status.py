"""The state of the timer: whether it is installed, when it ran, and what is wrong with it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from truekeep.handoffs.sync.runner import LocalMachine
from truekeep.integrations.schedule import cron
from truekeep.integrations.schedule.base import InstalledJob, backend
from truekeep.integrations.schedule.config import ScheduleSettings, job_name, read_settings
from truekeep.integrations.schedule.install import find
from truekeep.integrations.schedule.run import is_at_work
from truekeep.workspace.schedule_log import ScheduleHealth, judge_runs, read_runs

DEFAULT_MINUTES = 30


class ScheduleStatus(NamedTuple):
    """The timer of this machine, and its runs."""

    system: str  # "": not installed
    job: InstalledJob | None
    settings: ScheduleSettings | None
    is_host: bool
    health: ScheduleHealth
    is_running: bool
    next_at: datetime | None

    @property
    def is_installed(self) -> bool:
        return self.job is not None

    @property
    def lacks_cron(self) -> bool:
        return self.system == "cron" and not cron.is_running()

    @property
    def alarms(self) -> list[str]:
        found = []
        if not self.is_installed:
            found.append("no timer is installed; `truekeep schedule install` installs one")
        elif self.health.is_overdue:
            since = f"{self.health.since.astimezone():%Y-%m-%d %H:%M}" if self.health.since else "ever"
            found.append(f"overdue: it did not run since {since}")
        if self.health.last is not None and self.health.last.ending == "FAILED":
            found.append(f"the last run failed: {self.health.last.why}")
        return found


def read_status(workspace: Path | None, side: LocalMachine, now: datetime) -> ScheduleStatus:
    name = job_name(workspace)
    settings = read_settings(name)
    system, job = find(name) or ("", None)
    every = (job.every if job else 0) or (settings.every if settings else DEFAULT_MINUTES)
    installed_at = settings.installed_at if settings and job else ""
    health = judge_runs(read_runs(side.state), every=every, installed_at=installed_at, now=now)
    next_at = backend(system).next_run(name, now) if job else None
    return ScheduleStatus(system, job, settings, side.is_host, health, is_at_work(side.state), next_at)
