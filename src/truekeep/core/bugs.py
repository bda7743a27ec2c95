"""Bugs that truekeep met in itself: bugs.log of this machine says when, in which version and command, what and where.

A noted bug counts until its log is deleted, truekeep is of another version, or two weeks have passed: by then it was
reported, perhaps mended, or does not happen any more. The log has no text of memory: messages are left out.
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
LASTING = timedelta(days=14)
SCHEDULED = "schedule run, "  # and the step: the log of runs tells these, and when they are over
_HEAD = re.compile(r"(\S+Z) truekeep (\S+) (\w+)(?: in (.+))?\Z")
_TAIL = 65_536


class Bug(NamedTuple):
    """One time that truekeep failed by its own fault."""

    at: datetime
    version: str
    kind: str  # the exception
    command: str


def bugs_path() -> str:
    return os.path.join(own_state(), LOG)


def is_bug(error: BaseException) -> bool:
    """Whether this is nobody's fault but truekeep's: not of the disk, a database, or what was given."""
    return isinstance(error, Exception) and not (
        isinstance(error, (TruekeepError, OSError, ImportError, MemoryError)) or is_database_error(error)
    )


def note_bug(error: BaseException, command: str) -> str:
    """Write where it happened, but not the message: it could quote memory, or a secret. Gives where that is kept."""
    head = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} truekeep {__version__} {type(error).__name__}"
    place = f" in {command}" if command else ""
    story = "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    is_kept = append_line(own_state(), LOG, f"{head}{place}\n{story}" if story else f"{head}{place}")
    return bugs_path() if is_kept else "nowhere: the log could not be written"


def find_bugs(now: datetime) -> list[Bug]:
    """The bugs that still count, oldest first; without those of scheduled steps."""
    found = [bug for line in _read_tail().splitlines() if (bug := _parse(line)) is not None]
    return [
        bug
        for bug in found
        if bug.version == __version__ and bug.at > now - LASTING and not bug.command.startswith(SCHEDULED)
    ]


def _read_tail() -> str:
    try:
        with open(bugs_path(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
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
