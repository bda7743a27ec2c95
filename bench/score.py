"""How good a ranking is: were the lines that answer found, how early, and in how little text?

An item of evidence is found by the first hit of the same file whose lines overlap it. Everything is then told by the
ranks at which the items were found. Nothing here searches, and nothing knows where a hit came from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log2
from types import MappingProxyType
from typing import NamedTuple

from bench.corpus import Evidence, Question

BUDGET = 4_000  # characters: about what an agent is given at the start of a session
DISCOUNTS = tuple(1 / log2(rank + 1) for rank in range(1, 11))


class Hit(NamedTuple):
    """A passage that a search returned, the best first."""

    path: str
    first: int
    last: int
    text: str  # from the beginning of the first line on


Passage = tuple[str, int, int, str]


class Scores(NamedTuple):
    """Means over so many questions, each from 0 to 1."""

    questions: int
    recall_5: float  # of the evidence, the share in the first five hits
    recall_10: float
    mrr: float  # 1 / rank of the first hit with any evidence
    ndcg_10: float  # each item gains once, the less the later; a hit with many items can't make it more than 1
    recall_budget: float  # of the evidence, the share in the first 4,000 characters
    hit_5: float  # whether any of the evidence is in the first five hits


NO_UNITS: Mapping[str, Sequence[int]] = MappingProxyType({})


def score(
    evidence: Sequence[Evidence], hits: Sequence[Passage], *, units: Mapping[str, Sequence[int]] = NO_UNITS
) -> Scores:
    """The scores of one ranking, for one question. With units, a hit in units that were shown before has no rank."""
    if not evidence:
        raise ValueError("a question without evidence has no scores")
    affordable = within(hits, BUDGET)
    if units:
        hits = list(iter_new(hits, units))
    ranks = [rank for item in evidence if (rank := find_rank(item, hits))]
    return Scores(
        questions=1,
        recall_5=sum(rank <= 5 for rank in ranks) / len(evidence),
        recall_10=sum(rank <= 10 for rank in ranks) / len(evidence),
        mrr=1 / min(ranks) if ranks else 0.0,
        ndcg_10=min(1.0, sum(DISCOUNTS[rank - 1] for rank in ranks if rank <= 10) / sum(DISCOUNTS[: len(evidence)])),
        recall_budget=sum(bool(find_rank(item, affordable)) for item in evidence) / len(evidence),
        hit_5=float(any(rank <= 5 for rank in ranks)),
    )


def iter_new(hits: Iterable[Passage], units: Mapping[str, Sequence[int]]) -> Iterator[Passage]:
    """The hits that show some of a unit (a file, an exchange) which no hit before them showed."""
    shown: set[tuple[str, int]] = set()
    for hit in hits:
        starts = units[hit[0]]
        places = range(bisect_right(starts, hit[1]), bisect_right(starts, hit[2]) + 1)
        if not shown.issuperset((hit[0], at) for at in places):
            yield hit
        shown.update((hit[0], at) for at in places)


def find_rank(item: Evidence, hits: Sequence[Passage]) -> int:
    """The rank, from 1, of the first hit that has some of the item's lines; 0 if none has."""
    path, start, end = item
    for rank, (other, first, last, _) in enumerate(hits, start=1):
        if other == path and first <= end and start <= last:
            return rank
    return 0


def within(hits: Iterable[Passage], room: int) -> list[Hit]:
    """The hits that fit into so many characters; the one at the boundary keeps the lines that fit whole."""
    kept = []
    for path, first, last, text in hits:
        if len(text) > room:
            lines = text.count("\n", 0, room + 1)  # a line whose end falls on the boundary fits, its newline aside
            if lines:
                kept.append(Hit(path, first, min(last, first + lines - 1), text[:room]))
            break
        kept.append(Hit(path, first, last, text))
        room -= len(text)
    return kept


def mean(scores: Iterable[Scores]) -> Scores:
    """Every question weighs the same, also when means are joined."""
    every = [one for one in scores if one.questions]
    if not every:
        return Scores(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    count = sum(one.questions for one in every)
    weighed = ([one.questions * value for value in one[1:]] for one in every)
    return Scores(count, *(sum(column) / count for column in zip(*weighed, strict=True)))


Ranked = Iterable[tuple[Question, Sequence[Passage]]]


def score_all(ranked: Ranked) -> Scores:
    return mean(score(question.evidence, hits) for question, hits in ranked)


def score_by_kind(ranked: Ranked) -> dict[str, Scores]:
    """The means of each kind of question, in the order in which kinds are met."""
    kinds: dict[str, list[Scores]] = {}
    for question, hits in ranked:
        kinds.setdefault(question.kind, []).append(score(question.evidence, hits))
    return {kind: mean(scores) for kind, scores in kinds.items()}
