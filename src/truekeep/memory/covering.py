"""Whether a card covers the topic of another text already: by rare words, names, and meaning. Pure.

The text of a handoff is shorter than the card that it belongs to, so what counts is how much of it the card has, by how
telling its words are. Topics have to meet as well, or names such as `workflow_history` that few cards have. Two texts
that each have a name of their own are a family, not one topic. "same" is sure enough to add to the card unasked;
"likely" is for a person. The limits were chosen on sections of public workspaces; docs/decisions.md has the figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from truekeep.memory.card import Card, words_of

Covering = Literal["same", "likely", ""]
"""How surely a card is about the topic of a text."""

MIN_SHARED_WORDS = 4
RARE_NAME = 6  # cards that may have a name that tells what a text is about
_MIN_TOTAL_CARDS = 1_000  # for weights: in a store of three cards, a word of two is not common
_LIST_MARK = re.compile(r"(?m)^[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_NAME = re.compile(r"(?<=[a-z0-9,;:)(] )[A-Z][\w-]+")  # where no sentence begins


class TopicWords(NamedTuple):
    """The words of a text by which others on its topic are found, as hashes."""

    topic: frozenset[int] = frozenset()
    every: frozenset[int] = frozenset()  # of topic and body
    names: frozenset[int] = frozenset()  # identifiers among them


NO_WORDS = TopicWords()


class WordOverlap(NamedTuple):
    """What a text and a card have in common; shares are weighted by how rare words are."""

    words: int  # shared ones
    said: float  # share of the text's words that the card has
    topics: float  # share of the shorter topic's words that the other has
    topic_said: float  # share of the words of the text's topic that the card has
    card_topic_said: float
    same_topic: bool
    shared_topic_words: int
    other_topic: bool  # each topic has a word that the other text does not use
    rare_names: int  # names that both have, and few other cards
    is_named: bool  # such a name is in one of the topics


def weight_of(count: int, total: int) -> float:
    """The weight of a word that so many cards have: the fewer, the higher."""
    return math.log((max(total, _MIN_TOTAL_CARDS) + 1) / max(1, count))


def compare_words(text: TopicWords, card: TopicWords, count: Callable[[int], int], total: int) -> WordOverlap:
    """Compare a text with a card. `count`: how many cards have a word."""

    def weight(words: Iterable[int]) -> float:
        return sum(weight_of(count(word), total) for word in words)

    def share(some: frozenset[int], of: frozenset[int]) -> float:
        whole = weight(of)
        return weight(some & of) / whole if whole else 0.0

    shared, topics = text.every & card.every, text.topic & card.topic
    shorter = min(text.topic, card.topic, key=weight)
    rare = {name for name in text.names & card.names if count(name) <= RARE_NAME}
    return WordOverlap(
        words=len(shared),
        said=share(card.every, text.every),
        topics=share(topics, shorter),
        topic_said=share(card.every, text.topic),
        card_topic_said=share(text.every, card.topic),
        same_topic=bool(text.topic) and text.topic == card.topic,
        shared_topic_words=len(topics),
        other_topic=bool(text.topic - card.every) and bool(card.topic - text.every),
        rare_names=len(rare),
        is_named=bool(rare & (text.topic | card.topic)),
    )


def judge_covering(overlap: WordOverlap, likeness: Callable[[], float]) -> Covering:
    """How surely a card covers a text. `likeness`: of their meanings, from 0 to 1; asked only where words agree."""
    if overlap.words < MIN_SHARED_WORDS:
        return ""
    is_same = (overlap.same_topic and overlap.said >= 0.3) or (
        overlap.said >= 0.55 and overlap.topics >= 0.6 and overlap.shared_topic_words > 1 and not overlap.other_topic
    )
    is_same_by_name = overlap.is_named and (
        overlap.rare_names >= 3 or (overlap.rare_names >= 2 and overlap.said >= 0.45)
    )
    is_likely = (
        (overlap.said >= 0.6 and overlap.topics >= 0.5)
        or (overlap.said >= 0.75 and overlap.topic_said >= 0.7 and overlap.card_topic_said >= 0.3)
        or (overlap.is_named and overlap.rare_names >= 2 and overlap.said >= 0.3)
        or overlap.same_topic
    )
    is_near = overlap.said >= 0.55 and overlap.topic_said >= 0.5
    if not (is_same or is_same_by_name or is_likely or is_near):
        return ""
    cosine = likeness()
    if (is_same and cosine >= 0.5) or (is_same_by_name and cosine >= 0.55):
        return "same"
    if is_same and overlap.same_topic:
        return "likely"
    return "likely" if (is_likely and cosine >= 0.55) or (is_near and cosine >= 0.7) else ""


def name_other_things(one: Card, other: Card) -> bool:
    """Whether two cards are about two things of a kind: each has a name of its own."""
    return bool(_proper(one) - all_words_of(other) and _proper(other) - all_words_of(one))


def _proper(card: Card) -> set[str]:
    """The names of a card that are not written in capitals, as SQL and UPDATE are."""
    text = f"{card.topic}\n{_LIST_MARK.sub('', card.body)}"
    return {word for name in _NAME.findall(text) if not name.isupper() for word in words_of(name)}


def numbers_of(card: Card) -> set[str]:
    """The numbers of a card, those of its lists left out."""
    return {word for word in words_of(_LIST_MARK.sub("", card.body)) if word[0].isdigit()}


def names_of(card: Card) -> set[str]:
    """The names in a card."""
    return _names_in(f"{card.topic}\n{_LIST_MARK.sub('', card.body)}")


def names_in(statement: str) -> set[str]:
    """The names and numbers in a statement."""
    return _names_in(statement) | {word for word in words_of(statement) if word[0].isdigit()}


def all_words_of(card: Card) -> set[str]:
    return {*words_of(card.topic), *words_of(card.body)}


def _names_in(text: str) -> set[str]:
    return {word for name in _NAME.findall(text) for word in words_of(name)}


def have_other_numbers(topic: str, other: str) -> bool:
    """Whether two topics are a family, such as "Service 8443" and "Service 8444"."""
    mine, theirs = (set(re.findall(r"\d+", text)) for text in (topic, other))
    return bool(mine and theirs and mine != theirs)
