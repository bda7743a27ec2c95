"""A real `truekeep sync receive` is killed in the middle: readers see one whole state, and a later run finishes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.copies import Pair
from tests.support.helpers import Place, a_handoff, run_cli
from truekeep.core.memory_copy import copy_root, has_news
from truekeep.handoffs.sync.publication import HEAD, OBJECTS

KILLS = 10
# Counts what changes the disk; kills itself, as nobody can catch it, before the change of a given number.
PROGRAM = """
import os, runpy, signal, sys
number, seen = int(sys.argv.pop(1)), 0
names = {"os.link", "os.symlink", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.utime", "os.chmod"}
def count(event, given):
    global seen
    if event in names or (event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)):
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
try:
    runpy.run_module("truekeep", run_name="__main__", alter_sys=True)
finally:
    print("changes:", seen)
"""


def receive(stop_at: int) -> subprocess.CompletedProcess[str]:
    """Run `truekeep sync receive`, killed before a change of the disk; 0: not killed."""
    program = [sys.executable, "-c", PROGRAM, str(stop_at), "sync", "receive"]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def pair(place: Place) -> Pair:
    place.leave(a_handoff())
    place.ingest()
    return Pair(place, Path(copy_root()))


def send(pair: Pair) -> None:
    """Put what the host publishes where rsync puts it."""
    published = pair.publish()
    shutil.copytree(published.folder / OBJECTS, pair.folder.incoming / OBJECTS, dirs_exist_ok=True)
    shutil.copy(published.folder / HEAD, pair.folder.incoming / HEAD)


def edit(pair: Pair, version: str) -> None:
    """Change all of the files, so that a mixture would be seen."""
    for number in range(8):
        pair.write(f"memory/note-{number}.md", f"# Note {number}\nthe {version} harbour crane\n")
    pair.write(f"memory/only-{version}.md", f"# Only {version}\nthe {version} lighthouse\n")


def found(pair: Pair) -> set[str]:
    """The files that search finds for a word of all notes."""
    return {hit.path for hit in pair.open().search.find("harbour crane lighthouse", limit=30).hits}


def test_killed_while_it_installs(pair: Pair, tmp_path: Path) -> None:
    edit(pair, "first")
    send(pair)
    assert run_cli("sync", "receive").returncode == 0
    before, found_before = pair.memory(), found(pair)
    (pair.place.workspace / "memory/only-first.md").unlink()
    edit(pair, "second")
    send(pair)
    after = pair.shared()
    kept = tmp_path / "kept"
    shutil.copytree(pair.root, kept, symlinks=True)
    whole = receive(0)
    assert whole.returncode == 0, whole
    assert pair.memory() == after
    changes, found_after = int(whole.stdout.rpartition("changes: ")[2]), found(pair)
    seen = []
    for number in range(KILLS):
        shutil.rmtree(pair.root)
        shutil.copytree(kept, pair.root, symlinks=True)
        stop_at = 1 + (changes - 1) * number // (KILLS - 1)
        killed = receive(stop_at)
        assert killed.returncode == -9, (stop_at, changes, killed)
        state = pair.memory()
        assert state in (before, after), f"killed before change {stop_at} of {changes}"
        assert found(pair) == (found_before if state == before else found_after)
        seen.append(state == after)
        later = run_cli("sync", "receive")
        assert (later.returncode, pair.memory()) == (0, after), (stop_at, later)
        assert (found(pair), has_news()) == (found_after, False)
    assert seen == sorted(seen), "the new one, from one moment on"
    assert set(seen) == {False, True}


def test_killed_again_and_again_it_finishes_at_last(pair: Pair) -> None:
    edit(pair, "first")
    send(pair)
    for stop_at in (3, 20, 40, 60):
        assert receive(stop_at).returncode == -9
        assert pair.memory() in ({}, pair.shared())
    assert run_cli("sync", "receive").returncode == 0
    assert pair.memory() == pair.shared()
    assert os.listdir(pair.root / "generations") == [os.path.basename(os.path.realpath(pair.root / "current"))]


def test_what_became_private_is_gone_wherever_the_run_before_was_killed(pair: Pair, tmp_path: Path) -> None:
    secret = b"the salary of ada is 4711 crowns"
    pair.write("memory/plans.md", f"# Plans\n{secret.decode()}\n")
    send(pair)
    assert run_cli("sync", "receive").returncode == 0
    pair.place.configure('[sync]\nprivate = ["memory/plans.md"]\n')
    send(pair)
    kept = tmp_path / "kept"
    shutil.copytree(pair.root, kept, symlinks=True)
    changes = int(receive(0).stdout.rpartition("changes: ")[2])
    left = 0
    for stop_at in range(changes, changes - 25, -6):  # around the switch, and after it
        shutil.rmtree(pair.root)
        shutil.copytree(kept, pair.root, symlinks=True)
        assert receive(stop_at).returncode == -9
        left += secret in pair.bytes_of_copy()
        assert run_cli("search", "plans").returncode == 0, "whatever reads next finishes it"
        assert secret not in pair.bytes_of_copy(), f"killed before change {stop_at} of {changes}"
    assert left, "at least one of the kills was in time"
