"""Who wrote each line of a file: the ledger's splices are replayed, and edits of people in between are recognised.

An owner is an entry's number, BY_HAND for a person (or any program that is not truekeep), or BEFORE for
lines from before truekeep first wrote the file.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from truekeep.core.model import CARDS, INDEX, Splice
from truekeep.memory.ledger import Ledger, after_splices
from truekeep.memory.memory_index import linked_cards
from truekeep.text.line_diff import kept_lines

BY_HAND = 0
BEFORE = -1


def line_owners(ledger: Ledger, path: str, data: bytes, *, but: Container[int] = ()) -> list[int]:
    """The owner of each line of a file as it is now. `but`: entries that only respelled lines of others."""
    runs = _Runs()
    known: bytes | None = None
    is_first = True
    for version in ledger.versions(path):
        if version.before is None:
            runs = _Runs()
        elif version.found is not None:
            runs = _carried_over(known, runs, version.found, fresh=BEFORE if is_first else BY_HAND)
        for entry, splice in version.splices:
            is_respelled = entry in but or (path == INDEX and _is_relabelled(ledger, splice, entry))
            for part, owner in runs.respelled(splice, entry) if is_respelled else ((splice, entry),):
                runs.splice(part, owner)
        known = after_splices(version, known)
        is_first = False
    if is_first:
        runs = _carried_over(None, runs, data, fresh=BEFORE)
    elif known != data:
        runs = _carried_over(known or b"", runs, data, fresh=BY_HAND)
    return runs.of_lines(data.splitlines(keepends=True))


def _is_relabelled(ledger: Ledger, splice: Splice, entry: int) -> bool:
    """Whether an entry only changed the index line of another card, to tell its own card from that one."""
    if not splice.removed or not splice.inserted:
        return False
    cards = linked_cards(splice.removed)
    if not cards or cards != linked_cards(splice.inserted):
        return False
    found = ledger.get_entry(entry)
    return found is not None and not any(f"{CARDS}/{name}" in found.paths for name in cards)


class _Runs:
    """Runs of bytes with one owner each. A cursor makes splices in neighbouring places cheap."""

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._owners: list[int] = []
        self._at = 0  # the cursor: a run's place in the lists …
        self._offset = 0  # … and the offset where it starts

    def add(self, length: int, owner: int) -> None:
        if self._owners and self._owners[-1] == owner:
            self._lengths[-1] += length
        elif length:
            self._lengths.append(length)
            self._owners.append(owner)

    def splice(self, splice: Splice, entry: int) -> None:
        """Remove the owners of what the splice removed; the entry owns what it inserted."""
        self._split(splice.offset)
        left = len(splice.removed)
        while left > 0 and self._at < len(self._lengths):
            length = self._lengths[self._at]
            if length <= left:
                del self._lengths[self._at], self._owners[self._at]
            else:
                self._lengths[self._at] = length - left
            left -= length
        if splice.inserted:
            self._lengths.insert(self._at, len(splice.inserted))
            self._owners.insert(self._at, entry)

    def respelled(self, splice: Splice, entry: int) -> Iterator[tuple[Splice, int]]:
        """The splice line by line, each with the owner of the line that it replaces; whole if lines came or went."""
        old, new = splice.removed.splitlines(keepends=True), splice.inserted.splitlines(keepends=True)
        if len(old) != len(new):
            yield splice, entry
            return
        offset = splice.offset
        for before, after in zip(old, new, strict=True):
            self._split(offset)
            owner = self._owners[self._at] if self._at < len(self._owners) else entry
            yield Splice(path=splice.path, offset=offset, removed=before, inserted=after), owner
            offset += len(after)

    def _split(self, offset: int) -> None:
        """Move the cursor to an offset, and begin a run there."""
        while self._at > 0 and (self._offset > offset or self._at >= len(self._lengths)):
            self._at -= 1
            self._offset -= self._lengths[self._at]
        while self._at < len(self._lengths) and self._offset + self._lengths[self._at] <= offset:
            self._offset += self._lengths[self._at]
            self._at += 1
        inside = offset - self._offset
        if inside > 0 and self._at < len(self._lengths):
            length = self._lengths[self._at]
            self._lengths[self._at : self._at + 1] = [inside, length - inside]
            self._owners.insert(self._at, self._owners[self._at])
            self._at += 1
            self._offset += inside

    def of_lines(self, lines: Sequence[bytes]) -> list[int]:
        """The owner of most of each line; of equal shares, the later one."""
        found: list[int] = []
        run = run_start = start = 0
        for line in lines:
            stop = start + max(len(line.rstrip(b"\r\n")), 1)
            while run < len(self._lengths) and run_start + self._lengths[run] <= start:
                run_start += self._lengths[run]
                run += 1
            shares: dict[int, int] = {}
            position, at = run_start, run
            while at < len(self._lengths) and position < stop:
                length, owner = self._lengths[at], self._owners[at]
                shares[owner] = shares.get(owner, 0) + min(position + length, stop) - max(position, start)
                position += length
                at += 1
            found.append(max(shares, key=lambda owner: (shares[owner], owner)) if shares else BY_HAND)
            start += len(line)
        return found


def _carried_over(old: bytes | None, runs: _Runs, new: bytes, *, fresh: int) -> _Runs:
    """The owners in a version that truekeep did not write: unchanged lines keep their owner, others are `fresh`."""
    after = _Runs()
    if old is None:
        after.add(len(new), fresh)
        return after
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    owners = runs.of_lines(old_lines)
    at = 0
    for start, new_start, length in kept_lines(old_lines, new_lines):
        for line in new_lines[at:new_start]:
            after.add(len(line), fresh)
        at = new_start + length
        for line, owner in zip(new_lines[new_start:at], owners[start : start + length], strict=True):
            after.add(len(line), owner)
    for line in new_lines[at:]:
        after.add(len(line), fresh)
    return after
