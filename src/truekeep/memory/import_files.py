"""Files that come with an archive: while they are on their way in, and that they came.

The list of those on their way lies in `.truekeep/importing` for as long as the import writes. Whoever next writes to
the workspace, and holds its lock, finds it and clears the temporary files of these names; nothing else is looked for,
and nothing else removed. The ledger keeps no bytes of new files; `.truekeep/imported.jsonl` has their digests, a line
for each import, so that it can be told which archive a file came with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.state_dir import STATE

if TYPE_CHECKING:
    from truekeep.memory.staging import MemoryFiles

LIST, ARRIVED = "importing", "imported.jsonl"


class Arrival(NamedTuple):
    """The import that a file came with."""

    archive: str
    at: str


@contextmanager
def arriving(root: Path, paths: Sequence[str]) -> Iterator[None]:
    """Note which files are being brought in, until they are there or were given up."""
    if not paths:
        yield
        return
    folder = file_io.open_root(str(root / STATE))
    try:
        file_io.write_beside(folder, LIST, json.dumps(list(paths)).encode())
        os.replace(file_io.temporary_name(LIST), LIST, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        try:
            yield
        finally:
            os.unlink(LIST, dir_fd=folder)
    finally:
        os.close(folder)


def clear_arriving(root: Path, vault: MemoryFiles) -> bool:
    """Remove what a killed import left. False when there was none. Only for the lock's holder."""
    path = root / STATE / LIST
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return False
    except (ValueError, RecursionError):
        found = []
    for name in found if isinstance(found, list) else ():
        if isinstance(name, str) and {"", ".", ".."}.isdisjoint(name.split("/")):
            vault.forget_folders()
            vault.discard_temporary(name)
    with suppress(FileNotFoundError):
        path.unlink()
    return True


def note_arrived(root: Path, archive: str, at: str, digests: Mapping[str, str]) -> None:
    """Note with which archive these files came, each with the SHA-256 of its bytes. Only for the lock's holder."""
    line = json.dumps({"at": at, "archive": archive, "files": digests}, ensure_ascii=False)
    file = os.open(root / STATE / ARRIVED, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def find_arrival(root: Path, path: str, digest: str) -> Arrival | None:
    """The import that brought exactly these bytes to this path, the latest first."""
    try:
        lines = (root / STATE / ARRIVED).read_bytes().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            told = json.loads(line)
            if told["files"].get(path) == digest:
                return Arrival(str(told["archive"]), str(told["at"]))
    return None
