"""Intervals, and the hours in which handoffs are filed: parsing and rendering. Pure."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import NamedTuple

from truekeep.core.errors import BadInput

DAY = 24 * 60
_EVERY = re.compile(r"(\d{1,5})\s*(m|min|minutes?|h|hours?|d|days?)\Z")
_HOURS = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\Z")
_MINUTES = {"m": 1, "h": 60, "d": DAY}


def parse_every(text: str) -> int:
    """Parse an interval such as 30m or 2h into minutes."""
    match = _EVERY.match(text.strip().lower())
    minutes = int(match[1]) * _MINUTES[match[2][0]] if match else 0
    if not 1 <= minutes <= DAY:
        raise BadInput(f"{text[:40]!r} is not an interval", hint="from 1m to 24h, such as 30m or 2h")
    return minutes


def render_every(minutes: int) -> str:
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"


def even_every(minutes: int) -> int:
    """Return the longest interval up to this one that divides an hour or, in hours, a day: cron has no others."""
    whole = 60 if minutes >= 60 else 1
    span = DAY if minutes >= 60 else 60
    return max(size for size in range(whole, minutes + 1, whole) if span % size == 0)


def next_even(now: datetime, minutes: int) -> datetime:
    """Return the next time that is a whole number of intervals after midnight."""
    minute = now.replace(second=0, microsecond=0)
    past = minute.hour * 60 + minute.minute
    return minute + timedelta(minutes=minutes - past % minutes)


class FilingHours(NamedTuple):
    """Local hours in which handoffs are filed, or are not. If they end before they begin, they go past midnight."""

    begin: time
    end: time
    is_pause: bool = False  # nothing is filed in it; otherwise, only in it

    def allows(self, now: datetime) -> bool:
        return self._contains(now.time()) != self.is_pause

    def _contains(self, at: time) -> bool:
        if self.begin <= self.end:
            return self.begin <= at < self.end
        return at >= self.begin or at < self.end

    @property
    def span(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"

    @property
    def paused(self) -> str:
        """The span in which nothing is filed."""
        return self.span if self.is_pause else f"{self.end:%H:%M}-{self.begin:%H:%M}"

    def __str__(self) -> str:
        return f"nothing filed {self.span}" if self.is_pause else f"filed only {self.span}"


def parse_hours(text: str, *, is_pause: bool) -> FilingHours | None:
    """Parse a span such as 01:00-05:00; None for "" and "none"."""
    if text.strip().lower() in ("", "none"):
        return None
    match = _HOURS.match(text.strip())
    try:
        begin, end = (time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))) if match else (None, None)
    except ValueError:
        begin = end = None
    if begin is None or end is None:
        raise BadInput(f"{text[:40]!r} is not a time range", hint="such as 01:00-05:00, or 22:00-06:00, or none")
    if begin == end:
        raise BadInput(f"{text} begins and ends at the same time", hint="give two different times")
    return FilingHours(begin, end, is_pause)
