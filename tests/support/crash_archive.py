"""The archive's crash proof: a sync that is stopped at every call which changes the disk, then run again.

`python -m tests.support.crash_archive BASE MODE` uses the faults of tests/support/crash.py; see there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support.crash import Fault, run
from tests.support.helpers import NOW, Place
from tests.support.sessions import LONG, TWO, AgentDatabase, aged, dialogue, held_turns, place_of, sync, write_session
from tests.unit.transcripts.test_parser import openclaw
from truekeep.transcripts import importer as syncing
from truekeep.transcripts import incremental
from truekeep.workspace.workspace import Workspace

NOW_LATER = NOW + timedelta(days=60)


def prepare(base: Path) -> Place:
    """A synced archive, and then: growth, a fork, a copy, a file written anew, a move, a database, one past its age."""
    home = base / "home"
    os.environ["HOME"] = str(home)
    os.environ["TRUEKEEP_MACHINE_ID"] = "test-machine"
    place = Place.make(base)
    place.configure("[transcripts]\nkeep_days = 100\n")
    old = NOW - timedelta(days=50)
    write_session(place_of(home, "claude", "old"), aged("claude", "an old one", old), at=old)
    grown = write_session(place_of(home, "claude"), dialogue("claude", "Why?", LONG, "So?"), at=None)
    anew = write_session(place_of(home, "claude", "anew"), dialogue("claude", "One", "two", "three"), at=None)
    moved = write_session(place_of(home, "codex", "moved"), dialogue("codex", "Here?", LONG), at=None)
    sync(place)
    shared = grown.read_bytes()
    write_session(place_of(home, "claude", TWO), [shared, *dialogue("claude", "fork")], at=None)
    write_session(place_of(home, "claude", "copy"), [shared], at=None)
    write_session(grown, [shared, *dialogue("claude", "more", LONG * 300, "most")], at=None)
    write_session(anew, dialogue("claude", "One", "zwei", "drei"), at=None)
    target = home / ".codex/archived_sessions" / moved.name
    target.parent.mkdir(parents=True)
    moved.rename(target)
    database = AgentDatabase(home)
    database.add("tea", [openclaw("user", "Tea?"), openclaw("assistant", "Yes.")])
    database.close()
    return place


def act(workspace: Workspace) -> object:
    incremental.PORTION_CHARACTERS = 30_000
    syncing._BATCH_SECONDS = 0.0  # a transaction for every file: more places to stop at
    return workspace.sessions.sync_transcripts()


def look(place: Place) -> dict[str, list[Any]]:
    found = {name: [tuple(turn) for turn in turns] for name, turns in held_turns(place).items()}
    return dict(sorted(found.items()))


def main(arguments: list[str]) -> int:
    base, mode = Path(arguments[0]), arguments[1]
    place = prepare(base / "run")
    template = base / "template"
    shutil.copytree(base / "run", template, symlinks=True)

    def reset() -> None:
        shutil.rmtree(base / "run")
        shutil.copytree(template, base / "run", symlinks=True)

    ending = run(base / "run", act, NOW_LATER)
    wanted = look(place)
    problems = [] if ending.kind == "clean" else [f"an undisturbed run ended {ending.kind}: {ending.what}"]
    if not wanted or "old" in wanted or len(wanted) < 5:
        problems.append(f"an undisturbed run kept {list(wanted)}")
    at = 0
    while len(problems) < 12:
        at += 1
        reset()
        fault = Fault(mode, at, base / "run")
        ending = run(base / "run", act, NOW_LATER, fault)
        if not ending.is_killed and not ending.hit:
            break
        if ending.kind == "unexpected":
            problems.append(f"{mode} call {at} ({ending.hit}): {ending.what}")
        for number in (1, 2):
            again = run(base / "run", act, NOW_LATER)
            if again.kind != "clean" or look(place) != wanted:
                found = look(place)
                differing = {name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)}
                problems.append(f"{mode} call {at} ({ending.hit}): run {number} after it: {again} {sorted(differing)}")
    print(json.dumps({"points": at - 1, "problems": problems}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
