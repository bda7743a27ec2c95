"""Search before writing: cards that may cover a topic already, and cards that give a thing another value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import shown_age
from truekeep.core.errors import AlreadyCovered, TruekeepError, as_argument
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, Finding
from truekeep.memory.card import Card, check_card_name, words_of
from truekeep.memory.merge import merge_texts
from truekeep.memory.similarity import sketch, topic_key
from truekeep.memory.values import agree, find_values
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.text.words import STOP, stem_key

if TYPE_CHECKING:
    from truekeep.handoffs.policy_store import StoredMemoryView
    from truekeep.memory.values import Value
    from truekeep.workspace.card_text import CardText
    from truekeep.workspace.workspace import Workspace

MAX_CARDS_SEARCHED, MAX_CARDS_SHOWN = 8, 5
MIN_SHARED_TOPIC_WORDS = 0.6  # share of the words of two topics that makes them the same
MAX_QUERY_CHARACTERS = 240


class CoveringCard(NamedTuple):
    """A card that may cover a topic already."""

    card: Card
    why: str
    is_sure: bool
    said: str = ""  # its verdicts, in a few words
    is_refuted: bool = False


def find_covering(workspace: Workspace, wanted: CardText, repository: str = "") -> tuple[list[CoveringCard], list[str]]:
    """Cards that may cover the topic already, the surest first; and problems of the search."""
    notes: list[str] = []
    found: dict[str, tuple[str, bool]] = {}  # by name: the reason, and whether it is sure
    shelf = workspace.handoffs.memory_view()
    for name, why in _known_covering(shelf, wanted, repository):
        found.setdefault(name, (why, True))
    cards = {name: card for name in found if (card := _read_card(workspace, name)) is not None}
    for name in _recalled(workspace, wanted, notes):
        card = cards.get(name) or _read_card(workspace, name)
        if card is None or name in found:
            continue
        judged = _compared(card, wanted, repository)
        if judged is not None:
            found[name], cards[name] = judged, card
    kept = sorted((name for name in found if name in cards), key=lambda name: not found[name][1])[:MAX_CARDS_SHOWN]
    say = (
        workspace.verification.summaries([cards[name].path for name in kept], workspace.config.verify.budget_ms / 1000)
        if kept
        else None
    )
    covering = []
    for name in kept:
        said, is_refuted = say(cards[name].path, "") if say is not None else ("", False)
        covering.append(CoveringCard(cards[name], *found[name], said, is_refuted))
    return covering, notes


def _known_covering(shelf: StoredMemoryView, wanted: CardText, repository: str) -> Iterator[tuple[str, str]]:
    """Cards with the same name, the same topic or nearly the same text, by the card catalog."""
    if wanted.name and not check_card_name(wanted.name):
        with suppress(UnsafePath, ChangedSince):
            if shelf.read(f"{CARDS}/{wanted.name}") is not None:
                yield wanted.name, "has this name"
        if (clash := shelf.find_clash(wanted.name)) is not None:
            yield clash, "has this name but for letter case"
    if (same := shelf.find_same_topic(topic_key(wanted.topic), repository, "")) is not None:
        yield same, "has the same topic"
    if (near := shelf.find_near(sketch(Card("", wanted.front, wanted.body)), "")) is not None:
        yield near, "says nearly the same"


def _recalled(workspace: Workspace, wanted: CardText, notes: list[str]) -> list[str]:
    """The names of cards that a search for the topic and for the first lines finds."""
    names: dict[str, None] = {}
    first = " ".join(line for line in wanted.body.split("\n") if not line.startswith(("#", "```", "~~~", "|--")))
    for query in (wanted.topic, first[:MAX_QUERY_CHARACTERS]):
        if not query.strip():
            continue
        try:
            hits = workspace.search.find(query, limit=MAX_CARDS_SEARCHED, stores=("cards",)).hits
        except TruekeepError as error:
            notes.append(f"cards could not be searched: {error.message}")
            break
        names.update((hit.path.removeprefix(f"{CARDS}/"), None) for hit in hits if hit.path.startswith(f"{CARDS}/"))
    return list(names)


def _read_card(workspace: Workspace, name: str) -> Card | None:
    with suppress(TruekeepError):
        return workspace.cards.get(name)[0]
    return None


def _compared(card: Card, wanted: CardText, repository: str) -> tuple[str, bool] | None:
    """Why a card covers the text, and whether that is sure; None if it is about something else."""
    own = card.body.strip("\n")
    if merge_texts(own, wanted.body) == own:
        return "says all of it already", True
    if topic_key(card.topic) == topic_key(wanted.topic):
        return "has the same topic", repository in ("", card.repository)
    here, there = _topic_words(wanted.topic), _topic_words(card.topic)
    shared = here & there
    is_apart = bool(repository and card.repository and card.repository != repository)
    if len(shared) >= 2 and shared in (here, there) and len(shared) >= MIN_SHARED_TOPIC_WORDS * len(here | there):
        return "is about the same", not is_apart
    if shared and len(shared) >= MIN_SHARED_TOPIC_WORDS * min(len(here), len(there)):
        return "may be about the same", False
    return None


def _topic_words(topic: str) -> set[str]:
    return {stem_key(word) for word in words_of(topic) if word not in STOP}


def find_contradictions(
    workspace: Workspace, wanted: CardText, repository: str, notes: list[str], *, but: str = ""
) -> list[Finding]:
    """A finding for each value that another card gives differently, with the line of the given text.

    A text that gives a thing several values lists them, and contradicts no card. `but`: the card that is added to.
    """
    existing = _read_card(workspace, but) if but else None
    if existing is not None:
        repository = existing.repository or repository
    topic = wanted.topic or (existing.topic if existing is not None else "")
    given: dict[tuple[str, str], list[Value]] = {}
    for value in find_values(wanted.body, topic=topic, repository=repository):
        given.setdefault((value.kind, value.subject), []).append(value)
    found: list[Finding] = []
    try:
        survey = workspace.maintenance.survey() if given else None
    except TruekeepError as error:
        notes.append(f"cards could not be looked through for other values: {error.message}")
        return []
    for (kind, subject), values in given.items():
        value = values[0]
        if survey is None or any(not agree(kind, value.value, other.value) for other in values):
            continue
        by_path: dict[str, list[Value]] = {}
        for said in survey.values_of(kind, subject):
            is_apart = bool(repository and said.repository and said.repository != repository)
            if said.store == "cards" and said.path != f"{CARDS}/{but}" and not is_apart:
                by_path.setdefault(said.path, []).append(said.value)
        for path, said_there in by_path.items():
            if not any(agree(kind, value.value, other.value) for other in said_there):
                other = said_there[0]
                told = f"{subject} {kind} is {value.value} here, and {path}:{other.line} says {other.value}"
                found.append(Finding("two-values", withhold(printable(told)), wanted.first + value.line - 1))
    return found


def already_covered(covering: Sequence[CoveringCard], today: date) -> AlreadyCovered:
    """The error for a topic that a card covers already; its hint says how to add to that card."""
    sure = [item for item in covering if item.is_sure]
    name = sure[0].card.name.removesuffix(".md")
    return AlreadyCovered(
        f"memory has this already: {sure[0].card.path} {sure[0].why}; nothing was written",
        hint=f"`truekeep card write --update {as_argument(name)}` adds to it, --anyway makes a new card",
        cards=[item.card.name for item in sure],
        story=[describe_covering(item, today) for item in covering],
    )


def describe_covering(item: CoveringCard, today: date) -> str:
    """A card that may cover a topic, in one line."""
    day = item.card.updated
    age = shown_age(max(0, (today - day).days)) if day else "age unknown"
    said = f"; {item.said}" if item.said else ""
    return withhold(printable(f"{item.card.path} ({age}{said}) {item.why}: {item.card.topic}"))
