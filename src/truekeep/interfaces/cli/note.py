"""`truekeep note`: small notes on a session: the log, decisions, project status, heartbeat, corrections, rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truekeep.interfaces.cli.correction import correction, gating
from truekeep.interfaces.cli.options import Command, in_workspace_if_any, open_workspace, repo_option, writer_option
from truekeep.interfaces.cli.output import emit
from truekeep.interfaces.cli.session import TextCommand, save_checkpoint, text_or_stdin
from truekeep.interfaces.cli.terminal import MultilineText
from truekeep.sessions.checkpoint import from_values, tagged
from truekeep.text.secrets.scanner import mask_lines

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace


@click.group()
def note() -> None:
    """Record small notes: a log line, a decision, a status, a lesson.

    Example: truekeep note log 'The import took four hours; the index was missing.'
    """


note.add_command(correction)
note.add_command(gating)


def _note_options(command: Command) -> Command:
    return repo_option(writer_option(in_workspace_if_any(command)))  # type: ignore[return-value]


@note.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@click.option("--type", "kind", metavar="WORD", default="", help="decision, milestone, lesson, context or your own.")
@click.option("--importance", type=click.FloatRange(0, 1), metavar="0..1", help="Decides how long it is kept.")
@_note_options
def log(
    opened: Workspace | None, text: tuple[str, ...], kind: str, importance: float | None, repo: str | None, writer: str
) -> None:
    """Append TEXT to today's log.

    Existing text is never changed. With a type or an importance it is tagged, such as [lesson|i=0.7]: from 0.8 on it
    stays, from 0.4 on it expires after 30 days, below after 7. The types have a usual importance: decision 0.9,
    milestone 0.85, lesson 0.7, context 0.3, others 0.5. Without a tag it stays.

    Example: truekeep note log --type lesson 'The import took four hours; the index was missing.'
    """
    said = text_or_stdin(text)
    if kind or importance is not None:
        given = from_values({"observations": [tagged(said, kind, importance)]})
    else:
        given = from_values({"summary": said})
    save_checkpoint(opened, given, repo, writer, "log")


@note.command()
@click.option("--now", metavar="TEXT", default="", help="Current work.")
@click.option("--next", "next", metavar="TEXT", default="", help="Next step.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="Blocker; `none` clears it.")
@_note_options
def heartbeat(opened: Workspace | None, repo: str | None, writer: str, **given: str | tuple[str, ...]) -> None:
    """Show HEARTBEAT.md, or update its sections.

    Example: truekeep note heartbeat --now 'Migrating carts' --blocker 'No access to staging'
    """
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
    if values:
        save_checkpoint(opened, from_values(values), repo, writer, "heartbeat")
        return
    memory = opened or open_workspace(click.get_current_context(), None)  # which says why there is none
    text = mask_lines(memory.files.read("HEARTBEAT.md"))
    shown = text or "no heartbeat yet; write one with `truekeep note heartbeat --now TEXT`"
    emit("heartbeat", {"text": text}, [MultilineText(shown)])


@note.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@_note_options
def decision(opened: Workspace | None, text: tuple[str, ...], repo: str | None, writer: str) -> None:
    """Record a decision in the monthly file.

    Example: truekeep note decision 'Carts live in Redis, not in Postgres: they expire on their own there.'
    """
    save_checkpoint(opened, from_values({"decisions": [text_or_stdin(text)]}), repo, writer, "decide")


@note.command(cls=TextCommand)
@click.argument("name")
@click.argument("status", nargs=-1)
@_note_options
def project(opened: Workspace | None, name: str, status: tuple[str, ...], repo: str | None, writer: str) -> None:
    """Set the status of project NAME; `.` is the project of this repository.

    Example: truekeep note project . 'Carts are migrated; invoices are next.'
    """
    value = {"status": text_or_stdin(status), "name": "" if name == "." else name}
    save_checkpoint(opened, from_values({"project": value}), repo, writer, "project")
