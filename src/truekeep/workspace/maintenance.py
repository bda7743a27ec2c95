"""Maintenance of memory: survey, duplicates, promotion, decay, reconciliation.

Looking writes nothing but the survey. Changes go through the ledger; doubtful ones become drafts for a person. A
nightly run in which nothing changed is answered from the last one.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import apsw

from truekeep.core.errors import Busy
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import INDEX, REVIEW
from truekeep.core.state_dir import STATE
from truekeep.maintenance.copies import CopiedFile, find_copies
from truekeep.maintenance.decay import (
    DecayReport,
    Forgetting,
    Move,
    Stale,
    checks_of,
    find_stale,
    is_taken_back,
    plan_forgetting,
    plan_moves,
    write_forgetting,
    write_moves,
)
from truekeep.maintenance.duplicates import (
    DuplicatePair,
    Sense,
    compare_fresh,
    find_doubles,
    instructed_ideas,
    merge_ideas,
    uses_meaning,
)
from truekeep.maintenance.promote import promotion_ideas
from truekeep.maintenance.proposals import Idea, ProposalOutcome, offer
from truekeep.maintenance.reconcile import RECENT_DAYS
from truekeep.maintenance.survey.reader import BARE_FRONTMATTER
from truekeep.maintenance.survey.service import FileProblem, Survey, SurveyRefresh, TooManyChanges
from truekeep.memory.file_scan import CLOCK_TICK_NS
from truekeep.memory.importance import Tiers
from truekeep.memory.ledger import LedgerQuery
from truekeep.search.decay_record import DecayRecord, read_decay_record
from truekeep.text.encoding import decode_text
from truekeep.verify.checkouts import is_of_workspace
from truekeep.verify.results import read_counts, read_seals
from truekeep.workspace.reconciliation import FACTS_DB, ReconcileReport, Reconciliation
from truekeep.workspace.repository_instructions import USER, RepositoryInstructions

if TYPE_CHECKING:
    from datetime import date, datetime

    from truekeep.workspace.workspace import Workspace

MAX_FILES_TO_WAIT_FOR = 300  # new files that a survey reads while a person waits
NIGHTLY_SURVEY_SECONDS = 600.0  # a survey serves all steps of one night
MAX_STALE_LIST_AGE = 10.0  # seconds that the survey may be old for a list of stale cards
NO_FRONTMATTER = frozenset(("no-frontmatter", "broken-frontmatter"))  # problems of a card that cannot be confirmed


class TidyReport(NamedTuple):
    """The duplicates found, and the proposals made."""

    doubles: tuple[DuplicatePair, ...]
    offered: tuple[ProposalOutcome, ...]
    problems: tuple[FileProblem, ...] = ()
    compared_by: str = "words"
    copies: tuple[CopiedFile, ...] = ()  # of documents and logs


class Maintenance:
    """Maintenance of one workspace."""

    def __init__(self, workspace: Workspace, *, is_nightly: bool = False) -> None:
        self._workspace = workspace
        self._context = workspace.context
        self._is_nightly = is_nightly
        self._root = str(workspace.path)
        self._nightly_instructions = RepositoryInstructions(workspace) if is_nightly else None
        self.last_refresh: SurveyRefresh | None = None

    def nightly(self) -> Maintenance:
        """For the steps of one night: they share a survey of the files, and make no lists for a person."""
        return Maintenance(self._workspace, is_nightly=True)

    def _instructions(self) -> RepositoryInstructions:
        """The instruction files, read once a night, else once a run."""
        return self._nightly_instructions or RepositoryInstructions(self._workspace)

    @property
    def _today(self) -> date:
        return self._context.today()

    @property
    def _now(self) -> datetime:
        return self._context.now()

    def survey(self, progress: Callable[[int, int], None] = lambda *_: None, *, within: float = 0.0) -> Survey:
        """The survey of all memory files, brought up to date.

        `within` is for a caller that waits: if no file was added, removed or replaced, a survey of so many seconds ago
        is good enough; and if very many files are new, it raises Busy and reads none.
        """
        survey = self._context.survey
        max_age = within or (NIGHTLY_SURVEY_SECONDS if self._is_nightly else 0.0)
        if max_age and survey.is_fresh(max_age):
            return survey
        try:
            self.last_refresh = survey.refresh(progress, max_files=MAX_FILES_TO_WAIT_FOR if within else None)
        except TooManyChanges as error:
            raise Busy(
                f"{error} memory files have not been looked through yet",
                hint="it goes on; try again in a minute or two",
            ) from error
        return survey

    def problems(
        self, progress: Callable[[int, int], None] = lambda *_: None
    ) -> tuple[list[FileProblem], tuple[str, ...]]:
        """The problems of memory and of every other document that search reads, and what could not be read."""
        survey = self.survey(progress)
        unread = self.last_refresh.unread if self.last_refresh is not None else ()
        unread += survey.refresh_documents(self._workspace.config.recall.extra_paths, progress)
        return survey.all_problems(self._today), unread

    # Nights.

    def is_settled(self) -> bool:
        """True if the last night found nothing to do, and none of its inputs changed."""
        survey = self.survey()
        key = self._rests_on(survey)
        until = survey.find_result("night", key) if key else None
        return until is not None and self._today.isoformat() <= until

    def note_settled(self) -> None:
        """Note that this night found nothing to propose and nothing to write."""
        survey = self.survey()
        key = self._rests_on(survey)
        if key and not survey.count("uncompared_cards"):
            limit = (self._today - timedelta(days=RECENT_DAYS)).isoformat()
            is_young = any(item.day >= limit for _, _, said in survey.conflicting_values() for item in said)
            survey.store_result(
                "night", key, self._today.isoformat() if is_young else "9999"
            )  # who wins depends on days

    def _rests_on(self, survey: Survey) -> str:
        """A key of all inputs of duplicates, promotions and disagreements; "" while files may still change."""
        if not survey.fingerprint:
            return ""
        instructions = self._instructions()
        files = [os.path.join(self._root, name) for name in (REVIEW, FACTS_DB, f"{FACTS_DB}-wal")]
        for repository in (USER, *survey.repositories()):
            files += instructions.paths(repository)
        stamps = [_stamp(path) for path in files]
        last = max((stamp[0] for stamp in stamps if stamp is not None), default=0)
        if time.time_ns() - last < CLOCK_TICK_NS:
            return ""  # a file may change again within the resolution of its time
        return repr((survey.fingerprint, stamps, self._verdicts(), self._workspace.config))

    def _verdicts(self) -> int:
        """A checksum of the stored verdicts on all memories."""
        config = self._workspace.config
        if not (config.verify.checkouts or config.repositories):
            return 0
        with suppress(apsw.Error):
            seals = read_seals(os.path.join(self._root, STATE, "facts.sqlite"))
            return sum(zlib.crc32(seal, zlib.crc32(path.encode("utf-8", "replace"))) for path, seal, _ in seals)
        return -1

    # Proposals.

    def duplicates(
        self, *, dry_run: bool = False, progress: Callable[[int, int], None] = lambda *_: None
    ) -> TidyReport:
        """Find cards that say the same, and propose to merge them."""
        survey = self.survey(progress)
        sense = Sense(os.path.join(self._root, STATE, "index.sqlite"))
        try:
            compare_fresh(survey, self._workspace.files.read_bytes, sense, self._workspace.context.catalog)
        finally:
            sense.close()
        doubles = find_doubles(survey)

        def ideas() -> Iterator[Idea]:
            yield from merge_ideas(doubles, self._workspace.files.read_bytes)
            yield from instructed_ideas(survey, self._workspace.files.read_bytes, self._instructions().lines)

        offered = self._offered("duplicates", survey, ideas, dry_run=dry_run)
        by = "words and meaning" if uses_meaning(survey) else "words"
        copies = () if self._is_nightly else tuple(self._copies(survey))
        return TidyReport(tuple(doubles), offered, self._problems(survey), by, copies)

    def _copies(self, survey: Survey) -> list[CopiedFile]:
        """Documents and logs that are copies of others."""
        texts: dict[str, str] = {}
        for path in (INDEX, *survey.paths_in("documents", "logs")):
            with suppress(UnsafePath, ChangedSince, OSError):
                text = decode_text(self._workspace.files.read_bytes(path) or b"")
                if text:
                    texts[path] = text
        return find_copies(texts, survey.is_linked)

    def promote(self, *, dry_run: bool = False, progress: Callable[[int, int], None] = lambda *_: None) -> TidyReport:
        """Propose cards for what logs tag as structural, or, for a person, say repeatedly, and no card says."""
        survey = self.survey(progress)
        structural, read = self._workspace.config.decay.structural, self._workspace.files.read_bytes
        offered = self._offered(
            "promote tagged" if self._is_nightly else "promote",
            survey,
            lambda: promotion_ideas(survey, read, structural=structural, is_tagged_only=self._is_nightly),
            dry_run=dry_run,
        )
        return TidyReport((), offered, self._problems(survey))

    def _problems(self, survey: Survey) -> tuple[FileProblem, ...]:
        """What a person should fix; cards without category or tags are only listed by `status problems`."""
        if self._is_nightly:
            return ()
        return tuple(item for item in survey.problems(self._today) if item.code != BARE_FRONTMATTER)

    def _offered(
        self, name: str, survey: Survey, ideas: Callable[[], Iterable[Idea]], *, dry_run: bool
    ) -> tuple[ProposalOutcome, ...]:
        """Make drafts of ideas. If there were none and no input changed, there are none now."""
        key = self._key(survey)
        if key and survey.find_result(name, key) == "none":
            return ()
        found = list(ideas())
        if found and not dry_run:
            with self._workspace.writing("propose") as transaction:
                told = offer(found, transaction, actor=person(), now=self._now)
        else:
            told = offer(found, self._context.transaction, actor=person(), now=self._now, dry_run=True)
        if key and not found:
            survey.store_result(name, key, "none")
        return tuple(told)

    def _key(self, survey: Survey, *more: object) -> str:
        """A key of the inputs of an answer; "" while files may still change."""
        if not survey.fingerprint:
            return ""
        config = self._workspace.config
        files = [
            os.path.join(self._root, STATE, "decay.toml"),
            os.path.join(self._root, REVIEW),
            os.path.join(self._root, FACTS_DB),
        ]
        return repr(
            (survey.fingerprint, self._today.isoformat(), [_stamp(path) for path in files], config.decay, *more)
        )

    # Decay.

    def decay(
        self,
        *,
        dry_run: bool = False,
        archive: bool = False,
        force: bool = False,
        by_hand: bool = True,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> DecayReport:
        """Drop expired log entries, drafts, processed handoffs and sessions; list cards that need a look.

        `archive` moves logs that are fully expired. Unless `by_hand`, what a person brought back stays.
        """
        read_decay_record(os.path.join(self._root, STATE))  # raises before anything is dropped if it cannot be read
        prune = self._workspace.handoffs.prune
        drafts, files = prune(dry_run=dry_run, force=force, by_hand=by_hand)  # checks the clock first
        survey, notes, problems = self.survey(progress), list[str](), list[str]()
        plan, record, moves = self._forgetting(survey, archive=archive, by_hand=by_hand, notes=notes, problems=problems)
        if not dry_run and (plan is not None or moves):
            with self._workspace.writing("decay") as transaction:
                survey, notes, problems = self.survey(), [], []  # again, under the lock
                plan, record, moves = self._forgetting(
                    survey, archive=archive, by_hand=by_hand, notes=notes, problems=problems
                )
                at = self._workspace.stamp()
                if plan is not None:
                    write_forgetting(transaction, plan, at=at, actor=person())
                if record is not None:
                    moves = write_moves(transaction, moves, record, at=at, actor=person(), problems=problems)
        sessions, told = self._workspace.search.drop_expired(dry_run=dry_run)
        bad = [f"{item.path}:{item.line}: {item.what}" for item in self._problems(survey) if item.code == "bad-tag"]
        return DecayReport(
            day=self._today,
            record=record,
            leaving=plan.leaving if plan is not None else (),
            returning=plan.returning if plan is not None else (),
            moves=tuple(moves),
            drafts=tuple(draft.id for draft in drafts),
            processed=tuple(files),
            sessions=sessions,
            tagged=survey.count("entries"),
            cards=() if self._is_nightly else tuple(self._stale_cards(survey)),
            problems=(*bad, *problems),
            notes=(*notes, *told),
        )

    def _forgetting(
        self, survey: Survey, *, archive: bool, by_hand: bool, notes: list[str], problems: list[str]
    ) -> tuple[Forgetting | None, DecayRecord | None, list[Move]]:
        """The plan for log entries, the record after it, and the logs to move."""
        settings = self._workspace.config.decay
        tiers = Tiers(settings.structural, settings.potential, settings.potential_days, settings.contextual_days)
        record = read_decay_record(os.path.join(self._root, STATE))
        plan = plan_forgetting(survey, record, self._today, tiers)
        if plan is not None and not by_hand and is_taken_back(self._context.transaction):
            notes.append("what logs said stays in search, because that was undone; `truekeep tidy decay` decides again")
            plan = None
        record = plan.record if plan is not None else record
        moves = plan_moves(survey, record, self._workspace.files.read_stored, self._today, problems) if archive else []
        return plan, record, moves

    def stale_cards(self) -> list[Stale]:
        """Cards without a sign of life: to verify, or to decide on."""
        return self._stale_cards(self.survey(within=MAX_STALE_LIST_AGE))

    def _stale_cards(self, survey: Survey) -> list[Stale]:
        """The stale cards; the last answer, if no input changed."""
        config, state = self._workspace.config, os.path.join(self._root, STATE)
        facts = os.path.join(state, "facts.sqlite")
        verified = [_stamp(path) for path in (facts, f"{facts}-wal")]
        rests_on = (
            survey.fingerprint,
            self._today,
            verified,
            config.decay.card_days,
            config.repositories,
            config.verify,
        )
        key = repr(rests_on) if survey.fingerprint else ""
        if key and (known := survey.find_result("stale", key)) is not None:
            return [Stale(*item) for item in json.loads(known)]

        instructions = self._instructions()

        @cache
        def hurdle(repository: str) -> str:
            known = instructions.checkout_of(repository) if repository else ""
            if not repository or (not known and is_of_workspace(repository, self._root)):
                return "it names no repository, so it cannot be verified"
            return "" if known else f"no checkout of {repository} is known on this machine"

        checks = checks_of(read_counts(facts))
        flawed = {item.path for item in survey.problems(self._today) if item.code in NO_FRONTMATTER}
        split = self.recently_split()
        cards = (card for card in survey.cards() if card.path not in split)
        found = find_stale(cards, checks, self._today, config.decay.card_days, hurdle, flawed)
        if key:
            survey.store_result("stale", key, json.dumps(found))
        return found

    def recently_split(self) -> set[str]:
        """The files of splits within the time after which a card is stale: somebody has just read their old lines."""
        since = self._today - timedelta(days=self._context.config.decay.card_days)
        entries = self._context.ledger.entries(sought=LedgerQuery(verb="split", since=since.isoformat()))
        return {path for entry in entries if entry.undone_by is None for path in entry.paths}

    # Reconciliation.

    def reconcile(
        self, *, fix: bool = False, code: bool = True, by_hand: bool = True, force: bool = False
    ) -> ReconcileReport:
        """Find where the stores disagree, who wins and why. `fix` writes what is decided, and asks about the rest.

        `code`: check changed memory against current code first. Unless `by_hand`, repairs that a person undid are not
        repeated. `force` allows most lines of the index to go at once.
        """
        run = Reconciliation(self._workspace, self, self._instructions(), by_hand=by_hand, force=force)
        return run.run(fix=fix, code=code)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size
