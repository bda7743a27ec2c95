"""Each day's counts: read as they were written, whatever else is in the file, and noted by the canonical host alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import NOW, Place, a_handoff, git_repo, run_cli
from tests.support.upkeep_place import write_card
from truekeep.workspace.health_history import MAX_DAYS, NAME, Day, note_day, read_days

COUNTS = st.none() | st.integers(0, 10**9)
DAYS = st.builds(
    Day,
    st.dates().map(lambda day: day.isoformat()),
    COUNTS,
    COUNTS,
    COUNTS,
    st.dictionaries(st.sampled_from(["confirmed", "moved", "gone"]), st.integers(0, 10**6)),
)


def logs(place: Place) -> Path:
    return place.workspace / ".truekeep" / "logs"


@pytest.mark.slow
@given(days=st.lists(DAYS, max_size=5), last=DAYS)
def test_what_is_noted_is_read(tmp_path_factory: pytest.TempPathFactory, days: list[Day], last: Day) -> None:
    folder = str(tmp_path_factory.mktemp("logs"))
    note_day(folder, last)
    note_day(folder, last._replace(cards=7), days)
    note_day(folder, last)
    known = {day.day: day for day in (*days, last)}
    assert read_days(folder) == [known[name] for name in sorted(known)]
    assert not note_day(folder, last)


@pytest.mark.slow
@given(st.lists(st.text(max_size=60) | st.binary(max_size=60), max_size=8))
def test_lines_of_others_are_passed_over(tmp_path_factory: pytest.TempPathFactory, lines: list[str | bytes]) -> None:
    folder = tmp_path_factory.mktemp("logs")
    raw = b"\n".join(line if isinstance(line, bytes) else line.encode("utf-8", "replace") for line in lines)
    (folder / NAME).write_bytes(raw + b'\n{"day": "2026-11-15", "cards": 3}\n')
    assert read_days(str(folder))[-1] == Day("2026-11-15", cards=3) or b"2026-11-15" in raw


@pytest.mark.parametrize(
    "line",
    [
        '{"day": "2026-11-15", "cards": "many", "verdicts": 7}',
        '{"day": "2026-13-15"}',
        '{"cards": 1}',
        "[]",
        "null",
        '{"day": 20261115}',
        '{"day": ["x"]}',
        "[" * 5000,
    ],
)
def test_odd_lines(tmp_path: Path, line: str) -> None:
    (tmp_path / NAME).write_text(line + "\n")
    assert read_days(str(tmp_path)) == []


def test_odd_counts_are_not_known(tmp_path: Path) -> None:
    odd = {"day": "2026-11-15", "cards": -1, "drafts": 1e300, "index_bytes": "9", "verdicts": {"gone": "x"}}
    (tmp_path / NAME).write_text(json.dumps(odd))
    assert read_days(str(tmp_path)) == [Day("2026-11-15", verdicts={"gone": 0})]


def test_old_days_go(tmp_path: Path) -> None:
    many = [
        Day(f"{year}-{month:02}-{day:02}", cards=1)
        for year in range(2000, 2004)
        for month in range(1, 13)
        for day in range(1, 29)
    ]
    note_day(str(tmp_path), Day("2026-11-15", cards=2), many)
    found = read_days(str(tmp_path))
    assert len(found) == MAX_DAYS
    assert found[-1].day == "2026-11-15"


def test_no_link_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "logs").symlink_to(elsewhere)
    assert not note_day(str(tmp_path / "logs"), Day("2026-11-15"))
    assert list(elsewhere.iterdir()) == []


def test_a_disk_that_says_no_costs_the_note(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    assert not note_day(str(tmp_path / "logs"), Day("2026-11-15"))


def test_the_first_note_begins_with_what_the_ledger_knows(place: Place) -> None:
    place.leave(a_handoff(), "2026-11-12-0900-proxy.md")
    place.ingest(now=NOW.replace(day=12))
    with place.open() as workspace:
        workspace.verification.verify()  # notes the day
        assert not workspace.health.note_day()
        first, last = workspace.health.days()
        size = len(place.index().encode())
        assert first == Day("2026-11-12", index_bytes=size)
        assert last._replace(verdicts={}) == Day("2026-11-15", 1, 0, size)
        assert not workspace.health.note_day()
        with place.open(now=NOW.replace(day=16)) as later:
            seen = later.health.check(now=NOW.replace(day=16))
            assert later.health.note_day(seen)
            assert later.health.days()[-1] == last._replace(day="2026-11-16")


def test_claims_are_noted_by_their_verdicts(place: Place) -> None:
    shutil.rmtree(place.repo / ".git")
    git_repo(place.repo)
    (place.repo / "main.py").write_text("def begin():\n    pass\n")
    for arguments in (["add", "main.py"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(place.repo), *arguments], check=True)
    write_card(place, "a", "`begin` is in `main.py`.", repository="github.com/me/app")
    with place.open(now=datetime.now(UTC)) as workspace:
        workspace.verification.verify()
        workspace.health.note_day()
        assert workspace.health.days()[-1].verdicts == {"confirmed": 2}


@pytest.mark.slow
def test_verify_notes_the_day_if_all_of_memory_is_checked(place: Place) -> None:
    place.leave(a_handoff())
    place.ingest()
    where = ("--workspace", str(place.workspace))
    run_cli("verify", str(place.workspace / "memory/cards/staging-proxy.md"), *where)
    assert not (logs(place) / NAME).exists()
    run_cli("verify", *where)
    assert read_days(str(logs(place)))[-1].cards == 1


def test_a_damaged_ledger_costs_only_what_it_knew(place: Place) -> None:
    (place.workspace / ".truekeep" / "ledger.sqlite").write_bytes(b"no database" * 100)
    with place.open() as workspace:
        assert workspace.health.note_day()
        assert [day.day for day in workspace.health.days()] == ["2026-11-15"]


def test_another_machine_notes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_MACHINE_ID", "another-machine")
    with place.open() as workspace:
        assert not workspace.health.note_day()
        (place.workspace / ".truekeep" / "host").write_text("nonsense = [")
        assert not workspace.health.note_day()
    assert not (logs(place) / NAME).exists()
