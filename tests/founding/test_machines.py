"""Document 000, and what an install implies: machines, connections, and a host with an ingester of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, Place, a_handoff, git_repo, run_cli, wait_until
from tests.unit.integrations.test_schedule import crontab

__all__ = ["crontab"]

BIN = Path(sys.executable).parent


@pytest.fixture
def program_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`truekeep` as harnesses find it, and no harness."""
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")


# Closeout instruction into ~/.claude/CLAUDE.md.


def test_closeout_rule_for_the_user_of_an_editor_extension(own_home: Path, program_on_path: None) -> None:
    (own_home / ".claude").mkdir()
    done = run_cli("connect", "--user", "--harness", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert "only the closeout rule is written" in done.stderr + done.stdout
    assert "truekeep handoff new" in (own_home / ".claude/CLAUDE.md").read_text()
    assert run_cli("disconnect", "--user", "--yes").returncode == 0
    assert list((own_home / ".claude").iterdir()) == []


def test_the_program_in_an_editor_extension_is_used(own_home: Path, program_on_path: None) -> None:
    (own_home / ".claude").mkdir()
    for version, second in (("2.1.9", 1), ("2.1.10", 2)):
        folder = own_home / f".vscode/extensions/anthropic.claude-code-{version}-linux-x64/resources/native-binary"
        folder.mkdir(parents=True)
        program = folder / "claude"
        program.write_text(f'#!/bin/sh\necho "{version} $*" >> "$HOME/calls"\n')
        program.chmod(0o755)
        os.utime(folder, (second, second))
    run_cli("connect", "--user", "--harness", "claude", "--yes")
    calls = (own_home / "calls").read_text().splitlines()
    assert calls[-1] == "2.1.10 plugin install truekeep@truekeep"


def test_no_user_files_are_written_for_a_harness_without_settings(own_home: Path, program_on_path: None) -> None:
    assert run_cli("connect", "--user", "--harness", "claude", "--yes").returncode == 1
    assert not (own_home / ".claude").exists()


# Fresh install passes its own doctor.


def run_on(machine: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_cli(*arguments, cwd=None, stdin="", **machine)


def test_a_fresh_producer_passes_its_own_doctor(tmp_path: Path, own_home: Path, program_on_path: None) -> None:
    exchange = tmp_path / "exchange.git"
    subprocess.run(["git", "init", "-q", "--bare", str(exchange)], check=True)
    git_repo(own_home / "repos" / "app")
    host = {"HOME": str(tmp_path / "host")}
    assert run_on(host, "init").returncode == 0
    route = ("--via", "git", "--remote", str(exchange))
    assert run_on(host, "sync", "add", "laptop", *route).returncode == 0
    key = run_on(host, "sync", "key").stdout.split()[-1]
    laptop = {"TRUEKEEP_MACHINE_ID": "laptop"}
    sent = run_on(laptop, "connect", "machine", "--repo", "~/repos/*", *route, "--host-key", key, "--yes")
    assert sent.returncode == 0, sent.stderr
    for machine, told in ((laptop, "no problems found"), (host, "the installation is ok")):
        done = run_on(machine, "doctor")
        assert (done.returncode, told in done.stdout) == (0, True), done.stdout
    open_to_others = [path for path in (own_home / ".local/state/truekeep").iterdir() if path.stat().st_mode & 0o077]
    assert open_to_others == []


# Cross-machine 2: pushed on close of the session.


@pytest.fixture
def shared(tmp_path: Path, own_home: Path) -> Path:
    """The git remote of a producer with one repository."""
    exchange = tmp_path / "exchange.git"
    subprocess.run(["git", "init", "-q", "--bare", str(exchange)], check=True)
    repo = git_repo(own_home / "repos" / "app")
    (repo / CLAUDE).mkdir(parents=True)
    run_cli("sync", "add", "host", "--via", "git", "--remote", str(exchange), "--repo", "~/repos/*")
    return exchange


def sent_names(exchange: Path) -> str:
    refs = ["git", "--git-dir", str(exchange), "for-each-ref", "--format=%(refname)"]
    heads = subprocess.run(refs, capture_output=True, text=True, check=True).stdout.split()
    listed = ["git", "--git-dir", str(exchange), "ls-tree", "-r", "--name-only"]
    return "".join(subprocess.run([*listed, head], capture_output=True, text=True, check=True).stdout for head in heads)


def end_session(repo: Path) -> None:
    payload = {"session_id": "s1", "cwd": str(repo), "hook_event_name": "SessionEnd", "reason": "other"}
    done = run_cli("hook", "session-end", "--for", "claude", cwd=repo, stdin=json.dumps(payload))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_handoffs_are_pushed_on_close_of_the_session(
    shared: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRUEKEEP_NO_BACKGROUND", raising=False)
    repo = own_home / "repos/app"
    (repo / CLAUDE / "2026-11-14-0900-proxy.md").write_text(a_handoff())
    assert sent_names(shared) == ""
    end_session(repo)
    assert wait_until(lambda: "2026-11-14-0900-proxy.md" in sent_names(shared))


def test_a_remote_that_does_not_answer_is_a_line_in_the_log(shared: Path, own_home: Path) -> None:
    shutil.rmtree(shared)
    done = run_cli("hook", "later", "--for", "claude")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "later, sync: host: " in (own_home / ".local/state/truekeep/logs/hooks.log").read_text()


def test_the_hook_itself_waits_for_no_remote(shared: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    (own_home / "repos/app" / CLAUDE / "2026-11-14-0900-proxy.md").write_text(a_handoff())
    end_session(own_home / "repos/app")
    assert sent_names(shared) == ""


# Workspace at ~/.openclaw/workspace, configurable by agents.defaults.workspace.


def test_init_uses_the_workspace_of_openclaw(own_home: Path) -> None:
    (own_home / "clawd").mkdir()
    (own_home / "clawd/MEMORY.md").write_text("# Memory\n")
    (own_home / ".openclaw").mkdir()
    (own_home / ".openclaw/openclaw.json").write_text('{ // mine\n agents: { defaults: { workspace: "~/clawd", }, }, }')
    done = run_cli("init", "--json")
    assert json.loads(done.stdout)["workspace"] == str(own_home / "clawd")
    assert not (own_home / ".openclaw/workspace").exists()
    run_cli("note", "log", "The port is 7100.")
    assert list((own_home / "clawd/memory").glob("20*.md"))


def test_another_workspace_names_the_one_of_openclaw(tmp_path: Path, own_home: Path) -> None:
    (own_home / ".openclaw").mkdir()
    (own_home / ".openclaw/openclaw.json").write_text("{agents: {defaults: {workspace: '~/clawd'}}}")
    done = run_cli("init", str(tmp_path / "memory"))
    assert "OpenClaw keeps its own memory in ~/clawd" in done.stdout


# Log at workspace/logs/memory-handoff-ingest.log.

LOG = "logs/memory-handoff-ingest.log"


def test_tail_of_the_ingest_log_works(place: Place, crontab: Path) -> None:
    run_cli("schedule", "install", "--system", "cron", "--workspace", str(place.workspace))
    place.ingest()
    place.leave(a_handoff())
    place.ingest()
    done = subprocess.run(["tail", "-20", str(place.workspace / LOG)], capture_output=True, text=True, check=True)
    nothing, filed = done.stdout.splitlines()
    assert nothing.endswith(" NO_UPDATES")
    assert " processed=1 promoted=1 " in filed
    assert (place.workspace / "logs").stat().st_mode & 0o777 == 0o755


def test_the_ingest_log_of_an_earlier_ingester_goes_on(place: Place) -> None:
    (place.workspace / "logs").mkdir()
    (place.workspace / LOG).write_text("Processed 0\nNO_UPDATES\n")
    place.ingest()
    assert (place.workspace / LOG).read_text().startswith("Processed 0\nNO_UPDATES\n2026-11-15T12:00:00Z processed=0 ")


def test_ingest_makes_no_folder_in_the_workspace_unasked(place: Place) -> None:
    place.ingest()
    assert not (place.workspace / "logs").exists()


def test_the_ingest_log_is_where_the_configuration_says(place: Place, tmp_path: Path) -> None:
    (place.workspace / "logs").mkdir()
    place.configure(f'[logs]\ningest = "{tmp_path}/ingest.log"\n')
    assert place.ingest().warnings == []
    assert (tmp_path / "ingest.log").read_text().endswith(" NO_UPDATES\n")
    place.configure('[logs]\ningest = "none"\n')
    place.ingest()
    assert not (place.workspace / LOG).exists()
    place.configure(f'[logs]\ningest = "{tmp_path}/nowhere/ingest.log"\n')
    assert [f"{tmp_path}/nowhere/ingest.log" in warning for warning in place.ingest().warnings] == [True]


def test_the_ingest_log_follows_no_symlink(place: Place, tmp_path: Path) -> None:
    (place.workspace / "logs").mkdir()
    (place.workspace / LOG).symlink_to(tmp_path / "elsewhere")
    assert len(place.ingest().warnings) == 1
    assert not (tmp_path / "elsewhere").exists()


# "It's per-machine": knowledge reaches the other machines' sessions.


def test_a_card_of_the_host_is_in_the_brief_of_another_machines_session(place: Place, tmp_path: Path) -> None:
    remote, laptop = tmp_path / "post.git", tmp_path / "laptop"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    git_repo(place.repo)
    app = git_repo(laptop / "repos/app")
    place.leave(a_handoff())
    place.ingest()

    def on_host(*words: str) -> str:
        return run_cli("-w", str(place.workspace), *words).stdout

    def on_laptop(*words: str, stdin: str = "") -> str:
        done = run_cli(*words, stdin=stdin, HOME=str(laptop), TRUEKEEP_MACHINE_ID="laptop", TRUEKEEP_NO_BACKGROUND="1")
        assert done.returncode == 0, done
        return done.stdout

    on_host("sync", "add", "post", "--via", "git", "--remote", str(remote))
    assert "memory sent" in on_host("sync", "run")
    key = on_host("sync", "key").strip()
    route = ("--repo", str(app), "--via", "git", "--remote", str(remote), "--host-key", key)
    on_laptop("connect", "machine", *route, "--yes")
    start = json.dumps({"session_id": "s1", "cwd": str(app), "source": "startup"})
    brief = on_laptop("hook", "session-start", "--for", "claude", stdin=start)
    assert "Staging answers on port 8443 only." in brief
    assert "This is a copy of the memory as of just now, from " in brief
