"""How commands answer: one `emit` for text and JSON, and the few ways in which several of them say things."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from truekeep.core.errors import BadInput
from truekeep.core.machine import below_home
from truekeep.interfaces.cli import table
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import (
    json_option,
    open_workspace,
    opened_workspaces,
    wants_json,
    workspace_if_any,
    workspace_option,
)
from truekeep.interfaces.cli.pager import in_pager
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, MultilineText, echo, echo_text, print_error, style
from truekeep.text.unicode import printable

__all__ = ["json_option", "open_workspace", "wants_json", "workspace_if_any", "workspace_option"]

Result = TypeVar("Result")
Shown = str | Table | Aside | MultilineText
"""What a command shows a person: a line, or one of these."""

COLOURS = {
    "promoted": "green",
    "routed": "green",
    "approved": "green",
    "already": "bright_black",
    "review": "yellow",
    "skipped": "yellow",
    "refused": "red",
    "failed": "red",
    "undone": "magenta",
    "rejected": "magenta",
    "expired": "magenta",
}


def emit(kind: str, data: Any, shown: Iterable[Shown] = (), *, is_long: bool = False) -> None:
    """Print a result: `data`, a mapping or a value with fields, with --json; else `shown`, which may be a generator.

    `is_long`: what may be longer than the screen is shown in a pager.
    """
    if wants_json():
        print_json(kind, data)
    elif is_long:
        with in_pager():
            show(shown)
    else:
        show(shown)


def show(shown: Iterable[Shown]) -> None:
    for item in shown:
        if isinstance(item, Table):
            table.print_table(item)
        elif isinstance(item, Aside):
            echo(item.line, err=True)
        elif isinstance(item, MultilineText):
            echo_text(item.text)
        else:
            echo(item)


def print_json(kind: str, data: Any) -> None:
    """Print data as JSON, with its schema and the notices of the workspace."""
    shown = {"schema": f"truekeep.{kind}/1", **to_json(data)}
    if notices := [printable(notice) for opened in opened_workspaces() for notice in opened.notices]:
        shown["notices"] = notices
    # ASCII only: JSON escapes every other character, so none reaches the terminal.
    click.echo(json.dumps(shown, indent=2))


def for_each(
    names: Sequence[str], act: Callable[[str], Result]
) -> tuple[list[Result], list[tuple[str, BadInput]], int]:
    """Do something with each; one that cannot be done does not stop the others. Gives the exit code, too."""
    done: list[Result] = []
    failed: list[tuple[str, BadInput]] = []
    for name in names:
        try:
            done.append(act(name))
        except BadInput as error:
            if len(names) == 1:
                raise
            failed.append((name, error))
            if not wants_json():
                print_error(error)
    return done, failed, failed[-1][1].exit_code if failed else 0


def coloured(word: str, *, width: int = 0) -> str:
    return style(word.ljust(width), fg=COLOURS.get(word))


def counted(counts: Mapping[str, int]) -> str:
    """The counts that are not zero: 3 gone, 1 moved."""
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


def how_to_undo(entry: int | None) -> str:
    return f" (`truekeep undo {entry}` reverts it)" if entry is not None else ""


def short_path(path: object) -> str:
    """A path as people write it, and safe to print."""
    return printable(below_home(path, os.path.expanduser("~")))


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    tints: Sequence[str | None] = (),
    whole: Collection[int] = (),
) -> None:
    """Print a table. `tints` are the colours of each row's last column."""
    tinted = [[*row[:-1], style(row[-1], fg=tint)] for row, tint in zip(rows, tints, strict=False)]
    table.print_table(Table(headers, [*tinted, *rows[len(tinted) :]], whole))
