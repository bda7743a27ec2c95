"""Which words deny, oppose, count or mean the same, in every language of `phrases/contradictions.*.toml`."""

from __future__ import annotations

from functools import cache

from truekeep.text.phrases import Phrases, load_phrases
from truekeep.text.words import STOP, stem_key

_SEPARATORS = frozenset("|=")
_MIN_REVERSIBLE = 4  # letters of a word that a prefix turns into its opposite


class WordMeanings:
    """The words of a subject, by what they do in a sentence. Words are compared by their stems."""

    def __init__(self, phrases: Phrases) -> None:
        self.negations = phrases.words("negations")
        self.roles = phrases.words("roles")  # "from", "over": the words behind have a part of their own
        self.determiners = phrases.words("determiners")
        self.days = phrases.words("days")
        self.plain = (STOP | phrases.words("plain") | _SEPARATORS) - self.negations
        self.numbers = {word: number for number, *words in phrases.rows("numbers") for word in words}
        self._synonyms = {stem_key(word): stem_key(row[0]) for row in phrases.rows("synonyms") for word in row}
        self.restraints = frozenset(self.stem(word) for word in phrases.words("restraints"))
        self._prefixes = phrases.words("reversing_prefixes")
        self._opposites = self._read_opposites(phrases.rows("opposites"))
        self.small_opposites = self._read_opposites(phrases.rows("small_opposites"))

    def stem(self, word: str) -> str:
        """The part that the forms of a word and its synonyms share. Words without a meaning of their own are kept."""
        if word in self.plain or word in self.negations or word in self.roles:
            return word
        stem = stem_key(word)
        return word if stem in self.negations else self._synonyms.get(stem, stem)  # "notes" is not "not"

    def are_opposite(self, one: str, other: str) -> bool:
        return other in self._opposites.get(one, ()) or self.is_reversed(one, other) or self.is_reversed(other, one)

    def is_reversed(self, word: str, plain: str) -> bool:
        """Whether a word is another one with a prefix that says no: "unsafe" and "safe"."""
        return (
            len(plain) >= _MIN_REVERSIBLE
            and word != plain
            and word.endswith(plain)
            and word[: len(word) - len(plain)].rstrip("-") in self._prefixes
        )

    def _read_opposites(self, rows: list[list[str]]) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for row in rows:
            bar = row.index("|")
            left, right = ([self.stem(word) for word in half] for half in (row[:bar], row[bar + 1 :]))
            for words, opposites in ((left, right), (right, left)):
                for word in words:
                    found.setdefault(word, set()).update(opposites)
        return {word: frozenset(opposites) for word, opposites in found.items()}


@cache
def word_meanings() -> WordMeanings:
    return WordMeanings(load_phrases("contradictions"))
