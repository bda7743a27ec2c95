"""Reads what this machine runs at set times: crontabs, and the jobs of OpenClaw. Nothing is changed or run."""

from __future__ import annotations

import glob
import json
import os
import re
from contextlib import suppress
from typing import Any, NamedTuple

from truekeep.verify.live_system.answers import ask_program, find_program

_SYSTEM_TABLES = ("/etc/crontab", "/etc/cron.d/*")
_OPENCLAW_JOBS = "~/.openclaw/cron/jobs.json"
_MAX_BYTES = 1_000_000
_FIELD = r"(?:\*|[0-9]{1,2}|[A-Za-z]{3})(?:[-/,][0-9A-Za-z*]{1,3})*"
SCHEDULE = rf"(?:{_FIELD}[ \t]+){{4}}{_FIELD}|@(?:reboot|hourly|daily|midnight|weekly|monthly|yearly|annually)"
_USER = re.compile(r"\A\S+[ \t]+")
_ENTRY = re.compile(rf"[ \t]*(?P<schedule>{SCHEDULE})[ \t]+(?P<command>\S.*)")


class CronEntry(NamedTuple):
    """Something that runs at set times, and the table that has it."""

    schedule: str  # with single blanks; empty if the table has another form of it
    command: str  # what runs; of an OpenClaw job, its name and id
    table: str


def parse_crontab(text: str, table: str) -> list[CronEntry]:
    """The entries of a crontab; comments, settings and the column with a user of a system table are left out."""
    matches = (_ENTRY.match(line) for line in text.split("\n") if not line.lstrip().startswith("#"))
    has_user = table.startswith("/etc/")
    return [
        CronEntry(
            " ".join(match["schedule"].split()),
            _USER.sub("", match["command"]) if has_user else match["command"],
            table,
        )
        for match in matches
        if match
    ]


def list_cron_entries() -> tuple[list[CronEntry], str]:
    """Everything that runs at set times for this user or the machine, and why the list may be incomplete."""
    problem, found = "", list[CronEntry]()
    if find_program("crontab") is None:
        problem = "crontab is not installed"
    else:
        output = ask_program("crontab", "-l")
        found += parse_crontab(output.text, "crontab")
        problem = "" if not output.problem or "no crontab" in output.problem else output.problem
    for table in sorted(path for pattern in _SYSTEM_TABLES for path in glob.glob(pattern)):
        found += parse_crontab(_read(table), table)
    return [*found, *openclaw_jobs(_read(os.path.expanduser(_OPENCLAW_JOBS)))], problem


def _read(path: str) -> str:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(_MAX_BYTES).decode("utf-8", "replace")
    return ""


def openclaw_jobs(text: str) -> list[CronEntry]:
    try:
        data: Any = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return []
    jobs = data.get("jobs") if isinstance(data, dict) else None
    return [_openclaw_job(job) for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []


def _openclaw_job(job: dict[str, Any]) -> CronEntry:
    schedule = job.get("schedule")
    expression = schedule.get("expr", "") if isinstance(schedule, dict) else schedule
    name = f"{job.get('name', '')} {job.get('id', '')}"
    return CronEntry(" ".join(str(expression or "").split()), name.strip(), "OpenClaw's cron jobs")
