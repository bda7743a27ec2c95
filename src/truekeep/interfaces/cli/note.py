"""`truekeep note`: small notes on a session: the log, decisions, project status, heartbeat, corrections, rules."""

from __future__ import annotations

import click

from truekeep.interfaces.cli.correction import correction, gating
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, workspace_option
from truekeep.interfaces.cli.session import (
    TextCommand,
    repo_option,
    save_checkpoint,
    show_saved,
    text_or_stdin,
    writer_option,
)
from truekeep.interfaces.cli.terminal import echo_text
from truekeep.sessions.checkpoint import from_values


@click.group()
def note() -> None:
    """Record small notes: a log line, a decision, a status, a lesson.

    Example: truekeep note log 'The import took four hours; the index was missing.'
    """


note.add_command(correction)
note.add_command(gating)


@note.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@repo_option
@writer_option
@json_option
@workspace_option
@click.pass_context
def log(
    ctx: click.Context, text: tuple[str, ...], repo: str | None, writer: str, as_json: bool, workspace: str | None
) -> None:
    """Append TEXT to today's log.

    Existing text is never changed.

    Example: truekeep note log 'The import took four hours; the index was missing.'
    """
    asked = from_values({"summary": text_or_stdin(text)})
    show_saved(save_checkpoint(ctx, workspace, asked, repo, writer), as_json, "log")


@note.command()
@click.option("--now", metavar="TEXT", default="", help="Current work.")
@click.option("--next", "next_", metavar="TEXT", default="", help="Next step.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="Blocker; `none` clears it.")
@repo_option
@writer_option
@json_option
@workspace_option
@click.pass_context
def heartbeat(
    ctx: click.Context,
    now: str,
    next_: str,
    blockers: tuple[str, ...],
    repo: str | None,
    writer: str,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Show HEARTBEAT.md, or update its sections.

    Example: truekeep note heartbeat --now 'Migrating carts' --blocker 'No access to staging'
    """
    values = {"now": now, "next": next_, "blockers": list(blockers)}
    if any(values.values()):
        asked = from_values({name: value for name, value in values.items() if value})
        show_saved(save_checkpoint(ctx, workspace, asked, repo, writer), as_json, "heartbeat")
        return
    from truekeep.text.secrets.scanner import mask_lines  # here, and not above: start-up time

    text = mask_lines(open_workspace(ctx, workspace).files.read("HEARTBEAT.md"))
    if as_json:
        print_json("heartbeat", {"text": text})
    else:
        echo_text(text or "no heartbeat yet; write one with `truekeep note heartbeat --now TEXT`")


@note.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@repo_option
@writer_option
@json_option
@workspace_option
@click.pass_context
def decision(
    ctx: click.Context, text: tuple[str, ...], repo: str | None, writer: str, as_json: bool, workspace: str | None
) -> None:
    """Record a decision in the monthly file.

    Example: truekeep note decision 'Carts live in Redis, not in Postgres: they expire on their own there.'
    """
    asked = from_values({"decisions": [text_or_stdin(text)]})
    show_saved(save_checkpoint(ctx, workspace, asked, repo, writer), as_json, "decide")


@note.command(cls=TextCommand)
@click.argument("name")
@click.argument("status", nargs=-1)
@repo_option
@writer_option
@json_option
@workspace_option
@click.pass_context
def project(
    ctx: click.Context,
    name: str,
    status: tuple[str, ...],
    repo: str | None,
    writer: str,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Set the status of project NAME; `.` is the project of this repository.

    Example: truekeep note project . 'Carts are migrated; invoices are next.'
    """
    value = {"status": text_or_stdin(status), "name": "" if name == "." else name}
    show_saved(save_checkpoint(ctx, workspace, from_values({"project": value}), repo, writer), as_json, "project")
