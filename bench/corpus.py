"""What search is measured on, as values: the files of a workspace or the sessions of an agent, and questions with the
lines that answer. Files of public sets are read from the folder that TRUEKEEP_BENCH_DATA names, and checked by digest.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

HERE = Path(__file__).parent
PARTS = ("tune", "report")
MONTHS = """
    January February March April May June July August September October November December
""".split()


class Evidence(NamedTuple):
    """Lines that answer a question, the first being 1, the last included."""

    path: str
    first: int
    last: int


class Question(NamedTuple):
    id: str
    kind: str
    text: str
    evidence: tuple[Evidence, ...]
    part: str  # "tune" or "report"


class Corpus(NamedTuple):
    """One workspace and what is asked of it."""

    name: str
    files: dict[str, str]  # path in the workspace → text
    questions: tuple[Question, ...]
    days: Mapping[str, str] = MappingProxyType({})  # path → day; not empty: the files are sessions of an agent
    units: Mapping[str, tuple[int, ...]] = MappingProxyType({})  # the first lines of what is to be found, by path


class Source(NamedTuple):
    """One file of a public set: where it can be had, and what it must be."""

    name: str  # in our folder
    repository: str  # on GitHub
    commit: str
    path: str  # in the repository
    sha256: str

    def how(self, folder: Path) -> str:
        address = f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"
        return f"curl -fL --create-dirs -o {shlex.quote(str(folder / self.name))} {address}"


class FolderSource(NamedTuple):
    """Many files of a public set, from one commit of its repository."""

    name: str  # of the clone in our folder
    repository: str  # on GitHub
    commit: str
    paths: tuple[str, ...]  # folders in the repository
    patterns: tuple[str, ...]  # what of it is read
    sha256: str  # of a line for each file, sorted by path: its SHA-256, two blanks, its path

    def how(self, folder: Path) -> str:
        clone = shlex.quote(str(folder / self.name))
        return (
            f"git clone --no-checkout https://github.com/{self.repository} {clone} &&"
            f" git -C {clone} checkout {self.commit} -- {shlex.join(self.paths)}"
        )


class Unavailable(Exception):
    """A set that is not at hand, or is not the one that was meant: a line for each file, with what to run."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def data_folder() -> Path:
    return Path(os.environ.get("TRUEKEEP_BENCH_DATA") or HERE / "data")


def read_sources(set_name: str, folder: Path, *sources: Source) -> list[bytes]:
    """These files as they were meant, in order; if one is absent or another, every problem at once."""
    contents, problems = [], []
    for source in sources:
        path = folder / source.name
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            problems.append(f"{set_name}: no {source.name} here, so it is left out; to get it: {source.how(folder)}")
            continue
        digest = hashlib.sha256(content).hexdigest()
        if digest != source.sha256:
            problems.append(
                f"{set_name}: {source.name} has SHA-256 {digest}, not {source.sha256}, so it is left out; "
                f"to get it again: {source.how(folder)}"
            )
        contents.append(content)
    if problems:
        raise Unavailable(problems)
    return contents


def read_folder(set_name: str, folder: Path, source: FolderSource) -> dict[str, bytes]:
    """The files of a clone by their path, sorted, if they are the ones that were meant."""
    root = folder / source.name
    found = sorted({path for pattern in source.patterns for path in root.glob(pattern)})
    contents = {path.relative_to(root).as_posix(): path.read_bytes() for path in found}
    if not contents:
        raise Unavailable([f"{set_name}: no {source.name} here, so it is left out; to get it: {source.how(folder)}"])
    lines = (f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in sorted(contents.items()))
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    if digest != source.sha256:
        problem = f"the {len(contents):,} files of {source.name} have SHA-256 {digest}, not {source.sha256}"
        raise Unavailable([f"{set_name}: {problem}, so it is left out; to get it again: {source.how(folder)}"])
    return contents


def part_of(key: str) -> str:
    """Three in ten to tune with, where a set has no parts of its own."""
    return "tune" if number_of(key) % 10 < 3 else "report"


def number_of(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big")


def one_line(text: str) -> str:
    return " ".join(text.split())


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
