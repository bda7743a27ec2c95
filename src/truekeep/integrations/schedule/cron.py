"""cron: a line in the user's crontab, between two marker comments. The rest of the crontab keeps its bytes.

The crontab is read and written with crontab(1), and read again after writing.
"""

from __future__ import annotations

import os
import re
import shlex
from datetime import datetime

from truekeep.core.child_process import find_program
from truekeep.core.errors import BadInput, StorageFailed
from truekeep.integrations.schedule.base import OURS, InstalledJob, ask
from truekeep.integrations.schedule.config import Job
from truekeep.integrations.schedule.intervals import even_every, next_even, render_every
from truekeep.text.managed_block import BlockMarkers, BrokenBlock, cut_block, find_block, put_block

MADE = "crontab"  # in `made`: install created the crontab
_NONE = ("no crontab for", "no such file")
_WHEN = re.compile(rb"^(?:\*/(\d+)|(\*)) \* \* \* \* |^0 (?:\*/(\d+)|(\*)) \* \* \* |^(0 0) \* \* \* ", re.MULTILINE)
_ASSIGNED = re.compile(r"[A-Z_][A-Z0-9_]*=", re.ASCII)
_DAEMONS = frozenset(("cron", "crond", "fcron", "anacron", "dcron"))


def missing() -> str:
    return "" if find_program("crontab") else "there is no crontab"


def is_running() -> bool:
    """Whether a cron daemon runs; True where /proc does not show it."""
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return True
    for number in numbers:
        try:
            with open(f"/proc/{number}/comm", "rb") as file:
                if file.read(64).strip().decode("utf-8", "replace") in _DAEMONS:
                    return True
        except OSError:
            continue
    return False


def install(job: Job) -> InstalledJob:
    every = even_every(job.every)
    notes = [] if every == job.every else [f"cron cannot do every {render_every(job.every)}: {render_every(every)}"]
    line = render_line(job._replace(every=every))
    before = read_crontab()
    write_crontab(_changed(before or b"", job.name, line), before)
    if not is_running():
        notes.append("no cron daemon runs here; the job runs once one is started")
    return InstalledJob(("crontab",), every, (MADE,) if before is None else (), tuple(notes))


def _changed(before: bytes, name: str, line: str) -> bytes:
    try:
        return put_block(before, line, _marks(name))
    except BrokenBlock as error:
        raise BadInput(f"in the crontab, {error}", hint="correct it with `crontab -e`, then run this again") from error


def find(name: str) -> InstalledJob | None:
    if missing():
        return None
    text = read_crontab() or b""
    try:
        span = find_block(text, _marks(name))
    except BrokenBlock:
        return InstalledJob(("crontab",), 0)
    return InstalledJob(("crontab",), find_every(text[span[0] : span[1]])) if span is not None else None


def command(name: str) -> tuple[str, ...]:
    text = read_crontab() or b"" if not missing() else b""
    try:
        span = find_block(text, _marks(name))
    except BrokenBlock:
        span = None
    if span is None:
        return ()
    lines = text[span[0] : span[1]].decode("utf-8", "surrogateescape").splitlines()
    job_line = next((line for line in lines if line and not line.startswith("#")), "")
    try:
        words = shlex.split(" ".join(job_line.split(" ")[5:]).replace("\\%", "%"))  # after the five time fields
    except ValueError:
        return ()
    first = next((at for at, word in enumerate(words) if not _ASSIGNED.match(word)), len(words))
    return tuple(words[first:])


def remove(name: str, made: tuple[str, ...]) -> bool:
    if missing():
        return False
    before = read_crontab()
    try:
        after = cut_block(before or b"", _marks(name))
    except BrokenBlock as error:
        raise BadInput(f"in the crontab, {error}", hint="remove truekeep's lines with `crontab -e`") from error
    if before is None or after == before:
        return False
    if not after.strip() and MADE in made:
        done = ask("crontab", "-r")
        if not done.ok:
            raise StorageFailed(f"crontab -r: {done.last_words}", hint="`crontab -e` shows what is there")
    else:
        write_crontab(after, before)
    return True


def next_run(name: str, now: datetime) -> datetime | None:
    found = find(name)
    return next_even(now, found.every) if found is not None and found.every and is_running() else None


def read_crontab() -> bytes | None:
    """Return the user's crontab; None if the user has no crontab. Raises StorageFailed if it cannot be read."""
    done = ask("crontab", "-l")
    if done.ok:
        return done.out
    if any(words in done.err.lower() for words in _NONE):
        return None
    raise StorageFailed(f"the crontab cannot be read: {done.last_words}", hint="choose another --system")


def write_crontab(after: bytes, before: bytes | None) -> None:
    """Replace the crontab, and check that it was stored."""
    if after == before:
        return
    done = ask("crontab", "-", given=after)
    if not done.ok:
        raise StorageFailed(f"crontab did not accept it: {done.last_words}", hint="the crontab is unchanged")
    if read_crontab() != after:
        raise StorageFailed("the crontab differs from what was written", hint="look at it with `crontab -l`")


def _marks(name: str) -> BlockMarkers:
    return BlockMarkers(f"# truekeep:begin schedule {name}: {OURS}", f"# truekeep:end schedule {name}")


# --- The line -------------------------------------------------------------------------------------------------------


def render_line(job: Job) -> str:
    """Return the crontab line. `%` is escaped, it would end the line; backslashes are refused, crons differ on them."""
    assigned = [f"{key}={shlex.quote(value)}" for key, value in job.environment.items()]
    command_line = " ".join((*assigned, *map(shlex.quote, job.command)))
    if "\\" in command_line:
        raise BadInput("a crontab cannot hold a path with a backslash", hint="--system systemd can")
    return f"{_when(job.every)} {command_line.replace('%', chr(92) + '%')}"


def _when(every: int) -> str:
    if every < 60:
        return "* * * * *" if every == 1 else f"*/{every} * * * *"
    hours = every // 60
    if hours == 24:
        return "0 0 * * *"
    return "0 * * * *" if hours == 1 else f"0 */{hours} * * *"


def find_every(block: bytes) -> int:
    """The minutes between the runs of a line; 0 if unknown."""
    match = _WHEN.search(block)
    if match is None:
        return 0
    minutes, each, hours, hourly, _ = match.groups()
    return int(minutes) if minutes else 1 if each else int(hours) * 60 if hours else 60 if hourly else 24 * 60
