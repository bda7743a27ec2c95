"""`truekeep repos`: the checkouts that memory is checked against, and the cards of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.interfaces.cli.complete_values import complete_files
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.interfaces.cli.options import (
    dry_run_option,
    in_workspace,
    json_flag,
    open_workspace,
    usage_error,
    workspace_option,
)
from truekeep.interfaces.cli.output import Shown, counted, emit, how_to_undo
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.table import Table
from truekeep.interfaces.cli.terminal import Aside, style
from truekeep.text.unicode import clip
from truekeep.verify.match_repositories import count_outcomes

if TYPE_CHECKING:
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.match_repositories import AssignmentOutcome, Match
    from truekeep.workspace.workspace import Workspace

_TINTS = {"matched": "green", "ambiguous": "yellow"}


@click.group(invoke_without_command=True)
@json_flag
@workspace_option
@click.pass_context
def repos(ctx: click.Context, workspace: str | None) -> None:
    """List the checkouts that memory is checked against.

    They come from `repositories` and `verify.checkouts` in the configuration; patterns are allowed.

    Cards that name no repository are not checked; run `truekeep repos match` to find theirs.

    Example: truekeep repos
    """
    if ctx.invoked_subcommand is not None:
        return
    with ProgressDisplay("reading repositories and cards"):
        found, missing = open_workspace(ctx, workspace).repositories.count_cards()
    checkouts = [{**to_json(item), "cards": cards} for item, cards in found]
    emit("repos", {"checkouts": checkouts, "unknown": missing}, _render_checkouts(found, missing), is_long=True)


def _render_checkouts(found: Sequence[tuple[Checkout, int]], missing: dict[str, int]) -> Iterator[Shown]:
    if found:
        rows = [
            (item.name, str(cards), "worktree" if item.is_linked else "clone", item.problem or item.root)
            for item, cards in found
        ]
        yield Table(("repository", "cards", "kind", "folder"), rows)
    else:
        yield "no checkouts are known: name them, as in `truekeep config set repositories '~/repos/*'`"
    for name, count in sorted(missing.items()):
        told = f"no checkout of {name} here ({many(count, 'card')}): add its folder to verify.checkouts"
        yield style(told, fg="yellow")


@repos.command()
@click.argument("files", nargs=-1, metavar="[MEMORY]...", shell_complete=complete_files)
@click.option("--fix", is_flag=True, help="Write `repository:` into the matched cards.")
@dry_run_option
@in_workspace
def match(opened: Workspace, files: tuple[str, ...], fix: bool, dry_run: bool) -> None:
    """Find the repository of cards that name none.

    The names in a card (paths with folders, uncommon names, commits, its own flags and variables) are looked up in
    every local checkout. A card is matched if several of them are known to one repository alone, now or in its history,
    and most of the rest as well; or if its text names one repository in full, as owner/name or by its remote. Weak or
    ambiguous matches are listed with their candidates, never guessed. Checks all cards unless some are given.

    With --fix, only that line is added to the frontmatter; nothing else changes, not even `updated`. Each card is one
    entry in the ledger, which `truekeep undo` can revert. --dry-run goes with --fix.

    Example: truekeep repos match --fix --dry-run
    """
    if dry_run and not fix:
        raise usage_error("--dry-run goes with --fix")
    with ProgressDisplay("matching") as display:
        found, left = opened.repositories.match(files, progress=display.step)
    is_written = fix and not dry_run and any(item.is_writable for item in found)
    written = {item.path: item for item in opened.repositories.assign(found)} if is_written else {}
    cards = [
        {
            **to_json(item),
            "entry": written[item.path].entry if item.path in written else None,
            "done": written[item.path].message if item.path in written else "",
        }
        for item in found
    ]
    summary = {"cards": len(found), **count_outcomes(found)}
    shown = _render_matches(found, written, left, fix=fix, dry_run=dry_run)
    emit("repos-match", {"cards": cards, "left": left, "summary": summary}, shown)


def _render_matches(
    found: Sequence[Match], written: dict[str, AssignmentOutcome], left: Sequence[str], *, fix: bool, dry_run: bool
) -> Iterator[Shown]:
    for item in found:
        yield from _render_match(item, written.get(item.path), dry_run=dry_run)
    yield from (Aside(style(line, fg="yellow")) for line in left)
    if not found:
        yield "every card names its repository" if not left else "nothing to match"
        return
    counts = count_outcomes(found)
    yield f"{many(len(found), 'card')} without a repository: {counted(counts)}"
    if any(item.is_writable for item in found) and (dry_run or not fix):
        yield "next: run `truekeep repos match --fix` to write the matches"
    elif any(item.entry is not None for item in written.values()):
        yield "next: truekeep verify"
    if counts["ambiguous"] or counts["thin"]:
        yield "for the others, add `repository: NAME` to the frontmatter; `truekeep repos` lists the names"


def _render_match(item: Match, written: AssignmentOutcome | None, *, dry_run: bool) -> Iterator[str]:
    about = f"  {style(item.repository, bold=True)}" if item.repository else ""
    yield f"{style(item.outcome.ljust(9), fg=_TINTS.get(item.outcome, 'bright_black'))} {item.path}{about}"
    yield style(f"          ↳ {clip(item.why, 300)}", dim=True)
    for candidate in item.candidates if item.outcome != "matched" else ():
        named = "named, " if candidate.is_named else ""
        yield f"            {candidate.repository or candidate.root}: {named}{many(len(candidate.proofs), 'claim')}"
    if item.problem:
        yield style("          by hand: ", fg="yellow") + item.problem
    if written is not None:
        word = style("done", fg="green" if written.entry is not None else "yellow")
        yield f"          {word} {written.message}{how_to_undo(written.entry)}"
    elif dry_run and item.is_writable:
        yield f"          would write repository: {item.repository}"
