"""The man page, truekeep(1), from the same help that docs/commands.md is made of. Text → roff; run by `make docs`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import click

from truekeep import __version__
from truekeep.interfaces.cli.app import COMMANDS, cli

_FILES = (
    (
        "~/.openclaw/workspace",
        "The workspace, unless --workspace, TRUEKEEP_WORKSPACE or `truekeep init` names another.",
    ),
    ("~/.local/state/truekeep/workspace", "The path of the workspace that `truekeep init` made."),
    (".truekeep/config.toml", "In the workspace: its configuration, with all settings as comments."),
    (".truekeep/ledger.sqlite", "History: every change, from which handoff, with the bytes before."),
    ("~/.local/state/truekeep", "What belongs to this machine: routes, schedule, records of sessions, bugs.log."),
)
_ENVIRONMENT = (
    ("TRUEKEEP_WORKSPACE", "The workspace to use."),
    ("TRUEKEEP_MACHINE_ID", "The id of this machine, where /etc/machine-id is missing or shared."),
    ("TRUEKEEP_NO_BACKGROUND", "Set to 1: no indexing in the background."),
    ("NO_COLOR", "Set: no colours."),
)
_EXITS = (
    ("0", "Done, whether or not there was anything to do."),
    ("1", "Some of it failed, or with --exit-code: something needs a person."),
    ("2", "The command line was not understood."),
    ("3", "Bad input."),
    ("4", "This machine is not the canonical host."),
    ("5", "Another truekeep is writing."),
    ("6", "No workspace, broken configuration, or state of a newer truekeep."),
    ("7", "The disk said no, or the ledger is damaged."),
    ("8", "A person edited the file meanwhile; nothing was touched."),
    ("10, 11, 12", "With --exit-code: nothing to do; something waits for a person; something is gone or moved."),
    ("70", "A bug."),
    ("130", "Stopped with Ctrl-C."),
)
_ESCAPES = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "^": r"\(ha", "~": r"\(ti"}
_CODE = re.compile(r"`([^`]+)`")


def render_manual() -> str:
    parts = [
        f'.TH TRUEKEEP 1 "" "truekeep {__version__}" "User Commands"',
        ".SH NAME",
        r"truekeep \- agent memory that stays true",
        ".SH SYNOPSIS",
        r".B truekeep",
        r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...",
        ".SH DESCRIPTION",
    ]
    with click.Context(cli, info_name="truekeep", **cli.context_settings) as ctx:
        parts += _paragraphs(cli.help or "")
        parts += [".SH OPTIONS", *_options(cli, ctx), ".SH COMMANDS"]
        for name in COMMANDS:
            command = cli.get_command(ctx, name)
            assert command is not None
            parts += _command(command, f"truekeep {name}", ctx)
    for title, rows in (("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT), ("EXIT STATUS", _EXITS)):
        parts.append(f".SH {_quoted(title)}")
        for term, told in rows:
            parts += [".TP", rf"\fB{_escaped(term)}\fR", _marked(told)]
    return "\n".join(parts) + "\n"


def _command(command: click.Command, name: str, above: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=name.rpartition(" ")[2], parent=above) as ctx:
        usage = " ".join(command.collect_usage_pieces(ctx))
        yield f".SS {_quoted(_escaped(f'{name} {usage}'))}"
        yield from _paragraphs(command.help or "")
        yield from _options(command, ctx)
        if isinstance(command, click.Group):
            for child, found in command.commands.items():
                if not found.hidden:
                    yield from _command(found, f"{name} {child}", ctx)


def _paragraphs(text: str) -> Iterator[str]:
    is_first = True
    for block in re.split(r"\n\s*\n", text.strip()):
        if not is_first:
            yield ".PP"
        is_first = False
        kept = block.startswith("\b")
        lines = block.removeprefix("\b").strip("\n").split("\n")
        if kept:
            yield from (".nf", *map(_marked, lines), ".fi")
        else:
            yield _marked(" ".join(line.strip() for line in lines))


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    for parameter in command.get_params(ctx):
        row = parameter.get_help_record(ctx)
        if row is not None and row[1]:
            yield from (".TP", rf"\fB{_escaped(row[0])}\fR", _marked(" ".join(row[1].split())))


def _marked(text: str) -> str:
    """Text in short lines, with text in backticks in bold."""
    pieces = enumerate(_CODE.split(text))
    marked = "".join(rf"\fB{_escaped(piece)}\fR" if number % 2 else _escaped(piece) for number, piece in pieces)
    lines = textwrap.wrap(marked, 78, break_long_words=False, break_on_hyphens=False)
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in lines)


def _escaped(text: str) -> str:
    """Text as roff means it: a hyphen is one that can be copied into a shell."""
    return "".join(_ESCAPES.get(char, char if char.isascii() else rf"\[u{ord(char):04X}]") for char in text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', r"\(dq") + '"'
