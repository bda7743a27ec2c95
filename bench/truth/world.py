"""One commit, read: its files, what they define, and its text as the product's, the documentation's and the tests'."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path

from bench.truth.git import Git
from bench.truth.manifest import read_environment, read_flags, read_packages, read_scripts
from bench.truth.source import Definition, define, read_text, role, strip_comments

PATH_WORD = re.compile(r"[\w@.+/-]{3,}")


class World:
    """One commit, read."""

    def __init__(self, git: Git, commit: str, folder: Path) -> None:
        self.git, self.commit, self.folder = git, commit, folder
        folder.mkdir(parents=True, exist_ok=True)
        git.export(commit, folder)
        self.tree = git.tree(commit)
        self.paths = sorted(self.tree)
        self.definitions = define(folder, (path for path in self.paths if role(path) in ("code", "unsure", "vendored")))
        self.by_name: dict[str, list[Definition]] = defaultdict(list)
        self.by_path: dict[str, list[Definition]] = defaultdict(list)
        for one in self.definitions:
            self.by_name[one.name].append(one)
            self.by_path[one.path].append(one)

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """Every directory with the files below it."""
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            parts = path.split("/")[:-1]
            for count in range(1, len(parts) + 1):
                found["/".join(parts[:count])].append(path)
        return found

    @cached_property
    def base_names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for path in self.paths:
            found[path.rpartition("/")[2]].append(path)
        return found

    @cached_property
    def test_names(self) -> set[str]:
        return {one.name for one in define(self.folder, (path for path in self.paths if role(path) == "test"))}

    @cached_property
    def flags(self) -> set[str]:
        return self.find(read_flags)

    @cached_property
    def environment(self) -> set[str]:
        return self.find(read_environment)

    def find(self, read: Callable[[str], Iterator[str]]) -> set[str]:
        """What is read from code, comments left out. Few files have any, so only these are taken apart."""
        found: set[str] = set()
        for path, text in self.texts("code"):
            if any(True for _ in read(text)):
                found.update(read(strip_comments(text, path)))
        return found

    @cached_property
    def packages(self) -> dict[str, set[str]]:
        """Each package with the manifests that ask for it."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            if role(path) not in ("vendored", "test"):
                for package in read_packages(path, partial(self.text, path)):
                    found[package].add(path)
        return found

    @cached_property
    def scripts(self) -> dict[str, set[str]]:
        """Each command, such as make lint, with the files that define it."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            if role(path) not in ("vendored", "test"):
                for script in read_scripts(path, partial(self.text, path)):
                    found[script].add(path)
        return found

    def texts(self, *roles: str) -> Iterator[tuple[str, str]]:
        for path in self.paths:
            if role(path) in roles and (text := read_text(self.folder / path)) is not None:
                yield path, text

    def is_data(self, path: str) -> bool:
        return read_text(self.folder / path) is None

    def text(self, path: str) -> str:
        return read_text(self.folder / path) or ""

    def lines(self, path: str) -> list[str]:
        return self.text(path).splitlines()

    @cached_property
    def everything(self) -> dict[str, str]:
        """All text, by whether it is the product's (with what is unsure), documentation or tests."""
        parts: dict[str, list[str]] = {"product": [], "doc": [], "test": []}
        for path, text in self.texts("code", "config", "unsure", "vendored", "doc", "test"):
            its = role(path)
            parts[its if its in parts else "product"].append(text)
        return {name: "\n".join(texts) for name, texts in parts.items()}

    @cached_property
    def path_words(self) -> set[str]:
        """Everything in any text that could be a path, with each of its ends: a/b/c.py, b/c.py and c.py."""
        found: set[str] = set()
        for text in self.everything.values():
            for run in set(PATH_WORD.findall(text)):
                parts = run.rstrip(".").split("/")
                found.update("/".join(parts[at:]) for at in range(len(parts)))
        return found

    @cached_property
    def statements(self) -> Counter[str]:
        """Every line of code, without its indent."""
        return Counter(line.strip() for _, text in self.texts("code", "unsure", "test") for line in text.splitlines())
