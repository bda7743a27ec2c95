"""How fast verify is, beside `rg -F -w -f` with the words of the same claims over the same files.

CPU time of the command and of every program that it runs, the least of several rounds that take turns. The repository
is a clone in the folder that TRUEKEEP_BENCH_REPOS names (Django, else the largest); the cards are made up from it.

python -m bench truth-speed [--large] [--profile] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from bench.measure import child, scratch, table
from bench.promises import CannotRun, keep, lack
from bench.recall_speed import milliseconds, ratio
from bench.truth_load import Load, Repository, clone, find_clone, git, grow, make_load
from truekeep.core.state_dir import STATE
from truekeep.workspace.workspace import Workspace

CARDS = 1_000
TIMES = 10
ROUNDS = 5
ENOUGH = 80.0  # seconds after which no further round of a part begins
SETTLED = 2.1  # seconds after which a file's times prove that it did not change
ASKED = 3  # cards that are asked for one by one
SHOWN = 25  # functions of a profile
FACTS = "facts.sqlite"
PROGRAM = (sys.executable, "-m", "truekeep")
INSIDE = (sys.executable, "-m", "bench.truth_inside")


class Took(NamedTuple):
    """The least CPU seconds of some rounds, and the most memory in kB of any process."""

    seconds: float
    peak: int


class Inside(NamedTuple):
    """What a command says of itself."""

    memory: int  # kB, its own
    programs_memory: int  # of the largest program that it ran
    programs: float  # CPU seconds of these
    parts: dict[str, float]
    missing: list[str]


Work = Callable[[], tuple[float, int]]


def take_turns(works: Mapping[str, Work], rounds: int) -> dict[str, Took]:
    """All works once a round. The least of each is the truest on a machine that others use, too."""
    found: dict[str, list[tuple[float, int]]] = defaultdict(list)
    begun = time.monotonic()
    for number in range(rounds):
        if number and time.monotonic() - begun > ENOUGH:
            break
        for name, work in works.items():
            found[name].append(work())
    return {name: Took(min(each)[0], max(peak for _, peak in each)) for name, each in found.items()}


class Subject:
    """One load, and the commands that are timed on it."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self._facts = load.workspace / STATE / FACTS
        self._edits = 0

    def command(self, *arguments: str) -> list[str]:
        return [*arguments[:1], "-w", str(self.load.workspace), *arguments[1:]]

    def run(self, *arguments: str) -> tuple[float, int]:
        return child([*PROGRAM, *self.command(*arguments)])

    def inside(self, how: str, result: Path, *arguments: str) -> Inside:
        """The same, watched from inside."""
        self.watch(how, result, *arguments)
        told = json.loads(result.read_text())
        memory = told["memory"], told["programs' memory"]
        return Inside(*memory, told["programs"], told.get("parts", {}), told.get("missing", []))

    def watch(self, how: str, result: Path, *arguments: str) -> None:
        child([*INSIDE, how, str(result), *self.command(*arguments)])

    def grep(self) -> tuple[float, int]:
        load = self.load
        return child(["rg", "-F", "-w", "-f", str(load.patterns), "--hidden", "-g", "!.git", str(load.root)])

    def forget(self) -> None:
        """All that verify has seen."""
        for path in self._facts.parent.glob(f"{FACTS}*"):
            path.unlink()

    def cold(self) -> tuple[float, int]:
        self.forget()
        return self.run("verify", "--json")

    def cold_alone(self, result: Path) -> tuple[float, int]:
        """The same with the memory of the command itself, without that of the programs that it runs."""
        self.forget()
        seconds, _ = child([*INSIDE, "memory", str(result), *self.command("verify", "--json")])
        return seconds, json.loads(result.read_text())["memory"]

    def edited(self, path: Path) -> tuple[float, int]:
        """With one more line in a file, which may be a card."""
        self._edits += 1
        with path.open("a") as file:
            file.write(f"# edited {self._edits}\n" if path.suffix != ".md" else f"\nEdited {self._edits} times.\n")
        took = self.run("verify", "--json")
        time.sleep(SETTLED)  # or the next look would take this file for one that may have changed again
        return took

    def told(self, *arguments: str) -> Any:
        done = subprocess.run([*PROGRAM, *self.command(*arguments), "--json"], capture_output=True, check=True)
        return json.loads(done.stdout)

    @property
    def disk(self) -> int:
        return self._facts.stat().st_size


def megabytes(kilobytes: float) -> str:
    return f"{kilobytes / 1024:,.0f} MB"


# One repository, a thousand cards


def bench_all(subject: Subject, rounds: int, folder: Path) -> None:
    """Cold, warm, edited, beside ripgrep."""
    load = subject.load
    works: dict[str, Work] = {}
    if has_rg := bool(shutil.which("rg")):
        works["rg -F -w -f"] = subject.grep
    else:
        print("rg: not installed")
        for key in ("verify.cold", "verify.warm"):
            lack(key, "rg is not installed")
    works["verify, cold"] = subject.cold
    works["verify, warm"] = lambda: subject.run("verify", "--json")
    works["rg -F -w -f, again"] = subject.grep
    works["verify, warm, again"] = works["verify, warm"]
    works["verify --changed, nothing changed"] = lambda: subject.run("verify", "--changed", "--json")
    works["verify, one card edited"] = lambda: subject.edited(load.workspace / load.cards[0])
    works["verify, one file edited"] = lambda: subject.edited(load.root / some_file(load))
    if not has_rg:
        del works["rg -F -w -f, again"]
    took = take_turns(works, rounds)
    for name in [name for name in took if name.endswith(", again")]:
        first, again = took[name.removesuffix(", again")], took.pop(name)
        took[name.removesuffix(", again")] = Took(min(first.seconds, again.seconds), max(first.peak, again.peak))
    grep = took["rg -F -w -f"].seconds if has_rg else 0.0
    summary = subject.told("verify")["summary"]
    claims = sum(count for word, count in summary.items() if word != "files")
    rows = [
        [name, milliseconds(one.seconds), ratio(one.seconds, grep) if grep else "", megabytes(one.peak)]
        for name, one in took.items()
    ]
    table([f"{load.size}, {claims:,} claims", "CPU", "/ rg", "largest process"], rows)
    print(f"  {', '.join(f'{count:,} {word}' for word, count in summary.items() if word != 'files')}")
    subject.forget()
    cold = subject.inside("memory", folder / "inside.json", "verify", "--json")
    warm = subject.inside("memory", folder / "inside.json", "verify", "--json")
    print(
        f"  memory of its own: cold {megabytes(cold.memory)}, warm {megabytes(warm.memory)};"
        f" its largest git: {megabytes(cold.programs_memory)}, {megabytes(warm.programs_memory)}"
    )
    print(
        f"  of the CPU time, git: cold {milliseconds(cold.programs)}, warm {milliseconds(warm.programs)};"
        f" {FACTS}: {subject.disk / 1e6:.1f} MB"
    )
    print("  promised: cold at most 2 x rg, warm at most 0.5 x, memory under 150 MB")
    said = f"rg {milliseconds(grep)}; {load.root.name}, {load.files:,} files, {claims:,} claims"
    if has_rg:
        keep("verify.cold", took["verify, cold"].seconds / grep, said)
        keep("verify.warm", took["verify, warm"].seconds / grep, said)
    keep("verify.memory", cold.memory / 1024, f"its largest git {megabytes(cold.programs_memory)}")


def some_file(load: Load) -> str:
    """A file that is code, the same one every time."""
    names = (
        git(load.root, "ls-files", "*.py", "*.js", "*.go", "*.rs").splitlines()
        or git(load.root, "ls-files").splitlines()
    )
    return sorted(names)[len(names) // 2]


def bench_one(subject: Subject, rounds: int) -> None:
    """One card, beside what it takes to start; and a search with and without verdicts."""
    load = subject.load
    cards = [load.cards[at * len(load.cards) // ASKED] for at in range(ASKED)]
    topic = next(line for line in (load.workspace / cards[0]).read_text().splitlines() if line.startswith("topic: "))
    query = topic.removeprefix("topic: ")
    config = load.workspace / STATE / "config.toml"
    text = config.read_text()

    def search(*, verdicts: bool) -> tuple[float, int]:
        config.write_text(text.replace("\n[verify]\n", f"\n[verify]\nrecall = {str(verdicts).lower()}\n"))
        return subject.run("search", query, "--json")

    subject.run("verify", "--json")
    search(verdicts=True)  # which makes the index
    time.sleep(SETTLED)
    works: dict[str, Work] = {
        "truekeep --version": lambda: child([*PROGRAM, "--version"]),
        "verify --list-claims CARD": lambda: child(
            [*PROGRAM, "verify", "--list-claims", str(load.workspace / cards[0]), "--json"]
        ),
        **{f"verify CARD {at}": partial(subject.run, "verify", card, "--json") for at, card in enumerate(cards)},
        "search, without verdicts": lambda: search(verdicts=False),
        "search, with verdicts": lambda: search(verdicts=True),
    }
    took = take_turns(works, 2 * rounds)
    config.write_text(text)
    start, claims, plain = (took[name] for name in ("truekeep --version", "claims CARD", "search, without verdicts"))
    slowest = max((took.pop(f"verify CARD {at}") for at in range(ASKED)), key=lambda one: one.seconds)
    shown = {
        "truekeep --version": (start, start),
        "claims CARD (read it, find its claims)": (claims, start),
        f"verify CARD, warm, the slowest of {ASKED}": (slowest, start),
        "search, without verdicts": (plain, start),
        "search, with verdicts": (took["search, with verdicts"], plain),
    }
    rows = [
        [name, milliseconds(one.seconds), milliseconds(one.seconds - base.seconds), megabytes(one.peak)]
        for name, (one, base) in shown.items()
    ]
    table(["one card, CPU", "in all", "beyond", "largest process"], rows)
    print("  beyond: --version; for search with verdicts, the search without")
    print("  promised: one card warm under 50 ms beyond start-up")
    keep("verify.card", (slowest.seconds - start.seconds) * 1000, f"start-up {milliseconds(start.seconds)}")
    beyond = took["search, with verdicts"].seconds - plain.seconds
    keep("verify.search", max(0.0, beyond) * 1000, f"search without {milliseconds(plain.seconds)}")


# Ten times


def bench_growth(subjects: Sequence[Subject], rounds: int, folder: Path) -> None:
    """The same work in several sizes, which take turns; each beside the first."""
    has_rg = bool(shutil.which("rg"))
    works: dict[str, Work] = {}
    for at, subject in enumerate(subjects):
        if has_rg:
            works[f"{at} rg"] = subject.grep
        works[f"{at} cold"] = partial(subject.cold_alone, folder / "inside.json")
        works[f"{at} warm"] = partial(subject.run, "verify", "--json")
    took = take_turns(works, rounds)
    rows = []
    for at, subject in enumerate(subjects):
        cells = [subject.load.size]
        for name in ("rg", "cold", "warm"):
            if one := took.get(f"{at} {name}"):
                cells += [milliseconds(one.seconds), ratio(one.seconds, took[f"0 {name}"].seconds)]
                cells += [ratio(one.seconds, took[f"{at} rg"].seconds)] if has_rg and name != "rg" else []
        memory, first = took[f"{at} cold"].peak, took["0 cold"].peak
        cells += [megabytes(memory), ratio(memory, first)]
        cells += [f"{subject.disk / 1e6:,.0f} MB", ratio(subject.disk, subjects[0].disk)]
        rows.append(cells)
    for at, key in enumerate(("verify.claims", "verify.files"), start=1):
        grew = f", rg grew {ratio(took[f'{at} rg'].seconds, took['0 rg'].seconds)}" if has_rg else ""
        once = took["0 cold"].seconds
        keep(key, took[f"{at} cold"].seconds / once, f"once {milliseconds(once)}{grew}")
    beside = ["/ rg"] if has_rg else []
    headers = ["growth, CPU", *(["rg", "grew"] if has_rg else []), "cold", "grew", *beside, "warm", "grew", *beside]
    table([*headers, "own memory, cold", "grew", "on disk", "grew"], rows)


# Where the time goes


def profile(subject: Subject, folder: Path) -> None:
    for name in ("cold", "warm"):
        if name == "cold":
            subject.forget()
        seen = subject.inside("parts", folder / "inside.json", "verify", "--json")
        whole = sum(seen.parts.values())
        parts = sorted(seen.parts.items(), key=lambda item: -item[1])
        shown = [f"{part} {seconds:.2f} s ({seconds / whole:.0%})" for part, seconds in parts if seconds >= 0.005]
        print(f"{name}, {whole:.2f} s of CPU, git's {seen.programs:.2f} s of it among its parts: {', '.join(shown)}")
        if seen.missing:
            print(f"  not there any more, see bench/truth_inside.py: {', '.join(seen.missing)}")
    for name in ("cold", "warm"):
        if name == "cold":
            subject.forget()
        result = folder / f"{name}.profile"
        subject.watch("profile", result, "verify", "--json")
        for order in ("tottime", "cumulative"):
            print(f"\n{name}, by {order} (by the clock, as a profile sees it: calls look dearer than they are)")
            show_profile(pstats.Stats(str(result)), order)


def show_profile(stats: pstats.Stats, order: str) -> None:
    """The most expensive functions: by their own time all, with what they call only truekeep's."""
    found: list[tuple[float, float, int, str]] = []
    rows: Mapping[tuple[str, int, str], tuple[int, int, float, float, Any]] = stats.stats  # type: ignore[attr-defined]
    for (file, line, name), (_, calls, own, cumulative, _) in rows.items():
        if order == "tottime" or ("/truekeep/" in file and "/cli/" not in file):
            place = "/".join(file.split("/")[-3 if "/truekeep/" in file else -2 :])
            found.append((own, cumulative, calls, f"{place}:{line} {name}" if line else name))
    found.sort(key=lambda row: -(row[0] if order == "tottime" else row[1]))
    table(
        ["function", "calls", "own", "with what it calls"],
        [
            [name, f"{calls:,}", milliseconds(own), milliseconds(cumulative)]
            for own, cumulative, calls, name in found[:SHOWN]
        ],
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench truth-speed", description="How fast verify is.")
    parser.add_argument("--large", action="store_true", help="ten times the claims, and ten times the files, too")
    parser.add_argument("--profile", action="store_true", help="only say where the time goes")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="at most (%(default)s)")
    options = parser.parse_args(arguments)
    source = find_clone()
    if source is None:
        raise CannotRun("TRUEKEEP_BENCH_REPOS names no folder with clones of public repositories")
    # With a home of its own, for this process and its children: nobody's configuration of git or truekeep counts.
    with scratch() as folder, patch.dict(os.environ, HOME=str(folder), TRUEKEEP_NO_BACKGROUND="1"):
        repository = Repository(clone(source, folder / source.name))
        subject = prepare(repository, folder / "workspace", CARDS)
        time.sleep(SETTLED)
        if options.profile:
            profile(subject, folder)
            return
        bench_all(subject, options.rounds, folder)
        print()
        bench_one(subject, options.rounds)
        if options.large:
            print()
            many = prepare(repository, folder / "many", TIMES * CARDS)
            large = Repository(grow(repository.root, folder / "large"))
            broad = prepare(large, folder / "broad", CARDS)
            time.sleep(SETTLED)
            bench_growth([subject, many, broad], options.rounds, folder)


def prepare(repository: Repository, workspace: Path, number: int) -> Subject:
    Workspace.init(workspace, repositories=[str(repository.root)])
    return Subject(make_load(repository, workspace, number))


if __name__ == "__main__":
    main()
