"""Ingest: every waiting handoff is filed, found to be filed already, or put to review; then its file is cleared away.

Works in batches: letters are read and judged, the batch is committed (ledger, files, done), and only then are the
letters moved to processed/. A letter whose bytes the ledger knows is simply cleared. So a run can be killed anywhere
and repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from truekeep.core.config import Config
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.git import find_top, irregular_file_failure, repository_name
from truekeep.core.machine import below_home
from truekeep.core.model import INDEX, FilingOutcome, HandoffOrigin, IngestReport, as_stamp
from truekeep.handoffs.draft import Draft, draft_body, draft_id, reasons_of, render_draft
from truekeep.handoffs.inbox import PROCESSED, Inbox, InboxReader, Letter, SkippedFile
from truekeep.handoffs.policy import Decision, IncomingHandoff, Retry, Routes, file_as_bug, is_contained, plan_filing
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
_A_MOMENT = 0.05


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
        tell: Callable[[FilingOutcome], None],
        verifier: ContentVerifier | None = None,
    ) -> None:
        self._waiting = waiting
        self.inboxes, self.books, self.catalog, self.config = inboxes, books, catalog, config
        self.machine, self.now, self.routes, self.dry_run, self.tell = machine, now, routes, dry_run, tell
        self.report = IngestReport(dry_run=dry_run)
        self._at = as_stamp(now)
        self._repositories: dict[Path, str] = {}
        self._same_names = SameNames(books.ledger, machine, config.writers)
        home = Path.home()
        self._shown_inboxes = {inbox: withhold(printable(below_home(inbox.path, home))) for inbox in inboxes.inboxes}
        self._noted_inboxes = {
            inbox: f"{inbox.machine}:{inbox.there}/{inbox.folder}" if inbox.there else shown
            for inbox, shown in self._shown_inboxes.items()
        }
        self._staging = Staging(books.vault)
        self._shelf = StoredMemoryView(books.vault, books.ledger, catalog, self._staging, verifier=verifier)
        self._seen: set[bytes] = set()
        self._buggy: dict[bytes, Decision] = {}  # letters that truekeep failed on when they were staged

    def run(self) -> IngestReport:
        """File everything that waits."""
        settling: list[tuple[str, Inbox]] = []
        batch: list[Letter] = []
        for name, inbox in self._waiting:
            letter = self.inboxes.read(name, inbox)
            if isinstance(letter, Letter):
                batch.append(letter)
                if len(batch) >= BATCH:
                    self._file(batch)
                    batch = []
            elif isinstance(letter, SkippedFile):
                if letter.is_settling:
                    settling.append((name, inbox))
                else:
                    self._skip(letter)
        self._file(batch)
        self._file_settled(settling)
        for problem in self.inboxes.problems:
            self._skip(problem)
        self._warn_of_budget()
        return self.report

    def _file_settled(self, settling: list[tuple[str, Inbox]]) -> None:
        """Look again at letters that were too fresh, after one quiet period for all of them."""
        if not settling:
            return
        time.sleep(self.config.limits.settle_seconds)
        batch: list[Letter] = []
        for name, inbox in settling:
            letter = self.inboxes.read(name, inbox)
            if isinstance(letter, Letter):
                batch.append(letter)
            elif letter is not None:
                self._skip(letter)
        for start in range(0, len(batch), BATCH):
            self._file(batch[start : start + BATCH])

    def _file(self, letters: list[Letter]) -> None:
        """Judge and commit a batch; what one bad target spoils is left out and the rest tried again."""
        overtaken = 0
        while letters:
            try:
                plan = self._plan(letters)
                if not self.dry_run:
                    self._commit(plan)
            except _CannotStage as error:
                letters = self._fail([error.letter], letters, error.why)
            except _Buggy as error:
                self._unjudge(letters)
                self._buggy[error.letter.digest] = error.filing
            except WriteRefused as refusal:
                needing = [item.letter for item in plan if item.needs(refusal.path)] or letters
                letters = self._fail(needing, letters, f"{refusal.path} cannot be written: {refusal.why}")
            except EditedMeanwhile as error:
                # A person edited a file meanwhile. What concerned it was dropped from the ledger and is judged anew.
                overtaken += 1
                time.sleep(_A_MOMENT * overtaken)  # whoever is saving a file needs one
                self.catalog.forget()
                again = [letter for letter in letters if not self.books.ledger.find_handoff(letter.digest)]
                self._clear([item for item in plan if item.letter not in again])
                letters = again if overtaken < 5 else self._fail(again, again, f"{error} keeps changing")
                self._seen.difference_update(letter.digest for letter in letters)
            else:
                self._clear(plan)
                return

    def _plan(self, letters: list[Letter]) -> list[_LetterInRun]:
        """Judge the letters in their order; each sees what the ones before it will have written."""
        if not self.dry_run:
            self._staging = Staging(self.books.vault, after=self._staging)
            self._shelf.restage(self._staging)
        plan: list[_LetterInRun] = []
        number = 0
        known = self.books.ledger.find_handoffs([letter.digest for letter in letters])
        with self.catalog.snapshot():
            for letter in letters:
                judged = self._judge(letter, known.get(letter.digest))
                if judged.filing is not None:
                    self._prepare(number, judged)
                    number += 1
                plan.append(judged)
        return plan

    def _prepare(self, number: int, judged: _LetterInRun) -> None:
        """Stage a letter and write its record; one on which truekeep fails goes to review, or stays where it is."""
        letter, filing = judged.letter, judged.filing
        assert filing is not None
        try:
            self._stage(number, judged)
            judged.entry, judged.record = self._entry(judged, filing), self._record(judged, filing)
        except UnsafePath as error:
            raise _CannotStage(letter, f"{error}; put a plain one there and run ingest again") from error
        except (ChangedSince, OSError) as error:
            raise _CannotStage(letter, str(error)) from error
        except Exception as error:
            if not is_contained(error):
                raise
            if letter.digest in self._buggy:
                raise _CannotStage(letter, f"{type(error).__name__}: a bug in truekeep") from error
            raise _Buggy(letter, file_as_bug(error, self._candidate(letter, judged.repository), self.config)) from error

    def _unjudge(self, letters: Sequence[Letter]) -> None:
        """Forget what was planned for letters: they are judged anew."""
        self.catalog.unstage()
        if self.dry_run:
            self._staging = Staging(self.books.vault)
            self._shelf.restage(self._staging)
        self._seen.difference_update(letter.digest for letter in letters)

    def _fail(self, failed: Sequence[Letter], letters: list[Letter], why: str) -> list[Letter]:
        """Leave letters in their inbox, with the reason; the others are judged anew."""
        self._unjudge(letters)
        for letter in failed:
            self._tell(_LetterInRun(letter, None, "", failure=why), None)
        return [letter for letter in letters if letter not in failed]

    def _judge(self, letter: Letter, known: HandoffRow | None) -> _LetterInRun:
        if known is not None or letter.digest in self._seen:
            return _LetterInRun(letter, None, "", known=known)
        repository = ""
        try:
            if why := self._unreadable(letter.inbox):
                return _LetterInRun(letter, None, "", failure=why)
            repository = self._repository(letter.inbox)
            filing = self._buggy.get(letter.digest) or self._plan_filing(letter, repository)
        except Retry as error:
            return _LetterInRun(letter, None, repository, failure=f"{error} changed just now; the next run looks again")
        except UnsafePath as error:
            return _LetterInRun(letter, None, repository, failure=str(error))
        except OSError as error:
            return _LetterInRun(letter, None, repository, failure=f"{error.filename or ''} {error.strerror}".strip())
        except Exception as error:
            if not is_contained(error):
                raise
            filing = file_as_bug(error, self._candidate(letter, repository), self.config)
        self._seen.add(letter.digest)
        # Where a person was faster with the index, the card is there, from this very letter.
        begun = self.books.ledger.begun_as(letter.digest) if filing.outcome == "already" else ""
        return _LetterInRun(letter, filing, repository, outcome=begun or filing.outcome)

    def _plan_filing(self, letter: Letter, repository: str) -> Decision:
        here = None if letter.inbox.repository else letter.inbox.root  # elsewhere: any checkout of it will do
        self._shelf.from_repository(here, letter.inbox.repository)
        return plan_filing(
            self._candidate(letter, repository),
            self._shelf,
            self.config,
            today=self.now.date(),
            now=self.now,
            routes=self.routes,
        )

    def _candidate(self, letter: Letter, repository: str) -> IncomingHandoff:
        return IncomingHandoff(
            raw=letter.raw,
            name=letter.name,
            size=letter.size,
            repository=repository,
            writer=letter.inbox.writer,
            machine=letter.inbox.machine,
            same_name=self._same_name(letter.inbox, repository),
        )

    def _stage(self, number: int, judged: _LetterInRun) -> None:
        filing = judged.filing
        assert filing is not None
        if self.dry_run and filing.data is not None and filing.outcome in ("promoted", "routed"):
            old = self._staging.read(filing.target)
            new = filing.data if filing.is_whole else (old or b"") + filing.data
            judged.difference = difference(old, new, filing.target)
        self._shelf.stage(filing, number)
        if filing.outcome == "review":
            draft = self._draft(judged)
            self._staging.put(draft.path, render_draft(draft), number)
            judged.target = draft.path

    def _draft(self, judged: _LetterInRun) -> Draft:
        letter, filing = judged.letter, judged.filing
        assert filing is not None
        kept, body = draft_body(letter.raw, has_secret=filing.has_secret)
        return Draft(
            id=draft_id("" if filing.has_secret_name else letter.name, letter.digest),
            received_at=self._at,
            name=judged.shown_name,
            writer=letter.inbox.writer,
            machine=letter.inbox.machine or self.machine,
            repository=judged.repository,
            original=self._original(letter) if not filing.has_secret_name else "",
            digest=letter.digest.hex(),
            kept=kept,
            reasons=reasons_of(filing.blocking),
            target=filing.target,
            body=body,
        )

    def _original(self, letter: Letter) -> str:
        name = letter.name if self.dry_run else self.inboxes.processed_name(letter)
        return f"{self._shown_inboxes[letter.inbox]}/{PROCESSED}/{printable(name)}"

    def _commit(self, plan: Sequence[_LetterInRun]) -> None:
        entries = [item.entry for item in plan if item.entry is not None]
        records = [item.record for item in plan if item.record is not None]
        if not entries:
            return
        stamps = self.books.commit(self._staging, entries, records, at=self._at, whole=False)
        self.catalog.commit(stamps)
        self._seen.clear()  # from now on the ledger knows them

    def _entry(self, item: _LetterInRun, filing: Decision) -> LedgerEntry:
        note = _note(item, filing)
        return LedgerEntry(at=self._at, verb=item.outcome, actor="ingest", handoff=item.letter.digest, note=note)

    def _record(self, item: _LetterInRun, filing: Decision) -> HandoffRow:
        return HandoffRow(
            digest=item.letter.digest,
            origin=HandoffOrigin(
                writer=item.letter.inbox.writer,
                machine=item.letter.inbox.machine or self.machine,
                repository=item.repository,
                inbox=self._noted_inboxes[item.letter.inbox],
                name=item.shown_name,
            ),
            title="" if filing.has_secret else printable(filing.title)[:200],
            received_at=self._at,
            outcome=item.outcome,
            target=item.target or filing.target,
            reasons=filing.findings,
        )

    def _clear(self, plan: Sequence[_LetterInRun]) -> None:
        """Tell how each letter ended, and move it out of the inbox."""
        for item in plan:
            cleared = None if item.failure or self.dry_run else self.inboxes.clear(item.letter)
            self._tell(item, cleared)

    def _unreadable(self, inbox: Inbox) -> str:
        """Why a repository cannot say which one it is; its handoffs stay where they are."""
        if inbox.repository or inbox.root in self._repositories:
            return ""
        failure = irregular_file_failure(str(find_top(inbox.root) or inbox.root))
        return printable(str(failure)) if failure is not None else ""

    def _repository(self, inbox: Inbox) -> str:
        known = self._repositories.get(inbox.root)
        if known is None:
            name = inbox.repository or repository_name(inbox.root)
            known = self._repositories[inbox.root] = withhold(printable(name))
        return known

    def _same_name(self, inbox: Inbox, repository: str) -> str:
        """What to say where the repository has the name of another one, whose handoffs came first; else empty."""
        if inbox.repository or not repository:
            return ""
        return self._same_names.tell(inbox.root, repository)

    def _tell(self, item: _LetterInRun, cleared: str | None) -> None:
        filing = item.filing
        outcome = "failed" if item.failure else item.outcome
        why = item.failure or (filing.known_as if filing else "")
        if item.known is not None:
            why = f"known since {item.known.received_at[:10]} ({item.known.outcome})"
        if not item.failure and cleared is None and not self.dry_run:
            what = f"{item.shown_name} could not be moved to processed/"
            self.report.warnings.append(f"{what} in {self._shown_inboxes[item.letter.inbox]}")
            if item.known is not None:
                return  # the same leftover as in the last run: nothing happened
        self.report.counts[outcome] = self.report.count(outcome) + 1
        self.tell(
            FilingOutcome(
                outcome=outcome,
                name=item.shown_name,
                inbox=self._shown_inboxes[item.letter.inbox],
                writer=item.letter.inbox.writer,
                repository=item.repository,
                title="" if filing is None or filing.has_secret else filing.title,
                target=item.target or (filing.target if filing else item.known.target if item.known else ""),
                findings=filing.findings if filing else (),
                why=why,
                difference=item.difference,
            )
        )

    def _skip(self, skipped: SkippedFile) -> None:
        self.report.counts["skipped"] = self.report.count("skipped") + 1
        self.tell(
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
    """A letter that cannot be put together with the others of its batch."""

    def __init__(self, letter: Letter, why: str) -> None:
        super().__init__(why)
        self.letter = letter
        self.why = why


class _Buggy(Exception):
    """A letter that truekeep failed on when it was staged, and what it becomes instead."""

    def __init__(self, letter: Letter, filing: Decision) -> None:
        super().__init__(letter.name)
        self.letter = letter
        self.filing = filing


@dataclass(slots=True)
class _LetterInRun:
    """A letter on its way through the run."""

    letter: Letter
    filing: Decision | None  # None: known already, or it failed
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
        """Whether this letter's filing writes a file."""
        filing = self.filing
        return filing is not None and (
            path in (self.target, filing.target) or (path == INDEX and bool(filing.card_name))
        )

    @property
    def shown_name(self) -> str:
        """The file's name as it may be written down: never a terminal code, never a credential."""
        if not self._shown:
            is_secret = self.filing.has_secret_name if self.filing else bool(find_secrets(self.letter.name))
            self._shown = f"handoff-{self.letter.digest.hex()[:10]}.md" if is_secret else printable(self.letter.name)
        return self._shown


def _note(item: _LetterInRun, filing: Decision) -> str:
    if filing.has_secret:
        return item.shown_name
    return printable(filing.title)[:200] or item.shown_name
