"""The proof of crash safety: killed, torn, without power or refused at any call, the next run ends where one run would.

The loops are in tests/support/crash.py, a program of its own, so that it can fork. Here they are started and believed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEED, SAMPLE = 20261115, 32


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A place in memory, where there is one: a kill loses nothing that was written, so the disk adds only time."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path / "crash"
        return
    folder = Path(tempfile.mkdtemp(prefix="truekeep-crash-", dir=memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_loop(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tests.support.crash", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_safe(found: dict[str, Any], *, at_least: int) -> None:
    problems = found["problems"]
    assert not problems, f"{len(problems)} problem(s), {found['kinds']}:\n" + "\n".join(problems)
    assert found["points"] >= at_least, found


POINTS = {
    "ingest": 60,
    "approve": 12,
    "reject": 6,
    "undo": 10,
    "add": 8,
    "drop": 8,
    "gate": 6,
    "prune": 15,
    "decay": 40,
    "propose": 6,
    "merge": 12,
    "mend": 9,
}


@pytest.mark.parametrize("mode", ["before", "after", "power"])
@pytest.mark.parametrize("scenario", list(POINTS))
def test_h1_killed_at_every_call(base: Path, scenario: str, mode: str) -> None:
    """before: dies just before the n-th call; after: just after it, or half-way through a write; power: what was not
    synced by then is gone (H2, H3)."""
    assert_safe(run_loop("loop", str(base), scenario, mode), at_least=POINTS[scenario])


def test_h1_killed_at_every_call_without_exchange(base: Path) -> None:
    """On a system without renameat2 files are put in place by link and by rename."""
    assert_safe(run_loop("loop", str(base), "plain", "before"), at_least=POINTS["ingest"])


@pytest.mark.parametrize("mode", ["once-ENOSPC", "once-EACCES", "once-EIO", "stay-ENOSPC", "stay-EIO"])
def test_j1_ingest_refused_at_every_call(base: Path, mode: str) -> None:
    """once: the n-th call fails; stay: that one and all after it, as on a disk that is full or broken."""
    assert_safe(run_loop("loop", str(base), "ingest", mode), at_least=POINTS["ingest"])


@pytest.mark.parametrize("mode", ["once-ENOSPC", "stay-EIO"])
@pytest.mark.parametrize("scenario", ["approve", "undo", "drop", "prune", "decay", "mend"])
def test_j1_other_commands_refused_at_every_call(base: Path, scenario: str, mode: str) -> None:
    assert_safe(run_loop("loop", str(base), scenario, mode), at_least=POINTS[scenario])


def has_strace() -> str:
    """Why strace cannot be used here; empty when it can."""
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return f"strace may not trace here: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.mark.needs("strace")
@pytest.mark.parametrize("mode", ["after", "once-ENOSPC"])
def test_h1_stopped_at_system_calls(base: Path, mode: str) -> None:
    """The same with the kernel's own calls, SQLite's among them: killed, or refused with ENOSPC or EIO."""
    if why := has_strace():
        pytest.skip(why)
    found = run_loop("strace", str(base), "ingest", mode, str(SEED), str(SAMPLE))
    assert_safe(found, at_least=SAMPLE)
    assert mode != "after" or all(kind.endswith(" killed") for kind in found["kinds"]), found["kinds"]
