"""What daily logs keep repeating, or call structural, and no card holds yet: proposed as cards, with where it was said.

A log tells what happened; what lasts belongs into a card. Statements of mostly the same words are one, whatever day
they are of. A card holds a statement when a passage of it has nearly all of its telling words. A word tells the more,
the fewer cards have it: what logs say of two services in the same words are two statements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from truekeep.card import Card, parse_card, words_of
from truekeep.disk import decode_text
from truekeep.handoff import compose_handoff, slugify
from truekeep.hidden import printable
from truekeep.model import CARDS
from truekeep.proposal import Idea
from truekeep.survey import Survey, hash_word, statement_words
from truekeep.tidy.duplicates import names_in
from truekeep.words import STOP

BY = "tidy promote"
OFTEN = 3  # days on which a log says it
ALIKE = 0.75  # of the words of two statements, by how telling they are, for them to be one
HELD = 0.92  # of a statement's words, by how telling they are, in one card
_LEAST = 100  # cards: in a store of three, a word that two share is not common
_SHOWN = 12  # places that a draft names
_TITLE = 90

_OFTEN_SAID = ("again", "ever", "never", "always", "still", "yet", "already", "now", "today")  # whatever is told
_COMMON = frozenset(hash_word(word) for word in (*STOP, *_OFTEN_SAID))

Read = Callable[[str], bytes | None]


class Place(NamedTuple):
    """Where a log says something."""

    day: str
    path: str
    line: int
    text: str

    @property
    def cited(self) -> str:
        return f"{self.path}:{self.line}"


class Statement(NamedTuple):
    """Something that logs say, once or often."""

    kind: str  # of its tag; empty without one
    importance: float
    places: tuple[Place, ...]

    @property
    def text(self) -> str:
        return self.places[-1].text  # as it was said last

    @property
    def days(self) -> int:
        return len({place.day for place in self.places})


def lasting_statements(survey: Survey, *, structural: float) -> list[Statement]:
    """Statements of logs that last: called structural, or said on several days. Those alike are one."""
    groups = _Groups(Weights(survey))
    for entry in survey.entries():
        first = entry.text.strip().split("\n", 1)[0].strip()
        if entry.importance >= structural and len(statement_words(first)) >= 3:
            groups.add(Place(entry.day, entry.path, entry.first, first), entry.kind, entry.importance)
    for rows in survey.repeated(OFTEN):
        for day, path, line, text in rows:
            groups.add(Place(day, path, line, text), "", 0.0)
    found = [group.statement() for group in groups.all]
    return [item for item in found if item.importance >= structural or item.days >= OFTEN]


class Weights:
    """How telling words are: the more, the fewer cards have them."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._total = max(_LEAST, survey.count("cards"))
        self._known: dict[int, float] = {}

    def of(self, words: Iterable[int]) -> float:
        return sum(self._of(word) for word in words)

    def _of(self, word: int) -> float:
        known = self._known.get(word)
        if known is None:
            ((_, count),) = self._survey.counted((word,))
            cards = self._total // 2 if word in _COMMON else max(0, count)
            known = math.log((self._total + 2) / (cards + 1))
            self._known[word] = known
        return known


class _Group:
    """Places that say one thing."""

    def __init__(self, words: set[int], weight: float) -> None:
        self.words, self.weight = words, weight
        self.places: dict[tuple[str, int], Place] = {}
        self.kind, self.importance = "", 0.0

    def statement(self) -> Statement:
        return Statement(self.kind, self.importance, tuple(sorted(self.places.values())))


class _Groups:
    """Groups of statements that are alike, found by the words that few of them have."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.all: list[_Group] = []
        self._by_word: dict[int, list[_Group]] = {}

    def add(self, place: Place, kind: str, importance: float) -> None:
        words = statement_words(place.text)
        group = self._find(words)
        if group is None:
            group = _Group(words, self._weights.of(words))
            self.all.append(group)
            for word in words:
                self._by_word.setdefault(word, []).append(group)
        group.places.setdefault((place.path, place.line), place)
        if importance > group.importance:
            group.kind, group.importance = kind, importance

    def _find(self, words: set[int]) -> _Group | None:
        known = [self._by_word[word] for word in words if word in self._by_word]
        best, most, own = None, ALIKE, self._weights.of(words)
        for group in {id(group): group for groups in sorted(known, key=len)[:4] for group in groups[-200:]}.values():
            both = self._weights.of(words & group.words)
            every = own + group.weight - both
            alike = both / every if every else 1.0
            if alike >= most:
                best, most = group, alike
        return best


def is_held(survey: Survey, read: Read, text: str, weights: Weights) -> str:
    """The card that holds a statement; nothing where none does. What has another name or number in it is another."""
    words = statement_words(text)
    named, wanted = names_in(text), HELD * weights.of(words)
    for path in survey.holders(words):
        data = read(path)
        card = parse_card(path.removeprefix(f"{CARDS}/"), decode_text(data) or "") if data is not None else None
        if card is None:
            continue
        for said in _passages(card):
            if named <= said and weights.of(words & {hash_word(word) for word in said}) >= wanted:
                return path
    return ""


def _passages(card: Card) -> Iterator[set[str]]:
    """The words of every two lines of a card that follow each other, with those of its topic."""
    topic = set(words_of(card.topic))
    lines = [words for words in map(words_of, card.body.split("\n")) if words]
    for one, other in zip_longest(lines, lines[1:], fillvalue=()):
        yield {*topic, *one, *other}


def promotion_ideas(survey: Survey, read: Read, *, structural: float) -> Iterator[Idea]:
    """A card for every lasting statement that none holds, the weightiest first."""
    statements = lasting_statements(survey, structural=structural)
    statements.sort(key=lambda item: (-item.importance, -item.days, item.places[0]))
    names: set[str] = set()
    weights = Weights(survey)
    for item in statements:
        if is_held(survey, read, item.text, weights):
            continue
        name = _free_name(item.places[0].text, lambda name: name in names or read(f"{CARDS}/{name}") is not None)
        names.add(name)
        yield promotion_idea(item, name)


def promotion_idea(item: Statement, name: str) -> Idea:
    text = " ".join(item.text.split())
    why = [("structural", f"{item.places[-1].cited} marks it with i={item.importance:g}")] if item.importance else []
    if item.days >= OFTEN:
        why.append(("repeated", f"said on {item.days} days, from {item.places[0].day} to {item.places[-1].day}"))
    said = list(dict.fromkeys(" ".join(place.text.split()) for place in reversed(item.places)))[:5]
    cited = [f"{place.cited}: {place.text}" for place in item.places[-_SHOWN:]]
    cited += [f"and {len(item.places) - _SHOWN} earlier places"] if len(item.places) > _SHOWN else []
    handoff = compose_handoff(
        title=text[:_TITLE],
        kind="decision" if item.kind == "decision" else "project-context",
        summary=f"Daily logs say this, and no card holds it: {printable(text[:200])}",
        evidence=[printable(line) for line in cited],
        card=name,
        topic=printable(text[:_TITLE]),
        category=item.kind or "log",
        tags=["from-log"],
        content=printable("\n".join(f"- {line}" for line in said), newlines=True) + "\n",
    )
    words = sorted(statement_words(item.places[0].text))
    return Idea(
        by=BY,
        slug=f"promote-{name.removesuffix('.md')}",
        reasons=tuple(why),
        text=handoff,
        target=f"{CARDS}/{name}",
        key=" ".join(map(str, words)),
    )


def _free_name(text: str, is_taken: Callable[[str], bool]) -> str:
    stem = slugify(text, limit=60) or "from-the-logs"
    name, number = f"{stem}.md", 2
    while is_taken(name):
        name, number = f"{stem}-{number}.md", number + 1
    return name
