"""The instruction files (CLAUDE.md, AGENTS.md) of the repositories that are checked out here."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING

from truekeep.handoffs.policy_store import INSTRUCTION_FILES
from truekeep.maintenance.reconcile import values_in
from truekeep.memory.card import words_of
from truekeep.memory.file_scan import read_memory_file
from truekeep.text.encoding import decode_text
from truekeep.verify.checkouts import choose_checkout

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import StatedValue
    from truekeep.verify.checkouts import Checkout
    from truekeep.workspace.workspace import Workspace

MAX_BYTES = 262_144


class RepositoryInstructions:
    """Reads each instruction file once a run."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._texts = cache(self._read)
        self.values = cache(self._find_values)

    @cached_property
    def _checkouts(self) -> list[Checkout]:
        return self._workspace.repositories.checkouts()

    def checkout_of(self, repository: str) -> str:
        """The folder of a repository's checkout on this machine, or ""."""
        chosen = choose_checkout(repository, self._checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""

    def paths(self, repository: str) -> list[str]:
        """The paths that instruction files of a repository may have."""
        root = self.checkout_of(repository)
        return [os.path.join(root, name) for name in INSTRUCTION_FILES] if root else []

    def lines(self, repository: str) -> str:
        """The words of every line of the instruction files of a repository, for comparing."""
        texts = (text for _, text in self._texts(repository))
        return "\n".join(" ".join(words_of(line)) for text in texts for line in text.split("\n"))

    def _find_values(self, repository: str) -> list[StatedValue]:
        """The values that the instruction files of a repository state."""
        if not repository:
            return []
        return [
            item
            for path, text in self._texts(repository)
            for item in values_in(path, text, store="instructions", day="", repository=repository)
        ]

    def _read(self, repository: str) -> tuple[tuple[str, str], ...]:
        found = []
        for path in self.paths(repository):
            text = _read_text(path)
            if text is not None:
                found.append((f"{repository}/{os.path.basename(path)}", text))
        return tuple(found)


def _read_text(path: str) -> str | None:
    """The text of a file outside of the workspace; links are not followed."""
    with suppress(OSError):
        data, _ = read_memory_file(path)
        return decode_text(data[:MAX_BYTES])
    return None
