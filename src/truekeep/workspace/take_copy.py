"""Makes a workspace of the copy on this machine, for `truekeep host take` when the canonical host is lost.

The copy itself stays as it is. What never left the host is not in the new workspace: private files, drafts in review,
the ledger with its history, transcripts, and the host's own configuration.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core import file_io
from truekeep.core.config import render_config
from truekeep.core.default_workspace import remember
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.model import WORKSPACE
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.copy_install import find_edits, read_published_files
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable

_STATE_FILES = (f"{STATE}/host", f"{STATE}/decay.toml")


def default_target() -> Path:
    """Where a copy becomes a workspace if no folder is named."""
    return Path(os.path.expanduser(WORKSPACE))


def make_workspace(copy: Workspace, target: Path) -> Workspace:
    """Copy the files of a copy into a new workspace, which every later command uses. Whole, or not at all."""
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target} is not empty", hint="name another folder: `truekeep host take --to DIR`")
    edited = set(find_edits(copy.path))
    files = [path for path in read_published_files(copy.path) if _is_taken(path) and path not in edited]
    if not files:
        raise BadSetup(f"{copy.path} has no list of its files", hint="`truekeep sync run` makes a new copy")
    beside = target.with_name(f".{target.name}.taking")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        _copy_files(copy.path, beside, files)
        repositories = copy.config.repositories
        file_io.write_whole(beside / STATE / "config.toml", render_config(repositories).encode(), mode=0o644)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            target.rmdir()
        os.rename(beside, target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    remember(target)
    return Workspace.open(target)


def _is_taken(path: str) -> bool:
    return not path.startswith(f"{STATE}/") or path in _STATE_FILES or path.startswith(f"{STATE}/hosts/")


def _copy_files(source: Path, target: Path, files: Iterable[str]) -> None:
    (target / STATE / "logs").mkdir(parents=True)
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / path, target / path)
        (target / path).chmod(0o644)
