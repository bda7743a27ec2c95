"""Cards: list, look up, write, confirm and drop them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from truekeep.core.model import CARDS
from truekeep.memory.lookup import card_names, get_card, get_card_file, iter_cards

if TYPE_CHECKING:
    from truekeep.memory.card import Card
    from truekeep.memory.ledger import HandoffRow, LedgerEntry
    from truekeep.memory.staging import FileOnDisk
    from truekeep.workspace.workspace import Workspace


class Cards:
    """The cards of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    def all(self) -> Iterator[Card]:
        """Every card, by name."""
        return iter_cards(self._context.vault)

    def names(self) -> list[str]:
        """The file names of all cards, unordered; no card is read."""
        return card_names(self._context.vault)

    def count(self) -> int:
        return len(self.names())

    def exists(self, name: str) -> bool:
        """True if there is a card file of this name."""
        return (self._context.path / CARDS / name).is_file()

    def get(
        self, wanted: str, *, partly: bool = False, masked: bool = False
    ) -> tuple[Card, str, LedgerEntry | None, HandoffRow | None]:
        """One card, its text, and the entry and handoff that last wrote it.

        `partly` also finds it by the beginning of its name; `masked` hides credentials.
        """
        card, text = get_card(self._context.vault, wanted, partly=partly, masked=masked)
        entry, record = next(self._workspace.history.entries(f"{CARDS}/{card.name}", limit=1), (None, None))
        return card, text, entry, record

    def get_file(self, wanted: str) -> tuple[str, FileOnDisk]:
        """A card's name and its file, by name, path or citation."""
        return get_card_file(self._context.vault, wanted)
