"""truekeep card list, show."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import click

from truekeep.cli.show import (
    age_in_days,
    json_option,
    open_workspace,
    print_json,
    print_table,
    shown_age,
    workspace_option,
)
from truekeep.hidden import printable

if TYPE_CHECKING:
    from truekeep.card import Card


@click.group()
def card() -> None:
    """Look at the cards.

    A card is a claim about one topic at one moment; how old it is comes first.
    """


def _today() -> date:
    return datetime.now().astimezone().date()


def _card_json(found: Card) -> dict[str, Any]:
    return {
        "name": found.name,
        "path": found.path,
        "topic": found.topic,
        "category": found.category,
        "tags": list(found.tags),
        "created": found.created,
        "updated": found.updated,
        "age_days": age_in_days(found.updated, _today()),
        "repository": found.repository,
        "writer": found.writer,
        "problem": found.problem,
    }


@card.command("list")
@click.option("--category", help="Only this category.")
@click.option("--tag", help="Only cards with this tag.")
@json_option
@workspace_option
@click.pass_context
def list_(ctx: click.Context, category: str | None, tag: str | None, as_json: bool, workspace: str | None) -> None:
    """List the cards with their age, origin and topic.

    Example: truekeep card list --tag proxy
    """
    cards = [
        found
        for found in open_workspace(ctx, workspace).cards()
        if (category is None or found.category == category) and (tag is None or tag in found.tags)
    ]
    if as_json:
        print_json("card-list", {"cards": [_card_json(found) for found in cards]})
        return
    rows = [
        [
            found.name,
            shown_age(age_in_days(found.updated, _today())),
            found.category,
            found.writer,
            found.repository,
            found.topic + (f"  [{', '.join(found.tags)}]" if found.tags else ""),
        ]
        for found in cards
    ]
    if rows:
        print_table(["card", "age", "category", "writer", "repository", "topic"], rows)
    click.echo(f"{len(cards)} card(s)")


@card.command()
@click.argument("name")
@json_option
@workspace_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool, workspace: str | None) -> None:
    """Show a card. The first line says how old the claim is and where it came from.

    Example: truekeep card show staging-proxy
    """
    found, text, entry, record = open_workspace(ctx, workspace).card(name)
    handoff = record.origin.name if record else ""
    if as_json:
        data = _card_json(found) | {"text": text, "entry": entry.id if entry else None, "handoff": handoff}
        print_json("card-show", data)
        return
    days = age_in_days(found.updated, _today())
    age = "of unknown age" if days is None else "of today" if days == 0 else f"{days} day{'s' * (days != 1)} old"
    parts = [f"a claim {age}"]
    if found.updated:
        parts.append(f"updated {found.updated}, created {found.created or '?'}")
    if found.writer or found.repository:
        parts.append(f"by {found.writer or '?'} in {found.repository or '?'}")
    if handoff:
        parts.append(f"handoff {printable(handoff)}")
    click.echo(click.style(f"{found.path}: {'; '.join(parts)}", bold=True))
    if found.problem:
        click.echo(click.style(f"frontmatter: {found.problem}", fg="yellow"))
    click.echo()
    click.echo(printable(text, newlines=True).rstrip("\n"))
