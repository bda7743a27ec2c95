"""The text of a card to write: parsed from what was given, composed as a handoff for the policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.core.model import CARDS, HANDOFF_TYPES
from truekeep.core.repository import repository_name
from truekeep.handoffs.format import compose_handoff
from truekeep.memory.frontmatter import Field, Frontmatter, InvalidFrontmatter, quote, split_frontmatter


class CardText(NamedTuple):
    """The text of a card to write, with its frontmatter."""

    front: Frontmatter
    body: str
    name: str = ""  # the card's file name, if one was given
    first: int = 1  # the line of the given text on which the body begins

    @property
    def topic(self) -> str:
        return self.front.text("topic")


class CardAuthor(NamedTuple):
    """The author of a card, with the time and the repository."""

    writer: str  # as cards name it: a harness, or the person
    actor: str
    now: datetime
    root: Path | None = None  # the repository's folder
    repository: str = ""  # its name
    is_named: bool = False  # given on the command line

    @classmethod
    def here(cls, root: Path | None, *, writer: str, actor: str, is_named: bool, memory: Path | None) -> CardAuthor:
        """The author now, in a repository. Memory itself is about no repository, unless it was named."""
        if not is_named and root is not None and memory is not None and root.resolve() == memory.resolve():
            root = None
        now, name = datetime.now().astimezone(), repository_name(root) if root is not None else ""
        return cls(writer=writer, actor=actor, now=now, root=root, repository=name, is_named=is_named)


def parse_card_text(
    text: str, *, name: str = "", topic: str = "", category: str = "", tags: Sequence[str] = (), is_update: bool = False
) -> CardText:
    """Parse a text with or without frontmatter; the other arguments take precedence over the frontmatter."""
    try:
        front, body = split_frontmatter(text.lstrip("\n"))
    except InvalidFrontmatter as error:
        raise BadInput(f"line {error.line} of the text: {error.what}", hint="fix the frontmatter") from error
    front = front or Frontmatter()
    for key, value in (("topic", topic), ("category", category)):
        if value.strip():
            front = front.with_text(key, value)
    if tags:
        front = with_tags(front, tags)
    if not is_update and not front.text("topic"):
        raise BadInput("the card has no topic", hint="say in one line what it is about: --topic TEXT")
    if not body.strip():
        raise BadInput("there is no text to write", hint="give it on standard input, or with --file FILE")
    if not is_update and not front.text("category"):
        front = front.with_text("category", "project-context")
    if not is_update and front.find("tags") is None:
        front = with_tags(front, ())
    first = text[: text.rindex(body)].count("\n") + len(body) - len(body.lstrip("\n")) + 1
    name = name.removeprefix(f"{CARDS}/")
    if name and not name.endswith(".md"):
        name += ".md"
    return CardText(front, body.strip("\n").rstrip(), name, first)


def with_tags(front: Frontmatter, tags: Iterable[str]) -> Frontmatter:
    value = f"[{', '.join(quote(tag) for tag in tags)}]"
    field = Field("tags", value, f"tags: {value}\n")
    if front.find("tags") is None:
        return Frontmatter((*front.fields, field))
    return Frontmatter(tuple(field if old.key == "tags" else old for old in front.fields))


def compose(wanted: CardText, name: str, *, update: bool = False) -> str:
    kind = wanted.front.text("category")
    return compose_handoff(
        title=wanted.topic or name.removesuffix(".md"),
        kind=kind if kind in HANDOFF_TYPES else "project-context",
        card=name,
        update=update,
        content=f"{wanted.front.render()}\n{wanted.body}\n",
    )
