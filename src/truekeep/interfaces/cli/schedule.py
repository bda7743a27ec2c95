"""truekeep schedule: the work of a host or a producer by a timer of the system."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.errors import Busy, TruekeepError
from truekeep.core.machine import own_state
from truekeep.core.model import as_stamp
from truekeep.integrations.schedule import cron
from truekeep.integrations.schedule.base import backend
from truekeep.integrations.schedule.config import job_name, read_settings
from truekeep.integrations.schedule.install import find
from truekeep.integrations.schedule.install import install as install_job
from truekeep.integrations.schedule.install import remove as remove_job
from truekeep.integrations.schedule.intervals import parse_every, parse_quiet_hours, render_every
from truekeep.integrations.schedule.run import is_at_work, run_job
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import json_option, print_json, workspace_option
from truekeep.interfaces.cli.terminal import echo, print_note, style
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.schedule_log import FAILED, Run, append_run, judge_runs, read_runs

if TYPE_CHECKING:
    from truekeep.integrations.schedule.base import InstalledJob
    from truekeep.integrations.schedule.config import ScheduleSettings
    from truekeep.integrations.schedule.intervals import QuietHours
    from truekeep.integrations.schedule.run import Step
    from truekeep.workspace.schedule_log import ScheduleHealth
    from truekeep.workspace.workspace import Workspace

EXIT_FAILED = 1
EXIT_ALARM = 1
_EVERY = 30  # minutes


@click.group()
def schedule() -> None:
    """Run truekeep from a system timer.

    A run syncs the routes, files pending handoffs, archives transcripts, updates the index, checks what changed, and
    removes what has expired. On a machine that is not the canonical host: only the routes and the transcripts.

    Example: truekeep schedule install --every 30m --quiet-hours 09:00-18:00
    """


@schedule.command()
@click.option("--every", metavar="TIME", help="Interval, such as 15m or 2h. [default: 30m]")
@click.option(
    "--quiet-hours",
    metavar="FROM-TO",
    help="Hours in which nothing is filed, local time, such as 09:00-18:00; or none.",
)
@click.option(
    "--system",
    type=click.Choice(("auto", "systemd", "launchd", "cron")),
    default="auto",
    show_default=True,
    help="Timer system to use.",
)
@json_option
@workspace_option
@click.pass_context
def install(
    ctx: click.Context, every: str | None, quiet_hours: str | None, system: str, as_json: bool, workspace: str | None
) -> None:
    """Install the timer with systemd, launchd or cron.

    Running it again changes the existing timer; options not given keep their values.

    Example: truekeep schedule install --every 2h --system cron
    """
    path = _path(_opened(ctx, workspace))
    known = read_settings(job_name(path))
    placed = install_job(
        path,
        every=parse_every(every) if every else known.every if known else _EVERY,
        quiet_hours=parse_quiet_hours(quiet_hours) if quiet_hours else known.quiet_hours if known else None,
        system=system,
        at=as_stamp(datetime.now(UTC)),
    )
    if as_json:
        told = _shown(placed.system, placed.installed, placed.settings)
        print_json("schedule-install", {**told, "updated": placed.is_update, "notes": list(placed.installed.notes)})
        return
    word = style("updated" if placed.is_update else "installed", fg="green")
    quiet = f", nothing filed {placed.settings.quiet_hours}" if placed.settings.quiet_hours else ""
    echo(f"{word} every {render_every(placed.settings.every)} by {placed.system}{quiet}")
    for where in placed.installed.where:
        echo(f"  {where}")
    for note in placed.installed.notes:
        print_note(note)


@schedule.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 if it is not installed, overdue, or failed last time.")
@json_option
@workspace_option
@click.pass_context
def status(ctx: click.Context, exit_code: bool, as_json: bool, workspace: str | None) -> int:
    """Show whether the timer is installed, its last run and result.

    Example: truekeep schedule status --exit-code
    """
    opened = _opened(ctx, workspace)
    side, name, now = side_of(opened), job_name(_path(opened)), datetime.now().astimezone()
    known, found = read_settings(name), find(name)
    every = (found[1].every if found else 0) or (known.every if known else _EVERY)
    installed_at = known.installed_at if known and found else ""
    health = judge_runs(read_runs(side.state), every=every, installed_at=installed_at, now=now)
    next_at = backend(found[0]).next_run(name, now) if found else None
    alarms = list(_alarms(found is not None, health))
    if as_json:
        print_json(
            "schedule-status",
            {
                "installed": found is not None,
                **(_shown(found[0], found[1], known) if found else {}),
                "canonical_host": side.is_host,
                "last": _shown_run(health.last),
                "busy_since": health.busy,
                "running": is_at_work(side.state),
                "next_at": next_at.astimezone(UTC).isoformat() if next_at else None,
                "overdue": health.is_overdue,
                "alarms": alarms,
            },
        )
    else:
        _show_status(found, known, health, next_at, now, is_at_work(side.state))
        for alarm in alarms:
            echo(style("look: ", fg="red") + alarm)
    return EXIT_ALARM if alarms and exit_code else 0


def _alarms(is_installed: bool, health: ScheduleHealth) -> list[str]:
    found = []
    if not is_installed:
        found.append("no timer is installed; `truekeep schedule install` installs one")
    elif health.is_overdue:
        since = f"{health.since.astimezone():%Y-%m-%d %H:%M}" if health.since else "ever"
        found.append(f"overdue: it did not run since {since}")
    if health.last is not None and health.last.ending == "FAILED":
        found.append(f"the last run failed: {health.last.why}")
    return found


def _show_status(
    found: tuple[str, InstalledJob] | None,
    known: ScheduleSettings | None,
    health: ScheduleHealth,
    next_at: datetime | None,
    now: datetime,
    is_running: bool,
) -> None:
    if found is not None:
        every = render_every(found[1].every) if found[1].every else "?"
        quiet = f", nothing filed {known.quiet_hours}" if known and known.quiet_hours else ""
        echo(f"timer      every {every} by {found[0]}{quiet}")
        for where in found[1].where:
            echo(f"           {where}")
        if found[0] == "cron" and not cron.is_running():
            echo(style("           no cron daemon is running; start it, or the timer never runs", fg="yellow"))
    if health.last is None:
        echo("last run   never")
    else:
        last = health.last
        ago = max(0, int((now - last.at).total_seconds() // 60))
        told = " ".join(f"{key}={value}" for key, value in last.counts.items())
        echo(f"last run   {last.at.astimezone():%Y-%m-%d %H:%M}, {ago} min ago, {last.seconds:.1f} s: {last.ending}")
        for line in (told, last.why):
            if line:
                echo(f"           {line}")
    if health.busy:
        echo(f"since then {health.busy} starts were skipped because a run was going on")
    if is_running:
        echo("now        a run is going on")
    if next_at is not None:
        echo(f"next run   {next_at:%Y-%m-%d %H:%M}")


@schedule.command()
@json_option
@workspace_option
@click.pass_context
def remove(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Remove the timer; nothing else changes.

    Example: truekeep schedule remove
    """
    gone = remove_job(_path(_opened(ctx, workspace)))
    if as_json:
        print_json("schedule-remove", {"removed": list(gone)})
    else:
        echo(f"removed from {' and '.join(gone)}" if gone else "the timer was already gone")


@schedule.command()
@click.option("--now", "at_once", is_flag=True, help="File handoffs even in quiet hours.")
@click.option("--quiet-hours", metavar="FROM-TO", help="Override the installed quiet hours; or none.")
@click.option("--timer", is_flag=True, help="For timers: print only failures, and nothing if another run is active.")
@json_option
@workspace_option
@click.pass_context
def run(
    ctx: click.Context, at_once: bool, quiet_hours: str | None, timer: bool, as_json: bool, workspace: str | None
) -> int:
    """Run now what the timer runs.

    Every step runs even if others fail; exit 1 if one failed. Two runs never overlap: the second says so and exits 5,
    or 0 with --timer. Every run is a line in schedule.log.

    Example: truekeep schedule run --now
    """
    given = parse_quiet_hours(quiet_hours) if quiet_hours is not None else None  # a typo is no run
    started = datetime.now().astimezone()
    try:
        opened = _opened(ctx, workspace)
        side = side_of(opened)
    except TruekeepError as error:
        _log_failure(started, error)
        raise
    try:
        hours = None if at_once else given if quiet_hours is not None else _hours(opened)
    except TruekeepError as error:
        _log_failure(started, error, side.state)
        raise
    is_told = not timer and not as_json
    try:
        done = run_job(
            opened,
            side,
            now=lambda: datetime.now().astimezone(),
            quiet_hours=hours,
            on_step=_tell if is_told else lambda _: None,
        )
    except Busy:
        if timer:
            return 0
        raise
    failed = done.ending == "FAILED"
    if as_json:
        print_json("schedule-run", _shown_run(done) or {})
    elif is_told:
        why = f" {done.why}" if done.why and not failed else ""
        echo(f"{style(done.ending, fg='red' if failed else 'green')}{why} ({done.seconds:.1f} s)")
    elif failed:
        echo(f"truekeep schedule: {done.why}", err=True)
    return EXIT_FAILED if failed else 0


def _hours(opened: Workspace | None) -> QuietHours | None:
    known = read_settings(job_name(_path(opened)))
    return known.quiet_hours if known is not None else None


def _log_failure(at: datetime, error: TruekeepError, state: Path | None = None) -> None:
    """A run that could not begin is a line, too."""
    append_run(state or Path(own_state()), Run(at, 0.0, {}, FAILED, f"start: {error.message}"))


def _tell(step: Step) -> None:
    told = ", ".join(f"{value} {key}" for key, value in step.counts.items() if value)
    if step.problem:
        echo(f"{style('failed'.ljust(11), fg='red')} {step.name}: {step.problem}")
    else:
        echo(f"{style(step.name.ljust(11), fg='green')} {told or 'nothing new'}")


def _opened(ctx: click.Context, workspace: str | None) -> Workspace | None:
    return workspace_if_any(ctx, workspace)


def _path(opened: Workspace | None) -> Path | None:
    return opened.path if opened is not None else None


def _shown(system: str, installed: InstalledJob, settings: ScheduleSettings | None) -> dict[str, Any]:
    return {
        "system": system,
        "where": list(installed.where),
        "every_minutes": installed.every,
        "quiet_hours": str(settings.quiet_hours) if settings and settings.quiet_hours else None,
        "workspace": settings.workspace if settings else "",
    }


def _shown_run(run: Run | None) -> dict[str, Any] | None:
    if run is None:
        return None
    counts = {key: int(value) if value.isdecimal() else value for key, value in run.counts.items()}
    at = as_stamp(run.at)
    return {"at": at, "seconds": run.seconds, "counts": counts, "ending": run.ending, "why": run.why}
