"""Duplicate cards: found without comparing all pairs, and merged so that no fact is lost.

A card is compared with those that share its rarest words or its topic, and only once: the result stays in the
survey until one of the two changes. Words and meaning decide together; without a search index, words alone, and all
cards are compared again once there is one. Cards that name different numbers, or each a name that the other does not
have, are a family, not duplicates; nor are cards in which one statement is a variant of the other's: duplicates differ
only by additions. Two cards of one topic that disagree are reported, not merged: a
person, or `reconcile`, decides first which one is right. The limits were chosen on one half of the labelled pairs of
bench/doubles.py; `python -m bench upkeep` counts both.
"""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import apsw

from truekeep.core.model import CARDS
from truekeep.core.sqlite import transaction
from truekeep.maintenance.proposals import Idea, update_of
from truekeep.maintenance.survey.reader import hash_word
from truekeep.maintenance.survey.service import Survey
from truekeep.memory.card import OWNED_KEYS, Card, parse_card, subject_of, with_subject, words_of
from truekeep.memory.contradictions import find_variant, statements_of
from truekeep.memory.covering import (
    MIN_SHARED_WORDS,
    all_words_of,
    compare_words,
    have_other_numbers,
    judge_covering,
    name_other_things,
    names_of,
    numbers_of,
)
from truekeep.memory.frontmatter import Field, Frontmatter, quote
from truekeep.memory.merge import merge_texts
from truekeep.memory.similarity import NEAR_DUPLICATE, Catalog, likeness, sketch
from truekeep.memory.values import agree, find_values
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable
from truekeep.text.words import STOP, cjk_pairs

BY = "tidy duplicates"
SAME_WORDS = 0.6  # of two cards' words, by how telling they are: enough on its own
SAME_SENSE = 0.3  # with vectors that agree
SAME_TOPIC = 0.12  # with names that few cards have
AGREEING = 0.85  # cosine from which two vectors do; less is enough where more words are the same
CONTAINED = 0.8  # of the smaller card's words, where the larger one has more numbers
ALL_SAID = 0.88  # of the smaller card's words: the larger one says all of it
_FEWEST, _MOST = 4, 40  # words of a card by which others are looked for, the rarest ones
_ENOUGH, _PLENTY = 300, 5_000  # cards that have these words, where many cards are compared at once, and where few are
_MAX_COMPARISONS = 1_000_000  # of all cards that are compared in one run
_MAX_CARDS_WITH_TELLING_WORD = 2_000
_MIN_TOTAL_CARDS = 1_000  # for weights: in a store of three cards, a word of two is not common
_READ_ALL_COUNTS_FROM = 200  # changed cards
_MAX_CANDIDATES = 160  # by the number of shared words
_MAX_COMPARED = 16  # of the candidates, word by word
_MIN_WORDS = 3  # of a card that says something
_MAX_CITED_CHARS = 160
_BLANK = frozenset(("todo", "tbd", "wip", "fixme", "xxx"))
_WORDS_ALONE = "words"

Read = Callable[[str], bytes | None]


class DuplicatePair(NamedTuple):
    """Two cards that say the same."""

    one: str
    other: str
    likeness: float
    why: str  # "same topic" or "nearly the same"


def uses_meaning(survey: Survey) -> bool:
    """Whether the last comparison used the vectors of a search index, not words alone."""
    return survey.find_result("sense", "") != _WORDS_ALONE


def _note_method(survey: Survey, sense: Sense) -> None:
    """Record how cards are compared. With vectors at last, cards compared by words alone are compared again."""
    is_there, was_there = sense.is_there, uses_meaning(survey)
    if is_there and not was_there:
        with transaction(survey.db):
            survey.db.execute("INSERT OR IGNORE INTO uncompared_cards SELECT id FROM cards")
    if is_there != was_there:
        survey.store_result("sense", "", "meaning" if is_there else _WORDS_ALONE)


def compare_fresh(survey: Survey, read: Read, sense: Sense, catalog: Catalog | None = None) -> int:
    """Compare changed cards with those that may say the same. Gives the number of changed cards.

    With a `catalog`, cards that ingest would have made one are found as well.
    """
    _note_method(survey, sense)
    fresh = [int(str(row[0])) for row in survey.db.execute("SELECT card FROM uncompared_cards ORDER BY card")]
    if not fresh:
        return 0
    comparison = _Comparison(survey.db, read, sense, catalog, total=survey.count("cards"), fresh=len(fresh))
    for start in range(0, len(fresh), _READ_ALL_COUNTS_FROM):
        with transaction(survey.db):
            for card in fresh[start : start + _READ_ALL_COUNTS_FROM]:
                for other, found in comparison.alike(card):
                    one, two = sorted((card, other))
                    survey.db.execute("INSERT OR REPLACE INTO similar_cards VALUES (?, ?, ?)", (one, two, found))
                survey.db.execute("DELETE FROM uncompared_cards WHERE card = ?", (card,))
    return len(fresh)


class _Comparison:
    """Compares cards: first their words in the survey; only near ones are read."""

    def __init__(
        self, db: apsw.Connection, read: Read, sense: Sense, catalog: Catalog | None, *, total: int, fresh: int
    ) -> None:
        self._db, self._sense, self._catalog = db, sense, catalog
        self._total = max(total, _MIN_TOTAL_CARDS)
        self._enough = min(_PLENTY, max(_ENOUGH, _MAX_COMPARISONS // max(1, fresh)))
        rows: Any = db.execute("SELECT word, cards FROM word_counts") if fresh > _READ_ALL_COUNTS_FROM else ()
        self._counts: dict[int, int] = dict(rows)
        self._weights: dict[int, float] = {}
        self._words = lru_cache(maxsize=20_000)(self._words_of)
        self._mass = lru_cache(maxsize=20_000)(lambda card: sum(map(self._weight, self._words(card))))
        self._card = lru_cache(maxsize=4_000)(lambda card: _card_at(read, self._path(card)))
        self._path = lru_cache(maxsize=20_000)(self._path_of)

    def alike(self, card: int) -> Iterator[tuple[int, float]]:
        """The cards that say the same as this one, and how much."""
        words = set(self._words(card))
        for other in self._candidates(card):
            shared, contained = self._shared(card, words, other)
            if self._covers(card, other, shared):
                yield other, shared
                continue
            if shared < SAME_SENSE and contained < ALL_SAID:
                continue
            own, theirs = self._card(card), self._card(other)
            if own is None or theirs is None or not _may_be_one(own, theirs, is_contained=contained >= CONTAINED):
                continue
            is_one = shared >= SAME_WORDS or contained >= ALL_SAID or self._agree(card, other, shared)
            if not (is_one or likeness(sketch(own), sketch(theirs)) >= NEAR_DUPLICATE):
                continue
            if not (says_something(own) and says_something(theirs)):
                continue
            if find_variant(own.body, theirs.body, (own.topic, theirs.topic)) is None:
                yield other, shared

    def _covers(self, one: int, other: int, shared: float) -> bool:
        """Whether ingest would have added the one card's text to the other card, or the other way round."""
        if self._catalog is None or shared < SAME_TOPIC:
            return False
        first, second = self._card(one), self._card(other)
        if first is None or second is None or first.problem or second.problem:
            return False
        if first.repository != second.repository or have_other_numbers(first.topic, second.topic):
            return False
        if min(len(words_of(first.body)), len(words_of(second.body))) < MIN_SHARED_WORDS:
            return False  # a card that says nothing yet
        count, total = self._catalog.count, self._catalog.total
        mine, theirs = sketch(first).words, sketch(second).words
        cosine = self._sense.cosine(self._path(one), self._path(other))
        for text, card in ((mine, theirs), (theirs, mine)):
            overlap = compare_words(text, card, count, total)
            if judge_covering(overlap, lambda: 1.0 if cosine is None else cosine) == "same":
                return (
                    not name_other_things(first, second)
                    and find_variant(first.body, second.body, only_framed=True) is None
                )
        return False

    def _candidates(self, card: int) -> list[int]:
        """The cards that share the most of a card's rarest words, and those that say little else."""
        chosen: list[int] = []
        seen = 0
        for word in sorted(self._words(card), key=self._weight, reverse=True):
            count = self._count(word)
            if (
                count >= _MAX_CARDS_WITH_TELLING_WORD
                or len(chosen) == _MOST
                or (seen > self._enough and len(chosen) >= _FEWEST)
            ):
                break
            if count > 1:  # else no other card has it
                chosen.append(word)
                seen += count
        query = (
            f"SELECT card, count(*) FROM card_words WHERE word IN ({','.join('?' * len(chosen))}) AND card != ?"  # noqa: S608
            " GROUP BY card ORDER BY count(*) DESC, card LIMIT ?"
        )
        rows: list[Any] = self._db.execute(query, (*chosen, card, _MAX_CANDIDATES)).fetchall() if chosen else []
        # A small card of which this one says all has few of its words, and may be far down.
        small = sorted(rows[_MAX_COMPARED:], key=lambda row: row[1] / len(self._words(row[0])), reverse=True)
        return [row[0] for row in (*rows[:_MAX_COMPARED], *small[: _MAX_COMPARED // 2])]

    def _shared(self, card: int, words: set[int], other: int) -> tuple[float, float]:
        """The share of common words, weighted by rarity: of both cards, and of the smaller one."""
        weight = self._weight
        both = sum(weight(word) for word in self._words(other) if word in words)
        mine, theirs = self._mass(card), self._mass(other)
        every, least = mine + theirs - both, min(mine, theirs)
        return both / every if every > 0 else 0.0, both / least if least > 0 else 0.0

    def _agree(self, one: int, other: int, shared: float) -> bool:
        cosine = self._sense.cosine(self._path(one), self._path(other))
        return cosine is not None and cosine >= AGREEING - (shared - SAME_SENSE) / 4

    def _words_of(self, card: int) -> array[int]:
        packed: Any = self._db.execute("SELECT words FROM cards WHERE id = ?", (card,)).get
        return array("I", packed or b"")

    def _weight(self, word: int) -> float:
        """The weight of a word: the fewer cards have it, the higher."""
        known = self._weights.get(word)
        if known is None:
            known = self._weights[word] = math.log((self._total + 1) / self._count(word))
        return known

    def _count(self, word: int) -> int:
        known = self._counts.get(word)
        if known is None:
            known = int(str(self._db.execute("SELECT cards FROM word_counts WHERE word = ?", (word,)).get or 1))
            self._counts[word] = known
        return max(1, known)

    def _path_of(self, card: int) -> str:
        return str(self._db.execute("SELECT path FROM files WHERE id = ?", (card,)).get)


def _may_be_one(one: Card, other: Card, *, is_contained: bool) -> bool:
    """Whether two cards may be about one thing: no two repositories, no other numbers, no other names.

    A card that says all of another one may have more numbers.
    """
    if one.repository and other.repository and one.repository != other.repository:
        return False
    first, second = numbers_of(one), numbers_of(other)
    if first != second and not (is_contained and (first <= second or second <= first)):
        return False
    return not (names_of(one) - all_words_of(other) and names_of(other) - all_words_of(one))


def says_something(card: Card) -> bool:
    """Whether a card has enough words to be a duplicate; headings and a "TODO" do not count."""
    said = " ".join(text for text, _ in statements_of(card.body))
    words = {word for word in words_of(said) if len(word) > 1 and word not in STOP and word not in _BLANK}
    return len(words) >= _MIN_WORDS or len(cjk_pairs(said)) >= 2 * _MIN_WORDS


def find_doubles(survey: Survey) -> list[DuplicatePair]:
    """Pairs of cards with the same topic or the same statements; each card with the one most like it."""
    found: dict[tuple[str, str], DuplicatePair] = {}
    for _, paths in survey.same_topics():
        first: dict[str, str] = {}  # by repository; one of none may be about any
        for path in paths:
            facts = survey.find_card(path)
            name = facts.repository if facts is not None else ""
            partner = (first.get(name) or first.get("")) if name else next(iter(first.values()), None)
            first.setdefault(name, path)
            if partner is not None:
                found[partner, path] = DuplicatePair(partner, path, 1.0, "same topic")
    query = (
        "SELECT a.path, b.path, likeness FROM similar_cards JOIN files a ON a.id = one JOIN files b ON b.id = other"
        " ORDER BY likeness DESC, a.path, b.path"
    )
    for one, other, much in survey.db.execute(query):
        first_path, second = sorted((str(one), str(other)))
        found.setdefault((first_path, second), DuplicatePair(first_path, second, float(str(much)), "nearly the same"))
    return list(found.values())


def merge_ideas(doubles: Iterable[DuplicatePair], read: Read) -> Iterator[Idea]:
    """A proposal for each pair, with no card in two of them: after a merge, the next run compares again."""
    taken: set[str] = set()
    for double in doubles:
        if double.one in taken or double.other in taken:
            continue
        idea = merge_idea(double, read)
        if idea is not None:
            taken.update(() if idea.hindrance else (double.one, double.other))
            yield idea


def merge_idea(double: DuplicatePair, read: Read) -> Idea | None:
    """The proposal to merge two cards; None if they cannot be merged."""
    data = {path: read(path) for path in (double.one, double.other)}
    cards = {path: _card_at(read, path) for path in data}
    if any(card is None or card.problem for card in cards.values()):
        return None
    kept, dropped = sorted(data, key=lambda path: _seniority(cards[path]))
    keep, drop = cards[kept], cards[dropped]
    keep_data, drop_data = data[kept], data[dropped]
    if keep is None or drop is None or keep_data is None or drop_data is None:
        return None
    if keep.repository and drop.repository and keep.repository != drop.repository:
        return None
    much = "" if double.why == "same topic" else f" ({double.likeness:.0%} of their telling words)"
    hindrance = _disagreement(keep, drop)
    becomes = "" if hindrance else f"; approving keeps {keep.path} with the lines of both"
    reason = (
        "same-topic" if double.why == "same topic" else "near-duplicate",
        f"{drop.path} and {keep.path}: {double.why}{much}{becomes}",
    )
    lost = list(_lost_fields(keep, drop))
    summary = f"Takes what only {drop.path} says into {keep.path}, and drops {drop.path}. No fact line is lost."
    for key in ("topic", "category"):
        mine, theirs = (_cited(" ".join(card.front.text(key).split())) for card in (keep, drop))
        summary += f" Its {key} was {theirs}." if theirs and theirs.casefold() != mine.casefold() else ""
    return Idea(
        by=BY,
        slug=f"merge-{min(keep.name, drop.name).removesuffix('.md')}",
        reasons=(reason, *(("two-values", sentence) for sentence in lost)),
        text=update_of(
            f"{subject_of(keep, drop)}: two cards made one",
            keep.name,
            merged(keep, drop),
            summary=summary + "".join(f" {sentence}." for sentence in lost),
            facts=[f"{dropped} says nearly the same"],
        ),
        target=kept,
        found=keep_data,
        drops=((dropped, drop_data),),
        repository=keep.repository or drop.repository,
        writer=keep.writer or "upkeep",
        key="\0".join(sorted((kept, dropped))),  # whatever becomes of their words: what was turned down is this pair
        hindrance=hindrance,
    )


def _disagreement(keep: Card, drop: Card) -> str:
    """The contradiction that keeps two cards from a merge, with what to do instead; empty if there is none."""
    own, others = _values(keep), _values(drop)
    for kind, subject in own.keys() & others.keys():
        mine, theirs = own[kind, subject], others[kind, subject]
        if not any(agree(kind, one, other) for one in mine for other in theirs):
            says = f"{keep.path} says {sorted(mine)[0]}, {drop.path} {sorted(theirs)[0]}"
            return _cited(f"{kind} of {subject}: {says}; `truekeep reconcile` asks which one is right")
    variant = find_variant(_plain(keep.body), _plain(drop.body))
    if variant is None:
        return ""
    one, other = (clip(printable(text.strip()), _MAX_CITED_CHARS) for text in (variant.one, variant.other))
    says = f'{keep.path} says "{one}", {drop.path} "{other}"'
    return _cited(f"they differ in {variant.why}: {says}; make them agree, or give one of them another topic")


def _values(card: Card) -> dict[tuple[str, str], set[str]]:
    """The values that a card gives to things."""
    found: dict[tuple[str, str], set[str]] = {}
    for value in find_values(_plain(card.body), topic=card.topic, repository=card.repository):
        found.setdefault((value.kind, value.subject), set()).add(value.value)
    return found


def _lost_fields(keep: Card, drop: Card) -> Iterator[str]:
    """A sentence for each field in which the dropped card's frontmatter differs."""
    for field in drop.front.fields:
        if not field.key or field.key in ("topic", "category", "tags") or field.key.casefold() in OWNED_KEYS:
            continue
        own = keep.front.find(field.key)
        if own is not None and own.raw.split() != field.raw.split():
            mine, theirs = (" ".join(item.raw.partition(":")[2].split()) for item in (own, field))
            yield _cited(f"{field.key} is {mine} in {keep.path}, which stays so, and {theirs} in {drop.path}")


def _cited(text: str) -> str:
    """A sentence that quotes cards, with credentials masked."""
    return withhold(printable(text))


def _seniority(card: Card | None) -> tuple[str, int, str]:
    """The older card stays: others link to it."""
    if card is None:
        return "9", 0, ""
    created = card.created or card.updated
    return (created.isoformat() if created else "9"), -len(card.body), card.name


def merged(keep: Card, drop: Card) -> str:
    """The text of a merged card: the kept card, and the statements that only the other has."""
    fields = [field for field in keep.front.fields if field.key.casefold() not in OWNED_KEYS]
    taken = {field.key for field in fields}
    fields += [
        field
        for field in drop.front.fields
        if field.key and field.key not in taken and field.key.casefold() not in OWNED_KEYS
    ]
    tags = list(dict.fromkeys((*keep.tags, *drop.tags)))
    if tags != list(keep.tags):
        line = f"tags: [{', '.join(quote(tag) for tag in tags)}]\n"
        fields = [Field("tags", "", line) if field.key == "tags" else field for field in fields]
        if "tags" not in {field.key for field in fields}:
            fields.append(Field("tags", "", line))
    body = merge_texts(_plain(keep.body), _plain(drop.body), mark=f"from {drop.name}")
    return with_subject(Frontmatter(tuple(fields)), keep, drop).render() + "\n" + body.strip("\n") + "\n"


def instructed_ideas(survey: Survey, read: Read, instructions: Callable[[str], str]) -> Iterator[Idea]:
    """A proposal to drop each card that an instruction file of its repository repeats: agents read that anyway."""
    names = [str(row[0]) for row in survey.db.execute("SELECT DISTINCT repository FROM files WHERE repository != ''")]
    for repository in sorted(names):
        said = set(instructions(repository).split("\n")) - {""}
        words = {hash_word(word) for line in said for word in line.split()}
        for path in survey.cards_within(repository, words) if said else ():
            data, card = read(path), _card_at(read, path)
            if card is None or data is None or card.problem:
                continue
            own = [line for line in (" ".join(words_of(line)) for line in card.body.split("\n")) if line]
            if own and all(line in said for line in own):
                yield Idea(
                    by=BY,
                    slug=f"instructed-{card.name.removesuffix('.md')}",
                    reasons=(("already-instructed", f"an instruction file of {repository} says all of {path}"),),
                    text=f"Drops {path}: an instruction file of {repository} says every line of it.\n",
                    drops=((path, data),),
                    repository=repository,
                    key=f"{path}\0{card.body}",
                )


class Sense:
    """Compares the meaning of cards: the mean of the vectors of a card's chunks in the search index."""

    def __init__(self, index: str) -> None:
        self._index = index
        self._db: apsw.Connection | None = None
        self._is_closed = False
        self.vector = lru_cache(maxsize=20_000)(self._vector)

    @property
    def is_there(self) -> bool:
        """Whether there is a search index with vectors."""
        try:
            return self._opened().execute("SELECT 1 FROM vectors LIMIT 1").get is not None
        except apsw.Error:
            self._is_closed = True  # no index, or none that can be read: words alone decide
            return False

    def _opened(self) -> apsw.Connection:
        if self._db is None:
            self._db = apsw.Connection(self._index, flags=apsw.SQLITE_OPEN_READONLY)
        return self._db

    def cosine(self, one: str, other: str) -> float | None:
        """The cosine of two cards; None if the index has no vector of one of them."""
        first, second = self.vector(one), self.vector(other)
        if first is None or second is None or len(first) != len(second):
            return None
        norm = math.sqrt(sum(x * x for x in first) * sum(x * x for x in second))
        return sum(x * y for x, y in zip(first, second, strict=True)) / norm if norm else None

    def _vector(self, path: str) -> tuple[float, ...] | None:
        if self._is_closed:
            return None
        try:
            query = (
                "SELECT embedding FROM files JOIN chunks ON file_id = files.id JOIN vectors ON chunk_id = chunks.id"
                " WHERE path = ?"
            )
            rows = [bytes(row[0]) for row in self._opened().execute(query, (path,))]
        except apsw.Error:
            self._is_closed = True  # no index, or none that can be read: words alone decide
            return None
        parts = [struct.unpack(f"<{len(row) // 2}e", row) for row in rows]
        if not parts or len({len(part) for part in parts}) != 1:
            return None
        return tuple(sum(numbers) / len(parts) for numbers in zip(*parts, strict=True))

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None


def _card_at(read: Read, path: str) -> Card | None:
    data = read(path)
    text = decode_text(data) if data is not None else None
    return parse_card(path.removeprefix(f"{CARDS}/"), text) if text is not None else None


def _plain(body: str) -> str:
    return body.replace("\r\n", "\n")
