"""Answers reads of one workspace from a working folder that follows the record.

The folder is brought to the version that the request's own query saw, under a lock, before the request reads; so no
request sees half of a change, and after an acknowledged change none sees the state before it. Search, wake and the rest
are the services of an ordinary workspace: the same memory gives the same hits in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.machine import Machine
from truekeep.server.record import Record
from truekeep.server.working_folder import WorkingFolder

if TYPE_CHECKING:
    from truekeep.server.database import TeamDatabase
    from truekeep.workspace.workspace import Workspace

INDEXED_SECONDS = 1e9  # a file scan is as good as the version it was made at: nothing else writes the folder


class RecordReader:
    """The reading side of one workspace in one server process. One request at a time."""

    def __init__(self, database: TeamDatabase, workspace: int, folder: Path, identity: Machine) -> None:
        self._lock = threading.Lock()
        self._folder = WorkingFolder(folder, Record(database, workspace), identity)
        self._workspace: Workspace | None = None

    @property
    def version(self) -> int:
        return self._folder.version

    @contextmanager
    def reading(self, version: int) -> Iterator[Workspace]:
        """The workspace at this version or a later one. Everything that is asked of it must be complete at the end."""
        with self._lock:
            if self._workspace is None or not self._folder.is_trusted or self._folder.version < version:
                self._follow()
            assert self._workspace is not None
            yield self._workspace

    def _follow(self) -> None:
        if self._workspace is not None:
            self._workspace.context.release_ledger()
        was_trusted = self._folder.is_trusted
        self._folder.follow()
        if self._workspace is not None and not was_trusted:
            self._workspace.close()
            self._workspace = None
        if self._workspace is None:
            self._workspace = self._folder.open()
        self._workspace.search.index()

    def close(self) -> None:
        with self._lock:
            if self._workspace is not None:
                self._workspace.close()
                self._workspace = None
            self._folder.close()
