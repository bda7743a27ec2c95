"""truekeep card split and card join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.machine import person
from truekeep.core.model import INDEX
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files
from truekeep.interfaces.cli.options import in_workspace, wants_json
from truekeep.interfaces.cli.output import Shown, emit, how_to_undo
from truekeep.interfaces.cli.progress import ProgressDisplay
from truekeep.interfaces.cli.terminal import ask_yes_no, can_ask, echo, note, render_difference, style
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace.card_splitting import SplitRequest

if TYPE_CHECKING:
    from truekeep.memory.card_split import SplitCard, StayingSection
    from truekeep.workspace.card_splitting import FileRewrite, FileSize, JoinResult, LinkFromElsewhere, SplitResult
    from truekeep.workspace.workspace import Workspace

MAX_LINKS_SHOWN = 20


@click.command()
@click.argument("file", default=INDEX, shell_complete=complete_files)
@click.option("--only", multiple=True, metavar="HEADING", help="Only this section, whatever its size; may be repeated.")
@click.option("--keep", multiple=True, metavar="HEADING", help="Leave this section where it is; may be repeated.")
@click.option("--all", "takes_all", is_flag=True, help="Move all sections but the essentials, not only the longest.")
@click.option(
    "--lines", type=click.IntRange(1), metavar="N", help="Length to aim at. [default: half of what agents read]"
)
@click.option("--links", "rewrites_links", is_flag=True, help="Also rewrite links to these sections in other files.")
@click.option("--anyway", is_flag=True, help="Move sections with suspicious text, too; credentials never are.")
@click.option("--diff", "shows_diff", is_flag=True, help="Show every line that would change.")
@click.option("--interactive", is_flag=True, help="Ask about each card.")
@click.option("--yes", is_flag=True, help="Write the cards; without it, only the plan is shown.")
@in_workspace
def split(opened: Workspace, /, file: str, shows_diff: bool, interactive: bool, yes: bool, **given: Any) -> None:
    """Split a long file, MEMORY.md by default, into cards.

    Shows the plan; --yes writes it. Long sections become cards with a line in the index; long ones with subsections
    become one card for each. What every session needs stays: who the user is, standing rules, short sections, links.
    Every line is on one card or stays; links between the parts are kept. A section with a credential stays.
    `truekeep undo` restores everything; `truekeep card join` puts cards back.

    Example: truekeep card split
    """
    request = SplitRequest(path=file, **given)
    seen: bytes | None = None
    if interactive:
        request, seen = _ask_about_each(opened, request)
    with ProgressDisplay("reading memory"):
        if yes or interactive:
            result = opened.cards.split(request, actor=person(), seen=seen)
        else:
            result = opened.cards.preview_split(request)
    emit("card-split", result, _render_split(result, shows_diff=shows_diff, rewrites_links=request.rewrites_links))


def _ask_about_each(opened: Workspace, request: SplitRequest) -> tuple[SplitRequest, bytes]:
    """The request without the sections that a person wants to keep, and the file that they saw."""
    if wants_json() or not can_ask():
        raise BadInput("--interactive needs a terminal", hint="choose with --only HEADING and --keep HEADING")
    result = opened.cards.preview_split(request)
    refused = []
    for card in result.plan.cards:
        echo(f"{_place(card)}  {style(card.path, fg='green')}")
        echo(f"  {withhold(printable(card.label))}")
        if not ask_yes_no("Make this card?", default=True):
            refused.append(card.headings[-1])
    return request._replace(keep=(*request.keep, *refused)), result.file.before


def _render_split(result: SplitResult, *, shows_diff: bool, rewrites_links: bool) -> Iterator[Shown]:
    plan = result.plan
    is_done = result.entry is not None
    if shows_diff:
        yield from render_difference([withhold(line) for line in result.difference])
    for card in plan.cards:
        yield f"{_place(card):<9} {card.updated}  {style(card.name, fg='green')}"
        yield f"{'':22}{withhold(printable(card.label))}"
    yield from _render_staying([section for section in plan.stays if not section.is_held])
    for section in plan.stays:
        if section.is_held:
            yield f"{style('not moved', fg='yellow')} {withhold(printable(section.title))}: {withhold(section.why)}"
    yield from _render_links(result.links, is_rewritten=rewrites_links, is_done=is_done)
    for line in result.notes:
        yield note(line)
    sizes = _sizes(result.file)
    cards = many(len(plan.cards), "card")
    if not plan.cards:
        what = "nothing to move; --all or --only HEADING moves sections anyway"
        yield f"{plan.path} ({_size(result.file.old_size)}): {what}"
    elif not is_done:
        yield f"{sizes} with {cards}; nothing was written: add --yes, or --diff to see every line"
    else:
        yield f"{style('wrote', fg='green')} {cards}; {sizes}{how_to_undo(result.entry)}"


def _place(card: SplitCard) -> str:
    return f"{card.first_line}-{card.last}"


def _render_staying(stays: Sequence[StayingSection]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for section in stays:
        by_reason.setdefault(section.why, []).append(withhold(printable(section.title)))
    for why, titles in by_reason.items():
        yield f"stays ({why}): {'; '.join(titles)}"


def _render_links(links: Sequence[LinkFromElsewhere], *, is_rewritten: bool, is_done: bool) -> Iterator[str]:
    what = ("rewrote" if is_done else "would rewrite") if is_rewritten else "to edit, or add --links:"
    for link in links[:MAX_LINKS_SHOWN]:
        yield f"{what} {printable(link.path)}:{link.line}  {printable(link.old)} → {printable(link.new)}"
    if len(links) > MAX_LINKS_SHOWN:
        yield f"… and {many(len(links) - MAX_LINKS_SHOWN, 'more link')}"


def _sizes(file: FileRewrite) -> str:
    return f"{file.path}: {_size(file.old_size)} → {_size(file.new_size)}"


def _size(size: FileSize) -> str:
    return f"{many(size.lines, 'line')}, {size.bytes / 1000:.1f} kB"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="CARD...", shell_complete=complete_cards)
@click.option(
    "--into", default=INDEX, metavar="FILE", shell_complete=complete_files, help=f"File to add to. [default: {INDEX}]"
)
@click.option("--links", "rewrites_links", is_flag=True, help="Also rewrite links to these cards in other files.")
@click.option("--yes", is_flag=True, help="Write it; without it, only the change is shown.")
@in_workspace
def join(opened: Workspace, names: tuple[str, ...], into: str, rewrites_links: bool, yes: bool) -> None:
    """Put cards back into a file as sections.

    The opposite of `truekeep card split`: a card that was split from the file goes back to where its link is, any other
    becomes a section. The cards and their index lines are removed; `truekeep undo` restores them.

    Example: truekeep card join staging-proxy --into MEMORY.md
    """
    if yes:
        result = opened.cards.join(names, into, actor=person(), rewrites_links=rewrites_links)
    else:
        result = opened.cards.preview_join(names, into, rewrites_links=rewrites_links)
    emit("card-join", result, _render_join(result, rewrites_links=rewrites_links))


def _render_join(result: JoinResult, *, rewrites_links: bool) -> Iterator[Shown]:
    is_done = result.entry is not None
    if not is_done:
        yield from render_difference([withhold(line) for line in result.difference])
    yield from _render_links(result.links, is_rewritten=rewrites_links, is_done=is_done)
    for line in result.left:
        yield style(f"{INDEX} still says: ", fg="yellow") + withhold(printable(line))
    sizes = _sizes(result.file)
    cards = many(len(result.names), "card")
    if is_done:
        yield f"{style('joined', fg='green')} {cards}; {sizes}{how_to_undo(result.entry)}"
    else:
        yield f"{sizes}; nothing was written: add --yes to join {cards}"
