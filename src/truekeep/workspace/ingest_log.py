"""The log of ingest runs where people look for it: logs/memory-handoff-ingest.log in the workspace.

The workspace is people's folder, so its folder logs is made only by `schedule install`, which they asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

from truekeep.core.state_dir import append_line

FOLDER = "logs"
NAME = "memory-handoff-ingest.log"


def find_log(root: Path, setting: str) -> Path | None:
    """The file that gets a line for each run; None if there is none."""
    if setting == "none":
        return None
    if setting != "auto":
        return root / os.path.expanduser(setting)
    folder = root / FOLDER
    return folder / NAME if folder.is_dir() and not folder.is_symlink() else None


def append_run(root: Path, setting: str, line: str) -> str:
    """Write the line of a run. Returns the path if that failed, else ""."""
    path = find_log(root, setting)
    if path is None or append_line(str(path.parent), path.name, line, is_private=False):
        return ""
    return str(path)


def begin_log(root: Path, setting: str) -> Path | None:
    """Make the log, and the folder logs in the workspace. Returns its path; None if the settings turn it off."""
    if setting == "auto":
        (root / FOLDER).mkdir(exist_ok=True)
    path = find_log(root, setting)
    if path is not None and path.parent.is_dir() and not os.path.lexists(path):
        path.touch()
    return path
