"""The survey: refreshed equals new, an unchanged store is not read, and what is wrong is named with its place."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.helpers import Place
from tests.support.upkeep_place import TODAY, put, write_card
from truekeep.core.formats import SURVEY
from truekeep.maintenance.survey import service as module
from truekeep.maintenance.survey.service import Survey


def a_survey(place: Place) -> Survey:
    return Survey(str(place.workspace / ".truekeep"), str(place.workspace))


def everything(survey: Survey) -> dict[str, list[Any]]:
    """All that a survey knows, without the numbers of its files."""
    asked = {
        "cards": "SELECT path, topic, key, created, updated, confirmed, words, category, tags FROM cards"
        " JOIN files USING (id)",
        "links": "SELECT path, target, line FROM links JOIN files ON files.id = file",
        "words": "SELECT word, path FROM card_words JOIN files ON files.id = card",
        "counts": "SELECT word, cards FROM word_counts WHERE cards != 0",
        "vals": "SELECT path, kind, subject, value, line, start, end FROM stated_values JOIN files ON files.id = file",
        "entries": "SELECT path, first, last, kind, importance, text FROM entries JOIN files ON files.id = file",
        "lines": "SELECT key, path, line, text FROM log_statements JOIN files ON files.id = file",
        "problems": "SELECT path, line, code, what FROM problems JOIN files ON files.id = file",
        "files": "SELECT path, store, day, repository FROM files",
    }
    return {name: sorted(survey.db.execute(query).fetchall(), key=repr) for name, query in asked.items()}


def in_memory(place: Place) -> Survey:
    """A new survey of the same files, which leaves the file of the other one alone."""
    return Survey(str(place.base / "missing"), str(place.workspace))


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "remove", "log", "look")),
        st.integers(0, 4),
        st.sampled_from(
            (
                "apples are red",
                "The gateway listens on port 5204.",
                "- a\n- b c d e",
                "see [[card-1]] and [b](card-2.md)",
                "",
                "---\nbroken",
            )
        ),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(ACTS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_refreshed_equals_new(tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, str]]) -> None:
    place = Place.make(tmp_path_factory.mktemp("survey"))
    survey = a_survey(place)
    survey.refresh()
    for act, number, text in acts:
        if act == "write":
            write_card(place, f"card-{number}", text)
        elif act == "log":
            put(place, f"memory/2026-01-0{number + 1}.md", f"- [lesson|i=0.{number}] {text}\n")
        elif act == "look":
            survey.refresh()
        else:
            (place.workspace / f"memory/cards/card-{number}.md").unlink(missing_ok=True)
    survey.refresh()
    fresh = in_memory(place)
    fresh.refresh()
    assert everything(survey) == everything(fresh)
    survey.close()


def test_nothing_changed_reads_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_card(place, f"card-{number}", f"Text {number}.")
    survey = a_survey(place)
    survey.refresh()
    _age(place.workspace)
    survey.refresh()
    read: list[str] = []
    monkeypatch.setattr(module, "read_memory_file", lambda location: read.append(location))
    monkeypatch.setattr(module, "find_changes", lambda *_, **__: pytest.fail("it was compared row by row"))
    assert survey.refresh().changed == 0
    assert read == []


def _age(root: Path) -> None:
    """Wait until the change times of all files are past the moment in which a change may be missed."""
    import time

    newest = max(os.lstat(path).st_ctime_ns for path in root.rglob("*"))
    while time.time_ns() - newest <= 2_100_000_000:
        time.sleep(0.05)


@pytest.mark.parametrize(
    "damage", [b"not a database at all, not even nearly", b"", b"SQLite format 3\0" + b"\xff" * 4_000]
)
def test_a_damaged_survey_is_made_again(place: Place, damage: bytes) -> None:
    write_card(place, "one", "The gateway listens on port 5204.")
    survey = a_survey(place)
    survey.refresh()
    expected = everything(survey)
    survey.close()
    (place.workspace / ".truekeep" / SURVEY.file).write_bytes(damage)
    again = a_survey(place)
    again.refresh()
    assert everything(again) == expected


def test_damage_in_the_middle_is_met_and_mended(place: Place) -> None:
    for number in range(200):
        write_card(place, f"card-{number}", f"Card {number} says something about topic {number * 7}.")
    survey = a_survey(place)
    survey.refresh()
    survey.close()
    path = place.workspace / ".truekeep" / SURVEY.file
    data = bytearray(path.read_bytes())
    for page in range(3, len(data) // 4096):
        data[page * 4096 : page * 4096 + 2000] = b"\xa5" * 2000
    path.write_bytes(data)
    write_card(place, "card-3", "Another text.")
    again = a_survey(place)
    again.refresh()
    assert again.count("cards") == 200


def test_a_foreign_database_is_replaced_and_a_read_only_folder_is_no_obstacle(place: Place) -> None:
    import apsw

    write_card(place, "one", "Text.")
    path = place.workspace / ".truekeep" / SURVEY.file
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE other (x); PRAGMA user_version = 77")
    db.close()
    survey = a_survey(place)
    survey.refresh()
    assert survey.count("cards") == 1
    nowhere = Survey(str(place.workspace / "no-such-folder"), str(place.workspace))
    nowhere.refresh()
    assert nowhere.count("cards") == 1


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("Just text.\n", "no-frontmatter", 1),
        ("---\ntopic: a\ncreated: 2026-01-01\n", "broken-frontmatter", 1),
        ("---\ntopic: a\ncreated: 2026-05-01\nupdated: 2026-04-01\n---\n\nx\n", "dates-lie", 1),
        ("---\ntopic: a\ncreated: 2026-02-30\n---\n\nx\n", "bad-date", 3),
        ("---\ntopic: a\ncreated: yesterday\n---\n\nx\n", "bad-date", 3),
        ("---\ntopic: a\ncreated: 20260101\n---\n\nx\n", "bad-date", 3),
        ("---\ntopic: a\n---\n\nx\n", "no-date", 1),
        ("---\ncreated: 2026-01-01\n---\n\nx\n", "no-topic", 1),
        ("---\ntopic: a\ncreated: 2026-01-01\nupdated: 2999-01-01\n---\n\nx\n", "future-date", 1),
        (b"---\ntopic: \xff\xfe\n---\n\nx\n", "not-text", 1),
    ],
)
def test_frontmatter_that_lies_is_named_with_its_place(place: Place, text: str | bytes, code: str, line: int) -> None:
    put(place, "memory/cards/odd.md", text)
    write_card(place, "well", "Text.")
    survey = a_survey(place)
    survey.refresh()
    problems = [(item.path, item.code, item.line) for item in survey.problems(TODAY)]
    assert (("memory/cards/odd.md", code, line)) in problems
    assert all(path == "memory/cards/odd.md" for path, _, _ in problems)
    assert survey.count("files") >= 2


def test_a_date_of_today_is_no_future_and_becomes_one_in_nobodys_sight(place: Place) -> None:
    write_card(place, "well", "Text.", day=TODAY.isoformat())
    survey = a_survey(place)
    survey.refresh()
    assert list(survey.problems(TODAY)) == []
    assert [item.code for item in survey.problems(TODAY - timedelta(days=1))] == ["future-date"]


@pytest.mark.slow
def test_a_log_of_50_000_lines(place: Place) -> None:
    lines = (f"- [context|i=0.{number % 10}] Entry {number} about machine {number % 97}" for number in range(50_000))
    put(place, "memory/2026-01-01.md", "\n".join(lines) + "\n- [x|i=7] nonsense\n- [|i=] nothing\n")
    survey = a_survey(place)
    survey.refresh()
    assert survey.count("entries") == 50_000
    assert [(item.code, item.line) for item in survey.problems(TODAY)] == [("bad-tag", 50_001), ("bad-tag", 50_002)]


def test_a_link_out_of_the_workspace_is_not_followed(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("---\ntopic: secret\n---\n\nThe vault listens on port 1234.\n")
    folder = place.workspace / "memory" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link.md").symlink_to(secret)
    survey = a_survey(place)
    survey.refresh()
    assert survey.count("cards") == 0
    assert survey.count("stated_values") == 0


def test_what_can_be_chosen_follows_the_cards(place: Place) -> None:
    """Also where somebody else surveyed them meanwhile."""
    write_card(place, "one", "Apples are red.", repository="example.org/fruit")
    mine, other = a_survey(place), a_survey(place)
    mine.refresh()
    assert mine.browsing.choices()["repository"] == ["example.org/fruit"]
    assert mine.browsing.choices()["repository"] == ["example.org/fruit"]
    write_card(place, "two", "Oaks are tall.", repository="example.org/trees")
    other.refresh()
    assert mine.browsing.choices()["repository"] == ["example.org/fruit", "example.org/trees"]
    (place.workspace / "memory/cards/one.md").unlink()
    mine.refresh()
    assert mine.browsing.choices()["repository"] == ["example.org/trees"]
    mine.close()
    other.close()


def test_nobody_waits_for_a_large_file_that_is_known(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day's log of megabytes that grows is read by upkeep; whoever looks at a page gets what was known of it."""
    monkeypatch.setattr(module, "_SLOW_FILE_BYTES", 100)
    put(place, "memory/2026-11-14.md", "# 2026-11-14\n\n" + "- the gateway listens on port 5204\n" * 5)
    put(place, "memory/2026-11-13.md", "# 2026-11-13\n\n- short\n")
    survey = a_survey(place)
    assert survey.refresh(max_files=10).later == 0, "what is not known yet is read at once"
    put(place, "memory/2026-11-14.md", "# 2026-11-14\n\n" + "- the mailer listens on port 5301\n" * 5)
    put(place, "memory/2026-11-13.md", "# 2026-11-13\n\n- long\n")
    waited = survey.refresh(max_files=10)
    said = [row[-1] for row in everything(survey)["lines"]]
    assert waited.later == 1
    assert any("5204" in text for text in said)
    assert survey.refresh().later == 0
    fresh = in_memory(place)
    fresh.refresh()
    assert everything(survey) == everything(fresh)
    assert not any("5204" in row[-1] for row in everything(survey)["lines"])
