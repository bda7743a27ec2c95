"""When a memory was made, by what its file says. Only if it says nothing, the time of the file counts.

A file's day is the date at the start of its name. Else a section has the date of its heading, the file's frontmatter
(`created` or `date`), or the first date in its text, which must not be later than the file. A time of day is taken from
the heading, or from behind the date, as UTC: archives of one workspace are the same in every time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import NamedTuple

from truekeep.integrations.alf.sections import daily_log_date
from truekeep.integrations.alf.timestamps import format_timestamp, nanoseconds, parse_timestamp
from truekeep.memory.card import parse_card, parse_day

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?<![\w./-]\d{4}-\d\d-\d\d)(?=[T\W]|$)(?![-/]\w)")
"""A date that is not part of a path, a name or a longer number."""
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_CLOCK = re.compile(r"(?<![\d:.])(\d{1,2}):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?([ap])\.?m\b)?", re.IGNORECASE)


class FileDates(NamedTuple):
    """The dates that a whole file states."""

    named: date | None
    front: str  # a value of the frontmatter

    @classmethod
    def of(cls, path: str, text: str) -> FileDates:
        name = path.rpartition("/")[2]
        front = parse_card(name, text.removeprefix("\ufeff")).front if text.startswith(("---", "\ufeff---")) else None
        named = daily_log_date(path) or parse_day(name)
        return cls(named, (front.text("created") or front.text("date")) if front is not None else "")

    def created_at(self, heading: str | None, content: str, mtime_ns: int) -> str | None:
        """The time at which a section was made; None if nothing states one."""
        title = heading or ""
        if self.named is not None:
            return _at(self.named, title)
        found = _moment_in(title) or _moment_in(self.front)
        if found is None:
            found = _moment_in(content)
            found = found if found is not None and nanoseconds(found) <= mtime_ns else None
        return format_timestamp(nanoseconds(found)) if found is not None else None


def _at(day: date, text: str) -> str:
    return format_timestamp(nanoseconds(datetime.combine(day, _clock_in(text), UTC)))


def _moment_in(text: str) -> datetime | None:
    """The first date in a text, with the time of day behind it."""
    for match in _DATE.finditer(text):
        stated = _TIMESTAMP.match(text, match.start())
        if stated is not None and (moment := parse_timestamp(stated[0])) is not None:
            return moment
        if (day := parse_day(match[0])) is not None:
            return datetime.combine(day, _clock_in(text[match.end() : match.end() + 20].partition("\n")[0]), UTC)
    return None


def _clock_in(text: str) -> time:
    """The first time of day in a text, such as 09:15 or 2:30 PM; midnight without one."""
    for match in _CLOCK.finditer(text):
        hour, minute, second, half = match.groups()
        number = int(hour) % 12 + 12 * (half.lower() == "p") if half and 1 <= int(hour) <= 12 else int(hour)
        if number < 24:
            return time(number, int(minute), int(second or 0))
    return time()
