"""History: which entry wrote a file or a line, and how to undo it.

Everything comes from the ledger. A file's lines are traced by replaying its splices; where a person edited in
between, the two versions are compared line by line and new lines are theirs. An undo is an entry like any other and can
itself be undone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.errors import BadInput, EditedSince, NotFound, as_argument
from truekeep.core.model import INDEX, REVIEW, Splice
from truekeep.core.state_dir import FIRST_INDEX
from truekeep.memory.blame import BEFORE, line_owners
from truekeep.memory.card import is_journal_path
from truekeep.memory.import_files import FileImport, find_import
from truekeep.memory.ledger import HandoffRow, LedgerEntry, Version, base_of, spliced
from truekeep.memory.lessons import KINDS
from truekeep.memory.memory_index import find_whole_line, line_put_back, linked_cards
from truekeep.memory.staging import Change, Staging
from truekeep.memory.transaction import MemoryTransaction
from truekeep.text.unified_diff import difference

_TITLE = re.compile(rb"(# [^\r\n]*\r?\n)(?:\r?\n)*")
_TABLES = tuple(kind.path for kind in KINDS)
_HEADER = rb"(?m:^)\|[^\r\n]*\|\r?\n\|(?:---\|)+\r?\n"  # as we write it
_NO_ROWS = re.compile(_TITLE.pattern + _HEADER)


class HistoryEntry(NamedTuple):
    """A ledger entry, with the handoff that it came from."""

    entry: LedgerEntry
    handoff: HandoffRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamedLine:
    """One line of a file and the entry that wrote it."""

    number: int
    text: str
    entry: LedgerEntry | None  # None: by hand, or there before
    is_older: bool = False  # there before truekeep first changed the file: by hand, unless it is known better:
    is_first: bool = False  # as init made the file
    arrival: FileImport | None = None  # the import that it came with
    record: HandoffRow | None = None
    source: HandoffRow | None = None  # the handoff that a repaired line goes back to; else the record

    @property
    def by(self) -> str:
        """Who wrote it, in words that stay the same."""
        if self.is_first:
            return "truekeep init"
        if self.arrival:
            return "an archive"
        return "truekeep" if self.entry else "there before truekeep" if self.is_older else "by hand"

    @property
    def written(self) -> HistoryEntry | None:
        return HistoryEntry(self.entry, self.record) if self.entry else None

    @property
    def origin(self) -> tuple[object, ...]:
        """Equal for lines of one origin."""
        return (self.entry.id if self.entry else 0, self.is_older, self.is_first, self.arrival)


class Undoing(NamedTuple):
    """The changes that undo an entry."""

    entry: LedgerEntry
    staging: Staging
    notes: tuple[str, ...]

    @property
    def changes(self) -> list[Change]:
        return self.staging.changes()

    @property
    def digest(self) -> str:
        """A digest of every file before and after."""
        known = repr([(change.path, change.before_digest, change.after_digest) for change in self.changes])
        return sha256(f"{self.entry.id} {known} {self.notes}".encode()).hexdigest()


class History:
    """The history of one workspace."""

    def __init__(self, books: MemoryTransaction, *, actor: str, now: datetime) -> None:
        self.books, self.actor = books, actor
        self._at = as_stamp(now)

    def lines(self, path: str) -> list[BlamedLine]:
        """Every line of a file as it is now, with the entry that wrote it."""
        stored = self.books.vault.read(path)
        if stored is None:
            raise NotFound(f"there is no {path} in this workspace", hint="`truekeep history` lists what was written")
        entries: dict[int, LedgerEntry | None] = {}
        lines = []
        raw_lines = stored.data.splitlines(keepends=True)
        ledger = self.books.ledger
        repairs = {entry.id for entry in ledger.entries(path=path) if entry.verb in ("repaired", "undone")}
        owners = line_owners(ledger, path, stored.data)
        sources = line_owners(ledger, path, stored.data, but=repairs) if repairs else owners
        first_bytes = self._first_bytes(path, stored.data) if BEFORE in owners else b""
        is_first = path == INDEX and first_bytes == FIRST_INDEX.encode()
        arrival = None
        if BEFORE in owners and not is_first:
            arrival = find_import(Path(self.books.vault.root), path, sha256(first_bytes).hexdigest())
        for number, (raw, owner, first) in enumerate(zip(raw_lines, owners, sources, strict=True), start=1):
            for one in (owner, first):
                if one > 0 and one not in entries:
                    entries[one] = ledger.get_entry(one)
            entry, source = entries.get(owner), entries.get(first)
            lines.append(
                BlamedLine(
                    number=number,
                    text=raw.decode("utf-8", "replace").rstrip("\r\n"),
                    entry=entry,
                    is_older=owner == BEFORE,
                    is_first=owner == BEFORE and is_first,
                    arrival=arrival if owner == BEFORE else None,
                    record=ledger.handoff_of(entry) if entry else None,
                    source=ledger.handoff_of(source) if source else None,
                )
            )
        return lines

    def _first_bytes(self, path: str, data: bytes) -> bytes:
        """A file as it was before truekeep first changed it; as it is now if it never did."""
        first = next(iter(self.books.ledger.versions(path)), None)
        return data if first is None else first.found or b""

    def differences(self, path: str, entries: Collection[int]) -> dict[int, tuple[str, ...]]:
        """The lines that these entries changed in a file."""
        spans: dict[int, tuple[bytes | None, bytes | None]] = {}
        known: bytes | None = None
        for version in self.books.ledger.versions(path):
            text, is_there = base_of(version, known), version.before is not None
            for by, splice in version.splices:
                before = spans[by][0] if by in spans else text if is_there else None
                text, is_there = spliced(text, splice), True
                if by in entries:
                    spans[by] = (before, text)
            known = text if version.after is not None else None
            if version.after is None and version.splices and (by := version.splices[-1][0]) in spans:
                spans[by] = (spans[by][0], None)
        return {by: difference(before, after, path) for by, (before, after) in spans.items()}

    def undo(self, number: int, *, seen: str = "") -> tuple[LedgerEntry, list[str]]:
        """Undo an entry in every file that it changed, or in none. Returns the new entry and any notes.

        `seen` is the digest of the plan that a person saw: if the plan has changed, nothing is written.
        """
        planned = self.plan_undo(number)
        if seen and planned.digest != seen:
            raise EditedSince(
                f"what undoing entry {number} would write has changed meanwhile; nothing was touched",
                hint="look at it again, then decide",
            )
        entry = planned.entry
        undoing = LedgerEntry(
            at=self._at,
            verb="undone",
            actor=self.actor,
            handoff=entry.handoff,
            note=f"entry {number}: {entry.note}",
            undoes=number,
        )
        self.books.act(planned.staging, undoing, self._outcome_after(entry))
        made = next(iter(self.books.ledger.entries(limit=1)))
        return made, list(planned.notes)

    def plan_undo(self, number: int) -> Undoing:
        """Plan to undo an entry. Writes nothing; raises an error that says why if it cannot be undone."""
        ledger = self.books.ledger
        entry = ledger.get_entry(number)
        if entry is None:
            raise NotFound(f"there is no entry {number}", hint="`truekeep history` lists the entries")
        if entry.undone_by is not None:
            raise BadInput(
                f"entry {number} was undone by entry {entry.undone_by}",
                hint=f"`truekeep undo {entry.undone_by}` brings it back",
            )
        if not entry.paths and entry.verb == "imported":
            raise BadInput(
                f"entry {number} changed no file: it brought new ones ({entry.note})",
                hint="they are in the archive; remove what you do not want by hand",
            )
        if not entry.paths:
            raise BadInput(f"entry {number} changed no file", hint="there is nothing to put back")
        staging = Staging(self.books.vault)
        notes: list[str] = []
        for path in entry.paths:
            self._put_back(entry, path, staging, notes)
        return Undoing(entry, staging, tuple(notes))

    def _outcome_after(self, entry: LedgerEntry) -> list[tuple[bytes, str, str | None]]:
        """The outcome of the handoff after an entry is undone: undoing a decision leaves the draft waiting."""
        if entry.handoff is None or entry.verb == "edited":
            return []
        draft = next((path for path in entry.paths if path.startswith(f"{REVIEW}/")), None)
        if entry.undoes is not None:
            again = self.books.ledger.get_entry(entry.undoes)
            target = next((path for path in entry.paths if path not in (draft, INDEX)), draft)
            return [(entry.handoff, again.verb if again else "undone", target)]
        if entry.verb in ("approved", "retried", "rejected", "expired"):
            return [(entry.handoff, "review", draft)]
        return [(entry.handoff, "undone", None)]

    def _put_back(self, entry: LedgerEntry, path: str, staging: Staging, notes: list[str]) -> None:
        versions = list(self.books.ledger.versions(path))
        stored = self.books.vault.read(path)
        current = stored.data if stored else None
        found = sha256(current).digest() if current is not None else None
        try:
            if found != self.books.ledger.last_digest(path):
                written = self.books.ledger.content(path)
                raise EditedSince(
                    f"{path} was edited since entry {entry.id}; nothing was touched",
                    hint="take over what you need by hand; the difference is shown above",
                    difference=list(difference(written, current, path)),
                )
            exact = self._content_before(entry.id, path, versions)
            if exact is not None:
                staging.put(path, exact, 0)
            else:
                for splice in reversed(self._shifted(entry, path, versions)):
                    back = Splice(path=path, offset=splice.offset, removed=splice.inserted, inserted=splice.removed)
                    if _made(versions) == entry.id and is_journal_path(path) and not splice.offset:
                        back = _below_title(back, staging.read(path) or b"")
                    elif path in _TABLES:
                        back = _below_header(back, staging.read(path) or b"")
                    staging.splice(back, 0)
        except (EditedSince, BadInput):
            # The index belongs to people too: there, our own line can be told from theirs and taken back alone.
            if path != INDEX or not self._unpoint(entry, versions, current, staging, notes):
                raise
        if any(version.before is None and any(by == entry.id for by, _ in version.splices) for version in versions):
            staging.remove_if_empty(path)
        if _made(versions) and is_journal_path(path) and _TITLE.fullmatch(staging.read(path) or b""):
            staging.put(path, None, 0)  # nothing was ever said in it but what is undone
        elif _made(versions) and path in _TABLES and _NO_ROWS.fullmatch(staging.read(path) or b""):
            staging.put(path, None, 0)

    def _content_before(self, entry: int, path: str, versions: Sequence[Version]) -> bytes | None:
        """The bytes before an entry, if all later entries of this file have been undone."""
        is_seen = False
        later: list[int] = []
        for version in versions:
            if version.found is not None and is_seen:
                return None
            for by, _ in version.splices:
                if by != entry:
                    later.append(by)
                elif not is_seen:
                    is_seen, later = True, []
                elif later:
                    return None
        if not is_seen or any(self._is_in_force(by, later) for by in later):
            return None
        around = self.books.ledger.around(entry, path)
        return around[0] or b"" if around is not None else None

    def _is_in_force(self, number: int, among: Sequence[int]) -> bool:
        """Whether an entry still has an effect, if those `others` are undone with it."""
        entry = self.books.ledger.get_entry(number)
        if entry is None:
            return True
        if entry.undone_by is not None:
            return entry.undone_by not in among
        return entry.undoes is None or entry.undoes not in among

    def _shifted(self, entry: LedgerEntry, path: str, versions: Sequence[Version]) -> list[Splice]:
        """An entry's splices of a file, at the offsets where later entries moved them."""
        mine: list[Splice] = []
        for version in versions:
            if version.before is None and mine:
                by = version.splices[0][0] if version.splices else 0
                raise BadInput(
                    f"{path} was deleted and created again after entry {entry.id}",
                    hint=f"undo {by} first"
                    if by
                    else f"`truekeep blame {as_argument(path)}` shows who wrote which line",
                )
            if version.found is not None and mine:
                known = self.books.ledger.content(path, before=version.change)
                raise EditedSince(
                    f"{path} was edited between entry {entry.id} and a later one; nothing was touched",
                    hint=f"`truekeep blame {as_argument(path)}` shows who wrote which line",
                    difference=list(difference(known, version.found, path)),
                )
            for by, splice in version.splices:
                if by == entry.id:
                    mine.append(splice)
                    continue
                mine = [_moved(own, splice, entry.id, by, path) for own in mine]
                if mine and version.after is None:
                    raise BadInput(f"entry {by} removed {path} after entry {entry.id}", hint=f"undo {by} first")
        return mine

    def _unpoint(
        self, entry: LedgerEntry, versions: Sequence[Version], current: bytes | None, staging: Staging, notes: list[str]
    ) -> bool:
        """In an index that changed since, undo only lines that are still as truekeep wrote them."""
        later = [(by, splice) for version in versions for by, splice in version.splices]
        own = [at for at, (by, _) in enumerate(later) if by == entry.id]
        data = current or b""
        for at in own:
            splice = later[at][1]
            line = splice.inserted.strip(b"\r\n").rpartition(b"\n")[2].strip(b"\r")
            line, span = _find_respelled(data, line, [other for _, other in later[at + 1 :]])
            if line and span is None:
                if names := linked_cards(line) & linked_cards(data):
                    of = ", ".join(sorted(names))
                    notes.append(
                        f"{INDEX}: the line of {of} was changed by hand and stays; remove it if it points nowhere"
                    )
                continue
            if span is None:
                back = line_put_back(data, splice.removed)
                if back is None:
                    continue
                notes.append(f"{INDEX} was changed since; the line stands at the end of its list again")
            elif splice.removed:
                back = Splice(path=INDEX, offset=span[0], removed=line, inserted=splice.removed)
            else:
                back = Splice(path=INDEX, offset=span[0], removed=data[span[0] : span[1]], inserted=b"")
            staging.splice(back, 0)
            data = staging.read(INDEX) or b""
        return True


def _find_respelled(data: bytes, line: bytes, later: Sequence[Splice]) -> tuple[bytes, tuple[int, int] | None]:
    """A line of the index as an entry last wrote it, and its place."""
    spellings = [line]
    for splice in later:
        if splice.removed == spellings[-1] and splice.inserted:
            spellings.append(splice.inserted)
    for spelling in reversed(spellings) if line else ():
        if (span := find_whole_line(data, spelling)) is not None:
            return spelling, span
    return line, None


def _made(versions: Sequence[Version]) -> int:
    """The entry that created a file, if truekeep wrote every version since; else 0."""
    by = 0
    for version in versions:
        if version.before is None and version.splices:
            by = version.splices[0][0]
        elif version.found is not None:
            by = 0
    return by


def _below_title(back: Splice, now: bytes) -> Splice:
    """The part of a file's first splice that is undone while others follow: all but the title of the file."""
    match = _TITLE.match(back.removed)
    if match is None:
        return back
    rest = now[len(back.removed) :]
    kept = match[1] if rest.startswith((b"\n", b"\r")) else match[0]
    return Splice(path=back.path, offset=len(kept), removed=back.removed[len(kept) :], inserted=back.inserted)


def _below_header(back: Splice, now: bytes) -> Splice:
    """The part of a table's first row that is undone while others follow: all but the header."""
    rows = back.removed
    match = re.search(_HEADER, rows)
    if match is None or match.end() >= len(rows) or not now.startswith(b"|", back.offset + len(rows)):
        return back
    return Splice(path=back.path, offset=back.offset + match.end(), removed=rows[match.end() :], inserted=back.inserted)


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
