"""truekeep doctor: find and fix problems with the installation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.core.default_workspace import find_chosen, find_damaged, read_remembered
from truekeep.core.machine import has_routes
from truekeep.core.state_dir import STATE
from truekeep.integrations.doctor.registry import OF_MEMORY, run_checks
from truekeep.interfaces.cli.check_rows import result_rows, terminal_width
from truekeep.interfaces.cli.output import json_option, print_json, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo
from truekeep.text.unicode import printable
from truekeep.workspace.check import FIXED, OK, PROBLEM, UNKNOWN, CheckContext
from truekeep.workspace.workspace import default_path

if TYPE_CHECKING:
    from truekeep.workspace.check import CheckResult

EXIT_BROKEN = 1
NEEDED_BY_MEMORY = "the installation is ok; what memory needs is marked above"
_STATES = {OK: "well", FIXED: "mended", PROBLEM: "broken", UNKNOWN: "broken"}  # the words of --json


@click.command()
@click.option("--fix", is_flag=True, help="Fix what is safe to fix.")
@json_option
@workspace_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, as_json: bool, workspace: str | None) -> int:
    """Find and fix problems with the installation and memory.

    Checks this machine, permissions, host, configuration, ledger, derived databases, leftovers of killed runs, locks,
    hooks and timer; then, where these are sound, memory as `truekeep status` does. Shows for each problem what is
    wrong, where, and what to do. Without --fix nothing changes. With --fix, derived data is rebuilt, leftovers of
    killed runs are finished or removed, and files that others could read are made private; configuration and memory
    are never rewritten. Exit 1 if a problem of the installation is left; for memory, `truekeep status --exit-code`.

    Example: truekeep doctor --fix
    """
    context = CheckContext(_path(ctx, workspace), command="doctor")
    found = []
    for result in _results(context, fix=fix):
        found.append(result)
        for line in result_rows(replace(result, target=""), width=terminal_width()) if not as_json else ():
            echo(line)
    broken = sum(result.severity in (PROBLEM, UNKNOWN) for result in found if result.name not in OF_MEMORY)
    memory = [result for result in found if result.name in OF_MEMORY and result.severity not in (OK, FIXED)]
    if as_json:
        told = {"ok": not broken, "fix": fix, "workspace": str(context.path) if context.path else None}
        print_json("doctor", {**told, "checks": [_shown(result) for result in found]})
    else:
        well = "no problems found" if context.path or has_routes() else "nothing is broken; no memory is kept here"
        echo()
        echo(_summary(broken, well, has_memory=bool(memory)))
    return EXIT_BROKEN if broken else 0


def _results(context: CheckContext, *, fix: bool) -> Iterator[CheckResult]:
    """The result of each check when it is known. While one takes long, a display says so."""
    display = ProgressDisplay("checking")
    results = run_checks(context, fix=fix, progress=lambda done, total: display.step("reading memory", done, total))
    while True:
        with display:
            result = next(results, None)
        if result is None:
            return
        yield result


def _summary(broken: int, well: str, *, has_memory: bool) -> str:
    if not broken:
        return NEEDED_BY_MEMORY if has_memory else well
    of_memory = " of the installation; what memory needs is marked above" if has_memory else ""
    return many(broken, "problem") + of_memory


def _path(ctx: click.Context, workspace: str | None) -> Path | None:
    """The chosen workspace, even if broken; None on a machine without one."""
    named = workspace or (ctx.obj or {}).get("workspace")
    if not named and not os.environ.get("TRUEKEEP_WORKSPACE") and not read_remembered() and find_damaged():
        return None
    path = Path(os.path.abspath(Path(named).expanduser())) if named else default_path()
    is_meant = named or find_chosen() or os.path.lexists(path / STATE)
    return Path(os.path.abspath(path)) if is_meant else None


def _shown(result: CheckResult) -> dict[str, str]:
    return {
        "name": result.name,
        "state": _state(result),
        "what": printable(result.said),
        "where": printable(result.where),
        "done": printable(result.done),
        "hint": printable(result.hint),
    }


def _state(result: CheckResult) -> str:
    is_of_memory = result.name in OF_MEMORY and result.severity not in (OK, FIXED)
    return result.severity if is_of_memory else _STATES[result.severity]
