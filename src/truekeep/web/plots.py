"""Plots as SVG, made here: they need no script, follow the page's colours, and say in words what they show.

Every plot has a title and a description for who does not see it. Colours are classes of the stylesheet, so light and
dark are the stylesheet's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from truekeep.hidden import printable

WIDTH, HEIGHT = 320, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 6, 8, 22


class Series(NamedTuple):
    """Numbers of one kind, one for each place on the axis."""

    name: str
    values: Sequence[float]
    tint: str = "one"  # a class: one, two, three, four, good, warn, bad


def bars(title: str, labels: Sequence[str], series: Sequence[Series], *, limit: float = 0, unit: str = "") -> Markup:
    """Bars, one for each label, those of several series on top of each other. `limit` is a line not to be crossed."""
    totals = [sum(one.values[at] for one in series) for at in range(len(labels))]
    top = _round_up(max([*totals, limit, 1]))
    width = (WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    parts = []
    for at in range(len(labels)):
        base = 0.0
        for one in series:
            value = one.values[at]
            if value > 0:
                said = f"{labels[at]}: {_shown(value)}{unit} {one.name}".strip()
                parts.append(
                    f'<rect class="bar {escape(one.tint)}" x="{_LEFT + at * width + 1:.1f}"'
                    f' y="{_y(base + value, top):.1f}"'
                    f' width="{max(1.0, width - 2):.1f}" height="{_y(base, top) - _y(base + value, top):.1f}">'
                    f"<title>{_safe(said)}</title></rect>"
                )
            base += value
    parts += _axis(labels, top, unit, limit)
    return _svg(title, _told(labels, series, totals, unit, limit), parts, series)


def lines(title: str, labels: Sequence[str], series: Sequence[Series], *, limit: float = 0, unit: str = "") -> Markup:
    """A line for each series."""
    top = _round_up(max([limit, 1, *(value for one in series for value in one.values)]))
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(labels) - 1)
    parts = []
    for one in series:
        points = " ".join(f"{_LEFT + at * step:.1f},{_y(value, top):.1f}" for at, value in enumerate(one.values))
        parts.append(
            f'<polyline class="line {escape(one.tint)}" points="{points}"><title>{_safe(one.name)}</title></polyline>'
        )
    parts += _axis(labels, top, unit, limit)
    totals = [sum(one.values[at] for one in series) for at in range(len(labels))]
    return _svg(title, _told(labels, series, totals, unit, limit), parts, series)


def _svg(title: str, told: str, parts: Sequence[str], series: Sequence[Series]) -> Markup:
    names = "".join(
        f'<li class="{escape(one.tint)}">{_safe(one.name)}</li>' for one in series if one.name and len(series) > 1
    )
    legend = f'<ul class="legend">{names}</ul>' if names else ""
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<figure class="plot"><figcaption>{_safe(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_safe(f"{title}. {told}")}">'
        f"{''.join(parts)}</svg>"
        f"{legend}</figure>"
    )


def _axis(labels: Sequence[str], top: float, unit: str, limit: float) -> list[str]:
    base = HEIGHT - _BOTTOM
    parts = [
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{WIDTH - _RIGHT}" y2="{base}"/>',
        f'<text class="tick" x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{_safe(_shown(top) + unit)}</text>',
        f'<text class="tick" x="{_LEFT - 4}" y="{base}" text-anchor="end">0</text>',
    ]
    if limit:
        y = _y(limit, top)
        parts.append(f'<line class="limit" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>')
    if labels:
        parts.append(f'<text class="tick" x="{_LEFT}" y="{HEIGHT - 6}">{_safe(labels[0])}</text>')
    if len(labels) > 1:
        parts.append(
            f'<text class="tick" x="{WIDTH - _RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{_safe(labels[-1])}</text>'
        )
    return parts


def _told(labels: Sequence[str], series: Sequence[Series], totals: Sequence[float], unit: str, limit: float) -> str:
    """What a plot shows, in a sentence."""
    if not labels or not any(totals):
        return "Nothing to show yet."
    most = max(range(len(labels)), key=lambda at: totals[at])
    ends = f"{labels[0]}: {_shown(totals[0])}{unit}, {labels[-1]}: {_shown(totals[-1])}{unit}"
    more = f"; the most on {labels[most]}: {_shown(totals[most])}{unit}" if len(labels) > 2 else ""
    kinds = "; ".join(f"{one.name} {_shown(sum(one.values))}{unit}" for one in series) if len(series) > 1 else ""
    bound = f"; the limit is {_shown(limit)}{unit}" if limit else ""
    return f"{ends}{more}{bound}." + (f" In all: {kinds}." if kinds else "")


def _y(value: float, top: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * value / top


def _round_up(value: float) -> float:
    """A number that is easy to read, and not below this one."""
    scale = 1.0
    while value > 10 * scale:
        scale *= 10
    return next(factor * scale for factor in (1, 2, 5, 10) if factor * scale >= value)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _safe(text: str) -> str:
    return escape(printable(text), quote=True)
