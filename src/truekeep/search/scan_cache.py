"""Remembers when the files were last scanned, so that a search soon after another can skip the scan."""

from __future__ import annotations

import time
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager

_MAX_WAIT_SECONDS = 0.5  # for another thread's scan

FileId = tuple[int, int]  # device and inode of an index file


class ScanCache:
    """When a scan last found every file in the index. Shared by all searches of a workspace in this process."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._index: FileId | None = None
        self._scanned_at: dict[bool, float] = {}  # with transcripts or without

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Let one thread scan while the others wait for its result, but not for long."""
        is_mine = self._lock.acquire(timeout=_MAX_WAIT_SECONDS)
        try:
            yield
        finally:
            if is_mine:
                self._lock.release()

    def is_recent(self, index: FileId | None, transcripts: bool, within: float) -> bool:
        """Whether this index had every file in the last `within` seconds."""
        return self._index == index and time.monotonic() - self._scanned_at.get(transcripts, -within) < within

    def note(self, index: FileId | None, transcripts: bool, at: float) -> None:
        """Note that a scan at this time found every file in this index."""
        known = self._scanned_at if self._index == index else {}
        self._index, self._scanned_at = index, {**known, transcripts: at}

    def forget(self) -> None:
        self._index, self._scanned_at = None, {}


_caches: dict[str, ScanCache] = {}  # by state folder


def scan_cache_of(state: str) -> ScanCache:
    return _caches.setdefault(state, ScanCache())
