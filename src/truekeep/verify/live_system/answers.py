"""The answer to a question about this machine, and running the programs that are asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from truekeep.core import child_process
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable

State = Literal["there", "other", "absent", "unknown"]

CONFIDENTIAL_NAME = r"(?i)pass|pwd|secret|token|credential|signature|key(?!word)|auth(?!or)"
_PROGRAM_SECONDS = 3.0
_MAX_OUTPUT = 4 << 20
_PASSED_ON = (
    *("HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
)


class SystemAnswer(NamedTuple):
    """What the machine says about one thing.

    `there`: it exists, and runs if it is something that runs. `other`: it exists in another state: stopped, failed,
    masked. `absent`: a complete list does not have it. `unknown`: there is no complete list.
    """

    state: State
    what: str
    detail: dict[str, str] = {}  # noqa: RUF012 - never written to


def make_answer(state: State, what: str, detail: Mapping[str, str] | None = None) -> SystemAnswer:
    """Make an answer whose text is safe to show: one line, short, printable."""
    return SystemAnswer(
        state, clip(what, 300), {key: printable(value[:1_000]) for key, value in (detail or {}).items() if value}
    )


class ProgramOutput(NamedTuple):
    """The output of a program; `problem` says why it may be incomplete."""

    text: str
    problem: str


def find_program(name: str) -> Path | None:
    """Return where PATH has a program of this name. It is not run, and the current folder is never part of PATH."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,127}", name):
        found = child_process.find_program(name)
        return Path(found) if found else None
    return None


def ask_program(program: str, *arguments: str) -> ProgramOutput:
    path = find_program(program)
    if path is None:
        return ProgramOutput("", f"{program} is not on PATH")
    try:
        result = child_process.run_program(
            [str(path), *arguments], timeout=_PROGRAM_SECONDS, max_output=_MAX_OUTPUT, env=_environment(), cwd="/"
        )
    except OSError as error:
        return ProgramOutput("", f"{program} cannot be run: {error.strerror}")
    if result.stopped == "timeout":
        return ProgramOutput("", f"{program} did not answer within {_PROGRAM_SECONDS:g} s")
    if result.stopped == "output":
        return ProgramOutput("", f"{program} answered with more than {_MAX_OUTPUT >> 20} MB")
    problem = _explain_failure(program, result.code, result.err.decode("utf-8", "replace")) if result.code else ""
    return ProgramOutput(result.out.decode("utf-8", "replace"), problem)


def _explain_failure(program: str, code: int, errors: str) -> str:
    said = clip(withhold(errors[:2_000]), 160)
    return f"{program} says: {said}" if said else f"{program} failed with code {code}"


def _environment() -> dict[str, str]:
    clean = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    runtime = f"/run/user/{os.getuid()}"  # the socket of the user's systemd; cron and sudo do not set the variable
    if "XDG_RUNTIME_DIR" not in clean and os.path.isdir(runtime):
        clean["XDG_RUNTIME_DIR"] = runtime
    clean |= {"PATH": child_process.absolute_path(os.environ.get("PATH") or os.defpath), "LC_ALL": "C", "NO_COLOR": "1"}
    return clean | {"PAGER": "cat", "SYSTEMD_PAGER": "cat", "SYSTEMD_COLORS": "0"}
