"""Watching: a handoff is filed within seconds of being written.

What is watched are a few folders, none of them with what is below it: the inboxes, the folders on the way to them, and
those in which repositories come and go. An event only hastens a look; there is one every few seconds anyway, so that
nothing is missed where the system loses events or has none. What goes wrong is told, and the watch goes on.
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
from truekeep.handoffs.inbox import InboxReader, is_letter_name
from truekeep.verify.checkouts import expand_repositories
from truekeep.workspace.workspace import Workspace

LOOK = 5.0  # seconds between looks that nothing asked for
AGAIN = 20.0  # seconds until a letter is tried again that stayed in its inbox
HUSH = 600.0  # seconds before the same warning is given again
SOON = 2.0  # seconds until the next try when another truekeep was writing, or the disk said no


class Ground(NamedTuple):
    """The folders that matter, there or not."""

    nests: frozenset[str]  # where repositories, or other machines' places, appear
    ways: frozenset[str]  # on the way to an inbox, from its repository down
    inboxes: frozenset[str]

    def there(self) -> list[str]:
        return sorted(path for path in self.nests | self.ways | self.inboxes if os.path.isdir(path))

    def matters(self, _: object, path: str) -> bool:
        """Whether a change of this path can mean a new handoff, or a new place for one."""
        if path in self.nests or path in self.ways or path in self.inboxes:
            return True
        above, name = os.path.split(path)
        return (above in self.inboxes and is_letter_name(name)) or (above in self.nests and os.path.isdir(path))


class InboxFileStamp(NamedTuple):
    """A letter as it lay there."""

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
        tell: Callable[[Workspace, FilingOutcome], None],
        warn: Callable[[str], None],
    ) -> None:
        self._path, self._repositories = path, repositories
        self._cards, self._documents = cards, documents
        self._tell, self._warn = tell, warn
        self._stayed: dict[str, tuple[InboxFileStamp, float]] = {}  # letters that were tried, and when to try again
        self._told: dict[tuple[str, str], str] = {}  # what was said of those that stay
        self._warned: dict[str, float] = {}

    def run(self, stop: threading.Event) -> None:
        """File what waits, and then what comes. Raises when this machine may not, or may no longer, write."""
        with Workspace.open(self._path) as workspace:
            self._ingest(workspace)
        while not stop.is_set():
            try:
                with Workspace.open(self._path) as workspace:
                    ground = self._survey(workspace)
                self._follow(ground, stop)
            except NotCanonical:
                raise
            except Exception as error:  # noqa: BLE001 - a watch that ends by itself is a watch that nobody misses
                self._say(error)
                stop.wait(LOOK)

    def _follow(self, ground: Ground, stop: threading.Event) -> None:
        """File what comes, until the folders are no longer these."""
        import watchfiles

        self._file(stop)
        changes = watchfiles.watch(
            *ground.there(),
            watch_filter=ground.matters,
            recursive=False,
            debounce=400,
            step=50,
            rust_timeout=int(LOOK * 1000),
            yield_on_timeout=True,
            stop_event=stop,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        for found in changes:
            for _, path in found:
                self._stayed.pop(path, None)  # closed by its writer, perhaps: nothing else about it need have changed
            self._file(stop)
            if any(path in part for _, path in found for part in ground):
                return  # a folder went or came: whoever follows the old one hears nothing of the new
            with Workspace.open(self._path) as workspace:
                if self._survey(workspace) != ground:
                    return

    def _file(self, stop: threading.Event) -> None:
        """File what is due; wait a little for what is being written. Longer than a while, and others would wait."""
        until = time.monotonic() + LOOK
        while not stop.is_set():
            try:
                with Workspace.open(self._path) as workspace:
                    due, wait = self._due(workspace)
                    if due:
                        self._ingest(workspace)
                        again = time.monotonic() + AGAIN
                        self._stayed |= {path: (stamp, again) for path, stamp in due.items()}
            except NotCanonical:
                raise
            except TruekeepError as error:
                self._say(error)
                wait = SOON
            if wait is None or time.monotonic() + wait > until or stop.wait(wait):
                return

    def _due(self, workspace: Workspace) -> tuple[dict[str, InboxFileStamp], float | None]:
        """The letters that can be filed now, and in how many seconds another one may be."""
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
            # Told when the lock is free: whoever reads our output may be slow, or gone.
            for item in filed:
                if item.outcome not in ("skipped", "failed"):
                    self._told.pop((item.inbox, item.name), None)
                elif self._told.get((item.inbox, item.name)) == item.why:
                    continue
                else:
                    self._told[item.inbox, item.name] = item.why
                self._tell(workspace, item)

    def _say(self, error: Exception) -> None:
        """Say what went wrong; not the same thing again and again."""
        if isinstance(error, BrokenPipeError):
            raise error
        if isinstance(error, TruekeepError):
            what = f"{error.message} ({error.hint})" if error.hint else error.message
        elif isinstance(error, OSError):
            what = f"{error.filename or 'the folders cannot be followed'}: {error.strerror or error}"
        else:
            what = f"the folders cannot be followed: {error}"
        now = time.monotonic()
        if now - self._warned.get(what, -HUSH) >= HUSH:
            self._warned[what] = now
            self._warn(what)

    def _roots(self) -> list[Path] | None:
        return None if self._repositories is None else [root for root in self._repositories if root.is_dir()]

    # The folders.

    def _survey(self, workspace: Workspace) -> Ground:
        config = workspace.config
        if self._repositories is None:
            roots = [*expand_repositories(config.repositories), workspace.path]
            nests = {nest for pattern in config.repositories for nest in _nests(pattern)}
            mirror = workspace.path / STATE / SYNCED
            routes = _folders(mirror)
            roots += [place for route in routes for place in _folders(route)]
            nests |= {str(mirror), *map(str, routes)}
            ways = {str(mirror.parent)}
        else:
            roots = [Path(os.path.abspath(root)) for root in self._repositories]
            nests, ways = set(), {_nearest(str(root.parent)) for root in roots}
        inboxes = set()
        for root in roots:
            for folder in config.writers.values():
                parts = folder.split("/")
                ways |= {str(root.joinpath(*parts[:count])) for count in range(len(parts))}
                inboxes.add(str(root / folder))
        return Ground(frozenset(nests), frozenset(ways), frozenset(inboxes))


def _nests(pattern: str) -> Iterator[str]:
    """The folders in which something may appear that a pattern names, as far as they are there."""
    parts = os.path.abspath(os.path.expanduser(os.path.expandvars(pattern))).split(os.sep)
    for count in range(1, len(parts)):
        if count + 1 < len(parts) and not any(map(glob.has_magic, parts[: count + 1])):
            continue  # what is fixed by name is there, or waited for at the nearest folder that is
        above = os.sep.join(parts[:count]) or os.sep
        if "**" in parts[:count]:
            return  # any folder at all: these are found by the look that comes anyway
        if not glob.has_magic(above):
            yield _nearest(above)
        else:
            yield from (path for path in glob.iglob(above) if os.path.isdir(path))


def _nearest(path: str) -> str:
    """The folder, or the one above it that is there."""
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
