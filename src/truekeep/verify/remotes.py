"""The remotes of a repository, as git reads them."""

from __future__ import annotations

import os
from pathlib import Path

from truekeep.core.git import Git
from truekeep.core.repository import GitFailed, parse_remote, remote_name


def read_remotes(root: str, git_dir: str) -> tuple[list[str], str]:
    """The names of the remotes, origin first; and why git refuses to read the repository, or ""."""
    runner = Git(root)
    try:
        runner.run("rev-parse", "--git-dir")
    except GitFailed as error:
        found = _remotes(runner, "--file", os.path.join(git_dir, "config"))  # git can still read it as a plain file
        return found or [name for name in (remote_name(Path(root)),) if name], str(error)
    return _remotes(runner, "--local"), ""


def _remotes(git: Git, *where: str) -> list[str]:
    try:
        raw = git.run("config", *where, "--get-regexp", r"^remote\..*\.url$")
    except GitFailed:
        return []
    lines = raw.decode("utf-8", "replace").splitlines()
    ordered = sorted(lines, key=lambda line: not line.startswith("remote.origin.url "))
    return list(dict.fromkeys(name for line in ordered if (name := parse_remote(line.partition(" ")[2]))))
