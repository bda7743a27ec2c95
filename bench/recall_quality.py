"""How good the rankings are, and what they cost: questions with known answers, asked of the same chunks and vectors.

Words alone, meaning alone, OpenClaw's formula and reciprocal rank fusion return whole chunks. Ours returns passages, as
the product does; to tell what the ranking gains from what the cutting gains, it is there with whole chunks as well.

python -m bench recall-quality [--part tune] [--questions N] [--kinds]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import NamedTuple

import apsw

from bench import sets
from bench.measure import scratch, table
from bench.promises import keep, lack
from bench.score import Hit, Scores, score_all
from bench.sets import PARTS, Corpus, Question, number_of
from truekeep.memory.file_scan import find_changes, iter_files
from truekeep.search.embedders.static import Static
from truekeep.search.index_schema import open_index
from truekeep.search.query import quote
from truekeep.search.refresh import refresh
from truekeep.search.searcher import Searcher
from truekeep.search.vectors import VectorBlock, cosines
from truekeep.text.words import cjk_pairs, content_words

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy comes later; with more threads CPU times cannot be compared

TODAY = date(2026, 11, 15)  # what our own set takes for today
LIMIT = 20  # hits of a ranking: more than 4,000 characters hold, twice what recall@10 looks at
LEG = 50  # chunks that each leg brings to a fusion, as many as ours asks for
STEADY = 60  # k of reciprocal rank fusion
WHOLE = (10_000,)  # characters of a passage; no chunk has more
HEADERS = ("recall@5", "recall@10", "MRR", "nDCG@10", "in 4,000", "ms CPU")


class Memory(NamedTuple):
    """One workspace, indexed."""

    db: apsw.Connection
    embedder: Static
    searcher: Searcher
    shelf: VectorBlock


class Trial(NamedTuple):
    """One question, asked of one ranking."""

    question: Question
    hits: Sequence[Hit]
    seconds: float


# The rankings


def by_words(memory: Memory, text: str) -> list[Hit]:
    return read_chunks(memory, word_leg(memory, text, LIMIT))


def by_meaning(memory: Memory, text: str) -> list[Hit]:
    return read_chunks(memory, meaning_leg(memory, text, LIMIT))


def by_openclaw(memory: Memory, text: str) -> list[Hit]:
    found = memory.searcher.search(text, limit=LIMIT, today=TODAY, formula="openclaw")
    return [Hit(hit.path, hit.first, hit.last, hit.text) for hit in found.hits]


def by_fusion(memory: Memory, text: str) -> list[Hit]:
    """Reciprocal rank fusion: a chunk's score is the sum of 1 / (60 + its rank) over both legs."""
    scores: dict[int, float] = {}
    for leg in (word_leg(memory, text, LEG), meaning_leg(memory, text, LEG)):
        for rank, chunk_id in enumerate(leg, start=1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + 1 / (STEADY + rank)
    return read_chunks(memory, sorted(scores, key=lambda chunk_id: -scores[chunk_id])[:LIMIT])


def by_ours(memory: Memory, text: str) -> list[Hit]:
    found = memory.searcher.search(text, limit=LIMIT, today=TODAY)
    return [Hit(hit.path, hit.first, hit.last, hit.text) for hit in found.hits]


def by_ours_whole(memory: Memory, text: str) -> list[Hit]:
    found = memory.searcher.search(text, limit=LIMIT, today=TODAY, sizes=WHOLE)
    return [Hit(hit.path, hit.first, hit.last, hit.text) for hit in found.hits]


RANKINGS: dict[str, Callable[[Memory, str], list[Hit]]] = {
    "words alone": by_words,
    "meaning alone": by_meaning,
    "OpenClaw's formula": by_openclaw,
    "rank fusion": by_fusion,
    "ours, whole chunks": by_ours_whole,
    "ours": by_ours,
}
OURS = ("ours, whole chunks", "ours")


def word_leg(memory: Memory, text: str, count: int) -> list[int]:
    """Chunks by BM25: the telling words of a question, cut as the index cuts text, joined by OR."""
    words = [quote(word) for word in content_words(text)] + [quote(" ".join(pair)) for pair in cjk_pairs(text)]
    if not words:
        return []
    rows = memory.db.execute(
        "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank LIMIT ?", (" OR ".join(words), count)
    )
    return [row[0] for row in rows]


def meaning_leg(memory: Memory, text: str, count: int) -> list[int]:
    """Chunks by cosine."""
    (vector,) = memory.embedder.embed([text], is_query=True)
    memory.shelf.load(memory.db, len(vector))
    near = cosines(memory.db, vector, memory.shelf.nearest(vector, max(count, LEG)))
    return sorted(near, key=lambda chunk_id: -near[chunk_id])[:count]


def read_chunks(memory: Memory, ids: Sequence[int]) -> list[Hit]:
    rows = memory.db.execute(
        "SELECT chunks.id, path, first, last, text FROM chunks JOIN files ON files.id = file_id"
        f" WHERE chunks.id IN ({','.join('?' * len(ids))})",
        tuple(ids),
    )
    found = {row[0]: Hit(*row[1:]) for row in rows}
    return [found[chunk_id] for chunk_id in ids]


# Asking


def ask(name: str, corpora: Sequence[Corpus], part: str, most: int, embedder: Static) -> dict[str, list[Trial]]:
    """Every question of the sample, asked of every ranking."""
    chosen = sample((question for corpus in corpora for question in corpus.questions if question.part == part), most)
    trials: dict[str, list[Trial]] = {ranking: [] for ranking in RANKINGS}
    files = chunks = 0
    for corpus in corpora:
        questions = [question for question in corpus.questions if question.id in chosen]
        if not questions:
            continue
        with indexed(corpus, embedder) as memory:
            files += len(corpus.files)
            chunks += int(memory.db.execute("SELECT count(*) FROM chunks").get)
            for warm_up in RANKINGS.values():
                warm_up(memory, questions[0].text)  # so that none of them pays for being first
            for number, question in enumerate(questions):
                for ranking, trial in ask_one(memory, question, first=number):
                    trials[ranking].append(trial)
    print(f"{name}: {len(chosen):,} questions, {files:,} files, {chunks:,} chunks", flush=True)
    return trials


def ask_one(memory: Memory, question: Question, *, first: int) -> Iterator[tuple[str, Trial]]:
    """Every ranking, each time another one first: what one reads the next finds in the cache."""
    names = list(RANKINGS)
    for at in range(len(names)):
        name = names[(first + at) % len(names)]
        started = time.process_time()
        hits = RANKINGS[name](memory, question.text)
        yield name, Trial(question, hits, time.process_time() - started)


def sample(questions: Iterable[Question], most: int) -> set[str]:
    """The ids of so many questions, the same ones every time and on every machine."""
    return set(sorted((question.id for question in questions), key=number_of)[:most])


@contextmanager
def indexed(corpus: Corpus, embedder: Static) -> Iterator[Memory]:
    with scratch() as folder:
        for path, text in corpus.files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        db = open_index(":memory:")
        try:
            refresh(db, find_changes(db, iter_files(str(folder))), embedder)
            yield Memory(db, embedder, Searcher(db, embedder), VectorBlock())
        finally:
            db.close()


# Showing


def show(first: str, groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> None:
    """One table of all groups; in each group the best of every column stands out."""
    rows: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    behind = find_better(groups)
    for group, rankings in groups.items():
        start = len(rows)
        columns: list[list[float]] = []
        for ranking, trials in rankings.items():
            values = measured(trials)
            columns.append(values)
            label = f"{group} ({len(trials)})" if len(rows) == start else ""
            rows.append([label, ranking, *(f"{value:.3f}" for value in values[:-1]), f"{values[-1]:.2f}"])
        for n, column in enumerate(zip(*columns, strict=True)):
            best = (min if n == len(HEADERS) - 1 else max)(column)
            bold.update((start + at, 2 + n) for at, value in enumerate(column) if value == best)
    table([first, "ranking", *HEADERS], rows, left=2, bold=bold)
    print(f"  another is better than ours: {', '.join(behind) if behind else 'nowhere'}")


def measured(trials: Sequence[Trial]) -> list[float]:
    scores: Scores = score_all((trial.question, trial.hits) for trial in trials)
    return [*scores[1:], 1_000 * sum(trial.seconds for trial in trials) / max(1, len(trials))]


def find_better(groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> list[str]:
    """Each measure of each group in which another ranking is better than ours."""
    behind = []
    for group, rankings in groups.items():
        values = {name: measured(trials) for name, trials in rankings.items()}
        for n, header in enumerate(HEADERS[:-1]):
            better = [name for name in values if name not in OURS and values[name][n] > values["ours"][n]]
            if better:
                behind.append(f"{group} {header} ({', '.join(better)})")
    return behind


def tell(groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> None:
    """The promises: best on every set, and an exact identifier is found."""
    whole = (len(HEADERS) - 1) * len(groups)
    behind = find_better(groups)
    said = f"of {whole}" + (f"; another is better in {', '.join(behind)}" if behind else "")
    keep("quality.best", whole - len(behind), said, goal=whole)
    for group, rankings in groups.items():
        others = {name: measured(trials)[0] for name, trials in rankings.items() if name not in OURS}
        best = max(others, key=lambda name: others[name])
        said = ", ".join(f"{name} {value:.3f}" for name, value in others.items())
        said += f"; {len(rankings['ours'])} questions"
        keep(f"quality.{group}", measured(rankings["ours"])[0], said, goal=others[best])
    if found := by_kind(groups.get("memory", {})).get("identifier"):
        scores = {name: measured(trials)[1] for name, trials in found.items()}
        said = f"{len(found['ours'])} asked; words alone {scores['words alone']:.3f}"
        keep("quality.identifier", scores["ours"], said)


def by_kind(rankings: Mapping[str, Sequence[Trial]]) -> dict[str, dict[str, list[Trial]]]:
    kinds: dict[str, dict[str, list[Trial]]] = {}
    for ranking, trials in rankings.items():
        for trial in trials:
            kinds.setdefault(trial.question.kind, {}).setdefault(ranking, []).append(trial)
    return kinds


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench recall-quality", description="How good the rankings are.")
    parser.add_argument("--part", choices=PARTS, default="report", help="which questions to ask (%(default)s)")
    parser.add_argument("--questions", type=int, default=150, metavar="N", help="of a set at most (%(default)s)")
    parser.add_argument("--set", dest="names", action="append", choices=sets.SETS, help="only this one; repeatable")
    parser.add_argument("--kinds", action="store_true", help="the memory set by kind of question, too")
    options = parser.parse_args(arguments)
    with scratch() as folder:
        embedder = Static(lexicon=str(Path(folder) / "lexicon.bin"))
        groups = {
            name: ask(name, corpora, options.part, options.questions, embedder)
            for name, corpora in sets.load(*(options.names or ())).items()
        }
    print()
    show(f"set, {options.part}", groups)
    if options.part == "report":
        tell(groups)
        for name in sets.SETS if not options.names else ():
            if name not in groups:
                lack(f"quality.{name}", "its files are not at hand; what to run for them is above")
    if options.kinds and "memory" in groups:
        print()
        show("memory, by kind", by_kind(groups["memory"]))


if __name__ == "__main__":
    main()
