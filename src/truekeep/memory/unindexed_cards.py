"""Cards that need no line in the index: a person removed it, or another file that the index lists names the card.

So a person can replace many related lines by one line and a sub-card for good. The ledger tells who removed a line; an
index that was lost or emptied does not count, and is rebuilt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property

from truekeep.core.model import CARDS, INDEX
from truekeep.memory.card import unlinked
from truekeep.memory.ledger import Ledger
from truekeep.memory.memory_index import card_links, linked_cards

# A card's file by its name: alone, or in the folder of cards. In another folder it is another file.
_WORD = r"\w[^\s/()<>\[\]\"'`|,;:*]*"
_NAMED = re.compile(rf"(?:(?<![\w./%-])(?:\./)?|(?<=cards/))({_WORD}\.md)\b")
_LINKED = re.compile(rf"\]\([ ]*(?:\./|(?:\.\.?/)*(?:memory/)?cards/)?({_WORD}\.md)(?=[#)\s])")
_ITEM = re.compile(r"^[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|\|).*", re.MULTILINE)
_ANGLED = re.compile(r"\]\([ ]*<(?:\./)?([^<>/\r\n]+\.md)(?=[#>])")
_FILE = re.compile(rf"(?<![\w./%-])(?:\./)?((?:{_WORD}/)*{_WORD}\.md)\b")


class Consolidation:
    """The cards that shall have no line of their own in an index."""

    def __init__(
        self, index: bytes, ledger: Ledger, read: Callable[[str], bytes | None], *, heeds_undo: bool = True
    ) -> None:
        """`read` returns a memory file, or None. `heeds_undo`: lines that were undone are not added again."""
        self.index, self._ledger, self._read, self._heeds_undo = index, ledger, read, heeds_undo

    def covers(self, card_name: str) -> bool:
        return bool(self.index.strip()) and (card_name in self.removed or card_name in self.named)

    @cached_property
    def removed(self) -> set[str]:
        """The cards whose line a person removed, in an editor or by an undo."""
        removed: set[str] = set()
        linked: Counter[str] | None = None  # the index as truekeep left it
        for version in self._ledger.versions(INDEX):
            if version.before is None:
                removed, linked = set(), None
            elif version.found is not None:
                linked = _edited(linked, version.found, removed)
            linked = linked if linked is not None else Counter()
            for entry, splice in version.splices:
                gone, come = list(card_links(splice.removed)), list(card_links(splice.inserted))
                linked.subtract(gone)
                linked.update(come)
                if gone and self._heeds_undo and self._undoes(entry):
                    removed.update(gone)
                removed.difference_update(come)
            if version.after is None:
                removed, linked = set(), None
        _edited(linked, self.index, removed)
        return removed

    def _undoes(self, entry: int) -> bool:
        found = self._ledger.get_entry(entry)
        return found is not None and found.undoes is not None

    @cached_property
    def named(self) -> set[str]:
        """The cards that the index lists without a link, or that a file lists which the index links to."""
        found = names_in(self.index)
        for path in self._files():
            data = self._read(path)
            if data is not None:
                found |= names_in(data) - {path.rpartition("/")[2]}
        return found

    def _files(self) -> set[str]:
        """The cards and documents that the index links to."""
        files = {unlinked(name) for name in _FILE.findall(self.index.decode("utf-8", "surrogateescape"))}
        files |= {f"{CARDS}/{name}" for name in linked_cards(self.index)}
        return {path for path in files if path != INDEX and ".." not in path.split("/")}


def _edited(before: Counter[str] | None, data: bytes, removed: set[str]) -> Counter[str]:
    """The cards of an index that a person edited; their removed lines are noted, and those that they put back."""
    after = Counter(card_links(data))
    if before is not None:
        removed |= {name for name, count in before.items() if count > 0} - after.keys()
        removed -= after.keys()
    return after


def names_in(data: bytes) -> set[str]:
    """The cards that a text lists: by a link, or by their file name in a list item or table row.

    A file's name in a sentence may be said in passing, and stands for nothing.
    """
    text = data.decode("utf-8", "surrogateescape")
    found = {unlinked(name) for pattern in (_LINKED, _ANGLED) for name in pattern.findall(text)}
    found |= {unlinked(name) for item in _ITEM.findall(text) for name in _NAMED.findall(item)}
    return linked_cards(data) | found
