"""truekeep doctor: find and fix problems with the installation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.default_workspace import find_chosen, find_damaged, read_remembered
from truekeep.core.machine import has_routes
from truekeep.core.state_dir import STATE
from truekeep.integrations.doctor.base import BROKEN, MENDED, WELL, CheckContext
from truekeep.integrations.doctor.run import run_checks
from truekeep.interfaces.cli.output import json_option, print_json, workspace_option
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.integrations.doctor.base import CheckResult

EXIT_BROKEN = 1
_TINTS = {MENDED: "green", BROKEN: "red"}
_SHOWN_STATES = {WELL: "ok", MENDED: "fixed", BROKEN: "broken"}  # in text; --json has the states themselves


@click.command()
@click.option("--fix", is_flag=True, help="Fix what is safe to fix.")
@json_option
@workspace_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, as_json: bool, workspace: str | None) -> int:
    """Find and fix problems with the installation.

    Checks this machine, permissions, host, configuration, ledger, derived databases, leftovers of killed runs, locks,
    search index, hooks and schedule, and shows for each problem what is wrong, where, and what to do. Without --fix
    nothing changes. With --fix, derived data is rebuilt, leftovers of killed runs are finished or removed, and files
    that others could read are made private; configuration and memory are never rewritten. Exit 1 if a problem is left.

    Example: truekeep doctor --fix
    """
    context = CheckContext(_path(ctx, workspace))
    found = []
    for check in run_checks(context, fix=fix):
        found.append(check)
        if not as_json:
            _show(check)
    broken = sum(check.state == BROKEN for check in found)
    if as_json:
        shown = [{key: printable(value) for key, value in check._asdict().items()} for check in found]
        told = {"ok": not broken, "fix": fix, "workspace": str(context.path) if context.path else None, "checks": shown}
        print_json("doctor", told)
    else:
        well = "no problems found" if context.path or has_routes() else "nothing is broken; no memory is kept here"
        echo()
        echo(f"{broken} broken" if broken else well)
    return EXIT_BROKEN if broken else 0


def _path(ctx: click.Context, workspace: str | None) -> Path | None:
    """The chosen workspace, even if broken; None on a machine without one."""
    named = workspace or (ctx.obj or {}).get("workspace")
    if not named and not os.environ.get("TRUEKEEP_WORKSPACE") and not read_remembered() and find_damaged():
        return None
    path = Path(os.path.abspath(Path(named).expanduser())) if named else default_path()
    is_meant = named or find_chosen() or os.path.lexists(path / STATE)
    return Path(os.path.abspath(path)) if is_meant else None


def _show(check: CheckResult) -> None:
    tint = _TINTS.get(check.state)
    place = f"{check.where}: " if check.where else ""
    word = _SHOWN_STATES[check.state].ljust(7)
    state = style(word, fg=tint) if tint else word
    echo(f"{state} {check.name.ljust(13)}{(place + check.what)}".rstrip())
    for told in (check.done, check.hint):
        if told:
            echo(f"{'':21}-> {told}")
