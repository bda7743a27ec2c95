"""Review: the drafts that wait for a person, and what a person can do with them.

Approving files a draft through the same judge as ingest, with the person's word in place of the policy; what cannot
be filed safely at all (a credential, no target) still cannot. Rejecting and expiring remove the draft; the ledger
keeps its bytes and the original stays in processed/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from truekeep.books import Books
from truekeep.card import check_card_name
from truekeep.catalog import Catalog
from truekeep.config import Config
from truekeep.difference import difference
from truekeep.disk import ChangedSince, UnsafePath, decode_text
from truekeep.draft import Draft, card_mark, is_overtaken, parse_draft, render_draft
from truekeep.errors import EditedSince, InvalidHandoff, NotFound
from truekeep.filing import Candidate, Filing, plan_filing
from truekeep.hidden import printable
from truekeep.host import machine_name
from truekeep.inbox import is_letter_name
from truekeep.ledger import Entry
from truekeep.model import CARDS, REVIEW, RULES, Finding
from truekeep.secrets import find_secrets
from truekeep.shelf import Hold, StoreShelf
from truekeep.vault import Staging, Vault

MASK = b"[secret: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A draft as it would be filed now: the decision, and the difference to what is there."""

    draft: Draft
    filing: Filing
    difference: tuple[str, ...]


def iter_drafts(vault: Vault) -> Iterator[Draft]:
    """Every draft of a workspace, oldest first, without the text."""
    found = []
    for item in vault.names(REVIEW):
        if is_letter_name(item.name):
            try:
                stored = vault.read(f"{REVIEW}/{item.name}")
            except (UnsafePath, ChangedSince, OSError):
                continue
            if stored is not None and printable(item.name) == item.name:
                draft = parse_draft(item.name, stored.data)
                if not draft.received_at:
                    written = datetime.fromtimestamp(stored.stamp.mtime_ns / 1e9, UTC)
                    draft = replace(draft, received_at=written.strftime("%Y-%m-%dT%H:%M:%SZ"))
                found.append(replace(draft, body=b""))
    yield from sorted(found, key=lambda draft: (draft.received_at, draft.id))


class Review:
    """The review of one workspace."""

    def __init__(
        self,
        books: Books,
        catalog: Catalog,
        config: Config,
        *,
        actor: str,
        now: datetime,
        hold: Hold | None = None,
    ) -> None:
        self.books, self.catalog, self.config, self.actor, self.now = books, catalog, config, actor, now
        self._hold = hold
        self._at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def drafts(self) -> Iterator[Draft]:
        """Every draft, oldest first."""
        yield from iter_drafts(self.books.vault)

    def get(self, wanted: str) -> Draft:
        """A draft by its id, or by any beginning or end of the id that only it has."""
        stem = wanted.removeprefix(f"{REVIEW}/").removesuffix(".md")
        ids = [draft.id for draft in self.drafts()]
        matches = [draft for draft in ids if draft == stem] or [
            draft for draft in ids if stem and (draft.startswith(stem) or draft.endswith(stem))
        ]
        if len(matches) != 1:
            if matches:
                raise NotFound(
                    f"{stem!r} fits {len(matches)} drafts: {', '.join(matches[:5])}", hint="give more of the id"
                )
            raise NotFound(f"no draft {printable(stem)!r}", hint="`truekeep review list` shows the drafts")
        stored = self.books.vault.read(f"{REVIEW}/{matches[0]}.md")
        if stored is None:
            raise NotFound(f"draft {matches[0]} is gone", hint="`truekeep review list` shows the drafts")
        return parse_draft(f"{matches[0]}.md", stored.data)

    def propose(self, draft: Draft, *, approved: bool = True, target: str = "") -> Proposal:
        """What would be written if this draft were filed now."""
        return self._propose(draft, Staging(self.books.vault), approved=approved, target=target)

    def _propose(self, draft: Draft, staging: Staging, *, approved: bool, target: str) -> Proposal:
        shelf = self._shelf(staging)
        shelf.from_repository(None, draft.repository)
        candidate = Candidate(
            raw=draft.body,
            name=draft.name,
            size=0,
            repository=draft.repository,
            writer=draft.writer or "review",
            machine=draft.machine if draft.machine != machine_name() else "",
            is_masked=draft.kept == "masked" and MASK in draft.body,
        )
        if draft.drops and not draft.target:
            return Proposal(draft=draft, filing=_removal(draft), difference=self._removed(draft, staging))
        if draft.kept == "elsewhere" and not draft.body:
            findings = tuple(
                Finding(code=code if code in RULES else "not-text", message=sentence)
                for code, sentence in draft.reasons
            )
            return Proposal(
                draft=draft, filing=Filing(outcome="review", findings=findings, blocking=findings), difference=()
            )
        today = self.now.date()
        filing = plan_filing(candidate, shelf, self.config, today=today, now=self.now, approved=approved, target=target)
        changed = (*self._difference(filing, staging), *self._removed(draft, staging))
        return Proposal(draft=draft, filing=filing, difference=changed)

    def _removed(self, draft: Draft, staging: Staging) -> tuple[str, ...]:
        """The cards that go with a draft, as a difference."""
        lines: list[str] = []
        for path in draft.dropped:
            with suppress(UnsafePath, ChangedSince):
                lines += difference(staging.read(path), None, path)
        return tuple(lines)

    def _shelf(self, staging: Staging) -> StoreShelf:
        return StoreShelf(self.books.vault, self.books.ledger, self.catalog, staging, hold=self._hold)

    def _difference(self, filing: Filing, staging: Staging) -> tuple[str, ...]:
        if not filing.target or filing.data is None:
            return ()
        try:
            old = staging.read(filing.target)
        except (UnsafePath, ChangedSince):
            return ()
        new = filing.data if filing.is_whole else (old or b"") + filing.data
        return difference(old, new, filing.target)

    def approve(self, draft: Draft, *, target: str = "") -> Filing:
        """File a draft on a person's word."""
        return self._file(draft, approved=True, target=target, verb="approved")

    def retry(self, draft: Draft) -> Filing:
        """File a draft if ingest would file it now; why not is in the Filing."""
        if draft.is_upkeep:
            why = (Finding(code="proposed", message="upkeep proposes it; only a person decides on that"),)
            return Filing(outcome="review", findings=why, blocking=why)
        try:
            return self._file(draft, approved=False, target="", verb="retried")
        except InvalidHandoff as error:
            return Filing(outcome="review", findings=error.findings, blocking=error.findings)

    def _file(self, draft: Draft, *, approved: bool, target: str, verb: str) -> Filing:
        staging = Staging(self.books.vault)
        again = "the next `truekeep tidy` or `reconcile`" if draft.is_upkeep else "`truekeep verify --fix`"
        for path, is_old in self._overtaken(draft, staging):
            if is_old:
                raise EditedSince(
                    f"{path} changed since draft {draft.id} was made; nothing was written",
                    hint=f"reject it; {again} makes a new proposal from the card as it is",
                )
        filing = self._propose(draft, staging, approved=approved, target=target).filing
        if filing.outcome in ("review", "refused"):
            raise InvalidHandoff(
                f"draft {draft.id} cannot be filed as it is",
                filing.blocking,
                hint=f"`truekeep review edit {draft.id}` mends the text, `approve --target` the place",
            )
        if filing.data is not None or not draft.drops:
            self._shelf(staging).stage(filing, 0)
        for path in draft.dropped:
            staging.put(path, None, 0)
            staging.unpoint(path.rpartition("/")[2], 0)
        self._close(staging, draft, verb, outcome="approved" if approved else filing.outcome, target=filing.target)
        return filing

    def _overtaken(self, draft: Draft, staging: Staging) -> Iterator[tuple[str, bool]]:
        """The cards that a draft was made from, and whether each is another one by now."""
        if draft.target:
            yield draft.target, is_overtaken(draft, staging.read(draft.target))
        for mark, path in zip(draft.drops, draft.dropped, strict=True):
            folder, _, name = path.rpartition("/")
            if folder != CARDS or check_card_name(name) is not None or path == draft.target:
                raise NotFound(f"draft {draft.id} names {path!r}, which is no card to drop", hint="reject it")
            data = staging.read(path)
            yield path, data is None or card_mark(path, data) != mark

    def reject(self, draft: Draft, *, reason: str = "") -> None:
        """Turn a draft down. The original stays in processed/, and the ledger keeps the draft."""
        self._close(Staging(self.books.vault), draft, "rejected", outcome="rejected", note=reason)

    def expired(self, older_than: timedelta) -> list[Draft]:
        """The drafts that have waited longer than this."""
        limit = (self.now.astimezone(UTC) - older_than).strftime("%Y-%m-%dT%H:%M:%SZ")
        # A file that truekeep did not write has no digest; it is a person's to remove.
        return [draft for draft in self.drafts() if draft.received_at < limit and draft.digest]

    def expire(self, draft: Draft) -> None:
        self._close(Staging(self.books.vault), draft, "expired", outcome="expired")

    def edit(self, draft: Draft, body: bytes) -> Draft:
        """Replace the handoff inside a draft. A credential is not taken here either."""
        text = decode_text(body)
        if text is not None and (found := find_secrets(text)):
            lines = [text.count("\n", 0, secret.start) + 1 for secret in found]
            findings = [
                Finding(code="secret", message=f"looks like a credential ({secret.rule})", line=line)
                for secret, line in zip(found, lines, strict=True)
            ]
            raise InvalidHandoff("the new text holds a credential; nothing was written", findings, hint="leave it out")
        edited = replace(draft, body=body, kept="whole" if draft.kept == "elsewhere" else draft.kept)
        staging = Staging(self.books.vault)
        staging.put(draft.path, render_draft(edited), 0)
        self._commit(
            staging, Entry(at=self._at, verb="edited", actor=self.actor, handoff=_digest(draft), note=draft.id)
        )
        return edited

    def _close(
        self, staging: Staging, draft: Draft, verb: str, *, outcome: str, target: str | None = None, note: str = ""
    ) -> None:
        """Remove the draft together with whatever was staged, as one entry."""
        staging.put(draft.path, None, 0)
        digest = _digest(draft)
        entry = Entry(at=self._at, verb=verb, actor=self.actor, handoff=digest, note=note or draft.id)
        self._commit(staging, entry, [(digest, outcome, target)] if digest is not None else [])

    def _commit(self, staging: Staging, entry: Entry, outcomes: Sequence[tuple[bytes, str, str | None]] = ()) -> None:
        self.catalog.commit(self.books.act(staging, entry, outcomes))
        if any(path.startswith(f"{CARDS}/") and staging.read(path) is None for path in staging.paths()):
            self.catalog.forget()  # a card went: the next question looks at the folder


def _removal(draft: Draft) -> Filing:
    """A draft that only drops cards, as a decision."""
    return Filing(outcome="routed", findings=(), target=", ".join(draft.dropped))


def _digest(draft: Draft) -> bytes | None:
    try:
        return bytes.fromhex(draft.digest) or None
    except ValueError:
        return None
