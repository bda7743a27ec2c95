"""Memory on its way down by rclone: the folder truekeep-memory of the remote has the host's publication.

The host brings its objects there, and then the head; another machine reads the head, and the objects that it lacks.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from truekeep.handoffs.sync.processes import Ran, run_tool
from truekeep.handoffs.sync.publication import HEAD, OBJECTS
from truekeep.handoffs.sync.publication_store import has_state, is_recent
from truekeep.handoffs.sync.runner import Unreachable

if TYPE_CHECKING:
    from truekeep.handoffs.sync.publication_store import Publication
    from truekeep.handoffs.sync.routes import Route
    from truekeep.handoffs.sync.runner import LocalMachine

FOLDER = "truekeep-memory"
_NOT_THERE = (3, 4)  # rclone's exit codes for a missing folder or file
_STEADY = ("--ask-password=false", "--contimeout", "15s", "--low-level-retries", "3", "--stats", "0")

Explain = Callable[[Ran], Unreachable]


class RclonePublication:
    """A publication on an rclone remote."""

    def __init__(self, route: Route, here: LocalMachine, explain: Explain) -> None:
        remote = route.text("remote")
        remote = remote if ":" in remote else os.path.expanduser(remote)
        self._place = f"{remote}{'' if remote.endswith((':', '/')) else '/'}{FOLDER}"
        self._flags, self._seconds, self._explain = route.texts("flags"), here.seconds, explain

    def read_head(self) -> bytes | None:
        return self._read(HEAD)

    def read_object(self, digest: str, limit: int) -> bytes | None:
        found = self._read(f"{OBJECTS}/{digest}")
        return found if found is not None and len(found) <= limit else None

    def _read(self, name: str) -> bytes | None:
        ran = self._run("cat", f"{self._place}/{name}")
        if ran.ok:
            return ran.out
        if ran.code in _NOT_THERE or "not found" in ran.err:
            return None
        raise self._explain(ran)

    def write(self, published: Publication) -> None:
        """Bring a publication there: objects first; those of states that are over are removed."""
        there = self.read_head()
        if is_recent(there, published):
            return
        if not has_state(there, published):
            objects = f"{self._place}/{OBJECTS}"
            self._do("sync", "--size-only", "--delete-after", "--", f"{published.folder / OBJECTS}", objects)
        self._do("copyto", "--", f"{published.folder / HEAD}", f"{self._place}/{HEAD}")

    def _do(self, *arguments: str) -> None:
        ran = self._run(*arguments)
        if not ran.ok:
            raise self._explain(ran)

    def _run(self, verb: str, *arguments: str) -> Ran:
        return run_tool(["rclone", verb, *_STEADY, *self._flags, *arguments], seconds=self._seconds)
