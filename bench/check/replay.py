"""Replays the last commits of public repositories: which lines of documents did each make false, and does check say so?

bench/check/rot.py finds rot without truekeep; each such commit is checked out and checked with --since its parent, and
so is a sample of the other commits that change code, for wrong alarms. An alarm that rot.py does not know is right if
a later commit of the repository took the name out of that line, or if a label says so.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.check.repositories import HERE, PublicRepository
from bench.check.rot import PAGES, History, Rot, find_rot, is_fixed_later
from bench.measure import scratch, table
from truekeep.check.documents import DEFAULT_EXCLUDE, DEFAULT_INCLUDE, without_older_versions
from truekeep.check.run import CheckRequest, run_check
from truekeep.check.settings import LOW, read_settings
from truekeep.core import git as git_budget
from truekeep.memory.ignore_rules import is_ignored, parse_ignore_rules

COMMITS = 500
OTHERS = 100  # commits without rot that are checked in each repository
SETTINGS = ("high", "medium", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLabel:
    """Whether a line of a document was false after a commit, by hand."""

    commit: str
    path: str
    line: int
    claim: str
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAlarm:
    commit: str
    path: str
    line: int
    claim: str
    kind: str
    verdict: str
    confidence: str
    why: str
    text: str  # of the line
    is_fixed_later: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One repository: what is known to be rot, and what check said."""

    repository: PublicRepository
    code_commits: int
    with_rot: int
    others: int  # checked of those without
    rot: tuple[Rot, ...]
    fixed: frozenset[int]  # of the rot, what a later commit repaired
    alarms: tuple[ReplayAlarm, ...]


def load_replays(half: str | None = None) -> list[PublicRepository]:
    entries = tomllib.loads((HERE / "replay.toml").read_text(encoding="utf-8"))["repository"]
    return [one for entry in entries if half in (None, (one := PublicRepository(**entry)).half)]


def label_file(repository: PublicRepository) -> Path:
    return HERE / "labels" / "replay" / repository.label_file.name


def load_labels(repository: PublicRepository) -> list[ReplayLabel]:
    file = label_file(repository)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [ReplayLabel(**json.loads(line)) for line in lines]


def main(chosen: Sequence[tuple[PublicRepository, Path]], sheets: Path | None) -> None:
    done = []
    for repository, clone in chosen:
        replayed = replay(repository, clone)
        done.append(replayed)
        print(f"{repository.name}: {len(replayed.rot)} lines, {len(replayed.alarms)} alarms", flush=True)
        if sheets:
            write_sheet(sheets / repository.label_file.name, replayed)
    for half in dict.fromkeys(one.repository.half for one in done):
        show(half, [one for one in done if one.repository.half == half])


def replay(repository: PublicRepository, clone: Path) -> Replayed:
    with scratch() as folder:
        root = folder / repository.name
        repository.check_out(clone, root)
        history = History(root)
        code = [commit for commit in history.commits(repository.commit, COMMITS) if changes_code(history, commit)]
        rot = {commit: find_rot(history, commit, read_pages(history, commit)) for commit in code}
        quiet = [commit for commit in code if not rot[commit]]
        sample = set(random.Random(repository.name).sample(quiet, min(OTHERS, len(quiet))))
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        alarms: list[ReplayAlarm] = []
        for commit in code:
            if rot[commit] or commit in sample:
                alarms += check_commit(history, repository.commit, commit, root)
        known = [one for some in rot.values() for one in some]
        later = enumerate(
            is_fixed_later(history, one.commit, repository.commit, one.path, one.text, one.name) for one in known
        )
        return Replayed(
            repository=repository,
            code_commits=len(code),
            with_rot=len(code) - len(quiet),
            others=len(sample),
            rot=tuple(known),
            fixed=frozenset(at for at, is_fixed in later if is_fixed),
            alarms=tuple(alarms),
        )


def changes_code(history: History, commit: str) -> bool:
    try:
        return any(not new.lower().endswith(PAGES) for _, _, new in history.statuses(commit))
    except RuntimeError:
        return False  # the first commit has no parent


@lru_cache(maxsize=100_000)
def is_page(path: str) -> bool:
    """Whether check reads a document without being asked: the scope is its own, what is false in it is not."""
    return path.lower().endswith(PAGES) and _is_in(path, DEFAULT_INCLUDE) and not _is_in(path, DEFAULT_EXCLUDE)


def _is_in(path: str, patterns: str) -> bool:
    rules = (parse_ignore_rules("", patterns),)
    parts = path.split("/")
    folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return is_ignored(path, rules, is_folder=False) or any(is_ignored(one, rules, is_folder=True) for one in folders)


def read_pages(history: History, commit: str) -> list[str]:
    return without_older_versions([path for path in history.tree(commit) if is_page(path)])


def check_commit(history: History, head: str, commit: str, root: Path) -> Iterator[ReplayAlarm]:
    git_budget._time_waited.clear()  # a run of hundreds of checks in one hour is no hanging repository
    subprocess.run(["git", "-C", str(root), "checkout", "--quiet", "--force", "--detach", commit], check=True)
    settings = replace(read_settings(root), confidence=LOW)
    report = run_check(CheckRequest(top=root, settings=settings, since=f"{commit}^1"))
    tree = history.tree(commit)
    for alarm in report.alarms:
        lines = history.lines(tree[alarm.path])
        text = lines[alarm.line - 1] if alarm.line <= len(lines) else ""
        name = alarm.claim.rstrip("()/").rpartition(".")[2] if alarm.kind == "method" else alarm.claim
        yield ReplayAlarm(
            commit=commit,
            path=alarm.path,
            line=alarm.line,
            claim=alarm.claim,
            kind=alarm.kind,
            verdict=alarm.verdict,
            confidence=alarm.confidence,
            why=alarm.why,
            text=text,
            is_fixed_later=is_fixed_later(history, commit, head, alarm.path, text, name),
        )


# --- What it says ----------------------------------------------------------------------------------------------------


def is_about(alarm: ReplayAlarm, rot: Rot) -> bool:
    same_place = (alarm.commit, alarm.path, alarm.line) == (rot.commit, rot.path, rot.line)
    own, other = alarm.claim.strip("./"), rot.name.strip("./")
    last = other.rpartition("/")[2]
    return same_place and (own in other or other in own or (rot.kind == "path" and last in own))


def labelled(labels: Sequence[ReplayLabel], commit: str, path: str, line: int, claim: str) -> bool | None:
    for label in labels:
        if (label.commit, label.path, label.line) == (commit, path, line) and (
            label.claim in claim or claim in label.claim
        ):
            return label.right
    return None


def is_right(alarm: ReplayAlarm, replayed: Replayed, labels: Sequence[ReplayLabel]) -> bool | None:
    by_hand = labelled(labels, alarm.commit, alarm.path, alarm.line, alarm.claim)
    if by_hand is not None:
        return by_hand
    if alarm.is_fixed_later or any(is_about(alarm, rot) for rot in replayed.rot):
        return True
    return None


def at_least(alarms: Sequence[ReplayAlarm], setting: str) -> list[ReplayAlarm]:
    return [one for one in alarms if SETTINGS.index(one.confidence) <= SETTINGS.index(setting)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayScore:
    known: int
    found: tuple[int, ...]  # by setting
    fixed: int  # of the known, what a later commit repaired
    found_fixed: int  # of those, by default
    right: int
    wrong: int
    unjudged: int
    wrong_per_100: float  # commits that change code; what nobody judged counts as wrong


def score(replayed: Replayed) -> ReplayScore:
    labels = load_labels(replayed.repository)
    rot = [
        (at, one)
        for at, one in enumerate(replayed.rot)
        if labelled(labels, one.commit, one.path, one.line, one.name) is not False
    ]
    found = {
        setting: {at for at, one in rot if any(is_about(alarm, one) for alarm in at_least(replayed.alarms, setting))}
        for setting in SETTINGS
    }
    shown = at_least(replayed.alarms, SETTINGS[0])
    answers = [(alarm, is_right(alarm, replayed, labels)) for alarm in shown]
    with_rot = {one.commit for one in replayed.rot}
    doubtful = [alarm.commit in with_rot for alarm, answer in answers if not answer]
    weight = (replayed.code_commits - replayed.with_rot) / replayed.others if replayed.others else 0.0
    wrong_in_all = sum(1.0 if is_in_rot else weight for is_in_rot in doubtful)
    fixed = {at for at, _ in rot} & replayed.fixed
    return ReplayScore(
        known=len(rot),
        found=tuple(len(found[setting]) for setting in SETTINGS),
        fixed=len(fixed),
        found_fixed=len(fixed & found[SETTINGS[0]]),
        right=sum(answer is True for _, answer in answers),
        wrong=sum(answer is False for _, answer in answers),
        unjudged=sum(answer is None for _, answer in answers),
        wrong_per_100=100 * wrong_in_all / replayed.code_commits if replayed.code_commits else 0.0,
    )


def show(half: str, replayed: Sequence[Replayed]) -> None:
    print(f"\nreplay, {half}")
    scores = [(one.repository.name, one, score(one)) for one in replayed]
    rows = [row_of(name, [one], [points]) for name, one, points in scores]
    rows.append(row_of("all", replayed, [points for _, _, points in scores]))
    table(
        ("repository", "commits", "checked", "rot", "found", "medium", "low", "repaired later", "right", "wrong/100"),
        rows,
    )
    print(
        "rot that is found by default and at looser settings; right/judged alarms by default; "
        "+n: not judged, counted as wrong"
    )


def row_of(name: str, replayed: Sequence[Replayed], scores: Sequence[ReplayScore]) -> tuple[str, ...]:
    known = sum(one.known for one in scores)
    found = [sum(one.found[at] for one in scores) for at in range(len(SETTINGS))]
    right, wrong = sum(one.right for one in scores), sum(one.wrong for one in scores)
    unjudged = sum(one.unjudged for one in scores)
    commits = sum(one.code_commits for one in replayed)
    per_100 = sum(points.wrong_per_100 * one.code_commits for one, points in zip(replayed, scores, strict=True)) / max(
        1, commits
    )
    return (
        name,
        str(commits),
        str(sum(one.with_rot + one.others for one in replayed)),
        str(known),
        *map(str, found),
        f"{sum(one.found_fixed for one in scores)}/{sum(one.fixed for one in scores)}",
        f"{right}/{right + wrong}" + (f"+{unjudged}" if unjudged else ""),
        f"{per_100:.1f}",
    )


def write_sheet(file: Path, replayed: Replayed) -> None:
    """What has to be judged: rot that was not found by default, and alarms that nothing confirms. Never committed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    labels = load_labels(replayed.repository)
    shown = at_least(replayed.alarms, SETTINGS[0])
    rows: list[dict[str, Any]] = []
    for at, one in enumerate(replayed.rot):
        if not any(is_about(alarm, one) for alarm in shown):
            said = [
                f"{alarm.confidence} {alarm.verdict} {alarm.why}" for alarm in replayed.alarms if is_about(alarm, one)
            ]
            known = labelled(labels, one.commit, one.path, one.line, one.name)
            rows.append({"missed": True, **asdict(one), "fixed": at in replayed.fixed, "said": said, "right": known})
    for alarm in shown:
        if is_right(alarm, replayed, labels) is not True:
            known = labelled(labels, alarm.commit, alarm.path, alarm.line, alarm.claim)
            rows.append({"missed": False, **asdict(alarm), "right": known})
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
