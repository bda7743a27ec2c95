"""`truekeep note correction` and `truekeep note gating`: lessons from mistakes, in tables that people may edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.core.machine import person
from truekeep.interfaces.cli.options import in_workspace
from truekeep.interfaces.cli.output import Shown, emit, how_to_undo
from truekeep.interfaces.cli.session import TextCommand
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import style, warning
from truekeep.memory.lessons import CORRECTION, POLICY

if TYPE_CHECKING:
    from truekeep.memory.lessons import LessonFile, LessonTable
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
@in_workspace
def add_correction(opened: Workspace, wrong: str, instead: str, applies: str) -> None:
    """Add a correction.

    A row that already exists is not added twice. Exit 3 if the text is not allowed in the table (a credential,
    invisible characters, or empty), 4 if this machine is not the canonical host.

    Example: truekeep note correction add 'Pushed to main' --instead 'Open a pull request' --applies-to acme/shop
    """
    row = opened.notes.add_correction(wrong, instead=instead, applies=applies, actor=person())
    _emit_added("correction-add", row)


@correction.command("list")
@in_workspace
def list_corrections(opened: Workspace) -> None:
    """List the corrections, and rows that cannot be read.

    Example: truekeep note correction list
    """
    _emit_list("correction-list", CORRECTION, opened.notes.list(CORRECTION))


@gating.command("add", cls=TextCommand)
@click.option("--when", "trigger", required=True, metavar="TEXT", help="Situation that triggers the rule.")
@click.option("--do", "action", required=True, metavar="TEXT", help="What to do then.")
@click.option("--because", default="", metavar="TEXT", help="What went wrong.")
@in_workspace
def add_policy(opened: Workspace, trigger: str, action: str, because: str) -> None:
    """Add a policy, with the next number.

    A row that already exists is not added twice. Exit codes as for `truekeep note correction add`.

    Example: truekeep note gating add --when 'releasing the shop' --do 'run the smoke test'
    """
    _emit_added("gating-add", opened.notes.add_policy(trigger, action=action, because=because, actor=person()))


@gating.command("list")
@in_workspace
def list_policies(opened: Workspace) -> None:
    """List the policies, and rows that cannot be read.

    Example: truekeep note gating list
    """
    _emit_list("gating-list", POLICY, opened.notes.list(POLICY))


def _emit_added(kind: str, row: LessonRow) -> None:
    place = f"{row.path}:{row.line}" + (f", number {row.number}" if row.number else "")
    is_added = row.entry is not None
    told = f"{style('added', fg='green')} {place}{how_to_undo(row.entry)}" if is_added else f"already there: {place}"
    emit(kind, {**row._asdict(), "added": is_added}, [told])


def _emit_list(kind: str, table: LessonTable, found: LessonFile) -> None:
    action = "instead" if table is CORRECTION else "action"
    rows = [
        {
            **{name: value for name, value in lesson._asdict().items() if name not in ("kind", "action")},
            action: lesson.action,
        }
        for lesson in found.lessons
    ]
    emit(kind, {"path": table.path, "rows": rows, "unread": found.unread}, _render_list(table, found))


def _render_list(table: LessonTable, found: LessonFile) -> Iterator[Shown]:
    if found.lessons and table is CORRECTION:
        rows = [[item.day, item.applies or "all", item.wrong, item.action] for item in found.lessons]
        yield Table(["date", "applies to", "what went wrong", "instead"], rows)
    elif found.lessons:
        rows = [[item.number, item.trigger, item.action, item.wrong] for item in found.lessons]
        yield Table(["#", "when", "do", "what went wrong"], rows)
    yield f"{many(len(found.lessons), 'row')} in {table.path}"
    for item in found.unread:
        yield warning(f"{table.path}:{item.line}: {item.what}")
