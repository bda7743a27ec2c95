"""`truekeep hook`: its help, and the way in for those who name the workspace first. Harnesses come in by `__main__`."""

from __future__ import annotations

import click

from truekeep.interfaces import hooks

EVENTS = ("session-start", "agent-bootstrap", "user-prompt-submit", "pre-compact", "stop", "session-end")


@click.command(hidden=True)
@click.argument("event", type=click.Choice(EVENTS))
@click.option("--for", "harness", metavar="NAME", help="Calling harness. [default: detected from its input]")
@click.option("-w", "--workspace", metavar="DIR", help="Workspace to use.")
@click.pass_context
def hook(ctx: click.Context, event: str, harness: str | None, workspace: str | None) -> None:
    """Handle a harness event; `truekeep connect` installs the calls.

    Reads the harness's JSON from standard input and prints the text for its agent. It never fails: a missing workspace,
    bad input or an error prints nothing and exits 0, with a line in `.truekeep/logs/hooks.log` (without a workspace, in
    `~/.local/state/truekeep/logs`).

    Example: truekeep hook session-start < /dev/null
    """
    named = workspace or (ctx.obj or {}).get("workspace") or ""
    arguments = [event, *(("--for", harness) if harness else ()), *(("-w", named) if named else ())]
    hooks.main(arguments)
