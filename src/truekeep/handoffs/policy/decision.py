"""The values of the policy: an incoming handoff, the view of memory it is compared with, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from truekeep.core.config import Config
from truekeep.core.errors import as_argument
from truekeep.core.model import CARDS, RULES, Finding, Outcome, Policy
from truekeep.handoffs.policy.instructed import InstructionLine
from truekeep.memory.card import Card
from truekeep.memory.covering import Covering
from truekeep.memory.lessons import find_table
from truekeep.memory.similarity import Sketch
from truekeep.memory.values import Value
from truekeep.text.secrets import scanner
from truekeep.verify.content_verifier import ContentCheck

MAX_FINDINGS = 100
_FOR_A_PERSON = frozenset(("new-document", "lesson", "likely-covered"))
"""Findings that no better text avoids: a person decides whether memory gets this at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandEdits:
    """Lines of a card that truekeep did not write, and lines of truekeep's that were removed."""

    written: Set[str] = frozenset()  # by a person, after truekeep
    older: Set[str] = frozenset()  # from before the ledger began; the author is unknown
    removed: Set[str] = frozenset()  # truekeep's, removed by a person


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOnTopic:
    """A card that is about the topic of a text."""

    card: Card
    certainty: Covering


@dataclass(frozen=True, slots=True, kw_only=True)
class CardValue:
    """A value that a card states, with the line that says it."""

    path: str
    topic: str
    repository: str
    value: Value
    line: int  # of the file
    text: str


class MemoryView:
    """What the policy reads of existing memory. On a machine without memory, as here, nothing is found."""

    is_known = False  # whether this machine has a memory to look into

    def read(self, path: str) -> bytes | None:  # noqa: ARG002
        return None

    def check_index(self) -> None:
        return None

    def day_of(self, path: str) -> date | None:  # noqa: ARG002
        return None

    def find_clash(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def find_document_clash(self, path: str) -> str | None:  # noqa: ARG002
        return None

    def place_journal(self, path: str) -> str:
        return path

    def find_same_topic(self, topic: str, repository: str, name: str) -> str | None:  # noqa: ARG002
        return None

    def find_near(self, candidate: Sketch, name: str) -> str | None:  # noqa: ARG002
        return None

    def find_on_topic(self, card: Card, candidate: Sketch) -> list[CardOnTopic]:  # noqa: ARG002
        return []

    def find_stated(self, kind: str, subject: str, name: str) -> list[CardValue]:  # noqa: ARG002
        return []

    def hand_edits(self, path: str) -> HandEdits:  # noqa: ARG002
        return HandEdits()

    def instructions(self) -> Sequence[InstructionLine]:
        return ()

    def check_content(self, content: str, day: date) -> ContentCheck:  # noqa: ARG002
        return ContentCheck(content)


UnsavedHandoff = tuple[bytes, str, Path | None]
"""A handoff that is not in an inbox yet: its bytes, name, and the folder of its repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingHandoff:
    """A handoff to decide on: bytes, name, and its origin as truekeep knows it."""

    raw: bytes | None
    name: str
    size: int
    repository: str
    writer: str
    machine: str = ""  # "" if unknown, or the canonical host itself
    same_name: str = ""  # message about another checkout with this name but other history; "" if there is none
    is_masked: bool = False  # a draft that still contains a masked credential
    is_draft: bool = False  # decided on before: a crash was recorded then


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Which targets handoffs are filed to automatically."""

    cards: bool = True
    documents: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of a handoff, and everything needed to carry it out."""

    outcome: Outcome
    findings: tuple[Finding, ...] = ()
    blocking: tuple[Finding, ...] = ()
    title: str = ""
    target: str = ""  # the file to write; for review, the intended one
    data: bytes | None = None  # the file's new bytes, or the bytes appended to the document
    replaces: bool = False  # data is the whole document, with one section replaced
    card_name: str = ""
    topic: str = ""
    label: str = ""  # the card's label in the index
    old_label: str = ""
    old_topic: str = ""
    sketch: Sketch | None = None
    similar_card: str = ""  # a card of the same repository with the same name or topic, or nearly the same text
    known_as: str = ""  # the earlier outcome, if the ledger has these exact bytes
    held_up: str = ""  # why ingest does not take handoffs of this repository

    @property
    def promise(self) -> str:
        """A sentence that says what ingest will do."""
        if self.known_as:
            return f"ingest will skip it: a handoff with the same content was processed before ({self.known_as})"
        if self.held_up:
            return f"ingest will leave it in the inbox: {self.held_up}"
        if self.is_for_a_person:
            return f"ingest will put it up for review: {self.blocking[0].message}"
        words = {
            "promoted": "ingest will promote it to",
            "routed": "ingest will append it to",
            "already": "already filed in",
        }
        if self.replaces and find_table(self.target) is not None:
            return f"ingest will add it to {self.target}"
        if self.is_addition and self.outcome == "promoted":
            return f"ingest will add what is new to {self.target}, which covers the topic"
        if self.replaces:
            return f"ingest will write it as the status in {self.target}"
        return f"{words[self.outcome]} {self.target}"

    @property
    def is_for_a_person(self) -> bool:
        """True if nothing is wrong with the handoff, but only a person may file it."""
        codes = {finding.code for finding in self.blocking}
        return self.outcome == "review" and bool(codes) and codes <= _FOR_A_PERSON

    def way_out(self, *, topic: str, update: str) -> str:
        """A hint how to resolve a conflict with an existing card, with the caller's options; "" if there is none."""
        codes = {finding.code for finding in self.blocking}
        if "drops-most" in codes and "card-exists" not in codes and self.target:
            name = self.target.removeprefix(f"{CARDS}/")
            return (
                "an update replaces the whole card: start from its text"
                f" (`truekeep card show {as_argument(name)}`) and change only what is new"
            )
        if not self.similar_card or not codes & {"same-topic", "card-exists", "near-duplicate"}:
            return ""
        return f"{topic} creates another card; {update.format(card=self.similar_card)} changes the existing one"

    @property
    def is_whole(self) -> bool:
        """True if `data` is the whole file, not an addition to it."""
        return bool(self.card_name) or self.replaces

    @property
    def is_addition(self) -> bool:
        """True if a card that covers the topic is added to, although the handoff did not name it."""
        return any(finding.code == "added-to" for finding in self.findings)

    @property
    def has_secret_name(self) -> bool:
        return any(finding.code == "secret" and finding.line is None for finding in self.findings)

    @property
    def has_secret(self) -> bool:
        return any(finding.code == "secret" for finding in self.findings)


Lint = Callable[[Sequence[UnsavedHandoff]], list[Decision]]
"""Decides what ingest would do with handoffs, in their order."""


class Retry(Exception):
    """A file changed while it was read; decide again."""


def decide(config: Config, findings: list[Finding], draft: Decision, *, approved: bool) -> Decision:
    """Apply the policy to the findings of a drafted decision. "already" stays, unless a finding is binding."""
    findings = findings[:MAX_FINDINGS]
    has_secret = any(finding.code == "secret" for finding in findings)
    if has_secret:
        findings = list(dict.fromkeys(map(without_excerpt, findings)))  # without excerpts, some are equal
    ranks: dict[Policy, list[Finding]] = {"promote": [], "review": [], "refuse": []}
    for finding in findings:
        policy = config.policy_for(finding.code)
        if approved:
            policy = "review" if RULES[finding.code].binding else "promote"
        ranks[policy].append(finding)
    outcome = draft.outcome
    if outcome != "already" or any(RULES[finding.code].binding for finding in ranks["review"]):
        if ranks["refuse"]:
            outcome = "refused"
        elif ranks["review"] or outcome == "review":
            outcome = "review"
    is_review = outcome == "review"
    return replace(
        draft,
        outcome=outcome,
        findings=tuple(findings),
        blocking=tuple(ranks["refuse"] + ranks["review"]),
        target=scanner.withhold(draft.target) if is_review else draft.target,
        data=None if is_review and has_secret else draft.data,
    )


def without_excerpt(finding: Finding) -> Finding:
    """The finding without an excerpt of the text, which could contain the secret."""
    if finding.code == "secret":
        return finding
    return Finding(code=finding.code, message=RULES[finding.code].meaning, line=finding.line)
