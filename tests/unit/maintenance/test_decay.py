"""Forgetting on purpose: what leaves search and comes back, what is put away, which cards need a look."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, a_document_handoff, a_handoff, git_repo, run_cli, tree
from tests.support.memories import claude_session, index_file, lend_lexicon, opened, reindex, search
from tests.support.upkeep_place import REPOSITORY, TODAY, put, write_card
from tests.unit.search.test_refresh import assert_sound, rows_of, words_of
from truekeep.core.config import Config, DecayConfig, parse_config
from truekeep.core.derived_db import read_meta, write_meta
from truekeep.core.errors import BadInput, BadSetup, EditedSince
from truekeep.core.sqlite import transaction
from truekeep.maintenance.decay import DecayReport, LastVerification, find_stale, is_spent, write_moves
from truekeep.maintenance.survey.service import CardFacts
from truekeep.memory import file_scan
from truekeep.memory.importance import Tiers
from truekeep.search import refresh as refreshing
from truekeep.search import service as recalling
from truekeep.search.decay_record import (
    DECAY_FILE,
    MIXED,
    RECORD,
    DecayRecord,
    is_affected_by,
    parse_decay_record,
    parse_stamp,
    read_decay_record,
    render_decay_record,
)
from truekeep.search.workspace_files import MemoryFileScanner

WORDS = '[recall]\nembedder = "none"\n'


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place.make(tmp_path, config=WORDS)
    lend_lexicon(place)
    return place


def ago(days: int) -> str:
    return (TODAY - timedelta(days=days)).isoformat()


def log(place: Place, days: int, text: str, *, folder: str = "memory") -> str:
    path = f"{folder}/{ago(days)}.md"
    put(place, path, f"# {ago(days)}\n\n{text}")
    return path


def decay(place: Place, *, now: datetime = NOW, **options: Any) -> DecayReport:
    with place.open(now=now) as workspace:
        return workspace.maintenance.decay(**options)


def undo(place: Place, verb: str) -> None:
    with place.open() as workspace:
        number = next(
            entry.id for entry, _ in workspace.history.entries() if entry.verb == verb and entry.undone_by is None
        )
        workspace.history.undo(number)


def verbs(place: Place) -> list[str]:
    with place.open() as workspace:
        return [entry.verb for entry, _ in workspace.history.entries()]


def wake(place: Place) -> str:
    with place.open() as workspace:
        return workspace.sessions.wake(place.repo).text


def found(place: Place, query: str, **options: Any) -> bool:
    """Whether search finds the word itself, and not what is near."""
    return any(query in hit.text for hit in search(place, query, **options).hits)


def contents(place: Place) -> tuple[Any, ...]:
    with opened(index_file(place)) as db:
        assert_sound(db)
        return rows_of(db), words_of(db)


def some_logs(place: Place) -> None:
    log(
        place,
        40,
        "- [decision|i=0.9] Zebras for ever\n- [lesson|i=0.7] Quokkas\n- [context|i=0.3] Wombats\n- Platypus\n",
    )
    log(place, 10, "- [lesson|i=0.7] Axolotl\n- [context|i=0.3] Narwhal\n  and tapir\n", folder="memory/daily")
    log(place, 1, "- [context|i=0.1] Okapi\n")


# --- Configuration ---------------------------------------------------------------------------------------------------


def test_the_configuration_has_the_days() -> None:
    assert Config().decay == DecayConfig(0.8, 0.4, 30, 7, 90, 30)
    text = "[decay]\nstructural = 1\npotential = 0.25\npotential_days = 60\ncard_days = 365\n"
    assert parse_config(text, where="x").decay == DecayConfig(1.0, 0.25, 60, 7, 365, 30)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("potential = 0.9", "decay.potential must not be above"),
        ("structural = 1.5", "decay.structural must be a number from 0 to 1"),
        ("structural = -0.1", "decay.structural must be a number from 0 to 1"),
        ("structural = nan", "decay.structural must be a number from 0 to 1"),
        ('structural = "high"', "decay.structural must be a number"),
        ("potential = true", "decay.potential must be a number"),
        ("potential_days = 0", "decay.potential_days must be at least 1"),
        ("contextual_days = 1.5", "decay.contextual_days must be a whole number"),
        ("card_days = -1", "decay.card_days must be a whole number"),
        ("potental = 0.3", "did you mean potential"),
    ],
)
def test_a_configuration_that_is_wrong_is_told(text: str, wrong: str) -> None:
    with pytest.raises(BadSetup, match=wrong):
        parse_config(f"[decay]\n{text}\n", where="config.toml")


def test_the_age_of_sessions_has_an_old_key_and_a_new_one() -> None:
    old, new = "[recall]\ntranscript_days = 60\n", "[decay]\ntranscript_days = 5\n"
    for text, days in (("", 30), (old, 60), (new, 5), (old + new, 5)):
        config = parse_config(text, where="x")
        assert (config.decay.transcript_days, config.recall.transcript_days) == (days, days)


# --- The record ------------------------------------------------------------------------------------------------------

DAYS = st.dates(date(2026, 1, 1), date(2026, 12, 31))
TIERS = st.builds(
    lambda one, two, potential, contextual: Tiers(max(one, two), min(one, two), potential, contextual),
    *(st.integers(0, 10).map(lambda number: number / 10),) * 2,
    *(st.integers(1, 60),) * 2,
)
RECORDS = st.one_of(st.none(), st.builds(DecayRecord, DAYS, TIERS), DAYS.map(DecayRecord))


@given(st.builds(DecayRecord, DAYS, TIERS))
def test_a_record_is_read_as_it_was_written(record: DecayRecord) -> None:
    assert parse_decay_record(render_decay_record(record)) == record
    assert parse_stamp(record.stamp) == record


@pytest.mark.parametrize(
    "text",
    [
        *("", "day = 1\n", "not toml at all", "\x00", 'day = "2026-05-01"\n'),
        *(
            render_decay_record(DecayRecord(TODAY)).replace(one, other)
            for one, other in (
                *((f'"{TODAY}"', '"2026-13-01"'), (f'"{TODAY}"', '"soon"'), ("0.8", "7"), ("0.8", "nan")),
                *(("0.8", '"x"'), ("= 30", "= 30.5"), ("= 30", "= -1"), ("= 7", "= 9999999"), ("= 7", "= true")),
                ("potential =", "potental ="),
            )
        ),
    ],
)
def test_a_record_that_cannot_be_read_forgets_nothing(place: Place, text: str) -> None:
    some_logs(place)
    decay(place)
    (place.workspace / RECORD).write_text(text)
    answer = search(place, "Wombats")
    assert "Wombats" in answer.hits[0].text
    assert any(note.startswith(f"{RECORD}: ") for note in answer.notes)
    place.leave(a_handoff(card=None))
    place.ingest()
    with pytest.raises(BadSetup, match=RECORD) as error:
        decay(place, now=NOW + timedelta(days=60))
    assert "delete it" in error.value.hint
    assert len(place.drafts()) == 1
    assert (place.workspace / RECORD).read_text() == text
    (place.workspace / RECORD).unlink()
    assert len(decay(place).leaving) == 3


@pytest.mark.slow
@settings(max_examples=300)
@given(RECORDS, RECORDS, DAYS, st.integers(0, 10))
def test_every_log_that_changes_is_read_again(
    one: DecayRecord | None, other: DecayRecord | None, day: date, tenths: int
) -> None:
    was, now = (record is not None and record.has_expired(day, tenths / 10) for record in (one, other))
    path = f"memory/{day}.md"
    is_concerned = is_affected_by(one.stamp if one else "", other)(path)
    assert is_concerned or was == now
    assert is_affected_by(MIXED, other)(path)
    if one == other:
        assert not is_concerned


def test_only_the_days_at_the_borders_are_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_scan, "CLOCK_TICK_NS", -(1 << 62))  # as if every file had been written long ago
    for days in range(2, 80):
        log(place, days, "- [lesson|i=0.7] Quokka\n- [context|i=0.3] Wombat\n- [decision|i=0.9] Zebra\n")
    decay(place)
    reindex(place)
    read: list[str] = []
    real = file_scan.read_memory_file

    def noted(path: str) -> Any:
        read.append(os.path.basename(path))
        return real(path)

    monkeypatch.setattr(refreshing, "read_memory_file", noted)
    done = decay(place, now=NOW + timedelta(days=2))
    assert sorted(read) == sorted(f"{ago(days)}.md" for days in (28, 29, 5, 6))
    assert {os.path.basename(entry.path) for entry in done.leaving} == set(read)
    read.clear()
    search(place, "Quokka", now=NOW + timedelta(days=2))
    assert read == []


# --- Entries of logs -------------------------------------------------------------------------------------------------


def test_what_expired_leaves_search_and_the_logs_stay(place: Place) -> None:
    some_logs(place)
    reindex(place)
    before = tree(place.workspace)
    assert all(
        found(place, word) for word in ("Zebras", "Quokkas", "Wombats", "Platypus", "Axolotl", "Narwhal", "Okapi")
    )
    done = decay(place)
    assert [(entry.path, entry.first, entry.last, entry.tier) for entry in done.leaving] == [
        (f"memory/{ago(40)}.md", 4, 4, "potential"),
        (f"memory/{ago(40)}.md", 5, 5, "contextual"),
        (f"memory/daily/{ago(10)}.md", 4, 5, "contextual"),
    ]
    assert tree(place.workspace) == before
    for word in ("Quokkas", "Wombats", "Narwhal", "tapir"):
        assert not found(place, word)
    for word in ("Zebras", "Platypus", "Axolotl", "Okapi"):
        assert found(place, word)
    with place.open() as workspace:
        assert "Wombats" in workspace.search.get(f"memory/{ago(40)}.md").text
        hit = next(hit for hit in workspace.search.find("Platypus").hits if "Platypus" in hit.text)
        assert workspace.search.get(hit.citation).text.split("\n")[hit.best - hit.first] == "- Platypus"


def test_undo_brings_everything_back(place: Place) -> None:
    some_logs(place)
    reindex(place)
    before = contents(place)
    decay(place)
    assert verbs(place) == ["decayed"]
    reindex(place)
    assert contents(place) != before
    undo(place, "decayed")
    assert not (place.workspace / RECORD).exists()
    assert found(place, "Wombats")
    assert contents(place) == before
    undo(place, "undone")
    assert not found(place, "Wombats")


def test_the_history_tells_it_in_numbers(place: Place) -> None:
    some_logs(place)
    decay(place)
    with place.open() as workspace:
        entry, _ = next(workspace.history.entries())
        assert (entry.verb, entry.paths) == ("decayed", (RECORD,))
        assert entry.note == (
            f"up to {TODAY}: 3 entries of logs left search (below 0.4 after 7 days, below 0.8 after 30)"
        )


def test_a_second_run_changes_nothing(place: Place) -> None:
    some_logs(place)
    log(place, 50, "- [context|i=0.1] Nothing but this\n")
    assert decay(place, archive=True).has_changes
    state, told = tree(place.workspace), verbs(place)
    record = (place.workspace / RECORD).stat()
    again = decay(place, archive=True)
    assert not again.has_changes
    assert again.record == DecayRecord(TODAY)
    assert (tree(place.workspace), verbs(place)) == (state, told)
    assert (place.workspace / RECORD).stat().st_mtime_ns == record.st_mtime_ns
    assert not decay(place, now=NOW + timedelta(days=1)).has_changes  # the next border is days away
    assert verbs(place) == told


def test_a_dry_run_writes_nothing(place: Place) -> None:
    some_logs(place)
    log(place, 50, "- [context|i=0.1] Nothing but this\n")
    place.leave(a_handoff(card=None), "2026-10-01-0900-a.md")
    place.ingest(now=NOW - timedelta(days=40))
    reindex(place)
    derived = ("survey.sqlite", "catalog.sqlite", "facts.sqlite", "index.sqlite", "index.lock")
    skip = tuple(f"{name}{more}" for name in derived for more in ("", "-wal", "-shm", "-journal"))

    def everything() -> dict[str, str]:
        files = tree(place.workspace, skip=())
        return {name: digest for name, digest in files.items() if os.path.basename(name) not in skip}

    before, told, index = everything(), verbs(place), contents(place)
    planned = decay(place, archive=True, dry_run=True)
    assert (everything(), verbs(place), contents(place)) == (before, told, index)
    done = decay(place, archive=True)
    assert planned == done
    assert len(done.drafts) == 1
    assert [move.path for move in done.moves] == [f"memory/{ago(50)}.md"]


def test_other_tiers_bring_back_what_counts_again(place: Place) -> None:
    some_logs(place)
    decay(place)
    place.configure(f"{WORDS}[decay]\nstructural = 0.7\n")
    done = decay(place)
    assert [entry.kind for entry in done.returning] == ["lesson"]
    assert found(place, "Quokkas")
    assert not found(place, "Wombats")
    place.configure(f"{WORDS}[decay]\ncontextual_days = 400\npotential_days = 400\n")
    decay(place)
    assert found(place, "Wombats")


@pytest.mark.slow
def test_day_by_day_is_all_at_once(place: Place, tmp_path: Path) -> None:
    for days in range(70):
        log(place, days, f"- [lesson|i=0.7] Quokka {days}\n- [context|i=0.3] Wombat {days}\n- [d|i=0.9] Zebra\n")
    other = Place(base=place.base, workspace=tmp_path / "other", repo=place.repo)
    shutil.copytree(place.workspace, other.workspace)
    for day in range(0, 40, 1):
        decay(place, now=NOW + timedelta(days=day))
    decay(other, now=NOW + timedelta(days=39))
    reindex(place)
    reindex(other)
    assert contents(place) == contents(other)


def test_what_was_undone_is_not_done_again_by_night(place: Place) -> None:
    some_logs(place)
    decay(place, by_hand=False)
    undo(place, "decayed")
    done = decay(place, now=NOW + timedelta(days=3), by_hand=False)
    assert not done.has_changes
    assert "undone" in done.notes[0]
    assert found(place, "Wombats")
    assert len(decay(place).leaving) == 3
    assert not found(place, "Wombats")
    log(place, 5, "- [context|i=0.3] Gibbon\n")
    assert len(decay(place, now=NOW + timedelta(days=2), by_hand=False).leaving) == 1


def test_what_is_added_to_an_old_day_is_forgotten_with_it(place: Place) -> None:
    some_logs(place)
    decay(place)
    path = f"memory/{ago(40)}.md"
    put(place, path, (place.workspace / path).read_text() + "- [context|i=0.3] Late gibbon\n- Late ibex\n")
    assert not found(place, "gibbon")
    assert found(place, "ibex")
    decay(place)
    assert not found(place, "gibbon")


def test_files_that_are_not_in_the_index_are_searched_without_what_expired(place: Place) -> None:
    some_logs(place)
    decay(place)
    index_file(place).unlink(missing_ok=True)
    index_file(place).mkdir()  # it cannot be used at all
    assert not found(place, "Wombats")
    assert found(place, "Platypus")


def test_logs_that_are_no_logs_of_a_day_keep_everything(place: Place) -> None:
    names = ("memory/cards/a.md", "TOOLS.md", "memory/2026-13-45.md", "memory/checkpoints/subagent-a.md")
    for number, path in enumerate(names):
        put(place, path, f"# A\n\n- [context|i=0.1] Gibbon{number}x\n")
    assert not decay(place).has_changes
    (place.workspace / RECORD).write_text(render_decay_record(DecayRecord(TODAY)))
    assert all(found(place, f"Gibbon{number}x") for number in range(len(names)))


def test_hand_edited_days_and_line_ends(place: Place) -> None:
    text = "# Day\r\n\r\n- [context|i=0.3] Wombat\r\n  more\r\n- Platypus\r\n"
    put(place, f"memory/{ago(20)}.md", text.encode())
    put(place, f"memory/{ago(21)}-late-session.md", b"\xef\xbb\xbf- [context|i=0.3] Gibbon\n- Ibex\n")
    decay(place)
    assert not found(place, "Wombat")
    assert not found(place, "Gibbon")
    assert found(place, "Platypus")
    assert found(place, "Ibex")


# --- Refreshed is rebuilt --------------------------------------------------------------------------------------------

LOG_DAYS = st.integers(0, 45)
LINES = st.sampled_from(
    ["- [c|i=0.1] wombat", "- [l|i=0.5] quokka", "- [d|i=0.9] zebra", "- [x|i=7] bad", "plain", "## h", "", "  more"]
)
STEPS = st.one_of(
    st.tuples(st.just("write"), LOG_DAYS, st.lists(LINES, max_size=8).map("\n".join)),
    st.tuples(st.just("delete"), LOG_DAYS, st.just("")),
    st.tuples(st.just("record"), st.integers(-5, 60), st.sampled_from(["", "0.5", "1.0"])),
    st.tuples(st.just("none"), st.just(0), st.just("")),
    st.tuples(st.just("put away"), LOG_DAYS, st.just("")),
    st.tuples(st.just("stop"), st.integers(1, 4), st.just("")),
    st.tuples(st.just("search"), st.just(0), st.just("")),
)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, min_size=1, max_size=14))
def test_a_refreshed_index_is_a_rebuilt_one(steps: list[tuple[str, int, str]]) -> None:
    """Whatever is written, forgotten, remembered, put away, or stopped in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place.make(Path(folder), config=WORDS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_scan, "CLOCK_TICK_NS", -(1 << 62))  # else everything this young is read again
            for step in steps:
                _act(place, *step)
            reindex(place)
        refreshed = contents(place)
        reindex(place, rebuild=True)
        assert contents(place) == refreshed


def _act(place: Place, verb: str, number: int, more: str) -> None:
    path = f"memory/{ago(number)}.md" if verb in ("write", "delete", "put away") else ""
    record = place.workspace / RECORD
    if verb == "write":
        (place.workspace / path).write_text(more)
    elif verb == "delete":
        (place.workspace / path).unlink(missing_ok=True)
    elif verb == "put away" and (place.workspace / path).exists():
        (place.workspace / "memory/archive").mkdir(exist_ok=True)
        os.replace(place.workspace / path, place.workspace / f"memory/archive/{ago(number)}.md")
    elif verb == "record":
        tiers = Tiers(structural=float(more)) if more else Tiers()
        record.write_text(render_decay_record(DecayRecord(TODAY + timedelta(days=number - 20), tiers)))
    elif verb == "none":
        record.unlink(missing_ok=True)
    elif verb == "search":
        search(place, "wombat")
    elif verb == "stop":
        _stopped(place, number)


def _stopped(place: Place, number: int) -> None:
    """An indexer that dies before its n-th file, with what it had written by then."""
    with pytest.MonkeyPatch.context() as patch:
        real, read = refreshing.prepare, list[str]()

        def prepare(*given: Any) -> Any:
            read.append("")
            if len(read) >= number:
                raise KeyboardInterrupt
            return real(*given)

        patch.setattr(refreshing, "prepare", prepare)
        patch.setattr(refreshing, "_BATCH_FILES", 1)
        try:
            reindex(place)
        except KeyboardInterrupt:
            return


def test_an_indexer_that_was_stopped_is_not_believed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some logs are in by the new record, some by the old one; then the new one is taken back."""
    monkeypatch.setattr(file_scan, "CLOCK_TICK_NS", -(1 << 62))
    for days in range(20, 26):
        log(place, days, f"- [context|i=0.3] Wombat {days}\n- [decision|i=0.9] Zebra {days}\n")
    reindex(place)
    before = contents(place)
    (place.workspace / RECORD).write_text(render_decay_record(DecayRecord(TODAY)))
    _stopped(place, 3)
    with opened(index_file(place)) as db:
        assert read_meta(db, "decay") == MIXED
    (place.workspace / RECORD).unlink()
    reindex(place)
    assert contents(place) == before
    with opened(index_file(place)) as db:
        assert read_meta(db, "decay") == ""


def test_a_search_without_time_takes_in_a_part(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in range(20, 26):
        log(place, days, f"- [context|i=0.3] Wombat{days}x\n- [decision|i=0.9] Zebra {days}\n")
    reindex(place)
    (place.workspace / RECORD).write_text(render_decay_record(DecayRecord(TODAY)))
    with monkeypatch.context() as patch:
        patch.setattr(recalling, "TIME_TO_REFRESH", -1.0)
        patch.setattr(refreshing, "_BATCH_FILES", 1)
        assert not any(found(place, f"Wombat{days}x") for days in range(20, 26))  # the others are searched in memory
        with opened(index_file(place)) as db:
            assert read_meta(db, "decay") == MIXED
    reindex(place)
    refreshed = contents(place)
    assert "wombat20x" not in refreshed[1]
    reindex(place, rebuild=True)
    assert contents(place) == refreshed


def test_somebody_else_was_faster_with_another_record(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the files and the lock, another process takes another record in."""
    monkeypatch.setattr(file_scan, "CLOCK_TICK_NS", -(1 << 62))
    for days in (8, 20, 25):
        log(place, days, f"- [context|i=0.3] Wombat {days}\n- [decision|i=0.9] Zebra {days}\n")
    reindex(place)
    record = place.workspace / RECORD
    record.write_text(render_decay_record(DecayRecord(TODAY - timedelta(days=10))))
    real = MemoryFileScanner.index_changes

    def late(self: Any, *given: Any, **options: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(MemoryFileScanner, "index_changes", real)
            record.write_text(render_decay_record(DecayRecord(TODAY)))
            other = Place(base=place.base, workspace=place.workspace, repo=place.repo).open(now=NOW)
            with other:
                inner = other.context.recall
                inner._file._is_locked = True
                inner.index()
        return real(self, *given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileScanner, "index_changes", late)
        reindex(place)
    record.write_text(render_decay_record(DecayRecord(TODAY - timedelta(days=10))))
    assert found(place, "Wombat 8")
    refreshed = contents(place)
    reindex(place, rebuild=True)
    assert contents(place) == refreshed


def put_decay_record(place: Place) -> None:
    put(place, ".truekeep/decay.toml", render_decay_record(DecayRecord(date(2026, 5, 1))))


def test_what_people_archived_is_found(place: Place) -> None:
    """Only logs that had expired by the day of the record were put away by decay."""
    put(place, "memory/archive/2026-01-05.md", "The gibbon of a log.\n")
    put(place, "memory/archive/notes.md", "The gibbon of a note.\n")
    assert {hit.store for hit in search(place, "gibbon").hits} == {"logs", "documents"}
    put_decay_record(place)
    assert [hit.path for hit in search(place, "gibbon").hits] == ["memory/archive/notes.md"]


def test_an_index_from_before_the_archive(place: Place) -> None:
    """An older truekeep had these files among the logs."""
    put(place, "memory/archive/2026-01-05.md", "# Old\n\nThe gibbon was here.\n")
    put_decay_record(place)
    reindex(place)
    good = contents(place)
    with opened(index_file(place)) as db, transaction(db):
        db.execute("UPDATE files SET store = 'logs' WHERE path LIKE '%2026%'")
        write_meta(db, "generation", 7)
    assert not found(place, "gibbon")
    assert contents(place) == good


# --- The archive -----------------------------------------------------------------------------------------------------


def test_a_log_of_which_nothing_is_left_is_put_away_whole(place: Place) -> None:
    path = log(place, 20, "## 10:30, claude\n\n- [context|i=0.3] Wombat\n  - nested\n\n[context|i=0.2] Gibbon\n")
    file = place.workspace / path
    os.chmod(file, 0o600)
    data, stamp = file.read_bytes(), file.stat().st_mtime_ns
    assert decay(place).moves == ()
    done = decay(place, archive=True)
    away = place.workspace / f"memory/archive/{ago(20)}.md"
    assert [tuple(move) for move in done.moves] == [(path, f"memory/archive/{ago(20)}.md")]
    assert not file.exists()
    assert away.read_bytes() == data
    assert (away.stat().st_mode & 0o777, away.stat().st_mtime_ns) == (0o600, stamp)
    assert verbs(place) == ["archived", "decayed"]
    assert not found(place, "Wombat")
    (hit,) = search(place, "Wombat", stores=["archive"]).hits
    assert (hit.store, hit.path, hit.day) == ("archive", f"memory/archive/{ago(20)}.md", ago(20))
    with place.open() as workspace:
        assert workspace.search.get(path).path == hit.path  # an old citation still finds its lines
        assert workspace.search.status().files["archive"] == 1
    undo(place, "archived")
    assert file.read_bytes() == data
    assert not away.exists()
    assert not found(place, "Wombat", stores=["archive"])
    undo(place, "decayed")
    assert found(place, "Wombat")


def test_agents_ask_for_the_archive_by_name(place: Place) -> None:
    from truekeep.interfaces.mcp.schemas import TOOLS
    from truekeep.interfaces.mcp.tools import MemoryTools

    put(place, "memory/archive/2026-01-05.md", "The gibbon was here.\n")
    put_decay_record(place)
    with place.open() as workspace:
        memory = MemoryTools(workspace, root=None)
        assert memory.call(TOOLS["memory_search"], {"query": "gibbon"}).data["results"] == []
        assert memory.call(TOOLS["memory_search"], {"query": "gibbon", "corpus": "all"}).data["results"] == []
        (hit,) = memory.call(TOOLS["memory_search"], {"query": "gibbon", "store": "archive"}).data["results"]
        assert (hit["path"], hit["store"], hit["corpus"]) == ("memory/archive/2026-01-05.md", "archive", "memory")
        refused = memory.call(TOOLS["memory_search"], {"query": "x", "corpus": "sessions", "store": "archive"})
        assert "has no store" in str(refused.data)


def test_stores_can_be_asked_for_together(place: Place) -> None:
    put(place, "memory/archive/2026-01-05.md", "The gibbon of old.\n")
    put_decay_record(place)
    put(place, "memory/cards/a.md", "The gibbon of a card.\n")
    log(place, 2, "The gibbon of a log.\n")
    stores = {hit.store for hit in search(place, "gibbon", stores=["cards", "archive"]).hits}
    assert stores == {"cards", "archive"}
    assert {hit.store for hit in search(place, "gibbon").hits} == {"cards", "logs"}
    since = search(place, "gibbon", stores=["archive"], since=date(2026, 2, 1))
    assert since.hits == ()


@pytest.mark.parametrize(
    "more",
    [
        *(
            "plain text\n",
            "- an item without a tag\n",
            "- [decision|i=0.9] Zebra\n",
            "- [x|i=7] bad\n",
            "```\ncode\n```\n",
        ),
        *("<!-- a comment -->\n", "> quoted\n", "---\n", "| a | b |\n"),
    ],
)
def test_a_log_that_says_more_is_not_put_away(place: Place, more: str) -> None:
    path = log(place, 60, f"- [context|i=0.3] Wombat\n\n{more}")
    before = (place.workspace / path).read_bytes()
    assert decay(place, archive=True).moves == ()
    assert (place.workspace / path).read_bytes() == before


def test_logs_that_sessions_read_are_not_put_away(place: Place) -> None:
    place.configure(f"{WORDS}[decay]\ncontextual_days = 1\n")
    for days in range(4):
        log(place, days, f"- [context|i=0.3] Wombat{days}x\n")
    before = wake(place)
    assert "Wombat1x" in before
    done = decay(place, archive=True)
    assert [move.path for move in done.moves] == [f"memory/{ago(3)}.md", f"memory/{ago(2)}.md"]
    assert not found(place, "Wombat1x")
    assert wake(place) == before


@pytest.mark.parametrize("text", ["", "\n\n", "# Only a heading\n", "# A\n\n## B\n"])
def test_logs_without_entries_stay(place: Place, text: str) -> None:
    put(place, f"memory/{ago(60)}.md", text)
    put(place, f"memory/{ago(61)}.md", "- [context|i=0.1] Wombat\n")
    assert [move.path for move in decay(place, archive=True).moves] == [f"memory/{ago(61)}.md"]


def test_names_in_the_archive_are_never_taken_twice(place: Place) -> None:
    day = ago(30)
    put(place, f"memory/archive/{day}.md", "A person put this here.\n")
    log(place, 30, "- [context|i=0.1] first\n")
    log(place, 30, "- [context|i=0.1] second\n", folder="memory/daily")
    put(place, f"memory/{day}-late.md", "- [context|i=0.1] third\n")
    done = decay(place, archive=True)
    assert sorted(move.to for move in done.moves) == [
        f"memory/archive/{day}-2.md",
        f"memory/archive/{day}-late.md",
        f"memory/archive/daily/{day}.md",
    ]
    assert (place.workspace / f"memory/archive/{day}.md").read_text() == "A person put this here.\n"
    log(place, 30, "- [context|i=0.1] a handoff that came late\n")
    assert [move.to for move in decay(place, archive=True).moves] == [f"memory/archive/{day}-3.md"]
    days = {hit.day for hit in search(place, "context", stores=["archive"]).hits}
    assert days == {day}


def test_what_a_person_changes_meanwhile_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(place, 30, "- [context|i=0.1] Wombat\n")

    def edited(*given: Any, **options: Any) -> Any:
        put(place, path, (place.workspace / path).read_text() + "A person's line.\n")
        return write_moves(*given, **options)

    monkeypatch.setattr("truekeep.workspace.maintenance.write_moves", edited)
    done = decay(place, archive=True)
    assert done.moves == ()
    assert "A person's line." in (place.workspace / path).read_text()
    assert not (place.workspace / "memory/archive").exists()


def test_an_edited_archive_is_not_undone_over(place: Place) -> None:
    log(place, 30, "- [context|i=0.1] Wombat\n")
    decay(place, archive=True)
    put(place, f"memory/archive/{ago(30)}.md", "A person's words.\n")
    with pytest.raises(EditedSince):
        undo(place, "archived")
    assert (place.workspace / f"memory/archive/{ago(30)}.md").read_text() == "A person's words.\n"
    assert not (place.workspace / f"memory/{ago(30)}.md").exists()


def test_an_archive_behind_a_symlink_is_told(place: Place, tmp_path: Path) -> None:
    path = log(place, 30, "- [context|i=0.1] Wombat\n")
    (tmp_path / "elsewhere").mkdir()
    (place.workspace / "memory/archive").symlink_to(tmp_path / "elsewhere")
    done = decay(place, archive=True)
    assert done.moves == ()
    assert any("memory/archive" in problem for problem in done.problems)
    assert (place.workspace / path).exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_entry_for_a_day_that_was_put_away_begins_its_log_anew(place: Place) -> None:
    log(place, 30, "- [context|i=0.1] Wombat\n")
    decay(place, archive=True)
    with place.open(now=NOW - timedelta(days=30)) as workspace:
        from truekeep.sessions.checkpoint import Checkpoint

        workspace.sessions.checkpoint(Checkpoint(summary="Late gibbon."))
    assert "Late gibbon." in (place.workspace / f"memory/{ago(30)}.md").read_text()
    assert found(place, "gibbon")


@pytest.mark.slow
def test_archives_carry_what_was_put_away(place: Place, tmp_path: Path) -> None:
    log(place, 30, "- [context|i=0.1] Wombat\n")
    decay(place, archive=True)
    file = tmp_path / "a.alf"
    assert run_cli("alf", "export", "-w", str(place.workspace), "-o", str(file)).returncode == 0
    done = run_cli("alf", "import", str(file), "-w", str(tmp_path / "back"))
    assert done.returncode == 0, done.stderr
    name = f"memory/archive/{ago(30)}.md"
    assert (tmp_path / "back" / name).read_bytes() == (place.workspace / name).read_bytes()


def test_what_was_put_away_is_nothing_to_upkeep_and_verification(place: Place) -> None:
    put(place, "memory/archive/2026-01-05.md", "- [decision|i=0.9] Staging answers on port 8443.\n")
    with place.open() as workspace:
        assert workspace.verification.verify() == []
        assert list(workspace.maintenance.survey().entries()) == []
        assert workspace.maintenance.survey().values_of("port", "staging") == []


def test_is_spent() -> None:
    record = DecayRecord(TODAY)
    path = f"memory/{ago(20)}.md"
    assert is_spent(path, b"# A\r\n\r\n- [c|i=0.1] x\r\n\r\n## B\r\n", record)
    assert not is_spent(path, b"# A\n", record)
    assert not is_spent(path, None, record)
    assert not is_spent(path, b"\xff\xfe\xff", record)
    assert not is_spent(f"memory/{ago(3)}.md", b"- [c|i=0.1] x\n", record)


# --- Sessions --------------------------------------------------------------------------------------------------------


def test_old_sessions_leave_the_index_and_stay_in_the_archive(place: Place, own_home: Path) -> None:
    session = claude_session(own_home, ("user", "Where do armadillos sleep?"))
    with place.open() as workspace:
        workspace.sessions.sync_transcripts()
    session.unlink()
    assert reindex(place).transcripts == 1
    assert found(place, "armadillos", stores=["transcripts"])
    later = NOW + timedelta(days=35)
    assert decay(place, now=later, dry_run=True).sessions == 1
    assert decay(place, now=later).sessions == 1
    assert decay(place, now=later).sessions == 0
    with opened(index_file(place)) as db:
        assert db.execute("SELECT count(*) FROM files WHERE store = 'transcripts'").get == 0
    assert reindex(place, now=later).transcripts == 0
    assert not found(place, "armadillos", stores=["transcripts"], now=later)
    with place.open(now=later) as workspace:
        (kept,) = workspace.sessions.transcripts().sessions()
        assert "armadillos" in str(list(workspace.sessions.transcripts().turns(kept)))
    place.configure(f"{WORDS}[decay]\ntranscript_days = 60\n")
    assert found(place, "armadillos", stores=["transcripts"], now=later)


# --- Drafts and the clock --------------------------------------------------------------------------------------------


def test_drafts_and_processed_handoffs_past_their_age_go(place: Place) -> None:
    place.leave(a_handoff(card=None), "2026-11-14-0900-a.md")
    place.leave(a_document_handoff(), "2026-11-14-0901-b.md")
    place.ingest()
    later = datetime.now().astimezone() + timedelta(days=45)
    done = decay(place, now=later)
    assert (len(done.drafts), len(done.processed)) == (1, 2)
    undo(place, "expired")
    assert len(place.drafts()) == 1


@pytest.mark.parametrize("year", [2020, 2090])
def test_a_clock_that_jumped_is_not_believed(place: Place, year: int) -> None:
    some_logs(place)
    place.leave(a_handoff())
    place.ingest()
    told = verbs(place)
    with pytest.raises(BadInput, match="the clock says"):
        decay(place, now=NOW.replace(year=year))
    assert not (place.workspace / RECORD).exists()
    assert verbs(place) == told
    assert decay(place, now=NOW.replace(year=year), force=True).record == (
        DecayRecord(date(2090, 11, 15)) if year == 2090 else None
    )
    assert bool(decay(place, force=True).returning) == (year == 2090)  # and what the clock did wrong is put right
    assert found(place, "Okapi")


# --- Cards -----------------------------------------------------------------------------------------------------------


def card(name: str, *, created: str = "", updated: str = "", confirmed: str = "", repository: str = "r") -> CardFacts:
    return CardFacts(f"memory/cards/{name}.md", name, name, created, updated, confirmed, repository, 10)


def stale(cards: Sequence[CardFacts], checks: dict[str, LastVerification]) -> list[tuple[str, int | None, bool, str]]:
    known = {f"memory/cards/{name}.md": check for name, check in checks.items()}
    hurdle = {"r": "", "away": "no checkout of away is known on this machine"}.__getitem__
    return [(item.path[13:-3], *item[1:4]) for item in find_stale(cards, known, TODAY, 90, hurdle)]


def test_the_last_sign_of_life_counts() -> None:
    old = ago(91)
    alive = [
        card("created", created=ago(90)),
        card("updated", created=ago(400), updated=ago(90)),
        card("confirmed", created=ago(400), updated=ago(300), confirmed=ago(5)),
        card("verified", created=old),
    ]
    assert stale(alive, {"verified": LastVerification(TODAY - timedelta(days=90), {"confirmed": 1, "gone": 2})}) == []
    assert stale([card("a", created=ago(400), updated=old)], {}) == [("a", 91, False, "never verified")]


def test_first_to_verify_then_to_decide() -> None:
    lately, long_ago = TODAY - timedelta(days=3), TODAY - timedelta(days=200)
    cards = [card(name, created=ago(300)) for name in ("never", "long-ago", "nothing", "gone", "confirmed-long-ago")]
    cards += [card("away", created=ago(300), repository="away"), card("undated"), card("older", created=ago(301))]
    cards += [card("future", created=ago(300), updated="2099-01-01")]
    checks = {
        "long-ago": LastVerification(long_ago, {"unverifiable": 1}),
        "nothing": LastVerification(lately, {}),
        "gone": LastVerification(lately, {"gone": 2, "unverifiable": 1}),
        "confirmed-long-ago": LastVerification(long_ago, {"confirmed": 1}),
    }
    assert stale(cards, checks) == [
        ("undated", None, False, "never verified"),
        ("older", 301, False, "never verified"),
        ("away", 300, True, "no checkout of away is known on this machine"),
        ("future", 300, False, "never verified"),
        ("gone", 300, True, f"verified {lately}: 2 gone, 1 unverifiable"),
        ("long-ago", 300, False, "last verified 200 days ago"),
        ("never", 300, False, "never verified"),
        ("nothing", 300, True, f"verified {lately}: it names nothing that can be checked"),
        ("confirmed-long-ago", 200, False, "last verified 200 days ago"),
    ]


def test_cards_of_a_workspace(place: Place) -> None:
    repo = git_repo(place.base / "repos" / "own")
    (repo / "server.py").write_text("PORT = 8443\n")
    now = datetime.now().astimezone()
    write_card(place, "true", "The server is `server.py`.", repository=REPOSITORY)
    write_card(place, "false", "The server is `gone.py`.", repository=REPOSITORY)
    write_card(place, "silent", "We are patient people.", repository=REPOSITORY)
    write_card(place, "nowhere", "See `server.py`.", repository="github.com/me/unknown")
    write_card(place, "fresh", "See `server.py`.", repository=REPOSITORY, day=f"{now:%Y-%m-%d}")

    def looked_at(when: datetime) -> dict[str, bool]:
        return {item.path[13:-3]: item.is_checked for item in decay(place, now=when).cards}

    before = tree(place.workspace)
    assert looked_at(now) == {"true": False, "false": False, "silent": False, "nowhere": True}
    with place.open(now=now) as workspace:
        workspace.verification.verify(system=False)
    assert looked_at(now) == {"false": True, "silent": True, "nowhere": True}
    later = now + timedelta(days=100)
    with place.open(now=later) as workspace:
        workspace.handoffs.prune(force=True)
    assert looked_at(later)["true"] is False
    with place.open(now=later) as workspace:
        workspace.verification.verify(
            ["memory/cards/true.md"], system=False
        )  # what it rests on is the same; that was looked at
    assert "true" not in looked_at(later)
    with place.open(now=later) as workspace:
        workspace.verification.verify(changed=True, system=False)
    assert looked_at(later)["silent"] is True
    assert tree(place.workspace) == before


# --- The command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_what_and_why(place: Place) -> None:
    day = f"{datetime.now().astimezone() - timedelta(days=20):%Y-%m-%d}"
    put(place, f"memory/{day}.md", "- [context|i=0.3] Wombat\n- [x|i=7] Gibbon\n")
    write_card(place, "old", "Something.", day="2020-01-01")
    at = ("-w", str(place.workspace))
    dry = run_cli("tidy", "decay", *at)
    assert dry.returncode == 0
    assert f"memory/{day}.md" in dry.stdout
    assert "1 entry would leave search" in dry.stdout
    assert f"memory/{day}.md:2" in dry.stdout
    assert "truekeep card confirm old / truekeep card drop old --reason " in dry.stdout
    data = json.loads(run_cli("tidy", "decay", "--json", *at).stdout)
    assert data["schema"] == "truekeep.tidy-decay/1"
    assert data["entries"][0] | {"path": ""} == {
        "path": "",
        "first": 1,
        "last": 1,
        "kind": "context",
        "importance": 0.3,
        "tier": "contextual",
        "leaves": True,
    }
    assert data["cards"][0]["next"] == "decide"
    assert data["problems"] == [f"memory/{day}.md:2: [x|i=7]: the importance is above 1"]
    assert run_cli("tidy", "decay", "--fix", "--exit-code", *at).returncode == 11
    again = run_cli("tidy", "decay", *at)
    assert "nothing expired" in again.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["old", "my old card", "it's", "-x", "a.md", "über"])
def test_what_is_printed_to_be_run_runs(place: Place, name: str) -> None:
    write_card(place, name, "Something.", day="2020-01-01")
    at = ("-w", str(place.workspace))
    (card,) = json.loads(run_cli("tidy", "decay", "--json", *at).stdout)["cards"]
    said = run_cli("tidy", "decay", *at).stdout
    confirm, drop = card["commands"]
    for command in (confirm, drop):
        assert command in said
        assert command.startswith("truekeep ")
        _, *arguments = shlex.split(command)
        done = run_cli(*arguments, *at)
        if command == drop:  # a person is asked, unless they say so
            assert (done.returncode, "--yes" in done.stderr) == (3, True), done.stderr
            done = run_cli(*arguments, "--yes", *at)
        assert done.returncode == 0, done.stderr
    assert place.cards() == []


@pytest.mark.slow
def test_a_card_that_cannot_be_confirmed_is_not_told_to_be(place: Place) -> None:
    bare = place.workspace / "memory/cards/bare.md"
    bare.write_text("Just a text.\n")
    at = ("-w", str(place.workspace))
    (card,) = json.loads(run_cli("tidy", "decay", "--json", *at).stdout)["cards"]
    assert card["commands"] == ["truekeep card drop bare --reason 'not used for a long time'"]
    said = run_cli("tidy", "decay", *at).stdout
    assert "put frontmatter with topic and created above its text" in said
    assert "card confirm" not in said
    write_card(place, "old", "Something.", day="2020-01-01")
    said = run_cli("tidy", "decay", *at).stdout
    assert "next: truekeep card confirm old / truekeep card drop old" in said


@pytest.mark.slow
def test_many_cards_to_decide_on(place: Place) -> None:
    for number in range(25):
        write_card(place, f"old{number:02}", f"Something {number} of its own.", day="2020-01-01")
    at = ("-w", str(place.workspace))
    said = run_cli("tidy", "decay", *at).stdout
    assert "and 5 more" in said
    assert "`truekeep tidy decay --all` lists them" in said
    assert run_cli("tidy", "decay", "--all", *at).stdout.count("memory/cards/old") == 25
    done = run_cli("card", "confirm", "old00", "nobody", "old01", *at)
    assert (done.returncode, done.stdout.count("confirmed memory/cards/")) == (3, 2)
    assert "no card nobody.md" in done.stderr
    assert run_cli("card", "drop", "old02", "old03", "--reason", "gone", "--yes", *at).returncode == 0
    left = json.loads(run_cli("tidy", "decay", "--json", *at).stdout)["cards"]
    assert len(left) == 21
    assert run_cli("card", "confirm", "old04", "old05", "--json", *at).returncode == 3


@pytest.mark.slow
def test_exit_codes(place: Place) -> None:
    at = ("-w", str(place.workspace))
    assert run_cli("tidy", "decay", "--exit-code", *at).returncode == 10
    put(place, "memory/2026-01-05.md", "- [context|i=0.3] Wombat\n")
    assert run_cli("tidy", "decay", "--exit-code", *at).returncode == 0
    done = run_cli("tidy", "decay", "--fix", "--json", *at, TRUEKEEP_MACHINE_ID="another-machine")
    assert done.returncode != 0
    assert json.loads(done.stdout)["error"]["code"] == "not-canonical-host"


@pytest.mark.slow
def test_hostile_kinds_are_shown_harmlessly(place: Place) -> None:
    put(
        place,
        "memory/2026-01-05.md",
        "- [\x1b[31mred|i=0.3] Wombat\n- [red\u202e|i=0.2] Gibbon\n- [\x1b]0;x|i=high] y\n",
    )
    at = ("-w", str(place.workspace))
    for more in ((), ("--json",)):
        done = run_cli("tidy", "decay", *more, *at)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout


@pytest.mark.slow
def test_the_job_forgets_on_purpose(place: Place) -> None:
    day = f"{datetime.now().astimezone() - timedelta(days=20):%Y-%m-%d}"
    put(place, f"memory/{day}.md", "- [context|i=0.3] Wombat\n")
    at = ("-w", str(place.workspace))
    quiet = json.loads(run_cli("schedule", "run", "--json", "--pause-hours", "00:00-23:59", *at).stdout)
    if quiet["ending"] == "PAUSED":
        assert not (place.workspace / ".truekeep" / DECAY_FILE).exists()
    done = json.loads(run_cli("schedule", "run", "--json", "--now", *at).stdout)
    assert done["ending"] == "NO_UPDATES"
    assert read_decay_record(str(place.workspace / ".truekeep")) is not None
    log_file = place.workspace / ".truekeep" / "logs" / "schedule.log"
    assert " decayed=1 " in log_file.read_text().strip().split("\n")[-1]
