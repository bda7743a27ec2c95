"""Plans how cards become sections of a file again: the opposite of a split. Pure.

A card that was split from this file goes back to where its link is; any other becomes a section of its own, before the
list of cards. Its frontmatter is not part of the file; the ledger keeps it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.memory.card import parse_card, unlinked
from truekeep.memory.card_split import SOURCE_KEY, LinesLost, UnclosedBlock, is_same_line
from truekeep.memory.memory_index import HEADING
from truekeep.memory.section_tree import SectionFile, front_lines, split_lines
from truekeep.text.markdown_links import anchors_of, iter_links, linked_path, moved_href

_LINK_LINE = re.compile(r"[ ]{0,3}[-*+][ \t]+\[(?:[^\[\]\\]|\\.)*\]\(<?([^()<>\s]+)>?\)[ \t]*\r?\n?\Z")


class JoinPlan(NamedTuple):
    """The file with the cards in it."""

    path: str
    text: str
    names: tuple[str, ...]


class _JoinedCard(NamedTuple):
    name: str
    body: str  # with the links of the file that it goes to
    is_from_here: bool


def plan_join(path: str, text: str, cards: Mapping[str, str]) -> JoinPlan:
    """The file with some cards put back, by name and text."""
    file = SectionFile(text)
    if file.open_at is not None:
        raise UnclosedBlock(file.open_at + 1)
    targets = {f"{CARDS}/{name}": _anchor(card) for name, card in cards.items()}
    joined = [_joined(name, card, path, targets, file.newline) for name, card in cards.items()]
    links = _link_lines(file, path)
    listed = _listed_lines(file)
    placed = {links[card.name]: card for card in joined if card.is_from_here and card.name in links}
    placed = {number: card for number, card in placed.items() if number not in listed}
    gone = {links[card.name] for card in joined if card.name in links}
    loose = [card for card in joined if card not in placed.values()]
    emptied = _emptied(file, listed, gone)
    at = min(listed, default=len(file.lines))
    pieces: list[str] = []
    for number in range(len(file.lines) + 1):
        if number == at:
            for card in loose:
                _append(pieces, _sectioned(card, cards[card.name], file.newline), file.newline)
        if number == len(file.lines) or number in emptied:
            continue
        if number in placed:
            pieces.append(_ended(placed[number].body, file.newline))
        elif number not in gone:
            if number == at and loose:
                _separate(pieces, file.newline)
            pieces.append(_relinked(file.lines[number], path, path, targets))
    plan = JoinPlan(path, "".join(pieces), tuple(cards))
    _check_all_there(file, joined, gone | emptied, plan)
    return plan


def card_body(text: str) -> str:
    """The text of a card without its frontmatter and the empty line below it, exact in every byte."""
    lines = split_lines(text)
    rest = lines[front_lines(lines) :]
    return "".join(rest[1:] if rest and not rest[0].strip() else rest)


def _joined(name: str, text: str, path: str, targets: Mapping[str, str], newline: str) -> _JoinedCard:
    front = parse_card(name, text.replace("\r\n", "\n")).front
    body = _relinked(card_body(text), f"{CARDS}/{name}", path, targets)
    if newline == "\r\n":
        body = body.replace("\r\n", "\n").replace("\n", "\r\n")
    return _JoinedCard(name, body, front.text(SOURCE_KEY) == path)


def _anchor(text: str) -> str:
    """The anchor of a card's first heading; "" if it has none."""
    headings = SectionFile(card_body(text)).headings
    return anchors_of([headings[0][2]])[0] if headings else ""


def _relinked(text: str, old_path: str, new_path: str, targets: Mapping[str, str]) -> str:
    """A text with links as the file has them: to the cards that it takes in, and to itself, by anchors."""
    pieces, at = [], 0
    for link in iter_links(text):
        target = unlinked(linked_path(link.href, old_path))
        anchor = link.href.partition("#")[2]
        href = link.href
        if target in targets:
            href = f"#{anchor or targets[target]}" if anchor or targets[target] else href
        elif target == new_path and old_path != new_path and anchor:
            href = f"#{anchor}"
        elif old_path != new_path:
            href = moved_href(href, old_path, new_path)
        pieces += [text[at : link.start], href]
        at = link.end
    return "".join((*pieces, text[at:]))


def _link_lines(file: SectionFile, path: str) -> dict[str, int]:
    """The lines that only link to a card, by its name."""
    found: dict[str, int] = {}
    for number, line in enumerate(file.lines):
        match = _LINK_LINE.match(line) if number not in file.code else None
        if match is not None:
            folder, _, name = unlinked(linked_path(match[1], path)).rpartition("/")
            if folder == CARDS:
                found.setdefault(name, number)
    return found


def _listed_lines(file: SectionFile) -> range:
    """The lines of the section for cards, its heading included; empty if there is none."""
    for at, (number, level, title) in enumerate(file.headings):
        if level == 2 and title == HEADING:
            later = (line for line, other, _ in file.headings[at + 1 :] if other <= 2)
            return range(number, next(later, len(file.lines)))
    return range(0)


def _emptied(file: SectionFile, listed: range, gone: set[int]) -> set[int]:
    """The section for cards, if nothing is left in it."""
    rest = [number for number in listed[1:] if file.lines[number].strip() and number not in gone]
    return set(listed) if listed and not rest and gone.intersection(listed) else set()


def _sectioned(card: _JoinedCard, text: str, newline: str) -> str:
    """A card as a section; one without a heading gets its topic."""
    first = next((line for line in split_lines(card.body) if line.strip()), "")
    if first.startswith("#"):
        return card.body
    topic = parse_card(card.name, text.replace("\r\n", "\n")).topic
    return f"## {topic}{newline}{newline}{card.body}"


def _append(pieces: list[str], body: str, newline: str) -> None:
    _separate(pieces, newline)
    pieces.append(_ended(body, newline))


def _separate(pieces: list[str], newline: str) -> None:
    """An empty line between what is there and what follows."""
    above = "".join(pieces[-2:])
    if above and not above.endswith("\n"):
        pieces.append(newline)
    if above.strip() and not re.search(r"\n[ \t]*\r?\n\Z", above if above.endswith("\n") else f"{above}\n"):
        pieces.append(newline)


def _ended(body: str, newline: str) -> str:
    return body if not body or body.endswith("\n") else body + newline


def _check_all_there(file: SectionFile, joined: Sequence[_JoinedCard], gone: set[int], plan: JoinPlan) -> None:
    """Raise LinesLost unless the file has every line that it had, and every line of the cards, once."""
    kept = [line for number, line in enumerate(file.lines) if number not in gone]
    wanted = Counter(_bare(line) for line in (*kept, *(line for card in joined for line in split_lines(card.body))))
    has = Counter(_bare(line) for line in split_lines(plan.text))
    lost = wanted - has
    del lost[""]
    if lost:
        missing = next(iter(lost))
        if not any(is_same_line(missing, line) for line in has):
            raise LinesLost(f"a line would be lost: {missing[:80]}")


def _bare(line: str) -> str:
    return line.strip()
