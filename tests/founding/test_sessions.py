"""Documents 000, 001 and 003: what sessions read when they begin, and what they leave. A test for each row."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_openclaw_handler import NOT_PRIVATE
from tests.support.harnesses import put_stand_ins
from tests.support.helpers import NOW, Place, a_card, git_repo, run_cli
from truekeep.core.harness_paths import find_homes
from truekeep.core.model import BEGIN_MARK
from truekeep.integrations.harnesses.instruction_block import CHECKPOINT_RULE, render_rule
from truekeep.integrations.harnesses.plugin_files import PLUGIN_FILES
from truekeep.integrations.schedule.run import run_job
from truekeep.sessions import session_record
from truekeep.sessions.checkpoint import from_values
from truekeep.sessions.handover import split_handovers
from truekeep.workspace.machine_role import side_of

EDITS = '{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Edit","input":{}}]}}\n' * 3


@pytest.fixture
def two(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A workspace, and the repositories foo and bar."""
    for name in ("foo", "bar"):
        git_repo(place.base / "repos" / name, remote=f"https://git.example/acme/{name}.git")
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", str(place.workspace))
    return place


def checkpoint(place: Place, repo: str, *, now: datetime = NOW, **given: Any) -> tuple[str, ...]:
    root = place.base / "repos" / repo if repo else None
    with place.open(now=now) as workspace:
        return workspace.sessions.checkpoint(from_values(given), root=root, writer="claude").paths


def wake(place: Place, repo: str, *, now: datetime = NOW, **options: Any) -> str:
    root = place.base / "repos" / repo if repo else None
    with place.open(now=now) as workspace:
        return workspace.sessions.wake(root, **options).text


def read(place: Place, name: str) -> str:
    return (place.workspace / name).read_text()


def write(place: Place, name: str, text: str) -> None:
    (place.workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (place.workspace / name).write_text(text)


def hook(place: Place, event: str, *options: str, repo: Any = "foo", **given: Any) -> str:
    folder = place.base / "repos" / repo
    transcript = place.base / "session.jsonl"
    transcript.touch()
    payload = {"session_id": "s1", "cwd": str(folder), "transcript_path": str(transcript), **given}
    done = run_cli("hook", event, *options, stdin=json.dumps(payload), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- 001: HANDOVER.md serves several repositories --------------------------------------------------------------------


def test_handover_serves_several_repositories(two: Place) -> None:
    checkpoint(two, "foo", last_action="FOO-LAST", next_actions=["FOO-NEXT"])
    checkpoint(two, "bar", last_action="BAR-LAST", next_actions=["BAR-NEXT"])
    checkpoint(two, "bar", last_action="BAR-AGAIN", next_actions=["BAR-THEN"])
    text = read(two, "HANDOVER.md")
    assert "FOO-NEXT" in text
    assert "BAR-NEXT" not in text
    for here, first, last in (("foo", "FOO-NEXT", "BAR-THEN"), ("bar", "BAR-THEN", "FOO-NEXT")):
        brief = wake(two, here)
        assert brief.index(f"> - {first}") < brief.index(f"> - {last}")
        assert "## Handover (HANDOVER.md, today)" in brief
        assert f"## Handover (HANDOVER.md, today, of {'bar' if here == 'foo' else 'foo'})" in brief


def test_two_repositories_of_one_name_have_a_handover_each(two: Place) -> None:
    git_repo(two.base / "repos" / "other" / "foo", remote="https://git.example/beta/foo.git")
    checkpoint(two, "foo", next_actions=["ACME-NEXT"])
    checkpoint(two, "other/foo", next_actions=["BETA-NEXT"])
    assert [part.repository for part in split_handovers(read(two, "HANDOVER.md"))] == [
        "git.example/beta/foo", "git.example/acme/foo",
    ]  # fmt: skip


def test_scope_rules_and_dev_model_say_where_they_were_said(two: Place) -> None:
    checkpoint(two, "foo", scope_rules="only src/", dev_model="small commits")
    checkpoint(two, "foo", last_action="More.")
    checkpoint(two, "bar", last_action="Elsewhere.")
    text = read(two, "HANDOVER.md")
    bar, foo = split_handovers(text)
    assert "only src/" not in bar.text
    said = f"(said {NOW.astimezone():%Y-%m-%d %H:%M}, claude, foo)"
    assert f"## Scope Rules\n\n{said}\n\nonly src/" in foo.text
    assert f"## Dev Model\n\n{said}\n\nsmall commits" in foo.text
    brief = wake(two, "bar")
    assert brief.index("of foo)") < brief.index("only src/")


def test_a_handover_of_an_older_version_keeps_working(two: Place) -> None:
    old = "# Handover\n\n2026-11-14 10:00, claude, foo\n\n## Last Action\n\nOLD-LAST\n\n## Next Actions\n\n- OLD-NEXT\n"
    write(two, "HANDOVER.md", old)
    assert "## Handover (HANDOVER.md, yesterday)" in wake(two, "foo")
    assert "## Handover (HANDOVER.md, yesterday, of foo)" in wake(two, "bar")
    checkpoint(two, "bar", last_action="BAR")
    assert "OLD-NEXT" in read(two, "HANDOVER.md")
    assert "## Handover (HANDOVER.md, yesterday)" in wake(two, "foo")
    checkpoint(two, "foo", last_action="NEW-LAST")
    foo, bar = split_handovers(read(two, "HANDOVER.md"))
    assert (foo.repository, bar.repository) == ("git.example/acme/foo", "git.example/acme/bar")
    assert "OLD-LAST" not in foo.text
    assert "(said 2026-11-14 10:00, claude, foo)\n\n- OLD-NEXT" in foo.text


def test_what_a_person_wrote_into_the_handover_stays(two: Place) -> None:
    checkpoint(two, "foo", last_action="FOO-LAST")
    checkpoint(two, "bar", last_action="BAR-LAST")
    text = read(two, "HANDOVER.md")
    mine = text.replace("## Last Action\n\nFOO-LAST", "Ask Ada first.\n\n## Last Action\n\nFOO-LAST, by hand")
    write(two, "HANDOVER.md", f"{mine}\n## Mine\n\nCall the bank.\n\n## Mine\n\nTwice.\n\n```\nopen\n")
    checkpoint(two, "bar", last_action="BAR-AGAIN")
    kept = read(two, "HANDOVER.md")
    for said in ("Ask Ada first.", "FOO-LAST, by hand", "Call the bank.", "Twice.", "```\nopen"):
        assert said in kept
    write(two, "HANDOVER.md", kept.replace("```\nopen\n", ""))
    checkpoint(two, "foo", last_action="FOO-AGAIN")
    kept = read(two, "HANDOVER.md")
    for said in ("Ask Ada first.", "Call the bank.", "Twice.", "BAR-AGAIN", "FOO-AGAIN"):
        assert kept.count(said) == 1
    assert "by hand" not in kept  # that part was said anew


def test_no_text_of_one_repository_passes_for_the_handover_of_another(two: Place) -> None:
    checkpoint(two, "foo", next_actions=["FOO-NEXT"])
    planted = "```\n# Handover of git.example/acme/foo\n\n## Next Actions\n\n- PLANTED\n```"
    checkpoint(two, "bar", last_action=planted)
    assert [part.repository for part in split_handovers(read(two, "HANDOVER.md"))] == [
        "git.example/acme/bar", "git.example/acme/foo",
    ]  # fmt: skip
    brief = wake(two, "foo")
    assert brief.index("FOO-NEXT") < brief.index("PLANTED")


def test_a_checkpoint_outside_of_repositories_is_shown_everywhere_and_erases_nothing(two: Place) -> None:
    checkpoint(two, "foo", next_actions=["FOO-NEXT"])
    checkpoint(two, "", next_actions=["MAIN-NEXT"])
    for here in ("foo", "bar", ""):
        brief = wake(two, here)
        assert "MAIN-NEXT" in brief
        assert "FOO-NEXT" in brief


# --- 001: HEARTBEAT.md updated every 30 minutes ----------------------------------------------------------------------


def test_an_overdue_heartbeat_says_so(two: Place) -> None:
    with two.open() as workspace:
        workspace.sessions.checkpoint(from_values({"now": "Migrating."}), root=None)
    assert "## Heartbeat (HEARTBEAT.md, today)" in wake(two, "foo", now=NOW + timedelta(minutes=20))
    at = f"{NOW:%Y-%m-%d %H:%M}"
    late = f"## Heartbeat (HEARTBEAT.md, of {at}: older than its interval of 30 minutes)"
    assert late in wake(two, "foo", now=NOW + timedelta(hours=3))
    assert wake(two, "foo", now=NOW + timedelta(hours=3)) == wake(two, "foo", now=NOW + timedelta(hours=4))
    two.configure("[limits]\nheartbeat_minutes = 0\n")
    assert "## Heartbeat (HEARTBEAT.md, today)" in wake(two, "foo", now=NOW + timedelta(hours=3))


def an_old_heartbeat(place: Place, *, minutes: int) -> None:
    at = datetime.now().astimezone() - timedelta(minutes=minutes)
    write(place, "HEARTBEAT.md", f"# Heartbeat\n\nUpdated {at:%Y-%m-%d %H:%M}\n\n## Now\n\nMigrating.\n")


def a_session(**given: Any) -> None:
    session_record.write_record(session_record.SessionRecord(id="s1", harness="claude", **given))


def test_status_has_a_row_for_an_overdue_heartbeat(two: Place) -> None:
    assert "HEARTBEAT.md" not in run_cli("status").stdout
    an_old_heartbeat(two, minutes=180)
    assert "no session worked since" in run_cli("status").stdout
    a_session()
    shown = " ".join(run_cli("status").stdout.split())
    assert "older than its interval of 30 minutes, and sessions worked since" in shown
    found = json.loads(run_cli("status", "--json").stdout)["health"]["more"]["heartbeat"]
    assert 145 <= found["figures"]["overdue_minutes"] <= 155


def test_the_schedule_reminds_of_an_overdue_heartbeat(two: Place) -> None:
    an_old_heartbeat(two, minutes=180)
    a_session()
    with two.open(now=datetime.now().astimezone()) as workspace:
        run = run_job(workspace, side_of(workspace), now=lambda: datetime.now().astimezone(), patience=0)
    assert "older than its interval of 30 minutes" in run.why
    assert run.ending != "failed"


def test_a_session_at_work_is_reminded_of_the_heartbeat_once(two: Place) -> None:
    an_old_heartbeat(two, minutes=60)
    repo = str(two.base / "repos" / "foo")
    a_session(root=repo, repository="git.example/acme/foo", started_at=time.time() - 3600)
    said = hook(two, "user-prompt-submit", prompt="Please go on with the migration.")
    assert "HEARTBEAT.md is of" in said
    assert "truekeep note heartbeat" in said
    assert hook(two, "user-prompt-submit", prompt="Please go on with the migration.") == ""
    an_old_heartbeat(two, minutes=5)
    assert hook(two, "user-prompt-submit", prompt="Please go on with the migration.") == ""


# --- 001: AGENTS.md read when routing and spawning -------------------------------------------------------------------

AGENTS = (
    "# AGENTS.md\n\nWelcome home.\n\n## Delegation\n\n- Research goes to the scout.\n\n## Weather\n\nIt rains.\n\n"
    "## Team\n\n| agent | for |\n|---|---|\n| scout | sub-agent for reading |\n"
)


def test_agents_md_is_read_when_delegating(two: Place) -> None:
    write(two, "AGENTS.md", AGENTS)
    assert "scout" not in wake(two, "foo")
    assert "## Delegation (AGENTS.md)\n" in wake(two, "foo", is_delegating=True)
    assert "Research goes to the scout." in run_cli("wake", "--delegate", cwd=two.base / "repos" / "foo").stdout
    assert "scout" not in wake(two, "", is_delegating=True, harness="openclaw")  # which shows it by itself
    said = json.loads(hook(two, "pre-tool-use", tool_name="Agent", tool_input={"prompt": "Read the docs."}))
    told = said["hookSpecificOutput"]["additionalContext"]
    assert said["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    assert told.startswith(BEGIN_MARK)
    assert "> - Research goes to the scout." in told
    assert "> | scout | sub-agent for reading |" in told
    assert "It rains." not in told
    assert hook(two, "pre-tool-use", tool_name="Agent", tool_input={"prompt": "And again."}) == ""


# --- 001: agents are told to checkpoint; SOUL.md has the checkpoint protocol -----------------------------------------


def test_agents_are_told_to_checkpoint(two: Place) -> None:
    command = "truekeep checkpoint --last-action"
    assert command in render_rule([("claude", ".claude/memory-handoffs")])
    assert command in PLUGIN_FILES["skills/memory-handoff/SKILL.md"]
    (two.base / "session.jsonl").write_text(EDITS)
    hook(two, "session-start", source="startup")
    said = json.loads(hook(two, "stop"))
    assert command in said["reason"]
    assert "truekeep handoff new" in said["reason"]
    assert command in hook(two, "pre-compact", trigger="auto")


def test_soul_md_has_the_checkpoint_protocol(
    two: Place, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_stand_ins(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    soul = own_home / ".openclaw" / "workspace" / "SOUL.md"
    assert find_homes().openclaw == own_home / ".openclaw"
    connect = ("connect", "--user", "--harness", "openclaw")
    assert "has no SOUL.md yet" in run_cli(*connect, "--dry-run").stdout
    soul.parent.mkdir(parents=True)
    soul.write_text("# Winnie\n\nBe brief.\n")
    shown = run_cli(*connect, "--dry-run").stdout
    assert "the checkpoint rule" in shown
    assert "## Checkpoint protocol" in shown
    assert soul.read_text() == "# Winnie\n\nBe brief.\n"
    assert run_cli(*connect, "--yes").returncode == 0
    assert CHECKPOINT_RULE.strip() in soul.read_text()
    assert run_cli(*connect, "--yes").returncode == 0
    assert soul.read_text().count("## Checkpoint protocol") == 1
    write(two, "SOUL.md", soul.read_text())
    brief = wake(two, "foo")
    assert "Be brief." in brief
    assert "Checkpoint protocol" not in brief  # Claude Code and Codex have a rule of their own
    with two.open() as workspace:
        (checked,) = workspace.verification.verify(["SOUL.md"])
    assert checked.verdicts == ()  # its flags and files are no claims of memory
    assert run_cli("disconnect", "--user", "--harness", "openclaw", "--yes").returncode == 0
    assert soul.read_text() == "# Winnie\n\nBe brief.\n"


# --- 000: knowledge of foo reaches sessions in bar -------------------------------------------------------------------


@pytest.fixture
def indexed(two: Place) -> Place:
    for number in range(12):
        filler = f"Filler card {number} about gardening, bread and the weather in district {number * 7919}."
        write(two, f"memory/cards/filler-{number}.md", a_card(f"Filler {number}", filler))
    body = "The exporter stalls when `EXPORT_BATCH` exceeds what zstandard framing allows."
    write(two, "memory/cards/export.md", a_card("Exporter stalls", body, repository="git.example/acme/foo"))
    with two.open() as workspace:
        workspace.search.index()
    return two


def test_knowledge_of_one_repository_reaches_sessions_in_another(indexed: Place) -> None:
    said = hook(indexed, "user-prompt-submit", repo="bar", prompt="Why does EXPORT_BATCH break zstandard framing?")
    assert "memory/cards/export.md · of foo" in said
    assert hook(indexed, "user-prompt-submit", repo="bar", prompt="Again: EXPORT_BATCH with zstandard?") == ""


def test_a_prompt_that_names_the_other_repository_gets_its_card(indexed: Place) -> None:
    assert "export.md · of foo" in hook(indexed, "user-prompt-submit", repo="bar", prompt="How did foo do zstandard?")


@pytest.mark.parametrize("prompt", ["Set EXPORT_BATCH to 5 please.", "Is the exporter done?"])
def test_a_single_word_brings_nothing_of_another_repository(indexed: Place, prompt: str) -> None:
    assert hook(indexed, "user-prompt-submit", repo="bar", prompt=prompt) == ""


# --- 003: wake and sleep ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", NOT_PRIVATE)
def test_memory_md_only_in_the_main_private_session(two: Place, key: str) -> None:
    write(two, "MEMORY.md", "# Memory\n\nPRIVATE-MARKER\n")
    checkpoint(two, "foo", next_actions=["PRIVATE-NEXT"], summary="PRIVATE-LOG")
    assert hook(two, "agent-bootstrap", "--for", "openclaw", session_key=key, access={}) == ""
    assert "PRIVATE-NEXT" in hook(two, "agent-bootstrap", "--for", "openclaw", session_key="agent:main:main", access={})


def test_wake_loads_soul_user_context_logs_and_memory(two: Place) -> None:
    files = {
        "SOUL.md": "Be brief.", "USER.md": "Ada.", "memory/active-context.md": "On the parser branch.",
        "memory/2026-11-15.md": "Began early.", "memory/2026-11-14.md": "Ended late.", "MEMORY.md": "Short answers.",
        "TOOLS.md": "The jump host is gate.", "rules/commits.md": "Small commits.", ".learnings/ERRORS.md": "No cache.",
    }  # fmt: skip
    for name, text in files.items():
        write(two, name, f"# Title\n\n{text}\n")
    brief = wake(two, "foo")
    assert [text for text in files.values() if text not in brief] == []


def test_sleep_updates_the_active_context(two: Place) -> None:
    write(two, "memory/active-context.md", "# Context\n\nBy hand.\n")
    paths = checkpoint(two, "foo", last_action="FOO-LAST", next_actions=["FOO-NEXT"], system_state="FOO-STATE")
    assert "memory/active-context.md" in paths
    checkpoint(two, "bar", last_action="BAR-LAST", active_context="BAR needs the token of the bot.")
    text = read(two, "memory/active-context.md")
    for said in ("By hand.", "FOO-LAST", "FOO-NEXT", "FOO-STATE", "BAR needs the token"):
        assert said in text
    assert "BAR-LAST" not in text
    checkpoint(two, "foo", last_action="FOO-AGAIN")
    text = read(two, "memory/active-context.md")
    assert "FOO-NEXT" not in text
    assert "BAR needs the token" in text
    brief = wake(two, "foo")
    assert brief.count("FOO-AGAIN") == 2  # in the handover and in the log, not a third time
    assert brief.index("By hand.") < brief.index("BAR needs the token")


def test_a_working_context_that_cannot_be_edited_stops_no_checkpoint(two: Place) -> None:
    mine = "# Context\n\n```\nopen\n"
    write(two, "memory/active-context.md", mine)
    assert "HANDOVER.md" in checkpoint(two, "foo", last_action="FOO-LAST")
    assert read(two, "memory/active-context.md") == mine


def test_observations_have_importance_tags(two: Place) -> None:
    folder = two.base / "repos" / "foo"
    options = ("--observe", "lesson", "0.7", "Partial patches nuke the list.", "--observe", "decision", "1", "SQLite.")
    assert run_cli("checkpoint", "--summary", "Done.", *options, cwd=folder).returncode == 0
    assert run_cli("note", "log", "--type", "milestone", "Shipped v2.0", cwd=folder).returncode == 0
    assert run_cli("note", "log", "--importance", "0.35", "Routine.", cwd=folder).returncode == 0
    (log,) = (two.workspace / "memory").glob("20*.md")
    for line in (
        "- [lesson|i=0.7] Partial patches nuke the list.", "- [decision|i=1] SQLite.",
        "- [milestone|i=0.85] Shipped v2.0", "- [context|i=0.35] Routine.",
    ):  # fmt: skip
        assert f"{line}\n" in log.read_text()
    for wrong in (("lesson", "7", "x"), ("a b]", "0.5", "x"), ("lesson", "high", "x")):
        assert run_cli("checkpoint", "--observe", *wrong, cwd=folder).returncode == 3
    assert from_values({"observations": [{"text": "x", "type": "lesson"}, "[note|i=0.4] y"]}).observations == (
        "[lesson|i=0.7] x", "[note|i=0.4] y",
    )  # fmt: skip


def test_agents_are_asked_for_importance_tags(two: Place) -> None:
    asked = "--observe lesson 0.7"
    assert asked in render_rule([("claude", ".claude/memory-handoffs")])
    assert asked in PLUGIN_FILES["skills/memory-handoff/SKILL.md"]
    assert asked in CHECKPOINT_RULE
    assert asked in hook(two, "pre-compact", trigger="auto")


def test_main_session_in_openclaw_has_nothing_twice(two: Place) -> None:
    names = ("MEMORY.md", "HEARTBEAT.md", "USER.md", "SOUL.md", "TOOLS.md")
    for name in names:
        write(two, name, f"# {name}\n\n## Now\n\nTEXT-OF-{name}\n")
    checkpoint(two, "", next_actions=["MAIN-NEXT"])
    main: dict[str, Any] = {"session_key": "agent:main:main", "access": {}}
    said = hook(two, "agent-bootstrap", "--for", "openclaw", **main)
    assert "MAIN-NEXT" in said
    assert "TEXT-OF" not in said
    said = hook(two, "agent-bootstrap", "--for", "openclaw", **main, loaded=["AGENTS.md", "SOUL.md", "MEMORY.md"])
    assert [name for name in names if f"TEXT-OF-{name}" in said] == ["HEARTBEAT.md", "USER.md", "TOOLS.md"]
