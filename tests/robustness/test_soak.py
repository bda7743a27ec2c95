"""A short day of traffic with kills, clock jumps, edits and a full disk; and what longer ones brought to light."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.helpers import Place, a_handoff
from tests.support.soak.apart import live_apart
from tests.support.soak.day import Scale
from truekeep.core.errors import EditedSince
from truekeep.memory.ledger import Ledger


class Killed(BaseException):
    """The process ends here, as by a signal: nothing catches it."""


def test_a_handoff_whose_index_line_a_person_overtook_counts_as_promoted(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its card was written by a run that was killed; meanwhile somebody saved MEMORY.md as they knew it."""

    def die(_ledger: Ledger, _batch: int) -> None:
        raise Killed

    index = place.workspace / "MEMORY.md"
    known = index.read_text()
    place.leave(a_handoff())
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "finish", die)
        with pytest.raises(Killed):
            place.ingest()
    index.write_text(f"{known}\nMine.\n")
    assert place.ingest().counts == {"promoted": 1}
    assert "staging-proxy.md" in place.index()
    assert "Mine." in place.index()
    with place.open() as workspace:
        told = [(entry.verb, entry.paths, record and record.outcome) for entry, record in workspace.history.entries()]
    assert told == [
        ("promoted", ("MEMORY.md",), "promoted"),
        ("promoted", ("memory/cards/staging-proxy.md",), "promoted"),
    ]


def test_a_file_that_somebody_is_saving_is_left_alone(place: Place) -> None:
    """Half of it is written, and the editor has it open: the other half must not go into a file without a name."""
    index = place.workspace / "MEMORY.md"
    first, second = "# Memory\n\nMine,\n\n## Cards\n", "\nand this, too.\n"
    place.leave(a_handoff())
    with index.open("r+") as editor:
        editor.truncate(0)
        editor.write(first)
        editor.flush()
        place.ingest()
        assert [item.outcome for item in place.filed] == ["failed"]
        assert place.waiting() == ["2026-11-14-0900-proxy.md"]
        editor.write(second)
    assert index.read_text() == first + second
    assert place.ingest().counts == {"promoted": 1}
    assert "staging-proxy.md" in place.index()
    assert "and this, too." in place.index()
    with place.open() as workspace:
        assert not workspace.review.drafts()


def test_a_card_that_somebody_is_saving_is_neither_replaced_nor_dropped(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    card = place.workspace / "memory" / "cards" / "staging-proxy.md"
    with card.open("a") as editor, place.open() as workspace:
        for act in (
            partial(workspace.history.undo, 1),
            partial(workspace.cards.drop, "staging-proxy", reason="old", actor="ada"),
        ):
            with pytest.raises(EditedSince):
                act()
        editor.write("\nMine.\n")
    assert card.read_text().endswith("\nMine.\n")


@pytest.mark.needs("rsync")
def test_a_short_day(tmp_path: Path) -> None:
    """Nothing is lost, doubled, unexplained or left lying about, and those that stay hold no more than they need."""
    account = live_apart(tmp_path, Scale(handoffs=100, machines=5, rounds=5, searches=4, seed=4), seconds=3600)
    assert account.problems == []
    assert sum(account.outcomes.values()) >= 80  # the doubled ones count once
    assert account.happened["killed"]
    for name, readings in account.held.items():
        descriptors = [reading[1] for reading in readings]
        assert descriptors[-1] <= max(descriptors[: len(descriptors) // 2 + 1]) + 8, name
