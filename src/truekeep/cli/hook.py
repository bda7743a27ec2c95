"""`truekeep hook`: its help, and the way in for those who name the workspace first. Harnesses come in by `__main__`."""

from __future__ import annotations

import click

EVENTS = ("session-start", "agent-bootstrap", "user-prompt-submit", "pre-compact", "stop", "session-end")


@click.command()
@click.argument("event", type=click.Choice(EVENTS))
@click.option("--for", "harness", metavar="NAME", help="The harness that calls; told from what it says by default.")
@click.option("-w", "--workspace", metavar="DIR", help="The workspace to use.")
@click.pass_context
def hook(ctx: click.Context, event: str, harness: str | None, workspace: str | None) -> None:
    """Answer a harness: what `truekeep connect` has it call at each EVENT.

    Reads the harness's JSON from standard input and prints what its agent is told. It never fails and never speaks of
    trouble: a missing workspace, bad input or an error is silence and exit 0, with a line in `.truekeep/logs/hooks.log`
    (without a workspace, in `~/.local/state/truekeep/logs`).

    Example: truekeep hook session-start < /dev/null
    """
    from truekeep import hooks

    named = workspace or (ctx.obj or {}).get("workspace") or ""
    arguments = [event, *(("--for", harness) if harness else ()), *(("-w", named) if named else ())]
    hooks.main(arguments)
