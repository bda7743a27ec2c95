"""Where the lines of a memory come from: the repository and the day that each is checked against."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING

from truekeep.core.errors import NotFound
from truekeep.core.file_io import UnsafePath
from truekeep.core.model import CARDS
from truekeep.text.encoding import decode_text
from truekeep.verify.results import LineOrigin, MemoryText, digest_text
from truekeep.verify.service import end_of_day

if TYPE_CHECKING:
    from truekeep.workspace.context import WorkspaceContext


class LineOrigins:
    """Reads the ledger of one workspace for the origins of lines."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context

    def before_repairs(self, memories: Sequence[MemoryText]) -> list[MemoryText]:
        """Give repaired cards the day that they had before the repair; only the repaired lines get the repair's day.

        A card that was rewritten since has another day, and keeps that.
        """
        paths = [memory.path for memory in memories if memory.path.startswith(f"{CARDS}/")]
        repairs = self._context.ledger.last_repairs(paths) if paths else {}
        return [self._before_repair(item, *repairs[item.path]) if item.path in repairs else item for item in memories]

    def _before_repair(self, memory: MemoryText, number: int, note: str) -> MemoryText:
        from truekeep.maintenance.repair import parse_repair  # loads the verifier, and hooks come here

        days = parse_repair(note)
        if days is None or end_of_day(days[1]) != memory.origin.written_at:
            return memory
        facts = self._context.facts
        key = f"repaired {memory.path} {number} {digest_text(memory.text)}"
        marks = facts.answer(key)
        if marks is None:
            lines = self._context.history.lines(memory.path)
            marks = "".join("r" if line.entry is not None and line.entry.verb == "repaired" else "-" for line in lines)
            facts.remember(key, marks)
        before = LineOrigin(memory.origin.repository, end_of_day(days[0]))
        return memory._replace(origin=before, lines=tuple(memory.origin if mark == "r" else before for mark in marks))

    def repaired_spans(self, memory: MemoryText) -> list[tuple[int, int]]:
        """The spans of a card that an earlier repair wrote, in lines that did not change since."""
        from truekeep.verify.text_edits import changed_words

        if not memory.path.startswith(f"{CARDS}/") or not self._context.ledger.last_repairs([memory.path]):
            return []
        starts = [0, *accumulate(len(line) + 1 for line in memory.text.split("\n"))]
        spans: list[tuple[int, int]] = []
        before: dict[int, dict[str, str]] = {}  # by repair: each line after it, and before it
        for line in self._context.history.lines(memory.path):
            if line.entry is None or line.entry.verb != "repaired" or line.number >= len(starts):
                continue
            if line.entry.id not in before:
                around = self._context.ledger.around(line.entry.id, memory.path) or (None, None)
                old, new = ((decode_text(data or b"") or "").split("\n") for data in around)
                # Paired from the end, because the repair may have added a date at the top.
                before[line.entry.id] = dict(zip(reversed(new), reversed(old), strict=False))
            if (old_text := before[line.entry.id].get(line.text)) is not None:
                first = starts[line.number - 1]
                spans += [(first + start, first + end) for start, end in changed_words(old_text, line.text)]
        return spans

    def of_document(self, path: str) -> tuple[LineOrigin, ...]:
        """For each line of a document, the repository and the day of the handoff that it came from.

        A repaired line has the day of its repair, because its paths are of that day.
        """
        try:
            lines = self._context.history.lines(path)
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
