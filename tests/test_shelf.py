"""Both shelves answer alike where there is no store: what lint says on a producing machine holds on an empty host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers import Place, a_card
from truekeep.card import parse_card
from truekeep.catalog import sketch
from truekeep.filing import EmptyShelf, Shelf


@pytest.fixture(params=["empty", "store"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    if request.param == "empty":
        yield EmptyShelf()
        return
    with Place.make(tmp_path).open() as workspace:
        yield workspace.shelf()


@pytest.mark.parametrize(
    "ask",
    [
        lambda shelf: shelf.read("memory/cards/x.md"),
        lambda shelf: shelf.day_of("memory/cards/x.md"),
        lambda shelf: shelf.check_index(),
        lambda shelf: shelf.find_clash("x.md"),
        lambda shelf: shelf.find_document_clash("rules/x.md"),
        lambda shelf: shelf.find_same_topic("x", "x.md"),
        lambda shelf: shelf.find_near(sketch(parse_card("x.md", a_card(body="one two three four " * 9))), "x.md"),
        lambda shelf: next(iter(shelf.hand_edits("memory/cards/x.md").older), None),
        lambda shelf: shelf.instructions() or None,
    ],
)
def test_nothing_there_is_nothing_to_say(shelf: Shelf, ask: Callable[[Shelf], object]) -> None:
    assert ask(shelf) is None
