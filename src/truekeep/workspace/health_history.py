"""What memory was at the end of each day, a line for each: .truekeep/logs/days.jsonl.

Files tell what memory is, the ledger what truekeep wrote; how many claims held last month, nothing else tells. The line
of a day is written anew as often as somebody looks; without the file the plots begin again.
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
KEPT = 800  # days
_LARGEST = 1 << 20


class Day(NamedTuple):
    """What was counted last on a day. None: it is not known."""

    day: str
    cards: int | None = None
    drafts: int | None = None
    index_bytes: int | None = None
    verdicts: Mapping[str, int] = {}  # claims, by what the last check of each said


def read_days(logs: str) -> list[Day]:
    """The days that are known, oldest first. Lines that are none are passed over."""
    try:
        with open(os.path.join(logs, NAME), "rb") as file:
            lines = file.read(_LARGEST).decode("utf-8", "replace").splitlines()
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
    """Keep what a day came to, so far; `earlier` are days that are known otherwise. A disk that says no costs the note.

    Gives whether something was written.
    """
    if os.path.islink(logs) or any(find_newer(os.path.dirname(logs), FORMATS.values())):
        return False  # what is counted without a newer truekeep's files would be wrong
    known = {one.day: one for one in (*earlier, *read_days(logs))}
    if known.get(day.day) == day:
        return False
    known[day.day] = day
    last = sorted(known)[-KEPT:]
    with suppress(OSError):
        lines = "".join(
            json.dumps({**known[name]._asdict(), "verdicts": dict(known[name].verdicts)}) + "\n" for name in last
        )
        file_io.write_whole(os.path.join(logs, NAME), lines.encode())
        return True
    return False
