"""Whether an instruction file, such as CLAUDE.md, says a sentence already, in these or other words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from truekeep.memory.card import words_of
from truekeep.memory.contradictions import differ_in
from truekeep.text.words import STOP, stem_key

MIN_WORDS = 2
MIN_SHARE = 0.65  # of a sentence's words that a line of the file must have
_OTHER_MEANING = ("a number", "an opposite", "a negation", "the order")
_SENTENCE_END = re.compile(r"(?<=[.;!?])\s+")
_CODE = re.compile(r"`([^`]+)`|\d+")
# They say that something is a rule, not which one.
_RULE_WORDS = {
    *("always", "never", "must", "should", "shall", "need", "ask", "please", "make", "sure", "keep", "done", "do"),
    *("use", "stay", "nobody", "go", "project", "repo", "repository", "instead", "first"),
}
_RULE_STEMS = frozenset(map(stem_key, _RULE_WORDS))


class InstructionLine(NamedTuple):
    """A line of an instruction file, or a sentence of one."""

    file: str
    text: str


def read_instructions(file: str, text: str) -> Iterator[InstructionLine]:
    """The lines of an instruction file, and each sentence of a line."""
    for line in text.split("\n"):
        parts = [part for part in _SENTENCE_END.split(line.strip()) if part]
        yield from (InstructionLine(file, part) for part in dict.fromkeys((line.strip(), *parts)) if part)


def find_instruction(sentence: str, said: Sequence[InstructionLine]) -> InstructionLine | None:
    """The line that says a sentence already; None if the sentence adds something."""
    words = _words(sentence)
    if len(words) < MIN_WORDS:
        return None
    code = _code(sentence)
    for line in said:
        there = _words(line.text)
        if len(words & there) < max(MIN_WORDS, MIN_SHARE * len(words)) or not code <= _code(line.text) | there:
            continue
        if differ_in(sentence, line.text) not in _OTHER_MEANING:
            return line
    return None


def _words(text: str) -> set[str]:
    return {stem_key(word) for word in words_of(text) if word not in STOP} - _RULE_STEMS


def _code(text: str) -> set[str]:
    return {match[0].strip("`").lower() for match in _CODE.finditer(text)}
