"""Which workspace is used where nothing names one: what `truekeep init` chose, for every later command and hook."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.harnesses import put_stand_ins
from tests.support.helpers import git_repo, run_cli
from truekeep.core.default_workspace import find_workspace, read_remembered, remember
from truekeep.workspace.workspace import Workspace


@pytest.fixture
def memory(own_home: Path) -> Path:
    """A workspace elsewhere than in the usual place, made by `truekeep init`."""
    done = run_cli("init", "~/memory", cwd=own_home)
    assert done.returncode == 0, done.stderr
    assert "every later command and hook uses it\n" in done.stdout
    return own_home / "memory"


def put_config(home: Path, text: str) -> None:
    (home / ".openclaw").mkdir(exist_ok=True)
    (home / ".openclaw" / "openclaw.json").write_text(text)


@pytest.mark.slow
def test_every_command_uses_the_workspace_that_init_made(memory: Path, own_home: Path) -> None:
    assert read_remembered() == str(memory)
    for words in (["status", "--json"], ["doctor", "--json"], ["repos"], ["ingest"], ["search", "anything"]):
        done = run_cli(*words, cwd=own_home)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert json.loads(run_cli("status", "--json").stdout)["memory"]["workspace"] == str(memory)
    assert json.loads(run_cli("doctor", "--json").stdout)["workspace"] == str(memory)
    assert not (own_home / ".openclaw").exists()


@pytest.mark.slow
def test_hooks_use_it(memory: Path, own_home: Path) -> None:
    (memory / "HANDOVER.md").write_text("# Handover\n\n## Last Action\n\nSplit the parser.\n")
    done = run_cli("hook", "session-start", stdin='{"session_id": "s1"}', cwd=own_home, TRUEKEEP_NO_BACKGROUND="1")
    assert "Split the parser." in done.stdout


def test_a_timer_runs_for_it(memory: Path) -> None:
    from truekeep.integrations.schedule.config import plan_job

    with Workspace.open() as workspace:
        assert plan_job(workspace.path, 10).command[-2:] == ("--workspace", str(memory))


@pytest.mark.slow
def test_init_again_makes_no_second_one(memory: Path, own_home: Path) -> None:
    done = run_cli("init")
    assert f"{memory}: already a workspace" in done.stdout
    assert not (own_home / ".openclaw").exists()


@pytest.mark.slow
def test_another_one_is_made_with_a_word(memory: Path, own_home: Path) -> None:
    done = run_cli("init", "~/other")
    assert "commands and hooks still use ~/memory" in done.stdout
    assert "truekeep init" in done.stdout
    assert read_remembered() == str(memory)
    done = run_cli("init", "~/other", "--default")
    assert "every later command and hook uses it, not ~/memory" in done.stdout
    assert read_remembered() == str(own_home / "other")
    assert json.loads(run_cli("init", "~/memory", "--json").stdout)["default"] == str(own_home / "other")


@pytest.mark.slow
def test_one_that_is_gone_is_told_by_everybody(memory: Path, own_home: Path) -> None:
    shutil.rmtree(memory)
    repo = git_repo(own_home / "app")
    for words in (["init"], ["status"], ["ingest"], ["connect", "--check"], ["connect", "--yes"], ["wake"]):
        done = run_cli(*words, cwd=repo)
        assert done.returncode == 6, words
        assert str(memory) in done.stderr, words
        assert "truekeep init" in done.stderr, words
        assert "there is none" not in done.stderr, words
    done = run_cli("doctor", cwd=repo)
    assert done.returncode == 1
    assert "no problems found" not in done.stdout
    run_cli("hook", "session-start", stdin="{}", cwd=repo)
    assert f"there is no workspace at {memory}" in (own_home / ".local/state/truekeep/logs/hooks.log").read_text()
    assert run_cli("disconnect", "--all", "--yes", cwd=repo).returncode == 0
    assert not memory.exists()
    assert run_cli("init", "~/memory").returncode == 0  # who names it, begins anew


@pytest.mark.slow
def test_a_lost_one_is_replaced_by_the_next(memory: Path, own_home: Path) -> None:
    shutil.rmtree(memory)
    done = run_cli("init", "~/other")
    assert "every later command and hook uses it, not ~/memory" in done.stdout
    assert read_remembered() == str(own_home / "other")


@pytest.mark.slow
def test_the_environment_comes_first(memory: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", "~/elsewhere")
    assert find_workspace() == str(own_home / "elsewhere")
    assert "but TRUEKEEP_WORKSPACE names" in run_cli("init", "~/memory").stdout


@pytest.fixture
def upgraded(own_home: Path) -> Path:
    """Memory in the usual place that an older truekeep made: nothing was noted."""
    usual = own_home / ".openclaw" / "workspace"
    Workspace.init(usual)
    assert not read_remembered()
    return usual


@pytest.mark.slow
def test_init_elsewhere_leaves_an_upgraded_workspace_in_use(upgraded: Path, own_home: Path) -> None:
    done = run_cli("init", "~/scratch")
    assert "commands and hooks still use ~/.openclaw/workspace" in done.stdout
    assert find_workspace() == str(upgraded)
    done = run_cli("init", "~/scratch", "--default")
    assert "every later command and hook uses it, not ~/.openclaw/workspace" in done.stdout
    assert find_workspace() == str(own_home / "scratch")


def test_init_in_openclaws_folder_leaves_an_upgraded_workspace_in_use(upgraded: Path, own_home: Path) -> None:
    put_config(own_home, '{"agents": {"defaults": {"workspace": "~/claw"}}}')
    assert "commands and hooks still use ~/.openclaw/workspace" in run_cli("init", "~/claw").stdout
    assert find_workspace() == str(upgraded)


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Somebody else's archive."""
    friend = tmp_path / "friend"
    Workspace.init(friend)
    (friend / "memory" / "cards" / "tea.md").write_text("# Tea\n\nGreen.\n")
    path = tmp_path / "friend.alf"
    done = run_cli("alf", "export", "--workspace", str(friend), "-o", str(path))
    assert done.returncode == 0, done.stderr
    return str(path)


def import_to(folder: Path, archive: str, *words: str) -> str:
    done = run_cli("alf", "import", archive, str(folder), "--trust", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_an_import_elsewhere_leaves_an_upgraded_workspace_in_use(upgraded: Path, archive: str, tmp_path: Path) -> None:
    assert "commands and hooks still use ~/.openclaw/workspace" in import_to(tmp_path / "look", archive)
    assert find_workspace() == str(upgraded)


@pytest.mark.slow
def test_an_import_leaves_the_workspace_of_the_environment_in_use(
    own_home: Path, archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Workspace.init(own_home / "mine")
    monkeypatch.setenv("TRUEKEEP_WORKSPACE", "~/mine")
    assert "commands and hooks still use ~/mine" in import_to(tmp_path / "look", archive)
    assert not read_remembered()


@pytest.mark.slow
def test_an_import_where_there_is_no_memory_is_chosen_with_a_word(own_home: Path, archive: str, tmp_path: Path) -> None:
    told = json.loads(import_to(tmp_path / "look", archive, "--json"))
    assert "every later command and hook uses it" in told["notes"]
    assert find_workspace() == str(tmp_path / "look")


@pytest.mark.slow
def test_it_is_known_though_the_state_folder_was_cleared(memory: Path, own_home: Path) -> None:
    shutil.rmtree(own_home / ".local/state/truekeep")
    assert json.loads(run_cli("status", "--json").stdout)["memory"]["workspace"] == str(memory)
    assert f"{memory}: already a workspace" in run_cli("init").stdout
    assert (own_home / ".local/state/truekeep/workspace").read_text() == f"{memory}\n"
    assert not (own_home / ".openclaw").exists()


@pytest.mark.slow
@pytest.mark.parametrize("note", ["", "\n", "relative/path\n", "/a\0b\n"])
def test_where_the_note_is_damaged_no_other_workspace_is_used(own_home: Path, note: str) -> None:
    Workspace.init(own_home / ".openclaw/workspace")
    file = own_home / ".local/state/truekeep/workspace"
    file.parent.mkdir(parents=True)
    file.write_text(note)
    for words in (["init"], ["status"], ["ingest"], ["connect", "--check"], ["wake"]):
        done = run_cli(*words, cwd=own_home)
        assert done.returncode == 6, words
        assert f"{file} does not name a folder" in done.stderr, words
        assert "truekeep init PATH" in done.stderr, words
    done = run_cli("doctor", cwd=own_home)
    assert (done.returncode, "does not name a folder" in done.stdout) == (1, True)
    assert run_cli("hook", "session-start", stdin="{}", cwd=own_home).stdout == ""
    assert "does not name a folder" in (own_home / ".local/state/truekeep/logs/hooks.log").read_text()
    assert run_cli("init", "~/.openclaw/workspace").returncode == 0
    assert read_remembered() == str(own_home / ".openclaw/workspace")
    assert run_cli("doctor", cwd=own_home).returncode == 0


@pytest.mark.slow
def test_a_damaged_note_is_mended_from_its_copy(memory: Path, own_home: Path) -> None:
    note = own_home / ".local/state/truekeep/workspace"
    note.write_text("garbage\n")
    assert find_workspace() == str(memory)
    assert run_cli("doctor").returncode == 1
    assert run_cli("doctor", "--fix").returncode == 0
    assert note.read_text() == f"{memory}\n"


@pytest.mark.slow
def test_doctor_says_that_no_memory_is_kept(own_home: Path) -> None:
    done = run_cli("doctor")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing is broken; no memory is kept here")
    put_config(own_home, CONFIGS[0][0])
    (own_home / "claw").mkdir()
    done = run_cli("doctor")
    assert done.returncode == 1
    assert f"{own_home}/claw: is not a truekeep workspace yet" in done.stdout
    assert f"truekeep init {own_home}/claw" in done.stdout


@pytest.mark.parametrize("name", ["two words", "neue\nzeile", "ümlaut", b"\xff".decode("utf-8", "surrogateescape")])
def test_any_path_is_kept_as_it_is(own_home: Path, name: str) -> None:
    remember(own_home / name)
    assert find_workspace() == str(own_home / name)


# --- OpenClaw's own ---------------------------------------------------------------------------------------------------

CONFIGS = [
    ('{"agents": {"defaults": {"workspace": "~/claw"}}}', "claw"),
    ("{\n  // mine\n  agents: { defaults: { workspace: '~/claw', }, },\n}\n", "claw"),
    ('{"agents": {"list": [{"id": "main", "workspace": "~/one"}], "defaults": {"workspace": "~/claw"}}}', "one"),
    ('{"agents": {"entries": {"Ada": {"workspace": "~/one"}}}}', "one"),
    ('{"agents": {"list": [{"id": "a", "workspace": "~/a"}, {"id": "b", "default": true, "workspace": "~/b"}]}}', "b"),
    (
        '{"agents": {"list": [{"id": "a"}, {"id": "b", "default": true}], "defaults": {"workspace": "~/claw"}}}',
        "claw",
    ),
    (
        '{agents: {entries: {home: {workspace: "~/h"}, work: {}}, defaults: {systemAgent: {agentId: "home"}}}}',
        "h",
    ),
    ('{"agents": {"entries": {"a": {}, "b": {}}, "defaults": {"workspace": "~/base"}}}', ".openclaw/workspace"),
    ('{"agents": {"defaults": {"workspace": 7}}}', ".openclaw/workspace"),
    ('{"agents": []}', ".openclaw/workspace"),
    ("{not json5 at all", ".openclaw/workspace"),
]


@pytest.mark.parametrize(("config", "folder"), CONFIGS)
def test_openclaws_folder_is_used(own_home: Path, config: str, folder: str) -> None:
    put_config(own_home, config)
    assert find_workspace() == str(own_home / folder)


def test_init_uses_openclaws_folder(own_home: Path) -> None:
    put_config(own_home, CONFIGS[0][0])
    (own_home / "claw").mkdir()
    (own_home / "claw" / "MEMORY.md").write_text("# Memory\n")
    assert f"{own_home}/claw: adopted" in run_cli("init").stdout
    put_config(own_home, "{}")  # what init chose stays
    assert find_workspace() == str(own_home / "claw")


def test_memory_that_has_been_in_the_usual_place_stays_there(own_home: Path) -> None:
    """Workspaces of truekeep 0.1 were made there, whatever OpenClaw's configuration said, and nothing noted it."""
    Workspace.init(own_home / ".openclaw/workspace")
    put_config(own_home, CONFIGS[0][0])
    assert find_workspace() == str(own_home / ".openclaw/workspace")
    Workspace.init(own_home / "claw")
    assert find_workspace() == str(own_home / "claw")


@pytest.mark.slow
def test_a_memory_beside_openclaws_is_made_with_a_word(own_home: Path) -> None:
    put_config(own_home, CONFIGS[0][0])
    done = run_cli("init", "~/memory")
    assert "OpenClaw keeps its own memory in ~/claw" in done.stdout
    assert "OpenClaw" not in run_cli("init", "~/claw", "--default").stdout


@pytest.mark.slow
def test_connect_uses_it(memory: Path, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_stand_ins(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (own_home / ".openclaw").mkdir()
    repo = git_repo(own_home / "app")
    assert run_cli("connect", "--yes", "--harness", "openclaw", cwd=repo).returncode == 0
    assert str(memory / "memory" / "cards") in (own_home / ".openclaw" / "openclaw.json").read_text()
