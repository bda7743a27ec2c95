"""`truekeep resolve`: what memory says about one thing, in the order in which it is to be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import shown_age
from truekeep.interfaces.cli.output import json_option, open_workspace, print_json, shown_verdict, workspace_option
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.text.unicode import clip

if TYPE_CHECKING:
    from truekeep.verify.resolve import Resolution


@click.command()
@click.argument("topic", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of memories."
)
@json_option
@workspace_option
@click.pass_context
def resolve(ctx: click.Context, topic: tuple[str, ...], limit: int, as_json: bool, workspace: str | None) -> None:
    """Show what memory says about a topic, most trusted first.

    Current code comes first, then git, then memory of the last days, then older memory. Memory that code refutes comes
    last.

    Example: truekeep resolve "staging port"
    """
    resolution = open_workspace(ctx, workspace).verification.resolve(" ".join(topic), limit=limit)
    if as_json:
        print_json("resolve", shown_resolution(resolution))
        return
    _show(resolution)


def shown_resolution(resolution: Resolution) -> dict[str, Any]:
    return {
        "topic": resolution.topic,
        "winner": resolution.winner,
        "why": resolution.why,
        "code": [shown_verdict(verdict) for verdict in resolution.code],
        "statements": [
            {
                "citation": item.citation,
                "text": item.text,
                "store": item.store,
                "day": item.day,
                "age_days": item.age_days,
                "rank": item.rank,
                "trust": item.trust,
                "repository": item.repository,
                "claims": [shown_verdict(verdict) for verdict in item.verdicts],
            }
            for item in resolution.statements
        ],
    }


def _telling(text: str) -> list[str]:
    """The first lines of a memory that say something; headings only where there is nothing else."""
    lines = [line for line in text.split("\n") if line.strip()]
    return ([line for line in lines if not line.startswith("#")] or lines)[:3]


def _show(resolution: Resolution) -> None:
    for verdict in resolution.code:
        said = f"{verdict.claim.shown}: {verdict.verdict}, {verdict.why}"
        echo(f"{style('code', fg='green', bold=True)}  {said}")
    if not resolution.statements:
        echo("memory says nothing about it")
        return
    for number, item in enumerate(resolution.statements, 1):
        is_winner = item.citation == resolution.winner
        mark = style("★", fg="green") if is_winner else " "
        colour = "red" if item.rank > 4 else "green" if item.rank <= 2 else None
        place = style(item.citation, bold=is_winner)
        trust = style(item.trust, fg=colour)
        echo(f"{mark} {number}. {place}  {item.store}  {shown_age(item.age_days)}  {trust}")
        for line in _telling(item.text):
            echo(f"      {clip(line, 140)}")
        for verdict in item.verdicts:
            if verdict.verdict in ("gone", "moved", "changed"):
                what = f"{verdict.verdict}: {verdict.claim.shown}: {verdict.why}"
                echo(style(f"      {what}", fg="yellow"))
    winner = resolution.winner or "none of them"
    echo(f"{style('believe', bold=True)} {winner}: {resolution.why}")
