"""Text on a terminal. All text that commands print leaves through this module, which makes it safe to show.

`echo` escapes control and hidden characters. Colours come from `style` and survive; escape sequences in stored text
do not. Loaded by every command, so it imports little.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.core.errors import TruekeepError
    from truekeep.core.model import Finding

_STYLE_MARK = f"\ufdd0{os.urandom(8).hex()}"  # stands for ESC in styled text; random, so stored text cannot contain it
_DIFFERENCE_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def style(text: str, **styles: Any) -> str:
    """Text in a colour, bold or dim, for `echo`. Takes the arguments of click.style."""
    begin = click.style("", reset=False, **styles).replace("\x1b", _STYLE_MARK)
    return f"{begin}{text}{_STYLE_MARK}[0m" if begin else text


def echo(line: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print one line. Control and hidden characters, line breaks too, are printed as escapes."""
    click.echo(for_terminal(line), err=err, nl=nl)


def echo_text(text: str, *, err: bool = False) -> None:
    """Print text of several lines; its line breaks and tabs stay."""
    for line in text.removesuffix("\n").split("\n"):
        click.echo(for_terminal(line, tabs=True), err=err)


class Aside(NamedTuple):
    """A line for standard error, among the lines that a command shows."""

    line: str


class MultilineText(NamedTuple):
    """A text whose line breaks and tabs stay, among the lines that a command shows."""

    text: str


def note(line: str) -> Aside:
    return Aside(style("note: ", fg="yellow") + line)


def warning(line: str) -> Aside:
    return Aside(style("warning: ", fg="yellow") + line)


def print_note(line: str) -> None:
    echo(note(line).line, err=True)


def print_warning(line: str) -> None:
    echo(warning(line).line, err=True)


def can_ask() -> bool:
    """True if a person is at the terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask_yes_no(question: str, *, default: bool = False, abort: bool = False) -> bool:
    return click.confirm(for_terminal(question), default=default, abort=abort)


def prompt(question: str, **options: Any) -> Any:
    """Ask for a line of text. Takes the options of click.prompt."""
    return click.prompt(for_terminal(question), **options)


def print_error(error: TruekeepError) -> None:
    """Print an error that does not end the command."""
    for line in render_error(error):
        echo(line, err=True)


def render_error(error: TruekeepError) -> Iterator[str]:
    yield from render_difference(error.details.get("difference", ()))
    yield style("truekeep: ", fg="red") + error.message
    for line in error.details.get("story", ()):
        yield f"  {line}"
    yield from render_findings(getattr(error, "findings", ()), indent="  ")
    if error.hint:
        yield f"  {error.hint}"


def render_findings(findings: Sequence[Finding], *, indent: str = "") -> Iterator[str]:
    for finding in findings:
        place = f"line {finding.line}: " if finding.line else ""
        yield f"{indent}{place}{style(finding.code, fg='yellow')}: {finding.message}"


def render_difference(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield style(line, fg=_DIFFERENCE_COLOURS.get(line[:1]))


def for_terminal(line: str, *, tabs: bool = False) -> str:
    """A line with styles as a terminal takes it, and everything else escaped."""
    first, *styled = line.split(_STYLE_MARK)
    pieces = [printable(first, newlines=tabs)]
    for piece in styled:
        code, _, text = piece.partition("m")
        pieces.append(f"\x1b{code}m{printable(text, newlines=tabs)}")
    return "".join(pieces)
