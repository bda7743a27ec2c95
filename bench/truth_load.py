"""What verify is timed on: a clone of a public repository, cards about it, and ten times of each.

Cards are made from the repository itself, the same ones every time: what an agent writes down of code (paths, symbols,
methods, lines, flags, settings, commits), on days of the last three years. What a card names was there on its day.
About a tenth of it is gone or has another name by now.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import IO, NamedTuple

PREFERRED = "django"
YEAR = 31_557_600
YEARS = 3
PERIODS = 5  # between commits that are looked into
CLAIMS = 5  # a card
ROTTEN = 0.1
LARGEST = 500_000  # bytes of a file that is looked into
KINDS = {"path": 22, "symbol": 22, "method": 16, "placed": 7, "line": 8, "env": 6, "flag": 6, "commit": 6}  # weights
SAID = {
    "path": ("Start reading at `{path}`", "What decides it is `{path}`", "Look at `{path}` first"),
    "symbol": ("`{name}` does the work", "Everything goes through `{name}()`", "Call `{name}` for it"),
    "method": ("`{owner}.{name}` has the last word", "Override `{owner}.{name}()` to change it"),
    "placed": ("`{name}` in `{path}` is the place to change",),
    "line": ("The special case is at `{path}:{line}`", "See `{path}:{line}`"),
    "env": ("`{name}` switches it", "The limit comes from `{name}`"),
    "flag": ("Pass `{name}` to try it out", "CI runs it with `{name}`"),
    "commit": ("Commit `{name}` has the reasons",),
}
DEFINED = re.compile(
    rb"^([ \t]*)(?:(?:export|default|public|private|protected|static|final|abstract|async|pub(?:\(\w+\))?)[ \t]+)*"
    rb"(class|struct|interface|trait|enum|def|func|fn|function)([ \t]+(?:\([^)\n]*\)[ \t]*)?)([A-Za-z_]\w*)",
    re.MULTILINE,
)
TYPES = (b"class", b"struct", b"interface", b"trait", b"enum")
FLAG = re.compile(rb"[\"'`](--[a-z][a-z0-9]+(?:-[a-z0-9]+)*)[\"'`]")
SETTING = re.compile(rb"(?<![\w.])[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+(?!\w)")
CODE = tuple(".py .js .jsx .ts .tsx .mjs .go .rs .java .kt .rb .php .c .h .cc .cpp .cs .swift .scala .ex .lua".split())
TEST = re.compile(r"(?:^|/)(?:tests?|testing|spec|docs?|examples?|vendor)/|(?:^|/)test_|[._]test\.")


class Thing(NamedTuple):
    """Something that a card can name. No line: that is another one every day."""

    kind: str
    name: str = ""
    owner: str = ""
    path: str = ""

    @property
    def pattern(self) -> str:
        """What one would grep for; empty for a commit."""
        return "" if self.kind == "commit" else self.name if self.kind not in ("path", "line") else self.path


class Load(NamedTuple):
    """Cards in a workspace, about a clone."""

    root: Path
    workspace: Path
    cards: list[str]  # their paths in the workspace
    patterns: Path  # a file with the words and paths of all claims, one a line
    files: int

    @property
    def size(self) -> str:
        return f"{len(self.cards):,} cards, {self.files:,} files"


def find_clone() -> Path | None:
    """The clone to be used: Django, or the one with the most files."""
    folder = os.environ.get("TRUEKEEP_BENCH_REPOS", "")
    found = [path.parent.parent for path in Path(folder).glob("*/.git/index")] if folder else []
    preferred = [path for path in found if path.name == PREFERRED]
    return max(preferred or found, key=lambda path: (path / ".git" / "index").stat().st_size, default=None)


def clone(source: Path, target: Path) -> Path:
    """A clone of our own, to be edited; the objects stay where they are."""
    subprocess.run(["git", "clone", "-q", "--shared", str(source), str(target)], check=True)
    return target


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape")


# What a repository has, and had


class Blob(NamedTuple):
    """What a file's text has: definitions with their lines, flags, settings."""

    definitions: tuple[tuple[str, str, int], ...]  # name, owner, line
    flags: frozenset[str]
    settings: frozenset[str]


class State(NamedTuple):
    """A repository at one commit."""

    at: int
    blobs: Mapping[str, str]  # path → id of the blob
    things: set[Thing]


class Repository:
    """The states of a repository at a few commits of the last years, the newest last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        main_line = [line.split() for line in git(root, "log", "--first-parent", "--format=%H %ct").splitlines()]
        newest, oldest = int(main_line[0][1]), int(main_line[-1][1])
        span = min(YEARS * YEAR, newest - oldest)
        self.commits = [(int(at), commit) for commit, at in main_line if int(at) >= newest - span]
        self._seen: dict[str, Blob] = {}
        self.states: list[State] = []
        for period in range(PERIODS + 1):
            wanted = newest - span + span * period // PERIODS
            commit, at = next((commit, int(at)) for commit, at in main_line if int(at) <= wanted)
            self.states.append(self._read(commit, at))

    def _read(self, commit: str, at: int) -> State:
        blobs: dict[str, str] = {}
        for row in git(self.root, "ls-tree", "-r", "-z", commit).split("\0"):
            if row.startswith("100"):
                meta, path = row.split("\t", 1)
                blobs[path] = meta.split()[2]
        code = {path: oid for path, oid in blobs.items() if path.endswith(CODE) and not TEST.search(path)}
        self._scan(oid for oid in code.values() if oid not in self._seen)
        things = {Thing("path", path=path) for path in blobs if "/" in path and "`" not in path and path.isascii()}
        for path, oid in code.items():
            blob = self._seen[oid]
            things |= {Thing("flag", name) for name in blob.flags} | {Thing("env", name) for name in blob.settings}
            for name, owner, _ in blob.definitions:
                things |= {Thing("placed", name, "", path), Thing("line", name, "", path)}
                things.add(Thing("method", name, owner) if owner else Thing("symbol", name))
        return State(at, blobs, things)

    def _scan(self, oids: Iterable[str]) -> None:
        for oid, data in read_blobs(self.root, list(dict.fromkeys(oids))):
            self._seen[oid] = scan(data if len(data) <= LARGEST else b"")

    def line(self, state: State, thing: Thing) -> int:
        found = self._seen[state.blobs[thing.path]].definitions
        return next(line for name, _, line in found if name == thing.name)


def read_blobs(root: Path, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The texts of blobs; an empty one for what a snapshot lacks."""
    given = "".join(f"{oid}\n" for oid in oids).encode()
    done = subprocess.run(
        ["git", "-C", str(root), "cat-file", "--batch"], input=given, capture_output=True, check=True
    ).stdout
    at = 0
    for oid in oids:
        end = done.index(b"\n", at)
        head = done[at:end].split()
        size = int(head[2]) if len(head) == 3 else -1
        yield oid, done[end + 1 : end + 1 + max(0, size)]
        at = end + 1 + size + 1


def scan(data: bytes) -> Blob:
    found: list[tuple[str, str, int]] = []
    owners: list[tuple[int, str]] = []
    line, counted = 1, 0
    for match in DEFINED.finditer(data):
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        indent, name = len(match[1]), match[4].decode()
        while owners and owners[-1][0] >= indent:
            owners.pop()
        if len(name) > 4 and not name.startswith("__"):
            found.append((name, owners[-1][1] if owners else "", line))
        if match[2] in TYPES:
            owners.append((indent, name))
    flags = frozenset(name.decode() for name in FLAG.findall(data))
    return Blob(tuple(found), flags, frozenset(name.decode() for name in SETTING.findall(data)))


# Cards


class Pool(NamedTuple):
    """What a card of one period can name, by kind: what still is, and what is gone."""

    begin: int
    end: int
    state: State
    standing: Mapping[str, Sequence[Thing]]
    rotten: Mapping[str, Sequence[Thing]]


def pools(repository: Repository) -> list[Pool]:
    states = repository.states
    newest = states[-1].things
    found = []
    for state, following in pairwise(states):
        standing = state.things & newest
        rotten = (state.things & following.things) - newest  # there all the time, so on every day of it
        found.append(Pool(state.at, following.at, state, by_kind(standing), by_kind(rotten)))
    return found


def by_kind(things: Iterable[Thing]) -> dict[str, list[Thing]]:
    found: dict[str, list[Thing]] = defaultdict(list)
    for thing in sorted(things):
        found[thing.kind].append(thing)
    return found


def make_load(repository: Repository, workspace: Path, number: int) -> Load:
    """So many cards in a new workspace, the same ones every time."""
    random = Random(f"truth-speed {number}")
    periods = pools(repository)
    name = repository.root.name
    patterns: set[str] = set()
    paths = []
    (workspace / "memory" / "cards").mkdir(parents=True, exist_ok=True)
    for at in range(number):
        pool = random.choice(periods)
        second = random.randrange(pool.begin, max(pool.begin + 1, pool.end))
        day = datetime.fromtimestamp(second, UTC).date().isoformat()
        things = list(choose(repository, pool, second, random))
        patterns.update(thing.pattern for thing in things)
        lines = [f"- {say(repository, pool.state, thing, random)}" for thing in things]
        topic = " ".join(dict.fromkeys(re.findall(r"[a-z]+", things[0].path + " " + things[-1].name.lower())))
        front = f"topic: {topic or 'notes'}\ncategory: code\ncreated: {day}\nupdated: {day}\nrepository: {name}"
        paths.append(f"memory/cards/{at:05}.md")
        (workspace / paths[-1]).write_text(f"---\n{front}\n---\n\nWhat to know of it.\n\n" + "\n".join(lines) + "\n")
    words = workspace.with_suffix(".patterns")
    words.write_text("".join(f"{pattern}\n" for pattern in sorted(patterns - {""})))
    return Load(repository.root, workspace, paths, words, len(git(repository.root, "ls-files").splitlines()))


def choose(repository: Repository, pool: Pool, second: int, random: Random) -> Iterator[Thing]:
    """The things that one card names. A symbol in a file is two claims: the file is one of its own."""
    left = CLAIMS
    while left:
        (kind,) = random.choices(list(KINDS), list(KINDS.values()))
        if kind == "placed" and left < 2:
            continue
        if kind == "commit":
            before = [commit for at, commit in repository.commits if at <= second]
            thing = Thing("commit", random.choice(before or [repository.commits[-1][1]])[:10])
        else:
            rotten = pool.rotten.get(kind)
            things = (
                rotten if rotten and random.random() < ROTTEN * PERIODS / (PERIODS - 1) else pool.standing.get(kind)
            )
            if not things:
                continue
            thing = random.choice(things)
        yield thing
        left -= 2 if kind == "placed" else 1


def say(repository: Repository, state: State, thing: Thing, random: Random) -> str:
    line = repository.line(state, thing) if thing.kind == "line" else 0
    return random.choice(SAID[thing.kind]).format(**thing._asdict(), line=line)


# Ten times the files

COPIES = 10
COMMITS = 300
EDITED, MOVED, DELETED = 20, 3, 3  # files, a commit


def grow(root: Path, target: Path) -> Path:
    """A repository with the files of another one ten times, no two copies of a text or of a name the same."""
    target.mkdir()
    git(target, "init", "-q", "-b", "main")
    with subprocess.Popen(
        ["git", "-C", str(target), "-c", "core.compression=1", "fast-import", "--quiet"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        write_history(root, process.stdin)
    if process.returncode:
        raise SystemExit(f"git fast-import ended with {process.returncode}")
    git(target, "reset", "-q", "--hard", "main")
    return target


def write_history(root: Path, stream: IO[bytes]) -> None:
    """The stream for fast-import: everything in one commit, then small ones that edit, move and delete."""
    random = Random("truth-speed, ten times")
    newest = int(git(root, "log", "-1", "--format=%ct"))
    times = [newest - YEARS * YEAR + YEARS * YEAR * at // (COMMITS - 1) for at in range(COMMITS)]
    tracked = [path for path in git(root, "ls-files", "-z").split("\0") if path and (root / path).is_file()]
    code = [f"{copy}/{path}" for path in tracked if path.endswith(CODE) for copy in range(COPIES)]
    random.shuffle(code)
    edited, moved, deleted = (
        [code.pop() for _ in range(min(count * (COMMITS - 1), len(code) // 4))] for count in (EDITED, MOVED, DELETED)
    )

    def text(path: str) -> bytes:
        copy, _, original = path.partition("/")
        data = (root / original).read_bytes()
        if copy == "0" or b"\0" in data[:8192]:
            return data
        suffix = b"_" + copy.encode()
        return DEFINED.sub(lambda match: match[0] + suffix, data) + b"\n# " + copy.encode() + b"\n"

    write_commit(stream, times[0])
    before = {path: before_move(path) for path in moved}
    for copy in range(COPIES):
        for path in tracked:
            where = f"{copy}/{path}"
            write_file(stream, before.get(where, where), text(where))
    for path in deleted:
        write_file(stream, before_end(path), DEFINED.sub(lambda match: match[0] + b"_before", text(path)))
    for at, when in enumerate(times[1:]):
        write_commit(stream, when)
        for path in edited[at :: COMMITS - 1]:
            write_file(stream, path, text(path) + b"\n\ndef added_in_%d():\n    return %d\n" % (at, at))
        for path in moved[at :: COMMITS - 1]:
            stream.write(f"R {quoted(before[path])} {quoted(path)}\n".encode())
        for path in deleted[at :: COMMITS - 1]:
            stream.write(f"D {quoted(before_end(path))}\n".encode())


def before_move(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/former_{name}"


def before_end(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/ended_{name}"


def write_commit(stream: IO[bytes], when: int) -> None:
    stream.write(f"commit refs/heads/main\ncommitter Bench <bench@localhost> {when} +0000\ndata 2\nx\n".encode())


def write_file(stream: IO[bytes], path: str, data: bytes) -> None:
    stream.write(
        b"M 100644 inline %s\ndata %d\n%s\n" % (quoted(path).encode("utf-8", "surrogateescape"), len(data), data)
    )


def quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
