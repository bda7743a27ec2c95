"""A second and a third machine, set up as a newcomer does it: what the host files is in their next session's brief."""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_handoff, git_repo, run_cli, tree
from tests.support.programs import need

REMOTE = "git@github.com:me/app.git"


@dataclass
class Producer:
    """A machine that the host's memory comes to."""

    home: Path
    name: str

    @classmethod
    def make(cls, base: Path, name: str) -> Producer:
        git_repo(base / name / "repos/app", remote=REMOTE)
        return cls(base / name, name)

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_cli(*arguments, stdin=stdin, HOME=str(self.home), TRUEKEEP_MACHINE_ID=self.name)

    def said(self, *arguments: str) -> str:
        done = self.run(*arguments)
        return done.stdout + done.stderr

    def connect(self, via: str, remote: str, key: str) -> None:
        done = self.run(
            "connect", "machine", "--repo", f"{self.home}/repos/*", "--via", via, "--remote", remote, "--host-key", key,
            "--yes",
        )  # fmt: skip
        assert done.returncode == 0, done

    def brief(self) -> str:
        """What the hook of a session that starts gives to the agent."""
        started = {"session_id": "s1", "cwd": str(self.home / "repos/app"), "source": "startup"}
        return self.run("hook", "session-start", "--for", "claude", stdin=json.dumps(started)).stdout

    def be_old(self, *, hours: int, is_asked: bool = False) -> None:
        """Let the copy be one that the host has not confirmed for some time, whether or not it was asked since."""
        state = self.home / ".local/state/truekeep/copy"
        at = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for path in (state / "head.json", state / "current/.truekeep/copy.json"):
            path.write_text(json.dumps({**json.loads(path.read_text()), "as_of": at}))
        contacts = self.home / ".local/state/truekeep/contacts/host.json"
        if not is_asked:
            contacts.write_text(json.dumps({**json.loads(contacts.read_text()), "last_ok_at": at}))

    def memory(self) -> dict[str, str]:
        found = Path(os.path.realpath(self.home / ".local/state/truekeep/copy/current"))
        return {path: text for path, text in tree(found).items() if path.endswith(".md")}


def host(place: Place, *arguments: str) -> str:
    done = run_cli("-w", str(place.workspace), *arguments)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("via", ["git", "rclone"])
def test_what_the_host_files_is_in_the_next_brief_elsewhere(
    place: Place, tmp_path: Path, via: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if via == "rclone":
        need("rclone")
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")  # each step is one of this test
    remote = tmp_path / "remote"
    remote.mkdir()
    if via == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    git_repo(place.repo, remote=REMOTE)
    host(place, "sync", "add", "post", "--via", via, "--remote", str(remote))
    key = host(place, "sync", "key").strip()
    one, two = Producer.make(tmp_path, "laptop"), Producer.make(tmp_path, "tower")
    for machine in (one, two):
        machine.connect(via, str(remote), key)
        assert machine.brief() == "", "the host has not published yet"
    (place.workspace / "SOUL.md").write_text("# Soul\nsecret persona\n")
    place.leave(a_handoff())
    place.ingest()
    assert "memory sent: " in host(place, "sync", "run")
    for machine in (one, two):
        assert "memory received: " in machine.run("sync", "run").stdout
        brief = machine.brief()
        assert "Staging answers on port 8443 only" in brief
        assert "This is a copy of the memory as of just now, from " in brief
        shared = {path: text for path, text in tree(place.workspace).items() if path.endswith(".md")}
        del shared["SOUL.md"]
        assert machine.memory() == shared
    left = one.run(
        "checkpoint", "--summary", "the proxy moved", "--repo", f"{one.home}/repos/app", "--writer", "claude"
    )
    assert left.returncode == 0, left
    status = json.loads(one.run("sync", "status", "--json").stdout)["routes"][0]
    assert status["last"]["memory_files"] > 0


def texts_in(folder: Path) -> str:
    """Everything in a folder, with what its packs and git's objects have inside."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            found.append(unpacked(path.read_bytes()))
        if path.suffix == ".git" or (path.name == "HEAD" and (path.parent / "objects").is_dir()):
            found += blobs(path if path.suffix == ".git" else path.parent)
    return "\n".join(found)


def blobs(bare: Path) -> list[str]:
    git = ["git", f"--git-dir={bare}", "cat-file", "--batch-all-objects"]
    listed = subprocess.run([*git, "--batch-check=%(objectname) %(objecttype)"], capture_output=True, check=True)
    ids = [line.split()[0] for line in listed.stdout.decode().splitlines() if line.endswith(" blob")]
    show = ["git", f"--git-dir={bare}", "cat-file", "blob"]
    return [unpacked(subprocess.run([*show, id_], capture_output=True, check=True).stdout) for id_ in ids]


def unpacked(data: bytes) -> str:
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            data = b"\n".join(pack.read(name) for name in pack.namelist())
    return data.decode("utf-8", "replace")


@pytest.mark.parametrize("via", ["git", "rclone"])
def test_what_becomes_private_is_gone_from_the_remote_and_from_copies(
    place: Place, tmp_path: Path, via: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if via == "rclone":
        need("rclone")
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    remote = tmp_path / "remote"
    remote.mkdir()
    if via == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    host(place, "sync", "add", "post", "--via", via, "--remote", str(remote))
    (place.workspace / "memory/plans.md").write_text("# Plans\nthe hidden lighthouse of Uppsala\n")
    host(place, "sync", "run")
    laptop = Producer.make(tmp_path, "laptop")
    laptop.connect(via, str(remote), host(place, "sync", "key").strip())
    assert "hidden lighthouse" in texts_in(laptop.home)
    assert "hidden lighthouse" in texts_in(remote)
    place.configure('[sync]\nprivate = ["plans.md"]\n')
    listed = host(place, "sync", "private", "post")
    assert "memory/plans.md" in listed
    ran = run_cli("-w", str(place.workspace), "sync", "run")
    said = ran.stdout + ran.stderr
    laptop.run("sync", "run")
    assert "memory/plans.md" not in laptop.memory()
    assert "hidden lighthouse" not in texts_in(laptop.home)
    if via == "git":
        assert "`git gc --prune=now` in the repository there" in " ".join(said.split()), "what only its owner can do"
        subprocess.run(["git", f"--git-dir={remote}", "gc", "-q", "--prune=now"], check=True)
    assert "hidden lighthouse" not in texts_in(remote)
    assert "gc" not in run_cli("-w", str(place.workspace), "sync", "run").stderr, "said once"


def test_one_scheduled_run_files_a_handoff_and_sends_its_card(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    remote = tmp_path / "remote"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    git_repo(place.repo, remote=REMOTE)
    host(place, "sync", "add", "post", "--via", "git", "--remote", str(remote))
    laptop = Producer.make(tmp_path, "laptop")
    laptop.connect("git", str(remote), host(place, "sync", "key").strip())
    place.leave(a_handoff())
    ran = host(place, "schedule", "run")
    assert "1 shared" in ran, ran
    laptop.run("schedule", "run")
    assert "Staging answers on port 8443 only" in laptop.brief()


def test_a_route_that_was_removed_leaves_a_copy_that_says_how_old_it_is(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    remote = tmp_path / "remote"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    git_repo(place.repo, remote=REMOTE)
    host(place, "sync", "add", "post", "--via", "git", "--remote", str(remote))
    place.leave(a_handoff())
    place.ingest()
    host(place, "sync", "run")
    laptop = Producer.make(tmp_path, "laptop")
    laptop.connect("git", str(remote), host(place, "sync", "key").strip())
    assert "memory received: " in laptop.run("sync", "run").stdout
    before = laptop.memory()
    assert before
    laptop.be_old(hours=3, is_asked=True)
    assert "and `date` on both" in laptop.said("search", "staging port"), "the host does not run, or a clock is wrong"
    laptop.be_old(hours=3)
    assert "as of 3 h ago, from " in laptop.brief()
    assert "`truekeep sync run` here" in laptop.said("search", "staging port")
    assert laptop.run("sync", "remove", "host").returncode == 0
    laptop.run("sync", "run")
    assert laptop.memory() == before
    brief = laptop.brief()
    assert "Staging answers on port 8443 only" in brief
    assert "as of 3 h ago, from " in brief
    step = "the route host that brought it was removed here, `truekeep connect machine` makes one"
    for shown in (brief, laptop.said("search", "staging port"), laptop.said("status")):
        assert step in " ".join(shown.split()), shown
    laptop.connect("git", str(remote), host(place, "sync", "key").strip())
    host(place, "sync", "run")
    laptop.run("sync", "run")
    assert "as of just now, from " in laptop.brief()
