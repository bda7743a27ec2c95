"""Chunks are OpenClaw's: its sizes, its overlap, its lines, checked against a plain rendering of its rules."""

from __future__ import annotations

import hashlib
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.memory.file_scan import MemoryFile
from truekeep.search.chunking import BUDGET, OVERLAP, Chunk, split_chunks, strip_notes, weigh
from truekeep.search.file_metadata import is_by_entry
from truekeep.search.refresh import prepare

# --- The rules again, as the fact sheet states them, one step after the other ----------------------------------------


def plain_weight(character: str) -> int:
    """ASCII, Latin and common CJK only: what these tests feed it."""
    if "\u4e00" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3" or "\u3000" <= character <= "\u30ff":
        return 4
    return 2 if ord(character) > 0xFFFF else 1


def plain_segments(line: str) -> list[str]:
    """A line longer than the budget in UTF-16 units is cut into pieces; a piece that weighs more, again by weight."""
    pieces, piece, units = [], "", 0
    for character in line:
        width = 2 if ord(character) > 0xFFFF else 1
        if units + width > 1600:
            pieces.append(piece)
            piece, units = "", 0
        piece += character
        units += width
    pieces.append(piece)
    fitting: list[str] = []
    for piece in pieces:
        part, weight = "", 0
        for character in piece:
            if part and weight + plain_weight(character) > 1600:
                fitting.append(part)
                part, weight = "", 0
            part += character
            weight += plain_weight(character)
        fitting.append(part)
    return fitting


def plain_chunks(text: str, *, by_entry: bool = False) -> list[Chunk]:
    chunks: list[Chunk] = []
    held: list[tuple[int, str]] = []

    def cost(segment: str) -> int:
        return sum(map(plain_weight, segment)) + 1

    def emit() -> None:
        joined = "\n".join(segment for _, segment in held)
        if joined.strip():
            chunks.append(Chunk(held[0][0], held[-1][0], joined))

    for number, line in enumerate(text.split("\n"), 1):
        if by_entry and held and (line.startswith("- ") or re.match(r"#{1,6}(\s|$)", line)):
            emit()
            held = []
        for segment in plain_segments(line):
            if held and sum(cost(kept) for _, kept in held) + cost(segment) > 1600:
                emit()
                window = min(320, max(0, 1600 - cost(segment)))
                tail: list[tuple[int, str]] = []
                for kept in reversed(held):
                    if sum(cost(other) for _, other in tail) + cost(kept[1]) > window:
                        break
                    tail.insert(0, kept)
                if not tail:
                    last, end = held[-1], ""
                    for character in reversed(last[1]):
                        if sum(map(plain_weight, character + end)) > window - 1:
                            break
                        end = character + end
                    tail = [(last[0], end)] if end else []
                held = tail
            held.append((number, segment))
    if held:
        emit()
    return chunks


LENGTHS = st.one_of(
    st.integers(0, 90), st.sampled_from([0, 1, 318, 319, 320, 321, 700, 1278, 1279, 1280, 1598, 1599, 1600, 1601, 3300])
)
ASCII_LINES = st.tuples(LENGTHS, st.sampled_from("ab -#x")).map(
    lambda made: ("- " if made[1] == "-" else "") + (made[1] + "bc d") * (made[0] // 5) + "z" * (made[0] % 5)
)
MIXED_LINES = st.tuples(LENGTHS, st.sampled_from(["a", "数", "é", "🦊", "a数", "🦊ab", "한 "])).map(
    lambda made: (made[1] * made[0])[: made[0]]
)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(ASCII_LINES, max_size=30).map("\n".join))
@example("")
@example("\n")
@example("x" * 1599)
@example("x" * 1600)
@example("x" * 1601)
@example("x" * 1599 + "\n" + "y" * 1599)
@example("x" * 1599 + "\n" + "y" * 1279 + "\nz")
@example("x" * 1280 + "\n" + "y" * 1280 + "\n" + "z" * 1280)
def test_the_fast_way_is_the_plain_way(text: str) -> None:
    assert split_chunks(text) == plain_chunks(text)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(MIXED_LINES, ASCII_LINES), max_size=20).map("\n".join))
@example("数" * 400 + "\n" + "数" * 401)
@example("🦊" * 800 + "\n" + "a" * 10)
@example("a" + "🦊" * 800)
def test_the_slow_way_is_the_plain_way(text: str) -> None:
    assert split_chunks(text) == plain_chunks(text)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(ASCII_LINES, st.sampled_from(["- entry", "# Head", "####### no", "#tag", "  - in"])), max_size=30
    )
)
def test_by_entry_is_the_plain_way(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert split_chunks(text, by_entry=True) == plain_chunks(text, by_entry=True)


# --- What follows from them ------------------------------------------------------------------------------------------

ANY_LINES = st.lists(st.one_of(st.text(max_size=200), MIXED_LINES), max_size=25)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(ANY_LINES.map("\n".join), st.booleans())
def test_every_line_is_in_a_chunk(text: str, by_entry: bool) -> None:
    lines = text.split("\n")
    chunks = split_chunks(text, by_entry=by_entry)
    covered = {number for chunk in chunks for number in range(chunk.first, chunk.last + 1)}
    for number, line in enumerate(lines, 1):
        if line.strip():
            assert number in covered
    for chunk in chunks:
        assert 1 <= chunk.first <= chunk.last <= len(lines)
        assert chunk.text.strip()
        assert weigh(chunk.text) <= BUDGET
        for line in chunk.text.split("\n"):
            assert any(line in other for other in lines[chunk.first - 1 : chunk.last])
        if max(map(weigh, lines)) < OVERLAP:  # then no line is ever cut
            assert chunk.text == "\n".join(lines[chunk.first - 1 : chunk.last])
    assert [chunk.last for chunk in chunks] == sorted(chunk.last for chunk in chunks)
    assert [chunk.first for chunk in chunks] == sorted(chunk.first for chunk in chunks)
    assert split_chunks(text, by_entry=by_entry) == chunks


def test_sizes() -> None:
    assert (BUDGET, OVERLAP) == (1600, 320)
    assert split_chunks("") == []
    assert split_chunks("\n \n\t\n") == []
    assert split_chunks("one") == [Chunk(1, 1, "one")]
    assert split_chunks("one\n") == [Chunk(1, 2, "one\n")]
    assert split_chunks("\n\none") == [Chunk(1, 3, "\n\none")]


def test_overlap_is_whole_lines_from_the_end() -> None:
    lines = [f"line {number:03} " + "x" * 90 for number in range(40)]
    chunks = split_chunks("\n".join(lines))
    for before, after in pairwise(chunks):
        shared = before.last - after.first + 1
        assert shared == 3  # three lines of a hundred characters fit into 320
        assert after.text.startswith("\n".join(lines[after.first - 1 : before.last]))


def test_a_last_line_that_does_not_fit_leaves_its_end() -> None:
    long = "".join(f"{number:04}" for number in range(200))
    first, second = split_chunks(f"{'a' * 700}\n{long}\nb{'c' * 700}")
    assert (first.first, first.last, second.first, second.last) == (1, 2, 2, 3)
    assert second.text.split("\n")[0] == long[-319:]


def test_no_room_no_overlap() -> None:
    first, second = split_chunks(f"{'a' * 1000}\n{'b' * 1599}")
    assert (first.text, second.text) == ("a" * 1000, "b" * 1599)


@pytest.mark.parametrize("size", [1601, 3200, 3201, 5000, 100_000])
def test_a_long_line_is_cut(size: int) -> None:
    chunks = split_chunks("intro\n" + "x" * size + "\nend")
    assert chunks[0] == Chunk(1, 1, "intro")
    assert all(chunk.first <= 2 <= chunk.last for chunk in chunks[1:])
    assert all(weigh(chunk.text) <= BUDGET for chunk in chunks)
    assert sum(len(chunk.text) for chunk in chunks) >= size
    assert chunks[-1].last == 3


@pytest.mark.parametrize(
    ("character", "weight"),
    [
        ("a", 1), ("é", 1), ("ß", 1), ("\x00", 1), ("א", 1), ("ก", 1), ("·", 4), ("数", 4), ("あ", 4), ("ア", 4),
        ("한", 4), ("Ａ", 4), ("\u3000", 4), ("ｱ", 8), ("︽", 8), ("㐀", 12), ("ꀀ", 12), ("ᄀ", 12), ("\uf900", 12),
        ("🦊", 2), ("𝄞", 2), ("𝍠", 12), ("𠮷", 16), ("𛀀", 16), ("🈁", 16), ("\ud800", 1),
    ],
)  # fmt: skip
def test_weights(character: str, weight: int) -> None:
    assert weigh(character) == weight
    assert weigh(f"ab{character}{character}") == 2 + 2 * weight


def test_a_line_of_cjk_is_cut_by_weight() -> None:
    chunks = split_chunks("数" * 1000)
    assert [len(chunk.text) for chunk in chunks] == [400, 400, 79 + 1 + 200]  # overlap only where there is room
    assert all((chunk.first, chunk.last) == (1, 1) for chunk in chunks)


def test_no_character_is_broken() -> None:
    text = "a" + "🦊" * 2000
    joined = "".join(chunk.text for chunk in split_chunks(text))
    assert set(joined) <= {"a", "🦊", "\n"}


def test_lone_surrogates_are_no_trouble() -> None:
    text = "\ud800x\udfff\n" * 500
    assert split_chunks(text)[0].first == 1


def test_only_line_feeds_end_lines() -> None:
    (chunk,) = split_chunks("one\r\ntwo\rthree\u2028four\x0bfive\n")
    assert (chunk.first, chunk.last) == (1, 3)
    assert chunk.text == "one\r\ntwo\rthree\u2028four\x0bfive\n"


def test_entries() -> None:
    text = "# Memory\n\nintro\n- one\n  more of one\n- two\n\n## Next\n- three\n* no entry\n#tag\n"
    chunks = [(chunk.first, chunk.text) for chunk in split_chunks(text, by_entry=True)]
    assert chunks == [
        (1, "# Memory\n\nintro"), (4, "- one\n  more of one"), (6, "- two\n"), (8, "## Next"),
        (9, "- three\n* no entry\n#tag\n"),
    ]  # fmt: skip


def test_a_long_entry_overlaps_with_itself_only() -> None:
    text = "- first\n" + "\n".join(f"more {number} " + "x" * 90 for number in range(30)) + "\n- second\nend"
    chunks = split_chunks(text, by_entry=True)
    assert chunks[-1].text == "- second\nend"
    assert chunks[0].last >= chunks[1].first


@pytest.mark.parametrize(
    ("path", "by_entry"),
    [("MEMORY.md", True), ("USER.md", True), ("memory/MEMORY.md", False), ("TOOLS.md", False), ("memory/a.md", False)],
)
def test_which_files_are_by_entry(path: str, by_entry: bool) -> None:
    assert is_by_entry(path) is by_entry


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


def test_digests_are_of_the_text(tmp_path: Path) -> None:
    """A chunk's digest is the SHA-256 of its text, so that OpenClaw's vectors can be lent."""
    file = tmp_path / "a.md"
    file.write_text("- one <!-- importance: 3 -->\n- two\n")
    info = file.stat()
    source = MemoryFile("MEMORY.md", "cards", info.st_size, 0, 0, 0, str(file))
    prepared = prepare(source)
    assert [chunk.text for chunk in prepared.chunks] == ["- one", "- two\n"]
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
        split_chunks(text, by_entry=True)


def test_lines_that_each_leave_a_piece_of_themselves() -> None:
    """The fast way begins anew in the middle of a line each time; thousands of times are no depth to fall into."""
    text = "\n".join(["x" * 900] * 5000)
    assert len(split_chunks(text)) >= 4999
