"""Upkeep: a night in which nothing changed beside one look at every file; doubles, the survey, and how good they are.

The store is made up, the same one every time: cards about services, logs with tagged entries, an index that fits. A
night is what the scheduled job does about memory: decay, doubles, promotion, reconciliation without a fresh check of
code. The look that it stands beside is what no upkeep can do without: scandir and stat of every file.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

from tests.support.helpers import git_repo
from tests.support.lore import (
    AREAS,
    FACTS,
    PEOPLE,
    PLACES,
    ROLES,
    THING_LIST,
    WORDS,
    a_fact,
    a_thing,
    services,
    wordings,
)

from bench.doubles import SETS, Text, pairs
from bench.measure import apart, cpu_of, least, scratch, table
from bench.promises import keep
from bench.prose import Prose
from truekeep.core.formats import SURVEY
from truekeep.core.sqlite import remove_database
from truekeep.integrations.schedule.run import plan_upkeep
from truekeep.maintenance.duplicates import Sense, compare_fresh, find_doubles
from truekeep.maintenance.survey.service import Survey
from truekeep.workspace.workspace import Workspace

CARDS = "memory/cards"
NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
ROUNDS = 7
SIZES = (1_000, 3_000, 10_000)
HARD_SIZES = (1_000, 10_000)
LARGE = 10_000
REPOSITORIES = 20
NOISE = 400  # other cards beside the labelled pairs


def make_repositories(folder: Path, workspace: Path) -> None:
    """Checkouts with instruction files, as the configuration names them."""
    for number in range(REPOSITORIES):
        repo = git_repo(folder / "repos" / f"app-{number}", remote=f"https://github.com/acme/app-{number}.git")
        (repo / "CLAUDE.md").write_text(f"# app-{number}\n\nRun the tests before every push.\n")
    (workspace / ".truekeep" / "config.toml").write_text(f'repositories = ["{folder}/repos/*"]\n')


def fill(workspace: Path, cards: int, *, logs: int = 120) -> None:
    """A memory in which everything is in order: no two cards say the same, no line is missing, nothing is due."""
    random = Random(f"upkeep {cards}")
    known = services(random, len(AREAS) * len(ROLES))
    (workspace / CARDS).mkdir(parents=True, exist_ok=True)
    truth: dict[object, str] = {}
    lines = []
    for number in range(cards):
        service = random.choice(known)
        topic = f"{service.name} {number}: {random.choice(WORDS)} {random.choice(THING_LIST)} ({random.choice(PLACES)})"
        facts = random.sample(range(len(FACTS)), random.randint(3, 6))
        said = [a_fact(random, service, random.choice(known), fact).worded(random.randrange(2)) for fact in facts]
        thing = a_thing(random, service)
        said.append(thing.say(truth.setdefault(thing, thing.value(random)), random.choice(wordings(thing.kind))))
        day = date(2026, 11, 1) - timedelta(days=random.randint(0, 80))
        repository = f"github.com/acme/app-{number % REPOSITORIES}" if number % 3 else ""
        write_card(workspace, f"{service.slug}-{number}", topic, said, day, repository)
        lines.append(f"- [{topic}]({CARDS}/{service.slug}-{number}.md)\n")
    (workspace / "MEMORY.md").write_text("# Memory\n\n## Cards\n\n" + "".join(lines))
    for number in range(logs):
        day = NOW.date() - timedelta(days=number)
        said = [a_fact(random, service, random.choice(known), number % len(FACTS)).worded(0) for service in known[:12]]
        random.shuffle(known)
        tagged = "".join(f"- [note|i=0.{random.randint(1, 7)}] {line}\n" for line in said)
        (workspace / "memory" / f"{day}.md").write_text(f"# {day}\n\n{tagged}\nSaw {random.choice(PEOPLE)} at noon.\n")
    long_ago = time.time() - 3600
    for folder, _, names in os.walk(workspace):
        for name in names:
            if name.endswith(".md"):
                os.utime(os.path.join(folder, name), (long_ago, long_ago))


def fill_prose(workspace: Path, cards: int) -> None:
    """Cards of made-up prose: words follow Zipf's law, and a larger store has more of them."""
    (workspace / CARDS).mkdir(parents=True, exist_ok=True)
    prose = Prose(60_000)
    for number in range(cards):
        title, _, *lines = prose.note(700).splitlines()
        write_card(workspace, f"note-{number}", title.lstrip("# "), [line for line in lines if line], date(2026, 10, 1))


def write_card(workspace: Path, name: str, topic: str, said: Sequence[str], day: date, repository: str = "") -> None:
    front = f'topic: "{topic}"\ncategory: notes\ncreated: {day}\nupdated: {day}\n'
    front += f"repository: {repository}\nwriter: claude\n" if repository else ""
    (workspace / CARDS / f"{name}.md").write_text(f"---\n{front}---\n\n" + "".join(f"- {line}\n" for line in said))


def opened(workspace: Path) -> Workspace:
    return Workspace.open(workspace, now=lambda: NOW)


def night(workspace: Path) -> None:
    """What the scheduled job does about memory, in a process that has just opened it."""
    with opened(workspace) as desk:
        for _, step in plan_upkeep(desk):
            problem = step().problem
            if problem:
                raise SystemExit(f"upkeep: {problem}")


def look(workspace: Path) -> int:
    """One look at every file: scandir and stat, and nothing else."""
    count, folders = 0, [str(workspace)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def unchanged(cards: int) -> tuple[float, float, int]:
    """CPU seconds of a look and of a night in which nothing changed, and the number of files."""
    with scratch() as folder:
        workspace = folder / "workspace"
        Workspace.init(workspace, now=lambda: NOW)
        make_repositories(folder, workspace)
        fill(workspace, cards)
        with opened(workspace) as desk:
            desk.verification.verify(changed=True, system=False)  # as the job does before upkeep
        time.sleep(2.5)  # until no file can change any more without its times moving
        night(workspace)
        time.sleep(2.5)
        night(workspace)  # finds nothing to do, and notes it
        spent = least(ROUNDS, {"look": lambda: look(workspace), "night": lambda: night(workspace)})
        return spent["look"], spent["night"], look(workspace)


def survey_costs(cards: int) -> tuple[float, float, float]:
    """CPU seconds of the first survey, of one after one card changed, and of one after nothing did."""
    with scratch() as folder:
        workspace = folder / "workspace"
        Workspace.init(workspace, now=lambda: NOW)
        fill(workspace, cards)
        time.sleep(2.5)
        cold = cpu_of(lambda: _refresh(workspace))
        changes = []
        path = next((workspace / CARDS).iterdir())
        for number in range(ROUNDS):
            path.write_text(f"{path.read_text()}- Line {number} of a person.\n")
            gc.collect()
            changes.append(cpu_of(lambda: _refresh(workspace)))
        time.sleep(2.5)
        _refresh(workspace)
        return cold, min(changes), least(ROUNDS, {"": lambda: _refresh(workspace)})[""]


def _refresh(workspace: Path) -> None:
    survey = Survey(str(workspace / ".truekeep"), str(workspace))
    survey.refresh()
    survey.close()


def doubles_cost(cards: int, *, is_prose: bool) -> tuple[float, int]:
    """CPU seconds of comparing all cards, each for the first time, and how many doubles there are."""
    with scratch() as folder:
        workspace = folder / "workspace"
        Workspace.init(workspace, now=lambda: NOW)
        if is_prose:
            fill_prose(workspace, cards)
        else:
            fill(workspace, cards, logs=0)
        state = workspace / ".truekeep"
        with opened(workspace) as desk:
            desk.search.index()
            read = desk.files.read_bytes
            times = []
            for _ in range(3 if cards < 5_000 else 2):
                remove_database(str(state / SURVEY.file))
                survey = Survey(str(state), str(workspace))
                survey.refresh()
                gc.collect()
                sense = Sense(str(state / "index.sqlite"))
                times.append(cpu_of(lambda: compare_fresh(survey, read, sense)))  # noqa: B023
                sense.close()
                found = len(find_doubles(survey))
                survey.close()
        return min(times), found


# How good the search of doubles is


def quality(*, vectors: bool) -> dict[tuple[str, bool], tuple[int, int, int]]:
    """By kind and half: labelled pairs that were found, all of them, and pairs that nobody labelled."""
    counted: dict[tuple[str, bool], tuple[int, int, int]] = {}
    every = pairs(SETS)
    for kind in dict.fromkeys(kind for kind, *_ in every):
        for is_held in (False, True):
            chosen = [pair for pair in every if pair[0] == kind][is_held::2]
            with scratch() as folder:
                counted[kind, is_held] = _found(folder / "workspace", [pair[1:3] for pair in chosen], vectors=vectors)
    return counted


def _found(workspace: Path, chosen: Sequence[tuple[Text, Text]], *, vectors: bool) -> tuple[int, int, int]:
    Workspace.init(workspace, now=lambda: NOW)
    fill(workspace, NOISE, logs=0)
    wanted = set()
    for number, (one, other) in enumerate(chosen):
        day = date(2026, 1, 1)
        write_card(workspace, f"a-{number}", one.topic, one.lines, day)
        write_card(workspace, f"b-{number}", other.topic, other.lines, day)
        wanted.add((f"{CARDS}/a-{number}.md", f"{CARDS}/b-{number}.md"))
    with opened(workspace) as desk:
        if vectors:
            desk.search.index()
        found = {(double.one, double.other) for double in desk.maintenance.duplicates(dry_run=True).doubles}
    return len(found & wanted), len(wanted), len(found - wanted)


def show_quality() -> None:
    same = {kind for kind, _, _, is_same in pairs(SETS[:1]) if is_same}
    for vectors in (True, False):
        counted = quality(vectors=vectors)
        rows = []
        for kind in dict.fromkeys(kind for kind, _ in counted):
            tuning, held = counted[kind, False], counted[kind, True]
            rows.append([kind, "yes" if kind in same else "no", f"{tuning[0]}/{tuning[1]}", f"{held[0]}/{held[1]}"])
        table(
            ["doubles by words and meaning" if vectors else "by words alone", "same", "tuning", "held out"],
            rows,
            left=2,
        )
        for name, is_held in (("tuning", False), ("held out", True)):
            true = sum(counted[kind, is_held][0] for kind in same)
            wanted = sum(counted[kind, is_held][1] for kind in same)
            false = sum(found[0] for (kind, half), found in counted.items() if half == is_held and kind not in same)
            false += sum(found[2] for (_, half), found in counted.items() if half == is_held)
            print(f"  {name}: precision {true / max(1, true + false):.3f}, recall {true / wanted:.3f}")
        print()


def show_unchanged() -> None:
    base, full, files = apart(unchanged, LARGE)
    rows = [
        [f"{LARGE:,} cards, {files:,} files", f"{base * 1000:.0f} ms", f"{full * 1000:.0f} ms", f"{full / base:.2f} x"]
    ]
    table(["a night in which nothing changed, CPU", "one look", "upkeep", "ratio"], rows)
    keep("upkeep.night", full / base, f"one look {base * 1000:.0f} ms, {files:,} files")
    print("  promised: at most 2 x\n")


def show_survey() -> None:
    cold, one, none = apart(survey_costs, LARGE)
    rows = [
        [f"{LARGE:,} cards", f"{cold:.1f} s", f"{one * 1000:.0f} ms", f"{none * 1000:.0f} ms", f"{cold / one:.0f} x"]
    ]
    table(["the survey, CPU", "first", "one card changed", "nothing changed", "first / one"], rows)
    print()


def show_doubles() -> None:
    for is_prose, what in ((True, "prose"), (False, "a few hundred words for all cards")):
        rows = []
        first = 0.0
        for cards in SIZES if is_prose else HARD_SIZES:
            spent, found = apart(doubles_cost, cards, is_prose=is_prose)
            first = first or spent / cards
            growth = f"{spent / cards / first:.2f} x"
            if is_prose and cards == LARGE:
                keep("upkeep.doubles", spent / cards / first, f"{first * 1e6:.0f} us a card of 1,000")
            rows.append([f"{cards:,} cards", f"{spent:.2f} s", f"{spent / cards * 1e6:.0f} us", growth, str(found)])
        table([f"doubles, all cards anew, CPU: {what}", "all", "each", "each, to 1,000", "found"], rows)
        print("  promised: near-linear\n" if is_prose else "  the hardest case: no word is rare\n")


PARTS: dict[str, Callable[[], None]] = {
    "unchanged": show_unchanged,
    "survey": show_survey,
    "doubles": show_doubles,
    "quality": show_quality,
}


def main(options: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench upkeep")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part of it")
    for part in parser.parse_args(options).only or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
