"""The log of runs, schedule.log: one line a run, with when, how long, what came of it, and last how it ended.

    2026-11-16T10:30:00Z 1.9s reached=2 brought=3 receipts=1 processed=3 promoted=2 … FILED
    2026-11-16T11:00:00Z 0.7s reached=2 brought=0 receipts=0 processed=0 … NO_UPDATES

No line: it did not run. NO_UPDATES: it ran, and no handoff came or was filed. FILED: some were. CHANGED: none was, but
upkeep rewrote memory or proposed something. PAUSED: nothing was filed at this hour. BUSY: the run before is
still going on. FAILED: which steps, and why; the others were done.
"""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.state_dir import append_line
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable

LOG = "schedule.log"
FILED, CHANGED, NO_UPDATES = "FILED", "CHANGED", "NO_UPDATES"
PAUSED, BUSY, FAILED = "PAUSED", "BUSY", "FAILED"
_EARLIER = {"QUIET_HOURS": PAUSED}  # endings as earlier versions wrote them
_LINE = re.compile(
    r"(\S+) (\d+(?:\.\d+)?)s((?: [a-z_]+=\S+)*) (FILED|CHANGED|NO_UPDATES|PAUSED|QUIET_HOURS|BUSY|FAILED)(?: (.*))?\Z"
)
MAX_LOG_BYTES = 65_536
_STEPS = {
    "sync": "",
    "ingest": "processed",
    "transcripts": "turns",
    "index": "indexed",
    "verify": "checked",
    "decay": "expired",
    "tidy": "proposed",
    "reconcile": "reconciled",
}
"""The steps, and the count in the line of a run that did them."""
_START = "start"  # a run that could not begin
_FAILED_STEP = re.compile(rf"(?:\A|; )({'|'.join((_START, *_STEPS))}): ")
MAX_CLOCK_ERROR = timedelta(days=1)  # a later run is from a wrong clock


class Run(NamedTuple):
    """One run, parsed from its line."""

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
    ending = _EARLIER.get(match[4], match[4])
    return Run(at, float(match[2]), counts, ending, match[5] or "") if at.tzinfo else None


def append_run(state: Path, run: Run) -> None:
    append_line(str(state / "logs"), LOG, render_run(run))


def read_runs(state: Path) -> list[Run]:
    """The latest runs, oldest first."""
    lines: list[str] = []
    for name in (f"{LOG}.1", LOG):
        try:
            with open(state / "logs" / name, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG_BYTES))
                lines += file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            continue
    return [run for line in lines if (run := parse_run(line)) is not None]


class ScheduleHealth(NamedTuple):
    """The state of the schedule."""

    last: Run | None  # without starts that found another run at work
    busy: int  # starts since then that found another run at work
    is_overdue: bool
    since: datetime | None  # when the last run was, or the installation


def judge_runs(runs: list[Run], *, every: int, installed_at: str, now: datetime) -> ScheduleHealth:
    """A schedule is overdue when nothing ran for two of its intervals."""
    done = [run for run in runs if run.ending != BUSY and run.at <= now + MAX_CLOCK_ERROR]
    last = done[-1] if done else None
    busy = sum(run.ending == BUSY and (last is None or run.at >= last.at) for run in runs)
    since = last.at if last is not None else None
    if installed_at:
        installed = datetime.fromisoformat(installed_at)
        since = max(since, installed) if since is not None else installed
    is_overdue = since is not None and now - since > timedelta(minutes=2 * every)
    return ScheduleHealth(last, busy, is_overdue, since)


def failed_steps(run: Run) -> dict[str, str]:
    """The steps that failed in a run, and why."""
    if run.ending != FAILED:
        return {}
    first, *rest = _FAILED_STEP.split(run.why)
    found = dict(zip(rest[::2], rest[1::2], strict=True))
    return found or {_START: first}


def still_failed(runs: list[Run], *, now: datetime) -> dict[str, tuple[datetime, str]]:
    """The steps whose last outcome was a failure, with when and why.

    A step that was skipped, as in pause hours, keeps its state; one that this machine no longer runs is forgotten.
    """
    found: dict[str, tuple[datetime, str]] = {}
    for run in runs:
        if run.ending == BUSY or run.at > now + MAX_CLOCK_ERROR:
            continue
        failed = failed_steps(run)
        if _START not in failed:
            is_filing = "index" in failed or _STEPS["index"] in run.counts
            found = {
                step: known
                for step, known in found.items()
                if step in failed or (is_filing and (count := _STEPS.get(step)) and count not in run.counts)
            }
        found |= {step: (run.at, why) for step, why in failed.items()}
    return found
