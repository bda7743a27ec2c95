"""Moments as the format writes them, and the quarter that a record is filed under."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


class Quarter(NamedTuple):
    """Three months of records."""

    year: int
    number: int

    @property
    def file(self) -> str:
        return f"memory/{self.year:04d}-Q{self.number}.jsonl"

    @property
    def first(self) -> date:
        return date(self.year, 3 * self.number - 2, 1)

    @property
    def last(self) -> date:
        if self.number == 4:
            return date(self.year, 12, 31)
        return date(self.year, 3 * self.number + 1, 1) - timedelta(days=1)


@lru_cache(maxsize=4)  # the records of one file come one after the other
def shown_moment(at_ns: int) -> str:
    """Nanoseconds since the epoch, with the fewest digits (none, 3, 6, 9) that say them exactly."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text.rjust(19, '0')}{f'.{digits}' if digits else ''}Z"


def shown_day(day: date) -> str:
    """Midnight of a day, as the format writes it."""
    return f"{day.isoformat()}T00:00:00Z"


def parse_moment(text: object) -> datetime | None:
    """A moment with its offset, in UTC; None for anything else. What is beyond microseconds is cut off."""
    match = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if offset in 'Zz' else offset}")
        return moment.replace(microsecond=int((fraction or "").ljust(6, "0")[:6])).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def quarter_of(record: Mapping[str, Any]) -> Quarter | None:
    """The quarter of a record: of when it was observed, else of when it was made. None where neither is a moment."""
    temporal = record.get("temporal")
    if not isinstance(temporal, dict):
        return None
    said = temporal.get("observed_at") or temporal.get("created_at")
    return _quarter_at(said) if isinstance(said, str) else None


@lru_cache(maxsize=4)
def _quarter_at(said: str) -> Quarter | None:
    moment = parse_moment(said)
    return Quarter(moment.year, (moment.month - 1) // 3 + 1) if moment is not None else None
