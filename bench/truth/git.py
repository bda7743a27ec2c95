"""All that is asked of git: trees, files, renames from commit to commit, and where a line of an old file is now."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

FIXED = ("core.quotePath=false", "core.autocrlf=false", "gc.auto=0", "diff.algorithm=histogram", "diff.noprefix=false")
RENAME_LIMIT = 3_000
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class Incomplete(Exception):
    """A clone that git cannot read: usually one that was not copied whole."""


class Change(NamedTuple):
    """One line of a commit's own record: A, D or R, with how alike both files of a rename are in per cent."""

    status: str
    alike: int
    path: str
    target: str


class Heir(NamedTuple):
    """What became of a file: its path now, or None when it was deleted, and how alike it was at the worst step."""

    path: str | None
    alike: int
    steps: int


class Git:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, *arguments: str, codes: tuple[int, ...] = (0,), environment: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        done = subprocess.run(
            ["git", *(word for setting in FIXED for word in ("-c", setting)), *arguments],
            cwd=self.folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C", **environment},
            capture_output=True,
            check=False,
        )
        if done.returncode not in codes:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise Incomplete(f"git {' '.join(arguments)[:200]} ended with {done.returncode}: {said}")
        return done.stdout.decode("utf-8", "replace")

    @cached_property
    def head(self) -> str:
        return self.run("rev-parse", "HEAD").strip()

    def when(self, commit: str) -> int:
        return int(self.run("show", "-s", "--format=%ct", commit))

    def day(self, commit: str) -> str:
        return self.run("show", "-s", "--format=%cs", commit).strip()

    def before(self, seconds: int) -> str | None:
        """The newest commit of the main line that is not younger."""
        return self.run("rev-list", "-1", "--first-parent", f"--before={seconds}", "HEAD").strip() or None

    def tree(self, commit: str) -> dict[str, str]:
        """path → blob of every regular file."""
        found = {}
        for row in self.run("ls-tree", "-r", "-z", commit).split("\0"):
            if row.startswith("100"):
                meta, path = row.split("\t", 1)
                found[path] = meta.split()[2]
        return found

    def all_paths(self) -> set[str]:
        """Every file and folder that any commit up to HEAD ever had."""
        rows = self.run("rev-list", "--objects", "HEAD").split("\n")
        return {path for row in rows if (path := row.partition(" ")[2])}

    def export(self, commit: str, folder: Path) -> None:
        """All files of a commit; unlike git archive it leaves out none that an attribute says to ignore."""
        index = folder.parent / f"{folder.name}.index"
        apart = {"GIT_INDEX_FILE": str(index)}
        self.run("read-tree", commit, environment=apart)
        self.run("checkout-index", "-a", "-f", f"--prefix={folder}/", environment=apart)
        index.unlink(missing_ok=True)

    def show(self, commit: str, path: str) -> str:
        return self.run("show", f"{commit}:{path}", codes=(0, 128))

    def changes(self, commit: str) -> Iterator[list[Change]]:
        """What each commit since then added, deleted and renamed, the oldest first."""
        order = ("--reverse", "--topo-order", "--format=%x01%H")
        shown = ("-M", f"-l{RENAME_LIMIT}", "--diff-filter=ADR", "--name-status", "-z")
        text = self.run("log", *order, *shown, f"{commit}..HEAD")
        for record in text.split("\1")[1:]:
            yield list(parse_changes(record.split("\0")[1:]))

    def heirs(self, commit: str, paths: Iterable[str]) -> dict[str, Heir]:
        """What became of each file, by the records of each commit, one after the other."""
        heirs = {path: Heir(path, 100, 0) for path in paths}
        owners: dict[str, set[str]] = {path: {path} for path in heirs}  # path now → the old paths that led there
        lost: dict[str, set[str]] = {}  # the same for paths that were deleted
        for changes in self.changes(commit):
            moves = [change for change in changes if change.status == "R"]
            leaving = {change.path: owners.pop(change.path, set()) for change in moves}
            for change in moves:
                for old in leaving[change.path]:
                    was = heirs[old]
                    heirs[old] = Heir(change.target, min(was.alike, change.alike), was.steps + 1)
                    owners.setdefault(change.target, set()).add(old)
            for change in changes:
                if change.status == "D":
                    for old in owners.pop(change.path, set()):
                        heirs[old] = heirs[old]._replace(path=None)
                        lost.setdefault(change.path, set()).add(old)
                elif change.status == "A":
                    for old in lost.pop(change.path, set()):  # brought back, and nobody knows as what
                        heirs[old] = Heir(change.path, 0, heirs[old].steps + 1)
                        owners.setdefault(change.path, set()).add(old)
        return heirs

    def renames(self, commit: str, alike: int) -> dict[str, str]:
        """Renames as a single comparison of both ends sees them."""
        text = self.run(
            "diff", f"-M{alike}%", f"-l{RENAME_LIMIT}", "--diff-filter=R", "--name-status", "-z", commit, "HEAD"
        )
        return {change.path: change.target for change in parse_changes(text.split("\0"))}

    def line_map(self, commit: str, path: str, target: str) -> dict[int, int]:
        """Line of an old file → line of its heir, for each line that the comparison leaves alone."""
        old, new = f"{commit}:{path}", f"HEAD:{target}"
        text = self.run("diff", "--no-color", "-U0", "--no-ext-diff", old, new, codes=(0, 1))
        hunks = [tuple(int(one) if one else 1 for one in match.groups("1")) for match in HUNK.finditer(text)]
        count = len(self.show(commit, path).splitlines())
        found: dict[int, int] = {}
        line, shift = 1, 0
        for first, gone, start, added in hunks:
            begin = first if gone else first + 1
            found.update((number, number + shift) for number in range(line, begin))
            line = begin + gone
            shift = (start + added if added else start + 1) - line
        found.update((number, number + shift) for number in range(line, count + 1))
        return found


def parse_changes(fields: list[str]) -> Iterator[Change]:
    """The records of --name-status -z: a status, a path, and for a rename another path."""
    left = iter(fields)
    for field in left:
        status = field.strip()
        if not status:
            continue
        path = next(left)
        if status[0] == "R":
            yield Change("R", int(status[1:] or 100), path, next(left))
        else:
            yield Change(status[0], 0, path, "")
