"""History: every line can be explained, every entry undone, and a person's edits win."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_card, a_document_handoff, a_handoff, run_cli, tree
from truekeep.core.errors import BadInput, EditedSince, NotFound

CARD = "memory/cards/staging-proxy.md"


def who(place: Place, path: str) -> list[int | str]:
    with place.open() as workspace:
        lines = workspace.history.blame(path)
    return [line.entry.id if line.entry else "before" if line.is_older else "hand" for line in lines]


def test_each_line_knows_its_handoff(place: Place) -> None:
    (place.workspace / "TOOLS.md").write_text("# Tools\n")
    place.leave(a_document_handoff("### One\nfirst"), "2026-11-14-0900-a.md")
    place.leave(a_document_handoff("### Two\nsecond"), "2026-11-14-0901-b.md")
    place.ingest()
    assert who(place, "TOOLS.md") == ["before", 1, 1, 1, 2, 2, 2]
    (place.workspace / "TOOLS.md").write_text("# My tools\n\n### One\nfirst, by hand\n\n### Two\nsecond\n")
    assert who(place, "TOOLS.md") == ["hand", 1, 1, "hand", 2, 2, 2]
    place.leave(a_document_handoff("### Three\nthird"), "2026-11-14-0902-c.md")
    place.ingest()
    assert who(place, "TOOLS.md") == ["hand", 1, 1, "hand", 2, 2, 2, 3, 3, 3]
    with place.open() as workspace:
        record = workspace.history.blame("TOOLS.md")[-1].record
    assert record is not None
    assert (record.origin.name, record.origin.writer, record.origin.repository) == (
        "2026-11-14-0902-c.md",
        "claude",
        "app",
    )


def test_each_index_line_knows_its_handoff(place: Place) -> None:
    for number in range(5):
        content = a_card(topic=f"Topic {number}", body=f"Fact number {number} about a thing")
        place.leave(a_handoff(card=f"c{number}.md", content=content), f"2026-11-14-090{number}-c.md")
    place.ingest()
    assert who(place, "MEMORY.md") == ["before", "before", "before", 1, 1, 2, 3, 4, 5]


def test_an_update_is_answerable_only_for_the_lines_it_changed(place: Place) -> None:
    place.leave(a_handoff(content=a_card(body="One.\nTwo.\nThree.")), "2026-11-13-0900-a.md")
    place.ingest()
    place.leave(
        a_handoff(action="update-card", content=a_card(body="One.\nTwo and a half.\nThree.")), "2026-11-14-0900-b.md"
    )
    place.ingest()
    with place.open() as workspace:
        lines = {line.text: line.entry.id if line.entry else 0 for line in workspace.history.blame(CARD)}
    assert (lines["One."], lines["Two and a half."], lines["Three."]) == (1, 2, 1)
    assert (lines["created: 2026-11-13"], lines["updated: 2026-11-14"]) == (1, 2)


def test_undo_puts_the_earlier_bytes_back(place: Place) -> None:
    before = tree(place.workspace)
    place.leave(a_handoff(), "2026-11-13-0900-a.md")
    place.ingest()
    first = tree(place.workspace)
    place.leave(
        a_handoff(action="update-card", content=a_card(topic="New", body="Staging answers on port 8443 only, twice.")),
        "2026-11-14-0900-b.md",
    )
    place.ingest()
    second = tree(place.workspace)
    with place.open() as workspace:
        with pytest.raises(BadInput, match="changed the same part"):
            workspace.history.undo(1)
        workspace.history.undo(2)
        assert tree(place.workspace) == first
        workspace.history.undo(1)
        assert tree(place.workspace) == before
        workspace.history.undo(4)
        assert tree(place.workspace) == first
        workspace.history.undo(3)
        assert tree(place.workspace) == second
        with pytest.raises(BadInput, match="changed the same part"):
            workspace.history.undo(1)
        assert [entry.undone_by for entry, _ in workspace.history.entries()] == [None, None, 5, 6, None, None]


def test_an_undone_handoff_is_not_filed_again_by_itself(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    with place.open() as workspace:
        workspace.history.undo(1)
    place.leave((place.inbox / "processed/2026-11-14-0900-proxy.md").read_bytes(), "2026-11-14-0900-proxy.md")
    assert place.ingest().count("already") == 1
    assert place.cards() == []


def test_undo_touches_nothing_that_a_person_edited(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    path = place.workspace / CARD
    path.write_text(path.read_text() + "mine\n")
    before = tree(place.workspace)
    with place.open() as workspace, pytest.raises(EditedSince) as error:
        workspace.history.undo(1)
    assert "+mine" in error.value.details["difference"]
    assert tree(place.workspace) == before


def test_undo_in_a_hand_edited_index_takes_only_our_line(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    index = place.workspace / "MEMORY.md"
    index.write_text("# My memory\n\nA note.\n" + index.read_text())
    with place.open() as workspace:
        _, notes = workspace.history.undo(1)
    assert notes == []
    assert place.cards() == []
    assert index.read_text() == "# My memory\n\nA note.\n# Memory\n\n## Cards\n\n"


def test_undo_leaves_an_index_line_that_a_person_rewrote(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    index = place.workspace / "MEMORY.md"
    index.write_text("# My memory\n- proxy, see [card](memory/cards/staging-proxy.md)\n")
    with place.open() as workspace:
        _, notes = workspace.history.undo(1)
    assert len(notes) == 1
    assert "staging-proxy.md" in index.read_text()


def test_undo_of_an_early_append_keeps_the_later_ones(place: Place) -> None:
    (place.workspace / "TOOLS.md").write_text("# Tools\n")
    for number in range(3):
        place.leave(a_document_handoff(f"### Part {number}\ntext {number}"), f"2026-11-14-090{number}-x.md")
    place.ingest()
    with place.open() as workspace:
        workspace.history.undo(2)
    assert (place.workspace / "TOOLS.md").read_text() == "# Tools\n\n### Part 0\ntext 0\n\n### Part 2\ntext 2\n"
    with place.open() as workspace:
        workspace.history.undo(4)
    assert (place.workspace / "TOOLS.md").read_text().count("### Part") == 3


@pytest.mark.parametrize("entry", [0, 99, -1])
def test_no_such_entry(place: Place, entry: int) -> None:
    with place.open() as workspace, pytest.raises(NotFound):
        workspace.history.undo(entry)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "../../etc/passwd"])
def test_why_does_not_look_outside(place: Place, path: str) -> None:
    with place.open() as workspace, pytest.raises(BadInput):
        workspace.history.blame(path)


def test_why_does_not_follow_a_symlink(place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (place.workspace / "link.md").symlink_to(tmp_path / "secret.txt")
    with place.open() as workspace, pytest.raises(BadInput, match="is a symlink"):
        workspace.history.blame("link.md")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_filing_editing_and_undoing_stays_explained(place: Place, seed: int) -> None:
    """The ledger can always rebuild what it last wrote; undoing everything in reverse gives the first bytes back."""
    chance = random.Random(seed)
    names = ["a.md", "b.md"]
    start = {path: (place.workspace / path).read_bytes() for path in ("MEMORY.md",)}
    for step in range(14):
        name = chance.choice(names)
        at = f"2026-11-14-{9 + step:02}00-s{step}.md"
        if chance.random() < 0.4:
            place.leave(a_document_handoff(f"### Step {step}\n{chance.random()}", document="TOOLS.md"), at)
        else:
            action = "update-card" if name in place.cards() else "create-card"
            old = place.card(name).split("---\n", 2)[2] if name in place.cards() else ""
            content = a_card(
                topic=f"Topic of {name}", body=f"{old.strip()}\nFact {step} about {name} is {chance.random()}"
            )
            place.leave(a_handoff(action=action, card=name, content=content), at)
        place.ingest()
        assert place.filed[0].outcome in ("promoted", "routed"), place.filed
    with place.open() as workspace:
        ledger = workspace.context.transaction.ledger
        for path in ("MEMORY.md", "TOOLS.md", *(f"memory/cards/{name}" for name in place.cards())):
            assert ledger.content(path) == (place.workspace / path).read_bytes()
            assert all(line.entry or line.is_older for line in workspace.history.blame(path))
        for entry in [entry.id for entry, _ in workspace.history.entries()]:
            workspace.history.undo(entry)
    assert place.cards() == []
    assert not (place.workspace / "TOOLS.md").exists()
    assert (place.workspace / "MEMORY.md").read_bytes() == start["MEMORY.md"]


def test_a_file_that_a_person_deleted_begins_anew(place: Place) -> None:
    place.leave(a_document_handoff("- one\n- two"), "2026-11-14-0900-a.md")
    place.ingest()
    (place.workspace / "TOOLS.md").unlink()
    place.leave(a_document_handoff("- new"), "2026-11-14-0901-b.md")
    place.ingest()
    assert who(place, "TOOLS.md") == [2]
    with place.open() as workspace:
        workspace.history.undo(2)
    assert not (place.workspace / "TOOLS.md").exists()


def test_undo_does_not_take_a_later_handoff_with_it(place: Place) -> None:
    """The card ends as the first handoff left it, but by another one's word."""
    for number, body in enumerate(
        ("The answer is five of them", "The answer is six of them", "The answer is five of them")
    ):
        action = "update-card" if number else "create-card"
        content = a_card(body=body)
        place.leave(a_handoff(action=action, content=content, title=f"T{number}"), f"2026-11-14-090{number}-x.md")
        place.ingest()
    before = tree(place.workspace)
    with place.open() as workspace, pytest.raises(BadInput, match="changed the same part"):
        workspace.history.undo(1)
    assert tree(place.workspace) == before


def test_undo_works_although_the_index_was_edited_in_between(place: Place) -> None:
    index = place.workspace / "MEMORY.md"
    index.write_bytes(b"# Memory\r\n\r\n## Cards\r\n")
    place.leave(a_handoff(), "2026-11-14-0900-a.md")
    place.ingest()
    index.write_bytes(b"A note.\r\n" + index.read_bytes())
    place.leave(a_handoff(card="b.md", content=a_card(topic="B", body="Something else")), "2026-11-14-0901-b.md")
    place.ingest()
    with place.open() as workspace:
        _, notes = workspace.history.undo(1)
    assert notes == []
    assert b"staging-proxy.md" not in index.read_bytes()
    assert b"A note." in index.read_bytes()
    assert b"(memory/cards/b.md)" in index.read_bytes()


def test_undoing_a_decision_leaves_the_draft_waiting(place: Place) -> None:
    place.leave(a_handoff(action="update-card"))
    place.ingest()
    (draft,) = place.drafts()
    with place.open() as workspace:
        workspace.review.approve(draft.stem)
        workspace.history.undo(2)
        entry, record = next(workspace.history.entries())
        assert (entry.verb, record.outcome if record else "") == ("undone", "review")
        workspace.history.undo(3)
        entry, record = next(workspace.history.entries())
        assert record is not None
        assert (record.outcome, record.target) == ("approved", "memory/cards/staging-proxy.md")
    assert place.cards() == ["staging-proxy.md"]


# Several at once.


def three_cards(place: Place) -> None:
    for number in (1, 2, 3):
        handoff = a_handoff(
            title=f"Lamp {number}",
            card=f"lamp-{number}.md",
            content=a_card(topic=f"Lamp {number}", body=f"Lamp {number}."),
        )
        place.leave(handoff, f"2026-11-14-090{number}-lamp{number}.md")
        place.ingest()


def undoing(place: Place, *arguments: str) -> tuple[int, str, str]:
    done = run_cli("-w", str(place.workspace), "undo", *arguments)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("given", [["1", "2", "3"], ["1-3"], ["3", "1-2", "2"]])
def test_several_are_undone_the_newest_first(place: Place, given: list[str]) -> None:
    before = tree(place.workspace)
    three_cards(place)
    code, out, _ = undoing(place, *given)
    assert code == 0
    assert re.findall(r"undone entry (\d); this is entry (\d)", out) == [("3", "4"), ("2", "5"), ("1", "6")]
    assert out.rstrip().endswith("3 undone")
    assert tree(place.workspace) == before


@pytest.mark.slow
def test_of_several_one_that_was_edited_stays_and_the_others_are_undone(place: Place) -> None:
    three_cards(place)
    path = place.workspace / "memory/cards/lamp-2.md"
    path.write_text(path.read_text() + "mine\n")
    code, out, err = undoing(place, "1-3")
    assert (code, place.cards()) == (8, ["lamp-2.md"])
    assert path.read_text().endswith("mine\n")
    assert "+mine" in err
    assert "lamp-2.md was edited since entry 2" in err
    assert out.rstrip().endswith("2 undone; 1 not: 2")


@pytest.mark.slow
def test_of_a_range_what_is_undone_is_passed_over_and_by_name_it_is_said(place: Place) -> None:
    three_cards(place)
    assert undoing(place, "2")[0] == 0
    code, out, _ = undoing(place, "1-3")
    assert (code, place.cards()) == (0, [])
    assert "2 undone; 1 skipped, undone already or without a file: 2" in out
    code, _, err = undoing(place, "2", "1")
    assert code == 3
    assert "entry 2 was undone by entry 4" in err


@pytest.mark.slow
def test_a_range_with_an_undo_in_it_goes_back_to_before_its_first(place: Place) -> None:
    before = tree(place.workspace)
    three_cards(place)
    assert undoing(place, "3")[0] == 0
    assert undoing(place, "1-4")[0] == 0
    assert tree(place.workspace) == before


@pytest.mark.parametrize("given", [["1-99"], ["3-1"], ["0"], ["1-"], ["one"], ["1", "1-99"], ["--dry-run", "1-3"]])
def test_what_names_no_entries_undoes_none(place: Place, given: list[str]) -> None:
    three_cards(place)
    before = tree(place.workspace)
    assert undoing(place, *given)[0] == 3
    assert tree(place.workspace) == before


def test_several_as_json(place: Place) -> None:
    three_cards(place)
    (place.workspace / "memory/cards/lamp-3.md").write_text("mine\n")
    code, out, _ = undoing(place, "3", "2", "99", "--json")
    told = json.loads(out)
    assert (code, told["schema"]) == (8, "truekeep.undo-several/1")
    assert [(one["undone"], one["entry"]) for one in told["undone"]] == [(2, 4)]
    assert [(one["entry"], one["code"]) for one in told["failed"]] == [(99, "not-found"), (3, "edited-since")]
    assert told["passed"] == []
