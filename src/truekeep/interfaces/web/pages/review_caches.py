"""Caches of the review pages: files as they were shown, names of cards."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from itertools import islice

from truekeep.core.model import CARDS, REVIEW
from truekeep.handoffs.draft import parse_draft
from truekeep.handoffs.review import digest_of
from truekeep.workspace.workspace import Workspace

MAX_SUGGESTED_CARDS = 60


class ShownFiles:
    """Files as they were last shown, by digest, so that a page can show what changed since."""

    MAX_BYTES = 8_000_000
    MAX_FILE_BYTES = 1_000_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    def add(self, data: bytes | None, digest: str = "") -> None:
        if data is None or len(data) > self.MAX_FILE_BYTES:
            return
        digest = digest or digest_of(data)
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = data
                self._size += len(data)
            self._kept.move_to_end(digest)
            while self._size > self.MAX_BYTES:
                self._size -= len(self._kept.popitem(last=False)[1])

    def find(self, digest: str) -> bytes | None:
        with self._lock:
            return self._kept.get(digest)


class CardNames:
    """The names of all cards by their words; listed again when the folder changes."""

    def __init__(self) -> None:
        self._known: tuple[object, list[str], Mapping[str, list[str]]] = (None, [], {})

    def like(self, workspace: Workspace, words: Iterable[str], most: int = MAX_SUGGESTED_CARDS) -> list[str]:
        """The names that share most words with these, then others, each in alphabetical order."""
        names, having = self._look(workspace)
        shared = Counter(name for word in words for name in having.get(word, ()))
        best = nsmallest(most, shared, key=lambda name: (-shared[name], name))
        return [*best, *islice((name for name in names if name not in shared), most - len(best))]

    def _look(self, workspace: Workspace) -> tuple[list[str], Mapping[str, list[str]]]:
        try:
            info = (workspace.path / CARDS).stat()
        except OSError:
            return [], {}
        stamp = (info.st_ino, info.st_mtime_ns, info.st_ctime_ns)  # before the listing
        known, names, having = self._known
        if known != stamp:
            names, found = sorted(workspace.cards.names()), dict[str, list[str]]()
            for name in names:
                for word in set(name[:-3].casefold().split("-")):
                    found.setdefault(word, []).append(name)
            having = found
            self._known = (stamp, names, having)
        return names, having


def read_current(workspace: Workspace, path: str) -> bytes | None:
    """A file as it is now; of a draft, the handoff in it."""
    data = workspace.files.read_stored(path)
    if data is None or not path.startswith(f"{REVIEW}/"):
        return data
    return parse_draft(path, data).body
