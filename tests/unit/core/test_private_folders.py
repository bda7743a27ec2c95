"""The state folder is its owner's alone, whichever part of truekeep makes it first."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from truekeep.core.bugs import note_bug
from truekeep.core.machine import own_state
from truekeep.core.state_dir import append_line
from truekeep.integrations.alf.archive_file import remember_own_archive
from truekeep.integrations.harnesses.installed import Keep
from truekeep.sessions.session_record import SessionRecord, note_checkpoint, write_record
from truekeep.workspace import producer


def connect() -> None:
    with Keep(Path(own_state()) / "connect").lock():
        pass


def export() -> None:
    made = Path(own_state()).parents[2] / "made.alf"
    made.write_bytes(b"x")
    remember_own_archive(made)


MAKERS: dict[str, Callable[[], object]] = {
    "session": lambda: write_record(SessionRecord(id="s", harness="claude")),
    "checkpoint": lambda: note_checkpoint("/r", "claude"),
    "export": export,
    "connect": connect,
    "bug": lambda: note_bug(ValueError("x"), "status"),
    "log": lambda: append_line(os.path.join(own_state(), "logs"), "hooks.log", f"{datetime.now(UTC)} x"),
    "transcripts": lambda: producer.sync_transcripts(force=True),
}


@pytest.mark.parametrize("name", MAKERS)
def test_whoever_comes_first_makes_it_private(own_home: Path, name: str) -> None:
    before = os.umask(0o022)
    try:
        MAKERS[name]()
    finally:
        os.umask(before)
    state = Path(own_state())
    folders = [state, *(path for path in state.rglob("*") if path.is_dir())]
    assert state.is_relative_to(own_home)
    assert [path for path in folders if path.stat().st_mode & 0o077] == []
