"""`truekeep adopt`: what a harness remembers on its own, as handoffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.handoff import workspace_if_any
from truekeep.interfaces.cli.output import json_option, print_json, short_path, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import echo, print_warning, style
from truekeep.workspace import producer

if TYPE_CHECKING:
    from truekeep.handoffs.adopt.to_handoffs import AdoptionOutcome

_WORDS = {
    "left": "handed in",
    "unchanged": "handed in before",
    "already": "in memory already",
    "withheld": "withheld",
    "refused": "refused",
}
_TAKEN = ("left", "already")
_FEW = 10  # notes up to which each is named
_COLOURS = {"left": "green", "already": "bright_black", "withheld": "red", "refused": "red", "skipped": "yellow"}


@click.command()
@click.argument("harness", type=click.Choice(("claude", "codex")))
@click.option(
    "--from",
    "given",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Folder to read: a memory folder, a project's, or the harness's own.",
)
@click.option(
    "--repo",
    "repository",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Only this repository; with --from, the repository the notes are about.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be imported without changing anything.")
@json_option
@workspace_option
@click.pass_context
def adopt(
    ctx: click.Context,
    harness: str,
    given: str | None,
    repository: str | None,
    dry_run: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Import Claude Code's or Codex's own notes.

    Each note of the harness's own memory becomes a handoff in the inbox of its repository, with its origin. Notes about
    the user go to the workspace's inbox or, on a machine without a workspace, to the inbox of the current repository.
    Ingest then checks them like any other handoff. The notes are not changed, and are imported again only if their text
    changes.

    Example: truekeep adopt claude --dry-run
    """
    opened = workspace_if_any(ctx, workspace)
    import_notes = opened.handoffs.adopt if opened is not None else producer.adopt
    with ProgressDisplay(f"reading the notes of {harness}"):
        done, skipped = import_notes(
            harness,
            given=Path(given).expanduser() if given else None,
            repository=Path(repository).expanduser() if repository else None,
            dry_run=dry_run,
        )
    unseen = sorted({item.repository for item in done if item.handoff and item.repository})
    unseen = [root for root in unseen if opened is not None and not opened.handoffs.is_scanned(Path(root))]
    if as_json:
        print_json(
            "adopt",
            {
                "harness": harness,
                "dry_run": dry_run,
                "notes": [item._asdict() for item in done],
                "skipped": [item._asdict() for item in skipped],
                "not_scanned": unseen,
            },
        )
        return
    _show_notes(done, dry_run=dry_run)
    for item_ in skipped:
        echo(f"{style('skipped', fg='yellow')} {item_.shown}")
        echo(f"  {item_.why}")
    counts = Counter(item.outcome for item in done)
    if done or skipped:
        words = {**_WORDS, "left": "would be handed in"} if dry_run else _WORDS
        told = ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts[name])
        notes = f"{many(len(done), 'note')}: {told}" if done else ""
        echo("; ".join(filter(None, (notes, f"{len(skipped)} skipped" if skipped else ""))))
        if counts["left"] and opened is not None and not dry_run:
            echo("next: run `truekeep ingest` to file them; doubtful ones go to review")
    else:
        looked = (
            given
            or {"claude": "~/.claude/projects/*/memory", "codex": "~/.codex/memories_v2 (off by default)"}[harness]
        )
        echo(f"{harness} has no notes of its own here; looked in {looked}")
    for root in unseen:
        where = opened.path if opened is not None else ""
        what = f"ingest does not look into {root}; add it to `repositories` in {where}/.truekeep/config.toml"
        print_warning(what)


def _show_notes(done: Sequence[AdoptionOutcome], *, dry_run: bool) -> None:
    """Every note, when they are few; of many, how many of each repository. What could not be taken is always named."""
    taken = [item for item in done if item.outcome in _TAKEN]
    is_summed_up = len(taken) > _FEW
    if is_summed_up:
        word = "would be handed in" if dry_run else "handed in"
        for root, items in groupby(sorted(taken, key=lambda item: item.repository), key=lambda item: item.repository):
            found = list(items)
            fresh = [item for item in found if item.outcome == "left"]
            parts = [f"{many(len(fresh), 'note')} {style(word, fg='green')}"] if fresh else []
            parts += [f"{len(found) - len(fresh)} in memory already"] if len(found) > len(fresh) else []
            held = sum(bool(item.why) for item in fresh)
            doubtful = f"; {held} will wait for review" if held else ""
            echo(f"{short_path(root) if root else 'about you'}: {', '.join(parts)}{doubtful}")
    for item in done:
        if (is_summed_up and item.outcome in _TAKEN) or (item.outcome == "unchanged" and not item.why):
            continue
        word = "would leave" if dry_run and item.outcome == "left" else item.outcome
        echo(f"{style(word, fg=_COLOURS.get(item.outcome))} {item.note}")
        for line in (f"for {item.target}" if item.target else "", short_path(item.handoff), item.why):
            if line:
                echo(f"  {line}")
