"""The site of this machine's workspace, for `truekeep serve`: open workspaces, notices, and where bugs are logged."""

from __future__ import annotations

import os
import queue
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request

from truekeep import __version__
from truekeep.core.bugs import note_bug
from truekeep.core.memory_copy import CopySource, live_path, read_source
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.change_polling import word_of
from truekeep.interfaces.web.site import Allowed, Site, Tab
from truekeep.workspace.workspace import Workspace

MAX_WORKSPACES = 4  # open at a time
LOG = "web.log"
MAX_NOTICES = 20  # that wait for a page
TABS = (
    Tab("Today", "/", "t"),
    Tab("Review", "/review", "r"),
    Tab("Memory", "/memory", "m"),
    Tab("Search", "/search", "s"),
    Tab("History", "/history", "h"),
    Tab("Transcripts", "/transcripts", "c"),
)


class LocalSite(Site):
    """The site of the workspace in a folder."""

    def __init__(self, path: Path, keys: Keys, *, read_only: bool = False) -> None:
        super().__init__(keys, at_once=MAX_WORKSPACES)
        self._path = path
        self.read_only = read_only
        self._free: queue.LifoQueue[tuple[Workspace, object] | None] = queue.LifoQueue()
        for _ in range(MAX_WORKSPACES):
            self._free.put(None)
        self._lent = threading.local()  # the workspace of this thread
        self._noticed: list[str] = []  # notices that no page has shown yet
        self._noticing = threading.Lock()

    @property
    def path(self) -> Path:
        """The workspace; of a copy, the state that is in use now."""
        return Path(live_path(self._path))

    def lend(self, request: Request) -> AbstractContextManager[Workspace]:  # noqa: ARG002 - there is only one
        return self.borrow()

    @contextmanager
    def borrow(self) -> Iterator[Workspace]:
        """A workspace for one request. After an error it is closed, and the next request opens a new one.

        Also if its configuration was edited, or its ledger is another file: restored, or moved away.
        """
        kept, now = self._free.get(), self._mark()
        workspace: Workspace | None = None
        is_well = False
        try:
            if kept is not None and kept[1] != now:
                kept[0].close()
                kept = None
            workspace = self._lent.workspace = kept[0] if kept is not None else Workspace.open(self.path)
            yield workspace
            is_well = True
        finally:
            self._lent.workspace = None
            if workspace is not None:
                self._note(workspace)
                if not is_well:
                    workspace.close()
            self._free.put((workspace, now) if workspace is not None and is_well else None)

    def _mark(self) -> object:
        """A stamp that changes when an open workspace must be reopened."""
        path = self.path
        found: list[object] = [path]
        for name in ("config.toml", "ledger.sqlite"):
            try:
                info = os.stat(path / STATE / name)
            except OSError:
                found.append(None)
                continue
            is_edited = name == "config.toml"  # the ledger changes with every act, and stays the same file
            found.append((info.st_dev, info.st_ino, *((info.st_mtime_ns, info.st_size) if is_edited else ())))
        return found

    def close(self) -> None:
        while not self._free.empty():
            kept = self._free.get()
            if kept is not None:
                kept[0].close()

    # What pages need.

    def allowed(self, request: Request) -> Allowed:  # noqa: ARG002 - whoever has the link
        return Allowed(decide=not self.read_only, edit=not self.read_only)

    def context(self, request: Request) -> Mapping[str, Any]:
        return {
            "csrf": self.keys.form,
            "nav": TABS,
            "notices": self._notices(request),
            "copy_source": self._copy_source(),
            "copy_host": source.host if (source := self._source()) is not None else "",
            "read_only": self.read_only,
        }

    def news_word(self, request: Request, page: str) -> str:  # noqa: ARG002 - the same for everybody
        return word_of(str(self.path), page)

    def is_form(self, request: Request, word: str) -> bool:  # noqa: ARG002 - the same for everybody
        return self.keys.is_form(word)

    def approve(self, request: Request, draft: str, *, target: str = "", seen: Mapping[str, str]) -> None:
        with self.lend(request) as workspace:
            workspace.review.approve(draft, target=target, seen=seen)

    def reject(self, request: Request, draft: str, *, reason: str, seen: Mapping[str, str]) -> None:
        with self.lend(request) as workspace:
            workspace.review.reject(draft, reason=reason, seen=seen)

    def log_bug(self, error: Exception) -> str:
        note_bug(error, "serve")
        told = f"bug {type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}".rstrip()
        StateFolder(self.path).log(LOG, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} truekeep {__version__} {told}")
        return f"the traceback is in .truekeep/logs/{LOG}"

    # Notices: messages for the user, whatever page they opened.

    def _note(self, workspace: Workspace) -> None:
        """Save the notices of a workspace for the next page: forms and background work have no page."""
        with self._noticing:
            self._noticed += [notice for notice in workspace.notices if notice not in self._noticed]
            del self._noticed[MAX_NOTICES:]
        workspace.notices.clear()

    def _notices(self, request: Request) -> list[str]:
        """The notices for this page; each is shown once."""
        if request.query_params.get("fragment") or request.method == "HEAD":
            return []
        if (workspace := getattr(self._lent, "workspace", None)) is not None:
            self._note(workspace)
        with self._noticing:
            found = self._noticed[:]
            self._noticed.clear()
        return found

    def _source(self) -> CopySource | None:
        workspace: Workspace | None = getattr(self._lent, "workspace", None)
        return workspace.source if workspace is not None else read_source(self.path)

    def _copy_source(self) -> tuple[str, str]:
        """Of a copy: whose memory it is and of when, and a warning if it is stale."""
        source = self._source()
        now = datetime.now(UTC)
        return (source.in_words(now), source.warning(now)) if source is not None else ("", "")
