"""The index follows the files: whatever happens to them, a refreshed index is the index that a fresh build makes."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place
from tests.support.memories import (
    WORDS_ONLY,
    claude_session,
    index_file,
    paths,
    reindex,
    remember,
    search,
    some_memories,
)
from truekeep.core.derived_db import read_meta
from truekeep.memory.file_scan import (
    FILE_LIMIT,
    MemoryFile,
    find_changes,
    iter_files,
    read_memory_file,
    scan_files,
    store_of,
)
from truekeep.search import refresh as refreshing
from truekeep.search.embedders import EmbedderFailed, Vector, validate_vectors
from truekeep.search.file_metadata import describe, heading_at
from truekeep.search.index_schema import FIRST_TRANSCRIPT_ID, SECTIONS, VECTORS_PER_BLOCK, open_index, section_of
from truekeep.search.refresh import RefreshReport, embed_waiting, prepare, refresh
from truekeep.search.vectors import VectorBlock, cosines, pick_best

SIZE = 8


class Numbers:
    """An embedder whose vectors are digests: the same text, the same vector, and no two texts alike."""

    provider, model, key = "test", "numbers", "1"

    def __init__(self) -> None:
        self.failing = False
        self.texts = 0

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        if self.failing:
            raise EmbedderFailed("not today")
        self.texts += len(texts)
        rows = [array("b", hashlib.sha256(text.encode("utf-8", "replace")).digest()[:SIZE]) for text in texts]
        return validate_vectors(rows, len(texts), who="numbers")


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every file had been written long ago."""
    monkeypatch.setattr("truekeep.memory.file_scan.CLOCK_TICK_NS", -(1 << 62))


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    connection = open_index(":memory:")
    yield connection
    connection.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "memory" / "cards").mkdir(parents=True)
    return tmp_path


def write(root: Path, path: str, text: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def bring_up_to_date(db: apsw.Connection, root: Path, embedder: Any = None, **options: Any) -> RefreshReport:
    return refresh(db, find_changes(db, iter_files(str(root))), embedder, **options)


def rows_of(db: apsw.Connection) -> list[Any]:
    """The chunks as anyone would see them, without ids."""
    return sorted(
        db.execute(
            "SELECT path, store, day, repository, title, files.digest, first, last, heading, text, chunks.digest"
            " FROM chunks JOIN files ON files.id = file_id"
        ).fetchall()
    )


def words_of(db: apsw.Connection) -> dict[str, list[Any]]:
    """For each word of the index, where it stands."""
    found: dict[str, list[Any]] = {}
    for (term,) in db.execute("SELECT term FROM chunk_words").fetchall():
        places = db.execute(
            "SELECT path, first, chunks.digest FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid"
            " JOIN files ON files.id = file_id WHERE chunks_fts MATCH ?",
            (f'"{term}"',),
        ).fetchall()
        if places:
            found[str(term)] = sorted(places)
    return found


def vectors_of(db: apsw.Connection) -> dict[Any, bytes]:
    rows: Any = db.execute(
        "SELECT path, first, chunks.digest, embedding FROM vectors JOIN chunks ON chunks.id = chunk_id"
        " JOIN files ON files.id = file_id"
    ).fetchall()
    return {tuple(row[:3]): row[3] for row in rows}


def assert_sound(db: apsw.Connection) -> None:
    """What must hold of the tables among themselves, whatever came before."""
    chunks = {row[0] for row in db.execute("SELECT id FROM chunks")}
    free = {row[0] for row in db.execute("SELECT id FROM free_chunks")}
    vectors = {row[0] for row in db.execute("SELECT chunk_id FROM vectors")}
    waiting = {row[0] for row in db.execute("SELECT chunk_id FROM unembedded")}
    assert not chunks & free
    for first, last in SECTIONS.values():
        own = {chunk for chunk in chunks | free if first < chunk <= last}
        assert own == set(range(first + 1, first + len(own) + 1)), "ids are dense"
    places: Any = db.execute("SELECT chunks.id, store FROM chunks JOIN files ON files.id = file_id").fetchall()
    assert all(SECTIONS[section_of(store)][0] < chunk <= SECTIONS[section_of(store)][1] for chunk, store in places)
    assert vectors | waiting == chunks
    assert not vectors & waiting
    assert {row[0] for row in db.execute("SELECT rowid FROM chunks_fts")} == chunks
    assert not db.execute("SELECT 1 FROM chunks WHERE file_id NOT IN (SELECT id FROM files)").fetchall()
    db.execute("INSERT INTO chunks_fts(chunks_fts) VALUES ('integrity-check')")
    assert db.execute("PRAGMA integrity_check").get == "ok"
    blocks: Any = db.execute("SELECT id, embeddings FROM vector_blocks").fetchall()
    for number, embeddings in blocks:
        size = len(embeddings) // VECTORS_PER_BLOCK
        for place in range(VECTORS_PER_BLOCK):
            chunk_id = number * VECTORS_PER_BLOCK + place + 1
            is_empty = not any(embeddings[place * size : (place + 1) * size])
            assert is_empty == (chunk_id not in vectors), "a vector that is gone is zeros"


# --- Refreshed is rebuilt -------------------------------------------------------------------------------------------

NAMES = (
    *("MEMORY.md", "USER.md", "TOOLS.md", "rules/a.md", "memory/cards/a.md", "memory/cards/b.md"),
    *("memory/2026-11-01.md", "memory/daily/2026-11-02-x.md", "memory/projects/p.md", "memory/deep/er/c.md"),
    *("memory/archive/2026-11-01.md", "memory/archive/daily/old.md"),
)
WORDS = st.sampled_from(
    (
        "port",
        "staging",
        "the",
        "zq0033x",
        "parseHTTPHeader",
        "数据库",
        "café",
        "🦊",
        "-",
        "#",
        "---",
        "topic:",
        "x\n",
        "\r\n",
    )
)
TEXTS = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join),
    st.lists(st.lists(WORDS, max_size=40).map(" ".join), max_size=40).map("\n".join),
    st.text(max_size=60),
    st.sampled_from(
        ["", "\n", "---\ntopic: T\nrepository: me/app\ncreated: 2026-01-02\n---\n\n# H\n\nbody\n", "x" * 4000]
    ),
)
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), TEXTS),
    st.tuples(st.just("append"), st.sampled_from(NAMES), TEXTS),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just("touch"), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("fail"), st.just(""), st.just("")),
)


def act(root: Path, step: tuple[str, str, str]) -> None:
    verb, name, more = step
    file = root / name
    if verb in ("write", "append"):
        old = file.read_bytes() if verb == "append" and file.exists() else b""
        write(root, name, old + more.encode("utf-8", "surrogatepass"))
    elif verb == "delete":
        file.unlink(missing_ok=True)
    elif verb == "rename" and file.exists():
        (root / more).parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, root / more)
    elif verb == "touch" and file.exists():
        os.utime(file)


@pytest.mark.slow
@example([[("write", "memory/cards/a.md", "one")], [("write", "memory/cards/a.md", "two words\n" * 400)]])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(STEPS, max_size=6), min_size=1, max_size=5))
def test_a_refreshed_index_is_a_rebuilt_one(rounds: list[list[tuple[str, str, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        db = open_index(":memory:")
        embedder = Numbers()
        for steps in rounds:
            embedder.failing = any(step[0] == "fail" for step in steps)
            for step in steps:
                act(root, step)
            done = bring_up_to_date(db, root, embedder)
            assert done.unread == ()
            assert_sound(db)
            if not done.failure:
                embedder.failing = False
                embed_waiting(db, embedder)
            fresh = open_index(":memory:")
            bring_up_to_date(fresh, root, Numbers())
            assert rows_of(db) == rows_of(fresh)
            assert words_of(db) == words_of(fresh)
            if not done.failure:
                assert vectors_of(db) == vectors_of(fresh)
            fresh.close()
        embedder.failing = False
        embed_waiting(db, embedder)
        assert_sound(db)
        db.close()


def test_with_the_real_embedder_too(place: Place) -> None:
    some_memories(place)
    reindex(place)
    remember(place, "memory/cards/new.md", "A card that came later.\n")
    (place.workspace / "memory/2026-11-10.md").unlink()
    search(place, "later")
    refreshed = open_index(str(index_file(place)))
    found = rows_of(refreshed), words_of(refreshed), vectors_of(refreshed)
    refreshed.close()
    reindex(place, rebuild=True)
    rebuilt = open_index(str(index_file(place)))
    assert found == (rows_of(rebuilt), words_of(rebuilt), vectors_of(rebuilt))
    rebuilt.close()


def test_the_file_that_was_indexed_last_grows(db: apsw.Connection, root: Path) -> None:
    write(root, "memory/a.md", "one\n")
    bring_up_to_date(db, root, Numbers())
    write(root, "memory/a.md", "".join(f"line {number} of a file that grows\n" for number in range(200)))
    bring_up_to_date(db, root, Numbers())
    assert_sound(db)
    assert "line 199" in str(rows_of(db)[-1])


def test_a_growing_log_is_followed(place: Place) -> None:
    """What every day does: the log of today gets longer."""
    some_memories(place)
    for number in range(1, 8):
        remember(place, "memory/2026-11-15.md", "".join(f"- entry e{at}q of today\n" for at in range(number * 40)))
        answer = search(place, f"e{number * 40 - 1}q")
        assert answer.notes == ()
        assert f"e{number * 40 - 1}q" in answer.hits[0].text


def test_ids_are_reused(db: apsw.Connection, root: Path) -> None:
    for number in range(20):
        write(root, f"memory/n{number}.md", f"note {number}\n")
    bring_up_to_date(db, root, Numbers())
    for turn in range(4):
        for number in range(turn, 20, 3):
            (root / f"memory/n{number}.md").unlink(missing_ok=True)
        bring_up_to_date(db, root, Numbers())
        for number in range(turn, 20, 3):
            write(root, f"memory/n{number}.md", f"note {number} of turn {turn}\n")
        bring_up_to_date(db, root, Numbers())
        assert_sound(db)
    assert db.execute("SELECT max(id) FROM chunks").get == 20


def test_a_shelf_follows_the_index(db: apsw.Connection, root: Path) -> None:
    """Vectors kept in memory between questions are those of the index, also after chunks came and went."""
    embedder, shelf = Numbers(), VectorBlock()
    for turn in range(4):
        for number in range(30):
            write(root, f"memory/n{number}.md", f"note {number} of turn {turn if number % 2 else 0}\n")
        (root / f"memory/n{turn}.md").unlink()
        bring_up_to_date(db, root, embedder)
        shelf.load(db, SIZE)
        anew = VectorBlock()
        anew.load(db, SIZE)
        for number in (5, 10, 20, 29):
            text = f"note {number} of turn {turn if number % 2 else 0}\n"
            (vector,) = embedder.embed([text])
            assert shelf.nearest(vector, 5) == anew.nearest(vector, 5)
            asked = VectorBlock()
            among = list(range(1, 40, 3))
            for _ in range(3):  # the first question is answered while the index is read, the others from memory
                assert asked.answer(db, vector, 5) == anew.nearest(vector, 5)
            assert VectorBlock().answer(db, vector, 5, among) == anew.nearest(vector, 5, among)
            found = db.execute("SELECT text FROM chunks WHERE id = ?", (shelf.nearest(vector, 1)[0],)).get
            assert found == text


def test_of_very_many_vectors_half_is_kept_and_the_best_are_compared_again(
    db: apsw.Connection, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, whole = Numbers(), VectorBlock()
    for number in range(30):
        write(root, f"memory/n{number}.md", f"note {number}\n")
    bring_up_to_date(db, root, embedder)
    whole.load(db, SIZE)
    monkeypatch.setattr("truekeep.search.vectors._LARGE", 1)
    halved, among = VectorBlock(), list(range(1, 31, 2))
    halved.load(db, SIZE)
    assert len(halved) == len(whole)
    for number in range(30):
        (vector,) = embedder.embed([f"note {number}\n"])
        near = cosines(db, vector, whole.nearest(vector, 30))
        wanted = sorted(near, key=lambda one: -near[one])
        assert halved.answer(db, vector, 1) == wanted[:1]
        found = halved.answer(db, vector, 5)
        assert found == sorted(found, key=lambda one: -near[one])
        assert set(halved.answer(db, vector, 5, among)) <= set(among)
    (root / "memory/n3.md").unlink()
    write(root, "memory/n4.md", "another note\n")
    bring_up_to_date(db, root, embedder)
    (vector,) = embedder.embed(["another note\n"])
    (found_id,) = halved.answer(db, vector, 1)
    assert db.execute("SELECT text FROM chunks WHERE id = ?", (found_id,)).get == "another note\n"


# --- Unchanged ------------------------------------------------------------------------------------------------------


def test_nothing_changed_means_nothing_written(place: Place, settled: None) -> None:
    some_memories(place)
    reindex(place)
    data, info = index_file(place).read_bytes(), index_file(place).stat()
    with place.open() as workspace:
        for query in ("staging", "ERR_QUOTA_4711", "nothing at all"):
            workspace.search.find(query)
    assert index_file(place).read_bytes() == data
    assert index_file(place).stat().st_mtime_ns == info.st_mtime_ns


def mark_in(place: Place) -> str:
    db = open_index(str(index_file(place)), read_only=True)
    try:
        return str(read_meta(db, "mark", ""))
    finally:
        db.close()


def _rewrite(folder: Path) -> None:
    """Other words of the same size under the same name and time."""
    info = (folder / "one.md").stat()
    (folder / "one.md").write_text("walrus in the harbour\n")
    os.utime(folder / "one.md", ns=(info.st_atime_ns, info.st_mtime_ns))


def _swap(folder: Path) -> None:
    (folder / "one.md").rename(folder / "between")
    (folder / "two.md").rename(folder / "one.md")
    (folder / "between").rename(folder / "two.md")


def _deepen(folder: Path) -> None:
    write(folder, "deep/er/three.md", "walrus of the deep\n")


CHANGES: tuple[tuple[Callable[[Path], object], dict[str, list[str]]], ...] = (
    (_rewrite, {"badger": [], "walrus": ["one.md"]}),
    (_swap, {"badger": ["two.md"], "marmot": ["one.md"]}),
    (_deepen, {"walrus": ["deep/er/three.md"], "badger": ["one.md"]}),
    (lambda folder: (folder / "one.md").unlink(), {"badger": [], "marmot": ["two.md"]}),
    (lambda folder: (folder / "one.md").rename(folder / ".one.md"), {"badger": []}),
    (lambda folder: (folder / "low").rename(folder / "high"), {"otter": ["high/four.md"]}),
)


@pytest.mark.parametrize(("change", "found"), CHANGES)
def test_an_index_that_had_all_files_sees_every_change(
    place: Place, settled: None, change: Callable[[Path], object], found: dict[str, list[str]]
) -> None:
    """One mark says that nothing changed; whatever did makes it another one."""
    folder = place.workspace / "memory" / "cards"
    place.configure(WORDS_ONLY)
    for name, text in (("one", "badger in the harbour"), ("two", "marmot in the garden"), ("low/four", "otter")):
        write(folder, f"{name}.md", text + "\n")
    reindex(place)
    assert mark_in(place) == scan_files(str(place.workspace)).fingerprint != ""
    change(folder)
    with place.open() as workspace:
        for word, names in found.items():
            wanted = [f"memory/cards/{name}" for name in names]
            assert [hit.path for hit in workspace.search.find(word).hits] == wanted, word
    assert mark_in(place) == scan_files(str(place.workspace)).fingerprint


def test_files_that_may_still_change_leave_no_mark(place: Place) -> None:
    """What was written just now may be written again within the same tick of the clock."""
    some_memories(place)
    reindex(place)
    assert mark_in(place) == ""


def test_the_mark_goes_before_the_first_change_comes(place: Place, settled: None) -> None:
    """Killed in between, an index must not pass for one that has the files of before."""
    some_memories(place)
    reindex(place)
    assert mark_in(place)
    remember(place, "memory/cards/new.md", "A wombat.\n")
    with place.open() as workspace, pytest.MonkeyPatch.context() as patched:
        patched.setattr(refreshing, "_write", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            workspace.search.find("wombat")
    assert mark_in(place) == ""
    assert paths(search(place, "wombat"))[0] == "memory/cards/new.md"


def test_an_edit_of_the_same_size_and_time_is_noticed(db: apsw.Connection, root: Path, settled: None) -> None:
    file = write(root, "memory/cards/a.md", "The port is 8443.\n")
    info = file.stat()
    bring_up_to_date(db, root)
    assert find_changes(db, iter_files(str(root))).changed == []
    file.write_text("The port is 9555.\n")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert file.stat().st_mtime_ns == info.st_mtime_ns
    bring_up_to_date(db, root)
    assert db.execute("SELECT text FROM chunks").get == "The port is 9555.\n"


def test_a_file_that_was_just_written_is_looked_at_again(db: apsw.Connection, root: Path) -> None:
    """Within the grain of a file system's clock an edit may not show in any stat; the digest decides."""
    write(root, "memory/cards/a.md", "one\n")
    bring_up_to_date(db, root)
    assert [source.path for source in find_changes(db, iter_files(str(root))).changed] == ["memory/cards/a.md"]
    assert bring_up_to_date(db, root).files == 0


def test_a_touched_file_is_not_indexed_again(db: apsw.Connection, root: Path, settled: None) -> None:
    file = write(root, "memory/cards/a.md", "one\n")
    embedder = Numbers()
    bring_up_to_date(db, root, embedder)
    asked, changes = embedder.texts, db.total_changes()
    os.utime(file, (1, 1))
    done = bring_up_to_date(db, root, embedder)
    assert (done.files, embedder.texts) == (0, asked)
    assert db.total_changes() - changes == 1  # the stat
    assert find_changes(db, iter_files(str(root))).changed == []


def test_one_changed_file_is_read_and_no_other(db: apsw.Connection, root: Path, settled: None) -> None:
    for number in range(50):
        write(root, f"memory/n{number}.md", f"note {number}\n")
    bring_up_to_date(db, root)
    write(root, "memory/n7.md", "another note\n")
    read: list[str] = []

    def reading(source: MemoryFile, noted: bytes | None) -> Any:
        read.append(source.path)
        return prepare(source, noted=noted)

    assert bring_up_to_date(db, root, read=reading).files == 1
    assert read == ["memory/n7.md"]


# --- Files that misbehave -------------------------------------------------------------------------------------------


def test_a_file_that_vanishes_between_looking_and_reading(db: apsw.Connection, root: Path) -> None:
    write(root, "memory/a.md", "stays\n")
    gone = write(root, "memory/b.md", "goes\n")
    changes = find_changes(db, iter_files(str(root)))
    gone.unlink()
    done = refresh(db, changes, None)
    assert (done.files, done.unread) == (1, ())
    write(root, "memory/b.md", "is back\n")
    bring_up_to_date(db, root)
    changes = find_changes(db, [source._replace(size=1) for source in iter_files(str(root))])
    gone.unlink()
    refresh(db, changes, None)
    bring_up_to_date(db, root)
    assert [row[0] for row in rows_of(db)] == ["memory/a.md"]
    assert_sound(db)


def test_a_file_that_becomes_something_else_between_looking_and_reading(db: apsw.Connection, root: Path) -> None:
    secret = write(root, "outside.md", "not for memory\n")
    files = [write(root, f"memory/{name}.md", f"{name}\n") for name in ("a", "b", "c", "d")]
    changes = find_changes(db, iter_files(str(root)))
    for file in files[1:]:
        file.unlink()
    files[1].symlink_to(secret)
    os.mkfifo(files[2])
    files[3].mkdir()
    done = refresh(db, changes, None)
    assert done.files == 1
    assert len(done.unread) == 3
    assert [row[0] for row in rows_of(db)] == ["memory/a.md"]


def test_a_file_that_grows_while_it_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(root, "memory/a.md", "one\n")
    plain = os.read
    turns: list[int] = []

    def growing(descriptor: int, count: int) -> bytes:
        data = plain(descriptor, count)
        if not data and len(turns) < 2:
            turns.append(1)
            with file.open("a") as more:
                more.write("more\n")
        return data

    monkeypatch.setattr(os, "read", growing)
    data, info = read_memory_file(str(file))
    assert (data, info.st_size) == (b"one\nmore\nmore\n", 14)


def test_a_file_that_never_stops_growing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(root, "memory/a.md", "one\n")
    plain = os.read

    def growing(descriptor: int, count: int) -> bytes:
        data = plain(descriptor, count)
        if not data:
            with file.open("a") as more:
                more.write("more\n")
        return data

    monkeypatch.setattr(os, "read", growing)
    data, _ = read_memory_file(str(file))
    assert data.startswith(b"one\n")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9 \xff\xfe port\n", "café ÿþ port\n"),
        (b"\xef\xbb\xbfport with a mark\n", "port with a mark\n"),
        (b"a\x00b\x00port\n", "a b port\n"),
        (b"\xed\xa0\x80 surrogate port\n", "í\u00a0€ surrogate port\n"),
        ("p\0o".encode("utf-16"), None),
        (b"port\r\nof\rcall\n", "port\r\nof\rcall\n"),
    ],
    ids=["latin-1", "bom", "nul", "surrogate", "utf-16", "line ends"],
)
def test_a_file_that_is_not_plain_utf8(db: apsw.Connection, root: Path, data: bytes, text: str | None) -> None:
    write(root, "memory/a.md", data)
    write(root, "memory/b.md", "good\n")
    bring_up_to_date(db, root, Numbers())
    found = {row[0]: row[9] for row in rows_of(db)}
    assert found["memory/b.md"] == "good\n"
    if text is not None:
        assert found["memory/a.md"] == text
        assert db.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'port'").get == 1
    assert_sound(db)


def test_frontmatter_after_a_byte_order_mark(db: apsw.Connection, root: Path) -> None:
    write(root, "memory/cards/a.md", "\ufeff---\ntopic: Pier\nrepository: me/app\n---\n\nbody\n")
    bring_up_to_date(db, root)
    assert db.execute("SELECT repository FROM files").get == "me/app"


@pytest.mark.slow
def test_a_file_over_the_limit_is_indexed_up_to_it(db: apsw.Connection, root: Path) -> None:
    line = b"x" * 99 + b"\n"
    data = b"beginning\n" + line * 90_000 + b"ending\n"
    assert len(data) > FILE_LIMIT
    write(root, "memory/huge.md", data)
    write(root, "memory/small.md", "small\n")
    done = bring_up_to_date(db, root)
    assert done.files == 2
    for word, count in (("beginning", 1), ("ending", 0), ("small", 2)):  # small is a title, too
        found = db.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", (word,)).get
        assert bool(found) == bool(count)


def test_what_is_not_a_plain_file_is_passed_over(db: apsw.Connection, root: Path) -> None:
    outside = write(root, "outside/secret.md", "not for memory\n")
    write(root, "memory/a.md", "good\n")
    write(root, "memory/.hidden/b.md", "hidden\n")
    write(root, "memory/.c.md", "hidden\n")
    write(root, "memory/d.txt", "no Markdown\n")
    write(root, "memory/e.MD", "no Markdown\n")
    write(root, "memory/handoff-inbox/f.md", "a draft\n")
    write(root, "memory/handoff-inbox/deep/f.md", "a draft\n")
    write(root, "memory/sub/handoff-inbox/g.md", "no draft, only called so\n")
    write(root, "HANDOVER.md", "instructions\n")
    write(root, "memory.md", "not the memory\n")
    write(root, "other/h.md", "elsewhere\n")
    (root / "memory/link.md").symlink_to(outside)
    (root / "memory/folder").symlink_to(root / "outside")
    (root / "rules").symlink_to(root / "outside")
    (root / "USER.md").symlink_to(outside)
    (root / "memory/loop").symlink_to(root / "memory")
    (root / "memory/dir.md").mkdir()
    os.mkfifo(root / "memory/pipe.md")
    os.mkfifo(root / "MEMORY.md")
    bad = os.fsencode(root) + b"/memory/caf\xe9.md"
    with open(bad, "wb") as file:
        file.write(b"a name that is not UTF-8\n")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.getcwd()
        os.chdir(root / "memory")
        try:
            sock.bind("socket.md")
        finally:
            os.chdir(here)
    done = bring_up_to_date(db, root)
    assert done.unread == ()
    assert [row[0] for row in rows_of(db)] == ["memory/a.md", "memory/sub/handoff-inbox/g.md"]


def test_a_memory_folder_that_is_a_link_is_not_followed(db: apsw.Connection, tmp_path: Path) -> None:
    write(tmp_path, "real/memory/a.md", "elsewhere\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "memory").symlink_to(tmp_path / "real/memory")
    assert list(iter_files(str(root))) == []


def test_names_of_every_kind(db: apsw.Connection, root: Path) -> None:
    names = [
        "memory/ü数🦊.md",
        "memory/with space.md",
        "memory/a'b\"c.md",
        "memory/%s;--.md",
        "memory/" + "n" * 200 + ".md",
    ]
    for name in names:
        write(root, name, "content\n")
    bring_up_to_date(db, root)
    assert sorted(row[0] for row in rows_of(db)) == sorted(names)


# --- Kinds of files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "store", "day"),
    [
        ("MEMORY.md", "cards", ""),
        ("USER.md", "documents", ""),
        ("TOOLS.md", "documents", ""),
        ("rules/naming.md", "documents", ""),
        ("memory/cards/a.md", "cards", ""),
        ("memory/cards/2026-11-01.md", "cards", "2026-11-01"),
        ("memory/projects/a.md", "documents", ""),
        ("memory/a.md", "documents", ""),
        ("memory/2026-11-01.md", "logs", "2026-11-01"),
        ("memory/2026-11-01-slug.md", "logs", "2026-11-01"),
        ("memory/2026-11-01-1530.md", "logs", "2026-11-01"),
        ("memory/deep/er/2026-11-01.md", "logs", "2026-11-01"),
        ("memory/daily/notes.md", "logs", ""),
        ("memory/checkpoints/x.md", "logs", ""),
        ("memory/x2026-11-01.md", "documents", ""),
    ],
)
def test_which_store_and_which_day(path: str, store: str, day: str) -> None:
    assert store_of(path) == store
    assert describe(path, "text\n").day == day


@pytest.mark.parametrize(
    ("path", "text", "day", "repository"),
    [
        (
            "memory/cards/a.md",
            "---\nrepository: me/app\nupdated: 2026-03-04\ncreated: 2025-01-01\n---\nx",
            "2026-03-04",
            "me/app",
        ),
        ("memory/cards/a.md", "---\ncreated: 2025-01-01\n---\nx", "2025-01-01", ""),
        ("memory/cards/a.md", "---\ndate: '2025-01-01'\nrepository: \"me/app\"\n---\nx", "2025-01-01", "me/app"),
        ("memory/2026-11-01.md", "---\ncreated: 2025-01-01\n---\nx", "2026-11-01", ""),
        ("memory/projects/app.md", "x", "", "app"),
        ("memory/project-app.md", "x", "", "app"),
        ("memory/projects/app.md", "---\nrepository: me/other\n---\nx", "", "me/other"),
        ("memory/cards/a.md", "---\ncreated: soon\n---\nx", "", ""),
        ("memory/cards/a.md", "---\ncreated: 2025-01-01\nno end", "", ""),
        ("memory/cards/a.md", "x\n---\ncreated: 2025-01-01\n---\n", "", ""),
        ("memory/cards/a.md", "---\ncreated: 9999-99-99\n---\nx", "9999-99-99", ""),
    ],
)
def test_what_a_file_says_of_itself(path: str, text: str, day: str, repository: str) -> None:
    about = describe(path, text)
    assert (about.day, about.repository) == (day, repository)


def test_a_day_that_no_calendar_has(place: Place) -> None:
    remember(place, "memory/cards/a.md", "---\ncreated: 9999-99-99\n---\n\nThe heron stands.\n")
    remember(place, "memory/2026-99-99.md", "The heron flies.\n")
    for hit in search(place, "heron").hits:
        assert hit.age_days is None or "heron" not in hit.text
    with place.open() as workspace:
        assert workspace.search.get("memory/2026-99-99.md").age_days is None


def test_headings() -> None:
    text = "# One\n\n## Two\n\ntext\n\n```\n# no heading\n```\n\n### Three ##\n\n## Four\n#hashtag\n"
    about = describe("memory/a.md", text)
    assert [heading_at(about, line) for line in (1, 2, 3, 5, 8, 11, 12, 13, 14)] == [
        *("One", "One", "One > Two", "One > Two", "One > Two", "One > Two > Three", "One > Two > Three"),
        *("One > Four", "One > Four"),
    ]
    assert heading_at(describe("memory/a.md", "no heading\n"), 1) == ""


# --- Extra paths ----------------------------------------------------------------------------------------------------


def configure_extra(place: Place, *given: str) -> None:
    listed = ", ".join(f'"{path}"' for path in given)
    place.configure(f"[recall]\nextra_paths = [{listed}]\n")


@pytest.mark.slow
def test_extra_paths(place: Place, own_home: Path) -> None:
    notes = own_home / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.md").write_text("The platypus note.\n")
    (notes / "deep" / "b.md").write_text("The echidna note.\n")
    (notes / "link.md").symlink_to("/etc/passwd")
    single = place.base / "single.md"
    single.write_text("The numbat note.\n")
    configure_extra(place, "~/notes", str(single), str(place.base / "nowhere"), str(place.workspace / "memory"))
    for word, path in (("platypus", notes / "a.md"), ("echidna", notes / "deep/b.md"), ("numbat", single)):
        hit = search(place, word).hits[0]
        assert hit.path == str(path)
        assert hit.store == "documents"
        with place.open() as workspace:
            assert word in workspace.search.get(hit.citation).text
    found = search(place, "note", limit=50)
    assert len(paths(found)) == len({(hit.path, hit.first) for hit in found.hits})
    configure_extra(place)
    assert "platypus" not in " ".join(hit.text for hit in search(place, "platypus").hits)


@pytest.mark.slow
def test_drafts_are_never_memory_whatever_is_configured(place: Place) -> None:
    remember(place, "memory/handoff-inbox/d.md", "A draft about zebras.\n")
    for extra in (place.workspace, place.base, place.workspace / "memory", place.workspace / "memory/handoff-inbox"):
        configure_extra(place, str(extra))
        assert not any("zebra" in hit.text for hit in search(place, "zebras").hits), extra


def test_a_relative_extra_path_is_relative_to_the_workspace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(place, "notes/a.md", "The platypus note.\n")
    configure_extra(place, "notes")
    monkeypatch.chdir(place.base)
    assert any("platypus" in hit.text for hit in search(place, "platypus").hits)


def test_drafts_are_not_memory_through_a_link_either(place: Place) -> None:
    remember(place, "memory/handoff-inbox/d.md", "A draft about zebras.\n")
    (place.base / "link").symlink_to(place.workspace)
    configure_extra(place, str(place.base / "link" / "memory"))
    assert not any("zebra" in hit.text for hit in search(place, "zebras").hits)


# --- Transcripts in the index ---------------------------------------------------------------------------------------


def test_transcripts_have_ids_of_their_own(place: Place, own_home: Path) -> None:
    some_memories(place)
    file = claude_session(own_home, ("user", "What of the quokka?"), ("assistant", "It sleeps."))
    reindex(place)
    db = open_index(str(index_file(place)))
    rows = db.execute("SELECT chunks.id, store FROM chunks JOIN files ON files.id = file_id").fetchall()
    assert {(int(str(chunk)) > FIRST_TRANSCRIPT_ID) == (store == "transcripts") for chunk, store in rows} == {True}
    assert_sound(db)
    before = db.execute("SELECT max(id) FROM chunks").get
    db.close()
    for turn in range(3):
        claude_session(own_home, ("user", f"What of the quokka, {turn}?"), at=NOW - timedelta(seconds=turn))
        reindex(place)
    file.unlink()
    remember(place, "memory/new.md", "new\n")
    reindex(place)
    claude_session(own_home, ("user", "Again?"), name="again")
    reindex(place)
    db = open_index(str(index_file(place)))
    assert db.execute("SELECT max(id) FROM chunks").get == before
    assert_sound(db)
    db.close()


# --- Batches and time -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_time_the_newest_files_go_in_first(
    db: apsw.Connection, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refreshing, "_BATCH_FILES", 2)
    for number in range(10):
        os.utime(write(root, f"memory/n{number}.md", f"note {number}\n"), (1000 + number, 1000 + number))
    done = bring_up_to_date(db, root, until=0.0)
    assert (done.files, done.left) == (2, 8)
    assert [row[0] for row in rows_of(db)] == ["memory/n8.md", "memory/n9.md"]
    while bring_up_to_date(db, root, until=0.0).left:
        assert_sound(db)
    assert len(rows_of(db)) == 10


def test_an_embedder_that_fails_halfway_leaves_words_and_a_note(db: apsw.Connection, root: Path) -> None:
    for number in range(10):
        write(root, f"memory/n{number}.md", f"note {number}\n")
    embedder = Numbers()
    embedder.failing = True
    done = bring_up_to_date(db, root, embedder)
    assert (done.files, done.embedded, done.failure) == (10, 0, "not today")
    assert_sound(db)
    assert embed_waiting(db, embedder) == (0, "not today")
    embedder.failing = False
    assert embed_waiting(db, embedder) == (10, "")
    assert_sound(db)


def test_a_batch_is_all_or_nothing(db: apsw.Connection, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "memory/a.md", "one\n")
    bring_up_to_date(db, root, Numbers())
    before = rows_of(db), words_of(db), vectors_of(db)
    write(root, "memory/a.md", "two\n")
    write(root, "memory/b.md", "three\n")

    def broken(*_: Any) -> None:
        raise apsw.FullError("no room")

    monkeypatch.setattr(refreshing, "store_vectors", broken)
    with pytest.raises(apsw.FullError):
        bring_up_to_date(db, root, Numbers())
    assert (rows_of(db), words_of(db), vectors_of(db)) == before
    assert_sound(db)


def test_progress_counts_to_the_end(db: apsw.Connection, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshing, "_BATCH_FILES", 3)
    for number in range(7):
        write(root, f"memory/n{number}.md", f"note {number}\n")
    told: list[tuple[int, int]] = []
    tell: Callable[[int, int], None] = lambda at, total: told.append((at, total))  # noqa: E731
    bring_up_to_date(db, root, progress=tell)
    assert told == [(3, 7), (6, 7), (7, 7)]


@given(scores=st.lists(st.integers(-5, 5), min_size=1, max_size=60), wide=st.booleans(), count=st.integers(1, 70))
def test_the_best_are_found_alike_with_numpy_and_without(scores: list[int], wide: bool, count: int) -> None:
    """Many scores are the same here, and which of them are chosen must not depend on how often a process was asked."""
    import numpy as np

    scores = scores * 40 if wide else scores
    wanted = sorted((at for at, score in enumerate(scores) if score > 0), key=lambda at: (-scores[at], at))[:count]
    assert pick_best(np, np.array(scores, dtype=np.int32), count) == wanted


@pytest.mark.parametrize("count", [1, 50, 300, 1_500, 4_000, 9_000])
def test_many_best_are_found(count: int) -> None:
    import numpy as np

    scores = np.random.default_rng(1).integers(-500, 1_000, 20_000, dtype=np.int32)
    wanted = sorted((at for at in range(len(scores)) if scores[at] > 0), key=lambda at: (-scores[at], at))[:count]
    assert pick_best(np, scores, count) == wanted


@pytest.mark.slow
def test_answers_do_not_hang_on_the_order_of_sets(tmp_path: Path) -> None:
    """Python orders words in a set anew in every process; scores, orders and guesses must be the same in all."""
    for number in range(30):
        text = (
            f"The cat, the cut and the cot {number} share a kettla, a kettlo and a kettlu: gamma delta {number % 7}.\n"
        )
        (tmp_path / f"memory/cards/n{number}.md").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"memory/cards/n{number}.md").write_text(text * (1 + number % 3))
    program = (
        "import sys, datetime\n"
        "from truekeep.search.embedders.static import Static\n"
        "from truekeep.search.refresh import refresh\n"
        "from truekeep.search.index_schema import open_index\n"
        "from truekeep.search.searcher import Searcher\n"
        "from truekeep.memory.file_scan import find_changes, iter_files\n"
        "db = open_index(':memory:')\n"
        "static = Static(lexicon=sys.argv[1] + '/lexicon.bin')\n"
        "refresh(db, find_changes(db, iter_files(sys.argv[1])), static)\n"
        "for text in sys.argv[2:]:\n"
        "    found = Searcher(db, static).search(text, limit=9, today=datetime.date(2026, 11, 15))\n"
        "    print([(hit.citation, hit.score, hit.matched) for hit in found.hits], found.query.corrections)\n"
    )
    told = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        questions = ["which kettlx shares the gamma of the delta", "cbt", "kettli in a pot", "kettla cat cut cot gamma"]
        command = [sys.executable, "-c", program, str(tmp_path), *questions]
        told.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(told) == 1
