"""Finds the checkouts on this machine and the repository that each belongs to.

A memory names its repository as host/owner/name or by folder name. The folders come from the configuration; a remote
may have several clones and worktrees. The remotes of a folder are cached until its git configuration changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from truekeep.core.repository import GitFailed, find_top, irregular_file_failure, parse_remote

_MAX_DEPTH_BELOW = 3  # of checkouts in a workspace
_MAX_FOLDERS_LISTED = 500


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


def find_home(workspace: Path) -> str:
    """The repository that a workspace is, or in which it is kept; empty if it is in none.

    A repository above it counts only if it has files of the workspace: a home folder may be one, too.
    """
    root = workspace.resolve()
    top = find_top(root)
    if top is None or top == root:
        return str(top or "")
    from truekeep.core.git import Git  # starts processes; hooks do without

    try:
        kept = Git(str(top)).run("ls-files", "-z", "--", str(root.relative_to(top)))
    except GitFailed:
        return ""
    return str(top) if kept else ""


def find_below(workspace: Path) -> list[Path]:
    """The folders below a workspace that are checkouts of their own."""
    found: list[Path] = []
    waiting = [(str(workspace), 0)]
    listed = 0
    while waiting and listed < _MAX_FOLDERS_LISTED:
        folder, depth = waiting.pop()
        listed += 1
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        if depth and ".git" in names:
            found.append(Path(folder))
        elif depth < _MAX_DEPTH_BELOW:
            waiting += [(f"{folder}/{name}", depth + 1) for name in names if name[0] != "." and name != "node_modules"]
    return sorted(found)


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
