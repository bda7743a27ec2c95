"""`truekeep transcripts sync`, `list`, `show`: the archive of sessions from the command line."""

from __future__ import annotations

import re
import sys
import textwrap
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many, parse_since
from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import json_option, print_json, print_table, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, echo_text, style
from truekeep.text.unicode import clip
from truekeep.workspace import producer

if TYPE_CHECKING:
    from truekeep.transcripts.importer import TranscriptImportReport
    from truekeep.transcripts.parser import Turn
    from truekeep.transcripts.service import Archive, Conversation
    from truekeep.transcripts.store import StoredSession

_HARNESSES = ("claude", "codex", "openclaw")
_SHORTEST = 8  # characters of a name in a list
_TURNS = re.compile(r"(\d{1,9})?(-)?(\d{1,9})?")
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
@json_option
@workspace_option
@click.pass_context
def sync(ctx: click.Context, force: bool, as_json: bool, workspace: str | None) -> None:
    """Add new session content to the archive.

    Reads only what was added since the last run; the harnesses' files are not changed. Made for timers and hooks. On a
    machine that is not the canonical host, the archive stays on that machine.

    Example: truekeep transcripts sync
    """
    opened = workspace_if_any(ctx, workspace)
    sync_ = opened.sessions.sync_transcripts if opened is not None else producer.sync_transcripts
    with ProgressDisplay("reading sessions") as display:
        done = sync_(force=force, progress=display.count)
    if as_json:
        print_json("transcripts-sync", done._asdict())
        return
    _show_synced(done)


def _archive(ctx: click.Context, workspace: str | None) -> Archive:
    """The workspace's archive; on a machine that only produces, its own."""
    opened = workspace_if_any(ctx, workspace)
    return opened.sessions.transcripts() if opened is not None else producer.archive()


def _show_synced(done: TranscriptImportReport) -> None:
    new = f"{many(done.turns, 'new turn')} from {many(done.read, 'session')}" if done.turns else "nothing new"
    expired = f", {done.expired} past their age" if done.expired else ""
    echo(
        f"{style('kept', fg='green')} {many(done.sessions, 'session')} in {done.size / 1e6:.1f} MB: "
        f"{new}{expired} ({many(done.originals, 'original')}, {done.seconds:.1f} s)"
    )
    for line in (*done.notes, *done.problems):
        echo(style(f"  {line}", fg="yellow"), err=True)


@transcripts.command("list")
@click.option("--harness", type=click.Choice(_HARNESSES), help="Only this harness.")
@click.option("--repo", "repository", metavar="NAME", default="", help="Only sessions in this repository or folder.")
@click.option("--since", metavar="DAY", help="Only sessions from this day on: 2026-03-01, or 30d, 8w, 6m, 1y ago.")
@json_option
@workspace_option
@click.pass_context
def list_(
    ctx: click.Context, harness: str | None, repository: str, since: str | None, as_json: bool, workspace: str | None
) -> None:
    """List the archived sessions, newest first.

    Example: truekeep transcripts list --repo shop --since 8w
    """
    day = parse_since(since or "", datetime.now().astimezone().date())
    with _archive(ctx, workspace) as archive:
        found = archive.sessions(harness=harness or "", repository=repository, since=day)
    if as_json:
        print_json("transcripts-list", {"sessions": [shown_session(kept) for kept in found]})
        return
    if not found:
        asked = harness or repository or since
        told = "no session in the archive is like that; `truekeep transcripts list` shows all"
        echo(told if asked else "no sessions archived yet; run `truekeep transcripts sync`")
        return
    short = _shorten([kept.name for kept in found])
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
    print_table(["session", "when", "harness", "repository", "turns", "first words"], rows)


def shown_session(kept: StoredSession) -> dict[str, Any]:
    """A session as data."""
    return {
        "session": kept.name,
        "harness": kept.harness,
        "repository": kept.repository,
        "cwd": kept.cwd,
        "branch": kept.branch,
        "machine": kept.machine,
        "started_at": kept.started_at,
        "last_at": kept.last_at,
        "kept_at": kept.kept_at,
        "turns": kept.total,
        "shared": kept.shared,
        "first_words": kept.title,
        "path": kept.shown,
        "original": kept.pointer,
    }


def _shorten(names: list[str]) -> dict[str, str]:
    """Each name as short as it can be and still mean only one of them."""
    ordered = sorted(names)
    short: dict[str, str] = {}
    for at, name in enumerate(ordered):
        near = [ordered[other] for other in (at - 1, at + 1) if 0 <= other < len(ordered)]
        shared = max((_alike(name, other) for other in near), default=0)
        short[name] = name[: max(_SHORTEST, shared + 1)]
    return short


def _alike(one: str, other: str) -> int:
    for at, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return at
    return min(len(one), len(other))


@transcripts.command()
@click.argument("session")
@click.option("--turns", metavar="A-B", help="Only these turns: 3, 3-9, 20-, -5 (the first five).")
@json_option
@workspace_option
@click.pass_context
def show(ctx: click.Context, session: str, turns: str | None, as_json: bool, workspace: str | None) -> None:
    """Print a session as a conversation.

    SESSION is a name from the list, the beginning of one, or a path cited by a search. Every turn shows its line in the
    original file.

    Example: truekeep transcripts show 5e551011 --turns 10-20
    """
    with _archive(ctx, workspace) as archive:
        told = archive.conversation(session)
    first, last = _parse_turns(turns, len(told.turns))
    chosen = list(enumerate(told.turns, 1))[first - 1 : last]
    if as_json:
        print_json(
            "transcripts-show",
            {
                **shown_session(told.kept),
                "forked_from": told.parent,
                "dialogue": [
                    {"turn": number, "role": turn.role, "at": turn.at, "line": turn.line, "text": turn.text}
                    for number, turn in chosen
                ],
            },
        )
        return
    _show_head(told)
    for number, turn in chosen:
        if told.parent and number == told.shared + 1:
            echo()
            echo(style(f"— shared with {told.parent} up to here —", dim=True))
        _show_turn(number, turn)


def _parse_turns(text: str | None, total: int) -> tuple[int, int]:
    if not text:
        return 1, total
    match = _TURNS.fullmatch(text.strip())
    if match is None or not (match[1] or match[3]):
        raise BadInput(f"--turns {text[:40]} is not a range", hint="3, 3-9, 20- or -5")
    first = int(match[1] or 1)
    last = int(match[3]) if match[3] else total if match[2] else first
    if not 1 <= first <= last or first > total:
        raise BadInput(f"no turn {text[:40]}", hint=f"it has turns 1 to {total}")
    return first, min(last, total)


def _show_head(told: Conversation) -> None:
    kept = told.kept
    place = ", ".join(part for part in (kept.repository or kept.cwd, kept.branch) if part)
    last = f"{kept.moment.astimezone():%Y-%m-%d %H:%M}"
    echo(style(f"{kept.harness}  {place}", bold=True))
    echo(style(f"session {kept.name}, {many(kept.total, 'turn')}, last {last}", dim=True))
    echo(style(f"original {kept.pointer}", dim=True))


def _show_turn(number: int, turn: Turn) -> None:
    who = style("User", fg="cyan", bold=True) if turn.role == "user" else style("Assistant", fg="green")
    when = _shown_moment(turn.at)
    echo()
    echo(f"{who} {style('  '.join((f'[{number}]', *when, f'line {turn.line}')), dim=True)}")
    for line in turn.text.split("\n"):
        echo_text(_wrapped(line) if line.strip() else "")


def _shown_moment(at: str) -> tuple[str, ...]:
    try:
        return (f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}",)
    except ValueError:
        return ()


def _wrapped(line: str) -> str:
    """A line as a terminal shows it best; what is piped on stays as it is, and so does indented text."""
    if len(line) <= _WIDTH or not sys.stdout.isatty() or line.startswith(("    ", "\t", "```", "|")):
        return line
    return textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
