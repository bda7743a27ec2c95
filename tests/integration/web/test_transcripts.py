"""Transcripts in a browser, without one: sessions found and read, and handoffs made from what was said."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, tree
from tests.support.memories import lend_lexicon
from tests.support.sessions import (
    LONG,
    ONE,
    TWO,
    aged,
    all_kept,
    archive_file,
    dialogue,
    grow,
    place_of,
    sync,
    write_session,
)
from tests.support.visitor import Visitor, shown
from tests.unit.transcripts.test_parser import a_token
from truekeep.handoffs.format import parse_handoff
from truekeep.handoffs.from_transcript import find_gist
from truekeep.transcripts.parser import Turn
from truekeep.transcripts.store import TranscriptStore

ASKED = "Why do the payments fail at night?"
ANSWERED = (
    "The payment gateway restarts at two.\n\n- Retries must span ten minutes.\n- The gateway drops open connections.\n"
)


pytestmark = pytest.mark.usefixtures("in_the_foreground")


def a_session(place: Place, home: Path, *texts: str, harness: str = "claude", name: str = ONE) -> None:
    write_session(place_of(home, harness, name), dialogue(harness, *(texts or (ASKED, ANSWERED))))
    sync(place)


def sessions(page: str) -> list[str]:
    return re.findall(
        r'<a href="/transcripts/([^"?]+)"', page[page.index('id="results"') :] if "results" in page else page
    )


# --- The list --------------------------------------------------------------------------------------------------------


def test_without_an_archive_it_says_how_to_get_one(visitor: Visitor) -> None:
    assert "truekeep transcripts sync" in visitor.read("/transcripts")
    assert visitor.get("/transcripts/anything").status_code == 404
    assert visitor.get("/transcripts/anything/handoff?turn=1").status_code == 404


def test_sessions_by_day_harness_and_machine(place: Place, visitor: Visitor, own_home: Path) -> None:
    write_session(place_of(own_home, "claude"), aged("claude", ASKED, NOW - timedelta(days=10)))
    write_session(place_of(own_home, "codex", TWO), aged("codex", "What about codex?", NOW))
    sync(place)
    machine = all_kept(place)[ONE].machine
    assert sessions(visitor.see("/transcripts")) == [TWO, ONE]  # the latest first
    assert sessions(visitor.see("/transcripts", harness="claude")) == [ONE]
    assert sessions(visitor.see("/transcripts", machine=machine)) == [TWO, ONE]
    assert sessions(visitor.see("/transcripts", machine="nobody")) == []
    day = (NOW - timedelta(days=10)).astimezone().date()
    assert sessions(visitor.see("/transcripts", since=day.isoformat(), until=day.isoformat())) == [ONE]
    assert sessions(visitor.see("/transcripts", since=(day + timedelta(days=1)).isoformat())) == [TWO]
    assert sessions(visitor.see("/transcripts", until=(day - timedelta(days=1)).isoformat())) == []
    assert sessions(visitor.see("/transcripts", since="nonsense", until="9999-12-31")) == [TWO, ONE]
    assert sessions(visitor.see("/transcripts", fragment="1")) == [TWO, ONE]
    headings = re.findall(r"<h2>([^<]*)</h2>", visitor.see("/transcripts"))
    assert headings[:2] == [f"{NOW.astimezone():%A, %Y-%m-%d}", f"{day:%A, %Y-%m-%d}"]


def test_pages_of_the_list_have_each_session_once(place: Place, visitor: Visitor, own_home: Path) -> None:
    names = [f"{number:08}-aaaa-4bbb-8ccc-0123456789ab" for number in range(55)]
    for number, name in enumerate(names):
        write_session(place_of(own_home, "claude", name), aged("claude", f"Question {number}", NOW))
    sync(place)
    found = sessions(visitor.see("/transcripts")) + sessions(visitor.see("/transcripts", page="2"))
    assert sorted(found) == names


def test_what_was_said_is_found_and_leads_to_the_turn(place: Place, visitor: Visitor, own_home: Path) -> None:
    lend_lexicon(place)
    a_session(place, own_home, "Hello there", "Hello.", "Where do wombats sleep?", "Wombats sleep below ground.")
    page = visitor.see("/transcripts", q="wombats sleep below ground")
    target = re.search(r'<h2><a href="([^"]*)"', page)
    assert target is not None
    answer = visitor.get(unescape(target[1]))
    assert answer.status_code == 303
    found = re.fullmatch(rf"/transcripts/{ONE}\?turn=(\d)#T(\d)", answer.headers["location"])
    assert found is not None
    there = visitor.see(answer.headers["location"].partition("#")[0])
    assert re.search(rf'<section class="turn \w+ wanted" id="T{found[2]}"', there)
    assert "Nothing like that was said" in visitor.read("/transcripts", q="wombats sleep below ground", harness="codex")


def test_a_session_that_is_not_archived_yet_can_be_read(place: Place, visitor: Visitor, own_home: Path) -> None:
    lend_lexicon(place)
    write_session(
        place_of(own_home, "claude"), dialogue("claude", "Where do <b>quolls</b> sleep?", "Quolls sleep in logs.")
    )
    page = visitor.see("/transcripts", q="quolls sleep in logs")
    target = re.search(r'<h2><a href="([^"]*)"', page)
    assert target is not None
    read = visitor.see(unescape(target[1]))
    assert "not in the archive yet" in read
    assert "Quolls sleep in logs." in shown(read)
    assert "<b>quolls" not in read
    for cited in ("transcripts/none.jsonl", "transcripts/../../x", "memory/cards/x.md", "../x", "/etc/passwd"):
        assert visitor.get("/transcripts", cited=cited, line="1").status_code == 404


# --- One session -----------------------------------------------------------------------------------------------------


def test_a_long_session_is_read_in_parts_and_all_of_it(place: Place, visitor: Visitor, own_home: Path) -> None:
    texts = [f"Turn number {number} says something." for number in range(1, 71)]
    a_session(place, own_home, *texts)
    numbers: list[str] = []
    for page in ("1", "2", "3"):
        part = visitor.see(f"/transcripts/{ONE}", page=page)
        numbers += re.findall(r'id="T(\d+)"', part)
        assert f"Turn number {numbers[-1]} says something." in part
    assert numbers == [str(number) for number in range(1, 71)]
    assert visitor.get(f"/transcripts/{ONE}", page="9").status_code == 404
    assert 'id="T65"' in visitor.see(f"/transcripts/{ONE}", turn="65")
    assert visitor.get(f"/transcripts/{ONE[:8]}").status_code == 200  # the beginning of a name will do


def test_a_fork_says_what_it_shares(place: Place, visitor: Visitor, own_home: Path) -> None:
    shared = dialogue("claude", "Why?", LONG, "So?")
    path = write_session(place_of(own_home, "claude"), [*shared, *dialogue("claude", "Go left")])
    fork = write_session(path.with_name(path.name.replace(ONE, TWO)), [b'{"x": 1}\n', *shared], at=NOW)
    sync(place)
    grow(fork, *dialogue("claude", "Go right"))
    sync(place)
    page = visitor.see(f"/transcripts/{TWO}")
    assert f'href="/transcripts/{ONE}"' in page
    assert shown(page).index("Why?") < shown(page).index("Go right", shown(page).index("So?"))
    store = TranscriptStore(str(archive_file(place)), read_only=True)
    for kept in all_kept(place).values():
        whole = list(store.turns(kept.id))
        for start in range(6):
            for stop in range(7):
                assert list(store.some_turns(kept.id, start=start, stop=stop)) == whole[start:stop]
    store.close()


def test_hostile_speech_is_text(place: Place, visitor: Visitor, own_home: Path) -> None:
    hostile = "<script>alert(1)</script> ![x](http://evil/x.png) [y](javascript:alert(1)) <img src=x>"
    a_session(place, own_home, hostile, hostile * 500, "short")
    for path in ("/transcripts", f"/transcripts/{ONE}", f"/transcripts/{ONE}/handoff?turn=1&turn=2"):
        page = visitor.see(path)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert 'href="javascript' not in page
    part = visitor.see("/transcripts", fragment="1")
    assert "&lt;script&gt;" in part


# --- A handoff -------------------------------------------------------------------------------------------------------


def filled(page: str) -> dict[str, str]:
    """What the form for a handoff has been filled with."""
    fields = dict(re.findall(r'<input id="(\w+)" type="text" name="\w+" value="([^"]*)"', page))
    fields |= dict(re.findall(r'<textarea id="(\w+)"[^>]*>(.*?)</textarea>', page, re.DOTALL))
    chosen = re.findall(r'<select id="(\w+)"[^>]*>.*?<option selected>([^<]*)</option>.*?</select>', page, re.DOTALL)
    return {name: unescape(value) for name, value in {**fields, **dict(chosen)}.items()}


def test_from_turns_to_a_card(place: Place, visitor: Visitor, own_home: Path) -> None:
    a_session(place, own_home)
    page = visitor.see(f"/transcripts/{ONE}/handoff?turn=1&turn=2")
    given = filled(page)
    assert given["title"] == "Why do the payments fail at night"
    assert "Retries must span ten minutes." in given["facts"]
    assert given["writer"] == "claude"
    assert "checked" not in page
    before = tree(place.workspace), tree(place.repo)
    typed = {**given, "title": "Payments fail at night", "card": "night-payments.md"}
    judged = visitor.press(page, "/transcripts/", **typed, act="judge")
    assert judged.status_code == 200
    assert "It is filed at once: memory/cards/night-payments.md" in shown(judged.text)
    assert (tree(place.workspace), tree(place.repo)) == before
    assert filled(judged.text)["title"] == "Payments fail at night"
    left = visitor.press(judged.text, "/transcripts/", **typed, act="leave")
    assert left.status_code == 303
    (file,) = (place.workspace / ".claude/memory-handoffs").glob("*.md")
    handoff = parse_handoff(file.read_text())
    assert handoff.title == "Payments fail at night"
    assert f"session {ONE}" in file.read_text()
    assert "turns 1, 2" in file.read_text()
    place.ingest()
    assert "Retries must span ten minutes." in place.card("night-payments.md")


def test_what_would_not_be_filed_is_not_left(place: Place, visitor: Visitor, own_home: Path) -> None:
    a_session(place, own_home)
    page = visitor.see(f"/transcripts/{ONE}/handoff?turn=2")
    before = tree(place.base)
    for change in ({"facts": f"The token is {a_token()}"}, {"card": "../../outside.md"}, {"title": "   "}):
        answer = visitor.press(page, "/transcripts/", **{**filled(page), **change}, act="leave")
        assert answer.status_code == 400
        kept = filled(answer.text)
        assert all(kept[name] == value for name, value in change.items())
    assert {path: digest for path, digest in tree(place.base).items() if ".sqlite" not in path} == {
        path: digest for path, digest in before.items() if ".sqlite" not in path
    }


def test_a_card_that_is_there_is_changed_on_request(place: Place, visitor: Visitor, own_home: Path) -> None:
    a_session(place, own_home)
    page = visitor.see(f"/transcripts/{ONE}/handoff?turn=1&turn=2")
    typed = {**filled(page), "card": "night-payments.md"}
    visitor.press(page, "/transcripts/", **typed, act="leave")
    place.ingest()
    typed["facts"] += "\nThe restart takes ninety seconds."
    again = visitor.press(page, "/transcripts/", **typed, act="judge")
    assert "covers the topic" in shown(again.text)
    assert "what is new is added to it" in shown(again.text)
    changed = visitor.press(page, "/transcripts/", **typed, update="1", act="judge")
    assert "It is filed at once" in shown(changed.text)
    assert "checked" in changed.text


def test_no_turn_and_no_such_turn(place: Place, visitor: Visitor, own_home: Path) -> None:
    a_session(place, own_home)
    assert visitor.get(f"/transcripts/{ONE}/handoff").status_code == 400
    assert visitor.get(f"/transcripts/{ONE}/handoff?turn=x&turn=-1&turn=0").status_code == 400
    assert visitor.see(f"/transcripts/{ONE}/handoff?turn=1&turn=9999999")
    answer = visitor.send(f"/transcripts/{ONE}/handoff", {"title": "x"}, with_word=False)
    assert answer.status_code == 400
    assert not (place.workspace / ".claude/memory-handoffs").exists()


def test_only_for_looking(place: Place, own_home: Path) -> None:
    a_session(place, own_home)
    visitor = Visitor(place, read_only=True)
    assert "checkbox" not in visitor.see(f"/transcripts/{ONE}")
    assert "csrf" not in visitor.see(f"/transcripts/{ONE}/handoff?turn=1")
    assert visitor.send(f"/transcripts/{ONE}/handoff", {"title": "x", "act": "leave"}).status_code == 403
    visitor.close()


TURNS = st.lists(st.tuples(st.sampled_from(("user", "assistant")), st.text(max_size=400)), max_size=6)


@given(TURNS)
def test_a_gist_fits_the_form(said: list[tuple[str, str]]) -> None:
    turns = [Turn("user" if role == "user" else "assistant", text, at, "") for at, (role, text) in enumerate(said)]
    gist = find_gist(turns, "a title")
    assert len(gist.title) <= 80
    assert len(gist.summary) <= 400
    assert len(gist.facts) <= 12
    assert all(len(fact) <= 300 and "\n" not in fact and fact.strip() for fact in gist.facts)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*\.md", gist.card)


def test_a_gist_leaves_out_code_and_marks() -> None:
    text = "## Findings\n\n```\nrm -rf everything in sight\n```\n\n1. The cache is shared by both.\n| a | table |"
    text += "\n> It is slow because of that."
    gist = find_gist([Turn("user", "Is it slow? Tell me.", 1, ""), Turn("assistant", text, 2, "")])
    assert gist.title == "Is it slow"
    assert gist.summary == "The cache is shared by both."
    assert gist.facts == ("It is slow because of that.",)
