"""Ingest: files every waiting handoff, finds it already filed, or sends it to review; then clears its inbox file.

Works in batches: inbox files are read and decided on, the batch is committed (ledger, files, done), and only then are
the inbox files moved to processed/. A file whose bytes the ledger knows is only moved. So a run can be killed at any
point and repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from truekeep.core.config import Config
from truekeep.core.dates import as_stamp, local_day
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import below_home
from truekeep.core.model import INDEX, FilingOutcome, HandoffOrigin, IngestReport
from truekeep.core.repository import find_top, irregular_file_failure, repository_name
from truekeep.handoffs.draft import Draft, draft_body, draft_id, reasons_of, render_draft
from truekeep.handoffs.inbox import PROCESSED, Inbox, InboxFile, InboxReader, SkippedFile
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, Retry, Routes
from truekeep.handoffs.policy.plan import file_as_bug, is_contained, plan_filing
from truekeep.handoffs.policy_store import StoredMemoryView
from truekeep.memory.ledger import HandoffRow, LedgerEntry
from truekeep.memory.memory_index import is_over_budget
from truekeep.memory.similarity import Catalog
from truekeep.memory.staging import Staging
from truekeep.memory.transaction import EditedMeanwhile, MemoryTransaction, WriteRefused
from truekeep.text.secrets.scanner import find_secrets, withhold
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference
from truekeep.verify.content_verifier import ContentVerifier
from truekeep.verify.same_name_checkouts import SameNames

BATCH = 256
_RETRY_SECONDS = 0.05


class Ingest:
    """One run over the inboxes."""

    def __init__(
        self,
        inboxes: InboxReader,
        waiting: Sequence[tuple[str, Inbox]],
        books: MemoryTransaction,
        catalog: Catalog,
        config: Config,
        *,
        machine: str,
        now: datetime,
        routes: Routes,
        dry_run: bool,
        on_filed: Callable[[FilingOutcome], None],
        verifier: ContentVerifier | None = None,
    ) -> None:
        self._waiting = waiting
        self.inboxes, self.books, self.catalog, self.config = inboxes, books, catalog, config
        self.machine, self.now, self.routes, self.dry_run, self.on_filed = machine, now, routes, dry_run, on_filed
        self.report = IngestReport(dry_run=dry_run)
        self._at = as_stamp(now)
        self._repositories: dict[Path, str] = {}
        self._same_names = SameNames(books.ledger, machine, config.writers)
        home = Path.home()
        self._shown_inboxes = {
            inbox: withhold(printable(inbox.shown or below_home(inbox.path, home))) for inbox in inboxes.inboxes
        }
        self._noted_inboxes = {
            inbox: f"{inbox.machine}:{inbox.there}/{inbox.folder}" if inbox.there else shown
            for inbox, shown in self._shown_inboxes.items()
        }
        self._staging = Staging(books.vault)
        self._view = StoredMemoryView(books.vault, books.ledger, catalog, self._staging, verifier=verifier)
        self._seen: set[bytes] = set()
        self._crashed: dict[bytes, Decision] = {}  # files that truekeep crashed on while staging them

    def run(self) -> IngestReport:
        """File every waiting handoff."""
        settling: list[tuple[str, Inbox]] = []
        batch: list[InboxFile] = []
        for name, inbox in self._waiting:
            file = self.inboxes.read(name, inbox)
            if isinstance(file, InboxFile):
                batch.append(file)
                if len(batch) >= BATCH:
                    self._file(batch)
                    batch = []
            elif isinstance(file, SkippedFile):
                if file.is_settling:
                    settling.append((name, inbox))
                else:
                    self._skip(file)
        self._file(batch)
        self._file_settled(settling)
        for problem in self.inboxes.problems:
            self._skip(problem)
        self._warn_of_budget()
        return self.report

    def _file_settled(self, settling: list[tuple[str, Inbox]]) -> None:
        """Read files again that were too recent, after one quiet period for all of them."""
        if not settling:
            return
        time.sleep(self.config.limits.settle_seconds)
        batch: list[InboxFile] = []
        for name, inbox in settling:
            file = self.inboxes.read(name, inbox)
            if isinstance(file, InboxFile):
                batch.append(file)
            elif file is not None:
                self._skip(file)
        for start in range(0, len(batch), BATCH):
            self._file(batch[start : start + BATCH])

    def _file(self, files: list[InboxFile]) -> None:
        """Decide on and commit a batch. Files whose target cannot be written are left out, and the rest is retried."""
        overtaken = 0
        while files:
            try:
                plan = self._plan(files)
                if not self.dry_run:
                    self._commit(plan)
            except _CannotStage as error:
                files = self._fail([error.file], files, error.why)
            except _CrashedOn as error:
                self._discard_plan(files)
                self._crashed[error.file.digest] = error.decision
            except WriteRefused as refusal:
                needing = [item.file for item in plan if item.needs(refusal.path)] or files
                files = self._fail(needing, files, f"{refusal.path} cannot be written: {refusal.why}")
            except EditedMeanwhile as error:
                # A person edited a file. Its handoffs were dropped from the ledger and are decided on again.
                overtaken += 1
                time.sleep(_RETRY_SECONDS * overtaken)  # wait until the file is saved
                self.catalog.forget()
                again = [file for file in files if not self.books.ledger.find_handoff(file.digest)]
                self._clear([item for item in plan if item.file not in again])
                files = again if overtaken < 5 else self._fail(again, again, f"{error} keeps changing")
                self._seen.difference_update(file.digest for file in files)
            else:
                self._clear(plan)
                return

    def _plan(self, files: list[InboxFile]) -> list[_PlannedFile]:
        """Decide on files in their order; each sees what the ones before it will write."""
        if not self.dry_run:
            self._staging = Staging(self.books.vault, after=self._staging)
            self._view.restage(self._staging)
        plan: list[_PlannedFile] = []
        number = 0
        known = self.books.ledger.find_handoffs([file.digest for file in files])
        with self.catalog.snapshot():
            for file in files:
                judged = self._judge(file, known.get(file.digest))
                if judged.decision is not None:
                    self._prepare(number, judged)
                    number += 1
                plan.append(judged)
        return plan

    def _prepare(self, number: int, judged: _PlannedFile) -> None:
        """Stage a file and build its ledger rows. If truekeep crashes, it goes to review or stays in the inbox."""
        file, decision = judged.file, judged.decision
        assert decision is not None
        try:
            self._stage(number, judged)
            judged.entry, judged.record = self._entry(judged, decision), self._record(judged, decision)
        except UnsafePath as error:
            raise _CannotStage(file, f"{error}; put a regular file there and run ingest again") from error
        except (ChangedSince, OSError) as error:
            raise _CannotStage(file, str(error)) from error
        except Exception as error:
            if not is_contained(error):
                raise
            if file.digest in self._crashed:
                raise _CannotStage(
                    file, f"truekeep crashed ({type(error).__name__}); details are in bugs.log"
                ) from error
            raise _CrashedOn(file, file_as_bug(error, self._candidate(file, judged.repository), self.config)) from error

    def _discard_plan(self, files: Sequence[InboxFile]) -> None:
        """Discard the plan for these files, so that they are decided on again."""
        self.catalog.unstage()
        if self.dry_run:
            self._staging = Staging(self.books.vault)
            self._view.restage(self._staging)
        self._seen.difference_update(file.digest for file in files)

    def _fail(self, failed: Sequence[InboxFile], files: list[InboxFile], why: str) -> list[InboxFile]:
        """Leave files in their inbox with the reason; the others are decided on again."""
        self._discard_plan(files)
        for file in failed:
            self._report(_PlannedFile(file, None, "", failure=why), None)
        return [file for file in files if file not in failed]

    def _judge(self, file: InboxFile, known: HandoffRow | None) -> _PlannedFile:
        if known is not None or file.digest in self._seen:
            return _PlannedFile(file, None, "", known=known)
        repository = ""
        try:
            if why := self._unreadable(file.inbox):
                return _PlannedFile(file, None, "", failure=why)
            repository = self._repository(file.inbox)
            decision = self._crashed.get(file.digest) or self._plan_filing(file, repository)
        except Retry as error:
            return _PlannedFile(file, None, repository, failure=f"{error} is being changed; the next run tries again")
        except UnsafePath as error:
            return _PlannedFile(file, None, repository, failure=str(error))
        except OSError as error:
            return _PlannedFile(file, None, repository, failure=f"{error.filename or ''} {error.strerror}".strip())
        except Exception as error:
            if not is_contained(error):
                raise
            decision = file_as_bug(error, self._candidate(file, repository), self.config)
        self._seen.add(file.digest)
        # If a person edited the index first, the card is already there, from this same file.
        begun = self.books.ledger.remaining_verb(file.digest) if decision.outcome == "already" else ""
        return _PlannedFile(file, decision, repository, outcome=begun or decision.outcome)

    def _plan_filing(self, file: InboxFile, repository: str) -> Decision:
        here = (
            None if file.inbox.repository or file.inbox.there else file.inbox.root
        )  # from another machine: any checkout will do
        self._view.from_repository(here, file.inbox.repository)
        return plan_filing(
            self._candidate(file, repository),
            self._view,
            self.config,
            today=self.now.date(),
            now=self.now,
            routes=self.routes,
        )

    def _candidate(self, file: InboxFile, repository: str) -> IncomingHandoff:
        return IncomingHandoff(
            raw=file.raw,
            name=file.name,
            size=file.size,
            repository=repository,
            writer=file.inbox.writer,
            machine=file.inbox.machine,
            same_name=self._same_name(file.inbox, repository),
        )

    def _stage(self, number: int, judged: _PlannedFile) -> None:
        decision = judged.decision
        assert decision is not None
        if self.dry_run and decision.data is not None and decision.outcome in ("promoted", "routed"):
            old = self._staging.read(decision.target)
            new = decision.data if decision.is_whole else (old or b"") + decision.data
            judged.difference = difference(old, new, decision.target)
        self._view.stage(decision, number)
        if decision.outcome == "review":
            draft = self._draft(judged)
            self._staging.put(draft.path, render_draft(draft), number)
            judged.target = draft.path

    def _draft(self, judged: _PlannedFile) -> Draft:
        file, decision = judged.file, judged.decision
        assert decision is not None
        kept, body = draft_body(file.raw, has_secret=decision.has_secret)
        return Draft(
            id=draft_id("" if decision.has_secret_name else file.name, file.digest),
            received_at=self._at,
            name=judged.shown_name,
            writer=file.inbox.writer,
            machine=file.inbox.machine or self.machine,
            repository=judged.repository,
            original=self._original(file) if not decision.has_secret_name else "",
            digest=file.digest.hex(),
            kept=kept,
            reasons=reasons_of(decision.blocking),
            target=decision.target,
            body=body,
        )

    def _original(self, file: InboxFile) -> str:
        name = file.name if self.dry_run else self.inboxes.processed_name(file)
        return f"{self._shown_inboxes[file.inbox]}/{PROCESSED}/{printable(name)}"

    def _commit(self, plan: Sequence[_PlannedFile]) -> None:
        entries = [item.entry for item in plan if item.entry is not None]
        records = [item.record for item in plan if item.record is not None]
        if not entries:
            return
        stamps = self.books.commit(self._staging, entries, records, at=self._at, whole=False)
        self.catalog.commit(stamps)
        self._seen.clear()  # from now on the ledger knows them

    def _entry(self, item: _PlannedFile, decision: Decision) -> LedgerEntry:
        note = _note(item, decision)
        return LedgerEntry(at=self._at, verb=item.outcome, actor="ingest", handoff=item.file.digest, note=note)

    def _record(self, item: _PlannedFile, decision: Decision) -> HandoffRow:
        return HandoffRow(
            digest=item.file.digest,
            origin=HandoffOrigin(
                writer=item.file.inbox.writer,
                machine=item.file.inbox.machine or self.machine,
                repository=item.repository,
                inbox=self._noted_inboxes[item.file.inbox],
                name=item.shown_name,
            ),
            title="" if decision.has_secret else printable(decision.title)[:200],
            received_at=self._at,
            outcome=item.outcome,
            target=item.target or decision.target,
            reasons=decision.findings,
        )

    def _clear(self, plan: Sequence[_PlannedFile]) -> None:
        """Report each file's outcome, and move it out of the inbox."""
        for item in plan:
            cleared = None if item.failure or self.dry_run else self.inboxes.clear(item.file)
            self._report(item, cleared)

    def _unreadable(self, inbox: Inbox) -> str:
        """Why a repository cannot be identified; "" if it can. Its handoffs stay in the inbox."""
        if inbox.repository or inbox.root in self._repositories:
            return ""
        failure = irregular_file_failure(str(find_top(inbox.root) or inbox.root))
        return printable(str(failure)) if failure is not None else ""

    def _repository(self, inbox: Inbox) -> str:
        known = self._repositories.get(inbox.root)
        if known is None:
            name = inbox.repository or ("" if inbox.there else repository_name(inbox.root))
            known = self._repositories[inbox.root] = withhold(printable(name))
        return known

    def _same_name(self, inbox: Inbox, repository: str) -> str:
        """The message if another repository with this name had handoffs first; else ""."""
        if inbox.repository or not repository:
            return ""
        return self._same_names.find_conflict(inbox.root, repository)

    def _report(self, item: _PlannedFile, cleared: str | None) -> None:
        decision = item.decision
        outcome = "failed" if item.failure else item.outcome
        why = item.failure or (decision.known_as if decision else "")
        if item.known is not None:
            why = f"known since {local_day(item.known.received_at)} ({item.known.outcome})"
        if not item.failure and cleared is None and not self.dry_run:
            what = f"{item.shown_name} could not be moved to processed/"
            self.report.warnings.append(f"{what} in {self._shown_inboxes[item.file.inbox]}")
            if item.known is not None:
                return  # a leftover of an earlier run
        self.report.counts[outcome] = self.report.count(outcome) + 1
        self.on_filed(
            FilingOutcome(
                outcome=outcome,
                name=item.shown_name,
                inbox=self._shown_inboxes[item.file.inbox],
                writer=item.file.inbox.writer,
                repository=item.repository,
                title="" if decision is None or decision.has_secret else decision.title,
                target=item.target or (decision.target if decision else item.known.target if item.known else ""),
                findings=decision.findings if decision else (),
                why=why,
                difference=item.difference,
            )
        )

    def _skip(self, skipped: SkippedFile) -> None:
        self.report.counts["skipped"] = self.report.count("skipped") + 1
        self.on_filed(
            FilingOutcome(
                outcome="skipped",
                name=withhold(printable(skipped.name)),
                inbox=self._shown_inboxes[skipped.inbox],
                writer=skipped.inbox.writer,
                repository="",
                why=skipped.why,
            )
        )

    def _warn_of_budget(self) -> None:
        limits = self.config.limits
        if self.dry_run or not self.report.count("promoted"):
            return
        stored = self.books.vault.read(INDEX)
        if stored is not None and is_over_budget(stored.data, lines=limits.index_lines, size=limits.index_bytes):
            size = f"{stored.data.count(10)} lines, {len(stored.data)} bytes"
            self.report.warnings.append(
                f"{INDEX} has {size}; agents cut it off at {limits.index_lines} lines or {limits.index_bytes} bytes"
            )


class _CannotStage(Exception):
    """A file that cannot be staged with the rest of its batch."""

    def __init__(self, file: InboxFile, why: str) -> None:
        super().__init__(why)
        self.file = file
        self.why = why


class _CrashedOn(Exception):
    """A file that truekeep crashed on while staging it, and the decision to use instead."""

    def __init__(self, file: InboxFile, decision: Decision) -> None:
        super().__init__(file.name)
        self.file = file
        self.decision = decision


@dataclass(slots=True)
class _PlannedFile:
    """An inbox file and what the run does with it."""

    file: InboxFile
    decision: Decision | None  # None: already known, or failed
    repository: str
    outcome: str = "already"
    known: HandoffRow | None = None
    failure: str = ""
    target: str = ""
    difference: tuple[str, ...] = ()
    entry: LedgerEntry | None = None
    record: HandoffRow | None = None
    _shown: str = ""

    def needs(self, path: str) -> bool:
        """True if filing this handoff writes the path."""
        decision = self.decision
        return decision is not None and (
            path in (self.target, decision.target) or (path == INDEX and bool(decision.card_name))
        )

    @property
    def shown_name(self) -> str:
        """The file's name, safe to store and show: no terminal codes, no credentials."""
        if not self._shown:
            is_secret = self.decision.has_secret_name if self.decision else bool(find_secrets(self.file.name))
            self._shown = f"handoff-{self.file.digest.hex()[:10]}.md" if is_secret else printable(self.file.name)
        return self._shown


def _note(item: _PlannedFile, decision: Decision) -> str:
    if decision.has_secret:
        return item.shown_name
    return printable(decision.title)[:200] or item.shown_name
