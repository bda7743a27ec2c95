"""`truekeep transcripts sync`, `list`, `show`: the archive of sessions from the command line."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import local_minute, many, parse_since
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import in_workspace_if_any, since_option
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, MultilineText, style
from truekeep.text.unicode import clip
from truekeep.transcripts.service import parse_turns, shorten_names
from truekeep.workspace import producer

if TYPE_CHECKING:
    from truekeep.transcripts.importer import TranscriptImportReport
    from truekeep.transcripts.parser import Turn
    from truekeep.transcripts.service import Archive, Conversation
    from truekeep.transcripts.store import StoredSession
    from truekeep.workspace.workspace import Workspace

_HARNESSES = ("claude", "codex", "openclaw")
_WIDTH = 100


@click.group()
def transcripts() -> None:
    """Archive agent sessions and read them.

    Harnesses delete their session files, Claude Code after 30 days. The archive stores the dialogue of Claude Code,
    Codex and OpenClaw, with secrets masked, for as long as `[transcripts] keep_days` says.

    Example: truekeep transcripts list --since 8w
    """


@transcripts.command()
@click.option("--force", is_flag=True, help="Remove expired sessions even if that is most of the archive.")
@in_workspace_if_any
def sync(opened: Workspace | None, force: bool) -> None:
    """Add new session content to the archive.

    Reads only what was added since the last run; the harnesses' files are not changed. Made for timers and hooks. On a
    machine that is not the canonical host, the archive stays on that machine.

    Example: truekeep transcripts sync
    """
    run = opened.sessions.sync_transcripts if opened is not None else producer.sync_transcripts
    with ProgressDisplay("reading sessions") as display:
        done = run(force=force, progress=display.count)
    emit("transcripts-sync", done, _render_synced(done))


def _render_synced(done: TranscriptImportReport) -> Iterator[Shown]:
    new = f"{many(done.turns, 'new turn')} from {many(done.read, 'session')}" if done.turns else "nothing new"
    expired = f", {done.expired} past their age" if done.expired else ""
    yield (
        f"{style('kept', fg='green')} {many(done.sessions, 'session')} in {done.size / 1e6:.1f} MB: "
        f"{new}{expired} ({many(done.originals, 'original')}, {done.seconds:.1f} s)"
    )
    yield from (Aside(style(f"  {line}", fg="yellow")) for line in (*done.notes, *done.problems))


def _archive(opened: Workspace | None) -> Archive:
    """The workspace's archive; on a machine that only produces, its own."""
    return opened.sessions.transcripts() if opened is not None else producer.archive()


@transcripts.command("list")
@click.option("--harness", type=click.Choice(_HARNESSES), help="Only this harness.")
@click.option("--repo", "repository", metavar="NAME", default="", help="Only sessions in this repository or folder.")
@since_option("sessions")
@in_workspace_if_any
def list_(opened: Workspace | None, harness: str | None, repository: str, since: str) -> None:
    """List the archived sessions, newest first.

    Example: truekeep transcripts list --repo shop --since 8w
    """
    day = parse_since(since, datetime.now().astimezone().date())
    with ProgressDisplay("reading the archive"), _archive(opened) as archive:
        found = archive.sessions(harness=harness or "", repository=repository, since=day)
    nothing = (
        "no session matches; `truekeep transcripts list` shows all"
        if harness or repository or since
        else "no sessions archived yet; run `truekeep transcripts sync`"
    )
    emit("transcripts-list", {"sessions": found}, [_table(found)] if found else [nothing], is_long=True)


def _table(found: Sequence[StoredSession]) -> Table:
    short = shorten_names([kept.name for kept in found])
    rows = [
        [
            short[kept.name],
            f"{kept.moment.astimezone():%Y-%m-%d %H:%M}",
            kept.harness,
            kept.repository.rpartition("/")[2] or "-",
            str(kept.total),
            ("… " if kept.shared else "") + clip(kept.title, 80),
        ]
        for kept in found
    ]
    return Table(["session", "when", "harness", "repository", "turns", "first words"], rows, whole=(0, 1))


@transcripts.command()
@click.argument("session")
@click.option("--turns", metavar="A-B", default="", help="Only these turns: 3, 3-9, 20-, -5 (the first five).")
@in_workspace_if_any
def show(opened: Workspace | None, session: str, turns: str) -> None:
    """Print a session as a conversation.

    SESSION is a name from the list, the beginning of one, or a path cited by a search. Every turn shows its line in the
    original file.

    Example: truekeep transcripts show 5e551011 --turns 10-20
    """
    with ProgressDisplay("reading the session"), _archive(opened) as archive:
        told = archive.conversation(session)
    first, last = parse_turns(turns, len(told.turns))
    chosen = list(enumerate(told.turns, 1))[first - 1 : last]
    dialogue = [
        {"turn": number, "role": turn.role, "at": turn.at, "line": turn.line, "text": turn.text}
        for number, turn in chosen
    ]
    data = {**to_json(told.kept), "forked_from": told.parent, "dialogue": dialogue}
    emit("transcripts-show", data, _render_conversation(told, chosen), is_long=True)


def _render_conversation(told: Conversation, chosen: Sequence[tuple[int, Turn]]) -> Iterator[Shown]:
    kept = told.kept
    place = ", ".join(part for part in (kept.repository or kept.cwd, kept.branch) if part)
    yield style(f"{kept.harness}  {place}", bold=True)
    last = f"{kept.moment.astimezone():%Y-%m-%d %H:%M}"
    yield style(f"session {kept.name}, {many(kept.total, 'turn')}, last {last}", dim=True)
    yield style(f"original {kept.pointer}", dim=True)
    for number, turn in chosen:
        if told.parent and number == told.shared + 1:
            yield ""
            yield style(f"— shared with {told.parent} up to here —", dim=True)
        who = style("User", fg="cyan", bold=True) if turn.role == "user" else style("Assistant", fg="green")
        parts = (f"[{number}]", local_minute(turn.at), f"line {turn.line}")
        yield ""
        yield f"{who} {style('  '.join(filter(None, parts)), dim=True)}"
        yield from (MultilineText(_wrapped(line) if line.strip() else "") for line in turn.text.split("\n"))


def _wrapped(line: str) -> str:
    """A line as a terminal shows it best; what is piped on stays as it is, and so does indented text."""
    if len(line) <= _WIDTH or not sys.stdout.isatty() or line.startswith(("    ", "\t", "```", "|")):
        return line
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
