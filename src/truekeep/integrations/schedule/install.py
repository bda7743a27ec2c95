"""Installs, finds and removes the schedule of a workspace, with one back end."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from truekeep.core.errors import BadInput, BadSetup, TruekeepError
from truekeep.integrations.schedule.base import SYSTEMS, InstalledJob, backend, choose
from truekeep.integrations.schedule.config import (
    ScheduleSettings,
    job_name,
    names,
    plan_job,
    read_settings,
    write_settings,
)
from truekeep.integrations.schedule.intervals import FilingHours


class InstallResult(NamedTuple):
    """The outcome of an install."""

    name: str
    system: str
    settings: ScheduleSettings
    installed: InstalledJob
    is_update: bool


def install(workspace: Path | None, *, every: int, hours: FilingHours | None, system: str, at: str) -> InstallResult:
    """Install the schedule, or update it. Removes it from other back ends, so that nothing runs twice."""
    job = plan_job(workspace, every)
    known = read_settings(job.name)
    there = find(job.name)
    chosen = choose(there[0] if system == "auto" and there is not None else system)
    made = known.made if known is not None and known.system == chosen else ()
    installed = backend(chosen).install(job)
    settings = ScheduleSettings(
        every=installed.every,
        system=chosen,
        hours=hours,
        workspace=str(workspace or ""),
        installed_at=at,
        made=tuple(dict.fromkeys((*installed.made, *made))),
    )
    write_settings(job.name, settings)
    for other in SYSTEMS:
        if other != chosen and not backend(other).missing():
            backend(other).remove(job.name, _to_clear(job.name, known, other))
    return InstallResult(job.name, chosen, settings, installed, there is not None)


def find(name: str) -> tuple[str, InstalledJob] | None:
    """Return the back end that has the job of this name, and the job."""
    for system in SYSTEMS:
        try:
            found = backend(system).find(name)
        except TruekeepError:
            continue  # a crontab that this user may not read has no job of ours
        if found is not None:
            return system, found
    return None


def remove(workspace: Path | None) -> tuple[str, ...]:
    """Remove the job from every back end. Returns the back ends that had it."""
    name = job_name(workspace)
    try:
        known = read_settings(name)
    except BadSetup:
        known = None
    gone, problems = [], []
    for system in SYSTEMS:
        try:
            if backend(system).remove(name, _to_clear(name, known, system)):
                gone.append(system)
        except TruekeepError as error:
            if known is not None and known.system == system:
                problems.append(error)
    if problems:
        raise problems[0]
    if known is not None:
        write_settings(name, None)
    elif not gone:
        raise BadInput("no schedule is installed here", hint="`truekeep schedule install` installs one")
    return tuple(gone)


def _to_clear(name: str, known: ScheduleSettings | None, system: str) -> tuple[str, ...]:
    """Return the folders to remove with a job: those install made, unless another job still uses them."""
    if known is None or known.system != system:
        return ()
    for other in names():
        heir = read_settings(other) if other != name else None
        if heir is not None and heir.system == system:
            write_settings(other, heir._replace(made=tuple(dict.fromkeys((*heir.made, *known.made)))))
            return ()
    return known.made
