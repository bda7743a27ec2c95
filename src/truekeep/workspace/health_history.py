"""Figures of memory for each day, one line a day: .truekeep/logs/days.jsonl.

Nothing else records how many claims held last month. The line of a day is rewritten whenever the figures are read;
without the file, the charts begin again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.formats import FORMATS, find_newer

NAME = "days.jsonl"
MAX_DAYS = 800
MAX_FILE_BYTES = 1 << 20


class Day(NamedTuple):
    """The last figures of one day; None if unknown."""

    day: str
    cards: int | None = None
    drafts: int | None = None
    index_bytes: int | None = None
    verdicts: Mapping[str, int] = {}  # claims by their last verdict


def read_days(logs: str) -> list[Day]:
    """The known days, oldest first; invalid lines are skipped."""
    try:
        with open(os.path.join(logs, NAME), "rb") as file:
            lines = file.read(MAX_FILE_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = {day.day: day for line in lines if (day := _parse(line)) is not None}
    return [found[name] for name in sorted(found)]


def _parse(line: str) -> Day | None:
    try:
        values: dict[str, Any] = json.loads(line)
        verdicts = {str(word): _count(count) or 0 for word, count in values.get("verdicts", {}).items()}
        cards, drafts, index_bytes = (_count(values.get(name)) for name in ("cards", "drafts", "index_bytes"))
        return Day(date.fromisoformat(values["day"]).isoformat(), cards, drafts, index_bytes, verdicts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def note_day(logs: str, day: Day, earlier: Iterable[Day] = ()) -> bool:
    """Write the figures of a day; `earlier` are days known from elsewhere. Errors of the disk are ignored.

    True if the file changed.
    """
    if os.path.islink(logs) or any(find_newer(os.path.dirname(logs), FORMATS.values())):
        return False  # without the files of a newer truekeep, the figures would be wrong
    known = {one.day: one for one in (*earlier, *read_days(logs))}
    if known.get(day.day) == day:
        return False
    known[day.day] = day
    last = sorted(known)[-MAX_DAYS:]
    with suppress(OSError):
        lines = "".join(
            json.dumps({**known[name]._asdict(), "verdicts": dict(known[name].verdicts)}) + "\n" for name in last
        )
        file_io.write_whole(os.path.join(logs, NAME), lines.encode())
        return True
    return False
