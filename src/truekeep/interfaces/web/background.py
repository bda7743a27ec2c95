"""Results that take longer than a page may wait: computed in the background, and shown with their time.

A request waits a moment for a new result; then the last one is shown. Only the first result is waited for. There is one
computation at a time, however many requests ask.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

Seen = TypeVar("Seen")

MAX_AGE_SECONDS = 20.0  # of a result while nothing is known to have changed
WAIT_SECONDS = 0.05  # that a page waits for a newer result


class CachedResult(NamedTuple, Generic[Seen]):
    """A result, its time, and whether a newer one is being computed."""

    seen: Seen
    at: float  # seconds since the epoch
    is_current: bool


class _CacheSlot(NamedTuple, Generic[Seen]):
    seen: Seen
    at: float
    clock: float
    mark: Hashable


class _Run:
    """A running computation."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.failure: Exception | None = None


class Glance(Generic[Seen]):
    """The last look at something."""

    def __init__(
        self,
        see: Callable[[], Seen],
        mark: Callable[[], Hashable],
        *,
        lasting: float = MAX_AGE_SECONDS,
        patience: float = WAIT_SECONDS,
    ) -> None:
        """`see` looks, in a thread of its own; `mark` is another one as soon as something is known to have changed."""
        self._see, self._mark = see, mark
        self._lasting, self._patience = lasting, patience
        self._lock = threading.Lock()
        self._kept: _CacheSlot[Seen] | None = None
        self._running: _Run | None = None
        self._failure: Exception | None = None  # of the last look
        self._took = 0.0  # seconds

    def get(self) -> CachedResult[Seen]:
        """The last result, or a new one. A failed computation raises until one succeeds."""
        mark = self._mark()
        before, run = self._kept, self._begin(mark)
        if run is not None:
            if before is None:
                run.done.wait()
            elif self._took < 2 * self._patience:
                run.done.wait(self._patience)
            if failure := run.failure or (self._failure if before is not None else None):
                raise failure
        kept = self._kept
        if kept is None:
            raise RuntimeError("a look ended without an outcome")
        return CachedResult(kept.seen, kept.at, self._is_good(kept, mark))

    def _is_good(self, kept: _CacheSlot[Seen] | None, mark: Hashable) -> bool:
        return kept is not None and kept.mark == mark and time.monotonic() - kept.clock < self._lasting

    def _begin(self, mark: Hashable) -> _Run | None:
        """Start a computation if the last result is outdated; None if it is not."""
        with self._lock:
            if self._is_good(self._kept, mark):
                return None
            if self._running is None:
                self._running = _Run()
                threading.Thread(target=self._run, args=(mark, self._running), name="glance", daemon=True).start()
            return self._running

    def _run(self, mark: Hashable, run: _Run) -> None:
        clock, at = time.monotonic(), time.time()
        kept: _CacheSlot[Seen] | None = None
        try:
            kept = _CacheSlot(self._see(), at, clock, mark)
        except Exception as error:  # noqa: BLE001 - the error is shown on the page
            run.failure = error
        with self._lock:
            self._took = time.monotonic() - clock
            self._kept, self._failure = kept or self._kept, run.failure
            self._running = None
        run.done.set()
