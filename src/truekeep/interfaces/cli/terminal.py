"""Text on a terminal. All text that commands print leaves through this module, which makes it safe to show.

`echo` escapes control and hidden characters. Colours come from `style` and survive; escape sequences in stored text
do not. Loaded by every command, so it imports little.
"""

from __future__ import annotations

import os
from typing import Any

import click

from truekeep.text.unicode import printable

_STYLE_MARK = f"\ufdd0{os.urandom(8).hex()}"  # stands for ESC in styled text; random, so stored text cannot contain it


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


def print_note(line: str) -> None:
    echo(style("note: ", fg="yellow") + line, err=True)


def print_warning(line: str) -> None:
    echo(style("warning: ", fg="yellow") + line, err=True)


def ask_yes_no(question: str, *, default: bool = False, abort: bool = False) -> bool:
    return click.confirm(for_terminal(question), default=default, abort=abort)


def prompt(question: str, **options: Any) -> Any:
    """Ask for a line of text. Takes the options of click.prompt."""
    return click.prompt(for_terminal(question), **options)


def for_terminal(line: str, *, tabs: bool = False) -> str:
    """A line with styles as a terminal takes it, and everything else escaped."""
    first, *styled = line.split(_STYLE_MARK)
    pieces = [printable(first, newlines=tabs)]
    for piece in styled:
        code, _, text = piece.partition("m")
        pieces.append(f"\x1b{code}m{printable(text, newlines=tabs)}")
    return "".join(pieces)
