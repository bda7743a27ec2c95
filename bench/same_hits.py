"""Whether another version of truekeep gives the same answers: for changes that are to make search cheaper, not other.

Both versions index the same files and are asked the same: every question of the memory set, and thousands put together
from words, identifiers, days and slips of the pen; with and without meaning, of all stores and of some, for one hit and
for many, by both rankings; in a process that has just begun and in one that has been asked before. What a person or a
script is shown must be the same to the last character.

python -m bench.same_hits PATH/TO/OTHER/CHECKOUT [--questions N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from bench.measure import scratch
from bench.prose import Prose
from bench.sets import memory_set

TODAY = date(2026, 11, 15)
NOTES = 1_500  # made-up files beside the memory set
NOTE = 2_000  # characters
HERE = Path(__file__).parent.parent
FRESH = 40  # questions after which a new searcher answers: its first ones do without numpy
SPICE = (
    "yesterday",
    "last week",
    "2026-03-04",
    "am 3. März",
    "in May 2026",
    "Überblick",
    "café",
    "数据库",
    "データの移行",
)


def write_files(folder: Path) -> None:
    prose = Prose(6_000, seed=11)
    for corpus in memory_set():
        for path, text in corpus.files.items():
            write(folder / "set" / path, text)
    for at in range(NOTES):
        name = f"memory/cards/{at}.md" if at % 3 else f"memory/2026-0{at % 9 + 1}-1{at % 10}-{at}.md"
        text = prose.note(NOTE)
        if at % 7 == 0:  # accents, other scripts, carriage returns, and the same text once more
            text = f"---\ntopic: note {at}\ntags: [a, b]\n---\n{text}\nÜber das café: 数据库迁移 und データの移行.\r\n"
        if at % 50 == 49:
            text = (
                folder / "made" / f"memory/cards/{at - 1 if (at - 1) % 3 else at - 2}.md"
            ).read_text() + "\nonce more\n"
        write(folder / "made" / name, text)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    moment = 1_700_000_000 + len(str(path)) * 86_400
    os.utime(path, (moment, moment))


def make_questions(folder: Path, most: int) -> dict[str, list[str]]:
    chance = random.Random(5)
    asked = {"set": [question.text for corpus in memory_set() for question in corpus.questions], "made": list[str]()}
    for part, questions in asked.items():
        words = sorted({word for path in (folder / part).rglob("*.md") for word in path.read_text("utf-8").split()})
        while len(questions) < most:
            chosen = chance.sample(words, chance.randint(1, 12))
            if chance.random() < 0.2:
                chosen.append(chance.choice(SPICE))
            if chance.random() < 0.2 and len(chosen[0]) > 4:  # a slip of the pen
                at = chance.randrange(1, len(chosen[0]) - 1)
                chosen[0] = chosen[0][:at] + chosen[0][at + 1 :]
            questions.append(" ".join(chosen))
    return asked


def give_answers(folder: Path) -> None:
    """Run by each version for itself: a line for every answer."""
    import truekeep
    from truekeep.memory.file_scan import find_changes, iter_files
    from truekeep.search.embedders.static import Static
    from truekeep.search.index_schema import open_index
    from truekeep.search.refresh import refresh
    from truekeep.search.searcher import Filter, Searcher

    print(Path(truekeep.__file__).parent, file=sys.stderr)
    static = Static(lexicon=str(folder / "lexicon.bin"))
    ways: list[dict[str, Any]] = [
        {"limit": 6},
        {"limit": 20},
        {"limit": 1},
        {"limit": 6, "filter_": Filter(stores=("cards",))},
        {"limit": 6, "filter_": Filter(since="2026-03-01")},
        {"limit": 6, "formula": "openclaw", "lambda_mmr": 0.7, "half_life": 30.0},
    ]
    for part, questions in json.loads((folder / "questions.json").read_text()).items():
        for embedder in (static, None):
            db = open_index(":memory:")
            refresh(db, find_changes(db, iter_files(str(folder / part))), embedder)
            searcher = Searcher(db, embedder)
            for at, question in enumerate(questions):
                if at % FRESH == 0:
                    searcher = Searcher(db, embedder)
                way = ways[at % len(ways)]
                found = searcher.search(question, today=TODAY, **way)
                hits = [{**hit._asdict(), "parts": dict(hit.parts)} for hit in found.hits]
                told = {"mode": found.mode, "is_match": found.is_match, "corrections": found.query.corrections}
                print(json.dumps({"question": question, "way": str(way), **told, "hits": hits}))


def ask(checkout: Path, folder: Path) -> Iterator[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "bench.same_hits", "--answers", str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    yield from map(json.loads, done.stdout.splitlines())


def place_of(hit: dict[str, Any]) -> tuple[Any, ...]:
    return hit["path"], hit["first"], hit["last"], hit["text"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.same_hits", description="The same answers as another version?"
    )
    parser.add_argument("checkout", nargs="?", type=Path, help="of the other version")
    parser.add_argument("--questions", type=int, default=1_500, help="of each of the two memories")
    parser.add_argument("--answers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.answers:
        give_answers(options.answers)
        return 0
    if options.checkout is None:
        parser.error("which other version?")
    with scratch() as folder:
        write_files(folder)
        (folder / "questions.json").write_text(json.dumps(make_questions(folder, options.questions)))
        here, there = (list(ask(checkout, folder)) for checkout in (HERE, options.checkout.resolve()))
    differ = [(one, other) for one, other in zip(here, there, strict=True) if one != other]
    moved = [pair for pair in differ if [*map(place_of, pair[0]["hits"])] != [*map(place_of, pair[1]["hits"])]]
    hits = sum(len(one["hits"]) for one in here)
    print(f"{len(here):,} answers, {hits:,} hits: {len(differ)} answers differ, {len(moved)} of them in their hits")
    for one, other in differ[:3]:
        print(json.dumps(one, indent=1), json.dumps(other, indent=1), sep="\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
