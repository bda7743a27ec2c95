"""Checks of a handoff's name, bytes and text that do not depend on existing memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from truekeep.core.config import Config
from truekeep.core.model import BEGIN_MARK, END_MARK, HANDOFF_TYPES, Finding
from truekeep.handoffs.format import Handoff, is_conflict_copy, parse_name
from truekeep.handoffs.policy.decision import IncomingHandoff
from truekeep.text import durability, injection, unicode
from truekeep.text.encoding import decode_text
from truekeep.text.secrets import scanner


def check_readable(candidate: IncomingHandoff, config: Config) -> Finding:
    """The finding for a handoff that has no readable text."""
    if candidate.raw is None:
        what = f"{candidate.size} bytes; the limit is {config.limits.handoff_bytes}"
        return Finding(code="too-large", message=what)
    if decode_text(candidate.raw) is None:
        what = "NUL bytes" if b"\0" in candidate.raw else "not valid UTF-8"
        return Finding(code="not-text", message=what)
    return Finding(code="empty", message="the file has no text")


def check_name(candidate: IncomingHandoff) -> Iterator[Finding]:
    for secret in scanner.find_secrets(candidate.name)[:1]:
        yield Finding(code="secret", message=f"the file name looks like a credential ({secret.rule})")
    if candidate.is_masked:
        yield Finding(code="secret", message="contains a masked credential; rephrase it before approving", line=1)
    if is_conflict_copy(candidate.name):
        yield Finding(
            code="conflict-copy", message=f"{unicode.printable(candidate.name)} is a sync tool's conflict copy"
        )


def check_text(text: str) -> Iterator[Finding]:
    """Find conflict markers, credentials, hidden characters and instructions in the text, comments included."""
    if "<<<<<<< " in text and ("\n=======\n" in text or "\n>>>>>>> " in text):
        line = text.count("\n", 0, text.index("<<<<<<< ")) + 1
        yield Finding(code="conflict-markers", message="resolve the conflict first", line=line)
    yield from find_credentials(text)
    for run in unicode.find_hidden(text)[:20]:
        line = text.count("\n", 0, run.start) + 1
        yield Finding(code="hidden-text", message=f"{run.kind}: {unicode.printable(run.decoded)}", line=line)
    marks = [at for mark in (BEGIN_MARK, END_MARK) if (at := text.find(mark)) >= 0]
    if marks:
        line = text.count("\n", 0, min(marks)) + 1
        yield Finding(code="own-words", message="a brief, hint or reminder that truekeep itself wrote", line=line)
    for order in injection.find_instructions(text)[:20]:
        yield Finding(code="instruction", message=f"{order.kind}: {order.excerpt}", line=order.line)


def find_credentials(text: str) -> Iterator[Finding]:
    for secret in scanner.find_secrets(text)[:20]:
        line = text.count("\n", 0, secret.start) + 1
        yield Finding(code="secret", message=f"looks like a credential ({secret.rule})", line=line)
    for run in unicode.find_hidden(text)[:20]:
        if scanner.find_secrets(run.decoded):
            line = text.count("\n", 0, run.start) + 1
            yield Finding(code="secret", message="the hidden characters spell what looks like a credential", line=line)


def check_form(handoff: Handoff) -> Iterator[Finding]:
    if handoff.type not in HANDOFF_TYPES:
        line = handoff.line_of("Type")
        yield Finding(code="unknown-type", message=f"one of {', '.join(HANDOFF_TYPES)}", line=line)
    if not handoff.title:
        yield Finding(code="no-title", message="`## Title` is missing", line=handoff.line_of("Title"))
    if not handoff.summary:
        yield Finding(code="no-summary", message="`## Summary` is missing", line=handoff.line_of("Summary"))
    for hint in durability.find_hints(handoff.knowledge()):
        yield Finding(code=hint.code, message=f"{hint.excerpt}: {hint.why}", line=hint.line)


def written_day(name: str, today: date, findings: list[Finding]) -> date:
    """The date in a handoff's name; today if there is none or it is in the future."""
    written, _ = parse_name(name)
    if written is None:
        findings.append(Finding(code="odd-name", message="the date of writing is unknown; today's date is used"))
        return today
    if (written.date() - today).days > 1:
        findings.append(Finding(code="future-date", message=f"{written:%Y-%m-%d} is after today"))
    return min(written.date(), today)
