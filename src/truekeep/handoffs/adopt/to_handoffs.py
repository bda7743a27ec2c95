"""Notes become handoffs: composed by their scope, judged as ingest will, left in the inbox of their repository.

Notes are never changed. What was brought is remembered by its digest, so that a note comes again only when it says
something else. What holds a credential is not copied anywhere; what is doubtful is left all the same, because ingest
puts it before a person.
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
from truekeep.core.git import find_top
from truekeep.core.model import CARDS
from truekeep.handoffs.adopt import claude, codex
from truekeep.handoffs.adopt.note import AdoptionScope, Note, SkippedNote
from truekeep.handoffs.format import compose_handoff, handoff_name, slugify
from truekeep.handoffs.inbox import PROCESSED, Inbox, deliver
from truekeep.text.markdown_lines import closes_fence, opening_fence, without_indent

if TYPE_CHECKING:
    from truekeep.handoffs.policy import Decision, Lint

SCHEMA = "truekeep.adopted/1"
TYPES = {"user": "preference", "feedback": "preference", "reference": "research", "note": "preference"}
"""Which type of handoff a scope is; every other is project-context."""

_DEEP = re.compile(r" {0,3}#{1,3}(?=[ \t])")


class AdoptionOutcome(NamedTuple):
    """What became of one note."""

    note: str  # where it lies
    outcome: str  # left, unchanged, already, withheld, refused
    title: str
    repository: str  # the root; empty for what is about the user
    target: str = ""  # the card or document that it is for
    handoff: str = ""  # where it was left, or would be
    why: str = ""


class EarlierAdoption(NamedTuple):
    """What is remembered of a note that was brought before."""

    digest: str
    card: str = ""
    lines: tuple[str, ...] = ()  # digests, for what is appended: only new ones are brought later
    handoff: str = ""

    @property
    def is_waiting(self) -> bool:
        return bool(self.handoff) and os.path.lexists(self.handoff)


class _Letter(NamedTuple):
    note: Note
    inbox: Inbox
    name: str
    raw: bytes
    brought: EarlierAdoption


class Desk(NamedTuple):
    """Where notes are judged and left."""

    home: Path | None  # the root for what has no repository; None: there is nowhere to leave that
    writers: Mapping[str, str]
    judge: Lint
    has_card: Callable[[str], bool]
    memory_path: Path  # what was brought
    knows_filed: bool  # whether the judge knows what was filed; if not, a copy in processed/ says so


def bring(
    harness: str,
    desk: Desk,
    *,
    folders: Sequence[Path],
    now: datetime,
    given: Path | None = None,
    repository: Path | None = None,
    dry_run: bool = False,
) -> tuple[list[AdoptionOutcome], list[SkippedNote]]:
    """Leave handoffs for what a harness remembers of its own and is new. `folders`: repositories that are known."""
    find = {"claude": claude.find_claude, "codex": codex.find_codex}.get(harness)
    if find is None:
        raise BadInput(f"nothing can be adopted from {harness!r}", hint="claude or codex")
    place = AdoptionScope(Path(os.environ.get("HOME") or os.path.expanduser("~")), os.environ, folders, now)
    root = find_top(repository.absolute()) or repository.absolute() if repository is not None else None
    found = find(place, given=given.absolute() if given is not None else None, repo=root)
    homeless = [note for note in found.notes if note.root is None and desk.home is None]
    why = "it is about no repository, and there is no workspace here; run this in a repository, whose inbox then has it"
    skipped = [*found.skipped, *(SkippedNote(note.shown, why) for note in homeless)]
    return adopt([note for note in found.notes if note not in homeless], desk, dry_run=dry_run), skipped


def adopt(notes: Sequence[Note], desk: Desk, *, dry_run: bool = False) -> list[AdoptionOutcome]:
    """Leave a handoff for each note that is new or says something else."""
    memory = read_memory(desk.memory_path)
    results: list[AdoptionOutcome] = []
    letters: list[_Letter] = []
    taken: set[str] = set()
    for note in notes:
        before = memory.get(note.key)
        if before is not None and before.digest == note.digest:
            results.append(_adopted(note, "unchanged", target=_target(before.card)))
            continue
        root = note.root or desk.home
        assert root is not None, note.shown
        inbox = Inbox(root=root, folder=desk.writers[note.harness], writer=note.harness)
        letter = _compose(note, inbox, before, desk.has_card, taken)
        if letter is None:
            what = "only lines were taken out; what is appended to USER.md is taken out by hand"
            results.append(_adopted(note, "unchanged", target="USER.md", why=what))
            continue
        letters.append(letter)
    filings = desk.judge([(letter.raw, letter.name, letter.inbox.root) for letter in letters])
    try:
        for letter, filing in zip(letters, filings, strict=True):
            done = _leave(letter, filing, desk, dry_run=dry_run)
            results.append(done)
            if done.outcome in ("left", "already"):
                memory[letter.note.key] = letter.brought._replace(handoff=done.handoff)
    finally:
        if not dry_run and letters:
            write_memory(desk.memory_path, memory)
    return results


def _compose(
    note: Note, inbox: Inbox, before: EarlierAdoption | None, has_card: Callable[[str], bool], taken: set[str]
) -> _Letter | None:
    """The handoff for a note; None when there is nothing to say that was not said before."""
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
    return _Letter(note, inbox, name, text.encode("utf-8", "replace"), brought)


def _description(note: Note) -> str:
    """What the index says about a card besides its title: its repository, and what the harness said about the note."""
    is_said = note.hook.casefold().strip(" .") in note.summary.casefold()
    told = note.summary if is_said else f"{note.hook}; {note.summary}"
    return ": ".join(part for part in (note.root.name if note.root is not None else "", told) if part)


def _card_name(note: Note, taken: set[str]) -> str:
    """A name that no other repository's note has: by the repository, or the harness, and the title."""
    place = slugify(note.root.name, limit=40) if note.root is not None else note.harness
    stem = "-".join(part for part in (place or "repository", slugify(note.title, limit=80)) if part)
    name = f"{stem}.md"
    return name if name not in taken and slugify(note.title) else f"{stem}-{note.key[-6:]}.md"


def _leave(letter: _Letter, filing: Decision, desk: Desk, *, dry_run: bool) -> AdoptionOutcome:
    note, target = letter.note, filing.target or _target(letter.brought.card)
    if filing.has_secret:
        what = "it holds what looks like a credential; take it out there, and it comes with the next run"
        return _adopted(note, "withheld", target=target, why=what)
    if filing.outcome == "refused":
        return _adopted(note, "refused", target=target, why=_codes(filing))
    if filing.outcome == "already":
        return _adopted(note, "already", target=target)
    path = _waiting(letter, () if desk.knows_filed else (PROCESSED,))
    if path is None:
        path = letter.inbox.path / letter.name if dry_run else deliver(letter.inbox, letter.name, letter.raw)
    why = f"it will wait for review: {_codes(filing)}" if filing.outcome == "review" else ""
    return _adopted(note, "left", target=target, handoff=str(path), why=why)


def _waiting(letter: _Letter, below: Sequence[str]) -> Path | None:
    """Where these very bytes lie already: a run that was killed had left them."""
    for folder in (letter.inbox.path, *(letter.inbox.path / name for name in below)):
        with suppress(OSError):
            path = folder / letter.name
            if file_io.read_regular(path, follow=False) == letter.raw:
                return path
    return None


def _target(name: str) -> str:
    """A card or document, as seen from the workspace."""
    return name if not name or name == "USER.md" else f"{CARDS}/{name}"


def _codes(filing: Decision) -> str:
    return ", ".join(dict.fromkeys(finding.code for finding in filing.blocking))


def _adopted(note: Note, outcome: str, *, target: str = "", handoff: str = "", why: str = "") -> AdoptionOutcome:
    root = str(note.root) if note.root is not None else ""
    return AdoptionOutcome(note.shown, outcome, note.title, root, target, handoff, why)


def _demoted(body: str) -> str:
    """The text with its headings below the one that it gets in a document."""
    lines: list[str] = []
    fence = ""
    for line in body.split("\n"):
        bare = without_indent(line.rstrip("\r"))
        if fence:
            fence = "" if closes_fence(bare, fence) else fence
        elif not (fence := opening_fence(bare)):
            line = _DEEP.sub("####", line)
        lines.append(line)
    return "\n".join(lines)


def _without_rule(body: str) -> str:
    """The text without a rule at its beginning, which would be taken for frontmatter."""
    while body.lstrip().startswith("---"):
        body = body.lstrip().partition("\n")[2]
    return body or "."


def _digest(line: str) -> str:
    return hashlib.sha256(" ".join(line.split()).encode("utf-8", "replace")).hexdigest()[:16]


# --- What was brought -----------------------------------------------------------------------------------------------


def read_memory(path: Path) -> dict[str, EarlierAdoption]:
    """What was brought before; nothing when there is no such file, or it cannot be understood: then it comes again,
    and the judge knows it."""
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
