"""Recognises in other files what private files say, and what they are called.

A text is compared by runs of words: about five words, or ten characters of a script without spaces, wherever they are,
however they are wrapped, quoted or emphasised; a path or an address is one word. A short line counts as a whole, a
title or a name of a file also inside a line. A line that has any of them is masked; in MEMORY.md it is left out. The
same fact in other words is not found.

Only digests are kept, each with a checksum of its longest word, by which most lines are passed over at once.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote

from truekeep.core.model import BEGIN_MARK, END_MARK, INDEX

MASK = "(private)"
OPEN_NAMES = ("soul.md", "user.md", "memory.md")  # every workspace has them: to name one says nothing
_RUN_WORDS, _RUN_WEIGHT = 5, 22
_LINE_WEIGHT, _TITLE_WEIGHT = 12, 14
_TITLE_WORDS = range(2, 9)
_MAX_WORD_WEIGHT, _DIGIT_WEIGHT, _CHARACTER_WEIGHT = 12, 6, 2
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"  # one character, one token
_PART = f"[^\\W_{_UNSPACED}]+"
_WORD = re.compile(f"[{_UNSPACED}]|{_PART}")
_TOKEN = re.compile(f"[{_UNSPACED}]|{_PART}(?:[/._:@=~-]+{_PART})*")
_RUN, _LINE, _NAME = 0, 1, 2  # kinds of prints, in the last two bits of the checksum
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_TITLE = re.compile(r"(?:topic|title|name|permalink):\s*(.+)|#\s+(.+)", re.IGNORECASE)
_LEAD = re.compile(r"\s*(?:(?:[-*+>#|]+|\d+[.)])\s+)*")
_KEY = re.compile(r"\s*(?:[\w-]+:|-)\s")
_PART = r"[^\s()\[\]<>\"'`|,;*]"  # of a bare name
_MENTION = re.compile(
    r"!?\[\[(?P<wiki>[^\[\]\n]{1,300})\]\]"
    r"|!?\[[^\[\]\n]{0,300}\]\([ \t]*(?P<link><[^>\n]{1,500}>|[^()\n]{1,500}?)(?:[ \t]+[\"'][^)\n]{0,300})?\)"
    rf"|(?<!{_PART})(?P<bare>{_PART}{{1,500}}\.md)\b",
    re.IGNORECASE,
)

Print = tuple[int, int]
"""A checksum of the longest word of a run, and the digest of the run."""


class Tokens(NamedTuple):
    """The words of a text in their plain form, each with the number of its line from 0."""

    words: list[str]
    lines: list[int]


def tokenize(text: str) -> Tokens:
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n")):
        found = _TOKEN.findall(_plain(line))
        words += found
        lines += [number] * len(found)
    return Tokens(words, lines)


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)).casefold()


def prints_of(text: str, name: str) -> set[Print]:
    """The prints of a private file. What truekeep itself wrote into it does not count."""
    text = _without_own_blocks(text)
    tokens = tokenize(text).words
    found = {_print(_RUN, tokens[start:end]) for start, end in _iter_runs(tokens)}
    titles = [os.path.splitext(os.path.basename(name))[0]]
    for line in text.split("\n"):
        if named := _TITLE.match(line.strip()):
            titles.append(named[1] or named[2])
        words = _WORD.findall(_plain(line))
        is_short = 0 < _total(words) < _RUN_WEIGHT or 0 < len(words) < _RUN_WORDS
        if is_short and _total(words) >= _LINE_WEIGHT and (len(words) > 2 or _has_digit(words)):
            found.add(_print(_LINE, words))
    for title in titles:
        words = _WORD.findall(_plain(title))
        is_told = len(words) > 2 or (len(words) == 2 and _has_digit(words))
        if is_told and len(words) in _TITLE_WORDS and _total(words) >= _TITLE_WEIGHT and not "".join(words).isdigit():
            found.add(_print(_NAME, words))
    return found


def _without_own_blocks(text: str) -> str:
    while BEGIN_MARK in text:
        before, _, rest = text.partition(BEGIN_MARK)
        text = before + rest.partition(END_MARK)[2]
    return text


def _iter_runs(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The shortest runs that tell something: one from each word on, and one up to each word."""
    forward = set(_shortest(words))
    backward = {(len(words) - end, len(words) - start) for start, end in _shortest(words[::-1])}
    yield from sorted(forward | backward)


def _shortest(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    weights = [_weight(word) for word in words]
    end = total = 0
    for start in range(len(words)):
        while end < len(words) and (total < _RUN_WEIGHT or end - start < _RUN_WORDS):
            total += weights[end]
            end += 1
        if total < _RUN_WEIGHT or end - start < _RUN_WORDS:
            return
        yield start, end
        total -= weights[start]


def _weight(word: str) -> int:
    if len(word) == 1 and ord(word) > 0xDFF:
        return _CHARACTER_WEIGHT
    return min(len(word), _MAX_WORD_WEIGHT) + (_DIGIT_WEIGHT if any(map(str.isdigit, word)) else 0)


def _total(words: Sequence[str]) -> int:
    return sum(map(_weight, words))


def _has_digit(words: Iterable[str]) -> bool:
    return any(map(str.isdigit, "".join(words)))


def _print(kind: int, words: Sequence[str]) -> Print:
    text = f"{kind} {' '.join(words)}".encode("utf-8", "surrogatepass")
    return _anchor(kind, max(words, key=len)), int.from_bytes(blake2b(text, digest_size=8).digest())


def _anchor(kind: int, word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) & ~3 | kind


class MaskedText(NamedTuple):
    """A text without what is private."""

    text: str
    lines: tuple[int | None, ...]  # for each line of the original: its number here; None if it is changed or left out
    same_as: str  # a private file that says one of the masked lines, or is named there


class PrivateText:
    """The prints of private files, by which a text is compared."""

    def __init__(self, prints: Mapping[Print, str]) -> None:
        """`prints`: with the file that each is from."""
        self._files = {digest: path for (_, digest), path in prints.items()}
        self._anchors = {anchor for anchor, _ in prints}

    def find(self, text: str) -> dict[int, list[Print]]:
        """The prints in a text, by the number of the line from 0."""
        found: dict[int, list[Print]] = {}
        if not self._anchors:
            return found
        tokens = tokenize(text)
        for start, end in self._iter_known_runs(tokens.words):
            if (mark := _print(_RUN, tokens.words[start:end]))[1] in self._files:
                for at in {*tokens.lines[start:end]}:
                    found.setdefault(at, []).append(mark)
        for number, line in enumerate(text.split("\n")):
            for mark in self._iter_short(_WORD.findall(_plain(line))):
                if mark[1] in self._files:
                    found.setdefault(number, []).append(mark)
        return found

    def file_of(self, mark: Print) -> str:
        return self._files[mark[1]]

    def _iter_known_runs(self, words: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The runs that have the longest word of a private one."""
        is_known = {word: _anchor(_RUN, word) in self._anchors for word in {*words}}
        if not any(is_known.values()):
            return
        for start, end in _iter_runs(words):
            if any(is_known[word] for word in words[start:end]):
                yield start, end

    def _iter_short(self, words: Sequence[str]) -> Iterator[Print]:
        if not words:
            return
        if _anchor(_LINE, max(words, key=len)) in self._anchors:
            yield _print(_LINE, words)
        if any(_anchor(_NAME, word) in self._anchors for word in words):
            for count in _TITLE_WORDS:
                for start in range(len(words) - count + 1):
                    yield _print(_NAME, words[start : start + count])


class PrivateNames:
    """Names of private files, as links and sentences in other files have them."""

    def __init__(self, private: Iterable[str], published: Iterable[str], is_listed: Callable[[str], bool]) -> None:
        self._private, self._published = _by_name(private), _by_name(published)
        self._is_listed = is_listed
        spaced = [re.escape(name) for name in self._private if " " in name]
        self._spaced = re.compile("|".join(spaced), re.IGNORECASE) if spaced else None

    def find(self, path: str, text: str) -> Iterator[tuple[int, int, str]]:
        """Where a text names a private file: start, end, and the name as it is there."""
        if ".md" not in text.lower() and "[[" not in text:
            return
        for found in _MENTION.finditer(text):
            wiki = found["wiki"]
            target = wiki or found["link"] or found["bare"]
            if self.is_private(path, target, is_wiki=wiki is not None):
                yield found.start(), found.end(), target
        for found in self._spaced.finditer(text) if self._spaced else ():
            yield found.start(), found.end(), found[0]

    def is_private(self, path: str, target: str, *, is_wiki: bool = False) -> bool:
        """True if what is named in a file is a private file, and not one that is published."""
        named = _fold(unquote(target.strip("<> ")).partition("#")[0].partition("|")[0].strip())
        named = named if named.endswith(".md") or not is_wiki else f"{named}.md"
        name = posixpath.basename(named)
        if not named.endswith(".md") or "://" in named or any(part in OPEN_NAMES for part in named.split("/")):
            return False
        private, published = self._private.get(name, ()), self._published.get(name, ())
        for place in (posixpath.normpath(posixpath.join(posixpath.dirname(_fold(path)), named)), named):
            if place in published:
                return False
            if place in private or self._is_listed(place):
                return True
        ends = f"/{named}"
        if any(known.endswith(ends) for known in published):
            return False
        return any(known.endswith(ends) or ends.endswith(f"/{known}") for known in private)


def _by_name(paths: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in map(_fold, paths):
        found.setdefault(posixpath.basename(path), set()).add(path)
    return found


def _fold(path: str) -> str:
    if path.isascii():
        return path.lower().removeprefix("./")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold()).removeprefix("./")


def mask_text(path: str, text: str, said: Mapping[int, str], named: Collection[tuple[int, int, str]]) -> MaskedText:
    """A text whose lines in `said` are masked, and whose names of private files are.

    `said`: the file that says the same, by line. In MEMORY.md both kinds of lines are left out.
    """
    lines = text.split("\n")
    starts = _starts(lines)
    places = _by_line(starts, lines, named)
    is_index = path == INDEX
    out: list[str] = []
    numbers: list[int | None] = []
    head = _front_matter_end(lines)
    entry = -1  # indentation of an index entry that is left out
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        is_rest = entry >= 0 and line.strip() != "" and indent > entry
        if not is_rest:
            entry = -1
        if is_index and (number in said or number in places or is_rest):
            entry = entry if is_rest else indent
            numbers.append(None)
            continue
        if number in said:
            out.append(_masked(line, is_head=number < head))
        elif number in places:
            out.append(_without_names(line, places[number]))
        else:
            out.append(line)
        numbers.append(len(out) - 1 if out[-1] == line else None)
    why = next(iter(said.values()), "") or next((name for _, _, name in named), "")
    return MaskedText("\n".join(out), tuple(numbers), why)


def _starts(lines: Sequence[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _by_line(
    starts: Sequence[int], lines: Sequence[str], named: Collection[tuple[int, int, str]]
) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    number = 0
    for start, end, _ in sorted(named):
        while starts[number] + len(lines[number]) < start:
            number += 1
        found.setdefault(number, []).append((start - starts[number], end - starts[number]))
    return found


def _without_names(line: str, places: Sequence[tuple[int, int]]) -> str:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    for start, end in reversed(merged):
        line = line[:start] + MASK + line[end:]
    return line


def _masked(line: str, *, is_head: bool) -> str:
    lead = (_KEY if is_head else _LEAD).match(line)
    return (lead[0] if lead else "") + MASK


def _front_matter_end(lines: Sequence[str]) -> int:
    """The number of the line that ends a front matter; 0 without one."""
    if lines[0].strip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
