"""Decides what a handoff for a document or a journal becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from truekeep.core.dates import many
from truekeep.core.errors import BadInput
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.core.model import DOCUMENTS
from truekeep.handoffs.format import parse_name
from truekeep.handoffs.policy.decision import Decision, Retry
from truekeep.handoffs.policy.lesson import decide_lesson
from truekeep.handoffs.policy.run import PolicyRun, instruction_file_message
from truekeep.memory.card import is_document_path, is_journal_path, is_reference_path, words_of
from truekeep.memory.journal import (
    STATUS,
    HandoffSource,
    JournalAddition,
    appended,
    find_stamp,
    receive_entry,
    title_of,
)
from truekeep.memory.lessons import find_table
from truekeep.memory.sections import newline_of, sections_of, with_sections
from truekeep.text import unicode
from truekeep.text.encoding import decode_text
from truekeep.text.instruction_files import is_reserved_for_people
from truekeep.text.markdown import TooComplex, find_open_comment, outline, underlines


def decide_document(run: PolicyRun) -> Decision:
    handoff = run.handoff
    target, content = handoff.target_document, handoff.document_content
    if not run.routes.documents:
        run.find("route-off", "this run does not file documents (--route-documents)", "Recommended memory action")
    if not target:
        run.find("no-target", "`## Target document` is missing", "Target document")
    elif target not in DOCUMENTS and not is_document_path(target) and not _is_table_or_journal(target):
        folders = "rules, .learnings, memory/ops or memory/research"
        run.find("bad-document", f"must be TOOLS.md, USER.md, <name>.md in {folders}, or a log", "Target document")
        target = ""
    elif (other := run.view.find_document_clash(target)) is not None:
        run.find("name-clash", f"{other} differs only in letter case", "Target document")
    if lesson_table := find_table(target):
        return decide_lesson(run, lesson_table)
    if target and target not in DOCUMENTS and is_reserved_for_people(target):
        run.find("instruction-file", instruction_file_message(target), "Target document")
    if not content:
        run.find("no-content", "`## Suggested document content` is missing", "Suggested document content")
    elif heading := _section_heading(content):
        run.find("section-in-document", f"use ### or deeper instead of {heading!r}", "Suggested document content")
    if find_open_comment(content) is not None:
        run.find("open-fence", "a comment (<!--) is not closed", "Suggested document content")
    if not target or not content:
        return run.decision("review", target)
    entry = _entry(run, target, content) if is_journal_path(target) else None
    if entry is not None:
        target = run.view.place_journal(entry.path)
        if not entry.text:
            run.find("no-content", "there is no text below its first line", "Suggested document content")
            return run.decision("review", target)
    try:
        existing = run.view.read(target)
    except UnsafePath as error:
        run.find("unsafe-target", f"{error.path} {error.what}", "Target document")
        return run.decision("review", target)
    except ChangedSince as error:
        raise Retry(error.path) from error
    if entry is not None and entry.section:
        return _status(run, target, entry, existing)
    addition: bytes | None
    if entry is not None:  # logs are not checked against code: what happened stays true
        addition = _journal_addition(existing, entry)
    else:
        addition = _addition(existing, run.verified_content(content, "Suggested document content"))
    if addition is None:
        return run.decision("already", target)
    if (
        existing is None
        and run.view.is_known
        and target not in DOCUMENTS
        and is_reference_path(target)
        and entry is None
    ):
        run.find("new-document", f"{target} would be a new file: a person decides", "Target document")
    if entry is None and (heading := _same_heading(existing, content, target)):
        what = f"{target} already has a section {heading!r}; use another heading, or add to that section"
        run.find("same-heading", what, "Suggested document content")
    if len(existing or b"") + len(addition) > run.config.limits.document_bytes:
        what = f"{target} would exceed {run.config.limits.document_bytes} bytes; move details to cards"
        run.find("over-budget", what, "Target document")
    return run.decision("routed", target, addition)


def _is_table_or_journal(path: str) -> bool:
    return find_table(path) is not None or is_journal_path(path)


def _entry(run: PolicyRun, target: str, content: str) -> JournalAddition:
    candidate = run.candidate
    written, _ = parse_name(candidate.name)
    known = HandoffSource(candidate.writer, candidate.repository, candidate.machine, written, run.clock)
    entry = receive_entry(target, content, known)
    if entry.future:
        run.find("future-date", f"{entry.future} is after today", "Suggested document content")
    return entry


def _status(run: PolicyRun, target: str, entry: JournalAddition, existing: bytes | None) -> Decision:
    """Replace a project's status section, unless the existing one is newer."""
    where = "Suggested document content"
    try:
        text = (existing or b"").decode()
        old = next((part for name, part in sections_of(text).items() if name.casefold() == STATUS.casefold()), "")
        last = find_stamp(old, now=run.clock)
        if last is not None and entry.at is not None and entry.at < last:
            what = f"written {entry.at:%Y-%m-%d %H:%M}, but the existing status is from {last:%Y-%m-%d %H:%M}"
            run.find("older-than-card", what, where)
        new = with_sections(text, [(entry.section, entry.text)], path=target, title=title_of(entry.path))
    except (UnicodeDecodeError, BadInput) as error:
        what = error.message if isinstance(error, BadInput) else f"{target} is not UTF-8 text"
        run.find("unsafe-target", what, "Target document")
        return run.decision("review", target)
    if new == text:
        return run.decision("already", target)
    there = {line.strip() for line in old.split("\n")}
    dropped = (run.view.hand_edits(target).written & there) - {line.strip() for line in new.split("\n")}
    if dropped:
        run.find("hand-edited", f"it would remove {many(len(dropped), 'line')} that a person wrote", where)
    return replace(run.decision("routed", target, new.encode()), replaces=True)


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
    """The content's first heading, if the document already has it; "" otherwise. Dates may repeat."""
    first = content.lstrip("\n").partition("\n")[0]
    if not existing or not first.lstrip(" ").startswith("#"):
        return ""
    try:
        begin = outline(f"{first}\n").headings
        words = words_of(begin[0].text) if begin else []
        if not words or _is_day(words) or (target.startswith(".learnings/") and len(words) == 1):
            return ""  # .learnings/ files repeat one-word headings for each entry
        if (text := decode_text(existing)) is None:
            return ""
        lines = text.split("\n")
        there = [heading.text for heading in outline(f"{text}\n").headings]
        if text.lstrip().startswith("# "):
            there = there[1:]  # the document's title is not a section
        there += [lines[number - 1].strip() for number, _ in underlines(text)]
    except TooComplex:
        return ""
    return next((unicode.printable(heading) for heading in there if words_of(heading) == words), "")


_DAYS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "week", "utc"),
)


def _is_day(words: Sequence[str]) -> bool:
    """True if a heading is only a date, time, month or week."""
    return all(word[:1].isdigit() or (len(word) > 2 and any(day.startswith(word) for day in _DAYS)) for word in words)


def _addition(existing: bytes | None, content: str) -> bytes | None:
    """The bytes to append, with the document's own newlines; None if the content is already there."""
    newline = newline_of(existing.decode("latin-1")).encode() if existing and b"\r" in existing else b"\n"
    block = content.strip("\n").encode().replace(b"\n", newline)
    if not existing:
        return block + newline
    if contains_block(existing, block):
        return None
    lead = newline if existing.endswith(b"\n") else newline * 2
    if existing.endswith(newline * 2):
        lead = b""
    return lead + block + newline


def _journal_addition(existing: bytes | None, entry: JournalAddition) -> bytes:
    """The bytes to append to a journal. Each handoff is an entry of its own, even with equal text."""
    there = (existing or b"").decode("utf-8", "surrogateescape")
    return appended(there, entry.text, title=title_of(entry.path)).encode()


def contains_block(existing: bytes, block: bytes) -> bool:
    """True if the block is there as whole lines. Looks only at line starts, so that it stays linear."""
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
