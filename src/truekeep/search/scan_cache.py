"""The look-out: who searches again within a moment need not look at all files once more."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager

_TURN = 0.5  # seconds to wait for somebody else's look at the files


class Lookout:
    """When the files were last looked at and all were in the index: of all who search one workspace in this process."""

    def __init__(self) -> None:
        self._turn = allocate_lock()
        self._looked: tuple[tuple[int, int] | None, dict[bool, float]] = (None, {})  # which index; transcripts or not

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One looks, and the others have its look. Whoever would wait for long goes on without."""
        mine = self._turn.acquire(timeout=_TURN)
        try:
            yield
        finally:
            if mine:
                self._turn.release()

    def is_good(self, index: tuple[int, int] | None, transcripts: bool, within: float) -> bool:
        known, looked = self._looked
        return known == index and time.monotonic() - looked.get(transcripts, -within) < within

    def note(self, index: tuple[int, int] | None, transcripts: bool, at: float) -> None:
        known, looked = self._looked
        self._looked = (index, {**(looked if known == index else {}), transcripts: at})

    def forget(self) -> None:
        self._looked = (None, {})


_lookouts: dict[str, Lookout] = {}  # by state folder


def lookout_of(state: str) -> Lookout:
    return _lookouts.setdefault(state, Lookout())
