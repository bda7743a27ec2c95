"""truekeep status: whether memory is healthy, what waits for a person, and whether it is fed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_minute, many
from truekeep.core.errors import BadSetup, TruekeepError
from truekeep.core.harness_paths import find_homes
from truekeep.core.machine import own_state
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.contact_history import read_history
from truekeep.handoffs.sync.routes import read_routes
from truekeep.integrations.harnesses.installed import Keep
from truekeep.interfaces.cli.check_rows import result_rows, rows, terminal_width
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    short_path,
    workspace_option,
)
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.sessions.session_record import closeouts, iter_records
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace import producer
from truekeep.workspace.check import OK, PROBLEM, UNKNOWN, WARNING, CheckContext, CheckResult
from truekeep.workspace.failures import failed_runs, noted_bugs
from truekeep.workspace.health import QUESTIONS
from truekeep.workspace.pipeline import receipt_alarms, see_route, shown_wait
from truekeep.workspace.workspace import Workspace, default_path

if TYPE_CHECKING:
    from truekeep.sessions.session_record import Closeout
    from truekeep.workspace.health import HealthReport
    from truekeep.workspace.pipeline import Pipeline, Reach

EXIT_ALARM = 1
BARS = "▁▂▃▄▅▆▇█"
_VERDICTS = {WARNING: "look", PROBLEM: "act"}  # the words of --json, which scripts know
_ORDER = (PROBLEM, UNKNOWN, WARNING)  # of what needs a person
_PLACES = 3  # drafts, problems and things unseen that are named

_days_option = click.option(
    "--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="Number of days of sessions to include."
)


@click.group(invoke_without_command=True)
@_days_option
@click.option("--exit-code", is_flag=True, help="Exit 1 unless everything is ok.")
@json_option
@workspace_option
@click.pass_context
def status(ctx: click.Context, days: int, exit_code: bool, as_json: bool, workspace: str | None) -> int:
    """Show memory health and what needs attention.

    Failures come first: scheduled runs that failed and have not succeeded since, and crashes of truekeep itself. Then
    the drafts that wait for you, then problems and warnings with their next steps, then everything that is ok: files,
    cards and their growth; the least recently updated card, against the decay budget; size of the index, in lines,
    bytes and tokens; pending handoffs; topics covered by two cards; results of the last claim check, review, pipeline,
    search index, frontmatter, disk and sessions. What this workspace does not have is left out. Claims are not checked
    again. With --exit-code, exit 1 unless everything is ok.

    Example: truekeep status --exit-code
    """
    if ctx.invoked_subcommand is not None:
        return 0
    opened, trouble = _opened(ctx, workspace)
    records = list(iter_records())
    found = closeouts(records, since=time.time() - days * 86_400)
    waiting = producer.count_waiting(Path.cwd()) if opened is None else None
    receipts = list(receipt_alarms()) if opened is None else []
    health = memory = None
    now = datetime.now().astimezone()
    runs = CheckContext(opened.path if opened is not None else None).runs_folder
    failures = [*failed_runs(runs, now=now), *noted_bugs(now=now)]
    if opened is not None:
        roots = list(dict.fromkeys(record.root for record in records if record.root))
        with ProgressDisplay("reading memory") as display:
            health = opened.health.check(session_roots=roots, progress=display.count)
        if trouble:
            health = health._replace(unseen=tuple(dict.fromkeys((trouble, *health.unseen))))
        memory = _memory(opened, health)
    if as_json:
        told = {"memory": memory, "waiting_here": waiting, "days": days, "closeout": [_shown(item) for item in found]}
        told |= {"receipts": [alarm._asdict() for alarm in receipts]}
        told["failures"] = [{key: printable(value) for key, value in item._asdict().items()} for item in failures]
        print_json("status", {**told, "health": _shown_health(health) if health is not None else None})
    elif health is not None and memory is not None:
        _show(render(health, memory, _sessions(found, days), width=terminal_width(), has_bars=_has_bars()))
    else:
        for failure in failures:
            _show(rows(PROBLEM, failure.name, failure.what, f"-> {failure.hint}", width=terminal_width()))
        _show_no_memory()
        echo()
        if waiting is not None:
            wait = "handoff waits" if waiting == 1 else "handoffs wait"
            echo(f"{waiting} {wait} in this repository's inboxes for the canonical host")
            echo()
        for alarm in receipts:
            echo(f"{style(f'{alarm.code}: ', fg='red')}{alarm.message}")
            echo(f"  {alarm.hint}")
            echo()
        _show_closeouts(found, days)
    is_bad = health.severity != OK if health is not None else bool(receipts or failures)
    return EXIT_ALARM if exit_code and is_bad else 0


def _opened(ctx: click.Context, workspace: str | None) -> tuple[Workspace | None, str]:
    """The workspace, and its problem if any: with an unclear host, its memory can still be read."""
    try:
        return workspace_if_any(ctx, workspace), ""
    except BadSetup as error:
        chosen = workspace or (ctx.obj or {}).get("workspace")
        path = Path(os.path.abspath(Path(chosen).expanduser() if chosen else default_path()))
        if error.__cause__ is None or not (path / STATE).is_dir():
            raise  # there is none, or it is a newer truekeep's
        opened = Workspace(path)
        ctx.call_on_close(opened.close)
        return opened, f"{error.message} ({error.hint})"


def _show_no_memory() -> None:
    """What this machine does instead: it sends handoffs to the canonical host, or nothing yet."""
    state, path = Path(own_state()), default_path()
    routes = []
    with suppress(BadSetup):  # of sync.toml: doctor reports it
        routes = [see_route(route, read_history(state, name)) for name, route in read_routes(state).items()]
    if routes:
        echo("This machine sends its handoffs to the canonical host:")
        _show_routes(routes)
        echo("`truekeep sync status` shows the last runs")
    elif path.is_dir():
        _show(
            [f"{short_path(path)} is not a truekeep workspace yet; run `truekeep init` to use it (no file is changed)"]
        )
    else:
        echo("No memory here yet. Run `truekeep init`, or `truekeep connect machine` if another machine keeps it.")


def _memory(opened: Workspace, health: HealthReport) -> dict[str, Any]:
    figures = {result.name: result.figures for result in health.results}
    return {
        "workspace": str(opened.path),
        "canonical_host": _shown_host(opened),
        "cards": figures["cards"].get("cards"),
        "handoffs_waiting": figures["handoffs"].get("waiting"),
        "drafts_to_review": figures["review"].get("drafts"),
        "last_ingest": opened.state.last_line("ingest.log").partition(" ")[0] or None,
    }


def _shown_host(opened: Workspace) -> str:
    try:
        host = opened.state.host()
    except (TruekeepError, OSError):
        return "in doubt: `truekeep doctor`"
    more = "" if host.id == opened.machine.id else " (not this machine)" if host.id else ": `truekeep host show`"
    return host.name + more


# --- The screen -----------------------------------------------------------------------------------------------------


def render(
    health: HealthReport, memory: dict[str, Any], sessions: str, *, width: int | None = None, has_bars: bool = False
) -> Iterator[str]:
    """The lines of the screen: what needs a person first, in colour."""
    review = health.get("review")
    drafts = review.figures.get("drafts", 0)
    above = (*health.failures, *([review] if drafts else ()))
    shown = [_row_of(result) for result in health.results if not result.is_absent and result not in above]
    needed = [result for severity in _ORDER for result in shown if result.severity == severity]
    for result in health.failures:
        yield from result_rows(replace(result, where="", target=""), width=width)
    yield printable(f"{memory['workspace']}, canonical host {memory['canonical_host']}")
    yield ""
    if drafts:
        more = f"{drafts - _PLACES} more; " if drafts > _PLACES else ""
        step = f"-> {more}`truekeep review walk` shows them one by one"
        yield from rows(
            review.severity, review.name, review.said, *review.figures["first"][:_PLACES], step, width=width
        )
        yield ""
    for result in needed:
        yield from result_rows(result, *_places(result), width=width)
    for why in health.unseen[:_PLACES]:
        yield from rows(UNKNOWN, "not seen", why, width=width)
    if len(health.unseen) > _PLACES:
        yield from rows(UNKNOWN, "not seen", f"{len(health.unseen) - _PLACES} more: --json has all of them")
    if needed or health.unseen:
        yield ""
    for result in shown:
        if result.severity == OK:
            yield from result_rows(result, width=width)
    if not health.get("cards").is_absent:
        for name, said in _plots(health, has_bars=has_bars):
            yield from rows("", name, said, width=width)
    yield from rows("", "sessions", sessions, width=width)
    yield ""
    yield health.summary + (": `truekeep review walk`" if drafts else "")


def _row_of(result: CheckResult) -> CheckResult:
    """A result as the screen has it: only measures show their targets, and reasons for the unknown come below."""
    if result.severity == UNKNOWN:
        return CheckResult(UNKNOWN, "could not be checked", name=result.name)
    return result if result.name in QUESTIONS else replace(result, target="")


def _places(result: CheckResult) -> list[str]:
    """The first places where frontmatter is wrong."""
    first = result.figures.get("first", ())[:_PLACES] if result.name == "lines" else ()
    return [f"{item['path']}:{item['line']} {item['code']}: {item['what']}" for item in first]


def _plots(health: HealthReport, *, has_bars: bool) -> Iterator[tuple[str, str]]:
    weeks, counts = health.growth, [count for _, count in health.ages]
    most = max(weeks)
    if has_bars:
        yield "growth", f"{bars(weeks)}  cards a week, {len(weeks)} weeks, at most {most}"
    else:
        yield "growth", f"{' '.join(map(str, weeks))}  cards a week, this one last"
    told = ", ".join(f"{name} {count}" for name, count in health.ages if count) or "no cards"
    yield "last touched", f"{bars(counts)}  {told}" if has_bars and any(counts) else told


def bars(counts: Sequence[int]) -> str:
    """Numbers as bars: the largest is full, what is not nothing can be seen."""
    most = max(counts, default=0)
    return "".join(BARS[-(-count * (len(BARS) - 1) // most) if most else 0] for count in counts)


def _show(lines: Iterable[str]) -> None:
    """Print lines in the letters that this terminal or file has."""
    encoding = sys.stdout.encoding or "ascii"
    for line in lines:
        echo(line.encode(encoding, "backslashreplace").decode(encoding))


def _has_bars() -> bool:
    """True if the output is a terminal whose encoding has block characters."""
    with suppress(UnicodeEncodeError):
        BARS.encode(sys.stdout.encoding or "ascii")
        return sys.stdout.isatty()
    return False


def _sessions(found: list[Closeout], days: int) -> str:
    if not found:
        return f"none recorded in {days} days" + ("" if _is_connected() else "; `truekeep connect` installs the hooks")
    sessions, worked = sum(item.sessions for item in found), sum(item.worked for item in found)
    closed = sum(item.closed for item in found)
    rate = f" ({closed / worked:.0%}): `truekeep status closeout`" if worked else ""
    return f"{sessions} in {days} days; {worked} did real work, {closed} of them left what they learned{rate}"


def _is_connected() -> bool:
    with suppress(TruekeepError, OSError):
        return bool(Keep(find_homes().keep).read().owners)
    return False


def _shown_health(health: HealthReport) -> dict[str, Any]:
    shown = {result.name: _shown_result(result) for result in health.results}
    return {
        "verdict": _VERDICTS.get(health.severity, health.severity),
        "questions": {name: shown.pop(name) for name in QUESTIONS},
        "more": shown,
        "growth": list(health.growth),
        "ages": dict(health.ages),
        "unseen": list(health.unseen),
    }


def _shown_result(result: CheckResult) -> dict[str, Any]:
    return {
        "verdict": _VERDICTS.get(result.severity, result.severity),
        "said": printable(result.said),
        "target": result.target,
        "hint": printable(result.hint),
        "figures": dict(result.figures),
    }


# --- Closeout -------------------------------------------------------------------------------------------------------


@status.command()
@_days_option
@json_option
def closeout(days: int, as_json: bool) -> None:
    """Show how often sessions save what they learned.

    Per machine, harness and repository, with the sessions that left nothing. A session closed out if it left a handoff
    or a checkpoint; it did real work if it closed out, or made three edits or one commit. The hooks record both,
    separately on each machine; `truekeep connect` installs them.

    Example: truekeep status closeout --days 7
    """
    found = closeouts(iter_records(), since=time.time() - days * 86_400)
    if as_json:
        print_json("status-closeout", {"days": days, "closeout": [_shown(item) for item in found]})
    else:
        _show_closeouts(found, days)


def _show_closeouts(found: list[Closeout], days: int) -> None:
    if not found:
        hint = "" if _is_connected() else " Run `truekeep connect` to install the hooks."
        echo(f"No sessions recorded in the last {days} days.{hint}")
        return
    table = [
        [
            item.machine,
            item.harness,
            item.repository or "-",
            str(item.sessions),
            str(item.worked),
            str(item.closed),
            "-" if item.rate is None else f"{item.rate:.0%}",
        ]
        for item in found
    ]
    print_table(["machine", "harness", "repository", "sessions", "worked", "closed out", "rate"], table)
    missed = [(item, item.missed[0]) for item in found if item.missed]
    for item, record in missed[:5]:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.started_at))
        echo()
        echo(f"look at {item.harness} session {record.id} of {day}: {record.work}, nothing left")
        echo(f"  {record.transcript or '(no transcript)'}")


def _shown(item: Closeout) -> dict[str, Any]:
    return {
        "machine": item.machine,
        "harness": item.harness,
        "repository": item.repository,
        "sessions": item.sessions,
        "worked": item.worked,
        "closed": item.closed,
        "rate": item.rate,
        "missed": [
            {"id": record.id, "started_at": _moment(record.started_at), "transcript": record.transcript}
            for record in item.missed
        ],
    }


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


@status.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 if there is a problem.")
@json_option
@workspace_option
@click.pass_context
def problems(ctx: click.Context, exit_code: bool, as_json: bool, workspace: str | None) -> int:
    """List problems in memory files, with place and reason.

    Frontmatter that is missing, broken or impossible (a future date, updated before created), text that is not UTF-8,
    importance tags that cannot be parsed, what looks like a credential, orders to agents that a stranger may have
    planted, and unreadable files and folders. Credentials and planted orders are looked for in every document that
    search reads.

    Example: truekeep status problems --json
    """
    with open_workspace(ctx, workspace) as opened, ProgressDisplay("reading memory") as display:
        found, unread = opened.maintenance.problems(display.count)
    if as_json:
        shown = [{**item._asdict(), "what": withhold(item.what)} for item in found]
        print_json("status-problems", {"problems": shown, "unread": list(unread)})
    else:
        for item in found:
            place = style(f"{item.path}:{item.line}", fg="yellow")
            echo(f"{place} {item.code}: {withhold(item.what)}")
        for why in unread:
            echo(f"{style('not seen', fg='yellow')} {why}")
        files = len({item.path for item in found})
        echo(f"{many(len(found), 'problem')} in {many(files, 'file')}" if found else "nothing wrong")
    return EXIT_ALARM if exit_code and (found or unread) else 0


@status.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 if something needs attention.")
@json_option
@workspace_option
@click.pass_context
def pipeline(ctx: click.Context, exit_code: bool, as_json: bool, workspace: str | None) -> int:
    """Show whether handoffs still arrive, and what is silent or stuck.

    Per machine, writer and repository.

    Example: truekeep status pipeline --exit-code
    """
    roots = dict.fromkeys(record.root for record in iter_records() if record.root)
    with open_workspace(ctx, workspace) as opened:
        seen = opened.health.pipeline(roots)
    if as_json:
        told = {
            "last_ingest": seen.last_ingest or None,
            "drafts": seen.drafts,
            "oldest_draft": seen.oldest_draft or None,
            "sources": [item._asdict() for item in seen.sources],
            "routes": [item._asdict() for item in seen.routes],
            "unscanned": list(seen.unscanned),
            "alarms": [item._asdict() for item in seen.alarms],
        }
        print_json("status-pipeline", told)
    else:
        _show_pipeline(seen)
    return EXIT_ALARM if seen.alarms and exit_code else 0


def _show_pipeline(seen: Pipeline) -> None:
    if seen.sources:
        table = [
            [
                item.machine,
                item.writer,
                item.repository or "-",
                local_minute(item.last_at) or "never",
                local_minute(item.last_sync) or "-",
                str(item.filed),
                str(item.held),
                str(item.waiting),
                shown_wait(item.oldest) if item.waiting else "-",
            ]
            for item in seen.sources
        ]
        headers = ["machine", "writer", "repository", "last handoff", "last sync"]
        print_table([*headers, "filed in 7 days", "held", "waiting", "oldest"], table)
    else:
        echo("no handoffs received here yet")
    if seen.routes:
        echo()
        _show_routes(seen.routes)
    last = local_minute(seen.last_ingest) if seen.last_ingest else "never"
    echo()
    echo(f"last ingest {last}; {seen.drafts} to review")
    for alarm in seen.alarms:
        echo(style(f"{alarm.code}: ", fg="red") + alarm.message)
        echo(f"  {alarm.hint}")
    if not seen.alarms:
        echo(style("no alarm", fg="green"))


def _show_routes(routes: Sequence[Reach]) -> None:
    table = [[item.name, item.via, local_minute(item.last_ok_at) or "never", _trouble(item)] for item in routes]
    tints = ["red" if item.problem else "yellow" for item in routes]
    print_table(["route", "via", "last reached", "trouble"], table, tints=tints)


def _trouble(route: Reach) -> str:
    parts = [route.problem, f"{route.waiting} still being written" if route.waiting else "", *route.notes[:1]]
    return "; ".join(part for part in parts if part)
