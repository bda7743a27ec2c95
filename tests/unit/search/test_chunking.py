"""Chunks are whole lines: short texts in one piece, longer ones cut at headings and entries."""

from __future__ import annotations

import hashlib
import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.memory.file_scan import MemoryFile
from truekeep.search.chunking import LONGEST_LINE, SHORT, SIZE, Chunk, split_chunks, strip_notes, weigh
from truekeep.search.refresh import prepare

FILLER = "word " * 20  # 100 characters
LENGTHS = st.sampled_from([0, 1, 40, 90, 399, 400, 401, 1199, 1200, 1599, 1600, 1601, 3300])
LINES = st.tuples(LENGTHS, st.sampled_from(["ab ", "数", "é", "🦊", "한 ", "- ", "# x", "| a "])).map(
    lambda made: (made[1] * made[0])[: made[0]]
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=200), LINES), max_size=25).map("\n".join))
def test_every_line_is_in_one_chunk(text: str) -> None:
    lines = text.split("\n")
    chunks = split_chunks(text)
    covered = {number for chunk in chunks for number in range(chunk.first, chunk.last + 1)}
    assert covered >= {number for number, line in enumerate(lines, 1) if line.strip()}
    for before, after in pairwise(chunks):
        assert before.last < after.first or len(lines[after.first - 1]) > LONGEST_LINE
    for chunk in chunks:
        assert chunk.text.strip()
        if max(map(len, lines)) <= LONGEST_LINE:
            assert chunk.text == "\n".join(lines[chunk.first - 1 : chunk.last])


def test_sizes() -> None:
    assert split_chunks("") == []
    assert split_chunks("\n \n\t\n") == []
    assert split_chunks("one") == [Chunk(1, 1, "one")]
    assert split_chunks("one\n") == [Chunk(1, 2, "one\n")]
    assert split_chunks("\n\none") == [Chunk(1, 3, "\n\none")]


def test_a_short_text_is_one_chunk() -> None:
    text = f"# Card\n\n## One\n{FILLER * 6}\n## Two\n{FILLER * 6}"
    assert len(text) < SHORT
    assert split_chunks(text) == [Chunk(1, 6, text)]


def test_a_section_begins_a_chunk_unless_the_one_before_is_small() -> None:
    sections = [f"## Section {number}\n{FILLER * (1 if number == 2 else 6)}" for number in range(5)]
    firsts = [chunk.text.split("\n")[0] for chunk in split_chunks("\n".join(sections))]
    assert firsts == ["## Section 0", "## Section 1", "## Section 2", "## Section 4"]


def test_an_entry_is_not_cut_from_its_continuation() -> None:
    entries = [f"- entry {number} {FILLER}\n  goes on {FILLER}" for number in range(20)]
    chunks = split_chunks("\n".join(entries))
    assert len(chunks) > 1
    assert all(chunk.text.startswith("- entry") and weigh(chunk.text) <= SIZE for chunk in chunks)


def test_a_list_of_bullets_is_not_shredded() -> None:
    chunks = split_chunks("\n".join(f"- bullet {number} {FILLER}" for number in range(40)))
    assert len(chunks) == 4


def test_a_link_to_a_card_is_a_chunk_of_its_own() -> None:
    text = "# Memory\n- [One](memory/cards/one.md) — hint\n- [Two](memory/cards/two.md)\n\nOther notes\n- plain"
    assert [(chunk.first, chunk.text.strip()) for chunk in split_chunks(text)] == [
        (1, "# Memory"),
        (2, "- [One](memory/cards/one.md) — hint"),
        (3, "- [Two](memory/cards/two.md)"),
        (4, "Other notes\n- plain"),
    ]


@pytest.mark.parametrize("size", [1601, 3200, 3201, 5000, 100_000])
def test_a_long_line_is_cut(size: int) -> None:
    chunks = split_chunks("intro\n" + "x" * size + "\nend")
    assert all(chunk.first == chunk.last and len(chunk.text) <= LONGEST_LINE for chunk in chunks)
    assert "".join(chunk.text for chunk in chunks) == "intro" + "x" * size + "end"
    assert (chunks[0].first, chunks[1].first, chunks[-1].first) == (1, 2, 3)


@pytest.mark.parametrize(("text", "weight"), [("abc", 3), ("é", 1), ("数", 3), ("あア한", 9), ("a数", 4), ("🦊", 1)])
def test_cjk_says_more_in_a_character(text: str, weight: int) -> None:
    assert weigh(text) == weight


def test_no_character_is_broken() -> None:
    assert set("".join(chunk.text for chunk in split_chunks("a" + "🦊" * 4000))) == {"a", "🦊"}


def test_lone_surrogates_are_no_trouble() -> None:
    assert split_chunks("\ud800x\udfff\n" * 500)[0].first == 1


def test_only_line_feeds_end_lines() -> None:
    (chunk,) = split_chunks("one\r\ntwo\rthree\u2028four\x0bfive\n")
    assert (chunk.first, chunk.last) == (1, 3)
    assert chunk.text == "one\r\ntwo\rthree\u2028four\x0bfive\n"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("- one <!-- importance: 7 -->\n- two", "- one\n- two"),
        ("- one <!-- trigger: deploy, ship --> <!-- project: a; b -->", "- one"),
        ("a <!--importance: 7--> b", "a  b"),
        ("a <!-- Importance: 7 --> ", "a"),
        ("a <!-- a remark --> ", "a <!-- a remark --> "),
        ("a <!-- importance: 7", "a <!-- importance: 7"),
        ("trailing  \nblanks  ", "trailing  \nblanks  "),
        ("<!-- importance: 7 -->\nx", "\nx"),
    ],
)
def test_annotations_are_no_content(text: str, stripped: str) -> None:
    assert strip_notes(text) == stripped


@pytest.mark.parametrize("piece", ["<!--", "-->", "<!-- project: x -->", "<!-- trigger: \n", "<!-- other: "])
def test_many_annotations_cost_no_more_than_their_length(piece: str) -> None:
    assert_about_linear(lambda count: strip_notes(piece * count), 500, huge=100_000)


@pytest.mark.slow
def test_many_open_annotations_cost_no_more_than_their_length() -> None:
    assert_about_linear(lambda count: strip_notes("<!-- trigger: " * count), 500, huge=100_000)


def test_digests_are_of_the_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("- one <!-- importance: 3 -->\n- two\n")
    info = file.stat()
    source = MemoryFile("MEMORY.md", "cards", info.st_size, 0, 0, 0, str(file))
    prepared = prepare(source)
    assert [chunk.text for chunk in prepared.chunks] == ["- one\n- two\n"]
    assert prepared.digest == hashlib.sha256(file.read_bytes()).digest()


@pytest.mark.slow
def test_long_inputs_finish() -> None:
    chance = random.Random(1)
    for text in (
        "x" * 500_000,
        "x\n" * 100_000,
        "\n" * 100_000,
        "数" * 50_000,
        "🦊\n" * 20_000,
        "- \n" * 20_000,
        "".join(chance.choices("ab \n数", k=50_000)),
        "y" * 1599 + "\n" + "z\n" * 20_000,
    ):
        assert split_chunks(text) is not None
