"""A repository with code and documents, and what `truekeep check` says about it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.helpers import git_repo, run_cli


class Project:
    """A repository with code and documents."""

    def __init__(self, path: Path) -> None:
        self.path = git_repo(path)
        self.git("config", "user.email", "ada@example.org")
        self.git("config", "user.name", "Ada")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.path), *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def commit(self, message: str = "work", **files: str) -> str:
        for path, text in files.items():
            self.write(path, text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def check(self, *arguments: str, exit_code: int | None = None) -> str:
        done = run_cli("check", "--repo", str(self.path), *arguments)
        if exit_code is not None:
            assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout

    def report(self, *arguments: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.check(*arguments, "--json"))["report"]
        return report

    def alarms(self, *arguments: str) -> list[tuple[str, int, str, str]]:
        found = self.report(*arguments)["alarms"]
        return [(item["path"], item["line"], item["verdict"], item["claim"]) for item in found]
