"""Verifies texts against one checkout, without a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from truekeep.core.errors import BadInput
from truekeep.core.repository import find_top
from truekeep.core.state_dir import STATE
from truekeep.verify.cache import FactsCache
from truekeep.verify.memory_reader import read_memory
from truekeep.verify.options import Options
from truekeep.verify.results import CheckedMemory, MemoryText
from truekeep.verify.verifier import Verifier


def find_checkout(files: Sequence[str]) -> Path | None:
    """The checkout that contains all of these files, if they name no repository; None for memory files."""
    tops = set()
    for name in files:
        path = Path(name).resolve()
        memory = read_memory(str(path), name) if path.is_file() else None
        top = find_top(path.parent)
        is_memory = any((folder / STATE).is_dir() for folder in path.parents)
        if memory is None or memory.origin.repository or top is None or is_memory:
            return None
        tops.add(top)
    return tops.pop() if len(tops) == 1 else None


def verify_files(files: Sequence[str], *, root: Path, online: bool = False) -> list[CheckedMemory]:
    """Check files against one checkout."""
    memories = []
    for file in files:
        memory = read_memory(file, file)
        if memory is None:
            raise BadInput(f"{file} is not readable text", hint="name a Markdown file")
        memories.append(memory)
    return verify_anywhere(memories, root=root, online=online)


def verify_anywhere(
    memories: Sequence[MemoryText], *, root: Path | None, online: bool = False, is_current: bool = False
) -> list[CheckedMemory]:
    """Check texts against one checkout. Facts about its code are cached in the user's cache folder."""
    store = open_facts()
    try:
        verifier = Verifier(store, [], options=Options(online=online, is_current=is_current))
        return verifier.check(memories, root=str(root) if root else "", keep=False)
    finally:
        store.close()


def open_facts() -> FactsCache:
    """The facts about code in the user's cache folder; in memory where that cannot be written."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "truekeep")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return FactsCache(os.path.join(folder, "facts.sqlite"))
    except OSError:
        return FactsCache(":memory:")
