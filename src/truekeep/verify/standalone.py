"""Verifies texts against one checkout, without a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from truekeep.verify.cache import FactsCache
from truekeep.verify.options import Options
from truekeep.verify.results import CheckedMemory, MemoryText
from truekeep.verify.verifier import Verifier


def verify_anywhere(
    memories: Sequence[MemoryText], *, root: Path | None, online: bool = False, is_current: bool = False
) -> list[CheckedMemory]:
    """Check texts against one checkout. Facts about its code are cached in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "truekeep")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        store = FactsCache(os.path.join(folder, "facts.sqlite"))
    except OSError:
        store = FactsCache(":memory:")
    try:
        verifier = Verifier(store, [], options=Options(online=online, is_current=is_current))
        return verifier.check(memories, root=str(root) if root else "", keep=False)
    finally:
        store.close()
