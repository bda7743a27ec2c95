"""The labelled set of each repository: cards and labels in a folder, made once and kept.

Clones come from the folder that TRUEKEEP_BENCH_REPOS names. What is made of them is kept in TRUEKEEP_BENCH_CACHE, or in
the machine's folder for temporary files, under a name that changes with the clone's HEAD and with this code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.truth import phrases
from bench.truth.cards import Card, Mark, Setting, Writer, choose
from bench.truth.documents import Library
from bench.truth.git import Git
from bench.truth.judge import Fact, Judge
from bench.truth.world import World

HERE = Path(__file__).parent
SEED = "truth/1"
YEAR = 31_557_600
AGES = (1, 2, 3, 5)  # years before HEAD; for a younger repository the same shares of its life
OWNERS = {  # what is used to choose rules, and what is only reported
    "tuning": {
        "django": "django/django",
        "fastapi": "fastapi/fastapi",
        "vite": "vitejs/vite",
        "ruff": "astral-sh/ruff",
        "traefik": "traefik/traefik",
        "redis": "redis/redis",
    },
    "held-out": {
        "pydantic": "pydantic/pydantic",
        "prettier": "prettier/prettier",
        "hugo": "gohugoio/hugo",
        "junit5": "junit-team/junit5",
        "rubocop": "rubocop/rubocop",
        "composer": "composer/composer",
        "ripgrep": "BurntSushi/ripgrep",
        "codex": "openai/codex",
    },
}
LABELLING = (
    "git.py",
    "source.py",
    "manifest.py",
    "world.py",
    "judge.py",
    "phrases.py",
    "cards.py",
    "documents.py",
    "build.py",
)


class Label(NamedTuple):
    """One mark of a card, as it is kept."""

    repository: str
    age: str
    card: str
    mark: Mark


class Set(NamedTuple):
    """The labelled cards of one repository, and the checkout to verify them against."""

    name: str
    part: str
    cards: Path
    world: Path
    labels: list[Label]
    dropped: Counter[tuple[str, str]]


def clones() -> dict[str, Path]:
    """The clones at hand. Without any, a line says how to get them."""
    folder = os.environ.get("TRUEKEEP_BENCH_REPOS")
    if not folder:
        known = " ".join(OWNERS["tuning"] | OWNERS["held-out"])
        print(f"truth: left out; TRUEKEEP_BENCH_REPOS must name a folder of whole clones, such as those of {known}")
        return {}
    return {path.name: path for path in sorted(Path(folder).iterdir()) if (path / ".git").exists()}


def cache_folder() -> Path:
    return Path(os.environ.get("TRUEKEEP_BENCH_CACHE") or Path(tempfile.gettempdir()) / "truekeep-bench-truth")


def part_of(name: str) -> str:
    """Any repository that we never looked at is held out."""
    return "tuning" if name in OWNERS["tuning"] else "held-out"


def owner_of(name: str) -> str:
    return {**OWNERS["tuning"], **OWNERS["held-out"]}.get(name, f"example/{name}")


def load(name: str, clone: Path, *, dated: bool) -> Set:
    """The set of one repository, from the cache when it is there."""
    code = b"".join((HERE / file).read_bytes() for file in LABELLING)
    key = hashlib.sha256(code + Git(clone).head.encode() + SEED.encode()).hexdigest()[:12]
    folder = cache_folder() / f"{name}-{key}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        build(name, clone, folder)
        (folder / "done").touch()
    cards = folder / ("dated" if dated else "undated")
    dropped = Counter({(kind, why): count for kind, why, count in json.loads((folder / "dropped.json").read_text())})
    return Set(name, part_of(name), cards, folder / "world", list(read_labels(cards / "labels.jsonl")), dropped)


def build(name: str, clone: Path, folder: Path) -> None:
    world = folder / "world"
    copy_clone(name, clone, world)
    git = Git(world)
    dropped: Counter[tuple[str, str]] = Counter()
    rows: dict[bool, list[Label]] = {True: [], False: []}
    bank = phrases.TUNING if part_of(name) == "tuning" else phrases.HELD_OUT
    ends = {end for path in git.all_paths() for end in ends_of(path)}
    new = World(git, "HEAD", folder / "trees" / "HEAD")
    for number, (age, commit) in enumerate(points(git)):
        seed = f"{SEED}:{name}:{age}"
        judge = Judge(World(git, commit, folder / "trees" / age), new, seed)
        facts = list(judge.facts())
        dropped += judge.dropped
        library = Library(judge, facts, ends)
        for dated, labels in rows.items():
            setting = Setting(f"github.com/{owner_of(name)}", age, git.day(commit), dated, bank)
            target = folder / ("dated" if dated else "undated")
            writer = Writer(setting, judge.files, seed)
            text = writer.look_alikes() if number == 0 else ()  # it does not change with the repository
            for card in (*write_cards(judge, facts, writer), *library.write(setting), *text):
                target.mkdir(parents=True, exist_ok=True)
                (target / card.name).write_text(card.text, encoding="utf-8")
                labels += [Label(name, age, card.name, mark) for mark in card.marks]
    for dated, labels in rows.items():
        write_labels(folder / ("dated" if dated else "undated") / "labels.jsonl", labels)
    (folder / "dropped.json").write_text(
        json.dumps([[*key, count] for key, count in sorted(dropped.items())], indent=1)
    )
    shutil.rmtree(folder / "trees")


def copy_clone(name: str, clone: Path, world: Path) -> None:
    """A checkout of our own that shares the clone's objects, so that commits can be lost in it."""
    world.parent.mkdir(parents=True, exist_ok=True)
    Git(world.parent).run(
        "clone", "--quiet", "--shared", "--no-checkout", "--single-branch", str(clone.resolve()), str(world)
    )
    git = Git(world)
    git.run("checkout", "--quiet", "--force", "HEAD")
    git.run("remote", "set-url", "origin", f"https://github.com/{owner_of(name)}.git")


def ends_of(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[at:]) for at in range(len(parts)))


def points(git: Git) -> Iterator[tuple[str, str]]:
    """Commits of about 1, 2, 3 and 5 years before HEAD; a younger repository is cut at the same shares of its life."""
    head = git.when("HEAD")
    root = min(git.when(commit) for commit in git.run("rev-list", "--max-parents=0", "HEAD").split())
    unit = min(YEAR, (head - root) // (max(AGES) + 1))
    for age in AGES:
        if commit := git.before(head - age * unit):
            yield f"{age}y" if unit == YEAR else f"{age}of{max(AGES) + 1}", commit


def write_cards(judge: Judge, facts: list[Fact], writer: Writer) -> Iterator[Card]:
    yield from writer.write(choose(facts, judge.seed))
    yield from writer.history(facts)


# Labels on disk


def write_labels(path: Path, labels: Iterable[Label]) -> None:
    rows = ({"repository": one.repository, "age": one.age, "card": one.card, **one.mark._asdict()} for one in labels)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def read_labels(path: Path) -> Iterator[Label]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        repository, age, card = (row.pop(key) for key in ("repository", "age", "card"))
        yield Label(repository, age, card, Mark(**{**row, "flags": tuple(row["flags"])}))
