"""The `Harness` protocol, implemented by the modules claude, codex and openclaw.

The state of a harness is read from its files, which is quick and changes nothing; it is changed through its own
commands, which know their format.
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

COMMAND_TIMEOUT = 180.0  # seconds; OpenClaw takes half a minute on a busy machine

_EDITORS = (
    *(".vscode", ".vscode-server", ".vscode-insiders", ".vscode-oss", ".cursor", ".cursor-server"),
    *(".windsurf", ".windsurf-server", ".local/share/code-server"),
)

Hooks = Literal["", "ready", "untrusted", "modified", "unknown", "off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessCommand:
    """One command of a harness, and its purpose."""

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
    """The state of truekeep in a harness, according to its files."""

    is_registered: bool = False  # connect has nothing left to do
    is_off: bool = False  # disabled by the user; connect respects that
    hooks: Hooks = ""  # "" if there are none
    has_mcp: bool = False
    note: str = ""


class Harness(Protocol):
    """One harness."""

    @property
    def PROGRAM(self) -> str: ...  # noqa: N802 - a module's constant

    def rule_path(self, homes: Homes, root: Path | None) -> Path | None:
        """The instruction file for a repository or the user; None if the harness gets no rule."""

    def files(self, homes: Homes) -> Mapping[Path, str]:
        """Files to install besides the plugin."""

    def watched(self, homes: Homes) -> Sequence[Path]:
        """User files that the harness's commands change."""

    def trees(self, homes: Homes) -> Sequence[Path]:
        """Folders in which its commands keep copies of the plugin, and nothing else."""

    def look(self, homes: Homes, cards: Path | None) -> InstallState:
        """Read the state. `cards` is the folder that it should search, if it needs to be configured."""

    def plan_join(self, program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
        """The commands still needed to connect."""

    def plan_leave(self, program: str, homes: Homes, cards: Path | None) -> Sequence[HarnessCommand]:
        """The commands that disconnect."""

    def cut(self, path: Path, data: bytes) -> bytes:
        """A watched file without what the commands leave of truekeep."""

    def says_the_same(self, path: Path, one: bytes, other: bytes) -> bool:
        """True if two versions of a watched file differ only in formatting."""


def find_program(name: str, homes: Homes) -> str | None:
    """The harness's program: on PATH, where its installer puts it, or in an editor's extension; None if not found."""
    places = (homes.home / ".local" / "bin", homes.claude / "local", *_extension_folders(name, homes))
    return child_process.find_program(name) or next(
        (str(place / name) for place in places if os.access(place / name, os.X_OK) and (place / name).is_file()), None
    )


def _extension_folders(name: str, homes: Homes) -> list[Path]:
    """Folders of the program in editors' extensions, the latest installed first. An update replaces the folder."""
    if name != "claude":
        return []
    found = [
        folder
        for editor in _EDITORS
        for inner in ("resources/native-binary", "bin")
        for folder in (homes.home / editor).glob(f"extensions/anthropic.claude-code-*/{inner}")
    ]
    return sorted(found, key=lambda folder: folder.stat().st_mtime, reverse=True)


def run_call(call: HarnessCommand, homes: Homes) -> str:
    """Run a command of a harness. Returns the error, "" on success."""
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
            timeout=COMMAND_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {COMMAND_TIMEOUT:.0f} seconds"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return ""
    said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace").splitlines()
    return withhold(" ".join(line.strip() for line in said[-3:])[:500]) or f"exit {done.returncode}"
