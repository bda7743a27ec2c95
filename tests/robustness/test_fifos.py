"""FIFOs where files belong: nothing waits for somebody who writes into one, and what they replace is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, a_handoff, run_cli
from tests.support.histories import git
from tests.unit.handoffs.test_adopt import encoded
from truekeep.core.file_io import read_regular
from truekeep.handoffs.adopt.to_handoffs import read_memory
from truekeep.handoffs.sync.mirror import Mirror, place_name
from truekeep.sessions.session_activity import begun_at, commits_since, tokens_of, work_since
from truekeep.sessions.session_record import count_handoffs
from truekeep.verify.results import quick_stamp

GUARD = 60  # seconds after which something counts as waiting for ever; nothing here is measured
OF_REPOSITORIES = ("repos", "ingest", "verify", "wake", "status", "repos match", "adopt claude")
OF_INBOXES = ("ingest", "handoff lint", "handoff list", "adopt claude", "status", "sync run", "wake")
OF_MEMORY = (
    *("ingest", "verify", "wake", "status", "repos match", "card list", "card show staging-proxy"),
    *("search staging", "tidy --fix", "reconcile", "doctor"),
)


def pipe(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


@pytest.fixture
def here(place: Place, own_home: Path) -> Place:
    """A card of a repository with one commit, and a note of Claude Code about it."""
    git(place.repo, "init", "-q")
    git(place.repo, "commit", "-q", "--allow-empty", "-m", "One")
    place.leave(a_handoff())
    place.ingest()
    notes = own_home / ".claude" / "projects" / encoded(place.repo)
    (notes / "memory").mkdir(parents=True)
    (notes / "memory" / "one.md").write_text("---\nname: one\ndescription: d\n---\n\nA note.\n")
    (notes / "s.jsonl").write_text(json.dumps({"type": "user", "cwd": str(place.repo), "sessionId": "s"}) + "\n")
    return place


def run_all(place: Place, commands: Iterable[str]) -> dict[str, str]:
    """What each command says. None waits for ever, and none fails by a bug."""
    said = {}
    for command in commands:
        line = [sys.executable, "-m", "truekeep", "-w", str(place.workspace), *command.split()]
        try:
            done = subprocess.run(line, cwd=place.repo, stdin=subprocess.DEVNULL, capture_output=True, timeout=GUARD)
        except subprocess.TimeoutExpired:
            pytest.fail(f"truekeep {command} waits for a FIFO")
        said[command] = (done.stdout + done.stderr).decode()
        assert done.returncode != 70, (command, said[command])
    return said


def test_in_memory_they_are_passed_over_and_named(here: Place) -> None:
    names = [
        *("USER.md", "TOOLS.md", "memory/cards/pipe.md", f"memory/{NOW:%Y-%m-%d}.md", "memory/daily/2026-11-01.md"),
        *("memory/projects/app.md", "rules/pipe.md", ".learnings/LEARNINGS.md"),
    ]
    told = ["HANDOVER.md", "HEARTBEAT.md", "memory/active-context.md", "MEMORY.md"]
    for name in (*names, *told, "memory/handoff-inbox/2026-11-01-0900-pipe.md"):
        pipe(here.workspace / name)
    said = run_all(here, OF_MEMORY)
    for name in told:
        assert f"{name} is not a regular file" in said["wake"]
    unseen = json.loads(run_cli("status", "--json", "-w", str(here.workspace)).stdout)["health"]["unseen"]
    for name in (*names, "MEMORY.md"):
        assert sum(line.startswith(f"{name} is not a regular file") for line in unseen) == 1, name
    assert "is not a regular file" in said["status"]


def test_beside_memory_they_are_passed_over(here: Place, own_home: Path) -> None:
    pipe(here.inbox / "2026-11-14-0901-pipe.md")
    pipe(here.inbox / "processed" / "2026-11-14-0902-pipe.md")
    pipe(here.repo / ".git" / "logs" / "HEAD")
    pipe(own_home / ".claude" / "projects" / encoded(here.repo) / "memory" / "pipe.md")
    pipe(own_home / ".claude" / "projects" / encoded(here.repo) / "t.jsonl")
    mirrored = here.workspace / ".truekeep" / "synced" / "route"
    pipe(mirrored / place_name("laptop", "/home/ada/app") / "origin.json")
    other = mirrored / place_name("desk", "/home/ada/app")
    pipe(other / ".claude" / "memory-handoffs" / "2026-11-14-0900-pipe.md")
    (other / "origin.json").write_text(json.dumps({"machine": "desk", "repository": "desk:app", "root": "/app"}))
    run_all(here, OF_INBOXES)
    (place,) = Mirror(mirrored).places()
    assert place.machine == "desk"


@pytest.mark.parametrize("name", ["config", "HEAD", ""])
def test_in_a_repository_they_are_refused(here: Place, name: str) -> None:
    if not name:
        (here.repo / ".git").rename(here.base / "moved")
    path = pipe(here.repo / ".git" / name)
    said = run_all(here, OF_REPOSITORIES)
    assert f"{path} is not a regular file" in " ".join(said["repos"].split())


def test_files_that_a_person_names(here: Place) -> None:
    path = pipe(here.base / "2026-11-14-0900-pipe.md")
    said = run_all(
        here, [f"verify {path}", f"verify --list-claims {path}", f"handoff lint {path}", f"card write T --file {path}"]
    )
    for text in said.values():
        assert str(path) in text
        assert "is not a regular file" in text or "is not readable text" in text


def test_a_pipe_that_the_shell_made_is_read(here: Place) -> None:
    line = f"{sys.executable} -m truekeep verify --list-claims <(echo 'See `src/app.py`.')"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=here.base, timeout=GUARD)
    assert "src/app.py" in done.stdout, done.stderr


def test_what_hooks_read(here: Place) -> None:
    path = str(pipe(here.base / ".git"))
    program = (
        "import sys; from pathlib import Path; from tests.robustness.test_fifos import what_hooks_read;"
        "print(what_hooks_read(sys.argv[1]))"
    )
    pipe(here.inbox / "2026-11-14-0901-pipe.md")
    line = [sys.executable, "-c", program, path]
    root = Path(__file__).parents[2]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True, timeout=GUARD)
    assert done.stdout == "(False, (None, 0), 0.0, (0, 0), '-', {}, 'is not a regular file')\n", done.stderr


def what_hooks_read(path: str) -> tuple[object, ...]:
    try:
        said = str(len(read_regular(path)))
    except OSError as error:
        said = str(error.strerror)
    return (
        work_since(path, 0).is_read,
        commits_since(path, 0),
        begun_at(path),
        tokens_of(path),
        quick_stamp(os.path.dirname(path)),
        read_memory(Path(path)),
        said,
    )


def test_handoffs_of_a_session_are_counted_without_them(here: Place) -> None:
    pipe(here.inbox / "2026-11-14-0901-pipe.md")
    here.leave(a_handoff(), "2026-11-14-0902-good.md")
    assert count_handoffs([str(here.inbox)], 0.0) == 2  # one is processed already
