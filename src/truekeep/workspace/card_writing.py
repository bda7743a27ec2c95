"""Carries out a planned card: one ledger entry here, a handoff on a machine that may not write memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from truekeep.core.model import Finding
from truekeep.handoffs.format import default_card_name, handoff_name
from truekeep.handoffs.inbox import Inbox, deliver
from truekeep.memory.ledger import LedgerEntry
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.text.unified_diff import difference
from truekeep.workspace.card_overlap import (
    CoveringCard,
)
from truekeep.workspace.card_policy import CardPlan, at_given_lines, check_stops, is_stop
from truekeep.workspace.card_text import CardAuthor, CardText, compose

if TYPE_CHECKING:
    from truekeep.core.config import Config
    from truekeep.core.file_io import FileStamp
    from truekeep.handoffs.policy.decision import Lint
    from truekeep.handoffs.policy_store import StoredMemoryView
    from truekeep.memory.transaction import MemoryTransaction


class CardWriteResult(NamedTuple):
    """The result of writing a card."""

    outcome: Literal["written", "updated", "already", "planned", "left"]
    path: str
    topic: str
    hints: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()  # codes of findings that were overridden
    covering: tuple[CoveringCard, ...] = ()
    difference: tuple[str, ...] = ()
    entry: int | None = None
    notes: tuple[str, ...] = ()


def planned_result(plan: CardPlan, shelf: StoredMemoryView) -> CardWriteResult:
    filing = plan.filing
    old = shelf.read(filing.target)
    told = difference(old, filing.data, filing.target) if filing.data is not None else ()
    outcome: Literal["already", "planned"] = "already" if filing.outcome == "already" else "planned"
    codes = tuple(dict.fromkeys(finding.code for finding in plan.passed))
    return CardWriteResult(outcome, filing.target, filing.topic, plan.hints, codes, difference=tuple(told))


def write_planned(
    plan: CardPlan, shelf: StoredMemoryView, transaction: MemoryTransaction, by: CardAuthor, *, at: str
) -> CardWriteResult:
    filing = plan.filing
    codes = tuple(dict.fromkeys(finding.code for finding in plan.passed))
    passed = f" (--anyway: {', '.join(codes)})" if codes else ""
    shelf.stage(filing, 0)
    stamps: dict[str, FileStamp] = {}
    is_changed = bool(shelf.staging.changes())
    try:
        if is_changed:
            note = f"{withhold(printable(filing.topic))[:150]}{passed}"
            stamps = transaction.act(shelf.staging, LedgerEntry(at=at, verb="written", actor=by.actor, note=note))
    finally:
        shelf.settle(stamps)
    entry = next(transaction.ledger.entries(limit=1)).id if is_changed else None
    outcome: Literal["already", "updated", "written"] = "updated" if plan.is_update else "written"
    outcome = "already" if filing.outcome == "already" else outcome
    return CardWriteResult(outcome, filing.target, filing.topic, plan.hints, codes, entry=entry)


def leave_card(
    wanted: CardText, by: CardAuthor, judge: Lint, config: Config, *, anyway: bool = False
) -> CardWriteResult:
    """Write a new card as a handoff into the repository's inbox; the canonical host judges it again."""
    assert by.root is not None
    name = wanted.name or default_card_name(wanted.topic, by.repository)
    text = compose(wanted, name)
    raw, file_name = text.encode("utf-8", "surrogateescape"), handoff_name(wanted.topic, by.now)
    (filing,) = judge([(raw, file_name, by.root)])
    findings = at_given_lines(filing.findings, text, wanted)
    stops = [finding for finding in findings if is_stop(finding, config)]
    check_stops(stops, passes=stops if anyway else ())
    chosen = by.writer if by.writer in config.writers else next(iter(config.writers))
    inbox = Inbox(root=by.root, folder=config.writers[chosen], writer=chosen)
    left = deliver(inbox, file_name, raw)
    hints = tuple(finding for finding in findings if finding not in stops)
    codes = tuple(dict.fromkeys(finding.code for finding in stops))
    return CardWriteResult("left", str(left), wanted.topic, hints, codes)
