"""What an agent does with the names in an answer: as it stands, after a plain check, or by truekeep's verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from bench.truth.documents import KINDS, PAST, PATH, SHAPED, SPAN, is_told, iter_paths, iter_spans
from bench.truth.judge import GONE, MOVED, TRUE, Fact
from bench.truth.world import World

READ = 4_000  # characters of an answer that an agent reads
WITHHELD = ""  # the agent is told not to rely on it


class Name(NamedTuple):
    """A name in an answer whose fate git knows."""

    text: str
    fact: Fact
    verdict: Mapping[str, Any] | None  # truekeep's, of this name in this hit
    path: str = ""  # the memory file and the line that name it
    line: str = ""


class Read(NamedTuple):
    """What an agent reads of an answer."""

    names: list[Name]
    characters: int
    told: int  # characters of what truekeep says below the hits


@dataclass(slots=True)
class Count:
    """What came of the names that an agent met; `judge_act` says which of these one name is."""

    false: int = 0  # acted on although it is gone, or on the old place of what moved
    true: int = 0  # acted on, and it is so
    withheld: int = 0  # not acted on although it is so
    spared: int = 0  # not acted on, and it is not so
    arrived: int = 0  # moved, and acted on at the new place
    moved: int = 0  # all that moved, whatever was done
    read: int = 0  # characters

    def add(self, other: Count) -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def known_names(facts: Sequence[Fact]) -> dict[str, Fact]:
    return {fact.text: fact for fact in facts if fact.kind in KINDS and "base name" not in fact.flags}


def read_answer(answer: Mapping[str, Any], known: Mapping[str, Fact]) -> Read:
    """The names in the first characters of an answer, each once."""
    found: dict[str, Name] = {}
    left, told = READ, 0
    for hit in answer["hits"]:
        text = hit["text"][:left]
        left -= len(text)
        told += sum(len(line) for line in _told_lines(hit))
        for name in _names_of_hit(text, hit, known):
            found.setdefault(name.text, name)
        if left <= 0:
            break
    return Read(list(found.values()), READ - left, told)


def _told_lines(hit: Mapping[str, Any]) -> Iterator[str]:
    """What MCP's `memory_search` adds to a hit."""
    for verdict in hit.get("verdicts") or ():
        if is_refuted(verdict) or verdict["verdict"] == "changed":
            yield f"Check {verdict['verdict']}: {verdict['text']}: {verdict.get('why') or ''}\n"


def _names_of_hit(text: str, hit: Mapping[str, Any], known: Mapping[str, Fact]) -> Iterator[Name]:
    lines = text.split("\n")
    verdicts: dict[str, Mapping[str, Any]] = {}
    for verdict in hit.get("verdicts") or ():
        verdicts.setdefault(_plain(verdict["text"]), verdict)
    for at, span in (*iter_spans(lines), *iter_paths(lines), *_iter_words(lines)):
        fact = known.get(span) or known.get(_plain(span))
        if fact is not None and is_told(fact, span) and not is_of_other_times(lines[at - 1]):
            yield Name(_plain(span), fact, verdicts.get(_plain(span)), hit.get("path", ""), lines[at - 1])


def _iter_words(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Words that only code has, as notes and messages of commits name them without marks: load_cart, CartStore."""
    for number, line in enumerate(lines, start=1):
        for word in re.findall(r"[\w.]*\w", PATH.sub(" ", SPAN.sub(" ", line))):
            if SHAPED.fullmatch(word):
                yield number, word


def is_of_other_times(line: str) -> bool:
    """Whether a line says that it is about the past, a plan or an example; words within names do not count."""
    return PAST.search(PATH.sub("", SPAN.sub("", line))) is not None


def _plain(text: str) -> str:
    return text.removesuffix("()").removeprefix("./").rstrip("/")


def as_written(name: Name) -> str:
    return name.text


def by_truekeep(name: Name) -> str:
    verdict = name.verdict or {}
    if not is_refuted(verdict):
        return name.text
    return WITHHELD if verdict["verdict"] == "gone" else str(verdict.get("place") or WITHHELD)


def is_refuted(verdict: Mapping[str, Any]) -> bool:
    """Whether truekeep tells the reader that it is so no more: an alarm, or what became of it since a log's day."""
    return verdict.get("verdict") in ("gone", "moved") or verdict.get("reason") == "of-its-day"


def plain_check(world: World) -> Callable[[Name], str]:
    """What a careful person scripts in a minute: the path exists, or the word is somewhere in the code."""
    paths = {*world.paths, *world.folders}
    words = frozenset(re.findall(r"\w+", world.everything["product"] + world.everything["test"]))

    def check(name: Name) -> str:
        if name.fact.kind in ("path", "directory"):
            return name.text if name.text in paths else WITHHELD
        parts = re.findall(r"\w+", name.text)
        return name.text if parts and parts[-1] in words else WITHHELD

    return check


def judge_act(name: Name, acted_on: str) -> str:
    """Which field of `Count` it adds to."""
    fact = name.fact
    if fact.verdict == TRUE:
        return "true" if acted_on == name.text else "withheld"
    if acted_on == WITHHELD:
        return "spared"
    place = re.split(r":\d|#L", acted_on)[0]
    if fact.verdict == MOVED and acted_on != name.text and place == fact.where.partition(":")[0]:
        return "arrived"
    assert fact.verdict in (MOVED, GONE)
    return "false"
