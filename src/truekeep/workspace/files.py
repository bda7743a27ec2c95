"""Memory files by path, and lists of them by store, words, age and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.state_dir import STATE
from truekeep.memory.lookup import get_text, path_inside

if TYPE_CHECKING:
    from truekeep.maintenance.survey.queries import Browse, MemoryFileSummary
    from truekeep.workspace.workspace import Workspace

MAX_SURVEY_AGE = 3.0  # seconds that the survey of files may be old for a list


class FileBrowser:
    """The memory files of one workspace, for reading."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def read(self, path: str) -> str:
        """The text of a memory file; "" if there is no such file. Anything but a plain text file is an error."""
        return get_text(self._context.vault, path)

    def read_stored(self, path: str) -> bytes | None:
        """The bytes of a memory file; None if there is none. Raises for anything but a regular file."""
        stored = self._context.vault.read(path)
        return stored.data if stored is not None else None

    def read_bytes(self, path: str) -> bytes | None:
        """The bytes of a memory file; None if there is none, or it cannot be read."""
        with suppress(UnsafePath, ChangedSince, OSError):
            return self.read_stored(path)
        return None

    def relative(self, path: str) -> str:
        """A path as the ledger writes it, relative to the workspace; resolved from here, else from the workspace."""
        return path_inside(self._context.path, path)

    def browse(self, wanted: Browse, *, first: int = 0, most: int = 50) -> tuple[list[MemoryFileSummary], int]:
        """One page of the memory files that match, and how many match in all."""
        survey = self._workspace.maintenance.survey(within=MAX_SURVEY_AGE)
        survey.browsing.copy_verdicts(str(self._context.path / STATE / "facts.sqlite"))
        return survey.browsing.browse(wanted, first=first, most=most)

    def topics(self, paths: Sequence[str]) -> dict[str, str]:
        """The topics of cards, as the last survey found them; no file is read."""
        return self._context.survey.browsing.find_topics(paths)
