"""tidy: decay, duplicates, promote, and all of them."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    short_path,
    shown_age,
    workspace_option,
)
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.reconcile import show_offers, shown_offer
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.maintenance.duplicates import uses_meaning
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.core.config import DecayConfig
    from truekeep.maintenance.decay import DecayReport, Expiry, Stale
    from truekeep.maintenance.survey.service import FileProblem
    from truekeep.workspace.maintenance import TidyReport
    from truekeep.workspace.workspace import Workspace

EXIT_NOTHING, EXIT_WAITING = 10, 11
_MOST = 20  # rows of one kind that are shown
_LATELY = 60.0  # seconds that the files were looked at before
_TINTS = {"verify first": "yellow", "decide": "yellow", "cannot be read": "red"}

Row = tuple[str, str, str]


@click.group(invoke_without_command=True)
@click.option("--dry-run", is_flag=True, help="Show what would be done without changing anything.")
@json_option
@workspace_option
@click.pass_context
def tidy(ctx: click.Context, dry_run: bool, as_json: bool, workspace: str | None) -> None:
    """Expire old log entries, merge duplicates, promote recurring notes.

    Without a command: runs decay, duplicates and promote in this order. Everything written is in `truekeep history`,
    and `truekeep undo` reverts it. Doubtful changes are proposed in `truekeep review`.

    Example: truekeep tidy --dry-run
    """
    if ctx.invoked_subcommand is not None:
        return
    opened = open_workspace(ctx, workspace)
    with ProgressDisplay("cleaning up") as display:
        decayed = opened.maintenance.decay(dry_run=dry_run)
        doubled = opened.maintenance.duplicates(dry_run=dry_run, progress=display.count)
        lasting = opened.maintenance.promote(dry_run=dry_run)
    if as_json:
        told = {
            "decay": shown_decay(decayed),
            "duplicates": _shown_doubles(doubled, opened),
            "promote": _shown_promoted(lasting),
        }
        print_json("tidy", {"dry_run": dry_run, **told})
        return
    echo(style("decay", bold=True))
    show_decay(decayed, opened.config.decay, dry_run=dry_run)
    echo(style("duplicates", bold=True))
    _show_doubles(doubled, opened, dry_run=dry_run)
    echo(style("promote", bold=True))
    _show_promoted(lasting, dry_run=dry_run)
    _show_problems(lasting.problems)


@tidy.command()
@click.option("--dry-run", is_flag=True, help="Show what would be done without changing anything.")
@click.option("--archive", is_flag=True, help="Move fully expired logs to memory/archive.")
@click.option("--all", "every", is_flag=True, help="Show all rows.")
@click.option("--force", is_flag=True, help="Proceed even if the clock looks wrong.")
@click.option("--exit-code", is_flag=True, help="Exit 10 if there was nothing to do, 11 if something needs a decision.")
@json_option
@workspace_option
@click.pass_context
def decay(
    ctx: click.Context,
    dry_run: bool,
    archive: bool,
    every: bool,
    force: bool,
    exit_code: bool,
    as_json: bool,
    workspace: str | None,
) -> int:
    """Expire old entries, and list cards that need a look.

    Tagged entries of daily logs, such as "- [context|i=0.3] ran the tests", leave search when they expire; the logs are
    not changed, and untagged text never expires. Old drafts and processed handoffs are removed, and old sessions leave
    the index. Cards not updated, confirmed or verified for a long time are listed: first those to verify, then those to
    confirm or drop. [decay] in the configuration sets the days.

    With --archive, a fully expired log moves to memory/archive, where `search --store archive` finds it.

    Example: truekeep tidy decay --dry-run
    """
    opened = open_workspace(ctx, workspace)
    with ProgressDisplay("looking for expired entries"):
        done = opened.maintenance.decay(dry_run=dry_run, archive=archive, force=force)
    if as_json:
        print_json("tidy-decay", {"dry_run": dry_run, **shown_decay(done)})
    else:
        show_decay(done, opened.config.decay, dry_run=dry_run, every=every)
    if exit_code and (done.cards or done.problems):
        return EXIT_WAITING
    return EXIT_NOTHING if exit_code and not done.has_changes else 0


def shown_decay(done: DecayReport) -> dict[str, Any]:
    """The result of a run, for JSON."""
    return {
        "day": done.day,
        "record": {"day": done.record.day, **done.record.tiers._asdict()} if done.record is not None else None,
        "entries": [
            {**entry._asdict(), "kind": withhold(printable(entry.kind)), "leaves": leaves}
            for leaves, entries in ((True, done.leaving), (False, done.returning))
            for entry in entries
        ],
        "archived": [move._asdict() for move in done.moves],
        "drafts": list(done.drafts),
        "processed": [withhold(printable(file)) for file in done.processed],
        "sessions": done.sessions,
        "cards": [
            {
                "path": card.path,
                "age_days": card.age_days,
                "next": "decide" if card.is_checked else "verify",
                "why": printable(card.why),
                "commands": _commands(card),
            }
            for card in done.cards
        ],
        "problems": [withhold(printable(problem)) for problem in done.problems],
        "notes": [printable(note) for note in done.notes],
    }


def show_decay(done: DecayReport, settings: DecayConfig, *, dry_run: bool, every: bool = False) -> None:
    rows = list(_rows(done, settings, dry_run=dry_run))
    if rows:
        shown = [row for _, some in groupby(rows, key=lambda row: row[0]) for row in _first(list(some), every=every)]
        tints = [_TINTS.get(row[0]) for row in shown]
        print_table(["what", "where", "what becomes of it, and why"], shown, tints=tints)
    for note in done.notes:
        echo(style(note, fg="yellow"), err=True)
    counts = (
        (len(done.leaving), "log entry", "out of search"),
        (len(done.returning), "log entry", "back in search"),
        (len(done.moves), "log", "put away"),
        (len(done.drafts), "draft", "removed"),
        (len(done.processed), "processed file", "removed"),
        (done.sessions, "session", "out of search"),
    )
    told = ", ".join(f"{many(count, what)} {become}" for count, what, become in counts if count) or "nothing expired"
    echo(f"{'would be: ' if dry_run and done.has_changes else ''}{told}")
    if done.cards:
        wanting = sum(not card.is_checked for card in done.cards)
        undated = sum(card.age_days is None for card in done.cards)
        told = f"{many(wanting, 'card')} to verify, {len(done.cards) - wanting} to decide on"
        echo(f"{told}; {undated} of them undated" if undated else told)
        first = min(done.cards, key=lambda card: (card.is_checked, not card.can_be_confirmed))
        echo(f"next: {' / '.join(_commands(first))}; each takes several names")


def _first(rows: Sequence[Row], *, every: bool) -> list[Row]:
    left = len(rows) - _MOST
    if left <= 1 or every:
        return list(rows)
    return [*rows[:_MOST], (rows[0][0], f"and {left} more", "`truekeep tidy decay --all` lists them")]


def _rows(done: DecayReport, settings: DecayConfig, *, dry_run: bool) -> Iterator[Row]:
    days = {"contextual": settings.contextual_days, "potential": settings.potential_days}
    for (path, tier), count in _by_log(done.leaving):
        because = f"{tier}, more than {days[tier]} days ago" if tier in days else tier
        yield "log", path, f"{_entries(count)} {'would leave' if dry_run else 'left'} search: {because}"
    for (path, tier), count in _by_log(done.returning):
        yield "log", path, f"{_entries(count)} {'would come' if dry_run else 'came'} back: {tier}, and counts again"
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
        age = f"no sign of life for {shown_age(card.age_days)}" if card.age_days is not None else "it has no date"
        unfit = "" if card.can_be_confirmed else "; to keep it, put frontmatter with topic and created above its text"
        yield "decide" if card.is_checked else "verify first", card.path, f"{age}; {card.why}{unfit}"
    for problem in done.problems:
        place, _, what = problem.partition(": ")
        yield "cannot be read", place, f"it stays in search: {withhold(what)}"


def _by_log(entries: Iterable[Expiry]) -> list[tuple[tuple[str, str], int]]:
    return list(Counter((entry.path, entry.tier) for entry in entries).items())


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _commands(card: Stale) -> list[str]:
    if not card.is_checked:
        return [f"truekeep verify {shlex.quote(card.path)}"]
    name = card.path.rpartition("/")[2].removesuffix(".md")
    named = shlex.quote(card.path if name.startswith("-") or name.endswith(".md") else name)
    confirm = [f"truekeep card confirm {named}"] if card.can_be_confirmed else []
    return [*confirm, f"truekeep card drop {named} --reason 'no sign of life'"]


@tidy.command()
@click.option("--dry-run", is_flag=True, help="Show what would be proposed without changing anything.")
@json_option
@workspace_option
@click.pass_context
def duplicates(ctx: click.Context, dry_run: bool, as_json: bool, workspace: str | None) -> None:
    """Find duplicate cards, and propose merging them.

    Finds cards with the same topic, or with the same content by words and meaning; also cards repeated by an
    instruction file (CLAUDE.md, AGENTS.md) of their repository. Each merge is a draft that keeps every line of both;
    nothing changes until you approve it. Cards that differ in a number, a name, a negation or an opposite are not
    duplicates; two such cards with one topic are reported, not merged.

    Example: truekeep tidy duplicates --dry-run
    """
    with open_workspace(ctx, workspace) as opened:
        with ProgressDisplay("comparing cards") as display:
            found = opened.maintenance.duplicates(dry_run=dry_run, progress=display.count)
        if as_json:
            print_json("tidy-duplicates", {"dry_run": dry_run, **_shown_doubles(found, opened)})
        else:
            _show_doubles(found, opened, dry_run=dry_run)
            _show_problems(found.problems)


def _has_meaning(opened: Workspace) -> bool:
    """True if cards were also compared by meaning."""
    return uses_meaning(opened.maintenance.survey(within=_LATELY))


def _shown_doubles(found: TidyReport, opened: Workspace) -> dict[str, Any]:
    return {
        "compared_by": "words and meaning" if _has_meaning(opened) else "words",
        "duplicates": [item._asdict() for item in found.doubles],
        "proposed": [shown_offer(item) for item in found.offered],
        "problems": [item._asdict() for item in found.problems],
    }


def _show_doubles(found: TidyReport, opened: Workspace, *, dry_run: bool) -> None:
    if found.doubles:
        rows = [
            [item.one, item.other, item.why, f"{item.likeness:.0%}" if item.why != "same topic" else ""]
            for item in found.doubles[:_MOST]
        ]
        print_table(["card", "card", "why", "likeness"], rows)
        if len(found.doubles) > _MOST:
            echo(f"and {len(found.doubles) - _MOST} more; --json lists them all")
    _show_offered(found, dry_run=dry_run, nothing="no duplicate cards")
    if not _has_meaning(opened):
        echo("compared by words only; run `truekeep index` to compare by meaning too")


@tidy.command()
@click.option("--dry-run", is_flag=True, help="Show what would be proposed without changing anything.")
@json_option
@workspace_option
@click.pass_context
def promote(ctx: click.Context, dry_run: bool, as_json: bool, workspace: str | None) -> None:
    """Propose cards for recurring notes in daily logs.

    Finds what logs say on three days, or mark as structural ("- [decision|i=0.9] ..."), and no card contains yet. Each
    is a draft with the lines it comes from.

    Example: truekeep tidy promote --dry-run
    """
    with open_workspace(ctx, workspace) as opened:
        found = opened.maintenance.promote(dry_run=dry_run)
    if as_json:
        print_json("tidy-promote", {"dry_run": dry_run, **_shown_promoted(found)})
    else:
        _show_promoted(found, dry_run=dry_run)
        _show_problems(found.problems)


def _shown_promoted(found: TidyReport) -> dict[str, Any]:
    return {
        "proposed": [shown_offer(item) for item in found.offered],
        "problems": [item._asdict() for item in found.problems],
    }


def _show_promoted(found: TidyReport, *, dry_run: bool) -> None:
    _show_offered(found, dry_run=dry_run, nothing="nothing to promote")


def _show_offered(found: TidyReport, *, dry_run: bool, nothing: str) -> None:
    show_offers(found.offered, dry_run=dry_run)
    if not found.offered and not found.doubles:
        echo(nothing)


def _show_problems(problems: Sequence[FileProblem]) -> None:
    if problems:
        echo(style(f"{many(len(problems), 'problem')} in memory files; ", fg="yellow") + "`truekeep status problems`")
