"""Where the lines of a memory come from: the repository and the day that each is checked against."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol

from truekeep.core.errors import NotFound
from truekeep.core.file_io import UnsafePath
from truekeep.core.model import CARDS
from truekeep.memory.repair_note import parse_repair
from truekeep.verify.results import LineOrigin, MemoryText, digest_text, end_of_day

if TYPE_CHECKING:
    from truekeep.memory.history import History
    from truekeep.memory.ledger import Ledger
    from truekeep.verify.cache import FactsCache


class HistorySource(Protocol):
    """Where origins are read from; each is opened when it is first used."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def history(self) -> History: ...

    @property
    def facts(self) -> FactsCache: ...


class LineOrigins:
    """Reads the ledger of one workspace for the origins of lines."""

    def __init__(self, source: HistorySource) -> None:
        self._source = source

    def before_repairs(self, memories: Sequence[MemoryText]) -> list[MemoryText]:
        """Give repaired cards the day that they had before the repair; only the repaired lines get the repair's day.

        A card that was rewritten since has another day, and keeps that.
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

    def of_document(self, path: str) -> tuple[LineOrigin, ...]:
        """For each line of a document, the repository and the day of the handoff that it came from.

        A repaired line has the day of its repair, because its paths are of that day.
        """
        try:
            lines = self._source.history.lines(path)
        except (NotFound, UnsafePath):
            return ()
        found = []
        for line in lines:
            if line.source is None or not line.source.received_at:
                found.append(LineOrigin())
                continue
            at = line.source.received_at if line.record is not None or line.entry is None else line.entry.at
            found.append(LineOrigin(line.source.origin.repository, end_of_day(date.fromisoformat(at[:10]))))
        return tuple(found)
