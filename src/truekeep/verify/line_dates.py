"""When the lines of a document were written, as git knows it. Asked only about lines that an alarm is about."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from truekeep.core.git import Git
from truekeep.core.repository import GitFailed
from truekeep.verify.cache import FactsCache
from truekeep.verify.checkout import MAX_SOURCE_BYTES
from truekeep.verify.git_history import Commit
from truekeep.verify.question import Question
from truekeep.verify.results import stamp_of


class LineDates:
    """The days of the lines of one repository's documents. Cached until HEAD or the file changes."""

    def __init__(self, git: Git, store: FactsCache, head: str) -> None:
        self._git, self._store, self._head = git, store, head
        self._known: dict[str, list[int]] = {}
        self._texts_then: dict[str, bytes] = {}

    def written_at(self, question: Question) -> int | None:
        """When the line of a claim was last written, in seconds; None if the document is not in this repository."""
        path = question.path
        if not self._head or not path or not os.path.isfile(os.path.join(self._git.root, path)):
            return None
        if path not in self._known:
            self._known[path] = self._load(path)
        times, at = self._known[path], question.claim.line - 1
        return times[at] if at < len(times) else None

    def was_named_before(self, question: Question, commit: Commit, path_then: Callable[[str, int], str]) -> bool:
        """Whether the document already named the thing right before a commit; a later edit kept the name."""
        return self._has_name(question, f"{commit.id}^", path_then(question.path, commit.at))

    def was_named_at(self, question: Question, commit: Commit, path_then: Callable[[str, int], str]) -> bool:
        """Whether the document named the thing at a commit."""
        return self._has_name(question, commit.id, path_then(question.path, commit.at))

    def _has_name(self, question: Question, revision: str, path: str) -> bool:
        key = f"{revision}:{path}"
        if key not in self._texts_then:
            _, data = next(iter(self._git.blobs([key], limit=MAX_SOURCE_BYTES)), ("", None))
            self._texts_then[key] = data or b""
        return question.claim.text.encode("utf-8", "surrogateescape") in self._texts_then[key]

    def _load(self, path: str) -> list[int]:
        key = f"blame {self._git.root} {self._head} {path} {stamp_of(self._git.root, path)}"
        known = self._store.answer(key)
        if known is None:
            times = self._blame(path)
            known = json.dumps(times)
            self._store.remember(key, known)
        return [int(at) for at in json.loads(known)]

    def _blame(self, path: str) -> list[int]:
        try:
            raw = self._git.run("blame", "--porcelain", "-w", "--", path, timeout=30)
        except GitFailed:
            return []  # not committed yet
        times: dict[bytes, int] = {}
        found: list[int] = []
        commit = b""
        for line in raw.split(b"\n"):
            if line.startswith(b"\t"):
                found.append(times.get(commit, int(time.time())))
            elif line.startswith(b"committer-time "):
                times[commit] = int(line.split()[1])
            elif len(word := line.partition(b" ")[0]) in (40, 64) and not word.strip(b"0123456789abcdef"):
                commit = word
        return found
