"""A person who edits memory by hand, at any moment and in the ways of several editors, and remembers every edit."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

CARDS = "memory/cards"


class Saved(NamedTuple):
    """A whole text that the person put into a file."""

    path: str
    text: str


class Hand:
    """What was done by hand, and what must be found again."""

    def __init__(self, workspace: Path, random: Random) -> None:
        self.workspace, self.random = workspace, random
        self.marks: dict[str, list[str]] = {}  # path: lines that were written into it
        self.gone: set[str] = set()  # deleted, or called otherwise since
        self.renamed: dict[str, str] = {}
        self.saved: list[Saved] = []
        self.count = 0
        self._open: Iterator[None] | None = None  # a file that is half saved

    def edit(self) -> None:
        """The next edit, or the second half of one."""
        if self._open is not None:
            if next(self._open, self) is self:
                self._open = None
            return
        self.count += 1
        kinds = (self._append, self._append, self._save, self._save_slowly, self._index, self._write, self._rename)
        act = self.random.choice((*kinds, self._delete))
        try:
            act()
        except FileNotFoundError:
            self.count -= 1  # the file has just gone: nothing was edited

    def finish(self) -> None:
        while self._open is not None:
            self.edit()

    def _a_card(self) -> str:
        names = sorted(name for name in os.listdir(self.workspace / CARDS) if name.endswith(".md") and name[0] != ".")
        if not names:
            raise FileNotFoundError
        return f"{CARDS}/{self.random.choice(names)}"

    def _mark(self) -> str:
        return f"by-hand-{self.count:05d}-{self.random.randrange(10**9)}"

    def _keep(self, path: str, mark: str) -> None:
        self.marks.setdefault(path, []).append(mark)

    def _append(self) -> None:
        path = self.random.choice((self._a_card(), self._a_card(), "TOOLS.md"))
        mark = self._mark()
        flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if path == "TOOLS.md" else 0)
        descriptor = os.open(self.workspace / path, flags, 0o644)
        try:
            os.write(descriptor, f"\n{mark}\n".encode())
        finally:
            os.close(descriptor)
        self._keep(path, mark)

    def _save(self) -> None:
        """As an editor that writes a new file and renames it."""
        path, mark = self._a_card(), self._mark()
        text = f"{(self.workspace / path).read_text()}\n{mark}\n"
        beside = self.workspace / f"{path}.swp"
        beside.write_text(text)
        if not (self.workspace / path).exists():
            beside.unlink()
            raise FileNotFoundError
        os.replace(beside, self.workspace / path)
        self.saved.append(Saved(path, text))
        self._keep(path, mark)

    def _save_slowly(self) -> None:
        """As an editor that empties a file and fills it again; the disk is slow."""
        path, mark = self.random.choice((self._a_card(), "MEMORY.md")), self._mark()
        text = f"{(self.workspace / path).read_text()}\n{mark}\n"
        self._open = self._fill(path, text)
        next(self._open)
        self.saved.append(Saved(path, text))
        self._keep(path, mark)

    def _fill(self, path: str, text: str) -> Iterator[None]:
        until = time.monotonic() + self.random.uniform(0.0, 0.1)
        with (self.workspace / path).open("r+") as file:
            file.truncate(0)
            file.write(text[: len(text) // 2])
            file.flush()
            while time.monotonic() < until:
                yield
            file.write(text[len(text) // 2 :])
        yield

    def _index(self) -> None:
        mark = self._mark()
        path = self.workspace / "MEMORY.md"
        lines = path.read_text().splitlines(keepends=True)
        at = self.random.randrange(1, len(lines) + 1)
        text = "".join((*lines[:at], f"- {mark}\n", *lines[at:]))
        beside = self.workspace / "MEMORY.md.swp"
        beside.write_text(text)
        os.replace(beside, path)
        self.saved.append(Saved("MEMORY.md", text))
        self._keep("MEMORY.md", mark)

    def _write(self) -> None:
        mark = self._mark()
        path = f"{CARDS}/hand-{self.count}.md"
        (self.workspace / path).write_text(f"---\ntopic: Noted by hand {self.count}\n---\n\n{mark}\n")
        self._keep(path, mark)

    def _rename(self) -> None:
        path = self._a_card()
        new = path.replace(".md", f"-{self.count}.md")
        os.rename(self.workspace / path, self.workspace / new)
        self.marks[new] = self.marks.pop(path, [])
        self.renamed[path] = new
        self.gone.add(path)

    def _delete(self) -> None:
        path = self._a_card()
        (self.workspace / path).unlink()
        self.marks.pop(path, None)
        self.gone.add(path)
