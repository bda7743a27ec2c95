"""`truekeep resolve`: what memory says about one thing, in the order in which it is to be believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from truekeep.core.dates import shown_age
from truekeep.interfaces.cli.options import in_workspace
from truekeep.interfaces.cli.output import Shown, emit
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import style
from truekeep.text.unicode import clip

if TYPE_CHECKING:
    from truekeep.verify.resolve import Resolution
    from truekeep.workspace.workspace import Workspace


@click.command()
@click.argument("topic", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of memories."
)
@in_workspace
def resolve(opened: Workspace, topic: tuple[str, ...], limit: int) -> None:
    """Show what memory says about a topic, most trusted first.

    Current code comes first, then git, then memory of the last days, then older memory. Memory that code refutes comes
    last.

    Example: truekeep resolve "staging port"
    """
    with ProgressDisplay("searching"):
        resolution = opened.verification.resolve(" ".join(topic), limit=limit)
    emit("resolve", resolution, _render(resolution))


def _telling(text: str) -> list[str]:
    """The first lines of a memory that say something; headings only where there is nothing else."""
    lines = [line for line in text.split("\n") if line.strip()]
    return ([line for line in lines if not line.startswith("#")] or lines)[:3]


def _render(resolution: Resolution) -> Iterator[Shown]:
    for verdict in resolution.code:
        said = f"{verdict.claim.shown}: {verdict.verdict}, {verdict.why}"
        yield f"{style('code', fg='green', bold=True)}  {said}"
    if not resolution.statements:
        yield "memory says nothing about it"
        return
    for number, item in enumerate(resolution.statements, 1):
        is_winner = item.citation == resolution.winner
        mark = style("★", fg="green") if is_winner else " "
        colour = "red" if item.rank > 4 else "green" if item.rank <= 2 else None
        place = style(item.citation, bold=is_winner)
        trust = style(item.trust, fg=colour)
        age = shown_age(item.age_days, is_file_time=item.is_file_time)
        yield f"{mark} {number}. {place}  {item.store}  {age}  {trust}"
        for line in _telling(item.text):
            yield f"      {clip(line, 140)}"
        for verdict in item.verdicts:
            if verdict.verdict in ("gone", "moved", "changed"):
                what = f"{verdict.verdict}: {verdict.claim.shown}: {verdict.why}"
                yield style(f"      {what}", fg="yellow")
    winner = resolution.winner or "none of them"
    yield f"{style('believe', bold=True)} {winner}: {resolution.why}"
