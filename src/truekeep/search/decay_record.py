"""The decay record, .truekeep/decay.toml: a day, and the tiers of importance that applied on it.

Decay never edits a past day's log. It writes this record through the ledger, so that history shows it and undo takes
it back; the index leaves out log entries that had expired by that day. Without a readable record nothing is left out.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, NamedTuple

from truekeep.core.errors import BadSetup
from truekeep.core.model import ARCHIVE
from truekeep.memory.file_scan import day_in
from truekeep.memory.importance import Tiers, blank_expired, expires_on

DECAY_FILE = "decay.toml"
RECORD = f".truekeep/{DECAY_FILE}"
MIXED = "?"  # instead of a stamp: some logs are indexed by one record, some by another
_KEYS = ("day", *Tiers._fields)
_HEAD = """\
# Written by `truekeep tidy decay`: what daily logs say and had expired by this day is left out of search. The logs
# themselves are as they were. `truekeep undo` takes it back; the numbers are those that [decay] had then.
"""


class DecayRecord(NamedTuple):
    """Log entries that had expired by a day are left out of search."""

    day: date
    tiers: Tiers = Tiers()

    def has_expired(self, day: date, importance: float) -> bool:
        """Whether an entry of a day's log is left out."""
        end = expires_on(day, importance, self.tiers)
        return end is not None and end <= self.day

    def leave_out(self, path: str, text: str) -> str:
        """A log with its expired entries blanked; the same object if none has expired."""
        day = log_day(path)
        return blank_expired(text, day, self.tiers, self.day) if day is not None else text

    def has_put_away(self, path: str) -> bool:
        """Whether a file in memory/archive is a log that had expired by this day; any other was put there by people."""
        day = log_day(before_archive(path))
        return day is not None and day <= _back(self.day, min(_days(self)))

    @property
    def stamp(self) -> str:
        """The record as a short text, for comparison."""
        return " ".join(map(str, (self.day, *self.tiers)))


def before_archive(path: str) -> str:
    """The path that a file in memory/archive had below memory/."""
    return f"memory/{path.removeprefix(ARCHIVE + '/')}"


def log_day(path: str) -> date | None:
    """The day in a log's name; None if it has none."""
    try:
        return date.fromisoformat(day_in(path))
    except ValueError:
        return None


def read_decay_record(state: str) -> DecayRecord | None:
    """The record in a state folder; None if there is none."""
    path = os.path.join(state, DECAY_FILE)
    try:
        with open(path, encoding="utf-8") as file:
            return parse_decay_record(file.read(10_000))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadSetup(f"{RECORD}: {error.strerror or error}", hint=_HINT) from error
    except ValueError as error:
        raise BadSetup(f"{RECORD}: {error}", hint=_HINT) from error


_HINT = "correct it, or delete it: search then leaves nothing out until `truekeep tidy decay` writes a new one"


def parse_decay_record(text: str) -> DecayRecord:
    """Parse a record. Raises ValueError with what is wrong."""
    data = tomllib.loads(text)
    if problems := [key for key in data if key not in _KEYS] + [key for key in _KEYS if key not in data]:
        raise ValueError(
            f"{problems[0]} is not one of its keys" if problems[0] in data else f"{problems[0]} is missing"
        )
    bounds = [_number(data, key, 1) for key in ("structural", "potential")]
    days = [_number(data, key, 100_000) for key in ("potential_days", "contextual_days")]
    if not all(isinstance(number, int) for number in days):
        raise ValueError("its days must be whole numbers")
    try:
        day = date.fromisoformat(data["day"])
    except (TypeError, ValueError) as error:
        raise ValueError("day is not a day such as 2026-05-01") from error
    return DecayRecord(day, Tiers(float(bounds[0]), float(bounds[1]), int(days[0]), int(days[1])))


def _number(data: dict[str, Any], key: str, maximum: int) -> int | float:
    number = data[key]
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= maximum:
        raise ValueError(f"{key} must be a number from 0 to {maximum}")
    return number


def render_decay_record(record: DecayRecord) -> str:
    numbers = "".join(f"{key} = {value}\n" for key, value in record.tiers._asdict().items())
    return f'{_HEAD}day = "{record.day}"\n{numbers}'


def parse_stamp(stamp: str) -> DecayRecord | None:
    """The record of a stamp; None for the stamp of no record. Raises ValueError for any other text."""
    if not stamp:
        return None
    day, structural, potential, potential_days, contextual_days = stamp.split(" ")
    tiers = Tiers(float(structural), float(potential), int(potential_days), int(contextual_days))
    return DecayRecord(date.fromisoformat(day), tiers)


def is_affected_by(stamp: str, now: DecayRecord | None) -> Callable[[str], bool]:
    """A test for the paths of logs that a record may blank otherwise than the record with this stamp did."""
    try:
        between = affected_days(parse_stamp(stamp), now)
    except ValueError:
        return lambda path: log_day(path) is not None
    return lambda path: any(after < day <= until for day in (day_in(path),) for after, until in between)


def affected_days(before: DecayRecord | None, now: DecayRecord | None) -> list[tuple[str, str]]:
    """Ranges of days (after the first, up to the last) whose logs may have entries that only one record leaves out."""
    records = [record for record in (before, now) if record is not None]
    if not records or before == now:
        return []
    if before is not None and now is not None and before.tiers == now.tiers:
        first, last = sorted((before.day, now.day))
        return [(_back(first, days).isoformat(), _back(last, days).isoformat()) for days in sorted(set(_days(now)))]
    return [("", max(_back(record.day, min(_days(record))) for record in records).isoformat())]


def _days(record: DecayRecord) -> tuple[int, int]:
    return record.tiers.potential_days, record.tiers.contextual_days


def _back(day: date, days: int) -> date:
    try:
        return day - timedelta(days=days)
    except OverflowError:
        return date.min
