"""What upkeep proposes to a person: drafts of its own, each offered once.

A merge, a promotion or a disagreement becomes a review draft with its reasons. It says which state of the cards it was
made from, so that an edit in between is never overwritten, and what a person turned down is not proposed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from truekeep.books import Books
from truekeep.draft import Draft, card_mark, draft_id, parse_draft, render_draft, upkeep_mark
from truekeep.errors import EditedSince
from truekeep.handoff import compose_handoff
from truekeep.hidden import printable
from truekeep.ledger import Entry
from truekeep.model import REVIEW
from truekeep.secrets import withhold
from truekeep.vault import Staging

MOST_WAITING = 20  # proposals of one kind that wait at a time: who has to decide on hundreds decides on none
_REASON_CHARS = 300


class Idea(NamedTuple):
    """Something that a person should decide on."""

    by: str  # the command that has it: "tidy duplicates", "reconcile"
    slug: str  # of the draft's name
    reasons: tuple[tuple[str, str], ...]  # code and sentence
    text: str  # a handoff, or for a mere removal a few words
    target: str = ""  # the card that it is for; nothing for a mere removal
    found: bytes | None = None  # that card as it is; None: there is none yet
    drops: tuple[tuple[str, bytes], ...] = ()  # cards that go, as they are
    repository: str = ""
    writer: str = "upkeep"  # of the card that comes of it
    key: str = ""  # what makes it this idea; empty: its text


class Offered(NamedTuple):
    """What became of an idea."""

    idea: Idea
    draft: str  # its id
    state: str  # "proposed", "waiting", "rejected" (earlier), "later" (enough wait already), "withheld"


def update_of(title: str, card: str, content: str, *, summary: str, facts: Sequence[str]) -> str:
    """The handoff that updates a card to this content, frontmatter and body."""
    return compose_handoff(
        title=title, summary=summary, facts=[printable(fact) for fact in facts], card=card, update=True, content=content
    )


def draft_of(idea: Idea, now: datetime) -> Draft:
    """The draft that puts an idea before a person."""
    raw = idea.text.encode()
    name = f"{now:%Y-%m-%d-%H%M}-{idea.slug}.md"
    stable = hashlib.sha256("\0".join((idea.by, idea.target, idea.key or idea.text)).encode()).digest()
    return Draft(
        id=draft_id(name, stable),
        received_at=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
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
    ideas: Iterable[Idea], books: Books, *, actor: str, now: datetime, most: int = MOST_WAITING, dry_run: bool = False
) -> list[Offered]:
    """Put ideas before a person, as many as one can decide on; an idea that was turned down is not offered again."""
    told: list[Offered] = []
    waiting: dict[str, set[str]] = {}
    for idea in ideas:
        draft = draft_of(idea, now)
        if idea.by not in waiting:
            waiting[idea.by] = _waiting(books, idea.by)
        known = waiting[idea.by]
        last = next(books.ledger.entries(path=draft.path, limit=1), None)
        if draft.id in known:
            state = _renewed(draft, books, actor, dry_run=dry_run)
        elif last is not None and last.verb == "rejected":
            state = "rejected"
        elif withhold(idea.text) != idea.text:
            state = "withheld"  # no credential is copied, not even into review
        elif len(known) >= most:
            state = "later"
        else:
            state = "proposed"
            known.add(draft.id)
            if not dry_run:
                staging = Staging(books.vault)
                staging.put(draft.path, render_draft(draft), 0)
                books.act(staging, Entry(at=draft.received_at, verb="proposed", actor=actor, note=draft.id))
        told.append(Offered(idea, draft.id, state))
    return told


def _waiting(books: Books, by: str) -> set[str]:
    """The drafts of one command that wait."""
    mark = upkeep_mark(by).encode()
    found = set()
    for item in books.vault.names(REVIEW):
        if item.name.endswith(".md"):
            stored = books.vault.read(f"{REVIEW}/{item.name}")
            if stored is not None and mark in stored.data and parse_draft(item.name, stored.data).made_by == by:
                found.add(item.name.removesuffix(".md"))
    return found


def _renewed(draft: Draft, books: Books, actor: str, *, dry_run: bool) -> str:
    """A draft that waits, made anew if the cards changed since and nobody edited it."""
    staging = Staging(books.vault)
    data = staging.read(draft.path)
    old = parse_draft(f"{draft.id}.md", data) if data is not None else None
    if old is None or old.is_edited or (old.original, old.drops, old.body) == (draft.original, draft.drops, draft.body):
        return "waiting"
    if not dry_run:
        staging.put(draft.path, render_draft(draft), 0)
        entry = Entry(at=draft.received_at, verb="proposed", actor=actor, note=f"{draft.id}, made anew")
        try:
            books.act(staging, entry)
        except EditedSince:
            return "waiting"  # somebody edits it just now
    return "proposed"
