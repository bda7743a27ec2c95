"""Both shelves answer alike where there is no store: what lint says on a producing machine holds on an empty host."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.helpers import Place, a_card, a_handoff
from truekeep.handoffs.policy.decision import MemoryView
from truekeep.memory.card import Card, parse_card, words_of
from truekeep.memory.frontmatter import Frontmatter
from truekeep.memory.similarity import _BINS, _MIX, sketch


@pytest.fixture(params=["empty", "store"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryView]:
    if request.param == "empty":
        yield MemoryView()
        return
    with Place.make(tmp_path).open() as workspace:
        yield workspace.handoffs.memory_view()


@pytest.mark.parametrize(
    "ask",
    [
        lambda shelf: shelf.read("memory/cards/x.md"),
        lambda shelf: shelf.day_of("memory/cards/x.md"),
        lambda shelf: shelf.check_index(),
        lambda shelf: shelf.find_clash("x.md"),
        lambda shelf: shelf.find_document_clash("rules/x.md"),
        lambda shelf: shelf.find_same_topic("x", "", "x.md"),
        lambda shelf: shelf.find_near(sketch(parse_card("x.md", a_card(body="one two three four " * 9))), "x.md"),
        lambda shelf: next(iter(shelf.hand_edits("memory/cards/x.md").older), None),
        lambda shelf: shelf.instructions() or None,
    ],
)
def test_nothing_there_is_nothing_to_say(shelf: MemoryView, ask: Callable[[MemoryView], object]) -> None:
    assert ask(shelf) is None


@pytest.mark.slow
@given(st.text(alphabet="Abc 19_-éßİ\n", max_size=200) | st.text(alphabet="ab 1", min_size=60, max_size=200))
@example("Port 8443 answers behind the proxy, and port 8444 does not; nothing else listens there at all.\n")
@settings(max_examples=300, deadline=None)
def test_a_sketch_is_of_the_words_however_they_are_read(body: str) -> None:
    """Catalogues are kept, so the numbers must stay: told here once more in plain steps."""
    words = words_of(body)
    hashes = [zlib.crc32(word.encode()) for word in words]
    pairs = {(a * _MIX + b) & 0xFFFF_FFFF for a, b in pairwise(hashes)}
    family = zlib.crc32(" ".join(sorted({word for word in words if not word.isalpha()})).encode())
    least: dict[int, int] = {}
    for value in pairs:
        least[value % _BINS] = min(value, least.get(value % _BINS, value))
    found = sketch(Card("x.md", Frontmatter(), body))
    assert found.pairs == pairs
    if len(pairs) < 8:
        assert found.bands == ()
        return
    dense = [least.get(number) for number in range(_BINS)]
    for number in (*range(_BINS), *range(_BINS)):  # an empty bin has what the one before it has, around the end, too
        if dense[number] is None:
            dense[number] = dense[number - 1]
    keys = {
        ((a << 32 | b) * _MIX + family * (start + 1)) & 0x7FFF_FFFF_FFFF_FFFF
        for start in range(0, _BINS, 2)
        if (a := dense[start]) is not None and (b := dense[start + 1]) is not None
    }
    assert set(found.bands) == keys


def test_whoever_looks_holds_the_catalogue_no_longer_than_that(place: Place) -> None:
    path = str(place.workspace / ".truekeep" / "catalog.sqlite")
    with place.open() as workspace:
        catalog = workspace.context.catalog
        with catalog.snapshot():
            assert catalog.find_clash("X.md") is None
            other = apsw.Connection(path)
            with pytest.raises(apsw.BusyError), other:
                other.execute("INSERT INTO card VALUES (7, 'x.md', 'x.md', 'x', '', x'', x'')")
            assert catalog.find_clash("X.md") is None
        with other:
            other.execute("INSERT INTO card VALUES (7, 'x.md', 'x.md', 'x', '', x'', x'')")
        other.close()
        assert catalog.find_clash("X.md") == "x.md"


def test_a_catalogue_that_breaks_while_it_is_looked_at_is_made_again(place: Place) -> None:
    place.leave(a_handoff(card="proxy.md"))
    place.ingest()
    path = place.workspace / ".truekeep" / "catalog.sqlite"
    with place.open() as workspace:
        catalog = workspace.context.catalog
        with catalog.snapshot():
            assert catalog.find_clash("PROXY.md") == "proxy.md"
            data = path.read_bytes()
            path.write_bytes(b"x" * len(data))
        with catalog.snapshot():
            assert catalog.find_clash("PROXY.md") == "proxy.md"
            assert catalog.find_clash("proxy.md") is None


def test_many_handoffs_are_found_as_one_by_one(place: Place) -> None:
    for number in range(3):
        place.leave(a_handoff(title=f"t{number}", card=f"c{number}.md"), f"2026-11-14-090{number}-t.md")
    place.ingest()
    with place.open() as workspace:
        ledger = workspace.context.ledger
        known = [record.digest for record in map(ledger.handoff_of, ledger.entries()) if record]
        asked = [*known, b"\0" * 32, known[0]]
        assert ledger.find_handoffs(asked) == {digest: ledger.find_handoff(digest) for digest in known}
        assert ledger.find_handoffs([]) == {}


def test_a_catalogue_that_grew_is_one_that_is_made_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truekeep.memory.similarity._CARDS_PER_INSERT", 2)
    monkeypatch.setattr("truekeep.handoffs.ingest.BATCH", 3)
    for number in range(7):
        body = " ".join(f"word{number}{letter}" for letter in "abcdefghijklmnop")
        text = a_handoff(title=f"t{number}", card=f"c{number}.md", content=a_card(f"t{number}", body))
        place.leave(text, f"2026-11-14-090{number}-t.md")
    place.ingest()
    path = place.workspace / ".truekeep" / "catalog.sqlite"

    def rows() -> list[list[object]]:
        db = apsw.Connection(str(path))
        try:
            cards = "SELECT name, folded, topic, repository, bands FROM card ORDER BY 1"
            bands = "SELECT key, name FROM band JOIN card ON card.id = card ORDER BY 1, 2"
            return [list(db.execute(query)) for query in (cards, bands)]
        finally:
            db.close()

    grown = rows()
    assert [len(table) for table in grown] == [7, 84]
    path.unlink()
    with place.open() as workspace:
        assert workspace.context.catalog.find_clash("C1.md") == "c1.md"
    assert rows() == grown
