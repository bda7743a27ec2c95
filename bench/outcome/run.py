"""Does verified memory keep agents from being wrong: python -m bench outcome [--half tuning|report] [--name NAME …].

Memory is what the people of a repository had written two years ago: documents and messages of commits. The world is
the same repository 3, 6, 12 and 24 months later. What people did next is asked in their own words; an agent reads the
first 4,000 characters of the answer, and acts on the names in them. Git says which of these names are still so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import scratch, table
from bench.outcome.arms import Count, Name, as_written, by_truekeep, judge_act, known_names, plain_check, read_answer
from bench.outcome.memory import MONTH, issue_questions, questions, write_memory
from bench.promises import CannotRun, keep
from bench.real.workspaces import PublicWorkspace, clones_folder
from bench.truth.git import Git, Incomplete
from bench.truth.judge import Judge
from bench.truth.world import World

MONTHS = (3, 6, 12, 24)
ARMS = ("believed", "plain check", "truekeep")
SOURCES = {
    "all": "all of them",
    "commit": "subjects of later commits",
    "report": "issues, as the commits that close them describe them",
    "issue": "titles of later issues",
}
HEADERS = ("", "months", "names", "false", "95 %", "true", "withheld", "95 %", "moved", "arrived", "characters")
ROUNDS = 2_000  # resamplings of the repositories
ASKING = "import sys; from bench.outcome.ask import main; main(sys.argv[1])"

Answer = dict[str, Any]  # months, source, question, read, told, and the names with what each arm did


class Result(NamedTuple):
    """All answers about one repository."""

    repository: str
    half: str
    answers: list[Answer]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench outcome")
    parser.add_argument("--half", choices=("tuning", "report"))
    parser.add_argument("--name", action="append", default=[], help="owner/name of a repository; may be repeated")
    parser.add_argument("--results", type=Path, help="folder for what was measured; what is in it is not run again")
    options = parser.parse_args(arguments)
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones")
    results = []
    for repository, half in chosen(options.half, options.name):
        clone = PublicWorkspace(repository=repository, commit="", half=half).find_clone(folder)
        if clone is None:
            print(f"{repository}: left out; no clone of it")
            continue
        began = time.monotonic()
        issues = folder / f"{repository.replace('/', '+')}.issues.json"
        try:
            answers = keep_answers(options.results, repository, partial(measure, repository, clone, issues))
        except Incomplete as problem:
            print(f"{repository}: left out; {str(problem).splitlines()[0]}", flush=True)
            continue
        results.append(Result(repository, half, answers))
        print(f"{repository}: {len(answers)} answers, {time.monotonic() - began:.0f} s", flush=True)
    show(results)


def keep_answers(folder: Path | None, repository: str, make: Callable[[], Iterable[Answer]]) -> list[Answer]:
    """What `make` finds, or what it found an earlier time, if there is a folder for that."""
    if folder is None:
        return list(make())
    path = folder / f"{repository.replace('/', '+')}.json"
    if not path.exists():
        answers = list(make())
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(answers, indent=1), encoding="utf-8")
        part.replace(path)
    kept: list[Answer] = json.loads(path.read_text(encoding="utf-8"))
    return kept


def chosen(half: str | None, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    tables = tomllib.loads((Path(__file__).parent / "repositories.toml").read_text(encoding="utf-8"))
    for which, entry in tables.items():
        for repository in entry["repositories"]:
            if half in (None, which) and (not names or repository in names):
                yield repository, which


def measure(repository: str, clone: Path, issues: Path) -> Iterator[Answer]:
    """What each arm did with each name, at each age of the memory."""
    with scratch() as base:
        checkout = base / "repos" / repository.partition("/")[2]
        newest = copy_clone(clone, checkout, repository)
        git = Git(checkout)
        unit = min(MONTH, (git.when(newest) - first_time(git, newest)) // 36)
        begin = git.before(git.when(newest) - (max(MONTHS) + 3) * unit)
        if begin is None:
            raise Incomplete("its history is too short")
        old = World(git, begin, base / "old")
        for months in MONTHS:
            git.run("checkout", "--quiet", "--force", "--detach", newest)
            later = git.before(git.when(begin) + months * unit) or newest
            asked = [*questions(git, later, newest), *issue_questions(issues, git.when(later))]
            git.run("checkout", "--quiet", "--force", "--detach", later)
            git = old.git = Git(checkout)  # what it remembers is of another commit
            judge = Judge(old, World(git, "HEAD", base / f"new-{months}"), f"outcome/1:{months}")
            known = known_names(list(judge.name_facts()))
            agent = Agent(base / f"memory-{months}", checkout)
            write_memory(judge, repository, agent.workspace)
            agent.prepare()
            check = plain_check(judge.new)
            for question, answer in zip(asked, agent.ask([one.text for one in asked]), strict=True):
                names, characters, told = read_answer(answer, known)
                yield {
                    "months": months,
                    "source": question.source,
                    "question": question.text,
                    "read": characters,
                    "told": told,
                    "names": [describe(name, (as_written, check, by_truekeep)) for name in names],
                }


def describe(name: Name, acts: Sequence[Callable[[Name], str]]) -> dict[str, Any]:
    """One name as it is kept, for the tables and for whoever judges the bench."""
    fact, verdict = name.fact, name.verdict or {}
    return {
        "text": name.text,
        "file": name.path,
        "line": name.line,
        "kind": fact.kind,
        "fact": [fact.verdict, fact.where, fact.why],
        "verdict": [verdict.get(key, "") for key in ("verdict", "reason", "place", "why")],
        "acts": {arm: judge_act(name, act(name)) for arm, act in zip(ARMS, acts, strict=True)},
    }


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
    return git.when(git.run("rev-list", "--first-parent", newest).split()[-1])


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

    def ask(self, asked: Sequence[str]) -> list[dict[str, Any]]:
        lines = "".join(f"{json.dumps(question)}\n" for question in asked)
        said = self._program("-c", ASKING, str(self.workspace), given=lines)
        return [json.loads(line) for line in said.splitlines()]

    def _run(self, *words: str) -> str:
        return self._program("-m", "truekeep", *words)

    def _program(self, *words: str, given: str = "") -> str:
        environment = {
            **os.environ,
            "HOME": str(self._home),
            "TRUEKEEP_MACHINE_ID": "bench",
            "TRUEKEEP_NO_BACKGROUND": "1",
        }
        done = subprocess.run(
            [sys.executable, *words], input=given, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise CannotRun(f"{words[:3]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout


def show(results: Sequence[Result]) -> None:
    for half in dict.fromkeys(one.half for one in results):
        some = [one for one in results if one.half == half]
        for source, said in SOURCES.items():
            counts = [count_acts(one.answers, source) for one in some]
            if any(counts):
                asked = sum(source in ("all", answer["source"]) for one in some for answer in one.answers)
                print(f"\n{half}: {len(some)} repositories, {asked:,} questions, {said}")
                table(HEADERS, list(rows(counts)))
                different = ", ".join(f"{arm} {len(false_names(some, arm, source))}" for arm in ARMS)
                print(f"different names acted on falsely: {different}")
                if half == "report" and source == "all":
                    promise(counts)


Key = tuple[str, int]  # arm, months; 0 for all
Counts = dict[Key, Count]


def count_acts(answers: Sequence[Answer], source: str) -> Counts:
    """What each arm did at each age, for one repository."""
    found: Counts = {}
    for answer in answers:
        if source not in ("all", answer["source"]):
            continue
        for arm in ARMS:
            count = Count(read=answer["read"] + (answer["told"] if arm == "truekeep" else 0))
            for name in answer["names"]:
                what = name["acts"][arm]
                setattr(count, what, getattr(count, what) + 1)
                count.moved += name["fact"][0] == "moved"
            for months in (answer["months"], 0):
                found.setdefault((arm, months), Count()).add(count)
    return found


def false_names(results: Sequence[Result], arm: str, source: str) -> set[tuple[str, str]]:
    """Repository and name, each once however many answers it was in."""
    return {
        (one.repository, name["text"])
        for one in results
        for answer in one.answers
        for name in answer["names"]
        if source in ("all", answer["source"]) and name["acts"][arm] == "false"
    }


def rows(counts: Sequence[Counts]) -> Iterator[list[str]]:
    for months in (*MONTHS, 0):
        for arm in ARMS:
            each = [one[arm, months] for one in counts if (arm, months) in one]
            count = total(each)
            yield [
                arm,
                str(months or "all"),
                f"{names(count):,}",
                f"{count.false:,} ({share_false(count):.1%})",
                interval(each, share_false),
                f"{count.true:,}",
                f"{count.withheld:,} ({share_withheld(count):.1%})",
                interval(each, share_withheld),
                f"{count.moved:,}",
                f"{count.arrived:,}",
                f"{count.read:,}",
            ]


def promise(counts: Sequence[Counts]) -> None:
    for arm in ARMS:
        count = total([one[arm, 0] for one in counts if (arm, 0) in one])
        keep(f"outcome.{arm.replace(' ', '-')}", share_false(count), f"{acted(count):,} names acted on")


def total(counts: Iterable[Count]) -> Count:
    found = Count()
    for count in counts:
        found.add(count)
    return found


def interval(counts: Sequence[Count], share: Callable[[Count], float]) -> str:
    """The middle 95 % of the share when the repositories are drawn again: names of one repository are alike."""
    if not counts:
        return ""
    draw = random.Random(27)
    shares = sorted(share(total(draw.choices(counts, k=len(counts)))) for _ in range(ROUNDS))
    return f"{shares[ROUNDS // 40]:.1%} to {shares[-ROUNDS // 40 - 1]:.1%}"


def names(count: Count) -> int:
    return count.false + count.true + count.withheld + count.spared + count.arrived


def acted(count: Count) -> int:
    return count.false + count.true + count.arrived


def share_false(count: Count) -> float:
    return count.false / acted(count) if acted(count) else 0.0


def share_withheld(count: Count) -> float:
    known = count.true + count.withheld
    return count.withheld / known if known else 0.0
