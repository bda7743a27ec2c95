"""Review: lists, approves, rejects and edits drafts.

Approving files a draft through the same policy as ingest, but with all findings accepted that are not binding, such as
a credential or a missing target. Rejecting and expiring remove the draft; the ledger keeps its bytes and the original
stays in processed/.
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

from truekeep.core.config import Config
from truekeep.core.dates import as_stamp
from truekeep.core.errors import BadInput, EditedSince, InvalidHandoff, NotFound, TruekeepError, as_argument
from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath
from truekeep.core.machine import machine_name
from truekeep.core.model import CARDS, REVIEW, RULES, Finding
from truekeep.handoffs.draft import Draft, changed_since, parse_draft, reasons_of, render_draft
from truekeep.handoffs.inbox import is_handoff_name
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff
from truekeep.handoffs.policy.plan import plan_filing
from truekeep.handoffs.policy.text_checks import check_text
from truekeep.handoffs.policy_store import StoredMemoryView
from truekeep.memory.card import check_card_name
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.similarity import Catalog
from truekeep.memory.staging import MemoryFiles, Staging
from truekeep.memory.transaction import MemoryTransaction
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import find_secrets
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference
from truekeep.verify.content_verifier import ContentVerifier

MASK = b"[secret: "
_SETTLED_NS = 2_000_000_000  # a file written more recently than this may change without a new mtime

DraftCache = MutableMapping[str, tuple[FileStamp, Draft]]
"""Drafts by file name, with the stamp of the file they were read from."""


class FileChange(NamedTuple):
    """A file's bytes before and after approving. None if it does not exist."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A draft as it would be filed now: the decision and the resulting file changes."""

    draft: Draft
    decision: Decision
    edits: tuple[FileChange, ...] = ()
    blocker: TruekeepError | None = None  # why it cannot be approved, independent of its text

    @property
    def difference(self) -> tuple[str, ...]:
        """The changes as a diff."""
        return tuple(line for edit in self.edits for line in difference(edit.before, edit.after, edit.path))

    @property
    def seen(self) -> dict[str, str]:
        """Digests of the draft and of every file that it changes, as shown to the reviewer."""
        return {self.draft.path: self.draft.file_digest} | {edit.path: digest_of(edit.before) for edit in self.edits}


def digest_of(data: bytes | None) -> str:
    """The data's digest; "" if there is no file."""
    return "" if data is None else sha256(data).hexdigest()


def iter_drafts(vault: MemoryFiles, known: DraftCache | None = None, *, judged: bool = False) -> Iterator[Draft]:
    """Every draft of a workspace, oldest first, without its text. Unchanged drafts are taken from `known`.

    `judged`: add the current findings of the text, because a draft's stored reasons may be old or forged.
    """
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
                draft = _parse(name, stored.data, stored.stamp)
                found[name] = replace(_with_current_findings(draft) if judged else draft, body=b"")
                known.pop(name, None)
                if stored.stamp.mtime_ns < settled:
                    known[name] = stored.stamp, found[name]
        except (UnsafePath, ChangedSince, OSError):
            continue
    for name in known.keys() - found.keys():
        known.pop(name, None)
    yield from sorted(found.values(), key=attrgetter("received_at", "id"))


def _is_at(info: os.stat_result, stamp: FileStamp) -> bool:
    return info.st_mtime_ns == stamp.mtime_ns and info.st_size == stamp.size and info.st_ino == stamp.inode


def _is_draft(item: os.DirEntry[str]) -> bool:
    """True if the file is a draft, by its name."""
    is_named = item.name.endswith(".md") and is_handoff_name(item.name) and printable(item.name) == item.name
    return is_named and item.is_file(follow_symlinks=False)


def _parse(name: str, data: bytes, stamp: FileStamp) -> Draft:
    draft = replace(parse_draft(name, data), file_digest=digest_of(data))
    if not draft.received_at:
        written = datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC)
        draft = replace(draft, received_at=written.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return draft


def _with_current_findings(draft: Draft) -> Draft:
    """The draft with current findings that its stored reasons, which may be old or forged, do not name."""
    text = decode_text(draft.body)
    found = tuple(check_text(text)) if text else ()
    unnamed = tuple(finding for finding in found if finding.code not in draft.codes)
    # Masking changes the text, so that the same finding reads differently.
    current = reasons_of(unnamed if draft.kept == "masked" else found)
    fresh = tuple(reason for reason in current if reason not in draft.reasons)
    return replace(draft, reasons=(*draft.reasons, *fresh), unnamed=unnamed) if fresh else draft


class Review:
    """Review of one workspace's drafts."""

    def __init__(
        self,
        books: MemoryTransaction,
        catalog: Catalog,
        config: Config,
        *,
        actor: str,
        now: datetime,
        verifier: ContentVerifier | None = None,
    ) -> None:
        self.books, self.catalog, self.config, self.actor, self.now = books, catalog, config, actor, now
        self._verifier = verifier
        self._at = as_stamp(now)

    def drafts(self) -> Iterator[Draft]:
        """Every draft, oldest first."""
        yield from iter_drafts(self.books.vault)

    def get(self, wanted: str, *, exact: bool = False) -> Draft:
        """A draft by its id or, unless `exact`, by a unique beginning or end of the id."""
        stem = wanted if exact else wanted.removeprefix(f"{REVIEW}/").removesuffix(".md")
        found = self._read(stem)
        if found is None and not exact:
            ids = [item.name.removesuffix(".md") for item in self.books.vault.names(REVIEW) if _is_draft(item)]
            matches = sorted(one for one in ids if stem and (one.startswith(stem) or one.endswith(stem)))
            if len(matches) > 1:
                raise NotFound(
                    f"{stem!r} matches {len(matches)} drafts: {', '.join(matches[:5])}", hint="give more of the id"
                )
            found = self._read(matches[0]) if matches else None
        if found is None:
            raise NotFound(f"no draft {printable(stem)!r}", hint="run `truekeep review list` to see the drafts")
        return found

    def _read(self, stem: str) -> Draft | None:
        name = f"{stem}.md"
        if "/" in name or "\0" in name or not is_handoff_name(name) or printable(name) != name:
            return None
        try:
            stored = self.books.vault.read(f"{REVIEW}/{name}")
        except ChangedSince as error:
            raise EditedSince(f"draft {stem} changed while it was read", hint="run it again") from error
        except (UnsafePath, OSError, UnicodeEncodeError):
            return None
        return _with_current_findings(_parse(name, stored.data, stored.stamp)) if stored is not None else None

    def propose(self, draft: Draft, *, approved: bool = True, target: str = "") -> Proposal:
        """What approving this draft would write now."""
        return self._propose(draft, Staging(self.books.vault), approved=approved, target=target)

    def _propose(self, draft: Draft, staging: Staging, *, approved: bool, target: str) -> Proposal:
        view = self._view(staging)
        view.from_repository(None, draft.repository)
        candidate = IncomingHandoff(
            raw=draft.body,
            name=draft.name,
            size=0,
            repository=draft.repository,
            writer=draft.writer or "review",
            machine=draft.machine if draft.machine != machine_name() else "",
            is_masked=draft.kept == "masked" and MASK in draft.body,
            is_draft=True,
        )
        blocker = self._why_not_approvable(draft, staging)
        removed = self._removed_cards(draft, staging)
        if draft.is_removal:
            return Proposal(draft=draft, decision=_removal(draft), edits=removed, blocker=blocker)
        if draft.kept == "elsewhere" and not draft.body:
            findings = tuple(
                Finding(code=code if code in RULES else "not-text", message=sentence)
                for code, sentence in draft.reasons
            )
            decision = Decision(outcome="review", findings=findings, blocking=findings)
            return Proposal(draft=draft, decision=decision, blocker=blocker)
        today = self.now.date()
        decision = plan_filing(
            candidate, view, self.config, today=today, now=self.now, approved=approved, target=target
        )
        edits = (*self._written_file(decision, staging), *removed)
        return Proposal(draft=draft, decision=decision, edits=edits, blocker=blocker)

    def _removed_cards(self, draft: Draft, staging: Staging) -> tuple[FileChange, ...]:
        """The cards that a draft removes."""
        found: list[FileChange] = []
        for path in draft.dropped:
            if _is_card(path):
                with suppress(UnsafePath, ChangedSince):
                    found.append(FileChange(path, staging.read(path), None))
        return tuple(found)

    def _view(self, staging: Staging) -> StoredMemoryView:
        return StoredMemoryView(self.books.vault, self.books.ledger, self.catalog, staging, verifier=self._verifier)

    def _written_file(self, decision: Decision, staging: Staging) -> tuple[FileChange, ...]:
        """The file that a draft writes."""
        if not decision.target or decision.data is None:
            return ()
        try:
            old = staging.read(decision.target)
        except (UnsafePath, ChangedSince):
            return ()
        return (FileChange(decision.target, old, decision.data if decision.is_whole else (old or b"") + decision.data),)

    def approve(
        self, draft: Draft, *, target: str = "", seen: Mapping[str, str] | None = None, anyway: bool = False
    ) -> Decision:
        """File a draft that a person approves; only if the files are still as in `seen`, if that is given.

        Without `seen` or `anyway`, raises InvalidHandoff for findings that the draft's stored reasons do not name.
        """
        unnamed = tuple(finding for finding in draft.unnamed if self.config.policy_for(finding.code) != "promote")
        if unnamed and seen is None and not anyway:
            raise InvalidHandoff(
                f"draft {draft.id} has findings that its reasons do not name; nothing was written",
                unnamed,
                hint=f"read it with `truekeep review show {as_argument(draft.id)}`, or use `approve --anyway`",
            )
        return self._file(draft, approved=True, target=target, verb="approved", seen=seen)

    def retry(self, draft: Draft) -> Decision:
        """File a draft if ingest would file it now; the decision says why not."""
        if draft.is_upkeep or draft.is_removal:
            why = (Finding(code="proposed", message="a proposal by truekeep; only a person can approve it"),)
            return Decision(outcome="review", findings=why, blocking=why)
        try:
            return self._file(draft, approved=False, target="", verb="retried")
        except InvalidHandoff as error:
            return Decision(outcome="review", findings=error.findings, blocking=error.findings)

    def _file(
        self, draft: Draft, *, approved: bool, target: str, verb: str, seen: Mapping[str, str] | None = None
    ) -> Decision:
        staging = Staging(self.books.vault)
        proposal = self._propose(draft, staging, approved=approved, target=target)
        if proposal.blocker is not None:
            raise proposal.blocker
        check_seen(seen, proposal.seen)
        decision = proposal.decision
        if decision.outcome in ("review", "refused"):
            raise InvalidHandoff(
                f"draft {draft.id} cannot be filed as it is",
                decision.blocking,
                hint=f"run `truekeep review edit {as_argument(draft.id)}`, or give another `approve --target`",
            )
        if decision.data is not None or not draft.drops:
            self._view(staging).stage(decision, 0)
        for path in draft.dropped:
            staging.put(path, None, 0)
            staging.unpoint(path.rpartition("/")[2], 0)
        note = f"{draft.id}; {' and '.join(draft.dropped)} dropped" if draft.drops else ""
        outcome = "approved" if approved else decision.outcome
        self._close(staging, draft, verb, outcome=outcome, target=decision.target, note=note)
        return decision

    def _why_not_approvable(self, draft: Draft, staging: Staging) -> TruekeepError | None:
        """Why a draft cannot be approved at all: its cards changed since, or it names no valid card."""
        again = "the next `truekeep tidy` or `reconcile`" if draft.is_upkeep else "`truekeep verify --fix`"
        for path in draft.dropped:
            if not _is_card(path) or path == draft.target:
                return NotFound(f"draft {draft.id} would drop {path!r}, which is not a card", hint="reject it")
        if draft.is_removal and draft.is_edited:
            return _only_removes(draft)
        try:
            changed = changed_since(draft, staging.read)
        except UnsafePath as error:
            return error
        if changed:
            return EditedSince(
                f"{' and '.join(changed)} changed since draft {draft.id} was made; nothing was written",
                hint=f"reject it; {again} makes a new proposal from the current card",
            )
        return None

    def outdated(self, draft: Draft) -> list[str]:
        """The cards that changed since a draft was made from them; if any, it cannot be approved."""
        if not (draft.is_proposal or draft.is_upkeep) or not all(_is_card(path) for path in draft.dropped):
            return []
        with suppress(UnsafePath, ChangedSince):
            return changed_since(draft, Staging(self.books.vault).read)
        return []

    def reject(self, draft: Draft, *, reason: str = "", seen: Mapping[str, str] | None = None) -> None:
        """Reject a draft. The original stays in processed/, and the ledger keeps the draft."""
        check_seen(seen, {draft.path: draft.file_digest})
        self._close(Staging(self.books.vault), draft, "rejected", outcome="rejected", note=reason)

    def expired(self, older_than: timedelta, *, by_hand: bool = True) -> list[Draft]:
        """The drafts that are older than this. Those of an earlier ingester are removed by hand only.

        Any other file that truekeep did not write, which has no digest, is a person's.
        """
        limit = as_stamp(self.now - older_than)
        old = [draft for draft in self.drafts() if draft.received_at < limit]
        return [draft for draft in old if draft.digest or (by_hand and draft.is_by_earlier_ingester)]

    def expire(self, draft: Draft) -> None:
        self._close(Staging(self.books.vault), draft, "expired", outcome="expired")

    def edit(self, draft: Draft, body: bytes, *, seen: Mapping[str, str] | None = None) -> Draft:
        """Replace the handoff inside a draft. Refuses text with a credential."""
        check_seen(seen, {draft.path: draft.file_digest})
        if draft.is_removal:
            raise _only_removes(draft)
        text = decode_text(body)
        if text is not None and (found := find_secrets(text)):
            lines = [text.count("\n", 0, secret.start) + 1 for secret in found]
            findings = [
                Finding(code="secret", message=f"looks like a credential ({secret.rule})", line=line)
                for secret, line in zip(found, lines, strict=True)
            ]
            raise InvalidHandoff("the new text contains a credential; nothing was written", findings, hint="remove it")
        edited = replace(draft, body=body, kept="whole" if draft.kept == "elsewhere" else draft.kept)
        data = render_draft(edited)
        edited = replace(edited, file_digest=digest_of(data))
        staging = Staging(self.books.vault)
        staging.put(draft.path, data, 0)
        self._commit(
            staging, LedgerEntry(at=self._at, verb="edited", actor=self.actor, handoff=_digest(draft), note=draft.id)
        )
        return edited

    def _close(
        self, staging: Staging, draft: Draft, verb: str, *, outcome: str, target: str | None = None, note: str = ""
    ) -> None:
        """Remove the draft and commit the staged changes, as one ledger entry."""
        staging.put(draft.path, None, 0)
        digest = _digest(draft)
        entry = LedgerEntry(at=self._at, verb=verb, actor=self.actor, handoff=digest, note=note or draft.id)
        self._commit(staging, entry, [(digest, outcome, target)] if digest is not None else [])

    def _commit(
        self, staging: Staging, entry: LedgerEntry, outcomes: Sequence[tuple[bytes, str, str | None]] = ()
    ) -> None:
        self.catalog.commit(self.books.act(staging, entry, outcomes))
        if any(path.startswith(f"{CARDS}/") and staging.read(path) is None for path in staging.paths()):
            self.catalog.forget()  # a card was removed: scan the folder again


def check_seen(seen: Mapping[str, str] | None, now: Mapping[str, str]) -> None:
    """Raise EditedSince unless the files are as the reviewer saw them; files that were not shown must not exist."""
    changed = [path for path, digest in now.items() if seen is not None and seen.get(path, "") != digest]
    if changed:
        raise EditedSince(
            f"{', '.join(changed)} changed since you looked at it; nothing was written",
            hint="look at it again",
            changed=tuple(changed),
        )


def _is_card(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == CARDS and check_card_name(name) is None


def _only_removes(draft: Draft) -> BadInput:
    """The error for a removal draft with edited text: approving it would lose the text."""
    what = f"draft {draft.id} only removes {' and '.join(draft.dropped)}; text in it would be lost"
    return BadInput(what, hint="reject it and edit the card")


def _removal(draft: Draft) -> Decision:
    """The decision for a draft that only removes cards."""
    return Decision(outcome="routed", findings=(), target=", ".join(draft.dropped))


def _digest(draft: Draft) -> bytes | None:
    try:
        return bytes.fromhex(draft.digest) or None
    except ValueError:
        return None
