"""The parts of a file that is split into cards: which lines a card takes, and what the file is without them. Pure.

A split plans with it, and a join works out with it what the file was, and would be with fewer of its cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.memory.card import index_line, linked
from truekeep.memory.memory_index import HEADING, Pointers
from truekeep.memory.section_tree import SectionFile, SectionNode, split_lines, walk
from truekeep.text.line_diff import common_ends
from truekeep.text.markdown_links import anchors_of, iter_links, linked_path, moved_href, relative_path

_BLANK_END = re.compile(r"(?:\r?\n[ \t]*)*\Z")
_HREF = re.compile(r"(\]\([ \t]*<?|^ {0,3}\[[^\[\]]+\]:[ \t]*<?)[^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*")


class MovedAnchor(NamedTuple):
    """A heading with another file or anchor than before: its old anchor, and where it is now."""

    anchor: str
    path: str
    new_anchor: str


class SplitUnit(NamedTuple):
    """Lines that may become a card."""

    first: int
    last: int
    node: SectionNode
    kind: str  # section, introduction, item

    @property
    def is_listed(self) -> bool:
        """Whether its link goes under the heading for cards, not where its lines were."""
        return self.kind == "section" and not self.node.above


class UnitCard(NamedTuple):
    """The card of some lines, as the file links to it."""

    unit: SplitUnit
    name: str
    label: str


class RestLine(NamedTuple):
    """A line of the file without its cards: its number in the whole file, or None if the split added it."""

    text: str
    number: int | None = None
    name: str = ""  # the card that the line links to, if the split added it


def link_line(name: str, label: str, path: str) -> str:
    """The line of a file that links to a card. In the index, it is as the index has it."""
    line = index_line(name, label)
    folder = relative_path(CARDS, path)
    return line if folder == CARDS else line.replace(f"]({CARDS}/", f"]({folder}/")


def is_same_line(old: str, new: str) -> bool:
    """Whether two lines differ at most in where their links lead."""
    return old.rstrip("\r\n") == new.rstrip("\r\n") or ("]" in old and without_hrefs(old) == without_hrefs(new))


def without_hrefs(line: str) -> str:
    """A line without its line end and without the targets of its links."""
    bare = line.rstrip("\r\n")
    return _HREF.sub(r"\1", bare) if "]" in bare else bare


def find_units(file: SectionFile, bodies: Mapping[str, str]) -> dict[str, SplitUnit]:
    """The lines of a file that cards were made of, by their names. Cards whose lines are not there are left out."""
    units: dict[tuple[str, ...], list[SplitUnit]] = {}
    for unit in _possible_units(file):
        key = tuple(without_hrefs(line) for line in file.lines[unit.first : unit.last])
        units.setdefault(key, []).append(unit)
    found: dict[str, SplitUnit] = {}
    for name, body in sorted(bodies.items(), key=lambda item: (len(item[0]), item[0])):
        free = units.get(tuple(map(without_hrefs, split_lines(body))), [])
        if free:
            found[name] = free.pop(0)
    return found


def _possible_units(file: SectionFile) -> Iterator[SplitUnit]:
    for node in walk(file.root):
        if node.level:
            yield SplitUnit(node.first, node.last, node, "section")
            if node.children:
                yield SplitUnit(node.first + 1, node.own_last, node, "introduction")
            else:
                for first, last in file.items(node.first + 1, node.last):
                    yield SplitUnit(first, last, node, "item")


# --- Links -----------------------------------------------------------------------------------------------------------


class PartLinks:
    """Rewrites the links of a file for the files that its lines go to."""

    def __init__(self, path: str, file: SectionFile, homes: Mapping[SplitUnit, str]) -> None:
        self.path, self.file = path, file
        self._targets = self._new_anchors(homes)
        self._links = list(iter_links(file.text))

    def _new_anchors(self, cards: Mapping[SplitUnit, str]) -> dict[str, tuple[str, str]]:
        """The file and anchor of every heading after the split, by its anchor before."""
        headings = self.file.headings
        homes = [
            next((f"{CARDS}/{name}" for unit, name in cards.items() if unit.first <= line < unit.last), self.path)
            for line, _, _ in headings
        ]
        after: dict[int, str] = {}
        for home in set(homes):
            mine = [number for number, place in enumerate(homes) if place == home]
            after.update(zip(mine, anchors_of(headings[number][2] for number in mine), strict=True))
        before = anchors_of(title for _, _, title in headings)
        return {anchor: (homes[number], after[number]) for number, anchor in enumerate(before)}

    def part(self, first: int, last: int, to: str) -> str:
        """Some lines of the file, with their links as another file (or this one) writes them."""
        start, end = self.file.offsets[first], self.file.offsets[last]
        pieces, at = [], start
        for link in self._links:
            if start <= link.start and link.end <= end:
                pieces += [self.file.text[at : link.start], self._href(link.href, to)]
                at = link.end
        return "".join((*pieces, self.file.text[at:end]))

    def _href(self, href: str, to: str) -> str:
        bare, mark, anchor = href.partition("#")
        is_own = not bare or linked_path(href, self.path) == self.path
        if mark and is_own:
            home, new_anchor = self._targets.get(anchor.lower(), ("", ""))
            if home == to == self.path and new_anchor == anchor.lower():
                return href
            if home == to:
                return f"#{new_anchor}" if not bare or to != self.path else f"{bare}#{new_anchor}"
            if home:
                target = linked(home.rpartition("/")[2])
                folder = home.rpartition("/")[0]
                return f"{relative_path(f'{folder}/{target}' if folder else target, to)}#{new_anchor}"
            return href
        return moved_href(href, self.path, to) if to != self.path else href

    def moved(self) -> Iterator[MovedAnchor]:
        for anchor, (home, new) in self._targets.items():
            if home != self.path or new != anchor:
                yield MovedAnchor(anchor, home, new)


# --- The rest of the file --------------------------------------------------------------------------------------------


def rest_lines(path: str, file: SectionFile, cards: Sequence[UnitCard], links: PartLinks) -> list[RestLine]:
    """The file without the lines of its cards, and with a link for each."""
    ends: dict[int, list[UnitCard]] = {}  # where the links of a section's cards go
    for card in cards:
        if not card.unit.is_listed:
            ends.setdefault(_link_place(file, card.unit), []).append(card)
    gone = {number for card in cards for number in range(card.unit.first, card.unit.last)}
    lines: list[RestLine] = []
    for number in range(len(file.lines) + 1):
        if number in ends:
            lines += _link_block(file, number, ends[number], path, lines)
        if number < len(file.lines) and number not in gone:
            lines.append(RestLine(links.part(number, number + 1, path), number))
    listed = [card for card in cards if card.unit.is_listed]
    return _with_listed(lines, listed, path) if listed else lines


def _link_place(file: SectionFile, unit: SplitUnit) -> int:
    """The line before which the link to a card goes: for an item its own, else behind the introduction above it."""
    if unit.kind == "item":
        return unit.first
    if unit.kind == "introduction":
        return unit.last
    above = [node for node in walk(file.root) if node.first < unit.first < node.last and node.level]
    return above[-1].own_last


def _link_block(
    file: SectionFile, at: int, cards: Sequence[UnitCard], path: str, before: Sequence[RestLine]
) -> list[RestLine]:
    """The links to some cards, apart from the lines around them; the link to an item stands in its place."""
    lines = [RestLine(link_line(card.name, card.label, path) + file.newline, name=card.name) for card in cards]
    if any(card.unit.kind == "item" for card in cards):
        return lines
    above = before[-1].text if before else ""
    lead = [] if not above.strip() else [file.newline] if above.endswith("\n") else [file.newline * 2]
    return [*map(RestLine, lead), *lines, *([RestLine(file.newline)] if at < len(file.lines) else [])]


def _with_listed(lines: list[RestLine], cards: Sequence[UnitCard], path: str) -> list[RestLine]:
    """The file with links under its heading for cards, which is added if it has none."""
    rest = "".join(line.text for line in lines)
    has_heading = any(level == 2 and title == HEADING for _, level, title in SectionFile(rest).headings)
    bare = _BLANK_END.sub("", rest)
    if not has_heading and bare:  # it goes one empty line below the last text
        rest = bare + ("\r\n" if "\r\n" in rest else "\n")
    pointers = Pointers(rest.encode("utf-8", "surrogateescape") or b"\n")
    for card in cards:
        pointers.point_at(card.name, card.label, 0)
    text = pointers.render().decode("utf-8", "surrogateescape")
    text = text if bare else text.lstrip("\r\n")
    names = {}
    for card in cards:
        line = link_line(card.name, card.label, path)
        text = text.replace(index_line(card.name, card.label), line, 1)
        names[line] = card.name
    return _numbered(split_lines(text), lines, names)


def _numbered(new: list[str], old: Sequence[RestLine], names: Mapping[str, str]) -> list[RestLine]:
    """Lines with those numbers that they had before some were added in one place."""
    head, tail = common_ends([line.text for line in old], new)
    added = [RestLine(text, name=names.get(text.rstrip("\r\n"), "")) for text in new[head : len(new) - tail]]
    return [*old[:head], *added, *old[len(old) - tail :]]
