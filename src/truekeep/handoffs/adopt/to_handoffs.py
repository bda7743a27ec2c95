"""Turns a harness's notes into handoffs in the inbox of their repository.

Notes are never changed. Imported notes are recorded by digest, so that a note is imported again only if it changes. A
note with a credential is not copied. Other doubtful notes are handed in, because ingest sends them to review.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput
from truekeep.core.model import CARDS
from truekeep.core.repository import find_top
from truekeep.handoffs.adopt import claude, codex
from truekeep.handoffs.adopt.note import AdoptionScope, Note, SkippedNote
from truekeep.handoffs.format import compose_handoff, handoff_name, slugify
from truekeep.handoffs.inbox import PROCESSED, Inbox, deliver
from truekeep.text.markdown_lines import FenceReader, without_indent

if TYPE_CHECKING:
    from truekeep.handoffs.policy.decision import Decision, Lint

SCHEMA = "truekeep.adopted/1"
TYPES = {"user": "preference", "feedback": "preference", "reference": "research", "note": "preference"}
"""The handoff type for a note's scope; project-context for any other."""

_DEEP = re.compile(r" {0,3}#{1,3}(?=[ \t])")


class AdoptionOutcome(NamedTuple):
    """The result for one note."""

    note: str  # its path
    outcome: str  # left, unchanged, already, withheld, refused
    title: str
    repository: str  # the root; "" for notes about the user
    target: str = ""  # the target card or document
    handoff: str = ""  # the path of the handoff, written or planned
    why: str = ""


class EarlierAdoption(NamedTuple):
    """The record of a note that was imported before."""

    digest: str
    card: str = ""
    lines: tuple[str, ...] = ()  # digests of appended lines; only new lines are imported later
    handoff: str = ""

    @property
    def is_waiting(self) -> bool:
        return bool(self.handoff) and os.path.lexists(self.handoff)


class _NoteHandoff(NamedTuple):
    note: Note
    inbox: Inbox
    name: str
    raw: bytes
    brought: EarlierAdoption


class AdoptionContext(NamedTuple):
    """What importing needs from its caller."""

    home: Path | None  # the root for notes without a repository; None if there is no workspace
    writers: Mapping[str, str]
    judge: Lint
    has_card: Callable[[str], bool]
    memory_path: Path  # the record of imported notes
    knows_filed: bool  # True if the policy knows filed handoffs; else processed/ is searched


def bring(
    harness: str,
    context: AdoptionContext,
    *,
    folders: Sequence[Path],
    now: datetime,
    given: Path | None = None,
    repository: Path | None = None,
    dry_run: bool = False,
) -> tuple[list[AdoptionOutcome], list[SkippedNote]]:
    """Hand in a harness's own new notes. `folders` are the known repositories."""
    find = {"claude": claude.find_claude, "codex": codex.find_codex}.get(harness)
    if find is None:
        raise BadInput(f"notes of {harness!r} cannot be imported", hint="give claude or codex")
    place = AdoptionScope(Path(os.environ.get("HOME") or os.path.expanduser("~")), os.environ, folders, now)
    root = find_top(repository.absolute()) or repository.absolute() if repository is not None else None
    found = find(place, given=given.absolute() if given is not None else None, repo=root)
    homeless = [note for note in found.notes if note.root is None and context.home is None]
    why = "it belongs to no repository, and there is no workspace here; run this inside a repository"
    skipped = [*found.skipped, *(SkippedNote(note.shown, why) for note in homeless)]
    return adopt([note for note in found.notes if note not in homeless], context, dry_run=dry_run), skipped


def adopt(notes: Sequence[Note], context: AdoptionContext, *, dry_run: bool = False) -> list[AdoptionOutcome]:
    """Hand in each note that is new or changed."""
    memory = read_memory(context.memory_path)
    results: list[AdoptionOutcome] = []
    handoffs: list[_NoteHandoff] = []
    taken: set[str] = set()
    for note in notes:
        before = memory.get(note.key)
        if before is not None and before.digest == note.digest:
            results.append(_adopted(note, "unchanged", target=_target(before.card)))
            continue
        root = note.root or context.home
        assert root is not None, note.shown
        inbox = Inbox(root=root, folder=context.writers[note.harness], writer=note.harness)
        handoff = _compose(note, inbox, before, context.has_card, taken)
        if handoff is None:
            what = "only lines were removed; remove them from USER.md by hand"
            results.append(_adopted(note, "unchanged", target="USER.md", why=what))
            continue
        handoffs.append(handoff)
    decisions = context.judge([(handoff.raw, handoff.name, handoff.inbox.root) for handoff in handoffs])
    try:
        for handoff, decision in zip(handoffs, decisions, strict=True):
            done = _hand_in(handoff, decision, context, dry_run=dry_run)
            results.append(done)
            if done.outcome in ("left", "already"):
                memory[handoff.note.key] = handoff.brought._replace(handoff=done.handoff)
    finally:
        if not dry_run and handoffs:
            write_memory(context.memory_path, memory)
    return results


def _compose(
    note: Note, inbox: Inbox, before: EarlierAdoption | None, has_card: Callable[[str], bool], taken: set[str]
) -> _NoteHandoff | None:
    """The handoff for a note; None if it contains nothing new."""
    evidence = [f"{note.harness} memory {note.shown}, written {note.modified_at:%Y-%m-%d}"]
    if note.session_id:
        evidence.append(f"{note.harness} session {note.session_id}")
    common: dict[str, Any] = {
        "title": note.title,
        "kind": TYPES.get(note.scope, "project-context"),
        "summary": note.summary,
        "evidence": evidence,
    }
    brought = EarlierAdoption(note.digest)
    if note.scope == "user":
        lines = _demoted(note.body).split("\n")
        digests = tuple(_digest(line) for line in lines if line.strip())
        known = set(before.lines) if before is not None else set()
        fresh = [line for line in lines if not line.strip() or _digest(line) not in known]
        if not any(line.strip() for line in fresh):
            return None
        content = f"### {note.title}\n\n" + "\n".join(fresh).strip("\n")
        text = compose_handoff(**common, document="USER.md", content=content)
        brought = brought._replace(card="USER.md", lines=digests)
    else:
        card = before.card if before is not None and before.card else _card_name(note, taken)
        update = before is not None and (has_card(card) or before.is_waiting)
        tags = [f"{note.harness}-memory"]
        text = compose_handoff(
            **common, card=card, update=update, topic=note.title, category=note.scope or "memory", tags=tags,
            description=_description(note), content=_without_rule(note.body),
        )  # fmt: skip
        brought = brought._replace(card=card)
    taken.add(brought.card)
    name = handoff_name(note.title, note.modified_at.astimezone())
    return _NoteHandoff(note, inbox, name, text.encode("utf-8", "replace"), brought)


def _description(note: Note) -> str:
    """The card's description for the index: its repository and the harness's description of the note."""
    is_repeated = note.hook.casefold().strip(" .") in note.summary.casefold()
    description = note.summary if is_repeated else f"{note.hook}; {note.summary}"
    return ": ".join(part for part in (note.root.name if note.root is not None else "", description) if part)


def _card_name(note: Note, taken: set[str]) -> str:
    """A card name from the repository, or the harness, and the title; unique among repositories."""
    place = slugify(note.root.name, limit=40) if note.root is not None else note.harness
    stem = "-".join(part for part in (place or "repository", slugify(note.title, limit=80)) if part)
    name = f"{stem}.md"
    return name if name not in taken and slugify(note.title) else f"{stem}-{note.key[-6:]}.md"


def _hand_in(handoff: _NoteHandoff, decision: Decision, context: AdoptionContext, *, dry_run: bool) -> AdoptionOutcome:
    note, target = handoff.note, decision.target or _target(handoff.brought.card)
    if decision.has_secret:
        what = "it contains what looks like a credential; remove it, and the next run imports the note"
        return _adopted(note, "withheld", target=target, why=what)
    if decision.outcome == "refused":
        return _adopted(note, "refused", target=target, why=_codes(decision))
    if decision.outcome == "already":
        return _adopted(note, "already", target=target)
    path = _waiting(handoff, () if context.knows_filed else (PROCESSED,))
    if path is None:
        path = handoff.inbox.path / handoff.name if dry_run else deliver(handoff.inbox, handoff.name, handoff.raw)
    why = f"will go to review: {_codes(decision)}" if decision.outcome == "review" else ""
    return _adopted(note, "left", target=target, handoff=str(path), why=why)


def _waiting(handoff: _NoteHandoff, below: Sequence[str]) -> Path | None:
    """The path of an identical handoff, left by a run that was killed; None if there is none."""
    for folder in (handoff.inbox.path, *(handoff.inbox.path / name for name in below)):
        with suppress(OSError):
            path = folder / handoff.name
            if file_io.read_regular(path, follow=False) == handoff.raw:
                return path
    return None


def _target(name: str) -> str:
    """The workspace path of a card or document."""
    return name if not name or name == "USER.md" else f"{CARDS}/{name}"


def _codes(decision: Decision) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in decision.blocking))


def _adopted(note: Note, outcome: str, *, target: str = "", handoff: str = "", why: str = "") -> AdoptionOutcome:
    root = str(note.root) if note.root is not None else ""
    return AdoptionOutcome(note.shown, outcome, note.title, root, target, handoff, why)


def _demoted(body: str) -> str:
    """The text with its headings moved below the document's section heading."""
    fences = FenceReader()
    return "\n".join(line if fences.see(without_indent(line)) else _DEEP.sub("####", line) for line in body.split("\n"))


def _without_rule(body: str) -> str:
    """The text without leading horizontal rules, which would be taken for frontmatter."""
    while body.lstrip().startswith("---"):
        body = body.lstrip().partition("\n")[2]
    return body or "."


def _digest(line: str) -> str:
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "replace")).hexdigest()[:16]


# --- Record of imported notes ---------------------------------------------------------------------------------------


def read_memory(path: Path) -> dict[str, EarlierAdoption]:
    """Read the record; {} if it is missing or invalid. Notes imported again are recognised by the policy."""
    try:
        data = json.loads(file_io.read_regular(path))
        notes = data["notes"] if data["schema"] == SCHEMA else {}
        return {
            str(key): EarlierAdoption(item["digest"], item["card"], tuple(item["lines"]), item["handoff"])
            for key, item in notes.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_memory(path: Path, memory: Mapping[str, EarlierAdoption]) -> None:
    notes = {key: brought._asdict() for key, brought in sorted(memory.items())}
    data = json.dumps({"schema": SCHEMA, "notes": notes}, indent=1).encode()
    file_io.write_whole(path, data)
