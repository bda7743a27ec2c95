"""What every reader of memory must do, whoever has the memory: one suite for the workspace itself and for a copy.

A further kind of reader is one more entry in READERS.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.copies import Pair
from tests.support.helpers import NOW, Place, a_card, a_document_handoff, a_handoff, git_repo
from tests.support.visitor import Visitor
from truekeep.core.errors import NotFound
from truekeep.core.memory_copy import copy_root
from truekeep.interfaces.mcp.schemas import TOOLS
from truekeep.interfaces.mcp.tools import MemoryTools
from truekeep.sessions.wake import SOURCE_LINE
from truekeep.workspace.workspace import Workspace

CARD = "memory/cards/loader.md"


def of_workspace(pair: Pair) -> Workspace:
    return pair.place.open()


def of_copy(pair: Pair) -> Workspace:
    pair.sync()
    return pair.open()


READERS: Mapping[str, Callable[[Pair], Workspace]] = {"workspace": of_workspace, "copy": of_copy}


@pytest.fixture(params=READERS)
def reader(request: pytest.FixtureRequest, pair: Pair) -> Workspace:
    return READERS[request.param](pair)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A host with a card on code, a document, a log and a handover; the other machine has the same repositories."""
    place = Place.make(tmp_path)
    git_repo(place.repo, remote="https://github.com/me/app.git")
    (place.repo / "loader.py").write_text("def load_cart():\n    return 1\n")
    run = ["git", "-C", str(place.repo), "-c", "user.name=a", "-c", "user.email=a@x"]
    subprocess.run([*run, "add", "loader.py"], check=True)
    subprocess.run([*run, "commit", "-qm", "one"], check=True)
    body = "Carts are read by `load_cart` in `loader.py`; `drop_cart` in `loader.py` removes them."
    place.leave(a_handoff(card="loader.md", title="Loader", content=a_card("Cart loader", body)))
    place.leave(a_handoff(), "2026-11-14-0901-proxy.md")
    place.leave(a_document_handoff(), "2026-11-14-0902-lint.md")
    place.ingest()
    (place.workspace / "HANDOVER.md").write_text("# Handover\nThe importer is half done.\n")
    (place.workspace / "memory/2026-11-15.md").write_text("# 2026-11-15\n- [lesson|i=0.9] Restart after deploys.\n")
    with place.open() as workspace:
        workspace.verification.verify()
    return Pair(place, tmp_path / "copy", (str(place.base / "repos/*"),))


def test_search_finds_by_words_with_age_and_verdicts(reader: Workspace) -> None:
    found = reader.search.find("which function reads carts")
    assert found.hits[0].path == CARD
    assert found.hits[0].repository == "github.com/me/app"
    words = {verdict.claim.text: verdict.verdict for verdict in found.hits[0].verdicts}
    assert words["load_cart"] == "confirmed"
    assert words["drop_cart"] in ("gone", "unverifiable")


def test_get_gives_lines_and_refuses_what_is_not_memory(reader: Workspace) -> None:
    assert "8443" in reader.search.get("memory/cards/staging-proxy.md").text
    with pytest.raises(NotFound):
        reader.search.get("memory/cards/nothing.md")


def test_wake_has_handover_logs_and_cards_of_the_repository(reader: Workspace, pair: Pair) -> None:
    text = reader.sessions.wake(pair.place.repo).text
    for part in ("The importer is half done.", "Restart after deploys.", "Cart loader"):
        assert part in text


def test_resolve_names_a_winner(reader: Workspace) -> None:
    found = reader.verification.resolve("staging port")
    assert found.winner.startswith("memory/cards/staging-proxy.md")


def test_files_and_lists(reader: Workspace) -> None:
    assert reader.files.read("TOOLS.md").endswith("Run make lint before every push.\n")
    assert {card.name for card in reader.cards.all()} == {"loader.md", "staging-proxy.md"}


def test_mcp_answers(reader: Workspace) -> None:
    tools = MemoryTools(reader)
    reply = tools.call(TOOLS["memory_search"], {"query": "staging port"})
    assert "staging-proxy" in reply.text
    assert not reply.is_error
    assert not tools.call(TOOLS["memory_status"], {}).is_error


def test_pages_show_memory_and_whose_it_is(reader: Workspace, pair: Pair) -> None:
    visitor = Visitor(replace(pair.place, workspace=reader.path), read_only=True)
    for path in ("/", "/memory", "/review", "/history", f"/memory/file/{CARD}"):
        page = visitor.see(path)
        assert ('<span class="badge">as of ' in page) == (reader.source is not None), path
    assert "staging-proxy" in visitor.see("/search", q="staging port")
    visitor.close()


def test_both_give_the_same_answers(pair: Pair) -> None:
    """The hits, their scores and verdicts, the lines and the brief: only the source differs."""
    host, copy = of_workspace(pair), of_copy(pair)
    for query in ("which function reads carts", "staging port 8443", "lint before push", "restart"):
        mine, theirs = host.search.find(query), copy.search.find(query)
        told = [(hit.citation, round(hit.score, 6), hit.age_days, hit.repository, hit.standing) for hit in mine.hits]
        assert told == [
            (hit.citation, round(hit.score, 6), hit.age_days, hit.repository, hit.standing) for hit in theirs.hits
        ]
        assert theirs.notes[0].startswith("as of just now, from ")
    texts = [reader.sessions.wake(pair.place.repo).text for reader in (host, copy)]
    assert texts[0] == "\n".join(line for line in texts[1].split("\n") if not line.startswith(SOURCE_LINE))
    documents = [reader.verification.reader.read_all(["TOOLS.md", CARD]) for reader in (host, copy)]
    assert documents[0] == documents[1], "each line has its repository and day"


def test_without_a_checkout_the_hosts_verdicts_are_shown(pair: Pair) -> None:
    pair.repositories = ()
    copy = of_copy(pair)
    (hit,) = copy.search.find("which function reads carts", limit=1).hits
    words = {verdict.claim.text: verdict.verdict for verdict in hit.verdicts}
    assert words["load_cart"] == "confirmed"
    checked = copy.verification.check(CARD)
    assert not isinstance(checked, str)
    assert checked.checked_on == copy.machine.name


def test_a_checkout_of_this_machine_is_believed_before_the_hosts(pair: Pair, tmp_path: Path) -> None:
    mine = git_repo(tmp_path / "mine/app", remote="https://github.com/me/app.git")
    (mine / "loader.py").write_text("def other():\n    return 2\n")
    run = ["git", "-C", str(mine), "-c", "user.name=a", "-c", "user.email=a@x"]
    subprocess.run([*run, "add", "loader.py"], check=True)
    subprocess.run([*run, "commit", "-qm", "mine"], check=True)
    pair.repositories = (str(tmp_path / "mine/*"),)
    copy = of_copy(pair)
    (hit,) = copy.search.find("which function reads carts", limit=1, budget=60.0).hits
    words = {verdict.claim.text: verdict.verdict for verdict in hit.verdicts}
    assert words["load_cart"] != "confirmed"


def test_a_server_that_goes_on_running_follows_the_copy(pair: Pair) -> None:
    """MCP and pages: no request sees parts of two states, and the next one sees the new one."""
    pair.root = Path(copy_root())
    copy = of_copy(pair)
    tools = MemoryTools(copy)
    visitor = Visitor(replace(pair.place, workspace=copy.path), read_only=True)
    for number in range(3):
        pair.write(f"memory/late-{number}.md", f"# Late {number}\nThe zebra crossing number {number} is painted.\n")
        pair.sync()
        found = tools.call(TOOLS["memory_search"], {"query": f"zebra crossing number {number}"})
        assert f"memory/late-{number}.md" in found.text
        assert f"memory/late-{number}.md" in visitor.see("/search", q=f"zebra crossing number {number}")
    assert not copy.path.exists(), "only the state in use and the one before are kept"
    visitor.close()


def test_an_old_copy_says_so_with_the_next_step(pair: Pair) -> None:
    pair.sync()
    late = NOW + timedelta(hours=3)
    copy = pair.open(now=late)
    (note, *_) = copy.search.find("staging port").notes
    name = copy.machine.name
    assert note == f"as of 3 h ago, from {name}; older than its interval of 60 min: `truekeep sync run` on {name}"
    assert "as of 3 h ago" in copy.sessions.wake(pair.place.repo).text
    assert copy.search.get(CARD).source == note
    (result,) = [item for item in copy.health.check(now=late).results if item.name == "copies"]
    assert (result.severity, result.figures["minutes"]) == ("warning", 180)
