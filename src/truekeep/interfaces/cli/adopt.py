"""`truekeep adopt`: what a harness remembers on its own, as handoffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.interfaces.cli.complete_values import complete_folders
from truekeep.interfaces.cli.options import dry_run_option, in_workspace_if_any
from truekeep.interfaces.cli.output import Shown, counted, emit, short_path
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import style, warning
from truekeep.workspace import producer
from truekeep.workspace.handoff_files import describe_unscanned, is_unscanned

if TYPE_CHECKING:
    from truekeep.handoffs.adopt.note import SkippedNote
    from truekeep.handoffs.adopt.to_handoffs import AdoptionOutcome
    from truekeep.workspace.workspace import Workspace

_WORDS = {
    "left": "handed in",
    "unchanged": "handed in before",
    "already": "in memory already",
    "withheld": "withheld",
    "refused": "refused",
}
_DRY_RUN_WORDS = {**_WORDS, "left": "would be handed in"}
_TAKEN = ("left", "already")
_MAX_NAMED = 10  # notes up to which each is named
_COLOURS = {"left": "green", "already": "bright_black", "withheld": "red", "refused": "red", "skipped": "yellow"}
_FOLDERS = {"claude": "~/.claude/projects/*/memory", "codex": "~/.codex/memories_v2 (off by default)"}


@click.command()
@click.argument("harness", type=click.Choice(tuple(_FOLDERS)))
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
@dry_run_option
@in_workspace_if_any
def adopt(opened: Workspace | None, harness: str, given: str | None, repository: str | None, dry_run: bool) -> None:
    """Import Claude Code's or Codex's own notes.

    Each note of the harness's own memory becomes a handoff in the inbox of its repository, with its origin. Notes about
    the user go to the workspace's inbox or, on a machine without a workspace, to the inbox of the current repository.
    Ingest then checks them like any other handoff. The notes are not changed, and are imported again only if their text
    changes.

    Example: truekeep adopt claude --dry-run
    """
    is_own = opened is not None and opened.source is None  # not a copy
    import_notes = opened.handoffs.adopt if opened is not None and is_own else producer.adopt
    folder, root = (Path(path).expanduser() if path else None for path in (given, repository))
    with ProgressDisplay(f"reading the notes of {harness}"):
        done, skipped = import_notes(harness, given=folder, repository=root, dry_run=dry_run)
    roots = sorted({item.repository for item in done if item.handoff and item.repository})
    unseen = [path for path in roots if is_unscanned(opened, Path(path))]

    def render() -> Iterator[Shown]:
        yield from _render_notes(done, dry_run=dry_run)
        yield from _render_total(done, skipped, dry_run=dry_run)
        if is_own and not dry_run and any(item.outcome == "left" for item in done):
            yield "next: run `truekeep ingest` to file them; doubtful ones go to review"
        if not done and not skipped:
            yield f"{harness} has no notes of its own here; looked in {given or _FOLDERS[harness]}"
        yield from (warning(describe_unscanned(opened, Path(path))) for path in unseen if opened is not None)

    data = {"harness": harness, "dry_run": dry_run, "notes": done, "skipped": skipped, "not_scanned": unseen}
    emit("adopt", data, render())


def _render_notes(done: Sequence[AdoptionOutcome], *, dry_run: bool) -> Iterator[Shown]:
    """Every note, when they are few; of many, how many of each repository. What could not be taken is always named."""
    words = _DRY_RUN_WORDS if dry_run else _WORDS
    taken = [item for item in done if item.outcome in _TAKEN]
    is_summed_up = len(taken) > _MAX_NAMED
    if is_summed_up:
        for root, items in groupby(sorted(taken, key=lambda item: item.repository), key=lambda item: item.repository):
            found = list(items)
            fresh = [item for item in found if item.outcome == "left"]
            parts = [f"{many(len(fresh), 'note')} {style(words['left'], fg='green')}"] if fresh else []
            parts += [f"{len(found) - len(fresh)} in memory already"] if len(found) > len(fresh) else []
            held = sum(bool(item.why) for item in fresh)
            doubtful = f"; {held} will go to review" if held else ""
            yield f"{short_path(root) if root else 'about you'}: {', '.join(parts)}{doubtful}"
    for item in done:
        if (is_summed_up and item.outcome in _TAKEN) or (item.outcome == "unchanged" and not item.why):
            continue
        word = "would hand in" if dry_run and item.outcome == "left" else _WORDS.get(item.outcome, item.outcome)
        target = f" -> {item.target}" if item.target else ""
        yield f"{style(word, fg=_COLOURS.get(item.outcome))} {short_path(item.note)}{target}"
        yield from (f"  {line}" for line in (short_path(item.handoff) if item.handoff else "", item.why) if line)


def _render_total(done: Sequence[AdoptionOutcome], skipped: Sequence[SkippedNote], *, dry_run: bool) -> Iterator[Shown]:
    for item in skipped:
        yield f"{style('skipped', fg='yellow')} {item.shown}"
        yield f"  {item.why}"
    outcomes, words = Counter(item.outcome for item in done), _DRY_RUN_WORDS if dry_run else _WORDS
    parts = [f"{many(len(done), 'note')}: {counted({word: outcomes[name] for name, word in words.items()})}"] * bool(
        done
    )
    parts += [f"{len(skipped)} skipped"] * bool(skipped)
    if parts:
        yield "; ".join(parts)
