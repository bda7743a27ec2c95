"""launchd: an agent, which is a property list in the user's LaunchAgents folder."""

from __future__ import annotations

import os
import plistlib
from datetime import datetime
from pathlib import Path
from typing import Any

from truekeep.core import file_io
from truekeep.core.child_process import find_program
from truekeep.core.errors import StorageFailed
from truekeep.integrations.schedule.base import OURS, InstalledJob, ask, check_ours, remove_made
from truekeep.integrations.schedule.config import Job, make_folders

_PREFIX = "io.truekeep."


def missing() -> str:
    return "" if find_program("launchctl") else "there is no launchctl"


def is_running() -> bool:
    return not missing()


def install(job: Job) -> InstalledJob:
    path = _path(job.name)
    check_ours(path)
    made = make_folders(path.parent)
    file_io.write_whole(path, render_agent(job), mode=0o644)
    domain = _domain()
    ask("launchctl", "bootout", f"{domain}/{_PREFIX}{job.name}")
    done = ask("launchctl", "bootstrap", domain, str(path))
    if not done.ok:
        done = ask("launchctl", "load", "-w", str(path))  # before macOS 10.10, and from ssh
    if not done.ok:
        raise StorageFailed(
            f"launchctl did not load {path}: {done.last_words}", hint="log in at the machine's screen once"
        )
    return InstalledJob((str(path),), job.every, made)


def find(name: str) -> InstalledJob | None:
    path = _path(name)
    try:
        given: dict[str, Any] = plistlib.loads(path.read_bytes())
        every = int(given["StartInterval"]) // 60
    except (OSError, ValueError, KeyError, TypeError, plistlib.InvalidFileException):
        return None
    return InstalledJob((str(path),), every) if given.get("TruekeepNote") == OURS else None


def command(name: str) -> tuple[str, ...]:
    try:
        given: dict[str, Any] = plistlib.loads(_path(name).read_bytes())
        return tuple(map(str, given["ProgramArguments"]))
    except (OSError, ValueError, KeyError, TypeError, plistlib.InvalidFileException):
        return ()


def remove(name: str, made: tuple[str, ...]) -> bool:
    path = _path(name)
    if not os.path.lexists(path):
        return False
    check_ours(path)
    domain = _domain()
    if not ask("launchctl", "bootout", f"{domain}/{_PREFIX}{name}").ok:
        ask("launchctl", "unload", "-w", str(path))
    path.unlink(missing_ok=True)
    remove_made(made)
    return True


def next_run(name: str, now: datetime) -> datetime | None:  # noqa: ARG001 - launchd does not say
    return None


def render_agent(job: Job) -> bytes:
    agent = {
        "Label": f"{_PREFIX}{job.name}",
        "ProgramArguments": list(job.command),
        "EnvironmentVariables": dict(job.environment),
        "StartInterval": job.every * 60,
        "RunAtLoad": True,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "TruekeepNote": OURS,
    }
    return plistlib.dumps(agent, sort_keys=False)


def _path(name: str) -> Path:
    return Path(os.path.expanduser("~")) / "Library" / "LaunchAgents" / f"{_PREFIX}{name}.plist"


def _domain() -> str:
    return f"gui/{os.getuid()}"
