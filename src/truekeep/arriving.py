"""Files on their way in: which ones, so that what a killed import left beside their places is found again.

The list lies in `.truekeep/importing` for as long as the import writes. Whoever next writes to the workspace, and holds
its lock, finds it and clears the temporary files of these names; nothing else is looked for, and nothing else removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep import disk
from truekeep.state import STATE

if TYPE_CHECKING:
    from truekeep.vault import Vault

LIST = "importing"


@contextmanager
def arriving(root: Path, paths: Sequence[str]) -> Iterator[None]:
    """Note which files are being brought in, until they are there or were given up."""
    if not paths:
        yield
        return
    folder = disk.open_root(str(root / STATE))
    try:
        disk.write_beside(folder, LIST, json.dumps(list(paths)).encode())
        os.replace(disk.temporary_name(LIST), LIST, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
        try:
            yield
        finally:
            os.unlink(LIST, dir_fd=folder)
    finally:
        os.close(folder)


def clear_arriving(root: Path, vault: Vault) -> bool:
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
