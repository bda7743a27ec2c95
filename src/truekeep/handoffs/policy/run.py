"""The state of one decision, shared by the card route and the document route."""

from __future__ import annotations

from datetime import date, datetime, time

from truekeep.core.config import Config
from truekeep.core.dates import many
from truekeep.core.model import Finding, Outcome
from truekeep.handoffs.format import Handoff
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, MemoryView, Routes, decide
from truekeep.handoffs.policy.instructed import find_instruction
from truekeep.memory.card import Card, is_journal_path
from truekeep.memory.lessons import find_table
from truekeep.memory.similarity import Sketch
from truekeep.text.durability import MAX_EXCERPT, NOT_DURABLE
from truekeep.text.unicode import clip

MAX_PASSING_SHARE = 0.5  # of a handoff's lines; from here on a person decides whether any of it is worth keeping


class PolicyRun:
    """One readable handoff on its way to a decision: collects findings."""

    def __init__(
        self,
        candidate: IncomingHandoff,
        handoff: Handoff,
        view: MemoryView,
        config: Config,
        findings: list[Finding],
        day: date,
        today: date,
        now: datetime | None,
        routes: Routes,
        approved: bool,
        is_retargeted: bool,
    ) -> None:
        self.candidate, self.handoff, self.view, self.config = candidate, handoff, view, config
        self.findings, self.day, self.today, self.now = findings, day, today, now
        self.routes, self.approved, self.is_retargeted = routes, approved, is_retargeted

    @property
    def clock(self) -> datetime:
        """The local time, as journals write it."""
        return self.now.astimezone().replace(tzinfo=None) if self.now else datetime.combine(self.today, time.max)

    def find(self, code: str, message: str, section: str = "") -> None:
        line = self.handoff.line_of(section)
        self.findings.append(Finding(code=code, message=message, line=line))

    def verified_content(self, content: str, where: str) -> str:
        """The content checked against the code: moved paths are updated, refuted claims become findings.

        A text with a credential is not checked: it goes to review anyway, and must not get anywhere else.
        """
        if any(finding.code == "secret" for finding in self.findings):
            return content
        checked = self.view.check_content(content, self.day)
        for finding in checked.findings:
            self.find(finding.code, finding.message, where)
        return checked.content

    def _check_durability(self, target: str) -> None:
        """Add findings for lines that instruction files say, and one if most of the handoff does not last.

        Logs and lessons are about what happened, and are not checked.
        """
        if is_journal_path(target) or target.startswith(".learnings/") or find_table(target) is not None:
            self.findings = [item for item in self.findings if item.code not in NOT_DURABLE]
            return
        said = self.view.instructions()
        lines = [(number, line.strip().lstrip("-*+ ")) for number, line in self.handoff.knowledge()]
        lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
        if said:
            for number, line in lines:
                if (there := find_instruction(line, said)) is not None:
                    what = f"{clip(line, MAX_EXCERPT)}: {there.file} says it already; leave it out."
                    self.findings.append(Finding(code="already-instructed", message=what, line=number))
        by_number = dict(lines)
        flagged = [item for item in self.findings if item.code in NOT_DURABLE and item.line in by_number]
        passing = {by_number[item.line]: item for item in reversed(flagged) if item.line is not None}
        count = len({line for _, line in lines})
        if not self.approved and passing and len(passing) >= MAX_PASSING_SHARE * count:
            first = next(iter(passing.values()))
            what = f"{len(passing)} of {many(count, 'line')} will not last. {first.message}"
            self.findings.append(Finding(code="not-durable", message=what, line=first.line))

    def decision(
        self,
        outcome: Outcome,
        target: str = "",
        data: bytes | None = None,
        card: Card | None = None,
        existing: Card | None = None,
        card_sketch: Sketch | None = None,
    ) -> Decision:
        if self.handoff.sections and outcome != "already":
            self._check_durability(target)
        draft = Decision(
            outcome=outcome,
            title=self.handoff.title,
            target=target,
            data=data,
            card_name=card.name if card else "",
            topic=card.topic if card else "",
            label=card.label if card else "",
            old_label=existing.label if existing else "",
            old_topic=existing.topic if existing else "",
            sketch=card_sketch,
        )
        return decide(self.config, self.findings, draft, approved=self.approved)


def instruction_file_message(path: str) -> str:
    name = path.rpartition("/")[2]
    return f"agents read {name} in any folder as instructions; choose another name, such as notes-{name.lower()}"
