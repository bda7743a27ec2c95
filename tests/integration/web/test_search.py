"""Search in a browser, without one: hits that lead to their lines, filters that hold, and what hinders it said."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import CLAUDE, Place, a_card, run_cli
from tests.support.histories import NAME, History
from tests.support.memories import remember, some_memories
from tests.support.sessions import ONE, dialogue, place_of, write_session
from tests.support.upkeep_place import put
from tests.support.visitor import Visitor, shown
from truekeep.core.errors import BadInput

pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def visitor(place: Place) -> Iterator[Visitor]:
    some_memories(place)
    visitor = Visitor(place)
    yield visitor
    visitor.close()


def targets(page: str) -> list[str]:
    """Where the hits of a page lead, in their order."""
    return [unescape(target) for target in re.findall(r'<h2><a href="([^"]*)"', page)]


def test_nothing_asked_is_friendly(visitor: Visitor) -> None:
    for query in ("", "   "):
        page = visitor.read("/search", q=query)
        assert "ask in your own words" in page
        assert "Nothing in memory" not in page


def test_a_hit_leads_to_its_lines(visitor: Visitor) -> None:
    page = visitor.see("/search", q="which port does staging use")
    first = targets(page)[0]
    found = re.fullmatch(r"/memory/file/(memory/cards/staging-proxy\.md)\?line=([\d-]+)#L(\d+)", first)
    assert found is not None, first
    there = visitor.see(first.partition("#")[0])
    assert re.search(rf'<tr id="L{found[3]}" class="wanted">', there)
    row = re.search(rf'<tr id="L{found[3]}".*?</tr>', there, re.DOTALL)
    assert row is not None
    assert "8443" in shown(row[0])
    assert "Proxy in front of staging" in shown(visitor.see("/memory", q="staging")), "and the survey knows it"
    assert "Proxy in front of staging" in shown(visitor.see("/search", q="which port does staging use"))


def test_a_part_of_the_page_for_who_types(visitor: Visitor) -> None:
    whole, part = visitor.see("/search", q="backups"), visitor.see("/search", q="backups", fragment="1")
    assert targets(part) == targets(whole)
    assert "<html" not in part
    assert "<form" not in part


def test_what_changed_a_moment_ago_is_in(place: Place, visitor: Visitor) -> None:
    visitor.see("/search", q="backups")
    remember(place, "memory/cards/fresh.md", a_card("Quokkas", "A quokka sleeps in the server room."))
    with place.open() as workspace:
        assert workspace.search.find("quokka").hits[0].path == "memory/cards/fresh.md"
    until = 200
    while until and not any("fresh.md" in target for target in targets(visitor.see("/search", q="quokka sleeps"))):
        until -= 1
    assert until


def test_files_that_were_looked_at_lately_are_not_looked_at_again(place: Place) -> None:
    some_memories(place)
    with place.open() as workspace:
        workspace.search.find("backups", within=60.0)
        remember(place, "memory/cards/fresh.md", a_card("Quokkas", "A quokka sleeps in the server room."))
        late = [hit.path for hit in workspace.search.find("quokka", within=60.0).hits]
        assert "memory/cards/fresh.md" not in late
        assert workspace.search.find("quokka").hits[0].path == "memory/cards/fresh.md"
        assert workspace.search.find("quokka", within=60.0).hits[0].path == "memory/cards/fresh.md"
        (place.workspace / ".truekeep" / "index.sqlite").unlink()  # gone behind its back
        assert workspace.search.find("quokka", within=60.0).hits[0].path == "memory/cards/fresh.md"


def test_one_look_at_the_files_serves_all_who_search(place: Place) -> None:
    some_memories(place)
    fresh = "memory/cards/fresh.md"
    with place.open() as one, place.open() as other:
        one.search.find("backups", within=60.0)
        remember(place, fresh, a_card("Quokkas", "A quokka sleeps in the server room."))
        assert fresh not in [hit.path for hit in other.search.find("quokka", within=60.0).hits]
        assert other.search.find("quokka").hits[0].path == fresh
        assert one.search.find("quokka", within=60.0).hits[0].path == fresh
        (place.workspace / ".truekeep" / "index.sqlite").unlink()
        assert other.search.find("quokka", within=60.0).hits[0].path == fresh
        assert one.search.find("quokka", within=60.0).hits[0].path == fresh


def test_the_parts_of_the_score_on_request(visitor: Visitor) -> None:
    plain, explained = visitor.see("/search", q="backups"), visitor.see("/search", q="backups", explain="1")
    assert "<dt>words</dt>" not in plain
    assert "<dt>words</dt>" in explained
    assert "<dt>score</dt>" in explained


def test_filters(place: Place, visitor: Visitor) -> None:
    remember(place, "memory/cards/old-note.md", a_card("Gate", "The gate of the harbor.", updated="2020-01-01"))
    remember(
        place,
        "memory/cards/of-app.md",
        a_card("Gate two", "The gate of the harbor app.", repository="github.com/me/app"),
    )

    def paths(**query: str) -> set[str]:
        page = visitor.see("/search", q="gate of the harbor", **query)
        return {unquote(target.removeprefix("/memory/file/").partition("?")[0]) for target in targets(page)}

    assert {"memory/cards/old-note.md", "memory/cards/of-app.md"} <= paths()
    assert paths(repo="github.com/me/app") == {"memory/cards/of-app.md"}
    assert paths(repo="app") == {"memory/cards/of-app.md"}
    assert "memory/cards/old-note.md" not in paths(since="365")
    assert all(path.startswith("memory/cards/") or path == "MEMORY.md" for path in paths(store="cards"))
    assert "memory/projects/harbor.md" in paths(store="documents")
    assert paths(store="nonsense", since="nonsense", verdict="nonsense") == paths()


def test_verdicts_are_told_and_filtered_by(place: Place) -> None:
    history = History()
    history.commit("2026-01-05", {"src/api.py": "def fetch(key):\n    return key\n", "src/old.py": "OLD = 'as ever'\n"})
    history.commit("2026-11-08", renames={"src/old.py": "src/new.py"})
    history.write(place.repo)
    (place.repo / CLAUDE).mkdir(parents=True, exist_ok=True)
    some_memories(place)
    keys = {"repository": NAME, "updated": "2026-11-01"}
    put(place, "memory/cards/stale.md", a_card("Loader one", "The loader is in `src/old.py`.", **keys))
    put(place, "memory/cards/fine.md", a_card("Loader two", "The loader is in `src/api.py`.", **keys))
    with place.open() as workspace:
        workspace.verification.verify()
        with pytest.raises(BadInput):
            workspace.search.find("loader", verdict="moved")
    visitor = Visitor(place)
    page = visitor.read("/search", q="where is the loader")
    assert "refuted by code" in page
    assert "src/new.py" in page
    assert "code agrees" in page
    refuted = targets(visitor.see("/search", q="where is the loader", verdict="refuted"))
    assert [target.partition("?")[0] for target in refuted] == ["/memory/file/memory/cards/stale.md"]
    holds = targets(visitor.see("/search", q="where is the loader", verdict="holds"))
    assert [target.partition("?")[0] for target in holds] == ["/memory/file/memory/cards/fine.md"]
    visitor.close()
    told = run_cli("search", "where is the loader", "--verdict", "refuted", "--json", "-w", str(place.workspace))
    assert told.returncode == 0, told.stderr
    assert "stale.md" in told.stdout
    assert "fine.md" not in told.stdout


def test_an_embedder_that_fails_is_said(place: Place) -> None:
    some_memories(place)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        place.configure(f'[recall]\nembedder = "openai-compatible"\nmodel = "m"\nbase_url = "{url}"\n')
        visitor = Visitor(place)
        page = visitor.read("/search", q="backups at night")
        visitor.close()
    assert "by words alone" in page
    assert "Backups run at two at night." in page


def test_what_was_said_leads_to_the_turn(place: Place, visitor: Visitor, own_home: Path) -> None:
    lines = dialogue("claude", "How do we feed the wombats?", "The wombats are fed at dawn, with grass.")
    write_session(place_of(own_home, "claude"), lines)
    with place.open() as workspace:
        workspace.sessions.sync_transcripts()
    page = visitor.see("/search", q="wombats are fed at dawn", store="transcripts")
    (target, *_) = targets(page)
    answer = visitor.get(target)
    assert answer.status_code == 303
    assert re.fullmatch(rf"/transcripts/{ONE}\?turn=\d#T\d", answer.headers["location"])


@given(st.text(max_size=80))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_typed_is_no_error(visitor: Visitor, text: str) -> None:
    typed = text.encode("utf-8", "replace").decode()
    for query in ({"q": typed}, {"q": "backups", "repo": typed, "store": typed, "since": typed, "n": typed}):
        answer = visitor.get("/search", **query)
        assert answer.status_code == 200
        assert "<script>" not in answer.text.replace('<script src="/static/keys.js" defer></script>', "")


def test_hostile_memory_is_text(place: Place, visitor: Visitor) -> None:
    remember(place, "memory/cards/<b>x.md", a_card("<i>Topic</i>", "A zebra <script>alert(1)</script>\u202e here."))
    for query in ({"explain": "1"}, {"fragment": "1"}):
        page = visitor.see("/search", q="zebra", **query)
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>alert" not in page
        assert "<b>x" not in page
        assert "\u202e" not in page


def test_the_site_for_looking_searches(place: Place) -> None:
    some_memories(place)
    visitor = Visitor(place, read_only=True)
    assert targets(visitor.see("/search", q="backups"))
    visitor.close()
