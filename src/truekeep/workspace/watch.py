"""Watches the inboxes, so that a handoff is filed within seconds.

Watches a few folders, not recursively: the inboxes, the folders above them, and the folders in which repositories
appear. Because events may be lost, it also scans every few seconds. Errors are reported, and the watch goes on.
"""

from __future__ import annotations

import glob
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from truekeep.core.errors import NotCanonical, TruekeepError
from truekeep.core.model import FilingOutcome
from truekeep.core.state_dir import STATE, SYNCED
from truekeep.handoffs.inbox import InboxReader, is_handoff_name
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.workspace import Workspace

SCAN_SECONDS = 5.0  # between scans without an event
RETRY_FILE_SECONDS = 20.0  # until a handoff that stayed in its inbox is tried again
REPEAT_WARNING_SECONDS = 600.0
RETRY_SECONDS = 2.0  # after another truekeep was writing, or the disk failed


class WatchedFolders(NamedTuple):
    """The folders to watch, existing or not."""

    repository_parents: frozenset[str]  # in which repositories, or folders of other machines, appear
    inbox_parents: frozenset[str]  # above an inbox, from its repository down
    inboxes: frozenset[str]

    def existing(self) -> list[str]:
        return sorted(
            path for path in self.repository_parents | self.inbox_parents | self.inboxes if os.path.isdir(path)
        )

    def matters(self, _: object, path: str) -> bool:
        """True if a change of this path can mean a new handoff or a new inbox."""
        if path in self.repository_parents or path in self.inbox_parents or path in self.inboxes:
            return True
        above, name = os.path.split(path)
        return (above in self.inboxes and is_handoff_name(name)) or (
            above in self.repository_parents and os.path.isdir(path)
        )


class InboxFileStamp(NamedTuple):
    """A handoff file, for noticing changes."""

    inode: int
    size: int
    mtime_ns: int


class Watch:
    """Follows the inboxes of a workspace until it is stopped."""

    def __init__(
        self,
        path: Path,
        *,
        repositories: Sequence[Path] | None = None,
        cards: bool = True,
        documents: bool = True,
        on_filed: Callable[[Workspace, FilingOutcome], None],
        warn: Callable[[str], None],
    ) -> None:
        self._path, self._repositories = path, repositories
        self._cards, self._documents = cards, documents
        self._on_filed, self._warn = on_filed, warn
        self._stayed: dict[str, tuple[InboxFileStamp, float]] = {}  # handoffs that were tried, and when to try again
        self._reported: dict[tuple[str, str], str] = {}  # the reported reasons of those that stay
        self._warned: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """File what waits, and then what comes. Raises when this machine may not, or may no longer, write."""
        with Workspace.open(self._path) as workspace:
            self._ingest(workspace)
        while not stop.is_set():
            try:
                with Workspace.open(self._path) as workspace:
                    folders = self._find_folders(workspace)
                self._follow(folders, stop)
            except NotCanonical:
                raise
            except Exception as error:  # noqa: BLE001 - a watch must not end by itself unnoticed
                self._say(error)
                stop.wait(SCAN_SECONDS)

    def _follow(self, folders: WatchedFolders, stop: threading.Event) -> None:
        """File what comes, until the folders are no longer these."""
        import watchfiles

        self._file(stop)
        changes = watchfiles.watch(
            *folders.existing(),
            watch_filter=folders.matters,
            recursive=False,
            debounce=400,
            step=50,
            rust_timeout=int(SCAN_SECONDS * 1000),
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        for found in changes:
            for _, path in found:
                self._stayed.pop(path, None)  # its writer may have closed it without another change
            self._file(stop)
            if any(path in part for _, path in found for part in folders):
                return  # a folder was added or removed: watch the new set
            with Workspace.open(self._path) as workspace:
                if self._find_folders(workspace) != folders:
                    return

    def _file(self, stop: threading.Event) -> None:
        """File what is due; wait a few seconds for files that are being written."""
        until = time.monotonic() + SCAN_SECONDS
        while not stop.is_set():
            try:
                with Workspace.open(self._path) as workspace:
                    due, wait = self._due(workspace)
                    if due:
                        self._ingest(workspace)
                        again = time.monotonic() + RETRY_FILE_SECONDS
                        self._stayed |= {path: (stamp, again) for path, stamp in due.items()}
            except NotCanonical:
                raise
            except TruekeepError as error:
                self._say(error)
                wait = RETRY_SECONDS
            if wait is None or time.monotonic() + wait > until or stop.wait(wait):
                return

    def _due(self, workspace: Workspace) -> tuple[dict[str, InboxFileStamp], float | None]:
        """The handoffs that can be filed now, and the seconds until another may be."""
        limits = workspace.config.limits
        inboxes = InboxReader(
            workspace.handoffs.inboxes(self._roots()), limit=limits.handoff_bytes, settle=limits.settle_seconds
        )
        try:
            waiting = inboxes.waiting()
        finally:
            inboxes.close()
        due: dict[str, InboxFileStamp] = {}
        stayed: dict[str, tuple[InboxFileStamp, float]] = {}
        waits: list[float] = []
        for name, inbox in waiting:
            path = str(inbox.path / name)
            try:
                info = os.lstat(path)
            except OSError:
                continue
            stamp = InboxFileStamp(info.st_ino, info.st_size, info.st_mtime_ns)
            before = self._stayed.get(path)
            age = time.time() - info.st_mtime
            if before is not None and before[0] == stamp and time.monotonic() < before[1]:
                stayed[path] = before
            elif 0 <= age < limits.settle_seconds:
                waits.append(limits.settle_seconds - age + 0.01)
            else:
                due[path] = stamp
        self._stayed = stayed
        return due, min(waits, default=None)

    def _ingest(self, workspace: Workspace) -> None:
        filed: list[FilingOutcome] = []
        try:
            workspace.handoffs.ingest(
                repositories=self._roots(), cards=self._cards, documents=self._documents, on_filed=filed.append
            )
        finally:
            # Reported after the lock is released: the reader of the output may be slow, or gone.
            for item in filed:
                if item.outcome not in ("skipped", "failed"):
                    self._reported.pop((item.inbox, item.name), None)
                elif self._reported.get((item.inbox, item.name)) == item.why:
                    continue
                else:
                    self._reported[item.inbox, item.name] = item.why
                self._on_filed(workspace, item)

    def _say(self, error: Exception) -> None:
        """Report an error, but not the same one repeatedly."""
        if isinstance(error, BrokenPipeError):
            raise error
        if isinstance(error, TruekeepError):
            what = f"{error.message} ({error.hint})" if error.hint else error.message
        elif isinstance(error, OSError):
            what = f"{error.filename or 'the folders cannot be followed'}: {error.strerror or error}"
        else:
            what = f"the folders cannot be followed: {error}"
        now = time.monotonic()
        if now - self._warned.get(what, -REPEAT_WARNING_SECONDS) >= REPEAT_WARNING_SECONDS:
            self._warned[what] = now
            self._warn(what)

    def _roots(self) -> list[Path] | None:
        return None if self._repositories is None else [root for root in self._repositories if root.is_dir()]

    # The folders.

    def _find_folders(self, workspace: Workspace) -> WatchedFolders:
        config = workspace.config
        if self._repositories is None:
            roots = [*expand_repositories(config.repositories), workspace.path]
            repository_parents = {nest for pattern in config.repositories for nest in _parents_of(pattern)}
            mirror = workspace.path / STATE / SYNCED
            routes = _folders(mirror)
            roots += [place for route in routes for place in _folders(route)]
            repository_parents |= {str(mirror), *map(str, routes)}
            inbox_parents = {str(mirror.parent)}
        else:
            roots = [Path(os.path.abspath(root)) for root in self._repositories]
            repository_parents, inbox_parents = set(), {_nearest(str(root.parent)) for root in roots}
        inboxes = set()
        for root in roots:
            for folder in config.writers.values():
                parts = folder.split("/")
                inbox_parents |= {str(root.joinpath(*parts[:count])) for count in range(len(parts))}
                inboxes.add(str(root / folder))
        return WatchedFolders(frozenset(repository_parents), frozenset(inbox_parents), frozenset(inboxes))


def _parents_of(pattern: str) -> Iterator[str]:
    """The existing folders in which a path that matches the pattern may appear."""
    parts = os.path.abspath(os.path.expanduser(os.path.expandvars(pattern))).split(os.sep)
    for count in range(1, len(parts)):
        if count + 1 < len(parts) and not any(map(glob.has_magic, parts[: count + 1])):
            continue  # a fixed name exists, or its nearest existing parent is watched
        above = os.sep.join(parts[:count]) or os.sep
        if "**" in parts[:count]:
            return  # any folder at all: the regular scan finds these
        if not glob.has_magic(above):
            yield _nearest(above)
        else:
            yield from (path for path in glob.iglob(above) if os.path.isdir(path))


def _nearest(path: str) -> str:
    """The folder, or its nearest existing parent."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
