"""A producer in one go: inboxes, rule, route, and a test handoff that goes to the host and comes back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, CODEX, Place, git_repo, run_cli
from truekeep.core.machine import person
from truekeep.core.model import WRITERS
from truekeep.integrations.harnesses.test_handoff import last_test, make_inboxes, send_test


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "handoffs.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return path


def producer(home: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_cli(*arguments, cwd=cwd, HOME=str(home), TRUEKEEP_MACHINE_ID="laptop", TRUEKEEP_NO_BACKGROUND="1")


def test_a_test_letter_goes_to_the_host_and_back_by_git(
    place: Place, own_home: Path, tmp_path: Path, remote: Path
) -> None:
    home = tmp_path / "laptop"
    repo = git_repo(home / "repos" / "shop", remote="https://git.example/acme/shop.git")
    key = run_cli("-w", str(place.workspace), "sync", "key").stdout.strip()
    named = ("--repo", str(home / "repos" / "*"), "--via", "git", "--remote", str(remote), "--host-key", key)
    done = producer(home, "connect", "machine", *named, "--yes", "--json", cwd=home)
    told = json.loads(done.stdout)
    assert (told["test"], told["contact"]["ok"]) == ("on its way", True), done
    assert (repo / CODEX).is_dir()
    (letter,) = (repo / CLAUDE).glob("*.md")
    assert producer(home, "connect", "machine", "--check", cwd=home).returncode == 1
    workspace = str(place.workspace)
    assert run_cli("-w", workspace, "sync", "add", "all", "--via", "git", "--remote", str(remote)).returncode == 0
    before = sorted(path for path in place.workspace.rglob("*") if ".truekeep" not in path.parts)
    assert run_cli("-w", workspace, "sync", "run").returncode == 0
    assert "a test handoff" in run_cli("-w", workspace, "ingest").stdout
    assert run_cli("-w", workspace, "sync", "run").returncode == 0
    assert sorted(path for path in place.workspace.rglob("*") if ".truekeep" not in path.parts) == before
    assert producer(home, "sync", "run", cwd=home).returncode == 0
    assert not letter.exists()
    checked = producer(home, "connect", "machine", "--check", cwd=home)
    assert (checked.returncode, "the host filed the test handoff" in checked.stdout) == (0, True), checked
    pipeline = json.loads(run_cli("-w", workspace, "status", "pipeline", "--json").stdout)
    assert pipeline["sources"] == []
    assert "silent" not in {alarm["code"] for alarm in pipeline["alarms"]}


def test_a_route_that_does_not_work_is_no_success(own_home: Path, tmp_path: Path, remote: Path) -> None:
    home = tmp_path / "laptop"
    repo = git_repo(home / "repos" / "shop")
    named = ("connect", "machine", "--repo", str(home / "repos" / "*"), "--via", "git", "--yes", "--remote")
    for _ in range(2):
        done = producer(home, *named, str(tmp_path / "nowhere.git"), cwd=home)
        assert (done.returncode, "not sent: " in done.stdout) == (1, True), done
        assert "on its way" not in done.stdout
    assert "no routes yet" in producer(home, "sync", "status", cwd=home).stdout
    done = producer(home, *named, str(remote), cwd=home)
    assert (done.returncode, "sent the test handoff by git" in done.stdout) == (0, True), done
    assert "there is no memory" not in done.stdout, "this is the way to one"
    assert "there is no memory" not in producer(home, "connect", "--dry-run", "--project", cwd=repo).stdout
    again = producer(home, *named, str(remote), cwd=home)
    assert (again.returncode, "sent the test handoff by git" in again.stdout) == (0, True), "it is there already"
    assert len(list((repo / CLAUDE).glob("*.md"))) == 1
    other = producer(home, *named, str(tmp_path / "nowhere.git"), cwd=home)
    assert (other.returncode, "another route" in other.stderr) == (3, True), "that one works"
    remote.rename(tmp_path / "away.git")
    assert producer(home, *named, str(remote), cwd=home).returncode == 1
    assert "failed once" in producer(home, "sync", "status", cwd=home).stdout, "and it is kept"
    checked = producer(home, "connect", "machine", "--check", cwd=home)
    assert (checked.returncode, "next, on the host: `truekeep sync run`" in checked.stdout) == (1, True), checked


def test_the_plan_alone(own_home: Path, tmp_path: Path, remote: Path) -> None:
    home = tmp_path / "laptop"
    repo = git_repo(home / "repos" / "shop")
    named = ("connect", "machine", "--repo", str(home / "repos" / "*"), "--via", "git", "--remote", str(remote))
    for more in ((), ("--json",)):
        done = producer(home, *named, "--dry-run", *more, cwd=home)
        assert done.returncode == 0, done
    assert sorted(path.name for path in repo.iterdir()) == [".git"]
    assert "no routes yet" in producer(home, "sync", "status", cwd=home).stdout


def test_what_is_missing_is_said(place: Place, own_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "laptop"
    git_repo(home / "repos" / "shop")
    for arguments, words in (
        (("--via", "git", "--remote", "x"), "no repository found"),
        (("--repo", str(home / "repos/*")), "no transport given"),
        (("--repo", str(home / "repos/*"), "--via", "git"), "needs --remote"),
    ):
        done = producer(home, "connect", "machine", *arguments, cwd=home)
        assert (done.returncode, words in done.stderr) == (3, True), done
    on_the_host = run_cli("-w", str(place.workspace), "connect", "machine", "--repo", str(home), "--via", "rsync")
    assert "is the canonical host" in on_the_host.stderr


def test_with_rsync_the_host_is_told_what_to_run(own_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "laptop"
    git_repo(home / "repos" / "shop")
    done = producer(home, "connect", "machine", "--repo", "~/repos/*", "--via", "rsync", "--yes", cwd=home)
    assert done.returncode == 0, done
    assert f"--via rsync --host {person()}@" in done.stdout
    assert "--repo '~/repos/*'" in done.stdout
    assert "on its way" in done.stdout
    assert "then here: `truekeep connect machine --check`" in done.stdout


def test_what_many_repositories_get_alike_is_shown_once(own_home: Path, tmp_path: Path) -> None:
    home = tmp_path / "laptop"
    for name in ("shop", "billing", "infra"):
        git_repo(home / "repos" / name)
    done = producer(home, "connect", "machine", "--repo", "~/repos/*", "--via", "rsync", "--yes", cwd=home)
    assert done.stdout.count("truekeep:begin rule") == done.stdout.count("backups of changed files go to") == 1, (
        done.stdout
    )
    assert done.stdout.count("the same lines") == 3 * 3 - 2, "of rule, rule and ignore lines, two are shown"
    assert all((home / "repos" / name / "CLAUDE.md").exists() for name in ("shop", "billing", "infra"))


def test_one_letter_at_a_time(own_home: Path, tmp_path: Path) -> None:
    repo = git_repo(tmp_path / "shop")
    assert len(make_inboxes([repo], WRITERS)) == 2
    assert make_inboxes([repo], WRITERS) == []
    assert last_test() is None
    first = send_test(repo, WRITERS)
    assert send_test(repo, WRITERS) == first == last_test()
    assert not first.has_returned
    Path(first.path).unlink()
    assert first.is_lost
    assert send_test(repo, WRITERS) != first
