"""The store as the judge sees it: files with what is already staged, the catalogue, and what a person edited."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from truekeep import disk
from truekeep.card import words_of
from truekeep.catalog import Catalog, Sketch
from truekeep.disk import ChangedSince, UnsafePath
from truekeep.handoff import decode_text
from truekeep.ledger import Ledger
from truekeep.vault import Staging, Vault

INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md")
_INSTRUCTION_LIMIT = 262_144


class StoreShelf:
    """A Shelf over a real workspace."""

    def __init__(self, vault: Vault, ledger: Ledger, catalog: Catalog, staging: Staging) -> None:
        self._vault, self._ledger, self._catalog, self._staging = vault, ledger, catalog, staging
        self._instructions: dict[Path, str] = {}
        self._repository: Path | None = None

    def restage(self, staging: Staging) -> None:
        self._staging = staging

    def from_repository(self, root: Path | None) -> None:
        """Name the repository whose instruction files count for the next question."""
        self._repository = root

    def read(self, path: str) -> bytes | None:
        return self._staging.read(path)

    def day_of(self, path: str) -> date | None:
        stored = self._vault.read(path)
        return datetime.fromtimestamp(stored.stamp.mtime_ns / 1e9, UTC).date() if stored else None

    def check_index(self) -> None:
        """Raise UnsafePath when the index could not be written."""
        self._staging.index()

    def find_clash(self, name: str) -> str | None:
        return self._catalog.find_clash(name)

    def find_document_clash(self, path: str) -> str | None:
        """Another document of the same folder whose name differs only in letter case."""
        folder, _, name = path.rpartition("/")
        if folder != "rules":
            return None
        staged = [other.rpartition("/")[2] for other in self._staging.paths() if other.startswith("rules/")]
        try:
            names = [entry.name for entry in self._vault.names(folder)]
        except UnsafePath:
            return None  # reading the document says so
        for other in (*staged, *names):
            if other != name and other.casefold() == name.casefold():
                return f"rules/{other}"
        return None

    def find_same_topic(self, topic: str, name: str) -> str | None:
        return self._catalog.find_same_topic(topic, name)

    def find_near(self, candidate: Sketch, name: str) -> str | None:
        return self._catalog.find_near(candidate, name)

    def hand_lines(self, path: str, data: bytes) -> Collection[str]:
        """The lines that stand in a card now and were not in what truekeep last wrote there."""
        last = self._ledger.last_digest(path)
        if last is None or last == hashlib.sha256(data).digest():
            return ()
        written = self._ledger.content(path)
        if written is None or written == data:
            return ()
        before = {line.strip() for line in (decode_text(written) or "").split("\n")}
        now = {line.strip() for line in (decode_text(data) or "").split("\n")}
        return now - before - {""}

    def instructions(self) -> str:
        """The words of the repository's instruction files, for comparing."""
        root = self._repository
        if root is None:
            return ""
        known = self._instructions.get(root)
        if known is None:
            known = self._instructions[root] = _read_instructions(root)
        return known


def _read_instructions(root: Path) -> str:
    lines: list[str] = []
    try:
        folder = disk.open_root(str(root))
    except OSError:
        return ""
    try:
        for name in INSTRUCTION_FILES:
            with suppress(OSError, UnsafePath, ChangedSince):
                data, _ = disk.read_file(folder, name, limit=_INSTRUCTION_LIMIT)
                lines += [" ".join(words_of(line)) for line in (decode_text(data) or "").split("\n")]
    finally:
        os.close(folder)
    return "\n".join(line for line in lines if line)
