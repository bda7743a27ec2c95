"""truekeep card split and card join."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from truekeep.core.dates import many
from truekeep.core.errors import BadInput, as_argument
from truekeep.core.machine import person
from truekeep.core.model import INDEX
from truekeep.interfaces.cli.complete_values import complete_cards, complete_files
from truekeep.interfaces.cli.output import (
    json_option,
    open_workspace,
    print_difference,
    print_json,
    print_table,
    workspace_option,
)
from truekeep.interfaces.cli.terminal import ask_yes_no, echo, print_note, style
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.workspace.card_splitting import SplitRequest, count_lines

if TYPE_CHECKING:
    from truekeep.memory.card_split import SplitCard, StayingSection
    from truekeep.workspace.card_splitting import JoinResult, LinkFromElsewhere, SplitResult
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
@json_option
@workspace_option
@click.pass_context
def split(ctx: click.Context, /, as_json: bool, workspace: str | None, **given: Any) -> None:
    """Split a long file, MEMORY.md by default, into cards.

    Shows the plan; --yes writes it. Long sections become cards with a line in the index; long ones with subsections
    become one card for each. What every session needs stays: who the user is, standing rules, short sections, links.
    Every line is on one card or stays; links between the parts are kept. A section with a credential stays.
    `truekeep undo` restores everything; `truekeep card join` puts cards back.

    Example: truekeep card split
    """
    if given["interactive"] and (as_json or not sys.stdin.isatty()):
        raise BadInput("--interactive needs a terminal", hint="choose with --only HEADING and --keep HEADING")
    opened = open_workspace(ctx, workspace)
    request = SplitRequest(
        path=given["file"],
        only=given["only"],
        keep=given["keep"],
        lines=given["lines"],
        takes_all=given["takes_all"],
        anyway=given["anyway"],
        rewrites_links=given["rewrites_links"],
    )
    seen: bytes | None = None
    is_wanted = given["yes"]
    if given["interactive"]:
        request, seen = _ask_about_each(opened, request)
        is_wanted = True
    result = (
        opened.cards.split(request, actor=person(), seen=seen) if is_wanted else opened.cards.preview_split(request)
    )
    if as_json:
        print_json("card-split", _split_json(result, given["shows_diff"]))
        return
    _show_split(result, shows_diff=given["shows_diff"], rewrites_links=given["rewrites_links"])


def _ask_about_each(opened: Workspace, request: SplitRequest) -> tuple[SplitRequest, bytes]:
    """The request without the sections that a person wants to keep, and the file that they saw."""
    result = opened.cards.preview_split(request)
    refused = []
    for card in result.plan.cards:
        echo(f"{_place(card)}  {style(card.path, fg='green')}")
        echo(f"  {withhold(printable(card.label))}")
        if not ask_yes_no("Make this card?", default=True):
            refused.append(card.headings[-1])
    return request._replace(keep=(*request.keep, *refused)), result.before


def _split_json(result: SplitResult, shows_diff: bool) -> dict[str, Any]:
    plan = result.plan
    return {
        "path": plan.path,
        "entry": result.entry,
        "cards": [
            {
                "path": card.path,
                "topic": card.topic,
                "summary": card.summary,
                "category": card.category,
                "tags": list(card.tags),
                "created": card.created,
                "updated": card.updated,
                "first_line": card.first + 1,
                "last_line": card.last,
            }
            for card in plan.cards
        ],
        "stays": [
            {
                "heading": withhold(section.title),
                "first_line": section.first + 1,
                "last_line": section.last,
                "why": section.why,
                "needs_a_look": section.is_held,
            }
            for section in plan.stays
        ],
        "links": [_link_json(link) for link in result.links],
        "notes": list(result.notes),
        "before": _size_json(result.before),
        "after": _size_json(result.after),
        "difference": [withhold(line) for line in result.difference] if shows_diff else [],
    }


def _link_json(link: LinkFromElsewhere) -> dict[str, Any]:
    return {"path": link.path, "line": link.line, "old": link.old, "new": link.new}


def _size_json(data: bytes) -> dict[str, int]:
    return {"lines": count_lines(data), "bytes": len(data)}


def _show_split(result: SplitResult, *, shows_diff: bool, rewrites_links: bool) -> None:
    plan = result.plan
    if shows_diff:
        print_difference([withhold(line) for line in result.difference])
    if plan.cards:
        print_table(["lines", "card", "written", "index line"], [_row(card) for card in plan.cards], whole=(0, 2))
    _show_staying([section for section in plan.stays if not section.is_held])
    for section in plan.stays:
        if section.is_held:
            echo(f"{style('not moved', fg='yellow')} {withhold(printable(section.title))}: {withhold(section.why)}")
    _show_links(result.links, is_rewritten=rewrites_links, is_done=result.entry is not None)
    for note in result.notes:
        print_note(note)
    if not plan.cards:
        echo(f"{plan.path} ({_size(result.before)}): nothing to move; --all or --only HEADING moves sections anyway")
        return
    sizes = f"{plan.path}: {_size(result.before)} → {_size(result.after)}"
    if result.entry is None:
        echo(
            f"{sizes} with {many(len(plan.cards), 'card')}; nothing was written: add --yes, or --diff to see every line"
        )
    else:
        done = style("wrote", fg="green")
        echo(f"{done} {many(len(plan.cards), 'card')}; {sizes} (`truekeep undo {result.entry}` undoes it)")


def _row(card: SplitCard) -> list[str]:
    return [_place(card), card.name, str(card.updated), withhold(printable(card.label))]


def _place(card: SplitCard) -> str:
    return f"{card.first + 1}-{card.last}"


def _show_staying(stays: Sequence[StayingSection]) -> None:
    by_reason: dict[str, list[str]] = {}
    for section in stays:
        by_reason.setdefault(section.why, []).append(withhold(printable(section.title)))
    for why, titles in by_reason.items():
        echo(f"stays ({why}): {'; '.join(titles)}")


def _show_links(links: Sequence[LinkFromElsewhere], *, is_rewritten: bool, is_done: bool) -> None:
    if not links:
        return
    what = ("rewrote" if is_done else "would rewrite") if is_rewritten else "to edit, or add --links:"
    for link in links[:MAX_LINKS_SHOWN]:
        echo(f"{what} {printable(link.path)}:{link.line}  {printable(link.old)} → {printable(link.new)}")
    if len(links) > MAX_LINKS_SHOWN:
        echo(f"… and {many(len(links) - MAX_LINKS_SHOWN, 'more link')}")


def _size(data: bytes) -> str:
    return f"{many(count_lines(data), 'line')}, {len(data) / 1000:.1f} kB"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="CARD...", shell_complete=complete_cards)
@click.option(
    "--into", default=INDEX, metavar="FILE", shell_complete=complete_files, help=f"File to add to. [default: {INDEX}]"
)
@click.option("--links", "rewrites_links", is_flag=True, help="Also rewrite links to these cards in other files.")
@click.option("--yes", is_flag=True, help="Write it; without it, only the change is shown.")
@json_option
@workspace_option
@click.pass_context
def join(
    ctx: click.Context,
    names: tuple[str, ...],
    into: str,
    rewrites_links: bool,
    yes: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Put cards back into a file as sections.

    The opposite of `truekeep card split`: a card that was split from the file goes back to where its link is, any other
    becomes a section. The cards and their index lines are removed; `truekeep undo` restores them.

    Example: truekeep card join staging-proxy --into MEMORY.md
    """
    opened = open_workspace(ctx, workspace)
    if yes:
        result = opened.cards.join(names, into, actor=person(), rewrites_links=rewrites_links)
    else:
        result = opened.cards.preview_join(names, into, rewrites_links=rewrites_links)
    if as_json:
        print_json("card-join", _join_json(result))
    else:
        _show_join(result, rewrites_links=rewrites_links)


def _join_json(result: JoinResult) -> dict[str, Any]:
    return {
        "path": result.path,
        "entry": result.entry,
        "cards": list(result.names),
        "links": [_link_json(link) for link in result.links],
        "left": [withhold(printable(line)) for line in result.left],
        "before": _size_json(result.before),
        "after": _size_json(result.after),
        "difference": [withhold(line) for line in result.difference],
    }


def _show_join(result: JoinResult, *, rewrites_links: bool) -> None:
    if result.entry is None:
        print_difference([withhold(line) for line in result.difference])
    _show_links(result.links, is_rewritten=rewrites_links, is_done=result.entry is not None)
    for line in result.left:
        echo(style(f"{INDEX} still says: ", fg="yellow") + withhold(printable(line)))
    sizes = f"{result.path}: {_size(result.before)} → {_size(result.after)}"
    if result.entry is None:
        echo(f"{sizes}; nothing was written: add --yes to join {many(len(result.names), 'card')}")
    else:
        done = style("joined", fg="green")
        undo = f"`truekeep undo {result.entry}` undoes it"
        echo(f"{done} {many(len(result.names), 'card')} into {as_argument(result.path)}; {sizes} ({undo})")
