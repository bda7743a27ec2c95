"""What truekeep needs to know about a harness: one protocol, implemented by the modules claude, codex and openclaw.

A harness is asked through the files it keeps, which is quick and changes nothing, and changed through its own
commands, which know their format. The few helpers here run those commands and read those files.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from truekeep.core import child_process
from truekeep.core.harness_paths import Homes
from truekeep.text.secrets.scanner import withhold

DEADLINE = 180.0  # seconds; OpenClaw takes half a minute on a busy machine

Hooks = Literal["", "ready", "untrusted", "modified", "unknown", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessCommand:
    """One command of a harness, and what it is for."""

    harness: str
    arguments: tuple[str, ...]  # the first is the program's path
    given: str = ""  # on its standard input
    why: str

    @property
    def shown(self) -> str:
        words = shlex.join((Path(self.arguments[0]).name, *self.arguments[1:]))
        return f"{words} <<< {shlex.quote(self.given)}" if self.given else words


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallState:
    """What a harness's own files say about truekeep."""

    is_registered: bool = False  # nothing is left for connect to do
    is_off: bool = False  # a person switched it off; that stays so
    hooks: Hooks = ""  # empty: there are none
    has_mcp: bool = False
    note: str = ""


class Harness(Protocol):
    """One harness."""

    @property
    def PROGRAM(self) -> str: ...  # noqa: N802 - a module's constant

    def rule_path(self, homes: Homes, root: Path | None) -> Path | None:
        """The instructions that it reads in a repository, or for the user; None if it reads none of ours."""

    def files(self, homes: Homes) -> Mapping[Path, str]:
        """Files of ours that it is given, besides the bundle."""

    def watched(self, homes: Homes) -> Sequence[Path]:
        """Files of a person that its commands write."""

    def trees(self, homes: Homes) -> Sequence[Path]:
        """Folders in which its commands keep copies of the bundle, and nothing else."""

    def look(self, homes: Homes, cards: Path | None) -> InstallState:
        """What its files say. `cards` is the folder that it should search, if it has to be told."""

    def plan_join(self, program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
        """The commands that are still needed."""

    def plan_leave(self, program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
        """The commands that take truekeep out."""

    def cut(self, path: Path, data: bytes) -> bytes:
        """A watched file without what the commands leave of ours."""

    def says_the_same(self, path: Path, one: bytes, other: bytes) -> bool:
        """Whether two versions of a watched file differ in nothing that a person could have written."""


def find_program(name: str, homes: Homes) -> str | None:
    """The harness's program: on PATH, or where its own installer puts it."""
    places = (homes.home / ".local" / "bin", homes.claude / "local")
    return child_process.find_program(name) or next(
        (str(place / name) for place in places if os.access(place / name, os.X_OK) and (place / name).is_file()), None
    )


def run_call(call: HarnessCommand, homes: Homes) -> str:
    """Run a command of a harness. Empty when it went well, else what went wrong."""
    path = child_process.absolute_path(os.environ.get("PATH") or os.defpath)
    environment = {
        **os.environ,
        "PATH": path,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    try:
        done = subprocess.run(
            call.arguments,
            input=call.given.encode(),
            capture_output=True,
            cwd=homes.home,
            env=environment,
            timeout=DEADLINE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {DEADLINE:.0f} seconds"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return ""
    said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace").splitlines()
    return withhold(" ".join(line.strip() for line in said[-3:])[:500]) or f"exit {done.returncode}"
