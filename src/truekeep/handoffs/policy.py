"""Decides what one handoff becomes: a card, a document's new lines, already filed, review, or turned away.

The one judge for lint, ingest and review, so that "lint says ok" means "ingest files it". It only decides: it reads
the store through a Shelf and returns a Filing; nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import Protocol

from truekeep.core.bugs import bugs_path, note_bug
from truekeep.core.config import Config
from truekeep.core.dates import many
from truekeep.core.errors import BadInput, TruekeepError, as_argument, is_database_error
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import (
    BEGIN_MARK,
    CARDS,
    DOCUMENTS,
    END_MARK,
    HANDOFF_TYPES,
    PROTECTED,
    RULES,
    TEST_MARK,
    Finding,
    Outcome,
    Policy,
)
from truekeep.handoffs.format import (
    Handoff,
    default_card_name,
    is_conflict_copy,
    other_card_names,
    parse_handoff,
    parse_name,
)
from truekeep.memory.card import (
    ID_KEYS,
    OWNED_KEYS,
    TRUST_KEYS,
    Card,
    check_card_name,
    file_card,
    is_journal_path,
    is_rule_path,
    parse_card,
    same_card,
    words_of,
)
from truekeep.memory.frontmatter import InvalidFrontmatter, split_frontmatter
from truekeep.memory.journal import (
    STATUS,
    HandoffSource,
    JournalAddition,
    appended,
    find_stamp,
    receive_entry,
    title_of,
)
from truekeep.memory.sections import newline_of, sections_of, with_sections
from truekeep.memory.similarity import Sketch, sketch
from truekeep.text import durability, unicode
from truekeep.text import injection as instructions
from truekeep.text.encoding import decode_text
from truekeep.text.instruction_files import is_reserved_for_people
from truekeep.text.line_diff import kept_lines
from truekeep.text.markdown import TooComplex, find_open_comment, outline, underlines
from truekeep.text.secrets import scanner
from truekeep.verify.content_verifier import ContentCheck

KEEPS_LEAST = 0.5  # of an old card's words, for an update to pass unseen
MAX_FINDINGS = 100
REWORDED = 0.5  # of a line's words in one that stands in its place, to be the same line in other words
MOST_COMPARED = 10_000  # lines that are gone times lines that came, in one place
_STORE = frozenset(
    (
        "truekeep.memory.ledger",
        "truekeep.memory.staging",
        "truekeep.memory.transaction",
        "truekeep.core.file_io",
        "truekeep.core.sqlite",
    )
)
INSTRUCTED = 0.8  # of a handoff's lines in the instruction file, to say that it is all there


@dataclass(frozen=True, slots=True, kw_only=True)
class HandEdits:
    """Lines of a card that are not truekeep's, and those of truekeep's that are gone."""

    written: Set[str] = frozenset()  # by a person, after truekeep
    older: Set[str] = frozenset()  # there before the ledger: a person's, or not; nobody can tell
    removed: Set[str] = frozenset()  # truekeep's, taken out by a person


class MemoryView(Protocol):
    """What the judge may ask of the store."""

    @property
    def is_known(self) -> bool:
        """Whether what is not found is not there; else nobody here can tell."""

    def read(self, path: str) -> bytes | None: ...
    def check_index(self) -> None: ...
    def day_of(self, path: str) -> date | None: ...
    def find_clash(self, name: str) -> str | None: ...
    def find_document_clash(self, path: str) -> str | None: ...
    def place_journal(self, path: str) -> str: ...
    def find_same_topic(self, topic: str, repository: str, name: str) -> str | None: ...
    def find_near(self, candidate: Sketch, name: str) -> str | None: ...
    def hand_edits(self, path: str) -> HandEdits: ...
    def instructions(self) -> str: ...
    def check_content(self, content: str, day: date) -> ContentCheck: ...


class EmptyShelf:
    """The store as seen from a machine that has none: nothing is known of it, so nothing can clash."""

    is_known = False

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

    def hand_edits(self, path: str) -> HandEdits:  # noqa: ARG002
        return HandEdits()

    def instructions(self) -> str:
        return ""

    def check_content(self, content: str, day: date) -> ContentCheck:  # noqa: ARG002
        return ContentCheck(content)


Unposted = tuple[bytes, str, Path | None]
"""A handoff that lies in no inbox: its bytes, its name, and the folder of its repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingHandoff:
    """A handoff before the judge: the bytes, the name, and what truekeep itself knows of its origin."""

    raw: bytes | None
    name: str
    size: int
    repository: str
    writer: str
    machine: str = ""  # empty: not known, or the host itself
    same_name: str = ""  # another checkout here, of other history, that handoffs of this repository came from before
    is_masked: bool = False  # a draft in which a credential is still masked
    is_draft: bool = False  # judged before: a bug that it meets was noted then


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Which automatic routes are on."""

    cards: bool = True
    documents: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision, and everything needed to carry it out."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    blocking: tuple[Finding, ...] = ()
    title: str = ""
    target: str = ""  # the file to write; for review, the one that was meant
    data: bytes | None = None  # the file's new bytes, or what is appended to the document
    replaces: bool = False  # a section of the document is written anew, so its bytes are all of them
    card_name: str = ""
    topic: str = ""
    label: str = ""  # what the index calls the card
    old_label: str = ""
    old_topic: str = ""
    sketch: Sketch | None = None
    similar_card: str = ""  # a card of the same repository with the name, the topic or nearly the text of this one
    known_as: str = ""  # how the ledger knows these very bytes, when it does
    held_up: str = ""  # why ingest leaves handoffs of this repository where they are

    @property
    def promise(self) -> str:
        """What ingest will do with it, in words."""
        if self.known_as:
            return f"ingest will leave it: these very bytes were dealt with before ({self.known_as})"
        if self.held_up:
            return f"ingest leaves it where it is: {self.held_up}"
        words = {
            "promoted": "ingest will promote it to",
            "routed": "ingest will append it to",
            "already": "already filed in",
        }
        if self.replaces:
            return f"ingest will make it the status in {self.target}"
        return f"{words[self.outcome]} {self.target}"

    def way_out(self, *, topic: str, update: str) -> str:
        """What to do about a card that is in the way, in the words of whoever asked; nothing if none is."""
        codes = {finding.code for finding in self.blocking}
        if "drops-most" in codes and "card-exists" not in codes and self.target:
            name = self.target.removeprefix(f"{CARDS}/")
            return (
                "an update replaces all that the card says: begin with its text"
                f" (`truekeep card show {as_argument(name)}`) and change what is new"
            )
        if not self.similar_card or not codes & {"same-topic", "card-exists", "near-duplicate"}:
            return ""
        return f"{topic} makes another card; {update.format(card=self.similar_card)} changes the one that is there"

    @property
    def is_whole(self) -> bool:
        """Whether the data is all of the file, and not what is added to it."""
        return bool(self.card_name) or self.replaces

    @property
    def has_secret_name(self) -> bool:
        return any(finding.code == "secret" and finding.line is None for finding in self.findings)

    @property
    def has_secret(self) -> bool:
        return any(finding.code == "secret" for finding in self.findings)


Lint = Callable[[Sequence[Unposted]], list[Decision]]
"""What ingest would make of handoffs, each after the ones before."""


def plan_filing(
    candidate: IncomingHandoff,
    shelf: MemoryView,
    config: Config,
    *,
    today: date,
    now: datetime | None = None,
    routes: Routes | None = None,
    approved: bool = False,
    target: str = "",
) -> Decision:
    """Judge one handoff. `approved`: a person accepts whatever does not bind; `target`: the place they chose.

    `now` is for journals, which tell the time; without it the day is over. A handoff on which truekeep itself fails
    waits for a person, and its bug is noted in bugs.log: it keeps no other one from being filed.
    """
    try:
        decision = _plan_filing(candidate, shelf, config, today, now, routes or Routes(), approved, target)
    except Exception as error:
        if not is_contained(error):
            raise
        decision = file_as_bug(error, candidate, config)
    return _withhold_names(decision, candidate) if decision.has_secret else decision


def _withhold_names(decision: Decision, candidate: IncomingHandoff) -> Decision:
    """A decision without a name that is a credential because the handoff's text says so."""
    if not decision.has_secret_name and _is_told(candidate.name, candidate):
        found = Finding(code="secret", message="the file name holds a credential that the text gives")
        decision = replace(decision, findings=(*decision.findings, found))
    if decision.outcome == "review" and _is_told(decision.target, candidate):
        decision = replace(decision, target="[withheld]")
    return decision


def _is_told(name: str, candidate: IncomingHandoff) -> bool:
    """Whether a name holds a credential that the handoff's text gives."""
    text = decode_text(candidate.raw) or "" if candidate.raw is not None else ""
    return any(secret.start > len(text) for secret in scanner.find_secrets(f"{text}\n\n{name}"))


def is_contained(error: Exception) -> bool:
    """Whether an error while one handoff is judged concerns that one alone: a bug, not the store, disk or memory."""
    if isinstance(error, (Retry, ChangedSince, OSError, MemoryError)) or is_database_error(error):
        return False
    if isinstance(error, TruekeepError) and not isinstance(error, BadInput):
        return False
    last, trace = "", error.__traceback__
    while trace is not None:
        last, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return last not in _STORE


def file_as_bug(error: Exception, candidate: IncomingHandoff, config: Config) -> Decision:
    """Review for a handoff on which truekeep failed; the traceback goes to bugs.log, under the handoff's name."""
    name = unicode.printable(scanner.withhold(candidate.name))
    where = bugs_path() if candidate.is_draft else note_bug(error, f"handoff {name}")
    what = f"{type(error).__name__} while {name} was judged; the traceback is in {where}"
    findings = [Finding(code="bug", message=what), *_judge_name(candidate)]
    text = decode_text(candidate.raw) if candidate.raw is not None else None
    try:
        findings += _find_secrets(text or "")
    except Exception:  # noqa: BLE001 - what could not be looked through is treated as if it held one
        findings.append(Finding(code="secret", message="it could not be looked through for credentials", line=1))
    return _decide(config, findings, approved=False)


def _plan_filing(
    candidate: IncomingHandoff,
    shelf: MemoryView,
    config: Config,
    today: date,
    now: datetime | None,
    routes: Routes,
    approved: bool,
    target: str,
) -> Decision:
    findings = list(_judge_name(candidate))
    text = decode_text(candidate.raw) if candidate.raw is not None else None
    if candidate.raw is None or text is None or not unicode.strip_hidden(text).strip():
        findings.append(_unreadable(candidate, config))
        return _decide(config, findings, approved=approved)
    if text.startswith(TEST_MARK) and not findings:
        return Decision(outcome="already", findings=(), known_as="a test letter")
    handoff = parse_handoff(text)
    findings += handoff.findings
    findings += judge_text(text)
    if handoff.sections:
        findings += _judge_form(handoff)
    day = _written_day(candidate.name, today, findings)
    if target:
        handoff = _retarget(handoff, target)
    return _Policy(candidate, handoff, shelf, config, findings, day, today, now, routes, approved).decide()


def _retarget(handoff: Handoff, target: str) -> Handoff:
    if (
        target in DOCUMENTS
        or target in PROTECTED
        or target.startswith(("rules/", ".learnings/"))
        or is_journal_path(target)
    ):
        content = handoff.document_content or handoff.card_content
        return replace(
            handoff, action="no-card", target_card="", card_content="", target_document=target, document_content=content
        )
    action = "update-card" if handoff.action == "update-card" else "create-card"
    return replace(
        handoff,
        action=action,
        target_card=target.removeprefix(f"{CARDS}/"),
        card_content=handoff.card_content or handoff.document_content,
        target_document="",
        document_content="",
    )


class _Policy:
    """The judge of one readable handoff: its way through the routes."""

    def __init__(
        self,
        candidate: IncomingHandoff,
        handoff: Handoff,
        shelf: MemoryView,
        config: Config,
        findings: list[Finding],
        day: date,
        today: date,
        now: datetime | None,
        routes: Routes,
        approved: bool,
    ) -> None:
        self.candidate, self.handoff, self.shelf, self.config = candidate, handoff, shelf, config
        self.findings, self.day, self.today, self.now = findings, day, today, now
        self.routes, self.approved = routes, approved

    @property
    def clock(self) -> datetime:
        """The time on the wall here, which journals tell."""
        return self.now.astimezone().replace(tzinfo=None) if self.now else datetime.combine(self.today, time.max)

    def decide(self) -> Decision:
        handoff = self.handoff
        if not handoff.sections:
            return self._filing("review")
        has_card = bool(handoff.target_card or handoff.card_content)
        has_document = bool(handoff.target_document or handoff.document_content)
        if not handoff.action:
            self._find("unclear-action", "must be create-card, update-card or no-card", "Recommended memory action")
        if has_card and has_document:
            self._find("both-routes", "leave out the card sections or the document sections", "Target document")
        elif handoff.action in ("create-card", "update-card"):
            return self._card()
        elif handoff.action == "no-card":
            return self._document()
        return self._filing("review")

    def _card(self) -> Decision:
        handoff = self.handoff
        name = handoff.target_card
        if not self.routes.cards:
            self._find("route-off", "cards are not promoted in this run (--promote-cards)", "Recommended memory action")
        if not name:
            self._find("no-target", "`## Target card` is missing", "Target card")
        elif (why := check_card_name(name)) is not None:
            self._find("bad-card-name", why, "Target card")
            name = ""
        elif (other := self.shelf.find_clash(name)) is not None:
            self._find("name-clash", f"{other} differs only in letter case", "Target card")
            name = ""
        suggested = self._suggested(name)
        if suggested is None or not name:
            return self._filing("review", f"{CARDS}/{name}" if name else "")
        try:
            name = self._own_name(suggested)
            suggested = suggested._replace(name=name)
            path = suggested.path
            existing_data = self.shelf.read(path)
            self.shelf.check_index()
        except UnsafePath as error:
            self._find("unsafe-target", f"{error.path} {error.what}", "Target card")
            return self._filing("review", suggested.path)
        except ChangedSince as error:
            raise Retry(error.path) from error
        existing_text = decode_text(existing_data) if existing_data is not None else None
        if existing_data is not None and existing_text is None:
            self._find("unsafe-target", f"{path} is not UTF-8 text", "Target card")
            return self._filing("review", path)
        existing = parse_card(name, existing_text) if existing_text is not None else None
        if is_reserved_for_people(name) and (existing is None or not self.approved):
            self._find("instruction-file", _instruction_file(name), "Target card")
        if existing is not None and existing.problem:
            self._find("unreadable-card", f"{path}, {existing.problem}", "Target card")
        if existing is not None and same_card(suggested, existing):
            return self._filing("already", path, card=existing)
        self._compare(suggested, existing)
        card = self._filed_card(suggested, existing)
        card_sketch = sketch(card)
        if (other := self.shelf.find_same_topic(card_sketch.topic, card_sketch.repository, name)) is not None:
            where = f", in {card.repository} too" if card.repository else ""
            self._find("same-topic", f"{CARDS}/{other} has the topic {card.topic!r}{where}", "Suggested card content")
        elif (other := self.shelf.find_near(card_sketch, name)) is not None:
            self._find("near-duplicate", f"{CARDS}/{other} says nearly the same", "Suggested card content")
        data = card.render().encode()
        if existing_data is not None and b"\r\n" in existing_data:
            data = data.replace(b"\n", b"\r\n")
        filing = self._filing("promoted", path, data, card, existing, card_sketch)
        similar = other or (name if existing is not None else "")
        is_own = bool(similar) and self._repository_of(similar) in (None, card.repository)
        return replace(filing, similar_card=similar if is_own else "")

    def _own_name(self, suggested: Card) -> str:
        """The name of the card; where nobody chose it and another repository's card has it, one of this repository's.

        Two repositories may have the same last name, so that their cards would be called alike.
        """
        name, mine = suggested.name, self.candidate.repository
        topic = suggested.front.text("topic") or self.handoff.title
        if not mine or name != default_card_name(topic, mine) or self._repository_of(name) in (None, "", mine):
            return name
        is_update = self.handoff.action == "update-card"
        for other in other_card_names(topic, mine):
            found = self._repository_of(other)
            if found == mine or (found is None and not is_update and self.shelf.find_clash(other) is None):
                return other
        return name

    def _repository_of(self, name: str) -> str | None:
        """The repository of a card; None where there is no such card."""
        data = self.shelf.read(f"{CARDS}/{name}")
        return None if data is None else parse_card(name, decode_text(data) or "").repository

    def _filed_card(self, suggested: Card, existing: Card | None) -> Card:
        if not suggested.front.text("topic") and (existing is None or not existing.front.text("topic")):
            self._find("no-topic", "the title will stand in for it", "Suggested card content")
        return file_card(
            suggested,
            existing,
            title=self.handoff.title,
            day=self.day,
            existing_day=(self.shelf.day_of(suggested.path) if existing is not None else None) or self.day,
            repository=self.candidate.repository,
            writer=self.candidate.writer,
        )

    def _suggested(self, name: str) -> Card | None:
        """The suggested card, if its form allows one."""
        handoff = self.handoff
        where = "Suggested card content"
        if not handoff.card_content:
            self._find("no-content", f"`## {where}` is missing", where)
            return None
        try:
            front, body = split_frontmatter(handoff.card_content + "\n")
        except InvalidFrontmatter as error:
            self._find("bad-frontmatter", f"line {error.line} of the content: {error.what}", where)
            return None
        if front is None:
            self._find("no-frontmatter", "the content must start with --- and topic, category, tags", where)
            return None
        if not body.strip():
            self._find("no-content", "there is nothing below the frontmatter", where)
            return None
        if trust := [key for key in front.names() if key.casefold() in TRUST_KEYS]:
            self._find("claims-trust", f"{', '.join(trust)} is not a writer's to set", where)
        if owned := [key for key in front.names() if key.casefold() in (*OWNED_KEYS, *ID_KEYS)]:
            self._find("owned-keys", f"{', '.join(owned)} is truekeep's to set; the value is not taken", where)
        if "source" in front.names():
            self._find("owned-keys", "source stays as the writer's own words; it carries no weight", where)
        if nested := [key for key in ("topic", "category") if front.has_mapping(key)]:
            self._find("bad-frontmatter", f"{' and '.join(nested)} must be a text", where)
            return None
        if find_open_comment(front.text("topic")) is not None or find_open_comment(handoff.card_content) is not None:
            self._find("open-fence", "a comment (<!--) is opened and never closed", where)
        return Card(name=name or "card.md", front=front, body=self._verified(body, where))

    def _verified(self, content: str, where: str) -> str:
        """Check the content against the code of its repository; moved claims are updated.

        Not for a text with a credential: it goes to a person, and nowhere else before that.
        """
        if any(finding.code == "secret" for finding in self.findings):
            return content
        checked = self.shelf.check_content(content, self.day)
        for finding in checked.findings:
            self._find(finding.code, finding.message, where)
        return checked.content

    def _compare(self, suggested: Card, existing: Card | None) -> None:
        """What the card that is there says to the one that is suggested."""
        update = self.handoff.action == "update-card"
        if existing is None:
            if update and self.shelf.is_known:
                self._find("no-such-card", f"there is no {suggested.path}; create-card would make it", "Target card")
            return
        if not update:
            self._find("card-exists", f"{suggested.path} is there with other content", "Target card")
        old_words = set(words_of(existing.body))
        kept = len(old_words & set(words_of(suggested.body))) / len(old_words) if old_words else 1.0
        if kept < KEEPS_LEAST:
            self._find("drops-most", f"only {kept:.0%} of its words would stay", "Suggested card content")
        new_lines = [line.strip() for line in suggested.body.split("\n")]
        old_lines = [line.strip() for line in existing.body.split("\n")]
        by_hand = self.shelf.hand_edits(existing.path)
        if dropped := (by_hand.written & set(old_lines)) - set(new_lines):
            what = f"it would drop {many(len(dropped), 'line')} that a person wrote"
            self._find("hand-edited", what, "Suggested card content")
        if lost := by_hand.older & _left_out(old_lines, new_lines):
            what = f"it would leave out {many(len(lost), 'line')} that truekeep did not write"
            self._find("hand-edited", what, "Suggested card content")
        if returning := by_hand.removed & set(new_lines):
            what = f"it would bring back {many(len(returning), 'line')} that a person removed"
            self._find("hand-edited", what, "Suggested card content")
        if existing.repository and self.candidate.repository not in ("", existing.repository):
            what = f"the card came from {existing.repository}, this from {self.candidate.repository}"
            self._find("other-repository", what, "Target card")
        elif existing.repository and self.candidate.same_name:
            self._find("other-repository", self.candidate.same_name, "Target card")
        if existing.updated is not None and self.day < existing.updated <= self.today:
            what = f"written {self.day}, but the card was updated {existing.updated}"
            self._find("older-than-card", what, "Target card")

    def _document(self) -> Decision:
        handoff = self.handoff
        target, content = handoff.target_document, handoff.document_content
        if not self.routes.documents:
            self._find(
                "route-off", "documents are not routed in this run (--route-documents)", "Recommended memory action"
            )
        if not target:
            self._find("no-target", "`## Target document` is missing", "Target document")
        elif target not in DOCUMENTS and not is_rule_path(target) and not is_journal_path(target):
            allowed = "TOOLS.md, USER.md, rules/<name>.md, .learnings/{LEARNINGS,ERRORS,FEATURE_REQUESTS}.md or a log"
            self._find("bad-document", f"must be {allowed}", "Target document")
            target = ""
        elif (other := self.shelf.find_document_clash(target)) is not None:
            self._find("name-clash", f"{other} differs only in letter case", "Target document")
        if target and target not in DOCUMENTS and is_reserved_for_people(target):
            self._find("instruction-file", _instruction_file(target), "Target document")
        if not content:
            self._find("no-content", "`## Suggested document content` is missing", "Suggested document content")
        elif heading := _section_heading(content):
            self._find("section-in-document", f"use ### or deeper instead of {heading!r}", "Suggested document content")
        if find_open_comment(content) is not None:
            self._find("open-fence", "a comment (<!--) is opened and never closed", "Suggested document content")
        if not target or not content:
            return self._filing("review", target)
        entry = self._entry(target, content) if is_journal_path(target) else None
        if entry is not None:
            target = self.shelf.place_journal(entry.path)
            if not entry.text:
                self._find("no-content", "there is nothing below its first line", "Suggested document content")
                return self._filing("review", target)
        try:
            existing = self.shelf.read(target)
        except UnsafePath as error:
            self._find("unsafe-target", f"{error.path} {error.what}", "Target document")
            return self._filing("review", target)
        except ChangedSince as error:
            raise Retry(error.path) from error
        if entry is not None and entry.section:
            return self._status(target, entry, existing)
        addition: bytes | None
        if entry is not None:  # a log tells what happened, and that stays true: it is not held against code
            addition = _journal_addition(existing, entry)
        else:
            addition = _addition(existing, self._verified(content, "Suggested document content"))
        if addition is None:
            return self._filing("already", target)
        if entry is None and (heading := _same_heading(existing, content, target)):
            what = f"{target} has a section {heading!r} already; say there what is new, or under another heading"
            self._find("same-heading", what, "Suggested document content")
        if len(existing or b"") + len(addition) > self.config.limits.document_bytes:
            what = f"{target} would pass {self.config.limits.document_bytes} bytes; move details to cards"
            self._find("over-budget", what, "Target document")
        return self._filing("routed", target, addition)

    def _entry(self, target: str, content: str) -> JournalAddition:
        candidate = self.candidate
        written, _ = parse_name(candidate.name)
        known = HandoffSource(candidate.writer, candidate.repository, candidate.machine, written, self.clock)
        entry = receive_entry(target, content, known)
        if entry.future:
            self._find("future-date", f"{entry.future} is after today", "Suggested document content")
        return entry

    def _status(self, target: str, entry: JournalAddition, existing: bytes | None) -> Decision:
        """A project's status: its section is written anew, unless what stands there was said later."""
        where = "Suggested document content"
        try:
            text = (existing or b"").decode()
            old = next((part for name, part in sections_of(text).items() if name.casefold() == STATUS.casefold()), "")
            last = find_stamp(old, now=self.clock)
            if last is not None and entry.at is not None and entry.at < last:
                what = f"said {entry.at:%Y-%m-%d %H:%M}, but the status there is of {last:%Y-%m-%d %H:%M}"
                self._find("older-than-card", what, where)
            new = with_sections(text, [(entry.section, entry.text)], path=target, title=title_of(entry.path))
        except (UnicodeDecodeError, BadInput) as error:
            what = error.message if isinstance(error, BadInput) else f"{target} is not UTF-8 text"
            self._find("unsafe-target", what, "Target document")
            return self._filing("review", target)
        if new == text:
            return self._filing("already", target)
        there = {line.strip() for line in old.split("\n")}
        dropped = (self.shelf.hand_edits(target).written & there) - {line.strip() for line in new.split("\n")}
        if dropped:
            self._find("hand-edited", f"it would drop {many(len(dropped), 'line')} that a person wrote", where)
        return replace(self._filing("routed", target, new.encode()), replaces=True)

    def _find(self, code: str, message: str, section: str = "") -> None:
        line = self.handoff.line_of(section)
        self.findings.append(Finding(code=code, message=message, line=line))

    def _filing(
        self,
        outcome: Outcome,
        target: str = "",
        data: bytes | None = None,
        card: Card | None = None,
        existing: Card | None = None,
        card_sketch: Sketch | None = None,
    ) -> Decision:
        if self.handoff.sections and outcome != "already":
            self._note_instructed()
        return _decide(
            self.config,
            self.findings,
            outcome=outcome,
            approved=self.approved,
            title=self.handoff.title,
            target=target,
            data=data,
            card_name=card.name if card else "",
            topic=card.topic if card else "",
            label=card.label if card else "",
            old_label=existing.label if existing else "",
            old_topic=existing.topic if existing else "",
            card_sketch=card_sketch,
        )

    def _note_instructed(self) -> None:
        """Whether the repository's own instruction file says all of this already."""
        said = self.shelf.instructions()
        if not said:
            return
        lines = [(number, line) for number, line in self.handoff.knowledge() if len(line.split()) >= 4]
        known = [number for number, line in lines if " ".join(words_of(line)) in said]
        if lines and len(known) / len(lines) >= INSTRUCTED:
            what = "CLAUDE.md or AGENTS.md there has it"
            self.findings.append(Finding(code="already-instructed", message=what, line=known[0]))


def _instruction_file(path: str) -> str:
    name = path.rpartition("/")[2]
    return f"agents read {name} as instructions, in any folder; choose another name, such as notes-{name.lower()}"


class Retry(Exception):
    """A file changed while the judge read it; ask again."""


def _left_out(old: Sequence[str], new: Sequence[str]) -> set[str]:
    """The old lines that the new text does without, as one made from a stale copy would: none says the same in other
    words at their place."""
    there = set(new)
    lost: set[str] = set()
    start = other = 0
    kept = kept_lines([line.encode() for line in old], [line.encode() for line in new])
    for at, new_at, length in (*kept, (len(old), len(new), 0)):
        gone = [line for line in old[start:at] if line and line not in there]
        instead = [set(words_of(line)) for line in new[other:new_at]]
        is_large = len(gone) * len(instead) > MOST_COMPARED
        lost.update(line for line in gone if is_large or not _is_reworded(set(words_of(line)), instead))
        start, other = at + length, new_at + length
    return lost


def _is_reworded(words: set[str], instead: Sequence[set[str]]) -> bool:
    return any(len(words & others) >= len(words) * REWORDED for others in instead)


def _unreadable(candidate: IncomingHandoff, config: Config) -> Finding:
    """Why there is no text to judge."""
    if candidate.raw is None:
        what = f"{candidate.size} bytes; the limit is {config.limits.handoff_bytes}"
        return Finding(code="too-large", message=what)
    if decode_text(candidate.raw) is None:
        what = "NUL bytes" if b"\0" in candidate.raw else "not valid UTF-8"
        return Finding(code="not-text", message=what)
    return Finding(code="empty", message="no text in it")


def _judge_name(candidate: IncomingHandoff) -> Iterator[Finding]:
    for secret in scanner.find_secrets(candidate.name)[:1]:
        yield Finding(code="secret", message=f"the file name looks like a credential ({secret.rule})")
    if candidate.is_masked:
        yield Finding(code="secret", message="a credential is masked in it; say it in other words first", line=1)
    if is_conflict_copy(candidate.name):
        yield Finding(
            code="conflict-copy", message=f"{unicode.printable(candidate.name)} is a sync tool's second version"
        )


def judge_text(text: str) -> Iterator[Finding]:
    """What the text carries besides knowledge. Everything is looked at, comments included."""
    if "<<<<<<< " in text and ("\n=======\n" in text or "\n>>>>>>> " in text):
        line = text.count("\n", 0, text.index("<<<<<<< ")) + 1
        yield Finding(code="conflict-markers", message="two versions were merged by git and left so", line=line)
    yield from _find_secrets(text)
    for run in unicode.find_hidden(text)[:20]:
        line = text.count("\n", 0, run.start) + 1
        yield Finding(code="hidden-text", message=f"{run.kind}: {unicode.printable(run.decoded)}", line=line)
    marks = [at for mark in (BEGIN_MARK, END_MARK) if (at := text.find(mark)) >= 0]
    if marks:
        line = text.count("\n", 0, min(marks)) + 1
        yield Finding(code="own-words", message="a brief, hint or reminder of truekeep's own", line=line)
    for order in instructions.find_instructions(text)[:20]:
        yield Finding(code="instruction", message=f"{order.kind}: {order.excerpt}", line=order.line)


def _find_secrets(text: str) -> Iterator[Finding]:
    for secret in scanner.find_secrets(text)[:20]:
        line = text.count("\n", 0, secret.start) + 1
        yield Finding(code="secret", message=f"looks like a credential ({secret.rule})", line=line)
    for run in unicode.find_hidden(text)[:20]:
        if scanner.find_secrets(run.decoded):
            line = text.count("\n", 0, run.start) + 1
            yield Finding(code="secret", message="what the hidden characters spell looks like a credential", line=line)


def _judge_form(handoff: Handoff) -> Iterator[Finding]:
    if handoff.type not in HANDOFF_TYPES:
        line = handoff.line_of("Type")
        yield Finding(code="unknown-type", message=f"one of {', '.join(HANDOFF_TYPES)}", line=line)
    if not handoff.title:
        yield Finding(code="no-title", message="`## Title` is missing", line=handoff.line_of("Title"))
    if not handoff.summary:
        yield Finding(code="no-summary", message="`## Summary` is missing", line=handoff.line_of("Summary"))
    for hint in durability.find_hints(handoff.knowledge()):
        yield Finding(code=hint.code, message=f"{hint.excerpt}: {hint.why}", line=hint.line)


def _written_day(name: str, today: date, findings: list[Finding]) -> date:
    """The day a handoff was written, by its name; today when the name does not say or says a later day."""
    written, _ = parse_name(name)
    if written is None:
        findings.append(Finding(code="odd-name", message="the day it was written is not known; today counts"))
        return today
    if (written.date() - today).days > 1:
        findings.append(Finding(code="future-date", message=f"{written:%Y-%m-%d} is after today"))
    return min(written.date(), today)


def _section_heading(content: str) -> str:
    """The first ## heading in a document's content, outside fences."""
    try:
        headings = outline(content + "\n").headings
        lines = content.split("\n")
        underlined = [lines[number - 1].strip() for number, level in underlines(content) if level == 2]
    except TooComplex:
        return "an indented fence or HTML block"
    found = (heading.text for heading in headings if heading.level == 2)
    return next((f"## {text}" for text in (*found, *underlined)), "")


def _same_heading(existing: bytes | None, content: str, target: str) -> str:
    """The heading that a content begins with, if the document has it; a day is a heading that may stand twice."""
    first = content.lstrip("\n").partition("\n")[0]
    if not existing or not first.lstrip(" ").startswith("#"):
        return ""
    try:
        begin = outline(f"{first}\n").headings
        words = words_of(begin[0].text) if begin else []
        if not words or _is_day(words) or (target.startswith(".learnings/") and len(words) == 1):
            return ""  # learnings are sorted by such a word, each with an entry of its own
        if not _has_line_of(existing, words) or (text := decode_text(existing)) is None:
            return ""
        lines = text.split("\n")
        there = [heading.text for heading in outline(f"{text}\n").headings]
        if text.lstrip().startswith("# "):
            there = there[1:]  # the title of the document is no section
        there += [lines[number - 1].strip() for number, _ in underlines(text)]
    except TooComplex:
        return ""
    return next((unicode.printable(heading) for heading in there if words_of(heading) == words), "")


def _has_line_of(data: bytes, words: Sequence[str]) -> bool:
    """Whether a line has these words and no others: asked of every handoff, so a long document is not parsed for it."""
    lowered = data.lower()
    plain = [word.encode() for word in words if word.isascii()]
    if not plain:
        return True  # other letters have other cases: whoever parses it will see
    rarest = min(plain, key=lowered.count)
    at = lowered.find(rarest)
    while at >= 0:
        end = lowered.find(b"\n", at) % (len(lowered) + 1)
        line = lowered[lowered.rfind(b"\n", 0, at) + 1 : end].decode("utf-8", "replace")
        if words_of(line) == list(words):
            return True
        at = lowered.find(rarest, end)
    return False


_DAYS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "week", "utc"),
)


def _is_day(words: Sequence[str]) -> bool:
    """Whether a heading says only when: a date, a time, a month, a week."""
    return all(word[:1].isdigit() or (len(word) > 2 and any(day.startswith(word) for day in _DAYS)) for word in words)


def _addition(existing: bytes | None, content: str) -> bytes | None:
    """The bytes to append, in the document's own newlines; None when the content is there already."""
    newline = newline_of(existing.decode("latin-1")).encode() if existing and b"\r" in existing else b"\n"
    block = content.strip("\n").encode().replace(b"\n", newline)
    if not existing:
        return block + newline
    if _holds_block(existing, block):
        return None
    lead = newline if existing.endswith(b"\n") else newline * 2
    if existing.endswith(newline * 2):
        lead = b""
    return lead + block + newline


def _journal_addition(existing: bytes | None, entry: JournalAddition) -> bytes:
    """The bytes to append to a journal. The same words may be said again: each handoff is an entry of its own."""
    there = (existing or b"").decode("utf-8", "surrogateescape")
    return appended(there, entry.text, title=title_of(entry.path)).encode()


def _holds_block(existing: bytes, block: bytes) -> bool:
    """Whether a text stands there as whole lines. Only the starts of lines are looked at, so that it stays linear."""
    ends = (b"", b"\n", b"\r")
    if existing.startswith(block) and existing[len(block) : len(block) + 1] in ends:
        return True
    needle = b"\n" + block
    position = existing.find(needle)
    while position >= 0:
        end = position + len(needle)
        if existing[end : end + 1] in ends:
            return True
        position = existing.find(needle, position + 1)
    return False


def _decide(
    config: Config,
    findings: list[Finding],
    *,
    outcome: Outcome = "review",
    approved: bool,
    title: str = "",
    target: str = "",
    data: bytes | None = None,
    card_name: str = "",
    topic: str = "",
    label: str = "",
    old_label: str = "",
    old_topic: str = "",
    card_sketch: Sketch | None = None,
) -> Decision:
    """Weigh the findings by the policy. What is already filed stays so, unless it must not be touched at all."""
    findings = findings[:MAX_FINDINGS]
    if any(finding.code == "secret" for finding in findings):
        findings = list(dict.fromkeys(map(_without_excerpt, findings)))  # two orders in one line are told alike now
    ranks: dict[Policy, list[Finding]] = {"promote": [], "review": [], "refuse": []}
    for finding in findings:
        policy = config.policy_for(finding.code)
        if approved:
            policy = "review" if RULES[finding.code].binding else "promote"
        ranks[policy].append(finding)
    if outcome != "already" or any(RULES[finding.code].binding for finding in ranks["review"]):
        if ranks["refuse"]:
            outcome = "refused"
        elif ranks["review"] or outcome == "review":
            outcome = "review"
    return Decision(
        outcome=outcome,
        findings=tuple(findings),
        blocking=tuple(ranks["refuse"] + ranks["review"]),
        title=title,
        target=target if outcome != "review" else scanner.withhold(target),
        data=data if outcome != "review" or not any(finding.code == "secret" for finding in findings) else None,
        card_name=card_name,
        topic=topic,
        label=label,
        old_label=old_label,
        old_topic=old_topic,
        sketch=card_sketch,
    )


def _without_excerpt(finding: Finding) -> Finding:
    """A finding that cannot carry any of the text: an excerpt could hold the very secret."""
    if finding.code == "secret":
        return finding
    return Finding(code=finding.code, message=RULES[finding.code].meaning, line=finding.line)
