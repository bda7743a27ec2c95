"""Plans how a long Markdown file becomes cards: which sections leave it, what each card says, and what stays. Pure.

A section of moderate size is one card; a longer one becomes a card for each subsection, and its heading stays above
their links. What an agent needs in every session stays: who the user is, standing rules, links, managed blocks, short
sections. Every line of the file is on exactly one card or stays; `check_nothing_lost` proves it for a plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from truekeep.core.model import CARDS, INDEX
from truekeep.memory.card import TOPIC_CHARS, card_label, parse_day, project_slug
from truekeep.memory.card_summary import clipped, item_topic, summarize
from truekeep.memory.frontmatter import Field, Frontmatter, quote, split_frontmatter, text_field
from truekeep.memory.memory_index import HEADING, pointer_lines
from truekeep.memory.section_tree import SectionFile, SectionNode, is_rule, split_lines, walk
from truekeep.memory.split_parts import (
    MovedAnchor,
    PartLinks,
    SplitUnit,
    UnitCard,
    is_same_line,
    link_line,
    rest_lines,
)
from truekeep.text.headings import essential_kind, knowledge_category, plain_heading, states_rule
from truekeep.text.markdown_links import link_labels

ONE_CARD_BYTES = 4_096  # a section up to this size is one card, with all its subsections
LONG_CARD_BYTES = 8_192  # a longer section without subsections is split into its large list items, if it has them
LARGE_ITEM_BYTES = 400
MIN_ITEM_SHARE = 0.6  # of a section that its large items must make up, to be cards of their own
SHORT_BYTES = 240  # a section that is hardly longer than its link stays
LONG_INTRODUCTION_BYTES = 1_000  # of a section whose subsections become cards
SMALL_RULE_BYTES = 1_600  # a section with a standing rule stays if it is no longer
POINTER_SHARE = 2 / 3  # of a section's lines that link to files: it is an index already
MAX_TOPIC = 80
SOURCE_KEY = "from"
"""The key in a card's frontmatter for the file that it was split from."""

_FILE_LINK = re.compile(r"\]\([^()\s]+\.md\b|\[\[[^\[\]]+\]\]|`[^`\s]+\.md(?:#[^`\s]*)?`")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # scripts that put no blanks between words
_DAY = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b")

Stops = Mapping[int, str]
"""Lines, from 0, that may not be moved to a card, with the reason."""


class SplitOptions(NamedTuple):
    """What a person asked for."""

    only: tuple[str, ...] = ()  # headings; empty: what the size demands
    keep: tuple[str, ...] = ()
    lines: int = 0  # the size that the file should have; 0: everything that can be moved is
    size: int = 0  # the same, in bytes


class SplitCard(NamedTuple):
    """A card that a part of the file becomes."""

    name: str
    topic: str
    summary: str
    category: str
    tags: tuple[str, ...]
    created: date
    updated: date
    first: int  # its lines in the file, from 0
    last: int  # behind them
    headings: tuple[str, ...]  # those above it and its own
    body: str
    text: str  # the whole file
    is_listed: bool  # its link goes under the heading for cards, not where its lines were

    @property
    def first_line(self) -> int:
        return self.first + 1

    @property
    def path(self) -> str:
        return f"{CARDS}/{self.name}"

    @property
    def label(self) -> str:
        return card_label(self.topic, self.summary)


class StayingSection(NamedTuple):
    """A section that stays in the file, and why."""

    title: str
    first: int
    last: int
    why: str
    is_held: bool = False  # it would be a card but for something that a person has to look at

    @property
    def first_line(self) -> int:
        return self.first + 1


class SplitPlan(NamedTuple):
    """The cards, the rest of the file, and what stays."""

    path: str
    cards: tuple[SplitCard, ...]
    rest: str
    stays: tuple[StayingSection, ...]
    anchors: tuple[MovedAnchor, ...] = ()


def rules_on_cards(plan: SplitPlan, text: str) -> list[tuple[SplitCard, int]]:
    """Lines that read like standing rules and would leave the file, each with its card and its number from 1."""
    lines = split_lines(text)
    found = ((card, number) for card in plan.cards for number in range(card.first, card.last))
    return [(card, number + 1) for card, number in found if states_rule(lines[number])]


class LinesLost(Exception):
    """A plan that would lose, change or repeat a line. Nothing of it may be written."""


class UnclosedBlock(Exception):
    """A fence or comment that is never closed: what is written below it would be part of it."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class UnknownHeading(Exception):
    """A heading that was asked for and is not in the file."""

    def __init__(self, wanted: str, headings: Sequence[str]) -> None:
        super().__init__(wanted)
        self.wanted, self.headings = wanted, tuple(headings)


# --- What becomes a card ---------------------------------------------------------------------------------------------


class _Chooser:
    """Decides for every section whether it becomes cards, and which."""

    def __init__(self, file: SectionFile, options: SplitOptions, stops: Stops, *, is_index: bool) -> None:
        self.file, self.options, self.stops, self.is_index = file, options, stops, is_index
        self.stays: list[StayingSection] = []
        self.titles = [plain_heading(title) for _, _, title in file.headings]
        self.only = {name for wanted in options.only for name in self._named(wanted)}
        self.keep = {name for wanted in options.keep for name in self._named(wanted)}

    def _named(self, wanted: str) -> set[str]:
        """The headings that a person means by some words of one."""
        sought = plain_heading(wanted.lstrip("# ")).casefold()
        exact = {title for title in self.titles if title.casefold() == sought}
        found = exact or {title for title in self.titles if sought and sought in title.casefold()}
        if not found:
            raise UnknownHeading(wanted, list(dict.fromkeys(self.titles)))
        return found

    def choose(self) -> list[SplitUnit]:
        if self.only:
            return sorted(self._asked_for(self.file.root))
        groups = [(node, self._units(node)) for node in self.file.root.children]
        chosen = self._fitting([(node, units) for node, units in groups if units])
        return sorted(unit for _, units in chosen for unit in units)

    def _asked_for(self, node: SectionNode) -> Iterator[SplitUnit]:
        """The sections that were asked for by name."""
        for child in node.children:
            if plain_heading(child.title) in self.only:
                yield from self._units(child, is_asked=True)
            else:
                yield from self._asked_for(child)

    def _fitting(self, groups: list[tuple[SectionNode, list[SplitUnit]]]) -> list[tuple[SectionNode, list[SplitUnit]]]:
        """The largest sections, as many as the size demands."""
        lines, size = self.options.lines, self.options.size
        if not lines:
            return groups
        has_lines, has_size = len(self.file.lines), self.file.size(0, len(self.file.lines))
        taken = []
        for node, units in sorted(groups, key=lambda group: -sum(self._saved(unit)[1] for unit in group[1])):
            if has_lines <= lines and has_size <= size:
                self._stay(node, "the file is short enough with it")
                continue
            taken.append((node, units))
            has_lines -= sum(self._saved(unit)[0] for unit in units)
            has_size -= sum(self._saved(unit)[1] for unit in units)
        return taken

    def _saved(self, unit: SplitUnit) -> tuple[int, int]:
        """The lines and bytes that the file loses with a unit, less its link."""
        return unit.last - unit.first - 1, self.file.size(unit.first, unit.last) - LINK_BYTES

    def _units(self, node: SectionNode, *, is_asked: bool = False) -> list[SplitUnit]:
        file = self.file
        whole = range(node.first, node.last)
        if why := self._why_stays(node, is_asked=is_asked):
            self._stay(node, why)
            return []
        stopped = [self.stops[number] for number in whole if number in self.stops]
        is_blocked = bool(stopped or file.managed.intersection(whole) or self._has_kept(node))
        is_long = file.size(node.first, node.last) > ONE_CARD_BYTES
        if not node.children and not is_blocked:
            return self._leaf(node)
        if not is_blocked and (not is_long or all(self._is_short(child) for child in node.children)):
            return [SplitUnit(node.first, node.last, node, "section")]
        if not node.children:
            self._stay(node, stopped[0] if stopped else "between markers of a program", is_held=bool(stopped))
            return []
        units = [unit for child in node.children for unit in self._units(child, is_asked=is_asked)]
        introduction = range(node.first + 1, node.own_last)
        own = [self.stops[number] for number in introduction if number in self.stops]
        if own:
            self.stays.append(StayingSection(plain_heading(node.title), node.first, node.own_last, own[0], True))
        elif (
            file.size(node.first + 1, node.own_last) > LONG_INTRODUCTION_BYTES
            and not file.managed.intersection(introduction)
            and not _has_index_line(file.part(node.first + 1, node.own_last))
        ):
            units.append(SplitUnit(node.first + 1, node.own_last, node, "introduction"))
        return units

    def _leaf(self, node: SectionNode) -> list[SplitUnit]:
        file = self.file
        size = file.size(node.first, node.last)
        if size > LONG_CARD_BYTES:
            items = [item for item in file.items(node.first + 1, node.last) if file.size(*item) >= LARGE_ITEM_BYTES]
            if sum(file.size(*item) for item in items) >= MIN_ITEM_SHARE * size:
                return [SplitUnit(first, last, node, "item") for first, last in items]
        return [SplitUnit(node.first, node.last, node, "section")]

    def _why_stays(self, node: SectionNode, *, is_asked: bool) -> str:
        """Why a section stays whole; "" if it may move."""
        title = plain_heading(node.title)
        if title in self.keep:
            return "kept, as asked"
        if self._is_index_section(node):
            return "links already"
        if is_asked:
            return ""
        if self.is_index and len(node.above) == 0 and (kind := essential_kind(node.title)):
            return "who it is about" if kind == "people" else "standing rules"
        if self._is_short(node):
            return "short"
        if self.is_index and not node.children and self._is_rule(node):
            return "standing rules"
        return ""

    def _is_rule(self, node: SectionNode) -> bool:
        """Whether a small section is about a standing rule; in a longer one, a note says where it is."""
        if self.file.size(node.first, node.last) > SMALL_RULE_BYTES:
            return False
        lines = (self.file.lines[number] for number in range(node.first, node.last) if number not in self.file.code)
        return essential_kind(node.title) == "rules" or any(map(states_rule, lines))

    def _is_short(self, node: SectionNode) -> bool:
        return self.file.size(node.first + 1, node.last) <= SHORT_BYTES

    def _has_kept(self, node: SectionNode) -> bool:
        return any(plain_heading(inner.title) in self.keep for inner in walk(node))

    def _is_index_section(self, node: SectionNode) -> bool:
        """Whether a section is a list of links, or has links to cards, which are lines of the index."""
        if node.title == HEADING:
            return True
        own = self.file.part(node.first + 1, node.last if not node.children else node.own_last)
        lines = [line for line in own.split("\n") if line.strip() and not is_rule(line)]
        pointing = sum(bool(_FILE_LINK.search(line)) for line in lines)
        if not node.children and lines and pointing >= POINTER_SHARE * len(lines):
            return True
        return self.is_index and not node.children and _has_index_line(own)

    def _stay(self, node: SectionNode, why: str, *, is_held: bool = False) -> None:
        title = plain_heading(node.title)
        self.stays.append(StayingSection(title, node.first, node.last, why, is_held))


def _has_index_line(text: str) -> bool:
    """Whether a line is nothing but a link to a card."""
    lines = pointer_lines(text.encode("utf-8", "surrogateescape"), lambda _: False)
    return any(is_pure for _, _, _, is_pure in lines)


LINK_BYTES = 110  # of a line that links to a card, on average


# --- The plan --------------------------------------------------------------------------------------------------------


def plan_split(
    path: str,
    text: str,
    options: SplitOptions,
    *,
    days: Sequence[date | None],
    file_day: date,
    name_for: Callable[[str, str, Collection[str]], str],
    stops: Stops,
) -> SplitPlan:
    """How a file becomes cards.

    `days`: when each line was written, where that is known. `name_for` gives a free name of a card for a topic and a
    category, apart from those in a collection. `stops`: lines that may not be moved.
    """
    file = SectionFile(text)
    if file.open_at is not None:
        raise UnclosedBlock(file.open_at + 1)
    stops = {**stops, **_shared_labels(file)}
    chooser = _Chooser(file, options, stops, is_index=path == INDEX)
    units = chooser.choose()
    topics = _topics(file, units)
    names: list[str] = []
    for unit, topic in zip(units, topics, strict=True):
        names.append(name_for(topic, _category(unit, topic), names))
    links = PartLinks(path, file, dict(zip(units, names, strict=True)))
    cards = tuple(
        _card(
            file,
            unit,
            topic,
            name,
            links.part(unit.first, unit.last, f"{CARDS}/{name}"),
            _written(file, unit, days, file_day),
            path,
        )
        for unit, topic, name in zip(units, topics, names, strict=True)
    )
    placed = [UnitCard(unit, card.name, card.label) for unit, card in zip(units, cards, strict=True)]
    rest = "".join(line.text for line in rest_lines(path, file, placed, links))
    stays = tuple(sorted(chooser.stays, key=lambda section: section.first))
    return SplitPlan(path, cards, rest, stays, tuple(links.moved()))


def _shared_labels(file: SectionFile) -> Stops:
    """Lines of sections that need each other: one defines a link or a footnote, the other uses it."""
    definers: dict[str, set[int]] = {}
    parts = [(node, link_labels(file.part(node.first, node.own_last))) for node in walk(file.root)]
    for number, (_, (defined, _)) in enumerate(parts):
        for label in defined:
            definers.setdefault(label, set()).add(number)
    if not definers:
        return {}
    found: dict[int, str] = {}
    for number, (_, (defined, used)) in enumerate(parts):
        for label in used - defined:
            for other in {number, *definers[label]} if label in definers else ():
                first = parts[other][0].first
                found.setdefault(first, f"uses or defines [{label}] for another section")
    return found


def _topics(file: SectionFile, units: Sequence[SplitUnit]) -> list[str]:
    """A topic for each unit; headings that say little, or that the file has twice, get the one above in front."""
    bare = [plain_heading(title) for _, _, title in file.headings]
    counts = Counter(title.casefold() for title in bare)
    topics = []
    for unit in units:
        own = item_topic(file.lines[unit.first]) if unit.kind == "item" else plain_heading(unit.node.title)
        above = plain_heading(unit.node.above[-1]) if unit.node.above and unit.kind != "item" else ""
        is_vague = len(own.split()) < 2 and len(own) < (4 if _UNSPACED.search(own) else 24)
        is_twice = unit.kind != "item" and counts[own.casefold()] > 1
        topic = f"{above}: {own}" if above and (is_vague or is_twice) else own
        topics.append(clipped(topic or above or "Notes", MAX_TOPIC))
    seen: Counter[str] = Counter()
    for number, topic in enumerate(topics):
        seen[topic.casefold()] += 1
        if seen[topic.casefold()] > 1:
            topics[number] = f"{topic} ({seen[topic.casefold()]})"
    return topics


def _card(
    file: SectionFile, unit: SplitUnit, topic: str, name: str, body: str, written: tuple[date, date], path: str
) -> SplitCard:
    created, updated = written
    summary = summarize(body, TOPIC_CHARS - len(topic) - 3, topic)
    tags = tuple(dict.fromkeys(slug for title in unit.node.above if (slug := project_slug(plain_heading(title)))))
    category = _category(unit, topic)
    fields = [text_field("topic", topic)]
    fields += [text_field("description", summary)] if summary else []
    value = f"[{', '.join(map(quote, tags))}]"
    fields += [text_field("category", category), Field("tags", value, f"tags: {value}\n")]
    fields += [Field(key, f"{day}", f"{key}: {day}\n") for key, day in (("created", created), ("updated", updated))]
    fields.append(text_field(SOURCE_KEY, path))
    head = (Frontmatter(tuple(fields)).render() + "\n").replace("\n", file.newline)
    headings = unit.node.titles
    return SplitCard(
        name, topic, summary, category, tags, created, updated, unit.first, unit.last, headings, body, head + body,
        unit.is_listed,
    )  # fmt: skip


def _category(unit: SplitUnit, topic: str) -> str:
    return knowledge_category(topic, *reversed(unit.node.titles))


def _written(file: SectionFile, unit: SplitUnit, days: Sequence[date | None], file_day: date) -> tuple[date, date]:
    """When the lines of a card were first written and last changed."""
    numbers = [number for number in range(unit.first, unit.last) if file.lines[number].strip()]
    known = sorted(day for number in numbers if (day := days[number]) is not None)
    if known:
        return known[0], known[-1]
    head = [day for day in _days_in(unit.node.title) if day <= file_day]
    said = head or [day for day in _days_in(file.part(unit.first, unit.last)) if day <= file_day]
    day = max(said, default=file_day)
    return day, day


def _days_in(text: str) -> Iterator[date]:
    for match in _DAY.finditer(text):
        if (day := parse_day(match[0])) is not None:
            yield day


# --- The proof -------------------------------------------------------------------------------------------------------


def check_nothing_lost(text: str, plan: SplitPlan) -> None:
    """Raise LinesLost unless every line is on exactly one card or stays, whole and in order.

    Reads the texts that would be written. A line may differ from the old one only in where its links lead.
    """
    old = split_lines(text)
    taken: Counter[int] = Counter()
    for card in plan.cards:
        front, body = split_frontmatter(card.text.replace("\r\n", "\n"))
        if front is None or body.removeprefix("\n") != card.body.replace("\r\n", "\n"):
            raise LinesLost(f"{card.path} would not have its lines")
        lines = split_lines(card.body)
        if len(lines) != card.last - card.first:
            raise LinesLost(f"{card.path} would have {len(lines)} lines instead of {card.last - card.first}")
        for number, line in enumerate(lines, card.first):
            _check_line(old[number], line, card.path)
            taken[number] += 1
    staying = [number for number in range(len(old)) if number not in taken]
    added = Counter(link_line(card.name, card.label, plan.path) for card in plan.cards)
    added[f"## {HEADING}"] += 1
    at = 0
    for line in plan.rest.split("\n"):
        bare = line.removesuffix("\r")
        if at < len(staying) and is_same_line(old[staying[at]], bare):
            at += 1
        elif added.get(bare):
            added[bare] -= 1
        elif bare.strip():
            raise LinesLost(f"{plan.path} would have a line that it did not have: {bare[:80]}")
    while at < len(staying) and not old[staying[at]].strip():
        at += 1
    if at < len(staying):
        raise LinesLost(f"line {staying[at] + 1} would be lost: {old[staying[at]].strip()[:80]}")
    if any(count > 1 for count in taken.values()):
        raise LinesLost("a line would be on two cards")


def _check_line(old: str, new: str, path: str) -> None:
    if not is_same_line(old, new):
        raise LinesLost(f"{path} would have a changed line: {old.strip()[:80]}")
