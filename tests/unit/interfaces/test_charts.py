"""Plots: well-formed, the same in words and numbers, told apart by more than colour, and no text of others in tags."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from truekeep.interfaces.web.charts import Series, Share, bars, lines, shares

NAMES = st.text(max_size=20)
VALUES = st.integers(0, 10**7) | st.floats(0, 1e6).map(lambda value: round(value, 1))


@st.composite
def plotted(draw: st.DrawFn) -> tuple[list[str], list[Series]]:
    labels = draw(st.lists(NAMES, min_size=1, max_size=40))
    numbers = st.lists(VALUES, min_size=len(labels), max_size=len(labels))
    series = draw(
        st.lists(st.builds(Series, NAMES, numbers, st.sampled_from(["one", "bad", "faint"])), min_size=1, max_size=6)
    )
    return labels, series


def parsed(plot: Markup) -> ElementTree.Element:
    """A plot as a tree: HTML that happens to be XML, too."""
    return ElementTree.fromstring(str(plot))


@pytest.mark.slow
@given(plotted(), NAMES, st.sampled_from([0, 3, 10**6]))
def test_every_plot_is_well_formed(given_: tuple[list[str], list[Series]], title: str, limit: float) -> None:
    labels, series = given_
    for make in (bars, lines):
        figure = parsed(make(title, labels, series, limit=limit, unit=" kB"))
        assert not any("style" in node.attrib or node.tag == "script" for node in figure.iter())
        svg = figure.find("svg")
        if svg is None:
            assert figure.find("p") is not None
            continue
        assert svg.attrib["role"] == "img"
        assert svg.attrib["aria-label"].strip()
        numbers = [
            float(n)
            for node in svg.iter()
            for key in ("x", "y", "width", "height", "cx", "cy")
            if (n := node.attrib.get(key))
        ]
        assert all(-20 <= number <= 400 for number in numbers)
        rows = figure.findall("./details/div/table/tbody/tr")
        assert len(rows) == len(labels)
        assert all(len(row.findall("td")) == len(series) for row in rows)


@pytest.mark.slow
@given(
    st.lists(
        st.builds(Share, NAMES, st.integers(0, 50), st.integers(0, 50)).map(
            lambda s: s._replace(part=min(s.part, s.whole))
        ),
        max_size=8,
    )
)
def test_shares_are_well_formed(items: list[Share]) -> None:
    figure = parsed(shares("Left something", items))
    known = [item for item in items if item.whole]
    svg = figure.find("svg")
    assert (svg is not None) == bool(known)
    if svg is not None:
        assert len([node for node in svg.iter("rect") if "ink" in node.attrib.get("class", "")]) == len(known)


def test_hostile_names_are_text() -> None:
    evil = '"><script>alert(1)</script>\u202e'
    for plot in (
        bars(evil, [evil], [Series(evil, [1])]),
        lines(evil, [evil], [Series(evil, [1])]),
        shares(evil, [Share(evil, 1, 2)]),
        bars(evil, [], [], empty=evil),
    ):
        assert "<script" not in plot
        assert "\u202e" not in plot
        parsed(plot)


def test_series_differ_by_texture() -> None:
    plot = bars("Claims", ["a", "b"], [Series(name, [1, 2], "one") for name in ("x", "y", "z")])
    inks = re.findall(r'<rect (fill="url\(#[^"]+\)"|class="ink one") x=', plot)
    assert len(set(inks)) == 3
    assert {name for ink in inks if (name := ink[11:-2]) and ink.startswith("fill")} <= set(
        re.findall(r'pattern id="([^"]+)"', plot)
    )
    dashes = re.findall(
        r'polyline class="line one (dash-\d)"', lines("Claims", ["a"], [Series("x", [1]), Series("y", [2])])
    )
    assert dashes == ["dash-0", "dash-1"]


def test_the_sentence_says_what_is_seen() -> None:
    plot = bars("Handoffs", ["mon", "tue", "wed"], [Series("claude", [1, 5, 2]), Series("codex", [0, 1, 0])], limit=9)
    assert 'aria-label="Handoffs. mon: 1, wed: 2; the most at tue: 6; the limit is 9. Last: claude 2; codex 0."' in plot


@pytest.mark.parametrize("make", [bars, lines])
def test_nothing_is_said_kindly(make: object) -> None:
    plot = make("Cards", [], [Series("cards", [])], empty="There are none yet.")  # type: ignore[operator]
    assert "There are none yet." in plot
    assert "<svg" not in plot
