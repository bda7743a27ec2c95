"""The labelled notes of `tests/samples/red_team`: what is found, and what is left alone."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from tests.support.red_team_sets import FINDERS, Half, draw, iter_mistakes, rates, read_cases

LEAST_FOUND = {"secrets": 0.95, "orders": 0.95}
MOST_FALSE = {"secrets": 0.015, "orders": 0.02}


@pytest.mark.parametrize("half", get_args(Half))
@pytest.mark.parametrize("name", FINDERS)
def test_most_is_found_and_almost_nothing_else(name: str, half: Half) -> None:
    missed, _ = rates(name, half, is_positive=True)["all"]
    wrong, _ = rates(name, half, is_positive=False)["all"]
    shown = half == "development"  # the held-out half is measured, not read
    mistakes = Counter(case.template for case, is_wrong in iter_mistakes(name, half) if is_wrong) if shown else ""
    assert missed <= 1 - LEAST_FOUND[name], mistakes
    assert wrong <= MOST_FALSE[name], mistakes


@pytest.mark.parametrize("name", FINDERS)
def test_both_halves_have_cases_of_both_kinds(name: str) -> None:
    cases = read_cases(name)
    assert len({case.template for case in cases}) == len(cases) > 250
    for half in get_args(Half):
        for is_positive in (True, False):
            assert sum(case.half == half and case.is_positive == is_positive for case in cases) > 60


def test_a_case_is_drawn_the_same_way_every_time() -> None:
    note = draw("token «{A4}7» and {b64:{H8}}", 3)
    assert note == draw("token «{A4}7» and {b64:{H8}}", 3) != draw("token «{A4}7» and {b64:{H8}}", 4)
    assert [len(run) for run in note.drawn] == [4, 8]
    assert note.values == ((6, 11),)
