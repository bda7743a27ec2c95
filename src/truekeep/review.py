"""Review: the drafts that wait for a person, and what a person can do with them.

Approving files a draft through the same judge as ingest, with the person's word in place of the policy; what cannot
be filed safely at all (a credential, no target) still cannot. Rejecting and expiring remove the draft; the ledger
keeps its bytes and the original stays in processed/.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import NamedTuple

from truekeep.books import Books
from truekeep.card import check_card_name
from truekeep.catalog import Catalog
from truekeep.config import Config
from truekeep.difference import difference
from truekeep.disk import ChangedSince, Stamp, UnsafePath, decode_text
from truekeep.draft import Draft, changed_since, parse_draft, render_draft
from truekeep.errors import EditedSince, InvalidHandoff, NotFound, TruekeepError, as_argument
from truekeep.filing import Candidate, Filing, plan_filing
from truekeep.hidden import printable
from truekeep.host import machine_name
from truekeep.inbox import is_letter_name
from truekeep.ledger import Entry
from truekeep.model import CARDS, REVIEW, RULES, Finding, as_stamp
from truekeep.secrets import find_secrets
from truekeep.shelf import Hold, StoreShelf
from truekeep.vault import Staging, Vault

MASK = b"[secret: "
_SETTLED_NS = 2_000_000_000  # a file that was written later than this before it was read may change unseen

Known = MutableMapping[str, tuple[Stamp, Draft]]
"""Drafts by their file's name, as they were read."""


class Edit(NamedTuple):
    """What approving makes of one file: its bytes now, and afterwards. None stands for "no such file"."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A draft as it would be filed now: the decision, and what it makes of the files that are there."""

    draft: Draft
    filing: Filing
    edits: tuple[Edit, ...] = ()
    hindrance: TruekeepError | None = None  # why approving would fail, whatever the text says

    @property
    def difference(self) -> tuple[str, ...]:
        """What would be written, line by line."""
        return tuple(line for edit in self.edits for line in difference(edit.before, edit.after, edit.path))

    @property
    def seen(self) -> dict[str, str]:
        """What whoever looks at this has seen: the draft and every file that it changes, each with its digest."""
        return {self.draft.path: self.draft.file_digest} | {edit.path: digest_of(edit.before) for edit in self.edits}


def digest_of(data: bytes | None) -> str:
    """A file's digest; empty when there is none."""
    return "" if data is None else sha256(data).hexdigest()


def iter_drafts(vault: Vault, known: Known | None = None) -> Iterator[Draft]:
    """Every draft of a workspace, oldest first, without the text. What is `known` and did not change is not read."""
    known = {} if known is None else known
    settled = time.time_ns() - _SETTLED_NS
    found: dict[str, Draft] = {}
    for item in vault.names(REVIEW):
        name = item.name
        try:
            old = known.get(name)
            if old is not None and _is_at(item.stat(follow_symlinks=False), old[0]):
                found[name] = old[1]
            elif _is_draft(item) and (stored := vault.read(f"{REVIEW}/{name}")) is not None:
                found[name] = replace(_parse(name, stored.data, stored.stamp), body=b"")
                known.pop(name, None)
                if stored.stamp.mtime_ns < settled:
                    known[name] = stored.stamp, found[name]
        except (UnsafePath, ChangedSince, OSError):
            continue
    for name in known.keys() - found.keys():
        known.pop(name, None)
    yield from sorted(found.values(), key=attrgetter("received_at", "id"))


def _is_at(info: os.stat_result, stamp: Stamp) -> bool:
    return info.st_mtime_ns == stamp.mtime_ns and info.st_size == stamp.size and info.st_ino == stamp.inode


def _is_draft(item: os.DirEntry[str]) -> bool:
    """Whether a file is a draft, by its name."""
    return is_letter_name(item.name) and printable(item.name) == item.name and item.is_file(follow_symlinks=False)


def _parse(name: str, data: bytes, stamp: Stamp) -> Draft:
    draft = replace(parse_draft(name, data), file_digest=digest_of(data))
    if not draft.received_at:
        written = datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC)
        draft = replace(draft, received_at=written.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return draft


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
        self._at = as_stamp(now)

    def drafts(self) -> Iterator[Draft]:
        """Every draft, oldest first."""
        yield from iter_drafts(self.books.vault)

    def get(self, wanted: str, *, exact: bool = False) -> Draft:
        """A draft by its id, or, unless only the id will do, by any beginning or end of it that only it has."""
        stem = wanted if exact else wanted.removeprefix(f"{REVIEW}/").removesuffix(".md")
        found = self._read(stem)
        if found is None and not exact:
            ids = [item.name.removesuffix(".md") for item in self.books.vault.names(REVIEW) if _is_draft(item)]
            matches = sorted(one for one in ids if stem and (one.startswith(stem) or one.endswith(stem)))
            if len(matches) > 1:
                raise NotFound(
                    f"{stem!r} fits {len(matches)} drafts: {', '.join(matches[:5])}", hint="give more of the id"
                )
            found = self._read(matches[0]) if matches else None
        if found is None:
            raise NotFound(f"no draft {printable(stem)!r}", hint="`truekeep review list` shows the drafts")
        return found

    def _read(self, stem: str) -> Draft | None:
        name = f"{stem}.md"
        if "/" in name or "\0" in name or not is_letter_name(name) or printable(name) != name:
            return None
        try:
            stored = self.books.vault.read(f"{REVIEW}/{name}")
        except ChangedSince as error:
            raise EditedSince(f"draft {stem} changed while it was read", hint="look again") from error
        except (UnsafePath, OSError, UnicodeEncodeError):
            return None
        return _parse(name, stored.data, stored.stamp) if stored is not None else None

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
        hindrance = self._hindrance(draft, staging)
        removed = self._removed(draft, staging)
        if draft.drops and not draft.target:
            return Proposal(draft=draft, filing=_removal(draft), edits=removed, hindrance=hindrance)
        if draft.kept == "elsewhere" and not draft.body:
            findings = tuple(
                Finding(code=code if code in RULES else "not-text", message=sentence)
                for code, sentence in draft.reasons
            )
            filing = Filing(outcome="review", findings=findings, blocking=findings)
            return Proposal(draft=draft, filing=filing, hindrance=hindrance)
        today = self.now.date()
        filing = plan_filing(candidate, shelf, self.config, today=today, now=self.now, approved=approved, target=target)
        edits = (*self._written(filing, staging), *removed)
        return Proposal(draft=draft, filing=filing, edits=edits, hindrance=hindrance)

    def _removed(self, draft: Draft, staging: Staging) -> tuple[Edit, ...]:
        """The cards that go with a draft."""
        found: list[Edit] = []
        for path in draft.dropped:
            if _is_card(path):
                with suppress(UnsafePath, ChangedSince):
                    found.append(Edit(path, staging.read(path), None))
        return tuple(found)

    def _shelf(self, staging: Staging) -> StoreShelf:
        return StoreShelf(self.books.vault, self.books.ledger, self.catalog, staging, hold=self._hold)

    def _written(self, filing: Filing, staging: Staging) -> tuple[Edit, ...]:
        """The file that a draft is written to."""
        if not filing.target or filing.data is None:
            return ()
        try:
            old = staging.read(filing.target)
        except (UnsafePath, ChangedSince):
            return ()
        return (Edit(filing.target, old, filing.data if filing.is_whole else (old or b"") + filing.data),)

    def approve(self, draft: Draft, *, target: str = "", seen: Mapping[str, str] | None = None) -> Filing:
        """File a draft on a person's word: on what they saw, if that is given, and nothing else."""
        return self._file(draft, approved=True, target=target, verb="approved", seen=seen)

    def retry(self, draft: Draft) -> Filing:
        """File a draft if ingest would file it now; why not is in the Filing."""
        if draft.is_upkeep:
            why = (Finding(code="proposed", message="upkeep proposes it; only a person decides on that"),)
            return Filing(outcome="review", findings=why, blocking=why)
        try:
            return self._file(draft, approved=False, target="", verb="retried")
        except InvalidHandoff as error:
            return Filing(outcome="review", findings=error.findings, blocking=error.findings)

    def _file(
        self, draft: Draft, *, approved: bool, target: str, verb: str, seen: Mapping[str, str] | None = None
    ) -> Filing:
        staging = Staging(self.books.vault)
        proposal = self._propose(draft, staging, approved=approved, target=target)
        if proposal.hindrance is not None:
            raise proposal.hindrance
        check_seen(seen, proposal.seen)
        filing = proposal.filing
        if filing.outcome in ("review", "refused"):
            raise InvalidHandoff(
                f"draft {draft.id} cannot be filed as it is",
                filing.blocking,
                hint=f"`truekeep review edit {as_argument(draft.id)}` mends the text, `approve --target` the place",
            )
        if filing.data is not None or not draft.drops:
            self._shelf(staging).stage(filing, 0)
        for path in draft.dropped:
            staging.put(path, None, 0)
            staging.unpoint(path.rpartition("/")[2], 0)
        note = f"{draft.id}; {' and '.join(draft.dropped)} dropped" if draft.drops else ""
        outcome = "approved" if approved else filing.outcome
        self._close(staging, draft, verb, outcome=outcome, target=filing.target, note=note)
        return filing

    def _hindrance(self, draft: Draft, staging: Staging) -> TruekeepError | None:
        """Why a draft cannot be approved at all: it was made from cards that are others by now, or names none."""
        again = "the next `truekeep tidy` or `reconcile`" if draft.is_upkeep else "`truekeep verify --fix`"
        for path in draft.dropped:
            if not _is_card(path) or path == draft.target:
                return NotFound(f"draft {draft.id} names {path!r}, which is no card to drop", hint="reject it")
        try:
            changed = changed_since(draft, staging.read)
        except UnsafePath as error:
            return error
        if changed:
            return EditedSince(
                f"{' and '.join(changed)} changed since draft {draft.id} was made; nothing was written",
                hint=f"reject it; {again} makes a new proposal from the card as it is",
            )
        return None

    def outdated(self, draft: Draft) -> list[str]:
        """The cards that changed since a draft was made from them: it cannot be approved any more."""
        if not (draft.is_proposal or draft.is_upkeep) or not all(_is_card(path) for path in draft.dropped):
            return []
        with suppress(UnsafePath, ChangedSince):
            return changed_since(draft, Staging(self.books.vault).read)
        return []

    def reject(self, draft: Draft, *, reason: str = "", seen: Mapping[str, str] | None = None) -> None:
        """Turn a draft down. The original stays in processed/, and the ledger keeps the draft."""
        check_seen(seen, {draft.path: draft.file_digest})
        self._close(Staging(self.books.vault), draft, "rejected", outcome="rejected", note=reason)

    def expired(self, older_than: timedelta) -> list[Draft]:
        """The drafts that have waited longer than this."""
        limit = as_stamp(self.now - older_than)
        # A file that truekeep did not write has no digest; it is a person's to remove.
        return [draft for draft in self.drafts() if draft.received_at < limit and draft.digest]

    def expire(self, draft: Draft) -> None:
        self._close(Staging(self.books.vault), draft, "expired", outcome="expired")

    def edit(self, draft: Draft, body: bytes, *, seen: Mapping[str, str] | None = None) -> Draft:
        """Replace the handoff inside a draft. A credential is not taken here either."""
        check_seen(seen, {draft.path: draft.file_digest})
        text = decode_text(body)
        if text is not None and (found := find_secrets(text)):
            lines = [text.count("\n", 0, secret.start) + 1 for secret in found]
            findings = [
                Finding(code="secret", message=f"looks like a credential ({secret.rule})", line=line)
                for secret, line in zip(found, lines, strict=True)
            ]
            raise InvalidHandoff("the new text holds a credential; nothing was written", findings, hint="leave it out")
        edited = replace(draft, body=body, kept="whole" if draft.kept == "elsewhere" else draft.kept)
        data = render_draft(edited)
        edited = replace(edited, file_digest=digest_of(data))
        staging = Staging(self.books.vault)
        staging.put(draft.path, data, 0)
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


def check_seen(seen: Mapping[str, str] | None, now: Mapping[str, str]) -> None:
    """Whether the files are still as somebody saw them; a file that they were not shown must not be there."""
    changed = [path for path, digest in now.items() if seen is not None and seen.get(path, "") != digest]
    if changed:
        raise EditedSince(
            f"{', '.join(changed)} changed since you looked at it; nothing was written",
            hint="look at it as it is now",
            changed=tuple(changed),
        )


def _is_card(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == CARDS and check_card_name(name) is None


def _removal(draft: Draft) -> Filing:
    """A draft that only drops cards, as a decision."""
    return Filing(outcome="routed", findings=(), target=", ".join(draft.dropped))


def _digest(draft: Draft) -> bytes | None:
    try:
        return bytes.fromhex(draft.digest) or None
    except ValueError:
        return None
