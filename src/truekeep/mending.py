"""Repairs memory where code says what is true now: what moved is written into the span that names it and nowhere else.

What is gone is never dropped unasked: a draft proposes the card without it. Everything goes through the books, one
ledger entry for each file, with the days that a card was of and was brought up to.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from truekeep.card import OWNED_KEYS, parse_card, parse_day, subject_of, with_subject
from truekeep.disk import ChangedSince, UnsafePath
from truekeep.draft import Draft, card_mark, draft_id, parse_draft, render_draft
from truekeep.errors import EditedSince
from truekeep.frontmatter import Field, Frontmatter
from truekeep.handoff import compose_handoff
from truekeep.hidden import printable
from truekeep.ledger import Entry
from truekeep.model import CARDS, REVIEW, as_stamp
from truekeep.secrets import withhold
from truekeep.vault import Staging
from truekeep.verify.repair import Edit, apply_repairs, plan_repairs, shown_edits, without_gone
from truekeep.verify.store import begun_anew
from truekeep.verify.verdict import GONE, Verdict

if TYPE_CHECKING:
    from truekeep.books import Books
    from truekeep.truth import Truth
    from truekeep.vault import Vault
    from truekeep.verify.kept import Checked, Memory

_REPAIRED = re.compile(r"\(of (\d{4}-\d{2}-\d{2}|no day), brought up to (\d{4}-\d{2}-\d{2})\)\Z")


class Repair(NamedTuple):
    """What is to be done to one memory file."""

    memory: Memory
    old: bytes
    new: bytes  # the same as old: nothing can be repaired without asking
    edits: tuple[Edit, ...]
    draft: Draft | None  # what is proposed for removal
    left: tuple[str, ...]  # what only a person can mend
    waiting: Draft | None = None  # an earlier proposal for the same card; without a new one, it stands

    @property
    def path(self) -> str:
        return self.memory.path


class Mending:
    """Repairs the memories of one workspace."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._now = truth.now

    def plan(self, memory: Memory, checked: Checked, data: bytes, *, waiting: Draft | None = None) -> Repair:
        """What can be written at once, and what is proposed. `waiting`: the proposal that waits for this card."""
        edits = [edit for edit in plan_repairs(memory.text, checked.verdicts) if withhold(edit.new) == edit.new]
        repaired = apply_repairs(memory.text, edits)
        new = spelled_like(data, bumped(memory.path, repaired, self._now.date())) if edits else data
        gone = [item for item in checked.verdicts if item.verdict == GONE]
        if not gone:
            return Repair(memory, data, new, tuple(edits), None, ())
        if not memory.path.startswith(CARDS + "/"):
            left = (f"{memory.path}:{item.claim.line} names {item.claim.shown}: {item.why}" for item in gone)
            return Repair(memory, data, new, tuple(edits), None, tuple(left))
        draft = self._removal(memory, repaired, new, checked, edits)
        if waiting is not None and (waiting.id == draft.id or waiting.is_edited):
            return Repair(memory, data, new, tuple(edits), None, (), waiting)
        return Repair(memory, data, new, tuple(edits), draft, (), waiting)

    def _removal(
        self, memory: Memory, repaired: str, repaired_bytes: bytes, checked: Checked, edits: Sequence[Edit]
    ) -> Draft:
        """A draft that proposes the card without what is gone."""
        gone = [item for item in checked.verdicts if item.verdict == GONE]
        shifted = _shifted(gone, edits)
        card = parse_card(memory.path.rpartition("/")[2], without_gone(repaired, shifted))
        body = card.body.strip("\n")
        own = tuple(field for field in card.front.fields if field.key.casefold() not in OWNED_KEYS)
        facts = [f"`{item.claim.shown}` (line {item.claim.line}): {item.why}" for item in gone[:20]]
        facts += [f"… and {len(gone) - 20} more"] if len(gone) > 20 else []
        replaced = [
            f"`{item.claim.shown}` may now be {', '.join(item.candidates)}" for item in gone[:20] if item.candidates
        ]
        if not body.strip():
            body = "Nothing that this card said holds any more."
        text = compose_handoff(
            title=f"{subject_of(card)}: what code refutes",
            kind="project-context",
            summary="Proposes this card without what is gone; edit the draft to say what holds instead.",
            facts=[printable(fact) for fact in (*facts, *replaced)],  # whoever names a file writes no card
            evidence=[f"truekeep verify, at {checked.head[:10] or 'no commit'}"],
            card=card.name,
            update=True,
            content=with_subject(Frontmatter(own), card).render() + f"\n{body}\n",
        )
        reasons = [("refuted", printable(f"{item.claim.shown}: {item.why}")[:300]) for item in gone[:10]]
        more = [("refuted", f"… and {len(gone) - 10} more")] if len(gone) > 10 else []
        raw = text.encode()
        digest = hashlib.sha256(raw).digest()
        name = f"{self._now:%Y-%m-%d-%H%M}-verify-{card.name.removesuffix('.md')}.md"
        stable = hashlib.sha256(f"{memory.path}\0{body}".encode()).digest()
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
            target=memory.path,
            body=raw,
        )

    def waiting(self, vault: Vault) -> dict[str, Draft]:
        """The drafts that verification made earlier and nobody has decided on, by their card."""
        found = {}
        for item in vault.names(REVIEW):
            try:
                stored = vault.read(f"{REVIEW}/{item.name}")
            except (UnsafePath, ChangedSince, OSError):
                continue
            draft = parse_draft(item.name, stored.data) if stored is not None else None
            if draft is not None and draft.is_proposal:
                found[draft.target] = draft
        return found

    def apply(self, repairs: Sequence[Repair], books: Books, *, actor: str) -> list[str]:
        """Write repairs and drafts, one ledger entry for each file. Gives what happened, for people."""
        told = []
        for repair in repairs:
            if repair.new != repair.old:
                staging = Staging(books.vault)
                try:
                    found = staging.read(repair.path)
                except (UnsafePath, ChangedSince, OSError) as error:
                    told.append(f"{repair.path}: not repaired ({error})")
                    continue
                if found != repair.old:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
                try:
                    told.append(f"{repair.path}: {self._write(repair, staging, books, actor)}")
                except EditedSince:
                    told.append(f"{repair.path}: edited meanwhile, so it was left alone; run it again")
                    continue
            if repair.draft is not None:
                told += self._propose(repair, repair.draft, books, actor)
        return told

    def _write(self, repair: Repair, staging: Staging, books: Books, actor: str) -> str:
        from truekeep.verify.check import carry_prints

        staging.put(repair.path, repair.new, 0)
        what = shown_edits(repair.edits)
        old = repair.memory.origin.written_at
        since = datetime.fromtimestamp(old, UTC).astimezone().date().isoformat() if old is not None else "no day"
        dated = f" (of {since}, brought up to {self._now.date()})" if repair.path.startswith(CARDS + "/") else ""
        books.act(staging, Entry(at=as_stamp(self._now), verb="repaired", actor=actor, note=what + dated))
        new = self._truth.read(os.path.join(self._truth.root, repair.path), repair.path)
        if new is not None:
            begun_anew(lambda: carry_prints(self._truth.store, repair.memory, new))
        return what

    def _propose(self, repair: Repair, draft: Draft, books: Books, actor: str) -> Iterator[str]:
        staging = Staging(books.vault)
        if staging.read(draft.path) is not None:
            return
        last = next(books.ledger.entries(path=draft.path, limit=1), None)
        if last is not None and last.verb == "rejected":
            yield f"{repair.path}: to drop what is gone was turned down on {last.at[:10]}, so it is not proposed again"
            return
        if repair.waiting is not None:
            staging.put(repair.waiting.path, None, 0)
        staging.put(draft.path, render_draft(draft), 0)
        books.act(staging, Entry(at=as_stamp(self._now), verb="proposed", actor=actor, note=draft.id))
        instead = f", in place of {repair.waiting.id}" if repair.waiting is not None else ""
        yield f"{repair.path}: to drop what is gone is proposed as draft {draft.id}{instead}"


def parse_repair(note: str) -> tuple[date | None, date | None] | None:
    """The days in a repair's note: which one the card was of before, and which one it was brought up to."""
    match = _REPAIRED.search(note)
    return (parse_day(match[1]), parse_day(match[2])) if match else None


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


def _shifted(gone: Sequence[Verdict], edits: Sequence[Edit]) -> list[Verdict]:
    """Verdicts with their claims' places as they are after the edits (and a longer or shorter frontmatter aside)."""
    moved = []
    for verdict in gone:
        claim = verdict.claim
        shift = sum(len(edit.new) - (edit.end - edit.start) for edit in edits if edit.end <= claim.start)
        moved.append(verdict._replace(claim=claim._replace(start=claim.start + shift, end=claim.end + shift)))
    return moved
