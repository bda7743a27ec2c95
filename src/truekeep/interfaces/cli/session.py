"""`truekeep wake` and `truekeep checkpoint`: the start and the end of a session."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import sys
import termios
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.errors import BadInput
from truekeep.core.machine import running_harness
from truekeep.interfaces.cli.options import (
    in_workspace,
    in_workspace_if_any,
    repo_option,
    repository_root,
    writer_option,
)
from truekeep.interfaces.cli.output import emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import MultilineText, can_ask, note, print_note

if TYPE_CHECKING:
    from truekeep.sessions.checkpoint import Checkpoint
    from truekeep.workspace.checkpointing import CheckpointResult
    from truekeep.workspace.workspace import Workspace

HARNESSES = ("claude", "codex", "openclaw")
MAX_BYTES = 4_000_000  # on standard input


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


@click.command()
@click.option("--budget", type=click.IntRange(200, 200_000), metavar="TOKENS", help="Maximum size of the output.")
@click.option("--for", "harness", type=click.Choice(HARNESSES), default=None, help="Stay within this harness's limits.")
@click.option("--delegate", "is_delegating", is_flag=True, help="Also what AGENTS.md says about delegating work.")
@repo_option
@in_workspace
def wake(opened: Workspace, budget: int | None, harness: str | None, is_delegating: bool, repo: str | None) -> None:
    """Print the context an agent needs at the start of a session.

    Handover, user, curated memory, heartbeat, the last two days, this project's file, rules, the corrections and
    policies that apply to it, tools, and the cards of this repository with their age and verification status: the most
    valuable that fits. The same memory on the same day gives identical output.

    Example: truekeep wake --for claude
    """
    seconds = opened.config.verify.budget_ms / 1000
    with ProgressDisplay("reading memory"):
        brief = opened.sessions.wake(
            repository_root(repo), tokens=budget, harness=harness or "", budget=seconds, is_delegating=is_delegating
        )
    shown = [{"title": title, "pieces": count} for title, count in brief.shown]
    left = [{"title": title, "pieces": count, "command": more} for title, count, more in brief.left_out]
    data = {"text": brief.text, "characters": len(brief.text), "shown": shown, "left_out": left}
    emit("wake", data, [MultilineText(brief.text)])


@click.command()
@click.argument("source", type=click.Choice(["-"]), metavar="[-]", required=False)
@click.option("--last-action", metavar="TEXT", default="", help="The last thing done.")
@click.option("--system-state", metavar="TEXT", default="", help="Current state of the system.")
@click.option("--scope-rules", metavar="TEXT", default="", help="What is in scope; stays until replaced.")
@click.option("--dev-model", metavar="TEXT", default="", help="How the work is done; stays until replaced.")
@click.option("--next-action", "next_actions", metavar="TEXT", multiple=True, help="Next step; `none` clears it.")
@click.option("--summary", metavar="TEXT", default="", help="Summary of the session, for the daily log.")
@click.option("--now", metavar="TEXT", default="", help="Heartbeat: current work.")
@click.option("--next", "next", metavar="TEXT", default="", help="Heartbeat: next step.")
@click.option("--blocker", "blockers", metavar="TEXT", multiple=True, help="Heartbeat: blocker.")
@click.option(
    "--observe", "observations", nargs=3, metavar="TYPE IMPORTANCE TEXT", multiple=True,
    help="Observation for the daily log, such as: lesson 0.7 TEXT.",
)  # fmt: skip
@click.option("--context", "active_context", metavar="TEXT", default="", help="What the next session needs to know.")
@click.option("--decision", "decisions", metavar="TEXT", multiple=True, help="Decision, for the monthly file.")
@click.option("--change", "changes", metavar="TEXT", multiple=True, help="Change of configuration or routing.")
@click.option("--project", "project", metavar="TEXT", default="", help="Status of this repository's project.")
@click.option("--subagent", "subagents", nargs=2, metavar="LABEL TEXT", multiple=True, help="Result of a sub-agent.")
@repo_option
@writer_option
@in_workspace_if_any
def checkpoint(opened: Workspace | None, source: str | None, repo: str | None, writer: str, **given: Any) -> None:
    """Save what a session did.

    Reads options, or JSON or Markdown from standard input; with `-`, both combined. Each part goes to its file:
    last_action, system_state, scope_rules, dev_model and next_actions to this repository's part of HANDOVER.md; summary
    and observations to the daily log; now, next and blockers to HEARTBEAT.md; context, else what the handover says, to
    memory/active-context.md; decisions, changes, project and subagents to their own files. On a machine that is not the
    canonical host they become handoffs.

    Observations of importance 0.8 or more stay, from 0.4 on they expire after 30 days, others after 7.

    Example: truekeep checkpoint --last-action 'Split the parser' --next-action 'Measure it' --summary 'Two halves now.'
    """
    from truekeep.sessions.checkpoint import (  # here: wake does not need it
        from_values,
        merged,
        parse_checkpoint,
        tagged,
    )

    values = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value}
    observed = [tagged(text, kind, weight) for kind, weight, text in values.pop("observations", ())]
    if observed:
        values["observations"] = observed
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
        read = parse_checkpoint(_read_stdin())
        asked = merged(read, from_values(values)) if values else read
    save_checkpoint(opened, asked, repo, writer, "checkpoint")


def save_checkpoint(opened: Workspace | None, asked: Checkpoint, repo: str | None, writer: str, kind: str) -> None:
    """Write it into memory where that is, else as handoffs into the repository's inbox; and show what was written."""
    from truekeep.workspace.producer import leave  # here: wake does not need it

    root, writer = repository_root(repo), writer or running_harness()
    if opened is not None:
        saved = opened.sessions.checkpoint(asked, root=root, writer=writer)
    else:
        saved = leave(asked, root, writer)
    emit(kind, saved, _render_saved(saved))


def _render_saved(saved: CheckpointResult) -> list[Any]:
    return [
        *(f"wrote {path}" for path in saved.paths),
        *(f"handed in {path} for the canonical host" for path in saved.handoffs),
        *map(note, saved.notes),
    ]


def text_or_stdin(text: tuple[str, ...]) -> str:
    """The text of a command: its words, or standard input."""
    said = " ".join(text) if text and text != ("-",) else _read_stdin()
    if not said.strip():
        raise click.UsageError("No text given: pass it as arguments or on standard input.")
    return said


def _read_stdin() -> str:
    if sys.stdin is None or can_ask():
        raise click.UsageError("No text given: pass it as arguments, options or standard input.")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadInput("standard input is larger than 4 MB", hint="shorten it; nothing was written")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("standard input is not UTF-8 text", hint="send it as UTF-8; nothing was written") from error


def _has_input() -> bool:
    """True if standard input has data now. Reads nothing: the data may be for another program."""
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)):
            return False
        return any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))  # how many bytes can be read
    except (AttributeError, OSError, ValueError):
        return False  # there is none
