"""Nights: one in which nothing changed is over after one look, and nothing that upkeep rests on changes unseen."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.helpers import NOW, Place, tree
from tests.support.upkeep_place import REPOSITORY, point_at_all, put, with_instructions, write_card
from truekeep.integrations.schedule.run import plan_upkeep
from truekeep.memory.file_scan import iter_files, scan_files
from truekeep.workspace.maintenance import Maintenance

OLD = "2026-03-01"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was really looked for. Files are taken as settled at once: no test waits for seconds."""
    monkeypatch.setattr("truekeep.memory.file_scan.CLOCK_TICK_NS", 0)
    monkeypatch.setattr("truekeep.workspace.maintenance.CLOCK_TICK_NS", 0)
    seen: list[str] = []
    for name in ("duplicates", "promote", "reconcile"):
        whole = getattr(Maintenance, name)

        def watched(
            desk: Maintenance, *, _name: str = name, _whole: Callable[..., object] = whole, **given: object
        ) -> object:
            seen.append(_name)
            return _whole(desk, **given)

        monkeypatch.setattr(Maintenance, name, watched)
    return seen


def night(place: Place, *, now: datetime = NOW) -> dict[str, int]:
    counts: dict[str, int] = {}
    with place.open(now=now) as workspace:
        for _, step in plan_upkeep(workspace):
            done = step()
            assert not done.problem
            counts |= done.counts
    return counts


def fill(place: Place) -> None:
    with_instructions(place, "Run the tests first.\n")
    write_card(place, "gateway", "The gateway listens on port 5204.", day=OLD, repository=REPOSITORY)
    write_card(place, "zebra", "Zebras cross the road at noon.", day=OLD)
    put(place, "memory/2026-11-02.md", "# 2026-11-02\n\nSaw a zebra.\n")
    put(place, "TOOLS.md", "# Tools\n")
    point_at_all(place)


def settled(place: Place, looks: list[str]) -> None:
    """Two nights later there is nothing to do, and nothing is looked for."""
    fill(place)
    night(place)
    night(place)
    looks.clear()
    assert set(night(place).values()) == {0}
    assert looks == []


def test_a_night_in_which_nothing_changed_looks_for_nothing(place: Place, looks: list[str]) -> None:
    settled(place, looks)
    night(place, now=NOW + timedelta(days=40))
    assert looks == []


def touch_config(place: Place) -> None:
    file = place.workspace / ".truekeep" / "config.toml"
    file.write_text(file.read_text() + "\n[decay]\nstructural = 0.7\n")


def add_fact(place: Place) -> None:
    with sqlite3.connect(place.workspace / "memory" / "facts.db") as db:
        db.execute(
            "CREATE TABLE facts (entity TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, category TEXT,"
            " source TEXT, updated_at TEXT, PRIMARY KEY (entity, key))"
        )
        db.execute("INSERT INTO facts VALUES ('gateway', 'port', '5300', 'setup', 'x', '2026-03-01')")
    db.close()


def check_code(place: Place) -> None:
    with place.open() as workspace:
        workspace.verification.verify(system=False)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda place: write_card(place, "lion", "Lions sleep."), id="a new card"),
        pytest.param(lambda place: write_card(place, "zebra", "Zebras sleep.", day=OLD), id="another text"),
        pytest.param(lambda place: (place.workspace / "memory/cards/zebra.md").unlink(), id="a card went"),
        pytest.param(
            lambda place: os.rename(
                place.workspace / "memory/cards/zebra.md", place.workspace / "memory/cards/okapi.md"
            ),
            id="another name",
        ),
        pytest.param(lambda place: put(place, "MEMORY.md", "# Memory\n"), id="the index"),
        pytest.param(lambda place: put(place, "memory/2026-11-03.md", "# Log\n"), id="a log"),
        pytest.param(lambda place: put(place, "TOOLS.md", "# Tools, more\n"), id="a document"),
        pytest.param(
            lambda place: (place.base / "repos/own/CLAUDE.md").write_text("The gateway listens on port 5300.\n"),
            id="instructions",
        ),
        pytest.param(
            lambda place: (place.base / "repos/own/AGENTS.md").write_text("Another file.\n"), id="more instructions"
        ),
        pytest.param(lambda place: put(place, "memory/handoff-inbox/a.md", "a draft\n"), id="a draft"),
        pytest.param(add_fact, id="the database of facts"),
        pytest.param(touch_config, id="the configuration"),
        pytest.param(check_code, id="what code says"),
    ],
)
def test_whatever_it_rests_on_is_noticed(place: Place, looks: list[str], change: Callable[[Place], object]) -> None:
    settled(place, looks)
    change(place)
    night(place)
    assert looks == ["duplicates", "promote", "reconcile"]


def test_a_night_after_work_is_not_settled(place: Place, looks: list[str]) -> None:
    """What was proposed or written is looked at once more: the answer is noted when there was nothing to do."""
    fill(place)
    write_card(place, "gate", "The gateway listens on port 5300.", day=OLD, repository=REPOSITORY)
    first = night(place)
    assert first["asked"] == 1
    assert first["reconciled"] > 0  # the line of the new card
    looks.clear()
    night(place)
    assert looks == ["duplicates", "promote", "reconcile"]
    looks.clear()
    assert set(night(place).values()) == {0}
    assert looks == []  # the question waits, and nobody asks it again


@pytest.mark.slow
def test_where_a_day_decides_every_day_is_looked_at(place: Place, looks: list[str]) -> None:
    fill(place)
    write_card(place, "gate", "The gateway listens on port 5300.", day="2026-11-14", repository=REPOSITORY)
    for _ in range(3):
        night(place)
    looks.clear()
    night(place)
    assert looks == []
    night(place, now=NOW + timedelta(days=1))
    assert looks == ["duplicates", "promote", "reconcile"]


def test_what_was_settled_before_the_survey_was_lost_is_looked_at_again(place: Place, looks: list[str]) -> None:
    settled(place, looks)
    (place.workspace / ".truekeep" / "survey.sqlite").unlink()
    before = tree(place.workspace)
    night(place)
    assert looks == ["duplicates", "promote", "reconcile"]
    assert tree(place.workspace) == before


def swap(folder: Path) -> None:
    (folder / "a.md").rename(folder / "c.md")
    (folder / "b.md").rename(folder / "a.md")
    (folder / "c.md").rename(folder / "b.md")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "a.md").write_text("other\n"), id="other bytes"),
        pytest.param(lambda folder: (folder / "a.md").touch(), id="another time"),
        pytest.param(swap, id="two names the other way round"),
        pytest.param(lambda folder: (folder / "a.md").rename(folder / "c.md"), id="another name"),
        pytest.param(lambda folder: (folder / "c.md").write_text("x\n"), id="one more"),
        pytest.param(lambda folder: (folder / "a.md").unlink(), id="one less"),
        pytest.param(lambda folder: ((folder / "deep").mkdir(), (folder / "deep/c.md").write_text("x")), id="deeper"),
    ],
)
def test_the_mark_changes_with_what_a_sweep_sees(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = tmp_path / "memory" / "cards"
    folder.mkdir(parents=True)
    for name in ("a.md", "b.md"):
        (folder / name).write_text("same\n")
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    before, seen = scan_files(str(tmp_path)).fingerprint, list(iter_files(str(tmp_path)))
    assert scan_files(str(tmp_path)).fingerprint == before
    change(folder)
    assert list(iter_files(str(tmp_path))) != seen
    assert scan_files(str(tmp_path)).fingerprint != before
