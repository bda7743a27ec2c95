"""Whole sessions with the real Claude Code and Codex: what the model is told, what it leaves, what the next one knows.

The model is a stub on loopback; the programs, their hooks, their transcripts and truekeep are the real ones.
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
from tests.support.helpers import Place, a_card, git_repo, run_cli
from tests.support.model_stubs import Model, Say, Steps, Use, serve_model
from tests.unit.integrations.test_connect import VARIABLES
from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.sessions import session_record
from truekeep.workspace.workspace import Workspace

REMINDED = "truekeep:begin closeout"  # without what Codex escapes
COMMAND = re.compile(r"(truekeep handoff new --writer (\w+) .*?) \. If it did not")
PROMPT = "Please split the parser into two halves."


@dataclass
class Machine:
    """A home with one repository, one workspace and one harness that is connected to it."""

    place: Place
    model: Model
    harness: str

    @property
    def repo(self) -> Path:
        return self.place.repo

    def talk(self, *words: str) -> str:
        """Run the harness once, and hear what it prints."""
        done = subprocess.run(
            [*COMMANDS[self.harness], *words], cwd=self.repo, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-2000:]} {done.stderr[-2000:]}"
        return done.stdout + done.stderr

    def run(self, *words: str) -> str:
        done = run_cli(*words, cwd=self.repo)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def edits(self, *names: str) -> Steps:
        """Files written as this harness writes files."""
        if self.harness == "claude":
            return [Use("Write", {"file_path": str(self.repo / name), "content": "a = 1\n"}) for name in names]
        files = "".join(f"*** Add File: {name}\n+a = 1\n" for name in names)
        return self.shell(f"apply_patch <<'EOF'\n*** Begin Patch\n{files}*** End Patch\nEOF")

    def shell(self, command: str) -> Steps:
        if self.harness == "claude":
            return [Use("Bash", {"command": command, "description": "Run it"})]
        return [Use("exec_command", {"cmd": command})]

    def leave(self, latest: str) -> Steps:
        """The command of the reminder, filled in."""
        found = COMMAND.search(latest)
        assert found is not None, latest
        assert found[2] == self.harness
        said = iter(("'The parser has two halves'", "'Lexer and grammar are apart.'", "'The lexer knows no grammar'"))
        command = re.sub(r"'\.\.\.'", lambda _: next(said), found[1]).replace("NAME.md", "parser-halves.md")
        return self.shell(command)

    def record(self) -> session_record.SessionRecord:
        (found,) = session_record.iter_records()
        return found


COMMANDS = {
    "claude": ["claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "-p"],
    "codex": ["codex", "exec", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"],
}


@pytest.fixture(params=["claude", "codex"])
def machine(
    request: pytest.FixtureRequest, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Machine]:
    programs = need_real_programs()
    harness: str = request.param
    for name in (*VARIABLES, "XDG_DATA_HOME", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    found = tmp_path / "bin"
    found.mkdir()
    for name in ("node", harness):
        (found / name).symlink_to(programs / name)
    path = f"{found}:{Path(sys.executable).parent}:/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    (own_home / ".profile").write_text(f'PATH="{path}"\n')  # Codex runs commands in a login shell
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.invalid")
    workspace = own_home / ".openclaw" / "workspace"
    place = Place(base=tmp_path, workspace=workspace, repo=git_repo(tmp_path / "repos" / "app"))
    Workspace.init(workspace)
    place.configure()
    card = a_card("Where the parser reads", "It reads UTF-8 only.", repository="github.com/me/app")
    (workspace / "memory" / "cards" / "parser-input.md").write_text(card)
    with serve_model() as model:
        if harness == "claude":
            monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
            monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
            monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        else:
            provider = f'[model_providers.p]\nname = "p"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
            # With memories on, an agent of its own consolidates them at the start of every session.
            memories = "[features]\nmemories = true\n[memories]\nmin_rollout_idle_hours = 0\n"
            (own_home / ".codex").mkdir()
            (own_home / ".codex" / "config.toml").write_text(f'model = "m"\nmodel_provider = "p"\n{memories}{provider}')
        made = Machine(place, model, harness)
        made.run("checkpoint", "--last-action", "Measured the parser.", "--next-action", "Split it in two.")
        made.run("connect", "--yes", "--harness", harness)
        yield made


def test_an_agent_wakes_knowing_and_leaves_what_it_learned(machine: Machine) -> None:
    model = machine.model
    model.expect(
        (PROMPT, machine.edits("lexer.py", "grammar.py", "tests.py")),
        ("lexer.py", [Say("It is split.")]),
        (REMINDED, machine.leave),
        ("parser-halves.md", [Say("It is left.")]),
    )
    said = machine.talk(PROMPT)
    assert model.is_done, said
    assert "Failed" not in said

    first = next(asked for asked in model.asked if PROMPT in asked.latest)
    assert first.text.count(f"{BEGIN_MARK} wake") == 1
    assert "Measured the parser." in first.text
    assert "Where the parser reads" in first.text
    (reminded,) = (asked.latest for asked in model.asked if REMINDED in asked.latest)
    assert "This session made 3 edits and left no checkpoint and no memory handoff." in reminded
    assert model.asked[-1].latest.count(BEGIN_MARK) == 0  # and that was all
    others = [asked for asked in model.asked if asked.model != first.model]
    assert bool(others) == (machine.harness == "codex")  # its consolidation of memories
    assert not any("truekeep:begin" in asked.text for asked in others)

    inbox = machine.repo / f".{machine.harness}" / "memory-handoffs"
    (handoff,) = inbox.glob("*.md")
    assert "The lexer knows no grammar" in handoff.read_text()
    record = machine.record()
    assert (record.harness, record.repository, record.root) == (machine.harness, "github.com/me/app", str(machine.repo))
    assert (record.edits, record.commits, record.handoffs, record.is_reminded) == (3, 0, 1, True)
    assert record.ended_at > record.started_at
    assert "100%" in machine.run("status")
    machine.run("transcripts", "sync")
    kept = machine.run("transcripts", "show", record.id)
    assert "It is left." in kept
    assert "truekeep:begin" not in kept  # what truekeep said is no dialogue

    assert "Promoted 1" in machine.run("ingest")
    machine.run("index")
    model.expect((PROMPT, [Say("Nothing is left to do.")]))
    machine.talk(PROMPT)
    assert model.is_done
    latest = next(asked for asked in reversed(model.asked) if PROMPT in asked.latest)
    assert "The parser has two halves" in latest.text
    assert "Lexer and grammar are apart." in latest.text
    assert REMINDED not in latest.text
    assert "2         1       1           100%" in machine.run("status", "closeout")
    assert not list(machine.place.workspace.rglob("hooks.log"))


def test_who_only_talks_is_helped_and_left_alone(machine: Machine) -> None:
    """The brief arrives whole, in a script that takes many bytes; the prompt gets its card; nothing was to be left.

    Both harnesses put into a file what is too long for them, and both quote instructions in the transcript that speak
    of edits and of `git commit`.
    """
    memory = machine.place.workspace
    (memory / "MEMORY.md").write_text(
        "# Memory\n\n" + "".join(f"- {n}: {'漢字かな混じり文' * 40}\n" for n in range(60))
    )
    card = a_card("Draining the queue", "`drain_queue()` runs at night.", repository="github.com/me/app")
    (memory / "memory" / "cards" / "queue.md").write_text(card)
    machine.run("index")
    machine.model.expect(
        ("on Mondays", machine.shell("echo git commit; ls")),
        ("git commit", [Say("There is nothing here.")]),
    )
    assert "Failed" not in machine.talk("Why does drain_queue fail on Mondays?")
    assert machine.model.is_done
    first = next(asked for asked in machine.model.asked if "on Mondays" in asked.latest)
    brief = first.text.partition(f"{BEGIN_MARK} wake")[2].partition(f"{END_MARK} wake")[0]
    left_out = re.search(r"- (\d+) of Curated memory", brief)
    assert left_out is not None
    assert int(left_out[1]) + len(re.findall(r"^> - \d+: (?:漢字かな混じり文){40}$", brief, re.MULTILINE)) == 60
    assert f"{BEGIN_MARK} hint" in first.text
    assert "`drain_queue()` runs at night." in first.text
    assert not any(REMINDED in asked.text for asked in machine.model.asked)
    record = machine.record()
    assert (record.edits, record.commits, record.is_reminded, bool(record.ended_at)) == (0, 0, False, True)


def test_a_commit_is_work_and_sub_agents_are_nobody(machine: Machine) -> None:
    model = machine.model
    task = "Count the halves of the parser."
    if machine.harness == "claude":
        given = {"description": "Count", "prompt": task, "subagent_type": "general-purpose", "run_in_background": False}
        spawn, done = [Use("Agent", given)], "Two."
    else:
        spawn, done = [Use("multi_agent_v1/spawn_agent", {"message": task})], "agent_id"
    model.expect(
        (task, [Say("Two.")]),
        ("Commit it", spawn),
        (done, machine.shell("git commit --quiet --allow-empty -m 'Split the parser' && echo committed")),
        ("committed", [Say("It is committed.")]),
        (REMINDED, [Say("Nothing outlasts this.")]),
    )
    machine.talk("Commit it, please.")
    assert model.is_done
    assert any("1 commit and left" in asked.latest for asked in model.asked)
    own = [asked for asked in model.asked if task in asked.text and "Commit it" not in asked.text]
    assert own
    assert not any(f"{BEGIN_MARK} wake" in asked.text or REMINDED in asked.text for asked in own)
    assert (machine.record().commits, machine.record().edits) == (1, 0)
    assert "0%" in machine.run("status")


def test_a_compaction_brings_the_brief_again_and_a_word_about_what_to_keep(machine: Machine) -> None:
    """Claude Code takes it into the summary; Codex passes on nothing before, so it hears it after."""
    model = machine.model
    model.expect((PROMPT, machine.edits("lexer.py", "grammar.py", "tests.py")))
    if machine.harness == "codex":
        config = Path.home() / ".codex" / "config.toml"
        config.write_text(f"model_auto_compact_token_limit = 1\n{config.read_text()}")
        assert "Failed" not in machine.talk(PROMPT)
        assert "PreCompact Completed" in machine.talk("resume", "--last", "Go on, please.")
    else:
        machine.talk(PROMPT)
        machine.talk("--continue", "/compact")
        assert any("about to be shortened" in asked.latest for asked in model.asked)
        machine.talk("--continue", "Go on, please.")
    latest = next(asked for asked in model.asked if "Go on, please." in asked.latest)
    assert f"{BEGIN_MARK} wake" in latest.text
    assert f"{BEGIN_MARK} compact" in latest.text


def test_what_memory_says_against_a_command_is_said_when_it_is_run(machine: Machine) -> None:
    """One line, once a session, marked as quoted, at an edit and at a command."""
    machine.run("note", "correction", "add", "Wrote dist/app.js by hand", "--instead", "build it")
    machine.run("note", "correction", "add", "Ran `git stash drop` at once", "--instead", "look at it first")
    model = machine.model
    model.expect(
        (PROMPT, machine.edits("dist/app.js")),
        ("app.js", machine.shell("git stash drop || true")),
        ("stash", machine.shell("git stash drop || true")),
    )
    machine.talk(PROMPT)
    told = model.asked[-1].text
    for line in ("Wrote dist/app.js by hand. Instead: build it.", "Instead: look at it first."):
        assert told.count(line) - first_brief(model).count(line) == 1


def first_brief(model: Model) -> str:
    return next(asked.text for asked in model.asked if PROMPT in asked.latest)
