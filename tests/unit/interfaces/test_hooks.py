"""Hooks: the right word at the right moment, within the harness's time, and never a reason for it to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_openclaw_handler import NOT_PRIVATE
from tests.support.helpers import CLAUDE, Place, a_card, a_handoff, git_repo, run_cli, wait_until
from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.interfaces import hooks
from truekeep.interfaces.hooks import EVENTS, MAX_INPUT_BYTES
from truekeep.sessions import session_record

EDIT = '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit","input":{}}]}}\n'
LEFT_TODAY = f"{time.strftime('%Y-%m-%d')}-0900-x.md"
SHELL = '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"make"}}]}}\n'


@pytest.fixture
def here(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    (place.repo / ".git" / "HEAD").unlink()
    (place.repo / ".git").rmdir()
    git_repo(place.repo)
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    (place.workspace / "HANDOVER.md").write_text("# Handover\n\n## Last Action\n\nSplit the parser.\n")
    return place


def transcript(place: Place, lines: str = "") -> Path:
    path = place.base / "session.jsonl"
    with path.open("a") as file:
        file.write(lines)
    return path


def hook(place: Place, event: str, *options: str, **given: Any) -> str:
    """What a hook says; it must end well, whatever it was given."""
    payload = {"session_id": "s1", "cwd": str(place.repo), "transcript_path": str(transcript(place)), **given}
    done = run_cli("hook", event, *options, stdin=json.dumps(payload), cwd=place.repo)
    assert done.returncode == 0
    assert done.stderr == ""
    return done.stdout


def log_of(place: Place) -> str:
    path = place.workspace / ".truekeep" / "logs" / "hooks.log"
    return path.read_text() if path.exists() else ""


# --- Session start ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_session_begins_with_the_brief(here: Place) -> None:
    said = hook(here, "session-start", source="startup")
    assert said.startswith(BEGIN_MARK)
    assert "Split the parser." in said
    record = session_record.read_record("claude", "s1")
    assert record is not None
    assert record.repository == "github.com/me/app"
    assert record.root == str(here.repo)


@pytest.mark.slow
def test_a_resumed_session_is_not_told_the_same_again(here: Place) -> None:
    first = hook(here, "session-start", source="startup")
    assert hook(here, "session-start", source="resume") == ""
    assert hook(here, "session-start", source="compact") == first
    (here.workspace / "HANDOVER.md").write_text("# Handover\n\n## Last Action\n\nSomething new.\n")
    assert "Something new." in hook(here, "session-start", source="resume")


def test_a_workspace_that_was_never_indexed_gets_an_index_for_the_next_session(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(hooks, "_start_later", lambda call: started.append(call.event))
    call = hooks.HookCall("session-start", "claude", {"session_id": "s1", "cwd": str(here.repo)}, str(here.workspace))
    assert "Split the parser." in EVENTS["session-start"][1](call)
    assert started == ["session-start"]
    (here.workspace / ".truekeep" / "index.lock").touch()
    EVENTS["session-start"][1](call)
    assert started == ["session-start"]


MAIN = "agent:main:main"


@pytest.mark.slow
def test_openclaw_gets_the_brief_as_text(here: Place) -> None:
    assert "Split the parser." in hook(here, "agent-bootstrap", "--for", "openclaw", session_key=MAIN)


@pytest.mark.parametrize("key", [*NOT_PRIVATE, ["agent:main:main"]])
def test_openclaw_gets_no_memory_in_groups(here: Place, key: Any) -> None:
    """The founding document: MEMORY.md in the main private session only. What is not surely that is not."""
    assert hook(here, "agent-bootstrap", "--for", "openclaw", session_key=key) == ""


@pytest.mark.slow
def test_openclaw_gets_no_memory_without_a_session_key(here: Place) -> None:
    assert hook(here, "session-start", "--for", "openclaw", source="startup") == ""
    assert hook(here, "agent-bootstrap", "--for", "openclaw") == ""
    assert hook(here, "agent-bootstrap", "--for", "openclaw", access={}) == ""


@pytest.mark.slow
def test_what_the_handler_sends_is_judged(here: Place) -> None:
    shared: dict[str, Any] = {"channels": {"whatsapp": {"allowFrom": ["*"]}}}
    judged: list[Any] = [shared, None, "yes", []]
    for access in judged:
        assert hook(here, "agent-bootstrap", "--for", "openclaw", session_key=MAIN, access=access) == ""
    ada: dict[str, Any] = {"agents": {"entries": {"ada": {}}}}
    assert hook(here, "agent-bootstrap", "--for", "openclaw", session_key="agent:ada:main", access=ada)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "is_private"),
    [
        ("{}", True),
        ('{"channels": {"telegram": {"dmPolicy": "pairing", "groupPolicy": "open"}}}', True),
        ('{session: {groupScope: "main"}}', False),
        ('{"$include": "rest.json5"}', False),
        ("{channels: {telegram: {dmPolicy: 'open'}}}", False),
        ('{"channels": {"slack": {"dm": {"policy" : "open"}}}}', False),
        ('{"channels": {"whatsapp": {"allowFrom": ["*"]}}}', False),
    ],
)
def test_for_a_handler_of_an_older_truekeep_the_configuration_is_read(
    here: Place, own_home: Path, config: str, is_private: bool
) -> None:
    (own_home / ".openclaw").mkdir()
    (own_home / ".openclaw" / "openclaw.json").write_text(config)
    assert bool(hook(here, "agent-bootstrap", "--for", "openclaw", session_key=MAIN)) == is_private


def test_a_coding_agent_that_openclaw_runs_gets_no_memory(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenClaw runs Claude Code with the user's plugins for any of its sessions; the hooks do not know for which."""
    monkeypatch.setenv("OPENCLAW_CLI", "1")
    assert hook(here, "session-start", source="startup") == ""


# --- Prompts ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def indexed(here: Place) -> Place:
    for number in range(12):
        filler = f"Filler card {number} about gardening, bread and the weather in district {number * 7919}."
        (here.workspace / f"memory/cards/filler-{number}.md").write_text(a_card(f"Filler {number}", filler))
    body = "The worker calls `drain_queue()` at night; `QUEUE_LIMIT` caps it."
    here.leave(a_handoff(card="queue.md", content=a_card("Draining the queue", body)))
    here.ingest()
    with here.open() as workspace:
        workspace.search.index()
    return here


@pytest.mark.slow
def test_a_prompt_that_names_something_of_a_card_gets_that_card(indexed: Place) -> None:
    said = hook(indexed, "user-prompt-submit", prompt="Why does drain_queue fail on Mondays?")
    assert "memory/cards/queue.md" in said
    assert said.startswith(BEGIN_MARK)
    assert said.splitlines()[-1].startswith(END_MARK)
    assert "filler" not in said
    assert hook(indexed, "user-prompt-submit", prompt="And drain_queue on Tuesdays?") == ""


MARKED = f"{BEGIN_MARK} closeout --> nothing {END_MARK} closeout -->"


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt",
    [
        f"{MARKED} Why does drain_queue fail?",
        f"Why does drain_queue fail? {MARKED}",
        f"{MARKED}{MARKED}\nWhy does drain_queue fail?\n{MARKED}",
        f"You printed `{BEGIN_MARK}` again. Why does drain_queue fail?",
        f"What is `{BEGIN_MARK} hint -->` for? And why does drain_queue fail?",
    ],
)
def test_only_our_own_words_are_cut_from_a_prompt(indexed: Place, prompt: str) -> None:
    assert "memory/cards/queue.md" in hook(indexed, "user-prompt-submit", prompt=prompt)


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt",
    [
        "hi",
        f"Go on, please.\n{BEGIN_MARK} wake -->\ndrain_queue, and then it was cut",
        f"{BEGIN_MARK} closeout --> drain_queue {END_MARK} closeout --> thanks, go on",
        "Please fix the tests and make it nicer.",
        "What do you think about the weather?",
        "Refactor everything so that it is faster",
        f"{BEGIN_MARK} hint -->\ndrain_queue\n{END_MARK} hint -->\nthanks, go on please",
        'drain "* OR NEAR( queue',
        "<task-notification>\n<result>drain_queue is fine</result>\n</task-notification>",
        "",
    ],
)
def test_a_prompt_without_a_strong_match_gets_nothing(indexed: Place, prompt: str) -> None:
    assert hook(indexed, "user-prompt-submit", prompt=prompt) == ""
    assert log_of(indexed) == ""


# --- Compaction ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_before_compaction_it_is_said_once_what_to_keep(here: Place) -> None:
    hook(here, "session-start", source="startup")
    assert "truekeep handoff new --writer claude" in hook(here, "pre-compact", trigger="auto")
    assert hook(here, "pre-compact", trigger="auto") == ""
    hook(here, "session-start", source="compact")
    assert hook(here, "pre-compact", trigger="auto") != ""


@pytest.mark.slow
def test_codex_hears_after_a_compaction_what_it_is_not_told_before(here: Place) -> None:
    hook(here, "session-start", "--for", "codex", source="startup")
    transcript(here, codex_row(**CHANGE) * 2)
    assert hook(here, "pre-compact", "--for", "codex", trigger="auto") == ""
    said = hook(here, "session-start", "--for", "codex", source="compact")
    assert said.index(f"{END_MARK} wake") < said.index("truekeep handoff new --writer codex")
    assert said.splitlines()[-1] == f"{END_MARK} compact -->"
    here.leave(a_handoff(), LEFT_TODAY, inbox=here.repo / ".codex/memory-handoffs", age=-1)
    hook(here, "stop", "--for", "codex")
    assert "handoff new" not in hook(here, "session-start", "--for", "codex", source="compact")


def tokens(used: int, window: int | None = 200_000) -> str:
    """Codex's own count, as 0.166 writes it."""
    info = {"total_token_usage": {"total_tokens": 10**6}, "last_token_usage": {"total_tokens": used}}
    payload = {"type": "token_count", "info": {**info, "model_context_window": window}}
    return json.dumps({"type": "event_msg", "payload": payload}) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(("used", "is_near"), [(100_000, False), (175_999, False), (176_000, True), (199_000, True)])
def test_with_token_counts_the_founding_thresholds_hold(here: Place, used: int, is_near: bool) -> None:
    """Codex counts, and shows no model what is said before a compaction; so it is said with a prompt, once."""
    transcript(here, tokens(150_000) + tokens(used) + codex_row(type="AgentMessage"))
    said = hook(here, "user-prompt-submit", "--for", "codex", prompt="go on")
    assert ("truekeep handoff new --writer codex" in said) == is_near
    assert (f"{used} of 200000 tokens" in said) == is_near
    assert hook(here, "user-prompt-submit", "--for", "codex", prompt="go on") == ""
    hook(here, "session-start", "--for", "codex", source="compact")
    assert bool(hook(here, "user-prompt-submit", "--for", "codex", prompt="go on")) == is_near


@pytest.mark.parametrize(
    "rows", ["", tokens(10**6, None), tokens(10**6, 24_000), tokens(199_000) + '{"type":"compacted"}\n']
)
def test_without_a_count_that_holds_nothing_is_said(here: Place, rows: str) -> None:
    transcript(here, rows)
    assert hook(here, "user-prompt-submit", "--for", "codex", prompt="go on") == ""
    assert log_of(here) == ""


# --- Stop ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_work_without_a_handoff_is_told_once(here: Place) -> None:
    hook(here, "session-start", source="startup")
    assert hook(here, "stop") == ""
    transcript(here, EDIT * 2)
    assert hook(here, "stop") == ""
    transcript(here, EDIT)
    told = json.loads(hook(here, "stop"))
    assert told["decision"] == "block"
    assert "truekeep handoff new --writer claude" in told["reason"]
    assert "3 edits" in told["reason"]
    assert hook(here, "stop") == ""
    assert hook(here, "stop", stop_hook_active=True) == ""


@pytest.mark.slow
def test_a_commit_is_real_work(here: Place) -> None:
    subprocess.run(
        ["git", "-C", str(here.repo), "commit", "-q", "--allow-empty", "-m", "a", *()], check=True, env=git_env()
    )
    hook(here, "session-start", source="startup")
    transcript(here, SHELL)
    subprocess.run(["git", "-C", str(here.repo), "commit", "-q", "--allow-empty", "-m", "b"], check=True, env=git_env())
    assert "1 commit" in hook(here, "stop")


def git_env() -> dict[str, str]:
    return {
        **os.environ,
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }


@pytest.mark.slow
@pytest.mark.parametrize("where", [CLAUDE, f"{CLAUDE}/processed"])
def test_who_left_a_handoff_is_left_alone(here: Place, where: str) -> None:
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 5)
    here.leave(a_handoff(), LEFT_TODAY, inbox=here.repo / where, age=-1)
    assert hook(here, "stop") == ""


@pytest.mark.slow
def test_a_handoff_of_an_earlier_session_does_not_count(here: Place) -> None:
    here.leave(a_handoff(), LEFT_TODAY, age=3600)
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 5)
    assert hook(here, "stop") != ""


def codex_row(**item: Any) -> str:
    return json.dumps({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}) + "\n"


CHANGE = {"type": "FileChange", "changes": {"a.py": {}, "b.py": {}}, "status": "completed"}
QUOTED = [  # rows of real transcripts that only speak of work
    {"type": "attachment", "attachment": {"tools": [{"name": "Edit"}], "content": [{"type": "tool_use"}]}},
    {"type": "api-request-blob", "blob": {"content": [{"type": "tool_use", "name": "Write", "input": {}}] * 4}},
    {"type": "session_meta", "payload": {"base_instructions": "never `git commit`; use apply_patch. patch_apply_end"}},
    {"type": "user", "message": {"content": 'say "tool_use" and git commit'}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": '"name": "Edit", "tool_use"'}] * 5}},
    {"type": "assistant", "message": {"content": "tool_use"}},
    {"type": "assistant", "message": {"content": [{"type": "tool_use"}, 7, None]}},
    {"type": "event_msg", "payload": {"type": "patch_apply_end", "success": False, "changes": {"a": 1}}},
    {"type": "event_msg", "payload": ["patch_apply_end"]},
    ["tool_use"],
]


@pytest.mark.slow
def test_only_the_agents_own_steps_are_work(here: Place) -> None:
    """Both harnesses write the prompt, with its tools and its rules about commits, into the transcript."""
    hook(here, "session-start", source="startup")
    transcript(here, "".join(json.dumps(row) + "\n" for row in QUOTED) * 3 + '{"type": "tool_use\n')
    assert hook(here, "stop") == ""
    transcript(here, codex_row(**{**CHANGE, "status": "failed"}) + codex_row(**CHANGE) * 2)
    assert "4 edits and left" in hook(here, "stop")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "is_one"),
    [
        ("git commit -m 'x'", True),
        ("cd app && GIT_EDITOR=true git -C . -c a=b commit", True),
        ("echo git commit", False),
        ("git log --grep 'a' ; echo commit", False),
        ("git commit-graph write", False),
        ("legit commit", False),
    ],
)
def test_without_gits_own_log_a_command_tells_of_a_commit(here: Place, command: str, is_one: bool) -> None:
    hook(here, "session-start", source="startup")
    call = {"type": "tool_use", "name": "Bash", "input": {"command": command}}
    transcript(here, json.dumps({"type": "assistant", "message": {"content": [call]}}) + "\n")
    assert ("1 commit and left" in hook(here, "stop")) == is_one


@pytest.mark.slow
def test_switching_a_branch_is_no_commit(here: Place) -> None:
    git = ["git", "-C", str(here.repo)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True, env=git_env())
    hook(here, "session-start", source="startup")
    subprocess.run([*git, "switch", "-q", "-c", "other"], check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "HEAD"], check=True)
    transcript(here, SHELL)
    assert hook(here, "stop") == ""
    transcript(here, SHELL)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "b"], check=True, env=git_env())
    assert "1 commit and left" in hook(here, "stop")


@pytest.mark.slow
def test_in_a_worktree_its_own_commits_count(here: Place) -> None:
    git = ["git", "-C", str(here.repo)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True, env=git_env())
    tree = here.base / "tree"
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True, capture_output=True)
    hook(here, "session-start", source="startup", cwd=str(tree))
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "elsewhere"], check=True, env=git_env())
    transcript(here, SHELL)
    assert hook(here, "stop", cwd=str(tree)) == ""
    transcript(here, SHELL)
    subprocess.run(["git", "-C", str(tree), "commit", "-q", "--allow-empty", "-m", "b"], check=True, env=git_env())
    assert "1 commit and left" in hook(here, "stop", cwd=str(tree))


@pytest.mark.slow
def test_what_was_done_before_a_session_was_resumed_is_not_its_work(here: Place) -> None:
    transcript(here, EDIT * 5)
    hook(here, "session-start", source="resume")
    assert hook(here, "stop") == ""
    transcript(here, EDIT * 3)
    hook(here, "session-start", source="resume")
    assert "3 edits and left" in hook(here, "stop")


@pytest.mark.slow
def test_what_sub_agents_did_is_work_of_the_session(here: Place) -> None:
    hook(here, "session-start", source="startup")
    transcript(here, EDIT)
    aside = here.base / "session" / "subagents"
    aside.mkdir(parents=True)
    (aside / "agent-1.jsonl").write_text(EDIT)
    assert hook(here, "stop") == ""
    assert hook(here, "stop") == ""
    (aside / "agent-2.jsonl").write_text(EDIT * 2)
    assert "4 edits and left" in hook(here, "stop")


@pytest.mark.slow
def test_a_half_written_line_is_counted_once(here: Place) -> None:
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 2 + EDIT[:60])
    hook(here, "stop")
    transcript(here, EDIT[60:])
    assert "3 edits" in hook(here, "stop")


# --- Session end -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_end_is_noted(here: Place) -> None:
    hook(here, "session-start", source="startup")
    transcript(here, EDIT * 3)
    assert hook(here, "session-end", reason="other") == ""
    record = session_record.read_record("claude", "s1")
    assert record is not None
    assert record.ended_at
    assert record.has_work


def test_real_work_is_done_later_by_somebody_else(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUEKEEP_NO_BACKGROUND")
    here.leave(a_handoff())
    here.ingest()
    hook(here, "session-end", reason="other")
    assert wait_until((here.workspace / ".truekeep" / "index.sqlite").exists)


# --- Whose session ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("event", sorted(set(EVENTS) - {"later"}))
def test_sub_agents_and_the_consolidation_of_codex_are_ignored(
    here: Place, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript(here, EDIT * 5)
    codex = here.base / "codex"
    (codex / "memories_v2").mkdir(parents=True)
    monkeypatch.setenv("CODEX_HOME", str(codex))
    assert hook(here, event, agent_id="a1", prompt="Split the parser") == ""
    assert hook(here, event, "--for", "codex", transcript_path=None) == ""
    assert hook(here, event, "--for", "codex", cwd=str(codex / "memories_v2")) == ""
    monkeypatch.setenv("CLAUDECODE", "1")  # it may run inside of Claude Code, and says no word of its own at its start
    assert hook(here, event, transcript_path=None, model="m", turn_id="t") == ""
    assert hook(here, event, cwd=str(codex / "memories_v2"), turn_id="t") == ""
    monkeypatch.delenv("CLAUDECODE")
    assert hook(here, event, transcript_path=None, model="m") == ""
    assert hook(here, event, cwd=str(codex)) == ""
    assert list(session_record.iter_records()) == []


def test_the_harness_is_known_by_what_it_says(here: Place) -> None:
    rollout = here.base / "sessions" / "2026" / "rollout-2026-11-16T10-00-00-x.jsonl"
    hook(here, "session-start", transcript_path=str(rollout), session_id="c1")
    assert session_record.read_record("codex", "c1") is not None


# --- Bad input -------------------------------------------------------------------------------------------------------


BAD_INPUTS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b"[" * 200_000,
    b'{"session_id": 7, "cwd": [], "transcript_path": {}}',
    b'{"session_id": "../../../x/../y", "cwd": "/nowhere/at/all", "transcript_path": "/nowhere"}',
    b'{"version": 99, "hook_event_name": "Unknown", "extra": {"deep": [1]}}',
    b'{"prompt": "' + b"a" * (MAX_INPUT_BYTES + 10) + b'"}',
]


@pytest.mark.slow
def test_whatever_comes_in_nothing_breaks(here: Place, subtests: pytest.Subtests) -> None:
    for stdin in BAD_INPUTS:
        for event in sorted(set(EVENTS) - {"later"}):
            with subtests.test(f"{stdin!r:.40}, {event!r:.40}"):
                done = subprocess.run(
                    [sys.executable, "-m", "truekeep", "hook", event],
                    input=stdin,
                    capture_output=True,
                    check=False,
                    cwd=here.repo,
                    timeout=120,
                )
                assert done.returncode == 0
                assert done.stderr == b""
                assert done.stdout == b"" or done.stdout.startswith((BEGIN_MARK.encode(), b"{"))
                folder = Path(session_record.folder())
                assert not folder.exists() or {path.parent for path in folder.rglob("*") if path.is_file()} <= {folder}


@pytest.mark.parametrize("event", sorted(set(EVENTS) - {"later"}))
def test_without_a_workspace_there_is_silence(tmp_path: Path, event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    payload = json.dumps({"session_id": "s", "cwd": str(tmp_path), "prompt": "Where is drain_queue defined?"})
    done = run_cli("hook", event, stdin=payload, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == "" or event == "pre-compact"


def own_log() -> str:
    path = Path(session_record.folder()).parent / "logs" / "hooks.log"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("way", ["option", "variable", "default"])
def test_a_workspace_that_was_named_and_is_missing_is_a_line_in_the_log(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where none was named there is nothing to say: most machines have none."""
    if way == "variable":
        monkeypatch.setenv("TRUEKEEP_WORKSPACE", "~/nowhere")
    options = ["-w", str(tmp_path / "nowhere")] if way == "option" else []
    done = run_cli("hook", "session-start", *options, stdin='{"session_id": "n1"}', cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = own_log().splitlines()
    assert len(lines) == (way != "default")
    assert all("session-start: there is no workspace at /" in line for line in lines)


@pytest.mark.parametrize("way", ["option", "joined", "attached", "variable"])
def test_a_workspace_may_be_named_from_the_home(here: Place, own_home: Path, way: str) -> None:
    os.rename(here.workspace, own_home / "memory")
    words = {"option": ["-w", "~/memory"], "joined": ["--workspace=~/memory"], "attached": ["-w~/memory"]}.get(way, [])
    variables = {"TRUEKEEP_WORKSPACE": "~/memory" if way == "variable" else "/nowhere"}
    done = run_cli("hook", "session-start", *words, stdin='{"session_id": "n1"}', cwd=here.repo, **variables)
    assert "Split the parser." in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["-w", "W", "session-start", "--for", "codex"],
        ["--for=codex", "--workspace=W", "session-start"],
        ["--for", "codex", "session-start", "--later", "-w", "W"],
    ],
)
def test_options_may_come_before_the_event(here: Place, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRUEKEEP_WORKSPACE")
    words = [word.replace("W", str(here.workspace)) for word in words]
    said = run_cli("hook", *words, stdin='{"session_id": "s1"}', cwd=here.repo).stdout
    assert "Split the parser." in said
    assert session_record.read_record("codex", "s1") is not None
    assert log_of(here) == ""


@pytest.mark.slow
def test_a_broken_workspace_is_a_line_in_the_log(here: Place) -> None:
    (here.workspace / ".truekeep" / "config.toml").write_text("not toml [")
    assert hook(here, "session-start", source="startup") == ""
    assert "session-start: bad-setup" in log_of(here)
    assert hook(here, "no-such-event") == ""
    assert "there is no such hook" in log_of(here)


@pytest.mark.slow
def test_a_session_without_a_name_is_told_and_not_noted(here: Place) -> None:
    transcript(here, EDIT * 5)
    assert "Split the parser." in hook(here, "session-start", session_id=None)
    assert hook(here, "stop", session_id=None) == ""
    assert hook(here, "session-end", session_id=None) == ""
    assert list(session_record.iter_records()) == []


def test_input_that_never_ends_is_not_waited_for(here: Place) -> None:
    program = [sys.executable, "-m", "truekeep", "hook", "session-end", "-w", str(here.workspace)]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as running:
        assert running.wait(timeout=120) == 0
    assert "session-end: out of time" in log_of(here)


@pytest.mark.slow
def test_a_record_that_was_tampered_with_is_begun_anew(here: Place) -> None:
    hook(here, "session-start", source="startup")
    path = next(Path(session_record.folder()).iterdir())
    for text in ("", "{", "[]", '{"id": 1}', json.dumps({"id": "s1", "harness": "claude", "edits": "many"})):
        path.write_text(text)
        assert hook(here, "stop") == ""


# --- Start-up --------------------------------------------------------------------------------------------------------

HEAVY = {
    "numpy", "click", "rich", "mcp", "asyncio", "subprocess", "re2", "markdown_it", "simsimd", "http", "email",
    "dataclasses", "inspect", "ast", "logging", "threading", "tempfile", "shutil", "difflib", "sqlite3", "hashlib",
}  # fmt: skip
UNNEEDED = {"apsw", "tomllib", "datetime", "zlib", "unicodedata"}  # where no memory is read
OURS = {
    "core", "core.digest", "core.errors", "core.file_io", "core.machine", "core.model", "interfaces",
    "interfaces.hooks", "sessions", "sessions.session_activity", "sessions.session_record", "text",
    "text.encoding",
}  # fmt: skip
OURS_FOR_THE_BRIEF = {
    "core", "core.config", "core.dates", "core.default_workspace", "core.derived_db", "core.digest",
    "core.host_lease", "text.unicode", "core.errors", "core.file_io", "core.formats",
    "core.machine", "core.memory_copy", "core.repository", "core.model", "core.sqlite", "core.state_dir", "core.toml",
    "interfaces",
    "interfaces.hooks", "memory", "memory.card", "memory.file_scan", "memory.frontmatter", "memory.ledger",
    "memory.own_blocks", "memory.project_files", "memory.repair_note", "memory.staging", "search", "search.card_list",
    "search.file_metadata", "search.index_schema",
    "sessions", "sessions.handover", "sessions.packing", "sessions.session_record", "sessions.state_sections",
    "sessions.tool_warnings", "sessions.wake", "text", "text.encoding",
    "text.instruction_files", "text.linear_regex", "text.markdown_lines", "verify", "verify.cache", "verify.checkouts",
    "verify.claim", "verify.mask_credentials", "verify.line_origins", "verify.memory_reader", "verify.options",
    "verify.resolve", "verify.results", "verify.verdict", "workspace", "workspace.briefing", "workspace.context",
    "workspace.repositories", "workspace.sessions", "workspace.verification",
    "workspace.workspace",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("event", ["session-start", "user-prompt-submit", "stop", "session-end"])
def test_hooks_import_no_more_than_they_need(here: Place, event: str) -> None:
    here.leave(a_handoff())
    here.ingest()
    with here.open() as workspace:
        workspace.search.index()
    hook(here, "session-start", source="startup")
    code = (
        "import os, sys\n"
        "from truekeep.interfaces.hooks import main\n"
        "main([sys.argv[1]])\n"
        "print('\\n'.join(sorted(sys.modules)), file=sys.stderr)\n"
    )
    payload = json.dumps(
        {"session_id": "s1", "cwd": str(here.repo), "transcript_path": str(transcript(here)), "prompt": "the proxy"}
    )
    done = subprocess.run(
        [sys.executable, "-c", code, event], input=payload, capture_output=True, text=True, check=True
    )
    is_brief = event in ("session-start", "user-prompt-submit")
    loaded = set(done.stderr.split())
    heavy = HEAVY if is_brief else HEAVY | UNNEEDED
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(heavy), sorted(loaded & heavy)
    ours = {name.removeprefix("truekeep.") for name in loaded if name.startswith("truekeep.")}
    assert ours <= (OURS_FOR_THE_BRIEF if is_brief else OURS), sorted(ours)


# --- Closeout --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_rate_is_told_with_the_session_to_look_at(here: Place) -> None:
    begun = float(int(time.time()) - 60)
    for name, work, is_closed in (("a", 3, True), ("b", 4, False), ("c", 0, False)):
        session_record.write_record(
            session_record.SessionRecord(
                id=name, harness="claude", machine="desk", repository="github.com/me/app", started_at=begun,
                edits=work, handoffs=int(is_closed), transcript=f"/transcripts/{name}.jsonl",
            )
        )  # fmt: skip
    done = run_cli("status", "--json")
    (item,) = json.loads(done.stdout)["closeout"]
    assert (item["sessions"], item["worked"], item["closed"], item["rate"]) == (3, 2, 1, 0.5)
    assert [missed["id"] for missed in item["missed"]] == ["b"]
    assert datetime.fromisoformat(item["missed"][0]["started_at"]).timestamp() == begun
    assert "3 in 30 days; 2 did real work, 1 of them left what they learned (50%)" in run_cli("status").stdout
    shown = run_cli("status", "closeout").stdout
    assert "50%" in shown
    assert "/transcripts/b.jsonl" in shown
    told = json.loads(run_cli("status", "closeout", "--days", "7", "--json").stdout)
    assert (told["schema"], told["days"], told["closeout"]) == ("truekeep.status-closeout/1", 7, [item])


@pytest.mark.slow
def test_a_status_without_a_run_of_ingest_says_so(here: Place) -> None:
    told = json.loads(run_cli("status", "--json").stdout)
    assert told["memory"]["last_ingest"] is None
    assert told["waiting_here"] is None
    assert "ingest has never run" in run_cli("status").stdout


@pytest.mark.slow
def test_a_machine_without_a_workspace_tells_what_waits_in_this_repository(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRUEKEEP_WORKSPACE")
    here.leave(a_handoff())
    (here.inbox / "notes.txt").touch()
    told = json.loads(run_cli("status", "--json", cwd=here.repo).stdout)
    assert (told["memory"], told["waiting_here"]) == (None, 1)
    assert "1 handoff waits in this repository's inboxes" in run_cli("status", cwd=here.repo).stdout
    assert json.loads(run_cli("status", "--json", cwd=here.base).stdout)["waiting_here"] is None
