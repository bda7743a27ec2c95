"""Does verified memory keep agents from being wrong: python -m bench outcome [--half tuning|report] [--name NAME …].

Memory is what the people of a repository had written two years ago: documents and messages of commits. The world is
the same repository 3, 6, 12 and 24 months later. What people did next is asked in their own words; an agent reads the
first 4,000 characters of the answer, and acts on the names in them. Git says which of these names are still so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import scratch, table
from bench.outcome.arms import Count, as_written, by_truekeep, judge_act, known_names, names_of, plain_check
from bench.outcome.memory import MONTH, questions, write_memory
from bench.promises import CannotRun, keep
from bench.real.workspaces import PublicWorkspace, clones_folder
from bench.truth.git import Git, Incomplete
from bench.truth.judge import Judge
from bench.truth.world import World

MONTHS = (3, 6, 12, 24)
ARMS = ("believed", "plain check", "truekeep")
HEADERS = ("", "months", "names", "false", "true", "true withheld", "moved, arrived", "characters")


class Key(NamedTuple):
    half: str
    months: int
    arm: str


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench outcome")
    parser.add_argument("--half", choices=("tuning", "report"))
    parser.add_argument("--name", action="append", default=[], help="owner/name of a repository; may be repeated")
    options = parser.parse_args(arguments)
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones")
    counts: dict[Key, Count] = defaultdict(Count)
    ran: dict[str, int] = defaultdict(int)
    for repository, half in chosen(options.half, options.name):
        clone = PublicWorkspace(repository=repository, commit="", half=half).find_clone(folder)
        if clone is None:
            print(f"{repository}: left out; no clone of it")
            continue
        began = time.monotonic()
        try:
            for months, arm, count in measure(repository, clone):
                counts[Key(half, months, arm)].add(count)
        except Incomplete as problem:
            print(f"{repository}: left out; {str(problem).splitlines()[0]}")
            continue
        ran[half] += 1
        print(f"{repository}: {time.monotonic() - began:.0f} s", flush=True)
    show(counts, ran)


def chosen(half: str | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    tables = tomllib.loads((Path(__file__).parent / "repositories.toml").read_text(encoding="utf-8"))
    for which, entry in tables.items():
        for repository in entry["repositories"]:
            if half in (None, which) and (not names or repository in names):
                yield repository, which


def measure(repository: str, clone: Path) -> Iterator[tuple[int, str, Count]]:
    """What each arm did, at each age of the memory."""
    with scratch() as base:
        world = base / "repos" / repository.partition("/")[2]
        newest = copy_clone(clone, world, repository)
        git = Git(world)
        unit = min(MONTH, (git.when(newest) - first_time(git, newest)) // 36)
        begin = git.before(git.when(newest) - (max(MONTHS) + 3) * unit)
        if begin is None:
            raise Incomplete("its history is too short")
        for months in MONTHS:
            git.run("checkout", "--quiet", "--force", "--detach", newest)
            later = git.before(git.when(begin) + months * unit) or newest
            asked = questions(git, later, newest)
            git.run("checkout", "--quiet", "--force", "--detach", later)
            git = Git(world)  # what it remembers is of another commit
            judge = Judge(
                World(git, begin, base / f"old-{months}"),
                World(git, "HEAD", base / f"new-{months}"),
                f"outcome/1:{months}",
            )
            known = known_names(list(judge.facts()))
            agent = Agent(base / f"memory-{months}", world)
            write_memory(judge, repository, agent.workspace)
            agent.prepare()
            check = plain_check(judge.new)
            for question in asked:
                names, characters = names_of(agent.ask(question), known)
                for arm, act in zip(ARMS, (as_written, check, by_truekeep), strict=True):
                    count = Count(read=characters)
                    for name in names:
                        count.add(judge_act(name, act(name)))
                    yield months, arm, count


def copy_clone(clone: Path, world: Path, repository: str) -> str:
    """A checkout of our own without branches, so that nothing tells of commits that are still to come."""
    world.parent.mkdir(parents=True)
    git = Git(world.parent)
    git.run("clone", "--quiet", "--shared", "--no-tags", "--no-checkout", str(clone.resolve()), str(world))
    git = Git(world)
    newest = git.head
    git.run("checkout", "--quiet", "--force", "--detach", newest)
    for ref in git.run("for-each-ref", "--format=%(refname)").split():
        git.run("update-ref", "--no-deref", "-d", ref)
    git.run("remote", "set-url", "origin", f"https://github.com/{repository}.git")
    return newest


def first_time(git: Git, newest: str) -> int:
    return min(git.when(commit) for commit in git.run("rev-list", "--max-parents=0", newest).split())


class Agent:
    """Somebody who has this memory and asks it, through the command line."""

    def __init__(self, workspace: Path, checkout: Path) -> None:
        self.workspace = workspace
        self._home = workspace.parent / "home"
        self._home.mkdir(exist_ok=True)
        workspace.mkdir()
        self._checkout = checkout

    def prepare(self) -> None:
        self._run("init", str(self.workspace), "--repo", str(self._checkout))
        self._run("index", "-w", str(self.workspace))
        self._run("verify", "-w", str(self.workspace), "--json")

    def ask(self, question: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._run("search", "-w", str(self.workspace), "--json", "--", question))
        return answer

    def _run(self, *words: str) -> str:
        environment = {
            **os.environ,
            "HOME": str(self._home),
            "TRUEKEEP_MACHINE_ID": "bench",
            "TRUEKEEP_NO_BACKGROUND": "1",
        }
        done = subprocess.run(
            [sys.executable, "-m", "truekeep", *words], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CannotRun(f"truekeep {words[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout


def show(counts: dict[Key, Count], ran: dict[str, int]) -> None:
    for half in ran:
        print(f"\n{half}: {ran[half]} repositories")
        rows = []
        for months in (*MONTHS, 0):
            for arm in ARMS:
                count = Count()
                for key, one in counts.items():
                    if key.half == half and key.arm == arm and months in (key.months, 0):
                        count.add(one)
                rows.append([arm, str(months or "all"), *_cells(count)])
                if half == "report" and not months:
                    keep(f"outcome.{arm.replace(' ', '-')}", share_false(count), f"{acted(count):,} names acted on")
        table(HEADERS, rows)


def acted(count: Count) -> int:
    return count.false + count.true + count.arrived


def share_false(count: Count) -> float:
    return count.false / acted(count) if acted(count) else 0.0


def _cells(count: Count) -> list[str]:
    names = count.false + count.true + count.withheld + count.spared + count.arrived
    return [
        f"{names:,}",
        f"{count.false:,} ({share_false(count):.1%})",
        f"{count.true:,}",
        f"{count.withheld:,}",
        f"{count.arrived:,}",
        f"{count.read:,}",
    ]
