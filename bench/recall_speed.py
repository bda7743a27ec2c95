"""How fast recall is, beside what it cannot do without: an FTS5 insert, the embedding, a look at the files, a process.

CPU time, the least of several rounds, each beside its baseline in the same minute. Notes are made up (bench/prose.py).
The larger indexes are written by the product's own refresh, from texts that never were files.

python -m bench recall-speed [--large] [--only index|sweep|watch|cold|warm …]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import IO, Any, NamedTuple
from unittest.mock import patch

import apsw

from bench.measure import apart, child, least, median, peak_memory, scratch, table
from bench.promises import keep
from bench.prose import Prose
from truekeep.core.state_dir import STATE
from truekeep.memory.file_scan import Changes, MemoryFile, find_changes, iter_files, store_of
from truekeep.search.chunking import split_chunks
from truekeep.search.embedders import Embedder, Vector, load_numpy
from truekeep.search.embedders.static import DIMENSIONS, Static
from truekeep.search.file_metadata import describe
from truekeep.search.index_file import INDEX_FILE
from truekeep.search.index_schema import open_index
from truekeep.search.query import quote
from truekeep.search.refresh import PreparedFile, refresh
from truekeep.search.searcher import Searcher
from truekeep.search.vectors import VectorBlock, cosines
from truekeep.text.words import content_words
from truekeep.workspace.workspace import Workspace

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy comes later; with more threads CPU times cannot be compared

NOTE = 2_000  # characters
NOTE_WORDS = 6_000  # different ones, in a store of notes
LARGE_WORDS = 30_000
FILE = 6_200  # characters of a file
SIZES = (1_000, 10_000, 100_000)
LARGEST = 1_000_000
COLD_CHUNKS = 10_000
QUERIES = 100
LIMIT = 6
EDITS = 7  # that a watch is to see
SETTLED = 2.1  # seconds after which a file's times prove that it did not change
TODAY = date(2026, 11, 15)
TOKENIZERS = {"porter unicode61": "porter unicode61", "FTS5's own": "unicode61"}
BARE = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
question = "SELECT rowid, rank FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank LIMIT 6"
for row in db.execute(question, (sys.argv[2],)):
    print(row)
"""


def note_path(number: int) -> str:
    """Where a note lies: cards, documents, and logs of the last two years."""
    if number % 4 == 3:
        return f"memory/{TODAY - timedelta(days=number % 700)}-{number:06}.md"
    folder = ("cards", "topics", f"projects/p{number % 16}")[number % 4]
    return f"memory/{folder}/{number:06}.md"


def write_notes(root: Path, number: int) -> list[str]:
    """So many notes, as files. Returns questions about some of them."""
    prose = Prose(NOTE_WORDS)
    questions = []
    for at in range(number):
        text = prose.note(NOTE)
        path = root / note_path(at)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if at % max(1, number // 20) == 0:
            questions.append(prose.question(text))
    return questions


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if seconds < 0.1 else f"{seconds * 1000:,.0f} ms"


def ratio(one: float, other: float) -> str:
    return f"{one / other:.2f} x"


# Indexing


def bench_index(folder: Path) -> None:
    """A thousand notes into an empty index."""
    root = folder / "notes"
    write_notes(root, 1_000)
    time.sleep(SETTLED)
    lexicon = str(folder / "lexicon.bin")
    names = (str(folder / f"{number}.sqlite") for number in count())
    texts = chunk_texts(root)
    Static(lexicon=lexicon).embed_table(texts[:64])  # numpy is loaded, the lexicon is made

    works: dict[str, Callable[[], object]] = {
        f"bare FTS5 loop, {name}": lambda name=name: insert_all(root, next(names), TOKENIZERS[name])  # type: ignore[misc]
        for name in TOKENIZERS
    }
    known = Static(lexicon=lexicon)  # one that has met all these words before
    known.embed_table(texts)
    works["words"] = lambda: index_all(root, next(names), None)
    works["the embedding itself"] = lambda: Static(lexicon=lexicon).embed_table(texts)
    works["words and meaning"] = lambda: index_all(root, next(names), Static(lexicon=lexicon))
    works["the embedding, no new words"] = lambda: known.embed_table(texts)
    works["words and meaning, no new words"] = lambda: index_all(root, next(names), known)
    took = least(5, works)

    rows = []
    for name, seconds in took.items():
        against = [ratio(seconds, took[f"bare FTS5 loop, {tokenizer}"]) for tokenizer in TOKENIZERS]
        embedding = took["the embedding, no new words" if "no new words" in name else "the embedding itself"]
        has_vectors = "embedding" in name or "meaning" in name
        rows.append([name, milliseconds(seconds), *against, ratio(seconds, embedding) if has_vectors else ""])
    headers = [f"1,000 notes, {len(texts):,} chunks, CPU", "time"]
    table([*headers, *(f"/ bare, {name}" for name in TOKENIZERS), "/ embedding"], rows)
    print("  promised: words at most 2 x a bare loop, words and meaning at most 3 x the embedding")
    bare, embedding = took["bare FTS5 loop, porter unicode61"], took["the embedding itself"]
    keep("recall.words", took["words"] / bare, f"bare loop {milliseconds(bare)}")
    keep("recall.meaning", took["words and meaning"] / embedding, f"embedding {milliseconds(embedding)}")


def insert_all(root: Path, path: str, tokenizer: str) -> None:
    """What a first version would be: read every file, insert it whole."""
    db = apsw.Connection(path)
    db.execute(f"CREATE VIRTUAL TABLE notes USING fts5(path, body, tokenize='{tokenizer}')")
    with db:
        for place, _, names in os.walk(root):
            for name in names:
                location = os.path.join(place, name)
                with open(location, encoding="utf-8") as file:
                    db.execute("INSERT INTO notes VALUES (?, ?)", (location, file.read()))
    db.close()


def index_all(root: Path, path: str, embedder: Embedder | None) -> None:
    db = open_index(path)
    refresh(db, find_changes(db, iter_files(str(root))), embedder)
    db.close()


def chunk_texts(root: Path) -> list[str]:
    """What is embedded of these notes."""
    db = open_index(":memory:")
    refresh(db, find_changes(db, iter_files(str(root))), None)
    rows: Any = db.execute(
        "SELECT title, heading, text FROM chunks JOIN files ON files.id = file_id ORDER BY chunks.id"
    )
    texts = ["\n".join(row) for row in rows]
    db.close()
    return texts


# Nothing changed, one file changed


class Looked(NamedTuple):
    """CPU seconds to find that nothing changed, and that one file did."""

    files: int
    stats: float
    compared: float
    changed: float
    searched: float  # a search in a process that goes on, which looks first


def bench_sweep(folder: Path) -> None:
    found = [look(folder / str(number), number) for number in (1_000, 10_000)]
    rows = [
        [
            f"{one.files:,} files",
            milliseconds(one.stats),
            milliseconds(one.compared),
            ratio(one.compared, one.stats),
            milliseconds(one.changed),
            milliseconds(one.changed - one.compared),
            milliseconds(one.searched),
        ]
        for one in found
    ]
    headers = ["CPU", "stat sweep", "nothing changed", "/ sweep", "one changed", "beyond looking", "warm search"]
    table(headers, rows)
    few, many = found
    growth = ratio(many.changed - many.compared, few.changed - few.compared)
    print(f"  one file changed, beyond looking, ten times the files: {growth}")
    keep("recall.idle", few.compared / few.stats, f"sweep {milliseconds(few.stats)}")
    keep("recall.idle-large", many.compared / many.stats, f"sweep {milliseconds(many.stats)}")
    beyond = few.changed - few.compared
    keep("recall.one", (many.changed - many.compared) / beyond, f"{milliseconds(beyond)} beyond looking at 1,000")
    print("  promised: nothing changed at most 2 x a stat sweep, one file changed constant")


def look(folder: Path, number: int) -> Looked:
    Workspace.init(folder)
    workspace = Workspace(folder)
    questions = write_notes(folder, number)
    time.sleep(SETTLED)
    workspace.search.index()
    root, embedder = str(folder), Static(lexicon=str(folder / "lexicon.bin"))
    embedder.embed(["made before it is timed"])
    db = open_index(str(folder / STATE / INDEX_FILE))
    took = least(
        9,
        {
            "stats": lambda: stat_all(root),
            "compared": lambda: find_changes(db, iter_files(root)),
            "searched": lambda: workspace.search.find(questions[0]),
        },
    )
    changed = []
    prose = Prose(NOTE_WORDS, seed=4)
    for at in range(7):
        (folder / note_path(at)).write_text(prose.note(NOTE))
        once = {"changed": lambda: refresh(db, find_changes(db, iter_files(root)), embedder)}
        changed.append(least(1, once)["changed"])
        time.sleep(SETTLED)  # or the next look would take this file for one that may have changed again
        refresh(db, find_changes(db, iter_files(root)), embedder)
    db.close()
    return Looked(number, took["stats"], took["compared"], min(changed), took["searched"])


def stat_all(root: str) -> int:
    """Look at every Markdown file, and do nothing with it."""
    size = 0
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".md"):
                    size += entry.stat(follow_symlinks=False).st_size
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return size


# A query in a new process


def bench_cold(folder: Path) -> None:
    root = folder / "cold"
    Workspace.init(root)
    prose = Prose(NOTE_WORDS)
    some = [len(split_chunks(prose.note(NOTE))) for _ in range(50)]
    questions = write_notes(root, COLD_CHUNKS * len(some) // sum(some))[:5]
    time.sleep(SETTLED)
    truekeep = [sys.executable, "-m", "truekeep"]
    child([*truekeep, "index", "-w", str(root)])
    index = str(root / STATE / INDEX_FILE)
    db = open_index(index)
    chunks = db.execute("SELECT count(*) FROM chunks").get
    db.close()

    programs: dict[str, Callable[[str], list[str]]] = {
        "python -c pass": lambda _: [sys.executable, "-c", "pass"],
        "bare script, FTS5": lambda question: [sys.executable, "-c", BARE, index, either(question)],
        "truekeep --help": lambda _: [*truekeep, "--help"],
        "truekeep search": lambda question: [*truekeep, "search", "-w", str(root), question],
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    peaks = dict.fromkeys(programs, 0)
    for _ in range(5):
        for question in questions:
            for name, arguments in programs.items():
                seconds, peak = child(arguments(question))
                times[name].append(seconds)
                peaks[name] = max(peaks[name], peak)
    bare = times["bare script, FTS5"]
    rows = [
        [
            name,
            milliseconds(min(found)),
            milliseconds(median(found)),
            ratio(min(found), min(bare)),
            ratio(median(found), median(bare)),
            f"{peaks[name] / 1024:.0f} MB",
        ]
        for name, found in times.items()
    ]
    table([f"a new process, {chunks:,} chunks, CPU", "least", "median", "/ bare", "/ bare, median", "memory"], rows)
    print("  promised: a search at most 4 x the bare script, and at most 100 ms")
    keep("recall.cold", min(times["truekeep search"]) / min(bare), f"bare script {milliseconds(min(bare))}")
    keep("recall.new", min(times["truekeep search"]) * 1000, f"bare script {milliseconds(min(bare))}")


def either(question: str) -> str:
    """The words of a question for FTS5, joined by OR."""
    return " OR ".join(map(quote, content_words(question)))


# Growth


class Asked(NamedTuple):
    """A question, and the file that its words were drawn from."""

    text: str
    path: str


class Built(NamedTuple):
    chunks: int
    files: int
    seconds: float  # CPU, without what it took to make the texts up
    size: int  # bytes on disk
    questions: list[Asked]


class Warm(NamedTuple):
    """CPU seconds of each question, the least of some rounds, in a process that goes on."""

    first: float  # the very first question
    hybrid: list[float]
    wall: list[float]
    words: list[float]
    scan: list[float]
    bare: list[float]
    found: float  # the share of questions that find the file they were drawn from
    recall: float  # of the ten nearest vectors, the share that scan and rescoring find
    resident: int  # bytes


def bench_warm(folder: Path, sizes: Sequence[int]) -> None:
    lexicon = str(folder / "lexicon.bin")
    apart(make_lexicon, lexicon)
    rows = []
    before = 0.0
    for size in sizes:
        index, exact = str(folder / f"{size}.sqlite"), str(folder / f"{size}.f32")
        built = apart(build, index, exact, lexicon, size)
        warm = apart(measure_warm, index, exact, lexicon, built.questions)
        p50 = median(warm.hybrid)
        rows.append(
            [
                f"{built.chunks:,}",
                *(milliseconds(median(found)) for found in (warm.bare, warm.words, warm.scan, warm.hybrid)),
                milliseconds(late(warm.hybrid)),
                milliseconds(median(warm.wall)),
                ratio(p50, before) if before else "",
                milliseconds(warm.first),
                f"{warm.found:.2f}",
                f"{warm.recall:.3f}",
                f"{built.size / built.chunks / 1000:.1f} kB",
                f"{built.size / 1e6:,.0f} MB",
                f"{warm.resident / 1e6:,.0f} MB",
                f"{built.seconds / built.chunks * 1e3:.2f} s",
            ]
        )
        before = p50
        if key := {100_000: "recall.warm", LARGEST: "recall.warm-large"}.get(size):
            keep(key, p50 * 1000, f"FTS5 asked with all words {milliseconds(median(warm.bare))}")
        if size == LARGEST:
            keep("recall.memory", warm.resident / 1e6, f"vectors in 8 bits {built.chunks * DIMENSIONS / 1e6:.0f} MB")
        print(f"  {built.chunks:,} chunks: built and asked", file=sys.stderr, flush=True)
        for path in (index, exact):
            os.unlink(path)
    headers = ["chunks", "FTS5 OR", "by words", "scan", "hybrid p50", "p95", "p50, wall", "growth", "first"]
    table([*headers, "found", "scan@10", "a chunk", "on disk", "resident", "index 1,000"], rows, left=0)
    print(f"  {QUERIES} questions of 3 to 8 words, CPU unless it says wall. FTS5 OR: all words, nothing else done.")
    print("  By words: a search without embedder. Scan: 8 bits and rescoring; scan@10: its recall beside float32.")
    print(f"  Found: the file that a question's words were drawn from is among the {LIMIT} hits.")
    print("  promised: p50 under 5 ms at 100,000 and under 50 ms at 1,000,000")


def late(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[-1]


class Recording:
    """The static embedder, with a copy of every vector, as exact as it was made."""

    def __init__(self, embedder: Static, file: IO[bytes]) -> None:
        self._embedder = embedder
        self._file = file
        self.provider, self.model, self.key = embedder.provider, embedder.model, embedder.key

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        return self._embedder.embed(texts, is_query=is_query)

    def embed_table(self, texts: Sequence[str]) -> Any:
        rows = self._embedder.embed_table(texts)
        self._file.write(rows.tobytes())
        return rows


def build(index: str, exact: str, lexicon: str, chunks: int) -> Built:
    """An index of about so many chunks, from made-up files."""
    prose = Prose(LARGE_WORDS)
    some = [len(split_chunks(prose.note(FILE))) for _ in range(50)]
    files = chunks * len(some) // sum(some)
    questions: list[Asked] = []
    making = 0.0

    def read(source: MemoryFile, _noted: bytes | None) -> PreparedFile:
        nonlocal making
        started = time.process_time()
        text = prose.note(FILE)
        if len(questions) < QUERIES * (int(source.location) + 1) // files:
            questions.append(Asked(prose.question(text[:1500].rpartition(" ")[0]), source.path))
        making += time.process_time() - started
        return PreparedFile(
            source, sha256(text.encode()).digest(), True, describe(source.path, text), split_chunks(text)
        )

    sources = [
        MemoryFile(path, store_of(path), FILE, 1_700_000_000_000_000_000 + at, 0, at, str(at))
        for at, path in ((number, note_path(number)) for number in range(files))
    ]
    db = open_index(index)
    started = time.process_time()
    with open(exact, "wb") as file:
        done = refresh(db, Changes(sources, [], files, {}), Recording(Static(lexicon=lexicon), file), read=read)
    seconds = time.process_time() - started - making
    db.close()
    return Built(done.chunks, done.files, seconds, os.path.getsize(index), questions)


def make_lexicon(path: str) -> None:
    """Once for a machine, and in a process of its own: it takes numpy and memory that a search does without."""
    Static(lexicon=path).embed(["anything"])


def measure_warm(index: str, exact: str, lexicon: str, asked: Sequence[Asked]) -> Warm:
    """Ask in this process. What a search of its own needs comes first, so that memory is told without the rest."""
    db = open_index(index)
    embedder = Static(lexicon=lexicon)
    questions = [one.text for one in asked]
    searcher, words_only, shelf = Searcher(db, embedder), Searcher(db, None), VectorBlock()
    started = time.process_time()
    searcher.search(questions[0], limit=LIMIT, today=TODAY)
    first = time.process_time() - started
    hybrid, wall = clock(lambda question: searcher.search(question, limit=LIMIT, today=TODAY), questions)
    found = sum(one.path in paths(searcher, one.text) for one in asked) / len(asked)
    resident = peak_memory()
    words, _ = clock(lambda question: words_only.search(question, limit=LIMIT, today=TODAY), questions)
    bare, _ = clock(lambda question: ask_bare(db, question), questions)
    vectors = embedder.embed(questions)
    shelf.load(db, DIMENSIONS)
    scan, _ = clock(lambda vector: cosines(db, vector, shelf.answer(db, vector, 50)), vectors)
    scanned = [nearest(db, shelf, vector, 10) for vector in vectors]
    wanted = exact_nearest(exact, vectors, 10)
    recall = sum(len(one & other) for one, other in zip(scanned, wanted, strict=True)) / (10 * len(vectors))
    db.close()
    return Warm(first, hybrid, wall, words, scan, bare, found, recall, resident)


def paths(searcher: Searcher, question: str) -> set[str]:
    return {hit.path for hit in searcher.search(question, limit=LIMIT, today=TODAY).hits}


def clock(work: Callable[[Any], object], items: Sequence[Any], rounds: int = 3) -> tuple[list[float], list[float]]:
    """The least CPU and wall seconds for every item. All items in turn: no round finds its own work in a cache."""
    cpu, wall = [float("inf")] * len(items), [float("inf")] * len(items)
    for _ in range(rounds):
        for at, item in enumerate(items):
            began, started = time.perf_counter(), time.process_time()
            work(item)
            cpu[at] = min(cpu[at], time.process_time() - started)
            wall[at] = min(wall[at], time.perf_counter() - began)
    return cpu, wall


def ask_bare(db: apsw.Connection, question: str) -> list[Any]:
    query = "SELECT rowid, rank FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rank LIMIT ?"
    return db.execute(query, (either(question), LIMIT)).fetchall()


def nearest(db: apsw.Connection, shelf: VectorBlock, vector: Vector, number: int) -> set[int]:
    near = cosines(db, vector, shelf.answer(db, vector, 50))
    return set(sorted(near, key=lambda chunk_id: -near[chunk_id])[:number])


def exact_nearest(exact: str, vectors: Sequence[Vector], number: int) -> list[set[int]]:
    """The ids of the chunks nearest to each vector, by float32; chunk 1 is the first row of the file."""
    np = load_numpy()

    asked = np.array(vectors, dtype=np.float32)
    table_ = np.memmap(exact, dtype=np.float32, mode="r").reshape(-1, DIMENSIONS)
    best: list[list[tuple[float, int]]] = [[] for _ in vectors]
    for start in range(0, len(table_), 65_536):
        scores = asked @ table_[start : start + 65_536].T
        few = min(number, scores.shape[1])
        places = np.argpartition(-scores, few - 1, axis=1)[:, :few]
        for at, row in enumerate(places):
            best[at] += [(float(scores[at, place]), start + int(place) + 1) for place in row]
            best[at] = sorted(best[at], reverse=True)[:number]
    return [{chunk_id for _, chunk_id in row} for row in best]


# An edit, and when the index has it


def bench_watch(folder: Path) -> None:
    """What `index --watch` takes to have an edit, by the clock: from the write until a reader of the index sees it."""
    root = folder / "watched"
    Workspace.init(root)
    write_notes(root, 1_000)
    time.sleep(SETTLED)
    command = [sys.executable, "-m", "truekeep", "index", "--watch", "--json", "-w", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first index is done; the watch begins now
        time.sleep(1)
        db = open_index(str(root / STATE / INDEX_FILE))
        took = []
        for at in range(EDITS):
            word = f"wallaby{at}x"
            with (root / note_path(at)).open("a") as file:
                file.write(f"\n{word}\n")
            begun = time.monotonic()
            while not db.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", (word,)).get:
                if time.monotonic() - begun > 30:
                    raise SystemExit("an edit was not in the index after half a minute")
                time.sleep(0.005)
            took.append(time.monotonic() - begun)
            time.sleep(1)
        db.close()
        process.terminate()
    table(
        ["index --watch, 1,000 notes, by the clock", "least", "median", "most"],
        [["an edit is in the index", *(milliseconds(value) for value in (min(took), median(took), max(took)))]],
    )
    print("  promised: within a second")
    keep("recall.watch", median(took) * 1000, f"median of {EDITS}, most {milliseconds(max(took))}")


PARTS = ("index", "sweep", "watch", "cold", "warm")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench recall-speed", description="How fast recall is.")
    parser.add_argument("--large", action="store_true", help="a million chunks, too: half an hour, 10 GB of disk")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; repeatable")
    options = parser.parse_args(arguments)
    sizes = (*SIZES, LARGEST) if options.large else SIZES
    benches: dict[str, Callable[[Path], None]] = {
        "index": bench_index,
        "sweep": bench_sweep,
        "watch": bench_watch,
        "cold": bench_cold,
        "warm": lambda folder: bench_warm(folder, sizes),
    }
    for number, name in enumerate(options.only or PARTS):
        if number:
            print()
        # With a home of its own, for this process and its children: nobody's transcripts are looked at.
        with scratch() as folder, patch.dict(os.environ, HOME=str(folder), TRUEKEEP_NO_BACKGROUND="1"):
            benches[name](folder)


if __name__ == "__main__":
    main()
