"""Finds the checkouts on this machine and the repository that each belongs to.

A memory names its repository as host/owner/name or by folder name. The folders come from the configuration; a remote
may have several clones and worktrees. The remotes of a folder are cached until its git configuration changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from truekeep.core.repository import irregular_file_failure, parse_remote


class Answers(Protocol):
    """A cache for slow git answers."""

    def answer(self, key: str) -> str | None: ...
    def remember(self, key: str, value: str) -> None: ...


class Checkout(NamedTuple):
    """A folder with a repository."""

    root: str
    names: tuple[str, ...]  # its remotes, origin first; then the folder's own name
    is_linked: bool  # a worktree of another clone
    problem: str = ""  # why git will not read it

    @property
    def name(self) -> str:
        return self.names[0]


def expand_repositories(patterns: Sequence[str]) -> list[Path]:
    """Return the folders that match the configured patterns, in a stable order."""
    roots: dict[str, None] = {}
    for pattern in patterns:
        full = os.path.expanduser(os.path.expandvars(pattern))
        for path in _matches(full) if any(sign in full for sign in "*?[") else (full,):
            if os.path.isdir(path):
                roots.setdefault(os.path.abspath(path))
    return [Path(path) for path in roots]


def _matches(pattern: str) -> list[str]:
    import glob

    return sorted(glob.glob(pattern, recursive=True))


def find_checkouts(folders: Iterable[Path], answers: Answers) -> list[Checkout]:
    """Return the checkouts among these folders, each once, in order."""
    found: dict[str, Checkout] = {}
    for folder in folders:
        root = os.path.realpath(folder)
        git = os.path.join(root, ".git")
        if root not in found and os.path.lexists(git):
            found[root] = _read_remotes(root, git, answers)
    return list(found.values())


def _read_remotes(root: str, git: str, answers: Answers) -> Checkout:
    stamp = "-"
    try:
        info = os.stat(os.path.join(git, "config") if os.path.isdir(git) else git)
        stamp = f"{info.st_mtime_ns}.{info.st_size}.{info.st_ino}"
    except OSError:
        pass
    key = f"remotes {root} {stamp}"
    is_linked = not os.path.isdir(git)
    irregular = irregular_file_failure(root)
    known = answers.answer(key) if not is_linked and irregular is None else None
    if known is None:
        from truekeep.verify.remotes import read_remotes  # here: it runs git, which hooks seldom need

        remotes, problem = read_remotes(root, git)
        if problem:
            return Checkout(root, (*remotes, os.path.basename(root)), is_linked, problem)
        known = "\n".join(remotes)
        answers.remember(key, known)
    names = tuple(name for name in known.split("\n") if name)
    return Checkout(root, (*names, os.path.basename(root)), is_linked)


def is_of_workspace(repository: str, workspace: str) -> bool:
    """Whether the repository is the workspace itself, named by its folder: such a memory is not about code."""
    return bool(workspace) and repository == os.path.basename(workspace)


def choose_checkout(repository: str, checkouts: Sequence[Checkout]) -> Checkout | None:
    """Choose the checkout for a memory's repository: clones before worktrees, in configured order."""
    wanted = (parse_remote(repository) or repository.strip().removesuffix(".git")).lower()
    if not wanted:
        return None
    matches = [item for item in checkouts if wanted in (name.lower() for name in item.names[:-1] or item.names)]
    if not matches and "/" not in wanted:
        matches = [item for item in checkouts if wanted in (name.rpartition("/")[2].lower() for name in item.names)]
        if len({item.name for item in matches}) > 1:
            return None  # ambiguous: two different repositories have this name
    if not matches and wanted.count("/") == 1:
        matches = [item for item in checkouts if any(name.lower().endswith("/" + wanted) for name in item.names)]
    if not matches:
        # Git cannot read some folders. One with this name may be the repository, so return it with its problem.
        last = wanted.rpartition("/")[2]
        matches = [item for item in checkouts if item.problem and [last] == [name.lower() for name in item.names]]
    return min(matches, key=lambda item: (bool(item.problem), item.is_linked), default=None)
