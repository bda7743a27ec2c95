"""Recall when things go wrong: embedders, damaged indexes, kills, full disks, two at once. Words always answer."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.support.helpers import NOW, Place, run_cli, tree, wait_until
from tests.support.memories import (
    WORDS_ONLY,
    EmbeddingServer,
    beside_index,
    claude_session,
    embedding_server,
    index_file,
    opened,
    paths,
    reindex,
    remember,
    search,
    some_memories,
    state,
    times,
)
from tests.support.programs import need
from truekeep.core import derived_db
from truekeep.core.errors import Busy, NewerState, StorageFailed
from truekeep.search.embedders import remote
from truekeep.search.service import SearchResult
from truekeep.workspace.workspace import Workspace

ROOT = Path(__file__).parents[2]
QUESTION = "which port does staging answer on"
CARD = "memory/cards/staging-proxy.md"


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def memory(place: Place) -> Iterator[Place]:
    """Memories, whose bytes and times nothing in this module may change."""
    some_memories(place)
    before, then = tree(place.workspace), times(place.workspace)
    yield place
    after, now = tree(place.workspace), times(place.workspace)
    assert {path: after.get(path) for path in before} == before
    assert {path: now.get(path) for path in then} == then


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    """Deadlines are short here, so that a server that hangs costs a moment and not a minute."""
    with embedding_server() as server:
        plain = remote.Remote.__init__

        def hasty(self: remote.Remote, *args: Any, **options: Any) -> None:
            seconds = 0.5 if server.hangs else 60.0
            plain(self, *args, **(options | {"timeout": seconds, "query_timeout": seconds, "sleep": lambda _: None}))

        monkeypatch.setattr(remote.Remote, "__init__", hasty)
        yield server


def assert_answers(answer: SearchResult) -> None:
    assert paths(answer)[:1] == [CARD], answer.notes
    assert "8443" in answer.hits[0].text


def vectors(place: Place) -> dict[tuple[str, int, str], bytes]:
    """The vector of each chunk by path, line and text; chunks without one are left out."""
    with opened(index_file(place)) as db:
        rows = db.execute(
            "SELECT path, first, text, embedding FROM vectors JOIN chunks ON chunks.id = chunk_id"
            " JOIN files ON files.id = file_id"
        ).fetchall()
    return {(str(path), int(first), str(text)): bytes(vector) for path, first, text, vector in rows}  # type: ignore[arg-type]


# --- Embedders ------------------------------------------------------------------------------------------------------


def test_no_embedder(memory: Place) -> None:
    memory.configure(WORDS_ONLY)
    done = reindex(memory)
    assert (done.provider, done.embedded) == ("none", 0)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.provider) == ("words", "none")


def test_an_embedder_over_http(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    done = reindex(memory)
    assert (done.provider, done.model, done.embedded) == ("openai-compatible", "m", done.chunks)
    assert len(vectors(memory)) == done.chunks
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.provider, answer.notes) == ("hybrid", "openai-compatible", ())


def test_what_was_embedded_once_is_not_asked_for_again(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    asked = len(server.documents)
    assert asked
    reindex(memory)
    assert len(server.documents) == asked
    os.rename(memory.workspace / CARD, memory.workspace / "memory/cards/renamed.md")
    reindex(memory)
    reindex(memory, rebuild=True)
    assert len(server.documents) == asked
    os.rename(memory.workspace / "memory/cards/renamed.md", memory.workspace / CARD)
    remember(memory, "memory/cards/new.md", "A new card about kangaroos.\n")
    reindex(memory)
    assert len(server.documents) == asked + 1


def test_no_secret_leaves(memory: Place, server: EmbeddingServer) -> None:
    token = "ghp" + "_" + "".join(random.Random(7).choices("abcdefghijkmnpqrstuvwxyzABCDEFGH23456789", k=36))
    remember(memory, "memory/cards/key.md", f"The token of the bot is {token} and it is old.\n")
    memory.configure(server.config)
    reindex(memory)
    assert server.documents
    assert token not in json.dumps(server.texts)


def nan(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item | {"embedding": [float("nan"), *item["embedding"][1:]]} for item in data]


def mixed(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item | {"embedding": item["embedding"][: 8 + at % 2]} for at, item in enumerate(data)]


def half(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return data[: len(data) // 2]


def nothing(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return []


@pytest.mark.parametrize("fault", ["closed", "hangs", "500", "nan", "mixed", "half", "nothing"])
def test_an_embedder_that_fails(memory: Place, server: EmbeddingServer, fault: str) -> None:
    """From the beginning, then after it had worked: words answer, it says so, and nothing false is kept."""
    config = server.config
    if fault == "closed":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            config = config.replace(str(server.server_address[1]), str(free.getsockname()[1]))
    server.hangs = fault == "hangs"
    server.status = 500 if fault == "500" else 200
    server.spoil = {"nan": nan, "mixed": mixed, "half": half, "nothing": nothing}.get(fault)
    memory.configure(config)
    done = reindex(memory)
    assert done.embedded == 0
    assert any("vectors" in note or "words alone" in note for note in done.notes), done.notes
    assert vectors(memory) == {}
    answer = search(memory, QUESTION)
    assert_answers(answer)
    if fault not in ("mixed",):  # one text alone has no other size beside it
        assert answer.mode == "words"
        assert any("words alone" in note for note in answer.notes), answer.notes
    if fault == "closed":
        return
    server.hangs, server.status, server.spoil = False, 200, None
    done = reindex(memory)
    assert done.embedded == done.chunks
    with embedding_server() as good:
        other = Place.make(memory.base / "other", config=good.config)
        some_memories(other)
        reindex(other)
        assert vectors(memory) == vectors(other)


@pytest.mark.parametrize("fault", ["hangs", "nan", "nothing", "500"])
def test_an_embedder_that_fails_later(memory: Place, server: EmbeddingServer, fault: str) -> None:
    memory.configure(server.config)
    reindex(memory)
    before = vectors(memory)
    server.hangs = fault == "hangs"
    server.status = 500 if fault == "500" else 200
    server.spoil = {"nan": nan, "nothing": nothing}.get(fault)
    remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    answer = search(memory, "where does the kangaroo live")
    assert answer.hits[0].path == "memory/cards/kangaroo.md"
    assert answer.mode == "words"
    assert any("words alone" in note for note in answer.notes)
    done = reindex(memory)
    assert done.embedded == 0
    assert done.notes
    assert vectors(memory) == before
    server.hangs, server.status, server.spoil = False, 200, None
    assert reindex(memory).embedded == 1
    assert set(vectors(memory)) > set(before)


def test_an_embedder_that_answers_a_question_with_another_size(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    server.size = 24
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert answer.mode == "words"
    assert answer.notes


def test_a_model_that_changed_under_its_name(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    old = vectors(memory)
    server.version = "two"
    done = reindex(memory)
    assert done.rebuilt
    assert done.embedded == done.chunks
    assert any("another model than before" in note for note in done.notes)
    new = vectors(memory)
    assert set(new) == set(old)
    assert not set(new.values()) & set(old.values())
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.notes) == ("hybrid", ())
    assert reindex(memory).rebuilt == ""


def test_a_model_of_another_size_under_its_name(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    server.size = 24
    assert reindex(memory).rebuilt
    assert {len(vector) for vector in vectors(memory).values()} == {48}
    assert_answers(search(memory, QUESTION))


def test_a_model_that_changed_right_after_a_rebuild(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    reindex(memory, rebuild=True)
    old = vectors(memory)
    server.version = "two"
    reindex(memory)
    assert not set(vectors(memory).values()) & set(old.values())


def test_never_a_mixture_when_the_model_changes_between_two_files(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    server.version = "two"
    remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    search(memory, "kangaroo")
    reindex(memory)
    with embedding_server() as other:
        other.version = "two"
        place = Place.make(memory.base / "other", config=other.config)
        some_memories(place)
        remember(place, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
        reindex(place)
        assert vectors(memory) == vectors(place)


def test_another_embedder_in_the_settings(memory: Place, server: EmbeddingServer) -> None:
    """The old index answers, by its own embedder, until the new one takes its place; an open reader follows."""
    reindex(memory)
    with memory.open() as reader:
        assert reader.search.find(QUESTION).provider == "static"
        memory.configure(server.config)
        answer = search(memory, QUESTION)
        assert_answers(answer)
        assert (answer.mode, answer.provider) == ("hybrid", "static")
        assert any("rebuilt" in note for note in answer.notes)
        assert server.texts == []
        done = reindex(memory)
        assert done.rebuilt == "the embedder changed"
        assert_answers(reader.search.find(QUESTION))
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.provider, answer.notes) == ("hybrid", "openai-compatible", ())
    assert {len(vector) for vector in vectors(memory).values()} == {32}


def test_back_to_the_static_embedder_after_a_model_changed(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    reindex(memory)
    server.version = "two"
    reindex(memory)
    memory.configure("")
    reindex(memory)
    answer = search(memory, QUESTION)
    assert (answer.mode, answer.provider, answer.notes) == ("hybrid", "static", ())


def test_another_embedder_that_does_not_answer(memory: Place, server: EmbeddingServer) -> None:
    reindex(memory)
    before = vectors(memory)
    server.status = 500
    memory.configure(server.config)
    reindex(memory)
    assert vectors(memory) == before
    assert search(memory, QUESTION).mode == "hybrid"


def test_a_first_search_with_an_embedder_over_http_says_how_it_searched(memory: Place, server: EmbeddingServer) -> None:
    memory.configure(server.config)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert answer.mode == "words"
    assert answer.notes


def test_from_no_embedder_to_the_static_one(memory: Place) -> None:
    memory.configure(WORDS_ONLY)
    search(memory, QUESTION)
    memory.configure("")
    answer = search(memory, "programming language of the dock application")
    assert answer.notes or "memory/projects/harbor.md" in paths(answer)


def test_a_broken_lexicon(memory: Place) -> None:
    lexicon = state(memory) / "lexicon.bin"
    good = lexicon.read_bytes()
    for damaged in (b"truekeep", good[: len(good) // 2], good[:-1]):
        lexicon.write_bytes(damaged)
        answer = search(memory, QUESTION)
        assert_answers(answer)
        assert answer.mode == "hybrid"


# --- A damaged index ------------------------------------------------------------------------------------------------


def overwrite(place: Place, data: bytes) -> None:
    index_file(place).write_bytes(data)


def a_foreign_database(place: Place, version: int) -> None:
    index_file(place).unlink()
    db = apsw.Connection(str(index_file(place)))
    db.execute(f"CREATE TABLE bookmarks (url); INSERT INTO bookmarks VALUES ('x'); PRAGMA user_version = {version}")
    db.close()


DAMAGES: dict[str, Callable[[Place], None]] = {
    "random": lambda place: overwrite(place, random.Random(1).randbytes(50_000)),
    "text": lambda place: overwrite(place, b"# Not a database\n" * 300),
    "foreign": lambda place: a_foreign_database(place, 0),
    "short header": lambda place: overwrite(place, index_file(place).read_bytes()[:99]),
    "header": lambda place: overwrite(place, index_file(place).read_bytes()[:100]),
    "half a page": lambda place: overwrite(place, index_file(place).read_bytes()[:4096]),
    "a page": lambda place: overwrite(place, index_file(place).read_bytes()[:8192]),
    "half": lambda place: overwrite(place, index_file(place).read_bytes()[: index_file(place).stat().st_size // 2]),
    "zeros": lambda place: overwrite(place, bytes(index_file(place).stat().st_size)),
}


@pytest.mark.parametrize("command", ["search", "index"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_set_aside_and_made_again(memory: Place, damage: str, command: str) -> None:
    reindex(memory)
    DAMAGES[damage](memory)
    if command == "search":
        answer = search(memory, QUESTION)
        assert_answers(answer)
        notes = answer.notes
    else:
        notes = reindex(memory).notes
    assert any("damaged" in note for note in notes), notes
    assert len(beside_index(memory)) == 1
    assert beside_index(memory)[0].startswith("index.sqlite.damaged-")
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.notes) == ("hybrid", ())
    assert reindex(memory).changed == 0


def test_an_empty_file_is_an_index_to_be(memory: Place) -> None:
    for data in (b"", b"S"):
        overwrite(memory, data)
        assert_answers(search(memory, QUESTION))
        assert beside_index(memory) == []


def test_only_the_last_damaged_index_is_kept(memory: Place) -> None:
    for day in range(3):
        reindex(memory)
        DAMAGES["random"](memory)
        search(memory, QUESTION, now=NOW + timedelta(days=day))
    assert beside_index(memory) == ["index.sqlite.damaged-20261117T120000Z"]


def pages(place: Place, *tables: str) -> list[int]:
    """Pages that hold rows of these tables."""
    with opened(index_file(place)) as db:
        marks = ",".join("?" * len(tables))
        rows = db.execute(f"SELECT pageno FROM dbstat WHERE name IN ({marks}) ORDER BY pageno", tables).fetchall()
        if not rows:
            raise AssertionError("no such table")
    return [int(str(row[0])) for row in rows]


def spoil_pages(place: Place, numbers: list[int], how: str) -> None:
    data = bytearray(index_file(place).read_bytes())
    chance = random.Random(3)
    for number in numbers:
        start = (number - 1) * 8192
        if how == "zeros":
            data[start : start + 8192] = bytes(8192)
        elif how == "random":
            data[start : start + 8192] = chance.randbytes(8192)
        else:  # only the content: the rows are whole, their letters are not UTF-8
            end = start + 8192
            data[start:end] = bytes(data[start:end]).replace(b"staging", b"st\xffging").replace(b".md", b"\xfemd")
    index_file(place).write_bytes(bytes(data))


_TABLES = (
    "files",
    "chunks",
    "meta",
    "vectors",
    "vector_blocks",
    "chunks_fts_data",
    "chunks_fts_docsize",
    "free_chunks",
)


@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("how", ["zeros", "random"])
def test_pages_overwritten_in_the_middle(memory: Place, table: str, how: str) -> None:
    """It may not be noticed by every search, but none breaks, the right answer comes, and a rebuild mends it."""
    reindex(memory)
    spoil_pages(memory, pages(memory, table), how)
    for query in (QUESTION, "ERR_QUOTA_4711", "certificate"):
        assert search(memory, query).hits
    assert_answers(search(memory, QUESTION))
    remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    assert search(memory, "kangaroo").hits[0].path == "memory/cards/kangaroo.md"
    reindex(memory)
    reindex(memory, rebuild=True)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.notes) == ("hybrid", ())


@pytest.mark.parametrize("table", ["files", "chunks"])
def test_pages_whose_text_is_no_text(memory: Place, table: str) -> None:
    reindex(memory)
    spoil_pages(memory, pages(memory, table), "letters")
    assert_answers(search(memory, QUESTION))


def test_a_foreign_database_of_our_version(memory: Place) -> None:
    reindex(memory)
    a_foreign_database(memory, 1)
    assert_answers(search(memory, QUESTION))
    reindex(memory)
    assert search(memory, QUESTION).mode == "hybrid"


def make_newer(place: Place) -> bytes:
    reindex(place)
    db = apsw.Connection(str(index_file(place)))
    db.execute("PRAGMA user_version = 99")
    db.close()
    return index_file(place).read_bytes()


def test_a_newer_index_is_left_alone(memory: Place) -> None:
    data = make_newer(memory)
    with pytest.raises(NewerState, match="newer"):
        reindex(memory)
    done = run_cli("index", "--json", "-w", str(memory.workspace))
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (6, "newer-state")
    with memory.open() as workspace:
        assert workspace.search.status().problem
    assert index_file(memory).read_bytes() == data
    assert beside_index(memory) == []


def test_a_newer_index_costs_no_answer(memory: Place) -> None:
    data = make_newer(memory)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert answer.mode == "words"
    assert any("cannot be used" in note for note in answer.notes)
    assert index_file(memory).read_bytes() == data


def test_a_newer_index_and_a_transcript(memory: Place, own_home: Path) -> None:
    claude_session(own_home, ("user", "What of the quokka?"))
    make_newer(memory)
    done = run_cli("get", "transcripts/claude/-home-me-app/x.jsonl", "-w", str(memory.workspace))
    assert done.returncode == 6, done.stderr
    assert "newer truekeep" in done.stderr


def test_a_workspace_behind_a_symlink_has_its_index(memory: Place) -> None:
    (memory.base / "linked").symlink_to(memory.base, target_is_directory=True)
    with Workspace.open(memory.base / "linked" / memory.workspace.name) as workspace:
        assert workspace.search.index().files
        assert not workspace.search.status().problem


def test_an_index_that_is_a_symlink_is_not_written_through(memory: Place) -> None:
    reindex(memory)
    elsewhere = memory.base / "elsewhere.sqlite"
    os.rename(index_file(memory), elsewhere)
    index_file(memory).symlink_to(elsewhere)
    data = elsewhere.read_bytes()
    remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    with pytest.raises(StorageFailed):
        reindex(memory)
    assert elsewhere.read_bytes() == data
    assert search(memory, "kangaroo").hits[0].path == "memory/cards/kangaroo.md"
    assert elsewhere.read_bytes() == data
    assert index_file(memory).is_symlink()


def test_an_index_that_points_nowhere_makes_nothing_there(memory: Place) -> None:
    index_file(memory).symlink_to(memory.base / "nowhere.sqlite")
    assert_answers(search(memory, QUESTION))
    assert not (memory.base / "nowhere.sqlite").exists()


def test_an_index_that_is_a_folder(memory: Place) -> None:
    index_file(memory).mkdir()
    assert_answers(search(memory, QUESTION))
    with pytest.raises(StorageFailed):
        reindex(memory)


def test_an_index_that_is_a_pipe(memory: Place) -> None:
    os.mkfifo(index_file(memory))
    command = [sys.executable, "-m", "truekeep", "search", QUESTION, "--json", "-w", str(memory.workspace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout)["hits"][0]["path"] == CARD


# --- Kills and company ----------------------------------------------------------------------------------------------

KILL = """
import os, signal, sys
from pathlib import Path
from truekeep.search import refresh
from truekeep.workspace.workspace import Workspace
from truekeep.search import embedder_choice as embedders, workspace_files as files, build as indexing
where, at, root = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
seen = 0
def dying(plain):
    def act(*args, **options):
        global seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*args, **options)
    return act
if where == "write":
    refresh._write = dying(refresh._write)
    refresh._BATCH_FILES = 2
elif where == "commit":
    from contextlib import contextmanager
    plain = refresh.transaction
    @contextmanager
    def transaction(db):
        global seen
        with plain(db):
            yield
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
    for module in (refresh, embedders, files, indexing):
        module.transaction = transaction
    refresh._BATCH_FILES = 2
elif where == "replace":
    os.replace = dying(os.replace)
Workspace.open(root).search.index(rebuild="--rebuild" in sys.argv)
"""


def kill_indexer(place: Place, where: str, at: int, *more: str) -> None:
    arguments = [sys.executable, "-c", KILL, where, str(at), str(place.workspace), *more]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("where", "at"), [("write", 1), ("write", 3), ("commit", 2), ("commit", 4), ("replace", 1)])
def test_killed_in_the_middle_of_a_rebuild(memory: Place, where: str, at: int) -> None:
    reindex(memory)
    data = index_file(memory).read_bytes()
    kill_indexer(memory, where, at, "--rebuild")
    assert index_file(memory).read_bytes() == data
    assert "index.sqlite.new" in beside_index(memory)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    assert (answer.mode, answer.notes) == ("hybrid", ())
    assert reindex(memory).changed == 0
    assert beside_index(memory) == []


@pytest.mark.parametrize(("where", "at"), [("write", 1), ("write", 3), ("commit", 1), ("commit", 2), ("commit", 3)])
def test_killed_in_the_middle_of_a_first_index(memory: Place, where: str, at: int) -> None:
    kill_indexer(memory, where, at)
    answer = search(memory, QUESTION)
    assert_answers(answer)
    reindex(memory)
    whole = vectors(memory)
    reindex(memory, rebuild=True)
    assert vectors(memory) == whole
    assert beside_index(memory) == []


def test_two_indexers_at_once(memory: Place) -> None:
    command = [sys.executable, "-m", "truekeep", "index", "--json", "-w", str(memory.workspace)]
    started = [
        subprocess.Popen(command + more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for more in ([], ["--rebuild"], [])
    ]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    assert {json.loads(out)["chunks"] for out, _ in said} == {json.loads(said[0][0])["chunks"]}
    assert beside_index(memory) == []
    assert_answers(search(memory, QUESTION))
    assert reindex(memory).changed == 0


def hold_lock(place: Place) -> subprocess.Popen[str]:
    code = (
        "import fcntl, os, sys\n"
        "fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    lock = str(state(place) / "index.lock")
    holder = subprocess.Popen(
        [sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_while_another_indexes_nobody_else_does(memory: Place) -> None:
    reindex(memory)
    with hold_lock(memory) as holder:
        with pytest.raises(Busy):
            reindex(memory, wait=0.2)
        os.utime(index_file(memory))  # not a change of memory
        answer = search(memory, QUESTION)
        holder.communicate()
    assert_answers(answer)


def test_while_another_indexes_an_edit_is_found_all_the_same(memory: Place) -> None:
    reindex(memory)
    with hold_lock(memory) as holder:
        remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
        try:
            answer = search(memory, "where does the kangaroo live")
        finally:
            holder.communicate()
    assert answer.hits[0].path == "memory/cards/kangaroo.md"
    assert answer.waiting >= 1
    assert any("another truekeep" in note for note in answer.notes)


def test_search_during_a_rebuild(memory: Place) -> None:
    """Readers of the old index, new processes and old ones, always get the answer."""
    for number in range(60):
        remember(memory, f"memory/projects/p{number}.md", f"# P{number}\n\nNothing of note, number {number}.\n" * 40)
    reindex(memory)
    command = [sys.executable, "-m", "truekeep", "index", "--rebuild", "-w", str(memory.workspace)]
    with memory.open() as reader:
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                while process.poll() is None:
                    assert_answers(reader.search.find(QUESTION))
                    assert_answers(search(memory, QUESTION))
                assert process.stderr is not None
                assert process.returncode == 0, process.stderr.read()
        assert_answers(reader.search.find(QUESTION))
    assert beside_index(memory) == []


def test_many_at_once_over_a_damaged_index(memory: Place) -> None:
    reindex(memory)
    DAMAGES["random"](memory)
    command = [sys.executable, "-m", "truekeep", "search", QUESTION, "--json", "-w", str(memory.workspace)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0], said
    assert {json.loads(out)["hits"][0]["path"] for out, _ in said} == {CARD}
    answer = search(memory, QUESTION)
    assert_answers(answer)


@pytest.mark.parametrize("command", ["search", "index"])
def test_another_was_quicker_to_set_it_aside(memory: Place, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    reindex(memory)
    DAMAGES["random"](memory)
    plain = derived_db.set_aside

    def late(path: str, *, stamp: str) -> str:
        monkeypatch.setattr(derived_db, "set_aside", plain)
        os.rename(path, f"{path}.damaged-20261115T115959Z")
        return plain(path, stamp=stamp)

    monkeypatch.setattr(derived_db, "set_aside", late)
    if command == "index":
        reindex(memory)
    assert_answers(search(memory, QUESTION))


# --- The disk -------------------------------------------------------------------------------------------------------


def in_namespace(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script with mounts of its own, which go away with it."""
    need("unshare")
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    done = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )
    if done.returncode == 99:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    return done


READ_ONLY = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
shift
exec "$@"
"""


@pytest.mark.parametrize("has_index", [False, True], ids=["none", "index"])
def test_a_state_folder_that_cannot_be_written(memory: Place, has_index: bool) -> None:
    if has_index:
        reindex(memory)
        remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    truekeep = (sys.executable, "-m", "truekeep")
    where = ("--json", "-w", str(memory.workspace))
    for query, path in ((QUESTION, CARD), *([("kangaroo", "memory/cards/kangaroo.md")] if has_index else [])):
        done = in_namespace(READ_ONLY, str(state(memory)), *truekeep, "search", query, *where)
        assert done.returncode == 0, done.stdout + done.stderr
        data = json.loads(done.stdout)
        assert data["hits"][0]["path"] == path
        assert data["notes"]
    done = in_namespace(READ_ONLY, str(state(memory)), *truekeep, "index", *where)
    assert done.returncode == 7, done.stdout
    assert json.loads(done.stdout)["error"]["code"] == "storage-failed"


def test_indexing_into_a_state_folder_that_cannot_be_written(memory: Place) -> None:
    done = in_namespace(
        READ_ONLY, str(state(memory)), sys.executable, "-m", "truekeep", "index", "--json", "-w", str(memory.workspace)
    )
    assert done.returncode == 7, done.stdout
    assert json.loads(done.stdout)["error"]["code"] == "storage-failed"


FULL = """
cp -r "$1" "$1.kept" && mount -t tmpfs -o size=900k tmpfs "$1" || exit 99
cp "$1.kept/config.toml" "$1.kept/host" "$1/" || exit 98
if [ "$3" = old ]; then cp "$1.kept/index.sqlite" "$1/" || exit 98; fi
shift 3
"$@"
code=$?
ls "$WHERE" >&2
exit $code
"""


@pytest.mark.parametrize("before", ["nothing", "old"])
def test_a_full_disk(memory: Place, before: str) -> None:
    """Far too little room for the index: a clear no, and nothing of the memory is touched."""
    (state(memory) / "lexicon.bin").unlink()
    if before == "old":
        reindex(memory)
    for number in range(120):
        words = " ".join(f"word{random.Random(number * 100 + at).randrange(10**9)}" for at in range(300))
        remember(memory, f"memory/projects/p{number}.md", words + "\n")
    files = tree(memory.workspace)
    arguments = (sys.executable, "-m", "truekeep", "index", "--json", "-w", str(memory.workspace))
    os.environ["WHERE"] = str(state(memory))
    try:
        done = in_namespace(FULL, str(state(memory)), "-", before, *arguments)
    finally:
        del os.environ["WHERE"]
    assert done.returncode == 7, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "storage-failed"
    assert "full" in json.loads(done.stdout)["error"]["message"]
    assert tree(memory.workspace, skip=(".truekeep", ".truekeep.kept")) == files
    shutil.rmtree(str(state(memory)) + ".kept")


def test_a_rebuild_without_room_leaves_nothing(memory: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reindex(memory)

    def full(*_: Any, **__: Any) -> Any:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr("truekeep.search.refresh.refresh", full)
    with pytest.raises(StorageFailed, match="full"):
        reindex(memory, rebuild=True)
    assert beside_index(memory) == []


# --- Watching -------------------------------------------------------------------------------------------------------


def indexed_paths(place: Place) -> set[str]:
    db = apsw.Connection(str(index_file(place)), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        db.set_busy_timeout(5000)
        return {str(row[0]) for row in db.execute("SELECT path FROM files")}
    except apsw.SQLError:
        return set()  # being made
    finally:
        db.close()


@pytest.fixture
def watcher(memory: Place) -> Iterator[subprocess.Popen[str]]:
    reindex(memory)
    (memory.workspace / "memory/incoming").mkdir()
    command = [sys.executable, "-m", "truekeep", "index", "--watch", "--json", "-w", str(memory.workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # the first index is done; the watch begins now
        time.sleep(1)
        yield process
        process.terminate()
        process.communicate()
        assert process.returncode == 0


def test_watch_follows_edits(memory: Place, watcher: subprocess.Popen[str]) -> None:
    file = remember(memory, "memory/cards/kangaroo.md", "The kangaroo lives in the annex.\n")
    assert wait_until(lambda: "memory/cards/kangaroo.md" in indexed_paths(memory))
    file.unlink()
    assert wait_until(lambda: "memory/cards/kangaroo.md" not in indexed_paths(memory))


def test_watch_follows_folders(memory: Place, watcher: subprocess.Popen[str]) -> None:
    folder = memory.base / "ready"
    folder.mkdir()
    (folder / "wallaby.md").write_text("The wallaby is smaller.\n")
    os.rename(folder, memory.workspace / "memory/ready")
    assert wait_until(lambda: "memory/ready/wallaby.md" in indexed_paths(memory))
