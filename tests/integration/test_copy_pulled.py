"""A laptop that the host cannot reach syncs by rsync over ssh by itself, against the host's real sshd."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_copy_routes import Producer, host
from tests.support.helpers import CLAUDE, Place, a_card, a_handoff, git_repo, tree
from tests.support.sshd import SshHost, ssh_host

REMOTE = "git@github.com:me/app.git"


@pytest.fixture
def desk(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshHost]:
    """The canonical host, which answers ssh."""
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    git_repo(place.repo, remote=REMOTE)
    place.leave(a_handoff())
    place.ingest()
    with ssh_host(tmp_path / "machines", "desk") as ssh:
        own = f'HOME="{os.environ["HOME"]}" TRUEKEEP_WORKSPACE="{place.workspace}"'
        machine = os.environ.get("TRUEKEEP_MACHINE_ID", "")
        ssh.program("truekeep", f'{own} TRUEKEEP_MACHINE_ID="{machine}" exec "{sys.executable}" -P -m truekeep "$@"')
        yield ssh


@pytest.fixture
def laptop(desk: SshHost, tmp_path: Path) -> Producer:
    laptop = Producer.make(tmp_path / "elsewhere", "laptop")
    (laptop.home / "repos/app" / CLAUDE).mkdir(parents=True)
    return laptop


def connect(laptop: Producer, desk: SshHost) -> str:
    options = [word for option in desk.options["ssh_options"] for word in ("--ssh-option", option)]  # type: ignore[union-attr]
    done = laptop.run(
        "connect", "machine", "--repo", f"{laptop.home}/repos/*", "--via", "rsync", "--host", "127.0.0.1",
        "--port", str(desk.port), *options, "--yes",
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def test_a_laptop_fetches_memory_and_sends_handoffs_itself(place: Place, desk: SshHost, laptop: Producer) -> None:
    said = connect(laptop, desk)
    assert "received a copy of memory" in said
    assert laptop.memory() == {path: text for path, text in tree(place.workspace).items() if path.endswith(".md")}
    assert "Staging answers on port 8443 only" in laptop.brief()
    host(place, "ingest")
    assert "1 receipt" in laptop.run("sync", "run").stdout
    assert laptop.run("connect", "machine", "--check").returncode == 0, "the test handoff is back"
    handoff = laptop.home / "repos/app" / CLAUDE / "2026-11-15-1200-cache.md"
    handoff.write_text(
        a_handoff(card="cache.md", title="Cache", content=a_card("Cache", "The cache is cleared at noon."))
    )
    os.utime(handoff, (1_760_000_000, 1_760_000_000))
    laptop.run("sync", "run")
    host(place, "ingest")
    came = laptop.run("sync", "run")
    assert ("1 receipt" in came.stdout, " changed" in came.stdout) == (True, True), came
    assert not handoff.exists()
    assert (handoff.parent / "processed" / handoff.name).exists()
    assert "cleared at noon" in laptop.said("search", "when is the cache cleared")
    blamed = host(place, "blame", "memory/cards/cache.md")
    assert "github.com/me/app" in blamed
    laptop.run("sync", "run")
    logins = desk.logins()
    assert "memory received" in laptop.run("sync", "run").stdout
    assert desk.logins() == logins + 1, "nothing new is one login"


def test_what_the_host_withholds_is_decided_there(place: Place, desk: SshHost, laptop: Producer) -> None:
    (place.workspace / "USER.md").write_text("# User\nAda\n")
    (place.workspace / "SOUL.md").write_text("# Soul\nsecret persona\n")
    (place.workspace / "memory/plans.md").write_text("# Plans\nthe hidden lighthouse\n")
    host(
        place, "sync", "add", "laptop", "--via", "rsync", "--host", "ada@laptop", "--repo", "~/repos/*", "--private",
        "plans.md",
    )  # fmt: skip
    connect(laptop, desk)
    assert {"SOUL.md", "memory/plans.md"}.isdisjoint(laptop.memory())
    assert "USER.md" in laptop.memory(), "the same person"
    as_other = json.loads(host(place, "sync", "answer", "--machine", "tower-0123456789", "--login", "eve", "--json"))
    sent = Path(as_other["objects"]).parent
    notes = json.loads((sent / "notes.json").read_text())["files"]
    assert "USER.md" not in notes
    assert "memory/plans.md" not in notes, "no machine gets more than the routes give"


def test_a_host_that_is_not_reached_or_damaged_leaves_the_copy(place: Place, desk: SshHost, laptop: Producer) -> None:
    connect(laptop, desk)
    before = laptop.memory()
    (place.workspace / "memory/new.md").write_text("# New\n")
    assert "1 changed" in laptop.run("sync", "run").stdout
    (place.workspace / "memory/newer.md").write_text("# Newer\n")
    before = laptop.memory()
    answers = (desk.bin / "truekeep").read_text()
    desk.program("truekeep", 'echo "truekeep: this machine is not the canonical host" >&2; exit 4')
    refused = laptop.run("sync", "run")
    assert (refused.returncode, "is not the canonical host" in refused.stdout) == (1, True), refused
    (desk.bin / "truekeep").write_text(answers)
    desk.program("rsync", "echo 'rsync: connection unexpectedly closed' >&2; exit 12")
    cut = laptop.run("sync", "run")
    assert "memory could not be brought" in cut.stdout, cut
    assert laptop.memory() == before
    (desk.bin / "rsync").unlink()
    assert laptop.run("sync", "run").returncode == 0
    assert "memory/newer.md" in laptop.memory()
    desk.stop()
    failed = laptop.run("sync", "run")
    assert (failed.returncode, "refuses ssh connections" in failed.stdout) == (1, True), failed
