"""The desk of upkeep: a workspace with its survey, and the verbs that tidy it and make its stores agree.

Looking needs nothing and writes nothing but the survey. Whatever is changed goes through the books, one entry for each
card; whatever is doubtful becomes a draft. A night in which nothing changed is answered from what the last one found.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import apsw

from truekeep.core.errors import Busy, EditedSince, StorageFailed, TruekeepError
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import CARDS, INDEX, REVIEW
from truekeep.core.state_dir import STATE
from truekeep.handoffs.policy_store import INSTRUCTION_FILES
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
from truekeep.maintenance.duplicates import Double, Sense, compare_fresh, find_doubles, instructed_ideas, merge_ideas
from truekeep.maintenance.promote import promotion_ideas
from truekeep.maintenance.proposals import Idea, ProposalOutcome, offer
from truekeep.maintenance.reconcile import (
    REASONS,
    RECENT,
    Disagreement,
    Found,
    Judge,
    Repairs,
    hold_index,
    hold_instructions,
    hold_talk,
    hold_values,
    said_in,
    with_value,
)
from truekeep.maintenance.repair import bumped, parse_repair, spelled_like
from truekeep.maintenance.survey.service import FileProblem, StatedValue, Survey, SurveyRefresh, TooMuch
from truekeep.maintenance.survey.transcript_values import SpokenText, iter_contradicted, listen
from truekeep.memory.blame import line_owners
from truekeep.memory.card import words_of
from truekeep.memory.facts_db import UnreadableFacts, iter_facts
from truekeep.memory.importance import Tiers
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.memory_index import linked_cards
from truekeep.memory.staging import Staging
from truekeep.memory.unindexed_cards import Consolidation
from truekeep.memory.values import Value, name_of
from truekeep.search.expired import DecayRecord, read_decayed
from truekeep.search.refresh import SETTLED_NS
from truekeep.text.encoding import decode_text
from truekeep.text.unicode import printable
from truekeep.verify.checkouts import choose_checkout, is_of_workspace
from truekeep.verify.results import read_counts, read_seals

if TYPE_CHECKING:
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.verify.checkouts import Checkout
    from truekeep.verify.results import CheckedMemory
    from truekeep.workspace.workspace import Workspace

_INSTRUCTION_BYTES = 262_144
_COMPARED = frozenset(
    (
        *(
            "card-exists",
            "no-such-card",
            "drops-most",
            "hand-edited",
            "older-than-card",
            "near-duplicate",
            "same-topic",
        ),
        *("other-repository", "refuted", "unreadable-card"),
    )
)  # findings that say that a handoff and a card do not agree
_FACTS = "memory/facts.db"
_ONE_NIGHT = 600.0  # seconds that a look serves the verbs of one night, while no file comes, goes or is replaced
_SHORTER = (
    "Shorten it: `truekeep tidy duplicates` merges cards, `truekeep tidy decay` lists those to drop; each takes its"
    " line with it. Or put one line for a sub-card in the place of many: lines that you take out stay out"
)
_NO_FRONTMATTER = frozenset(("no-frontmatter", "broken-frontmatter"))  # problems of a card that cannot be confirmed
MAX_FILES_TO_WAIT_FOR = 300  # new files that a survey reads while a person waits
_LATELY = 10.0  # seconds that the last look at all files may be ago, for a look


class TidyReport(NamedTuple):
    """What a search for doubles, or for what lasts, came to."""

    doubles: tuple[Double, ...]
    offered: tuple[ProposalOutcome, ...]
    problems: tuple[FileProblem, ...] = ()

    def count(self, state: str) -> int:
        return sum(item.state == state for item in self.offered)


class ReconcileReport(NamedTuple):
    """Where the stores disagree, and what was done about it."""

    found: tuple[Disagreement, ...]
    done: tuple[str, ...]
    offered: tuple[ProposalOutcome, ...]
    problems: tuple[str, ...]  # what could not be looked at
    crowding: str = ""  # why the lines that cards lack make the index longer than agents read, and what to do about it
    unindexed: tuple[str, ...] = ()  # cards that are to have no line in the index

    @property
    def open(self) -> tuple[Disagreement, ...]:
        """Those that somebody should do something about."""
        return tuple(item for item in self.found if item.action != "none")

    @property
    def held(self) -> str:
        """Why something was not written that a rule decides; nothing if nothing was held back."""
        return next((f"{INDEX}: {item.step}" for item in self.found if item.is_held), "")


class Maintenance:
    """Upkeep of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._context = workspace.context
        self.last_refresh: SurveyRefresh | None = None

    def survey(
        self, progress: Callable[[int, int], None] = lambda *_: None, *, within: float = 0.0, reuse: float = 0.0
    ) -> Survey:
        """The survey of all memory files, brought up to date.

        `reuse`: if no file was added, removed or replaced since, a survey of so many seconds ago is good enough.
        `within`: the same, for a caller that waits; if very many files are new, it raises Busy and reads none.
        """
        survey = self._context.survey
        if (within or reuse) and survey.is_fresh(within or reuse):
            return survey
        try:
            self.last_refresh = survey.refresh(progress, most=MAX_FILES_TO_WAIT_FOR if within else None)
        except TooMuch as error:
            raise Busy(
                f"{error} memory files have not been looked through yet",
                hint="it goes on; try again in a minute or two",
            ) from error
        return survey


class Upkeep:
    """Upkeep of one workspace."""

    def __init__(self, workspace: Workspace, *, at_night: bool = False) -> None:
        """`at_night`: several verbs in a row, and nobody waits for lists. One look at the files serves all of them."""
        self.workspace = workspace
        self._at_night = at_night
        self.root = str(workspace.path)
        self.today = workspace.today()
        self.now = workspace.now()
        self._by_hand = True
        self._unindexed: tuple[str, ...] = ()
        self._force = False
        # Asked often in one run, and gone with it.
        self._checked = cache(self._last_checked)
        self._instructions = cache(self._read_instructions)
        self._instruction_values = cache(self._find_instruction_values)

    def survey(self, tell: Callable[[int, int], None] = lambda *_: None) -> Survey:
        return self.workspace.maintenance.survey(tell, reuse=_ONE_NIGHT if self._at_night else 0.0)

    # Nights.

    def is_settled(self) -> bool:
        """Whether the last night found nothing to do, and all that this rests on is as it was. Only a look."""
        survey = self.survey()
        key = self._rests_on(survey)
        until = survey.answer("night", key) if key else None
        return until is not None and self.today.isoformat() <= until

    def note_settled(self) -> None:
        """Note that there was nothing to do: nothing new was proposed, nothing written."""
        survey = self.survey()
        key = self._rests_on(survey)
        if key and not survey.count("fresh"):
            limit = (self.today - timedelta(days=RECENT)).isoformat()
            is_young = any(item.day >= limit for _, _, said in survey.clashes() for item in said)
            survey.remember("night", key, self.today.isoformat() if is_young else "9999")  # who wins goes by days

    def _rests_on(self, survey: Survey) -> str:
        """Everything by which doubles, promotions and disagreements could be others; empty while that is not sure."""
        if not survey.mark:
            return ""
        files = [os.path.join(self.root, name) for name in (REVIEW, _FACTS, f"{_FACTS}-wal")]
        for repository in self._repositories(survey):
            if root := self._checkout_of(repository):
                files += [os.path.join(root, name) for name in INSTRUCTION_FILES]
        stamps = [_stamp(path) for path in files]
        last = max((stamp[0] for stamp in stamps if stamp is not None), default=0)
        if time.time_ns() - last < SETTLED_NS:
            return ""  # it may change again without its time moving
        return repr((survey.mark, stamps, self._verdicts(), self.workspace.config))

    def _verdicts(self) -> int:
        """What code said to all memories when they were last checked, in one number."""
        config = self.workspace.config
        if not (config.verify.checkouts or config.repositories):
            return 0
        with suppress(apsw.Error):
            seals = read_seals(os.path.join(self.root, STATE, "facts.sqlite"))
            return sum(zlib.crc32(seal, zlib.crc32(path.encode("utf-8", "replace"))) for path, seal, _ in seals)
        return -1

    # Tidying.

    def duplicates(self, *, dry_run: bool = False, tell: Callable[[int, int], None] = lambda *_: None) -> TidyReport:
        """Find cards that say the same, and propose to merge them."""
        survey = self.survey(tell)
        sense = Sense(os.path.join(self.root, STATE, "index.sqlite"))
        try:
            compare_fresh(survey, self.read, sense)
        finally:
            sense.close()
        doubles = find_doubles(survey)

        def ideas() -> Iterator[Idea]:
            yield from merge_ideas(doubles, self.read)
            yield from instructed_ideas(survey, self.read, self._instruction_lines)

        offered = self._offered("duplicates", survey, ideas, dry_run=dry_run)
        return TidyReport(tuple(doubles), offered, self._problems(survey))

    def promote(self, *, dry_run: bool = False) -> TidyReport:
        """Find what logs keep saying and no card holds, and propose cards."""
        survey = self.survey()
        structural = self.workspace.config.decay.structural
        offered = self._offered(
            "promote", survey, lambda: promotion_ideas(survey, self.read, structural=structural), dry_run=dry_run
        )
        return TidyReport((), offered, self._problems(survey))

    def _problems(self, survey: Survey) -> tuple[FileProblem, ...]:
        return () if self._at_night else tuple(survey.problems(self.today))

    # Forgetting.

    def decay(
        self, *, dry_run: bool = False, archive: bool = False, force: bool = False, by_hand: bool = True
    ) -> DecayReport:
        """Forget on purpose: entries of logs, drafts, processed handoffs, sessions; and list cards that need a look.

        `archive`: put logs away of which nothing is left. Unless `by_hand`, what somebody took back stays.
        """
        read_decayed(os.path.join(self.root, STATE))  # one that cannot be read is told before anything goes
        drafts, files = self.workspace.handoffs.prune(dry_run=dry_run, force=force)  # which looks at the clock first
        survey, notes, problems = self.survey(), list[str](), list[str]()
        plan, record, moves = self._forgetting(survey, archive=archive, by_hand=by_hand, notes=notes, problems=problems)
        if not dry_run and (plan is not None or moves):
            with self.workspace.writing("decay") as books:
                survey, notes, problems = self.survey(), [], []  # again: nobody else writes now
                plan, record, moves = self._forgetting(
                    survey, archive=archive, by_hand=by_hand, notes=notes, problems=problems
                )
                at = self.workspace.stamp()
                if plan is not None:
                    write_forgetting(books, plan, at=at, actor=person())
                if record is not None:
                    moves = write_moves(books, moves, record, at=at, actor=person(), problems=problems)
        sessions, told = self.workspace.search.drop_expired(dry_run=dry_run)
        bad = [f"{item.path}:{item.line}: {item.what}" for item in self._problems(survey) if item.code == "bad-tag"]
        return DecayReport(
            day=self.today,
            record=record,
            leaving=plan.leaving if plan is not None else (),
            returning=plan.returning if plan is not None else (),
            moves=tuple(moves),
            drafts=tuple(draft.id for draft in drafts),
            processed=tuple(files),
            sessions=sessions,
            cards=() if self._at_night else tuple(self._stale_cards(survey)),
            problems=(*bad, *problems),
            notes=(*notes, *told),
        )

    def _forgetting(
        self, survey: Survey, *, archive: bool, by_hand: bool, notes: list[str], problems: list[str]
    ) -> tuple[Forgetting | None, DecayRecord | None, list[Move]]:
        """What becomes of entries of logs, the record after that, and the logs that are put away."""
        settings = self.workspace.config.decay
        tiers = Tiers(settings.structural, settings.potential, settings.potential_days, settings.contextual_days)
        record = read_decayed(os.path.join(self.root, STATE))
        plan = plan_forgetting(survey, record, self.today, tiers)
        if plan is not None and not by_hand and is_taken_back(self.workspace.context.transaction):
            notes.append("what logs said stays in search, because that was undone; `truekeep tidy decay` decides anew")
            plan = None
        record = plan.record if plan is not None else record
        moves = plan_moves(survey, record, self._bytes, self.today, problems) if archive else []
        return plan, record, moves

    def _bytes(self, path: str) -> bytes | None:
        stored = self.workspace.context.transaction.vault.read(path)
        return stored.data if stored is not None else None

    def stale_cards(self) -> list[Stale]:
        """Cards without a sign of life: to be verified, or to be decided on. Only a look."""
        return self._stale_cards(self.workspace.maintenance.survey(within=_LATELY))

    def _stale_cards(self, survey: Survey) -> list[Stale]:
        """Cards without a sign of life; while nothing changed, as they were found the last time."""
        config, state = self.workspace.config, os.path.join(self.root, STATE)
        facts = os.path.join(state, "facts.sqlite")
        verified = [_stamp(path) for path in (facts, f"{facts}-wal")]
        rests_on = (survey.mark, self.today, verified, config.decay.card_days, config.repositories, config.verify)
        key = repr(rests_on) if survey.mark else ""
        if key and (known := survey.answer("stale", key)) is not None:
            return [Stale(*item) for item in json.loads(known)]

        @cache
        def hurdle(repository: str) -> str:
            known = self._checkout_of(repository) if repository else ""
            if not repository or (not known and is_of_workspace(repository, self.root)):
                return "it names no repository, so it cannot be verified"
            return "" if known else f"no checkout of {repository} is known on this machine"

        checks = checks_of(read_counts(facts))
        flawed = {item.path for item in survey.problems(self.today) if item.code in _NO_FRONTMATTER}
        found = find_stale(survey.cards(), checks, self.today, config.decay.card_days, hurdle, flawed)
        if key:
            survey.remember("stale", key, json.dumps(found))
        return found

    def _offered(
        self, name: str, survey: Survey, ideas: Callable[[], Iterable[Idea]], *, dry_run: bool
    ) -> tuple[ProposalOutcome, ...]:
        """Put ideas before a person. Where nothing changed since there were none, there are none."""
        key = self._key(survey)
        if key and survey.answer(name, key) == "none":
            return ()
        found = list(ideas())
        if found and not dry_run:
            with self.workspace.writing("propose") as books:
                told = offer(found, books, actor=person(), now=self.now)
        else:
            told = offer(found, self.workspace.context.transaction, actor=person(), now=self.now, dry_run=True)
        if key and not found:
            survey.remember(name, key, "none")
        return tuple(told)

    def _key(self, survey: Survey, *more: object) -> str:
        """What an answer rests on; empty while that is not certain."""
        if not survey.mark:
            return ""
        config = self.workspace.config
        files = [
            os.path.join(self.root, STATE, "decay.toml"),
            os.path.join(self.root, REVIEW),
            os.path.join(self.root, _FACTS),
        ]
        return repr((survey.mark, self.today.isoformat(), [_stamp(path) for path in files], config.decay, *more))

    # Reconciling.

    def reconcile(
        self, *, fix: bool = False, code: bool = True, by_hand: bool = True, force: bool = False
    ) -> ReconcileReport:
        """Where the stores disagree, with who wins and why. `fix` writes what is decided, and asks what is not.

        `code`: hold what changed against current code first; else what the last check said counts. Unless `by_hand`,
        what somebody took back stays. Most lines of the index do not go at once, unless somebody says so (`force`).
        """
        self._by_hand, self._force = by_hand, force
        problems: list[str] = []
        checked = self._rot(problems, fresh=code)
        survey = self.survey()
        found = list(self._disagreements(survey, checked, problems))
        crowding = self._crowding([repair for _, repair in found])
        if not fix:
            asked = self._asked(found, self._offer(found, dry_run=True))
            return ReconcileReport(asked, (), (), tuple(problems), crowding, self._unindexed)
        done = self._fix(found, checked, problems)
        if done:  # what is asked is asked of the cards as they are now
            found = [item for item in found if item[0].action != "ask"]
            left = self._disagreements(self.survey(), (), [])
            found += [item for item in left if item[0].action == "ask"]
        offered = self._offer(found, dry_run=False)
        asked = self._asked(found, offered)
        return ReconcileReport(asked, tuple(done), tuple(offered), tuple(problems), crowding, self._unindexed)

    def _offer(self, found: Sequence[Found], *, dry_run: bool) -> list[ProposalOutcome]:
        ideas = [repair.idea for _, repair in found if repair.idea is not None]
        if not ideas or dry_run:
            return offer(ideas, self.workspace.context.transaction, actor=person(), now=self.now, dry_run=True)
        with self.workspace.writing("reconcile") as books:
            return offer(ideas, books, actor=person(), now=self.now)

    def _asked(self, found: Sequence[Found], offered: Sequence[ProposalOutcome]) -> tuple[Disagreement, ...]:
        states = {item.idea: item for item in offered}
        return tuple(_asked(item, states.get(repair.idea) if repair.idea else None) for item, repair in found)

    def _disagreements(self, survey: Survey, checked: Sequence[CheckedMemory], problems: list[str]) -> Iterator[Found]:
        yield from self._index_found(survey, problems)
        facts = list(self._facts(problems))
        judge = Judge(
            today=self.today,
            code=self._code_says,
            instructions=self._instruction_values,
            read=self.read,
        )
        told = [(name, self._instruction_values(name)) for name in self._repositories(survey)]
        by_instruction = [
            self._if_once(found) for found in hold_instructions([item for item in told if item[1]], survey.said)
        ]
        yield from by_instruction
        settled = {item.place for item, _ in by_instruction}
        for found in hold_values(self._clashes(survey, facts), judge):
            if found[0].place not in settled:
                yield found
        self._listen(survey, problems)
        yield from hold_talk(iter_contradicted(survey.db), survey.said)
        yield from self._handoffs(problems)
        for item in checked:
            for verdict in item.verdicts:
                if verdict.is_rot:
                    winner, reason = REASONS["memory-code"]
                    is_kept = item.path.startswith(f"{CARDS}/") or verdict.verdict != "gone"
                    yield (
                        Disagreement(
                            "memory-code",
                            f"{item.path}:{verdict.claim.line}",
                            verdict.claim.shown,
                            verdict.place or "current code",
                            f"{verdict.verdict}: {verdict.why}",
                            winner,
                            reason,
                            "fix" if is_kept else "person",
                            "" if is_kept else f"edit {item.path}",
                        ),
                        Repairs(),
                    )

    def _if_once(self, found: Found) -> Found:
        """A value that stands in a card more than once is not changed in one place only."""
        item, repair = found
        said = repair.value[0] if repair.value is not None else None
        text = decode_text(self.read(said.path) or b"") if said is not None else None
        if said is None or text is None or text.count(said.value.value) < 2:
            return found
        step = f"{said.value.value} stands in it more than once: edit {said.path}"
        return item._replace(action="person", step=step), Repairs()

    def _clashes(self, survey: Survey, facts: Sequence[StatedValue]) -> Iterator[tuple[str, str, list[StatedValue]]]:
        """Things with several values, those of the database of facts among them."""
        extra: dict[tuple[str, str], list[StatedValue]] = {}
        for item in facts:
            extra.setdefault((item.value.kind, item.value.subject), []).append(item)
        for kind, subject, said in survey.clashes():
            yield kind, subject, [*self._dated(said), *extra.pop((kind, subject), ())]
        for (kind, subject), given in extra.items():
            said = [*self._dated(survey.said(kind, subject)), *given]
            if len({item.value.value for item in said}) > 1:
                yield kind, subject, said

    def _dated(self, said: Sequence[StatedValue]) -> list[StatedValue]:
        """With the days on which cards were written: a repair of one line does not make the others younger."""
        paths = sorted({item.path for item in said if item.store == "cards"})
        repairs = self.workspace.context.transaction.ledger.last_repairs(paths) if paths else {}
        out = []
        for item in said:
            days = parse_repair(repairs[item.path][1]) if item.path in repairs else None
            is_repair = days is not None and days[1] is not None and days[1].isoformat() == item.day
            before = days[0].isoformat() if days is not None and days[0] is not None else ""
            out.append(item._replace(day=before) if is_repair else item)
        return out

    def _index_found(self, survey: Survey, problems: list[str]) -> Iterator[Found]:
        try:
            data = self.read(INDEX)
        except (UnsafePath, ChangedSince, OSError) as error:
            problems.append(f"{INDEX}: {error}")
            return
        if data is None:
            data = b""
        ledger = self.workspace.context.transaction.ledger

        @cache
        def owners() -> list[int]:
            return line_owners(ledger, INDEX, data)

        def is_ours(number: int) -> bool:
            known = owners()
            return 0 < number <= len(known) and known[number - 1] > 0

        is_away = not os.path.lexists(os.path.join(self.root, CARDS))
        merged = Consolidation(data, ledger, self.read, heeds_undo=not self._by_hand)
        cards = list(survey.cards())
        linked = linked_cards(data)
        names = [facts.path.removeprefix(f"{CARDS}/") for facts in cards if facts.key]
        unindexed = [name for name in names if name not in linked and merged.covers(name)]
        self._unindexed = tuple(f"{CARDS}/{name}" for name in unindexed)
        yield from hold_index(data, cards, is_ours, self._lies, merged.covers, is_away=is_away, force=self._force)

    def _lies(self, name: str) -> str:
        """What is wrong with a card that is there and was not read; nothing where there is none."""
        try:
            stored = self.workspace.context.transaction.vault.read(f"{CARDS}/{name}")
        except UnsafePath as error:
            return error.what
        except ChangedSince:
            return "is being written"
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        if stored is None:
            return ""
        return "is not UTF-8 text" if decode_text(stored.data) is None else "came just now"

    def _rot(self, problems: list[str], *, fresh: bool) -> list[CheckedMemory]:
        """The memories that code refutes."""
        config = self.workspace.config
        if not (config.verify.checkouts or config.repositories):
            return []
        try:
            if fresh:
                self.workspace.verification.verify(changed=True, system=False)
            counted = read_counts(os.path.join(self.root, STATE, "facts.sqlite"))
            rotten = [
                path
                for path, _, counts in counted
                if any(counts.get(word) for word in ("gone", "moved", "changed"))
                and os.path.isfile(os.path.join(self.root, path))
            ]
            return self.workspace.verification.verify(rotten, system=False) if rotten else []
        except TruekeepError as error:
            problems.append(f"code: {error.message}")
            return []

    def _code_says(self, said: StatedValue) -> str:
        """What the last check says to the place of a value."""
        checked = self._checked(said.path) if said.store in ("cards", "documents") else None
        for verdict in checked.verdicts if checked is not None else ():
            if verdict.claim.line == said.value.line and said.value.value in verdict.claim.text:
                if verdict.is_rot:
                    return "refuted"
                if verdict.verdict == "confirmed":
                    return "confirmed"
        return ""

    def _last_checked(self, path: str) -> CheckedMemory | None:
        return self.workspace.verification.last_checked(path)

    # What it is held against.

    def _repositories(self, survey: Survey) -> list[str]:
        rows = survey.db.execute("SELECT DISTINCT repository FROM files WHERE repository != '' ORDER BY repository")
        return [str(row[0]) for row in rows]

    def _checkout_of(self, repository: str) -> str:
        """The folder on this machine that holds a repository; nothing where none does."""
        chosen = choose_checkout(repository, self._checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""

    @cached_property
    def _checkouts(self) -> list[Checkout]:
        return self.workspace.repositories.checkouts()

    def _read_instructions(self, repository: str) -> tuple[tuple[str, str], ...]:
        """The instruction files of a repository, and their texts."""
        root = self._checkout_of(repository)
        found = []
        for name in INSTRUCTION_FILES:
            text = _read_plain(os.path.join(root, name)) if root else None
            if text is not None:
                found.append((f"{repository}/{name}", text))
        return tuple(found)

    def _instruction_lines(self, repository: str) -> str:
        texts = (text for _, text in self._instructions(repository))
        return "\n".join(" ".join(words_of(line)) for text in texts for line in text.split("\n"))

    def _find_instruction_values(self, repository: str) -> list[StatedValue]:
        if not repository:
            return []
        return [
            item
            for path, text in self._instructions(repository)
            for item in said_in(path, text, store="instructions", day="", repository=repository)
        ]

    def _facts(self, problems: list[str]) -> Iterator[StatedValue]:
        """The facts of memory/facts.db as values: entity and key name the thing."""
        path = os.path.join(self.root, _FACTS)
        if not os.path.lexists(path):
            return
        latest: dict[tuple[str, str], list[StatedValue]] = {}
        try:
            for row in iter_facts(path):
                kind, subject = name_of(row.fact.entity, row.fact.key)
                day = (row.updated_at or "")[:10]
                if subject:
                    value = Value(kind, subject, row.fact.value, 0, 0, 0)
                    latest.setdefault((kind, subject), []).append(
                        StatedValue(_FACTS, "facts", day if day > "1971" else "", "", value)
                    )
        except UnreadableFacts as error:
            problems.append(f"{_FACTS}: {error.what}")
        for said in latest.values():  # a table of facts may keep the earlier ones: the last of them counts
            last = max(item.day for item in said)
            yield from (item for item in said if item.day == last)

    def _listen(self, survey: Survey, problems: list[str]) -> None:
        """Take in what was said in sessions of late."""
        days = self.workspace.config.decay.transcript_days
        try:
            archive = self.workspace.sessions.transcripts()
            kept = {item.shown: item for item in archive.sessions(since=self.today - timedelta(days=days))}
            sessions = [
                (name, f"{item.version} {item.turns}", item.last_at[:10], item.repository)
                for name, item in kept.items()
            ]

            def turns(name: str) -> Iterator[SpokenText]:
                for turn in archive.own_turns(kept[name]):
                    yield SpokenText(turn.text, turn.line, turn.at[:10])

            listen(survey.db, sessions, turns)
        except TruekeepError as error:
            problems.append(f"transcripts: {error.message}")

    def _handoffs(self, problems: list[str]) -> Iterator[Found]:
        """Waiting handoffs that say otherwise than a card: the judge's word, before they are filed."""
        try:
            letters = self.workspace.handoffs.waiting()
        except TruekeepError as error:
            problems.append(f"inboxes: {error.message}")
            return
        filings = self.workspace.handoffs.lint([(raw, name, root) for raw, name, root, _ in letters])
        for (_, _, _, place), filing in zip(letters, filings, strict=True):
            codes = [finding for finding in filing.findings if finding.code in _COMPARED]
            is_update = filing.outcome == "promoted" and self.read(filing.target) is not None
            if not codes and not is_update:
                continue
            why = (
                "; ".join(finding.message for finding in codes)
                or "the handoff is sure of itself, and the judge has nothing against it"
            )
            sure = filing.outcome == "promoted"
            found = Disagreement(
                "handoff-card",
                place,
                filing.title,
                filing.target,
                "the card as it is",
                "handoff" if sure else "",
                why,
                "none" if sure else "person",
                "`truekeep ingest` updates the card" if sure else "`truekeep ingest` puts it into review",
            )
            yield found, Repairs()

    # Fixing.

    def _fix(self, found: Sequence[Found], checked: Sequence[CheckedMemory], problems: list[str]) -> list[str]:
        """Write what is decided: code first, then the index, then values."""
        if not any(item.action == "fix" for item, _ in found):
            return []
        repairs = [item for _, item in found]
        done = self.workspace.verification.repair(checked)[1] if checked else []
        with self.workspace.writing("reconcile") as books:
            done += self._fix_index(repairs, books, problems)
            done += self._fix_values(repairs, books, problems)
        return done

    def _crowding(self, repairs: Sequence[Repairs]) -> str:
        """Why the index would be longer than agents read, if what it lacks is written; nothing if it would not."""
        lacking = sum(item.point is not None for item in repairs)
        if not lacking:
            return ""
        staging = Staging(self.workspace.context.transaction.vault)
        try:
            before = staging.read(INDEX) or b""
            self._stage_index(staging, repairs)
            after = staging.index().render()
        except (UnsafePath, ChangedSince, OSError):
            return ""  # which whoever writes it is told
        limits = self.workspace.config.limits
        lines, size = after.count(b"\n"), len(after)
        if lines > limits.index_lines and lines > before.count(b"\n"):
            length = f"{lines} lines long, and agents read {limits.index_lines}"
        elif size > limits.index_bytes and size > len(before):
            length = f"{size:,} bytes long, and agents read {limits.index_bytes:,}"
        else:
            return ""
        missing = "a line that a card lacks" if lacking == 1 else f"{lacking} lines that cards lack"
        return f"with {missing}, {INDEX} is {length}: the rest is cut off. {_SHORTER}"

    def _stage_index(self, staging: Staging, repairs: Sequence[Repairs]) -> list[str]:
        """Mend the index in one pass, whatever is to be done. A card that came back meanwhile keeps its line."""
        names = dict.fromkeys(item.unpoint for item in repairs if item.unpoint)
        gone = [name for name in names if not os.path.lexists(os.path.join(self.root, CARDS, name))]
        once = list(dict.fromkeys(item.once for item in repairs if item.once))
        retitled = [item.retitle for item in repairs if item.retitle is not None]
        points = [item.point for item in repairs if item.point is not None]
        staging.index().mend(0, gone=gone, once=once, retitled={old: new for _, old, new in retitled})
        for point in points:
            staging.point_at(*point, 0)
        told = [f"the line for {name}, which is not there, was taken out" for name in gone]
        told += [f"{name} has one line" for name in once]
        told += [f"the line for {name} says its topic" for name, _, _ in retitled]
        told += [f"{name} got its line" for name, _ in points]
        return [f"{INDEX}: {printable(line)}" for line in told]

    def _fix_index(self, repairs: Sequence[Repairs], books: MemoryTransaction, problems: list[str]) -> list[str]:
        staging = Staging(books.vault)
        try:
            told = self._stage_index(staging, repairs)
            if not staging.changes():
                return []
            note = f"{len(told)} index lines" if len(told) > 1 else told[0]
            books.act(staging, LedgerEntry(at=self.workspace.stamp(), verb="reconciled", actor=person(), note=note))
        except (UnsafePath, ChangedSince, EditedSince, StorageFailed) as error:
            problems.append(f"{INDEX}: {error}")
            return []
        return told

    def _fix_values(self, repairs: Sequence[Repairs], books: MemoryTransaction, problems: list[str]) -> list[str]:
        """Write the values that hold into the cards that say otherwise, one entry for each card."""
        wanted: dict[str, dict[int, tuple[StatedValue, str]]] = {}
        for item in repairs:
            if item.value is not None:
                said, value = item.value
                wanted.setdefault(said.path, {}).setdefault(said.value.start, (said, value))
        told = []
        for path, places in wanted.items():
            if not self._by_hand and _is_taken_back(books, path):
                continue  # a person undid it: nobody is there who could decide anew
            staging = Staging(books.vault)
            try:
                data = staging.read(path)
                if data is None:
                    continue
                text = decode_text(data)
                what = []
                for _, (said, value) in sorted(places.items(), reverse=True):
                    text = with_value(text, said, value) if text is not None else None
                    what.append(f"{said.value.subject} {said.value.kind} {said.value.value} → {value}")
                if text is None:
                    problems.append(f"{path}: edited since it was looked at, so it was left alone; run it again")
                    continue
                since = next(iter(places.values()))[0].day or "no day"
                note = "; ".join(what) + f" (of {since}, brought up to {self.today})"
                staging.put(path, spelled_like(data, bumped(path, text, self.today)), 0)
                books.act(staging, LedgerEntry(at=self.workspace.stamp(), verb="repaired", actor=person(), note=note))
            except (UnsafePath, ChangedSince, EditedSince) as error:
                problems.append(f"{path}: {error}")
                continue
            told.append(f"{path}: {'; '.join(what)}")
        return told

    # Files.

    def read(self, path: str) -> bytes | None:
        """A memory file as it is; nothing for what is none or cannot be read."""
        with suppress(UnsafePath, ChangedSince, OSError):
            stored = self.workspace.context.transaction.vault.read(path)
            return stored.data if stored is not None else None
        return None


def _is_taken_back(books: MemoryTransaction, path: str) -> bool:
    """Whether the last that was done to a card is that somebody undid a repair."""
    last = next(books.ledger.entries(path=path, limit=1), None)
    undone = books.ledger.get_entry(last.undoes) if last is not None and last.undoes is not None else None
    return undone is not None and undone.verb == "repaired"


def _asked(item: Disagreement, offered: ProposalOutcome | None) -> Disagreement:
    """A disagreement with what became of its question."""
    if offered is None or offered.state in ("proposed", "later"):
        return item
    if offered.state == "waiting":
        return item._replace(step=f"asked in review: draft {offered.draft}")
    if offered.state == "rejected":
        return item._replace(action="none", step="a person was asked, and left it so")
    if offered.state == "unfit":
        return item._replace(action="person", step=offered.idea.hindrance or "edit the card")
    return item._replace(action="person", step="it holds what looks like a credential; edit the card")


def _read_plain(path: str) -> str | None:
    """The text of a file outside of the workspace, through no link."""
    from truekeep.search.refresh import read_source

    with suppress(OSError):
        data, _ = read_source(path)
        return decode_text(data[:_INSTRUCTION_BYTES])
    return None


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size
