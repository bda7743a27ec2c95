"""tidy: decay, duplicates, promote, and all of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many, short_age
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import (
    exit_code_option,
    in_workspace,
    json_flag,
    open_workspace,
    workspace_option,
)
from truekeep.interfaces.cli.output import Shown, emit, short_path
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.reconcile import MAX_SHOWN, render_more, render_offers
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, style
from truekeep.text.secrets.scanner import withhold

if TYPE_CHECKING:
    from truekeep.core.config import DecayConfig
    from truekeep.maintenance.decay import DecayReport, Expiry
    from truekeep.maintenance.survey.service import FileProblem
    from truekeep.workspace.maintenance import TidyReport
    from truekeep.workspace.workspace import Workspace

EXIT_NOTHING, EXIT_WAITING = 10, 11
_TINTS = {"verify first": "yellow", "decide": "yellow", "cannot be read": "red"}

Row = tuple[str, str, str]


@click.group(invoke_without_command=True)
@click.option("--fix", is_flag=True, help="Expire what is listed, and send the proposals to review.")
@json_flag
@workspace_option
@click.pass_context
def tidy(ctx: click.Context, fix: bool, workspace: str | None) -> None:
    """Find old log entries, duplicates and recurring notes.

    Without a command: runs decay, duplicates and promote in this order. Nothing is changed without --fix; everything
    that --fix writes is in `truekeep history`, `truekeep undo` reverts it, and proposals wait in `truekeep review`.

    Example: truekeep tidy --fix
    """
    dry_run = not fix
    if ctx.invoked_subcommand is not None:
        return
    opened = open_workspace(ctx, workspace)
    with ProgressDisplay("cleaning up") as display:
        decayed = opened.maintenance.decay(dry_run=dry_run, progress=display.count)
        doubled = opened.maintenance.duplicates(dry_run=dry_run, progress=display.count)
        lasting = opened.maintenance.promote(dry_run=dry_run, progress=display.count)

    def render() -> Iterator[Shown]:
        yield style("decay", bold=True)
        yield from render_decay(decayed, opened.config.decay, dry_run=dry_run)
        yield style("duplicates", bold=True)
        yield from _render_duplicates(doubled, dry_run=dry_run)
        yield style("promote", bold=True)
        yield from _render_promoted(lasting, dry_run=dry_run)
        yield from _render_problems(lasting.problems)

    parts = {"decay": decayed, "duplicates": _duplicates_json(doubled), "promote": _promoted_json(lasting)}
    emit("tidy", {"dry_run": dry_run, **parts}, render())


@tidy.command()
@click.option("--fix", is_flag=True, help="Do what is listed.")
@click.option("--archive", is_flag=True, help="Move fully expired logs to memory/archive.")
@click.option("--all", "every", is_flag=True, help="Show all rows.")
@click.option("--force", is_flag=True, help="Proceed even if the clock looks wrong.")
@exit_code_option("Exit 10 if there was nothing to do, 11 if something needs a decision.")
@in_workspace
def decay(opened: Workspace, fix: bool, archive: bool, every: bool, force: bool, exit_code: bool) -> int:
    """List old entries and cards that need a look; --fix expires the entries.

    Tagged entries of daily logs, such as "- [context|i=0.3] ran the tests", leave search when they expire; the logs are
    not changed, and untagged text never expires. Old drafts and processed handoffs are removed, and old sessions leave
    the index. Cards not updated, confirmed or verified for a long time are listed: first those to verify, then those to
    confirm or drop. [decay] in the configuration sets the days.

    With --archive, a fully expired log moves to memory/archive, where `search --store archive` finds it.

    Example: truekeep tidy decay --fix
    """
    dry_run = not fix
    with ProgressDisplay("looking for expired entries") as display:
        done = opened.maintenance.decay(dry_run=dry_run, archive=archive, force=force, progress=display.count)
    shown = render_decay(done, opened.config.decay, dry_run=dry_run, every=every)
    emit("tidy-decay", {"dry_run": dry_run, **to_json(done)}, shown)
    if exit_code and (done.cards or done.problems):
        return EXIT_WAITING
    return EXIT_NOTHING if exit_code and not done.has_changes else 0


def render_decay(done: DecayReport, settings: DecayConfig, *, dry_run: bool, every: bool = False) -> Iterator[Shown]:
    if rows := list(_rows(done, settings, dry_run=dry_run)):
        kinds = [list(some) for _, some in groupby(rows, key=lambda row: row[0])]
        shown = [row for some in kinds for row in (some if every else _first(some))]
        tinted = [(what, where, style(why, fg=_TINTS.get(what))) for what, where, why in shown]
        yield Table(["what", "where", "what becomes of it, and why"], tinted)
    yield from (Aside(style(line, fg="yellow")) for line in done.notes)
    counts = (
        (len(done.leaving), "log entry", "out of search"),
        (len(done.returning), "log entry", "back in search"),
        (len(done.moves), "log", "put away"),
        (len(done.drafts), "draft", "removed"),
        (len(done.processed), "processed file", "removed"),
        (done.sessions, "session", "out of search"),
    )
    told = ", ".join(f"{many(count, what)} {become}" for count, what, become in counts if count)
    if not told:
        is_untagged = done.tagged == 0
        told = "nothing expired: untagged log entries stay" if is_untagged else "nothing expired"
    yield f"{'would be: ' if dry_run and done.has_changes else ''}{told}"
    if done.cards:
        wanting = sum(not card.is_checked for card in done.cards)
        undated = sum(card.age_days is None for card in done.cards)
        told = f"{many(wanting, 'card')} to verify, {len(done.cards) - wanting} to decide on"
        yield f"{told}; {undated} of them undated" if undated else told
        first = min(done.cards, key=lambda card: (card.is_checked, not card.can_be_confirmed))
        yield f"next: {' / '.join(first.commands)}; each takes several names"


def _first(rows: Sequence[Row]) -> list[Row]:
    left = len(rows) - MAX_SHOWN
    if left <= 1:
        return list(rows)
    return [*rows[:MAX_SHOWN], (rows[0][0], f"and {left} more", "`truekeep tidy decay --all` lists them")]


def _rows(done: DecayReport, settings: DecayConfig, *, dry_run: bool) -> Iterator[Row]:
    days = {"contextual": settings.contextual_days, "potential": settings.potential_days}
    for (path, tier), count in _by_log(done.leaving):
        because = f"{tier}, {days[tier]} days ago or more" if tier in days else tier
        yield "log", path, f"{many(count, 'entry')} {'would leave' if dry_run else 'left'} search: {because}"
    for (path, tier), count in _by_log(done.returning):
        come = "would come" if dry_run else "came"
        yield "log", path, f"{many(count, 'entry')} {come} back: {tier}, and counts again"
    for move in done.moves:
        yield "log", move.path, f"{'would go' if dry_run else 'went'} to {move.to}: everything in it has expired"
    gone = "would be removed" if dry_run else "removed"
    for draft in done.drafts:
        yield "draft", draft, f"{gone}: not decided for a long time; undo restores it"
    for folder, count in Counter(os.path.dirname(file) for file in done.processed).items():
        yield "processed", short_path(withhold(folder)), f"{count} {gone}: filed long ago"
    if done.sessions:
        leave = "would leave search" if dry_run else "left search"
        because = f"no new messages for {settings.transcript_days} days; the archive keeps them"
        yield "transcripts", many(done.sessions, "session"), f"{leave}: {because}"
    for card in sorted(done.cards, key=lambda item: item.is_checked):
        age = f"not updated or confirmed for {short_age(card.age_days)}" if card.age_days is not None else "no date"
        unfit = "" if card.can_be_confirmed else "; to keep it, put frontmatter with topic and created above its text"
        yield "decide" if card.is_checked else "verify first", card.path, f"{age}; {card.why}{unfit}"
    for problem in done.problems:
        place, _, what = problem.partition(": ")
        yield "cannot be read", place, f"it stays in search: {withhold(what)}"


def _by_log(entries: Sequence[Expiry]) -> list[tuple[tuple[str, str], int]]:
    return list(Counter((entry.path, entry.tier) for entry in entries).items())


@tidy.command()
@click.option("--fix", is_flag=True, help="Send the proposals to review.")
@in_workspace
def duplicates(opened: Workspace, fix: bool) -> None:
    """Find duplicate cards, and documents that are copies.

    Finds cards with the same topic, or with the same content by words and meaning; also cards repeated by an
    instruction file (CLAUDE.md, AGENTS.md) of their repository. With --fix, each merge is a draft that keeps every line
    of both; nothing changes until you approve it. Cards that differ in a number, a name, a negation or an opposite are
    not duplicates; two such cards with one topic are reported, not merged. Of documents and logs, whole copies and
    repeated sections are listed, with the file to keep; deleting the other is up to you.

    Example: truekeep tidy duplicates --fix
    """
    dry_run = not fix
    with ProgressDisplay("comparing cards") as display:
        found = opened.maintenance.duplicates(dry_run=dry_run, progress=display.count)
    shown = (*_render_duplicates(found, dry_run=dry_run), *_render_problems(found.problems))
    emit("tidy-duplicates", {"dry_run": dry_run, **_duplicates_json(found)}, shown)


def _duplicates_json(found: TidyReport) -> dict[str, Any]:
    told = {"compared_by": found.compared_by, "duplicates": found.doubles, "copies": found.copies}
    return {**told, **_promoted_json(found)}


def _promoted_json(found: TidyReport) -> dict[str, Any]:
    return {"proposed": found.offered, "problems": found.problems}


def _render_duplicates(found: TidyReport, *, dry_run: bool) -> Iterator[Shown]:
    if found.doubles:
        rows = [
            [item.one, item.other, item.why, f"{item.likeness:.0%}" if item.why != "same topic" else ""]
            for item in found.doubles[:MAX_SHOWN]
        ]
        yield Table(["card", "card", "why", "likeness"], rows)
        yield from render_more(len(found.doubles))
    if found.copies:
        copies = [
            [item.place, item.kept_place, item.why, many(item.lines, "line")] for item in found.copies[:MAX_SHOWN]
        ]
        yield Table(["copy", "keep", "why", "size"], copies)
        yield from render_more(len(found.copies))
        yield "next: compare the two, and delete the copy"
    yield from _render_proposals(found, dry_run=dry_run)
    if not found.offered and not found.doubles and not found.copies:
        yield "no duplicates"
    if found.compared_by == "words":
        yield "compared by words only; run `truekeep index` to compare by meaning too"


@tidy.command()
@click.option("--fix", is_flag=True, help="Send the proposals to review.")
@in_workspace
def promote(opened: Workspace, fix: bool) -> None:
    """Find recurring rules and facts in daily logs that no card has.

    Finds what logs say on three days, or mark as structural ("- [decision|i=0.9] ..."), and no card contains yet. What
    programs write into logs is left out. With --fix, each is a draft with the lines it comes from.

    Example: truekeep tidy promote --fix
    """
    dry_run = not fix
    with ProgressDisplay("reading logs") as display:
        found = opened.maintenance.promote(dry_run=dry_run, progress=display.count)
    shown = (*_render_promoted(found, dry_run=dry_run), *_render_problems(found.problems))
    emit("tidy-promote", {"dry_run": dry_run, **_promoted_json(found)}, shown)


def _render_proposals(found: TidyReport, *, dry_run: bool) -> Iterator[Shown]:
    yield from render_offers(found.offered, dry_run=dry_run)
    if dry_run and any(item.state == "proposed" for item in found.offered):
        yield "next: add --fix to send these to review"


def _render_promoted(found: TidyReport, *, dry_run: bool) -> Iterator[Shown]:
    yield from _render_proposals(found, dry_run=dry_run)
    if not found.offered:
        yield "nothing to promote"


def _render_problems(problems: Sequence[FileProblem]) -> Iterator[Shown]:
    if problems:
        yield style(f"{many(len(problems), 'problem')} in memory files; ", fg="yellow") + "`truekeep status problems`"
