"""Memory in a browser, without one: lists that lose nothing, files that show what is in them, acts on what was seen."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import CLAUDE, Place, a_card, a_handoff, tree, wait_until
from tests.support.histories import NAME, History
from tests.support.upkeep_place import point_at_all, put, upkeep, write_card
from tests.support.visitor import Visitor, shown
from truekeep.maintenance.survey.queries import Browse
from truekeep.memory.links import find_links, resolve_link
from truekeep.workspace import maintenance

CARDS = "memory/cards"


pytestmark = pytest.mark.usefixtures("in_the_foreground")


@pytest.fixture
def app(place: Place) -> Place:
    """A repository in which one file moved and another is gone."""
    history = History()
    history.commit(
        "2026-01-05",
        {
            "src/api.py": "def fetch(key):\n    return key\n",
            "src/old.py": "OLD = 'the same all the time'\n",
            "src/older.py": "OLDER = 'quite another text in here'\n",
            "src/dead.py": "DEAD = 'nobody misses it'\n",
        },
    )
    renames = {"src/old.py": "src/new.py", "src/older.py": "src/newer.py"}
    history.commit("2026-11-08", {"src/dead.py": None}, renames=renames)
    history.write(place.repo)
    (place.repo / CLAUDE).mkdir(parents=True, exist_ok=True)
    return place


def note(place: Place, name: str, body: str, **keys: str) -> Path:
    """A card about the repository, of the first of November."""
    text = a_card(name, body, **{"repository": NAME, "updated": "2026-11-01", **keys})
    return put(place, f"{CARDS}/{name}.md", text)


def settle(place: Place) -> None:
    """Wait until no card is so young that it might change without its times moving."""
    newest = max(path.lstat().st_ctime_ns for path in (place.workspace / CARDS).iterdir())
    while time.time_ns() - newest <= 2_100_000_000:
        time.sleep(0.05)


def listed(page: str) -> list[str]:
    """The files that a list shows, in its order."""
    return re.findall(r'<tr data-row>\s*<td[^>]*><a href="/memory/file/([^"]*)"', page)


def names(page: str) -> list[str]:
    return [path.rpartition("/")[2].removesuffix(".md") for path in listed(page)]


# --- Lists -----------------------------------------------------------------------------------------------------------


def test_every_file_is_in_its_list_once(place: Place, visitor: Visitor) -> None:
    expected = sorted(f"card-{number:03}" for number in range(120))
    for name in expected:
        write_card(place, name, f"Text of {name}.")
    found: list[str] = []
    for page in (1, 2, 3):
        found += names(visitor.see("/memory", page=str(page), store="cards", q="card-"))
    assert found == expected
    assert "There is no page 9" in visitor.read("/memory", page="9", q="card-")


def test_a_list_of_cards_counts_them_as_status_does(place: Place, visitor: Visitor) -> None:
    for name in ("one", "two"):
        write_card(place, name, f"Text of {name}.")
    point_at_all(place)
    put(place, f"{CARDS}/broken.md", b"\xff\xfe no text")
    assert "of 4: 2 cards and 2 other files" in visitor.read("/memory", store="cards")
    assert visitor.read("/memory", store="cards", q="cards/one").count("other file") == 0


def test_a_card_that_says_no_day_is_of_an_unknown_age(place: Place, visitor: Visitor) -> None:
    put(place, f"{CARDS}/undated.md", "---\ntopic: Undated\n---\n\nText.\n")
    assert "age unknown" in visitor.read("/memory", q="undated")
    assert "age unknown" in visitor.read(f"/memory/file/{CARDS}/undated.md")
    assert listed(visitor.see("/memory", q="undated", age="7d")) == []
    assert listed(visitor.see("/memory", q="undated", age="over-90d")) == [f"{CARDS}/undated.md"]


def test_stores_have_lists_of_their_own(place: Place, visitor: Visitor) -> None:
    write_card(place, "one", "Text.")
    put(place, "memory/2026-11-10.md", "# Log\n\n- Something happened.\n")
    put(place, "memory/research/birds.md", "# Birds\n")
    put(place, "memory/handoff-inbox/waits.md", "no memory yet\n")
    assert listed(visitor.see("/memory", store="cards", q="one")) == [f"{CARDS}/one.md"]
    assert "memory/2026-11-10.md" in listed(visitor.see("/memory", store="logs"))
    assert "memory/research/birds.md" in listed(visitor.see("/memory", store="documents"))
    everything = listed(visitor.see("/memory", store="all"))
    assert {f"{CARDS}/one.md", "memory/2026-11-10.md", "memory/research/birds.md"} <= set(everything)
    assert not any("handoff-inbox" in path for path in everything)


def test_what_a_list_is_filtered_by(place: Place, visitor: Visitor) -> None:
    write_card(place, "alpha", "Text.", topic="Queues and workers", day="2020-01-01", repository="github.com/me/app")
    write_card(place, "beta", "Text.", topic="Workers only", day="2021-01-01")
    write_card(place, "gamma", "Text.", topic="100% of _all_", day="2022-01-01", more="x: y\n")
    put(
        place,
        f"{CARDS}/delta.md",
        "---\ntopic: Tagged\ncategory: odd\ntags: [Blue, red]\ncreated: 2023-01-01\n---\nT\n",
    )

    def found(**query: str) -> list[str]:
        return names(visitor.see("/memory", store="cards", **query))

    assert found(q="WORKERS") == ["alpha", "beta"]
    assert found(q="queues workers") == ["alpha"]
    assert found(q="100%") == ["gamma"]
    assert found(q="%") == ["gamma"]
    assert found(repo="github.com/me/app") == ["alpha"]
    assert "beta" in found(repo="none")
    assert "alpha" not in found(repo="none")
    assert found(category="odd") == ["delta"]
    assert found(tag="blue") == ["delta"]
    assert found(tag="blu") == []
    assert [name for name in found(sort="oldest") if name != "MEMORY"] == ["alpha", "beta", "gamma", "delta"]
    assert [name for name in found(sort="newest") if name != "MEMORY"] == ["delta", "gamma", "beta", "alpha"]
    assert "alpha" in found(age="over-365d")
    assert "alpha" not in found(age="30d")
    assert found(q="'; DROP TABLE files --") == []
    assert "alpha" in found(sort="path; --", verdict="' OR 1", age="1e9d")


def test_a_part_of_the_page_for_who_types(place: Place, visitor: Visitor) -> None:
    write_card(place, "alpha", "Text.")
    part = visitor.see("/memory", q="alpha", fragment="1")
    assert names(part) == ["alpha"]
    assert "<html" not in part
    assert "<form" not in part


def test_refuted_memories_come_first_and_edited_ones_are_not_called_refuted(app: Place, visitor: Visitor) -> None:
    note(app, "fine", "The call is `fetch` in `src/api.py`.")
    note(app, "stale", "It is in `src/old.py`.")
    note(app, "dead", "The dead one is `src/dead.py`.")
    with app.open() as workspace:
        workspace.verification.verify()
    assert names(visitor.see("/memory", store="cards", sort="refuted"))[:2] == ["dead", "stale"]
    assert sorted(names(visitor.see("/memory", store="cards", verdict="refuted"))) == ["dead", "stale"]
    assert names(visitor.see("/memory", store="cards", verdict="holds")) == ["fine"]
    assert "1 moved" in visitor.read("/memory", q="stale")
    file = app.workspace / CARDS / "stale.md"
    file.write_text(file.read_text().replace("src/old.py", "src/new.py"))
    later = time.time() + 5
    os.utime(file, (later, later))
    os.utime(file.parent)
    assert names(visitor.see("/memory", store="cards", verdict="refuted")) == ["dead"]
    assert "edited since its check" in visitor.read("/memory", q="stale")


def test_very_many_new_files_are_read_without_somebody_waiting(
    place: Place, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MAX_FILES_TO_WAIT_FOR", 3)
    for number in range(12):
        write_card(place, f"card-{number}", "Text.")
    answer = visitor.get("/memory")
    assert answer.status_code == 503
    assert "not been looked through yet" in shown(answer.text)
    assert wait_until(lambda: visitor.get("/memory").status_code != 503)
    assert len([name for name in names(visitor.see("/memory")) if name.startswith("card-")]) == 12


# --- One file --------------------------------------------------------------------------------------------------------


def test_a_file_with_its_claims(app: Place, visitor: Visitor) -> None:
    note(app, "mixed", "# How\n\n`fetch` is in `src/api.py`.\n\nThe rest is in `src/old.py`.")
    page = visitor.see(f"/memory/file/{CARDS}/mixed.md", check="1")
    assert re.search(r'<mark class="verdict moved"[^>]*>src/old\.py</mark>', page)
    assert re.search(r'<mark class="verdict confirmed"[^>]*>src/api\.py</mark>', page)
    text = shown(page)
    assert "src/new.py" in text
    assert "2026-11-08" in text
    assert "<h2>How</h2>" in page  # below the page's own heading
    # What was found is kept: a later look needs no check.
    assert '<mark class="verdict moved"' in visitor.see(f"/memory/file/{CARDS}/mixed.md")


def test_without_a_checkout_it_says_why_nothing_is_checked(place: Place, visitor: Visitor) -> None:
    write_card(place, "other", "It is in `src/x.py`.", repository="github.com/nobody/nothing")
    page = visitor.read(f"/memory/file/{CARDS}/other.md")
    assert "no checkout here is of its repository" in page
    assert "Check now" in page
    assert "moved" not in visitor.read(f"/memory/file/{CARDS}/other.md", check="1")


def test_one_edit_is_written_at_once(app: Place, visitor: Visitor) -> None:
    file = note(app, "stale", "It is in `src/old.py`.")
    page = visitor.see(f"/memory/file/{CARDS}/stale.md", check="1")
    answer = visitor.press(page, "/memory/repair/")
    assert answer.status_code == 303
    assert "`src/new.py`" in file.read_text()
    assert "src/old.py" not in file.read_text()
    after = visitor.see(answer.headers["location"])
    assert '<mark class="verdict confirmed"' in after
    with app.open() as workspace:
        (entry, _), *_ = workspace.history.entries(str(file))
        assert entry.verb == "repaired"
        workspace.history.undo(entry.id)
    assert "src/old.py" in file.read_text()


def test_several_edits_are_shown_before(app: Place, visitor: Visitor) -> None:
    file = note(app, "stale", "It is in `src/old.py`.\n\nAnd in `src/older.py`.")
    before = file.read_bytes()
    page = visitor.see(f"/memory/file/{CARDS}/stale.md", check="1")
    answer = visitor.press(page, "/memory/repair/")
    assert answer.status_code == 200
    assert file.read_bytes() == before
    assert "+It is in `src/new.py`." in shown(answer.text)
    done = visitor.press(answer.text, "/memory/repair/")
    assert done.status_code == 303
    assert "src/new.py" in file.read_text()
    assert "src/newer.py" in file.read_text()


def test_what_is_gone_becomes_a_draft_and_not_an_edit(app: Place, visitor: Visitor) -> None:
    file = note(app, "dead", "The dead one is `src/dead.py`.\n\nIt matters.")
    before = file.read_bytes()
    page = visitor.see(f"/memory/file/{CARDS}/dead.md", check="1")
    answer = visitor.press(page, "/memory/repair/")
    assert "waits in" in shown(answer.text)
    assert app.drafts() == []
    assert visitor.press(answer.text, "/memory/repair/").status_code == 303
    assert len(app.drafts()) == 1
    assert file.read_bytes() == before
    again = visitor.press(page, "/memory/repair/")
    assert "nothing+to+repair" in again.headers["location"]


def test_a_person_confirms_a_card(place: Place, visitor: Visitor) -> None:
    file = write_card(place, "holds", "It holds.")
    page = visitor.see(f"/memory/file/{CARDS}/holds.md")
    assert visitor.press(page, "/memory/confirm/").status_code == 303
    assert "confirmed: " in file.read_text()
    assert "confirmed by a person" in visitor.read(f"/memory/file/{CARDS}/holds.md")


def test_odd_names_lead_to_their_files(place: Place, visitor: Visitor) -> None:
    file = write_card(place, "a#b?c ü", "It holds.")
    (path,) = listed(visitor.see("/memory", q="a#b"))
    page = visitor.see(f"/memory/file/{path}")
    answer = visitor.press(page, "/memory/confirm/")
    assert "confirmed: " in file.read_text()
    assert "It holds." in visitor.read(answer.headers["location"].partition("?")[0])


def test_a_card_is_dropped_with_a_reason_and_comes_back(place: Place, visitor: Visitor) -> None:
    write_card(place, "old", "It is old.")
    write_card(place, "other", "See [it](old.md).")
    point_at_all(place)
    before = tree(place.workspace)
    ask = visitor.see(f"/memory/drop/{CARDS}/old.md")
    assert "Other memories point at it" in shown(ask)
    assert tree(place.workspace) == before
    assert visitor.press(ask, "/memory/drop/", reason="   ").status_code == 400
    assert tree(place.workspace) == before
    answer = visitor.press(ask, "/memory/drop/", reason="the thing is gone")
    assert answer.status_code == 303
    number = re.match(r"/history/(\d+)", answer.headers["location"])
    assert number is not None
    assert "old.md" not in place.index()
    assert not (place.workspace / CARDS / "old.md").exists()
    assert visitor.get(f"/memory/file/{CARDS}/old.md").status_code == 404
    assert "old" not in names(visitor.see("/memory", store="cards"))
    with place.open() as workspace:
        workspace.history.undo(int(number[1]))
    assert tree(place.workspace) == before


@pytest.mark.parametrize("act", ["confirm", "drop", "repair"])
def test_a_file_that_changed_meanwhile_is_left_alone(app: Place, visitor: Visitor, act: str) -> None:
    file = note(app, "stale", "It is in `src/old.py`.")
    page = visitor.see(f"/memory/file/{CARDS}/stale.md", check="1")
    if act == "drop":
        page = visitor.see(f"/memory/drop/{CARDS}/stale.md")
    file.write_text(file.read_text() + "\nSomebody wrote <this> meanwhile.\n")
    before = tree(app.workspace)
    answer = visitor.press(page, f"/memory/{act}/", reason="my own words")
    assert answer.status_code == 409
    assert "+Somebody wrote <this> meanwhile." in shown(answer.text)
    assert "<this>" not in answer.text
    assert ("my own words" in answer.text) == (act == "drop")
    assert tree(app.workspace) == before


def test_a_form_from_elsewhere_does_nothing(place: Place, visitor: Visitor) -> None:
    write_card(place, "one", "Text.")
    before = tree(place.workspace)
    for act in ("confirm", "drop", "repair"):
        answer = visitor.send(f"/memory/{act}/{CARDS}/one.md", {"reason": "x", "seen": "x"}, with_word=False)
        assert answer.status_code == 400
        assert visitor.send(f"/memory/{act}/{CARDS}/one.md", {"reason": "x", "seen": "x"}).status_code == 409
    assert tree(place.workspace) == before


def test_only_for_looking(app: Place) -> None:
    note(app, "stale", "It is in `src/old.py`.")
    visitor = Visitor(app, read_only=True)
    page = visitor.see(f"/memory/file/{CARDS}/stale.md", check="1")
    assert "csrf" not in page
    assert "/memory/drop/" not in page
    assert "csrf" not in visitor.see(f"/memory/drop/{CARDS}/stale.md")
    for act in ("confirm", "drop", "repair"):
        assert visitor.send(f"/memory/{act}/{CARDS}/stale.md", {"seen": "x", "reason": "x"}).status_code == 403
    visitor.close()


# --- What must not be shown, and how things are shown ----------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md", "..%2Foutside.md", "memory/../../outside.md", "memory%2F..%2F..%2Foutside.md",
        "/etc/passwd", "%2Fetc%2Fpasswd", ".truekeep/config.toml", "memory/cards/link.md", "memory/linked/inner.md",
        "memory/handoff-inbox/draft.md", "memory/.hidden.md", "AGENTS.md", "memory/cards", "memory/cards/", "",
        "memory/cards/none.md", "memory/cards/x%00.md", "%E2%80%AE.md", "C:%5Cx.md", "memory/cards/pipe.md",
    ],
)  # fmt: skip
def test_nothing_outside_of_memory_is_shown(place: Place, visitor: Visitor, path: str) -> None:
    (place.base / "outside.md").write_text("SECRET outside\n")
    (place.base / "folder").mkdir()
    (place.base / "folder" / "inner.md").write_text("SECRET inner\n")
    for name in ("memory/handoff-inbox/draft.md", "memory/.hidden.md", "AGENTS.md"):
        put(place, name, "SECRET inside\n")
    (place.workspace / CARDS).mkdir(parents=True, exist_ok=True)
    (place.workspace / CARDS / "link.md").symlink_to(place.base / "outside.md")
    (place.workspace / "memory" / "linked").symlink_to(place.base / "folder")
    os.mkfifo(place.workspace / CARDS / "pipe.md")
    for query in ("", "?view=lines", "?why=1", "?check=1", "?line=1"):
        answer = visitor.get(f"/memory/file/{path}{query}")
        assert answer.status_code == 404, answer.text
        assert "SECRET" not in answer.text
    assert visitor.get(f"/memory/drop/{path}").status_code == 404
    for act in ("confirm", "drop", "repair"):
        assert visitor.send(f"/memory/{act}/{path}", {"seen": "x", "reason": "x"}).status_code == 404


def test_a_link_that_takes_the_place_of_a_file_is_not_followed(place: Place, visitor: Visitor) -> None:
    file = write_card(place, "one", "Text.")
    assert visitor.get(f"/memory/file/{CARDS}/one.md").status_code == 200
    (place.base / "outside.md").write_text("SECRET\n")
    file.unlink()
    file.symlink_to(place.base / "outside.md")
    answer = visitor.get(f"/memory/file/{CARDS}/one.md")
    assert answer.status_code == 404
    assert "SECRET" not in answer.text


def test_hostile_text_is_text(place: Place, visitor: Visitor) -> None:
    body = "<script>alert(1)</script> ![x](http://evil/x.png) [y](javascript:alert(1))\u202e\u200b `a`"
    name = "<img src=x onerror=alert(1)>"
    put(place, f"{CARDS}/{name}.md", a_card("<b>topic</b>\u202e", body, odd="<i>v</i>"))
    for query in ({}, {"view": "lines"}, {"why": "1"}):
        page = visitor.see(f"/memory/file/{CARDS}/{quote(name)}.md", **query)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "<b>topic" not in page
        assert "<i>v" not in page
        assert "\u202e" not in page
        assert "\u200b" not in page
        assert 'href="javascript' not in page
        assert "\\u202e" in page
    assert "<img" not in visitor.see("/memory", store="cards")


def test_what_is_not_text_is_said_to_be_none(place: Place, visitor: Visitor) -> None:
    put(place, f"{CARDS}/binary.md", b"\x00\xff\xfe binary")
    page = visitor.read(f"/memory/file/{CARDS}/binary.md")
    assert "not UTF-8 text" in page
    put(place, f"{CARDS}/empty.md", b"")
    for query in ({}, {"view": "lines"}, {"from": "99"}):
        visitor.see(f"/memory/file/{CARDS}/empty.md", **query)


def test_broken_frontmatter_is_named(place: Place, visitor: Visitor) -> None:
    put(place, f"{CARDS}/broken.md", "---\ntopic: a\ntopic: b\n---\nBody stays.\n")
    page = visitor.read(f"/memory/file/{CARDS}/broken.md")
    assert "frontmatter cannot be read" in page
    assert "Body stays." in page


@pytest.mark.parametrize("view", ["", "lines"])
def test_a_huge_file_is_read_in_parts_and_all_of_it(place: Place, visitor: Visitor, view: str) -> None:
    total = 50_000
    put(place, "memory/research/huge.md", "".join(f"line {number} of it\n" for number in range(1, total + 1)))
    page = visitor.see("/memory/file/memory/research/huge.md", view=view)
    assert len(page) < 400_000
    more = re.search(r'href="([^"]*from=(\d+)[^"]*)"[^>]*>More', page)
    assert more is not None
    last = int(more[2]) - 1
    assert f"line {last} of it" in page
    assert f"line {last + 1} of it" not in page
    following = visitor.see(more[1].replace("&amp;", "&"))
    assert f"line {last + 1} of it" in following
    end = visitor.see("/memory/file/memory/research/huge.md", view=view, **{"from": str(total - 3)})
    assert f"line {total} of it" in end
    assert ">More<" not in end


def test_one_endless_line_is_cut(place: Place, visitor: Visitor) -> None:
    put(place, "memory/research/long.md", "x" * 3_000_000 + "\n")
    assert len(visitor.see("/memory/file/memory/research/long.md", view="lines")) < 100_000


def test_a_hit_leads_to_its_lines(place: Place, visitor: Visitor) -> None:
    put(place, "memory/research/some.md", "".join(f"line {number}\n" for number in range(1, 2_001)))
    page = visitor.see("/memory/file/memory/research/some.md", line="1501-1503")
    wanted = re.findall(r'<tr id="L(\d+)" class="wanted">', page)
    assert wanted == ["1501", "1502", "1503"]
    assert re.search(r'<tr id="L1501".*?<td class="text">line 1501</td>', page, re.DOTALL)
    for odd in ("0", "99999999", "-3", "5-2", "x", "5-x"):
        visitor.see("/memory/file/memory/research/some.md", line=odd)


def test_claims_are_marked_where_they_stand_in_the_lines(app: Place, visitor: Visitor) -> None:
    note(app, "stale", "here `src/old.py` there")
    visitor.see(f"/memory/file/{CARDS}/stale.md", check="1")
    page = visitor.see(f"/memory/file/{CARDS}/stale.md", view="lines")
    assert re.search(r'<td class="text">here `<mark class="verdict moved"[^>]*>src/old\.py</mark>` there</td>', page)


def test_who_wrote_which_line(place: Place, visitor: Visitor) -> None:
    place.leave(a_handoff())
    place.ingest()
    file = place.workspace / CARDS / "staging-proxy.md"
    file.write_text(file.read_text() + "By hand.\n")
    page = visitor.see(f"/memory/file/{CARDS}/staging-proxy.md", why="1")
    rows = re.findall(r'<tr id="L\d+".*?</tr>', page, re.DOTALL)
    assert "by hand" in shown(rows[-1])
    assert "claude" in shown(rows[0])
    assert "/history/1" in rows[0]
    text = shown(page)
    assert "Staging sits behind a proxy" in text  # the handoff that it comes from
    assert "promoted" in text


def test_what_an_entry_changed(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    with place.open() as workspace:
        path = f"{CARDS}/staging-proxy.md"
        (entry, _), *_ = workspace.history.entries(str(place.workspace / path))
        changes = workspace.history.differences(path, [entry.id])
        assert any(line.startswith("+") and "8443" in line for line in changes[entry.id])
        assert not any(line.startswith("-") and not line.startswith("---") for line in changes[entry.id])
        workspace.history.undo(entry.id)
        (undone, _), *_ = workspace.history.entries(str(place.workspace / path))
        back = workspace.history.differences(path, [undone.id])[undone.id]
        assert any(line.startswith("-") and "8443" in line for line in back)
        assert "+++ nothing" in back


def test_what_is_around_a_card(place: Place, visitor: Visitor) -> None:
    same = "The nightly export writes forty tables into one file, and accounting reads it at six in the morning."
    same += " It needs four gigabytes of free disk, must never run twice at once, and mails its owner when it fails."
    write_card(
        place, "one", f"{same} See [two](two.md) and [[three]] and [none](none.md).", repository="github.com/me/a"
    )
    write_card(place, "two", f"{same} See memory/cards/one.md.", repository="github.com/me/a", topic="Two")
    write_card(place, "three", "Other things.", topic="ONE")
    settle(place)
    upkeep(place).duplicates(dry_run=True)  # compares the cards
    page = visitor.see(f"/memory/file/{CARDS}/one.md")
    around = shown(page[page.index("Around it") :])
    links = around[around.index("Links to") :]
    assert "Two" in links
    assert "none.md not there" in links
    assert "Linked from" in around
    assert "Same topic ONE" in around
    assert "alike" in around
    assert "Same repository" in around


def test_a_card_can_be_asked_for_by_its_name(place: Place, visitor: Visitor) -> None:
    write_card(place, "one", "Text.")
    for name in ("one", "one.md", "cards/one.md"):
        answer = visitor.get(f"/memory/file/{name}")
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/memory/file/{CARDS}/one.md"


def test_an_extra_path_is_shown_and_nothing_beside_it(place: Place) -> None:
    extra = place.base / "notes"
    extra.mkdir()
    (extra / "note.md").write_text("An extra <note>.\n")
    (place.base / "secret.md").write_text("SECRET\n")
    place.configure(f'[recall]\nextra_paths = ["{extra}"]\n')
    visitor = Visitor(place)
    page = visitor.see(f"/memory/file/{extra}/note.md", line="1")
    assert "An extra &lt;note&gt;." in page
    assert visitor.get(f"/memory/file/{place.base}/secret.md").status_code == 404
    visitor.close()


# --- Links, and the survey's answers ---------------------------------------------------------------------------------


@given(st.text(max_size=60), st.sampled_from(("MEMORY.md", "memory/cards/a.md", "memory/x/y/z.md")))
def test_a_link_never_leads_out(href: str, path: str) -> None:
    target = resolve_link(href, path)
    assert not target.startswith(("..", "/"))
    assert target == "" or target.endswith(".md")


@given(st.text(alphabet="[]()ab./#m d\n`memory", max_size=300))
def test_links_stand_in_the_lines_that_they_are_said_to_be_in(text: str) -> None:
    lines = text.split("\n")
    for target, line in find_links(text, "memory/cards/a.md"):
        stem = target.rpartition("/")[2].removesuffix(".md")
        assert stem in lines[line - 1]


def test_links_of_every_kind() -> None:
    text = "[a](b.md#x) and [[c]]\n[[d|said]] `memory/ops/CHANGELOG.md`, [w](https://x/y.md) [r](../projects/p.md)"
    assert list(find_links(text, "memory/cards/a.md")) == [
        ("memory/cards/b.md", 1),
        ("memory/cards/c.md", 1),
        ("memory/cards/d.md", 2),
        ("memory/ops/CHANGELOG.md", 2),
        ("memory/projects/p.md", 2),
    ]


def test_a_lost_file_of_facts_takes_its_verdicts_along(app: Place) -> None:
    note(app, "stale", "It is in `src/old.py`.")
    with app.open() as workspace:
        workspace.verification.verify()
        assert workspace.files.browse(Browse(verdict="refuted"))[1] == 1
    for file in (app.workspace / ".truekeep").glob("facts.sqlite*"):
        file.unlink()
    with app.open() as workspace:
        assert workspace.files.browse(Browse(verdict="refuted"))[1] == 0
        assert workspace.files.browse(Browse(store="cards", text="stale", verdict="unchecked"))[1] == 1
