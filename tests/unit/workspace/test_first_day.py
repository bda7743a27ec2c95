"""A workspace as OpenClaw leaves it: documents, daily logs, a long MEMORY.md, no cards, no inboxes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_handoff, git_repo, run_cli, tree
from tests.support.visitor import Visitor, shown
from truekeep.core.machine import own_state
from truekeep.interfaces.cli import doctor
from truekeep.interfaces.cli.status import render
from truekeep.workspace.check import OK, PROBLEM, WARNING
from truekeep.workspace.health import HealthReport
from truekeep.workspace.memory_checks import NOT_CHECKED_YET, SPLIT_INDEX
from truekeep.workspace.workspace import Workspace


@pytest.fixture
def adopted(tmp_path: Path) -> Place:
    """A workspace with three documents and two logs, in a git repository of its own."""
    root = git_repo(tmp_path / "openclaw")
    for path, text in {
        "MEMORY.md": "# Memory\n\nThe gateway is on the shelf.\n",
        "TOOLS.md": "The camera is in `src/camera.py`.\n",
        "memory/scheduling.md": "La réunion commence à neuf heures; `plan_day()` la connaît.\n",
        "memory/deep/research.md": "Nothing to check here.\n",
        "memory/2026-02-01.md": "- read mail\n",
        "memory/2026-03-05.md": "- wrote a letter\n",
        "memory/archive/2025-12-01.md": "- old\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    Workspace.init(root)
    return Place(base=tmp_path, workspace=root, repo=root)


def check(place: Place) -> HealthReport:
    with place.open(now=datetime.now(UTC)) as workspace:
        return workspace.health.check()


def screen(place: Place) -> str:
    return run_cli("status", "-w", str(place.workspace)).stdout


def test_only_what_the_workspace_has_is_shown(adopted: Place) -> None:
    said = screen(adopted)
    assert "3 documents (" in said
    assert "2 daily logs (2026-02-01 to 2026-03-05), 1 file in memory/archive" in said
    names = {line[8:22].strip() for line in said.splitlines()}
    assert names >= {"files", "index", "claims", "pipeline", "search"}
    assert not names & {"cards", "untouched", "duplicates", "handoffs", "growth", "last touched", "schedule", "bugs"}
    assert "no inboxes yet\n                       -> `truekeep connect` in a repository" in said
    assert "ingest has never run" not in said
    told = json.loads(run_cli("status", "--json", "-w", str(adopted.workspace)).stdout)["health"]
    assert told["questions"]["cards"]["figures"]["cards"] == 0
    assert told["more"]["files"]["figures"] | {"bytes": 0} == {
        "documents": 3,
        "logs": 2,
        "archive": 1,
        "elsewhere": 0,
        "bytes": 0,
    }


def test_claims_that_were_never_checked(adopted: Place) -> None:
    found = check(adopted)
    assert (found.get("claims").severity, found.get("claims").said) == (WARNING, NOT_CHECKED_YET)
    assert found.summary == "1 warning"


@pytest.mark.slow
def test_claims_that_could_not_be_checked_and_the_command_that_does(adopted: Place) -> None:
    with adopted.open(now=datetime.now(UTC)) as workspace:
        workspace.verification.verify()
    found = check(adopted).get("claims")
    assert (found.severity, found.said) == (OK, "1 unverifiable, in 6 files")  # plan_day() is of no code here
    assert found.figures["without_repository"] == {"confirmed": 0, "unverifiable": 0}
    assert found.hint == ""
    assert screen(adopted).splitlines()[-1] == "all good"


def test_an_index_over_its_cap_is_split_first(adopted: Place) -> None:
    (adopted.workspace / "MEMORY.md").write_text("# Memory\n\n" + "- Tea is in the left drawer.\n" * 300)
    found = check(adopted)
    assert (found.get("index").severity, found.get("index").hint) == (PROBLEM, SPLIT_INDEX)
    lines = [line for line in render(found, {"workspace": "w", "canonical_host": "h"}, "") if line]
    assert "index" in lines[1]
    assert SPLIT_INDEX in lines[2]


def test_no_index_is_no_zero(adopted: Place) -> None:
    (adopted.workspace / "MEMORY.md").unlink()
    assert check(adopted).get("index").said == "no MEMORY.md yet; the first card makes it"


def test_sessions_ask_to_connect_only_until_that_was_done(adopted: Place, own_home: Path) -> None:
    assert "none recorded in 30 days; `truekeep connect` installs the hooks" in screen(adopted)
    repo = git_repo(adopted.base / "app")
    done = run_cli("connect", "--yes", "--repo", str(repo), "-w", str(adopted.workspace))
    assert done.returncode == 0, done.stdout + done.stderr
    said = screen(adopted)
    assert "none recorded in 30 days" in said
    assert "installs the hooks" not in said


@pytest.mark.slow
def test_drafts_come_first_and_by_title(place: Place, visitor: Visitor) -> None:
    now = datetime.now(UTC)
    for number in range(4):
        place.leave(a_handoff(title=f"Proxy number {number}", action="nonsense"), f"2026-11-14-09{number:02}-p.md")
    place.ingest(now=now)
    with place.open(now=now) as workspace:
        workspace.verification.verify()
        drafts = workspace.review.drafts()
    assert len(drafts) == 4
    lines = screen(place).splitlines()
    assert lines[2] == "ok      review         4 drafts wait, the oldest for 0 days"
    assert [line.strip() for line in lines[3:7]] == [
        "Proxy number 0", "Proxy number 1", "Proxy number 2",
        "-> 1 more; `truekeep review walk` shows them one by one",
    ]  # fmt: skip
    assert lines[-1] == "all good; 4 drafts to review: `truekeep review walk`"
    page = shown(visitor.see("/"))
    assert page.index("What waits for you") < page.index("Proxy number 0") < page.index("Is memory healthy?")
    assert not [draft.id for draft in drafts if draft.id in page]


def test_the_page_memory_opens_on_what_there_is(adopted: Place) -> None:
    visitor = Visitor(adopted)
    try:
        page = visitor.see("/memory")
        assert "memory/scheduling.md" in page
        assert 'href="/memory/file/MEMORY.md"' in page
        assert ">cards" not in page
        assert "documents 3" in shown(page)
        assert "There are no cards" not in shown(visitor.see("/"))
    finally:
        visitor.close()


def test_doctor_checks_memory_where_the_state_is_sound(adopted: Place) -> None:
    (adopted.workspace / "MEMORY.md").write_text("- Tea is in the left drawer.\n" * 300)
    before = tree(adopted.workspace)
    done = run_cli("doctor", "-w", str(adopted.workspace))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, doctor.NEEDED_BY_MEMORY)
    assert SPLIT_INDEX in done.stdout
    told = json.loads(run_cli("doctor", "--json", "-w", str(adopted.workspace)).stdout)
    assert told["ok"]
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert (states["index"], states["claims"], states["files"]) == ("problem", "warning", "well")
    assert tree(adopted.workspace) == before
    assert not (adopted.workspace / ".truekeep" / "survey.sqlite").exists(), "looking stores nothing"
    (adopted.workspace / ".truekeep" / "config.toml").write_text("nonsense = [")
    done = run_cli("doctor", "-w", str(adopted.workspace))
    assert "config" in done.stdout
    assert "daily logs" not in done.stdout


def test_a_producer_shows_its_routes(own_home: Path, tmp_path: Path) -> None:
    remote = str(tmp_path / "remote.git")
    run_cli("sync", "add", "desk", "--via", "git", "--remote", remote, "--repo", str(tmp_path / "repos"), cwd=tmp_path)
    assert (Path(own_state()) / "sync.toml").exists()
    said = run_cli("status", cwd=tmp_path).stdout
    assert "This machine sends its handoffs to the canonical host:" in said
    assert ["desk", "git", "never"] in [line.split()[:3] for line in said.splitlines()]
    assert "No memory here" not in said


def test_notes_in_folders_of_their_own_count_and_are_checked(adopted: Place) -> None:
    for path, text in {
        "AGENTS.md": "Run `src/camera.py` first.\n",
        "boats/boat.md": "The mast is in `src/mast.py`.\n",
        "7-backups/2026-01-01/boat.md": "The mast is in `src/sail.py`.\n",
    }.items():
        (adopted.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (adopted.workspace / path).write_text(text)
    assert "2 documents in other folders (57 bytes)" in screen(adopted)
    told = json.loads(run_cli("verify", "--json", "-w", str(adopted.workspace)).stdout)
    paths = {file["path"] for file in told["files"]}
    assert {"AGENTS.md", "boats/boat.md"} <= paths
    assert not any(path.startswith("7-") for path in paths)
