"""The second document, "Cross-store reconciliation" and the gotchas about the index."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.helpers import Place, run_cli
from tests.support.sessions import aged, place_of, write_session
from tests.support.upkeep_place import REPOSITORY, put, upkeep, write_card

INDEX = "# Memory\n\n## Cards\n\n"


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("- [Gateway port is 7100](memory/cards/gateway.md)", "The gateway listens on port 7204."),
        ("- [Cache](memory/cards/gateway.md) — entries live for 24 hours", "Cache entries live for 48 hours."),
    ],
)
def test_an_index_line_that_a_person_wrote_against_its_card(place: Place, line: str, body: str) -> None:
    """Index disagrees with the card it points at: card wins. Update the index."""
    write_card(place, "gateway", body, topic="Gateway" if "gateway" in body else "Cache")
    put(place, "MEMORY.md", f"{INDEX}{line}\n")
    (item,) = [item for item in upkeep(place).reconcile().found if item.rule == "index-value"]
    assert (item.place, item.winner) == ("MEMORY.md:5", "card")


def test_the_index_never_holds_content(place: Place) -> None:
    """The index never holds content. / Never put long content in the index itself - that's what cards are for."""
    write_card(place, "cache", "Cached pages are in Redis.", topic="Cache")
    put(place, "MEMORY.md", f"{INDEX}- [Cache](memory/cards/cache.md) — entries live for 24 hours\n")
    (item,) = [item for item in upkeep(place).reconcile().found if item.rule == "index-content"]
    assert item.place == "MEMORY.md:5"
    assert "truekeep" in item.step


@pytest.mark.parametrize(
    ("said", "logged"),
    [
        ("Sessions are stored in Postgres.", "- Sessions are stored in Redis now."),
        ("Cache entries live for 48 hours.", "- Cache entries live for 12 hours."),
    ],
)
def test_a_card_against_a_daily_log(place: Place, said: str, logged: str) -> None:
    """Card disagrees with a daily log: card wins for current state; daily log wins for what happened on that date."""
    write_card(place, "sessions", said, topic="Sessions" if "Sessions" in said else "Cache", day="2026-03-01")
    put(place, "MEMORY.md", f"{INDEX}- [Sessions](memory/cards/sessions.md)\n")
    put(place, "memory/2026-11-10.md", f"# Log\n\n{logged}\n")
    (item,) = [item for item in upkeep(place).reconcile().found if item.rule == "card-log"]
    assert (item.place, item.winner, item.action) == ("memory/2026-11-10.md:3", "card", "none")


@pytest.mark.parametrize("repository", ["", REPOSITORY])
def test_a_transcript_of_openclaw_against_a_card(place: Place, own_home: Path, repository: str) -> None:
    """Card disagrees with session transcript: transcript is what was said; card is what you decided."""
    write_card(place, "gateway", "The gateway listens on port 5204.", repository=repository)
    put(place, "MEMORY.md", f"{INDEX}- [gateway](memory/cards/gateway.md)\n")
    write_session(
        place_of(own_home, "openclaw"),
        aged("openclaw", "The gateway listens on port 5300 now.", datetime(2026, 11, 14, 10, 0, tzinfo=UTC)),
    )
    with place.open() as workspace:
        workspace.sessions.sync_transcripts()
    (item,) = [item for item in upkeep(place).reconcile().found if item.rule == "card-transcript"]
    assert item.winner == "card"


def test_many_lines_become_one_and_a_sub_card(place: Place) -> None:
    """When it grows, consolidate (multiple related lines -> one line + sub-card) before adding."""
    for number in range(5):
        write_card(place, f"note-{number}", f"Fact {number} about the importer.", topic=f"Importer fact {number}")
    write_card(place, "other", "Something else.", topic="Other")
    upkeep(place).reconcile(fix=True)
    before = place.index()
    done = run_cli("card", "consolidate", "The importer", "--matching", "importer", "--workspace", str(place.workspace))
    assert (done.returncode, done.stderr) == (0, "")
    assert place.index().count("](memory/cards/") == 2
    assert place.card("the-importer.md").count("](note-") == 5
    upkeep(place).reconcile(fix=True)
    assert place.index().count("](memory/cards/") == 2
    with place.open() as workspace:
        entry = workspace.history.newest()
        workspace.history.undo(entry)
    assert place.index() == before
    assert "the-importer.md" not in place.cards()


def test_consolidated_lines_stay_consolidated(place: Place) -> None:
    """When it grows, consolidate (multiple related lines -> one line + sub-card) before adding."""
    for number in range(100):
        write_card(place, f"note-{number}", f"Fact {number} about the importer.", topic=f"Importer fact {number}")
    upkeep(place).reconcile(fix=True)
    assert (place.workspace / "MEMORY.md").read_text().count("](memory/cards/note-") == 100
    write_card(
        place,
        "importer",
        "\n".join(f"- [Importer fact {number}](note-{number}.md)" for number in range(100)),
        topic="Importer",
    )
    put(place, "MEMORY.md", f"{INDEX}- [Importer](memory/cards/importer.md)\n")
    upkeep(place).reconcile(fix=True)
    assert (place.workspace / "MEMORY.md").read_text().count("](memory/cards/") == 1
