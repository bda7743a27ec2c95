"""Shared by the commands: options, opening the workspace, tables, and one shape for every --json."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from truekeep.core.file_io import read_regular
from truekeep.core.machine import below_home
from truekeep.core.model import Finding
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.terminal import echo, print_note, style
from truekeep.text.unicode import printable
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from truekeep.verify.verdict import Verdict

Command = TypeVar("Command", bound=Callable[..., Any])

MIN_COLUMN_WIDTH = 10
_OPENED = "truekeep.opened"  # key in click's context: the workspaces opened by this command
_JSON = "truekeep.json"  # key in click's context: True with --json

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


def json_option(command: Command) -> Command:
    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
        ctx.meta[_JSON] = value
        return value

    return click.option("--json", "as_json", is_flag=True, help="Output JSON.", callback=remember)(command)


def workspace_option(command: Command) -> Command:
    return click.option("-w", "--workspace", metavar="DIR", help="Workspace to use.", shell_complete=complete_folders)(
        command
    )


def open_workspace(ctx: click.Context, workspace: str | None) -> Workspace:
    """The workspace that this command is about."""
    chosen = workspace or (ctx.obj or {}).get("workspace")
    opened = Workspace.open(Path(chosen) if chosen else None)
    ctx.call_on_close(lambda: _print_notices(opened))
    ctx.call_on_close(opened.close)
    ctx.meta.setdefault(_OPENED, []).append(opened)
    return opened


def _print_notices(opened: Workspace) -> None:
    for notice in opened.notices:
        print_note(notice)
    opened.notices.clear()


def read_named(file: str) -> bytes:
    """The bytes of a file that a person named: a regular one, or a pipe that the shell made of `<(…)`."""
    if file.startswith("/dev/fd/"):
        return Path(file).read_bytes()
    return read_regular(file)


def emit(kind: str, data: dict[str, Any], lines: Iterable[str]) -> None:
    """Print a result: `data` as JSON with --json, else `lines`, which may be a generator."""
    if wants_json():
        print_json(kind, data)
        return
    for line in lines:
        echo(line)


def wants_json() -> bool:
    """True if the current command was called with --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON))


def print_json(kind: str, data: dict[str, Any]) -> None:
    """Print data as JSON, with its schema and the notices of the workspace."""
    context = click.get_current_context(silent=True)
    opened: list[Workspace] = context.meta.get(_OPENED, []) if context is not None else []
    shown = {"schema": f"truekeep.{kind}/1", **data}
    if notices := [printable(notice) for workspace in opened for notice in workspace.notices]:
        shown["notices"] = notices
    # ASCII only: JSON escapes every other character, so none reaches the terminal.
    click.echo(json.dumps(shown, indent=2, default=str))


def shown_finding(finding: Finding) -> dict[str, Any]:
    return {"code": finding.code, "message": printable(finding.message), "line": finding.line}


def shown_verdicts(verdicts: Sequence[Verdict], checked_at: str, unchecked: str) -> dict[str, Any]:
    """The verdicts on a passage, for JSON."""
    return {
        "verdicts": [shown_verdict(verdict) for verdict in verdicts],
        "checked_at": checked_at,
        "unchecked": unchecked,
    }


def shown_verdict(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "kind": claim.kind,
        "text": claim.text,
        "shown": claim.shown,
        "line": claim.line,
        "column": claim.column,
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "why": verdict.why,
        "place": verdict.place,
        "candidates": list(verdict.candidates),
        "commit": verdict.commit,
        "commit_day": verdict.day,
        "rank": verdict.rank,
        "uncommitted": verdict.is_dirty,
    }


def coloured(word: str, *, width: int = 0) -> str:
    return style(word.ljust(width), fg=COLOURS.get(word))


def age_in_days(day: date | None, today: date) -> int | None:
    return max((today - day).days, 0) if day else None


def shown_age(days: int | None) -> str:
    """An age that fits a column: 5 d, 3 mo, 2 y."""
    if days is None:
        return "?"
    if days < 60:
        return f"{days} d"
    return f"{days // 30} mo" if days < 730 else f"{days // 365} y"


def print_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    colour: int | None = None,
    tints: Sequence[str | None] = (),
    whole: Collection[int] = (),
) -> None:
    """Print aligned columns. On a terminal the widest are cut until a row fits, but never those in `whole`.

    `colour` is the column whose words are coloured, `tints` the colour of each row's last column.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *clean, strict=True)]
    if sys.stdout.isatty():
        import shutil

        widths = fit_widths(widths, shutil.get_terminal_size((100, 24)).columns, whole)
        clean = [[cut(cell, width) for cell, width in zip(row, widths, strict=True)] for row in clean]
        headers = [cut(header, width) for header, width in zip(headers, widths, strict=True)]
    echo(style(_row(headers, widths), bold=True))
    for number, row in enumerate(clean):
        line = _row(row, widths)
        if number < len(tints) and tints[number]:
            start = sum(widths[:-1]) + 2 * (len(widths) - 1)
            line = line[:start] + style(line[start:], fg=tints[number])
        if colour is not None:
            start = sum(widths[:colour]) + 2 * colour
            end = start + len(row[colour])
            line = line[:start] + coloured(line[start:end]) + line[end:]
        echo(line)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def fit_widths(widths: Sequence[int], room: int, whole: Collection[int] = ()) -> list[int]:
    """Column widths that fit into `room`: the widest shrink first, none below MIN_COLUMN_WIDTH or listed in `whole`."""
    fitting = list(widths)
    while sum(fitting) + 2 * (len(fitting) - 1) > room:
        widest = max((at for at in range(len(fitting)) if at not in whole), key=fitting.__getitem__, default=None)
        if widest is None or fitting[widest] <= MIN_COLUMN_WIDTH:
            break
        fitting[widest] -= 1
    return fitting


def cut(text: str, width: int) -> str:
    """Shorten text to a width: prose loses its end, a name or path its middle."""
    if len(text) <= width:
        return text
    if " " in text.strip() or width < MIN_COLUMN_WIDTH:
        return text[: width - 1].rstrip() + "…"
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def print_difference(lines: Sequence[str]) -> None:
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        echo(style(line, fg=colour))


def print_findings(findings: Sequence[Finding], *, indent: str = "") -> None:
    for finding in findings:
        place = f"line {finding.line}: " if finding.line else ""
        echo(f"{indent}{place}{style(finding.code, fg='yellow')}: {finding.message}")


def short_path(path: object) -> str:
    """A path as people write it, and safe to print."""
    return printable(below_home(path, os.path.expanduser("~")))
