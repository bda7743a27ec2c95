"""The log of runs, schedule.log: one line a run, with when, how long, what came of it, and last how it ended.

    2026-11-16T10:30:00Z 1.9s reached=2 brought=3 receipts=1 processed=3 promoted=2 … FILED
    2026-11-16T11:00:00Z 0.7s reached=2 brought=0 receipts=0 processed=0 … NO_UPDATES

No line: it did not run. NO_UPDATES: it ran, and no handoff came or was filed. FILED: some were. QUIET_HOURS: nothing
was filed, because of them. BUSY: the run before is still going on. FAILED: which steps, and why; the others were done.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from truekeep.hidden import clip, printable
from truekeep.model import as_stamp
from truekeep.secrets import withhold
from truekeep.state import append_line

LOG = "schedule.log"
FILED, NO_UPDATES, QUIET_HOURS, BUSY, FAILED = "FILED", "NO_UPDATES", "QUIET_HOURS", "BUSY", "FAILED"
_LINE = re.compile(r"(\S+) (\d+(?:\.\d+)?)s((?: [a-z_]+=\S+)*) (FILED|NO_UPDATES|QUIET_HOURS|BUSY|FAILED)(?: (.*))?\Z")
_TAIL = 65_536
_AHEAD = timedelta(days=1)  # a run from later than that is of a clock that was wrong


class Run(NamedTuple):
    """One run, as its line tells it."""

    at: datetime
    seconds: float
    counts: dict[str, str]
    ending: str
    why: str = ""


def render_run(run: Run) -> str:
    at = as_stamp(run.at)
    counts = "".join(f" {key}={value}" for key, value in run.counts.items())
    why = f" {clip(withhold(printable(run.why)), 1000)}" if run.why else ""
    return f"{at} {run.seconds:.1f}s{counts} {run.ending}{why}"


def parse_run(line: str) -> Run | None:
    match = _LINE.match(line.strip())
    if match is None:
        return None
    try:
        at = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    counts = dict(pair.split("=", 1) for pair in match[3].split())
    return Run(at, float(match[2]), counts, match[4], match[5] or "") if at.tzinfo else None


def append_run(state: Path, run: Run) -> None:
    append_line(str(state / "logs"), LOG, render_run(run))


def read_runs(state: Path) -> list[Run]:
    """The latest runs, oldest first."""
    lines: list[str] = []
    for name in (f"{LOG}.1", LOG):
        try:
            with open(state / "logs" / name, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                lines += file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            continue
    return [run for line in lines if (run := parse_run(line)) is not None]


class Health(NamedTuple):
    """Whether the schedule is kept."""

    last: Run | None  # that did something; a start that found another run at work is none
    busy: int  # starts since then that did
    is_overdue: bool
    since: datetime | None  # of which there is nothing


def judge_runs(runs: list[Run], *, every: int, installed_at: str, now: datetime) -> Health:
    """A schedule is overdue when nothing ran for two of its intervals."""
    done = [run for run in runs if run.ending != BUSY and run.at <= now + _AHEAD]
    last = done[-1] if done else None
    busy = sum(run.ending == BUSY and (last is None or run.at >= last.at) for run in runs)
    since = last.at if last is not None else None
    if installed_at:
        installed = datetime.fromisoformat(installed_at)
        since = max(since, installed) if since is not None else installed
    is_overdue = since is not None and now - since > timedelta(minutes=2 * every)
    return Health(last, busy, is_overdue, since)
