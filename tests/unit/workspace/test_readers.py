"""What every reader of memory must do, whoever has the memory: one suite for the workspace itself, a copy of it, and a
team server.

A further kind of reader, such as a server, is one more entry in READERS; `tests/support/readers.py` says what it can be
asked.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.copies import Pair
from tests.support.helpers import NOW, Place, a_card, a_document_handoff, a_handoff, git_repo, run_cli
from tests.support.readers import OpenedWorkspace, Reader
from tests.support.visitor import Visitor
from truekeep.core.errors import TruekeepError
from truekeep.core.memory_copy import copy_root
from truekeep.interfaces.mcp.schemas import TOOLS
from truekeep.interfaces.mcp.tools import MemoryTools
from truekeep.sessions.wake import SOURCE_LINE
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from tests.support.team import Team

CARD = "memory/cards/loader.md"


def of_workspace(pair: Pair) -> Workspace:
    return pair.place.open()


def of_copy(pair: Pair) -> Workspace:
    pair.sync()
    return pair.open()


def of_server(pair: Pair, team: Team) -> Workspace:
    """What a server process reads: a working folder that followed the record in PostgreSQL."""
    team.add(pair.place)
    server = team.server()
    team.member("ada")
    with server.reading(team.reach(server)) as workspace:
        workspace.close()  # what it has open tells the time by another clock
        workspace.context.now = lambda: NOW
        return workspace


READERS: Mapping[str, Callable[[Pair], Workspace]] = {"workspace": of_workspace, "copy": of_copy}


@pytest.fixture(params=[*READERS, "server"])
def reader(request: pytest.FixtureRequest, pair: Pair) -> Reader:
    if request.param == "server":
        return OpenedWorkspace(of_server(pair, request.getfixturevalue("team")), pair.place)
    return OpenedWorkspace(READERS[request.param](pair), pair.place)


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
    (place.workspace / "research").mkdir()
    (place.workspace / "research/birds.md").write_text("# Birds\nWhat sings in the reeds is a warbler.\n")
    (place.workspace / "node_modules").mkdir()
    (place.workspace / "node_modules/fish.md").write_text("# Fish\nWhat swims in the node is a pike.\n")
    place.configure('[recall]\nextra_paths = ["node_modules"]\n')
    with place.open() as workspace:
        workspace.verification.verify()
    return Pair(place, tmp_path / "copy", (str(place.base / "repos/*"),))


def test_search_finds_by_words_with_age_and_verdicts(reader: Reader) -> None:
    found = reader.find("which function reads carts")
    assert found.hits[0].path == CARD
    assert found.hits[0].repository == "github.com/me/app"
    words = {verdict.claim.text: verdict.verdict for verdict in found.hits[0].verdicts}
    if not reader.shows_verdicts:
        assert not words, "a server has no checkouts: it tells nothing about the code of whoever asks"
        return
    assert words["load_cart"] == "confirmed"
    assert words["drop_cart"] in ("gone", "unverifiable")


def test_notes_in_further_folders_are_found(reader: Reader) -> None:
    assert reader.find("what sings in the reeds").hits[0].path == "research/birds.md"
    assert "warbler" in reader.get("research/birds.md")
    assert reader.find("what swims in the node").hits[0].path == "node_modules/fish.md", "of extra_paths"


def test_get_gives_lines_and_refuses_what_is_not_memory(reader: Reader) -> None:
    assert "8443" in reader.get("memory/cards/staging-proxy.md")
    for path in ("memory/cards/nothing.md", "/etc/passwd", "../outside.md"):
        with pytest.raises(TruekeepError):
            reader.get(path)


def test_wake_has_handover_logs_and_cards_of_the_repository(reader: Reader, pair: Pair) -> None:
    text = reader.wake(pair.place.repo)
    for part in ("The importer is half done.", "Restart after deploys.", "Cart loader"):
        assert part in text
    assert (SOURCE_LINE in text) == bool(reader.source)


def test_resolve_names_a_winner(reader: Reader) -> None:
    assert reader.resolve("staging port").startswith("memory/cards/staging-proxy.md")


def test_files_lists_and_verdicts(reader: Reader) -> None:
    assert reader.read("TOOLS.md").endswith("Run make lint before every push.\n")
    assert reader.cards() == {"loader.md", "staging-proxy.md"}
    if reader.shows_verdicts:
        assert reader.verdicts(CARD)["load_cart"] == "confirmed"


def test_mcp_answers(reader: Reader) -> None:
    assert "staging-proxy" in reader.call("memory_search", query="staging port")
    assert "8443" in reader.call("memory_get", path="memory/cards/staging-proxy.md")
    assert reader.call("memory_status")


def test_pages_show_memory_and_whose_it_is(reader: Reader) -> None:
    paths = ("/", "/memory", "/review", "/history", "/transcripts", f"/memory/file/{CARD}")
    for path in paths:
        assert ('<span class="badge">as of ' in reader.page(path)) == bool(reader.source), path
    assert "staging-proxy" in reader.page("/search", q="staging port")


def test_a_copy_says_where_history_drafts_and_remedies_are(pair: Pair) -> None:
    copy = of_copy(pair)
    host = copy.machine.name
    visitor = Visitor(replace(pair.place, workspace=copy.path), read_only=True)
    assert f"copy of the memory of {host}, which keeps the history" in visitor.see("/history")
    assert f"copy of the memory of {host}, which keeps the drafts" in visitor.see("/review")
    today, card = visitor.see("/"), visitor.see(f"/memory/file/{CARD}")
    assert (f"The history is on {host}" in today, f"Drafts wait on {host}" in today) == (True, True)
    assert f"{host} keeps the history" in card
    assert "by hand" not in card
    visitor.close()
    for words in (["history"], ["blame", CARD]):
        done = run_cli("-w", str(copy.path), *words)
        assert (done.returncode, f"`truekeep {words[0]}` on {host}" in done.stderr) == (4, True), done
    assert f"drafts wait on {host}" in run_cli("-w", str(copy.path), "review", "list").stderr
    pair.write("memory/cards/broken.md", "---\ntopic: [\n---\nSee `gone/never.py`.\n")
    pair.sync()
    (row,) = [row for row in pair.open().health.check(now=NOW).results if row.name == "lines"]
    assert row.hint.startswith(f"on {host}: "), row


def test_only_the_host_writes(reader: Reader) -> None:
    assert reader.refuse_to_write() == bool(reader.source)


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


def test_a_server_gives_the_same_hits_in_the_same_order(pair: Pair, team: Team) -> None:
    host, server = of_workspace(pair), of_server(pair, team)
    for query in ("which function reads carts", "staging port 8443", "lint before push", "restart"):
        mine, theirs = (
            [(hit.citation, hit.score, hit.age_days) for hit in one.search.find(query).hits] for one in (host, server)
        )
        assert mine == theirs
    documents = [reader.verification.reader.read_all(["TOOLS.md", CARD]) for reader in (host, server)]
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


def test_a_check_on_a_copy_keeps_the_hosts_verdicts_where_there_is_no_checkout(pair: Pair) -> None:
    def on_load_cart(copy: Workspace) -> tuple[str, str]:
        checked = copy.verification.check(CARD)
        assert not isinstance(checked, str), checked
        (word,) = (item.verdict for item in checked.verdicts if item.claim.text == "load_cart")
        return word, checked.checked_on

    copy = of_copy(pair)
    copy.verification.verify()
    assert on_load_cart(copy) == ("confirmed", ""), "by its own checkout"
    pair.place.repo.rename(pair.place.base / "elsewhere")
    pair.repositories = ()
    pair.write("memory/other.md", "# Other\n")
    copy = of_copy(pair)
    assert on_load_cart(copy) == ("confirmed", copy.machine.name), "the checkout is gone"
    results = {item.path: item for item in copy.verification.verify()}
    assert results[CARD].checked_on == copy.machine.name
    assert on_load_cart(copy) == ("confirmed", copy.machine.name)


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
