"""The policy's view of a workspace: files including staged changes, similar cards, and edits made by hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from truekeep.core import file_io
from truekeep.core.file_io import ChangedSince, FileStamp, UnsafePath
from truekeep.core.harness_paths import find_homes
from truekeep.core.machine import below_home
from truekeep.core.model import CARDS, DOCUMENTS, INDEX, PROTECTED
from truekeep.core.state_dir import STATE
from truekeep.handoffs.policy.decision import CardOnTopic, CardValue, Decision, HandEdits, MemoryView
from truekeep.handoffs.policy.instructed import InstructionLine, read_instructions
from truekeep.memory.blame import BEFORE, BY_HAND, line_owners
from truekeep.memory.card import (
    REFERENCE_FOLDERS,
    Card,
    index_labels,
    indexed_as,
    parse_card,
    parse_journal,
    project_slug,
    short_name,
)
from truekeep.memory.covering import compare_words, judge_covering
from truekeep.memory.file_scan import read_memory_file
from truekeep.memory.ledger import Ledger
from truekeep.memory.project_files import project_paths
from truekeep.memory.similarity import Catalog, Sketch, hash_words, topic_key
from truekeep.memory.staging import MemoryFiles, Staging
from truekeep.memory.unindexed_cards import Consolidation
from truekeep.memory.values import find_values
from truekeep.search.meaning import likeness_of_meaning
from truekeep.text.encoding import decode_text
from truekeep.verify.content_verifier import ContentCheck, ContentVerifier

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md")
_INSTRUCTION_LIMIT = 262_144
_MAX_CARDS_WITH_VALUES = 32
_NOT_PROJECT_FILES = frozenset(
    (*DOCUMENTS, *PROTECTED, *INSTRUCTION_FILES, "BOOT.md", "CHANGELOG.md", "GEMINI.md", "README.md")
)
"""Root files that are not project files, even if a project has that name."""


class StoredMemoryView(MemoryView):
    """A MemoryView of a workspace on disk."""

    is_known = True

    def __init__(
        self,
        vault: MemoryFiles,
        ledger: Ledger,
        catalog: Catalog,
        staging: Staging,
        *,
        verifier: ContentVerifier | None = None,
    ) -> None:
        self._vault, self._ledger, self._catalog, self._staging = vault, ledger, catalog, staging
        self._verifier = verifier
        self._merged: Consolidation | None = None
        self._name = ""
        self._instructions: dict[Path, tuple[InstructionLine, ...]] = {}
        self._repository: Path | None = None

    @property
    def staging(self) -> Staging:
        """The staged changes."""
        return self._staging

    def stage(self, decision: Decision, entry: int) -> None:
        """Stage the writes of a decision, so that the next handoff sees them."""
        if decision.outcome == "promoted":
            assert decision.data is not None
            assert decision.sketch is not None
            is_new = self._staging.read(decision.target) is None
            self._staging.put(decision.target, decision.data, entry)
            if is_new or not self._is_merged(decision.card_name):
                self._point_at(decision, entry)
            self._catalog.stage(decision.card_name, decision.sketch)
        elif decision.outcome == "routed":
            assert decision.data is not None
            if decision.replaces:
                self._staging.put(decision.target, decision.data, entry)
            else:
                self._staging.append(decision.target, decision.data, entry)
        elif decision.outcome == "already" and decision.card_name and not self._is_merged(decision.card_name):
            self._point_at(decision, entry)

    def _point_at(self, decision: Decision, entry: int) -> None:
        """Add a card's index line. If another card has the same topic, both lines name their repositories."""
        name, label, index = decision.card_name, decision.label, self._staging.index()
        mine = self._card_at(name).repository
        others = self._catalog.find_namesakes(topic_key(decision.topic), mine, name)
        other = self._card_at(others[0]) if others else None
        if other is not None:
            label = indexed_as(label, decision.topic, mine, other.repository)
            is_alone = len(others) == 1  # until now
            if is_alone or short_name(other.repository) == short_name(mine):
                wanted = indexed_as(other.label, other.topic, other.repository, mine)
                for old in index_labels(other.label, other.topic, other.repository):
                    index.relabel(other.name, old, wanted, entry)
        for old in index_labels(decision.old_label, decision.old_topic, mine) if decision.old_label else ():
            index.relabel(name, old, label, entry)
        index.point_at(name, label, entry)

    def _card_at(self, name: str) -> Card:
        text: str | None = None
        with suppress(UnsafePath, ChangedSince):
            text = decode_text(self._staging.read(f"{CARDS}/{name}") or b"")
        return parse_card(name, text or "")

    def _is_merged(self, card_name: str) -> bool:
        """True if the card has no index line on purpose, because it was merged into another."""
        if self._staging.index().has_link(card_name):
            return False
        index = self._staging.found(INDEX) or b""
        if self._merged is None or self._merged.index != index:
            self._merged = Consolidation(index, self._ledger, self._read_if_any)
        return self._merged.covers(card_name)

    def _read_if_any(self, path: str) -> bytes | None:
        with suppress(UnsafePath, ChangedSince, OSError):
            stored = self._vault.read(path)
            return stored.data if stored is not None else None
        return None

    def settle(self, stamps: Mapping[str, FileStamp]) -> None:
        """Commit the staged similarity data after the files were written."""
        self._catalog.commit(dict(stamps))

    def restage(self, staging: Staging) -> None:
        self._staging = staging

    def apart(self) -> StoredMemoryView:
        """The same view without a repository."""
        return StoredMemoryView(self._vault, self._ledger, self._catalog, self._staging)

    def from_repository(self, root: Path | None, name: str = "") -> None:
        """Set the repository, by folder or name, whose code and instruction files are used from now on."""
        self._repository, self._name = root, name

    def check_content(self, content: str, day: date) -> ContentCheck:
        """Check content against the code of its repository; moved claims are updated."""
        if self._verifier is None or (self._repository is None and not self._name):
            return ContentCheck(content)
        return self._verifier.check(content, day, self._repository, self._name)

    def read(self, path: str) -> bytes | None:
        return self._staging.read(path)

    def day_of(self, path: str) -> date | None:
        stored = self._vault.read(path)
        return datetime.fromtimestamp(stored.stamp.mtime_ns / 1e9, UTC).date() if stored else None

    def check_index(self) -> None:
        """Raise UnsafePath if the index cannot be written."""
        self._staging.index()

    def find_clash(self, name: str) -> str | None:
        return self._catalog.find_clash(name)

    def find_document_clash(self, path: str) -> str | None:
        """Another document of the same folder whose name differs only in letter case."""
        folder, _, name = path.rpartition("/")
        if folder not in ("rules", *REFERENCE_FOLDERS):
            return None
        staged = [other.rpartition("/")[2] for other in self._staging.paths() if other.startswith(f"{folder}/")]
        try:
            names = [entry.name for entry in self._vault.names(folder)]
        except UnsafePath:
            return None  # reported when the document is read
        for other in (*staged, *names):
            if other != name and other.casefold() == name.casefold():
                return f"{folder}/{other}"
        return None

    def place_journal(self, path: str) -> str:
        return place_journal(path, self._vault, self._staging.paths())

    def find_same_topic(self, topic: str, repository: str, name: str) -> str | None:
        return self._catalog.find_same_topic(topic, repository, name)

    def find_near(self, candidate: Sketch, name: str) -> str | None:
        return self._catalog.find_near(candidate, name)

    def find_on_topic(self, card: Card, candidate: Sketch) -> list[CardOnTopic]:
        """Other cards about the topic of a card, the surest first."""
        catalog = self._catalog
        found: list[CardOnTopic] = []
        for name in catalog.find_on_topic(candidate.words, card.name):
            other = self._card_at(name)
            known = catalog.read_sketch(name)
            if known is None or other.problem:
                continue
            overlap = compare_words(candidate.words, known.words, catalog.count, catalog.total)
            certainty = judge_covering(overlap, partial(self._likeness, card, other))
            if certainty:
                found.append(CardOnTopic(card=other, certainty=certainty))
        return sorted(found, key=lambda item: item.certainty != "same")

    def _likeness(self, one: Card, other: Card) -> float:
        texts = [f"{card.topic}\n{card.body}" for card in (one, other)]
        return likeness_of_meaning(*texts, state=str(Path(self._vault.root) / STATE))

    def find_stated(self, kind: str, subject: str, name: str) -> list[CardValue]:
        """The values that other cards give to a thing."""
        found: list[CardValue] = []
        for other in self._catalog.find_with_words(hash_words(subject), name)[:_MAX_CARDS_WITH_VALUES]:
            card = self._card_at(other)
            lines = card.body.split("\n")
            before = card.render().count("\n") - card.body.count("\n")
            for value in find_values(card.body, topic=card.topic, repository=card.repository):
                if (value.kind, value.subject) == (kind, subject):
                    text = lines[value.line - 1].strip()
                    found.append(
                        CardValue(
                            path=card.path,
                            topic=card.topic,
                            repository=card.repository,
                            value=value,
                            line=before + value.line,
                            text=text,
                        )
                    )
        return found

    def hand_edits(self, path: str) -> HandEdits:
        """Lines of a card on disk that truekeep did not write, and truekeep's lines that were removed."""
        data = self._staging.found(path)
        if data is None:
            return HandEdits()
        owners = line_owners(self._ledger, path, data)
        lines = [line.decode("utf-8", "replace").strip() for line in data.splitlines()]
        written = {line for line, owner in zip(lines, owners, strict=True) if owner == BY_HAND and line}
        older = {line for line, owner in zip(lines, owners, strict=True) if owner == BEFORE and line}
        last = self._ledger.content(path)
        if last is None or last == data:
            return HandEdits(written=written, older=older)
        ours = {line.strip() for line in (decode_text(last) or "").split("\n")}
        return HandEdits(written=written, older=older, removed=ours - set(lines) - {""})

    def instructions(self) -> Sequence[InstructionLine]:
        """The lines of the repository's instruction files."""
        root = self._repository
        if root is None:
            return ()
        known = self._instructions.get(root)
        if known is None:
            known = self._instructions[root] = _read_instructions(root) + _read_user_instructions()
        return known


def place_journal(path: str, vault: MemoryFiles, staged: Iterable[str] = ()) -> str:
    """The path of a journal in this workspace: logs in memory/daily if that exists, projects in their existing file."""
    kind, name = parse_journal(path) or ("", "")
    folder = path.rpartition("/")[0]
    if kind == "day":
        is_daily = os.path.isdir(os.path.join(vault.root, "memory", "daily"))
        return f"memory/daily/{name}.md" if is_daily else f"memory/{name}.md"
    if kind not in ("project", "subagent"):
        return path
    try:
        found = {f"{folder}/{entry.name}" for entry in vault.names(folder)}
    except UnsafePath:
        return path  # reported when it is read
    found.update(other for other in staged if other.startswith(f"{folder}/"))
    if path in found:
        return path
    slug = project_slug(name)
    for other in sorted(found):
        stem = other.removeprefix(f"{folder}/").removesuffix(".md")
        is_same = project_slug(stem) == slug if kind == "project" else other.lower() == path.lower()
        if is_same and other.endswith(".md") and stem[0] != ".":
            return other
    elsewhere = project_paths(slug) if kind == "project" else ()
    return next((other for other in elsewhere if other not in _NOT_PROJECT_FILES and _is_file(vault, other)), path)


def _is_file(vault: MemoryFiles, path: str) -> bool:
    """True if a regular file of exactly this name exists, also on case-insensitive disks."""
    folder, _, name = path.rpartition("/")
    with suppress(UnsafePath):
        return any(entry.name == name and entry.is_file(follow_symlinks=False) for entry in vault.names(folder))
    return False


def _read_instructions(root: Path) -> tuple[InstructionLine, ...]:
    lines: list[InstructionLine] = []
    try:
        folder = file_io.open_root(str(root))
    except OSError:
        return ()
    try:
        for name in INSTRUCTION_FILES:
            with suppress(OSError, UnsafePath, ChangedSince):
                data, _ = file_io.read_file(folder, name, limit=_INSTRUCTION_LIMIT)
                lines += read_instructions(name, decode_text(data) or "")
    finally:
        os.close(folder)
    return tuple(lines)


def _read_user_instructions() -> tuple[InstructionLine, ...]:
    """What the user's own instruction files tell every session on this machine."""
    homes = find_homes()
    lines: list[InstructionLine] = []
    for path in (homes.claude / "CLAUDE.md", homes.codex / "AGENTS.md"):
        with suppress(OSError):
            data, _ = read_memory_file(str(path))
            lines += read_instructions(below_home(path, homes.home), decode_text(data[:_INSTRUCTION_LIMIT]) or "")
    return tuple(lines)
