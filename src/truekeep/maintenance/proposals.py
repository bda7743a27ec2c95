"""Proposals of maintenance: drafts for a person to review, each offered once.

A merge, a promotion or a disagreement becomes a review draft with its reasons. It says which state of the cards it was
made from, so that an edit in between is never overwritten, and a rejected proposal is not made again. The policy checks
each proposal first; one that could not be approved is reported instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from truekeep.core.config import Config
from truekeep.core.dates import as_stamp
from truekeep.core.errors import EditedSince
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import REVIEW
from truekeep.handoffs.draft import Draft, card_mark, changed_since, draft_id, parse_draft, render_draft, upkeep_mark
from truekeep.handoffs.format import compose_handoff, parse_handoff
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, MemoryView, Retry
from truekeep.handoffs.policy.plan import plan_filing
from truekeep.memory.card import words_of
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.memory.transaction import MemoryTransaction
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import holds_secret, withhold
from truekeep.text.unicode import printable

MAX_WAITING = 20  # proposals of one kind: a person with hundreds to decide on decides on none
CHANGED = 1 / 3  # of a card's words: from here on, a rejected merge may be proposed again
_REASON_CHARS = 300
_DANGERS = ("instruction", "hidden-text", "own-words", "conflict-markers")
_FLEETING = (
    "relative-time",
    "dangling-reference",
    "task-state",
    "code-layout",
    "git-history",
    "fix-recipe",
    "config-preference",
    "about-memory",
)
_MAX_FINDINGS = 3  # of the policy in a draft's reasons


class Idea(NamedTuple):
    """A change that a person should decide on."""

    by: str  # the command that has it: "tidy duplicates", "reconcile"
    slug: str  # of the draft's name
    reasons: tuple[tuple[str, str], ...]  # code and sentence
    text: str  # a handoff, or for a mere removal a few words
    target: str = ""  # the card that it is for; nothing for a mere removal
    found: bytes | None = None  # that card as it is; None: there is none yet
    drops: tuple[tuple[str, bytes], ...] = ()  # cards that go, as they are
    repository: str = ""
    writer: str = "upkeep"  # of the card that comes of it
    key: str = ""  # what makes it this idea, whatever becomes of its words; empty: target and text
    hindrance: str = ""  # why there is no draft for it, and what a person can do instead

    @property
    def dropped(self) -> tuple[str, ...]:
        """The paths of the cards that go."""
        return tuple(path for path, _ in self.drops)


class ProposalOutcome(NamedTuple):
    """The result of offering an idea."""

    idea: Idea
    draft: str  # its id; nothing where there is no draft
    state: str  # "proposed", "waiting", "rejected" (earlier), "later" (enough wait already), "withheld", "unfit"


def update_of(title: str, card: str, content: str, *, summary: str, facts: Sequence[str]) -> str:
    """The handoff that updates a card to this content, frontmatter and body."""
    return compose_handoff(
        title=title, summary=summary, facts=[printable(fact) for fact in facts], card=card, update=True, content=content
    )


def draft_of(idea: Idea, now: datetime) -> Draft:
    """The review draft of an idea."""
    raw = idea.text.encode()
    name = f"{now:%Y-%m-%d-%H%M}-{idea.slug}.md"
    stable = hashlib.sha256("\0".join((idea.by, idea.key or f"{idea.target}\0{idea.text}")).encode()).digest()
    return Draft(
        id=draft_id(name, stable),
        received_at=as_stamp(now),
        name=name,
        writer=idea.writer,
        machine="",
        repository=idea.repository,
        original=upkeep_mark(idea.by, idea.target, idea.found),
        digest=hashlib.sha256(raw).hexdigest(),
        kept="whole",
        reasons=tuple((code, printable(sentence)[:_REASON_CHARS]) for code, sentence in idea.reasons),
        target=idea.target,
        body=raw,
        drops=tuple(card_mark(path, data) for path, data in idea.drops),
    )


def offer(
    ideas: Iterable[Idea], transaction: MemoryTransaction, *, actor: str, now: datetime, dry_run: bool = False
) -> list[ProposalOutcome]:
    """Write drafts of ideas, up to MAX_WAITING. A rejected idea is not offered again."""
    desk = _ProposalWriter(transaction, actor, now, dry_run=dry_run)
    return [desk.offer(idea) for idea in ideas]


class _ProposalWriter:
    """Turns ideas into drafts."""

    def __init__(self, transaction: MemoryTransaction, actor: str, now: datetime, *, dry_run: bool) -> None:
        self._transaction, self._actor, self._now, self._dry_run = transaction, actor, now, dry_run
        self._drafts: dict[str, dict[str, Draft]] = {}  # that wait, by the command that made them

    def offer(self, idea: Idea) -> ProposalOutcome:
        draft = draft_of(idea, self._now)
        if idea.by not in self._drafts:
            self._drafts[idea.by] = _waiting(self._transaction, idea.by)
        waiting = self._drafts[idea.by]
        old = waiting.get(draft.id)
        if holds_secret(idea.text):
            return ProposalOutcome(_bare(idea), "", "withheld")  # no credential is copied, not even into review
        if idea.hindrance:
            return self._unfit(idea, old)
        if old is None and self._is_turned_down(idea, draft):
            return ProposalOutcome(idea, draft.id, "rejected")
        if old is None and len(waiting) >= MAX_WAITING:
            return ProposalOutcome(idea, draft.id, "later")
        if old is not None and (old.is_edited or _is_same(old, draft)):
            return ProposalOutcome(idea, draft.id, "waiting")
        filing = self._judged(idea, draft)
        if filing is not None and filing.outcome in ("review", "refused"):
            why = "; ".join(finding.message for finding in filing.blocking[:_MAX_FINDINGS])
            return self._unfit(idea._replace(hindrance=f"it could not be approved: {why}"), old)
        idea = idea._replace(reasons=(*idea.reasons, *_findings(filing, is_new=idea.found is None)))
        return self._propose(idea, draft_of(idea, self._now), old)

    def _propose(self, idea: Idea, draft: Draft, old: Draft | None) -> ProposalOutcome:
        waiting = self._drafts[idea.by]
        replaced = [other for other in waiting.values() if other.id != draft.id and self._is_replaced(other, idea)]
        if not self._dry_run:
            staging = Staging(self._transaction.vault)
            staging.put(draft.path, render_draft(draft), 0)
            for other in replaced:
                staging.put(other.path, None, 0)
            note = ", ".join((draft.id, *(["updated"] if old is not None else []), *(f"for {x.id}" for x in replaced)))
            try:
                self._transaction.act(
                    staging, LedgerEntry(at=draft.received_at, verb="proposed", actor=self._actor, note=note)
                )
            except EditedSince:
                return ProposalOutcome(idea, draft.id, "waiting")  # somebody edits it just now
        for other in replaced:
            del waiting[other.id]
        waiting[draft.id] = draft
        return ProposalOutcome(idea, draft.id, "proposed")

    def _is_replaced(self, other: Draft, idea: Idea) -> bool:
        """Whether a waiting draft about one of these cards can no longer be approved, and was not edited."""
        cards = {idea.target, *(path for path, _ in idea.drops)} - {""}
        if other.is_edited or not cards & {other.target, *other.dropped}:
            return False
        return bool(changed_since(other, self._read))

    def _unfit(self, idea: Idea, old: Draft | None) -> ProposalOutcome:
        """Offer no draft of an idea, and withdraw one that waits from before its cards changed."""
        if old is not None and not old.is_edited and changed_since(old, self._read):
            del self._drafts[idea.by][old.id]
            if not self._dry_run:
                staging = Staging(self._transaction.vault)
                staging.put(old.path, None, 0)
                at = as_stamp(self._now)
                note = withhold(printable(f"{old.id}: its cards changed; {idea.hindrance}"))[:_REASON_CHARS]
                with suppress(EditedSince):
                    self._transaction.act(staging, LedgerEntry(at=at, verb="expired", actor=self._actor, note=note))
        return ProposalOutcome(idea, "", "unfit")

    def _is_turned_down(self, idea: Idea, draft: Draft) -> bool:
        """Whether a person rejected it. A merge of cards that changed a lot since is another one."""
        last = next(self._transaction.ledger.entries(path=draft.path, limit=1), None)
        if last is None or last.verb != "rejected":
            return False
        around = self._transaction.ledger.around(last.id, draft.path) if idea.drops and idea.found is not None else None
        if around is None or around[0] is None:
            return True
        then = parse_draft(f"{draft.id}.md", around[0]).body.decode("utf-8", "replace")
        changed = _card_words(then) ^ _card_words(idea.text)
        cards = (idea.found or b"", *(data for _, data in idea.drops))
        return len(changed) <= CHANGED * min(len(set(words_of(decode_text(data) or ""))) for data in cards)

    def _judged(self, idea: Idea, draft: Draft) -> Decision | None:
        """The policy's decision if a person approves the draft; None for a mere removal."""
        if not idea.target:
            return None
        candidate = IncomingHandoff(
            raw=draft.body, name=draft.name, size=0, repository=draft.repository, writer=draft.writer or "review"
        )
        with suppress(Retry):
            return plan_filing(
                candidate, _Cards(self._transaction), Config(), today=self._now.date(), now=self._now, approved=True
            )
        return None

    def _read(self, path: str) -> bytes | None:
        with suppress(UnsafePath, ChangedSince, OSError):
            stored = self._transaction.vault.read(path)
            return stored.data if stored is not None else None
        return None


class _Cards(MemoryView):
    """The memory that the policy sees for a proposal: only its card."""

    is_known = True

    def __init__(self, transaction: MemoryTransaction) -> None:
        self._staging = Staging(transaction.vault)

    def read(self, path: str) -> bytes | None:
        return self._staging.read(path)

    def check_index(self) -> None:
        self._staging.index()


def _waiting(transaction: MemoryTransaction, by: str) -> dict[str, Draft]:
    """The waiting drafts of one command."""
    mark = upkeep_mark(by).encode()
    found: dict[str, Draft] = {}
    for item in transaction.vault.names(REVIEW):
        if item.name.endswith(".md"):
            stored = transaction.vault.read(f"{REVIEW}/{item.name}")
            draft = parse_draft(item.name, stored.data) if stored is not None and mark in stored.data else None
            if draft is not None and draft.made_by == by:
                found[draft.id] = draft
    return found


def _is_same(old: Draft, draft: Draft) -> bool:
    return (old.original, old.drops, old.body) == (draft.original, draft.drops, draft.body)


def _bare(idea: Idea) -> Idea:
    """An idea with credentials masked."""
    return idea._replace(
        slug="withheld",
        reasons=tuple((code, withhold(sentence)) for code, sentence in idea.reasons),
        text="",
        target=withhold(idea.target),
        drops=tuple((withhold(path), b"") for path, _ in idea.drops),
        key="",
        hindrance="",
    )


def _findings(filing: Decision | None, *, is_new: bool) -> list[tuple[str, str]]:
    """Findings of the policy that a reviewer needs to know; for a new card, also those about what will not last."""
    wanted = _DANGERS + (_FLEETING if is_new else ())
    found = {finding.code: finding for finding in reversed(filing.findings if filing is not None else ())}
    return [(code, withhold(printable(found[code].message))) for code in wanted if code in found][:_MAX_FINDINGS]


def _card_words(handoff: str) -> set[str]:
    """The words of the card that a handoff suggests."""
    return set(words_of(parse_handoff(handoff).card_content))
