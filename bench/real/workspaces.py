"""The public workspaces that are measured: which commit of which repository, and to which half each belongs.

Clones are read from the folder that TRUEKEEP_BENCH_WORKSPACES names: OWNER+NAME, or OWNER+NAME/repo, bare or not. Each
is checked out at its commit into a temporary folder, with its history, before anything runs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tomllib
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HALVES = ("tuning", "report")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicWorkspace:
    repository: str  # owner/name on GitHub
    commit: str
    half: str

    @property
    def name(self) -> str:
        return self.repository.partition("/")[0]

    def find_clone(self, folder: Path) -> Path | None:
        base = folder / self.repository.replace("/", "+")
        return next((path for path in (base / "repo", base) if is_git(path)), None)

    def check_out(self, clone: Path, target: Path) -> None:
        """Put the files and the history of the commit into a folder of our own."""
        git("clone", "--quiet", "--no-checkout", str(clone), str(target))
        git("-C", str(target), "-c", "advice.detachedHead=false", "checkout", "--quiet", "-B", "main", self.commit)

    def key(self, clone: Path) -> bytes:
        """A key that only those have who have the workspace: made of the ids of its files."""
        listing = git("-C", str(clone), "ls-tree", "-r", self.commit)
        return urlsafe_b64encode(hashlib.sha256(listing.encode()).digest())


def load_workspaces(half: str | None = None) -> list[PublicWorkspace]:
    table = tomllib.loads((HERE / "workspaces.toml").read_text(encoding="utf-8"))
    found = [PublicWorkspace(**entry) for entry in table["workspace"]]
    return [workspace for workspace in found if half in (None, workspace.half)]


def clones_folder() -> Path | None:
    named = os.environ.get("TRUEKEEP_BENCH_WORKSPACES")
    return Path(named).expanduser() if named else None


def is_git(path: Path) -> bool:
    return (path / "HEAD").is_file() or (path / ".git").exists()


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout
