"""The result of `truekeep status`: readings, each with what was found, its target, a verdict and the next step."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from truekeep.workspace.pipeline import Pipeline

OK, LOOK, ACT, UNKNOWN = VERDICTS = ("ok", "look", "act", "unknown")
QUESTIONS = ("cards", "untouched", "index", "handoffs", "duplicates")  # the five measures, shown first
FAILURES = ("schedule", "bugs")  # shown before everything else
MAX_EXAMPLES = 5  # of each kind of thing, by name
MAX_DRAFTS, MAX_DRAFT_DAYS = 20, 14  # from here on, reviews do not seem to happen


class Reading(NamedTuple):
    """One measure."""

    name: str
    verdict: str  # ok, look, act, or unknown if it could not be read
    said: str
    target: str = ""  # the value of a healthy memory
    hint: str = ""  # the next step
    figures: Mapping[str, Any] = {}


class HealthReport(NamedTuple):
    """All readings."""

    readings: tuple[Reading, ...]  # the five questions first
    growth: tuple[int, ...]  # cards made in each of the last weeks, this one last
    ages: tuple[tuple[str, int], ...]  # cards last touched within so long, and not within the one before
    unseen: tuple[str, ...]  # what could not be read, and why
    pipeline: Pipeline | None = None

    @property
    def verdict(self) -> str:
        """The worst verdict; "look" if something could not be read."""
        found = {reading.verdict for reading in self.readings}
        return ACT if ACT in found else LOOK if found - {OK} or self.unseen else OK

    @property
    def failures(self) -> tuple[Reading, ...]:
        """Readings of what failed and did not succeed since."""
        return tuple(reading for reading in self.readings if reading.name in FAILURES and reading.verdict != OK)

    def get(self, name: str) -> Reading:
        return next(reading for reading in self.readings if reading.name == name)


# --- Words ----------------------------------------------------------------------------------------------------------


def tokens_of(size: int) -> int:
    """About how many tokens a text of so many bytes is."""
    return -(-size // 4)


def parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def parse_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def count_of(number: int, what: str, many: str = "") -> str:
    return f"{number} {what if number == 1 else many or what + 's'}"


def shown_bytes(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    number, unit = size / 1e3, "kB"
    for larger in ("MB", "GB", "TB"):
        if number >= 1000:
            number, unit = number / 1000, larger
    return f"{number:.1f} {unit}" if number < 100 else f"{number:.0f} {unit}"
