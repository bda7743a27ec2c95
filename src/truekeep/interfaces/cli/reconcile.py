"""reconcile: where the stores disagree, who wins, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.model import INDEX
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, workspace_option
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import ask_yes_no, echo, style

if TYPE_CHECKING:
    from truekeep.maintenance.proposals import ProposalOutcome
    from truekeep.maintenance.reconcile import Disagreement
    from truekeep.workspace.reconciliation import ReconcileReport

EXIT_OPEN = 1
_TINTS = {"fix": "yellow", "ask": "red", "person": "red", "none": None}
_MOST = 20  # of one kind that are shown


@click.command()
@click.option("--fix", is_flag=True, help="Apply what the rules decide; send the rest to review.")
@click.option("--force", is_flag=True, help="Remove index lines even if that removes most of them at once.")
@click.option("--no-code", is_flag=True, help="Use the results of the last check instead of checking code again.")
@click.option("--exit-code", is_flag=True, help="Exit 1 if a contradiction is left that needs a decision.")
@json_option
@workspace_option
@click.pass_context
def reconcile(
    ctx: click.Context, fix: bool, force: bool, no_code: bool, exit_code: bool, as_json: bool, workspace: str | None
) -> int:
    """Find contradictions between memory, logs and code.

    Compares index lines, cards, daily logs, pending handoffs, transcripts, memory/facts.db, instruction files
    (CLAUDE.md, AGENTS.md) and current code, and shows which side wins and why. Each rule has a winner; what no rule
    decides goes to review and is never guessed. Everything that --fix writes is in the history and can be undone. If
    most index lines point to missing cards, --fix asks, or needs --force: the cards may be missing only for the moment.

    Example: truekeep reconcile --fix
    """
    with open_workspace(ctx, workspace) as opened:
        with ProgressDisplay("comparing memory, logs and code"):
            result = opened.maintenance.reconcile(fix=fix, code=not no_code, force=force)
        if fix and result.held and not as_json and sys.stdin.isatty() and _is_meant(result):
            more = opened.maintenance.reconcile(fix=True, code=False, force=True)
            done = (*result.done, *more.done)
            result = more._replace(done=done, offered=result.offered, crowding=result.crowding)
    if as_json:
        print_json("reconcile", shown_reconciled(result))
    else:
        _show(result, fix=fix)
    left = [item for item in result.open if not (fix and item.action in ("fix", "ask"))] or result.problems
    return EXIT_OPEN if exit_code and left else 0


def shown_reconciled(result: ReconcileReport) -> dict[str, Any]:
    return {
        "disagreements": [item._asdict() for item in result.found],
        "open": len(result.open),
        "done": list(result.done),
        "proposed": [shown_offer(item) for item in result.offered],
        "problems": list(result.problems),
        "held": result.held,
        "crowding": result.crowding,
        "unindexed": list(result.unindexed),
    }


def _is_meant(result: ReconcileReport) -> bool:
    echo(result.held)
    return ask_yes_no("Take these lines out?", default=False)


def shown_offer(item: ProposalOutcome) -> dict[str, Any]:
    return {
        "draft": item.draft,
        "state": item.state,
        "target": item.idea.target,
        "drops": [path for path, _ in item.idea.drops],
        "reasons": [{"code": code, "message": sentence} for code, sentence in item.idea.reasons],
        "hindrance": item.idea.hindrance,
    }


def _show(result: ReconcileReport, *, fix: bool) -> None:
    """One line for each disagreement, the rule above them. What --fix settled is said as what was written."""
    by_rule: dict[tuple[str, str, str], list[Disagreement]] = {}
    for item in result.found:
        if not (fix and item.action == "fix"):
            by_rule.setdefault((item.rule, item.winner, item.reason), []).append(item)
    for (rule, winner, reason), items in by_rule.items():
        wins = f"wins: {winner}" if winner else "undecided"
        echo(f"{style(rule, bold=True)}  {len(items)}, {wins} ({reason})")
        for item in items[:_MOST]:
            place = style(item.place, fg=_TINTS[item.action])
            echo(f"  {place}: {item.says} | {item.other}: {item.other_says}")
            if item.step and not item.is_held:
                echo(f"    {item.step}")
        _tell_more(len(items), "  ")
    for line in result.done[:_MOST]:
        echo(style("written ", fg="green") + line)
    _tell_more(len(result.done))
    show_offers(result.offered)
    if result.crowding:
        echo(style("too long ", fg="yellow") + result.crowding)
    if result.held:
        echo(style("held back ", fg="red") + result.held)
    if result.unindexed:
        count = len(result.unindexed)
        few = ", ".join(path.rpartition("/")[2] for path in result.unindexed[:3]) + (", …" if count > 3 else "")
        what = f"{many(count, 'card')} without a line in {INDEX}, because it was taken out or another memory lists them"
        echo(style(f"{what}: {few}", dim=True))
    for problem in result.problems:
        echo(style("not checked ", fg="red") + problem)
    if not result.found:
        echo(style("no contradictions found", fg="green"))
    elif not fix:
        _show_next(result)


def _tell_more(count: int, indent: str = "") -> None:
    if count > _MOST:
        echo(f"{indent}… and {count - _MOST} more; --json has all of them")


def _show_next(result: ReconcileReport) -> None:
    """Count what --fix can decide, and what is new for review."""
    decided = sum(item.action == "fix" for item in result.found)
    questions = [item for item in result.found if item.action == "ask"]
    asked = sum(bool(item.step) for item in questions)
    counts = {"decided": decided, "for review": len(questions) - asked, "already in review": asked}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if decided or len(questions) > asked:
        echo(f"{told}. next: truekeep reconcile --fix")
    elif asked:
        echo(f"{told}. next: truekeep review list")


def show_offers(offered: tuple[ProposalOutcome, ...], *, dry_run: bool = False) -> None:
    """Print the proposals, and why some were not made."""
    words = {
        "proposed": ("would propose" if dry_run else "proposed", "yellow"),
        "rejected": ("was turned down before", None),
        "withheld": ("not proposed, holds a credential", "red"),
        "unfit": ("not proposed", "yellow"),
    }
    for item in offered:
        if item.state not in words:
            continue
        word, tint = words[item.state]
        echo(f"{style(word, fg=tint)} {item.draft}".rstrip())
        for _, sentence in item.idea.reasons if item.state != "rejected" else ():
            echo(f"  {sentence}")
        if item.idea.hindrance:
            echo(f"  {item.idea.hindrance}")
    waiting, later, new = (sum(item.state == state for item in offered) for state in ("waiting", "later", "proposed"))
    if waiting:
        echo(f"{waiting} already in review")
    if later:
        echo(f"{later} more will follow when these are decided")
    if waiting or (new and not dry_run):
        echo("next: truekeep review list")
