"""Timestamps and dates as the format writes them, and the quarter that a record belongs to."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from truekeep.integrations.alf.documents import Document

_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Quarter(NamedTuple):
    """Three months of records: one partition."""

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


@lru_cache(maxsize=4)  # the records of one file have the same times
def format_timestamp(at_ns: int) -> str:
    """Nanoseconds since the epoch, with the fewest decimals (0, 3, 6 or 9) that are exact."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{rest:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text.rjust(19, '0')}{f'.{digits}' if digits else ''}Z"


def format_midnight(day: date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def parse_timestamp(text: object) -> datetime | None:
    """A timestamp with its offset, in UTC and cut off at microseconds; None for anything else."""
    match = _TIMESTAMP.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        parsed = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if offset in 'Zz' else offset}")
        return parsed.replace(microsecond=int((fraction or "").ljust(6, "0")[:6])).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_date(text: object) -> date | None:
    try:
        return date.fromisoformat(text) if isinstance(text, str) and _DATE.fullmatch(text) else None
    except ValueError:
        return None


def nanoseconds(at: datetime) -> int:
    """Nanoseconds since the epoch."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


def quarter_of(record: Document) -> Quarter | None:
    """The quarter in which a record was observed, else created; None without a valid timestamp."""
    temporal = record.get("temporal")
    if not isinstance(temporal, dict):
        return None
    at = temporal.get("observed_at") or temporal.get("created_at")
    return _quarter_at(at) if isinstance(at, str) else None


@lru_cache(maxsize=4)
def _quarter_at(timestamp: str) -> Quarter | None:
    at = parse_timestamp(timestamp)
    return Quarter(at.year, (at.month - 1) // 3 + 1) if at is not None else None
