"""Markdown tables as rows of cells, outside of fences, comments and indented code. Pure, and one pass.

Follows GitHub's rules, and is more lenient: rows may be shorter or longer than the header, and lines of cells without a
header are rows without names for their cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.text.markdown_lines import FenceReader, without_indent

_MARK = re.compile(r"\\[!-/:-@\[-`{-~]|\|")
_RULE = re.compile(r":?-+:?")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_COLUMNS, _NAME_CHARS = 50, 80  # names are repeated with every row, so a header cannot be of any size
_HEADING_CHARS = 200


class TableRow(NamedTuple):
    """One row of a table. The name of a column may be empty."""

    line: int  # counted from 1
    heading: str  # heading of its section; the file's title does not count
    columns: tuple[str, ...]
    cells: tuple[str, ...]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """The cells that are not empty, each with the name of its column."""
        for at, cell in enumerate(self.cells):
            if cell:
                yield (self.columns[at] if at < len(self.columns) else ""), cell


class MarkdownTable(NamedTuple):
    """Neighbouring lines of cells. Without a line of dashes there is no header."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    rule: int  # the line of dashes; 0: there is none
    last: int  # the last line that belongs to it


def iter_rows(text: str) -> Iterator[TableRow]:
    """Every row of every table, in order."""
    for heading, block in _iter_blocks(text):
        yield from _table_of(block, heading).rows


def iter_tables(text: str) -> Iterator[MarkdownTable]:
    """Every table with its place, in order. Prose with bars in it is not a table."""
    for heading, block in _iter_blocks(text):
        table = _table_of(block, heading)
        if table.rows or table.columns:
            yield table


def _iter_blocks(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Neighbouring lines with bars, with the heading of their section."""
    heading = ""
    block: list[tuple[int, str]] = []
    for number, line in iter_prose(text):
        title = _HEADING.match(line) if line.startswith("#") else None
        is_row = title is None and "|" in line and not line.startswith(("    ", "\t"))
        if block and (not is_row or block[-1][0] != number - 1):  # where a fence stood between, it is another table
            yield heading, block
            block = []
        if is_row:
            block.append((number, line))
        elif title is not None:
            heading = "" if len(title[1]) == 1 else title[2].strip(" \t#")[:_HEADING_CHARS]
    if block:
        yield heading, block


def iter_prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, without those in code fences and HTML comments."""
    fences = FenceReader()
    is_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        if is_comment:
            is_comment = "-->" not in line
            continue
        if fences.see(without_indent(line)):
            continue
        if "<!--" in line and line.lstrip(" ").startswith("<!--"):
            is_comment = "-->" not in line
            continue
        yield number, line.removesuffix("\r")


def split_cells(line: str) -> list[str]:
    """The cells of a line, with escaped bars unescaped."""
    bare = line.strip()
    cells = _split_escaped(bare) if "\\" in bare else bare.split("|")
    if len(cells) > 1 and not cells[0]:
        del cells[0]
    if len(cells) > 1 and not cells[-1]:
        del cells[-1]
    return [cell.strip() for cell in cells]


def _split_escaped(bare: str) -> list[str]:
    cells: list[str] = []
    start = 0
    for match in _MARK.finditer(bare):
        if match[0] == "|":
            cells.append(bare[start : match.start()])
            start = match.end()
    cells.append(bare[start:])
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _table_of(block: list[tuple[int, str]], heading: str) -> MarkdownTable:
    """A table of neighbouring lines with bars. The first line of dashes makes the line above it the header."""
    lines = [(number, line, split_cells(line)) for number, line in block]
    rule = next((at for at, (_, _, cells) in enumerate(lines) if _is_rule(cells)), None)
    before, after = (lines, []) if rule is None else (lines[: max(0, rule - 1)], lines[rule + 1 :])
    rows = [
        TableRow(number, heading, (), tuple(cells))
        for number, line, cells in before
        if len(cells) > 1 and line.lstrip().startswith("|")  # prose may hold a bar as well
    ]
    header = lines[rule - 1][2] if rule else []
    columns = tuple(cell.strip("*_` ")[:_NAME_CHARS] for cell in header[:_COLUMNS])
    rows += [TableRow(number, heading, columns, tuple(cells)) for number, _, cells in after if not _is_rule(cells)]
    return MarkdownTable(columns, tuple(rows), lines[rule][0] if rule is not None else 0, lines[-1][0])


def _is_rule(cells: list[str]) -> bool:
    """Whether these are the dashes below a header."""
    return all(map(_RULE.fullmatch, cells))
