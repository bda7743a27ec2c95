"""Claims about what runs at set times: a line of a crontab, or a job that the text calls by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from truekeep.text.phrases import load_phrases
from truekeep.verify.claims.patterns import RawClaim
from truekeep.verify.live_system.cron import SCHEDULE

_LINE = re.compile(
    rf"(?<![\w*/,.:-])(?P<schedule>{SCHEDULE})[ \t]+`?(?P<command>(?:[/~$]|[a-z][\w.-]*[ \t])[^`|\n]{{2,200}})"
)


@cache
def _named() -> re.Pattern[str]:
    return re.compile(
        rf"(?:{load_phrases('claims').any_of('words.cron')})(?: id| name)?s?:? `([\w][\w .:/@-]{{2,60}})`", re.I
    )


def cron_claims(line: str) -> Iterator[RawClaim]:
    """The schedules of a line, each with its command, and the jobs that it names."""
    for match in _LINE.finditer(line) if "* " in line or "@" in line else ():
        schedule = " ".join(match["schedule"].split())
        if "*" in schedule or schedule.startswith("@"):
            yield RawClaim(
                *match.span("schedule"), "cron", schedule, "a crontab's line", owner=match["command"].strip()
            )
    for match in _named().finditer(line) if "`" in line else ():
        yield RawClaim(*match.span(1), "cron", match[1], "called a cron job", is_weak=True)
