"""Runs truekeep as a person would, on a terminal, and notes how each command ended and how long it was silent."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST_RUN = 600.0  # seconds; longer is called a hang
LONGEST_SILENCE = 10.0  # seconds without a word on the terminal
COMMANDS = (
    ("status",),
    ("doctor",),
    ("verify",),
    ("verify",),
    ("reconcile",),
    ("tidy",),
    ("index",),
    ("search", "what did we decide last week"),
    ("wake",),
    ("schedule", "run"),
    ("status",),
)
CRASH = 70
KILLED = -9


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRun:
    command: str
    exit_code: int
    seconds: float
    cpu: float
    peak_mb: float
    silence: float  # the longest time without output

    @property
    def failed(self) -> str:
        if self.exit_code in (CRASH, KILLED):
            return "crash" if self.exit_code == CRASH else "hang"
        return "silent" if self.silence > LONGEST_SILENCE else ""


def run_on_terminal(arguments: tuple[str, ...], environment: Mapping[str, str]) -> CommandRun:
    """Run one command on a pseudo-terminal of 100 columns."""
    controller, terminal = pty.openpty()
    begun = last = time.monotonic()
    silence = 0.0
    process = subprocess.Popen(
        [sys.executable, "-m", "truekeep", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env={**environment, "COLUMNS": "100", "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(terminal)
    while time.monotonic() - begun < LONGEST_RUN:
        ready, _, _ = select.select([controller], [], [], 0.2)
        silence = max(silence, time.monotonic() - last)
        if ready:
            try:
                data = os.read(controller, 65_536)
            except OSError:  # the terminal's other end is closed: the command has ended
                data = b""
            if not data:
                break
            last = time.monotonic()
    else:
        process.kill()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    os.close(controller)
    return CommandRun(
        command=" ".join(arguments[:2]),
        exit_code=process.returncode,
        seconds=time.monotonic() - begun,
        cpu=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
        silence=silence,
    )


def ask_json(arguments: tuple[str, ...], environment: Mapping[str, str]) -> Any:
    """The answer of a command with --json, whatever its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "truekeep", *arguments, "--json"], env=environment, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def environment_for(home: Path, workspace: Path) -> dict[str, str]:
    """A machine on which nothing but this workspace is known."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": str(home), "TRUEKEEP_WORKSPACE": str(workspace)}
