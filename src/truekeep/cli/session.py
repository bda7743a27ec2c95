"""wake, checkpoint, log, heartbeat, decide, project: what an agent is told, and what it leaves."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.cli.show import json_option, open_workspace, print_json, workspace_option
from truekeep.errors import BadInput

if TYPE_CHECKING:
    from truekeep.checkpoint import Checkpoint
    from truekeep.leaving import Left

HARNESSES = ("claude", "codex", "openclaw")
MOST_BYTES = 4_000_000  # on standard input
_repo = click.option("--repo", metavar="DIR", help="The repository that this is about; the current one by default.")
_writer = click.option("--writer", metavar="NAME", default="", help="Who writes this: claude, codex, a person's name.")


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
    from truekeep.errors import BadInput
    from truekeep.repo import find_top

    if repo is not None and not Path(repo).is_dir():
        raise BadInput(f"{repo} is not a folder", hint="name the repository's root with --repo")
    here = Path(repo) if repo is not None else Path.cwd()
    return find_top(here) or (here if repo is not None else None)


@click.command()
@click.option("--budget", type=click.IntRange(200, 200_000), metavar="TOKENS", help="How much room there is.")
@click.option("--for", "harness", type=click.Choice(HARNESSES), default=None, help="Keep within this harness's limits.")
@_repo
@json_option
@workspace_option
@click.pass_context
def wake(
    ctx: click.Context, budget: int | None, harness: str | None, repo: str | None, as_json: bool, workspace: str | None
) -> None:
    """Print what an agent must know before it begins.

    Handover, curated memory, heartbeat, the last two days, this project's file, the corrections and policies that
    concern it, and the cards of this repository with their age and what code says to them: the most valuable that
    fits. The same memory on the same day gives the same bytes.

    Example: truekeep wake --for claude
    """
    with open_workspace(ctx, workspace) as opened:
        brief = opened.wake(
            _root(repo), tokens=budget, harness=harness or "", budget=opened.config.verify.budget_ms / 1000
        )
    if as_json:
        shown = [{"title": title, "pieces": count} for title, count in brief.shown]
        left = [{"title": title, "pieces": count, "command": more} for title, count, more in brief.left_out]
        print_json("wake", {"text": brief.text, "characters": len(brief.text), "shown": shown, "left_out": left})
    else:
        click.echo(brief.text, nl=False)


@click.command()
@click.argument("source", type=click.Choice(["-"]), metavar="[-]", required=False)
@click.option("--last-action", metavar="TEXT", default="", help="What was done last.")
@click.option("--system-state", metavar="TEXT", default="", help="How things stand.")
@click.option("--scope-rules", metavar="TEXT", default="", help="What is in scope; holds until it is said anew.")
@click.option("--dev-model", metavar="TEXT", default="", help="How the work is done; holds until it is said anew.")
@click.option("--next-action", "next_actions", metavar="TEXT", multiple=True, help="What comes next; `none` clears it.")
@click.option("--summary", metavar="TEXT", default="", help="What the session did: goes to the day's log.")
@click.option("--now", metavar="TEXT", default="", help="Heartbeat: what is being done.")
@click.option("--next", "next_", metavar="TEXT", default="", help="Heartbeat: what comes next.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="Heartbeat: what is in the way.")
@click.option("--decision", "decisions", metavar="TEXT", multiple=True, help="A decision, to the month's file.")
@click.option("--change", "changes", metavar="TEXT", multiple=True, help="A change of configuration or routing.")
@click.option("--project", "project", metavar="TEXT", default="", help="The status of this repository's project.")
@click.option("--subagent", "subagents", nargs=2, metavar="LABEL TEXT", multiple=True, help="A sub-agent's result.")
@_repo
@_writer
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
    """Leave what a session did, each part in its place.

    Takes options, or JSON or Markdown on standard input; with `-`, both as one. The parts: last_action, system_state,
    scope_rules, dev_model and next_actions make HANDOVER.md; summary goes to the day's log; now, next and blockers to
    HEARTBEAT.md; decisions, changes, project and subagents to their files. On a machine that is not canonical they
    become handoffs.

    Example: truekeep checkpoint --last-action 'Split the parser' --next-action 'Measure it' --summary 'Two halves now.'
    """
    from truekeep.checkpoint import from_values, merged, parse_checkpoint

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
            click.echo(click.style("note: ", fg="yellow") + "standard input was not read; `-` reads it too", err=True)
    else:
        read = parse_checkpoint(_stdin())
        asked = merged(read, from_values(values)) if values else read
    _show(_leave(ctx, workspace, asked, repo, writer), as_json, "checkpoint")


def _leave(ctx: click.Context, workspace: str | None, asked: Checkpoint, repo: str | None, writer: str) -> Left:
    """Into memory where it is, else as handoffs in the repository's inbox."""
    from truekeep.cli.handoff import running_harness, workspace_if_any

    root = _root(repo)
    writer = writer or running_harness()
    opened = workspace_if_any(ctx, workspace)
    if opened is not None:
        return opened.checkpoint(asked, root=root, writer=writer)
    from truekeep import producer
    from truekeep.errors import BadSetup

    if root is None:
        raise BadSetup(
            "there is no workspace on this machine, and this is no repository",
            hint="run it in a repository, or name one",
        )
    return producer.leave(asked, root, writer)


def _stdin() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("Say something: as words or options, or on standard input.")
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadInput("there is more than 4 MB on standard input", hint="say it in fewer words; nothing was written")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("standard input is not UTF-8 text", hint="send it as UTF-8; nothing was written") from error


def _has_input() -> bool:
    """Whether something waits on standard input right now. Nothing of it is taken: it may be another's."""
    import fcntl
    import stat
    import termios

    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)):
            return False
        return any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))  # how many bytes can be read
    except (AttributeError, OSError, ValueError):
        return False  # there is none


def _show(left: Left, as_json: bool, kind: str) -> None:
    if as_json:
        print_json(kind, {"paths": list(left.paths), "handoffs": list(left.handoffs), "notes": list(left.notes)})
        return
    for path in left.paths:
        click.echo(f"wrote {path}")
    for path in left.handoffs:
        click.echo(f"left {path} for the canonical host")
    for note in left.notes:
        click.echo(click.style("note: ", fg="yellow") + note, err=True)


def _words(text: tuple[str, ...]) -> str:
    """The text of a command: its words, or standard input."""
    said = " ".join(text) if text and text != ("-",) else _stdin()
    if not said.strip():
        raise click.UsageError("There is no text: give it as words, or on standard input.")
    return said


@click.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@_repo
@_writer
@json_option
@workspace_option
@click.pass_context
def log(
    ctx: click.Context, text: tuple[str, ...], repo: str | None, writer: str, as_json: bool, workspace: str | None
) -> None:
    """Append TEXT to today's log. What is there is never touched.

    Example: truekeep log 'The import took four hours; the index was missing.'
    """
    from truekeep.checkpoint import from_values

    asked = from_values({"summary": _words(text)})
    _show(_leave(ctx, workspace, asked, repo, writer), as_json, "log")


@click.command()
@click.option("--now", metavar="TEXT", default="", help="What is being done.")
@click.option("--next", "next_", metavar="TEXT", default="", help="What comes next.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="What is in the way; `none` clears it.")
@_repo
@_writer
@json_option
@workspace_option
@click.pass_context
def heartbeat(
    ctx: click.Context,
    now: str,
    next_: str,
    blockers: tuple[str, ...],
    repo: str | None,
    writer: str,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Show HEARTBEAT.md, or bring its sections up to date.

    Example: truekeep heartbeat --now 'Migrating carts' --blocker 'No access to staging'
    """
    from truekeep.checkpoint import from_values

    values = {"now": now, "next": next_, "blockers": list(blockers)}
    if any(values.values()):
        asked = from_values({name: value for name, value in values.items() if value})
        _show(_leave(ctx, workspace, asked, repo, writer), as_json, "heartbeat")
        return
    text = open_workspace(ctx, workspace).read("HEARTBEAT.md")
    if as_json:
        print_json("heartbeat", {"text": text})
    else:
        from truekeep.hidden import printable

        told = printable(text, newlines=True)
        click.echo(told or "There is no heartbeat yet: `truekeep heartbeat --now TEXT` begins one.")


@click.command(cls=TextCommand)
@click.argument("text", nargs=-1)
@_repo
@_writer
@json_option
@workspace_option
@click.pass_context
def decide(
    ctx: click.Context, text: tuple[str, ...], repo: str | None, writer: str, as_json: bool, workspace: str | None
) -> None:
    """Note a decision in the month's file.

    Example: truekeep decide 'Carts live in Redis, not in Postgres: they expire on their own there.'
    """
    from truekeep.checkpoint import from_values

    asked = from_values({"decisions": [_words(text)]})
    _show(_leave(ctx, workspace, asked, repo, writer), as_json, "decide")


@click.command(cls=TextCommand)
@click.argument("name")
@click.argument("status", nargs=-1)
@_repo
@_writer
@json_option
@workspace_option
@click.pass_context
def project(
    ctx: click.Context,
    name: str,
    status: tuple[str, ...],
    repo: str | None,
    writer: str,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Set the status of project NAME; `.` is the project of this repository.

    Example: truekeep project . 'Carts are migrated; invoices are next.'
    """
    from truekeep.checkpoint import from_values

    value = {"status": _words(status), "name": "" if name == "." else name}
    _show(_leave(ctx, workspace, from_values({"project": value}), repo, writer), as_json, "project")
