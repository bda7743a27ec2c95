"""Failures that were not followed by a success: steps of the schedule, and bugs that truekeep noted.

`truekeep status`, `truekeep doctor` and the home page show them first.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from truekeep.core.bugs import REPORTED_FOR, Bug, bugs_path, find_bugs
from truekeep.core.dates import many
from truekeep.core.machine import below_home, own_state
from truekeep.workspace.schedule_log import LOG, read_runs, still_failed


class Failure(NamedTuple):
    """One thing that failed, and what to do next."""

    name: str  # schedule, bugs
    what: str
    where: str  # the log that has it
    hint: str


def failed_runs(state: Path, *, now: datetime) -> list[Failure]:
    """Steps of the schedule whose last outcome was a failure."""
    own = Path(own_state())
    logs = dict.fromkeys((state, own))  # a run that could not open the workspace is in the machine's own log
    # Lines of one log keep their order: a clock that was wrong must not put a failure after the success.
    noted = heapq.merge(*([(run, folder) for run in read_runs(folder)] for folder in logs), key=lambda item: item[0].at)
    places: dict[datetime, Path] = {}
    runs = []
    for run, folder in noted:
        runs.append(run)
        places[run.at] = folder
    found = []
    for step, (at, why) in still_failed(runs, now=now).items():
        what = f"{step} failed in the run of {_minute(at)}: {why}"
        hint = "`truekeep schedule run` tries again"
        if "a bug in truekeep" in why:
            hint = f"update truekeep, or report it with {_shown(bugs_path())}; {hint}"
        found.append(Failure("schedule", what, str(places[at] / "logs" / LOG), hint))
    return found


def noted_bugs(*, now: datetime) -> list[Failure]:
    """The bugs that truekeep noted, as one failure."""
    bugs = find_bugs(now)
    if not bugs:
        return []
    last = bugs[-1]
    count = f"{many(len(bugs), 'bug')} noted; the last" if len(bugs) > 1 else "a bug"
    what = f"{count} in {_command(last)} on {_minute(last.at)}: {last.kind}"
    hint = (
        f"update truekeep, or report it with {_shown(bugs_path())} (it has no text of memory), then delete that file;"
        f" this is shown for {REPORTED_FOR.days} days"
    )
    return [Failure("bugs", what, bugs_path(), hint)]


def _command(bug: Bug) -> str:
    if bug.command.startswith("handoff "):
        return bug.command  # and its name: it waits in review
    return f"`truekeep {bug.command}`" if bug.command else "truekeep"


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _shown(path: str) -> str:
    return below_home(path, Path.home())
