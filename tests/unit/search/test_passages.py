"""How chunks are cut into windows, and how the windows of all of them compete."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import Place
from truekeep.search.passages import WINDOW, split_windows

TODAY = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
SENTENCE = "The kiln is fired on Mondays and left to cool for nine hours. "


def texts_of(text: str) -> list[str]:
    return [text[start:end] for start, end in split_windows(text)]


def test_windows_are_whole_lines_of_about_400_characters() -> None:
    lines = [f"- Entry {number} has some words of its own about the barn." for number in range(30)]
    windows = texts_of("\n".join(lines))
    assert all(len(window) <= WINDOW for window in windows)
    assert [line for window in windows for line in window.split("\n")] == lines


def test_a_heading_stays_with_what_follows_it() -> None:
    entry = "- " + "word " * 60
    windows = texts_of(f"{entry}\n## Kilns\n{entry}\n{entry}\n## Roofs\n{SENTENCE * 10}")
    assert not any(window.rstrip().split("\n")[-1].startswith("#") for window in windows)


def test_a_long_line_is_cut_between_sentences() -> None:
    windows = texts_of(SENTENCE * 20)
    assert len(windows) == 3
    assert all(window.startswith("The kiln") for window in windows)


def test_a_cjk_character_counts_as_three() -> None:
    assert len(texts_of("\n".join(["窑炉每周一点火然后冷却九个小时"] * 20))) == 3


@given(st.text(alphabet=st.sampled_from("ab #-.\n窑İ["), max_size=3_000), st.integers(0, 50))
def test_windows_follow_each_other_and_lose_no_letter(text: str, start: int) -> None:
    start = min(start, len(text))
    windows = split_windows(text, start)
    ends = [start, *(end for _, end in windows)]
    for end, (first, last) in zip(ends, windows, strict=False):
        assert end <= first < last <= len(text)
    kept = "".join(text[first:last] for first, last in windows)
    assert sum(map(kept.count, "ab窑İ")) == sum(map(text[start:].count, "ab窑İ"))


@pytest.fixture
def place(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    return place


def test_both_parts_of_a_question_may_be_answered_by_one_long_file(place: Place) -> None:
    filler = "".join(f"- Shed {number} was swept and its gutter mended, nothing else.\n" for number in range(40))
    file = place.workspace / "memory/farm.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"# Farm\n\n{filler}\n## Kiln\n\n- Firing starts at dawn.\n\n{filler}\n## Ferry\n\n- It sails at noon.\n"
    )
    with place.open(now=TODAY) as workspace:
        hits = workspace.search.find("when does the firing of the kiln start and when does the ferry sail").hits
    shown = "\n".join(hit.text for hit in hits[:3])
    assert "Firing starts at dawn" in shown
    assert "It sails at noon" in shown


def test_a_passage_in_the_middle_of_a_long_line_cites_that_line(place: Place) -> None:
    file = place.workspace / "memory/kilns.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"# Kilns\n\n{SENTENCE * 10}The spare key hangs behind the blue door. {SENTENCE * 10}\n\nThe end.\n"
    )
    with place.open(now=TODAY) as workspace:
        hit = workspace.search.find("where does the spare key hang").hits[0]
    assert (hit.first, hit.last, hit.best) == (3, 3, 3)
    assert "spare key hangs behind the blue door" in hit.text
    assert len(hit.text) < 600
