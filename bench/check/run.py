"""Measures `truekeep check` on public repositories: python -m bench check [--half HALF] [--shallow] [NAME …]

--replay measures what it says about each of their last commits (bench/check/replay.py), --speed how fast it is
(bench/check/speed.py).
--sheet FOLDER writes the alarms that nobody judged yet, --take FOLDER reads the judged sheets back.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bench.check import replay, speed
from bench.check.labels import (
    NOTHING,
    FoundAlarm,
    Label,
    Score,
    judge,
    load_labels,
    save_labels,
    score,
    sheet_row,
)
from bench.check.repositories import HALVES, PublicRepository, load_repositories
from bench.measure import scratch, table
from bench.promises import CannotRun, keep
from bench.real.workspaces import clones_folder, git

SETTINGS = ("high", "medium", "low")  # high is the default
PAGES = (".md", ".mdx", ".rst", ".markdown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One repository, checked at one setting after the other."""

    repository: PublicRepository
    claims: int
    alarms: tuple[FoundAlarm, ...]
    scores: Mapping[str, Score]
    wrong_links: tuple[str, ...]  # confirmed, and leading nowhere
    shallow: tuple[FoundAlarm, ...] | None  # alarms at the default setting in a clone of depth 1


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    folder = clones_folder()
    if folder is None:
        raise CannotRun("TRUEKEEP_BENCH_WORKSPACES names no folder of clones; bench/check/README.md says which")
    load = replay.load_replays if options.replay else load_repositories
    chosen = [one for one in load(options.half) if not options.names or one.name in options.names]
    if options.replay:
        replay.main(list(with_clones(chosen, folder)), options.sheet)
        return
    if options.speed:
        for repository, clone in with_clones([one for one in chosen if options.names or one.name == "django"], folder):
            speed.main(repository, clone)
        return
    if options.take:
        take_answers(chosen, options.take)
        return
    checked = [
        check(one, clone, options.sheet, with_shallow=options.shallow) for one, clone in with_clones(chosen, folder)
    ]
    if not checked:
        raise CannotRun(f"{folder} has none of the repositories that bench/check/repositories.toml names")
    for half in HALVES:
        if of_half := [one for one in checked if one.repository.half == half]:
            show_half(half, of_half)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench check", description=__doc__)
    parser.add_argument("names", nargs="*", help="names of repositories; all without")
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--shallow", action="store_true", help="also check a clone of depth 1")
    parser.add_argument("--replay", action="store_true", help="what each of the last 500 commits made false")
    parser.add_argument("--speed", action="store_true", help="CPU time and memory beside rg; on Django by default")
    parser.add_argument("--sheet", type=Path, help="write what has to be judged to FOLDER/OWNER+NAME.jsonl")
    parser.add_argument("--take", type=Path, help="read judged sheets from FOLDER")
    return parser.parse_args(arguments)


def with_clones(chosen: Sequence[PublicRepository], folder: Path) -> Iterator[tuple[PublicRepository, Path]]:
    for repository in chosen:
        clone = repository.find_clone(folder)
        if clone is None:
            print(f"left out: {repository.repository} is not in {folder}")
        else:
            yield repository, clone


def take_answers(chosen: Sequence[PublicRepository], sheets: Path) -> None:
    for repository in chosen:
        sheet = sheets / repository.label_file.name
        if not sheet.is_file():
            continue
        rows = [json.loads(line) for line in sheet.read_text(encoding="utf-8").splitlines()]
        fields = ("path", "line", "claim", "kind", "verdict", "right")
        new = [Label(**{field: row[field] for field in fields}) for row in rows if row["right"] is not None]
        save_labels(repository, [*new, *load_labels(repository)])
        print(f"{repository.name}: {len(new)} labels")


def check(repository: PublicRepository, clone: Path, sheets: Path | None, *, with_shallow: bool) -> Checked:
    with scratch() as folder:
        root = folder / repository.name
        repository.check_out(clone, root)
        report = run_check(root, folder / "home")
        alarms = tuple(alarms_of(report))
        labels = load_labels(repository)
        if sheets:
            write_sheet(sheets / repository.label_file.name, root, alarms, labels)
        shallow = None
        if with_shallow:
            alone = folder / "shallow" / repository.name
            alone.parent.mkdir()
            repository.check_out(clone, alone, is_shallow=True)
            shallow = tuple(alarms_of(run_check(alone, folder / "home-of-shallow")))
        return Checked(
            repository=repository,
            claims=report["claims"],
            alarms=alarms,
            scores={setting: score(at_least(alarms, setting), labels) for setting in SETTINGS},
            wrong_links=tuple(wrong_links(root, folder / "home")),
            shallow=shallow,
        )


def run_check(root: Path, home: Path) -> dict[str, Any]:
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "truekeep", "check", "--confidence", "low", "--json"],
        cwd=root,
        env={**kept, "HOME": str(home)},
        capture_output=True,
        text=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)["report"]
    return report


def alarms_of(report: Mapping[str, Any]) -> Iterator[FoundAlarm]:
    for alarm in report["alarms"]:
        yield FoundAlarm(**{field: alarm[field] for field in FoundAlarm.__dataclass_fields__})


def at_least(alarms: Sequence[FoundAlarm], setting: str) -> list[FoundAlarm]:
    return [alarm for alarm in alarms if SETTINGS.index(alarm.confidence) <= SETTINGS.index(setting)]


def wrong_links(root: Path, home: Path) -> Iterator[str]:
    """The links that a check confirms although nothing is where they lead, by a resolver of our own."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "bench.check.confirmed_links", str(root)],
        env={**kept, "HOME": str(home)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    files = set(git("-C", str(root), "ls-files", "-z").split("\0"))
    folders = {parent for file in files for parent in parents_of(file)}
    for path, line, target in json.loads(done.stdout):
        if not leads_somewhere(path, target, files | folders):
            yield f"{path}:{line} {target}"


def parents_of(file: str) -> Iterator[str]:
    while file := posixpath.dirname(file):
        yield file


def leads_somewhere(document: str, target: str, known: set[str]) -> bool:
    plain = unquote(target.partition("#")[0].partition("?")[0])
    starts = [""] if plain.startswith("/") else [posixpath.dirname(document)]
    if plain.startswith("/") and document.endswith(".rst"):
        starts += parents_of(document)  # Sphinx counts from the folder of its sources
    paths = [posixpath.normpath(posixpath.join(start, plain.lstrip("/"))) for start in starts]
    stems = [path.removesuffix(".html") for path in paths]
    stems += [posixpath.dirname(path) for path in paths if path.endswith("/index.html")]  # README.md is made into it
    endings = ("", *PAGES, *(f"/{name}{page}" for name in ("index", "README", "_index") for page in PAGES))
    return any(path in known or path == "." for path in paths) or any(
        stem + ending in known for stem in stems for ending in endings
    )


def write_sheet(file: Path, root: Path, alarms: Sequence[FoundAlarm], labels: Sequence[Label]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for alarm in alarms:
        if judge(alarm, labels) is None:
            lines = (root / alarm.path).read_bytes().decode("utf-8", "replace").split("\n")
            rows.append(json.dumps(sheet_row(alarm, lines[alarm.line - 1]), ensure_ascii=False) + "\n")
    file.write_text("".join(rows), encoding="utf-8")


def show_half(half: str, checked: Sequence[Checked]) -> None:
    print(f"\n{half}")
    rows = [row_of(one.repository.name, [one]) for one in checked] + [row_of("all", checked)]
    settings = [f"right {setting}" for setting in SETTINGS] + [f"found {setting}" for setting in SETTINGS]
    table(("repository", "claims", *settings, "wrong in 2,000", "wrong links", "shallow"), rows)
    print("right/judged alarms; +n: not judged yet. found/known false references of documents that were read.")
    print("shallow: alarms of the default setting that a clone of depth 1 raises as well")
    for one in checked:
        for link in one.wrong_links:
            print(f"confirmed, and leads nowhere: {one.repository.name} {link}")
    if half == "fresh":
        keep_promises(checked)


def row_of(name: str, checked: Sequence[Checked]) -> tuple[str, ...]:
    scores = totals(checked)
    claims = sum(one.claims for one in checked)
    rights = [
        f"{one.right}/{one.right + one.wrong}" + (f"+{one.unlabelled}" if one.unlabelled else "")
        for one in scores.values()
    ]
    founds = [f"{one.found}/{one.known}" for one in scores.values()]
    kept, asked = kept_in_shallow(checked)
    wrong = f"{wrong_in_2000(checked):.2f}" if claims else "–"
    links = str(sum(len(one.wrong_links) for one in checked))
    return (name, str(claims), *rights, *founds, wrong, links, f"{kept}/{asked}" if asked else "–")


def totals(checked: Sequence[Checked]) -> dict[str, Score]:
    return {setting: sum((one.scores[setting] for one in checked), NOTHING) for setting in SETTINGS}


def wrong_in_2000(checked: Sequence[Checked]) -> float:
    claims = sum(one.claims for one in checked)
    return 2000 * totals(checked)[SETTINGS[0]].wrong / claims if claims else 0.0


def kept_in_shallow(checked: Sequence[Checked]) -> tuple[int, int]:
    """How many of the right alarms at the default setting a clone of depth 1 raises as well, and of how many."""
    kept = asked = 0
    for one in checked:
        if one.shallow is None:
            continue
        labels = load_labels(one.repository)
        places = {(alarm.path, alarm.line, alarm.claim) for alarm in at_least(one.shallow, SETTINGS[0])}
        wanted = [alarm for alarm in at_least(one.alarms, SETTINGS[0]) if judge(alarm, labels) is not False]
        asked += len(wanted)
        kept += sum((alarm.path, alarm.line, alarm.claim) in places for alarm in wanted)
    return kept, asked


def keep_promises(checked: Sequence[Checked]) -> None:
    default = totals(checked)[SETTINGS[0]]
    keep("check.wrong", wrong_in_2000(checked))
    keep("check.links", sum(len(one.wrong_links) for one in checked))
    if default.share_right is not None:
        keep("check.right", default.share_right)
    if default.share_found is not None:
        keep("check.found", default.share_found)
    kept, asked = kept_in_shallow(checked)
    if asked:
        keep("check.shallow", kept / asked)
