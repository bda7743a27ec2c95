"""A host and a copy of its memory in one process: publish, carry, receive, without a network between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.helpers import NOW, OPENED, Place, tree
from truekeep.handoffs.sync.copy_install import CopyFolder, CopyReport, IncomingFolder, NewGeneration
from truekeep.workspace.publishing import publish_memory
from truekeep.workspace.receiving import complete_copy
from truekeep.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truekeep.handoffs.sync.publication_store import Publication


@dataclass
class Pair:
    """The canonical host, and the copy on another machine."""

    place: Place
    root: Path  # of the copy
    repositories: tuple[str, ...] = ()
    states: dict[str, dict[str, str]] = field(default_factory=dict)  # every state that was published, by manifest

    @property
    def folder(self) -> CopyFolder:
        return CopyFolder(self.root)

    def publish(self, *, now: datetime = NOW, withheld: tuple[str, ...] = ()) -> Publication:
        with self.place.open(now=now) as workspace:
            published = publish_memory(workspace, withheld)
        self.states[published.head.manifest] = self.shared()
        return published

    def shared(self) -> dict[str, str]:
        """The memory files of the host."""
        found = tree(self.place.workspace)
        return {path: text for path, text in found.items() if path.endswith(".md") and path != "SOUL.md"}

    def receive(self, published: Publication, *, key: str = "", is_complete: bool = False) -> CopyReport | None:
        """Install a publication; `is_complete`: with its index, as a machine has it."""
        finish: Callable[[NewGeneration], None] = lambda _: None  # noqa: E731
        if is_complete:
            finish = lambda made: complete_copy(made, self.repositories)  # noqa: E731
        return self.folder.receive(IncomingFolder(published.folder), key=key, finish=finish)

    def sync(self, *, now: datetime = NOW, is_complete: bool = True) -> CopyReport | None:
        return self.receive(self.publish(now=now), is_complete=is_complete)

    def memory(self) -> dict[str, str]:
        """The memory files of the copy; none without a copy."""
        current = self.folder.current()
        return {p: text for p, text in tree(current).items() if p.endswith(".md")} if current is not None else {}

    def open(self, *, now: datetime = NOW) -> Workspace:
        current = self.folder.current()
        assert current is not None
        opened = Workspace.open(current, now=lambda: now)
        OPENED.append(opened)
        return opened

    def write(self, path: str, text: str) -> Path:
        file = self.place.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def bytes_of_copy(self) -> bytes:
        """Everything that is on the other machine."""
        return b"".join(path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file())


class StoppedHere(BaseException):
    """The process was killed. Not an Exception, so that nothing tidies up for it."""


@contextmanager
def stopped_at(step: int, monkeypatch: pytest.MonkeyPatch, raising: Callable[[], BaseException]) -> Iterator[list[int]]:
    """Stop at the nth call that changes the disk. Gives a list with the number of calls so far."""
    calls = [0]
    with monkeypatch.context() as patch:

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*given: object, **named: object) -> object:
                calls[0] += 1
                if calls[0] == step:
                    raise raising()
                return real(*given, **named)

            return call

        for name in ("link", "symlink", "replace", "rename", "unlink", "utime", "fchmod", "mkdir", "makedirs"):
            patch.setattr(os, name, counted(getattr(os, name)))
        yield calls
