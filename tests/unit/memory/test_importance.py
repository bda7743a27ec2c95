"""Importance tags: which entries they make, which cannot be read, and what has expired on a day."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from truekeep.memory.importance import (
    BadTag,
    TaggedEntry,
    Tiers,
    blank_expired,
    expired,
    expires_on,
    parse_entries,
    tier_of,
)

DAY = date(2026, 5, 1)
TIERS = Tiers()


def entries(text: str) -> list[tuple[int, int, str, float, str]]:
    found, bad = parse_entries(text)
    assert bad == []
    return [(entry.first, entry.last, entry.kind, entry.importance, entry.text) for entry in found]


def bad_lines(text: str) -> list[int]:
    return [tag.line for tag in parse_entries(text)[1]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("- [decision|i=0.9] Switched to SQLite", [(1, 1, "decision", 0.9, "Switched to SQLite")]),
        ("* [lesson|i=.5] a\n+ [x|i=1] b\n", [(1, 1, "lesson", 0.5, "a"), (2, 2, "x", 1.0, "b")]),
        ("2. [y|i=0] c", [(1, 1, "y", 0.0, "c")]),
        ("[context|i=0.3] a line\nand more\n\nnot this", [(1, 2, "context", 0.3, "a line\nand more")]),
        ("[a|i=0.3] one\n[b|i=0.9] two\nthree", [(1, 1, "a", 0.3, "one"), (2, 3, "b", 0.9, "two\nthree")]),
        ("- [a|i=0.3] one\n  more\n lazy\n\n  more\n\nnot this", [(1, 5, "a", 0.3, "one\nmore\nlazy\nmore")]),
        ("- [a|i=0.3] one\nat the margin", [(1, 1, "a", 0.3, "one")]),
        ("- x\n  - [a|i=0.3] one\n  at its margin\n    not this", [(2, 2, "a", 0.3, "one")]),
        ("- [a|i=0.3] one\n  - nested\n    - deeper\n- not this", [(1, 3, "a", 0.3, "one\n- nested\n  - deeper")]),
        ("- [a|i=0.3] 1\n\n  ```\n  - [b|i=0.9] 2\n  ```\n- x", [(1, 5, "a", 0.3, "1\n```\n- [b|i=0.9] 2\n```")]),
        ("- untagged\n  - [a|i=0.3] nested\n    more\n  - other", [(2, 3, "a", 0.3, "nested\nmore")]),
        ("- **[a|i=0.3]** bold\n- [ ] [b|i=0.3]: box", [(1, 1, "a", 0.3, "bold"), (2, 2, "b", 0.3, "[ ] box")]),
        ("- [two words | i=0.5] x", [(1, 1, "two words", 0.5, "x")]),
        ("- [a|i=0.3] one\r\n  more\r\n- b\r\n", [(1, 2, "a", 0.3, "one\nmore")]),
        ("\t- [a|i=0.3] code of a tab", []),
        ("- x\n\t- [a|i=0.3] nested by a tab", [(2, 2, "a", 0.3, "nested by a tab")]),
        ("# [a|i=0.3] a heading\n\n## b", []),
        ("- [a|i=0.3] one\n# Heading\ntext", [(1, 1, "a", 0.3, "one")]),
        ("- [a|i=0.3] one\n> quoted", [(1, 1, "a", 0.3, "one")]),
        ("[a|i=0.3] one\n- an item of its own", [(1, 1, "a", 0.3, "one")]),
    ],
)  # fmt: skip
def test_entries(text: str, wanted: list[tuple[int, int, str, float, str]]) -> None:
    assert entries(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "```\n- [a|i=0.3] code\n```",
        "~~~~\n- [a|i=0.3] code\n~~~\n- [a|i=0.3] still\n~~~~",
        "```\n- [a|i=0.3] a fence that nothing closes",
        "<!--\n- [a|i=0.3] a comment\n-->",
        "<!-- - [a|i=0.3] a comment -->",
        "<div>\n- [a|i=0.3] html\n</div>",
        "    - [a|i=0.3] indented code",
        "> - [a|i=0.3] quoted",
        "text [a|i=0.3] in the middle",
        "[[a|i=0.3]] a link between notes",
        "- [a|i=0.3](https://example.org) a link",
        "- [a] i=0.3",
        "- [a|importance=0.3] another key",
        "i= without any bracket",
    ],
)
def test_no_entries(text: str) -> None:
    assert parse_entries(text) == ([], [])


@pytest.mark.parametrize(
    "tag",
    [
        *("[x|i=7]", "[|i=]", "[decision|i=high]", "[d|i=-0.5]", "[d|i=nan]", "[d|i=]", "[|i=0.5]", "[d|i=1.01]"),
        *("[d|i=0.9", "[d|i=inf]", "[d|i=1e-1]", "[d|i=0,9]", "[d|i=0.9|x=1]", "[d|i=٣]", "[d|i=0x1]", "[d|i=0.5 0.6]"),
        *("[d|i=.]", "[d|i=+1]", "[d|i=1_0]", f"[d|i={'9' * 50}]", f"[d|i={'9' * 500}]"),
    ],
)
def test_a_tag_that_cannot_be_read_is_told_and_its_entry_stays(tag: str) -> None:
    text = f"# Day\n\n- [context|i=0.1] goes\n- {tag} stays\n{tag} stays, too\n"
    found, bad = parse_entries(text)
    assert [(entry.first, entry.last) for entry in found] == [(3, 3)]
    assert [item.line for item in bad] == [4, 5]
    assert all(item.what and len(item.what) < 120 for item in bad)
    left = blank_expired(text, DAY, TIERS, date(2036, 1, 1)).split("\n")
    assert left[3:5] == text.split("\n")[3:5]
    assert left[2] == ""


def test_the_most_important_tag_of_an_entry_counts() -> None:
    text = "- [context|i=0.1] Went through the logs\n  - [decision|i=0.9] SQLite it is\n  - [note|i=0.2] more\n"
    assert entries(text) == [(1, 3, "decision", 0.9, "Went through the logs\n- SQLite it is\n- more")]
    assert blank_expired(text, DAY, TIERS, date.max) == text


def test_an_entry_with_a_bad_tag_in_it_stays_whole() -> None:
    text = "- [context|i=0.1] Went through the logs\n  - [decision|i=high] SQLite it is\n- [context|i=0.1] goes\n"
    found, bad = parse_entries(text)
    assert [entry.first for entry in found] == [3]
    assert [tag.line for tag in bad] == [2]


@pytest.mark.parametrize(
    ("importance", "tier", "days"),
    [
        (1.0, "structural", None),
        (0.8, "structural", None),
        (0.79, "potential", 30),
        (0.4, "potential", 30),
        (0.39, "contextual", 7),
        (0.0, "contextual", 7),
    ],
)
def test_tiers(importance: float, tier: str, days: int | None) -> None:
    assert tier_of(importance, TIERS) == tier
    end = expires_on(DAY, importance, TIERS)
    assert end == (DAY + timedelta(days=days) if days is not None else None)
    text = f"- [a|i={importance}] x"
    assert expired(text, DAY, TIERS, DAY + timedelta(days=6)) == []
    if end is not None:
        assert expired(text, DAY, TIERS, end - timedelta(days=1)) == []
        assert len(expired(text, DAY, TIERS, end)) == 1


def test_a_day_at_the_end_of_time_never_expires() -> None:
    assert expires_on(date(9999, 12, 31), 0.1, TIERS) is None
    assert blank_expired("- [a|i=0.1] x", date(9999, 12, 31), TIERS, date.max) == "- [a|i=0.1] x"


PIECES = st.sampled_from(
    [
        *(
            "- ",
            "* ",
            "1. ",
            "  ",
            "    ",
            "\t",
            "> ",
            "# ",
            "```",
            "~~~",
            "<!--",
            "-->",
            "<div>",
            "\n",
            "\n\n",
            "\r\n",
        ),
        *("[a|i=0.1] ", "[b|i=0.5] ", "[c|i=0.9] ", "[d|i=7] ", "[|i=] ", "[e|i=", "]", "word ", "i=", "---", "==="),
    ]
)
LOGS = st.lists(PIECES, max_size=40).map("".join)


@pytest.mark.slow
@example("- [a|i=0.1] x\n  - [c|i=0.9] y", 40)
@example("[a|i=0.1] x\n[c|i=0.9] y\n", 40)
@settings(deadline=None, max_examples=400)
@given(LOGS, st.integers(0, 60))
def test_nothing_structural_and_nothing_untagged_is_blanked(text: str, days: int) -> None:
    on = DAY + timedelta(days=days)
    left = blank_expired(text, DAY, TIERS, on)
    before, after = text.split("\n"), left.split("\n")
    assert len(before) == len(after)
    found, bad = parse_entries(text)
    gone = {number for number, (one, other) in enumerate(zip(before, after, strict=True), 1) if one != other}
    allowed = {
        number
        for entry in found
        if (end := expires_on(DAY, entry.importance, TIERS)) is not None and end <= on
        for number in range(entry.first, entry.last + 1)
    }
    assert gone <= allowed
    assert all(after[number - 1] == "" for number in gone)
    assert not gone & {tag.line for tag in bad}
    assert all("[c|i=0.9]" not in before[number - 1] or _is_in_code(text, number) for number in gone)


def _is_in_code(text: str, line: int) -> bool:
    """Whether a line is code or HTML to a parser: a tag there is none."""
    for token in MarkdownIt("commonmark").parse(text.replace("\r\n", "\n")):
        is_raw = token.type in ("fence", "code_block", "html_block")
        if is_raw and token.map and token.map[0] < line <= token.map[1]:
            return True
    at_start = r"[ \t]*(?:(?:[-*]|1\.)[ \t]+)*\[c\|i=0\.9\]"
    return re.match(at_start, text.split("\n")[line - 1]) is None  # in the middle of a line it is none either


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(LOGS)
def test_entries_are_in_order_and_apart(text: str) -> None:
    found, _ = parse_entries(text)
    count = text.count("\n") + 1
    last = 0
    for entry in found:
        assert last < entry.first <= entry.last <= count
        assert 0 <= entry.importance <= 1
        last = entry.last


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(LOGS, st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_day_by_day_is_all_at_once(text: str, days: list[int]) -> None:
    """What is gone on a day is gone on every later one, and how often somebody looked does not matter."""
    gone: set[int] = set()
    for day in sorted(days):
        left = blank_expired(text, DAY, TIERS, DAY + timedelta(days=day)).split("\n")
        now = {number for number, (one, other) in enumerate(zip(text.split("\n"), left, strict=True)) if one != other}
        assert gone <= now
        gone = now


def test_what_is_left_stays_what_it_was() -> None:
    """Blanking an entry does not make an entry, or code, of what follows."""
    text = "- [a|i=0.1] x\n\n  ```\n  code\n\n- [c|i=0.9] y\n  more\n- [b|i=0.5] z\n"
    left = blank_expired(text, DAY, TIERS, DAY + timedelta(days=10))
    assert left == "\n\n\n\n\n- [c|i=0.9] y\n  more\n- [b|i=0.5] z\n"
    assert parse_entries(left)[0] == parse_entries(text)[0][1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("- [context|i=0.3] x\n", "[context|i=0.3] x\n", "  - [a|i=0.1] b\n", "- [a|i=0.1\n", "- [x|i=7] y\n"),
        *("- ", "> ", "[x|i=", "*", "<!-- ", "```\n", "1. ", "\t", "[", "|i="),
    ],
)
def test_long_logs_are_read_in_one_go(unit: str) -> None:
    """50,000 lines, and lines without end; that it ends at all within the test's time is the point."""
    text = unit * 50_000 + "\n- [context|i=0.1] the end\n"
    found, bad = parse_entries(text)
    assert isinstance(found, list)
    assert len(found) + len(bad) <= text.count("\n") + 1


@pytest.mark.slow
def test_a_log_of_fifty_thousand_entries() -> None:
    text = "".join(f"- [context|i=0.{number % 10}] entry {number}\n  more of it\n" for number in range(25_000))
    found, bad = parse_entries(text)
    assert (len(found), bad) == (25_000, [])
    assert found[-1] == TaggedEntry(49_999, 50_000, "context", 0.9, "entry 24999\nmore of it")
    left = blank_expired(text, DAY, TIERS, DAY + timedelta(days=7)).split("\n")
    assert sum(bool(line) for line in left) == 2 * 25_000 * 6 // 10


def test_a_bad_tag_says_where_and_what() -> None:
    assert parse_entries("\n- [x|i=7] y")[1] == [BadTag(2, "[x|i=7]: the importance is above 1")]
    assert bad_lines("- [decision|i=high] x\n\n[|i=] y") == [1, 3]
