"""The job that the system runs, and its settings in the machine's schedule.toml.

A timer belongs to a machine and its user, not to a workspace, which may move or be a copy. So does schedule.toml, which
has a table for each job.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.child_process import find_program, installed_command
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.machine import own_state
from truekeep.core.model import WORKSPACE
from truekeep.core.toml import read_toml, render_text
from truekeep.integrations.schedule.intervals import FilingHours, parse_every, parse_hours, render_every

FILE = "schedule.toml"
NAME = "truekeep"
TOOLS = ("git", "ssh", "rsync", "rclone")
_USUAL = ("/usr/local/bin", "/usr/bin", "/bin")
_PASSED_ON = (
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "OPENCLAW_STATE_DIR",
    "TRUEKEEP_MACHINE_ID",
)
"""Variables that say where files are. Keys of embedders are left out: others can read a unit or a crontab."""


class Job(NamedTuple):
    """A command to run regularly."""

    name: str  # "truekeep"; for another workspace than the default, with a digest of its path
    command: tuple[str, ...]
    environment: Mapping[str, str]
    every: int  # minutes


class ScheduleSettings(NamedTuple):
    """The settings of an installed job."""

    every: int  # minutes
    system: str
    hours: FilingHours | None = None  # when handoffs are filed; None: always
    workspace: str = ""
    installed_at: str = ""  # UTC
    made: tuple[str, ...] = ()  # folders, and the crontab, that install made


def job_name(workspace: Path | None) -> str:
    if workspace is None or workspace == Path(os.path.abspath(os.path.expanduser(WORKSPACE))):
        return NAME
    return f"{NAME}-{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:8]}"


def plan_job(workspace: Path | None, every: int) -> Job:
    """Return the job for this workspace, or for a machine that only sends handoffs."""
    command = [*installed_command(), "schedule", "run", "--timer"]
    if workspace is not None:
        command += ["--workspace", str(workspace)]
    environment = {"PATH": _search_path(command[0])}
    environment |= {name: value for name in _PASSED_ON if (value := os.environ.get(name))}
    for text in (*command, *environment.values()):
        if any(char < " " or char == "\x7f" for char in text) or not _is_utf8(text):
            raise BadInput(f"a timer cannot be given {text[:200]!r}", hint="name a path without control characters")
    return Job(job_name(workspace), tuple(command), environment, every)


def _search_path(first: str) -> str:
    """Return PATH for the job, which timers set to very little. Short, because a crontab line has a limit."""
    found = [os.path.dirname(path) for tool in TOOLS if (path := find_program(tool))]
    folders = dict.fromkeys((os.path.dirname(first), *found, *_USUAL))
    return ":".join(folder for folder in folders if ":" not in folder)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- schedule.toml --------------------------------------------------------------------------------------------------


def settings_path() -> Path:
    return Path(own_state()) / FILE


def names() -> list[str]:
    """Return the names of the jobs that were installed here."""
    return list(_read_all())


def read_settings(name: str) -> ScheduleSettings | None:
    """Return the settings of a job; None if it was never installed here."""
    table = _read_all().get(name)
    if table is None:
        return None
    where = f"{settings_path()}, [{name}]"
    try:
        return ScheduleSettings(
            every=parse_every(_text(table, "every")),
            system=_text(table, "system"),
            hours=_hours(table),
            workspace=_text(table, "workspace"),
            installed_at=_text(table, "installed_at"),
            made=tuple(str(item) for item in table.get("made", ())),
        )
    except (BadInput, TypeError) as error:
        raise BadSetup(f"{where}: {error}", hint="correct it, or run `truekeep schedule install` again") from error


def write_settings(name: str, settings: ScheduleSettings | None) -> None:
    """Write the settings of a job; None removes them."""
    tables = _read_all()
    if settings is None:
        tables.pop(name, None)
    else:
        tables[name] = {
            "every": render_every(settings.every),
            **({_hours_key(settings.hours): settings.hours.span} if settings.hours else {}),
            "system": settings.system,
            "workspace": settings.workspace,
            "installed_at": settings.installed_at,
            "made": list(settings.made),
        }
    path = settings_path()
    if not tables:
        path.unlink(missing_ok=True)
        return
    lines = [
        "# How often truekeep runs here, and when it files handoffs. `truekeep schedule install` writes this file.\n"
    ]
    for key, table in sorted(tables.items()):
        lines.append(f"\n[{key}]\n")
        lines += [f"{option} = {_rendered(value)}\n" for option, value in table.items()]
    file_io.write_whole(path, "".join(lines).encode())


def _rendered(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rendered, value))}]"
    return render_text(value) if isinstance(value, str) else json.dumps(value)


def _read_all() -> dict[str, dict[str, Any]]:
    given = read_toml(settings_path(), hint="correct it, or remove it and run `truekeep schedule install`")
    return {name: table for name, table in given.items() if isinstance(table, dict)}


def _hours_key(hours: FilingHours) -> str:
    return "pause_hours" if hours.is_pause else "ingest_hours"


def _hours(table: Mapping[str, Any]) -> FilingHours | None:
    """The hours of a job. `quiet_hours` is what earlier versions called pause_hours."""
    pause = parse_hours(_text(table, "pause_hours") or _text(table, "quiet_hours"), is_pause=True)
    ingest = parse_hours(_text(table, "ingest_hours"), is_pause=False)
    if pause and ingest:
        raise BadInput("it has both ingest_hours and pause_hours")
    return pause or ingest


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise BadInput(f"{key} is not a string")
    return value


# --- Folders of the back ends -----------------------------------------------------------------------------------------


def make_folders(folder: Path) -> tuple[str, ...]:
    """Make a folder and its parents. Returns those that were missing, deepest first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(str(path) for path in missing)
