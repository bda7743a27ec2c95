"""Hits from logs: what an entry names is checked in its writer's repository; readers are told what became of it."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.helpers import Place, a_document_handoff, git_repo, run_cli
from tests.support.readers import OpenedWorkspace

LOG = (
    "Retries of the mailer are in `app/mailer.py`; its limits are in `app/limits.py`, and the queue in `app/queue.py`."
)


def git(place: Place, *arguments: str) -> None:
    run = ["git", "-C", str(place.repo), "-c", "user.name=a", "-c", "user.email=a@x"]
    subprocess.run([*run, *arguments], check=True)


@pytest.fixture
def place(place: Place) -> Place:
    """A log entry about a repository in which one file was deleted and one was moved since."""
    git_repo(place.repo, remote="https://github.com/me/app.git")
    for name in ("mailer", "limits", "queue"):
        path = place.repo / "app" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{name.upper()}_{number} = {number}\n" for number in range(30)))
    git(place, "add", "app")
    git(place, "commit", "-qm", "One")
    run_cli("note", "log", LOG, "--writer", "claude", "-w", str(place.workspace), cwd=place.repo).check_returncode()
    git(place, "rm", "-q", "app/mailer.py")
    (place.repo / "app" / "sending").mkdir()
    git(place, "mv", "app/limits.py", "app/sending/limits.py")
    git(place, "commit", "-qm", "Two")
    return place


def test_a_log_raises_no_alarm_and_says_what_became_of_what_it_names(place: Place) -> None:
    with place.open() as workspace:
        (hit,) = workspace.search.find("retries of the mailer", budget=60).hits
        checked = workspace.verification.verify()
    told = {verdict.claim.text: (verdict.verdict, verdict.reason, verdict.place) for verdict in hit.verdicts}
    assert told == {
        "app/mailer.py": ("unverifiable", "of-its-day", ""),
        "app/limits.py": ("unverifiable", "of-its-day", "app/sending/limits.py"),
        "app/queue.py": ("confirmed", "exists", "app/queue.py"),
    }
    assert not any(item.is_rotten for item in checked)


def test_search_get_and_mcp_tell_it(place: Place) -> None:
    w = ("-w", str(place.workspace))
    run_cli("verify", *w).check_returncode()
    found = run_cli("search", "retries of the mailer", *w).stdout
    assert "since then app/mailer.py: deleted in " in found
    assert "since then app/limits.py: " in found
    assert "app/sending/limits.py" in found
    (log,) = (place.workspace / "memory").glob("20??-??-??.md")
    assert "since then line " in run_cli("get", f"memory/{log.name}", *w).stderr
    with place.open() as workspace:
        reply = OpenedWorkspace(workspace, place).call("memory_search", query="retries of the mailer")
    assert "Since then: app/mailer.py: deleted in " in reply


def test_a_log_that_truekeep_did_not_write_has_no_repository(place: Place) -> None:
    (place.workspace / "memory/2026-01-05.md").write_text("# 2026-01-05\n\nWrote `app/mailer.py` for all services.\n")
    place.leave(a_document_handoff())
    with place.open() as workspace:
        (memory,) = workspace.verification.reader.read_all(["memory/2026-01-05.md"])
    assert memory.lines == ()
