"""Runs external programs with a timeout and an output limit. Their error output is made safe to show."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from truekeep.core.child_process import absolute_path, find_program, run_program
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

MAX_OUTPUT = 64 << 20
_MAX_ERROR_TEXT = 1 << 20


class Ran(NamedTuple):
    """The result of a program."""

    code: int  # -1: ended after its time; -SIGXFSZ: ended because it printed too much
    out: bytes
    err: str  # safe to show

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def last_words(self) -> str:
        """The last line of its error output."""
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
    max_output: int = MAX_OUTPUT,
) -> Ran:
    """Run a program to its end. It gets no terminal and asks nothing. Raises ToolMissing.

    A variable that is None in `environment` is removed.
    """
    find_tool(arguments[0])
    path = absolute_path(os.environ.get("PATH") or os.defpath)
    wanted = {**os.environ, "PATH": path, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(environment or {})}
    result = run_program(
        arguments,
        timeout=seconds,
        max_output=max_output,
        env={key: value for key, value in wanted.items() if value is not None},
        cwd=cwd,
        given=given,
        leave_children=True,  # ssh may leave a connection open for the next call
    )
    code, said = result.code, result.err[:_MAX_ERROR_TEXT].decode("utf-8", "replace")
    if result.stopped == "timeout":
        code, said = -1, f"{said}\nno answer within {seconds:.0f} s"
    elif result.stopped == "output":
        code, said = -signal.SIGXFSZ, f"{said}\nmore than {max_output >> 20} MB of output"
    return Ran(code, result.out, withhold(printable(said, newlines=True)))
