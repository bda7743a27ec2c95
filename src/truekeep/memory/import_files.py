"""Files imported from an archive: a list of them during the import, and the ledger's note afterwards.

During an import, `.truekeep/importing` lists its files. If the import was killed, the next command that locks the
workspace finds the list and removes the temporary files of these names, and nothing else. The ledger does not keep the
bytes of new files; `.truekeep/imported.jsonl` has their digests, a line for each import, to tell which archive a file
came from.
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

IMPORTING_LIST, IMPORTED_LOG = "importing", "imported.jsonl"


class FileImport(NamedTuple):
    """The import that brought a file."""

    archive: str
    at: str


@contextmanager
def list_importing(root: Path, paths: Sequence[str]) -> Iterator[None]:
    """Keep a list of the files that are being imported, until they are in place or the import failed."""
    if not paths:
        yield
        return
    folder = file_io.open_root(str(root / STATE))
    try:
        file_io.write_beside(folder, IMPORTING_LIST, json.dumps(list(paths)).encode())
        os.replace(file_io.temporary_name(IMPORTING_LIST), IMPORTING_LIST, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        try:
            yield
        finally:
            os.unlink(IMPORTING_LIST, dir_fd=folder)
    finally:
        os.close(folder)


def clear_interrupted_import(root: Path, vault: MemoryFiles) -> bool:
    """Remove the temporary files of a killed import; False if there was none. The caller holds the lock."""
    path = root / STATE / IMPORTING_LIST
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


def record_import(root: Path, archive: str, at: str, digests: Mapping[str, str]) -> None:
    """Record the archive that these files came with, and the SHA-256 of each. The caller holds the lock."""
    line = json.dumps({"at": at, "archive": archive, "files": digests}, ensure_ascii=False)
    file = os.open(
        root / STATE / IMPORTED_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def find_import(root: Path, path: str, digest: str) -> FileImport | None:
    """The latest import that brought exactly these bytes to this path."""
    try:
        lines = (root / STATE / IMPORTED_LOG).read_bytes().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            told = json.loads(line)
            if told["files"].get(path) == digest:
                return FileImport(str(told["archive"]), str(told["at"]))
    return None
