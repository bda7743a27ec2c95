"""The same jobs with others that keep memory for agents: Brigade, QMD and OpenClaw, where they are installed.

They are looked for in the folders that TRUEKEEP_BENCH_PEERS names (their bin/ and node_modules/.bin/), in what `make
harnesses` installed, and on PATH; docs/benchmarks.md says how to get them. Each has a home of its own and no network.
CPU time is of the program and of all that it starts. What a peer cannot do without a download is said, not guessed.

Quality is asked of all for the same questions: those of the memory set whose answers every one of them reads. A peer
that names a file and no lines is given the whole file, which is in its favour.

python -m bench peers [--handoffs 1000] [--notes 1000] [--questions 60] [--only ingest|search|recall …]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from tests.support.harnesses import FOLDER as HARNESSES

from bench import sets
from bench.corpus import Corpus, Question
from bench.ingest import INBOX, fill
from bench.measure import Spent, median, scratch, table, watch
from bench.promises import CannotRun, keep, tell_peer
from bench.recall_quality import by_ours, indexed, sample
from bench.recall_speed import SETTLED, milliseconds, write_notes
from bench.score import Hit, Scores, score, score_all
from truekeep.search.embedders.static import Static
from truekeep.workspace.workspace import Workspace

TRUEKEEP = (sys.executable, "-m", "truekeep")
SEARCHES = 5
LIMIT = 10
LAST_LINE = 1 << 30
OPENCLAW_SETTINGS = {  # words only, with nothing switched on that works in the background
    "memory": {"search": {"provider": "none", "rememberAcrossConversations": False}},
    "plugins": {"entries": {"memory-core": {"config": {"dreaming": {"enabled": False}}}}},
}
OPENCLAW_ASK = """
import { readFileSync } from "node:fs";
const [folder, settings, least] = process.argv.slice(2);
const { getMemorySearchManager } = await import(folder + "/dist/extensions/memory-core/runtime-api.js");
const got = await getMemorySearchManager({ cfg: JSON.parse(readFileSync(settings)), agentId: "main", purpose: "cli" });
const found = [];
for (const question of JSON.parse(readFileSync(0))) {
  const options = { maxResults: 10, ...(least === "" ? {} : { minScore: Number(least) }) };
  found.push((await got.manager.search(question, options)).map((hit) => [hit.path, hit.startLine, hit.endLine]));
}
process.stdout.write("\\n" + JSON.stringify(found) + "\\n", () => process.exit(0));
"""


class Peers(NamedTuple):
    """Where the programs are that this machine has."""

    programs: Mapping[str, str]
    path: str  # PATH for them: some need a newer Node than the system's

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        home.mkdir(parents=True, exist_ok=True)
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}
        return {**own, "PATH": self.path, "OPENCLAW_STATE_DIR": str(home / ".openclaw"), **more}


def find_peers() -> Peers:
    folders = [Path(name) for name in os.environ.get("TRUEKEEP_BENCH_PEERS", "").split(os.pathsep) if name]
    places = [str(folder / inner) for folder in (*folders, HARNESSES) for inner in ("bin", "node_modules/.bin")]
    path = os.pathsep.join([*places, os.environ["PATH"]])
    found = {name: shutil.which(name, path=path) for name in ("brigade", "qmd", "openclaw")}
    return Peers({name: place for name, place in found.items() if place}, path)


def version_of(peers: Peers, name: str) -> str:
    with scratch() as home:
        done = subprocess.run(
            [peers.programs[name], "--version"],
            env={**os.environ, **peers.environment(home)},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    if done.returncode or not found:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotRun(f"{name} is installed and does not start: {said[0][:100] if said else done.returncode}")
    return f"{name} {found[0]}"


# A thousand handoffs


def bench_ingest(peers: Peers, folder: Path, count: int) -> None:
    """Ours and Brigade's in turns, a quarter of the handoffs first, which shows the growth."""
    rows = []
    for number in (count // 4, count):
        ours = ingest_ours(folder / f"ours-{number}", number)
        rows.append(
            ["truekeep", f"{number:,}", f"{ours.cpu:.2f} s", f"{ours.wall:.1f} s", f"{ours.peak / 1024:.0f} MB"]
        )
        if "brigade" in peers.programs:
            other = ingest_brigade(peers, folder / f"brigade-{number}", number)
            cells = [f"{number:,}", f"{other.cpu:.2f} s", f"{other.wall:.1f} s", f"{other.peak / 1024:.0f} MB"]
            rows.append(["brigade", *cells])
            if number == count:
                tell_peer("peers.ingest", f"Brigade {other.cpu:.0f} s")
    table(["handoffs in a new process", "", "CPU", "wall", "peak"], rows)
    keep("peers.ingest", ours.cpu, f"{count:,} handoffs")


def ingest_ours(folder: Path, count: int) -> Spent:
    Workspace.init(folder / "workspace")
    fill(folder / "repo", count)
    root, repo = str(folder / "workspace"), str(folder / "repo")
    return watch([*TRUEKEEP, "ingest", "-w", root, "-q", "--repo", repo], HOME=str(folder))


def ingest_brigade(peers: Peers, folder: Path, count: int) -> Spent:
    environment = peers.environment(folder / "home")
    root, program = folder / "workspace", peers.programs["brigade"]
    root.mkdir(parents=True)
    watch(
        [program, "init", "--target", str(root), "--depth", "workspace", "--harnesses", "claude", "--no-wire"],
        **environment,
    )
    fill(root, count)
    spent = watch([program, "ingest", "--target", str(root), "--promote-cards", "--route-documents"], **environment)
    left = list((root / INBOX).glob("2*.md"))
    if left:
        raise SystemExit(f"brigade left {len(left)} handoffs where they were")
    return spent


# A search in a new process


class Way(NamedTuple):
    """One program on a folder of notes."""

    environment: dict[str, str]
    prepare: list[list[str]]
    search: Callable[[str], list[str]]


def bench_search(peers: Peers, folder: Path, count: int) -> None:
    notes = folder / "notes"
    questions = write_notes(notes, count)[:SEARCHES]
    time.sleep(SETTLED)
    ways = {"truekeep": our_way(notes), **{name: WAYS[name](peers, folder / name, notes) for name in peers.programs}}
    indexed_in: dict[str, float] = {}
    asked: dict[str, list[Spent]] = {}
    for name, way in ways.items():
        indexed_in[name] = sum(watch(command, **way.environment).cpu for command in way.prepare)
    for question in questions:  # in turns
        for name, way in ways.items():
            asked.setdefault(name, []).append(watch(way.search(question), **way.environment))
    rows = []
    for name, spent in asked.items():
        cpu = [one.cpu for one in spent]
        least, usual, peak = min(cpu), median(cpu), max(one.peak for one in spent)
        index = f"{indexed_in[name]:.2f} s" if ways[name].prepare else "none"
        wall = median([one.wall for one in spent])
        rows.append(
            [name, index, milliseconds(least), milliseconds(usual), milliseconds(wall), f"{peak / 1024:.0f} MB"]
        )
        if name == "truekeep":
            keep("peers.index", indexed_in[name], "words and meaning")
            keep("peers.search", usual * 1000, "words and meaning, every file looked at first")
        else:
            tell_peer("peers.search", f"{LABELS[name]} {milliseconds(usual)}")
            if ways[name].prepare:
                tell_peer("peers.index", f"{LABELS[name]} {indexed_in[name]:.1f} s")
    table([f"{count:,} notes", "index, CPU", "search, CPU, least", "median", "wall", "memory"], rows)


def our_way(notes: Path) -> Way:
    Workspace.init(notes)
    root = str(notes)
    return Way(
        {"HOME": str(notes.parent / "home"), "TRUEKEEP_NO_BACKGROUND": "1"},
        [[*TRUEKEEP, "index", "-w", root]],
        lambda question: [*TRUEKEEP, "search", "-w", root, "-n", "5", question],
    )


def qmd_way(peers: Peers, folder: Path, notes: Path) -> Way:
    """BM25: the rest wants models that are downloaded."""
    program = peers.programs["qmd"]
    add = [program, "collection", "add", str(notes), "--name", "bench"]
    return Way(peers.environment(folder), [add], lambda question: [program, "search", question, "-n", "5"])


def openclaw_way(peers: Peers, folder: Path, notes: Path) -> Way:
    program = peers.programs["openclaw"]
    environment = peers.environment(folder)
    state = Path(environment["OPENCLAW_STATE_DIR"])
    copy_notes(notes, state / "workspace")
    (state / "openclaw.json").write_text(json.dumps(OPENCLAW_SETTINGS))
    return Way(
        environment,
        [[program, "memory", "index", "--force"]],
        lambda question: [program, "memory", "search", question, "--max-results", "5"],
    )


def brigade_way(peers: Peers, folder: Path, notes: Path) -> Way:
    """It has no index, and reads cards only: every note is one."""
    program, root = peers.programs["brigade"], folder / "workspace"
    (root / "memory" / "cards").mkdir(parents=True)
    for path in notes.rglob("*.md"):
        shutil.copyfile(path, root / "memory" / "cards" / flat(str(path.relative_to(notes))))
    return Way(
        peers.environment(folder / "home"),
        [],
        lambda question: [program, "memory", "search", question, "--target", str(root), "--limit", "5"],
    )


def flat(path: str) -> str:
    return path.replace("/", "--")


def copy_notes(notes: Path, target: Path) -> None:
    """The memory of a workspace, without anybody's state."""
    for path in notes.rglob("*.md"):
        place = target / path.relative_to(notes)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


WAYS: dict[str, Callable[[Peers, Path, Path], Way]] = {
    "qmd": qmd_way,
    "openclaw": openclaw_way,
    "brigade": brigade_way,
}
LABELS = {"qmd": "QMD (words)", "openclaw": "OpenClaw (words)", "brigade": "Brigade"}


# How good


def bench_recall(peers: Peers, folder: Path, most: int) -> None:
    (corpus,) = sets.memory_set()
    questions = choose(corpus, most)
    notes = folder / "notes"
    for path, text in corpus.files.items():
        (notes / path).parent.mkdir(parents=True, exist_ok=True)
        (notes / path).write_text(text, encoding="utf-8")
    asking: dict[str, Callable[[], list[list[Hit]]]] = {"truekeep": lambda: ask_ours(corpus, questions, folder)}
    if "qmd" in peers.programs:
        asking["QMD, BM25"] = lambda: ask_qmd(peers, folder / "qmd", notes, questions)
    if "openclaw" in peers.programs:
        asking["OpenClaw, words"] = lambda: ask_openclaw(peers, folder / "openclaw", notes, questions, "")
        asking["OpenClaw, words, no cut-off"] = lambda: ask_openclaw(peers, folder / "openclaw", notes, questions, "0")
    if "brigade" in peers.programs:
        asking["Brigade"] = lambda: ask_brigade(peers, folder / "brigade", notes, questions)
    scores: dict[str, Scores] = {}
    exact: dict[str, float] = {}
    rows = []
    for name, ask in asking.items():
        ranked = list(zip(questions, ask(), strict=True))
        scores[name] = score_all(ranked)
        found = [score(question.evidence, hits).recall_5 for question, hits in ranked if question.kind == "identifier"]
        exact[name] = sum(found) / max(1, len(found))
        empty = sum(not hits for _, hits in ranked)
        one = scores[name]
        shown = (one.recall_5, one.recall_10, one.mrr, one.ndcg_10, exact[name])
        rows.append([name, *(f"{value:.3f}" for value in shown), str(empty)])
    headers = ["recall@5", "recall@10", "MRR", "nDCG@10", "identifiers@5", "no hit"]
    table([f"memory set, {len(questions)} questions", *headers], rows)
    print("  by CLI, but for OpenClaw: its own search, asked from inside of Node")
    others = [name for name in asking if name != "truekeep"]
    for key, values in (("recall", {name: one.recall_5 for name, one in scores.items()}), ("identifier", exact)):
        best = max((values[name] for name in others), default=None)
        keep(f"peers.{key}", values["truekeep"], f"{len(questions)} questions asked of all", goal=best)
        for name in others:
            tell_peer(f"peers.{key}", f"{name} {values[name]:.3f}")


def choose(corpus: Corpus, most: int) -> list[Question]:
    """Questions of the part that is reported, with answers in files that each of them reads."""
    fit = [
        question
        for question in corpus.questions
        if question.part == "report" and all(item.path.startswith("memory/") for item in question.evidence)
    ]
    chosen = sample(fit, most)
    return [question for question in fit if question.id in chosen]


def ask_ours(corpus: Corpus, questions: Sequence[Question], folder: Path) -> list[list[Hit]]:
    with indexed(corpus, Static(lexicon=str(folder / "lexicon.bin"))) as memory:
        return [by_ours(memory, question.text)[:LIMIT] for question in questions]


def ask_qmd(peers: Peers, folder: Path, notes: Path, questions: Sequence[Question]) -> list[list[Hit]]:
    program, environment = peers.programs["qmd"], peers.environment(folder)
    said(environment, program, "collection", "add", str(notes), "--name", "bench")
    found = []
    for question in questions:
        text = said(environment, program, "search", question.text, "-n", str(LIMIT), "--format", "json")
        rows = json.loads(text[text.index("[") :]) if "[" in text else []
        names = [row["file"].removeprefix("qmd://bench/") for row in rows]
        found.append([Hit(name, 1, LAST_LINE, "") for name in names])
    return found


def ask_openclaw(peers: Peers, folder: Path, notes: Path, questions: Sequence[Question], least: str) -> list[list[Hit]]:
    program, environment = peers.programs["openclaw"], peers.environment(folder)
    state = Path(environment["OPENCLAW_STATE_DIR"])
    settings = state / "openclaw.json"
    if not settings.exists():
        copy_notes(notes, state / "workspace")
        settings.write_text(json.dumps(OPENCLAW_SETTINGS))
        said(environment, program, "memory", "index", "--force")
    package = str(Path(program).resolve().parent)
    (folder / "ask.mjs").write_text(OPENCLAW_ASK)
    given = json.dumps([question.text for question in questions])
    text = said(environment, "node", str(folder / "ask.mjs"), package, str(settings), least, given=given)
    rows = json.loads(text.strip().splitlines()[-1])
    return [[Hit(path, first, last, "") for path, first, last in hits] for hits in rows]


def ask_brigade(peers: Peers, folder: Path, notes: Path, questions: Sequence[Question]) -> list[list[Hit]]:
    way = brigade_way(peers, folder, notes)
    names = {flat(str(path.relative_to(notes))): str(path.relative_to(notes)) for path in notes.rglob("*.md")}
    root = str(folder / "workspace")
    found = []
    for question in questions:
        command = ["memory", "search", question.text, "--target", root, "--limit", str(LIMIT), "--json"]
        rows = json.loads(said(way.environment, peers.programs["brigade"], *command))["matches"]
        found.append([Hit(names[Path(row["path"]).name], 1, LAST_LINE, "") for row in rows])
    return found


def said(environment: Mapping[str, str], *command: str, given: str = "") -> str:
    done = subprocess.run(
        command, env={**os.environ, **environment}, input=given, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} {command[1]} ended with {done.returncode}: {done.stderr[-500:]}")
    return done.stdout


PARTS: dict[str, Callable[[Peers, Path, argparse.Namespace], None]] = {
    "ingest": lambda peers, folder, options: bench_ingest(peers, folder, options.handoffs),
    "search": lambda peers, folder, options: bench_search(peers, folder, options.notes),
    "recall": lambda peers, folder, options: bench_recall(peers, folder, options.questions),
}


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench peers", description="The same jobs with others.")
    parser.add_argument("--handoffs", type=int, default=1_000, metavar="N", help="(%(default)s)")
    parser.add_argument("--notes", type=int, default=1_000, metavar="N", help="(%(default)s)")
    parser.add_argument("--questions", type=int, default=60, metavar="N", help="at most (%(default)s)")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part; repeatable")
    options = parser.parse_args(arguments)
    peers = find_peers()
    usable = {}
    for name in peers.programs:
        try:
            print(version_of(peers, name))
            usable[name] = peers.programs[name]
        except CannotRun as problem:
            print(problem)
    if not usable:
        raise CannotRun("none of brigade, qmd and openclaw is installed (docs/benchmarks.md)")
    missing = [name for name in ("brigade", "qmd", "openclaw") if name not in usable]
    if missing:
        print(f"not installed, so not compared: {', '.join(missing)} (docs/benchmarks.md)")
    peers = peers._replace(programs=usable)
    for name in options.only or PARTS:
        print()
        with scratch() as folder, patch.dict(os.environ, TRUEKEEP_NO_BACKGROUND="1"):
            PARTS[name](peers, folder, options)


if __name__ == "__main__":
    main(sys.argv[1:])
