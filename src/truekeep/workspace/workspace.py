"""The desk: opens a workspace and introduces its rooms to each other. Its methods are the product's verbs.

Every door (command line, hooks, MCP, web) comes through here. Reading verbs need nothing; writing verbs need this
machine to be the canonical host and take the workspace's lock. How a verb does its work is told where its story is; the
modules of a story are imported with its first verb.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep.core.config import Config
from truekeep.core.errors import BadInput, BadSetup, Busy, EditedSince, as_argument
from truekeep.core.file_io import UnsafePath, read_head
from truekeep.core.machine import own_state, person
from truekeep.core.model import CARDS, FilingOutcome, IngestReport
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.verify.checkouts import choose_checkout
from truekeep.workspace.context import WorkspaceContext

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostStatus, Tenure
    from truekeep.core.machine import Machine
    from truekeep.handoffs.adopt.note import SkippedNote as SkippedNote
    from truekeep.handoffs.adopt.to_handoffs import AdoptionOutcome
    from truekeep.handoffs.draft import Draft
    from truekeep.handoffs.inbox import Inbox
    from truekeep.handoffs.policy import Decision, Unposted
    from truekeep.handoffs.policy_store import Hold, StoredMemoryView
    from truekeep.handoffs.review import Known, Proposal, Review
    from truekeep.handoffs.sync.contact_history import RouteHistory as SyncHistory
    from truekeep.handoffs.sync.routes import Route
    from truekeep.maintenance.repair import Repair
    from truekeep.maintenance.survey.queries import Browse
    from truekeep.maintenance.survey.queries import MemoryFileSummary as Browsed
    from truekeep.maintenance.survey.service import Survey, SurveyRefresh
    from truekeep.memory.card import Card
    from truekeep.memory.history import BlamedLine, Undoing
    from truekeep.memory.ledger import HandoffRow, LedgerEntry, LedgerQuery, WriterActivity
    from truekeep.memory.staging import FileOnDisk, Staging
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.search.build import IndexReport
    from truekeep.search.excerpt import Excerpt
    from truekeep.search.searcher import Hit
    from truekeep.search.service import SearchResult, Status
    from truekeep.sessions.checkpoint import Checkpoint
    from truekeep.sessions.packing import Brief
    from truekeep.transcripts.importer import TranscriptImportReport
    from truekeep.transcripts.service import Archive
    from truekeep.verify.checkouts import Checkout as CheckoutFolder
    from truekeep.verify.match_repositories import AssignmentOutcome, Match
    from truekeep.verify.resolve import Resolution
    from truekeep.verify.results import CheckedMemory
    from truekeep.workspace.briefing import Say
    from truekeep.workspace.checkpointing import CheckpointResult
    from truekeep.workspace.health_history import Day
    from truekeep.workspace.init import InitReport
    from truekeep.workspace.verification import Inspection

RANKINGS = ("truekeep", "openclaw")
_WAITED_FOR = 300  # files that somebody waits for being read
_LATELY = 3.0  # seconds for which a list of files may be looked through again


def default_path() -> Path:
    from truekeep.core.default_workspace import find_workspace

    return _expanded(Path(find_workspace()))


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise BadSetup(f"{path}: {error}", hint="name the folder in full") from error


class Workspace:
    """One canonical memory."""

    def __init__(self, path: Path, *, now: Callable[[], datetime] | None = None) -> None:
        self.path = path
        self._rooms = WorkspaceContext(path, now or (lambda: datetime.now().astimezone()))
        self.surveyed: SurveyRefresh | None = None  # by the last survey
        self._drafts: Known = {}  # as they were read
        self._judged_drafts: Known = {}

    @classmethod
    def open(cls, path: Path | None = None, *, now: Callable[[], datetime] | None = None) -> Workspace:
        """Open an existing workspace."""
        chosen = _expanded(path or default_path())
        if not (chosen / STATE).is_dir():
            there = "is not a truekeep workspace" if chosen.is_dir() else "does not exist"
            raise BadSetup(f"{chosen} {there}", hint=_how_to_begin(chosen))
        workspace = cls(Path(os.path.abspath(chosen)), now=now)
        workspace.state.check_format()
        return workspace

    @classmethod
    def init(
        cls,
        path: Path | None = None,
        *,
        repositories: Sequence[str] = (),
        is_bare: bool = False,
        now: Callable[[], datetime] | None = None,
    ) -> InitReport:
        """Make a workspace, or adopt an existing folder of Markdown memory without touching a file in it.

        A bare one has no memory of its own yet: somebody brings it.
        """
        from truekeep.workspace.init import found

        chosen = Path(os.path.abspath(_expanded(path or default_path())))
        with cls(chosen, now=now) as workspace:
            return found(workspace._rooms, tuple(repositories), is_bare=is_bare)

    def close(self) -> None:
        self._rooms.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # What it is, and its rooms.

    @property
    def state(self) -> StateFolder:
        return self._rooms.state

    @property
    def config(self) -> Config:
        return self._rooms.config

    @property
    def machine(self) -> Machine:
        return self._rooms.machine

    @property
    def notices(self) -> list[str]:
        """What whoever ran a command should hear of."""
        return self._rooms.notices

    @property
    def is_canonical(self) -> bool:
        """Whether this machine is the one that may write the workspace."""
        return self.state.host().id == self.machine.id

    def moment(self) -> datetime:
        return self._rooms.now()

    def today(self) -> date:
        return self._rooms.today()

    def stamp(self) -> str:
        """Now, as the ledger writes it."""
        return self._rooms.stamp()

    @contextmanager
    def writing(self, what: str) -> Iterator[MemoryTransaction]:
        """The books, for whoever brings files of its own."""
        with self._rooms.writing(what, patient=True):
            self._rooms.note_write()
            yield self._rooms.books

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nobody else's truekeep writes meanwhile."""
        with self._rooms.lock(patient=True):
            yield

    def books(self) -> MemoryTransaction:
        """Vault and ledger, for looking; whoever writes comes through `writing`."""
        return self._rooms.books

    def shelf(self, staging: Staging | None = None) -> StoredMemoryView:
        """The store as the judge sees it, with what is staged."""
        from truekeep.handoffs.policy_store import StoredMemoryView
        from truekeep.memory.staging import Staging

        vault = self._rooms.vault
        staged = staging or Staging(vault)
        return StoredMemoryView(vault, self._rooms.ledger, self._rooms.catalog, staged, hold=self._hold)

    @cached_property
    def _inspection(self) -> Inspection:
        from truekeep.workspace.verification import Inspection

        return Inspection(self._rooms)

    @property
    def _hold(self) -> Hold | None:
        """What holds a handoff against its repository, where that is wanted. Loaded with the first one."""
        return (lambda *given: self._inspection.hold(*given)) if self.config.verify.ingest else None

    # Handoffs.

    def inboxes(self, repositories: Sequence[Path] | None = None) -> list[Inbox]:
        """The inboxes of the named repositories, else of the configured ones; the workspace's own are always there."""
        from truekeep.handoffs.inbox_discovery import all_inboxes

        return all_inboxes(self.path, self.config, repositories)

    def waiting_letters(self) -> list[tuple[bytes, str, Path | None, str]]:
        """The handoffs that wait: bytes, name, repository's folder, and where each lies."""
        from truekeep.handoffs.inbox_discovery import read_waiting

        return read_waiting(self.path, self.config)

    def has_card(self, name: str) -> bool:
        return (self.path / CARDS / name).is_file()

    def count_waiting(self) -> int:
        from truekeep.handoffs.inbox_discovery import count_waiting

        return count_waiting(self.path, self.config)

    def look_into_inboxes(self) -> tuple[int, list[Path]]:
        """How many handoffs wait, and the files in the inboxes that are none."""
        from truekeep.handoffs.inbox_discovery import look_into_inboxes

        return look_into_inboxes(self.path, self.config)

    def looks_into(self, root: Path) -> bool:
        """Whether ingest scans this repository."""
        from truekeep.handoffs.inbox_discovery import is_looked_into

        return is_looked_into(root, self.path, self.config)

    def ingest(
        self,
        *,
        repositories: Sequence[Path] | None = None,
        cards: bool = True,
        documents: bool = True,
        dry_run: bool = False,
        tell: Callable[[FilingOutcome], None] = lambda _: None,
    ) -> IngestReport:
        """File every waiting handoff. Running it again after a crash is safe."""
        from truekeep.workspace.ingestion import IngestOptions, ingest

        return ingest(self._rooms, IngestOptions(repositories, cards, documents, dry_run, tell), self._hold)

    def lint(self, letters: Sequence[Unposted]) -> list[Decision]:
        """Judge handoffs as ingest would, each after the ones before; write nothing."""
        from truekeep.workspace.ingestion import lint

        return lint(self._rooms, self.shelf(), letters)

    def leave_handoff(
        self, text: str, *, writer: str, name: str = "", root: Path | None = None
    ) -> tuple[Path, Decision]:
        """Judge a handoff as ingest will, and leave it in a writer's inbox: a repository's, or the workspace's own."""
        from truekeep.workspace.ingestion import leave_handoff

        return leave_handoff(self._rooms, self.shelf(), text, writer=writer, name=name, root=root)

    def adopt(
        self, harness: str, *, given: Path | None = None, repository: Path | None = None, dry_run: bool = False
    ) -> tuple[list[AdoptionOutcome], list[SkippedNote]]:
        """Leave handoffs for what a harness remembers on its own and is new, each in its repository's inbox."""
        from truekeep.handoffs.adopt.to_handoffs import Desk, bring

        desk = Desk(
            home=self.path,
            writers=self.config.writers,
            judge=self.lint,
            has_card=self.has_card,
            memory_path=self.path / STATE / f"adopted-{self.machine.id[:8]}.json",
            knows_filed=True,
        )
        folders, now = self._inspection.folders(), self.moment()
        return bring(harness, desk, folders=folders, now=now, given=given, repository=repository, dry_run=dry_run)

    # Review.

    def _review(self) -> Review:
        from truekeep.handoffs.review import Review

        rooms = self._rooms
        return Review(rooms.books, rooms.catalog, self.config, actor=person(), now=self.moment(), hold=self._hold)

    def drafts(self, *, judged: bool = False) -> list[Draft]:
        """The drafts that wait, oldest first, without their texts. What was read before is not read again.

        `judged`: with what the judge finds in their texts now, for whoever shows their reasons.
        """
        from truekeep.handoffs.review import iter_drafts

        known = self._judged_drafts if judged else self._drafts
        return list(iter_drafts(self._rooms.vault, known, judged=judged))

    def show_draft(self, wanted: str, *, target: str = "", exact: bool = False) -> Proposal:
        review = self._review()
        return review.propose(review.get(wanted, exact=exact), target=target)

    def outdated(self, draft: Draft) -> list[str]:
        """The cards that changed since a draft was made from them."""
        return self._review().outdated(draft)

    def approve(
        self, wanted: str, *, target: str = "", seen: Mapping[str, str] | None = None, anyway: bool = False
    ) -> Decision:
        """File a draft on a person's word. `seen` is what they saw (`Proposal.seen`): nothing else is written.

        `anyway`: also what its stored reasons do not name.
        """
        with self._rooms.writing("approve drafts", patient=bool(seen)):
            review = self._review()
            draft = review.get(wanted, exact=seen is not None)
            return review.approve(draft, target=target, seen=seen, anyway=anyway)

    def reject(self, wanted: str, *, reason: str = "", seen: Mapping[str, str] | None = None) -> Draft:
        """Turn a draft down; the original stays in processed/."""
        with self._rooms.writing("reject drafts", patient=bool(seen)):
            review = self._review()
            draft = review.get(wanted, exact=seen is not None)
            review.reject(draft, reason=reason, seen=seen)
            return draft

    def edit_draft(
        self, wanted: str, change: Callable[[bytes], bytes], *, seen: Mapping[str, str] | None = None
    ) -> tuple[Draft, bool]:
        """Change the handoff inside a draft. `change` runs without the lock: a person may take an hour."""
        review = self._review()
        draft = review.get(wanted, exact=seen is not None)
        body = change(draft.body)
        if body == draft.body:
            return draft, False
        with self._rooms.writing("edit drafts", patient=bool(seen)):
            review = self._review()
            if review.get(draft.id, exact=True).file_digest != draft.file_digest:
                raise EditedSince(
                    f"draft {draft.id} was changed by somebody else meanwhile", hint="start again from it"
                )
            return review.edit(draft, body, seen=seen), True

    def retry(self, wanted: str | None, *, exact: bool = False) -> list[tuple[Draft, Decision]]:
        """Judge one draft, or all, as ingest would now; file what passes."""
        with self._rooms.writing("retry drafts", patient=exact):
            review = self._review()
            ids = [review.get(wanted, exact=exact).id] if wanted else [draft.id for draft in review.drafts()]
            drafts = (review.get(number, exact=True) for number in ids)
            return [(draft, review.retry(draft)) for draft in drafts]

    def prune(
        self, *, older_than: timedelta | None = None, dry_run: bool = False, force: bool = False
    ) -> tuple[list[Draft], list[str]]:
        """Remove drafts and processed handoffs that have waited past their age. Drafts can be had back with undo."""
        from truekeep.workspace.ingestion import prune

        with self._rooms.writing("prune"):
            return prune(self._rooms, self._review(), older_than=older_than, dry_run=dry_run, force=force)

    # Memory files.

    def cards(self) -> Iterator[Card]:
        """Every card, by name."""
        from truekeep.memory.lookup import iter_cards

        return iter_cards(self._rooms.vault)

    def card_file(self, wanted: str) -> tuple[str, FileOnDisk]:
        """A card's name and its file, by any way to call it."""
        from truekeep.memory.lookup import get_card_file

        return get_card_file(self._rooms.vault, wanted)

    def card(
        self, wanted: str, *, partly: bool = False, masked: bool = False
    ) -> tuple[Card, str, LedgerEntry | None, HandoffRow | None]:
        """One card, its text, and the entry and handoff that last wrote it.

        `partly`: by the beginning of its name; `masked`: as it may be shown, without credentials.
        """
        from truekeep.memory.lookup import get_card

        card, text = get_card(self._rooms.vault, wanted, partly=partly, masked=masked)
        entry, record = next(self.history(f"memory/cards/{card.name}", limit=1), (None, None))
        return card, text, entry, record

    def card_names(self) -> list[str]:
        """The names of all cards, in no order; no card is read."""
        from truekeep.memory.lookup import card_names

        return card_names(self._rooms.vault)

    def count_cards(self) -> int:
        return len(self.card_names())

    def read(self, path: str) -> str:
        """A memory file as it is; empty where there is none. What is no plain text file is an error."""
        from truekeep.memory.lookup import get_text

        return get_text(self._rooms.vault, path)

    def relative(self, path: str) -> str:
        """A path as the ledger knows it: inside the workspace. Seen from here, else from the workspace."""
        from truekeep.memory.lookup import path_inside

        return path_inside(self.path, path)

    # History.

    def history(
        self, path: str | None = None, *, limit: int | None = None, sought: LedgerQuery | None = None
    ) -> Iterator[tuple[LedgerEntry, HandoffRow | None]]:
        """What truekeep did, newest first; only what is sought, and only what changed a file, if they are given."""
        ledger = self._rooms.ledger
        inside = self.relative(path) if path else None
        for entry in ledger.entries(path=inside, limit=limit, sought=sought):
            yield entry, ledger.handoff_of(entry)

    def why(self, path: str) -> list[BlamedLine]:
        """Every line of a file, credentials masked, with the act that wrote it."""
        from dataclasses import replace

        try:
            lines = self._rooms.history.lines(self.relative(path))
            shown = _masked("\n".join(line.text for line in lines)).split("\n")
            return [replace(line, text=text) for line, text in zip(lines, shown, strict=False)]
        except UnsafePath as error:
            raise BadInput(str(error), hint="name a plain file of the workspace") from error

    def differences(self, path: str, entries: Collection[int]) -> dict[int, tuple[str, ...]]:
        """What these entries changed in a file of the workspace, line by line, credentials masked."""
        found = self._rooms.history.differences(path, entries)
        return {entry: tuple(_masked("\n".join(lines)).split("\n")) for entry, lines in found.items()}

    def find_entries(
        self, sought: LedgerQuery, *, most: int, before: int = 0, after: int = 0
    ) -> list[tuple[LedgerEntry, HandoffRow | None]]:
        """Some of what truekeep did, newest first: the newest, those before an entry, or next after one."""
        ledger = self._rooms.ledger
        found = ledger.find_entries(sought, most=most, before=before, after=after)
        return [(entry, ledger.handoff_of(entry)) for entry in found]

    def is_undoable(self, number: int) -> bool:
        """Whether an entry changed a file and is still in force; whether it is safe to undo, only undoing it tells."""
        entry = self._rooms.ledger.get_entry(number)
        return entry is not None and bool(entry.paths) and entry.undone_by is None

    def plan_undo(self, number: int) -> Undoing:
        """What undo would write. Touches nothing."""
        return self._rooms.history.plan_undo(number)

    def undo(self, number: int, *, seen: str = "") -> tuple[LedgerEntry, list[str]]:
        """Put back what an entry changed, unless a person has edited since, or it is not what they have `seen`."""
        with self._rooms.writing("undo"):
            return self._rooms.history.undo(number, seen=seen)

    # Recall.

    def index(
        self, *, rebuild: bool = False, tell: Callable[[str, int, int], None] = lambda *_: None, wait: float = 10.0
    ) -> IndexReport:
        """Bring the search index up to date with the files."""
        return self._rooms.recall.index(rebuild=rebuild, tell=tell, wait=wait)

    def watch(
        self, tell: Callable[[IndexReport], None], *, stop: Any = None, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Keep the search index up to date until stopped."""
        self._rooms.recall.watch(tell, stop=stop, warn=warn)

    def search(
        self,
        query: str,
        *,
        limit: int = 6,
        stores: Sequence[str] = (),
        since: date | None = None,
        repository: str = "",
        ranking: str = "truekeep",
        mmr: float | None = None,
        half_life: float | None = None,
        verified: bool = False,
        verdict: str = "",
        budget: float | None = None,
        within: float = 0.0,
    ) -> SearchResult:
        """Find memories by words and by meaning, with the verdicts on what they name. Nothing is changed but the index.

        `verified` leaves out what code refutes, `verdict` gives only what code says this to (`Hit.standing`). Who asks
        again and again may be content with verdicts that are known or found in a `budget` of seconds, and with files as
        they were `within` so many.
        """
        from truekeep.search.file_scan import STORES
        from truekeep.search.searcher import STANDINGS, Filter

        if verdict and verdict not in STANDINGS:
            raise BadInput(f"there is no verdict {verdict!r} on a hit", hint=f"one of {', '.join(STANDINGS)}")

        if unknown := set(stores) - set(STORES):
            raise BadInput(f"there is no store {sorted(unknown)[0]!r}", hint=f"stores: {', '.join(STORES)}")
        if ranking not in RANKINGS:
            raise BadInput(f"there is no ranking {ranking!r}", hint=f"rankings: {', '.join(RANKINGS)}")
        if not 1 <= limit <= 1000:
            raise BadInput(f"{limit} hits cannot be asked for", hint="from 1 to 1000")
        repository = repository.encode("utf-8", "replace").decode()
        chosen = Filter(stores=tuple(stores), since=since.isoformat() if since else "", repository=repository)
        asked = min(1000, limit * 4) if verdict else min(1000, limit * 2 + 4) if verified else limit
        answer = self._rooms.recall.search(
            query, limit=asked, filter_=chosen, formula=ranking, lambda_mmr=mmr, half_life=half_life, within=within
        )
        hits = list(answer.hits)
        if hits and self._rooms.tells_verdicts:
            hits = self._inspection.with_verdicts(hits, patient=verified, budget=budget)
        if verdict:
            hits = [hit for hit in hits if hit.standing == verdict][:limit]
        if verified:
            hits = [hit for hit in hits if not hit.unchecked and not any(item.is_rot for item in hit.verdicts)][:limit]
        return answer._replace(hits=tuple(hits))

    def topics_of(self, hits: Sequence[Hit]) -> dict[str, str]:
        """What the files of these hits say that they are about, by path, read from the beginning of each."""
        from truekeep.search.file_metadata import FRONT, topic_in
        from truekeep.verify.mask_credentials import mask_shown

        found: dict[str, str] = {}
        for path in {hit.path for hit in hits if hit.store != "transcripts"}:
            head = read_head(self.path / path, FRONT).decode("utf-8", "replace")
            if topic_in(head):
                found[path] = topic_in(mask_shown(head, self._rooms.facts))
        return found

    def resolve(self, topic: str, *, limit: int = 10) -> Resolution:
        """Everything memory says about one thing, in trust order, with the winner and why."""
        return self._inspection.resolve(topic, self.search(topic, limit=limit).hits)

    def get(self, path: str, *, first: int | None = None, lines: int | None = None) -> Excerpt:
        """Some lines of a memory file, by its path or by a citation such as memory/cards/a.md#L5-L9."""
        from truekeep.search.excerpt import LINES, parse_citation, read_excerpt

        path, cited, count = parse_citation(path)
        first, lines, today = first or cited or 1, lines or count or LINES, self.today()
        if path.startswith("transcripts/"):
            return self._rooms.recall.read_transcript(path, first=first, lines=lines, today=today)
        extra = self.config.recall.extra_paths
        excerpt = read_excerpt(str(self.path), path, first=first, lines=lines, extra=extra, today=today)
        return self._inspection.told(excerpt) if self._rooms.tells_verdicts else excerpt

    def let_go(self, *, dry_run: bool = False) -> tuple[int, list[str]]:
        """Take out of the search index what was forgotten on purpose: how many sessions, and what to know of it."""
        recall = self._rooms.recall
        sessions = recall.count_old_sessions() if dry_run else recall.let_go()
        return sessions, recall.notes

    def recall_status(self) -> Status:
        """How the search index stands."""
        return self._rooms.recall.status()

    # Memory held against code.

    def verify(
        self,
        files: Sequence[str] = (),
        *,
        repository: Path | None = None,
        changed: bool = False,
        online: bool = False,
        system: bool = True,
        tell: Callable[[str, int, int], None] = lambda *_: None,
    ) -> list[CheckedMemory]:
        """Hold memories against current code: the named files, else every card and document."""
        inspection = self._inspection
        return inspection.verify(files, repository=repository, changed=changed, online=online, system=system, tell=tell)

    def verify_text(self, text: str, *, repository: Path | None = None, online: bool = False) -> CheckedMemory:
        """Hold any text against current code; nothing of it is kept."""
        return self._inspection.verify_text(text, repository=repository, online=online)

    def repair(self, checked: Sequence[CheckedMemory], *, dry_run: bool = False) -> tuple[list[Repair], list[str]]:
        """Write what moved into the memories, and propose to drop what is gone. Gives the plan and what was done."""
        with self._rooms.writing("repair memory"):
            return self._inspection.repair(checked, dry_run=dry_run)

    def says(self, paths: Sequence[str], budget: float) -> Say:
        """What code says to each of these cards, in a few words, and whether it refutes it."""
        if not self._rooms.tells_verdicts:
            return lambda *_: ("", False)
        from truekeep.workspace.briefing import in_words

        known = self._inspection.known(paths, budget)
        return lambda path, _: in_words(known[path]) if path in known else ("", False)

    def last_checked(self, path: str) -> CheckedMemory | None:
        """What the last check said to a memory, if everything that it rests on is as it was."""
        found = self._inspection.known([path], 0.0).get(path) if self._rooms.has_checkouts else None
        return None if isinstance(found, str) else found

    def check(self, path: str, *, budget: float = 0.0) -> CheckedMemory | str:
        """What code says to one memory: as it is known, or as far as the time goes; a text where nobody can say."""
        if not self._rooms.has_checkouts:
            return "no checkout of any repository is configured here"
        found = self._inspection.known([path], budget).get(path)
        return found if found is not None else "nothing to check it against: no checkout here is of its repository"

    def checkouts(self) -> list[tuple[CheckoutFolder, int]]:
        """The checkouts known on this machine, each with the number of cards that belong to it."""
        return self._inspection.count_checkouts(self.cards())[0]

    def unknown_repositories(self) -> dict[str, int]:
        """Repositories that cards name and no checkout on this machine holds."""
        return self._inspection.count_checkouts(self.cards())[1]

    def match_repositories(
        self, files: Sequence[str] = (), *, tell: Callable[[str, int, int], None] = lambda *_: None
    ) -> tuple[list[Match], list[str]]:
        """Which repositories the cards are about that name none: these, else all. And what was left out, and why."""
        return self._inspection.match(files, tell=tell)

    def assign_repositories(self, matches: Sequence[Match]) -> list[AssignmentOutcome]:
        """Write the repositories that were matched into their cards, one entry each."""
        with self._rooms.writing("name repositories"):
            return self._inspection.assign(matches)

    def found_checkouts(self) -> list[CheckoutFolder]:
        """The checkouts on this machine, looked for now."""
        return self._inspection.truth().checkouts

    def same_name_checkouts(self) -> tuple[str, ...]:
        """One sentence for each checkout that has another one's name and is not used; nothing is written."""
        return self._inspection.same_names()

    def checkout_of(self, repository: str) -> str:
        """The folder on this machine that holds a repository; nothing where none does."""
        chosen = choose_checkout(repository, self.found_checkouts())
        return chosen.root if chosen is not None and not chosen.problem else ""

    # Sessions.

    def wake(
        self, root: Path | None = None, *, tokens: int | None = None, harness: str = "", budget: float = 0.0
    ) -> Brief:
        """What an agent in this repository must know. `budget`: seconds that may go into checking cards."""
        from truekeep.workspace.briefing import wake

        return wake(self._rooms, self.says, root, tokens=tokens, harness=harness, budget=budget)

    def hint(
        self, prompt: str, *, repository: str, told: Sequence[str], root: Path | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Cards and rules that a prompt surely needs, as text for the agent, and what they are known by."""
        from truekeep.workspace.briefing import hint

        return hint(self._rooms, self.says, prompt, repository=repository, told=told, root=root)

    def checkpoint(self, given: Checkpoint, *, root: Path | None = None, writer: str = "") -> CheckpointResult:
        """Leave what a session learned: in memory here, as handoffs where this machine may not write it."""
        from truekeep.workspace.checkpointing import leave_checkpoint

        return leave_checkpoint(self._rooms, given, root=root, writer=writer)

    def archive(self) -> Archive:
        """The archive of sessions: this workspace's on its canonical host, elsewhere the machine's own."""
        from truekeep.transcripts.service import Archive

        return Archive(str(self.path / STATE) if self.is_canonical else own_state())

    def sync_transcripts(
        self, *, force: bool = False, tell: Callable[[int, int], None] = lambda *_: None
    ) -> TranscriptImportReport:
        """Keep what was said in the harnesses' sessions, before they delete it. `force`: expire even most of it."""
        days, now = self.config.transcripts.keep_days, self.moment()
        return self.archive().sync_here(machine=self.machine.name, now=now, keep_days=days, force=force, tell=tell)

    # The canonical host.

    def standing(self) -> HostStatus:
        """Which machines were and are the canonical host."""
        return self.state.standing()

    def take_host(self, seen: HostStatus) -> Tenure:
        """Make this machine the canonical host, and end every tenure that is known here. Again: nothing happens.

        `seen` is what the person was shown; where another machine was faster, nothing is done.
        """
        from truekeep.workspace.host import take_host

        return take_host(self._rooms, seen)

    def release_host(self) -> Tenure:
        """End this machine's tenure; then nobody writes until some machine takes over. Again: nothing happens."""
        from truekeep.workspace.host import release_host

        return release_host(self._rooms)

    # Survey and status.

    def survey(
        self, tell: Callable[[int, int], None] = lambda *_: None, *, within: float = 0.0, reuse: float = 0.0
    ) -> Survey:
        """What upkeep knows of every memory file, brought up to date.

        `reuse`: so many seconds old will do, where no file came, went or was replaced since.
        `within`: somebody waits for it. So many seconds old will do, where no file came, went or was replaced since;
        and where very many files are new, that is told (Busy) and nothing is read.
        """
        from truekeep.maintenance.survey.service import TooMuch

        survey = self._rooms.survey
        if (within or reuse) and survey.is_fresh(within or reuse):
            return survey
        try:
            self.surveyed = survey.refresh(tell, most=_WAITED_FOR if within else None)
        except TooMuch as error:
            raise Busy(
                f"{error} memory files have not been looked through yet",
                hint="it goes on; try again in a minute or two",
            ) from error
        return survey

    def topics(self, paths: Sequence[str]) -> dict[str, str]:
        """The topics of cards, as the last survey knew them; nothing is looked at for it."""
        return self._rooms.survey.browsing.find_topics(paths)

    def browse(self, wanted: Browse, *, first: int = 0, most: int = 50) -> tuple[list[Browsed], int]:
        """Memory files by store, words, repository, age, verdict and tag: some of them, and how many there are."""
        survey = self.survey(within=_LATELY)
        survey.browsing.hear_verdicts(str(self.path / STATE / "facts.sqlite"))
        return survey.browsing.browse(wanted, first=first, most=most)

    def received(self, since: str) -> list[WriterActivity]:
        """What came from each machine, writer and repository."""
        return self._rooms.ledger.received(since)

    def routes(self) -> list[tuple[Route, SyncHistory]]:
        """The routes to other machines, and how they went."""
        from truekeep.handoffs.sync.contact_history import read_history
        from truekeep.handoffs.sync.routes import read_routes

        return [(route, read_history(self.state.path, name)) for name, route in read_routes(self.state.path).items()]

    def days(self) -> list[Day]:
        """What memory was at the end of each day, as far as that was noted."""
        from truekeep.workspace.health_history import read_days

        return read_days(str(self.path / STATE / "logs"))

    def last_line(self, log: str) -> str:
        """The last line of one of the logs; empty when there is none."""
        return self.state.last_line(log)


def _how_to_begin(chosen: Path) -> str:
    """What to do where there is no workspace."""
    from truekeep.core.default_workspace import read_remembered

    if str(chosen) == read_remembered() and "TRUEKEEP_WORKSPACE" not in os.environ:
        return (
            f"`truekeep init` chose it on this machine: bring it back, choose another with `truekeep init PATH`,"
            f" or begin anew there with `truekeep init {as_argument(chosen)}`"
        )
    command = "truekeep init" if chosen == default_path() else f"truekeep init {as_argument(chosen)}"
    return (
        f"`{command}` makes it, on the one machine that is to keep the memory; on any other,"
        " `truekeep handoff new` leaves what it should know"
    )


def _masked(text: str) -> str:
    from truekeep.text.secrets.scanner import mask_lines  # here, and not above: start-up time

    return mask_lines(text)
