"""Whether memory most likely has no answer: no passage has what makes the question this question, all in one place.

A word of a question stands in nearly every memory, and says nothing; so what counts is how much of the question stands
together, how unlikely that is by chance, and how near any text is. The weights were learned from questions with and
without an answer on real workspaces (docs/decisions.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from truekeep.search.passages import Window
from truekeep.search.query import Query
from truekeep.search.ranking import Matcher, ScoredChunk
from truekeep.text.question_kinds import what_answers
from truekeep.text.words import cjk_pairs

_ENOUGH_CHUNKS = 200  # a smaller memory lacks most words of any question
_NEAREST_CHUNKS = 24
_MOST_TERMS = 8  # whose pairs are looked for
_BEST_WINDOWS = 5
_NOTHING = -9.0
_USUAL_NEARNESS = (
    0.33  # of a question with an answer: where no vectors tell, or those of an embedder with another scale
)


class QuestionEvidence(NamedTuple):
    """How much speaks for an answer. A window counts with the headings above it and the names of its file."""

    nearest: float  # the cosine of the nearest chunk with the question
    nearness: float  # of the nearest window
    words: float  # the most words of the question that stand in one window
    chance: float  # how unlikely it is by chance that these words stand together, in a window that may answer
    pairs: float  # the share of the pairs of words, rare ones more, that stand together
    kind: float  # the share of the best windows that have what is asked for: a number, a time, an amount of money
    wrong_kind: float  # how much more of the question stands in windows that do not have it


class Reading(NamedTuple):
    """A question as it was searched for, and what was found."""

    query: Query
    ranked: Sequence[ScoredChunk]
    windows: Sequence[Window]
    scores: Sequence[float]  # of the windows
    matcher: Matcher
    chunks: int  # in the whole memory


WEIGHTS = QuestionEvidence(nearest=3.0, nearness=2.0, words=0.5, chance=0.05, pairs=1.0, kind=0.6, wrong_kind=-0.5)
_LEAST_ENGLISH, _LEAST_CJK, _LEAST = 2.95, 3.65, 2.75  # the embedder knows little but English: other texts are all near
_WEAK = 0.65  # more than the least is weak, still


def judge_evidence(found: Reading) -> str:
    """ "none" if the answer is most likely nowhere, "weak" if it may be, else "enough".

    A memory that has the day or the identifier of a question always has enough.
    """
    query = found.query
    if found.chunks < _ENOUGH_CHUNKS or query.spans or any("exact" in item.parts for item in found.ranked):
        return "enough"
    evidence = weigh_evidence(found)
    if evidence is None:
        return "enough"
    weight = sum([factor * value for factor, value in zip(WEIGHTS, evidence, strict=True)])
    is_english = query.known_share == 1 and query.text.isascii()
    least = _LEAST_ENGLISH if is_english else _LEAST_CJK if cjk_pairs(query.text) else _LEAST
    return "none" if weight < least else "weak" if weight < least + _WEAK else "enough"


def weigh_evidence(reading: Reading) -> QuestionEvidence | None:
    """The evidence for an answer; None if a window has every word, so that there is nothing to doubt."""
    query, ranked, windows, scores, matcher, chunks = reading
    guessed = {known for _, known in query.corrections}
    terms = query.terms
    total = query.weight or 1.0
    shares = [term.weight / total for term in terms]
    rarity = [
        math.log((chunks + 1) / (term.chunks + 0.5)) if term.chunks and term.word not in guessed else 0.0
        for term in terms
    ]
    known = [value > 0 for value in rarity]
    by_path: dict[str, dict[int, float]] = {}
    found: list[dict[int, float]] = []  # for each window, the words of the question that memory has and it has
    for window in windows:
        path = ranked[window.chunk].candidate.path
        if path not in by_path:
            by_path[path] = matcher.best(matcher.match(path))
        best = dict(by_path[path])
        for term, value in window.best.items():
            best[term] = max(value, best.get(term, 0.0))
        found.append({term: value for term, value in best.items() if known[term]})
    exact = [[term for term, value in best.items() if value == 1.0] for best in found]
    if any(len(there) == len(terms) for there in exact):
        return None
    chance = [sum([rarity[term] for term in there]) for there in exact]
    cover = [sum([shares[term] * value for term, value in best.items()]) for best in found]
    answers = what_answers(query.text)

    def may_answer(number: int) -> bool:
        window = windows[number]
        text = ranked[window.chunk].candidate.text[window.start : window.end]
        return all(has(text) for has in answers)

    def best_that_answers(values: Sequence[float]) -> int | None:
        order = sorted(range(len(values)), key=lambda number: -values[number])
        return next((number for number in order if may_answer(number)), None)

    likely, covered = best_that_answers(chance), best_that_answers(cover)
    first = sorted(range(len(scores)), key=lambda number: -scores[number])[:_BEST_WINDOWS]
    nearest = max((item.candidate.cosine or 0.0 for item in ranked[:_NEAREST_CHUNKS]), default=0.0)
    nearness = max((window.nearness for window in windows), default=0.0)
    return QuestionEvidence(
        nearest=nearest if matcher.has_nearness else _USUAL_NEARNESS,
        chance=chance[likely] - math.log(chunks) if likely is not None else _NOTHING,
        pairs=_share_of_pairs(shares, found),
        words=max(map(len, exact), default=0),
        nearness=nearness if matcher.has_nearness else _USUAL_NEARNESS,
        kind=sum(map(may_answer, first)) / len(first) if first else 0.0,
        wrong_kind=max(cover, default=0.0) - (cover[covered] if covered is not None else 0.0),
    )


def _share_of_pairs(shares: Sequence[float], found: Sequence[Mapping[int, float]]) -> float:
    """Of the pairs of a question's rarest words, the share that one window has; rare ones count more."""
    chosen = sorted(range(len(shares)), key=lambda term: -shares[term])[:_MOST_TERMS]
    best: dict[tuple[int, int], float] = {}
    for window in found:
        there = [term for term in chosen if term in window]
        for at, one in enumerate(there):
            for other in there[:at]:
                value = window[one] * window[other]
                if value > best.get((one, other), 0.0):
                    best[one, other] = value
    total = sum([shares[one] * shares[other] for at, one in enumerate(chosen) for other in chosen[:at]])
    if not total:
        return float(any(found))
    return sum([shares[one] * shares[other] * value for (one, other), value in best.items()]) / total
