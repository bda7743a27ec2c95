"""truekeep host: which machine may write, and changing that on purpose."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_day, local_minute
from truekeep.core.errors import BadInput
from truekeep.core.host_lease import lease_history, refusal
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, print_table, workspace_option
from truekeep.interfaces.cli.terminal import echo, prompt, style

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostLease, HostStatus, Overlap
    from truekeep.core.machine import Machine


@click.group()
def host() -> None:
    """Show or change which machine may write this memory.

    Only one machine writes, the canonical host; every other machine leaves handoffs for it. Each machine has its own
    file in .truekeep/hosts, so a synced workspace shows everywhere which machine it is.

    Example: truekeep host show
    """


@host.command()
@json_option
@workspace_option
@click.pass_context
def show(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Show this machine, the canonical host, and all former ones.

    Example: truekeep host show
    """
    opened = open_workspace(ctx, workspace)
    host_status = opened.host.status()
    if as_json:
        print_json("host-show", _host_status_json(host_status, opened.machine))
        return
    found, here = host_status.canonical, opened.machine
    is_here = found is not None and found.id == here.id
    echo(f"this machine    {here.name} ({here.id[:8]}){'' if is_here else ', not the canonical host'}")
    echo(f"canonical host  {_shown_canonical(host_status)}")
    echo()
    print_table(
        ["machine", "id", "generation", "took over", "from", "released", "last wrote"],
        [_row(item) for item in host_status.leases],
    )
    if host_status.is_split:
        error = refusal(host_status, here, "write")
        _note(error.message, [line for line in error.details["story"] if ".truekeep/" in line], error.hint)
    for overlap in host_status.overlaps():
        _note(_shown_overlap(overlap), [], "what it filed then may be only there: see `truekeep history` on it")


@host.command()
@click.option("--yes", is_flag=True, help="Skip the confirmation prompt.")
@json_option
@workspace_option
@click.pass_context
def take(ctx: click.Context, yes: bool, as_json: bool, workspace: str | None) -> None:
    """Make this machine the canonical host.

    Use it on a new machine when the old one is lost or retired, or to resolve a split. The old host refuses to write
    once the workspace has been synced to it. If it still runs, run `truekeep host release` there first and sync.

    Example: truekeep host take
    """
    opened = open_workspace(ctx, workspace)
    host_status, here = opened.host.status(), opened.machine
    found = host_status.canonical
    is_held = found is not None and found.id == here.id
    if not is_held:
        if not as_json:
            _show_consequences(host_status, here)
        _ask(here, yes=yes, may_ask=not as_json)
    lease = opened.host.take(host_status)
    if as_json:
        print_json("host-take", {"taken": not is_held, "tenure": _lease_json(lease)})
    elif is_held:
        echo(f"{here.name} is the canonical host already, since {local_minute(lease.taken_at)}")
    else:
        done = style("taken", fg="green")
        echo(f"{done}: {here.name} is the canonical host now (generation {lease.generation})")
        echo("next: sync the workspace, so that the others know; then `truekeep ingest`")


@host.command()
@json_option
@workspace_option
@click.pass_context
def release(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Stop being the canonical host.

    No machine writes until one runs `truekeep host take`. To move the host: release here, sync, take there.

    Example: truekeep host release
    """
    opened = open_workspace(ctx, workspace)
    lease = opened.host.release()
    if as_json:
        print_json("host-release", {"tenure": _lease_json(lease)})
        return
    name = lease.name
    echo(f"released: {name} is no longer the canonical host, since {local_minute(lease.released_at)}")
    echo("next: sync the workspace, then `truekeep host take` on the machine that takes over")


def _show_consequences(host_status: HostStatus, here: Machine) -> None:
    """The story first: what would change, and what could be lost from sight."""
    for line in lease_history(host_status):
        echo(f"  {line}")
    others = [item for item in host_status.rivals if item.id != here.id]
    echo()
    echo(f"{here.name} would be the canonical host, with generation {host_status.generation + 1}.")
    for item in others:
        echo(
            f"{item.name} refuses to write as soon as the workspace is synced to it. What it writes until"
            " then, and what has not been synced from it yet, is not in this memory: look there first if it still runs."
        )
    for overlap in host_status.overlaps():
        echo(_shown_overlap(overlap))


def _ask(here: Machine, *, yes: bool, may_ask: bool) -> None:
    if yes:
        return
    if not may_ask or not sys.stdin.isatty():
        raise BadInput(
            "this is not a terminal, so it cannot ask; nothing was changed",
            hint="add --yes to take over without asking",
        )
    if prompt(f"Type {here.name} to go on", prompt_suffix=": ", err=True).strip() != here.name:
        raise BadInput("that is not the name of this machine; nothing was changed", hint="run it again")


def _shown_canonical(host_status: HostStatus) -> str:
    found = host_status.canonical
    if found is None:
        return style("in doubt", fg="red") if host_status.is_split else style("none", fg="yellow")
    since = f", since {local_minute(found.taken_at)}" if found.taken_at else ""
    return f"{found.name} ({found.id[:8]}), generation {found.generation}{since}"


def _row(item: HostLease) -> list[str]:
    times = [local_minute(stamp) or "-" for stamp in (item.taken_at, item.released_at)]
    taken_at, released_at = times
    wrote = local_day(item.wrote_at) or "-"
    return [item.name, item.id[:8], str(item.generation), taken_at, item.taken_from or "-", released_at, wrote]


def _shown_overlap(overlap: Overlap) -> str:
    former, later = overlap.former, overlap.later
    day = local_day(former.wrote_at)
    when = f"last on {day}" if overlap.is_sure else f"perhaps: it wrote on {day}, within a day of that"
    names = former.name, later.name
    return f"{names[0]} wrote after {names[1]} took over on {local_day(later.taken_at)} ({when})"


def _note(message: str, lines: list[str], hint: str) -> None:
    echo()
    echo(style("note: ", fg="yellow") + message)
    for line in (*lines, hint):
        echo(f"  {line}")


def _host_status_json(host_status: HostStatus, here: Machine) -> dict[str, Any]:
    found = host_status.canonical
    state = "split" if host_status.is_split else "held" if found else "released"
    return {
        "machine": {"id": here.id, "name": here.name, "is_canonical": found is not None and found.id == here.id},
        "state": state,
        "canonical": _lease_json(found) if found else None,
        "generation": host_status.generation,
        "tenures": [_lease_json(item) for item in host_status.leases],
        "overlaps": [
            {
                "id": item.former.id,
                "name": item.former.name,
                "taken_by": item.later.name,
                "taken_on": item.later.taken_at[:10],
                "wrote_on": item.former.wrote_at[:10],
                "is_sure": item.is_sure,
            }
            for item in host_status.overlaps()
        ],
        "unreadable": [item._asdict() for item in host_status.unreadable],
        "copies": list(host_status.copies),
    }


def _lease_json(item: HostLease) -> dict[str, Any]:
    return {
        "id": item.id,
        "name": item.name,
        "generation": item.generation,
        "taken_at": item.taken_at or None,
        "taken_from": item.taken_from or None,
        "released_at": item.released_at or None,
        "wrote_at": item.wrote_at or None,
    }
