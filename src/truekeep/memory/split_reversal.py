"""Puts cards back to where a split took them from: the same place, order and bytes, if nothing changed since. Pure.

The ledger knows the file before the split. What was edited since, in the file or on the cards, stays edited.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from truekeep.memory.card import card_label, parse_card
from truekeep.memory.memory_index import HEADING
from truekeep.memory.section_tree import SectionFile, card_body, split_lines
from truekeep.memory.split_parts import PartLinks, RestLine, SplitUnit, UnitCard, find_units, rest_lines
from truekeep.text.line_diff import iter_spans

_CARDS_HEADING = f"## {HEADING}"
_LineKey = tuple[str, int | str]


class SplitRecord(NamedTuple):
    """A split, as the ledger has it."""

    before: str  # the file
    after: str
    cards: Mapping[str, str]  # the texts of its cards, by name


class SplitReversal:
    """The file before a split, and the lines that each card was made of."""

    def __init__(self, path: str, record: SplitRecord) -> None:
        self.path, self.record = path, record
        self.file = SectionFile(record.before)
        self.written = {name: card_body(text) for name, text in record.cards.items()}
        self.units: dict[str, SplitUnit] = find_units(self.file, self.written)

    def put_back(
        self, text: str, bodies: Mapping[str, str], *, linked: Collection[str], relinked: Mapping[str, str]
    ) -> str:
        """The file with some of the cards in their places.

        `bodies`: what these cards say now; `relinked`: the same, with links as the file has them. `linked`: the cards
        that the file links to.
        """
        is_unchanged = all(bodies[name] == self.written[name] for name in bodies)
        if is_unchanged and text == self.record.after and bodies.keys() == self.written.keys():
            return self.record.before
        away = [
            UnitCard(unit, name, _label(name, self.record.cards[name]))
            for name, unit in sorted(self.units.items(), key=lambda item: item[1].first)
            if name in linked or name in bodies
        ]
        base = rest_lines(self.path, self.file, away, self._links(away))
        target = self._target([card for card in away if card.name not in bodies], bodies, relinked)
        if text == "".join(line.text for line in base):
            return _text(line.text for line in target)
        return _text(_with_edits(base, target, split_lines(text), self.file.newline))

    def _target(
        self, cards: Sequence[UnitCard], bodies: Mapping[str, str], relinked: Mapping[str, str]
    ) -> list[RestLine]:
        """The file with only some of the cards split off, and the others as they are now."""
        lines = rest_lines(self.path, self.file, cards, self._links(cards))
        for name in bodies:
            unit = self.units[name]
            if bodies[name] != self.written[name]:
                own = [line for line in lines if line.number in range(unit.first, unit.last)]
                at = lines.index(own[0])
                new = _edited(own, self.written[name], bodies[name], relinked[name])
                lines[at : at + len(own)] = new
        return lines

    def _links(self, cards: Sequence[UnitCard]) -> PartLinks:
        return PartLinks(self.path, self.file, {card.unit: card.name for card in cards})


def _label(name: str, text: str) -> str:
    card = parse_card(name, text.replace("\r\n", "\n"))
    return card_label(card.topic, card.front.text("description"))


def _edited(own: Sequence[RestLine], written: str, body: str, relinked: str) -> list[RestLine]:
    """The lines of a card that was edited: those that are as they were, as the file had them."""
    found: list[RestLine] = []
    new = split_lines(relinked)
    for span in iter_spans(split_lines(written), split_lines(body)):
        if span.is_same:
            found += own[span.old : span.old_end]
        else:
            found += map(RestLine, new[span.new : span.new_end])
    return found


def _with_edits(
    base: Sequence[RestLine], target: Sequence[RestLine], current: Sequence[str], newline: str
) -> Iterator[str]:
    """The target, with what a person changed between the base and the current text."""
    places = {_key(line): number for number, line in enumerate(target)}
    removed: set[_LineKey] = set()
    added: dict[int, list[str]] = {}
    last: list[str] = []
    for span in iter_spans([line.text for line in base], current):
        if span.is_same:
            continue
        removed.update(_key(line) for line in base[span.old : span.old_end])
        new = list(current[span.new : span.new_end])
        if _is_in_lost_list(base[: span.old_end], places):
            last += new
            continue
        keys = (_key(line) for line in reversed(base[: span.old]))
        added.setdefault(next((places[key] for key in keys if key in places), -1), []).extend(new)
    yield from added.get(-1, ())
    for number, line in enumerate(target):
        if _key(line) not in removed:
            yield line.text
        yield from added.get(number, ())
    yield from _list_at_end(last, newline)


def _key(line: RestLine) -> _LineKey:
    """What makes a line of the base and one of the target the same."""
    if line.number is not None:
        return "line", line.number
    return ("link", line.name) if line.name else ("added", line.text.strip())


def _is_in_lost_list(lines: Sequence[RestLine], places: Mapping[_LineKey, int]) -> bool:
    """Whether the last of some lines are in the list of cards that the split added and the target does not have."""
    headings = (line for line in reversed(lines) if line.text.startswith("#"))
    heading = next(headings, None)
    is_list = heading is not None and heading.number is None and heading.text.strip() == _CARDS_HEADING
    return is_list and ("added", _CARDS_HEADING) not in places


def _list_at_end(lines: Sequence[str], newline: str) -> Iterator[str]:
    """What a person wrote into the list of cards; the list stays for it."""
    texts = [line for line in lines if line.strip()]
    if not texts:
        return
    yield newline
    if not texts[0].startswith("#"):
        yield from (_CARDS_HEADING + newline, newline)
    yield from lines[lines.index(texts[0]) :]


def _text(lines: Iterable[str]) -> str:
    """Lines as one text: only the last may lack its line end."""
    found = [line for line in lines if line]
    newline = "\r\n" if any(line.endswith("\r\n") for line in found) else "\n"
    return "".join(line if line.endswith("\n") else line + newline for line in found[:-1]) + "".join(found[-1:])
