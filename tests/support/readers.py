"""Ways to ask a memory, whoever has it: what a reader must do is in tests/unit/workspace/test_readers.py.

A further kind, such as a server, is a class with these methods and an entry in READERS there.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from tests.support.visitor import Visitor
from truekeep.interfaces.mcp.schemas import TOOLS
from truekeep.interfaces.mcp.tools import MemoryTools

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.helpers import Place
    from truekeep.search.service import SearchResult
    from truekeep.workspace.workspace import Workspace


class Reader(Protocol):
    """Something that has a memory and answers."""

    @property
    def source(self) -> str:
        """Whose memory it is and how old, in words; "" for the host's own."""

    @property
    def shows_verdicts(self) -> bool:
        """False where there are no checkouts."""

    def find(self, query: str, limit: int = 5) -> SearchResult: ...
    def get(self, path: str) -> str: ...
    def read(self, path: str) -> str: ...
    def cards(self) -> set[str]: ...
    def wake(self, repository: Path) -> str: ...
    def resolve(self, query: str) -> str: ...
    def verdicts(self, path: str) -> dict[str, str]: ...
    def call(self, tool: str, **given: object) -> str:
        """What an MCP tool says; an error raises AssertionError."""

    def page(self, path: str, **query: str) -> str: ...
    def refuse_to_write(self) -> bool:
        """True if writing verbs are refused."""


class OpenedWorkspace:
    """The host's workspace, or a copy of it."""

    def __init__(self, workspace: Workspace, place: Place) -> None:
        self.workspace, self._place = workspace, place

    @property
    def source(self) -> str:
        return self.workspace.context.source_note

    @property
    def shows_verdicts(self) -> bool:
        return self.workspace.context.shows_verdicts

    def find(self, query: str, limit: int = 5) -> SearchResult:
        return self.workspace.search.find(query, limit=limit)

    def get(self, path: str) -> str:
        return self.workspace.search.get(path).text

    def read(self, path: str) -> str:
        return self.workspace.files.read(path)

    def cards(self) -> set[str]:
        return {card.name for card in self.workspace.cards.all()}

    def wake(self, repository: Path) -> str:
        return self.workspace.sessions.wake(repository).text

    def resolve(self, query: str) -> str:
        return self.workspace.verification.resolve(query).winner

    def verdicts(self, path: str) -> dict[str, str]:
        checked = self.workspace.verification.check(path)
        assert not isinstance(checked, str)
        return {verdict.claim.text: verdict.verdict for verdict in checked.verdicts}

    def call(self, tool: str, **given: object) -> str:
        reply = MemoryTools(self.workspace).call(TOOLS[tool], given)
        assert not reply.is_error, reply.text
        return reply.text

    def page(self, path: str, **query: str) -> str:
        visitor = Visitor(replace(self._place, workspace=self.workspace.path), read_only=True)
        with closing(visitor):
            return visitor.see(path, **query)

    def refuse_to_write(self) -> bool:
        return not self.workspace.is_canonical
