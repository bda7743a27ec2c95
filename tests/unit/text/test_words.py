"""Words: identifiers, pairs of CJK characters, days, parts of camelCase; and input that wishes us ill."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truekeep.text.words import (
    STOP,
    WORD,
    cjk_pairs,
    content_words,
    find_identifiers,
    find_spans,
    fold_words,
    hump_words,
    spaced,
    split_lines,
    split_words,
    stem_key,
)

TODAY = date(2026, 11, 15)


def spans(text: str, today: date = TODAY) -> list[tuple[str, str]]:
    return [(span.first.isoformat(), span.last.isoformat()) for span in find_spans(text, today)[0]]


# --- Identifiers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identifier",
    [
        "zq0033x", "ERR_QUOTA_4711", "parseHTTPHeader", "snake_case", "kebab-case-name", "--no-verify", "-x86",
        "/etc/nginx/nginx.conf", "src/truekeep/words.py", "~/.bashrc", "10.20.30.40:8443", "PROJ-1234", "#1234",
        "v2.13.7", "$HOME", "user@example.org", "std::vector", "foo.bar", "a1b2c3d", "0x7ffd", "HTTP", "iPhone",
        "C:\\Users\\me", "k8s", "@decorator", "key=value",
    ],
)  # fmt: skip
def test_what_was_typed_to_be_found_exactly(identifier: str) -> None:
    for question in (
        identifier,
        f"what about {identifier}?",
        f"({identifier})",
        f'"{identifier}", please',
        f"`{identifier}`",
    ):
        found = [item.text for item in find_identifiers(question)]
        assert identifier in found, question


@pytest.mark.parametrize(
    "text",
    [
        "which port does staging answer on", "What is it?", "Hello, World.", "one two three", "a", "", "I am",
        "数据库连接", "well then: go", "2026",
    ],
)  # fmt: skip
def test_what_is_no_identifier(text: str) -> None:
    assert find_identifiers(text) == ()


def test_identifiers_once_each_and_in_order() -> None:
    found = find_identifiers("b_b a_a b_b, (a_a) c_c.")
    assert [item.text for item in found] == ["b_b", "a_a", "c_c"]
    assert [item.words for item in found] == [("b", "b"), ("a", "a"), ("c", "c")]


# --- Words ----------------------------------------------------------------------------------------------------------


def test_content_words() -> None:
    assert content_words("Which port does the STAGING proxy answer on?") == ("port", "staging", "proxy", "answer")
    assert content_words("to be or not to be") == ("to", "be", "or", "not")
    assert content_words("Wie ist der Port von Staging?") == ("port", "staging")
    assert content_words("数据库 port") == ("port",)
    assert content_words("snake_case foo.bar") == ("snake", "case", "foo", "bar")
    assert content_words("?!") == ()
    assert content_words("") == ()


def test_fold_words() -> None:
    assert fold_words("The Port and the port") == {"port"}
    assert fold_words("the and of") == set()
    assert all(word == word.lower() for word in STOP)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("数据库", ("数据", "据库")),
        ("数", ("数",)),
        ("接続プール", ("接続", "続プ", "プー", "ール")),
        ("数据 x 库存", ("数据", "库存")),
        ("연결 풀", ("연결", "풀")),
        ("はなぜ", ("はな", "なぜ")),
        ("枯渇した", ("枯渇", "渇し")),
        ("时时时", ("时时",)),
        ("人々", ("人々",)),
        ("「数据」、库", ("数据", "据库")),
        ("latin", ()),
        ("", ()),
    ],
)
def test_cjk_pairs(text: str, pairs: tuple[str, ...]) -> None:
    assert set(cjk_pairs(text)) == set(pairs)


def test_every_cjk_character_stands_alone_in_the_index() -> None:
    assert spaced("a数据b").split() == ["a", "数", "据", "b"]
    assert spaced("𠮷野").split() == ["𠮷", "野"]
    assert spaced("plain text") == "plain text"
    assert spaced("café") == "café"


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.sampled_from("a数据库あ한 é🦊\n-")))
def test_spacing_adds_only_blanks(text: str) -> None:
    assert "".join(spaced(text).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("parseHTTPHeader", {"parse", "HTTP", "Header"}),
        ("maxRetryCount here", {"max", "Retry", "Count"}),
        ("call getX2Y now", {"get", "X2", "Y"}),
        ("nothing Here At ALL", set()),
        ("", set()),
        ("oneTwo oneTwo", {"one", "Two"}),
        ("snake_caseWord", {"case", "Word"}),
    ],
)
def test_parts_of_camel_case(text: str, parts: set[str]) -> None:
    assert set(hump_words(text).split()) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [("deploy", "deploys"), ("deploy", "deployed"), ("deploy", "deploying"), ("stop", "stopped")],
)
def test_forms_of_a_word_have_a_common_beginning(one: str, other: str) -> None:
    assert stem_key(one) == stem_key(other)


# --- Days -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what happened on 2026-03-05", "2026-03-05", "2026-03-05"),
        ("on 2026/3/5?", "2026-03-05", "2026-03-05"),
        ("in 2026-03", "2026-03-01", "2026-03-31"),
        ("in 2024-02", "2024-02-01", "2024-02-29"),
        ("in 2025-12", "2025-12-01", "2025-12-31"),
        ("March 5, 2026", "2026-03-05", "2026-03-05"),
        ("March 5th", "2026-03-05", "2026-03-05"),
        ("5 March 2026", "2026-03-05", "2026-03-05"),
        ("the 5th of March", "2026-03-05", "2026-03-05"),
        ("mar 5 2026", "2026-03-05", "2026-03-05"),
        ("in March 2026", "2026-03-01", "2026-03-31"),
        ("Sept. 2025", "2025-09-01", "2025-09-30"),
        ("on December 24", "2025-12-24", "2025-12-24"),
        ("am 5. März 2026", "2026-03-05", "2026-03-05"),
        ("am 3. Oktober", "2026-10-03", "2026-10-03"),
        ("im Dezember 2025", "2025-12-01", "2025-12-31"),
        ("2026年3月5日に", "2026-03-05", "2026-03-05"),
        ("3月5日の会議", "2026-03-05", "2026-03-05"),
        ("12月24日", "2025-12-24", "2025-12-24"),
        ("2026年3月", "2026-03-01", "2026-03-31"),
        ("2026年3月5号", "2026-03-05", "2026-03-05"),
        ("what did we do yesterday", "2026-11-14", "2026-11-14"),
        ("was war gestern", "2026-11-14", "2026-11-14"),
        ("昨日の話", "2026-11-14", "2026-11-14"),
        ("昨天", "2026-11-14", "2026-11-14"),
        ("Today", "2026-11-15", "2026-11-15"),
        ("heute", "2026-11-15", "2026-11-15"),
    ],
)
def test_days_that_a_question_names(text: str, first: str, last: str) -> None:
    assert spans(text) == [(first, last)]


@pytest.mark.parametrize(
    "text", ["last week", "letzte Woche", "先週", "last month", "先月", "this week", "diese Woche"]
)
def test_stretches_of_days(text: str) -> None:
    ((first, last),) = spans(f"x {text} y")
    assert first < last <= TODAY.isoformat()
    assert date.fromisoformat(first) >= TODAY - timedelta(days=62)


@pytest.mark.parametrize(
    "text",
    [
        "", "no day", "2026-13-45", "2026-00-00", "0000-01-01", "13月40日", "port 8443", "version 1.2.3",
        "it may work", "yesterdays", "9999", "march on", "the 5 of us", "2026", "1.2", "99999-01-01",
    ],
)  # fmt: skip
def test_what_names_no_day(text: str) -> None:
    assert spans(text) == []


def test_the_end_of_the_calendar() -> None:
    assert spans("9999-12-31") == [("9999-12-31", "9999-12-31")]
    find_spans("9999-12", TODAY)
    find_spans("yesterday last month", date(1, 1, 1) + timedelta(days=100))


def test_several_days() -> None:
    assert set(spans("between 2026-03-05 and March 7, 2026")) == {
        ("2026-03-05", "2026-03-05"),
        ("2026-03-07", "2026-03-07"),
    }


def test_a_leap_day_without_a_year() -> None:
    assert spans("on February 29") == [("2024-02-29", "2024-02-29")]


def test_what_names_the_day_is_not_looked_for_as_a_word() -> None:
    _, rest = find_spans("what broke on 2026-03-05 in the gateway", TODAY)
    assert "2026" not in rest
    assert "gateway" in rest
    assert "broke" in rest


# --- Hostile --------------------------------------------------------------------------------------------------------

LONG = (
    *("x" * 100_000, "X" * 100_000, "aB" * 50_000, "a.b" * 33_000, "-" * 100_000, "a-" * 50_000, "._" * 50_000),
    *("\x00" * 100_000, "\ud800" * 100_000, "数" * 33_000, "🦊" * 25_000, "\u0301" * 50_000, "1" * 100_000),
    *("1 " * 50_000, "2026-" * 20_000, "2026-01-" * 12_000, "1 mar " * 16_000, "march " * 16_000, "5th of " * 14_000),
    *("1月" * 30_000, "2026年" * 20_000, "today " * 16_000, '"' * 100_000, "(" * 100_000, "a_A" * 33_000, "é" * 50_000),
    *("1" + "st" * 50_000, "a1" * 50_000, "-a" * 50_000, "A" * 50_000 + "a" * 50_000),
)


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_long_input_is_finished_with(text: str) -> None:
    find_identifiers(text)
    content_words(text)
    cjk_pairs(text)
    fold_words(text)
    find_spans(text[:4000], TODAY)  # the most of a question that reaches it
    spaced(text)
    stem_key(text)


def test_camel_case_of_a_chunk_is_finished_with() -> None:
    for text in (*LONG, "aBé" * 1000, "aB" * 1000, "aBcD\u00e9F" * 400):
        hump_words(text[:1600])  # the most that a chunk holds


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_will_do(text: str) -> None:
    find_spans(text, TODAY)
    assert all(item.words for item in find_identifiers(text))
    assert all(word == word.lower() for word in content_words(text))
    hump_words(text)
    assert set(cjk_pairs(text)) >= set()
    assert spaced(text).replace(" ", "") == text.replace(" ", "") or not text.isascii()


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=127))))
def test_words_are_split_alike_whatever_they_are_made_of(text: str) -> None:
    assert split_words(text) == WORD.findall(text)


@given(text=st.text(alphabet="abÄß0_ -.\n\r\t\x1c\x85\u2028数", max_size=60))
def test_words_by_line_are_the_words_of_each_line(text: str) -> None:
    assert split_lines(text) == [split_words(line) for line in text.split("\n")]
    assert split_lines(text) == [WORD.findall(line) for line in text.split("\n")]
