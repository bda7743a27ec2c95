"""truekeep schedule: the work of a host or a producer by a timer of the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import as_stamp, many
from truekeep.core.errors import Busy, TruekeepError
from truekeep.core.machine import own_state
from truekeep.integrations.schedule.config import job_name, read_settings
from truekeep.integrations.schedule.earlier_ingester import (
    HINT,
    OFF,
    describe,
    every_of,
    find_ingester,
    give_back,
    take_over,
)
from truekeep.integrations.schedule.install import install as install_job
from truekeep.integrations.schedule.install import remove as remove_job
from truekeep.integrations.schedule.intervals import parse_every, parse_hours, render_every
from truekeep.integrations.schedule.run import run_job
from truekeep.integrations.schedule.status import DEFAULT_MINUTES, read_status
from truekeep.interfaces.cli.options import (
    Command,
    confirm_plan,
    dry_run_option,
    exit_code_option,
    in_workspace,
    in_workspace_if_any,
    json_flag,
    usage_error,
    wants_json,
    workspace_if_any,
    workspace_option,
    yes_option,
)
from truekeep.interfaces.cli.output import Shown, counted, emit, short_path
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, note, style
from truekeep.workspace.ingest_log import begin_log
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.schedule_log import FAILED, Run, append_run

if TYPE_CHECKING:
    from truekeep.integrations.schedule.base import InstalledJob
    from truekeep.integrations.schedule.config import ScheduleSettings
    from truekeep.integrations.schedule.install import InstallResult
    from truekeep.integrations.schedule.intervals import FilingHours
    from truekeep.integrations.schedule.run import Step
    from truekeep.integrations.schedule.status import ScheduleStatus
    from truekeep.workspace.workspace import Workspace

EXIT_FAILED = 1
EXIT_ALARM = 1


@click.group()
def schedule() -> None:
    """Run truekeep from a system timer.

    A run syncs the routes, files pending handoffs, archives transcripts, updates the index, checks what changed, and
    removes what has expired. On a machine that is not the canonical host: only the routes and the transcripts.

    Example: truekeep schedule install --every 30m --ingest-hours 01:00-05:00
    """


def _path(opened: Workspace | None) -> Path | None:
    """The workspace of a job; None on a machine that has none of its own, whose copy has a new folder each time."""
    return opened.path if opened is not None and opened.source is None else None


def _refuse_quiet_hours(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise usage_error(
            f"--quiet-hours could mean either: `--pause-hours {value}` files nothing then,"
            f" `--ingest-hours {value}` files only then."
        )


def hours_options(ingest_help: str, pause_help: str) -> Callable[[Command], Command]:
    """--ingest-hours and --pause-hours, and the retired --quiet-hours."""

    def add(command: Command) -> Command:
        for option in (
            click.option("--quiet-hours", hidden=True, expose_value=False, callback=_refuse_quiet_hours),
            click.option("--pause-hours", metavar="FROM-TO", help=pause_help),
            click.option("--ingest-hours", metavar="FROM-TO", help=ingest_help),
        ):
            command = option(command)
        return command

    return add


def _parse_hours(ingest: str | None, pause: str | None) -> FilingHours | None:
    if ingest is not None and pause is not None:
        raise usage_error("Use --ingest-hours or --pause-hours, not both.")
    return parse_hours(ingest, is_pause=False) if ingest is not None else parse_hours(pause or "", is_pause=True)


@schedule.command()
@click.option("--every", metavar="TIME", help="Interval, such as 15m or 2h. [default: 30m]")
@hours_options(
    "File handoffs only in these quiet hours, local time, such as 01:00-05:00; or none.",
    "File nothing in these hours, such as 09:00-18:00; or none.",
)
@click.option(
    "--system",
    type=click.Choice(("auto", "systemd", "launchd", "cron")),
    default="auto",
    show_default=True,
    help="Timer system to use.",
)
@in_workspace_if_any
def install(
    opened: Workspace | None, every: str | None, ingest_hours: str | None, pause_hours: str | None, system: str
) -> None:
    """Install the timer with systemd, launchd or cron.

    Running it again changes the existing timer; options not given keep their values. On the canonical host it also
    makes logs/memory-handoff-ingest.log in the workspace, with a line for each run of ingest ([logs] turns that off).

    Example: truekeep schedule install --every 2h --system cron
    """
    path = _path(opened)
    known = read_settings(job_name(path))
    hours, is_given = _parse_hours(ingest_hours, pause_hours), ingest_hours is not None or pause_hours is not None
    placed = install_job(
        path,
        every=parse_every(every) if every else known.every if known else DEFAULT_MINUTES,
        hours=hours if is_given else known.hours if known else None,
        system=system,
        at=as_stamp(datetime.now(UTC)),
    )
    log = begin_log(opened.path, opened.config.logs.ingest) if opened is not None and opened.is_canonical else None
    timer = _timer_json(placed.system, placed.installed, placed.settings)
    others = describe(find_ingester(opened.path)) if opened is not None else []
    notes = (*placed.installed.notes, *others, *([HINT] if others else []))
    data = {**timer, "updated": placed.is_update, "notes": notes, "log": log}
    emit("schedule-install", data, _render_installed(placed, log, notes))


def _timer_json(system: str, job: InstalledJob, settings: ScheduleSettings | None) -> dict[str, Any]:
    hours = settings.hours if settings else None
    return {
        "system": system,
        "where": job.where,
        "every_minutes": job.every,
        "quiet_hours": hours.paused if hours else None,
        "ingest_hours": hours.span if hours and not hours.is_pause else None,
        "pause_hours": hours.span if hours and hours.is_pause else None,
        "workspace": settings.workspace if settings else "",
    }


def _render_installed(placed: InstallResult, log: Path | None, notes: Sequence[str]) -> Iterator[Shown]:
    word = style("updated" if placed.is_update else "installed", fg="green")
    yield f"{word} {_render_timer(placed.system, placed.settings.every, placed.settings)}"
    yield from (f"  {where}" for where in placed.installed.where)
    if log is not None:
        yield f"  runs of ingest: `tail {short_path(log)}`"
    yield from map(note, notes)


def _render_timer(system: str, every: int, settings: ScheduleSettings | None) -> str:
    hours = f", {settings.hours}" if settings and settings.hours else ""
    return f"every {render_every(every) if every else '?'} by {system}{hours}"


@schedule.command()
@exit_code_option("Exit 1 if it is not installed, overdue, or failed last time.")
@in_workspace_if_any
def status(opened: Workspace | None, exit_code: bool) -> int:
    """Show whether the timer is installed, its last run and result.

    Example: truekeep schedule status --exit-code
    """
    now = datetime.now().astimezone()
    found = read_status(_path(opened), side_of(opened), now)
    data = {
        "installed": found.is_installed,
        **(_timer_json(found.system, found.job, found.settings) if found.job else {}),
        "canonical_host": found.is_host,
        "last": found.health.last,
        "busy_since": found.health.busy,
        "running": found.is_running,
        "next_at": found.next_at.astimezone(UTC) if found.next_at else None,
        "overdue": found.health.is_overdue,
        "alarms": found.alarms,
    }
    emit("schedule-status", data, _render_status(found, now))
    return EXIT_ALARM if found.alarms and exit_code else 0


def _render_status(found: ScheduleStatus, now: datetime) -> Iterator[Shown]:
    if found.job is not None:
        yield f"timer      {_render_timer(found.system, found.job.every, found.settings)}"
        yield from (f"           {where}" for where in found.job.where)
        if found.lacks_cron:
            yield style("           no cron daemon is running; start it, or the timer never runs", fg="yellow")
    if found.health.last is None:
        yield "last run   never"
    else:
        last = found.health.last
        ago = max(0, int((now - last.at).total_seconds() // 60))
        yield f"last run   {last.at.astimezone():%Y-%m-%d %H:%M}, {ago} min ago, {last.seconds:.1f} s: {last.ending}"
        counts = " ".join(f"{key}={value}" for key, value in last.counts.items())
        yield from (f"           {line}" for line in (counts, last.why) if line)
    if found.health.busy:
        yield f"since then {found.health.busy} starts were skipped because a run was going on"
    if found.is_running:
        yield "now        a run is going on"
    if found.next_at is not None:
        yield f"next run   {found.next_at:%Y-%m-%d %H:%M}"
    yield from (style("warning: ", fg="red") + alarm for alarm in found.alarms)


@schedule.command()
@in_workspace_if_any
def remove(opened: Workspace | None) -> None:
    """Remove the timer; nothing else changes.

    Example: truekeep schedule remove
    """
    gone = remove_job(_path(opened))
    told = f"removed from {' and '.join(gone)}" if gone else "the timer was already gone"
    emit("schedule-remove", {"removed": gone}, [told])


@schedule.command()
@click.option("--undo", is_flag=True, help="Turn the line on again, and remove the timer that takeover installed.")
@dry_run_option
@yes_option
@in_workspace
def takeover(opened: Workspace, undo: bool, dry_run: bool, yes: bool) -> None:
    """Replace another ingester of this memory.

    Turns the crontab lines that run run-memory-handoff-ingest.sh or ingest-memory-handoffs.py into comments, and
    installs truekeep's timer if there is none. The crontab as it was is kept; the scripts stay, unused. Shows
    the change and asks first.

    Example: truekeep schedule takeover --dry-run
    """
    opened.state.check_host(opened.machine, "take over the crontab")
    found = find_ingester(opened.path)
    lines = found.off if undo else found.lines
    changes = [f"-   {line}" for line in lines]
    changes += [f"+   {line.removeprefix(OFF) if undo else OFF + line}" for line in lines]
    if not wants_json():
        for line in changes:
            echo(line)
    if dry_run:
        emit("schedule-takeover", {"dry_run": True, "lines": lines, "backup": "", "timer": ""}, [])
        return
    if lines:
        confirm_plan("Change these lines of the crontab?", yes=yes)
    at = as_stamp(datetime.now(UTC))
    if undo:
        done = give_back(opened.path, at=at)
        timer = f"removed the timer of {done.timer}" if done.timer else ""
    else:
        done = take_over(opened.path, every=every_of(found) or DEFAULT_MINUTES, at=at)
        timer = f"installed a timer by {done.timer}" if done.timer else "truekeep's timer was already installed"
    word = style("turned on" if undo else "turned off", fg="green")
    told = [f"{word} {many(len(done.lines), 'line')} of the crontab; {timer}".rstrip("; ")]
    told.append(f"  the crontab as it was: {short_path(done.backup)}")
    if not undo:
        told.append("  undo with `truekeep schedule takeover --undo`")
        told += [f"  {name} stays, and is no longer run" for name in found.scripts]
    emit("schedule-takeover", {"dry_run": False, **done._asdict()}, told)


@schedule.command()
@click.option("--now", "at_once", is_flag=True, help="File handoffs at any hour.")
@hours_options(
    "File only in these hours, instead of the installed ones; or none.", "File nothing in these hours; or none."
)
@click.option("--timer", is_flag=True, help="For timers: print only failures, and nothing if another run is active.")
@json_flag
@workspace_option
@click.pass_context
def run(
    ctx: click.Context,
    at_once: bool,
    ingest_hours: str | None,
    pause_hours: str | None,
    timer: bool,
    workspace: str | None,
) -> int:
    """Run now what the timer runs.

    Every step runs even if others fail; exit 1 if one failed. Two runs never overlap: the second says so and exits 5,
    or 0 with --timer. Every run is a line in schedule.log.

    Example: truekeep schedule run --now
    """
    given = _parse_hours(ingest_hours, pause_hours)  # a typo is no run
    is_given = at_once or ingest_hours is not None or pause_hours is not None
    state, started = Path(own_state()), datetime.now().astimezone()
    try:
        opened = workspace_if_any(ctx, workspace)
        side = side_of(opened)
        state = side.state
        hours = None if at_once else given if is_given else _installed_hours(opened)
    except TruekeepError as error:  # a run that could not begin is a line, too
        append_run(state, Run(started, 0.0, {}, FAILED, f"start: {error.message}"))
        raise
    is_quiet = timer or wants_json()
    try:
        on_step = (lambda _: None) if is_quiet else _print_step
        watch = nullcontext if timer else ProgressDisplay
        done = run_job(opened, side, now=lambda: datetime.now().astimezone(), hours=hours, on_step=on_step, watch=watch)
    except Busy:
        if timer:
            return 0
        raise
    failed = done.ending == FAILED
    why = f" {done.why}" if done.why and not failed else ""
    ending = f"{style(done.ending, fg='red' if failed else 'green')}{why} ({done.seconds:.1f} s)"
    emit("schedule-run", done, [] if timer else [ending])
    if timer and failed and not wants_json():
        echo(f"truekeep schedule: {done.why}", err=True)
    return EXIT_FAILED if failed else 0


def _installed_hours(opened: Workspace | None) -> FilingHours | None:
    known = read_settings(job_name(_path(opened)))
    return known.hours if known is not None else None


def _print_step(step: Step) -> None:
    if step.problem:
        echo(f"{style('failed'.ljust(11), fg='red')} {step.name}: {step.problem}")
    else:
        done = counted({key: value for key, value in step.counts.items() if value})
        echo(f"{style(step.name.ljust(11), fg='green')} {done or 'nothing new'}")
