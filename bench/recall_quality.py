"""How good the rankings are, and what they cost: questions with known answers, asked of the same files and vectors.

Words alone, static vectors alone, OpenClaw's formula and reciprocal rank fusion return whole chunks of our index; rank
fusion over windows of 400 characters has an index of its own. Ours returns passages, as the product does: long ones
where hits are counted, short ones where 4,000 characters are to be filled. To tell what the ranking gains from what the
cutting gains, it is there with whole chunks as well.

Indexes are kept on disk (bench/cache.py), and so are the answers of the rankings that our ranking cannot change. While
a setting is chosen, --part tune --ours asks only ours and takes the others from there.

python -m bench recall-quality [--set NAME] [--part tune] [--ours] [--questions N] [--kinds]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import truekeep
from bench import sets, windows
from bench.cache import cache_folder, digest_files, digest_of, keep_file, keep_value
from bench.corpus import HERE, PARTS, Corpus, Question, number_of
from bench.measure import scratch, table
from bench.promises import keep, lack
from bench.score import Hit, Scores, mean, score
from truekeep.memory.file_scan import Changes, MemoryFile, find_changes, iter_files
from truekeep.search.chunking import split_chunks
from truekeep.search.embedders import load_numpy
from truekeep.search.embedders.static import Static
from truekeep.search.file_metadata import About
from truekeep.search.index_schema import open_index
from truekeep.search.passages import SHORT_SIZES
from truekeep.search.query import quote
from truekeep.search.refresh import PreparedFile, refresh
from truekeep.search.searcher import Filter, Searcher
from truekeep.search.vectors import VectorBlock, cosines
from truekeep.text.words import cjk_pairs, content_words

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy comes later; with more threads CPU times cannot be compared

TODAY = date(2026, 11, 15)  # what our own set takes for today
LIMIT = 20  # hits of a ranking: more than 4,000 characters hold, twice what recall@10 looks at
LIMIT_OF_UNITS = 40  # where several may be of one unit
LEG = 50  # chunks that each leg brings to a fusion, as many as ours asks for
STEADY = 60  # k of reciprocal rank fusion
WHOLE = (10_000,)  # characters of a passage; no chunk has more
HEADERS = ("recall@5", "recall@10", "MRR", "nDCG@10", "in 4,000", "hit@5")
RESAMPLED = 2_000
# Modules of truekeep.search that read the index and do not write it: a change in them leaves indexes as they are.
READERS = "card_list excerpt meaning passages prompt_hints query ranking searcher service unanswered".split()


class Memory(NamedTuple):
    """One workspace, indexed."""

    db: apsw.Connection
    embedder: Static
    searcher: Searcher
    shelf: VectorBlock
    windows: windows.WindowIndex
    filter_: Filter
    limit: int
    key: str  # of the index, in the cache


class Trial(NamedTuple):
    """One question, asked of one ranking."""

    question: Question
    scores: Scores
    seconds: float


class Measured(NamedTuple):
    """A mean over questions and the 95 % interval around it."""

    value: float
    low: float
    high: float


# The rankings


def by_words(memory: Memory, text: str) -> list[Hit]:
    return read_chunks(memory, word_leg(memory, text, memory.limit))


def by_meaning(memory: Memory, text: str) -> list[Hit]:
    return read_chunks(memory, meaning_leg(memory, text, memory.limit))


def by_fusion(memory: Memory, text: str) -> list[Hit]:
    leg = max(LEG, 2 * memory.limit)
    return read_chunks(memory, fuse(word_leg(memory, text, leg), meaning_leg(memory, text, leg))[: memory.limit])


def by_windows(memory: Memory, text: str) -> list[Hit]:
    leg = max(LEG, 2 * memory.limit)
    (vector,) = memory.embedder.embed([text], is_query=True)
    fused = fuse(memory.windows.by_words(either_word(text), leg), memory.windows.by_meaning(vector, leg))
    return memory.windows.read(fused[: memory.limit])


def fuse(*legs: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion: the score of an id is the sum of 1 / (60 + its rank) over all legs."""
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, one in enumerate(leg, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (STEADY + rank)
    return sorted(scores, key=lambda one: -scores[one])


def by_openclaw(memory: Memory, text: str) -> list[Hit]:
    return by_search(memory, text, formula="openclaw")


def by_ours(memory: Memory, text: str) -> list[Hit]:
    return by_search(memory, text)


def by_ours_whole(memory: Memory, text: str) -> list[Hit]:
    return by_search(memory, text, sizes=WHOLE)


def by_search(memory: Memory, text: str, **way: Any) -> list[Hit]:
    found = memory.searcher.search(text, limit=memory.limit, today=TODAY, filter_=memory.filter_, **way)
    return [Hit(hit.path, hit.first, hit.last, hit.text) for hit in found.hits]


PLAIN: dict[str, Callable[[Memory, str], list[Hit]]] = {  # that nothing in our ranking changes
    "words": by_words,
    "static vectors": by_meaning,
    "rank fusion": by_fusion,
    "rank fusion, windows": by_windows,
}
RANKINGS: dict[str, Callable[[Memory, str], list[Hit]]] = {
    **PLAIN,
    "OpenClaw's formula": by_openclaw,
    "ours, whole chunks": by_ours_whole,
    "ours": by_ours,
}
OURS = ("ours, whole chunks", "ours")


def word_leg(memory: Memory, text: str, count: int) -> list[int]:
    """Chunks by BM25: the telling words of a question, cut as the index cuts text, joined by OR."""
    match = either_word(text)
    if not match:
        return []
    rows = memory.db.execute(
        "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank LIMIT ?", (match, count)
    )
    return [row[0] for row in rows]


def either_word(text: str) -> str:
    words = [quote(word) for word in content_words(text)] + [quote(" ".join(pair)) for pair in cjk_pairs(text)]
    return " OR ".join(words)


def meaning_leg(memory: Memory, text: str, count: int) -> list[int]:
    """Chunks by cosine."""
    (vector,) = memory.embedder.embed([text], is_query=True)
    near = cosines(memory.db, vector, memory.shelf.answer(memory.db, vector, max(count, LEG)))
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


def ask(
    name: str, corpora: Sequence[Corpus], part: str, most: int, embedder: Static, rankings: Sequence[str]
) -> dict[str, list[Trial]]:
    """Every question of the sample, asked of these rankings; the plain ones are taken from the cache."""
    chosen = sample((question for corpus in corpora for question in corpus.questions if question.part == part), most)
    trials: dict[str, list[Trial]] = {ranking: [] for ranking in RANKINGS if ranking in (*PLAIN, *rankings)}
    files = chunks = 0
    for corpus in corpora:
        questions = [question for question in corpus.questions if question.id in chosen]
        if not questions:
            continue
        with indexed(corpus, embedder) as memory:
            files += len(corpus.files)
            chunks += int(memory.db.execute("SELECT count(*) FROM chunks").get)
            for ranking, found in ask_plain(memory, corpus, questions).items():
                trials[ranking] += found
            for ranking in rankings:
                RANKINGS[ranking](memory, questions[0].text)  # so that none of them pays for being first
            for number, question in enumerate(questions):
                for ranking, trial in ask_one(memory, corpus, question, rankings, first=number):
                    trials[ranking].append(trial)
    print(f"{name}: {len(chosen):,} questions, {files:,} files, {chunks:,} chunks", flush=True)
    return trials


def ask_plain(memory: Memory, corpus: Corpus, questions: Sequence[Question]) -> dict[str, list[Trial]]:
    """All plain rankings, from the cache if they were asked these questions before."""

    def make() -> dict[str, list[tuple[tuple[float, ...], float]]]:
        found: dict[str, list[tuple[tuple[float, ...], float]]] = {ranking: [] for ranking in PLAIN}
        for warm_up in PLAIN.values():
            warm_up(memory, questions[0].text)
        for number, question in enumerate(questions):
            for ranking, trial in ask_one(memory, corpus, question, list(PLAIN), first=number):
                found[ranking].append((tuple(trial.scores), trial.seconds))
        return found

    code = digest_files(HERE / f"{name}.py" for name in ("recall_quality", "score", "windows"))
    key = digest_of(memory.key, code, [question.id for question in questions])
    found = keep_value(f"plain-{key}", make)
    return {
        ranking: [
            Trial(question, Scores(*scores), seconds)
            for question, (scores, seconds) in zip(questions, rows, strict=True)
        ]
        for ranking, rows in found.items()
    }


def ask_one(
    memory: Memory, corpus: Corpus, question: Question, names: Sequence[str], *, first: int
) -> Iterator[tuple[str, Trial]]:
    """Every ranking, each time another one first: what one reads the next finds in the cache."""
    for at in range(len(names)):
        name = names[(first + at) % len(names)]
        started = time.process_time()
        hits = RANKINGS[name](memory, question.text)
        seconds = time.process_time() - started
        scores = score(question.evidence, hits, units=corpus.units)
        if name == "ours":
            short = score(question.evidence, by_search(memory, question.text, sizes=SHORT_SIZES), units=corpus.units)
            scores = scores._replace(recall_budget=short.recall_budget)
        yield name, Trial(question, scores, seconds)


def sample(questions: Iterable[Question], most: int) -> set[str]:
    """The ids of so many questions, the same ones every time and on every machine."""
    return set(sorted((question.id for question in questions), key=number_of)[:most])


@contextmanager
def indexed(corpus: Corpus, embedder: Static) -> Iterator[Memory]:
    key = key_of(corpus)
    place = keep_file(f"index-{key}.sqlite", lambda path: build(path, corpus, embedder))
    cut = keep_file(
        f"windows-{digest_of(key, digest_files([HERE / 'windows.py']))}.sqlite",
        lambda path: windows.build(path, corpus.files, embedder),
    )
    db = open_index(str(place), read_only=True)
    window_index = windows.WindowIndex(cut, corpus.files)
    filter_ = Filter(stores=("transcripts",)) if corpus.days else Filter()
    limit = LIMIT_OF_UNITS if corpus.units else LIMIT
    shelf = VectorBlock(filter_.sections[0])
    try:
        yield Memory(db, embedder, Searcher(db, embedder), shelf, window_index, filter_, limit, key)
    finally:
        window_index.close()
        db.close()


def build(path: Path, corpus: Corpus, embedder: Static) -> None:
    db = open_index(str(path))
    try:
        if corpus.days:
            build_sessions(db, corpus, embedder)
        else:
            with scratch() as folder:
                moment = moment_of(TODAY.isoformat())
                for name, text in corpus.files.items():
                    place = folder / name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text, encoding="utf-8")
                    os.utime(place, (moment, moment))
                refresh(db, find_changes(db, iter_files(str(folder))), embedder)
    finally:
        db.close()


def build_sessions(db: apsw.Connection, corpus: Corpus, embedder: Static) -> None:
    """As sessions are indexed, but from their dialogue: lines are those of the dialogue."""

    def read(source: MemoryFile, _noted: bytes | None) -> PreparedFile:
        text = corpus.files[source.path].removesuffix("\n")
        about = About("claude project", corpus.days[source.path], "project", ())
        return PreparedFile(source, hashlib.sha256(text.encode()).digest(), True, about, split_chunks(text))

    sources = [
        MemoryFile(path, "transcripts", len(text), int(moment_of(corpus.days[path]) * 1e9), 0, at, path)
        for at, (path, text) in enumerate(corpus.files.items(), start=1)
    ]
    refresh(db, Changes(sources, [], len(sources), {}), embedder, read=read)


def moment_of(day: str) -> float:
    return datetime.combine(date.fromisoformat(day) if day else TODAY, datetime.min.time()).timestamp()


def key_of(corpus: Corpus) -> str:
    """A name for the index of a corpus: its text, and the code that makes an index of it."""
    return digest_of(corpus.name, corpus.files, corpus.days, digest_index_code())


def digest_index_code() -> str:
    read_only = {f"{name}.py" for name in READERS}
    made_by = [path for path in source_files("search") if path.name not in read_only]
    return digest_files([*made_by, *source_files("text"), *source_files("memory")])


def source_files(package: str) -> list[Path]:
    return list((Path(truekeep.__file__).parent / package).rglob("*.py"))


# Showing


def show(first: str, groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> None:
    """One table of all groups; in each group the best of every column stands out."""
    rows: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    for group, rankings in groups.items():
        start = len(rows)
        columns: list[list[float]] = []
        for ranking, trials in rankings.items():
            found = measure(trials)
            columns.append([one.value for one in found])
            label = f"{group} ({len(trials)})" if len(rows) == start else ""
            cells = [f"{one.value:.3f} ±{(one.high - one.low) / 2:.3f}" for one in found]
            rows.append([label, ranking, *cells, f"{milliseconds(trials):.2f}"])
        for n, column in enumerate(zip(*columns, strict=True)):
            bold.update((start + at, 2 + n) for at, value in enumerate(column) if value == max(column))
    table([first, "ranking", *HEADERS, "ms CPU"], rows, left=2, bold=bold)
    print("  ±: half of the 95 % interval, by resampling the questions 2,000 times")
    tell_behind(groups)


def tell_behind(groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> None:
    """Where another ranking is better than ours: first where that is not by chance."""
    behind = find_better(groups)
    for is_sure, label in ((True, "another is better than ours"), (False, "another is better, within noise")):
        found = [one.told() for one in behind if one.is_sure == is_sure]
        print(f"  {label}:", *(found or ["nowhere"]), sep="\n    ")


def values_of(trials: Sequence[Trial]) -> Any:
    """A row for each question, a column for each measure."""
    np = load_numpy()

    return np.array([trial.scores[1:] for trial in trials], dtype=float)


def resample(rows: Any) -> tuple[Any, Any]:
    """The 2.5th and the 97.5th percentile of the mean of every column, when questions are drawn again with return."""
    np = load_numpy()

    drawn = np.random.default_rng(7).integers(0, len(rows), size=(RESAMPLED, len(rows)))
    means = np.stack([rows[places].mean(axis=0) for places in drawn])
    low, high = np.percentile(means, (2.5, 97.5), axis=0)
    return low, high


def measure(trials: Sequence[Trial]) -> list[Measured]:
    rows = values_of(trials)
    low, high = resample(rows)
    return [Measured(*map(float, found)) for found in zip(rows.mean(axis=0), low, high, strict=True)]


def milliseconds(trials: Sequence[Trial]) -> float:
    return 1_000 * sum(trial.seconds for trial in trials) / max(1, len(trials))


class Better(NamedTuple):
    """Another ranking that is better than ours in one measure, question by question."""

    group: str
    header: str
    ranking: str
    by: Measured

    @property
    def is_sure(self) -> bool:
        return self.by.low > 0

    def told(self) -> str:
        value, low, high = self.by
        return f"{self.group} {self.header}: {self.ranking} by {value:.3f} ({low:.3f} to {high:.3f})"


def find_better(groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> list[Better]:
    """For each measure of each group the best of the other rankings, if it is better than ours."""
    behind = []
    for group, rankings in groups.items():
        ours = values_of(rankings["ours"])
        others = {name: values_of(trials) - ours for name, trials in rankings.items() if name not in OURS}
        for n, header in enumerate(HEADERS):
            gains = {name: float(rows[:, n].mean()) for name, rows in others.items()}
            best = max(gains, key=gains.__getitem__)
            if gains[best] > 1e-9:
                low, high = resample(others[best][:, n : n + 1])
                behind.append(Better(group, header, best, Measured(gains[best], float(low[0]), float(high[0]))))
    return behind


def tell(groups: Mapping[str, Mapping[str, Sequence[Trial]]]) -> None:
    """The promises: best or within noise on every set, and an exact identifier is found."""
    whole = len(HEADERS) * len(groups)
    behind = [one.told() for one in find_better(groups) if one.is_sure]
    said = f"of {whole}" + (f"; another is better in {'; '.join(behind)}" if behind else "")
    keep("quality.best", whole - len(behind), said, goal=whole)
    for group, rankings in groups.items():
        others = {name: recall_5(trials) for name, trials in rankings.items() if name not in OURS}
        best = max(others, key=lambda name: others[name])
        said = ", ".join(f"{name} {value:.3f}" for name, value in others.items())
        said += f"; {len(rankings['ours'])} questions"
        keep(f"quality.{group}", recall_5(rankings["ours"]), said, goal=others[best])
    if found := by_kind(groups.get("memory", {})).get("identifier"):
        scores = {name: mean(trial.scores for trial in trials).recall_10 for name, trials in found.items()}
        said = f"{len(found['ours'])} asked; words {scores['words']:.3f}"
        keep("quality.identifier", scores["ours"], said)


def recall_5(trials: Sequence[Trial]) -> float:
    return mean(trial.scores for trial in trials).recall_5


def by_kind(rankings: Mapping[str, Sequence[Trial]]) -> dict[str, dict[str, list[Trial]]]:
    kinds: dict[str, dict[str, list[Trial]]] = {}
    for ranking, trials in rankings.items():
        for trial in trials:
            kinds.setdefault(trial.question.kind, {}).setdefault(ranking, []).append(trial)
    return kinds


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench recall-quality", description="How good the rankings are.")
    parser.add_argument("--part", choices=PARTS, default="report", help="which questions to ask (%(default)s)")
    parser.add_argument("--questions", type=int, default=500, metavar="N", help="of a set at most (%(default)s)")
    parser.add_argument("--set", dest="names", action="append", choices=sets.SETS, help="only this one; repeatable")
    parser.add_argument("--ours", action="store_true", help="ask only ours, and the plain ones if they are not kept")
    parser.add_argument("--kinds", action="store_true", help="every set by kind of question, too")
    options = parser.parse_args(arguments)
    rankings = ["ours"] if options.ours else [name for name in RANKINGS if name not in PLAIN]
    embedder = Static(lexicon=str(cache_folder() / "lexicon.bin"))
    groups = {
        name: ask(name, corpora, options.part, options.questions, embedder, rankings)
        for name, corpora in sets.load(*(options.names or ())).items()
    }
    if not groups:
        raise SystemExit("none of these sets is at hand; what to run for them is above")
    print()
    show(f"set, {options.part}", groups)
    if options.part == "report" and not options.ours:
        tell(groups)
        for name in sets.SETS if not options.names else ():
            if name not in groups:
                lack(f"quality.{name}", "its files are not at hand; what to run for them is above")
    for name in groups if options.kinds else ():
        print()
        show(f"{name}, by kind", by_kind(groups[name]))


if __name__ == "__main__":
    main()
