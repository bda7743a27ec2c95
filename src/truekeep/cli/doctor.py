"""truekeep doctor: what is broken in the set-up, and mending it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.cli.show import json_option, print_json, workspace_option
from truekeep.hidden import printable

if TYPE_CHECKING:
    from truekeep.doctor.case import Check

EXIT_BROKEN = 1
_TINTS = {"mended": "green", "broken": "red"}


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is safe to mend.")
@json_option
@workspace_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, as_json: bool, workspace: str | None) -> int:
    """Find what is broken in the set-up, and mend it.

    Looks at this machine, permissions, host, configuration, ledger, derived databases, what killed runs left, locks,
    search index, hooks and schedule, and says of each what is wrong, where, and what to do. Looking changes nothing.
    With --fix, what is derived is rebuilt, what a killed run left is finished or cleared, and what others could read
    is closed; a configuration is never rewritten, nor memory. Exit 1 when something broken is left.

    Example: truekeep doctor --fix
    """
    from truekeep.doctor.case import BROKEN, Case
    from truekeep.doctor.examine import examine

    case = Case(_path(ctx, workspace))
    found = []
    for check in examine(case, fix=fix):
        found.append(check)
        if not as_json:
            _show(check)
    broken = sum(check.state == BROKEN for check in found)
    if as_json:
        shown = [{key: printable(value) for key, value in check._asdict().items()} for check in found]
        told = {"ok": not broken, "fix": fix, "workspace": str(case.path) if case.path else None, "checks": shown}
        print_json("doctor", told)
    else:
        click.echo(f"\n{broken} broken" if broken else "\neverything is well")
    return EXIT_BROKEN if broken else 0


def _path(ctx: click.Context, workspace: str | None) -> Path | None:
    """The workspace that is meant, however broken; None on a machine that only produces."""
    from truekeep.state import STATE
    from truekeep.workspace import default_path

    named = workspace or (ctx.obj or {}).get("workspace")
    path = Path(os.path.abspath(Path(named).expanduser())) if named else default_path()
    is_meant = named or os.environ.get("TRUEKEEP_WORKSPACE") or os.path.lexists(path / STATE)
    return Path(os.path.abspath(path)) if is_meant else None


def _show(check: Check) -> None:
    tint = _TINTS.get(check.state)
    place = f"{check.where}: " if check.where else ""
    state = click.style(check.state.ljust(7), fg=tint) if tint else check.state.ljust(7)
    click.echo(f"{state} {check.name.ljust(13)}{printable(place + check.what)}".rstrip())
    for told in (check.done, check.hint):
        if told:
            click.echo(f"{'':21}-> {printable(told)}")
