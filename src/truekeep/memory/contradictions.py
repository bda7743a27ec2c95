"""Whether two texts of nearly the same words contradict each other. Pure.

"Ada prefers tabs over spaces" and "Ada prefers spaces over tabs" have all their words in common. Each statement of one
text is compared with the statement of the other text that shares the most words with it. If the two differ in a
negation, an opposite, a name, a number, a word of an otherwise equal sentence, or in the order of things, they are
variants, and the texts are not duplicates. A statement without a partner is an addition. A doubtful pair counts as a
variant: merging two texts that disagree would lose what both of them say. The words are in `word_meanings`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import NamedTuple

from truekeep.memory.merge import parts_of
from truekeep.memory.word_meanings import word_meanings

# Shares of words for which two statements are about one thing: of all their words, of the shorter one's words, and of
# all their words if the sentences are built alike.
MIN_SHARED = 0.34
MIN_SHARED_OF_SHORTER = 0.6
MIN_SHARED_IF_BUILT_ALIKE = 0.2
# Shares of words in the same order: one sentence with something exchanged in it, and one with hardly anything.
FRAME_RATIO = 0.6
SAME_FRAME_RATIO = 0.8
MAX_STATEMENTS = 400
MAX_TOKENS = 80  # of one statement
MAX_EXCHANGED = 3  # words in the place of others

_TOKEN = re.compile(r"`([^`\n]{1,200})`|\||--?[A-Za-z][\w=-]*|[\w$@#~][\w$@#]*(?:[./:=+&-]+\w+)*")
_CONTRACTED_NOT = re.compile(r"\b(\w{2,12})n't\b", re.IGNORECASE)
_CONTRACTED_VERBS = {"ca": "can", "wo": "will"}
_POSSESSIVE = re.compile(r"'s\b")
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu)'(?=\w)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.;!?])[)\"'*_]*\s+")
_LIST_MARK = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_CODE_LIKE = re.compile(r"[_/@#$~=&:]|\w\.\w|[a-z][A-Z]|\A-{1,2}[a-z]|\d")  # code, an address or a version


class Variant(NamedTuple):
    """Two statements that contradict each other, or may do so."""

    one: str
    other: str
    why: str  # the kind of difference, such as "a number"


class _Statement:
    """A sentence or a list item, split into words."""

    def __init__(self, text: str, item: str = "") -> None:
        self.text = text
        self.item = item or text  # the line or paragraph around it
        self.stems: list[str] = []
        self.names: set[str] = set()
        self.numbers: set[str] = set()
        meanings = word_meanings()
        for number, (word, is_code) in enumerate(_tokens(text)):
            low = word.casefold()
            is_code_like = is_code or _CODE_LIKE.search(word) is not None
            stem = low if is_code_like else meanings.stem(low)
            if low in meanings.numbers or low[0].isdigit():
                stem = meanings.numbers.get(low) or low.replace(",", "")
                self.numbers.add(stem)
            elif is_code_like or low in meanings.days or (number and word[0].isupper()):
                self.names.add(stem)
            self.stems.append(stem)
        self.all = frozenset(self.stems)
        self.content = frozenset(stem for stem in self.stems if stem not in meanings.plain or stem in self.names)
        self.denied = Counter(self._denied())

    def _denied(self) -> Iterator[str]:
        """The word that each negation denies: the next word with a meaning of its own, else the last one."""
        negations = word_meanings().negations
        for at, stem in enumerate(self.stems):
            if stem in negations:
                behind = (word for word in self.stems[at + 1 :] if word in self.content and word not in negations)
                before = (word for word in reversed(self.stems[:at]) if word in self.content)
                yield next(behind, None) or next(before, "")

    def parts(self) -> dict[str, set[str]]:
        """The words that have a part of their own in the sentence, by the word in front of them ("from", "over")."""
        meanings = word_meanings()
        found: dict[str, set[str]] = {}
        for at, stem in enumerate(self.stems):
            if stem in meanings.roles:
                behind = (word for word in self.stems[at + 1 :] if word not in meanings.determiners)
                found.setdefault(stem, set()).update(
                    islice(takewhile(self.content.__contains__, behind), MAX_EXCHANGED)
                )
        return found

    @property
    def skeleton(self) -> list[str]:
        """The sentence without the words that have a meaning of their own."""
        return ["" if stem in self.content else stem for stem in self.stems]


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """The words of a statement, and whether each is code. Paths, flags and the like stay whole."""
    plain = text.replace("\u2019", "'")
    plain = _CONTRACTED_NOT.sub(lambda match: _CONTRACTED_VERBS.get(match[1].lower(), match[1]) + " not", plain)
    plain = _ELISION.sub("", _POSSESSIVE.sub("", plain)).replace("cannot", "can not")
    count = 0
    for match in _TOKEN.finditer(plain):
        words = (match[1] if match[1] is not None else match[0]).replace("=", " = ").split()
        for word in words:
            yield word, match[1] is not None
            count += 1
            if count == MAX_TOKENS:
                return


def statements_of(text: str) -> list[tuple[str, str]]:
    """The sentences of a text, each with the paragraph around it; code line by line. Headings are left out."""
    found: list[tuple[str, str]] = []
    for part in parts_of(text.replace("\r\n", "\n")):
        for statement in part.statements:
            if statement.is_code:
                found += [(f"`{line.strip()}`", "") for line in statement.lines[1:-1] if line.strip(" `~")]
                continue
            bare = [line[match.end() :] if (match := _LIST_MARK.match(line)) else line for line in statement.lines]
            is_table = bare[0].lstrip().startswith("|")
            for piece in bare if is_table else [" ".join(bare)]:
                found += [(sentence, piece) for sentence in _SENTENCE_END.split(piece) if sentence.strip(" |-:")]
            if len(found) >= MAX_STATEMENTS:
                return found[:MAX_STATEMENTS]
    return found


def find_variant(
    one: str, other: str, topics: tuple[str, str] = ("", ""), *, only_framed: bool = False
) -> Variant | None:
    """The first pair of statements that contradict each other in nearly the same words; else the topics, if they do.

    `only_framed`: only pairs that are one sentence with something exchanged in it.
    """
    mine, theirs = ([_Statement(*said) for said in statements_of(body)] for body in (one, other))
    about, subject = (_Statement(topic) for topic in topics)
    here = {word for item in (*mine, about) for word in item.all}
    there = {word for item in (*theirs, subject) for word in item.all}
    for first, second in _side_by_side(mine, theirs):
        if only_framed and _ratio(first, second) < FRAME_RATIO:
            continue
        why = _differ(first, second, here, there)
        if why:
            return Variant(first.text, second.text, why)
    return Variant(*topics, "what it is about") if _is_other_topic(about, subject, here, there) else None


def differ_in(one: str, other: str) -> str:
    """How two statements contradict each other, such as "a number"; empty if they may say the same."""
    first, second = _Statement(one), _Statement(other)
    return _differ(first, second, set(first.all), set(second.all))


def _is_other_topic(one: _Statement, other: _Statement, here: set[str], there: set[str]) -> bool:
    """Whether each of two topics has a word that the other card does not use."""
    if _ratio(one, other) < FRAME_RATIO:
        return False
    for left, right in _exchanged(one, other):
        mine, theirs = left - there, right - here
        is_named = mine & (one.names | one.numbers) and theirs & (other.names | other.numbers)
        if mine and theirs and (is_named or len(one.stems) - len(left) > 2):
            return True
    return False


def _side_by_side(mine: Sequence[_Statement], theirs: Sequence[_Statement]) -> Iterator[tuple[_Statement, _Statement]]:
    """Pairs of statements about one thing, the most alike first, each once; without statements that both sides have."""
    my_texts, their_texts = ({" ".join(item.stems) for item in side} for side in (mine, theirs))
    mine = [item for item in mine if " ".join(item.stems) not in their_texts]
    theirs = [item for item in theirs if " ".join(item.stems) not in my_texts]
    by_word: dict[str, list[int]] = {}
    for at, item in enumerate(theirs):
        for word in item.content:
            by_word.setdefault(word, []).append(at)
    found: list[tuple[float, int, int]] = []
    for number, item in enumerate(mine):
        shared: Counter[int] = Counter(at for word in item.content for at in by_word.get(word, ()))
        for at, count in shared.items():
            other = theirs[at]
            every = len(item.content | other.content)
            least = min(len(item.content), len(other.content))
            is_alike = count / every >= MIN_SHARED or (
                count / least >= MIN_SHARED_OF_SHORTER and (count > 1 or every <= 3)
            )
            if is_alike or (count / every >= MIN_SHARED_IF_BUILT_ALIKE and _ratio(item, other) >= FRAME_RATIO):
                found.append((count / every, number, at))
    taken: tuple[set[int], set[int]] = (set(), set())
    for _, number, at in sorted(found, key=lambda item: (-item[0], item[1], item[2])):
        if number not in taken[0] and at not in taken[1]:
            taken[0].add(number)
            taken[1].add(at)
            yield mine[number], theirs[at]


def _differ(one: _Statement, other: _Statement, here: set[str], there: set[str]) -> str:
    """How two statements about one thing differ. `here` and `there` are all words of the texts around them."""
    if one.stems == other.stems:
        return ""
    ratio = _ratio(one, other)
    is_framed = ratio >= FRAME_RATIO
    here, there = (set(one.all), set(other.all)) if is_framed else (here, there)
    if one.numbers - there and other.numbers - here:
        return "a number"
    if one.names - there and other.names - here:
        return "a name"
    opposed = list(_opposed(one, other, is_framed=is_framed))
    if any((word in one.denied) == (stem in other.denied) for word, stem in opposed):
        return "an opposite"
    if ratio >= SAME_FRAME_RATIO and _denials_differ(one, other):
        return "a negation"
    if bool(one.denied) != bool(other.denied) and not opposed and not _is_restrained(one, other):
        return "a negation"
    if is_framed and any(left and right for left, right in _exchanged(one, other)):
        return "a word"
    return "the order" if _is_turned(one, other, is_framed=is_framed) else ""


def _ratio(one: _Statement, other: _Statement) -> float:
    """The share of two statements that is the same words in the same order."""
    first, second = sorted((one.stems, other.stems))  # SequenceMatcher is not symmetric
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _is_restrained(one: _Statement, other: _Statement) -> bool:
    """Whether the statement without a negation says no in other words."""
    meanings = word_meanings()
    positive, negative = (other, one) if one.denied else (one, other)
    around = _Statement(positive.item)
    if around.denied or around.all & meanings.restraints:
        return True
    return any(meanings.is_reversed(word, denied) for word in around.all for denied in negative.denied)


def _denials_differ(one: _Statement, other: _Statement) -> bool:
    """Whether two statements deny different things. Denying a word is the same as saying its opposite."""
    meanings = word_meanings()
    if one.denied == other.denied:
        return False
    for first, second in ((one, other), (other, one)):
        for word in first.denied - second.denied:
            if not any(meanings.are_opposite(word, stem) for stem in second.all - first.all):
                return True
    return False


def _opposed(one: _Statement, other: _Statement, *, is_framed: bool) -> Iterator[tuple[str, str]]:
    """Pairs of opposite words, one in each statement. Small words count only in each other's place."""
    meanings = word_meanings()
    for word in one.all - other.all - meanings.plain:
        for stem in other.all - one.all - meanings.plain:
            if meanings.are_opposite(word, stem):
                yield word, stem
    for left, right in _replaced(one, other) if is_framed else ():
        for word in left - other.all:
            yield from ((word, stem) for stem in right - one.all if stem in meanings.small_opposites.get(word, ()))


def _replaced(one: _Statement, other: _Statement) -> Iterator[tuple[set[str], set[str]]]:
    """Runs of a few words that are in each other's place."""
    first, second = sorted((one.stems, other.stems))
    for tag, start, end, at, to in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "replace" and max(end - start, to - at) <= MAX_EXCHANGED:
            left, right = set(first[start:end]), set(second[at:to])
            yield (left, right) if first is one.stems else (right, left)


def _exchanged(one: _Statement, other: _Statement) -> Iterator[tuple[set[str], set[str]]]:
    """The words in each other's place, without words that are only another form of the other side's."""
    negations = word_meanings().negations
    for left, right in _replaced(one, other):
        mine = {word for word in left & one.content - other.all if word not in negations}
        theirs = {word for word in right & other.content - one.all if word not in negations}
        yield (
            {word for word in mine if not any(_is_form(word, stem) for stem in theirs)},
            {word for word in theirs if not any(_is_form(word, stem) for stem in mine)},
        )


def _is_form(one: str, other: str) -> bool:
    """Whether one word is a form of the other: it begins with it."""
    short, long = sorted((one, other), key=len)
    return len(short) > 3 and long.startswith(short) and not _CODE_LIKE.search(long)


def _is_turned(one: _Statement, other: _Statement, *, is_framed: bool) -> bool:
    """Whether two statements have the same words in different roles."""
    mine, theirs = ([stem for stem in item.stems if stem in item.content] for item in (one, other))
    if mine != theirs and Counter(mine) == Counter(theirs) and one.skeleton == other.skeleton:
        return True
    for left, right in _replaced(one, other) if is_framed else ():
        if (left & one.content) - right and (right & other.content) - left and left <= other.all and right <= one.all:
            return True
    parts, others = one.parts() | {"no": set(one.denied)}, other.parts() | {"no": set(other.denied)}
    return any(
        not parts[part] & others[part] and parts[part] & other.all and others[part] & one.all
        for part in parts.keys() & others.keys()
    )
