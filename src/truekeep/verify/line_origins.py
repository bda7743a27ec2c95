"""Finds the repository and the date that each line of a memory is checked against."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from truekeep.core.errors import NotFound
from truekeep.core.file_io import UnsafePath, read_regular
from truekeep.core.model import CARDS
from truekeep.memory.file_scan import is_log
from truekeep.memory.repair_note import parse_repair
from truekeep.verify.results import LineOrigin, MemoryText, digest_text, end_of_day

if TYPE_CHECKING:
    from truekeep.memory.history import History
    from truekeep.memory.ledger import Ledger, LedgerEntry
    from truekeep.verify.cache import FactsCache


_MAX_TIME = 253_402_387_200  # the end of the year 9999, in any time zone


class HistorySource(Protocol):
    """The databases that origins are read from; each is opened on first use."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def history(self) -> History: ...

    @property
    def facts(self) -> FactsCache: ...


class OriginReader(Protocol):
    """Tells the origins of lines: from the ledger, or as the canonical host published them."""

    def before_repairs(self, memories: Sequence[MemoryText]) -> list[MemoryText]: ...

    def of_document(self, path: str, text: str) -> tuple[LineOrigin, ...]: ...


class PublishedOrigins:
    """Reads the origins of lines that the canonical host published for a copy, which has no ledger."""

    def __init__(self, file: str) -> None:
        self._file = file

    def before_repairs(self, memories: Sequence[MemoryText]) -> list[MemoryText]:
        return [self._before_repair(memory) for memory in memories]

    def _before_repair(self, memory: MemoryText) -> MemoryText:
        known = self._known.get(memory.path) if memory.path.startswith(f"{CARDS}/") else None
        if known is None or known[0] != digest_text(memory.text):
            return memory
        return memory._replace(origin=LineOrigin(*known[1]), lines=tuple(LineOrigin(*line) for line in known[2]))

    def of_document(self, path: str, text: str) -> tuple[LineOrigin, ...]:
        known = self._known.get(path)
        if known is None or known[0] != digest_text(text):
            return (LineOrigin(),) * (text.count("\n") + 1)
        return tuple(LineOrigin(*line) for line in known[2])

    @cached_property
    def _known(self) -> dict[str, Any]:
        try:
            return parse_published_origins(read_regular(self._file, follow=False))
        except (OSError, ValueError):
            return {}


def parse_published_origins(raw: bytes) -> dict[str, Any]:
    """By path: the digest of a text, its origin, and the origins of its lines. Raises ValueError for anything else."""
    try:
        found = json.loads(raw)
        is_valid = all(
            isinstance(digest, str) and all(_is_origin(*item) for item in (origin, *lines))
            for digest, origin, lines in found.values()
        )
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not is_valid:
        raise ValueError("an origin is a repository and a time")
    return dict(found)


def _is_origin(repository: object, written_at: object) -> bool:
    is_time = written_at is None or (type(written_at) is int and abs(written_at) < _MAX_TIME)
    return isinstance(repository, str) and is_time


class LineOrigins:
    """Reads the ledger of one workspace for the origins of lines."""

    def __init__(self, source: HistorySource) -> None:
        self._source = source

    def before_repairs(self, memories: Sequence[MemoryText]) -> list[MemoryText]:
        """Give repaired cards the date they had before the repair; only the repaired lines get the date of the repair.

        A card that was rewritten after the repair keeps its new date.
        """
        paths = [memory.path for memory in memories if memory.path.startswith(f"{CARDS}/")]
        repairs = self._source.ledger.last_repairs(paths) if paths else {}
        return [self._before_repair(item, *repairs[item.path]) if item.path in repairs else item for item in memories]

    def _before_repair(self, memory: MemoryText, number: int, note: str) -> MemoryText:
        days = parse_repair(note)
        if days is None or end_of_day(days[1]) != memory.origin.written_at:
            return memory
        facts = self._source.facts
        key = f"repaired {memory.path} {number} {digest_text(memory.text)}"
        marks = facts.answer(key)
        if marks is None:
            lines = self._source.history.lines(memory.path)
            marks = "".join("r" if line.entry is not None and line.entry.verb == "repaired" else "-" for line in lines)
            facts.remember(key, marks)
        before = LineOrigin(memory.origin.repository, end_of_day(days[0]))
        return memory._replace(origin=before, lines=tuple(memory.origin if mark == "r" else before for mark in marks))

    def of_document(self, path: str, text: str) -> tuple[LineOrigin, ...]:
        """Return, for each line of a document, the repository and the date of the handoff it came from.

        A repaired line has the date of its repair, because its paths are from then.
        """
        if self._source.ledger.last_digest(path) is None:
            return (LineOrigin(),) * (text.count("\n") + 1)  # truekeep never wrote it
        try:
            lines = self._source.history.lines(path)
        except (NotFound, UnsafePath):
            return ()
        found = []
        for line in lines:
            if line.source is None or not line.source.received_at:
                found.append(_of_checkpoint(path, line.entry))
                continue
            at = line.source.received_at if line.record is not None or line.entry is None else line.entry.at
            found.append(LineOrigin(line.source.origin.repository, end_of_day(date.fromisoformat(at[:10]))))
        return tuple(found)


def _of_checkpoint(path: str, entry: LedgerEntry | None) -> LineOrigin:
    """The origin of what an agent on the host added to a log itself; its entry has the repository's short name."""
    if entry is None or entry.verb != "checkpoint" or not is_log(path):
        return LineOrigin()
    from truekeep.memory.journal import labelled_repository  # most lines are of no log, and sessions wait for this

    return LineOrigin(labelled_repository(entry.note), end_of_day(date.fromisoformat(entry.at[:10])))
