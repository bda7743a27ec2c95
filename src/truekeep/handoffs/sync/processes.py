"""Other programs, run with fixed arguments, a clock and a limit on what they may say. Their failures become words."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from truekeep.core.child_process import absolute_path, find_program
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

MOST_OUTPUT = 64 << 20


class Ran(NamedTuple):
    """How a program ended."""

    code: int  # -1: it was stopped after its time
    out: bytes
    err: str  # safe to show

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def last_words(self) -> str:
        """The line of its complaint that says most: the last one."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""


class ToolMissing(Exception):
    """A program that is needed is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def find_tool(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise ToolMissing(name)
    return found


def run_tool(
    arguments: Sequence[str],
    *,
    seconds: float,
    given: bytes = b"",
    environment: Mapping[str, str | None] | None = None,
    cwd: str | None = None,
) -> Ran:
    """Run a program to its end. It gets no terminal, no questions and no more time than this.

    A variable that is None in `environment` is kept from it.
    """
    find_tool(arguments[0])
    path = absolute_path(os.environ.get("PATH") or os.defpath)
    wanted = {**os.environ, "PATH": path, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(environment or {})}
    env = {key: value for key, value in wanted.items() if value is not None}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with subprocess.Popen(
            list(arguments), stdin=subprocess.PIPE, stdout=out, stderr=err, env=env, cwd=cwd, start_new_session=True
        ) as process:
            try:
                process.communicate(given, timeout=seconds)
                code = process.returncode
            except subprocess.TimeoutExpired:
                code = -1
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        out.seek(0)
        err.seek(0)
        said = err.read(1 << 20).decode("utf-8", "replace")
        if code == -1:
            said += f"\nno answer within {seconds:.0f} s"
        return Ran(code, out.read(MOST_OUTPUT), withhold(printable(said, newlines=True)))
