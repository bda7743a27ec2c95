"""Results of checks as `truekeep status` and `truekeep doctor` print them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator

from truekeep.interfaces.cli.terminal import style
from truekeep.text.unicode import printable
from truekeep.workspace.check import FIXED, PROBLEM, UNKNOWN, WARNING, CheckResult

_TINTS = {WARNING: "yellow", PROBLEM: "red", UNKNOWN: "red", FIXED: "green"}
_INDENT = len("problem ") + len("catalog.sqlite ")
_NARROWEST = 20


def terminal_width() -> int | None:
    """The columns of the terminal; None where output goes elsewhere."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def result_rows(result: CheckResult, *more: str, width: int | None = None) -> Iterator[str]:
    """What was found and where, what was done, the next step; then `more`."""
    said = f"{result.where}: {result.said}" if result.where else result.said
    target = f" (normal: {result.target})" if result.target else ""
    steps = [f"-> {told}" for told in (result.done, result.hint) if told]
    yield from rows(result.severity, result.name, said + target, *steps, *more, width=width)


def rows(severity: str, name: str, *texts: str, width: int | None = None) -> Iterator[str]:
    """Texts below each other, the first beside a severity and a name. Wrapped to a width, if given; never cut."""
    tint = _TINTS.get(severity)
    room = max(_NARROWEST, width - _INDENT) if width else 100_000
    head = (style(severity, fg=tint) if tint else severity) + " " * (8 - len(severity)) + name.ljust(_INDENT - 8)
    lines = [line for text in texts for line in textwrap.wrap(printable(text), room, break_on_hyphens=False)]
    for number, line in enumerate(lines or [""]):
        yield ((" " * _INDENT if number else head) + line).rstrip()
