"""What was promised with a number, and how it stands: each bench tells its figures here, and one table shows them all.

The catalogue below is every promise that has a number, with the bench that measures it. A bench says `keep(key, value)`
beside its own tables; what it did not measure stays in the table with the reason. Where a word was promised ("flat",
"linear"), the goal is the number that we take for it, and the promise says so.

python -m bench.promises RUN.json … [--into PAGE.md] shows some runs in one table, or puts it into a page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sqlite3
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import table

WIDTH = 60  # of a cell that is text
HEADERS = ("bench", "promise", "measured", "goal", "", "beside", "peers")
BEGIN, END = "<!-- table: python -m bench.promises -->", "<!-- end of table -->"


class Promise(NamedTuple):
    """A figure and what it has to be."""

    bench: str
    says: str
    goal: float | None = None  # None: it is only told, or its goal is known with the figure
    unit: str = "x"
    is_least: bool = False  # whether more is better
    alone: str = ""  # what to run for it, when the bench without options leaves it out


PROMISES: dict[str, Promise] = {
    "ingest.ratio": Promise("ingest", "1,000 handoffs, CPU, beside a naive loop", 4.0),
    "ingest.seconds": Promise("ingest", "1,000 handoffs, CPU", 5.0, "s"),
    "ingest.linear": Promise("ingest", "one of 10,000 handoffs, beside one of 1,000 (linear)", 1.25),
    "ingest.store": Promise("ingest", "ten handoffs into 10,000 cards, beside ten into none", 2.0),
    "ingest.memory": Promise("ingest", "peak memory of 10,000 handoffs, beside 1,000 (flat)", 1.25),
    "startup.help": Promise("startup", "truekeep --help, CPU", 100, "ms"),
    "startup.idle": Promise("startup", "ingest with nothing to do, CPU", 100, "ms"),
    "startup.demo": Promise("startup", "make demo, by the clock", 30, "s"),
    "hooks.session-start": Promise("hooks", "hook SessionStart at 10,000 cards, CPU", 100, "ms"),
    "hooks.stop": Promise("hooks", "hook Stop at 10,000 cards, CPU", 100, "ms"),
    "hooks.pre-tool-use": Promise("hooks", "hook PreToolUse beyond a bare interpreter, CPU", 30, "ms"),
    "hooks.session-end": Promise("hooks", "hook SessionEnd at 10,000 cards, CPU", 100, "ms"),
    "quality.best": Promise("recall-quality", "measures of all sets in which no other is surely better", None, ""),
    "quality.memory": Promise("recall-quality", "recall@5, memory set, beside the best other ranking", None, "share"),
    "quality.locomo": Promise("recall-quality", "recall@5, LoCoMo", None, "share"),
    "quality.faq": Promise("recall-quality", "recall@5, course FAQ", None, "share"),
    "quality.cosqa": Promise("recall-quality", "recall@5, CoSQA", None, "share"),
    "quality.scifact": Promise("recall-quality", "recall@5, SciFact", None, "share"),
    "quality.beam-100k": Promise("recall-quality", "recall@5, BEAM, 100K", None, "share"),
    "quality.beam-500k": Promise("recall-quality", "recall@5, BEAM, 500K", None, "share"),
    "quality.swe": Promise("recall-quality", "recall@5, SWE-ContextBench", None, "share"),
    "quality.swe-titles": Promise("recall-quality", "recall@5, SWE-ContextBench, titles only", None, "share"),
    "quality.personamem-32k": Promise("recall-quality", "recall@5, PersonaMem-32k", None, "share"),
    "quality.identifier": Promise("recall-quality", "an exact identifier of any age, in ten hits", 1.0, "share", True),
    "recall.words": Promise("recall-speed", "indexing 1,000 notes, words, beside a bare FTS5 loop, CPU", 2.0),
    "recall.meaning": Promise("recall-speed", "indexing 1,000 notes, beside the embedding itself, CPU", 3.0),
    "recall.idle": Promise("recall-speed", "index, nothing changed, 1,000 files, beside a stat sweep, CPU", 2.0),
    "recall.idle-large": Promise("recall-speed", "the same, 10,000 files", 2.0),
    "recall.one": Promise("recall-speed", "one of 10,000 files changed, beside one of 1,000 (constant)", 1.25),
    "recall.watch": Promise("recall-speed", "index --watch has an edit, by the clock", 1_000, "ms"),
    "recall.cold": Promise("recall-speed", "search in a new process, 10,000 chunks, beside a bare script, CPU", 4.0),
    "recall.new": Promise("recall-speed", "search in a new process, 10,000 chunks, CPU", 100, "ms"),
    "recall.warm": Promise("recall-speed", "warm search, p50, 100,000 chunks, CPU", 5, "ms"),
    "recall.warm-large": Promise("recall-speed", "warm search, p50, 1,000,000 chunks, CPU", 50, "ms", alone="--large"),
    "recall.memory": Promise("recall-speed", "memory of one that stays, 1,000,000 chunks", 300, "MB", alone="--large"),
    "outcome.believed": Promise("outcome", "names acted on that are false: memory as it is", None, "share"),
    "outcome.plain-check": Promise("outcome", "the same after a plain check: path or word is there", None, "share"),
    "outcome.truekeep": Promise("outcome", "the same by truekeep's verdicts", None, "share"),
    "truth.precision": Promise("truth", "rot: alarms that are right", 0.97, "share", True),
    "truth.recall": Promise("truth", "rot: found", 0.97, "share", True),
    "truth.alarms": Promise("truth", "false alarms on true claims", 0.02, "share"),
    "truth.moved": Promise("truth", "moved to the right place", 0.95, "share", True),
    "truth.lines": Promise("truth", "moved to the right line", 0.90, "share", True),
    "truth.mentioned": Promise("truth", "gone from code, still named elsewhere: caught", 0.90, "share", True),
    "truth.prose": Promise("truth", "claims in prose with look-alike words", 0, ""),
    "verify.cold": Promise("truth-speed", "5,000 claims over Django, cold, beside rg, CPU", 2.0),
    "verify.warm": Promise("truth-speed", "the same, warm", 0.5),
    "verify.card": Promise("truth-speed", "one card, warm, beyond start-up, CPU", 50, "ms"),
    "verify.memory": Promise("truth-speed", "memory of a cold verify", 150, "MB"),
    "verify.search": Promise("truth-speed", "verdicts of a search's hits, warm, CPU (milliseconds)", 10, "ms"),
    "verify.claims": Promise("truth-speed", "ten times the claims, cold (linear)", 10, alone="--large"),
    "verify.files": Promise("truth-speed", "ten times the files, cold (linear)", 10, alone="--large"),
    "transcripts.turn": Promise("transcripts", "one more turn: bytes read, beside what is new", 1.0),
    "transcripts.idle": Promise("transcripts", "sync with nothing new, beside a stat walk, CPU"),
    "alf.export": Promise("alf", "export, 10,000 files and 200 MB, beside zip -r, CPU", 3.0),
    "alf.import": Promise("alf", "import of the same, beside unzip, CPU", 3.0),
    "alf.memory": Promise("alf", "peak memory of both, beside a tenth of the files (flat)", 1.25),
    "alf.delta": Promise("alf", "a delta after one changed file, beside a scan, CPU", 1.0),
    "sync.trips": Promise("sync", "20 machines with nothing new: logins a machine", 1, ""),
    "sync.left": Promise("sync", "20 machines x 1,000 handoffs: not filed at the end", 0, ""),
    "copy.first": Promise("copy", "first copy of 10,000 files with its index, CPU of both sides, beside rsync -a", 1.0),
    "copy.transfer": Promise("copy", "the same without its index", 3.0),
    "copy.trips": Promise("copy", "copy with nothing new: logins", 1.0, ""),
    "copy.changed": Promise("copy", "one changed file of 10,000, sent and installed, beside the first copy", 0.25),
    "copy.search": Promise("copy", "search in the copy, beside the host's, CPU", 1.25),
    "copy.wake": Promise("copy", "wake in the copy, beside the host's, CPU", 1.25),
    "copy.session-start": Promise("copy", "hook SessionStart in a copy of 10,000 cards, CPU", 100, "ms"),
    "upkeep.night": Promise("upkeep", "a night, nothing changed, 10,000 cards, beside a stat sweep, CPU", 2.0),
    "upkeep.doubles": Promise("upkeep", "doubles: a card of 10,000, beside one of 1,000 (near-linear)", 1.4),
    "check.right": Promise("check", "alarms of check that are right, by default", 0.90, "share", is_least=True),
    "check.wrong": Promise("check", "wrong alarms of check in 2,000 claims", 1, ""),
    "check.found": Promise("check", "false references that check finds", 0.80, "share", is_least=True),
    "check.links": Promise("check", "links confirmed by check that lead nowhere", 0, ""),
    "check.shallow": Promise("check", "alarms in a clone of depth 1", 0.90, "share", is_least=True, alone="--shallow"),
    "check.pull-request": Promise("check", "check of a pull request of 20 files, warm, CPU", 1.0, "s", alone="--speed"),
    "check.fresh": Promise("check", "the same in a fresh clone of depth 1", 5.0, "s", alone="--speed"),
    "check.warm": Promise("check", "all documents, warm, beside rg", 2.0, alone="--speed"),
    "check.cold": Promise("check", "all documents, cold, beside rg", 3.0, alone="--speed"),
    "check.memory": Promise("check", "memory of check, the largest process", 150, "MB", alone="--speed"),
    "real.failed": Promise("real", "commands that crash, hang or are silent for 10 s", 0, ""),
    "real.checked": Promise("real", "claims of real workspaces that can be checked", 0.70, "share", is_least=True),
    "real.gone": Promise("real", "of them called gone, and right", 0.90, "share", is_least=True),
    "real.moved": Promise("real", "of them called moved, and right", 0.97, "share", is_least=True),
    "real.confirmed": Promise("real", "of them confirmed, and right", 0.97, "share", is_least=True),
    "real.proposals": Promise("real", "proposals that a person takes", 0.60, "share", is_least=True),
    "real.credentials": Promise("real", "credentials that are some", 0.95, "share", is_least=True),
    "real.first": Promise("real", "questions whose file is the first hit", 0.80, "share", is_least=True),
    "real.near": Promise("real", "questions whose file is in the first six", 0.96, "share", is_least=True),
    "real.lines-terminal": Promise("real", "right lines in 4,000 characters, terminal", 0.75, "share", is_least=True),
    "real.lines-mcp": Promise("real", "right lines in 4,000 characters, MCP", 0.75, "share", is_least=True),
    "real.parts": Promise("real", "the same for every part of a question", 0.50, "share", is_least=True),
    "real.unknown": Promise("real", "questions without an answer: said so", 0.80, "share", is_least=True),
    "real.doubted": Promise("real", "questions with an answer: said that nothing is known", 0.05, "share"),
    "year.missed": Promise("year", "a year, 5,000 cards: planted and not found, or lost", 0, ""),
    "year.false": Promise("year", "the same: found and not there", 0, ""),
    "site.page": Promise("site", "the slowest page at 10,000 cards, p95, by the clock", 100, "ms"),
    "site.errors": Promise("site", "50 at a time for a minute: errors", 0, ""),
    "site.late": Promise("site", "50 at a time for a minute: p95, by the clock", None, "ms"),
    "peers.ingest": Promise("peers", "1,000 handoffs in a new process, CPU", None, "s"),
    "peers.index": Promise("peers", "indexing 1,000 notes in a new process, CPU", None, "s"),
    "peers.search": Promise("peers", "a search in a new process, 1,000 notes, CPU", None, "ms"),
    "peers.recall": Promise("peers", "recall@5, memory set, beside the best peer", None, "share"),
    "peers.identifier": Promise("peers", "the same, exact identifiers", None, "share"),
    "soak.lost": Promise("soak", "a day of traffic: lost, doubled, unexplained or left lying about", 0, ""),
    "soak.memory": Promise("soak", "the same: memory of those that stay, beside the morning's (flat)", 1.25),
    "soak.held": Promise("soak", "the same: descriptors, threads and locks, more than before noon", 0, ""),
    "soak.search": Promise("soak", "the same: a search by one that stayed, beside a fresh one, CPU (flat)", 1.25),
}  # fmt: skip


class Kept(NamedTuple):
    """A figure as a bench told it; without one, why."""

    value: float | None = None
    goal: float | None = None
    beside: str = ""
    why: str = ""


class CannotRun(Exception):
    """A bench lacks something that this machine does not have; its rows say what."""


@dataclass(slots=True)
class Book:
    """The figures of one run."""

    kept: dict[str, Kept] = field(default_factory=dict)
    peers: dict[str, list[str]] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "key": key,
                "bench": promise.bench,
                "promise": promise.says,
                "unit": promise.unit,
                "measured": kept.value,
                "goal": goal_of(promise, kept),
                "more_is_better": is_least(promise, kept),
                "met": is_met(promise, kept),
                "beside": kept.beside,
                "peers": self.peers.get(key, []),
                "why": kept.why,
            }
            for key, promise, kept in self.rows()
        ]
        return {"schema": "truekeep.bench.1", "machine": self.machine, "promises": rows}

    def rows(self) -> Iterable[tuple[str, Promise, Kept]]:
        for key, promise in PROMISES.items():
            if key in self.kept or key in self.peers:
                yield key, promise, self.kept.get(key, Kept(why="not run"))

    def join(self, told: Mapping[str, Any]) -> None:
        """Take in the figures of another run: a figure beats none, the later of two wins, peers come with theirs."""
        for row in told["promises"]:
            key = row["key"]
            if key not in PROMISES:
                continue  # of an older catalogue
            if row["measured"] is not None or self.kept.get(key, Kept()).value is None:
                self.kept[key] = Kept(row["measured"], row["goal"], row["beside"], row["why"])
            if row["peers"]:
                self.peers[key] = list(row["peers"])
        self.machine = self.machine or told["machine"]


BOOK = Book()  # of this process


def keep(key: str, value: float, beside: str = "", *, goal: float | None = None) -> None:
    """How a promise stands; `beside` is what the figure was measured beside, with its own."""
    _ = PROMISES[key]  # a figure that was never promised is a slip
    BOOK.kept[key] = Kept(value, goal, beside)


def lack(key: str, why: str) -> None:
    """Why a promise has no figure."""
    _ = PROMISES[key]
    BOOK.kept[key] = Kept(why=why)


def excuse(bench: str, why: str) -> None:
    """Why the promises of a bench have no figure that have neither one nor a reason."""
    for key, promise in PROMISES.items():
        if promise.bench == bench and key not in BOOK.kept:
            lack(key, f"run alone: python -m bench {bench} {promise.alone}" if promise.alone else why)


def tell_peer(key: str, text: str) -> None:
    """What another program needs for the same job."""
    _ = PROMISES[key]
    BOOK.peers.setdefault(key, []).append(text)


def goal_of(promise: Promise, kept: Kept) -> float | None:
    return promise.goal if kept.goal is None else kept.goal


def is_least(promise: Promise, kept: Kept) -> bool:
    """A goal that came with the figure is what others reach: more is better."""
    return promise.is_least or (promise.goal is None and kept.goal is not None)


def is_met(promise: Promise, kept: Kept) -> bool | None:
    goal = goal_of(promise, kept)
    if goal is None or kept.value is None:
        return None
    return kept.value >= goal if is_least(promise, kept) else kept.value <= goal


# What is shown


def show_value(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.3f}"
    if not unit:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def show_goal(promise: Promise, kept: Kept) -> str:
    goal = goal_of(promise, kept)
    if goal is None:
        return ""
    sign = "≥" if is_least(promise, kept) else "≤"
    return show_value(goal, promise.unit) if goal == 0 else f"{sign} {show_value(goal, promise.unit)}"


def cells(promise: Promise, kept: Kept, peers: Sequence[str]) -> list[str]:
    met = {True: "met", False: "SHORT", None: ""}[is_met(promise, kept)]
    measured = show_value(kept.value, promise.unit) if kept.value is not None else "–"
    return [
        promise.bench,
        promise.says,
        measured,
        show_goal(promise, kept),
        met,
        kept.beside or kept.why,
        "; ".join(peers),
    ]


def show(book: Book) -> None:
    """Everything in one table, and on what machine."""
    rows = [cells(promise, kept, book.peers.get(key, ())) for key, promise, kept in book.rows()]
    if not rows:
        return
    for n in range(len(rows) - 1, 0, -1):  # a bench is named once
        rows[n][0] = "" if rows[n][0] == rows[n - 1][0] else rows[n][0]
    rows = [line for row in rows for line in folded(row)]
    print()
    short = [n for n, row in enumerate(rows) if row[4] == "SHORT"]
    table(HEADERS, rows, left=2, last_left=3, bold={(n, column) for n in short for column in (2, 4)})
    print(f"\n{count_line(book)}\n{machine_line(book.machine)}")


def folded(row: Sequence[str]) -> list[list[str]]:
    """A row with its two long cells over several lines."""
    beside, peers = (textwrap.wrap(cell, WIDTH) or [""] for cell in row[5:])
    lines = [list(row[:5]), *([""] * 5 for _ in range(max(len(beside), len(peers)) - 1))]
    for n, line in enumerate(lines):
        line += [beside[n] if n < len(beside) else "", peers[n] if n < len(peers) else ""]
    return lines


def count_line(book: Book) -> str:
    found = [is_met(promise, kept) for _, promise, kept in book.rows()]
    without = sum(kept.value is None for _, _, kept in book.rows())
    return f"{found.count(True)} met, {found.count(False)} short, {without} not measured in this run"


def as_markdown(book: Book) -> str:
    lines = ["| bench | promise | measured | goal | | beside | peers |", "|---|---|---:|---:|---|---|---|"]
    for key, promise, kept in book.rows():
        row = cells(promise, kept, book.peers.get(key, ()))
        row[4] = f"**{row[4].lower()}**" if row[4] == "SHORT" else row[4]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join([*lines, "", f"{count_line(book)}.", "", f"{machine_line(book.machine)}."])


# The machine


def describe_machine() -> dict[str, Any]:
    """What figures depend on. No name of the machine, and no path on it."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "unknown"


def sqlite_version() -> str:
    """Of the one that truekeep's index uses, which is not always Python's."""
    try:
        import apsw
    except ImportError:
        return sqlite3.sqlite_version
    return str(apsw.sqlite_lib_version())


def stolen() -> tuple[float, float]:
    """Ticks that the host took from this machine's cores, and all ticks, since it started; zeros if nobody counts."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0.0, 0.0
    return float(ticks[7]) if len(ticks) > 7 else 0.0, float(sum(ticks))


def machine_line(machine: Mapping[str, Any]) -> str:
    if not machine:
        return "the machine is not known"
    shown = [
        f"{machine['at']}: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}",
        f"Python {machine['python']}, SQLite {machine['sqlite']}",
        f"load average {machine['load_before']:.1f} before",
    ]
    if during := machine.get("load_during"):
        shown.append(f"{sum(during) / len(during):.1f} during (highest {max(during):.1f}, our own work included)")
    if machine.get("stolen", 0) > 0.005:
        shown.append(f"{machine['stolen']:.0%} of the cores' time taken by the host")
    return ", ".join(shown)


def put_into(page: Path, text: str) -> None:
    """Replace what is between the two marks of a page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no line {BEGIN} and {END} after it")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.promises", description="The table of some runs.")
    parser.add_argument("runs", nargs="+", type=Path, help="what --json of python -m bench left, the newest last")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the table between the marks of this page")
    options = parser.parse_args(arguments)
    book = Book()
    for path in options.runs:
        book.join(json.loads(path.read_text(encoding="utf-8")))
    if options.into:
        put_into(options.into, as_markdown(book))
    else:
        show(book)


if __name__ == "__main__":
    main(sys.argv[1:])
