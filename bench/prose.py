"""Made-up notes for the benchmarks of speed: the same ones every time, of any number, with the statistics of prose.

Words follow Zipf's law. The most frequent ones are English function words, about half of all; the others are invented
and can be pronounced. Every note has a subject, words that it uses more than others do, and now and then an identifier:
a path, a flag, a port, a version. There is no meaning in any of it, so nothing here says how good a search is.
"""

from __future__ import annotations

import random
from typing import Any

from truekeep.search.embedders import load_numpy
from truekeep.text.words import STOP, WORD

# By frequency. Which they are matters little, but a search treats them as what they are.
FUNCTION_WORDS = """
    the of and to in a is that for it was on are as with be by this from at or an have not but has they which you we
    had were can all will their one if more when there out so up its about into than them some could then other only
    these no do may such any who our after most also been over where through each before those both must being did
    how while very here should because what same just under too now during again off own once between until against
""".split()
ONSETS = "b c d f g h j k l m n p r s t v w z b d f g k l m n p r s t ch br cl dr fl gr pl qu sh st th tr".split()
VOWELS = "a a a e e e i i i o o o u u ai ea ou".split()
CODAS = ["", "", "", "", "", "", "n", "r", "l", "s", "t", "m", "d", "ck", "nd", "st"]
SUBJECT_WORDS = 60
SUBJECT_SHARE = 0.12  # of a note's words
IDENTIFIER_SHARE = 0.03
MEAN_WORD = 5.4  # characters, a blank included; a note is then a little longer than asked for, and cut


class Prose:
    """An endless supply of notes."""

    def __init__(self, words: int, *, seed: int = 3) -> None:
        np = load_numpy()

        self._random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._words = FUNCTION_WORDS + invent_words(words, self._random)
        self._known = frozenset(self._words)
        weights = 1 / np.arange(1, len(self._words) + 1)
        self._shares = np.cumsum(weights / weights.sum())

    def note(self, characters: int) -> str:
        """A note in Markdown of about that length: a title, headings, sentences, list items."""
        words = self._draw(int(characters / MEAN_WORD) + 8)
        title = self._random.choice(self._words[200:])
        lines = [f"# {title.capitalize()} {words[0]} {words[1]}", ""]
        at = 2
        for number, length in enumerate(self._numbers.integers(6, 19, size=len(words) // 6 + 1).tolist()):
            if at >= len(words):
                break
            sentence = " ".join(words[at : at + length])
            at += length
            if number % 11 == 7:
                lines += ["", f"## {sentence[:40].rstrip()}", ""]
            elif number % 5 < 2:
                lines.append(f"- {sentence}")
            else:
                lines.append(f"{sentence[:1].upper()}{sentence[1:]}.")
        text = "\n".join(lines)
        return text[: text.rfind(" ", 0, characters)] + "\n" if len(text) > characters else text + "\n"

    def question(self, text: str) -> str:
        """Three to eight different words of a text, rare and common ones as they come."""
        words = sorted(self._known.intersection(WORD.findall(text.lower())))
        return " ".join(self._random.sample(words, min(len(words), self._random.randint(3, 8))))

    def _draw(self, count: int) -> list[str]:
        np = load_numpy()

        numbers, known = self._numbers, self._words
        drawn: Any = np.searchsorted(self._shares, numbers.random(count))
        subject = numbers.integers(len(FUNCTION_WORDS), len(known), size=SUBJECT_WORDS)
        about = numbers.random(count) < SUBJECT_SHARE
        drawn[about] = subject[numbers.integers(0, SUBJECT_WORDS, size=int(about.sum()))]
        words = [known[place] for place in drawn.tolist()]
        for place in np.flatnonzero(numbers.random(count) < IDENTIFIER_SHARE).tolist():
            words[place] = self._identifier(known[int(subject[place % SUBJECT_WORDS])], words[place])
        return words

    def _identifier(self, one: str, other: str) -> str:
        number = self._random.randrange(10_000)
        kinds = (
            f"`src/{one}/{other}.py:{number}`",
            f"`--{one}-{other}`",
            f"{one}_{other}",
            f"port {number}",
            f"{number // 1000}.{number // 10 % 100}.{number % 10}",
            f"{one}{other.capitalize()}",
        )
        return kinds[number % len(kinds)]


def invent_words(count: int, source: random.Random) -> list[str]:
    """Different words, the first ones shorter, as frequent words are."""
    found: dict[str, None] = {}
    while len(found) < count:
        most = 2 if len(found) < count // 8 else 3
        syllables = source.randint(1 if len(found) < count // 40 else 2, most)
        word = "".join(source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(syllables))
        if len(word) > 2 and word not in STOP:
            found[word] = None
    return list(found)
