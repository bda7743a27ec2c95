"""Repairs memory by current code: the new place of what moved is written into the span that names it, and nowhere else.

Nothing that is gone is dropped unasked: a draft proposes the card without it. Each file is one ledger entry, with
the days that the card had before and after.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.errors import EditedSince
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, REVIEW
from truekeep.handoffs.draft import Draft, card_mark, draft_id, parse_draft, render_draft
from truekeep.handoffs.format import compose_handoff
from truekeep.memory.card import OWNED_KEYS, parse_card, subject_of, with_subject
from truekeep.memory.frontmatter import Field, Frontmatter
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.verify.cache import retry_if_damaged
from truekeep.verify.results import LineOrigin, end_of_day
from truekeep.verify.text_edits import (
    TextEdit,
    apply_repairs,
    beside_edits,
    changed_words,
    edited_spans,
    plan_repairs,
    says_nothing,
    shift_spans,
    shown_edits,
    without_gone,
)
from truekeep.verify.verdict import GONE, Verdict
from truekeep.verify.verifier import carry_fingerprints

if TYPE_CHECKING:
    from truekeep.memory.ledger import Ledger
    from truekeep.memory.staging import MemoryFiles
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.verify.cache import FactsCache
    from truekeep.verify.line_origins import HistorySource
    from truekeep.verify.memory_reader import MemoryReader
    from truekeep.verify.results import CheckedMemory, MemoryText
    from truekeep.verify.verifier import Verifier


class Repair(NamedTuple):
    """The edits and the draft for one memory file."""

    memory: MemoryText
    old: bytes
    new: bytes  # the same as old: nothing can be repaired without asking
    edits: tuple[TextEdit, ...]
    draft: Draft | None  # what is proposed for removal
    left: tuple[str, ...]  # only a person can correct these
    waiting: Draft | None = None  # an earlier proposal for the same card; without a new one, it stands
    kept: str = ""  # why what is gone stays: somebody turned the proposal down

    @property
    def path(self) -> str:
        return self.memory.path

    @property
    def draft_id(self) -> str:
        return self.draft.id if self.draft else ""

    @property
    def waiting_id(self) -> str:
        """The draft that was made before and still waits."""
        return self.waiting.id if self.waiting and not self.draft else ""


class MemoryRepairs:
    """Repairs the memories of one workspace."""

    def __init__(self, reader: MemoryReader, store: FactsCache, verifier: Verifier, *, now: datetime) -> None:
        self._reader, self._store, self._verifier, self._now = reader, store, verifier, now

    def plan(
        self,
        memory: MemoryText,
        checked: CheckedMemory,
        data: bytes,
        *,
        waiting: Draft | None = None,
        repaired_before: Sequence[tuple[int, int]] = (),
        rejected: Callable[[Draft], str] = lambda _: "",
    ) -> Repair:
        """Plan the edits that can be written at once, and a draft for the rest.

        `waiting`: the undecided draft of this card. `repaired_before`: spans that an earlier repair wrote; a repaired
        sentence is never dropped, and a person decides on the rest of it. `rejected`: the day on which a person
        rejected a draft; then only the rest is repaired.
        """
        planned = self._plan(memory, checked, data, waiting, repaired_before)
        day = rejected(planned.draft) if planned.draft is not None else ""
        if planned.draft is None or not day:
            return planned
        there = checked._replace(verdicts=tuple(item for item in checked.verdicts if item.verdict != GONE))
        return self._plan(memory, there, data, waiting, repaired_before)._replace(
            left=planned.left,
            kept=f"{memory.path}: {_what(planned.draft)} was turned down on {day}, so it is not proposed again",
        )

    def _plan(
        self,
        memory: MemoryText,
        checked: CheckedMemory,
        data: bytes,
        waiting: Draft | None,
        repaired_before: Sequence[tuple[int, int]],
    ) -> Repair:
        edits = [edit for edit in plan_repairs(memory.text, checked.verdicts) if withhold(edit.new) == edit.new]
        repaired = apply_repairs(memory.text, edits)
        new = spelled_like(data, bumped(memory.path, repaired, self._now.date())) if edits else data
        gone = _shifted([item for item in checked.verdicts if item.verdict == GONE], edits)
        spans = [*edited_spans(edits), *shift_spans(repaired_before, edits)]
        still = beside_edits(repaired, gone, spans)
        gone = [item for item in gone if item not in still]
        if still and edits:
            still = beside_edits(repaired, self._gone_after(memory, repaired, edits, checked), spans)
        if not memory.path.startswith(CARDS + "/") or checked.missing:
            more = f"; a {checked.missing} clone is no reason to drop it" if checked.missing else ""
            left = [_sentence(memory, item) + more for item in (*gone, *still)]
            return Repair(memory, data, new, tuple(edits), None, tuple(left))
        left = [f"{_sentence(memory, item)}; the rest of that sentence was repaired" for item in still]
        if not gone:
            return Repair(memory, data, new, tuple(edits), None, tuple(left))
        draft = self._removal(memory, repaired, new, checked, gone)
        if waiting is not None and (waiting.id == draft.id or waiting.is_edited):
            return Repair(memory, data, new, tuple(edits), None, tuple(left), waiting)
        return Repair(memory, data, new, tuple(edits), draft, tuple(left), waiting)

    def _gone_after(
        self, memory: MemoryText, repaired: str, edits: Sequence[TextEdit], checked: CheckedMemory
    ) -> list[Verdict]:
        """The claims of a memory that are gone after its repair."""
        today = LineOrigin(memory.origin.repository, end_of_day(self._now.date()))
        lines = [memory.origin_of(number) for number in range(1, repaired.count("\n") + 2)]
        for edit in edits:
            lines[edit.verdict.claim.line - 1] = today
        root = checked.roots[0] if len(checked.roots) == 1 else ""
        (after,) = self._verifier.check([memory._replace(text=repaired, lines=tuple(lines))], root=root, keep=False)
        return [item for item in after.verdicts if item.verdict == GONE]

    def _removal(
        self, memory: MemoryText, repaired: str, repaired_bytes: bytes, checked: CheckedMemory, gone: Sequence[Verdict]
    ) -> Draft:
        """A draft that proposes the card without what is gone, or to remove the card if nothing else is in it."""
        card = parse_card(memory.path.rpartition("/")[2], without_gone(repaired, gone))
        body = card.body.strip("\n")
        own = tuple(field for field in card.front.fields if field.key.casefold() not in OWNED_KEYS)
        facts = [f"`{item.claim.shown}` (line {item.claim.line}): {item.why}" for item in gone[:20]]
        facts += [f"… and {len(gone) - 20} more"] if len(gone) > 20 else []
        replaced = [
            f"`{item.claim.shown}` may now be {', '.join(item.candidates)}" for item in gone[:20] if item.candidates
        ]
        is_empty = says_nothing(body)
        text = (
            _removal_text(memory.path, facts)
            if is_empty
            else compose_handoff(
                title=f"{subject_of(card)}: what code refutes",
                kind="project-context",
                summary="Proposes this card without what is gone; edit the draft to say what holds instead.",
                facts=[printable(fact) for fact in (*facts, *replaced)],  # whoever names a file writes no card
                evidence=[f"truekeep verify, at {checked.head[:10] or 'no commit'}"],
                card=card.name,
                update=True,
                content=with_subject(Frontmatter(own), card).render() + f"\n{body}\n",
            )
        )
        reasons = [("refuted", printable(f"{item.claim.shown}: {item.why}")[:300]) for item in gone[:10]]
        more = [("refuted", f"… and {len(gone) - 10} more")] if len(gone) > 10 else []
        raw = text.encode()
        digest = hashlib.sha256(raw).digest()
        name = f"{self._now:%Y-%m-%d-%H%M}-verify-{card.name.removesuffix('.md')}.md"
        stable = hashlib.sha256(f"{memory.path}\0{'' if is_empty else body}".encode()).digest()
        return Draft(
            id=draft_id(name, stable),
            received_at=as_stamp(self._now),
            name=name,
            writer=card.writer or "verify",
            machine="",
            repository=memory.origin.repository,
            original=card_mark(memory.path, repaired_bytes),
            digest=digest.hex(),
            kept="whole",
            reasons=(*reasons, *more),
            target="" if is_empty else memory.path,
            body=raw,
            drops=(card_mark(memory.path, repaired_bytes),) if is_empty else (),
        )

    def waiting(self, vault: MemoryFiles) -> dict[str, Draft]:
        """The undecided drafts of earlier verifications, by card."""
        found = {}
        for item in vault.names(REVIEW):
            try:
                stored = vault.read(f"{REVIEW}/{item.name}")
            except (UnsafePath, ChangedSince, OSError):
                continue
            draft = parse_draft(item.name, stored.data) if stored is not None else None
            if draft is not None and draft.is_proposal:
                found[draft.card] = draft
        return found

    def apply(self, repairs: Sequence[Repair], transaction: MemoryTransaction, *, actor: str) -> list[str]:
        """Write repairs and drafts, one ledger entry for each file. Gives a line of text for each."""
        told = []
        for repair in repairs:
            if repair.new != repair.old:
                staging = Staging(transaction.vault)
                try:
                    found = staging.read(repair.path)
                except (UnsafePath, ChangedSince, OSError) as error:
                    told.append(f"{repair.path}: not repaired ({error})")
                    continue
                if found != repair.old:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
                try:
                    told.append(f"{repair.path}: {self._write(repair, staging, transaction, actor)}")
                except EditedSince:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
            if repair.draft is not None:
                told += self._propose(repair, repair.draft, transaction, actor)
        return told

    def _write(self, repair: Repair, staging: Staging, transaction: MemoryTransaction, actor: str) -> str:
        staging.put(repair.path, repair.new, 0)
        what = shown_edits(repair.edits)
        old = repair.memory.origin.written_at
        since = datetime.fromtimestamp(old, UTC).astimezone().date().isoformat() if old is not None else "no day"
        dated = f" (of {since}, brought up to {self._now.date()})" if repair.path.startswith(CARDS + "/") else ""
        transaction.act(staging, LedgerEntry(at=as_stamp(self._now), verb="repaired", actor=actor, note=what + dated))
        new = self._reader.read(os.path.join(self._reader.root, repair.path), repair.path)
        if new is not None:
            retry_if_damaged(lambda: carry_fingerprints(self._store, repair.memory, new))
        return what

    def _propose(self, repair: Repair, draft: Draft, transaction: MemoryTransaction, actor: str) -> Iterator[str]:
        staging = Staging(transaction.vault)
        if staging.read(draft.path) is not None:
            return
        if repair.waiting is not None:
            staging.put(repair.waiting.path, None, 0)
        staging.put(draft.path, render_draft(draft), 0)
        transaction.act(staging, LedgerEntry(at=as_stamp(self._now), verb="proposed", actor=actor, note=draft.id))
        instead = f", in place of {repair.waiting.id}" if repair.waiting is not None else ""
        yield f"{repair.path}: {_what(draft)} is proposed as draft {draft.id}{instead}"


def repaired_spans(source: HistorySource, memory: MemoryText) -> list[tuple[int, int]]:
    """The spans of a card that an earlier repair wrote, in lines that did not change since."""
    if not memory.path.startswith(f"{CARDS}/") or not source.ledger.last_repairs([memory.path]):
        return []
    starts = [0, *accumulate(len(line) + 1 for line in memory.text.split("\n"))]
    spans: list[tuple[int, int]] = []
    before: dict[int, dict[str, str]] = {}  # by repair: each line after it, and before it
    for line in source.history.lines(memory.path):
        if line.entry is None or line.entry.verb != "repaired" or line.number >= len(starts):
            continue
        if line.entry.id not in before:
            around = source.ledger.around(line.entry.id, memory.path) or (None, None)
            old, new = ((decode_text(data or b"") or "").split("\n") for data in around)
            # Paired from the end, because the repair may have added a date at the top.
            before[line.entry.id] = dict(zip(reversed(new), reversed(old), strict=False))
        if (old_text := before[line.entry.id].get(line.text)) is not None:
            first = starts[line.number - 1]
            spans += [(first + start, first + end) for start, end in changed_words(old_text, line.text)]
    return spans


def rejected_on(draft: Draft, ledger: Ledger) -> str:
    """The day on which a person rejected exactly this draft; empty if none did."""
    last = next(ledger.entries(path=draft.path, limit=1), None)
    return last.at[:10] if last is not None and last.verb == "rejected" else ""


def bumped(path: str, text: str, today: date) -> str:
    """A card's text with today in `updated`; any other file as it is."""
    if not path.startswith(CARDS + "/"):
        return text
    card = parse_card(path.rpartition("/")[2], text)
    if card.problem or not card.front.fields:
        return text
    day = today.isoformat()
    line = Field("updated", day, f"updated: {day}\n")
    # What somebody confirmed was the text before.
    fields = [line if field.key == "updated" else field for field in card.front.fields if field.key != "confirmed"]
    fields += [] if line in fields else [line]
    return Frontmatter(tuple(fields)).render() + card.body


def spelled_like(data: bytes, text: str) -> bytes:
    """A text as bytes with the mark and the line ends of the old ones; mixed ones stay as each line had them."""
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    if b"\r\n" not in data:
        return mark + text.encode()
    if data.count(b"\n") == data.count(b"\r\n"):
        return mark + text.replace("\n", "\r\n").encode()
    old = data.removeprefix(mark).decode("utf-8", "replace").split("\n")
    ends = {line.rstrip("\r"): line.endswith("\r") for line in old}
    lines = text.split("\n")
    return mark + "\n".join(line + ("\r" if ends.get(line, False) else "") for line in lines).encode()


def _what(draft: Draft) -> str:
    """The subject of a sentence about a draft."""
    return "to remove the card, of which nothing holds any more," if draft.is_removal else "to drop what is gone"


def _sentence(memory: MemoryText, item: Verdict) -> str:
    return f"{memory.path}:{item.claim.line} names {item.claim.shown}: {item.why}"


def _removal_text(path: str, facts: Sequence[str]) -> str:
    """The text of a draft that removes a card: why, and what to do if the card should stay."""
    said = [
        f"Removes {path} and its line in MEMORY.md: nothing that the card says holds any more.",
        "",
        *(f"- {printable(fact)}" for fact in facts),
        "",
        "To keep the card, reject this draft and edit the card.",
    ]
    return "\n".join(said) + "\n"


def _shifted(gone: Sequence[Verdict], edits: Sequence[TextEdit]) -> list[Verdict]:
    """Verdicts with their claims' places as they are after the edits (and a longer or shorter frontmatter aside)."""
    moved = []
    for verdict in gone:
        claim = verdict.claim
        shift = sum(len(edit.new) - (edit.end - edit.start) for edit in edits if edit.end <= claim.start)
        moved.append(verdict._replace(claim=claim._replace(start=claim.start + shift, end=claim.end + shift)))
    return moved
