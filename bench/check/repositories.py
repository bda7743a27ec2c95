"""The public repositories that are checked: which commit of each, and to which half it belongs.

Clones are read from the folder that TRUEKEEP_BENCH_WORKSPACES names: OWNER+NAME, or OWNER+NAME/repo, bare or not.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from bench.real.workspaces import git, is_git

HERE = Path(__file__).parent
HALVES = ("tuning", "report", "fresh")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRepository:
    repository: str  # owner/name on GitHub
    commit: str
    half: str
    language: str

    @property
    def name(self) -> str:
        return self.repository.partition("/")[2]

    @property
    def label_file(self) -> Path:
        return HERE / "labels" / f"{self.repository.replace('/', '+')}.jsonl"

    def find_clone(self, folder: Path) -> Path | None:
        base = folder / self.repository.replace("/", "+")
        return next((path for path in (base / "repo", base) if is_git(path)), None)

    def check_out(self, clone: Path, target: Path, *, is_shallow: bool = False) -> None:
        """Put the commit into a folder of our own: with its history, or alone as a CI job gets it."""
        if is_shallow:
            git("init", "--quiet", str(target))
            git("-C", str(target), "fetch", "--quiet", "--depth", "1", f"file://{clone.resolve()}", self.commit)
        else:
            git("clone", "--quiet", "--shared", "--no-checkout", str(clone.resolve()), str(target))
        git("-C", str(target), "-c", "advice.detachedHead=false", "checkout", "--quiet", "-B", "main", self.commit)


def load_repositories(half: str | None = None) -> list[PublicRepository]:
    table = tomllib.loads((HERE / "repositories.toml").read_text(encoding="utf-8"))
    found = [PublicRepository(**entry) for entry in table["repository"]]
    return [one for one in found if half in (None, one.half)]
