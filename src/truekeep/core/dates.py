"""Parses and formats dates, ages and counts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from truekeep.core.errors import BadInput

_AGE = re.compile(r"(\d{1,5})\s*(h|d|w|)")
_UNITS = {"d": 1, "w": 7, "m": 30, "y": 365}


def parse_since(text: str, today: date) -> date | None:
    """Parse a date or an age: 2026-03-01, 30d, 8w, 6m, 1y. None for an empty text."""
    if not text:
        return None
    try:
        if text[-1] in _UNITS and text[:-1].isdecimal():
            return today - timedelta(days=int(text[:-1]) * _UNITS[text[-1]])
        return date.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        hint = "give a date such as 2026-03-01, or an age such as 30d, 8w, 6m or 1y"
        raise BadInput(f"since {text[:40]!r} is not a date", hint=hint) from error


def parse_age(text: str) -> timedelta:
    """Parse an age: 30d, 6w or 12h; a number alone is days."""
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise BadInput(f"{text!r} is not an age", hint="write 30d, 6w or 12h")
    return timedelta(hours=int(match[1]) * {"h": 1, "d": 24, "w": 168, "": 24}[match[2]])


def as_stamp(when: datetime) -> str:
    """A time in UTC, as the ledger, drafts and logs write it."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_minute(stamp: str) -> str:
    """A UTC time stamp of the ledger or a log as local time: 2026-11-18 05:34."""
    try:
        return f"{datetime.fromisoformat(stamp).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return stamp[:16].replace("T", " ")


def local_day(stamp: str) -> str:
    """The local day of a UTC time stamp: 2026-11-18."""
    return local_minute(stamp)[:10]


def local_clock(stamp: str) -> str:
    """The local time of day of a UTC time stamp: 05:34."""
    return local_minute(stamp)[11:]


def day_bounds(first: date | None, last: date | None) -> tuple[str, str]:
    """The start of a local day and the end of another, as UTC times that compare with the ledger's time stamps."""
    return _utc_stamp(first, time.min), _utc_stamp(last, time.max)


def _utc_stamp(day: date | None, at: time) -> str:
    if day is None:
        return ""
    try:
        return f"{datetime.combine(day, at).astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError):
        return day.isoformat()


def shown_age(age_days: int | None, *, is_file_time: bool = False) -> str:
    """An age in words. `is_file_time`: only the file's modification time is known, and copying resets it."""
    if is_file_time:
        return f"{shown_age(age_days)} (file time)"
    if age_days is None:
        return "age unknown"
    if age_days < 0:
        return "dated in the future"
    if age_days < 2:
        return ("today", "yesterday")[age_days]
    if age_days < 60:
        return f"{age_days} days old"
    return f"{age_days // 30} months old" if age_days < 730 else f"{age_days // 365} years old"


def age_in_days(when: date | str | None) -> int | None:
    """The age today of a day or a UTC time stamp; None if it is unknown."""
    try:
        day = datetime.fromisoformat(when).astimezone().date() if isinstance(when, str) else when
    except (ValueError, OverflowError):
        return None
    return max((datetime.now().astimezone().date() - day).days, 0) if day else None


def short_age(days: int | None) -> str:
    """An age that fits a column: 5 d, 3 mo, 2 y."""
    if days is None:
        return "?"
    if days < 60:
        return f"{days} d"
    return f"{days // 30} mo" if days < 730 else f"{days // 365} y"


def many(count: int, what: str) -> str:
    """A count with its noun: 1 draft, 2 drafts, 3 inboxes, 4 entries, 5 days."""
    if count != 1 and what.endswith("y") and not what.endswith("ay"):
        what = f"{what[:-1]}ies"
    elif count != 1:
        what = f"{what}es" if what.endswith("x") else f"{what}s"
    return f"{count} {what}"
