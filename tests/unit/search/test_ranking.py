"""What decides between two memories: each rule on its own, with everything else equal."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.helpers import Place
from truekeep.search.query import edit_distance, variants
from truekeep.search.ranking import standardise
from truekeep.search.service import SearchResult
from truekeep.text.words import find_identifiers

TODAY = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
FILLER = "Nothing in this note has to do with the matter at hand, it only fills the memory."


class Notes:
    """A workspace that is written and asked."""

    def __init__(self, place: Place) -> None:
        self.place = place
        for number in range(12):
            self.write(f"memory/filler-{number}.md", f"# Filler {number}\n\n{FILLER} Number {number}.\n")

    def write(self, path: str, text: str) -> Path:
        file = self.place.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def ask(self, query: str) -> SearchResult:
        with self.place.open(now=TODAY) as workspace:
            return workspace.search.find(query)

    def paths(self, query: str) -> list[str]:
        return [hit.path for hit in self.ask(query).hits]


@pytest.fixture
def notes(place: Place, monkeypatch: pytest.MonkeyPatch) -> Notes:
    monkeypatch.setenv("TRUEKEEP_NO_BACKGROUND", "1")
    return Notes(place)


def card(body: str, *, updated: str = "2026-11-01", topic: str = "A topic") -> str:
    return f"---\ntopic: {topic}\ncreated: 2024-01-01\nupdated: {updated}\n---\n\n{body}\n"


@pytest.mark.slow
def test_a_card_goes_before_a_log_that_says_the_same(notes: Notes) -> None:
    notes.write("memory/2026-11-01.md", "The ferry leaves the northern quay at seven, all through the winter months.\n")
    notes.write(
        "memory/cards/ferry.md", card("The ferry leaves its northern quay at seven in all of the winter months.")
    )
    assert notes.paths("when does the ferry leave the northern quay")[:2] == [
        "memory/cards/ferry.md",
        "memory/2026-11-01.md",
    ]


@pytest.mark.slow
def test_a_clearly_better_log_goes_before_a_card(notes: Notes) -> None:
    notes.write("memory/2026-11-01.md", "The ferry leaves the northern quay at seven in winter.\n")
    notes.write("memory/cards/boats.md", card("Boats are painted every spring."))
    assert notes.paths("when does the ferry leave the northern quay")[0] == "memory/2026-11-01.md"


def test_of_two_equal_cards_the_newer_goes_first(notes: Notes) -> None:
    notes.write("memory/cards/a-old.md", card("The cache lives for 30 minutes on the gateway.", updated="2024-02-01"))
    notes.write("memory/cards/z-new.md", card("The cache lives for 90 minutes on the gateway.", updated="2026-11-10"))
    assert notes.paths("how long does the cache live on the gateway")[0] == "memory/cards/z-new.md"


@pytest.mark.slow
@pytest.mark.parametrize("query", ["zq0033x", "what about zq0033x and the boiler", "the boiler zq0033x today"])
def test_an_exact_identifier_is_first_whatever_its_age(notes: Notes, query: str) -> None:
    notes.write("memory/2021-03-04.md", "Ticket zq0033x: valve replaced.\n")
    for number in range(60):
        notes.write(
            f"memory/2026-10-{number % 28 + 1:02d}-{number}.md", f"The boiler ran fine today, round {number}.\n"
        )
    assert notes.paths(query)[0] == "memory/2021-03-04.md"


def test_near_identifiers_do_not_win_over_the_exact_one(notes: Notes) -> None:
    for name in ("parse_frame_header_v2", "parse_frame_hdr", "parseFrameHeaders", "frame_header_parse"):
        notes.write(f"memory/cards/{name.lower()}.md", card(f"`{name}` reads the header of a frame from the bus."))
    notes.write("memory/2023-01-01.md", "`parse_frame_header` reads the header of a frame from the bus.\n")
    first = notes.ask("parse_frame_header").hits[0]
    assert "`parse_frame_header" in first.text


def test_camel_case_is_found_by_its_parts_and_whole(notes: Notes) -> None:
    notes.write("memory/cards/x.md", card("retryBudgetMillis limits how long a client goes on."))
    for query in ("retryBudgetMillis", "retry budget millis", "retrybudgetmillis"):
        assert notes.paths(query)[0] == "memory/cards/x.md", query


@pytest.mark.slow
def test_the_named_day_counts_most(notes: Notes) -> None:
    for day in ("2026-03-02", "2026-03-03", "2026-03-04"):
        notes.write(f"memory/{day}.md", "Deployed the shop, cleaned the queue, talked about the roadmap.\n")
    for query in ("what did we do on 3 March 2026", "3. März 2026", "2026-03-03 deploy", "2026年3月3日", "March 3rd"):
        assert notes.paths(query)[0] == "memory/2026-03-03.md", query


def test_what_says_the_same_is_named_once(notes: Notes) -> None:
    same = "The staging database is rebuilt from the nightly dump every morning at six."
    for name in ("a", "b", "c"):
        notes.write(f"memory/cards/{name}.md", card(same))
    notes.write("memory/cards/d.md", card("The staging database has half the memory of the real one."))
    first = notes.ask("staging database nightly dump").hits[0]
    assert first.path.startswith("memory/cards/")
    assert len(first.also) == 2
    assert "memory/cards/d.md" in notes.paths("staging database nightly dump")


def test_a_pointer_goes_behind_the_card_it_points_at(notes: Notes) -> None:
    notes.write("memory/cards/tides.md", card("High water comes fifty minutes later each day.", topic="Tide tables"))
    index = notes.place.workspace / "MEMORY.md"
    index.write_text(index.read_text() + "- [Tide tables](memory/cards/tides.md)\n")
    assert notes.paths("tide tables")[0] == "memory/cards/tides.md"


def test_meaning_finds_what_shares_no_word(notes: Notes) -> None:
    notes.write("memory/cards/db.md", card("PostgreSQL holds the orders."))
    notes.write("memory/cards/cake.md", card("The bakery delivers on Fridays."))
    assert notes.paths("database")[0] == "memory/cards/db.md"


def test_a_hit_is_the_lines_that_answer_not_the_whole_file(notes: Notes) -> None:
    body = "\n".join(
        f"Paragraph {number} is about something else entirely and goes on for a while." for number in range(60)
    )
    notes.write("memory/long.md", f"{body}\nThe spare key hangs behind the blue door.\n{body}\n")
    hit = notes.ask("where is the spare key").hits[0]
    assert hit.first <= 61 <= hit.last
    assert hit.best == 61
    assert len(hit.text) <= 1700
    assert hit.text.split("\n")[61 - hit.first] == "The spare key hangs behind the blue door."


def test_frontmatter_is_not_an_answer(notes: Notes) -> None:
    notes.write("memory/cards/t.md", card("Umbrellas stand by the door.", topic="Rain gear"))
    hit = notes.ask("rain gear").hits[0]
    assert hit.path == "memory/cards/t.md"
    assert hit.text == "Umbrellas stand by the door."
    assert hit.citation == "memory/cards/t.md#L7"


def test_parts_add_up_to_an_order(notes: Notes) -> None:
    notes.write("memory/cards/a.md", card("The relay in rack four hums."))
    answer = notes.ask("relay rack hums")
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert {"words", "cover", "nearness", "chunk"} <= set(answer.hits[0].parts)


def test_standardise_keeps_order_and_survives_equal_values() -> None:
    assert standardise([]) == []
    assert standardise([3.0, 3.0]) == [0.0, 0.0]
    values = standardise([1.0, 5.0, 2.0])
    assert values[1] > values[2] > values[0]


@pytest.mark.parametrize(
    ("one", "other", "most", "expected"),
    [
        ("port", "port", 2, 0),
        ("prot", "port", 2, 1),
        ("connect", "conect", 2, 1),
        ("abc", "xyz", 2, 3),
        ("", "ab", 2, 2),
    ],
)
def test_edit_distance(one: str, other: str, most: int, expected: int) -> None:
    assert edit_distance(one, other, most) == expected


def _stepped(word: str, step: str, at: int) -> str:
    """A word with one letter changed, swapped with the next, put in or left out."""
    before, here, after = word[:at], word[at : at + 1], word[at + 1 :]
    return (
        before
        + {"change": "z" + after, "swap": after[:1] + here + after[1:], "in": "z" + here + after, "out": after}[step]
    )


STEPS = st.tuples(st.text("abcd", max_size=4), st.sampled_from(("change", "swap", "in", "out")), st.integers(0, 3))


@given(STEPS, STEPS)
def test_a_word_is_no_further_than_the_steps_that_were_taken(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    word, typed = one[0] + other[0], _stepped(*one) + other[0]
    assert edit_distance(word, typed, 1) == edit_distance(typed, word, 1) <= 1
    typed = _stepped(*one) + _stepped(*other)
    assert edit_distance(word, typed, 2) == edit_distance(typed, word, 2) <= 2


def test_variants_cover_forms() -> None:
    assert {"deploy", "deploys", "deployed", "deploying", "deployment"} <= set(variants("deploying"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what does parse_frame do", ["parse_frame"]),
        ("run it with --no-verify-tls please", ["--no-verify-tls"]),
        ("PAY-3312 again", ["PAY-3312"]),
        ("in src/app/main.py line", ["src/app/main.py"]),
        ("version 2.14.3?", ["2.14.3"]),
        ("the year 2026 was good", []),
        ("a plain question, really", []),
    ],
)
def test_identifiers_in_questions(text: str, expected: list[str]) -> None:
    assert [identifier.text for identifier in find_identifiers(text)] == expected
