"""Charts as SVG without scripts.

Every chart has a sentence that describes it, and its numbers as a table. Colours are classes of the stylesheet; series
also differ in texture or dashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from markupsafe import Markup

from truekeep.text.unicode import printable

WIDTH, HEIGHT = 360, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 10, 24
MAX_LABELS = 8
MAX_BAR_WIDTH = 56  # with its gap
ROW_HEIGHT = 30  # of `shares`
# Over the colour of a series: nothing, strokes one way, the other way, dots, a grid.
_TEXTURES = (
    "",
    '<path class="over" d="M0 8L8 0M-2 2L2 -2M6 10L10 6"/>',
    '<path class="over" d="M0 0L8 8M6 -2L10 2M-2 6L2 10"/>',
    '<circle class="dot" cx="2" cy="2" r="1.3"/><circle class="dot" cx="6" cy="6" r="1.3"/>',
    '<path class="over" d="M0 4H8M4 0V8"/>',
)


class Series(NamedTuple):
    """Numbers of one kind, one for each place on the axis."""

    name: str
    values: Sequence[float]
    tint: str = "one"  # a class: one, two, three, four, good, warn, bad, faint


class Share(NamedTuple):
    """A part of a whole."""

    name: str
    part: int
    whole: int


def bars(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    limit: float = 0,
    unit: str = "",
    empty: str = "Nothing to show yet.",
) -> Markup:
    """Bars, one for each label, those of several series on top of each other. `limit` is a line not to be crossed."""
    totals = [sum(one.values[at] for one in series) for at in range(len(labels))]
    if not any(totals):
        return _nothing(title, empty)
    top = _round_up(max([*totals, limit, 1]))
    step = min(MAX_BAR_WIDTH, (WIDTH - _LEFT - _RIGHT) / len(labels))
    gap = min(6.0, step * 0.2)
    parts = [*_textures(title, series), *_axis(top, unit, limit)]
    for at in range(len(labels)):
        base = 0.0
        for number, one in enumerate(series):
            value = one.values[at]
            if value > 0:
                said = f"{labels[at]}: {_shown(value)}{unit} {one.name}".strip()
                parts.append(
                    f'<rect {_ink(title, one, number)} x="{_LEFT + at * step + gap / 2:.1f}"'
                    f' y="{_y(base + value, top):.1f}" width="{max(1.0, step - gap):.1f}"'
                    f' height="{max(1.0, _y(base, top) - _y(base + value, top)):.1f}">'
                    f"<title>{_safe(said)}</title></rect>"
                )
            base += value
    centres = [_LEFT + (at + 0.5) * step for at in range(len(labels))]
    parts += _labels(labels, centres, is_centred=True)
    return _figure(title, _told(labels, series, totals, unit, limit), parts, labels, series, unit)


def lines(
    title: str,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    limit: float = 0,
    unit: str = "",
    empty: str = "Nothing to show yet.",
) -> Markup:
    """A line for each series, with a dot for each value."""
    totals = [sum(one.values[at] for one in series) for at in range(len(labels))]
    if not labels:
        return _nothing(title, empty)
    top = _round_up(max([limit, 1, *(value for one in series for value in one.values)]))
    step = (WIDTH - _LEFT - _RIGHT - 12) / max(1, len(labels) - 1)
    places = [_LEFT + 6 + at * step for at in range(len(labels))]
    parts = _axis(top, unit, limit)
    for number, one in enumerate(series):
        points = [(places[at], _y(value, top)) for at, value in enumerate(one.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line {escape(one.tint)} dash-{number % 4}" points="{path}"/>')
        parts += [
            f'<circle class="ink {escape(one.tint)}" cx="{x:.1f}" cy="{y:.1f}" r="{3 if len(points) < 20 else 2}">'
            f"<title>{_safe(f'{labels[at]}: {one.name} {_shown(one.values[at])}{unit}')}</title></circle>"
            for at, (x, y) in enumerate(points)
        ]
    parts += _labels(labels, places, is_centred=False)
    return _figure(title, _told(labels, series, totals, unit, limit), parts, labels, series, unit)


def shares(title: str, items: Sequence[Share], *, empty: str = "Nothing to show yet.") -> Markup:
    """A bar for each of several things, filled as far as it is done."""
    items = [item for item in items if item.whole]
    if not items:
        return _nothing(title, empty)
    height = _TOP + ROW_HEIGHT * len(items)
    parts = []
    for number, item in enumerate(items):
        y = _TOP + number * ROW_HEIGHT
        width = (WIDTH - 2) * item.part / item.whole
        parts.append(
            f'<text class="label" x="1" y="{y + 9}">{_safe(item.name)}</text>'
            f'<text class="label" x="{WIDTH - 1}" y="{y + 9}" text-anchor="end">{_safe(_part(item))}</text>'
            f'<rect class="empty" x="1" y="{y + 13}" width="{WIDTH - 2}" height="9" rx="2"/>'
            f'<rect class="ink one" x="1" y="{y + 13}" width="{width:.1f}" height="9" rx="2"/>'
        )
    told = "; ".join(f"{item.name}: {_part(item)}" for item in items) + "."
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<figure class="plot"><figcaption>{_safe(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_safe(f"{title}. {told}")}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _part(item: Share) -> str:
    return f"{item.part} of {item.whole}, {item.part / item.whole:.0%}"


def _nothing(title: str, empty: str) -> Markup:
    """Text in place of a chart; commands are between backticks."""
    pieces = [f"<code>{_safe(piece)}</code>" if at % 2 else _safe(piece) for at, piece in enumerate(empty.split("`"))]
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<figure class="plot"><figcaption>{_safe(title)}</figcaption><p class="faint">{"".join(pieces)}</p></figure>'
    )


def _figure(
    title: str, told: str, parts: Sequence[str], labels: Sequence[str], series: Sequence[Series], unit: str
) -> Markup:
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<figure class="plot"><figcaption>{_safe(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{_safe(f"{title}. {told}")}">'
        f"{''.join(parts)}</svg>{_legend(title, series)}{_table(title, labels, series, unit)}</figure>"
    )


def _legend(title: str, series: Sequence[Series]) -> str:
    if len(series) < 2:
        return ""
    items = "".join(
        f'<li><svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect {_ink(title, one, number)}'
        f' width="12" height="12"/></svg>{_safe(one.name)}</li>'
        for number, one in enumerate(series)
    )
    return f'<ul class="legend">{items}</ul>'


def _table(title: str, labels: Sequence[str], series: Sequence[Series], unit: str) -> str:
    """The numbers of a plot, for who would rather read."""
    heads = "".join(f'<th scope="col" class="number">{_safe(one.name or title)}</th>' for one in series)
    rows = "".join(
        f'<tr><th scope="row">{_safe(label)}</th>'
        + "".join(f'<td class="number">{_safe(_shown(one.values[at]) + unit)}</td>' for one in series)
        + "</tr>"
        for at, label in enumerate(labels)
    )
    return (
        f'<details><summary>Numbers<span class="hidden"> of {_safe(title)}</span></summary>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_safe(f"Numbers of {title}")}"><table>'
        f"<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _textures(title: str, series: Sequence[Series]) -> Iterator[str]:
    """The textures that a plot uses. Their names are the plot's own: a page has several."""
    for number, one in enumerate(series):
        if texture := _TEXTURES[number % len(_TEXTURES)]:
            yield (
                f'<pattern id="{_name(title, number)}" width="8" height="8" patternUnits="userSpaceOnUse">'
                f'<rect class="ink {escape(one.tint)}" width="8" height="8"/>{texture}</pattern>'
            )


def _ink(title: str, one: Series, number: int) -> str:
    if _TEXTURES[number % len(_TEXTURES)]:
        return f'fill="url(#{_name(title, number)})"'
    return f'class="ink {escape(one.tint)}"'


def _name(title: str, number: int) -> str:
    return "texture-" + "".join(char if char.isascii() and char.isalnum() else "-" for char in title) + f"-{number}"


def _axis(top: float, unit: str, limit: float) -> list[str]:
    parts = []
    for value in (0.0, top / 2, top):
        y, kind = _y(value, top), "grid" if value else "axis"
        parts.append(
            f'<line class="{kind}" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 4}" y="{y + 3.5:.1f}" text-anchor="end">{_safe(_shown(value))}</text>'
        )
    if limit:
        y = _y(limit, top)
        parts.append(
            f'<line class="limit" x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{WIDTH - _RIGHT}" y="{y + (12 if y < _TOP + 12 else -4):.1f}" text-anchor="end">'
            f"{_safe(f'limit {_shown(limit)}{unit}')}</text>"
        )
    return parts


def _labels(labels: Sequence[str], places: Sequence[float], *, is_centred: bool) -> list[str]:
    """Labels below the axis: all if they fit, else the first, the middle and the last."""
    last = len(labels) - 1
    wanted = range(len(labels)) if len(labels) <= MAX_LABELS and is_centred else sorted({0, last // 2, last})
    parts = []
    for at in wanted:
        anchor, x = "middle", places[at]
        if len(labels) > MAX_LABELS or not is_centred:
            anchor = "start" if at == 0 else "end" if at == last else "middle"
            x = _LEFT if at == 0 else WIDTH - _RIGHT if at == last else x
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{_safe(labels[at])}</text>'
        )
    return parts


def _told(labels: Sequence[str], series: Sequence[Series], totals: Sequence[float], unit: str, limit: float) -> str:
    """A sentence that describes the chart."""
    most = max(range(len(labels)), key=lambda at: totals[at])
    ends = f"{labels[0]}: {_shown(totals[0])}{unit}"
    ends += f", {labels[-1]}: {_shown(totals[-1])}{unit}" if len(labels) > 1 else ""
    more = f"; the most at {labels[most]}: {_shown(totals[most])}{unit}" if len(labels) > 2 else ""
    kinds = "; ".join(f"{one.name} {_shown(one.values[-1])}{unit}" for one in series) if len(series) > 1 else ""
    bound = f"; the limit is {_shown(limit)}{unit}" if limit else ""
    return f"{ends}{more}{bound}." + (f" Last: {kinds}." if kinds else "")


def _y(value: float, top: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _BOTTOM - _TOP) * value / top


def _round_up(value: float) -> float:
    """A number that is easy to read, and so is its half; not below this one."""
    scale = 1.0
    while value > 10 * scale:
        scale *= 10
    return next(factor * scale for factor in (1, 2, 4, 6, 8, 10) if factor * scale >= value)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _safe(text: str) -> str:
    return escape(printable(text), quote=True)
