"""truekeep handoff new, lint, list."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, InvalidHandoff
from truekeep.core.machine import running_harness
from truekeep.core.model import HANDOFF_TYPES
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files
from truekeep.interfaces.cli.options import (
    in_workspace_if_any,
    read_named,
    repo_option,
    repos_option,
    workspace_if_any,
)
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, can_ask, style, warning
from truekeep.workspace import handoff_files
from truekeep.workspace.handoff_files import LintInput, describe_unscanned

if TYPE_CHECKING:
    from truekeep.workspace.handoff_files import InboxListing, LintedHandoff, WrittenHandoff
    from truekeep.workspace.workspace import Workspace

__all__ = ["handoff", "workspace_if_any"]
EXIT_PROBLEMS = 1


@click.group()
def handoff() -> None:
    """Write, check and list handoffs.

    A handoff is a Markdown file of proposed durable knowledge that an agent leaves in its repository's inbox.

    Example: truekeep handoff list
    """


@handoff.command()
@click.option("--title", help="Short, specific title. Without it, a complete handoff is read from standard input.")
@click.option("--type", "type_", type=click.Choice(HANDOFF_TYPES), default="project-context", show_default=True)
@click.option("--summary", default="", help="Two to four sentences: what happened and why it matters.")
@click.option("--fact", "facts", multiple=True, help="Durable fact; may be repeated.")
@click.option("--evidence", multiple=True, help="File, command or error string; may be repeated.")
@click.option(
    "--card", metavar="NAME", shell_complete=complete_cards, help="Card to create. [default: REPOSITORY-TOPIC.md]"
)
@click.option("--update", is_flag=True, help="Update the existing card.")
@click.option("--document", metavar="PATH", help="Append to this document instead of creating a card.")
@click.option("--topic", help="Topic of the card. [default: the title]")
@click.option("--category", help="Category of the card. [default: the type]")
@click.option("--tag", "tags", multiple=True, help="Tag of the card; may be repeated.")
@click.option("--content", help="Exact content to file; - reads standard input. [default: summary and facts]")
@click.option(
    "--writer", metavar="NAME", help="Inbox to use: claude, codex or a configured one. [default: the running harness]"
)
@repo_option
@in_workspace_if_any
def new(opened: Workspace | None, writer: str | None, repo: str | None, **given: Any) -> None:
    """Write a handoff to the current repository's inbox.

    The handoff is checked first, exactly as ingest will check it; one that could not be filed is refused with every
    reason.

    Example: truekeep handoff new --title 'Staging sits behind a proxy' --fact 'Staging answers on port 8443 only'
    """
    writer = writer or running_harness() or "claude"
    handoff_files.check_writer(opened, writer)
    root = handoff_files.repository_of(Path(repo or "."))
    title = given["title"] or ""
    if given["content"] == "-":
        given["content"] = _read_stdin()
    text = handoff_files.compose(opened, root, given) if title else _read_stdin()
    try:
        written = handoff_files.write_handoff(opened, text, writer=writer, root=root, title=title)
    except InvalidHandoff as error:
        if title and not (given["content"] or given["summary"] or given["facts"]):
            error.hint = "say what is to be known with --summary, --fact or --content"
        raise
    emit("handoff-new", written, _render_written(opened, written))


def _render_written(opened: Workspace | None, written: WrittenHandoff) -> Iterator[Shown]:
    decision = written.decision
    yield f"{style('handed in', fg='green')} {written.path}"
    if opened is not None and not written.is_scanned:
        yield warning(describe_unscanned(opened, written.root))
    elif decision.held_up:
        yield warning(decision.promise)
    else:
        yield f"  {decision.promise}"
    yield from (f"  hint {finding.code}: {finding.message}" for finding in written.hints)


def _read_stdin() -> str:
    if can_ask():
        raise BadInput("no --title given, and standard input is empty", hint="`truekeep handoff new --help`")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("standard input is not UTF-8 text", hint="send the handoff as UTF-8") from error


@handoff.command()
@click.argument("files", nargs=-1, metavar="[FILE]...", shell_complete=complete_files)
@click.option("--codes", is_flag=True, help="List every code, its meaning and its effect.")
@in_workspace_if_any
def lint(opened: Workspace | None, files: tuple[str, ...], codes: bool) -> int:
    """Check handoffs exactly as ingest will.

    Without FILE, checks everything pending in the current repository; - is standard input. All problems are shown at
    once, each with its line and code. Hints do not block filing. Exit 1 if a handoff would not be filed.

    Example: truekeep handoff lint .claude/memory-handoffs/*.md
    """
    if codes:
        known = handoff_files.list_codes(opened)
        rows = [[item.code, item.policy + " (fixed)" * item.binding, item.meaning] for item in known]
        emit("handoff-codes", {"codes": known}, [Table(["code", "leads to", "meaning"], rows)], is_long=True)
        return 0
    inputs = [_lint_input(file) for file in files or handoff_files.waiting_files(opened)]
    with ProgressDisplay("checking handoffs"):
        linted = handoff_files.lint_handoffs(opened, inputs)
    is_well = all(item.ok for item in linted)
    roots = [root for root in dict.fromkeys(item.root for item in inputs) if root]
    emit("handoff-lint", {"ok": is_well, "handoffs": linted}, _render_linted(opened, linted, roots))
    return 0 if is_well else EXIT_PROBLEMS


def _lint_input(file: str) -> LintInput:
    if file == "-":
        name = f"{datetime.now().astimezone():%Y-%m-%d-%H%M}-stdin.md"
        return LintInput("standard input", name, sys.stdin.buffer.read())
    return handoff_files.lint_input(file, read_named)


def _render_linted(opened: Workspace | None, linted: Sequence[LintedHandoff], roots: Sequence[Path]) -> Iterator[Shown]:
    for item in linted:
        for finding in item.findings:
            word = style("problem", fg="red") if finding in item.problems else style("hint", fg="yellow")
            place = f":{finding.line}" if finding.line else ""
            yield f"{item.file}{place}: {word} {finding.code}: {finding.message}"
        yield f"{item.file}: {style('ok', fg='green') + ', ' if item.ok else ''}{item.promise}"
    if not linted:
        yield "no pending handoffs here"
    for root in roots:
        if opened is not None and handoff_files.is_unscanned(opened, root):
            yield warning(describe_unscanned(opened, root))
    if opened is None and linted:
        yield Aside("(no workspace on this machine, so existing cards cannot be checked)")


@handoff.command("list")
@repos_option("Only this repository; may be repeated.")
@in_workspace_if_any
def list_(opened: Workspace | None, repositories: tuple[str, ...]) -> None:
    """List pending handoffs, where they are and how old.

    Looks in the inboxes of every configured repository; on a machine without a workspace, in those of the current one.

    Example: truekeep handoff list
    """
    listing = handoff_files.list_inboxes(opened, repositories)
    emit("handoff-list", listing, _render_listing(listing))


def _render_listing(listing: InboxListing) -> Iterator[Shown]:
    if listing.waiting:
        rows = [
            [_shown_hours(item.waiting_hours), item.writer, Path(item.repository).name, item.name]
            for item in listing.waiting
        ]
        yield Table(["waits", "writer", "repository", "handoff"], rows)
    yield f"{len(listing.waiting)} waiting in {many(len(listing.inboxes), 'inbox')}"
    yield from map(warning, listing.warnings)


def _shown_hours(hours: float) -> str:
    if hours < 1:
        return f"{int(hours * 60)} min"
    return f"{int(hours)} h" if hours < 48 else f"{int(hours / 24)} d"
