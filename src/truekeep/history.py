"""History: which act wrote a file or a line, and putting the earlier bytes back.

Everything comes from the ledger. A file's lines are traced by replaying its splices; where a person edited in
between, the two versions are compared line by line and what is new is theirs. Undo is an act like any other and can
itself be undone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from truekeep.books import Books
from truekeep.difference import difference
from truekeep.errors import BadInput, EditedSince, NotFound
from truekeep.ledger import Entry, Record, Version, after_splices
from truekeep.model import INDEX, Splice
from truekeep.vault import Staging

BY_HAND = 0  # stands where an entry's number would: a person, or a program that is not truekeep
BEFORE = -1  # was there before truekeep first wrote the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a file and the act that wrote it."""

    number: int
    text: str
    entry: Entry | None  # None: by hand, or there before
    is_older: bool = False  # there before truekeep first wrote the file
    record: Record | None = None


class History:
    """The history of one workspace."""

    def __init__(self, books: Books, *, actor: str, now: datetime) -> None:
        self.books, self.actor = books, actor
        self._at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def lines(self, path: str) -> list[Line]:
        """Every line of a file as it is now, with the act that wrote it."""
        stored = self.books.vault.read(path)
        if stored is None:
            raise NotFound(f"there is no {path} in this workspace", hint="`truekeep history` lists what was written")
        text, owners = self._trace(path)
        if text != stored.data:
            owners = _carry_over(text, owners, stored.data, fresh=BY_HAND if text is not None else BEFORE)
        entries: dict[int, Entry | None] = {}
        lines = []
        raw_lines = stored.data.splitlines(keepends=True)
        for number, (raw, owner) in enumerate(zip(raw_lines, _line_owners(owners, raw_lines), strict=True), start=1):
            if owner > 0 and owner not in entries:
                entries[owner] = self.books.ledger.get_entry(owner)
            entry = entries.get(owner)
            lines.append(
                Line(
                    number=number,
                    text=raw.decode("utf-8", "replace").rstrip("\r\n"),
                    entry=entry,
                    is_older=owner == BEFORE,
                    record=self.books.ledger.handoff_of(entry) if entry else None,
                )
            )
        return lines

    def _trace(self, path: str) -> tuple[bytes | None, list[tuple[int, int]]]:
        """Replay a file's splices: its bytes as last written, and who wrote which run of them."""
        data: bytes | None = None
        owners: list[tuple[int, int]] = []  # (length, entry)
        for version in self.books.ledger.versions(path):
            if version.found is not None:
                fresh = BEFORE if data is None and not owners else BY_HAND
                owners = _carry_over(data, owners, version.found, fresh=fresh)
                data = version.found
            for entry, splice in version.splices:
                owners = _spliced(owners, splice, entry)
            data = after_splices(version, data)
            if data is None:
                owners = []
        return data, owners

    def undo(self, number: int) -> tuple[Entry, list[str]]:
        """Put back what an entry changed, in every file it touched, or in none. Gives the new entry and any notes."""
        ledger = self.books.ledger
        entry = ledger.get_entry(number)
        if entry is None:
            raise NotFound(f"there is no entry {number}", hint="`truekeep history` lists the entries")
        if entry.undone_by is not None:
            last = self._last_word(entry)
            raise BadInput(
                f"entry {number} was undone by entry {entry.undone_by}", hint=f"`truekeep undo {last}` reverses it"
            )
        if not entry.paths:
            raise BadInput(f"entry {number} changed no file", hint="there is nothing to put back")
        staging = Staging(self.books.vault)
        notes: list[str] = []
        for path in entry.paths:
            self._put_back(entry, path, staging, notes)
        undoing = Entry(
            at=self._at,
            verb="undone",
            actor=self.actor,
            handoff=entry.handoff,
            note=f"entry {number}: {entry.note}",
            undoes=number,
        )
        outcomes: list[tuple[bytes, str, str | None]] = []
        if entry.handoff is not None:
            undone = ledger.get_entry(entry.undoes) if entry.undoes else None
            outcomes.append((entry.handoff, undone.verb if undone else "undone", None))
        self.books.act(staging, undoing, outcomes)
        made = next(iter(ledger.entries(limit=1)))
        return made, notes

    def _last_word(self, entry: Entry) -> int:
        """The newest in a chain of undoing and redoing."""
        while entry.undone_by is not None and (later := self.books.ledger.get_entry(entry.undone_by)) is not None:
            entry = later
        return entry.id

    def _put_back(self, entry: Entry, path: str, staging: Staging, notes: list[str]) -> None:
        versions = list(self.books.ledger.versions(path))
        stored = self.books.vault.read(path)
        current = stored.data if stored else None
        written: bytes | None = None
        for version in versions:
            written = after_splices(version, written)
        if current != written:
            if path == INDEX and self._unpoint(entry, versions, current, staging, notes):
                return
            raise EditedSince(
                f"{path} was edited since entry {entry.id}; nothing was touched",
                hint="take over what you need by hand; the difference is shown above",
                difference=list(difference(written, current, path)),
            )
        if (exact := _content_before(entry.id, versions, written)) is not None:
            staging.put(path, exact, 0)
            if any(version.before is None and version.splices[0][0] == entry.id for version in versions):
                staging.remove_if_empty(path)
            return
        for splice in reversed(self._shifted(entry, path, versions)):
            staging.splice(Splice(path=path, offset=splice.offset, removed=splice.inserted, inserted=splice.removed), 0)
        if any(version.before is None and any(by == entry.id for by, _ in version.splices) for version in versions):
            staging.remove_if_empty(path)

    def _shifted(self, entry: Entry, path: str, versions: Sequence[Version]) -> list[Splice]:
        """An entry's splices of a file, moved to where later entries pushed them."""
        mine: list[Splice] = []
        for version in versions:
            if version.found is not None and mine:
                raise EditedSince(
                    f"{path} was edited between entry {entry.id} and a later one; nothing was touched",
                    hint=f"`truekeep why {path}` shows who wrote which line",
                )
            for by, splice in version.splices:
                if by == entry.id:
                    mine.append(splice)
                    continue
                mine = [_moved(own, splice, entry.id, by, path) for own in mine]
        return mine

    def _unpoint(
        self, entry: Entry, versions: Sequence[Version], current: bytes | None, staging: Staging, notes: list[str]
    ) -> bool:
        """In a hand-edited index, take back only our own line, and only if it is still as we wrote it."""
        splices = [splice for version in versions for by, splice in version.splices if by == entry.id]
        if any(splice.removed for splice in splices):
            return False
        data = current or b""
        for splice in splices:
            line = splice.inserted.strip(b"\r\n").rpartition(b"\n")[2].strip(b"\r") + b"\n"
            position = data.find(line)
            if position < 0 or (position > 0 and data[position - 1 : position] != b"\n"):
                notes.append(f"{INDEX}: the line was changed by hand and stays; remove it if it points nowhere")
                continue
            staging.splice(Splice(path=INDEX, offset=position, removed=line, inserted=b""), 0)
        return True


def _content_before(entry: int, versions: Sequence[Version], current: bytes | None) -> bytes | None:
    """The bytes before an entry, if the file is now exactly as that entry left it."""
    data: bytes | None = None
    before: bytes | None = None
    after: bytes | None = None
    for version in versions:
        text = version.found if version.found is not None else data or b""
        for by, splice in version.splices:
            end = splice.offset + len(splice.removed)
            spliced = b"".join((text[: splice.offset], splice.inserted, text[end:]))
            if by == entry:
                if before is not None and after != text:
                    return None
                before = text if before is None else before
                after = spliced
            text = spliced
        data = text if version.after is not None else None
    return before if before is not None and after == (current or b"") else None


def _moved(own: Splice, later: Splice, mine: int, by: int, path: str) -> Splice:
    end = own.offset + len(own.inserted)
    later_end = later.offset + len(later.removed)
    if later.offset >= end and not (later.offset == end and not own.inserted):
        return own
    if later_end <= own.offset:
        return Splice(
            path=path,
            offset=own.offset + len(later.inserted) - len(later.removed),
            removed=own.removed,
            inserted=own.inserted,
        )
    raise BadInput(f"entry {by} changed the same part of {path} after entry {mine}", hint=f"undo {by} first")


def _spliced(owners: list[tuple[int, int]], splice: Splice, entry: int) -> list[tuple[int, int]]:
    """Ownership after a splice: what it removed goes, what it inserted is the entry's."""
    total = sum(length for length, _ in owners)
    if splice.offset == total:
        owners.append((len(splice.inserted), entry))
        return owners
    end = splice.offset + len(splice.removed)
    return [*_cut(owners, 0, splice.offset), (len(splice.inserted), entry), *_cut(owners, end, total)]


def _cut(owners: Sequence[tuple[int, int]], start: int, stop: int) -> Iterator[tuple[int, int]]:
    position = 0
    for length, owner in owners:
        size = min(position + length, stop) - max(position, start)
        if size > 0:
            yield size, owner
        position += length


def _carry_over(old: bytes | None, owners: list[tuple[int, int]], new: bytes, *, fresh: int) -> list[tuple[int, int]]:
    """Ownership of a version that somebody else made: lines that stayed keep their owner, the others are `fresh`."""
    if old is None:
        return [(len(new), fresh)]
    old_lines, new_lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    old_owners = _line_owners(owners, old_lines)
    out: list[tuple[int, int]] = []
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, first, _, new_first, new_last in matcher.get_opcodes():
        for step, line in enumerate(new_lines[new_first:new_last]):
            out.append((len(line), old_owners[first + step] if tag == "equal" else fresh))
    return out


def _line_owners(owners: Sequence[tuple[int, int]], lines: Sequence[bytes]) -> list[int]:
    """Who wrote most of each line; the later one, when it is even. One pass over both."""
    found: list[int] = []
    run = 0
    run_start = 0
    start = 0
    for line in lines:
        stop = start + max(len(line.rstrip(b"\r\n")), 1)
        shares: dict[int, int] = {}
        while run < len(owners) and run_start + owners[run][0] <= start:
            run_start += owners[run][0]
            run += 1
        position, at = run_start, run
        while at < len(owners) and position < stop:
            length, owner = owners[at]
            shares[owner] = shares.get(owner, 0) + min(position + length, stop) - max(position, start)
            position += length
            at += 1
        found.append(max(shares, key=lambda owner: (shares[owner], owner)) if shares else BY_HAND)
        start += len(line)
    return found
