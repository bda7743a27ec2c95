"""Decides what one handoff becomes: a card, an addition to a document, already filed, review, or refused.

Lint, ingest and review all use `plan_filing`, so a handoff that lint accepts is filed by ingest. It reads memory
through a MemoryView and returns a Decision; it writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

from truekeep.core.bugs import bugs_path, note_bug
from truekeep.core.config import Config
from truekeep.core.errors import BadInput, TruekeepError, is_database_error
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import CARDS, DOCUMENTS, PROTECTED, TEST_MARK, Finding
from truekeep.handoffs.format import Handoff, parse_handoff
from truekeep.handoffs.policy.card import decide_card
from truekeep.handoffs.policy.decision import Decision, IncomingHandoff, MemoryView, Retry, Routes, decide
from truekeep.handoffs.policy.document import decide_document
from truekeep.handoffs.policy.run import PolicyRun
from truekeep.handoffs.policy.text_checks import (
    check_form,
    check_name,
    check_readable,
    check_text,
    find_credentials,
    written_day,
)
from truekeep.handoffs.right_store import USER_DOCUMENT, as_section
from truekeep.memory.card import REFERENCE_FOLDERS, check_card_name, is_journal_path
from truekeep.memory.frontmatter import InvalidFrontmatter, split_frontmatter
from truekeep.memory.lessons import find_table
from truekeep.text import unicode
from truekeep.text.durability import is_preference
from truekeep.text.encoding import decode_text
from truekeep.text.markdown import TooComplex, outline
from truekeep.text.secrets import scanner

_STORAGE_MODULES = frozenset(
    (
        "truekeep.memory.ledger",
        "truekeep.memory.staging",
        "truekeep.memory.transaction",
        "truekeep.core.file_io",
        "truekeep.core.sqlite",
    )
)


def plan_filing(
    candidate: IncomingHandoff,
    view: MemoryView,
    config: Config,
    *,
    today: date,
    now: datetime | None = None,
    routes: Routes | None = None,
    approved: bool = False,
    target: str = "",
) -> Decision:
    """Decide what one handoff becomes.

    `approved`: a person accepts every finding that is not binding; `target`: the target they chose. `now` is the time
    written into journals; without it, the end of the day. A handoff on which truekeep crashes goes to review, and the
    crash is recorded in bugs.log; other handoffs are not affected.
    """
    try:
        decision = _plan_filing(candidate, view, config, today, now, routes or Routes(), approved, target)
    except Exception as error:
        if not is_contained(error):
            raise
        decision = file_as_bug(error, candidate, config)
    return _withhold_names(decision, candidate) if decision.has_secret else decision


def _withhold_names(decision: Decision, candidate: IncomingHandoff) -> Decision:
    """The decision without names that contain a credential from the handoff's text."""
    if not decision.has_secret_name and _is_secret_in_text(candidate.name, candidate):
        found = Finding(code="secret", message="the file name contains a credential from the text")
        decision = replace(decision, findings=(*decision.findings, found))
    if decision.outcome == "review" and _is_secret_in_text(decision.target, candidate):
        decision = replace(decision, target="[withheld]")
    return decision


def _is_secret_in_text(name: str, candidate: IncomingHandoff) -> bool:
    """True if a name contains a credential that is recognised only together with the handoff's text."""
    text = decode_text(candidate.raw) or "" if candidate.raw is not None else ""
    return any(secret.start > len(text) for secret in scanner.find_secrets(f"{text}\n\n{name}"))


def is_contained(error: Exception) -> bool:
    """True if an error affects only the current handoff: a bug, not a storage, disk or memory error."""
    if isinstance(error, (Retry, ChangedSince, OSError, MemoryError)) or is_database_error(error):
        return False
    if isinstance(error, TruekeepError) and not isinstance(error, BadInput):
        return False
    last, trace = "", error.__traceback__
    while trace is not None:
        last, trace = trace.tb_frame.f_globals.get("__name__", ""), trace.tb_next
    return last not in _STORAGE_MODULES


def file_as_bug(error: Exception, candidate: IncomingHandoff, config: Config) -> Decision:
    """Send a handoff on which truekeep crashed to review, and record the traceback in bugs.log."""
    name = unicode.printable(scanner.withhold(candidate.name))
    where = bugs_path() if candidate.is_draft else note_bug(error, f"handoff {name}")
    what = f"truekeep crashed on {name} ({type(error).__name__}); details are in {where}"
    findings = [Finding(code="bug", message=what), *check_name(candidate)]
    text = decode_text(candidate.raw) if candidate.raw is not None else None
    try:
        findings += find_credentials(text or "")
    except Exception:  # noqa: BLE001 - if the scan fails, assume that there is one
        findings.append(Finding(code="secret", message="it could not be scanned for credentials", line=1))
    return decide(config, findings, Decision(outcome="review"), approved=False)


def _plan_filing(
    candidate: IncomingHandoff,
    view: MemoryView,
    config: Config,
    today: date,
    now: datetime | None,
    routes: Routes,
    approved: bool,
    target: str,
) -> Decision:
    findings = list(check_name(candidate))
    text = decode_text(candidate.raw) if candidate.raw is not None else None
    if candidate.raw is None or text is None or not unicode.strip_hidden(text).strip():
        findings.append(check_readable(candidate, config))
        return decide(config, findings, Decision(outcome="review"), approved=approved)
    if text.startswith(TEST_MARK) and not findings:
        return Decision(outcome="already", known_as="a test handoff")
    handoff = parse_handoff(text)
    findings += handoff.findings
    findings += check_text(text)
    if handoff.sections:
        findings += check_form(handoff)
    day = written_day(candidate.name, today, findings)
    named = handoff.target_card
    if target:
        handoff = _retarget(handoff, target)
    is_retargeted = target.removeprefix(f"{CARDS}/") not in ("", named)
    return _decide_route(
        PolicyRun(candidate, handoff, view, config, findings, day, today, now, routes, approved, is_retargeted)
    )


def _retarget(handoff: Handoff, target: str) -> Handoff:
    if (
        target in DOCUMENTS
        or target in PROTECTED
        or target.startswith(("rules/", *(f"{folder}/" for folder in REFERENCE_FOLDERS)))
        or find_table(target) is not None
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


def _as_preference(run: PolicyRun) -> Handoff | None:
    """A new card of type preference as an addition to USER.md; None if it is for a card."""
    handoff = run.handoff
    is_new = handoff.type == "preference" and handoff.action == "create-card" and not run.approved
    if not is_new or not run.routes.documents or check_card_name(handoff.target_card) is not None:
        return None
    try:
        front, body = split_frontmatter(handoff.card_content + "\n")
        if front is None or not is_preference(body) or run.view.read(f"{CARDS}/{handoff.target_card}") is not None:
            return None
        if any(heading.level < 3 for heading in outline(body).headings):
            return None  # more than a preference
    except (InvalidFrontmatter, UnsafePath, TooComplex):
        return None
    text = as_section(front.text("topic") or handoff.title, body, run.candidate.repository)
    return replace(handoff, target_document=USER_DOCUMENT, document_content=text)


def _decide_route(run: PolicyRun) -> Decision:
    handoff = run.handoff
    if not handoff.sections:
        return run.decision("review")
    has_card = bool(handoff.target_card or handoff.card_content)
    has_document = bool(handoff.target_document or handoff.document_content)
    if not handoff.action:
        run.find("unclear-action", "write create-card, update-card or no-card", "Recommended memory action")
    if has_card and has_document:
        run.find("both-routes", "leave out the card sections or the document sections", "Target document")
    elif handoff.action in ("create-card", "update-card"):
        if (preference := _as_preference(run)) is not None:
            run.handoff = preference
            run.find("right-store", f"a preference of the user: filed in {USER_DOCUMENT}, not in a card", "Type")
            return decide_document(run)
        return decide_card(run)
    elif handoff.action == "no-card":
        return decide_document(run)
    return run.decision("review")
