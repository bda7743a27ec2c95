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
        git("init", "--quiet", str(target))
        depth = ("--depth", "1") if is_shallow else ()
        source = f"file://{clone.resolve()}" if is_shallow else str(clone.resolve())
        git("-C", str(target), "-c", "protocol.file.allow=always", "fetch", "--quiet", *depth, source, self.commit)
        git("-C", str(target), "-c", "advice.detachedHead=false", "checkout", "--quiet", "-B", "main", "FETCH_HEAD")


def load_repositories(half: str | None = None) -> list[PublicRepository]:
    table = tomllib.loads((HERE / "repositories.toml").read_text(encoding="utf-8"))
    found = [PublicRepository(**entry) for entry in table["repository"]]
    return [one for one in found if half in (None, one.half)]
