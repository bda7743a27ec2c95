"""Processes that are killed or paused at any step: nothing acknowledged is lost, nothing is filed twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import team_crash
from tests.support.helpers import Place, tree, wait_until
from tests.support.team import Team
from truekeep.core.state_dir import STATE
from truekeep.memory.ledger import Ledger
from truekeep.server.administration import export_workspace, read_status
from truekeep.server.database import as_owner


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.team_crash", *arguments]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check_filed(team: Team, out: Path, rounds: int) -> None:
    """Every handoff is in the record exactly once: as a card with its index line, or as a draft."""
    export_workspace(team.url, "team", out)
    ledger = Ledger(str(out / STATE / "ledger.sqlite"), read_only=True)
    index = (out / "MEMORY.md").read_text()
    drafts = [path.read_text() for path in sorted((out / "memory/handoff-inbox").glob("*.md"))]
    with as_owner(team.url) as connection:
        done = connection.execute("SELECT digest, state, outcome, target FROM handoff_queue ORDER BY id").fetchall()
    assert len(done) == rounds * 3
    for digest, state, outcome, target in done:
        assert (state, outcome in ("promoted", "review")) == ("done", True)
        if outcome == "promoted":
            assert index.count(f"({target})") == 1
        else:
            assert sum(digest.hex() in draft for draft in drafts) == 1
        assert (out / target).is_file()
        assert len(list(ledger.versions(target))) == 1
    ledger.close()


@pytest.mark.slow
def test_killed_between_any_two_steps(team: Team, place: Place, tmp_path: Path) -> None:
    team.add(place)
    team.member("ada")
    out, err = start(team.url, str(tmp_path / "servers")).communicate(timeout=500)
    assert out, err
    rounds = json.loads(out)["points"]
    assert rounds > 12, "each of the steps was reached"
    check_filed(team, tmp_path / "out", rounds)
    folder = tmp_path / "servers/one/1/write/memory"
    assert tree(folder) == tree(tmp_path / "out"), "what the last process has is what the record has"


def test_a_paused_holder_whose_lease_moved_writes_nothing(team: Team, place: Place, tmp_path: Path) -> None:
    team.add(place)
    team.member("ada")
    paused = start(team.url, str(tmp_path / "paused"), "pause")

    def is_stopped() -> bool:
        return "(stopped)" in Path(f"/proc/{paused.pid}/status").read_text()

    assert wait_until(is_stopped)
    server = team.server()
    assert wait_until(lambda: server.work_on(1) > 0), "the lease is over, and another process takes it"
    before = read_status(team.url).workspaces[0].version
    os.kill(paused.pid, signal.SIGCONT)
    _, err = paused.communicate(timeout=120)
    assert paused.returncode == 0, err
    assert read_status(team.url).workspaces[0].version == before
    check_filed(team, tmp_path / "out", 1)
    assert len(team_crash.letters(1)) == 3
