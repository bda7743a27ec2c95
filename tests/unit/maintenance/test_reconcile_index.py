"""The index against its cards: names of every kind, cards that cannot be read, and cards that are away for a moment."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, run_cli, tree
from tests.support.upkeep_place import point_at_all, put, upkeep, write_card
from tests.unit.workspace.test_cards import on_a_terminal
from truekeep.integrations.schedule.run import run_job
from truekeep.maintenance.reconcile import Disagreement, compare_index
from truekeep.maintenance.survey.service import CardFacts
from truekeep.memory.memory_index import linked_cards
from truekeep.workspace.machine_role import side_of
from truekeep.workspace.reconciliation import Reconciliation
from truekeep.workspace.repository_instructions import RepositoryInstructions


def index_found(place: Place) -> list[Disagreement]:
    return [item for item in upkeep(place).reconcile().found if item.rule.startswith("index-")]


def settled(place: Place) -> bytes:
    """The index after a fix; a second one changes nothing."""
    upkeep(place).reconcile(fix=True)
    before = tree(place.workspace)
    assert upkeep(place).reconcile(fix=True).done == ()
    assert tree(place.workspace) == before
    return (place.workspace / "MEMORY.md").read_bytes()


# Names.


@pytest.mark.parametrize(
    "name", ["my card", "über uns", "c# (old)", "100%", "a\\b", "日本語", "a%20b", "[x](y)", "q'\"q"]
)
def test_a_card_of_any_name_gets_one_line_once(place: Place, name: str) -> None:
    write_card(place, name, "Text.", topic="First topic")
    data = settled(place)
    assert linked_cards(data) == {f"{name}.md"}
    assert data.count(b"First topic") == 1


@pytest.mark.parametrize("link", ["memory/cards/my%20card.md", "<memory/cards/my card.md>", "memory/cards/my card.md"])
def test_a_persons_link_to_a_name_with_a_blank_counts(place: Place, link: str) -> None:
    write_card(place, "my card", "Text.", topic="Mine")
    put(place, "MEMORY.md", f"# Memory\n\n- [Mine]({link})\n")
    before = place.index()
    assert index_found(place) == []
    settled(place)
    assert place.index() == before
    (place.workspace / "memory" / "cards" / "my card.md").unlink()
    settled(place)
    assert place.index() == "# Memory\n\n"


_NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=12)


@pytest.mark.slow
@given(st.lists(_NAME.filter(lambda name: name[0] != "."), max_size=6, unique=True))
@settings(max_examples=200, deadline=None)
def test_the_lines_that_fixing_writes_are_the_lines_that_are_found(names: list[str]) -> None:
    from truekeep.memory.memory_index import Pointers

    cards = [
        CardFacts(f"memory/cards/{name}.md", f"Topic of {name}", "topic", "2026-01-01", "2026-01-01", "", "", 10)
        for name in names
    ]
    pointers = Pointers(b"# Memory\n")
    found = list(compare_index(b"# Memory\n", cards, lambda _: False))
    assert len(found) == len(names)
    for _, repair in found:
        assert repair.point is not None
        pointers.point_at(*repair.point, 0)
    again = [item for item, _ in compare_index(pointers.render(), cards, lambda _: True)]
    assert again == []


# Cards that are there, but cannot be read.


def test_lines_of_cards_that_cannot_be_read_stay(place: Place) -> None:
    folder = place.workspace / "memory" / "cards"
    put(place, "memory/cards/latin.md", "---\ntopic: Caf\xe9\n---\n\nText.\n".encode("latin-1"))
    (place.base / "elsewhere.md").write_text("---\ntopic: Else\n---\n")
    (folder / "linked.md").symlink_to(place.base / "elsewhere.md")
    (folder / "folder.md").mkdir()
    write_card(place, "proxy", "Text.", topic="Proxy")
    names = ("latin", "linked", "folder", "Proxy", "gone")
    put(place, "MEMORY.md", "# Memory\n\n" + "".join(f"- [{name}](memory/cards/{name}.md)\n" for name in names))
    by_rule: dict[str, dict[str, str]] = {}
    for item in index_found(place):
        by_rule.setdefault(item.rule, {})[item.place] = f"{item.action}: {item.other_says}"
    assert by_rule == {
        "index-unread": {
            "MEMORY.md:3": "person: is not UTF-8 text",
            "MEMORY.md:4": "person: is a symlink",
            "MEMORY.md:5": "person: is not a regular file",
            "MEMORY.md:6": "person: is called proxy.md",
        },
        "index-dangling": {"MEMORY.md:7": "fix: there is no such card"},
    }
    settled(place)
    assert place.index() == "# Memory\n\n" + "".join(f"- [{name}](memory/cards/{name}.md)\n" for name in names[:4])


def test_two_cards_that_differ_in_letter_case_have_a_line_each(place: Place) -> None:
    write_card(place, "proxy", "Text.", topic="Proxy")
    write_card(place, "Proxy", "Other text.", topic="Other")
    put(place, "MEMORY.md", "# Memory\n\n- [Other](memory/cards/Proxy.md)\n")
    assert linked_cards(settled(place)) == {"proxy.md", "Proxy.md"}


def test_accents_that_are_spelled_in_another_way_are_the_same_name(place: Place) -> None:
    write_card(place, "über", "Text.", topic="About")  # composed
    put(place, "MEMORY.md", "# Memory\n\n- [About](memory/cards/u\u0308ber.md)\n")
    (item,) = index_found(place)
    assert (item.rule, item.action) == ("index-unread", "person")
    before = place.index()
    settled(place)
    assert place.index() == before


def test_an_index_that_is_not_utf8_keeps_its_lines(place: Place) -> None:
    write_card(place, "one", "Text.", topic="One")
    put(
        place,
        "MEMORY.md",
        "# Memory\n\n- [Ä](memory/cards/one.md)\n- see [Ö](memory/cards/ö.md) first\n".encode("latin-1"),
    )
    data = settled(place)
    assert "- [Ä](memory/cards/one.md)".encode("latin-1") in data
    assert "- see [Ö](memory/cards/ö.md) first".encode("latin-1") in data


# Cards that are away for a moment.


def many_cards(place: Place, count: int) -> None:
    for number in range(count):
        write_card(place, f"card-{number:03}", "Text.", topic=f"Topic {number}")
    point_at_all(place)


def run_at_night(place: Place) -> str:
    with place.open() as workspace:
        return run_job(workspace, side_of(workspace), now=lambda: NOW, patience=0).why


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 40])
def test_cards_that_are_away_for_a_moment_cost_no_line(place: Place, count: int) -> None:
    many_cards(place, count)
    folder, away = place.workspace / "memory" / "cards", place.base / "away"
    before = place.index()
    shutil.move(folder, away)
    said = run_at_night(place)
    assert f"{count} of {count} lines point at cards that are not there" in said
    assert "reconcile --fix --force" in said
    assert place.index() == before
    done = run_cli("reconcile", "--fix", "--json", "-w", str(place.workspace))
    told = json.loads(done.stdout)
    assert (told["done"], told["open"]) == ([], count)
    assert "--force" in told["held"]
    assert place.index() == before
    shutil.move(away, folder)
    assert index_found(place) == []


@pytest.mark.slow
def test_most_cards_gone_are_held_back_until_somebody_says_so(place: Place) -> None:
    many_cards(place, 20)
    for number in range(11):
        (place.workspace / "memory" / "cards" / f"card-{number:03}.md").unlink()
    before = place.index()
    done = run_cli("reconcile", "--fix", "-w", str(place.workspace))
    assert "held back MEMORY.md: 11 of 20 lines" in done.stdout
    assert place.index() == before
    done = run_cli("reconcile", "--fix", "--force", "-w", str(place.workspace))
    assert place.index().count("memory/cards/") == 9
    with place.open() as workspace:
        workspace.history.undo(next(iter(workspace.history.entries()))[0].id)
    assert place.index() == before


def test_half_of_the_lines_and_few_lines_go_as_ever(place: Place) -> None:
    many_cards(place, 20)
    for number in range(10):
        (place.workspace / "memory" / "cards" / f"card-{number:03}.md").unlink()
    settled(place)
    assert place.index().count("memory/cards/") == 10
    for number in range(10, 19):
        (place.workspace / "memory" / "cards" / f"card-{number:03}.md").unlink()
    settled(place)
    assert place.index().count("memory/cards/") == 1


@pytest.mark.slow
def test_at_a_terminal_it_is_asked(place: Place) -> None:
    many_cards(place, 12)
    for path in (place.workspace / "memory" / "cards").iterdir():
        path.unlink()
    before = place.index()
    _, said = on_a_terminal(place, "reconcile", "--fix", answers=["n"])
    assert "Take these lines out?" in said
    assert place.index() == before
    on_a_terminal(place, "reconcile", "--fix", answers=["y"])
    assert "memory/cards/" not in place.index()


def test_a_card_that_came_back_keeps_its_line(place: Place) -> None:
    write_card(place, "one", "Text.", topic="One")
    write_card(place, "two", "Text.", topic="Two")
    point_at_all(place)
    card = place.workspace / "memory" / "cards" / "one.md"
    data = card.read_bytes()
    card.unlink()
    with place.open() as workspace:
        maintenance = workspace.maintenance
        run = Reconciliation(workspace, maintenance, RepositoryInstructions(workspace), by_hand=True, force=False)
        found = list(run._disagreements(maintenance.survey(), (), []))
        assert [item.rule for item, _ in found] == ["index-dangling"]
        card.write_bytes(data)
        assert run._fix(found, (), []) == []
    assert "memory/cards/one.md" in place.index()


# Words.


def test_no_terminal_code_and_nothing_hidden_gets_into_the_index(place: Place) -> None:
    write_card(place, "one", "Text.", topic="Deploy \x1b]0;pwned\x07 \u202etnemyolped\u202c notes")
    data = settled(place).decode()
    assert "\x1b" not in data
    assert "\u202e" not in data
    assert "Deploy" in data
    assert linked_cards(data.encode()) == {"one.md"}


@pytest.mark.slow
def test_a_line_that_a_person_wrote_is_said_to_be_a_persons(place: Place) -> None:
    write_card(place, "two", "Text.", topic="Quarterly numbers")
    put(place, "MEMORY.md", "# Memory\n\n- [Zebra facts](memory/cards/two.md)\n")
    (item,) = index_found(place)
    assert (item.rule, item.winner, item.action) == ("index-drifted", "person", "person")
    said = run_cli("reconcile", "-w", str(place.workspace)).stdout
    assert "a person wrote the line" in said
    assert "wins: card" not in said


@pytest.mark.slow
def test_what_is_asked_already_is_not_asked_again(place: Place) -> None:
    for number in range(3):
        write_card(place, f"gate-{number}", f"The gate {number} listens on port 5204.", day="2026-02-01")
        write_card(place, f"deploy-{number}", f"The gate {number} listens on port 5300.", day="2026-05-01")
    point_at_all(place)
    before = run_cli("reconcile", "-w", str(place.workspace)).stdout
    assert "next: truekeep reconcile --fix" in before
    run_cli("reconcile", "--fix", "-w", str(place.workspace))
    asked = len(place.drafts())
    assert asked
    after = run_cli("reconcile", "-w", str(place.workspace)).stdout
    assert "reconcile --fix" not in after
    assert f"{asked} already in review. next: truekeep review list" in after
    again = run_cli("reconcile", "--fix", "-w", str(place.workspace)).stdout
    assert again.count("already") == 1
    assert f"{asked} already in review\nnext: truekeep review list" in again


# Many lines.


@pytest.mark.slow
def test_many_lines_are_mended_in_one_pass_and_told_in_a_few(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from truekeep.memory import memory_index as pointers

    gone, there = 300, 350
    for number in range(there):
        write_card(place, f"card-{number:04}", "Text.", topic=f"Topic {number}")
    lines = [f"- [Gone {n}](memory/cards/gone-{n:04}.md)\n" for n in range(gone)]
    lines += [f"- [Topic {n}](memory/cards/card-{n:04}.md)\n" for n in range(there - 50)]
    put(place, "MEMORY.md", "# Memory\n\n## Cards\n\n" + "".join(lines))
    passes = 0
    iterate = pointers._iter_linking

    def counted(data: bytes):  # type: ignore[no-untyped-def]
        nonlocal passes
        passes += 1
        return iterate(data)

    with monkeypatch.context() as patch:
        patch.setattr(pointers, "_iter_linking", counted)
        assert len(upkeep(place).reconcile(fix=True).done) == gone + 50
    assert passes <= 6  # looking at lines and values, mending, and looking again: not once a line
    assert place.index().count("memory/cards/") == there
    with place.open() as workspace:
        workspace.history.undo(next(iter(workspace.history.entries()))[0].id)
    said = run_cli("reconcile", "--fix", "-w", str(place.workspace)).stdout
    assert len(said.splitlines()) < 30
    assert f"and {gone + 50 - 20} more; --json has all of them" in said


@pytest.mark.slow
def test_the_folder_of_cards_as_a_link_is_no_reason_to_forget_them(place: Place) -> None:
    many_cards(place, 12)
    folder, away = Path(place.workspace / "memory" / "cards"), place.base / "away"
    shutil.move(folder, away)
    os.symlink(away, folder)
    before = place.index()
    assert {item.rule for item in index_found(place)} == {"index-unread"}
    run_at_night(place)
    assert place.index() == before


# An index that is longer than agents read.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "length"),
    [("index_lines = 5", "6 lines long, and agents read 5"), ("index_bytes = 60", "bytes long, and agents read 60")],
)
def test_lines_that_nobody_would_read_are_told_before_they_are_written(place: Place, limits: str, length: str) -> None:
    place.configure(f"[limits]\n{limits}\n")
    write_card(place, "one", "Text.", topic="First")
    write_card(place, "two", "Other words.", topic="Second")
    before = place.index()
    look = run_cli("reconcile", "--workspace", str(place.workspace)).stdout
    assert "too long with 2 lines that cards lack, MEMORY.md is " in look
    assert length in look
    assert "`truekeep tidy duplicates`" in look
    assert "`truekeep tidy decay`" in look
    assert place.index() == before
    told = json.loads(run_cli("reconcile", "--fix", "--json", "--workspace", str(place.workspace)).stdout)
    assert length in told["crowding"]
    if "lines" in limits:
        assert len(place.index().splitlines()) == 6


def test_an_index_with_room_is_not_called_too_long(place: Place) -> None:
    write_card(place, "one", "Text.", topic="First")
    assert upkeep(place).reconcile().crowding == ""


def test_an_index_that_does_not_grow_is_not_the_matter_of_reconcile(place: Place) -> None:
    write_card(place, "one", "Text.", topic="First")
    point_at_all(place)
    place.configure("[limits]\nindex_lines = 2\n")
    assert upkeep(place).reconcile().crowding == ""
