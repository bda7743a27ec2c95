"""The ledger's answers: every version of every file again, and the entries that are asked for, page by page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.helpers import CODEX, NOW, Place, a_document_handoff, a_handoff
from truekeep.memory.ledger import HandoffRow, Ledger, LedgerEntry, LedgerQuery
from truekeep.memory.staging import Staging
from truekeep.workspace.workspace import Workspace

PATHS = ("memory/cards/a.md", "MEMORY.md", "TOOLS.md")
LINES = st.lists(st.sampled_from(["one\n", "two\n", "three\n", "x" * 40 + "\n", "\n"]), max_size=6)
TEXTS = st.none() | LINES.map(lambda lines: "".join(lines).encode())
# A step: a person writes a file by hand, or a batch of acts, each of which writes some files.
STEPS = st.lists(
    st.tuples(st.just("hand"), st.sampled_from(PATHS), TEXTS)
    | st.tuples(
        st.just("batch"),
        st.lists(st.lists(st.tuples(st.sampled_from(PATHS), TEXTS), max_size=3), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)


def path_of(place: Path) -> str:
    return str(place / ".truekeep" / "ledger.sqlite")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_every_version_can_be_had_again(steps: Sequence[tuple[Any, ...]]) -> None:
    """What a file was before and after each act is what it was on disk then, whoever wrote in between."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "workspace"
        Workspace.init(root, now=lambda: NOW)
        known: dict[tuple[int, str], tuple[bytes | None, bytes | None]] = {}
        with Workspace.open(root, now=lambda: NOW) as workspace:
            first = 1
            for kind, *rest in steps:
                if kind == "hand":
                    _write(root / rest[0], rest[1])
                    continue
                with workspace.writing("test") as books:
                    staging = Staging(books.vault)
                    for number, edits in enumerate(rest[0]):
                        for path, data in edits:
                            before = staging.read(path)
                            if before != data:
                                staging.put(path, data, number)
                                old = known.get((first + number, path), (before, None))[0]
                                known[first + number, path] = (old, data)
                    entries = [LedgerEntry(at="2026-11-15T12:00:00Z", verb="written", actor="me") for _ in rest[0]]
                    books.commit(staging, entries, at="2026-11-15T12:00:00Z")
                    first += len(entries)
            ledger = workspace.context.transaction.ledger
            for (number, path), (before, after) in known.items():
                found = ledger.around(number, path)
                if before != after and found is not None:  # what an act wrote and took back at once is no change
                    assert (found[0] or None, found[1] or None) == (before or None, after or None), (number, path)
            for path in PATHS:
                last = [pair for (_, one), pair in sorted(known.items()) if one == path]
                assert (ledger.content(path) or None) == ((last[-1][1] if last else None) or None)
                assert ledger.around(10_000, path) is None


def _write(path: Path, data: bytes | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if data is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(data)


# --- Questions -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger with entries of several writers, machines, days and verbs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRUEKEEP_MACHINE_ID", "test-machine")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        place = Place.make(tmp_path_factory.mktemp("lived"))
        for number in range(12):
            now = NOW.replace(day=1 + number)
            inbox = place.repo / CODEX if number % 3 == 0 else place.inbox
            text = a_document_handoff(f"Number {number} is kept.", title=f"Tool {number}")
            if number % 2:
                text = a_handoff(card=f"card-{number}.md", title=f"Card {number}", content=_card(number))
            place.leave(text, f"2026-11-{1 + number:02}-0900-n{number}.md", inbox=inbox)
            place.ingest(now=now)
        with place.open(now=NOW) as workspace:
            made = [entry for entry, _ in workspace.history.entries() if entry.verb == "promoted"]
            workspace.history.undo(made[0].id)
    ledger = Ledger(path_of(place.workspace))
    yield ledger
    ledger.close()


def _card(number: int) -> str:
    what = ("apples", "bridges", "candles", "drums", "eels", "flutes", "geese", "harps", "ink", "jars")[number % 10]
    return f"---\ntopic: All about {what}\ncategory: x\ntags: [y]\n---\n\nWe keep {what} in room {number}.\n"


def fits(sought: LedgerQuery, entry: LedgerEntry, record: HandoffRow | None) -> bool:
    """What is sought, said plainly."""
    tests: list[bool] = [
        not sought.verb or entry.verb == sought.verb,
        not sought.since or entry.at >= sought.since,
        not sought.until or entry.at[: len(sought.until)] <= sought.until,
        not sought.path or any(sought.path in path for path in entry.paths),
        not sought.machine or (record is not None and record.origin.machine == sought.machine),
        not sought.who or entry.actor == sought.who or (record is not None and record.origin.writer == sought.who),
    ]
    return all(tests)


SOUGHT = st.builds(
    LedgerQuery,
    who=st.sampled_from(["", "claude", "codex", "ingest", "nobody", "' OR 1"]),
    machine=st.sampled_from(["", "elsewhere"]),
    path=st.sampled_from(["", "memory/cards/", "card-1", "TOOLS", "MEMORY.md", "%", "nowhere", "CARD"]),
    verb=st.sampled_from(["", "promoted", "routed", "undone", "written"]),
    since=st.sampled_from(["", "2026-11-05", "2026-11-05T12:00:00Z", "2027-01-01"]),
    until=st.sampled_from(["", "2026-11-08", "2026-11-08T12:00:00Z", "2020-01-01"]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(sought=SOUGHT, size=st.integers(1, 5), few=st.booleans())
def test_entries_that_are_asked_for(lived: Ledger, sought: LedgerQuery, size: int, few: bool) -> None:
    """Whatever is asked for, pages forward and back give all of it, once each, newest first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truekeep.memory.ledger.MAX_PATHS_LOOKED_UP", 200 if few else 1)
        every = [entry for entry in lived.entries() if fits(sought, entry, lived.handoff_of(entry))]
        assert lived.find_entries(sought, most=1000) == every == list(lived.entries(sought=sought))
        assert _walked(lambda last: lived.find_entries(sought, most=size, before=last)) == every
        if every:
            back = every[-1:]
            while page := lived.find_entries(sought, most=size, after=back[0].id):
                back = [*page, *back]
            assert back == every


def _walked(page: Callable[[int], list[LedgerEntry]]) -> list[LedgerEntry]:
    found: list[LedgerEntry] = []
    while more := page(found[-1].id if found else 0):
        found += more
    return found


def test_what_can_be_asked_for(lived: Ledger) -> None:
    names = lived.names()
    every = list(lived.entries())
    writers = {record.origin.writer for entry in every if (record := lived.handoff_of(entry))}
    assert set(names.who) == writers | {entry.actor for entry in every}
    assert set(names.verbs) == {entry.verb for entry in every}
    assert len(names.machines) == 1
    assert lived.names(most=1).verbs == names.verbs[:1]


def test_counts(lived: Ledger) -> None:
    since = "2026-11-04"
    every = [entry for entry in lived.entries() if entry.at >= since]
    assert dict(lived.count_by_verb(since)) == {
        verb: sum(entry.verb == verb for entry in every) for verb in {entry.verb for entry in every}
    }
    by_day = lived.received_by_day(since)
    assert [day for day, _, _ in by_day] == [f"2026-11-{day:02}" for day in range(4, 13)]
    assert {writer for _, writer, _ in by_day} == {"claude", "codex"}
    assert not lived.received_by_day("2027")
    assert not lived.count_by_verb("2027")


def test_days_are_local(place: Place, set_zone: Callable[[str], None]) -> None:
    place.leave(a_handoff())
    place.ingest(now=datetime(2026, 11, 4, 5, 30, tzinfo=UTC))
    for zone, day in (("America/Los_Angeles", "2026-11-03"), ("Asia/Tokyo", "2026-11-04")):
        set_zone(zone)
        with place.open() as workspace:
            ledger = workspace.context.transaction.ledger
            assert ledger.received_by_day("2026-11-01") == [(day, "claude", 1)]
            assert [noted for noted, _ in ledger.sizes("MEMORY.md")] == [day]


def test_sizes_of_a_file(place: Place) -> None:
    for day in (1, 2, 4):
        place.leave(a_handoff(card=f"c{day}.md", title=f"T{day}", content=_card(day)), f"2026-11-0{day}-0900-x.md")
        place.ingest(now=NOW.replace(day=day))
    (place.workspace / "MEMORY.md").write_text(place.index() + "- by hand\n")
    place.leave(a_handoff(card="c9.md", title="T9", content=_card(9)), "2026-11-09-0900-x.md")
    place.ingest(now=NOW.replace(day=9))
    with place.open() as workspace:
        sizes = workspace.context.transaction.ledger.sizes("MEMORY.md")
        assert [day for day, _ in sizes] == ["2026-11-01", "2026-11-02", "2026-11-04", "2026-11-09"]
        assert sizes[-1][1] == len(place.index().encode())
        assert workspace.context.transaction.ledger.sizes("nothing.md") == []


INDICES = ("entry_at", "entry_verb", "entry_actor", "handoff_machine", "handoff_writer", "handoff_received")


def test_a_ledger_from_before_gets_its_indices(place: Place, tmp_path: Path) -> None:
    place.leave(a_handoff())
    place.ingest()
    path = path_of(place.workspace)
    db = apsw.Connection(path)
    for name in INDICES:
        db.execute(f"DROP INDEX {name}")
    db.execute("PRAGMA user_version = 1")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    old = tmp_path / "old.sqlite"
    shutil.copy(path, old)
    for opened in (Ledger(str(old), read_only=True), Ledger(path)):  # it answers without them, too
        assert [entry.verb for entry in opened.find_entries(LedgerQuery(who="claude"), most=5)] == ["promoted"]
        assert opened.names().verbs == ("promoted",)
        opened.close()
    db = apsw.Connection(path)
    there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    assert there.issuperset(INDICES)
    db.close()


def test_indices_wait_for_whoever_writes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.leave(a_handoff())
    place.ingest()
    path = path_of(place.workspace)
    monkeypatch.setattr("truekeep.memory.ledger.LOCK_WAIT_MS", 10)
    writer = apsw.Connection(path)
    for name in INDICES:
        writer.execute(f"DROP INDEX {name}")
    writer.execute("PRAGMA user_version = 1")
    writer.execute("BEGIN IMMEDIATE")
    ledger = Ledger(path)
    assert len(ledger.find_entries(LedgerQuery(), most=5)) == 1
    ledger.close()
    writer.execute("ROLLBACK")
    writer.close()
