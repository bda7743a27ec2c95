"""Rules and preferences that contradict each other: "Use pnpm, not npm" and "Use npm, not pnpm". Pure.

A rule is a short sentence that tells what to use or do, without a condition, and is about now. Two rules are opposite
if they turn a choice around, if one refuses what the other tells to do in the same words, or if they are the same but
for two words that exclude each other (tabs, spaces). Anything else may be about different things, and is no
contradiction. The words are in `phrases/rules.*.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import expand_names, load_phrases
from truekeep.text.tables import iter_prose
from truekeep.text.words import stem_key

MAX_RULE_WORDS = 14
MAX_LINE_CHARS = 400
MIN_SHARED = 0.8  # of the words of two rules that differ in a negation
_NAME = r"(?:the )?(?P<{}>[A-Za-z@][\w.@/+-]{{0,40}}?)(?=\s*(?:[.,;:!)–—]|\Z)|\s(?:{})\b)"
_WORD = re.compile(r"[a-z0-9@][\w.@/+-]*", re.IGNORECASE)
_MARKS = re.compile(r"[`*\"“”]|(?<!\w)_|_(?!\w)")
_LINE_START = re.compile(
    r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?(?:\*\*[^*]{1,40}:?\*\*:?\s+(?=[A-Z`]))?"
)
_SENTENCE_END = re.compile(r"(?<=[.;!])\s+(?=[A-Z`*])|[.;!]\s*\Z")


_ARTICLES = ("the", "a", "an", "our", "your")


class Rule(NamedTuple):
    """What one sentence tells to use or do."""

    line: int
    text: str
    wanted: frozenset[str]  # names that it tells to use
    refused: frozenset[str]  # names that it tells not to use
    rest: frozenset[str]  # its other words
    verb: str  # its first word, besides a refusal
    is_refusal: bool  # it tells not to do it

    @property
    def words(self) -> frozenset[str]:
        return self.rest | self.wanted | self.refused


class _Patterns(NamedTuple):
    prefers: tuple[re.Pattern[str], ...]
    refuses: tuple[re.Pattern[str], ...]
    wants: tuple[re.Pattern[str], ...]
    refused_below: re.Pattern[str]
    not_plain: re.Pattern[str]
    opening: re.Pattern[str]
    refusal: re.Pattern[str]
    filler: frozenset[str]
    alternatives: tuple[frozenset[str], ...]


@cache
def _patterns() -> _Patterns:
    phrases = load_phrases("rules")
    behind = phrases.any_of("behind_name")
    names = {"NEW": _NAME.format("new", behind), "OLD": _NAME.format("old", behind)}
    opening = phrases.any_of("opening")

    def compiled(entry: str) -> tuple[re.Pattern[str], ...]:
        lines = (expand_names(line, names) for line in phrases.lines(entry))
        return tuple(re.compile(rf"(?:{opening})(?:{line})", re.IGNORECASE) for line in lines)

    return _Patterns(
        prefers=compiled("prefers"),
        refuses=compiled("refuses"),
        wants=compiled("wants"),
        refused_below=re.compile(rf"(?<![\w-])(?:{phrases.any_of('refused_below')})(?![\w-])", re.IGNORECASE),
        not_plain=re.compile(rf"(?<![\w-])(?:{phrases.any_of('not_plain')})(?![\w-])", re.IGNORECASE),
        opening=re.compile(opening, re.IGNORECASE),
        refusal=re.compile(rf"(?:{phrases.any_of('refusal')})\s+", re.IGNORECASE),
        filler=phrases.words("filler"),
        alternatives=tuple(frozenset(map(_folded, row)) for row in phrases.rows("alternatives")),
    )


def find_rules(text: str) -> list[Rule]:
    """The rules of a text, outside of headings, tables and code."""
    found: list[Rule] = []
    is_front = text.startswith("---\n")
    refused_below = False
    for number, line in iter_prose(text):
        if is_front:
            is_front = number == 1 or line.rstrip() != "---"
            continue
        if line.startswith("#") or line.rstrip(" *_").endswith(":"):
            refused_below = _patterns().refused_below.search(line) is not None
        if refused_below or line.startswith(("#", "    ", "\t")) or "|" in line or len(line) > MAX_LINE_CHARS:
            continue
        lead = _LINE_START.match(line)
        for sentence in _SENTENCE_END.split(line[lead.end() if lead else 0 :]):
            rule = _read_rule(sentence.strip(), number)
            if rule is not None:
                found.append(rule)
    return found


def _read_rule(sentence: str, line: int) -> Rule | None:
    patterns = _patterns()
    plain = _MARKS.sub("", sentence).strip(" .")
    if (
        not 1 < len(plain.split()) <= MAX_RULE_WORDS
        or sentence.endswith(("?", ":"))
        or patterns.not_plain.search(plain)
    ):
        return None
    wanted, refused = _choice(plain)
    opening = patterns.opening.match(plain)
    act = plain[opening.end() if opening else 0 :]
    refusal = patterns.refusal.match(act)
    act = act[refusal.end() :] if refusal else act
    words = [word for word in _WORD.findall(act) if word.lower() not in patterns.filler]
    verb = next((word for word in _WORD.findall(act) if word.lower() not in _ARTICLES), "")
    if not verb:
        return None
    rest = frozenset(map(_folded, words)) - wanted - refused - {"not", "never"}
    is_refusal = refusal is not None and not wanted
    return Rule(line, sentence, wanted, refused, rest, _folded(verb), is_refusal)


def _choice(sentence: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a sentence tells to use, and those that it tells not to use."""
    patterns = _patterns()
    for group in (patterns.prefers, patterns.refuses, patterns.wants):
        for pattern in group:
            match = pattern.match(sentence)
            if match is None:
                continue
            named = match.groupdict()
            new, old = (frozenset({_folded(name)} if (name := named.get(key)) else ()) for key in ("new", "old"))
            filler = {_folded(word) for word in patterns.filler}
            return new - filler, old - filler
    return frozenset(), frozenset()


def are_opposite(one: Rule, other: Rule) -> bool:
    """Whether two rules cannot both be followed."""
    return _turns_around(one, other) or _denies(one, other) or _takes_alternative(one, other)


def _turns_around(one: Rule, other: Rule) -> bool:
    """ "Use pnpm, not npm" against "Use npm, not pnpm", "Use npm" and "Never use pnpm"."""
    for first, second in ((one, other), (other, one)):
        if first.refused & second.wanted and not first.wanted & second.wanted:
            is_swapped = bool(first.wanted & second.refused)
            is_same_purpose = bool(first.rest & second.rest) or not (first.rest or second.rest)
            is_general = not first.rest and _exclude_each_other(first.wanted | second.wanted)
            if is_same_purpose or is_general or (is_swapped and not (first.rest and second.rest)):
                return True
    return False


def _denies(one: Rule, other: Rule) -> bool:
    """ "Never push to main" against "Push to main": the same words, and only one of them says no."""
    if one.is_refusal == other.is_refusal or one.verb != other.verb:
        return False
    mine, theirs = one.words, other.words
    shared = mine & theirs
    return len(shared) >= 2 and len(shared) >= MIN_SHARED * len(mine | theirs)


def _takes_alternative(one: Rule, other: Rule) -> bool:
    """ "Indent with tabs" against "Indent with spaces": the same but for two words that exclude each other."""
    if one.is_refusal or other.is_refusal or one.refused or other.refused or one.verb != other.verb:
        return False
    left, right = one.words - other.words, other.words - one.words
    if len(left) != 1 or len(right) != 1 or not (one.words & other.words or len(one.words) == 1):
        return False
    return _exclude_each_other(left | right)


def _exclude_each_other(names: frozenset[str]) -> bool:
    return len(names) > 1 and any(names <= group for group in _patterns().alternatives)


def find_opposites(rules: Iterable[Rule], said: Iterable[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Pairs of a rule and what contradicts it. Rules that contradict each other decide nothing."""
    given = list(rules)
    sure = [rule for rule in given if not any(are_opposite(rule, other) for other in given)]
    for statement in said:
        for rule in sure:
            if are_opposite(rule, statement):
                yield rule, statement
                break


def _folded(word: str) -> str:
    low = word.lower().rstrip(".,;:!")
    return low if any(mark in low for mark in "._/@-") else stem_key(low)
