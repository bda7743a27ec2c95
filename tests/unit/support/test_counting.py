"""The counter of work: what grows faster than its input is seen, whoever does the work."""

from __future__ import annotations

import re

import pytest

from tests.support.counting import Endless, assert_about_linear, count_work, unless_endless


def lines_of(text: str) -> list[str]:
    return [line.upper() for line in text.splitlines() if line]


def every_pair(text: str) -> int:
    return sum(one == other for one in text for other in text)


def split_at_each_line(text: str) -> int:
    return sum(len(text.splitlines()) for line in text.splitlines())


def search_to_the_end(text: str) -> int:
    return sum(text.find("#", at + 1) for at in range(0, len(text), 4))


def search_back_to_the_start(text: str) -> int:
    return sum(text.encode().rfind(b"#", 0, at) for at in range(0, len(text), 4))


def count_before_each_line(text: str) -> int:
    at = lines = 0
    while (at := text.find("\n", at) + 1) > 0:
        lines += text.count("\n", 0, at)
    return lines


def search_by_a_hidden_argument(text: str) -> int:
    return sum(text.find(*("#", at)) for at in range(0, len(text), 4))


def search_each_line_once(text: str) -> int:
    at = lines = 0
    while (end := text.find("\n", at)) >= 0:
        lines += text.count("a", at, end) + (text.rfind("c", at, end) > 0)
        at = end + len("\n")
    return lines


def first_double(text: str) -> int:
    at = 0
    while at < len(text):
        before = 0
        while before < at:
            before += 1
        at += 1
    return at


def test_what_grows_with_its_input() -> None:
    assert_about_linear(lambda size: lines_of("abc\n" * size), 500, huge=100_000)


def test_a_search_that_goes_on_where_the_last_one_ended() -> None:
    assert_about_linear(lambda size: search_each_line_once("abc\n" * size), 500, huge=100_000)


FASTER = [
    every_pair,
    split_at_each_line,
    first_double,
    search_to_the_end,
    search_back_to_the_start,
    count_before_each_line,
    search_by_a_hidden_argument,
]


@pytest.mark.slow
@pytest.mark.parametrize("act", FASTER)
def test_what_grows_faster(act: object) -> None:
    with pytest.raises(AssertionError, match="for 6 times the input"):
        assert_about_linear(lambda size: act("abc\n" * size), 40)  # type: ignore[operator]


@pytest.mark.slow
def test_a_pattern_that_backtracks_is_ended() -> None:
    with pytest.raises(Endless), unless_endless(0.2):
        re.search("(a+)+b", "a" * 60)


def test_the_same_work_is_the_same_number() -> None:
    assert count_work(lambda: lines_of("a\nb\n" * 50)) == count_work(lambda: lines_of("a\nb\n" * 50))
