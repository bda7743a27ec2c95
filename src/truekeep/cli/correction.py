"""truekeep correction, gating: what was learned from mistakes, as tables that a person can edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from truekeep.ages import many
from truekeep.cli.session import TextCommand
from truekeep.cli.show import json_option, open_workspace, print_json, print_table, workspace_option
from truekeep.hidden import printable

if TYPE_CHECKING:
    from truekeep.corrections import Noted
    from truekeep.lessons import Kind
    from truekeep.workspace import Workspace


@click.group()
def correction() -> None:
    """Note mistakes, so that they are made once.

    They are rows of a table in memory/ops/corrections.md, yours to edit. An agent is told of those that concern its
    repository before it begins.

    Example: truekeep correction list
    """


@click.group()
def gating() -> None:
    """Rules learned from mistakes: when this, do that.

    They are numbered rows of a table in memory/gating-policies.md, yours to edit. An agent is told of them before it
    begins, and again when a prompt has the words of a trigger.

    Example: truekeep gating list
    """


@correction.command("add", cls=TextCommand)
@click.argument("wrong", metavar="WHAT_WENT_WRONG")
@click.option("--instead", required=True, metavar="TEXT", help="What to do instead.")
@click.option("--applies-to", "applies", default="", metavar="TEXT", help="A repository, path or language; else all.")
@json_option
@workspace_option
@click.pass_context
def add_correction(
    ctx: click.Context, wrong: str, instead: str, applies: str, as_json: bool, workspace: str | None
) -> None:
    """Add a correction. A row that is there already is not added twice.

    Exit 3 when the text cannot stand in the table (a credential, unseen characters, nothing said), 4 when this machine
    is not the canonical host.

    Example: truekeep correction add 'Pushed to main' --instead 'Open a pull request' --applies-to acme/shop
    """
    from truekeep import corrections
    from truekeep.host import person

    opened = open_workspace(ctx, workspace)
    noted = corrections.add_correction(opened, wrong, instead=instead, applies=applies, actor=person())
    _show(noted, "correction-add", as_json=as_json)


@correction.command("list")
@json_option
@workspace_option
@click.pass_context
def list_corrections(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Show the corrections, and what of the table cannot be read.

    Example: truekeep correction list
    """
    from truekeep.lessons import CORRECTION

    _list(open_workspace(ctx, workspace), CORRECTION, "correction-list", as_json=as_json)


@gating.command("add", cls=TextCommand)
@click.option("--when", "trigger", required=True, metavar="TEXT", help="What triggers it.")
@click.option("--do", "action", required=True, metavar="TEXT", help="What is to be done then.")
@click.option("--because", default="", metavar="TEXT", help="What went wrong.")
@json_option
@workspace_option
@click.pass_context
def add_policy(
    ctx: click.Context, trigger: str, action: str, because: str, as_json: bool, workspace: str | None
) -> None:
    """Add a policy; its number goes on from the last. A row that is there already is not added twice.

    Exit codes as for `truekeep correction add`.

    Example: truekeep gating add --when 'releasing the shop' --do 'run the smoke test' --because 'it was down an hour'
    """
    from truekeep import corrections
    from truekeep.host import person

    opened = open_workspace(ctx, workspace)
    noted = corrections.add_policy(opened, trigger, action=action, because=because, actor=person())
    _show(noted, "gating-add", as_json=as_json)


@gating.command("list")
@json_option
@workspace_option
@click.pass_context
def list_policies(ctx: click.Context, as_json: bool, workspace: str | None) -> None:
    """Show the policies, and what of the table cannot be read.

    Example: truekeep gating list
    """
    from truekeep.lessons import POLICY

    _list(open_workspace(ctx, workspace), POLICY, "gating-list", as_json=as_json)


def _show(noted: Noted, kind: str, *, as_json: bool) -> None:
    if as_json:
        data = {"path": noted.path, "line": noted.line, "number": noted.number, "entry": noted.entry}
        print_json(kind, {**data, "added": noted.entry is not None})
        return
    place = printable(f"{noted.path}:{noted.line}" + (f", number {noted.number}" if noted.number else ""))
    if noted.entry is None:
        click.echo(f"there already: {printable(place)}")
    else:
        click.echo(
            f"{click.style('added', fg='green')} {printable(place)} (`truekeep undo {noted.entry}` takes it back)"
        )


def _list(opened: Workspace, kind: Kind, word: str, *, as_json: bool) -> None:
    from truekeep.corrections import list_lessons

    found = list_lessons(opened, kind)
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
    click.echo(f"{many(len(found.lessons), 'row')} in {kind.path}")
    for item in found.unread:
        click.echo(click.style("warning: ", fg="yellow") + f"{kind.path}:{item.line}: {item.what}", err=True)
