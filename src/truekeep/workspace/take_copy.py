"""Makes a workspace of the copy on this machine, for `truekeep host take` when the canonical host is lost.

The copy itself stays as it is. What a person edited or added in it is taken as it is there, and named. What never left
the host is not in the new workspace: private files, drafts in review, the ledger with its history, transcripts, and the
host's own configuration.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.config import render_config
from truekeep.core.default_workspace import remember
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.model import WORKSPACE
from truekeep.core.state_dir import STATE
from truekeep.handoffs.sync.copy_install import find_edits, read_published_files
from truekeep.handoffs.sync.publication import digest_of, is_memory_path
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable

_STATE_FILES = (f"{STATE}/host", f"{STATE}/decay.toml")


class CopyContents(NamedTuple):
    """The files of a copy, as they are on this machine now."""

    taken: tuple[str, ...]
    edited: tuple[str, ...]  # of the taken ones: not as the host sent them, or added here
    left: tuple[str, ...]  # missing, not a regular file, or not in a place for memory


def default_target() -> Path:
    """Where a copy becomes a workspace if no folder is named."""
    return Path(os.path.expanduser(WORKSPACE))


def read_contents(copy: Workspace) -> CopyContents:
    """Compare a copy with what the host sent, by content."""
    sent = {path: digest for path, digest in read_published_files(copy.path).items() if _is_taken(path)}
    added = [path for path in find_edits(copy.path) if path not in sent and not path.startswith(f"{STATE}/")]
    if not sent:
        raise BadSetup(f"{copy.path} has no list of its files", hint="`truekeep sync run` makes a new copy")
    here = {path: _digest_here(copy.path / path) for path in [*sent, *filter(is_memory_path, added)]}
    taken = [path for path, digest in here.items() if digest]
    return CopyContents(
        tuple(taken),
        tuple(path for path in taken if here[path] != sent.get(path)),
        tuple(path for path in [*sent, *added] if not here.get(path)),
    )


def _digest_here(path: Path) -> str:
    """The digest of a file; "" if it is missing, a link, or not a file."""
    try:
        return digest_of(file_io.read_regular(path, follow=False))
    except FileNotFoundError:
        return ""
    except OSError:
        if path.is_file() and not path.is_symlink():
            raise  # it is there, and cannot be read: nothing is taken without it
        return ""


def make_workspace(copy: Workspace, target: Path, contents: CopyContents | None = None) -> Workspace:
    """Copy the files of a copy into a new workspace, which every later command uses. Whole, or not at all."""
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target} is not empty", hint="name another folder: `truekeep host take --to DIR`")
    files = (contents or read_contents(copy)).taken
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
