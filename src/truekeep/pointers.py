"""MEMORY.md as the index of cards: one line for each, found again by its link wherever a person moved it.

Works on bytes, because the rest of the file is a person's and must not change in any way. New lines go to the end of
the list under the heading `## Cards`. Nothing here reads or writes a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from truekeep.card import index_line
from truekeep.markdown import TooComplex, outline
from truekeep.model import INDEX, Splice
from truekeep.tables import iter_prose

HEADING = "Cards"
_HEADING_LINE = re.compile(rb"^## Cards[ \t]*\r?$", re.MULTILINE)
_NEXT_HEADING = re.compile(rb"^#{1,2}[ \t]", re.MULTILINE)
# A link to a card: a Markdown link's destination or a wiki link. Words in a label or in prose are no link, so that no
# topic can pass for another card's line.
_LINK = re.compile(
    rb"(?<!\\)\]\([ ]*<?(?:\./)?(?:memory/)?cards/([A-Za-z0-9._-]+?\.md)(?=[#>\s)])"
    rb"|\[\[(?:memory/cards/|cards/)?([A-Za-z0-9._-]+?)(?:\.md)?(?:#[^\]|\n]*)?(?=\]\]|\|)"
)
# A line that is one link and nothing else, as a list item or alone.
_PURE = re.compile(
    rb"[ \t]*(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?[*_]{0,3}"
    rb"(?:\[(?:[^\[\]\\\r]|\\.)*\]\([ ]*<?[^\s<>()]+>?[ ]*\)|\[\[[^\[\]\r]+\]\])"
    rb"[*_]{0,3}[.;]?[ \t]*\r?\Z"
)
_BEGINS = re.compile(rb"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|<!--|\||---|\*\*\*|___)|[ \t\r]*\Z")


class Pointers:
    """The index while lines are added to it and taken out."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data or b""
        self._newline = b"\r\n" if b"\r\n" in self._data else b"\n"
        self._added: list[tuple[int, str, bytes]] = []
        self._added_names: set[str] = set()
        self._edited: list[tuple[int, Splice]] = []
        self._linked: set[str] | None = None

    def point_at(self, card_name: str, topic: str, entry: int, *, old_topic: str = "") -> None:
        """Add the line for a card, or bring the one we wrote up to date. A line that a person wrote stays."""
        line = index_line(card_name, topic)
        if card_name in self._added_names:
            self._added = [
                (by, name, line.encode() + self._newline if name == card_name else old) for by, name, old in self._added
            ]
            return
        if self._has_link(card_name):
            if old_topic and old_topic != topic:
                self.retitle(index_line(card_name, old_topic), line, entry)
            return
        self._added_names.add(card_name)
        self._added.append((entry, card_name, line.encode() + self._newline))

    def _has_link(self, card_name: str) -> bool:
        if self._linked is None:
            self._linked = linked_cards(self._data)
        return card_name in self._linked

    def retitle(self, old: str, new: str, entry: int) -> None:
        """Only a line that is still exactly ours is changed."""
        span = find_whole_line(self._data, old.encode())
        if span is None:
            return
        self._edit(Splice(path=INDEX, offset=span[0], removed=old.encode(), inserted=new.encode()), entry)

    def _edit(self, splice: Splice, entry: int) -> None:
        end = splice.offset + len(splice.removed)
        self._data = b"".join((self._data[: splice.offset], splice.inserted, self._data[end:]))
        self._edited.append((entry, splice))

    def drop(self, card_name: str, entry: int, *, but_one: bool = False) -> list[str]:
        """Take out the lines that only point at a card. Gives those that stay, because somebody says more in them.

        `but_one` leaves one line: a person's own if there is one, else the first.
        """
        lines = list(_iter_linking(self._data, card_name))
        pure = [span for span in lines if _is_pure(self._data, *span)]
        stays = [span for span in lines if span not in pure]
        if but_one:
            if pure and not stays:
                del pure[0]
        elif card_name in self._added_names:
            self._added = [added for added in self._added if added[1] != card_name]
            self._added_names.discard(card_name)
        left = [self._data[start:end].decode("utf-8", "replace").strip() for start, end in stays]
        for start, end in reversed(pure):
            self._edit(Splice(path=INDEX, offset=start, removed=self._data[start:end], inserted=b""), entry)
        self._linked = None
        return left

    def splices(self) -> list[tuple[int, Splice]]:
        """What was changed, in an order in which the splices can be made one after the other."""
        splices = list(self._edited)
        if not self._added:
            return splices
        offset, lead = self._insertion()
        for entry, _, line in self._added:
            splices.append((entry, Splice(path=INDEX, offset=offset, removed=b"", inserted=lead + line)))
            offset += len(lead) + len(line)
            lead = b""
        return splices

    def render(self) -> bytes:
        if not self._added:
            return self._data
        offset, lead = self._insertion()
        return b"".join((self._data[:offset], lead, *(line for _, _, line in self._added), self._data[offset:]))

    def _insertion(self) -> tuple[int, bytes]:
        """Where new lines go, and what must stand before the first."""
        data, newline = self._data, self._newline
        section = self._section()
        if section is None:
            if not data:
                return 0, b"# Memory\n\n## Cards\n\n"
            lead = newline if data.endswith(b"\n") else newline * 2
            return len(data), lead + b"## Cards" + newline * 2
        heading_end, end = section
        body_end = heading_end + len(data[heading_end:end].rstrip())
        if body_end == heading_end and end == len(data) and data[heading_end:] == newline:
            return end, b""
        if body_end == heading_end:
            return heading_end, newline * (1 if data[:heading_end].endswith(b"\n") else 2)
        line_end = data.find(b"\n", body_end)
        if line_end < 0:
            return len(data), newline
        return line_end + 1, b""

    def _section(self) -> tuple[int, int] | None:
        """The span of the text under our heading."""
        data = self._data
        if b"```" in data or b"~~~" in data or b"<!--" in data:
            return _parsed_section(data)
        return _plain_section(data)


def _plain_section(data: bytes) -> tuple[int, int] | None:
    """The text under our heading in a file in which every heading line is a heading."""
    match = _HEADING_LINE.search(data)
    if match is None:
        return None
    start = min(match.end() + 1, len(data))
    following = _NEXT_HEADING.search(data, start)
    return start, following.start() if following else len(data)


def _parsed_section(data: bytes) -> tuple[int, int] | None:
    """The text under our heading in a file with fences or comments, where a heading line may be only text."""
    text = data.decode("latin-1").replace("\r", " ")  # one character a byte, so offsets hold
    try:
        shape = outline(text)
    except TooComplex:
        return _plain_section(data)
    if shape.open_at is not None:
        return _plain_section(data)  # something is never closed: a heading below it counts all the same
    headings = shape.headings
    for position, heading in enumerate(headings):
        if heading.level == 2 and heading.text == HEADING:
            later = [other.start for other in headings[position + 1 :] if other.level <= 2]
            return heading.end, later[0] if later else len(data)
    return None


def linked_cards(data: bytes) -> set[str]:
    """The cards that the index links to."""
    return {(name or wiki.removesuffix(b".md") + b".md").decode() for name, wiki in _LINK.findall(data)}


def line_put_back(data: bytes, line: bytes) -> Splice | None:
    """How a line that was taken out comes back, where new lines go; None if the index points at its cards anyway."""
    if linked_cards(line) <= linked_cards(data):
        return None
    pointers = Pointers(data)
    pointers._added.append((0, "", line.rstrip(b"\r\n") + pointers._newline))
    return pointers.splices()[0][1]


def pointer_lines(data: bytes) -> Iterator[tuple[int, str, set[str], bool]]:
    """Every line that links to cards: its number, text, the cards, and whether it does nothing but point at one."""
    outside = _outside(data) if b"```" in data or b"~~~" in data or b"<!--" in data else None
    start = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        end = start + len(line) + 1
        names = linked_cards(line) if b"cards/" in line or b"[[" in line else set()
        if names and (outside is None or start in outside):
            yield number, line.decode("utf-8", "replace").strip(), names, _is_pure(data, start, min(end, len(data)))
        start = end


def _iter_linking(data: bytes, card_name: str) -> Iterator[tuple[int, int]]:
    """The spans of the lines that link to a card, their newlines included. What a fence or comment shows is no link."""
    outside = _outside(data) if b"```" in data or b"~~~" in data or b"<!--" in data else None
    stem = card_name.removesuffix(".md").encode()
    end = 0
    while (found := data.find(stem, end)) >= 0:
        start = data.rfind(b"\n", 0, found) + 1
        end = data.find(b"\n", found) + 1 or len(data)
        if card_name in linked_cards(data[start:end]) and (outside is None or start in outside):
            yield start, end


def _outside(data: bytes) -> set[int]:
    """Where the lines begin that stand in no fence and no comment."""
    text = data.decode("latin-1")  # one character a byte, so offsets hold
    numbers = {number for number, _ in iter_prose(text)}
    starts = accumulate((len(line) + 1 for line in text.split("\n")), initial=0)
    return {start for number, start in enumerate(starts, 1) if number in numbers}


def _is_pure(data: bytes, start: int, end: int) -> bool:
    """Whether a line is one link and nothing else, and nothing below belongs to it."""
    line = data[start:end].removesuffix(b"\n")
    match = _PURE.match(line)
    if match is None or len(_LINK.findall(line)) != 1:
        return False
    if match["item"] is None:
        above = data[data.rfind(b"\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
        if above.strip() and not above.startswith(b"#"):
            return False
    newline = data.find(b"\n", end)
    below = data[end : newline if newline >= 0 else len(data)]
    if not _BEGINS.match(below):
        return False
    while end < len(data) and data[end] in b"\r\n":  # after blank lines, too, what is further in belongs to an item
        end += 1
    newline = data.find(b"\n", end)
    following = data[end : newline if newline >= 0 else len(data)]
    return len(following) - len(following.lstrip(b" \t")) <= len(line) - len(line.lstrip(b" \t"))


def find_whole_line(data: bytes, line: bytes) -> tuple[int, int] | None:
    """The span of a line, newline included, that is exactly this."""
    position = data.find(line)
    while position >= 0:
        end = position + len(line)
        if (position == 0 or data[position - 1 : position] == b"\n") and data[end : end + 1] in (b"", b"\n", b"\r"):
            newline = data.find(b"\n", end)
            return position, len(data) if newline < 0 else newline + 1
        position = data.find(line, position + 1)
    return None


def is_over_budget(data: bytes, *, lines: int, size: int) -> bool:
    return len(data) > size or data.count(b"\n") > lines
