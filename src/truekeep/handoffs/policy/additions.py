"""Adds what a handoff says to a card that exists: facts are added, nothing is dropped, and what conflicts waits.

This is the way of a handoff on a topic that a card covers, and of an update by another repository or another writer
than the card's. An update by the card's own writer, in its own repository, may change and drop lines; see `card`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from truekeep.core.model import OPENCLAW_INBOX
from truekeep.handoffs.policy.decision import CardOnTopic
from truekeep.handoffs.policy.run import PolicyRun
from truekeep.memory.card import Card
from truekeep.memory.contradictions import find_variant
from truekeep.memory.covering import have_other_numbers, name_other_things
from truekeep.memory.frontmatter import Field, Frontmatter, quote
from truekeep.memory.merge import merge_texts
from truekeep.memory.similarity import sketch
from truekeep.memory.values import Value, agree, find_values
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable

_WHERE = "Suggested card content"
_MAX_CITED = 160


class Conflict(NamedTuple):
    """Two lines that cannot both be true."""

    here: str
    there: str
    path: str


def find_covering(run: PolicyRun, suggested: Card) -> Card | None:
    """The card that a new card's facts belong to; findings about cards that may be about the same."""
    mine = _own_repository(run)
    titled = _titled(suggested, run.handoff.title)
    card_sketch = sketch(titled)
    if run.view.find_near(card_sketch, suggested.name) is not None:
        return None  # a finding of its own
    namesake = run.view.find_same_topic(card_sketch.topic, mine, suggested.name)
    found = [
        item
        for item in run.view.find_on_topic(titled, card_sketch)
        if not have_other_numbers(titled.topic, item.card.topic)
    ]
    for item in found:
        if _is_apart(item.card.repository, mine):
            continue
        if item.certainty == "same" and _is_one_thing(item, titled, namesake):
            return item.card
        if item.card.name != namesake:
            what = f"{item.card.path} is likely about the same ({_cited(item.card.topic)})"
            run.find("likely-covered", what, _WHERE)
            return None
    for item in found:
        if item.certainty == "same" and _is_apart(item.card.repository, mine):
            what = f"{item.card.path} of {item.card.repository} is about the same ({_cited(item.card.topic)})"
            run.find("related-card", what, _WHERE)
    return None


def _is_one_thing(item: CardOnTopic, titled: Card, namesake: str | None) -> bool:
    return item.card.name == namesake or not name_other_things(titled, item.card)


def _own_repository(run: PolicyRun) -> str:
    """The repository of a handoff; none for OpenClaw, which owns all cards: what it repeats is no new card."""
    return "" if run.candidate.writer in OPENCLAW_INBOX else run.candidate.repository


def _is_apart(one: str, other: str) -> bool:
    return bool(one and other and one != other)


def _titled(suggested: Card, title: str) -> Card:
    """The suggested card with the topic that it will have."""
    if suggested.front.text("topic") or not title:
        return suggested
    return suggested._replace(front=suggested.front.with_text("topic", title))


def added(suggested: Card, existing: Card) -> Card:
    """The existing card with the statements, keys and tags that only the suggested one has."""
    body = merge_texts(_plain(existing.body).strip("\n"), suggested.body.strip("\n")).rstrip()
    fields = [field for field in suggested.front.fields if not existing.front.find(field.key)]
    tags = list(dict.fromkeys((*existing.tags, *suggested.tags)))
    if existing.front.find("tags") and tags != list(existing.tags):
        fields.append(Field("tags", "", f"tags: [{', '.join(quote(tag) for tag in tags)}]\n"))
    return Card(existing.name, Frontmatter(tuple(fields)), f"\n{body}\n")


def find_conflicts(suggested: Card, existing: Card) -> Iterator[Conflict]:
    """Statements of a text that cannot be true beside those of a card."""
    body = _plain(existing.body)
    values = _values(body, existing.topic, existing.repository)
    for (kind, subject), given in _values(
        suggested.body, suggested.topic or existing.topic, existing.repository
    ).items():
        said = values.get((kind, subject), [])
        if said and not any(agree(kind, one.value, other.value) for one in given for other in said):
            here, there = (_line(text, some[0]) for text, some in ((suggested.body, given), (body, said)))
            yield Conflict(here, there, existing.path)
            return
    variant = find_variant(body, suggested.body, only_framed=True)
    if variant is not None:
        yield Conflict(variant.other, variant.one, existing.path)


def find_other_values(run: PolicyRun, suggested: Card, name: str) -> None:
    """A finding for each value that another card gives differently. A text that lists several contradicts no card."""
    mine = _own_repository(run)
    for (kind, subject), given in _values(suggested.body, suggested.topic, mine).items():
        value = given[0]
        if any(not agree(kind, value.value, other.value) for other in given):
            continue
        by_path: dict[str, list[Conflict | None]] = {}
        for said in run.view.find_stated(kind, subject, name):
            if not _is_apart(said.repository, mine) and not have_other_numbers(suggested.topic, said.topic):
                is_same = agree(kind, value.value, said.value.value)
                conflict = Conflict(_line(suggested.body, value), said.text, f"{said.path}:{said.line}")
                by_path.setdefault(said.path, []).append(None if is_same else conflict)
        for conflicts in by_path.values():
            first = conflicts[0]
            if first is not None and None not in conflicts:
                note_conflict(run, first)


def note_conflict(run: PolicyRun, conflict: Conflict) -> None:
    what = f'"{_cited(conflict.here)}" here, but {conflict.path} says "{_cited(conflict.there)}"'
    run.find("two-values", what, _WHERE)


def note_addition(run: PolicyRun, existing: Card) -> None:
    what = f"{existing.path} covers the topic ({_cited(existing.topic)}): what is new is added to it"
    run.find("added-to", what, "Target card")


def _values(text: str, topic: str, repository: str) -> dict[tuple[str, str], list[Value]]:
    found: dict[tuple[str, str], list[Value]] = {}
    for value in find_values(text, topic=topic, repository=repository):
        found.setdefault((value.kind, value.subject), []).append(value)
    return found


def _line(text: str, value: Value) -> str:
    return text.split("\n")[value.line - 1]


def _cited(text: str) -> str:
    return clip(withhold(printable(text.strip().removeprefix("- ").strip())), _MAX_CITED)


def _plain(body: str) -> str:
    return body.replace("\r\n", "\n")
