"""`truekeep wake` and `truekeep checkpoint`: the start and the end of a session."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.git import find_top
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, workspace_option
from truekeep.interfaces.cli.terminal import echo, echo_text, print_note

if TYPE_CHECKING:
    from truekeep.sessions.checkpoint import Checkpoint
    from truekeep.workspace.checkpointing import CheckpointResult

HARNESSES = ("claude", "codex", "openclaw")
MOST_BYTES = 4_000_000  # on standard input
repo_option = click.option(
    "--repo",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Repository this is about. [default: the current one]",
)
writer_option = click.option("--writer", metavar="NAME", default="", help="Author: claude, codex, or a person's name.")


class TextCommand(click.Command):
    """A command whose words are a text: an item of a list, which begins with a dash and a space, is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A NUL cannot be in an argument, so it can hide the dash from the parser.
        hidden = ["\0" + arg if re.match(r"-\s", arg) else arg for arg in args]
        try:
            rest = super().parse_args(ctx, hidden)
        except click.NoSuchOption as error:
            message = f"{error.format_message()} A text that begins with a dash goes behind `--`."
            raise click.UsageError(message, ctx) from error
        for name, value in ctx.params.items():
            if isinstance(value, str):
                ctx.params[name] = value.removeprefix("\0")
            elif isinstance(value, tuple):
                ctx.params[name] = tuple(item.removeprefix("\0") for item in value)
        return rest


def _root(repo: str | None) -> Path | None:
    if repo is not None and not Path(repo).is_dir():
        raise BadInput(f"{repo} is not a folder", hint="name the repository's root with --repo")
    here = Path(repo) if repo is not None else Path.cwd()
    return find_top(here) or (here if repo is not None else None)


@click.command()
@click.option("--budget", type=click.IntRange(200, 200_000), metavar="TOKENS", help="Maximum size of the output.")
@click.option("--for", "harness", type=click.Choice(HARNESSES), default=None, help="Stay within this harness's limits.")
@repo_option
@json_option
@workspace_option
@click.pass_context
def wake(
    ctx: click.Context, budget: int | None, harness: str | None, repo: str | None, as_json: bool, workspace: str | None
) -> None:
    """Print the context an agent needs at the start of a session.

    Handover, curated memory, heartbeat, the last two days, this project's file, the corrections and policies that apply
    to it, and the cards of this repository with their age and verification status: the most valuable that fits. The
    same memory on the same day gives identical output.

    Example: truekeep wake --for claude
    """
    with open_workspace(ctx, workspace) as opened:
        brief = opened.sessions.wake(
            _root(repo), tokens=budget, harness=harness or "", budget=opened.config.verify.budget_ms / 1000
        )
    if as_json:
        shown = [{"title": title, "pieces": count} for title, count in brief.shown]
        left = [{"title": title, "pieces": count, "command": more} for title, count, more in brief.left_out]
        print_json("wake", {"text": brief.text, "characters": len(brief.text), "shown": shown, "left_out": left})
    else:
        echo_text(brief.text)


@click.command()
@click.argument("source", type=click.Choice(["-"]), metavar="[-]", required=False)
@click.option("--last-action", metavar="TEXT", default="", help="The last thing done.")
@click.option("--system-state", metavar="TEXT", default="", help="Current state of the system.")
@click.option("--scope-rules", metavar="TEXT", default="", help="What is in scope; stays until replaced.")
@click.option("--dev-model", metavar="TEXT", default="", help="How the work is done; stays until replaced.")
@click.option("--next-action", "next_actions", metavar="TEXT", multiple=True, help="Next step; `none` clears it.")
@click.option("--summary", metavar="TEXT", default="", help="Summary of the session, for the daily log.")
@click.option("--now", metavar="TEXT", default="", help="Heartbeat: current work.")
@click.option("--next", "next_", metavar="TEXT", default="", help="Heartbeat: next step.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="Heartbeat: blocker.")
@click.option("--decision", "decisions", metavar="TEXT", multiple=True, help="Decision, for the monthly file.")
@click.option("--change", "changes", metavar="TEXT", multiple=True, help="Change of configuration or routing.")
@click.option("--project", "project", metavar="TEXT", default="", help="Status of this repository's project.")
@click.option("--subagent", "subagents", nargs=2, metavar="LABEL TEXT", multiple=True, help="Result of a sub-agent.")
@repo_option
@writer_option
@json_option
@workspace_option
@click.pass_context
def checkpoint(
    ctx: click.Context,
    /,
    source: str | None,
    repo: str | None,
    writer: str,
    as_json: bool,
    workspace: str | None,
    **given: Any,
) -> None:
    """Save what a session did.

    Reads options, or JSON or Markdown from standard input; with `-`, both combined. Each part goes to its file:
    last_action, system_state, scope_rules, dev_model and next_actions to HANDOVER.md; summary to the daily log; now,
    next and blockers to HEARTBEAT.md; decisions, changes, project and subagents to their own files. On a machine that
    is not the canonical host they become handoffs.

    Example: truekeep checkpoint --last-action 'Split the parser' --next-action 'Measure it' --summary 'Two halves now.'
    """
    from truekeep.sessions.checkpoint import from_values, merged, parse_checkpoint

    values = {
        "next" if name == "next_" else name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value
    }
    results: dict[str, str] = {}
    for label, result in values.pop("subagents", ()):
        results[label] = f"{results[label]}\n\n{result}" if label in results else result
    if results:
        values["subagents"] = results
    if values and source is None:
        asked = from_values(values)
        if _has_input():
            print_note("standard input was ignored; add `-` to read it")
    else:
        read = parse_checkpoint(_stdin())
        asked = merged(read, from_values(values)) if values else read
    show_saved(save_checkpoint(ctx, workspace, asked, repo, writer), as_json, "checkpoint")


def save_checkpoint(
    ctx: click.Context, workspace: str | None, asked: Checkpoint, repo: str | None, writer: str
) -> CheckpointResult:
    """Into memory where it is, else as handoffs in the repository's inbox."""
    from truekeep.interfaces.cli.handoff import running_harness, workspace_if_any

    root = _root(repo)
    writer = writer or running_harness()
    opened = workspace_if_any(ctx, workspace)
    if opened is not None:
        return opened.sessions.checkpoint(asked, root=root, writer=writer)
    from truekeep.workspace import producer

    if root is None:
        raise BadSetup(
            "no workspace on this machine, and this folder is not a repository",
            hint="run it in a repository, or give one with --repo",
        )
    return producer.leave(asked, root, writer)


def _stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("No text given: pass it as arguments, options or standard input.")
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadInput("standard input is larger than 4 MB", hint="shorten it; nothing was written")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("standard input is not UTF-8 text", hint="send it as UTF-8; nothing was written") from error


def _has_input() -> bool:
    """True if standard input has data now. Reads nothing: the data may be for another program."""
    import fcntl
    import termios

    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)):
            return False
        return any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))  # how many bytes can be read
    except (AttributeError, OSError, ValueError):
        return False  # there is none


def show_saved(left: CheckpointResult, as_json: bool, kind: str) -> None:
    if as_json:
        print_json(kind, {"paths": list(left.paths), "handoffs": list(left.handoffs), "notes": list(left.notes)})
        return
    for path in left.paths:
        echo(f"wrote {path}")
    for path in left.handoffs:
        echo(f"left {path} for the canonical host")
    for note in left.notes:
        print_note(note)


def text_or_stdin(text: tuple[str, ...]) -> str:
    """The text of a command: its words, or standard input."""
    said = " ".join(text) if text and text != ("-",) else _stdin()
    if not said.strip():
        raise click.UsageError("No text given: pass it as arguments or on standard input.")
    return said
