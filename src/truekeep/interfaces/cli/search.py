"""`truekeep index`, `truekeep search`, `truekeep get`: recall from the command line."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import local_minute, many, parse_since, shown_age
from truekeep.core.errors import as_argument
from truekeep.interfaces.cli.complete_values import complete_memory_files
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import exit_code_option, in_workspace, since_option
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import Aside, MultilineText, echo, style
from truekeep.memory.file_scan import STORES
from truekeep.search.searcher import STANDINGS, Hit, hits_by_file
from truekeep.text.unicode import clip

if TYPE_CHECKING:
    from truekeep.search.build import IndexReport
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.service import SearchResult
    from truekeep.verify.verdict import Verdict
    from truekeep.workspace.workspace import Workspace

EXIT_NO_HIT = 1
MAX_LIMIT = 1000
MAX_LINES_PER_HIT = 24
MAX_LINE_LENGTH = 600
_VERDICT_COLOURS = {"gone": "red", "moved": "yellow", "changed": "cyan"}


@click.command()
@click.option("--rebuild", is_flag=True, help="Rebuild the whole index; searches use the old one meanwhile.")
@click.option("--watch", is_flag=True, help="Keep running and index edits as they happen.")
@in_workspace
def index(opened: Workspace, rebuild: bool, watch: bool) -> None:
    """Update the search index.

    Search does this by itself for recent changes. This command indexes everything, including transcripts; use it in
    timers and hooks.

    Example: truekeep index --watch
    """
    if watch:
        _watch(opened)
        return
    with ProgressDisplay("indexing") as display:
        done = opened.search.index(rebuild=rebuild, progress=display.step)
    emit("index", done, _render_indexed(done))


def _watch(opened: Workspace) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def tell(done: IndexReport) -> None:
        emit("index", done, _render_indexed(done))
        sys.stdout.flush()

    opened.search.watch(tell, stop=stop, warn=lambda what: echo(style(what, fg="yellow"), err=True))


def _render_indexed(done: IndexReport) -> Iterator[Shown]:
    changed = f"{done.changed} changed" if done.changed else "nothing changed"
    removed = f", {done.removed} gone" if done.removed else ""
    rebuilt = f", rebuilt because {done.rebuilt}" if done.rebuilt and done.rebuilt != "asked for" else ""
    meaning = f"meaning by {done.provider} {done.model}".rstrip() if done.provider != "none" else "words only"
    sessions = f" and {many(done.transcripts, 'transcript')}" if done.transcripts else ""
    yield (
        f"{style('indexed', fg='green')} {many(done.files, 'file')}{sessions} in {many(done.chunks, 'chunk')}: "
        f"{changed}{removed}{rebuilt} ({done.seconds:.1f} s; {meaning})"
    )
    yield from (Aside(style(f"  {line}", fg="yellow")) for line in done.notes)


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    help="Maximum number of hits. [default: as many as 4,000 characters hold]",
)
@click.option(
    "--store", "stores", multiple=True, type=click.Choice(STORES), help="Search only this store; may be repeated."
)
@since_option("memory")
@click.option("--repo", "repository", metavar="NAME", default="", help="Only memory of this repository.")
@click.option("--verified", is_flag=True, help="Omit hits that the current code refutes.")
@click.option("--verdict", type=click.Choice(STANDINGS), help="Only hits with this verification verdict.")
@click.option("--explain", is_flag=True, help="Explain why each hit matched.")
@exit_code_option("Exit 1 if nothing was found.")
@in_workspace
def search(opened: Workspace, query: tuple[str, ...], since: str, explain: bool, exit_code: bool, **given: Any) -> int:
    """Search memory by words and by meaning.

    QUERY may be a question, an identifier, an error message or a path. Includes edits made a moment ago. Every hit
    shows its age. Transcripts are searched only if requested with --store, or if nothing else matches; the archive of
    old logs only if requested.

    Example: truekeep search "which port does staging answer on" -n 3 --explain
    """
    day = parse_since(since, opened.today())
    with ProgressDisplay("searching"):  # the first search of a large memory indexes it
        found = opened.search.find(" ".join(query), since=day, **given)
        topics = opened.search.topics(found.hits)
    emit("search", shown_result(found, topics), render_result(found, topics, explain=explain))
    return EXIT_NO_HIT if exit_code and not found.hits else 0


def render_result(found: SearchResult, topics: Mapping[str, str], *, explain: bool) -> Iterator[Shown]:
    """The hits, and remarks on the search: corrected words, an outdated index."""
    shown_doubt = found.caution if found.hits else ""
    if shown_doubt:
        yield style(shown_doubt, fg="yellow")
    yield from render_hits(found.hits, topics, explain=explain)
    for typed, known in found.corrections:
        yield Aside(style(f"no memory contains {typed!r}; searched for words like {known!r}", fg="yellow"))
    yield from (Aside(style(remark, fg="yellow")) for remark in found.notes if remark != shown_doubt)


def render_hits(hits: Sequence[Hit], topics: Mapping[str, str], *, explain: bool) -> Iterator[str]:
    if not hits:
        yield "no matches"
    for number, group in enumerate(hits_by_file(hits), 1):
        for before, hit in zip((None, *group), group, strict=False):
            yield from _render_heading(hit, number, before, topics.get(hit.path, ""))
            yield from _render_lines(hit)
            yield from _render_verdicts(hit.verdicts, hit.unchecked)
            if hit.also:
                yield style(f"   the same in {', '.join(hit.also)}", dim=True)
            if explain:
                heaviest = sorted(hit.parts.items(), key=lambda item: -abs(item[1]))
                yield style(f"   why: {'  '.join(f'{name} {value:+.2f}' for name, value in heaviest)}", dim=True)
                if hit.matched:
                    yield style(f"   matched: {', '.join(hit.matched[:12])}", dim=True)


def _render_heading(hit: Hit, number: int, before: Hit | None, topic: str) -> Iterator[str]:
    """The place of a hit and what it is about. `before`: the hit above it, of the same file."""
    if before is None:
        days = hit.age_days or 0
        told = shown_age(hit.age_days, is_file_time=hit.is_file_time)
        age = style(told, fg="red" if days > 365 else "yellow" if days > 90 else "green")
        yield f"{number}. {style(hit.citation, bold=True)}  {hit.store}  {age}  {hit.score:.2f}"
    else:
        yield f"   {style(hit.cited_lines, bold=True)}  {hit.score:.2f}"
    title = hit_title(topic, hit.heading_above) if before is None else hit.heading_above
    if title and (before is None or before.heading != hit.heading):
        yield style(f"   {clip(title, 100)}", fg="cyan")


def hit_title(topic: str, heading: str) -> str:
    """The file's topic and the hit's heading, or one of them if it contains the other."""
    topic_words, heading_words = set(topic.casefold().split()), set(heading.casefold().split())
    if topic_words <= heading_words:
        return heading
    return topic if heading_words <= topic_words else f"{topic} › {heading}"


def _render_lines(hit: Hit) -> Iterator[str]:
    """The lines around the best one, which is marked."""
    lines = hit.telling_lines
    if hit.store == "transcripts" or not any(number == hit.best for number, _ in lines):
        chosen, best = lines[:MAX_LINES_PER_HIT], -1
    else:
        best = next(at for at, (number, _) in enumerate(lines) if number == hit.best)
        start = max(0, min(best - MAX_LINES_PER_HIT // 2, len(lines) - MAX_LINES_PER_HIT))
        chosen, best = lines[start : start + MAX_LINES_PER_HIT], best - start
    for at, (_, line) in enumerate(chosen):
        mark = style("▸", fg="green") if at == best and len(chosen) > 1 else " "
        yield f" {mark} {clip(line, MAX_LINE_LENGTH)}"
    if len(lines) > len(chosen):
        cited = hit.citation if as_argument(hit.path) == hit.path else as_argument(hit.citation)
        yield style(f"   … {many(len(lines) - len(chosen), 'more line')}: truekeep get {cited}", dim=True)


def _render_verdicts(verdicts: Sequence[Verdict], unchecked: str) -> Iterator[str]:
    """A line for each claim that does not hold, and one that counts the confirmed claims."""
    if unchecked:
        yield style(f"   {unchecked}: run `truekeep verify` to check its claims", dim=True)
    for verdict in verdicts:
        if verdict.verdict in _VERDICT_COLOURS:
            word = style(verdict.verdict, fg=_VERDICT_COLOURS[verdict.verdict])
            yield f"   {word} {clip(verdict.claim.shown, 60)}: {verdict.why}"
        elif verdict.is_outlived:
            yield f"   {style('since then', fg='yellow')} {clip(verdict.claim.shown, 60)}: {verdict.why}"
    if confirmed := sum(verdict.verdict == "confirmed" for verdict in verdicts):
        yield style(f"   {confirmed} of {len(verdicts)} claims confirmed by the current code", fg="green", dim=True)


def shown_result(found: SearchResult, topics: Mapping[str, str]) -> dict[str, Any]:
    """A search result, for JSON."""
    hits = [{**to_json(hit), "topic": topics.get(hit.path, "")} for hit in found.hits]
    return {**to_json(found), "hits": hits}


@click.command()
@click.argument("path", shell_complete=complete_memory_files)
@click.option("--from", "first", type=click.IntRange(min=1), metavar="N", help="First line to print. [default: 1]")
@click.option("--lines", type=click.IntRange(1, 100_000), metavar="N", help="Number of lines. [default: 120]")
@in_workspace
def get(opened: Workspace, path: str, first: int | None, lines: int | None) -> None:
    """Print a memory file, or lines cited by a search.

    Example: truekeep get memory/cards/staging-proxy.md#L5-L9
    """
    excerpt = opened.search.get(path, first=first, lines=lines)
    emit("get", excerpt, _render_excerpt(excerpt), is_long=True)


def _render_excerpt(excerpt: Excerpt) -> Iterator[Shown]:
    yield MultilineText(excerpt.text)
    for verdict in excerpt.verdicts:
        if verdict.verdict in _VERDICT_COLOURS or verdict.is_outlived:
            word = "since then" if verdict.is_outlived else verdict.verdict
            what = f"line {verdict.claim.line}: {clip(verdict.claim.shown, 60)}: {verdict.why}"
            yield Aside(style(f"{word} {what}", fg="yellow"))
    tail = f"{excerpt.path} · {excerpt.store} · {shown_age(excerpt.age_days)}"
    if excerpt.next:
        tail += f" · lines {excerpt.first} to {excerpt.last} of {excerpt.total}, go on with --from {excerpt.next}"
    if excerpt.checked_at and excerpt.verdicts:
        tail += f" · {many(len(excerpt.verdicts), 'claim')} checked {local_minute(excerpt.checked_at)}"
    elif excerpt.unchecked:
        tail += f" · claims {excerpt.unchecked}"
    tail += f" · {excerpt.source}" if excerpt.source else ""
    yield Aside(style(f"[{tail}]", dim=True))
