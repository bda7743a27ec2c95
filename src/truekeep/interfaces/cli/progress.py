"""The progress display of long commands: on a terminal only, on standard error, and only after one second."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Self

from truekeep.interfaces.cli.output import wants_json

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_SECONDS = 1.0


class ProgressDisplay:
    """Shows what a command does while the `with` block runs, with a bar once `count` or `step` were called.

    Print nothing inside of the block: the display redraws its line.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._done, self._total = 0, 0
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._done, self._total, self._bar = 0, 0, None  # a display can be used again
        if sys.stderr.isatty() and not wants_json():
            self._timer = threading.Timer(DELAY_SECONDS, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the display early, for example before a prompt."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._bar is not None:
                self._bar.stop()

    def count(self, done: int, total: int) -> None:
        self.step(self._title, done, total)

    def step(self, title: str, done: int, total: int) -> None:
        if self._timer is None:
            return
        with self._lock:
            self._title, self._done, self._total = title, done, total
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=title, completed=done, total=total or None)

    def _show(self) -> None:
        # rich takes 33 ms to import, so only a command that runs longer pays for it.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=24))
        bar = Progress(
            *columns, MofNCompleteColumn(), TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        with self._lock:
            if self._timer is None:  # the command ended meanwhile
                return
            self._task = bar.add_task(self._title, completed=self._done, total=self._total or None)
            self._bar = bar
            bar.start()
