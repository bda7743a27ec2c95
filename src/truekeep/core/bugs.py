"""Records crashes of truekeep in this machine's bugs.log: time, version, command, exception and traceback.

A recorded crash is reported until the log is deleted, truekeep's version changes, or two weeks have passed. The log
contains no memory text: exception messages are left out.
"""

from __future__ import annotations

import os
import re
import traceback
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from truekeep import __version__
from truekeep.core.errors import TruekeepError, is_database_error
from truekeep.core.machine import own_state
from truekeep.core.state_dir import append_line

LOG = "bugs.log"
REPORTED_FOR = timedelta(days=14)
SCHEDULED = "schedule run, "  # followed by the step; the schedule's own log reports these
_HEAD = re.compile(r"(\S+Z) truekeep (\S+) (\w+)(?: in (.+))?\Z")
_TAIL_BYTES = 65_536


class Bug(NamedTuple):
    """One recorded crash."""

    at: datetime
    version: str
    kind: str  # the exception's class name
    command: str


def bugs_path() -> str:
    return os.path.join(own_state(), LOG)


def is_bug(error: BaseException) -> bool:
    """True if the error is a bug in truekeep, not a disk, database or input error."""
    return isinstance(error, Exception) and not (
        isinstance(error, (TruekeepError, OSError, ImportError, MemoryError)) or is_database_error(error)
    )


def note_bug(error: BaseException, command: str) -> str:
    """Append the crash to bugs.log, without the exception's message, which may quote memory. Returns the log's path."""
    head = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} truekeep {__version__} {type(error).__name__}"
    place = f" in {command}" if command else ""
    trace = "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    is_written = append_line(own_state(), LOG, f"{head}{place}\n{trace}" if trace else f"{head}{place}")
    return bugs_path() if is_written else "nowhere: the log could not be written"


def find_bugs(now: datetime) -> list[Bug]:
    """Crashes to report, oldest first, without those of scheduled steps."""
    found = [bug for line in _read_tail().splitlines() if (bug := _parse(line)) is not None]
    return [
        bug
        for bug in found
        if bug.version == __version__ and bug.at > now - REPORTED_FOR and not bug.command.startswith(SCHEDULED)
    ]


def _read_tail() -> str:
    try:
        with open(bugs_path(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _parse(line: str) -> Bug | None:
    match = _HEAD.match(line)
    if match is None:
        return None
    try:
        return Bug(datetime.fromisoformat(match[1]), match[2], match[3], match[4] or "")
    except ValueError:
        return None
