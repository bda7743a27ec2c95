"""The five-minute test of the founding documents, with the real Claude Code and Codex in one fresh home.

A small task in each; the handoffs are found, ingested and filed; the next session of the other harness knows them.
The model is a stub on loopback; the requests that the harnesses send it are looked at.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.harnesses import need_real_programs
from tests.support.helpers import git_repo, run_cli
from tests.support.model_stubs import Model, Say, Steps, Use, serve_model
from tests.unit.integrations.test_connect import VARIABLES

REMINDED = "truekeep:begin closeout"
COMMAND = re.compile(r"(truekeep handoff new --writer \w+ .*?) \. If it did not")
INBOXES = "-path */.claude/memory-handoffs/*.md -o -path */.codex/memory-handoffs/*.md"
FIND = f"find repos ( {INBOXES} ) -not -path */processed/* -mtime -7"
HARNESSES = {
    "claude": ["claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "-p"],
    "codex": ["codex", "exec", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"],
}


@dataclass
class Home:
    """A home with one repository, in which both harnesses talk to one stub."""

    path: Path
    repo: Path
    model: Model

    def run(self, *words: str) -> str:
        done = run_cli(*words, cwd=self.repo)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def talk(self, harness: str, prompt: str, *, is_trusted: bool = True) -> str:
        """One session, and all that the model was told in it."""
        before = len(self.model.asked)
        words = [word for word in HARNESSES[harness] if is_trusted or "hook-trust" not in word]
        done = subprocess.run(
            [*words, prompt], cwd=self.repo, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-2000:]} {done.stderr[-2000:]}"
        return "\n".join(asked.text for asked in self.model.asked[before:])

    def work(self, harness: str, prompt: str, *, title: str, summary: str, fact: str, card: str) -> str:
        """A session that edits three files and, when reminded, leaves a handoff."""
        names = [f"{harness}_{number}.py" for number in range(3)]

        def leave(latest: str) -> Steps:
            found = COMMAND.search(latest)
            assert found is not None, latest
            said = iter((title, summary, fact))
            return _shell(harness, re.sub(r"'\.\.\.'", lambda _: f"'{next(said)}'", found[1]).replace("NAME.md", card))

        self.model.expect(
            (prompt, self._edits(harness, names)),
            (names[0], [Say("It is done.")]),
            (REMINDED, leave),
            (card, [Say("It is left.")]),
        )
        told = self.talk(harness, prompt)
        assert self.model.is_done
        return told

    def handoffs(self) -> list[str]:
        done = subprocess.run(FIND.split(), cwd=self.path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def _edits(self, harness: str, names: list[str]) -> Steps:
        if harness == "claude":
            return [Use("Write", {"file_path": str(self.repo / name), "content": "a = 1\n"}) for name in names]
        files = "".join(f"*** Add File: {name}\n+a = 1\n" for name in names)
        return _shell(harness, f"apply_patch <<'EOF'\n*** Begin Patch\n{files}*** End Patch\nEOF")


def _shell(harness: str, command: str) -> Steps:
    if harness == "claude":
        return [Use("Bash", {"command": command, "description": "Run it"})]
    return [Use("exec_command", {"cmd": command})]


@pytest.fixture
def home(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    programs = need_real_programs()
    for name in (*VARIABLES, "XDG_DATA_HOME", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    found = tmp_path / "bin"
    found.mkdir()
    for name in ("node", *HARNESSES):
        (found / name).symlink_to(programs / name)
    path = f"{found}:{Path(sys.executable).parent}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    (own_home / ".profile").write_text(f'PATH="{path}"\n')  # Codex runs commands in a login shell
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    (own_home / "repos").mkdir()
    repo = git_repo(own_home / "repos" / "shop")
    with serve_model() as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
        monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        provider = f'[model_providers.p]\nname = "p"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
        (own_home / ".codex").mkdir()
        (own_home / ".codex" / "config.toml").write_text(f'model = "m"\nmodel_provider = "p"\n{provider}')
        yield Home(own_home, repo, model)


def test_a_small_task_in_each_harness_reaches_the_other(home: Home) -> None:
    home.run("init", "--repo", "~/repos/*")
    home.run("connect", "--yes")
    (home.path / ".openclaw" / "workspace" / "logs").mkdir()

    home.work(
        "claude", "Round the totals.", title="Totals are rounded half to even", card="cart-rounding.md",
        summary="The tax office rejects totals that were rounded half up.",
        fact="Totals round half to even because the tax office rejects half up",
    )  # fmt: skip
    (waiting,) = home.handoffs()
    assert "/.claude/memory-handoffs/" in waiting
    assert "Promoted 1" in home.run("ingest")
    assert home.handoffs() == []

    told = home.work(
        "codex", "Charge for shipping.", title="Shipping is free from 50 euros net", card="shipping-limit.md",
        summary="Sales agreed free shipping from 50 euros net with the carrier.",
        fact="The limit is net of tax because the carrier bills net",
    )  # fmt: skip
    assert "The tax office rejects totals that were rounded half up." in told
    (waiting,) = home.handoffs()
    assert "/.codex/memory-handoffs/" in waiting
    assert "Promoted 1" in home.run("ingest")

    home.model.expect(("Is shipping free", [Say("Not yet.")]))
    told = home.talk("claude", "Is shipping free for a cart of 49 euros?")
    assert "Sales agreed free shipping from 50 euros net with the carrier." in told
    cards = home.path / ".openclaw" / "workspace" / "memory" / "cards"
    assert {path.name for path in cards.glob("*.md")} == {"cart-rounding.md", "shipping-limit.md"}
    log = (home.path / ".openclaw/workspace/logs/memory-handoff-ingest.log").read_text()
    assert len(log.splitlines()) == 2
    assert "2 of them left what they learned (100%)" in home.run("status")


def test_codex_without_trusted_hooks_is_told_how_to_see_memory(home: Home) -> None:
    """It runs no hook and says so nowhere: its instructions name the command, and doctor says what to do."""
    home.run("init", "--repo", "~/repos/*")
    home.run("connect", "--yes", "--harness", "codex")
    home.model.expect(("Hello", [Say("Hello.")]))
    told = home.talk("codex", "Hello", is_trusted=False)
    assert "truekeep:begin wake" not in told
    assert "If no shared memory was shown to you" in told
    doctor = run_cli("doctor", cwd=home.repo).stdout
    rows = doctor.partition("problem hooks")[2].partition("timer")[0]
    assert "codex: Codex runs no hook until you trust it\n" in rows
    assert "-> start `codex`" in rows
    assert "connected" not in rows.partition("->")[2].partition("`truekeep connect --check`")[2]
