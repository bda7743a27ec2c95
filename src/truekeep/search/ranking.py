"""Which chunks answer a question, and which of their lines: pure arithmetic over what the two searches found.

Ours: three views of every candidate, each brought to the same scale and added: the words it shares with the question
(BM25), how near it is in meaning as a whole (cosine), and for every word of the question the nearest word it has (soft
match). What a reader would also weigh is added on top and kept small: an identifier that stands there exactly, the day
the question names, the authority of the store, age. Then the lines of the best chunks are scored on their own, and what
is returned are the lines around the best ones. The weights were chosen by measurement (docs/decisions.md, bench/).

The other ranking, `openclaw`, is the founding document's formula with its defaults.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from truekeep.core.model import INDEX
from truekeep.search.query import Query, variants
from truekeep.text.words import split_words


class Nearness(Protocol):
    """How near a text's words are to the question as a whole."""

    def of(self, words: Iterable[str]) -> float: ...


class RankingWeights(NamedTuple):
    """How much each view counts."""

    words: float = 0.6
    meaning: float = 0.25  # for a question whose words the embedder knows all
    soft: float = 0.15
    exact: float = 0.8
    span: float = 2.5
    cards: float = 0.6
    pointer: float = -1.5  # a line that only points at a card: the card itself says more
    age: float = 0.3  # for each doubling of an age counted in quarters of a year
    copy: float = -0.8  # in a folder of backups or of old states


WEIGHTS = RankingWeights()
_POINTER = re.compile(r"- \[[^\n]*\]\((memory/cards/[^\n]*)\)\s*\Z")
_LEAST_EXACT = 0.05
_LETTERS = "\0"  # before the number of a word that is looked for by its letters
_COPY = re.compile(
    r"(?:^|[/_.-])(?:backups?|bak|old|orig|copy|copies|snapshots?|deprecated|legacy|before|exports?|archived?s?)(?=[/_.-])",
    re.IGNORECASE,
)


class ChunkCandidate(NamedTuple):
    """A chunk that one of the searches found."""

    id: int
    path: str
    store: str
    day: str
    repository: str
    title: str
    heading: str
    first: int
    last: int
    text: str
    words: float  # BM25, more is better; 0 when no word is shared
    cosine: float | None
    age_days: int | None
    origin: str = ""
    lines: bytes | None = None
    is_file_time: bool = False  # nothing but the file's own time tells its day

    @property
    def is_card(self) -> bool:
        """Whether it is of a card: the index, which is searched with the cards, only points."""
        return self.store == "cards" and self.path != INDEX


class ScoredChunk(NamedTuple):
    """A candidate with its score and what it is made of."""

    candidate: ChunkCandidate
    score: float
    parts: Mapping[str, float]
    copies: tuple[ChunkCandidate, ...] = ()  # the same text in other places


class Matcher:
    """For every word of a text: which words of the question it matches, and how well."""

    def __init__(self, query: Query, neighbours: Sequence[Mapping[str, float]], near: Nearness | None = None):
        self.matches: dict[str, list[tuple[int, float]]] = {}
        for number, term in enumerate(query.terms):
            own = set(variants(term.word))
            for word in own:
                self.matches.setdefault(word, []).append((number, 1.0))
            for word, cosine in neighbours[number].items() if number < len(neighbours) else ():
                if word not in own:
                    self.matches.setdefault(word, []).append((number, cosine))
        self._keys = frozenset(self.matches)
        self._letters = [
            (term.beginning or term.word, f"{_LETTERS}{number}")
            for number, term in enumerate(query.terms)
            if term.beginning or not term.word.isascii()
        ]
        self._near = near
        total = query.weight or 1.0
        self._weights = [term.weight / total for term in query.terms]

    def soft(self, text: str) -> float:
        """How much of the question a text covers, from 0 to 1: each word by its best match, rare words more."""
        return self.cover(self.match(text))

    def match(self, text: str) -> frozenset[str]:
        """What a text has of the question: words that match, and the letters of words that are looked for so."""
        lowered = text.lower()
        return self.match_words(split_words(lowered), lowered)

    def line(self, words: AbstractSet[str], lowered: str, meaning: float) -> float:
        """The cover of a line, by its words and in lower case, with some of its nearness to the question as a whole."""
        cover = self.cover(self.match_words(words, lowered))
        return (1 - meaning) * cover + meaning * self._near.of(words) if self._near is not None else cover

    def words_in(self, lowered: str) -> frozenset[str]:
        """The words of a text that match something."""
        return self._keys.intersection(split_words(lowered))

    def match_words(self, words: Iterable[str], lowered: str) -> frozenset[str]:
        """The same for a text whose words are known."""
        found = self._keys.intersection(words)
        return found.union([mark for letters, mark in self._letters if letters in lowered]) if self._letters else found

    def cover(self, matching: AbstractSet[str]) -> float:
        """How much of the question is in what texts have of it."""
        return self.weigh(self.best(matching)) if matching else 0.0

    def best(self, matching: AbstractSet[str]) -> dict[int, float]:
        """For each word of the question, by number, the best match."""
        best: dict[int, float] = {}
        for word in matching:
            if word[0] == _LETTERS:
                best[int(word[1:])] = 1.0
                continue
            for number, cosine in self.matches[word]:
                if cosine > best.get(number, 0.0):
                    best[number] = cosine
        return best

    def weigh(self, best: Mapping[int, float]) -> float:
        """The cover of such matches: rare words count more."""
        weights = self._weights
        # In the order of the question: sets have another one in every process, and sums differ in their last digit.
        return sum([weights[number] * best[number] for number in sorted(best)])

    def share(self, best: Mapping[int, float]) -> float:
        """The share of the question's words that stand there, each counting the same."""
        return sum(value == 1.0 for value in best.values()) / len(self._weights) if self._weights else 0.0

    @property
    def has_nearness(self) -> bool:
        """Whether the built-in vectors tell how near words are to the question."""
        return self._near is not None

    def nearness(self, words: Iterable[str]) -> float:
        """How near words are to the question as a whole."""
        return self._near.of(words) if self._near is not None else 0.0


def standardise(values: Sequence[float]) -> list[float]:
    """Values as distances from their mean, in standard deviations: what the legs have in common."""
    if not values:
        return []
    mean = sum(values) / len(values)
    deviation = (sum([(value - mean) ** 2 for value in values]) / len(values)) ** 0.5
    return [(value - mean) / deviation if deviation > 1e-9 else 0.0 for value in values]


def rank(
    query: Query, candidates: Sequence[ChunkCandidate], matcher: Matcher, weights: RankingWeights = WEIGHTS
) -> list[ScoredChunk]:
    """All candidates, best first. A line that points at a card is dropped if the card is a candidate."""
    paths = {candidate.path for candidate in candidates}
    candidates = [
        candidate
        for candidate in candidates
        if candidate.path != INDEX or (link := _POINTER.match(candidate.text)) is None or link[1] not in paths
    ]
    has_meaning = any(candidate.cosine is not None for candidate in candidates)
    words = standardise([candidate.words for candidate in candidates])
    soft = standardise([matcher.soft(f"{candidate.heading}\n{candidate.text}") for candidate in candidates])
    meaning = standardise([candidate.cosine or 0.0 for candidate in candidates]) if has_meaning else None
    exact = [exactness(query, candidate) for candidate in candidates] if query.identifiers else [0.0] * len(candidates)
    share = sum(exact) / len(exact) if exact else 0.0  # an identifier that all of them have tells nothing
    scored: list[ScoredChunk] = []
    for at, candidate in enumerate(candidates):
        parts = {"words": weights.words * words[at], "soft": weights.soft * soft[at]}
        if meaning is not None:
            parts["meaning"] = weights.meaning * query.known_share * meaning[at]
        if exact[at]:
            parts["exact"] = weights.exact * max(_LEAST_EXACT, exact[at] * (1 - share))
        if query.spans and candidate.day and (in_span := in_spans(query, candidate)):
            parts["day"] = weights.span * in_span
        if candidate.path == INDEX and _POINTER.match(candidate.text):
            parts["pointer"] = weights.pointer
        if candidate.store == "cards":
            parts["store"] = weights.cards
        if _COPY.search(candidate.path):
            parts["copy"] = weights.copy
        if candidate.age_days and candidate.age_days > 0:
            parts["age"] = -weights.age * math.log2(1 + candidate.age_days / 91)
        scored.append(ScoredChunk(candidate, sum(parts.values()), parts))
    scored.sort(key=lambda item: (-item.score, item.candidate.path, item.candidate.first))
    return _without_copies(scored)


def _without_copies(scored: Sequence[ScoredChunk]) -> list[ScoredChunk]:
    """Each text once, where it is best, with the other places that have it."""
    kept: dict[str, ScoredChunk] = {}
    for item in scored:
        text = item.candidate.text.strip()
        best = kept.get(text)
        if best is None:
            kept[text] = item
        elif item.candidate.is_card and not best.candidate.is_card:  # a card is above whatever repeats it
            kept[text] = best._replace(candidate=item.candidate, copies=(*best.copies, best.candidate))
        else:
            kept[text] = best._replace(copies=(*best.copies, item.candidate))
    return list(kept.values())


def in_spans(query: Query, candidate: ChunkCandidate) -> float:
    """Whether a chunk is of a day that the question names: the log of just that day most, a card touched then less."""
    best = 0.0
    for span in query.spans:
        if span.first.isoformat() <= candidate.day <= span.last.isoformat():
            best = max(best, (1.0 if candidate.store == "logs" else 0.4) * (1.0 if span.first == span.last else 0.6))
    return best


def exactness(query: Query, candidate: ChunkCandidate) -> float:
    """The share of the question's identifiers that stand in a chunk, or its path, letter for letter."""
    if not query.identifiers:
        return 0.0
    text = candidate.text.lower()
    found = 0.0
    for identifier in query.identifiers:
        wanted = identifier.text.lower()
        if wanted in text or wanted in candidate.path.lower():
            found += 1.0
        elif len(identifier.words) > 1 and " ".join(identifier.words) in " ".join(split_words(text)):
            found += 0.6
    return found / len(query.identifiers)
