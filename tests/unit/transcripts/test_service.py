"""The archive of sessions: kept once, kept whole, kept after the harness deleted the file, and nothing secret in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, git_repo, run_cli, tree
from tests.support.memories import reindex, search
from tests.support.sessions import (
    LONG,
    ONE,
    TWO,
    AgentDatabase,
    aged,
    all_kept,
    archive_file,
    dialogue,
    grow,
    held,
    held_turns,
    place_of,
    raw_archive,
    sync,
    write_session,
)
from tests.unit.transcripts.test_parser import a_token, claude, codex, lines_of, openclaw, said
from truekeep.core.errors import BadInput, Busy, NotFound, StorageFailed
from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.transcripts import importer as syncing
from truekeep.transcripts import incremental
from truekeep.transcripts.importer import Sync, Where
from truekeep.transcripts.parser import Listener, Turn
from truekeep.transcripts.session_file import HARNESSES, read_lines
from truekeep.transcripts.store import TranscriptStore

HARNESS = pytest.mark.parametrize("harness", HARNESSES)
GOLDEN = Path(__file__).parents[2] / "golden_sessions"
UPDATE = bool(os.environ.get("TRUEKEEP_UPDATE_GOLDEN"))


def whole(path: Path, harness: str) -> list[Turn]:
    """The dialogue of a file, read in one go."""
    listener = Listener(harness, breaks=True)
    return [turn for line in read_lines(path) if (turn := listener.hear(line)) is not None]


# --- Each harness, as its versions write ----------------------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(path.name for path in GOLDEN.iterdir()))
def test_golden_sessions(case: str, place: Place, own_home: Path) -> None:
    """golden_sessions/<harness>-<version>/session.jsonl (or events.jsonl, for a database) and what is kept of it."""
    folder = GOLDEN / case
    harness = case.partition("-")[0]
    if (folder / "events.jsonl").exists():
        database = AgentDatabase(own_home)
        database.add(ONE, (folder / "events.jsonl").read_text().splitlines())
        database.close()
    else:
        write_session(place_of(own_home, harness), [(folder / "session.jsonl").read_bytes()])
    sync(place)
    with place.open() as workspace:
        told = workspace.sessions.transcripts().conversation(ONE)
    kept = told.kept
    found = {
        "cwd": kept.cwd,
        "branch": kept.branch,
        "repository": kept.repository,
        "started_at": kept.started_at,
        "last_at": kept.last_at,
        "first_words": kept.title,
        "dialogue": [list(turn) for turn in told.turns],
    }
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if UPDATE:
        (folder / "kept.json").write_text(text)
    assert text == (folder / "kept.json").read_text()


@HARNESS
def test_a_session_outlives_its_file(harness: str, place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, harness), dialogue(harness, "Why is it red?", "A test fails."))
    assert sync(place).turns == 2
    path.unlink()
    assert sync(place).sessions == 1
    assert held(place) == {ONE: ["Why is it red?", "A test fails."]}


def test_compressed_sessions(place: Place, own_home: Path) -> None:
    rollout = place_of(own_home, "codex")
    write_session(rollout.with_name(f"{rollout.name}.zst"), dialogue("codex", "Why?", "Because."))
    reset = place_of(own_home, "openclaw", TWO)
    write_session(
        reset.with_name(f"{TWO}.jsonl.reset.2026-11-14T10-20-30.000Z.zst"), dialogue("openclaw", "Tea?", "Yes.")
    )
    damaged = write_session(rollout.with_name("rollout-2026-11-15T10-20-30-cut.jsonl.zst"), dialogue("codex", "x"))
    damaged.write_bytes(damaged.read_bytes()[:-4])
    done = sync(place)
    assert len(done.problems) == 1
    assert "cut.jsonl.zst" in done.problems[0]
    assert held(place) == {ONE: ["Why?", "Because."], TWO: ["Tea?", "Yes."]}
    assert len(sync(place).problems) == 1  # it is looked at again: it may not have been written to its end


@pytest.mark.slow
def test_a_compressed_session_without_end(place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "MAX_UNPACKED_BYTES", 1 << 20)
    monkeypatch.setattr(incremental, "PORTION_BYTES", 1 << 20)
    path = place_of(own_home, "codex")
    write_session(path.with_name(f"{path.name}.zst"), [*dialogue("codex", "Why?"), b" " * (1 << 26) + b"\n"])
    done = sync(place)
    assert "unpacks to more than" in done.problems[0]
    assert done.bytes < 1 << 25
    assert held(place) == {ONE: ["Why?"]}
    assert sync(place).problems == ()


def test_a_session_that_codex_holds_with_itself(place: Place, own_home: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": ONE, "cwd": str(own_home / ".codex/memories_v2")}}
    write_session(place_of(own_home, "codex"), lines_of(meta, *(said("codex", "user", "Consolidate."),) * 3))
    assert sync(place).turns == 0
    assert held(place) == {}
    grow(place_of(own_home, "codex"), *dialogue("codex", "Go on."))
    assert sync(place).turns == 0


def test_the_repository_is_asked_of_the_checkout(place: Place, own_home: Path) -> None:
    repo = git_repo(place.base / "shop", remote="https://me:secret@github.com/acme/shop.git")
    write_session(place_of(own_home, "claude"), lines_of(claude("user", "x", cwd=str(repo / "src"))))
    write_session(place_of(own_home, "claude", TWO), lines_of(claude("user", "y", cwd="/gone/lib")))
    (repo / "src").mkdir()
    sync(place)
    assert {name: kept.repository for name, kept in all_kept(place).items()} == {
        ONE: "github.com/acme/shop",
        TWO: "lib",
    }


# --- OpenClaw's database --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_a_database_that_is_in_use(place: Place, own_home: Path, packed: bool) -> None:
    database = AgentDatabase(own_home)
    head = {"type": "session", "version": 4, "id": ONE, "timestamp": NOW.isoformat(), "cwd": "/home/me/app"}
    database.add(
        ONE, [head, openclaw("user", "Tea?"), {"type": "unknown"}, openclaw("assistant", "Yes.")], packed=packed
    )
    before = {path.name for path in database.path.parent.iterdir()}
    assert sync(place).turns == 2
    assert held_turns(place)[ONE][1].line == 4
    assert sync(place).read == 0
    database.add(ONE, [openclaw("user", "Milk?")], packed=packed)
    assert sync(place).turns == 1
    assert held(place) == {ONE: ["Tea?", "Yes.", "Milk?"]}
    assert {path.name for path in database.path.parent.iterdir()} == before
    database.db.execute("DELETE FROM transcript_events")
    database.close()
    assert sync(place).problems == ()
    assert held(place) == {ONE: ["Tea?", "Yes.", "Milk?"]}


def test_a_database_that_nobody_has_open_is_left_as_it_is(place: Place, own_home: Path) -> None:
    database = AgentDatabase(own_home)
    database.add(ONE, [openclaw("user", "Tea?")])
    database.close()
    before = tree(own_home)
    assert sync(place).turns == 1
    assert tree(own_home) == before


def test_a_database_that_another_program_writes(place: Place, own_home: Path) -> None:
    database = AgentDatabase(own_home)
    database.add(ONE, [openclaw("user", "Tea?")])
    database.db.execute("BEGIN IMMEDIATE")
    database.db.execute("DELETE FROM transcript_events")
    assert sync(place).turns == 1  # as it was before that change
    database.db.execute("ROLLBACK")
    database.close()


def test_sessions_that_a_program_began_or_the_user_had_forgotten(place: Place, own_home: Path) -> None:
    database = AgentDatabase(own_home)
    for number, key in enumerate(["cron:backup", "agent:main:subagent:x", "hook:1", "agent:main:telegram:group:7"]):
        database.add(f"s{number}", [openclaw("user", f"text {number}")], key=key)
    database.add("s9", [openclaw("user", "forgotten")])
    database.db.execute("CREATE TABLE memory_session_tombstones (session_id TEXT PRIMARY KEY, reason TEXT)")
    database.db.execute("INSERT INTO memory_session_tombstones VALUES ('s9', 'asked')")
    database.close()
    sync(place)
    assert held(place) == {"s3": ["text 3"]}


@pytest.mark.parametrize(
    ("schema", "note"),
    [
        ("CREATE TABLE other (x)", ""),
        ("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, body BLOB)", "unknown columns"),
        ("CREATE TABLE transcript_events_v9 (session_id TEXT, seq INTEGER, event_json TEXT)", "tables"),
        ("CREATE TABLE transcript_events (session_id, seq, event_json)", ""),
    ],
)
def test_databases_of_another_shape(place: Place, own_home: Path, schema: str, note: str) -> None:
    database = AgentDatabase(own_home, schema=schema)
    if "event_json)" in schema and "v9" not in schema:
        rows = [(1, 2, "x"), ("s", "x", "y"), ("s", 1, 5), ("s", 2, None), ("s", 3, b"\xff"), (None, 1, "{}")]
        database.db.executemany("INSERT INTO transcript_events VALUES (?, ?, ?)", rows)
    database.close()
    done = sync(place)
    assert (note in " ".join(done.notes)) if note else not done.notes
    assert done.problems == ()
    assert held(place) == {}


def test_a_database_that_is_none(place: Place, own_home: Path) -> None:
    path = own_home / ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    write_session(path, [b"not a database at all" * 100])
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"))
    done = sync(place)
    assert len(done.problems) == 1
    assert held(place) == {ONE: ["x"]}


def test_a_session_that_moved_into_the_database(place: Place, own_home: Path) -> None:
    """What `openclaw doctor` does: the same lines, now as rows; the file is put away."""
    rows = [openclaw("user", "Tea?"), openclaw("assistant", LONG)]
    path = write_session(place_of(own_home, "openclaw"), lines_of(*rows))
    sync(place)
    path.unlink()
    database = AgentDatabase(own_home)
    database.add(ONE, rows)
    sync(place)
    assert held(place) == {ONE: ["Tea?", LONG.strip()]}
    database.add(ONE, [openclaw("user", "Milk?")])
    sync(place)
    assert held(place) == {ONE: ["Tea?", LONG.strip(), "Milk?"]}
    assert all_kept(place)[ONE].pointer.endswith(f"openclaw-agent.sqlite#{ONE}")
    database.close()


# --- Only what is new -----------------------------------------------------------------------------------------------


@HARNESS
def test_an_append_reads_only_the_new_bytes(harness: str, place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, harness), dialogue(harness, *(f"turn {n} {LONG}" for n in range(50))))
    assert sync(place).bytes == path.stat().st_size
    more = dialogue(harness, "and now?")
    grow(path, *more)
    done = sync(place)
    assert (done.bytes, done.turns, done.read) == (len(more[0]), 1, 1)
    assert held_turns(place)[ONE] == whole(path, harness)


def test_nothing_is_opened_or_written_when_nothing_changed(
    place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        write_session(place_of(own_home, "claude", f"s{number}"), dialogue("claude", f"text {number}"))
    AgentDatabase(own_home).close()
    sync(place)
    before = archive_file(place).read_bytes()

    def never(*_: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(syncing, "open_session", never)
    monkeypatch.setattr(syncing, "Database", never)
    done = sync(place)
    assert (done.originals, done.read, done.bytes, done.problems) == (5, 0, 0, ())
    assert archive_file(place).read_bytes() == before


@pytest.mark.slow
def test_a_half_written_last_line(place: Place, own_home: Path) -> None:
    first, second = dialogue("claude", "Why?", "Because.")
    for cut in range(1, len(second)):
        path = write_session(place_of(own_home, "claude"), [first, second[:cut]], at=None)
        sync(place)
        assert held(place)[ONE][0] == "Why?"
        grow(path, second[cut:], *dialogue("claude", "So?"))
        sync(place)
        assert held(place)[ONE] == ["Why?", "Because.", "So?"], cut
        shutil.rmtree(archive_file(place).parent)


def test_a_last_line_that_never_gets_its_end_is_kept(place: Place, own_home: Path) -> None:
    first, second = dialogue("claude", "Why?", "Because.")
    path = write_session(place_of(own_home, "claude"), [first, second.rstrip()])
    sync(place)
    path.unlink()
    sync(place)
    assert held(place) == {ONE: ["Why?", "Because."]}


def test_lines_too_long_keep_their_place(place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (
        "truekeep.transcripts.session_file",
        "truekeep.transcripts.parser",
        "truekeep.transcripts.incremental",
    ):
        monkeypatch.setattr(f"{module}.MAX_LINE", 400)
    first, last = dialogue("claude", "Why?", "Because.")
    long = b'{"type": "user", "x": "' + b"x" * 2000
    path = write_session(place_of(own_home, "claude"), [first, long])
    sync(place)
    grow(path, b"y" * 3000)
    assert sync(place).bytes == 3000  # what is passed over is not read again
    grow(path, b'"}\n', last)
    sync(place)
    assert [(turn.text, turn.line) for turn in held_turns(place)[ONE]] == [("Why?", 1), ("Because.", 3)]
    assert held_turns(place)[ONE] == whole(path, "claude")


def a_line(number: int, harness: str) -> bytes:
    """One of many kinds of lines, by its number."""
    kind = number % 7
    if kind == 0:
        return b'{"type": "unknown", "message": {"role": "user"}}\n'
    if kind == 1:
        return b"\xff\x00 no JSON {\n"
    if kind == 2:
        return b"\n"
    role = "user" if kind % 2 else "assistant"
    row = said(harness, role, f"text {number}\nof two lines")
    row["timestamp"] = f"2026-11-15T10:{number % 60:02}:00Z"
    return json.dumps(row).encode() + b"\n"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 900)),
        st.tuples(st.just("truncate"), st.floats(0, 1)),
        st.tuples(st.just("write anew"), st.lists(st.integers(0, 400), max_size=6)),
        st.tuples(st.just("copy"), st.just(0)),
    ),
    min_size=1,
    max_size=7,
)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(HARNESSES), st.lists(st.integers(0, 400), max_size=12, unique=True), steps)
@example("claude", [347], [("append", 315), ("write anew", [241, 241]), ("truncate", 0.9375)])
def test_in_pieces_is_the_same_as_whole(harness: str, numbers: list[int], steps: list[tuple[str, Any]]) -> None:
    """Whatever is appended, cut off or written anew between two syncs: the archive has what the file has, and has lost
    nothing that it had."""
    with tempfile.TemporaryDirectory(dir=memory_folder()) as base:
        home = Path(base)
        path = place_of(home, harness)
        path.parent.mkdir(parents=True)
        path.touch()
        waiting = b"".join(a_line(number, harness) for number in numbers)
        seen: list[list[str]] = []
        for what, how in [*steps, ("append", 1 << 20)]:
            if what == "append":
                grow(path, waiting[:how])
                waiting = waiting[how:]
            elif what == "truncate":
                os.truncate(path, int(path.stat().st_size * how))
            elif what == "write anew":
                path.write_bytes(b"".join(a_line(number, harness) for number in how))
            else:
                shutil.copy(path, path.with_name(path.name.replace(ONE, TWO)))
            sync_home(home)
            said_now = whole(path, harness)
            source, turns = stored(home, path)
            if source is not None and source.is_copy:  # the lines are those of the other original
                assert [turn[:2] for turn in turns][: len(said_now)] == [turn[:2] for turn in said_now]
            else:
                assert turns == said_now
            ended = path.read_bytes().endswith(b"\n") or not said_now
            seen.append([turn.text for turn in (said_now if ended else said_now[:-1])])
            sync_home(home)
            assert stored(home, path) == (source, turns)
        found = kept_texts(home)
        for texts in seen:
            assert any(other[: len(texts)] == texts for other in found) or not texts


def memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def sync_home(home: Path, *, now: datetime = NOW) -> None:
    store = TranscriptStore(str(home / "t" / "archive.sqlite"))
    try:
        done = Sync(store, Where(home, {}, "box", now, 0, os.path.basename)).run()
        assert done.problems == ()
    finally:
        store.close()


def stored(home: Path, path: Path) -> tuple[Any, list[Turn]]:
    from truekeep.transcripts.store import key_of

    store = TranscriptStore(str(home / "t" / "archive.sqlite"))
    source = store.sources().get(key_of(str(path)))
    turns = list(store.turns(source.session)) if source is not None and source.session is not None else []
    store.close()
    return source, turns


def kept_texts(home: Path) -> list[list[str]]:
    store = TranscriptStore(str(home / "t" / "archive.sqlite"))
    found = [[turn.text for turn in store.turns(kept.id)] for kept in store.sessions()]
    store.close()
    return found


@pytest.mark.slow
def test_a_large_file_is_read_in_bounded_memory(place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 2 GB file would take a minute; 120 MB in stretches of 8 MB tell the same."""
    monkeypatch.setattr(incremental, "PORTION_BYTES", 8 << 20)
    noise = json.dumps({"type": "attachment", "content": "x" * 1_000_000}).encode() + b"\n"
    path = place_of(own_home, "claude")
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for number in range(120):
            file.write(noise)
            file.write(dialogue("claude", f"turn {number}")[0])
    tracemalloc.start()
    sync(place)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 24 << 20
    assert len(held(place)[ONE]) == 120
    grow(path, *dialogue("claude", "and now?"))
    assert sync(place).bytes < 1000


# --- Once ------------------------------------------------------------------------------------------------------------


@HARNESS
def test_a_copy_is_not_kept_twice(harness: str, place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, harness), dialogue(harness, "Why?", "Because.", "So?"))
    sync(place)
    write_session(path.with_name(path.name.replace(ONE, TWO)), [path.read_bytes()])
    done = sync(place)
    assert done.sessions == 1
    assert held(place) == {ONE: ["Why?", "Because.", "So?"]}


@HARNESS
def test_a_fork_keeps_only_its_own_turns(harness: str, place: Place, own_home: Path) -> None:
    shared = dialogue(harness, "Why?", LONG, "So?")
    path = write_session(place_of(own_home, harness), [*shared, *dialogue(harness, "Go left")])
    fork = write_session(path.with_name(path.name.replace(ONE, TWO)), [b'{"x": 1}\n', *shared], at=NOW)
    sync(place)
    grow(fork, *dialogue(harness, "Go right"))
    sync(place)
    kept = all_kept(place)
    assert (kept[TWO].shared, kept[TWO].turns) == (3, 1)
    assert kept[TWO].parent == kept[ONE].id
    assert kept[TWO].title == "Go right"
    assert held(place)[TWO] == ["Why?", LONG.strip(), "So?", "Go right"]
    assert [turn.line for turn in held_turns(place)[TWO]] == [2, 3, 4, 5]  # of its own original
    assert raw_archive(place).count(LONG.strip().encode()) == 1


def test_a_resumed_session_with_new_times_is_a_fork(place: Place, own_home: Path) -> None:
    """Codex writes the history of a fork again, with the time of forking."""
    rows = [codex("user", "Why?"), codex("assistant", LONG)]
    write_session(place_of(own_home, "codex"), lines_of(*rows))
    later = [{**row, "timestamp": "2026-11-16T08:00:00Z"} for row in (*rows, codex("user", "Go on"))]
    write_session(place_of(own_home, "codex", TWO), lines_of(*later))
    sync(place)
    assert all_kept(place)[TWO].shared == 2


def test_the_same_small_talk_is_no_fork(place: Place, own_home: Path) -> None:
    for name, at in ((ONE, "2026-11-14T08:00:00Z"), (TWO, "2026-11-15T08:00:00Z")):
        rows = [claude("user", "hi", timestamp=at), claude("assistant", "Hello!", timestamp=at)]
        write_session(place_of(own_home, "claude", name), lines_of(*rows, claude("user", name, timestamp=at)))
    sync(place)
    assert {kept.shared for kept in all_kept(place).values()} == {0}


def test_a_session_that_was_moved_keeps_its_name_and_knows_its_place(place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, "codex"), dialogue("codex", "Why?", LONG))
    sync(place)
    moved = own_home / ".codex/archived_sessions" / path.name
    moved.parent.mkdir(parents=True)
    path.rename(moved)
    sync(place)
    assert held(place) == {ONE: ["Why?", LONG.strip()]}
    assert all_kept(place)[ONE].pointer == f"~/.codex/archived_sessions/{path.name}"
    grow(moved, *dialogue("codex", "Go on"))
    done = sync(place)
    assert (done.turns, done.sessions) == (1, 1)
    packed = moved.with_name(f"{moved.name}.zst")
    write_session(packed, [moved.read_bytes()])
    moved.unlink()
    sync(place)
    assert held(place) == {ONE: ["Why?", LONG.strip(), "Go on"]}
    assert all_kept(place)[ONE].pointer.endswith(".jsonl.zst")


def test_what_a_file_loses_is_not_lost(place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, "claude"), dialogue("claude", "Why?", LONG, "Go left"), at=None)
    sync(place)
    path.write_bytes(b"".join(dialogue("claude", "Why?", LONG, "Go right")))
    sync(place)
    assert sorted(texts[-1] for texts in held(place).values()) == ["Go left", "Go right"]
    assert raw_archive(place).count(LONG.strip().encode()) == 1
    path.write_bytes(b"")
    sync(place)
    assert len(held(place)) == 2


def test_forks_of_what_is_written_anew_stay_whole(place: Place, own_home: Path) -> None:
    path = write_session(place_of(own_home, "claude"), dialogue("claude", "Why?", LONG, "a"), at=None)
    write_session(place_of(own_home, "claude", TWO), dialogue("claude", "Why?", LONG, "b"))
    sync(place)
    path.write_bytes(b"".join(dialogue("claude", "Another thing", "entirely", "c")))
    sync(place)
    assert held(place)[TWO] == ["Why?", LONG.strip(), "b"]
    path.unlink()
    sync(place, now=NOW + timedelta(days=300))
    assert held(place)[TWO] == ["Why?", LONG.strip(), "b"]


# --- Nothing that must not be kept ----------------------------------------------------------------------------------


@HARNESS
def test_no_secret_is_in_any_byte(harness: str, place: Place, own_home: Path) -> None:
    token = a_token()
    split = f"{token[:20]}\n{token[20:]}"
    rows = [
        said(harness, "user", f"My token is {token}, keep it."),
        said(harness, "assistant", f"I used {split} for that."),
        said(harness, "user", f"ghp_\u200b{token[4:]}"),
        {"type": "unknown", "token": token, "message": {"role": "user", "content": token}},
    ]
    write_session(place_of(own_home, harness, a_token(2)), lines_of(*rows, f'{{"type": "user", "x": "{token}'.encode()))
    write_session(own_home / f".claude/projects/-tmp-{a_token(3)}/{TWO}.jsonl", dialogue("claude", "x"))
    write_session(place_of(own_home, "claude"), lines_of(claude("user", "x", cwd=f"/tmp/{token}", gitBranch=token)))
    sync(place)
    raw = raw_archive(place)
    assert raw
    for secret in (token, a_token(2), a_token(3), token[20:], token[4:]):
        assert secret.encode() not in raw
    assert b"[secret: " in raw


def test_what_truekeep_injected_does_not_come_back(place: Place, own_home: Path) -> None:
    brief = f"{BEGIN_MARK} brief -->\nThe walrus sleeps.\n{END_MARK} -->\nFix the build."
    write_session(place_of(own_home, "claude"), lines_of(claude("user", brief), claude("user", "x\u200b\u202ey")))
    sync(place)
    assert held(place)[ONE] == ["Fix the build.", "xy"]
    assert b"walrus" not in raw_archive(place)


def test_line_breaks_are_kept_for_reading(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "Look:\r\n\n\n\n    code()  \n\nWhy?"))
    sync(place)
    assert held(place)[ONE] == ["Look:\n\n    code()\n\nWhy?"]


@pytest.mark.parametrize(
    "line",
    [
        b"\x00" * 300 + b"\n",
        b"[" * 100_000 + b"\n",
        b'{"type": "user", "type": "assistant", "message": {}}\n',
        b'{"message": {"role": "user", "content": NaN}, "type": "user"}\n',
        b'"user" "message"\n',
        b'{"type": "user", "message": {"role": "user", "content": "\\ud800"}}\n',
        "\u2028{\u2028}\n".encode(),
    ],
)
@HARNESS
def test_hostile_lines_cost_only_themselves(harness: str, line: bytes, place: Place, own_home: Path) -> None:
    first, last = dialogue(harness, "Why?", "Because.")
    write_session(place_of(own_home, harness), [first, line, last])
    done = sync(place)
    assert done.problems == ()
    texts = held(place)[ONE]
    assert (texts[0], texts[-1]) == ("Why?", "Because.")


def test_names_that_are_none(place: Place, own_home: Path) -> None:
    for name in ("../x", "a b", "\x1b[31m", "ünïcode", "x" * 200, ".hidden", "CON"):
        folder = own_home / ".claude/projects/-home-me-app"
        write_session(folder / f"{name.replace('/', '_')}.jsonl", dialogue("claude", f"said in {name!r}"))
    done = sync(place)
    assert done.sessions == 7
    for name in held(place):
        assert name.isascii()
        assert name.replace("-", "").replace(".", "").replace("_", "").isalnum()


def test_the_archive_is_its_owners(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"))
    sync(place)
    assert archive_file(place).stat().st_mode & 0o077 == 0
    assert archive_file(place).parent.stat().st_mode & 0o077 == 0


# --- Age ------------------------------------------------------------------------------------------------------------


def test_sessions_expire(place: Place, own_home: Path) -> None:
    place.configure("[transcripts]\nkeep_days = 100\n")
    old, new = NOW - timedelta(days=99), NOW - timedelta(days=10)
    write_session(place_of(own_home, "claude"), aged("claude", "the old walrus", old), at=old)
    write_session(place_of(own_home, "claude", TWO), aged("claude", "new", new), at=new)
    sync(place)
    assert set(held(place)) == {ONE, TWO}
    later = NOW + timedelta(days=2)
    assert sync(place, now=later).expired == 1
    assert held(place) == {TWO: ["new"]}
    assert b"walrus" not in raw_archive(place)
    assert sync(place, now=later).read == 0  # its file is still there, and stays unread
    assert set(held(place)) == {TWO}


def test_a_session_is_as_old_as_its_last_words(place: Place, own_home: Path) -> None:
    old = NOW - timedelta(days=40)
    write_session(place_of(own_home, "claude"), aged("claude", "copied from a backup", old), at=NOW)
    sync(place)
    assert all_kept(place)[ONE].last_at == old.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_what_is_too_old_is_not_taken_in(place: Place, own_home: Path) -> None:
    old = NOW - timedelta(days=400)
    write_session(place_of(own_home, "claude"), aged("claude", "old", old), at=old)
    assert sync(place).sessions == 0
    place.configure("[transcripts]\nkeep_days = 0\n")
    assert sync(place).sessions == 1
    assert sync(place, now=NOW + timedelta(days=9000)).expired == 0


def test_what_a_younger_one_was_forked_from_stays(place: Place, own_home: Path) -> None:
    old = NOW - timedelta(days=300)
    shared = [*aged("claude", f"Why? {LONG}", old), *aged("claude", "Because", old), *aged("claude", "So", old)]
    write_session(place_of(own_home, "claude"), [*shared, *aged("claude", "left", old)], at=old)
    write_session(place_of(own_home, "claude", TWO), [*shared, *aged("claude", "right", NOW)])
    sync(place)
    assert all_kept(place)[TWO].shared == 3
    assert sync(place, now=NOW + timedelta(days=100)).expired == 0
    assert len(held(place)[TWO]) == 4
    assert sync(place, now=NOW + timedelta(days=400)).expired == 2


def test_a_clock_that_jumped_does_not_empty_the_archive(place: Place, own_home: Path) -> None:
    for number in range(30):
        write_session(place_of(own_home, "claude", f"s{number}"), aged("claude", f"text {number}", NOW))
    sync(place)
    done = sync(place, now=NOW + timedelta(days=5000))
    assert (done.expired, done.sessions) == (0, 30)
    assert any("clock" in note for note in done.notes)
    assert sync(place, now=NOW + timedelta(days=5000), force=True).expired == 30


@pytest.mark.parametrize("year", [1970, 2106])
def test_wrong_clocks_keep_rather_than_lose(place: Place, own_home: Path, year: int) -> None:
    when = datetime(year, 1, 2, tzinfo=NOW.tzinfo)
    write_session(place_of(own_home, "claude"), aged("claude", "x", when), at=when)
    sync(place)
    assert all_kept(place)[ONE].last_at == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert sync(place).expired == 0


# --- Trouble --------------------------------------------------------------------------------------------------------


def test_files_that_vanish_or_may_not_be_read(place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write_session(place_of(own_home, "claude", f"s{number}"), dialogue("claude", f"text {number}"))
    from truekeep.transcripts.session_file import open_session as real

    def opened(path: Path) -> Any:
        if path.stem == "s1":
            path.unlink()
        if path.stem == "s2":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(syncing, "open_session", opened)
    done = sync(place)
    assert held(place) == {"s0": ["text 0"]}
    assert [problem.rpartition(": ")[2] for problem in done.problems] == ["Permission denied"]


def test_two_at_once(place: Place, own_home: Path) -> None:
    for number in range(30):
        write_session(place_of(own_home, "claude", f"s{number}"), dialogue("claude", f"text {number}", LONG))
    outcomes: list[object] = []

    def run() -> None:
        try:
            outcomes.append(sync(place).sessions)
        except Busy as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes) <= {30, "busy"}
    assert 30 in outcomes
    assert len(held(place)) == 30


def test_another_machine_keeps_its_sessions_in_its_own_archive(
    place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "said elsewhere"))
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another")
    before = tree(place.workspace)
    assert sync(place).turns == 1
    assert tree(place.workspace) == before
    with place.open() as workspace, workspace.sessions.transcripts() as archive:
        assert [kept.title for kept in archive.sessions()] == ["said elsewhere"]
    assert (own_home / ".local/state/truekeep/transcripts/archive.sqlite").exists()


@pytest.mark.slow
def test_a_machine_without_a_workspace_keeps_its_sessions(own_home: Path, tmp_path: Path) -> None:
    original = write_session(place_of(own_home, "claude"), dialogue("claude", "said on a producer", "and answered"))
    done = run_cli("transcripts", "sync", cwd=tmp_path)
    assert (done.returncode, "kept 1 session" in done.stdout) == (0, True), done
    original.unlink()
    assert "said on a producer" in run_cli("transcripts", "list", cwd=tmp_path).stdout
    assert "and answered" in run_cli("transcripts", "show", ONE, cwd=tmp_path).stdout


def test_a_damaged_archive_is_set_aside_and_made_again(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "still there"))
    sync(place)
    archive_file(place).write_bytes(b"no database" * 1000)
    with place.open() as workspace:
        assert workspace.sessions.transcripts().sessions() == []
    done = sync(place)
    assert any("damaged" in note for note in done.notes)
    assert held(place) == {ONE: ["still there"]}
    assert list(archive_file(place).parent.glob("*.damaged-*"))


def test_what_can_be_read_of_a_damaged_archive_is_saved(place: Place, own_home: Path) -> None:
    for number in range(8):
        path = write_session(place_of(own_home, "claude", f"s{number}"), dialogue("claude", f"text {number}", LONG))
    sync(place)
    shutil.rmtree(path.parent)
    db = apsw.Connection(str(archive_file(place)))
    db.execute("UPDATE block SET data = x'00ff' WHERE id = 3")
    db.close()
    write_session(place_of(own_home, "claude", "s2"), dialogue("claude", "text 2", LONG, "more"))
    with pytest.raises(OSError, match="cannot be read"):
        held(place)
    grow(place_of(own_home, "claude", "s2"), *dialogue("claude", "and more"))
    db = apsw.Connection(str(archive_file(place)))
    db.execute("UPDATE session SET state = 0 WHERE name = 's2'")
    db.close()
    done = sync(place)
    assert any("saved 7 sessions" in note for note in done.notes), done.notes
    assert held(place)["s5"] == ["text 5", LONG.strip()]
    assert held(place)["s2"][-1] == "and more"


def test_an_archive_of_a_newer_truekeep_is_left_alone(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"))
    sync(place)
    db = apsw.Connection(str(archive_file(place)))
    db.execute("PRAGMA user_version = 9")
    db.close()
    before = archive_file(place).read_bytes()
    done = run_cli("transcripts", "sync", "-w", str(place.workspace))
    assert done.returncode == 6
    assert "newer" in done.stderr
    assert archive_file(place).read_bytes() == before


@pytest.mark.slow
def test_an_archive_that_is_a_link(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"))
    archive_file(place).parent.mkdir()
    target = place.base / "elsewhere"
    target.write_bytes(b"precious")
    archive_file(place).symlink_to(target)
    done = run_cli("transcripts", "sync", "-w", str(place.workspace))
    assert done.returncode == 7
    assert target.read_bytes() == b"precious"


def test_a_full_disk(place: Place, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"))

    def full(*_: object, **__: object) -> None:
        raise apsw.FullError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(TranscriptStore, "append", full)
        with pytest.raises(StorageFailed):
            sync(place)
    sync(place)
    assert held(place) == {ONE: ["x"]}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="truekeep-crash-", dir=memory_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["before", "after", "once-ENOSPC", "stay-EIO"])
def test_h1_stopped_at_every_write(base: Path, mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tests.support.crash_archive", str(base), mode],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["problems"], "\n".join(found["problems"])
    assert found["points"] >= 10


# --- Search ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(place: Place, own_home: Path) -> Path:
    texts = ("Why does the quokka time out?", "Raise QUOKKA_POOL_SIZE to nine.", "And the ibis?", "It waits.")
    return write_session(place_of(own_home, "claude"), [b'{"type": "summary"}\n', *dialogue("claude", *texts)])


def test_search_finds_a_session_after_its_file_is_gone(place: Place, session: Path) -> None:
    before = search(place, "QUOKKA_POOL_SIZE", stores=["transcripts"]).hits[0]
    sync(place)
    during = search(place, "QUOKKA_POOL_SIZE", stores=["transcripts"]).hits
    session.unlink()
    after = search(place, "QUOKKA_POOL_SIZE", stores=["transcripts"]).hits
    assert before.citation == during[0].citation == after[0].citation
    assert len(during) == len(after) == 1
    assert after[0].text == before.text
    with place.open() as workspace:
        assert "Raise QUOKKA_POOL_SIZE" in workspace.search.get(before.citation).text
        assert workspace.search.get(f"{before.path}#L4").text == "User: And the ibis?"
        with pytest.raises(NotFound):
            workspace.search.get(f"{before.path}#L99")


def test_sessions_older_than_the_window_are_found_when_it_is_wider(place: Place, own_home: Path) -> None:
    """They leave search after `decay.transcript_days`; the archive has them, and search can have them back."""
    old = NOW - timedelta(days=200)
    write_session(place_of(own_home, "claude"), aged("claude", "The armadillo digs", old), at=old)
    sync(place)
    assert reindex(place).transcripts == 0
    with place.open() as workspace:
        assert len(workspace.sessions.transcripts().sessions()) == 1
    place.configure("[decay]\ntranscript_days = 400\n")
    assert reindex(place).transcripts == 1
    hit = search(place, "armadillo", stores=["transcripts"]).hits[0]
    assert hit.age_days == 200
    assert hit.repository == "app"


@pytest.mark.slow
def test_a_session_that_goes_on_after_the_sync_is_found_as_it_is(place: Place, session: Path) -> None:
    sync(place)
    reindex(place)
    grow(session, *dialogue("claude", "What of the axolotl?"))
    os.utime(session, (NOW.timestamp(), NOW.timestamp()))
    hits = search(place, "axolotl", stores=["transcripts"]).hits
    assert [hit.first for hit in hits if "axolotl" in hit.text] == [hits[0].first]
    assert hits[0].last == 6
    assert reindex(place).transcripts == 1
    sync(place)
    assert reindex(place).transcripts == 1
    assert search(place, "axolotl", stores=["transcripts"]).hits[0].last == 6


def test_a_fork_is_not_found_twice(place: Place, session: Path, own_home: Path) -> None:
    write_session(place_of(own_home, "claude", TWO), [session.read_bytes(), *dialogue("claude", "What of the emu?")])
    sync(place)
    reindex(place)
    hits = search(place, "QUOKKA_POOL_SIZE", stores=["transcripts"], limit=20).hits
    assert sum("QUOKKA_POOL_SIZE" in hit.text for hit in hits) == 1
    assert not hits[0].also
    fork = next(hit for hit in search(place, "emu", stores=["transcripts"]).hits if "emu" in hit.text)
    with place.open() as workspace:
        assert "What of the emu?" in workspace.search.get(fork.citation).text
        assert workspace.search.get(f"{fork.path}#L3").text.startswith(
            "Assistant: Raise"
        )  # what it shares, by its own lines


def test_what_expired_is_forgotten_by_search(place: Place, session: Path) -> None:
    sync(place)
    reindex(place)
    session.unlink()
    later = NOW + timedelta(days=500)
    sync(place, now=later)
    assert reindex(place, now=later).transcripts == 0


@pytest.mark.slow
def test_a_damaged_archive_does_not_harm_the_index(place: Place, session: Path) -> None:
    sync(place)
    db = apsw.Connection(str(archive_file(place)))
    db.execute("UPDATE block SET data = x'00ff'")
    db.execute("UPDATE session SET version = version + 1")
    db.close()
    place.workspace.joinpath("memory/cards/a.md").write_text("---\ntopic: A\n---\n\nThe heron stands.\n")
    done = reindex(place)
    assert any("transcript store" in note for note in done.notes), done.notes
    assert not list((place.workspace / ".truekeep").glob("index.sqlite.damaged*"))
    assert search(place, "heron").hits


# --- The command line -----------------------------------------------------------------------------------------------


def cli(place: Place, *arguments: str) -> Any:
    done = run_cli(*arguments, "-w", str(place.workspace), "--json")
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) | {"exit": done.returncode}


@pytest.fixture
def some(place: Place, own_home: Path) -> Place:
    write_session(place_of(own_home, "claude"), dialogue("claude", "Why is it red?", "A test\nfails.", "So?"))
    week = NOW - timedelta(days=20)
    write_session(place_of(own_home, "codex", "5e55ffff-1"), aged("codex", "Water the plants", week), at=week)
    write_session(place_of(own_home, "openclaw", "abc"), aged("openclaw", "Tea?", week), at=week)
    sync(place)
    return place


def test_list(some: Place) -> None:
    done = run_cli("transcripts", "list", "-w", str(some.workspace), TZ="UTC")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["session", "when", "harness", "repository", "turns", "first", "words"]
    assert lines[1].split()[:6] == ["5e551011", "2026-11-15", "10:20", "claude", "app", "3"]
    assert lines[1].endswith("Why is it red?")
    assert [line.split()[0] for line in lines[2:]] == ["abc", "5e55ffff"]
    columns = {line.index(word) for line, word in zip(lines[1:], ("claude", "openclaw", "codex"), strict=True)}
    assert len(columns) == 1


@pytest.mark.slow
def test_list_filters(some: Place) -> None:
    def names(*arguments: str) -> list[str]:
        return [item["session"] for item in cli(some, "transcripts", "list", *arguments)["sessions"]]

    assert names("--harness", "codex") == ["5e55ffff-1"]
    assert names("--repo", "app") == [ONE]
    assert names("--repo", "/home/me/app") == [ONE]
    assert names("--repo", "/home/me") == [ONE]
    assert names("--repo", "ap") == []
    assert names("--since", "2026-11-01") == [ONE]
    assert len(names("--since", "2026-10-20")) == 3
    assert cli(some, "transcripts", "list", "--since", "never")["exit"] == 3


def test_show(some: Place) -> None:
    done = run_cli("transcripts", "show", "5e551", "-w", str(some.workspace), TZ="UTC")
    assert done.returncode == 0
    assert done.stdout == (
        "claude  app, main\n"
        f"session {ONE}, 3 turns, last 2026-11-15 10:20\n"
        f"original ~/.claude/projects/-home-me-app/{ONE}.jsonl\n"
        "\nUser [1]  2026-11-15 10:20  line 1\nWhy is it red?\n"
        "\nAssistant [2]  2026-11-15 10:20  line 2\nA test\nfails.\n"
        "\nUser [3]  2026-11-15 10:20  line 3\nSo?\n"
    )


def test_show_as_data(some: Place) -> None:
    data = cli(some, "transcripts", "show", f"transcripts/claude/-home-me-app/{ONE}.jsonl#L2", "--turns", "2-")
    assert data["schema"] == "truekeep.transcripts-show/1"
    assert data["session"] == ONE
    assert [(item["turn"], item["role"], item["line"], item["text"]) for item in data["dialogue"]] == [
        (2, "assistant", 2, "A test\nfails."),
        (3, "user", 3, "So?"),
    ]


@pytest.mark.parametrize(
    ("turns", "shown"), [("2", [2]), ("1-2", [1, 2]), ("2-", [2, 3]), ("-2", [1, 2]), ("2-99", [2, 3])]
)
def test_some_turns(some: Place, turns: str, shown: list[int]) -> None:
    data = cli(some, "transcripts", "show", ONE, "--turns", turns)
    assert [item["turn"] for item in data["dialogue"]] == shown


@pytest.mark.slow
@pytest.mark.parametrize("turns", ["x", "-", "0", "9", "3-2", "1-2-3", "1" * 30])
def test_turns_that_are_none(some: Place, turns: str) -> None:
    assert cli(some, "transcripts", "show", ONE, "--turns", turns)["exit"] == 3


@pytest.mark.slow
def test_a_name_that_means_several(some: Place) -> None:
    with some.open() as workspace, pytest.raises(BadInput) as caught:
        workspace.sessions.transcripts().conversation("5e55")
    assert ONE in caught.value.hint
    assert "Water the plants" in caught.value.hint
    assert cli(some, "transcripts", "show", "5e55")["error"]["sessions"] == [ONE, "5e55ffff-1"]
    for name in ("nobody", "", "%", "transcripts/claude/none.jsonl"):
        with some.open() as workspace, pytest.raises(NotFound):
            workspace.sessions.transcripts().conversation(name)


@pytest.mark.slow
def test_without_an_archive(place: Place) -> None:
    assert cli(place, "transcripts", "list")["sessions"] == []
    assert cli(place, "transcripts", "show", "x")["error"]["hint"] == "run `truekeep transcripts sync` first"
    assert not archive_file(place).parent.exists()


@pytest.mark.slow
def test_sync_says_what_it_did(place: Place, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), dialogue("claude", "x"), at=None)
    done = run_cli("transcripts", "sync", "-w", str(place.workspace))
    assert done.stdout.startswith("kept 1 session in 0.")
    assert ": 1 new turn from 1 session (1 original," in done.stdout
    assert "nothing new" in run_cli("transcripts", "sync", "-w", str(place.workspace)).stdout
    data = cli(place, "transcripts", "sync")
    assert set(data) - {"exit", "schema"} == {
        *("originals", "read", "bytes", "turns", "sessions", "expired", "size", "problems", "notes", "seconds"),
    }


@pytest.mark.slow
def test_a_fork_says_where_it_comes_from(place: Place, own_home: Path) -> None:
    shared = dialogue("claude", "Why?", LONG, "So?")
    write_session(place_of(own_home, "claude"), [*shared, *dialogue("claude", "left")])
    write_session(place_of(own_home, "claude", TWO), [*shared, *dialogue("claude", "right")])
    sync(place)
    done = run_cli("transcripts", "show", "7a77", "-w", str(place.workspace))
    assert f"— shared with {ONE} up to here —" in done.stdout
    assert cli(place, "transcripts", "show", "7a77")["forked_from"] == ONE
    assert "… right" in run_cli("transcripts", "list", "-w", str(place.workspace)).stdout


def test_help_loads_no_database() -> None:
    shown = "print('apsw' in sys.modules, 'truekeep.transcripts' in sys.modules)"
    program = f"import sys; from truekeep.interfaces.cli.app import run; run(['--help']); {shown}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False False"


@pytest.mark.slow
def test_keeping_is_configured(place: Place) -> None:
    place.configure('[transcripts]\nkeep_days = "long"\nkeep = 1\n')
    done = run_cli("transcripts", "list", "-w", str(place.workspace))
    assert done.returncode in (0, 6)
    done = run_cli("transcripts", "sync", "-w", str(place.workspace))
    assert done.returncode == 6
    assert "transcripts.keep_days must be a whole number" in done.stderr
    assert "unknown key transcripts.keep" in done.stderr


def test_the_reader_of_openclaw_rows_and_files_agree(place: Place, own_home: Path) -> None:
    rows = [openclaw("user", f"turn {n}", timestamp=time.time()) for n in range(450)]
    database = AgentDatabase(own_home)
    database.add(TWO, rows)
    database.close()
    path = write_session(place.base / "s.jsonl", lines_of(*rows))
    sync(place)
    assert held_turns(place)[TWO] == whole(path, "openclaw")
