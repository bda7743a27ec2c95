"""An ingester that files handoffs besides truekeep: scripts in the workspace, run by a line of the user's crontab.

Only one program may write memory. `schedule takeover` turns the line into a comment and installs truekeep's timer; the
crontab as it was is kept, and `takeover --undo` turns the line on again. The scripts are people's, and stay.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core.errors import BadInput, TruekeepError
from truekeep.core.file_io import make_private, write_whole
from truekeep.core.machine import own_state
from truekeep.core.model import WORKSPACE
from truekeep.integrations.schedule import cron
from truekeep.integrations.schedule.config import job_name
from truekeep.integrations.schedule.install import find, install, remove

SCRIPTS = ("scripts/run-memory-handoff-ingest.sh", "scripts/ingest-memory-handoffs.py")
OFF = "# turned off by truekeep: "
HINT = "`truekeep schedule takeover` turns it off, and files handoffs by truekeep's timer"
_FOLDER = "takeover"  # in the machine's own state: the crontab before, and whether a timer was installed
_NAME = re.compile(r"(?:run-memory-handoff-ingest\.sh|ingest-memory-handoffs\.py)\b")
_PATH = re.compile(r"[^\s'\"=;&|()<>]*/[^\s'\";&|()<>]*")


class EarlierIngester(NamedTuple):
    """What was found of another ingester of a workspace."""

    lines: tuple[str, ...]  # of the crontab, that run it
    off: tuple[str, ...]  # lines that truekeep turned off
    scripts: tuple[str, ...]  # in the workspace


class Takeover(NamedTuple):
    """What a takeover, or its undo, did."""

    lines: tuple[str, ...]
    backup: str  # the crontab as it was
    timer: str  # the system whose timer was installed or removed; "" if none was


def find_ingester(workspace: Path) -> EarlierIngester:
    """Look for another ingester of this workspace: two programs, and a person's crontab."""
    scripts = tuple(name for name in SCRIPTS if (workspace / name).is_file())
    try:
        text = "" if cron.missing() else (cron.read_crontab() or b"").decode("utf-8", "surrogateescape")
    except TruekeepError:
        text = ""  # a crontab that this user may not read
    lines = text.split("\n")
    running = tuple(line for line in lines if not line.lstrip().startswith("#") and _runs_it(line, workspace))
    off = tuple(line for line in lines if line.startswith(OFF) and _runs_it(line.removeprefix(OFF), workspace))
    return EarlierIngester(running, off, scripts)


def describe(found: EarlierIngester) -> list[str]:
    """Messages about an ingester that still runs."""
    return [f"another ingester files handoffs into this memory, by the crontab: {line.strip()}" for line in found.lines]


def _runs_it(line: str, workspace: Path) -> bool:
    """True if a crontab line runs an ingester for this workspace. One that cannot be resolved counts."""
    if not _NAME.search(line):
        return False
    paths = [os.path.expandvars(os.path.expanduser(path)) for path in _PATH.findall(line)]
    wanted = os.path.realpath(workspace)
    if any("$" in path or os.path.realpath(path) == wanted for path in paths):
        return True
    if any(os.path.isdir(os.path.join(path, "memory")) for path in paths):
        return False  # the line names another memory
    is_inside = any(os.path.realpath(path).startswith(f"{wanted}{os.sep}") for path in paths)
    return is_inside or os.path.realpath(os.path.expanduser(WORKSPACE)) == wanted  # the folder it uses by itself


def take_over(workspace: Path, *, every: int, at: str) -> Takeover:
    """Install truekeep's timer, unless there is one, and turn the lines of the other ingester into comments."""
    found = find_ingester(workspace)
    if not found.lines:
        raise BadInput("no crontab line of yours runs another ingester for this memory", hint="`truekeep doctor`")
    name = job_name(workspace)
    timer = ""
    if find(name) is None:
        timer = install(workspace, every=every, hours=None, system="auto", at=at).system
    before = cron.read_crontab() or b""
    backup = _keep(name, before, timer, at)
    _change_lines({line: OFF + line for line in found.lines}, before)
    return Takeover(found.lines, str(backup), timer)


def give_back(workspace: Path, *, at: str) -> Takeover:
    """Turn the lines on again, and remove the timer that the takeover installed."""
    found = find_ingester(workspace)
    if not found.off:
        raise BadInput("truekeep turned off no crontab line for this memory", hint="`crontab -l` shows what is there")
    name = job_name(workspace)
    timer = ""
    with suppress(OSError, ValueError, KeyError):
        timer = str(json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))["timer"])
    if timer and find(name) is not None:
        remove(workspace)
    before = cron.read_crontab() or b""
    backup = _keep(name, before, "", at)
    _change_lines({line: line.removeprefix(OFF) for line in found.off}, before)
    return Takeover(tuple(line.removeprefix(OFF) for line in found.off), str(backup), timer)


def every_of(found: EarlierIngester) -> int:
    """The minutes between the runs of the other ingester; 0 if unknown."""
    return next(filter(None, (cron.find_every(line.encode("utf-8", "surrogateescape")) for line in found.lines)), 0)


def _change_lines(changes: dict[str, str], before: bytes) -> None:
    lines = before.decode("utf-8", "surrogateescape").split("\n")
    after = "\n".join(changes.get(line, line) for line in lines).encode("utf-8", "surrogateescape")
    cron.write_crontab(after, before)


def _keep(name: str, crontab: bytes, timer: str, at: str) -> Path:
    folder = _folder()
    make_private(folder)
    backup = folder / f"crontab-{re.sub('[^0-9TZ]', '', at)}"
    write_whole(backup, crontab)
    write_whole(folder / f"{name}.json", json.dumps({"timer": timer, "backup": backup.name}).encode())
    return backup


def _folder() -> Path:
    return Path(own_state()) / _FOLDER
