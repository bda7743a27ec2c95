"""`truekeep index`, `truekeep search`, `truekeep get`: recall from the command line."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import shown_age
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, workspace_option
from truekeep.interfaces.fast_search import (
    LIMIT,
    MOST,
    RANKINGS,
    STANDINGS,
    STORES,
    SearchArguments,
    answer,
    shown_verdicts,
)
from truekeep.text.unicode import clip, printable

if TYPE_CHECKING:
    from truekeep.search.build import IndexReport
    from truekeep.search.excerpt import Excerpt

_BAR = 24


@click.command()
@click.option("--rebuild", is_flag=True, help="Rebuild the whole index; searches use the old one meanwhile.")
@click.option("--watch", is_flag=True, help="Keep running and index edits as they happen.")
@json_option
@workspace_option
@click.pass_context
def index(ctx: click.Context, rebuild: bool, watch: bool, as_json: bool, workspace: str | None) -> None:
    """Update the search index.

    Search does this by itself for recent changes. This command indexes everything, including transcripts; use it in
    timers and hooks.

    Example: truekeep index --watch
    """
    opened = open_workspace(ctx, workspace)
    if watch:
        _watch(opened, as_json=as_json)
        return
    done = opened.search.index(rebuild=rebuild, progress=_progress(as_json))
    _show_indexed(done, as_json=as_json)


def _watch(opened: Any, *, as_json: bool) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(done: IndexReport) -> None:
        _show_indexed(done, as_json=as_json)
        sys.stdout.flush()

    opened.watch(tell, stop=stop, warn=lambda what: click.echo(click.style(printable(what), fg="yellow"), err=True))


def _progress(as_json: bool) -> Callable[[str, int, int], None]:
    """A line that counts, for a person at a terminal; nothing for anyone else."""
    if as_json or not sys.stderr.isatty():
        return lambda *_: None

    def tell(what: str, at: int, total: int) -> None:
        filled = _BAR * at // max(1, total)
        end = "\r\x1b[K" if at >= total else ""
        click.echo(f"\r{what:11} {'█' * filled}{'░' * (_BAR - filled)} {at}/{total}{end}", nl=False, err=True)

    return tell


def _show_indexed(done: IndexReport, *, as_json: bool) -> None:
    if as_json:
        print_json("index", done._asdict())
        return
    changed = f"{done.changed} changed" if done.changed else "nothing changed"
    removed = f", {done.removed} gone" if done.removed else ""
    rebuilt = f", rebuilt because {done.rebuilt}" if done.rebuilt and done.rebuilt != "asked for" else ""
    meaning = f"meaning by {done.provider} {done.model}".rstrip() if done.provider != "none" else "words only"
    sessions = f" and {done.transcripts} transcripts" if done.transcripts else ""
    click.echo(
        f"{click.style('indexed', fg='green')} {done.files} files{sessions} in {done.chunks} chunks: "
        f"{changed}{removed}{rebuilt} ({done.seconds:.1f} s; {meaning})"
    )
    for note in done.notes:
        click.echo(click.style(f"  {printable(note)}", fg="yellow"), err=True)


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, MOST), default=LIMIT, show_default=True, help="Maximum number of hits."
)
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(STORES), help="Search only this store; may be repeated."
)
@click.option("--since", metavar="DAY", help="Only memory from this day on: 2026-03-01, or 30d, 8w, 6m, 1y ago.")
@click.option("--repo", "repository", metavar="NAME", default="", help="Only memory of this repository.")
@click.option("--verified", is_flag=True, help="Omit hits that the current code refutes.")
@click.option("--verdict", type=click.Choice(STANDINGS), default=None, help="Only hits with this verification verdict.")
@click.option("--explain", is_flag=True, help="Explain why each hit matched.")
@click.option("--ranking", type=click.Choice(RANKINGS), default="truekeep", show_default=True)
@click.option(
    "--mmr", type=click.FloatRange(0, 1), help="With --ranking openclaw: rerank for diversity; OpenClaw uses 0.7."
)
@click.option(
    "--half-life",
    type=click.FloatRange(min=0.1),
    metavar="DAYS",
    help="With --ranking openclaw: half-life of logs; OpenClaw uses 30.",
)
@json_option
@workspace_option
@click.pass_context
def search(
    ctx: click.Context, /, query: tuple[str, ...], explain: bool, as_json: bool, workspace: str | None, **given: Any
) -> None:
    """Search memory by words and by meaning.

    QUERY may be a question, an identifier, an error message or a path. Includes edits made a moment ago. Every hit
    shows its age. Transcripts are searched only if requested with --store, or if nothing else matches; the archive of
    old logs only if requested.

    Example: truekeep search "which port does staging answer on" -n 3 --explain
    """
    if given["ranking"] != "openclaw" and (given["mmr"] is not None or given["half_life"] is not None):
        raise click.UsageError("--mmr and --half-life go with --ranking openclaw", ctx=ctx)
    chosen = workspace or (ctx.obj or {}).get("workspace") or ""
    given |= {"since": given["since"] or "", "verdict": given["verdict"] or ""}
    answer(SearchArguments(" ".join(query), workspace=chosen, explain=explain, as_json=as_json, **given))


@click.command()
@click.argument("path")
@click.option("--from", "first", type=click.IntRange(min=1), metavar="N", help="First line to print. [default: 1]")
@click.option("--lines", type=click.IntRange(1, 100_000), metavar="N", help="Number of lines. [default: 120]")
@json_option
@workspace_option
@click.pass_context
def get(
    ctx: click.Context, path: str, first: int | None, lines: int | None, as_json: bool, workspace: str | None
) -> None:
    """Print a memory file, or lines cited by a search.

    Example: truekeep get memory/cards/staging-proxy.md#L5-L9
    """
    excerpt = open_workspace(ctx, workspace).search.get(path, first=first, lines=lines)
    if as_json:
        print_json("get", shown_excerpt(excerpt))
        return
    for line in excerpt.text.split("\n"):
        click.echo(printable(line))
    for verdict in excerpt.verdicts:
        if verdict.verdict in ("gone", "moved", "changed"):
            what = f"line {verdict.claim.line}: {printable(clip(verdict.claim.shown, 60))}: {printable(verdict.why)}"
            click.echo(click.style(f"{verdict.verdict} {what}", fg="yellow"), err=True)
    tail = f"{printable(excerpt.path)} · {excerpt.store} · {shown_age(excerpt.age_days)}"
    if excerpt.next:
        tail += f" · lines {excerpt.first} to {excerpt.last} of {excerpt.total}, go on with --from {excerpt.next}"
    if excerpt.checked_at:
        tail += f" · {len(excerpt.verdicts)} claims checked {excerpt.checked_at}"
    elif excerpt.unchecked:
        tail += f" · claims {excerpt.unchecked}"
    click.echo(click.style(f"[{tail}]", dim=True), err=True)


def shown_excerpt(excerpt: Excerpt) -> dict[str, Any]:
    ours = ("verdicts", "checked_at", "unchecked")
    plain = {key: value for key, value in excerpt._asdict().items() if key not in ours}
    told = shown_verdicts(excerpt.verdicts, excerpt.checked_at, excerpt.unchecked)
    return {**plain, "next": excerpt.next, **told}
