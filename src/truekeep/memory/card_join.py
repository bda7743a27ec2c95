"""Plans how cards become sections of a file again: the opposite of a split. Pure.

A card goes back to the place that a split took it from, as `memory/split_reversal` knows it. Where that is not known, a
card that was split from this file goes to where its link is, and any other becomes a section of its own, before the
list of cards. Its frontmatter is not part of the file; the ledger keeps it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from truekeep.core.model import CARDS
from truekeep.memory.card import parse_card, unlinked
from truekeep.memory.card_split import SOURCE_KEY, LinesLost, UnclosedBlock
from truekeep.memory.memory_index import HEADING, linked_cards
from truekeep.memory.section_tree import SectionFile, card_body, split_lines
from truekeep.memory.split_parts import without_hrefs
from truekeep.memory.split_reversal import SplitRecord, SplitReversal
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


def plan_join(path: str, text: str, cards: Mapping[str, str], records: Sequence[SplitRecord] = ()) -> JoinPlan:
    """The file with some cards put back, by name and text. `records`: the splits that made them, newest first."""
    file = SectionFile(text)
    if file.open_at is not None:
        raise UnclosedBlock(file.open_at + 1)
    targets = {f"{CARDS}/{name}": _anchor(card) for name, card in cards.items()}
    joined = {name: _joined(name, card, path, targets, file.newline) for name, card in cards.items()}
    left = dict(joined)
    after = text
    for record in records:
        reversal = SplitReversal(path, record)
        known = {name: card for name, card in left.items() if name in reversal.units}
        if known:
            linked = _link_lines(SectionFile(after), path).keys()
            bodies = {name: card_body(cards[name]) for name in known}
            relinked = {name: card.body for name, card in known.items()}
            after = reversal.put_back(after, bodies, linked=linked, relinked=relinked)
            left = {name: card for name, card in left.items() if name not in known}
    after = _with_sections(path, after, cards, [joined[name] for name in left], joined.keys() - left.keys(), targets)
    plan = JoinPlan(path, after, tuple(cards))
    _check_all_there(file, list(joined.values()), plan)
    return plan


def _with_sections(
    path: str,
    text: str,
    cards: Mapping[str, str],
    joined: Sequence[_JoinedCard],
    done: Collection[str],
    targets: Mapping[str, str],
) -> str:
    """The file with cards put in whose place before is not known, and without the links to those and the others."""
    file = SectionFile(text)
    links = _link_lines(file, path)
    listed = _listed_lines(file)
    gone = {links[name] for name in (*done, *(card.name for card in joined)) if name in links}
    if not joined and not gone:
        return text
    placed: dict[int, list[_JoinedCard]] = {}
    for card in joined:
        if card.is_from_here and card.name in links and links[card.name] not in listed:
            placed.setdefault(_place_of(file, links, card), []).append(card)
    in_place = [card for cards_there in placed.values() for card in cards_there]
    loose = [card for card in joined if card not in in_place]
    emptied = _emptied(file, listed, gone)
    at = min(listed, default=len(file.lines))
    pieces: list[str] = []
    for number in range(len(file.lines) + 1):
        pieces += [_ended(card.body, file.newline) for card in placed.get(number, ())]
        if number == at:
            for card in loose:
                _append(pieces, _sectioned(card, cards[card.name], file.newline), file.newline)
        if number == len(file.lines) or number in emptied or number in gone:
            continue
        if number == at and loose:
            _separate(pieces, file.newline)
        pieces.append(_relinked(file.lines[number], path, path, targets))
    return "".join(pieces)


def _place_of(file: SectionFile, links: Mapping[str, int], card: _JoinedCard) -> int:
    """The line before which a card goes: that of its link; a section goes below the links to its siblings."""
    number = links[card.name]
    if not card.body.lstrip().startswith("#"):
        return number
    of_cards = set(links.values())
    following = (line for line in range(number, len(file.lines)) if line not in of_cards and file.lines[line].strip())
    return next(following, len(file.lines))


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
    if first.lstrip().startswith("#"):
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


def _check_all_there(file: SectionFile, joined: Sequence[_JoinedCard], plan: JoinPlan) -> None:
    """Raise LinesLost unless the file has every line that it had, and every line of the cards, once.

    Links to cards that it took in, or that it links to elsewhere, may go, and the heading of a list of them.
    """
    cards = [line for card in joined for line in split_lines(card.body)]
    has = Counter(line.strip() for line in split_lines(plan.text))
    lost = Counter(line.strip() for line in (*file.lines, *cards)) - has
    shapes = {without_hrefs(line) for line in has}
    links = {file.lines[number].strip(): name for name, number in _link_lines(file, plan.path).items()}
    still_linked = linked_cards(plan.text.encode("utf-8", "surrogateescape"))
    for line in lost:
        is_link = line in links and (links[line] in plan.names or links[line] in still_linked)
        if line and not is_link and line != f"## {HEADING}" and without_hrefs(line) not in shapes:
            raise LinesLost(f"a line would be lost: {line[:80]}")
