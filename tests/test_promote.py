"""Promotion: what logs keep saying or call structural, and no card holds, is proposed with the lines it came from."""

from __future__ import annotations

from tests.helpers import Place, tree
from tests.upkeep_place import put, upkeep, write_card

EXPORT = "The nightly export must never run while the ledger is being compacted."
STRUCTURAL = "- [decision|i=0.9] Cards are written in English, whatever the session speaks\n"


def log(place: Place, day: str, *lines: str) -> None:
    put(place, f"memory/{day}.md", f"# {day}\n\n" + "".join(f"- {line}\n" for line in lines))


def three_days(place: Place) -> None:
    log(place, "2026-11-02", EXPORT, "Ran the tests.")
    log(place, "2026-11-05", "Again: the nightly export must not ever run while the ledger is compacted!")
    log(place, "2026-11-09", EXPORT, "Ran the tests.")


def test_what_three_days_say_is_proposed_with_its_places(place: Place) -> None:
    three_days(place)
    (offered,) = upkeep(place).promote().offered
    assert offered.state == "proposed"
    assert dict(offered.idea.reasons)["repeated"].startswith("said on 3 days, from 2026-11-02")
    (draft,) = place.drafts()
    text = draft.read_text()
    for cited in ("memory/2026-11-02.md:3", "memory/2026-11-05.md:3", "memory/2026-11-09.md:3"):
        assert cited in text
    with place.open() as workspace:
        workspace.approve(draft.stem)
    (card,) = place.cards()
    assert EXPORT in place.card(card)
    assert "no card holds it" not in place.card(card)
    assert place.index().count(card) == 1
    assert upkeep(place).promote().offered == ()  # now a card holds it


def test_two_days_are_not_often(place: Place) -> None:
    log(place, "2026-11-02", EXPORT)
    log(place, "2026-11-09", EXPORT, EXPORT)
    assert upkeep(place).promote().offered == ()


def test_a_structural_entry_needs_to_be_said_once(place: Place) -> None:
    put(place, "memory/2026-03-01.md", STRUCTURAL + "- [lesson|i=0.7] Partial patches nuke the entire list of things\n")
    (offered,) = upkeep(place).promote().offered
    assert [code for code, _ in offered.idea.reasons] == ["structural"]
    assert "i=0.9" in offered.idea.reasons[0][1]


def test_what_a_card_holds_is_not_proposed(place: Place) -> None:
    put(place, "memory/2026-03-01.md", STRUCTURAL)
    write_card(place, "language", "Cards are written in English, whatever language the session speaks.")
    assert upkeep(place).promote().offered == ()


def test_a_second_run_changes_nothing_and_a_rejection_is_kept(place: Place) -> None:
    three_days(place)
    upkeep(place).promote()
    before = tree(place.workspace)
    assert [item.state for item in upkeep(place).promote().offered] == ["waiting"]
    assert tree(place.workspace) == before
    with place.open() as workspace:
        workspace.reject(place.drafts()[0].stem)
    log(place, "2026-11-12", EXPORT)  # said once more; the answer is still no
    assert [item.state for item in upkeep(place).promote().offered] == ["rejected"]


def test_a_dry_run_writes_nothing(place: Place) -> None:
    three_days(place)
    before = tree(place.workspace)
    assert [item.state for item in upkeep(place).promote(dry_run=True).offered] == ["proposed"]
    assert tree(place.workspace) == before


def test_who_has_many_to_decide_on_gets_twenty(place: Place) -> None:
    words = [f"{first}{second}" for first in ("bal", "cor", "dun", "fen", "gil") for second in "aeiou"]
    lines = [f"- [decision|i=0.95] {one} {one}x {one}y keeps {one}z away from {one}q\n" for one in words]
    put(place, "memory/2026-03-01.md", "".join(lines))
    states = [item.state for item in upkeep(place).promote().offered]
    assert (states.count("proposed"), states.count("later")) == (20, 5)
    assert len(place.drafts()) == 20
    assert [item.state for item in upkeep(place).promote().offered].count("waiting") == 20


def test_the_card_name_of_another_is_not_taken(place: Place) -> None:
    three_days(place)
    name = upkeep(place).promote(dry_run=True).offered[0].idea.target.rpartition("/")[2]
    write_card(place, name.removesuffix(".md"), "Something else altogether.", topic="Other")
    (offered,) = upkeep(place).promote().offered
    assert offered.idea.target.endswith("-2.md")


def test_the_same_words_about_another_service_are_another_statement(place: Place) -> None:
    for number, name in enumerate(("billing", "parcel", "search")):
        text = f"Use the {name} client for the {name} gateway; the generated one leaks connections."
        log(place, f"2026-11-0{number + 1}", text)
        write_card(place, f"{name}-notes", f"- {text.replace(name, f'{name}-old')}")
    assert upkeep(place).promote().offered == ()
    put(
        place,
        "memory/2026-11-05.md",
        "- [decision|i=0.9] Use the picking client for the stock gateway; the other leaks.\n",
    )
    (offered,) = upkeep(place).promote().offered
    assert "picking client" in offered.idea.text
