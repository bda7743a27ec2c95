"""status: whether memory is fed, and by whom."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.cli.show import json_option, print_json, print_table, workspace_option
from truekeep.hidden import printable

if TYPE_CHECKING:
    from truekeep.closeout import Closeout
    from truekeep.pipeline import Pipeline, Reach
    from truekeep.state import Host
    from truekeep.workspace import Workspace

EXIT_ALARM = 1


@click.group(invoke_without_command=True)
@click.option("--days", type=click.IntRange(1, 3650), default=30, show_default=True, help="How far to look back.")
@json_option
@workspace_option
@click.pass_context
def status(ctx: click.Context, days: int, as_json: bool, workspace: str | None) -> None:
    """Show what waits, and how often sessions leave what they learned.

    A session did real work when it made three edits or one commit; it closed out when it left a handoff or a
    checkpoint. The hooks note both, on each machine for itself; `truekeep connect` installs them.

    Example: truekeep status --days 7
    """
    from truekeep import producer
    from truekeep.cli.handoff import workspace_if_any
    from truekeep.closeout import closeouts, iter_records

    if ctx.invoked_subcommand is not None:
        return
    opened = workspace_if_any(ctx, workspace)
    memory = _memory(opened) if opened is not None else None
    found = closeouts(iter_records(), since=time.time() - days * 86_400)
    waiting = producer.count_waiting(Path.cwd()) if opened is None else None
    if as_json:
        told = {"memory": memory, "waiting_here": waiting, "days": days, "closeout": [_shown(item) for item in found]}
        print_json("status", told)
        return
    if memory is not None:
        for name, value in memory.items():
            click.echo(f"{name.replace('_', ' '):18} {'never' if value is None else value}")
        click.echo()
    elif waiting is not None:
        wait = "handoff waits" if waiting == 1 else "handoffs wait"
        click.echo(f"{waiting} {wait} in this repository's inboxes for the canonical host\n")
    _show_closeouts(found, days)


def _memory(opened: Workspace) -> dict[str, Any]:
    host = opened.state.host()
    return {
        "workspace": str(opened.path),
        "canonical_host": _shown_host(host, opened.machine.id),
        "cards": opened.count_cards(),
        "handoffs_waiting": opened.count_waiting(),
        "drafts_to_review": len(opened.drafts()),
        "last_ingest": opened.last_line("ingest.log").partition(" ")[0] or None,
    }


def _shown_host(host: Host, here: str) -> str:
    more = "" if host.id == here else " (not this machine)" if host.id else ": `truekeep host show`"
    return printable(host.name) + more


def _show_closeouts(found: list[Closeout], days: int) -> None:
    if not found:
        click.echo(
            f"No session was noted in the last {days} days: `truekeep connect` installs the hooks that note them."
        )
        return
    rows = [
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
    print_table(["machine", "harness", "repository", "sessions", "worked", "closed out", "rate"], rows)
    missed = [(item, item.missed[0]) for item in found if item.missed]
    for item, record in missed[:5]:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(record.started_at))
        click.echo(f"\nlook at {item.harness} session {record.id} of {day}: {record.work}, nothing left")
        click.echo(f"  {record.transcript or '(no transcript)'}")


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
@click.option("--exit-code", is_flag=True, help="Exit 1 if something needs a person.")
@json_option
@workspace_option
@click.pass_context
def pipeline(ctx: click.Context, exit_code: bool, as_json: bool, workspace: str | None) -> int:
    """Show whether handoffs still flow: per machine, writer and repository, and what is silent or stuck.

    Example: truekeep status pipeline --exit-code
    """
    from truekeep.cli.show import open_workspace
    from truekeep.closeout import iter_records
    from truekeep.pipeline import now_utc, see_pipeline

    roots = dict.fromkeys(record.root for record in iter_records() if record.root)
    with open_workspace(ctx, workspace) as opened:
        seen = see_pipeline(opened, now=now_utc(), roots=roots)
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
    from truekeep.pipeline import shown_wait

    if seen.sources:
        rows = [
            [
                item.machine,
                item.writer,
                item.repository or "-",
                _minute(item.last_at) or "never",
                _minute(item.last_sync) or "-",
                str(item.filed),
                str(item.held),
                str(item.waiting),
                shown_wait(item.oldest) if item.waiting else "-",
            ]
            for item in seen.sources
        ]
        headers = ["machine", "writer", "repository", "last handoff", "last sync"]
        print_table([*headers, "filed in 7 days", "held", "waiting", "oldest"], rows)
    else:
        click.echo("no handoff was ever received here")
    if seen.routes:
        click.echo()
        rows = [[item.name, item.via, _minute(item.last_ok_at) or "never", _trouble(item)] for item in seen.routes]
        tints = ["red" if item.problem else "yellow" for item in seen.routes]
        print_table(["route", "via", "last reached", "trouble"], rows, tints=tints)
    last = f"{_minute(seen.last_ingest)} UTC" if seen.last_ingest else "never"
    click.echo(f"\nlast ingest {last}; {seen.drafts} to review")
    for alarm in seen.alarms:
        click.echo(click.style(f"{alarm.code}: ", fg="red") + printable(alarm.message))
        click.echo(f"  {printable(alarm.hint)}")
    if not seen.alarms:
        click.echo(click.style("nothing needs a person", fg="green"))


def _trouble(route: Reach) -> str:
    parts = [route.problem, f"{route.waiting} not whole yet" if route.waiting else "", *route.notes[:1]]
    return "; ".join(part for part in parts if part)


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
