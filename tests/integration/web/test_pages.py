"""What a newcomer and an attacker found on a walk through the site: each once as it should be."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
from pathlib import Path
from urllib.parse import quote

import apsw
import httpx
import pytest
from starlette.testclient import TestClient

from tests.support.helpers import Place, a_card, a_handoff, run_cli
from tests.support.memories import lend_lexicon, remember
from tests.support.sessions import write_session
from tests.support.site_memory import card_text, put
from tests.support.visitor import Visitor, shown
from tests.support.website import served
from tests.unit.transcripts.test_parser import lines_of, said
from truekeep.interfaces.listener import outward_address
from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.local_site import LocalSite

CARD = "memory/cards/mine.md"
MINE = card_text("Mine", "It is so.", created="2026-01-01", updated="2026-01-01")


@pytest.fixture
def visitor(place: Place) -> Visitor:
    return Visitor(place)


def a_draft(place: Place, name: str = "doubt") -> str:
    """A draft that waits: a card is to be changed that is not there."""
    text = a_handoff(title=f"About {name}", action="update-card", card=f"{name}.md", content=a_card(f"About {name}"))
    place.leave(text, f"2026-11-14-0900-{name}.md")
    place.ingest()
    with place.open() as workspace:
        (found,) = [draft.id for draft in workspace.review.drafts() if draft.id.startswith(f"{name}-")]
    return found


# What somebody typed is not lost.


def test_text_that_was_typed_before_a_restart_is_given_back(place: Place) -> None:
    wanted = a_draft(place)
    old, new = (LocalSite(place.workspace, Keys(token)) for token in ("before", "after"))
    try:
        client = TestClient(make_app(new, {"testserver"}), follow_redirects=False)
        client.cookies.set("truekeep-80", old.keys.cookie)
        typed = {"csrf": old.keys.form, "do": "save", "text": "an hour <b>of</b> writing", "saw": "x y"}
        answer = client.post(f"/review/{wanted}/edit", data=typed)
        assert answer.status_code == 401
        assert "an hour &lt;b&gt;of&lt;/b&gt; writing" in answer.text
        assert "x y" not in answer.text  # only what a person wrote
        client.get("/", params={"token": "after"})  # the new link, in another tab
        answer = client.post(f"/review/{wanted}/edit", data=typed)
        assert answer.status_code == 400
        assert "an hour &lt;b&gt;of&lt;/b&gt; writing" in answer.text
        for other in (client.get("/review"), client.post("/review/x", content=b"\xff" * 10)):
            assert "<textarea" not in other.text
    finally:
        old.close()
        new.close()


def test_a_form_without_a_cookie_is_read_no_further_than_a_form_may_be_large(place: Place) -> None:
    visitor = Visitor(place)
    visitor.client.cookies.clear()
    text = "x" * 3_000_000
    answer = visitor.send("/review/x/edit", {"text": text})
    assert answer.status_code == 401
    assert len(answer.text) < 2_100_000


def test_text_that_was_typed_is_given_back_where_an_act_fails(
    place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, CARD, MINE)
    page = visitor.see(f"/memory/drop/{CARD}")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "the disk says no")

    monkeypatch.setattr("truekeep.workspace.cards.Cards.drop", fail)
    answer = visitor.press(page, "/memory/drop/", reason="a reason that took long")
    assert answer.status_code == 507
    assert "a reason that took long" in answer.text


# The site sees what changes around it.


def test_settings_that_are_edited_hold_at_once(place: Place, visitor: Visitor) -> None:
    put(place, "USER.md", "# User\n\nNotes of Ada.\n")
    extra = place.base / "notes.md"
    extra.write_text("# Notes\n\nA quokka.\n")
    assert visitor.get(f"/memory/file/{quote(str(extra))}").status_code == 404
    place.configure(f'[recall]\nextra_paths = ["{extra}"]\n')
    assert "A quokka." in visitor.see(f"/memory/file/{quote(str(extra), safe='')}")
    config = place.workspace / ".truekeep" / "config.toml"
    config.write_text("broken = [")
    answer = visitor.get("/review/" + a_name())
    assert answer.status_code == 500
    assert "config.toml" in answer.text


def a_name() -> str:
    return "nothing-0123456789"


def test_a_ledger_that_was_replaced_is_the_one_that_is_written(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    state = place.workspace / ".truekeep"
    visitor.see("/history")
    with place.open() as workspace:
        assert not list(workspace.history.entries())
    backup = place.base / "backup"
    backup.mkdir()
    for file in state.glob("ledger.sqlite*"):
        shutil.copy(file, backup / file.name)
    for file in state.glob("ledger.sqlite*"):
        file.unlink()
    for file in backup.iterdir():
        shutil.copy(file, state / file.name)
    assert visitor.press(visitor.see(f"/memory/file/{CARD}"), "/memory/confirm/").status_code == 303
    with place.open() as workspace:
        assert [entry.verb for entry, _ in workspace.history.entries()] == ["confirmed"]


def test_a_workspace_that_was_moved_away_is_not_shown_as_if_it_were_there(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    visitor.see(f"/memory/file/{CARD}")
    place.workspace.rename(place.base / "elsewhere")
    assert "does not exist" in visitor.get("/history").text
    (place.base / "elsewhere").rename(place.workspace)
    visitor.see(f"/memory/file/{CARD}")


def test_what_a_workspace_noticed_is_told_once(place: Place, visitor: Visitor) -> None:
    with visitor.site.borrow() as workspace:  # as an act does, or the look beside Today
        workspace.notices.append("finished <2> batches")
    assert "finished" not in visitor.see("/memory", fragment="1")  # it has no place for it
    assert "finished &lt;2&gt; batches" in visitor.see("/history")
    assert "finished" not in visitor.see("/history")
    with visitor.site.borrow() as workspace:
        for number in range(1000):
            workspace.notices.append(f"notice {number}")
    assert visitor.see("/history").count("notice ") < 30


@pytest.mark.parametrize("at", ["/", "/review", "/memory", "/memory/file/memory/cards/100%25%20sure.md", "/history"])
def test_a_page_knows_the_word_of_the_moment_it_was_made(place: Place, visitor: Visitor, at: str) -> None:
    """Else what changes between a page and its first question would never be news."""
    put(place, "memory/cards/100% sure.md", MINE)
    (word,) = re.findall(r'id="changed"[^>]* data-news="([0-9a-f]{16})"', visitor.see(at))
    assert visitor.see("/news", at=at) == word, "nothing changed since"
    put(place, "memory/cards/other.md", MINE)
    assert visitor.see("/news", at=at) != word


def test_news_name_a_file_by_the_address_of_its_page(place: Place, visitor: Visitor) -> None:
    file = put(place, "memory/cards/100% sure.md", MINE)
    at = "/memory/file/" + quote("memory/cards/100% sure.md")
    before = visitor.see("/news", at=at)
    other = visitor.see("/news", at="/history")
    with file.open("r+") as opened:  # in place: no folder tells
        opened.write("---\ntopic: Other")
    assert visitor.see("/news", at=at) != before
    assert visitor.see("/news", at="/history") == other
    for odd in ("/memory/file/%ff", "/memory/file/%00", "/memory/file/../../x", "/review/\x00", "%"):
        assert re.fullmatch("[0-9a-f]{16}", visitor.see("/news", at=odd))
    place.configure("[limits]\nindex_bytes = 900\n")
    assert visitor.see("/news", at="/history") != other


def test_a_ledger_that_is_locked_is_busy_and_not_broken(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    page = visitor.see(f"/memory/file/{CARD}")
    with place.open() as workspace:
        assert workspace.context.ledger
    other = apsw.Connection(str(place.workspace / ".truekeep" / "ledger.sqlite"))
    other.execute("BEGIN IMMEDIATE")
    try:
        answer = visitor.press(page, "/memory/confirm/")
    finally:
        other.close()
    assert answer.status_code == 503
    assert "locked" in answer.text
    assert "disk" not in shown(answer.text)
    assert (place.workspace / CARD).read_text() == MINE
    assert visitor.press(page, "/memory/confirm/").status_code == 303


# What is gone.


def test_a_draft_that_was_deleted_by_hand_was_not_decided_on(place: Place, visitor: Visitor) -> None:
    wanted = a_draft(place)
    visitor.see(f"/review/{wanted}")
    (place.workspace / "memory" / "handoff-inbox" / f"{wanted}.md").unlink()
    answer = visitor.get(f"/review/{wanted}")
    assert answer.status_code == 410
    assert "taken away by hand" in answer.text
    assert "was review" not in shown(answer.text)
    answer = visitor.send(f"/review/{wanted}/edit", {"do": "save", "text": "mine", "saw": "x y"})
    assert answer.status_code == 409
    assert "taken away by hand" in answer.text
    assert "mine" in answer.text


def test_a_card_that_was_dropped_says_by_whom_and_how_it_comes_back(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    answer = visitor.press(visitor.see(f"/memory/drop/{CARD}"), "/memory/drop/", reason="nobody needs it")
    entry = re.match(r"/history/(\d+)", answer.headers["location"])
    assert entry is not None
    gone = visitor.get(f"/memory/file/{CARD}")
    assert gone.status_code == 404
    assert f'href="/history/{entry[1]}"' in gone.text
    assert "nobody needs it" in gone.text
    assert "undo brings it back" in gone.text
    visitor.press(visitor.see(f"/history/{entry[1]}/undo"), "/history/")
    (place.workspace / CARD).unlink()
    assert "taken away by hand" in visitor.get(f"/memory/file/{CARD}").text
    assert "History" in visitor.get("/memory/file/memory/cards/never.md").text
    assert "/history/" not in visitor.get("/memory/file/memory/cards/never.md").text


# Only cards are cards.


def test_a_document_does_not_pass_for_the_card_of_its_name(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    put(place, "memory/projects/mine.md", MINE)  # the same bytes: what was seen is what the card says
    page = visitor.see("/memory/file/memory/projects/mine.md")
    seen = re.search(r"[0-9a-f]{64}", visitor.see(f"/memory/file/{CARD}"))
    assert seen is not None
    assert "/memory/drop/" not in page
    for act in ("drop", "confirm"):
        answer = visitor.send(f"/memory/{act}/memory/projects/mine.md", {"seen": seen[0], "reason": "x"})
        assert answer.status_code == 400
        assert "is not a card" in answer.text
    assert visitor.get("/memory/drop/MEMORY.md").status_code == 400
    assert (place.workspace / CARD).read_text() == MINE


def test_what_a_card_says_is_shown_without_its_frontmatter(place: Place, visitor: Visitor) -> None:
    put(place, CARD, MINE)
    put(place, "MEMORY.md", f"# Memory\n\n- [Mine]({CARD})\n")
    page = visitor.see(f"/memory/drop/{CARD}")
    assert "It is so." in page
    assert "category: notes" not in page
    assert "point at it" not in page  # the line of MEMORY.md goes with it
    put(place, "memory/cards/other.md", card_text("Other", "See [mine](mine.md)."))
    assert "Other memories point at it" in visitor.read(f"/memory/drop/{CARD}")
    answer = visitor.send(f"/memory/confirm/{CARD}", {"seen": "0" * 64})
    assert answer.status_code == 409
    assert "category: notes" not in answer.text


def test_a_file_with_a_line_end_in_its_name_can_be_opened(place: Place, visitor: Visitor) -> None:
    put(place, "memory/cards/two\nlines.md", MINE)
    (found,) = re.findall(r'href="(/memory/file/[^"]*lines.md)"', visitor.see("/memory"))
    assert "It is so." in visitor.see(found)


def test_a_reason_that_code_speaks_of_keeps_its_letters(place: Place, visitor: Visitor) -> None:
    put(place, CARD, b"\xff\xfe\x00binary")
    assert "It is not UTF-8 text." in visitor.see(f"/memory/file/{CARD}")


# Search says how it found what it found.


def test_hits_without_the_words_do_not_look_like_answers(place: Place, visitor: Visitor) -> None:
    lend_lexicon(place)
    remember(place, "memory/cards/backups.md", a_card("Backups", "The backup runs at night on the server."))
    remember(place, "memory/cards/garden.md", a_card("Garden", "Roses are cut in spring."))
    far = visitor.see("/search", q="database snapshots during darkness")
    assert "by meaning alone: perhaps none is an answer" in far, shown(far)
    assert "by words and meaning" not in far
    assert 'class="best"' not in far
    near = visitor.see("/search", q="backup at night")
    assert "by words and meaning" in near
    assert 'class="best"' in near
    first, _, second = near.partition("garden.md")
    assert "by meaning alone" not in first
    assert "by meaning alone" in second or not second


def test_a_page_of_transcripts_that_is_not_there_says_so(place: Place, visitor: Visitor, own_home: Path) -> None:
    rows = [said("claude", "user", "Hello there"), said("claude", "assistant", "Hello.")]
    write_session(own_home / ".claude/projects/-x/5e551011-aaaa-4bbb-8ccc-012345678901.jsonl", lines_of(*rows))
    with place.open() as workspace:
        workspace.sessions.sync_transcripts()
    assert "There is no page 99" in visitor.read("/transcripts", page="99")


# Keys.


@pytest.mark.parametrize("read_only", [False, True])
def test_every_key_of_a_page_is_among_its_keys(place: Place, own_home: Path, read_only: bool) -> None:
    wanted = a_draft(place)
    put(place, CARD, MINE)
    rows = [said("claude", "user", "Hello there"), said("claude", "assistant", "Hello.")]
    name = "5e551011-aaaa-4bbb-8ccc-012345678901"
    write_session(own_home / f".claude/projects/-x/{name}.jsonl", lines_of(*rows))
    with place.open() as workspace:
        workspace.sessions.sync_transcripts()
    visitor = Visitor(place, read_only=read_only)
    for path in (
        "/", "/review", f"/review/{wanted}", f"/review/{wanted}/edit", f"/review/-/several?draft={wanted}", "/memory",
        f"/memory/file/{CARD}", f"/memory/drop/{CARD}", "/search", "/history", "/history/1", "/history/1/undo",
        "/transcripts", f"/transcripts/{name}", f"/transcripts/{name}/handoff?turn=1",
    ):  # fmt: skip
        page = visitor.see(path)
        told = set(re.findall(r"<kbd>(\S+?)</kbd>", page[page.index("<dialog") :]))
        used = {key for key in re.findall(r'data-key="([^"]*)"', page) if not key.startswith("g ")}
        assert {key.lower() for key in used} <= told, path  # X is told as Shift x


# Where it listens.


def test_the_address_that_a_request_came_to_is_one_of_the_sites_own(place: Place) -> None:
    """With --host 0.0.0.0 nobody knows beforehand by which address a phone will ask."""
    with served(place.workspace, os.environ, "--read-only", "--host", "0.0.0.0") as server:
        way = outward_address(socket.AF_INET)
        assert server.link.startswith(f"http://{way or os.uname().nodename}:")
        for address in {"127.0.0.1", "127.0.0.2", way} - {""}:
            assert httpx.get(f"http://{address}:{server.port}/?token={server.token}").status_code == 303
        for host in ("192.0.2.1", "127.0.0.2", "evil.example", "0.0.0.0"):  # names of others, or another address
            asked = httpx.get(f"http://127.0.0.1:{server.port}/", headers={"host": f"{host}:{server.port}"})
            assert asked.status_code == 421, host


def test_an_address_of_another_machine_is_told_as_that(place: Place) -> None:
    done = run_cli("serve", "--read-only", "--host", "192.0.2.7", "--workspace", str(place.workspace))
    assert done.returncode == 3
    assert "--host takes an address of this machine" in done.stderr
    assert "while attempting" not in done.stderr
