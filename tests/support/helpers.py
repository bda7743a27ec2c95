"""Builders that the tests share: handoffs, repositories, a whole place to work in."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from truekeep.core.model import FilingOutcome, IngestReport
from truekeep.workspace.workspace import Workspace

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
CLAUDE = ".claude/memory-handoffs"
CODEX = ".codex/memory-handoffs"


def a_card(
    topic: str = "Proxy in front of staging", body: str = "Staging answers on port 8443 only.", **keys: str
) -> str:
    """The text of a suggested card."""
    more = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\ntopic: {topic}\ncategory: setup\ntags: [proxy, staging]\n{more}---\n\n{body}\n"


def a_handoff(
    *,
    type: str = "setup",  # noqa: A002
    title: str = "Staging sits behind a proxy",
    summary: str = "The proxy terminates TLS. Clients that bypass it get a reset.",
    facts: str = "- Staging answers on port 8443 only",
    action: str = "create-card",
    card: str | None = "staging-proxy.md",
    content: str | None = None,
    document: str | None = None,
    document_content: str | None = None,
) -> str:
    """A handoff that is filed as it is; name what should differ."""
    parts = [
        "# Memory Handoff\n",
        f"## Type\n{type}\n",
        f"## Title\n{title}\n",
        f"## Summary\n{summary}\n",
        f"## Durable facts\n{facts}\n",
        "## Evidence\n- files changed: deploy/proxy.conf\n",
        f"## Recommended memory action\n{action}\n",
    ]
    if action != "no-card" and card is not None:
        parts.append(f"## Target card\n{card}\n")
    if action != "no-card":
        parts.append(f"## Suggested card content\n{a_card() if content is None else content}")
    if document is not None:
        parts.append(f"## Target document\n{document}\n")
    if document_content is not None:
        parts.append(f"## Suggested document content\n{document_content}\n")
    return "\n".join(parts)


def a_document_handoff(
    content: str = "### Lint\nRun make lint before every push.",
    document: str = "TOOLS.md",
    title: str = "Lint before push",
) -> str:
    return a_handoff(type="workflow", title=title, action="no-card", document=document, document_content=content)


def git_repo(path: Path, *, remote: str = "https://github.com/me/app.git") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    if remote:
        subprocess.run(["git", "-C", str(path), "remote", "add", "origin", remote], check=True)
    return path


class Closable(Protocol):
    def close(self) -> None: ...


OPENED: list[Closable] = []
"""Workspaces and sites that somebody may leave open; after each test they are closed."""


@dataclass
class Place:
    """A workspace, a repository, and the run's reports."""

    base: Path
    workspace: Path
    repo: Path
    filed: list[FilingOutcome] = field(default_factory=list)

    @classmethod
    def make(cls, base: Path, *, config: str = "") -> Place:
        repo = base / "repos" / "app"
        (repo / CLAUDE).mkdir(parents=True)
        (repo / ".git").mkdir()
        (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        workspace = base / "workspace"
        Workspace.init(workspace, now=lambda: NOW)
        place = cls(base=base, workspace=workspace, repo=repo)
        place.configure(config)
        return place

    def configure(self, text: str = "", *, settle: float = 0) -> None:
        limits = f"settle_seconds = {settle}\n"
        text = (
            text.replace("[limits]\n", f"[limits]\n{limits}") if "[limits]" in text else f"{text}\n[limits]\n{limits}"
        )
        pattern = str(self.base / "repos" / "*")
        (self.workspace / ".truekeep" / "config.toml").write_text(f'repositories = ["{pattern}"]\n{text}')

    @property
    def inbox(self) -> Path:
        return self.repo / CLAUDE

    def open(self, *, now: datetime = NOW) -> Workspace:
        return Workspace.open(self.workspace, now=lambda: now)

    def leave(
        self,
        content: str | bytes,
        name: str = "2026-11-14-0900-proxy.md",
        *,
        inbox: Path | None = None,
        age: float = 60,
    ) -> Path:
        """Put a handoff into an inbox, as if it had been written a minute ago."""
        folder = inbox or self.inbox
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        then = time.time() - age
        os.utime(path, (then, then))
        return path

    def ingest(
        self, *, now: datetime = NOW, cards: bool = True, documents: bool = True, dry_run: bool = False
    ) -> IngestReport:
        self.filed = []
        with self.open(now=now) as workspace:
            return workspace.handoffs.ingest(
                on_filed=self.filed.append, cards=cards, documents=documents, dry_run=dry_run
            )

    def outcomes(self) -> dict[str, str]:
        return {item.name: item.outcome for item in self.filed}

    def codes(self, name: str | None = None) -> set[str]:
        return {finding.code for item in self.filed if name in (None, item.name) for finding in item.findings}

    def card(self, name: str = "staging-proxy.md") -> str:
        return (self.workspace / "memory" / "cards" / name).read_text()

    def cards(self) -> list[str]:
        folder = self.workspace / "memory" / "cards"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def drafts(self) -> list[Path]:
        folder = self.workspace / "memory" / "handoff-inbox"
        return sorted(folder.glob("*.md")) if folder.exists() else []

    def index(self) -> str:
        return (self.workspace / "MEMORY.md").read_text()

    def waiting(self) -> list[str]:
        return sorted(path.name for path in self.inbox.iterdir() if path.name != "processed")

    def processed(self) -> list[str]:
        folder = self.inbox / "processed"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def tree(root: Path, *, skip: tuple[str, ...] = (".truekeep",)) -> Mapping[str, str]:
    """Every file below a folder with its digest; symlinks with where they point."""
    found: dict[str, str] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in skip]
        for name in [*files, *(name for name in names if os.path.islink(os.path.join(folder, name)))]:
            path = Path(folder) / name
            key = str(path.relative_to(root))
            found[key] = (
                f"-> {os.readlink(path)}" if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest()
            )
    return found


_PATIENT_HOOK = (  # the real one gives up after seconds, as harnesses do; a busy machine is no reason to fail a test
    "import truekeep.interfaces.hooks as hooks; from truekeep.__main__ import main;"
    "hooks.EVENTS = {name: (120.0, answer) for name, (_, answer) in hooks.EVENTS.items()}; main()"
)


def run_cli(
    *arguments: str, cwd: Path | None = None, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the real program in a process of its own."""
    program = ["-c", _PATIENT_HOOK] if arguments[:1] == ("hook",) else ["-m", "truekeep"]
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=300,
    )


PATIENCE = 120.0  # seconds until what a test waits for must be there, on a machine that is busy with other things


def wait_until(is_so: Callable[[], object], *, seconds: float = PATIENCE) -> bool:
    """Wait for a condition. Gives whether it came true."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return bool(is_so())
        time.sleep(0.02)
    return True
