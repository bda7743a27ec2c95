"""Which passages of the best chunks answer a question: windows of about 400 characters, each weighed on its own.

A chunk is found as a whole, and most of it does not answer. So the best chunks are cut into windows of whole lines, and
the windows of all of them are ranked together: by what they have of the question, with the headings above them, by what
stands beside them, and by how good their chunk and their file are. A hit is the best window that is left, grown by its
neighbours to the size that is wanted. The weights were learned from questions with known lines (docs/decisions.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop
from typing import NamedTuple

from truekeep.search.chunking import weigh
from truekeep.search.query import Query
from truekeep.search.ranking import ChunkCandidate, Matcher, ScoredChunk, exactness, in_spans, standardise
from truekeep.text.words import split_words

SIZES = (1_200, 1_200)  # characters of the first passage, and of all others
SHORT_SIZES = (400, 400)  # the same where characters are counted and not hits
WINDOW = 400
_LONG_LINE = 500  # a longer one is several windows
_LINE_MEANING = 0.2
_LOWEST = -3.0  # standard deviations
_IDENTIFIER_IN_LINE = 0.5
_SAYS_SOMETHING = re.compile(r"[^\W_]")
_SEE = re.compile(r"\W*(?:(?:see|see also|compare|cf|siehe|siehe auch|vgl)\W+)?\[\[[^\]\n]*\]\]\W*\Z", re.IGNORECASE)
_SENTENCE_ENDS = (". ", "? ", "! ", "; ", "。")


class PassageWeights(NamedTuple):
    """How much each measure of a window counts. The first four are in standard deviations."""

    cover: float = 0.7  # of the question, by the window and the headings above it
    nearness: float = 0.35  # to the question as a whole
    chunk: float = 0.4  # the score of its chunk
    file: float = 0.25  # the best score of a chunk of its file
    words: float = 1.1  # the share of the question's words that stand there
    exact: float = 3.0  # the share of its identifiers, half for those elsewhere in the chunk
    span: float = 4.0
    cards: float = 1.5
    logs: float = 0.5
    line: float = -0.6  # for each time that the lines before it are e times as many: files begin with what matters


WEIGHTS = PassageWeights()


class Passage(NamedTuple):
    """The part of a chunk that answers."""

    scored: ScoredChunk
    first: int
    last: int
    text: str
    score: float
    best: int = 0  # the line that answers best
    parts: Mapping[str, float] = {}  # what the score is made of
    best_line: str = ""


class Window(NamedTuple):
    """A part of a chunk, by its first character and the one after its last, and what it has of the question."""

    chunk: int  # its number among the ranked ones
    start: int
    end: int
    line: int  # of the file
    cover: float
    nearness: float
    words: float
    best: Mapping[int, float] = {}  # for each word of the question, by number, the best match here or in the headings


class Chosen(NamedTuple):
    """The passages that answer, and all windows with their scores."""

    passages: list[Passage]
    windows: list[Window]
    scores: list[float]


def choose_passages(
    query: Query,
    ranked: Sequence[ScoredChunk],
    matcher: Matcher,
    count: int,
    *,
    sizes: Sequence[int] = SIZES,
    weights: PassageWeights = WEIGHTS,
) -> Chosen:
    """The best windows of the best chunks, with as much around them as has room, best first and none twice."""
    windows = find_windows(ranked, matcher)
    made_of = score_windows(query, ranked, windows, weights)
    scores = [sum(parts.values()) for parts in made_of]
    waiting = [(-score, at) for at, score in enumerate(scores)]
    heapify(waiting)
    taken: set[int] = set()
    chosen: list[Passage] = []
    while waiting and len(chosen) < count:
        less, at = heappop(waiting)
        if at in taken:
            continue
        low, high = _grow(windows, scores, at, sizes[min(len(chosen), len(sizes) - 1)], taken)
        taken.update(range(low, high + 1))
        item = ranked[windows[at].chunk]
        chosen.append(_passage(item, windows, (low, at, high), query, matcher)._replace(score=-less, parts=made_of[at]))
    return Chosen(chosen, windows, scores)


def find_windows(ranked: Sequence[ScoredChunk], matcher: Matcher) -> list[Window]:
    """The windows of all chunks that say something, with what each has of the question."""
    windows: list[Window] = []
    for number, item in enumerate(ranked):
        candidate = item.candidate
        text, lowered = candidate.text, candidate.text.lower()
        if len(lowered) != len(text):  # a capital letter that becomes two
            lowered = text
        above = f"{candidate.title}\n{candidate.heading}".lower()
        words_above = set(split_words(above))
        best_above = matcher.best(matcher.match(above))
        for start, end in split_windows(text, _content_start(candidate)):
            inside = lowered[start:end]
            words = set(split_words(inside))
            best = matcher.best(matcher.match_words(words, inside))
            share = matcher.share(best)
            for term, value in best_above.items():
                best[term] = max(value, best.get(term, 0.0))
            line = candidate.first + text.count("\n", 0, start)
            nearness = matcher.nearness(words | words_above)
            windows.append(Window(number, start, end, line, matcher.weigh(best), nearness, share, best))
    return windows


def score_windows(
    query: Query, ranked: Sequence[ScoredChunk], windows: Sequence[Window], weights: PassageWeights = WEIGHTS
) -> list[dict[str, float]]:
    """What the score of each window is made of."""
    files: dict[str, float] = {}
    for item in ranked:
        files[item.candidate.path] = max(item.score, files.get(item.candidate.path, -math.inf))
    of_chunk = [_parts_of_chunk(query, item.candidate, weights) for item in ranked]
    standardised = {
        "cover": (weights.cover, _bounded([window.cover for window in windows])),
        "nearness": (weights.nearness, _bounded([window.nearness for window in windows])),
        "chunk": (weights.chunk, _bounded([ranked[window.chunk].score for window in windows])),
        "file": (weights.file, _bounded([files[ranked[window.chunk].candidate.path] for window in windows])),
    }
    made_of: list[dict[str, float]] = []
    for at, window in enumerate(windows):
        candidate = ranked[window.chunk].candidate
        parts = {name: weight * values[at] for name, (weight, values) in standardised.items()}
        parts["words"] = weights.words * window.words
        if candidate.store != "transcripts":  # a session has no beginning that says what it is about
            parts["line"] = weights.line * math.log(1 + window.line)
        parts |= of_chunk[window.chunk]
        if "exact" in parts:
            inside = candidate._replace(text=candidate.text[window.start : window.end])
            parts["exact"] += weights.exact / 2 * exactness(query, inside)
        made_of.append(parts)
    return made_of


def _bounded(values: Sequence[float]) -> list[float]:
    """Values in standard deviations. Where all others are the same, the only lower one is not as bad as it seems."""
    return [max(_LOWEST, value) for value in standardise(values)]


def _parts_of_chunk(query: Query, candidate: ChunkCandidate, weights: PassageWeights) -> dict[str, float]:
    parts = {
        "exact": weights.exact / 2 * exactness(query, candidate),
        "day": weights.span * in_spans(query, candidate) if candidate.day else 0.0,
        "store": {"cards": weights.cards, "logs": weights.logs}.get(candidate.store, 0.0),
    }
    return {name: value for name, value in parts.items() if value}


def _grow(windows: Sequence[Window], scores: Sequence[float], at: int, room: int, taken: set[int]) -> tuple[int, int]:
    """From one window on, take the better neighbour in its chunk again and again while there is room."""
    low = high = at

    def has_room(other: int, start: int, end: int) -> bool:
        is_free = 0 <= other < len(windows) and other not in taken and windows[other].chunk == windows[at].chunk
        return is_free and end - start <= room

    while True:
        beside = []
        if has_room(low - 1, windows[low - 1].start, windows[high].end):
            beside.append(low - 1)
        if high + 1 < len(windows) and has_room(high + 1, windows[low].start, windows[high + 1].end):
            beside.append(high + 1)
        if not beside:
            return low, high
        chosen = max(beside, key=lambda other: (scores[other], other))
        low, high = min(low, chosen), max(high, chosen)


def _passage(
    item: ScoredChunk, windows: Sequence[Window], places: tuple[int, int, int], query: Query, matcher: Matcher
) -> Passage:
    """The text from the first window to the last, without blank lines around it."""
    candidate = item.candidate
    low, at, high = (windows[place] for place in places)
    text = candidate.text[low.start : high.end]
    first = low.line + text[: len(text) - len(text.lstrip())].count("\n")
    text = text.strip("\n") if text.strip() else text
    while text.split("\n", 1)[0].strip() == "" and "\n" in text:
        text = text.split("\n", 1)[1]
    text = text.rstrip()
    best, best_line = _best_line(candidate.text[at.start : at.end], at.line, query, matcher)
    # A line that is longer than a chunk stands in it in pieces, each on a line of its own.
    last = min(first + text.count("\n"), candidate.last)
    return Passage(item, min(first, candidate.last), last, text, 0.0, min(best, candidate.last), {}, best_line)


def _best_line(text: str, first: int, query: Query, matcher: Matcher) -> tuple[int, str]:
    """The line of a window that answers best."""
    wanted = [identifier.text.lower() for identifier in query.identifiers]

    def worth(line: str) -> float:
        lowered = line.lower()
        if not has_content(line):
            return -1.0
        value = matcher.line(set(split_words(lowered)), lowered, _LINE_MEANING)
        return value + _IDENTIFIER_IN_LINE * sum(identifier in lowered for identifier in wanted)

    lines = text.split("\n")
    at = max(range(len(lines)), key=lambda number: (worth(lines[number]), -number))
    return first + at, lines[at].strip()


def has_content(text: str) -> bool:
    """Whether a text has a letter or a digit, and not only in references."""
    if "[[" in text:
        text = "\n".join(line for line in text.split("\n") if not _SEE.match(line))
    return _SAYS_SOMETHING.search(text) is not None


def _content_start(candidate: ChunkCandidate) -> int:
    """The character after frontmatter, which is about the card and is shown with it anyway; 0 if there is no other."""
    if candidate.first != 1 or not candidate.text.startswith("---"):
        return 0
    lines = candidate.text.split("\n")
    if lines[0].rstrip() != "---":
        return 0
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), -1)
    return sum(len(line) + 1 for line in lines[: end + 1]) if any(line.strip() for line in lines[end + 1 :]) else 0


# Cutting.


def split_windows(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Whole lines while they fit; a heading stays with what follows it, and a long line is cut between sentences."""
    found: list[tuple[int, int]] = []
    begin = at = start
    size = 0
    has_text = False  # besides headings
    is_ascii = text.isascii()
    for line in text[start:].split("\n"):
        weight = len(line) + 1 if is_ascii else weigh(line) + 1
        is_heading = line.startswith("#")
        if has_text and (size + weight > WINDOW or (is_heading and size >= WINDOW // 2)):
            found.append((begin, at - 1))
            begin, size, has_text = at, 0, False
        if weight > _LONG_LINE:
            pieces = _cut_line(line, round(weight / WINDOW))
            found += [(at + first if number else begin, at + last) for number, (first, last) in enumerate(pieces)]
            begin, size, has_text = at + len(line) + 1, 0, False
        else:
            size += weight
            has_text = has_text or not (is_heading or line.isspace())
        at += len(line) + 1
    if begin < len(text):
        found.append((begin, len(text)))
    return [(first, last) for first, last in found if has_content(text[first:last])]


def _cut_line(line: str, count: int) -> list[tuple[int, int]]:
    """About equal parts of a line, cut after a sentence, or else between words."""
    step = len(line) / count
    cuts = [0]
    while len(line) - cuts[-1] > step * 1.33:
        low, high = cuts[-1] + int(step * 0.6), cuts[-1] + int(step * 1.15)
        ends = [found + len(mark) for mark in _SENTENCE_ENDS if (found := line.rfind(mark, low, high)) >= 0]
        space = line.rfind(" ", low, high) + 1
        cuts.append(max(ends, default=space or cuts[-1] + int(step)))
    return list(zip(cuts, [*cuts[1:], len(line)], strict=True))
