"""Handoffs: ingest what waits in the inboxes, judge without filing, write new ones, prune old ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.dates import as_stamp, local_day
from truekeep.core.errors import BadInput, BadSetup, InvalidHandoff, LedgerDamaged
from truekeep.core.model import OPENCLAW_INBOX, FilingOutcome, IngestReport
from truekeep.core.repository import find_top, irregular_file_failure, repository_name
from truekeep.core.state_dir import STATE
from truekeep.handoffs.inbox import Inbox, InboxReader, deliver, describe_other_files, prune_processed
from truekeep.handoffs.inbox_discovery import (
    all_inboxes,
    is_scanned,
    open_inboxes,
    read_waiting,
    reported_until,
    scan_inboxes,
)
from truekeep.text.unicode import printable
from truekeep.workspace.ingest_log import append_run

if TYPE_CHECKING:
    from truekeep.handoffs.adopt.note import SkippedNote
    from truekeep.handoffs.adopt.to_handoffs import AdoptionOutcome
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.policy.decision import Decision, UnsavedHandoff
    from truekeep.handoffs.policy_store import StoredMemoryView
    from truekeep.handoffs.sync.contact_history import RouteHistory
    from truekeep.handoffs.sync.routes import Route
    from truekeep.memory.ledger import WriterActivity
    from truekeep.memory.staging import Staging
    from truekeep.workspace.workspace import Workspace

_LOGGED_OUTCOMES = ("promoted", "routed", "already", "review", "refused", "skipped", "failed")
_MAX_CLOCK_GAP = timedelta(days=400)
_MAX_CLOCK_BACKSTEP = timedelta(days=1)


class Handoffs:
    """The handoffs of one workspace, and of the repositories that it looks after."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._context = workspace.context

    # Inboxes.

    def inboxes(self, repositories: Sequence[Path] | None = None) -> list[Inbox]:
        """The inboxes of the named repositories, else of the configured ones; always with the workspace's own."""
        return all_inboxes(self._context.path, self._context.config, repositories)

    def waiting(self) -> list[tuple[bytes, str, Path | None, str]]:
        """The waiting handoffs: bytes, file name, the repository's folder, and the path of each."""
        return read_waiting(self._context.path, self._context.config)

    def scan_inboxes(self) -> tuple[int, list[Path]]:
        """The number of waiting handoffs, and the files in the inboxes that are not handoffs."""
        return scan_inboxes(self._context.path, self._context.config)

    def is_scanned(self, root: Path) -> bool:
        """True if ingest scans this repository."""
        return is_scanned(root, self._context.path, self._context.config)

    def received(self, since: str) -> list[WriterActivity]:
        """The handoffs that came from each machine, writer and repository."""
        return self._context.ledger.received(since)

    def received_by_day(self, since: str) -> list[tuple[str, str, int]]:
        """The number of handoffs from each writer on each day."""
        return self._context.ledger.received_by_day(since)

    def sync_routes(self) -> list[tuple[Route, RouteHistory]]:
        """The sync routes to other machines, each with its last contacts."""
        from truekeep.handoffs.sync.contact_history import read_history
        from truekeep.handoffs.sync.routes import read_routes

        state = self._context.state.path
        return [(route, read_history(state, name)) for name, route in read_routes(state).items()]

    # Ingest.

    def ingest(
        self,
        *,
        repositories: Sequence[Path] | None = None,
        inboxes: Sequence[Inbox] | None = None,
        cards: bool = True,
        documents: bool = True,
        dry_run: bool = False,
        on_filed: Callable[[FilingOutcome], None] = lambda _: None,
    ) -> IngestReport:
        """File every waiting handoff. Running it again after a crash is safe.

        `inboxes`: of these and no others. If the ledger turns out to be damaged, it is set aside and the run starts
        over, once.
        """
        context = self._context
        started = context.now()
        for attempt in range(2):
            try:
                with context.writing("ingest"):
                    opened = self._open_inboxes(repositories, inboxes)
                    report = self._run_ingest(
                        opened, started, cards=cards, documents=documents, dry_run=dry_run, on_filed=on_filed
                    )
                    report.warnings[:0] = context.notices
                    if not dry_run:
                        self._log_run(report, started)
                    return report
            except LedgerDamaged as error:
                if attempt or "kept" not in error.details:
                    raise
                context.notice_damage(error.details["kept"])
        raise AssertionError("unreachable")

    def _open_inboxes(self, repositories: Sequence[Path] | None, chosen: Sequence[Inbox] | None) -> InboxReader:
        context = self._context
        if chosen is None:
            return open_inboxes(context.path, context.config, repositories)
        limits = context.config.limits
        return InboxReader(chosen, limit=limits.handoff_bytes, settle=limits.settle_seconds)

    def _run_ingest(
        self,
        inboxes: InboxReader,
        started: datetime,
        *,
        cards: bool,
        documents: bool,
        dry_run: bool,
        on_filed: Callable[[FilingOutcome], None],
    ) -> IngestReport:
        context = self._context
        try:
            waiting = inboxes.waiting()
            if not waiting and not inboxes.problems:  # the usual case: load and open nothing else
                report = IngestReport(dry_run=dry_run)
                report.warnings += describe_other_files(inboxes.others) if inboxes.others else ()
                return report
            from truekeep.handoffs.ingest import Ingest
            from truekeep.handoffs.policy.decision import Routes

            report = Ingest(
                inboxes,
                waiting,
                context.transaction,
                context.catalog,
                context.config,
                machine=context.machine.name,
                now=started,
                routes=Routes(cards=cards, documents=documents),
                dry_run=dry_run,
                on_filed=on_filed,
                verifier=self._workspace.verification.content_verifier,
            ).run()
            report.warnings += describe_other_files(inboxes.others)
            return report
        finally:
            inboxes.close()

    def _log_run(self, report: IngestReport, started: datetime) -> None:
        """Append one line a run to the logs of ingest, so that "did not run" differs from "found nothing"."""
        counts = " ".join(f"{name}={report.count(name)}" for name in _LOGGED_OUTCOMES)
        nothing = "" if report.processed else " NO_UPDATES"
        line = f"{as_stamp(started)} processed={report.processed} {counts}{nothing}"
        self._context.state.log("ingest.log", line)
        if failed := append_run(self._context.path, self._context.config.logs.ingest, line):
            report.warnings.append(f"{failed} could not be written; see [logs] in the configuration")

    # The policy, without filing.

    def memory_view(self, staging: Staging | None = None) -> StoredMemoryView:
        """Memory as the policy sees it, with the staged changes."""
        from truekeep.handoffs.policy_store import StoredMemoryView
        from truekeep.memory.staging import Staging

        vault = self._context.vault
        staged = staging or Staging(vault)
        verifier = self._workspace.verification.content_verifier
        return StoredMemoryView(vault, self._context.ledger, self._context.catalog, staged, verifier=verifier)

    def lint(self, letters: Sequence[UnsavedHandoff], *, writers: Sequence[str] = ()) -> list[Decision]:
        """Judge handoffs as ingest would, each after the ones before it; write nothing.

        `writers` has one for each handoff. Where it is "", an update counts as one by the card's own writer.
        """
        from dataclasses import replace

        from truekeep.handoffs.policy.decision import Decision, IncomingHandoff
        from truekeep.handoffs.policy.plan import file_as_bug, is_contained, plan_filing
        from truekeep.verify.same_name_checkouts import SameNames

        context, config, view = self._context, self._context.config, self.memory_view()
        same_names = SameNames(context.ledger, context.machine.name, config.writers)
        decisions: list[Decision] = []
        for (raw, name, root), writer in zip(letters, writers or [""] * len(letters), strict=True):
            known = context.ledger.find_handoff(hashlib.sha256(raw).digest())
            if known is not None:
                decisions.append(Decision(outcome="already", target=known.target, known_as=known.outcome))
                continue
            view.from_repository(root)
            repository = repository_name(root) if root else ""
            too_large = len(raw) > config.limits.handoff_bytes
            candidate = IncomingHandoff(
                raw=None if too_large else raw,
                name=name,
                size=len(raw),
                repository=repository,
                writer=writer,
                same_name=same_names.find_conflict(root, repository) if root else "",
            )
            decision = plan_filing(candidate, view, config, today=context.today())
            try:
                view.stage(decision, 0)
            except Exception as error:
                if not is_contained(error):
                    raise
                decision = file_as_bug(error, candidate, config)
            stuck = irregular_file_failure(str(find_top(root) or root)) if root else None
            decisions.append(replace(decision, held_up=printable(str(stuck))) if stuck is not None else decision)
        context.catalog.unstage()
        return decisions

    # Writing handoffs.

    def write(self, text: str, *, writer: str, name: str = "", root: Path | None = None) -> tuple[Path, Decision]:
        """Judge a handoff as ingest will, and write it into an inbox of the repository, or of the workspace."""
        from truekeep.handoffs.format import handoff_name

        context = self._context
        writers = {**OPENCLAW_INBOX, **context.config.writers}
        if writer not in writers:
            raise BadInput(f"no writer is called {writer!r}", hint=f"known: {', '.join(writers)}")
        raw = text.encode("utf-8", "surrogateescape")
        name = handoff_name(name or _title_of(text), context.now())
        if context.source is not None and root is None:
            raise BadSetup(
                f"memory here is a copy of {context.source.host}'s, and this folder is not a repository",
                hint="in a repository, this leaves a handoff",
            )
        is_for_root = root is not None and (context.source is not None or self.is_scanned(root))
        root = root if root is not None and is_for_root else context.path
        (decision,) = self.lint([(raw, name, root)], writers=[writer])
        if decision.outcome in ("review", "refused") and not decision.is_for_a_person:
            hint = decision.way_out(topic="another title", update="`card` {card} with `update`")
            raise InvalidHandoff("this handoff would not be filed, so it was not written", decision.blocking, hint=hint)
        return deliver(Inbox(root=root, folder=writers[writer], writer=writer), name, raw), decision

    def adopt(
        self, harness: str, *, given: Path | None = None, repository: Path | None = None, dry_run: bool = False
    ) -> tuple[list[AdoptionOutcome], list[SkippedNote]]:
        """Write handoffs for new notes of a harness's own memory, each into its repository's inbox."""
        from truekeep.handoffs.adopt.to_handoffs import AdoptionContext, bring

        context = self._context
        desk = AdoptionContext(
            home=context.path,
            writers=context.config.writers,
            judge=self.lint,
            has_card=self._workspace.cards.exists,
            memory_path=context.path / STATE / f"adopted-{context.machine.id[:8]}.json",
            knows_filed=True,
        )
        folders, now = self._workspace.repositories.folders(), context.now()
        return bring(harness, desk, folders=folders, now=now, given=given, repository=repository, dry_run=dry_run)

    # Pruning.

    def prune(
        self,
        *,
        older_than: timedelta | None = None,
        dry_run: bool = False,
        force: bool = False,
        by_hand: bool = True,
    ) -> tuple[list[Draft], list[str]]:
        """Remove drafts and processed handoffs that are past their age. Undo brings drafts back."""
        context = self._context
        with nullcontext() if dry_run else context.writing("prune"):
            review = self._workspace.review.open()
            limits = context.config.limits
            draft_age = older_than if older_than is not None else timedelta(days=limits.review_days)
            file_age = older_than if older_than is not None else timedelta(days=limits.processed_days)
            if not force:
                self._check_clock()
            drafts = review.expired(draft_age, by_hand=by_hand)
            expired = {draft.id for draft in drafts}
            keep = {draft.digest for draft in review.drafts() if draft.id not in expired}
            if not dry_run:
                for draft in drafts:
                    review.expire(review.get(draft.id))
            before = (context.now().astimezone(UTC) - file_age).timestamp()
            pruned: list[str] = []
            for inbox in self.inboxes():
                limit = min(before, reported_until(inbox, context.state.path)) if inbox.there else before
                pruned += prune_processed([inbox], before=limit, keep=keep, limit=limits.handoff_bytes, dry_run=dry_run)
            return drafts, pruned

    def _check_clock(self) -> None:
        """Raise if the clock seems to have jumped: everything would look old."""
        latest = self._context.ledger.latest_at()
        if not latest:
            return
        now = self._context.now()
        gap = now.astimezone(UTC) - datetime.fromisoformat(latest)
        if gap > _MAX_CLOCK_GAP or gap < -_MAX_CLOCK_BACKSTEP:
            raise BadInput(
                f"the clock says {now:%Y-%m-%d}, but the last entry is of {local_day(latest)}",
                hint="check the clock; --force prunes all the same",
            )


def _title_of(text: str) -> str:
    from truekeep.handoffs.format import parse_handoff

    with suppress(Exception):  # lint reports why it cannot be parsed
        return parse_handoff(text).title
    return ""
