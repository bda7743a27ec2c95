"""A question as the index understands it: its words, its identifiers, the days it names, and what to ask FTS5.

Whatever is typed becomes quoted words joined by OR, so no input is an error and no operator is obeyed. Long questions
are cut to their rarest words; a word that the memory does not know is tried as a misspelling of one that it knows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, NamedTuple

import apsw

from truekeep.text.words import (
    STOP,
    DaySpan,
    Identifier,
    cjk_pairs,
    content_words,
    find_identifiers,
    find_spans,
    has_particle,
    is_asking,
    is_german,
    is_month,
    split_words,
    stem_key,
    transliterate,
    word_beginning,
)

_LONGEST = 4_000  # characters of a question that are looked at
_MOST_TERMS = 48
_SMALL = 20_000  # chunks up to which every match is counted and scored
_COMMON = 3_000  # in a larger memory: chunks with a word, from which it is common and counted no further
_GUESS = 0.7  # what a guessed word counts, beside a typed one
_PARTICLE = 0.4  # what two CJK characters count if one of them is a particle
_MOST_STEMS = 60_000  # among which a misspelt word is looked for
_KEY_LENGTH = 16
_ENDING = 6  # letters that a stem may lack
_ENDINGS = (
    "s",
    "es",
    "ed",
    "d",
    "er",
    "ers",
    "ing",
    "ings",
    "ion",
    "ions",
    "ation",
    "ment",
    "ments",
    "ly",
    "e",
    "y",
    "ies",
)


class Term(NamedTuple):
    """One word of a question: what FTS5 is asked, how many chunks have it, how much it tells."""

    word: str
    match: str
    chunks: int
    weight: float
    is_common: bool = False  # so common that its matches were not all counted
    beginning: str = ""  # of a word whose other forms are looked for as well


class Query(NamedTuple):
    """A question, taken apart."""

    text: str
    terms: tuple[Term, ...]
    identifiers: tuple[Identifier, ...]
    spans: tuple[DaySpan, ...]
    corrections: tuple[tuple[str, str], ...] = ()  # what was typed, what the memory knows
    missing: tuple[str, ...] = ()  # identifiers and names that no chunk has, nor one that they may be misspelt for
    is_unknown: bool = False  # no chunk has any of its words
    known_share: float = 1.0  # 1 for a question in English, where the embedder has a vector for most words; 0: for none

    @property
    def weight(self) -> float:
        return sum(term.weight for term in self.terms)

    @property
    def absent_share(self) -> float:
        """How much of the question, by what its words tell, is in no chunk: from 0 to 1."""
        return sum(term.weight for term in self.terms if not term.chunks) / (self.weight or 1.0)

    @property
    def is_strange(self) -> bool:
        """Whether neither the index nor the embedder has a word of it."""
        return bool(self.terms) and self.known_share == 0 and not any(term.chunks for term in self.terms)


def parse_query(
    text: str, db: apsw.Connection, total: int, *, today: date, is_word: Callable[[str], bool] | None = None
) -> Query:
    """Take a question apart and weigh its words by how rare they are in this memory.

    `is_word` knows English words: one that the memory does not have is then no misspelling.
    """
    text = " ".join(text.replace("\x00", " ").split())[:_LONGEST]
    spans, rest = find_spans(text, today)
    identifiers = find_identifiers(rest)[:12]
    telling = [word for word in content_words(rest) if not spans or word not in STOP]
    words: dict[str, str] = {word: quote(word) for word in telling}
    words.update({pair: quote(" ".join(pair)) for pair in cjk_pairs(rest)})
    words = {word: match for word, match in words.items() if not is_asking(word)} or words
    most = total + 1 if total <= _SMALL else _COMMON
    terms: list[Term] = []
    corrections: list[tuple[str, str]] = []
    chosen = list(words.items())
    if len(chosen) > 4 * _MOST_TERMS:
        chosen = sorted(chosen, key=lambda item: -len(item[0]))[: 4 * _MOST_TERMS]
    known = {word for word in words if is_word is not None and is_word(word)}
    known_share = 1.0 if is_word is None else min(1.0, 2 * len(known) / max(1, len(words)))
    for word, match in chosen:
        beginning = "" if word in known or (known_share == 1 and word.isascii()) else _beginning_of(word)
        if beginning:
            match = f"({match} OR {quote(beginning)}*)"
        if (spelling := transliterate(word)) and not (word.isascii() and word in known):
            match = f"({match} OR {quote(spelling)})"
        count = count_matches(db, match, most)
        if count == 0 and word.isascii() and word not in known:
            found = find_known(db, word)
            if found:
                corrections.append((word, found))
                match = quote(found)
                count = count_matches(db, match, most)
                word, beginning = found, ""
        weight = rarity(count, total) * (_GUESS if corrections and corrections[-1][1] == word else 1.0)
        if has_particle(word):
            weight *= _PARTICLE
        terms.append(Term(word, match, count, weight, count >= most, beginning))
    terms.sort(key=lambda term: -term.weight)
    absent = [term.word for term in terms if not term.chunks and not cjk_pairs(term.word)]
    names = [] if is_german(text) else [word for word in absent if not is_month(word) and _is_name(word, text)]
    missing = _find_missing(db, names, identifiers)
    is_unknown = bool(absent) and not any(term.chunks for term in terms)
    return Query(
        text, tuple(terms[:_MOST_TERMS]), identifiers, spans, tuple(corrections), missing, is_unknown, known_share
    )


def _find_missing(db: apsw.Connection, names: Iterable[str], identifiers: Iterable[Identifier]) -> tuple[str, ...]:
    """What no chunk has: identifiers as they were typed, and names. The absence of an ordinary word tells nothing."""
    exact = [identifier for identifier in identifiers if not _is_compound(identifier)]
    absent = [identifier for identifier in exact if not count_matches(db, phrase_of(identifier), 1)]
    inside = {word for identifier in absent for word in identifier.words}
    found = (*(identifier.text for identifier in absent), *(name for name in names if name not in inside))
    return tuple(name for name in found if not _may_be_key(name))


def _is_compound(identifier: Identifier) -> bool:
    """Whether an identifier is only words with hyphens between them, which a note may write otherwise."""
    return "-".join(identifier.words) == identifier.text.lower() and all(map(str.isalpha, identifier.words))


def _is_name(word: str, text: str) -> bool:
    """Whether a word has a capital letter within a sentence that has few of them: not one of German, or a title."""
    inside = re.findall(r"(?<=[\w,] )\w+", text)
    capitals = [other for other in inside if other[0].isupper()]
    return word.capitalize() in capitals and 3 * len(capitals) <= len(inside)


def _may_be_key(word: str) -> bool:
    """Whether a word may be part of a credential, which the index has masked, so that its absence proves nothing."""
    return len(word) >= _KEY_LENGTH and word.isalnum() and not word.isalpha() and not word.isdigit()


def _beginning_of(word: str) -> str:
    """What the forms of a word that is not English begin with, as the index does not stem it; empty if unknown."""
    if len(word) < 5 or not word.isalpha() or cjk_pairs(word):
        return ""
    beginning = word_beginning(word)
    return beginning if beginning != word or not word.isascii() else ""


def quote(words: str) -> str:
    return '"' + words.replace('"', " ") + '"'


def rarity(count: int, total: int) -> float:
    """How much a word tells, from how many of all chunks have it."""
    return math.log(1 + (max(total, 1) - count + 0.5) / (count + 0.5)) if count else math.log(2 + 2 * max(total, 1))


def count_matches(db: apsw.Connection, match: str, most: int) -> int:
    """How many chunks have this, counted no further than needed to know that it is common."""
    query = "SELECT count(*) FROM (SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?)"
    return int(db.execute(query, (match, most)).get)


def variants(word: str) -> Iterable[str]:
    """The forms in which a word may stand in a text."""
    yield word
    if not word.isalpha() or len(word) < 3:
        return
    stem = stem_key(word)
    yield stem
    for ending in _ENDINGS:
        yield word + ending
        yield stem + ending
    if len(stem) > 2:
        for ending in ("ed", "ing", "er"):
            yield stem + stem[-1] + ending


def phrase_of(identifier: Identifier) -> str:
    """An FTS5 phrase for an identifier: its words in sequence, the last one as a prefix, as in a commit's digits."""
    phrase = quote(" ".join(identifier.words[:24]))
    last = identifier.words[-1]
    return phrase + "*" if len(identifier.words) == 1 and len(last) >= 6 and any(c.isdigit() for c in last) else phrase


# Misspellings.


def find_known(db: apsw.Connection, word: str) -> str | None:
    """The word of the memory that an unknown word is most likely a misspelling of.

    The index keeps stems, which are near to much; so a stem only proposes, and a word of a text that has it decides.
    """
    if not 4 <= len(word) <= 24 or sum(character.isdigit() for character in word) > 1:
        return None
    typed = {word, _stem(db, word)}
    proposed: list[tuple[int, int, str]] = []
    for first in dict.fromkeys((word[0], word[1])):  # the second letter: the first was left out, or the two swapped
        rows: Any = db.execute(
            "SELECT term, doc FROM chunk_words WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ? LIMIT ?",
            (first, first + "\U0010ffff", max(3, len(word) - _ENDING), len(word) + 2, _MOST_STEMS),
        )
        for term, count in rows:
            distance = min(edit_distance(form, term, 2) for form in typed)
            if distance <= 2 or (len(term) > 4 and word.startswith(term)):  # the ending is wrong, and the stem has none
                proposed.append((distance, -count, term))
    best: tuple[int, int, str] | None = None
    allowed = 1 if len(word) < 8 else 2
    for _, count, term in sorted(proposed)[:8]:
        row = db.execute(
            "SELECT text FROM chunks WHERE id = (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT 1)",
            (quote(term),),
        ).fetchone()
        for known in sorted(set(split_words(str(row[0]).lower()))) if row else ():
            distance = edit_distance(word, known, allowed)
            if distance <= allowed and (best is None or (distance, count) < best[:2]):
                best = (distance, count, known)
    return best[2] if best else None


def _stem(db: apsw.Connection, word: str) -> str:
    """A word as the index keeps it."""
    stemmer = db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
    tokens: list[Any] = list(stemmer(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None))
    return str(tokens[0][2]) if tokens else word


def edit_distance(one: str, other: str, most: int) -> int:
    """Letters to change, insert, leave out or swap to make one word the other; anything above `most` is far."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    mine, theirs = set(one), set(other)
    if len(mine - theirs) > most or len(theirs - mine) > most:  # a step brings or takes one letter at most
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, before, row = row, row if i == 1 else before, [i]
        for j, b in enumerate(other, 1):
            cost = min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = previous
        if min(row) > most:
            return most + 1
    return row[-1]
