"""Tables. On a terminal rich draws them and shortens the widest columns until a row fits; piped, nothing is cut."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from truekeep.interfaces.cli.terminal import echo, for_terminal, style

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.measure import Measurement
    from rich.text import Text

MIN_COLUMN_WIDTH = 10


class Table(NamedTuple):
    """Rows below their headers. A cell may have a `style`; the columns listed in `whole` are never shortened."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    whole: Collection[int] = ()


def print_table(table: Table) -> None:
    if sys.stdout.isatty():
        _print_with_rich(table)
        return
    rows = [[for_terminal(cell) for cell in row] for row in table.rows]
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in zip(table.headers, *rows, strict=True)]
    echo(style(_aligned(table.headers, widths), bold=True))
    for row in rows:
        click.echo(_aligned(row, widths))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = list(cells)
    while shown and not click.unstyle(shown[-1]):
        shown.pop()
    padded = [cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(shown[:-1], widths, strict=False)]
    return "  ".join((*padded, *shown[-1:]))


def _print_with_rich(table: Table) -> None:
    # rich takes 33 ms to import: only a person at a terminal waits for it.
    from rich.console import Console
    from rich.table import Column
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = [
        Column(header, no_wrap=number in table.whole, min_width=min(MIN_COLUMN_WIDTH, _widest(table, number)))
        for number, header in enumerate(table.headers)
    ]
    drawn = RichTable(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True)
    for row in table.rows:
        drawn.add_row(*(_ShortenedCell(Text.from_ansi(for_terminal(cell))) for cell in row))
    is_plain = click.get_current_context(silent=True) is not None and click.get_current_context().color is False
    Console(highlight=False, markup=False, no_color=is_plain or None).print(drawn)


def _widest(table: Table, number: int) -> int:
    cells = [table.headers[number], *(row[number] for row in table.rows)]
    return max(len(click.unstyle(for_terminal(cell))) for cell in cells)


class _ShortenedCell:
    """Text that is cut to the width of its column: prose loses its end, a name or path its middle."""

    def __init__(self, text: Text) -> None:
        self.text = text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.measure import Measurement

        width = self.text.cell_len
        return Measurement(min(width, MIN_COLUMN_WIDTH), width).with_maximum(options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield shorten(self.text, options.max_width)


def shorten(text: Text, width: int) -> Text:
    """Text in at most `width` cells of a terminal."""
    if text.cell_len > width >= MIN_COLUMN_WIDTH and " " not in text.plain.strip() and text.cell_len == len(text):
        tail = (width - 1) // 2
        text = text[: width - 1 - tail] + type(text)("…", style=text.style) + text[-tail:]
    text = text.copy()
    text.no_wrap = True
    text.truncate(width, overflow="ellipsis")
    return text
