"""History in a browser, without one: a timeline that loses nothing, what acts changed, undo as it was shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.support.faults import fake_token
from tests.support.helpers import CODEX, NOW, Place, a_card, a_document_handoff, a_handoff, run_cli, tree
from tests.support.visitor import Visitor, shown
from truekeep.interfaces.web.pages.history import ENTRIES_PER_PAGE
from truekeep.memory.ledger import LedgerEntry

CARD = "memory/cards/staging-proxy.md"


def file_card(place: Place, name: str = "2026-11-14-0900-proxy.md", **keys: str) -> None:
    place.leave(a_handoff(**keys), name)
    place.ingest()


def note_acts(place: Place, count: int) -> None:
    """Entries that change nothing, in no time."""
    with place.open() as workspace, workspace.writing("test") as books:
        books.ledger.begin(
            (),
            [LedgerEntry("2026-11-15T12:00:00Z", "written", "me", note=f"act {n}") for n in range(count)],
            (),
            (),
            at="2026-11-15T12:00:00Z",
            whole=False,
        )
        books.recover()


def ids_on(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'<li data-row>.*?href="/history/(\d+)"', page, re.DOTALL)]


def link(page: str, rel: str) -> str:
    found = re.search(rf'href="([^"]+)"[^>]* rel="{rel}"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


# --- The timeline ----------------------------------------------------------------------------------------------------


def test_nothing_was_written_yet(visitor: Visitor) -> None:
    assert "Nothing has been written yet" in visitor.read("/history")


def test_days_and_times_are_local(place: Place, set_zone: Callable[[str], None]) -> None:
    file_card(place)  # at 12:00 UTC
    for zone, day, clock in (("WEST13", "2026-11-14", "23:00"), ("EAST-13", "2026-11-16", "01:00")):
        set_zone(zone)
        visitor = Visitor(place)
        page = visitor.see("/history", since=day, until=day)
        assert f'<h2 class="day"><time datetime="{day}">' in page
        assert f'<time datetime="2026-11-15T12:00:00Z">{clock}</time>' in page
        assert f"{day} {clock}" in visitor.read(f"/history/{ids_on(page)[0]}")
        assert not ids_on(visitor.see("/history", since="2026-11-15", until="2026-11-15"))
        assert f"{day} {clock}" in visitor.read(f"/memory/file/{CARD}")
        visitor.close()


def test_an_entry_says_when_who_and_what(place: Place, visitor: Visitor) -> None:
    file_card(place)
    said = visitor.read("/history")
    for wanted in (
        "2026-11-15",
        "12:00",
        "promoted",
        "by claude on ",
        "Staging sits behind a proxy",
        CARD,
        "MEMORY.md",
    ):
        assert wanted in said
    assert 'href="/memory/file/memory/cards/staging-proxy.md"' in visitor.see("/history")


def test_pages_lose_nothing_while_others_write(place: Place, visitor: Visitor) -> None:
    note_acts(place, ENTRIES_PER_PAGE * 2 + 7)
    first = visitor.see("/history")
    note_acts(place, 3)
    second = visitor.see(link(first, "next"))
    third = visitor.see(link(second, "next"))
    assert [*ids_on(first), *ids_on(second), *ids_on(third)] == list(range(ENTRIES_PER_PAGE * 2 + 7, 0, -1))
    assert 'rel="next"' not in third
    assert ids_on(visitor.see(link(third, "prev"))) == ids_on(second)
    newest = visitor.see(link(visitor.see(link(second, "prev")), "prev"))
    assert ids_on(newest) == list(range(ENTRIES_PER_PAGE * 2 + 10, ENTRIES_PER_PAGE * 2 + 7, -1))
    assert 'rel="prev"' not in newest


def test_a_full_page_and_nothing_more(place: Place, visitor: Visitor) -> None:
    note_acts(place, ENTRIES_PER_PAGE)
    assert 'rel="next"' not in visitor.see("/history")


def test_filters(place: Place, visitor: Visitor) -> None:
    file_card(place)
    place.leave(a_document_handoff(), "2026-11-14-1000-lint.md", inbox=place.repo / CODEX)
    place.ingest(now=NOW + timedelta(days=1))
    for query, ids in (
        ({"who": "codex"}, [2]),
        ({"who": "claude"}, [1]),
        ({"verb": "promoted"}, [1]),
        ({"path": "TOOLS"}, [2]),
        ({"since": "2026-11-16"}, [2]),
        ({"until": "2026-11-15"}, [1]),
        ({"since": "2026-11-15", "until": "2026-11-16"}, [2, 1]),
        ({"machine": "nowhere"}, []),
        ({"who": "claude", "verb": "routed"}, []),
    ):
        page = visitor.see(f"/history?{urlencode(query)}")
        assert ids_on(page) == ids, query
        assert ids or "fits this filter" in page
    assert '<option value="codex" selected>' in visitor.see("/history", who="codex")


@pytest.mark.parametrize(
    "query",
    [
        {"since": "yesterday", "until": "2026-13-45"},
        {"before": "-1", "after": "9" * 40},
        {"before": "0", "after": "0"},
        {"path": "' OR 1=1 --"},
        {"verb": "x\0y"},
        {"who": "\u202eevil"},
    ],
)
def test_odd_filters(place: Place, visitor: Visitor, query: dict[str, str]) -> None:
    file_card(place)
    assert visitor.get(f"/history?{urlencode(query)}").status_code == 200


# --- One entry -------------------------------------------------------------------------------------------------------


def test_what_an_entry_changed(place: Place, visitor: Visitor) -> None:
    file_card(place)
    page = visitor.see("/history/1")
    said = shown(page)
    for wanted in (
        "Staging answers on port 8443 only",
        "2026-11-14-0900-proxy.md",
        "new, ",
        "promoted",
    ):
        assert wanted in said
    assert "1 line in" in said or "2 lines in" in said  # the index got its line
    assert 'href="/history/1/undo"' in page


def test_only_the_difference_that_is_asked_for(place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.interfaces.web.pages.history.MAX_COMPARED_FILES", 1)
    file_card(place)
    said = visitor.read("/history/1")
    assert "Staging answers" in said
    assert "(memory/cards/staging-proxy.md)" not in said  # the line of the index
    assert "(memory/cards/staging-proxy.md)" in visitor.read("/history/1", file="MEMORY.md")
    assert visitor.get("/history/1", file="HANDOVER.md").status_code == 404


@pytest.mark.parametrize("path", ["/history/0", "/history/99", "/history/99999999999999999999999", "/history/99/undo"])
def test_no_such_entry(place: Place, visitor: Visitor, path: str) -> None:
    file_card(place)
    assert visitor.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/history/x", "/history/-1", "/history/1/redo"])
def test_no_such_page(place: Place, visitor: Visitor, path: str) -> None:
    file_card(place)
    assert visitor.get(path).status_code == 404


def test_what_memory_says_is_only_text(place: Place, visitor: Visitor) -> None:
    body = "<script>alert(1)</script>\n<img src=x onerror=alert(1)>\nhidden \u202eright to left\n"
    card = place.workspace / CARD
    card.parent.mkdir(parents=True, exist_ok=True)
    file_card(place, content=a_card(body="Plain."))
    with place.open() as workspace:
        card.write_text(a_card(body=body))
        workspace.cards.drop("staging-proxy.md", reason="<b>no</b>", actor="me")
    for path in ("/history", "/history/2", "/history/2/undo"):
        page = visitor.see(path)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>no" not in page
        assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)" in visitor.see("/history/2")


def test_a_credential_that_was_taken_out_is_not_shown(place: Place, visitor: Visitor) -> None:
    token = fake_token()
    file_card(place)
    card = place.workspace / CARD
    card.write_text(card.read_text() + f"\nThe key is {token}\n")
    with place.open() as workspace:
        workspace.cards.drop("staging-proxy.md", reason="had a key", actor="me")
    for path in ("/history/2", "/history/2/undo", "/history/1/undo"):
        answer = visitor.get(path)
        assert token not in answer.text
        assert "Staging answers on port 8443 only" in answer.text


# --- Undo ------------------------------------------------------------------------------------------------------------


def test_undo_shows_first_and_then_does(place: Place, visitor: Visitor) -> None:
    before = tree(place.workspace)
    file_card(place)
    filed = tree(place.workspace)
    page = visitor.see("/history/1/undo")
    assert "Staging answers on port 8443 only" in shown(page)
    assert tree(place.workspace) == filed
    answer = visitor.press(page, "/history/1/undo")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/history/2?told=")
    assert tree(place.workspace) == before
    assert "undone by 2" in visitor.read("/history")
    assert 'href="/history/1/undo"' not in visitor.see("/history/1")
    again = visitor.press(visitor.see("/history/2/undo"), "/history/2/undo")
    assert again.status_code == 303
    assert tree(place.workspace) == filed


def test_an_edit_by_hand_refuses_and_is_shown(place: Place, visitor: Visitor) -> None:
    file_card(place)
    page = visitor.see("/history/1/undo")
    card = place.workspace / CARD
    card.write_text(card.read_text() + "\nBy hand.\n")
    edited = tree(place.workspace)
    answer = visitor.press(page, "/history/1/undo")
    assert answer.status_code == 409
    said = shown(answer.text)
    assert "was edited since entry 1; nothing was touched" in said
    assert "+By hand." in said
    assert tree(place.workspace) == edited
    assert '<form method="post"' not in answer.text
    looked = visitor.see("/history/1/undo")
    assert "+By hand." in shown(looked)
    assert tree(place.workspace) == edited


def test_what_was_not_seen_is_not_done(place: Place, visitor: Visitor) -> None:
    """Between the look and the word, truekeep itself wrote on: the undo means something else, so it asks again."""
    file_card(place)
    page = visitor.see("/history/1/undo")
    file_card(
        place, "2026-11-14-0901-other.md", card="other.md", title="Another", content=a_card(topic="Other", body="Else.")
    )
    now = tree(place.workspace)
    answer = visitor.press(page, "/history/1/undo")
    assert answer.status_code == 409
    assert tree(place.workspace) == now
    assert "has changed meanwhile; nothing was touched" in shown(answer.text)
    done = visitor.press(answer.text, "/history/1/undo")  # what it shows now may be done
    assert done.status_code == 303
    assert place.cards() == ["other.md"]


def test_undo_without_a_look(place: Place, visitor: Visitor) -> None:
    file_card(place)
    before = tree(place.workspace)
    for fields, status in (({}, 409), ({"seen": ""}, 409), ({"seen": "0" * 64}, 409)):
        assert visitor.send("/history/1/undo", fields).status_code == status
    assert visitor.send("/history/1/undo", {"seen": "x"}, with_word=False).status_code == 400
    assert tree(place.workspace) == before


def test_what_cannot_be_undone_says_why(place: Place, visitor: Visitor) -> None:
    file_card(place)
    note_acts(place, 1)
    assert "changed no file" in visitor.read("/history/2/undo")
    visitor.press(visitor.see("/history/1/undo"), "/history/1/undo")
    page = visitor.see("/history/1/undo")
    assert "was undone by entry 3" in shown(page)
    assert '<form method="post"' not in page
    assert visitor.send("/history/1/undo", {"seen": "x"}).status_code == 400


def test_only_for_looking(place: Place) -> None:
    file_card(place)
    visitor = Visitor(place, read_only=True)
    before = tree(place.workspace)
    assert '<form method="post"' not in visitor.see("/history/1/undo") + visitor.see("/history/1")
    assert "/history/1/undo" not in visitor.see("/history/1")
    assert visitor.send("/history/1/undo", {"seen": "x"}).status_code == 403
    assert tree(place.workspace) == before
    visitor.close()


def test_not_on_another_machine(place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    file_card(place)
    page = visitor.see("/history/1/undo")
    before = tree(place.workspace)
    visitor.close()
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    assert Visitor(place).press(page, "/history/1/undo").status_code == 403
    assert tree(place.workspace) == before


# --- The same on the command line ------------------------------------------------------------------------------------


def test_filters_of_the_command(place: Place) -> None:
    file_card(place)
    place.leave(a_document_handoff(), "2026-11-14-1000-lint.md", inbox=place.repo / CODEX)
    place.ingest(now=NOW + timedelta(days=1))
    where = ("--workspace", str(place.workspace))
    assert "TOOLS.md" in run_cli("history", "--who", "codex", *where).stdout
    assert "staging-proxy" not in run_cli("history", "--since", "2026-11-16", *where).stdout
    assert "nothing like that" in run_cli("history", "--verb", "dropped", *where).stdout
    assert run_cli("history", "--since", "soon", *where).returncode == 3


def test_undo_dry_run(place: Place) -> None:
    file_card(place)
    before = tree(place.workspace)
    where = ("--workspace", str(place.workspace))
    told = run_cli("undo", "1", "--dry-run", *where)
    assert "-Staging answers on port 8443 only." in told.stdout
    assert '"undoes": 1' in run_cli("undo", "1", "--dry-run", "--json", *where).stdout
    assert tree(place.workspace) == before
    Path(place.workspace / CARD).write_text("by hand\n")
    assert run_cli("undo", "1", "--dry-run", *where).returncode == 8
