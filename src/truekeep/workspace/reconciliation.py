"""Finds where the stores disagree (index, cards, facts, instructions, transcripts, handoffs, code) and who wins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import TruekeepError
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.machine import person
from truekeep.core.model import CARDS, INDEX
from truekeep.core.state_dir import STATE
from truekeep.maintenance.proposals import ProposalOutcome, offer
from truekeep.maintenance.reconcile import (
    REASONS,
    DatedText,
    Disagreement,
    Found,
    Judge,
    Repairs,
    compare_index,
    compare_index_values,
    compare_instructions,
    compare_logs,
    compare_rules,
    compare_sessions,
    compare_values,
)
from truekeep.maintenance.survey.service import StatedValue, Survey
from truekeep.maintenance.survey.transcript_values import SessionText, iter_contradicted, read_sessions
from truekeep.memory.blame import line_owners
from truekeep.memory.facts_db import UnreadableFacts, iter_facts
from truekeep.memory.memory_index import linked_cards
from truekeep.memory.repair_note import parse_repair
from truekeep.memory.unindexed_cards import Consolidation
from truekeep.memory.values import Value, name_of
from truekeep.text.encoding import decode_text
from truekeep.verify.results import read_counts
from truekeep.workspace.reconciliation_fixes import index_overflow, write_index_lines, write_values
from truekeep.workspace.repository_instructions import USER

if TYPE_CHECKING:
    from truekeep.transcripts.store import StoredSession
    from truekeep.verify.results import CheckedMemory
    from truekeep.workspace.maintenance import Maintenance
    from truekeep.workspace.repository_instructions import RepositoryInstructions
    from truekeep.workspace.workspace import Workspace

FACTS_DB = "memory/facts.db"
CARD_FINDINGS = frozenset(
    (
        *("card-exists", "no-such-card", "drops-most", "hand-edited", "older-than-card"),
        *("near-duplicate", "same-topic", "other-repository", "refuted", "unreadable-card", "two-values"),
    )
)
"""Findings that say that a handoff and a card disagree."""


class ReconcileReport(NamedTuple):
    """The disagreements between the stores, and what was done about them."""

    found: tuple[Disagreement, ...]
    done: tuple[str, ...]
    offered: tuple[ProposalOutcome, ...]
    problems: tuple[str, ...]  # what could not be read
    crowding: str = ""  # why missing lines would make the index longer than agents read, and what to do
    unindexed: tuple[str, ...] = ()  # cards that are left out of the index on purpose

    @property
    def open(self) -> tuple[Disagreement, ...]:
        """Disagreements that a person should act on."""
        return tuple(item for item in self.found if item.action != "none")

    @property
    def held(self) -> str:
        """Why a decided change was not written, or ""."""
        return next((f"{INDEX}: {item.step}" for item in self.found if item.is_held), "")

    def is_unsettled(self, *, fix: bool) -> bool:
        """True if a person has to decide something, after what `fix` settled."""
        left = [item for item in self.open if not (fix and item.action in ("fix", "ask"))]
        return bool(left or self.problems)

    def followed_by(self, later: ReconcileReport) -> ReconcileReport:
        """Both runs as one."""
        return later._replace(done=(*self.done, *later.done), offered=self.offered, crowding=self.crowding)


class Reconciliation:
    """One run of reconcile."""

    def __init__(
        self,
        workspace: Workspace,
        maintenance: Maintenance,
        instructions: RepositoryInstructions,
        *,
        by_hand: bool,
        force: bool,
    ) -> None:
        self._workspace, self._context, self._maintenance = workspace, workspace.context, maintenance
        self._by_hand, self._force = by_hand, force
        self._root = str(workspace.path)
        self._today, self._now = workspace.today(), workspace.now()
        self._instructions = instructions
        self._last_checked = cache(workspace.verification.last_checked)
        self._read = workspace.files.read_bytes
        self._unindexed: tuple[str, ...] = ()

    def run(self, *, fix: bool, code: bool) -> ReconcileReport:
        """Find the disagreements; `fix` writes those that are decided, and asks a person about the others.

        `code`: check changed memory against current code first; else the last verdicts count.
        """
        problems: list[str] = []
        refuted = self._refuted(problems, fresh=code)
        found = list(self._disagreements(self._maintenance.survey(), refuted, problems))
        crowding = index_overflow(self._context, [repair for _, repair in found])
        if not fix:
            shown = self._with_questions(found, self._offer(found, dry_run=True))
            return ReconcileReport(shown, (), (), tuple(problems), crowding, self._unindexed)
        done = self._fix(found, refuted, problems)
        if done:  # a person is asked about the cards as they are now
            found = [item for item in found if item[0].action != "ask"]
            left = self._disagreements(self._maintenance.survey(), (), [])
            found += [item for item in left if item[0].action == "ask"]
        offered = self._offer(found, dry_run=False)
        shown = self._with_questions(found, offered)
        return ReconcileReport(shown, tuple(done), tuple(offered), tuple(problems), crowding, self._unindexed)

    def _fix(self, found: Sequence[Found], refuted: Sequence[CheckedMemory], problems: list[str]) -> list[str]:
        """Write what is decided: code first, then the index, then values."""
        if not any(item.action == "fix" for item, _ in found):
            return []
        repairs = [item for _, item in found]
        done = self._workspace.verification.repair(refuted)[1] if refuted else []
        at = self._workspace.stamp()
        with self._workspace.writing("reconcile") as transaction:
            done += write_index_lines(repairs, transaction, problems, at=at)
            done += write_values(repairs, transaction, problems, at=at, today=self._today, by_hand=self._by_hand)
        return done

    def _offer(self, found: Sequence[Found], *, dry_run: bool) -> list[ProposalOutcome]:
        ideas = [repair.idea for _, repair in found if repair.idea is not None]
        if not ideas or dry_run:
            return offer(ideas, self._context.transaction, actor=person(), now=self._now, dry_run=True)
        with self._workspace.writing("reconcile") as transaction:
            return offer(ideas, transaction, actor=person(), now=self._now)

    def _with_questions(self, found: Sequence[Found], offered: Sequence[ProposalOutcome]) -> tuple[Disagreement, ...]:
        states = {item.idea: item for item in offered}
        return tuple(_with_question(item, states.get(repair.idea) if repair.idea else None) for item, repair in found)

    def _disagreements(self, survey: Survey, checked: Sequence[CheckedMemory], problems: list[str]) -> Iterator[Found]:
        yield from self._index_found(survey, problems)
        facts = list(self._facts(problems))
        judge = Judge(
            today=self._today,
            code=self._verdict_at,
            instructions=lambda name: [*self._instructions.values(name), *self._instructions.values(USER)],
            read=self._read,
        )
        told: list[tuple[str | None, list[StatedValue]]] = [
            (name, self._instructions.values(name)) for name in survey.repositories()
        ]
        told.append((None, self._instructions.values(USER)))
        by_instruction = [
            self._if_once(found) for found in compare_instructions([item for item in told if item[1]], survey.values_of)
        ]
        yield from by_instruction
        yield from self._against_rules(survey)
        settled = {item.place for item, _ in by_instruction}
        for found in compare_values(self._clashes(survey, facts), judge):
            if found[0].place not in settled:
                if found[0].rule == "card-log":
                    settled.add(found[0].place)
                yield found
        for found in compare_logs(self._logs(survey), self._cards(survey)):
            if found[0].place not in settled:
                yield found
        self._listen(survey, problems)
        yield from compare_sessions(iter_contradicted(survey.db), survey.values_of)
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

    def _logs(self, survey: Survey) -> Iterator[DatedText]:
        """The logs of the last weeks."""
        since = (self._today - timedelta(days=self._workspace.config.decay.transcript_days)).isoformat()
        for path, day, repository in survey.logs_since(since):
            text = decode_text(self._read(path) or b"")
            if text is not None:
                yield DatedText(path, day, repository, text)

    def _cards(self, survey: Survey) -> Iterator[DatedText]:
        for facts in survey.cards():
            text = decode_text(self._read(facts.path) or b"")
            if text is not None:
                yield DatedText(facts.path, facts.updated or facts.created, facts.repository, text)

    def _against_rules(self, survey: Survey) -> Iterator[Found]:
        """Cards that tell to do the opposite of what an instruction file says."""
        for facts in survey.cards():
            given = [*self._instructions.rules(facts.repository)] if facts.repository else []
            given += self._instructions.rules(USER)
            data = self._read(facts.path) if given else None
            if data is not None:
                yield from compare_rules(facts.path, facts.repository, data, given)

    def _if_once(self, found: Found) -> Found:
        """Leave a value to a person if it occurs in the card more than once."""
        item, repair = found
        said = repair.value[0] if repair.value is not None else None
        text = decode_text(self._read(said.path) or b"") if said is not None else None
        if said is None or text is None or text.count(said.value.value) < 2:
            return found
        step = f"{said.value.value} stands in it more than once: edit {said.path}"
        return item._replace(action="person", step=step), Repairs()

    def _clashes(self, survey: Survey, facts: Sequence[StatedValue]) -> Iterator[tuple[str, str, list[StatedValue]]]:
        """Things with several values, including those of memory/facts.db."""
        extra: dict[tuple[str, str], list[StatedValue]] = {}
        for item in facts:
            extra.setdefault((item.value.kind, item.value.subject), []).append(item)
        for kind, subject, said in survey.conflicting_values():
            yield kind, subject, [*self._dated(said), *extra.pop((kind, subject), ())]
        for (kind, subject), given in extra.items():
            said = [*self._dated(survey.values_of(kind, subject)), *given]
            if len({item.value.value for item in said}) > 1:
                yield kind, subject, said

    def _dated(self, said: Sequence[StatedValue]) -> list[StatedValue]:
        """The values with the days of their cards before a repair, which renews only its own lines."""
        paths = sorted({item.path for item in said if item.store == "cards"})
        repairs = self._context.ledger.last_repairs(paths) if paths else {}
        out = []
        for item in said:
            days = parse_repair(repairs[item.path][1]) if item.path in repairs else None
            is_repair = days is not None and days[1] is not None and days[1].isoformat() == item.day
            before = days[0].isoformat() if days is not None and days[0] is not None else ""
            out.append(item._replace(day=before) if is_repair else item)
        return out

    def _index_found(self, survey: Survey, problems: list[str]) -> Iterator[Found]:
        try:
            data = self._read(INDEX)
        except (UnsafePath, ChangedSince, OSError) as error:
            problems.append(f"{INDEX}: {error}")
            return
        if data is None:
            data = b""
        ledger = self._context.ledger

        @cache
        def owners() -> list[int]:
            return line_owners(ledger, INDEX, data)

        def is_ours(number: int) -> bool:
            known = owners()
            return 0 < number <= len(known) and known[number - 1] > 0

        is_away = not os.path.lexists(os.path.join(self._root, CARDS))
        merged = Consolidation(data, ledger, self._read, heeds_undo=not self._by_hand)
        cards = list(survey.cards())
        linked = linked_cards(data)
        names = [facts.path.removeprefix(f"{CARDS}/") for facts in cards if facts.key]
        unindexed = [name for name in names if name not in linked and merged.covers(name)]
        self._unindexed = tuple(f"{CARDS}/{name}" for name in unindexed)
        yield from compare_index_values(data, cards, self._read)
        yield from compare_index(
            data, cards, is_ours, self._problem_of, merged.covers, is_away=is_away, force=self._force
        )

    def _problem_of(self, name: str) -> str:
        """Why a card was not read; "" if there is no such file."""
        try:
            stored = self._context.vault.read(f"{CARDS}/{name}")
        except UnsafePath as error:
            return error.what
        except ChangedSince:
            return "is being written"
        except OSError as error:
            return f"cannot be read ({error.strerror or error})"
        if stored is None:
            return ""
        return "is not UTF-8 text" if decode_text(stored.data) is None else "came just now"

    def _refuted(self, problems: list[str], *, fresh: bool) -> list[CheckedMemory]:
        """The memories with claims that current code refutes."""
        config = self._workspace.config
        if not (config.verify.checkouts or config.repositories):
            return []
        try:
            if fresh:
                self._workspace.verification.verify(changed=True, system=False)
            counted = read_counts(os.path.join(self._root, STATE, "facts.sqlite"))
            rotten = [
                path
                for path, _, counts in counted
                if any(counts.get(word) for word in ("gone", "moved", "changed"))
                and os.path.isfile(os.path.join(self._root, path))
            ]
            return self._workspace.verification.verify(rotten, system=False) if rotten else []
        except TruekeepError as error:
            problems.append(f"code: {error.message}")
            return []

    def _verdict_at(self, said: StatedValue) -> str:
        """The last verdict on a value: "refuted", "confirmed" or ""."""
        checked = self._last_checked(said.path) if said.store in ("cards", "documents") else None
        for verdict in checked.verdicts if checked is not None else ():
            if verdict.claim.line == said.value.line and said.value.value in verdict.claim.text:
                if verdict.is_rot:
                    return "refuted"
                if verdict.verdict == "confirmed":
                    return "confirmed"
        return ""

    def _facts(self, problems: list[str]) -> Iterator[StatedValue]:
        """The facts of memory/facts.db as values of the thing that entity and key name."""
        path = os.path.join(self._root, FACTS_DB)
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
                        StatedValue(FACTS_DB, "facts", day if day > "1971" else "", "", value)
                    )
        except UnreadableFacts as error:
            problems.append(f"{FACTS_DB}: {error.what}")
        for said in latest.values():  # the table may keep earlier facts: only the last counts
            last = max(item.day for item in said)
            yield from (item for item in said if item.day == last)

    def _listen(self, survey: Survey, problems: list[str]) -> None:
        """Read the values that recent sessions mention."""
        days = self._workspace.config.decay.transcript_days
        try:
            archive = self._workspace.sessions.transcripts()
            kept = {item.shown: item for item in archive.sessions(since=self._today - timedelta(days=days))}
            sessions = [
                (name, f"{item.version} {item.turns}", item.last_at[:10], self._repository_of(item))
                for name, item in kept.items()
            ]

            def turns(name: str) -> Iterator[SessionText]:
                for turn in archive.own_turns(kept[name]):
                    yield SessionText(turn.text, turn.line, turn.at[:10])

            read_sessions(survey.db, sessions, turns)
        except TruekeepError as error:
            problems.append(f"transcripts: {error.message}")

    def _repository_of(self, session: StoredSession) -> str:
        """What a session is about: one in the workspace itself, as OpenClaw's are, may be about any repository."""
        cwd = os.path.realpath(session.cwd) if session.cwd else ""
        return "" if session.harness == "openclaw" or cwd == os.path.realpath(self._root) else session.repository

    def _handoffs(self, problems: list[str]) -> Iterator[Found]:
        """Waiting handoffs that contradict a card, by the policy."""
        try:
            letters = self._workspace.handoffs.waiting()
        except TruekeepError as error:
            problems.append(f"inboxes: {error.message}")
            return
        filings = self._workspace.handoffs.lint([(raw, name, root) for raw, name, root, _ in letters])
        for (_, _, _, place), filing in zip(letters, filings, strict=True):
            codes = [finding for finding in filing.findings if finding.code in CARD_FINDINGS]
            is_update = filing.outcome == "promoted" and self._read(filing.target) is not None
            if not codes and not is_update:
                continue
            why = "; ".join(finding.message for finding in codes) or "the policy has no findings on the handoff"
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


def _with_question(item: Disagreement, offered: ProposalOutcome | None) -> Disagreement:
    """A disagreement with the state of the question about it."""
    if offered is None or offered.state in ("proposed", "later"):
        return item
    if offered.state == "waiting":
        return item._replace(step=f"asked in review: draft {offered.draft}")
    if offered.state == "rejected":
        return item._replace(action="none", step="a person was asked, and left it so")
    if offered.state == "unfit":
        return item._replace(action="person", step=offered.idea.hindrance or "edit the card")
    return item._replace(action="person", step="it holds what looks like a credential; edit the card")
