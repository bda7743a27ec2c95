"""`truekeep note correction` and `truekeep note gating`: lessons from mistakes, in tables that people may edit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.core.machine import person, running_harness
from truekeep.interfaces.cli.options import in_workspace, in_workspace_if_any, repo_option, repository_root
from truekeep.interfaces.cli.output import Shown, emit, how_to_undo
from truekeep.interfaces.cli.session import TextCommand
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import style, warning
from truekeep.memory.lessons import CORRECTION, POLICY
from truekeep.workspace import producer
from truekeep.workspace.notes import LessonAuthor, correction_cells, policy_cells

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
@repo_option
@in_workspace_if_any
def add_correction(opened: Workspace | None, wrong: str, instead: str, applies: str, repo: str | None) -> None:
    """Add a correction.

    A row that already exists is not added twice. On a machine that is not the canonical host it becomes a handoff,
    which the host puts up for review. Exit 3 if the text is not allowed in the table (a credential, invisible
    characters, or empty), 4 if this machine is not the host and this is not a repository.

    Example: truekeep note correction add 'Pushed to main' --instead 'Open a pull request' --applies-to acme/shop
    """
    by = _author(repo)
    if opened is not None:
        row = opened.notes.add_correction(wrong, instead=instead, applies=applies, by=by)
    else:
        today = datetime.now().astimezone().date()
        row = producer.leave_lesson(CORRECTION, correction_cells(wrong, instead, applies, today), by)
    _emit_added("correction-add", row)


def _author(repo: str | None) -> LessonAuthor:
    return LessonAuthor(person(), running_harness(), repository_root(repo))


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
@repo_option
@in_workspace_if_any
def add_policy(opened: Workspace | None, trigger: str, action: str, because: str, repo: str | None) -> None:
    """Add a policy, with the next number.

    A row that already exists is not added twice. Elsewhere than on the canonical host, and exit codes: as for
    `truekeep note correction add`.

    Example: truekeep note gating add --when 'releasing the shop' --do 'run the smoke test'
    """
    by = _author(repo)
    if opened is not None:
        row = opened.notes.add_policy(trigger, action=action, because=because, by=by)
    else:
        row = producer.leave_lesson(POLICY, policy_cells(trigger, action, because), by)
    _emit_added("gating-add", row)


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
    if row.handoff:
        told = f"{style('handed in', fg='green')} {row.handoff} for the canonical host, where a person reviews it"
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
