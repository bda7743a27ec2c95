"""reconcile: where the stores disagree, who wins, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import many
from truekeep.core.model import INDEX
from truekeep.interfaces.cli.options import exit_code_option, in_workspace, wants_json
from truekeep.interfaces.cli.output import Shown, counted, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import ask_yes_no, can_ask, echo, style

if TYPE_CHECKING:
    from truekeep.maintenance.proposals import ProposalOutcome
    from truekeep.maintenance.reconcile import Disagreement
    from truekeep.workspace.reconciliation import ReconcileReport
    from truekeep.workspace.workspace import Workspace

EXIT_OPEN = 1
MAX_SHOWN = 20  # of one kind
_TINTS = {"fix": "yellow", "ask": "red", "person": "red", "none": None}
_OFFER_WORDS = {
    "proposed": ("proposed", "yellow"),
    "rejected": ("rejected before, not proposed again", None),
    "withheld": ("not proposed, holds a credential", "red"),
    "unfit": ("not proposed", "yellow"),
}


@click.command()
@click.option("--fix", is_flag=True, help="Apply what the rules decide; send the rest to review.")
@click.option("--force", is_flag=True, help="Remove index lines even if that removes most of them at once.")
@exit_code_option("Exit 1 if a contradiction is left that needs a decision.")
@in_workspace
def reconcile(opened: Workspace, fix: bool, force: bool, exit_code: bool) -> int:
    """Find contradictions between memory, logs and code.

    Compares index lines, cards, daily logs, pending handoffs, transcripts, memory/facts.db, instruction files
    (CLAUDE.md, AGENTS.md) and current code, and shows which side wins and why. Each rule has a winner; what no rule
    decides goes to review and is never guessed. Everything that --fix writes is in the history and can be undone. If
    most index lines point to missing cards, --fix asks, or needs --force: the cards may be missing only for the moment.

    Example: truekeep reconcile --fix
    """
    with ProgressDisplay("comparing memory, logs and code"):
        result = opened.maintenance.reconcile(fix=fix, force=force)
    if fix and result.held and not wants_json() and can_ask():
        echo(result.held)
        if ask_yes_no("Take these lines out?", default=False):
            result = result.followed_by(opened.maintenance.reconcile(fix=True, code=False, force=True))
    emit("reconcile", result, _render(result, fix=fix))
    return EXIT_OPEN if exit_code and result.is_unsettled(fix=fix) else 0


def _render(result: ReconcileReport, *, fix: bool) -> Iterator[Shown]:
    """One line for each disagreement, the rule above them. What --fix settled is said as what was written."""
    by_rule: dict[tuple[str, str, str], list[Disagreement]] = {}
    for item in result.found:
        if not (fix and item.action == "fix"):
            by_rule.setdefault((item.rule, item.winner, item.reason), []).append(item)
    for (rule, winner, reason), items in by_rule.items():
        wins = f"wins: {winner}" if winner else "undecided"
        yield f"{style(rule, bold=True)}  {len(items)}, {wins} ({reason})"
        for item in items[:MAX_SHOWN]:
            place = style(item.place, fg=_TINTS[item.action])
            yield f"  {place}: {item.says} | {item.other}: {item.other_says}"
            if item.step and not item.is_held:
                yield f"    {item.step}"
        yield from render_more(len(items), "  ")
    yield from (style("wrote ", fg="green") + line for line in result.done[:MAX_SHOWN])
    yield from render_more(len(result.done))
    yield from render_offers(result.offered)
    if result.crowding:
        yield style("too long ", fg="yellow") + result.crowding
    if result.held:
        yield style("held back ", fg="red") + result.held
    if result.unindexed:
        count = len(result.unindexed)
        few = ", ".join(path.rpartition("/")[2] for path in result.unindexed[:3]) + (", …" if count > 3 else "")
        what = f"{many(count, 'card')} without a line in {INDEX}, because it was taken out or another memory lists them"
        yield style(f"{what}: {few}", dim=True)
    yield from (style("not checked ", fg="red") + problem for problem in result.problems)
    if not result.found:
        yield style("no contradictions found", fg="green")
    elif not fix:
        yield from _render_next(result)


def render_more(count: int, indent: str = "") -> Iterator[str]:
    if count > MAX_SHOWN:
        yield f"{indent}… and {count - MAX_SHOWN} more; --json has all of them"


def _render_next(result: ReconcileReport) -> Iterator[str]:
    """Count what --fix can decide, and what is new for review."""
    decided = sum(item.action == "fix" for item in result.found)
    questions = [item for item in result.found if item.action == "ask"]
    asked = sum(bool(item.step) for item in questions)
    told = counted({"decided": decided, "for review": len(questions) - asked, "already in review": asked})
    if decided or len(questions) > asked:
        yield f"{told}. next: truekeep reconcile --fix"
    elif asked:
        yield f"{told}. next: truekeep review list"


def render_offers(offered: Sequence[ProposalOutcome], *, dry_run: bool = False) -> Iterator[str]:
    """The proposals, and why some were not made."""
    for item in offered:
        if item.state not in _OFFER_WORDS:
            continue
        word, tint = _OFFER_WORDS[item.state]
        word = "would propose" if dry_run and item.state == "proposed" else word
        yield f"{style(word, fg=tint)} {item.draft}".rstrip()
        yield from (f"  {sentence}" for _, sentence in item.idea.reasons if item.state != "rejected")
        if item.idea.hindrance:
            yield f"  {item.idea.hindrance}"
    waiting, later, new = (sum(item.state == state for item in offered) for state in ("waiting", "later", "proposed"))
    if waiting:
        yield f"{waiting} already in review"
    if later:
        yield f"{later} more will follow when these are decided"
    if waiting or (new and not dry_run):
        yield "next: truekeep review list"
