"""`truekeep index`, `truekeep search`, `truekeep get`: recall from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from truekeep.ages import shown_age
from truekeep.asking import LIMIT, MOST, RANKINGS, STANDINGS, STORES, Asked, answer, shown_verdicts
from truekeep.cli.show import json_option, open_workspace, print_json, workspace_option
from truekeep.hidden import clip, printable

if TYPE_CHECKING:
    from truekeep.excerpt import Excerpt
    from truekeep.recall.indexing import Indexed

_BAR = 24


@click.command()
@click.option("--rebuild", is_flag=True, help="Index everything anew; the old index answers until then.")
@click.option("--watch", is_flag=True, help="Stay, and follow edits as they happen.")
@json_option
@workspace_option
@click.pass_context
def index(ctx: click.Context, rebuild: bool, watch: bool, as_json: bool, workspace: str | None) -> None:
    """Bring the search index up to date.

    Search does this by itself for what changed lately. Index does all of it, with transcripts: for timers and hooks.

    Example: truekeep index --watch
    """
    opened = open_workspace(ctx, workspace)
    if watch:
        _watch(opened, as_json=as_json)
        return
    done = opened.index(rebuild=rebuild, tell=_progress(as_json))
    _show_indexed(done, as_json=as_json)


def _watch(opened: Any, *, as_json: bool) -> None:
    import signal
    import threading

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(done: Indexed) -> None:
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


def _show_indexed(done: Indexed, *, as_json: bool) -> None:
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
@click.option("-n", "--limit", type=click.IntRange(1, MOST), default=LIMIT, show_default=True, help="How many hits.")
@click.option("--store", "stores", multiple=True, type=click.Choice(STORES), help="Only this store; may be repeated.")
@click.option("--since", metavar="DAY", help="Only memory of this day or later: 2026-03-01, or 30d, 8w, 6m, 1y.")
@click.option("--repo", "repository", metavar="NAME", default="", help="Only memory of this repository.")
@click.option("--verified", is_flag=True, help="Leave out what current code refutes.")
@click.option("--verdict", type=click.Choice(STANDINGS), default=None, help="Only what code says this to.")
@click.option("--explain", is_flag=True, help="Say why each hit is here.")
@click.option("--ranking", type=click.Choice(RANKINGS), default="truekeep", show_default=True)
@click.option("--mmr", type=click.FloatRange(0, 1), help="With openclaw: rerank for diversity; its own value is 0.7.")
@click.option(
    "--half-life", type=click.FloatRange(min=0.1), metavar="DAYS", help="With openclaw: decay logs; its own is 30."
)
@json_option
@workspace_option
@click.pass_context
def search(
    ctx: click.Context, /, query: tuple[str, ...], explain: bool, as_json: bool, workspace: str | None, **given: Any
) -> None:
    """Find memories by words and by meaning.

    A question, an identifier, an error message, a path: any of them will do. What changed a moment ago is in. Every hit
    says how old it is. Transcripts are left out unless asked for, or unless nothing else matches; so is the archive of
    old logs, unless it is asked for.

    Example: truekeep search "which port does staging answer on" -n 3 --explain
    """
    if given["ranking"] != "openclaw" and (given["mmr"] is not None or given["half_life"] is not None):
        raise click.UsageError("--mmr and --half-life go with --ranking openclaw", ctx=ctx)
    chosen = workspace or (ctx.obj or {}).get("workspace") or ""
    given |= {"since": given["since"] or "", "verdict": given["verdict"] or ""}
    answer(Asked(" ".join(query), workspace=chosen, explain=explain, as_json=as_json, **given))


@click.command()
@click.argument("path")
@click.option("--from", "first", type=click.IntRange(min=1), metavar="N", help="The first line. [default: 1]")
@click.option("--lines", type=click.IntRange(1, 100_000), metavar="N", help="How many lines. [default: 120]")
@json_option
@workspace_option
@click.pass_context
def get(
    ctx: click.Context, path: str, first: int | None, lines: int | None, as_json: bool, workspace: str | None
) -> None:
    """Read a memory file, or the lines that a search cited.

    Example: truekeep get memory/cards/staging-proxy.md#L5-L9
    """
    excerpt = open_workspace(ctx, workspace).get(path, first=first, lines=lines)
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
