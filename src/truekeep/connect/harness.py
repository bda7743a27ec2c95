"""What truekeep needs to know about a harness: one protocol, implemented by the modules claude, codex and openclaw.

A harness is asked through the files it keeps, which is quick and changes nothing, and changed through its own
commands, which know their format. The few helpers here run those commands and read those files.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from truekeep.connect.homes import Homes

DEADLINE = 180.0  # seconds; OpenClaw takes half a minute on a busy machine

Hooks = Literal["", "ready", "untrusted", "modified", "unknown", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command of a harness, and what it is for."""

    harness: str
    arguments: tuple[str, ...]  # the first is the program's path
    given: str = ""  # on its standard input
    why: str

    @property
    def shown(self) -> str:
        import shlex

        words = shlex.join((Path(self.arguments[0]).name, *self.arguments[1:]))
        return f"{words} <<< {shlex.quote(self.given)}" if self.given else words


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a harness's own files say about truekeep."""

    is_registered: bool = False  # nothing is left for connect to do
    is_off: bool = False  # a person switched it off; that stays so
    hooks: Hooks = ""  # empty: there are none
    has_mcp: bool = False
    note: str = ""


class Unreadable(Exception):
    """A harness's file is not what it should be, so truekeep does not touch that harness."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}")
        self.path = path
        self.what = what


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

    def look(self, homes: Homes, cards: Path | None) -> Standing:
        """What its files say. `cards` is the folder that it should search, if it has to be told."""

    def plan_join(self, program: str, homes: Homes, cards: Path | None) -> Sequence[Call]:
        """The commands that are still needed."""

    def plan_leave(self, program: str, homes: Homes, cards: Path | None) -> Sequence[Call]:
        """The commands that take truekeep out."""

    def cut(self, path: Path, data: bytes) -> bytes:
        """A watched file without what the commands leave of ours."""

    def says_the_same(self, path: Path, one: bytes, other: bytes) -> bool:
        """Whether two versions of a watched file differ in nothing that a person could have written."""


def find_program(name: str, homes: Homes) -> str | None:
    """The harness's program: on PATH, or where its own installer puts it."""
    places = (homes.home / ".local" / "bin", homes.claude / "local")
    return shutil.which(name) or next(
        (str(place / name) for place in places if os.access(place / name, os.X_OK) and (place / name).is_file()), None
    )


def run_call(call: Call, homes: Homes) -> str:
    """Run a command of a harness. Empty when it went well, else what went wrong."""
    environment = {**os.environ, "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
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
    from truekeep.secrets import withhold

    said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace").splitlines()
    return withhold(" ".join(line.strip() for line in said[-3:])[:500]) or f"exit {done.returncode}"


def read_bytes(path: Path) -> bytes | None:
    """A file's bytes; None when there is none."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(path, f"cannot be read: {error.strerror}") from error


def read_json(path: Path) -> dict[str, Any]:
    """An object from a JSON file; empty when there is none."""
    value = parse_object(read_bytes(path) or b"{}")
    if value is None:
        raise Unreadable(path, "is not a JSON object")
    return value


def parse_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def at(value: Any, *keys: str) -> Any:
    """What stands at the end of these keys; None where one of them is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def without_empty(value: Any) -> Any:
    """A value without the empty objects and lists in it, which harnesses leave behind."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    return value
