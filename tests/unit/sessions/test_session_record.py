"""Closeout: what a session did and left, told from what others did in the same place at the same time."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import CODEX, Place, a_handoff, run_cli
from tests.support.sessions import AgentDatabase
from tests.unit.interfaces.test_hooks import EDIT, LEFT_TODAY, SHELL, git_env, here, hook, transcript
from truekeep.core.model import WRITERS
from truekeep.sessions import session_record
from truekeep.sessions.checkpoint import from_values
from truekeep.workspace.checkpointing import leave_handoffs

__all__ = ["here"]  # the fixture

SESSION = {"claude": "CLAUDE_CODE_SESSION_ID", "codex": "CODEX_SESSION_ID"}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """No harness runs these tests, as far as they can tell."""
    for name in (*SESSION.values(), "OPENCLAW_SHELL", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)


def commit(place: Place) -> None:
    git = ["git", "-C", str(place.repo), "commit", "-q", "--allow-empty", "-m", "a"]
    subprocess.run(git, check=True, env=git_env())


def record_of(session_id: str, harness: str = "claude") -> session_record.SessionRecord:
    record = session_record.read_record(harness, session_id)
    assert record is not None
    return record


# --- Handoffs --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_a_handoff_of_another_harness_is_not_this_sessions(here: Place, harness: str) -> None:
    other = {"claude": "codex", "codex": "claude"}[harness]
    hook(here, "session-start", "--for", harness, source="startup")
    transcript(here, EDIT * 3)
    left = ["handoff", "new", "--title", "Staging", "--fact", "Staging answers on port 8443", "--card", "staging.md"]
    assert run_cli(*left, "--writer", other, cwd=here.repo).returncode == 0
    assert "no memory handoff" in hook(here, "stop", "--for", harness)
    assert run_cli(*left, "--writer", harness, cwd=here.repo).returncode == 0
    hook(here, "session-end", "--for", harness)
    assert record_of("s1", harness).is_closed


@pytest.mark.slow
def test_a_session_that_only_left_a_handoff_did_work_and_left_what_it_learned(here: Place) -> None:
    """It read, understood, and wrote that down: no edit, no commit, and all the same what memory lives on."""
    hook(here, "session-start", source="startup")
    transcript(here, '{"type": "user", "message": {"content": "which port is staging on?"}}\n')
    left = ["handoff", "new", "--title", "Staging", "--fact", "Staging answers on port 8443", "--card", "staging.md"]
    assert run_cli(*left, "--writer", "claude", cwd=here.repo).returncode == 0
    assert hook(here, "stop") == ""
    assert run_cli("ingest", "-w", str(here.workspace), cwd=here.repo).returncode == 0
    hook(here, "session-end")
    told = run_cli("status", "-w", str(here.workspace), cwd=here.repo).stdout
    assert "1 in 30 days; 1 did real work, 1 of them left what they learned (100%)" in " ".join(told.split())
    data = json.loads(run_cli("status", "closeout", "--json", cwd=here.repo).stdout)
    assert [(item["sessions"], item["worked"], item["closed"]) for item in data["closeout"]] == [(1, 1, 1)]


@pytest.mark.slow
def test_what_was_adopted_is_no_sessions(here: Place, own_home: Path) -> None:
    memory = own_home / ".claude" / "projects" / "x" / "memory"
    memory.mkdir(parents=True)
    head = "---\nname: proxy\ndescription: The proxy\nmetadata:\n  type: project\n---\n"
    (memory / "proxy.md").write_text(f"{head}Staging answers on port 8443 only.\n")
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    done = run_cli("adopt", "claude", "--from", str(memory), "--repo", str(here.repo), cwd=here.repo)
    assert list(here.inbox.glob("*.md")), done.stdout + done.stderr
    assert "no memory handoff" in hook(here, "stop")


def test_what_was_left_before_the_hooks_came_counts(here: Place) -> None:
    """Connected in the middle of a session: it began with its transcript."""
    begun = datetime.fromtimestamp(time.time() - 7200, UTC).strftime("%Y-%m-%dT%H:%M:%S.123Z")
    transcript(here, json.dumps({"type": "user", "timestamp": begun}) + "\n" + EDIT * 3)
    here.leave(a_handoff(), LEFT_TODAY, age=3600)
    assert hook(here, "stop") == ""
    assert record_of("s1").started_at == int(datetime.fromisoformat(begun).timestamp())


@pytest.mark.parametrize("begun", ["", "1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2026-99-99T99:99:99Z"])
def test_a_transcript_with_a_wrong_clock_began_now(here: Place, begun: str) -> None:
    transcript(here, json.dumps({"type": "user", "timestamp": begun}) + "\n" + EDIT * 3)
    before = time.time()
    assert "3 edits" in hook(here, "stop")
    assert before <= record_of("s1").started_at <= time.time()


def test_what_was_left_before_a_session_was_resumed_does_not_count(here: Place) -> None:
    begun = datetime.fromtimestamp(time.time() - 7200, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    transcript(here, json.dumps({"type": "user", "timestamp": begun}) + "\n" + EDIT * 3)
    here.leave(a_handoff(), LEFT_TODAY, age=3600)
    hook(here, "session-start", source="resume")
    transcript(here, EDIT * 3)
    assert "3 edits" in hook(here, "stop")


# --- Commits ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_commit_of_someone_else_is_not_the_sessions(here: Place) -> None:
    transcript(here, '{"type": "user", "message": {"content": "hi"}}\n')
    hook(here, "session-start", source="startup")
    commit(here)
    assert hook(here, "stop") == ""
    transcript(here, SHELL.replace("Bash", "Read"))
    commit(here)
    assert hook(here, "stop") == ""
    transcript(here, SHELL)
    assert hook(here, "stop") == ""
    transcript(here, SHELL)
    commit(here)
    assert "made 1 commit and" in hook(here, "stop")


def test_without_a_transcript_gits_log_is_all_there_is(here: Place) -> None:
    missing = str(here.base / "missing.jsonl")
    hook(here, "session-start", source="startup", transcript_path=missing)
    commit(here)
    assert "made 1 commit and" in hook(here, "stop", transcript_path=missing)


# --- Checkpoints -----------------------------------------------------------------------------------------------------

COMMANDS = [
    ["checkpoint", "--last-action", "Split it."],
    ["note", "log", "Split", "it."],
    ["note", "decision", "Two", "halves."],
]


@pytest.mark.slow
@pytest.mark.parametrize("harness", ["claude", "codex"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_checkpoint_of_this_session_is_something_left(here: Place, words: list[str], harness: str) -> None:
    for name in ("s1", "s2"):
        hook(here, "session-start", "--for", harness, source="startup", session_id=name)
    transcript(here, EDIT * 3)
    done = run_cli(*words, cwd=here.repo, **{SESSION[harness]: "s1"})
    assert done.returncode == 0, done.stderr
    assert hook(here, "stop", "--for", harness) == ""
    assert record_of("s1", harness).has_checkpoint
    assert "no memory handoff" in hook(here, "stop", "--for", harness, session_id="s2")


@pytest.mark.slow
def test_where_the_session_is_not_named_the_writer_and_the_place_tell(here: Place) -> None:
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    for words in (["--writer", "anna"], ["--writer", "codex"], []):
        assert run_cli("note", "log", "Split it.", *words, cwd=here.repo).returncode == 0
    assert "no memory handoff" in hook(here, "stop")
    assert run_cli("note", "log", "Split it.", "--writer", "claude", cwd=here.repo).returncode == 0
    hook(here, "session-end")
    assert record_of("s1").is_closed


@pytest.mark.slow
def test_a_checkpoint_of_an_earlier_session_does_not_count(here: Place) -> None:
    assert run_cli("note", "log", "Split it.", "--writer", "claude", cwd=here.repo).returncode == 0
    time.sleep(0.02)
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    assert "no memory handoff" in hook(here, "stop")


# --- A machine without a workspace -----------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(here: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("TRUEKEEP_WORKSPACE")
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    return here


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--writer", "Ada"], ["--writer", "codex"]], ids=str)
def test_what_someone_else_says_is_no_closeout(elsewhere: Place, words: list[str]) -> None:
    done = run_cli("note", "log", "Split it.", *words, cwd=elsewhere.repo)
    assert "for the canonical host" in done.stdout, done.stderr
    name = words[-1] if words else getpass.getuser()
    (left,) = (*elsewhere.inbox.glob("*.md"), *(elsewhere.repo / CODEX).glob("*.md"))
    assert f"truekeep checkpoint, {name} on " in left.read_text()
    assert "no memory handoff" in hook(elsewhere, "stop")


@pytest.mark.slow
@pytest.mark.parametrize("has_id", [True, False])
def test_what_the_session_itself_says_is_one(elsewhere: Place, has_id: bool) -> None:
    words, variables = ([], {SESSION["claude"]: "s1"}) if has_id else (["--writer", "claude"], {})
    assert run_cli("note", "decision", "Two halves.", *words, cwd=elsewhere.repo, **variables).returncode == 0
    assert hook(elsewhere, "stop") == ""
    assert record_of("s1").is_closed


def test_what_came_from_another_machine_is_no_closeout(here: Place) -> None:
    """Carried into the inbox of the same repository while a session runs here."""
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    there = from_values({"summary": "Said there.", "decisions": ["So be it."]})
    at = datetime.now().astimezone()
    for path in leave_handoffs(there, here.repo, writer="claude", writers=WRITERS, now=at, machine="vm"):
        os.utime(path, (time.time() + 1, time.time() + 1))
    here.leave(a_handoff(), time.strftime("%Y-%m-%d-0900-x.md", time.gmtime(time.time() - 3 * 86_400)), age=-1)
    assert "no memory handoff" in hook(here, "stop")


# --- OpenClaw --------------------------------------------------------------------------------------------------------


def openclaw(place: Place, event: str, session_id: str, **more: Any) -> str:
    """What OpenClaw's handler sends: a session's name and its key, and no transcript."""
    payload = {"session_id": session_id, "session_key": "agent:main:main", "cwd": str(place.workspace), **more}
    done = run_cli("hook", event, "--for", "openclaw", stdin=json.dumps(payload), cwd=place.base)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def called(name: str, **arguments: str) -> dict[str, Any]:
    content = [{"type": "toolCall", "id": "c", "name": name, "arguments": arguments}]
    return {"type": "message", "message": {"role": "assistant", "content": content}}


ROWS = [{"type": "session", "id": "o1"}, called("read", path="a"), called("write", path="a"), called("edit", path="a")]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["file", "database"])
def test_openclaws_sessions_did_work_too(here: Place, own_home: Path, store: str) -> None:
    database = AgentDatabase(own_home) if store == "database" else None
    path = own_home / ".openclaw/agents/main/sessions/o1.jsonl"
    path.parent.mkdir(parents=True)

    def add(*rows: dict[str, Any]) -> None:
        if database is not None:
            database.add("o1", rows)
            database.add("o2", rows)
            return
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    assert "Split the parser." in openclaw(here, "agent-bootstrap", "o1")
    add(*ROWS)
    openclaw(here, "agent-bootstrap", "o1")
    assert record_of("o1", "openclaw").edits == 2
    add(called("apply_patch", input="x"), called("exec", command="git commit -m x"))
    openclaw(here, "session-end", "o1")
    record = record_of("o1", "openclaw")
    assert (record.edits, record.commits, record.has_work, record.is_closed) == (3, 1, True, False)
    assert record.ended_at
    if database is not None:
        database.close()


@pytest.mark.slow
def test_openclaws_sessions_have_a_record_each(here: Place) -> None:
    """The key is the same for all that follow each other; without a name of its own, a session is not noted."""
    for name in ("o1", "o2", "agent:main:main", ""):
        openclaw(here, "agent-bootstrap", name)
        openclaw(here, "session-end", name)
    assert [record.id for record in session_record.iter_records()] == ["o1", "o2"]


@pytest.mark.slow
def test_openclaw_uses_any_inbox(here: Place, own_home: Path) -> None:
    path = own_home / ".openclaw/agents/main/sessions/o1.jsonl"
    path.parent.mkdir(parents=True)
    openclaw(here, "agent-bootstrap", "o1")
    path.write_text("".join(json.dumps(row) + "\n" for row in (*ROWS, called("write", path="b"))))
    openclaw(here, "pre-compact", "o1")
    assert "The context was shortened." in openclaw(here, "agent-bootstrap", "o1")
    assert "The context was shortened." not in openclaw(here, "agent-bootstrap", "o1")
    here.leave(a_handoff(), LEFT_TODAY, inbox=here.workspace / CODEX, age=-1)
    openclaw(here, "session-end", "o1")
    assert record_of("o1", "openclaw").is_closed


@pytest.mark.parametrize("name", ["../../x", "a/b", ".", "..", "x" * 5000])
def test_a_session_by_an_odd_name_is_nobodys_transcript(here: Place, name: str) -> None:
    openclaw(here, "session-end", name, session_key=f"agent:{name}:main")
    assert all(record.transcript == "" for record in session_record.iter_records())
