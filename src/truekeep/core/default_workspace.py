"""Finds the workspace when the command line does not name one.

In this order: TRUEKEEP_WORKSPACE; the path that `truekeep init` saved for this user; the workspace in OpenClaw's
configuration; ~/.openclaw/workspace; the copy that the canonical host sent here. The path is saved in the user's state
folder and, in case that is cleared, in the configuration folder. Hooks call this, so OpenClaw's configuration is only
loaded if it exists.
"""

from __future__ import annotations

import os
from contextlib import suppress

from truekeep.core.errors import BadSetup
from truekeep.core.file_io import write_whole
from truekeep.core.machine import own_state
from truekeep.core.memory_copy import find_copy
from truekeep.core.model import WORKSPACE

FILE = "workspace"  # one line, the path
_STATE = ".truekeep"


def find_workspace() -> str:
    """The path of the workspace to use. It may not exist."""
    return find_chosen() or find_usual()


def find_chosen() -> str:
    """The path from the environment or from `truekeep init`; "" if neither is set."""
    named = os.environ.get("TRUEKEEP_WORKSPACE")
    path = os.path.expanduser(named) if named else read_remembered()
    if not path and (damaged := find_damaged()):
        raise BadSetup(f"{damaged} does not name a folder", hint="run `truekeep init PATH` to choose the workspace")
    return path


def read_remembered() -> str:
    """The path that `truekeep init` saved; "" if there is none or it cannot be read."""
    return next(filter(None, map(_read, _files())), "")


def find_damaged() -> str:
    """A saved-path file that exists but names no folder; "" if there is none."""
    return next((file for file in _files() if os.path.lexists(file) and not _read(file)), "")


def remember(path: str | os.PathLike[str]) -> None:
    """Save the workspace's path for later commands and hooks of this user."""
    for file in _files():
        write_whole(file, os.fsencode(os.path.abspath(path)) + b"\n")


def is_workspace(path: str | os.PathLike[str]) -> bool:
    return os.path.isdir(os.path.join(path, _STATE))


def find_openclaw() -> str:
    """The workspace in OpenClaw's configuration; "" if it names none or cannot be read."""
    from truekeep.core.harness_paths import find_homes

    homes = find_homes()
    if not os.path.isfile(homes.openclaw_json):
        return ""
    from truekeep.core.harness_files import UnreadableHarnessFile
    from truekeep.core.openclaw_config import named_workspace, read_config

    with suppress(UnreadableHarnessFile):
        return named_workspace(homes, read_config(homes))
    return ""


def find_usual() -> str:
    """OpenClaw's workspace, unless the default folder is already a truekeep workspace.

    If neither is one, the copy of the canonical host's memory, if there is one here.
    """
    usual = os.path.expanduser(WORKSPACE)
    named = find_openclaw()
    chosen = named if named and (is_workspace(named) or not is_workspace(usual)) else usual
    return chosen if is_workspace(chosen) else find_copy() or chosen


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            path = opened.read(8192).strip("\n")
    except OSError:
        return ""
    return path if os.path.isabs(path) and "\0" not in path else ""


def _files() -> tuple[str, str]:
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(own_state(), FILE), os.path.join(config, "truekeep", FILE)
