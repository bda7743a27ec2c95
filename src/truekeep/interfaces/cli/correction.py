"""`truekeep note correction` and `truekeep note gating`: lessons from mistakes, in tables that people may edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.core.machine import person
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, print_table, workspace_option
from truekeep.interfaces.cli.session import TextCommand
from truekeep.interfaces.cli.terminal import echo, print_warning, style
from truekeep.memory.lessons import CORRECTION, POLICY

if TYPE_CHECKING:
    from truekeep.memory.lessons import LessonTable
    from truekeep.workspace.notes import LessonRow
    from truekeep.workspace.workspace import Workspace


@click.group()
def correction() -> None:
    """Record mistakes so that agents do not repeat them.

    Corrections are rows of a table in memory/ops/corrections.md, which you may edit. An agent is shown those that apply
    to its repository at the start of a session.

    Example: truekeep note correction list
    """


@click.group()
def gating() -> None:
    """Manage rules learned from mistakes: when this, do that.

    Policies are numbered rows of a table in memory/gating-policies.md, which you may edit. An agent is shown them at
    the start of a session, and again when a prompt contains the words of a trigger.

    Example: truekeep note gating list
    """


@correction.command("add", cls=TextCommand)
@click.argument("wrong", metavar="WHAT_WENT_WRONG")
@click.option("--instead", required=True, metavar="TEXT", help="What to do instead.")
@click.option(
    "--applies-to", "applies", default="", metavar="TEXT", help="Repository, path or language. [default: all]"
)
@json_option
@workspace_option
@click.pass_context
def add_correction(
    ctx: click.Context, wrong: str, instead: str, applies: str, as_json: bool, workspace: str | None
) -> None:
    """Add a correction.

    A row that already exists is not added twice. Exit 3 if the text is not allowed in the table (a credential,
    invisible characters, or empty), 4 if this machine is not the canonical host.

    Example: truekeep note correction add 'Pushed to main' --instead 'Open a pull request' --applies-to acme/shop
    """
    opened = open_workspace(ctx, workspace)
    noted = opened.notes.add_correction(wrong, instead=instead, applies=applies, actor=person())
    _show(noted, "correction-add", as_json=as_json)


@correction.command("list")
@json_option
@workspace_option
@click.pass_context
def list_corrections(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """List the corrections, and rows that cannot be read.

    Example: truekeep note correction list
    """
    _list(open_workspace(ctx, workspace), CORRECTION, "correction-list", as_json=as_json)


@gating.command("add", cls=TextCommand)
@click.option("--when", "trigger", required=True, metavar="TEXT", help="Situation that triggers the rule.")
@click.option("--do", "action", required=True, metavar="TEXT", help="What to do then.")
@click.option("--because", default="", metavar="TEXT", help="What went wrong.")
@json_option
@workspace_option
@click.pass_context
def add_policy(
    ctx: click.Context, trigger: str, action: str, because: str, as_json: bool, workspace: str | None
) -> None:
    """Add a policy, with the next number.

    A row that already exists is not added twice. Exit codes as for `truekeep note correction add`.

    Example: truekeep note gating add --when 'releasing the shop' --do 'run the smoke test'
    """
    opened = open_workspace(ctx, workspace)
    noted = opened.notes.add_policy(trigger, action=action, because=because, actor=person())
    _show(noted, "gating-add", as_json=as_json)


@gating.command("list")
@json_option
@workspace_option
@click.pass_context
def list_policies(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """List the policies, and rows that cannot be read.

    Example: truekeep note gating list
    """
    _list(open_workspace(ctx, workspace), POLICY, "gating-list", as_json=as_json)


def _show(noted: LessonRow, kind: str, *, as_json: bool) -> None:
    if as_json:
        data = {"path": noted.path, "line": noted.line, "number": noted.number, "entry": noted.entry}
        print_json(kind, {**data, "added": noted.entry is not None})
        return
    place = f"{noted.path}:{noted.line}" + (f", number {noted.number}" if noted.number else "")
    if noted.entry is None:
        echo(f"already there: {place}")
    else:
        echo(f"{style('added', fg='green')} {place} (`truekeep undo {noted.entry}` undoes it)")


def _list(opened: Workspace, kind: LessonTable, word: str, *, as_json: bool) -> None:
    found = opened.notes.list(kind)
    if as_json:
        rows = [
            {
                **{name: value for name, value in lesson._asdict().items() if name not in ("kind", "action")},
                "instead" if kind.word == "correction" else "action": lesson.action,
            }
            for lesson in found.lessons
        ]
        unread = [{"line": item.line, "what": item.what, "rows": list(item.rows)} for item in found.unread]
        print_json(word, {"path": kind.path, "rows": rows, "unread": unread})
        return
    if found.lessons and kind.word == "correction":
        shown = [[item.day, item.applies or "all", item.wrong, item.action] for item in found.lessons]
        print_table(["date", "applies to", "what went wrong", "instead"], shown)
    elif found.lessons:
        shown = [[item.number, item.trigger, item.action, item.wrong] for item in found.lessons]
        print_table(["#", "when", "do", "what went wrong"], shown)
    echo(f"{many(len(found.lessons), 'row')} in {kind.path}")
    for item in found.unread:
        print_warning(f"{kind.path}:{item.line}: {item.what}")
