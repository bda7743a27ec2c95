"""The state of one decision, shared by the card route and the document route."""

from __future__ import annotations

from datetime import date, datetime, time

from truekeep.core.config import Config
from truekeep.core.model import Finding, Outcome
from truekeep.handoffs.format import Handoff
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, MemoryView, Routes, decide
from truekeep.memory.card import Card, words_of
from truekeep.memory.similarity import Sketch

INSTRUCTED_SHARE = 0.8  # of a handoff's lines that must be in the instruction file


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
    ) -> None:
        self.candidate, self.handoff, self.view, self.config = candidate, handoff, view, config
        self.findings, self.day, self.today, self.now = findings, day, today, now
        self.routes, self.approved = routes, approved

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

    def _check_instruction_files(self) -> None:
        """Add a finding if the repository's instruction file already says all of this."""
        said = self.view.instructions()
        if not said:
            return
        lines = [(number, line) for number, line in self.handoff.knowledge() if len(line.split()) >= 4]
        known = [number for number, line in lines if " ".join(words_of(line)) in said]
        if lines and len(known) / len(lines) >= INSTRUCTED_SHARE:
            what = "CLAUDE.md or AGENTS.md of the repository already says it"
            self.findings.append(Finding(code="already-instructed", message=what, line=known[0]))

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
            self._check_instruction_files()
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
