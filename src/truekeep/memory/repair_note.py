"""The note of a repair in the ledger: the day that the card was of, and the day that it was brought up to."""

from __future__ import annotations

import re
from datetime import date

from truekeep.memory.card import parse_day

_REPAIRED = re.compile(r"\(of ([0-9]{4}-[0-9]{2}-[0-9]{2}|no day), brought up to ([0-9]{4}-[0-9]{2}-[0-9]{2})\)\Z")


def parse_repair(note: str) -> tuple[date | None, date | None] | None:
    """The day of the card before the repair, and the day after it; None if the note names none."""
    match = _REPAIRED.search(note)
    return (parse_day(match[1]), parse_day(match[2])) if match else None
