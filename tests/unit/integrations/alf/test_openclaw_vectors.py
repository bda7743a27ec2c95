"""OpenClaw's databases of vectors: found, read beside a program that writes, and left as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.support.openclaw_index import OPENAI, Claw
from truekeep.integrations.alf.openclaw_vectors import VectorDatabase, VectorOwner, find_databases
from truekeep.search.embedders import EmbedderFailed


@pytest.fixture(params=["legacy", "between", "current"])
def claw(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Claw]:
    made = Claw(tmp_path / "state" / "memory" / "main.sqlite", request.param)
    made.describe()
    yield made
    made.db.close()


def chunk_table(path: Path) -> tuple[str, VectorOwner | None] | None:
    database = VectorDatabase(path)
    try:
        with database.reading():
            return database.find_chunk_table()
    finally:
        database.close()


def count_chunks(path: Path) -> int:
    database = VectorDatabase(path)
    try:
        with database.reading():
            found = database.find_chunk_table()
            assert found is not None
            return len(database.db.execute(f"SELECT hash, embedding FROM {found[0]}").fetchall())
    finally:
        database.close()


def test_the_table_and_its_owner(claw: Claw) -> None:
    table = "chunks" if claw.is_legacy else "memory_index_chunks"
    assert chunk_table(claw.close()) == (table, VectorOwner("openai", OPENAI))


@pytest.mark.parametrize("value", [b"\xff", b"[", b"[]", b"null"])
def test_an_owner_that_cannot_be_read(claw: Claw, value: bytes) -> None:
    table = "meta" if claw.is_legacy else "memory_index_meta"
    claw.db.execute(f"UPDATE {table} SET value = CAST(? AS TEXT)", (value,))
    found = chunk_table(claw.close())
    assert found is not None
    assert found[1] is None


def test_the_newer_of_two_layouts_counts(tmp_path: Path) -> None:
    """As a migration that stopped half-way may leave them."""
    path = Claw(tmp_path / "agent.sqlite", "current").close()
    legacy = Claw(tmp_path / "old.sqlite", "legacy")
    schema = legacy.db.execute("SELECT group_concat(sql, ';') FROM sqlite_schema WHERE sql IS NOT NULL").get
    legacy.close()
    db = apsw.Connection(str(path))
    db.execute(schema)
    db.close()
    assert chunk_table(path) == ("memory_index_chunks", None)


def test_reading_leaves_no_trace(claw: Claw) -> None:
    claw.chunk("one", [3.0, 4.0])
    path = claw.close()
    before = path.stat(), path.read_bytes()
    assert count_chunks(path) == 1
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before[0].st_mtime_ns, before[0].st_ino)
    assert path.read_bytes() == before[1]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_reading_while_openclaw_writes(claw: Claw) -> None:
    claw.chunk("one", [3.0, 4.0])
    beside = sorted(entry.name for entry in claw.path.parent.iterdir())
    assert count_chunks(claw.path) == 1  # what is only in the log is there too
    claw.db.execute("BEGIN IMMEDIATE")
    claw.chunk("two", [1.0, 0.0])
    assert count_chunks(claw.path) == 1
    claw.db.execute("COMMIT")
    assert count_chunks(claw.path) == 2
    assert sorted(entry.name for entry in claw.path.parent.iterdir()) == beside


def test_a_locked_database(tmp_path: Path) -> None:
    claw = Claw(tmp_path / "main.sqlite", "legacy")
    claw.db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(EmbedderFailed, match="locked"):
        VectorDatabase(claw.path)
    claw.db.execute("ROLLBACK")
    claw.close()


def test_a_writer_that_comes_later_is_noticed(tmp_path: Path) -> None:
    path = Claw(tmp_path / "agent.sqlite", "current").close()
    database = VectorDatabase(path)
    writer = apsw.Connection(str(path))
    writer.execute("INSERT INTO memory_index_meta VALUES('x', 'y')")
    with pytest.raises(EmbedderFailed, match="was written to"), database.reading():
        database.find_chunk_table()
    writer.close()
    database.close()


def test_a_crashed_writers_log_is_left_alone(tmp_path: Path) -> None:
    """A copy, or a crash, can leave a log without its index; reading would make one, so the log is not read."""
    claw = Claw(tmp_path / "live" / "agent.sqlite", "current")
    claw.chunk("one", [3.0, 4.0])
    claw.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    claw.chunk("two", [3.0, 4.0])
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("agent.sqlite", "agent.sqlite-wal"):
        (copy / name).write_bytes((tmp_path / "live" / name).read_bytes())
    claw.close()
    assert count_chunks(copy / "agent.sqlite") == 1
    assert sorted(entry.name for entry in copy.iterdir()) == ["agent.sqlite", "agent.sqlite-wal"]


def test_tables_of_other_shapes_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE chunks(id, body); CREATE TABLE meta(a); PRAGMA user_version = 23")
    db.close()
    assert chunk_table(path) is None


def test_damaged_databases(tmp_path: Path, claw: Claw) -> None:
    with claw.db:
        for number in range(300):
            claw.chunk(f"text {number}", [1.0, float(number)])
    if not claw.is_legacy:
        claw.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    data = claw.close().read_bytes()
    path = tmp_path / "damaged.sqlite"
    page = 4096
    for content in (b"junk" * 5000, data[:100], data[: len(data) // 2], data[:page] + b"\xa5" * (len(data) - page)):
        path.write_bytes(content)
        with pytest.raises(EmbedderFailed, match="damaged"):
            count_chunks(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["damaged.sqlite", "state"]


def test_no_database(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sqlite", tmp_path):
        with pytest.raises(EmbedderFailed, match="cannot be read"):
            VectorDatabase(path)
    (tmp_path / "empty.sqlite").touch()
    assert chunk_table(tmp_path / "empty.sqlite") is None


def test_odd_paths(tmp_path: Path) -> None:
    claw = Claw(tmp_path / "a?b#c%20 d'\"é" / "x&mode=rwc.sqlite", "legacy")
    claw.chunk("one", [1.0, 0.0])
    assert count_chunks(claw.close()) == 1


def test_finding_databases(tmp_path: Path) -> None:
    state = tmp_path / "state"
    wanted = [
        state / "agents" / "main" / "agent" / "openclaw-agent.sqlite",
        state / "agents" / "work" / "agent" / "openclaw-agent.sqlite",
        state / "memory" / "main.sqlite",
    ]
    unwanted = [
        state / "agents" / "main" / "agent" / "openclaw-agent.sqlite.reindex-lock.sqlite",
        state / "agents" / "main" / "other.sqlite",
        state / "memory" / "main.sqlite.migrated",
        state / "memory" / "main.sqlite.generation-lock.sqlite",
        state / "memory" / ".hidden.sqlite",
        state / "memory" / "deep" / "main.sqlite",
        tmp_path / "outside" / "agent" / "openclaw-agent.sqlite",
    ]
    for path in (*wanted, *unwanted):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (state / "memory" / "folder.sqlite").mkdir()
    (state / "memory" / "link.sqlite").symlink_to(wanted[2])
    (state / "agents" / "linked").symlink_to(tmp_path / "outside")
    (state / "agents" / "file").touch()
    assert find_databases(state) == wanted
    (state / "memory").rename(tmp_path / "moved")
    (state / "memory").symlink_to(tmp_path / "moved")
    assert find_databases(state) == wanted[:2]
    assert find_databases(tmp_path / "none") == []
