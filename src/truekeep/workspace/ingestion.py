"""The desk of intake: one run of ingest with its log line, handoffs judged without filing them, and handoffs left.

`hold` holds a handoff's content against its repository, where the configuration wants that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, InvalidHandoff, LedgerDamaged
from truekeep.core.git import find_top, odd_file_failure, repository_name
from truekeep.core.model import FilingOutcome, IngestReport, as_stamp
from truekeep.handoffs.inbox import Inbox, deliver, prune_processed, tell_others
from truekeep.handoffs.inbox_discovery import all_inboxes, is_looked_into, open_inboxes, told_until
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.policy import Decision, Unposted
    from truekeep.handoffs.policy_store import Hold, StoredMemoryView
    from truekeep.handoffs.review import Review
    from truekeep.workspace.context import WorkspaceContext


class IngestOptions(NamedTuple):
    """What a run of ingest is to do."""

    repositories: Sequence[Path] | None
    cards: bool
    documents: bool
    dry_run: bool
    tell: Callable[[FilingOutcome], None]


def ingest(rooms: WorkspaceContext, wanted: IngestOptions, hold: Hold | None) -> IngestReport:
    """File every waiting handoff. A ledger that breaks meanwhile is set aside once, and the run begins again."""
    started = rooms.now()
    for attempt in range(2):
        try:
            with rooms.writing("ingest"):
                report = _ingest(rooms, wanted, hold, started)
                report.warnings[:0] = rooms.notices
                if not wanted.dry_run:
                    _log_run(rooms, report, started)
                return report
        except LedgerDamaged as error:
            if attempt or "kept" not in error.details:
                raise
            rooms.notice_damage(error.details["kept"])
    raise AssertionError("unreachable")


def _ingest(rooms: WorkspaceContext, wanted: IngestOptions, hold: Hold | None, started: datetime) -> IngestReport:
    inboxes = open_inboxes(rooms.path, rooms.config, wanted.repositories)
    try:
        waiting = inboxes.waiting()
        if not waiting and not inboxes.problems:
            report = IngestReport(dry_run=wanted.dry_run)  # the usual case by far: it must cost nothing but the look
            report.warnings += tell_others(inboxes.others) if inboxes.others else ()
            return report
        from truekeep.handoffs.ingest import Ingest
        from truekeep.handoffs.policy import Routes

        report = Ingest(
            inboxes,
            waiting,
            rooms.books,
            rooms.catalog,
            rooms.config,
            machine=rooms.machine.name,
            now=started,
            routes=Routes(cards=wanted.cards, documents=wanted.documents),
            dry_run=wanted.dry_run,
            tell=wanted.tell,
            hold=hold,
        ).run()
        report.warnings += tell_others(inboxes.others)
        return report
    finally:
        inboxes.close()


def _log_run(rooms: WorkspaceContext, report: IngestReport, started: datetime) -> None:
    """One line a run, so that "did not run" differs from "found nothing"."""
    names = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
    counts = " ".join(f"{name}={report.count(name)}" for name in names)
    nothing = "" if report.processed else " NO_UPDATES"
    rooms.state.log("ingest.log", f"{as_stamp(started)} processed={report.processed} {counts}{nothing}")


def lint(rooms: WorkspaceContext, shelf: StoredMemoryView, letters: Sequence[Unposted]) -> list[Decision]:
    """Judge handoffs as ingest would, each after the ones before; write nothing."""
    from truekeep.handoffs.policy import Decision, IncomingHandoff, file_as_bug, is_contained, plan_filing
    from truekeep.verify.same_name_checkouts import SameNames

    config = rooms.config
    same_names = SameNames(rooms.ledger, rooms.machine.name, config.writers)
    filings: list[Decision] = []
    for raw, name, root in letters:
        known = rooms.ledger.find_handoff(hashlib.sha256(raw).digest())
        if known is not None:
            filings.append(Decision(outcome="already", findings=(), target=known.target, known_as=known.outcome))
            continue
        shelf.from_repository(root)
        repository = repository_name(root) if root else ""
        too_large = len(raw) > config.limits.handoff_bytes
        candidate = IncomingHandoff(
            raw=None if too_large else raw,
            name=name,
            size=len(raw),
            repository=repository,
            writer="lint",
            same_name=same_names.tell(root, repository) if root else "",
        )
        filing = plan_filing(candidate, shelf, config, today=rooms.today())
        try:
            shelf.stage(filing, 0)
        except Exception as error:
            if not is_contained(error):
                raise
            filing = file_as_bug(error, candidate, config)
        stuck = odd_file_failure(str(find_top(root) or root)) if root else None
        filings.append(replace(filing, held_up=printable(str(stuck))) if stuck is not None else filing)
    rooms.catalog.unstage()
    return filings


def leave_handoff(
    rooms: WorkspaceContext, shelf: StoredMemoryView, text: str, *, writer: str, name: str, root: Path | None
) -> tuple[Path, Decision]:
    """Judge a handoff as ingest will, and leave it in a writer's inbox: a repository's, or the workspace's own."""
    from truekeep.handoffs.format import handoff_name

    writers = rooms.config.writers
    if writer not in writers:
        raise BadInput(f"no writer is called {writer!r}", hint=f"known: {', '.join(writers)}")
    raw = text.encode("utf-8", "surrogateescape")
    name = handoff_name(name or _title_of(text), rooms.now())
    root = root if root is not None and is_looked_into(root, rooms.path, rooms.config) else rooms.path
    (filing,) = lint(rooms, shelf, [(raw, name, root)])
    if filing.outcome in ("review", "refused"):
        hint = filing.way_out(topic="another title", update="`card` {card} with `update`")
        raise InvalidHandoff("this handoff would not be filed, so it was not written", filing.blocking, hint=hint)
    return deliver(Inbox(root=root, folder=writers[writer], writer=writer), name, raw), filing


def _title_of(text: str) -> str:
    from truekeep.handoffs.format import parse_handoff

    with suppress(Exception):  # the judge tells why it cannot be read
        return parse_handoff(text).title
    return ""


def prune(
    rooms: WorkspaceContext, review: Review, *, older_than: timedelta | None, dry_run: bool, force: bool
) -> tuple[list[Draft], list[str]]:
    """Remove drafts and processed handoffs that have waited past their age. Whoever calls has the lock."""
    limits = rooms.config.limits
    draft_age = older_than if older_than is not None else timedelta(days=limits.review_days)
    file_age = older_than if older_than is not None else timedelta(days=limits.processed_days)
    if not force:
        _check_clock(rooms)
    drafts = review.expired(draft_age)
    gone = {draft.id for draft in drafts}
    keep = {draft.digest for draft in review.drafts() if draft.id not in gone}
    if not dry_run:
        for draft in drafts:
            review.expire(review.get(draft.id))
    before = (rooms.now().astimezone(UTC) - file_age).timestamp()
    pruned: list[str] = []
    for inbox in all_inboxes(rooms.path, rooms.config):
        old = min(before, told_until(inbox, rooms.state.path)) if inbox.there else before
        pruned += prune_processed([inbox], before=old, keep=keep, limit=limits.handoff_bytes, dry_run=dry_run)
    return drafts, pruned


def _check_clock(rooms: WorkspaceContext) -> None:
    """A clock that jumped makes everything look old. Ask before deleting on its word."""
    latest = rooms.ledger.latest_at()
    if not latest:
        return
    now = rooms.now()
    gap = now.astimezone(UTC) - datetime.fromisoformat(latest)
    if gap > timedelta(days=400) or gap < -timedelta(days=1):
        raise BadInput(
            f"the clock says {now:%Y-%m-%d}, but the last entry is of {latest[:10]}",
            hint="check the clock; --force prunes all the same",
        )
