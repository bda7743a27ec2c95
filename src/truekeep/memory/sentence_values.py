"""Sentences that are the same but for one value: "Sessions are stored in Postgres" and "… in Redis". Pure.

`find_values` knows what kind of value a sentence gives. Here any name or number counts, so the rest of the sentence
has to be the same, word by word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.memory.word_meanings import word_meanings
from truekeep.text.phrases import load_phrases
from truekeep.text.tables import iter_prose

MIN_WORDS, MIN_CONTENT_WORDS, MAX_WORDS = 3, 2, 16
MAX_LINE_CHARS = 400
MAX_VALUE_WORDS = 2
_LINE_START = re.compile(
    r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[^\]]{1,40}\]\s+)?)?(?:\d{1,2}:\d\d(?::\d\d)?[\s,–—-]+)?"
)
_SENTENCE_END = re.compile(r"(?<=[.;!])\s+(?=[A-Z`*])")
_TOKEN = re.compile(r"`[^`\n]{1,80}`|[A-Za-z0-9][\w./+#@-]*")
_PLAIN_SENTENCE = re.compile(r"[A-Z`][A-Za-z0-9 `',./+@-]*\Z")  # no labels, lists, links, emphasis or brackets
_TIME = re.compile(r"\d{4}-\d|\d{1,2}:\d\d|(?:19|20)\d\d\Z")
_SLOT = "\0"
_MEASURE = re.compile(
    r"(?P<port>\bports?\b(?: is| number)?[ :=]+`?)?(?<![\w.:/-])(?P<number>\d+(?:\.\d+)?)"
    r"(?:`?\s?(?P<unit>[A-Za-z%]+))?(?![\w.]*\d)"
)


class SentenceValue(NamedTuple):
    """A sentence with one value: the rest of it with the kind of the value, and the value."""

    line: int
    text: str
    frame: str
    value: str


class Measure(NamedTuple):
    """A number with its unit, or the number of a port."""

    number: str
    unit: str
    start: int
    end: int


def sentence_values(text: str) -> Iterator[SentenceValue]:
    """The sentences of a text that hold exactly one name or number, outside of headings, tables and code."""
    is_front = text.startswith("---\n")
    for number, line in iter_prose(text):
        if is_front:
            is_front = number == 1 or line.rstrip() != "---"
            continue
        if line.startswith("#") or "|" in line or len(line) > MAX_LINE_CHARS:
            continue
        lead = _LINE_START.match(line)
        for sentence in _SENTENCE_END.split(line[lead.end() if lead else 0 :]):
            found = _read(sentence.strip(), number)
            if found is not None:
                yield found


def _read(sentence: str, line: int) -> SentenceValue | None:
    if not _PLAIN_SENTENCE.match(sentence):
        return None
    phrases, meanings = load_phrases("contradictions"), word_meanings()
    passing, states = phrases.words("passing"), phrases.words("states")
    if not states & set(sentence.lower().split()):
        return None
    frame: list[str] = []
    values: list[str] = []
    for at, match in enumerate(_TOKEN.finditer(sentence)):
        token = match[0].rstrip(".,;:")
        low = token.lower()
        if low in passing or low in meanings.determiners:
            continue
        if token[0] in "`0123456789" or (at and token[0].isupper()):
            if not frame or frame[-1] != _SLOT:
                frame.append(_SLOT)
                values.append(token.strip("`"))
            else:
                values[-1] += f" {token}"
        else:
            frame.append(meanings.stem(low))
    words = [word for word in frame if word != _SLOT]
    content = [word for word in words if word not in meanings.plain]
    if len(values) != 1 or not MIN_WORDS <= len(words) <= MAX_WORDS or len(content) < MIN_CONTENT_WORDS:
        return None
    value = values[0]
    if frame[0] == _SLOT or len(value.split()) > MAX_VALUE_WORDS or _TIME.match(value):
        return None
    kind = "number" if value[0].isdigit() else "name"
    return SentenceValue(line, sentence, f"{kind} {' '.join(frame)}", value)


def find_measures(text: str) -> list[Measure]:
    """The numbers of a text that have a unit (hours, MB, %), and those of ports."""
    units = load_phrases("contradictions").words("units")
    found = []
    for match in _MEASURE.finditer(text):
        unit = "port" if match["port"] else (match["unit"] or "").lower()
        if unit == "port" or unit in units:
            found.append(Measure(match["number"], unit.rstrip("s") if len(unit) > 3 else unit, *match.span("number")))
    return found


def content_words(text: str) -> frozenset[str]:
    """The stems of the words of a text that mean something."""
    meanings = word_meanings()
    words = (match[0].lower().strip("`.,;:") for match in _TOKEN.finditer(text))
    return frozenset(
        meanings.stem(word) for word in words if word and not word[0].isdigit() and word not in meanings.plain
    )
