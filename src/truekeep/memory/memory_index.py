"""MEMORY.md as the index of cards: one line for each, found by its link wherever a person moved it.

Works on bytes, because the rest of the file is a person's and must not change in any way. New lines go to the end of
the list under the heading `## Cards`. Nothing here reads or writes a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

from truekeep.core.model import INDEX, Splice
from truekeep.memory.card import index_line, unlinked
from truekeep.text.markdown import TooComplex, outline
from truekeep.text.tables import iter_prose

HEADING = "Cards"
_HEADING_LINE = re.compile(rb"^## Cards[ \t]*\r?$", re.MULTILINE)
_NEXT_HEADING = re.compile(rb"^#{1,2}[ \t]", re.MULTILINE)
# A link to a card: a Markdown link's destination or a wiki link. Words in a label or in prose are no link, so that no
# topic can pass for another card's line. People also write names with blanks as they are, which is meant as a link.
_BARE = rb"(?:[^\s<>()\\]|\\\S|\((?:[^\s<>()\\]|\\\S)*\))+"
_LOOSE = rb"[^<>()\[\]\"\\\r\n]+\.md"
_LINK = re.compile(
    rb"(?<!\\)(?:\\\\)*\]\([ ]*(?:"
    rb"<(?:\./)?(?:memory/)?cards/(?P<angled>(?:[^<>\\\r\n]|\\[^\r\n])+)(?=>)"
    rb"|(?:\./)?(?:memory/)?cards/(?:(?P<loose>" + _LOOSE + rb")(?=[ ]*\))|(?P<bare>" + _BARE + rb")(?=[\s)])))"
    rb"|\[\[(?P<folder>memory/cards/|cards/)?(?P<wiki>[^\[\]|#\r\n]+)(?:#[^\[\]|\n]*)?(?=\]\]|\|)"
)
_ESCAPED = re.compile(rb"\\([!-/:-@\[-`{-~])")
_SAFE = re.compile(r"[A-Za-z0-9._-]+\Z")
# A line that is one link and nothing else, as a list item or alone.
_PURE = re.compile(
    rb"[ \t]*(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?[*_]{0,3}"
    rb"(?:\[(?:[^\[\]\\\r]|\\.)*\]\([ ]*(?:<[^<>\r]+>|" + _LOOSE + rb"|" + _BARE + rb")[ ]*\)|\[\[[^\[\]\r]+\]\])"
    rb"[*_]{0,3}[.;]?[ \t]*\r?\Z"
)
_BEGINS = re.compile(rb"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]|#{1,6}[ \t]|```|~~~|<!--|\||---|\*\*\*|___)|[ \t\r]*\Z")


class Pointers:
    """The index while lines are added to it and taken out."""

    def __init__(self, data: bytes | None, linked: set[str] | None = None) -> None:
        self._data = data or b""
        self._newline = b"\r\n" if b"\r\n" in self._data else b"\n"
        self._added: list[tuple[int, str, bytes]] = []
        self._added_names: set[str] = set()
        self._edited: list[tuple[int, Splice]] = []
        self._linked = linked  # the cards it points at, where that is known
        self._place: tuple[int, bytes] | None = None

    def point_at(self, card_name: str, topic: str, entry: int, *, old_topic: str = "") -> None:
        """Add the line for a card, or update the one that truekeep wrote. A line that a person wrote stays."""
        line = index_line(card_name, topic)
        if card_name in self._added_names:
            self._added = [
                (by, name, line.encode() + self._newline if name == card_name else old) for by, name, old in self._added
            ]
            return
        if self.has_link(card_name):
            if old_topic and old_topic != topic:
                self.retitle(index_line(card_name, old_topic), line, entry)
            return
        self._added_names.add(card_name)
        self._added.append((entry, card_name, line.encode() + self._newline))

    def relabel(self, card_name: str, old_topic: str, topic: str, entry: int) -> None:
        """Update the line that truekeep wrote for a card, if there is one."""
        if card_name in self._added_names:
            self.point_at(card_name, topic, entry)
        elif old_topic != topic:
            self.retitle(index_line(card_name, old_topic), index_line(card_name, topic), entry)

    def has_link(self, card_name: str) -> bool:
        """Whether the index links to a card, added lines included."""
        if card_name in self._added_names:
            return True
        if self._linked is None:
            self._linked = linked_cards(self._data)
        return card_name in self._linked

    def retitle(self, old: str, new: str, entry: int) -> None:
        """Change the title in a line, if it is still exactly as truekeep wrote it."""
        span = find_whole_line(self._data, old.encode())
        if span is not None:
            self._edit({span[0]: (old.encode(), new.encode())}, entry)

    def _edit(self, edits: Mapping[int, tuple[bytes, bytes]], entry: int) -> None:
        """Replace bytes at offsets, from the end, so that the other offsets stay valid."""
        ordered = sorted(edits.items())
        pieces: list[bytes] = []
        at = 0
        for offset, (removed, inserted) in ordered:
            pieces += (self._data[at:offset], inserted)
            at = offset + len(removed)
        self._data = b"".join((*pieces, self._data[at:]))
        self._linked = self._place = None
        for offset, (removed, inserted) in reversed(ordered):
            self._edited.append((entry, Splice(path=INDEX, offset=offset, removed=removed, inserted=inserted)))

    def drop(self, card_name: str, entry: int) -> list[str]:
        """Remove the lines that only link to a card. Returns the lines that stay, because they say more."""
        return self.update_lines(entry, gone=(card_name,)).get(card_name, [])

    def update_lines(
        self,
        entry: int,
        *,
        gone: Collection[str] = (),
        once: Collection[str] = (),
        retitled: Mapping[str, str] | None = None,
    ) -> dict[str, list[str]]:
        """Take lines out and retitle lines, in one pass over the index. Gives the lines that stay, by card.

        Of cards that are `gone`, every line that only points at them goes; of those that are to be there `once`, all
        but one: a person's own if there is one, else the first. Of what is `retitled`, the first line that is exactly
        so is changed.
        """
        if added := self._added_names.intersection(gone):
            self._added = [item for item in self._added if item[1] not in added]
            self._added_names -= added
        old = {before.encode("utf-8", "surrogateescape"): after.encode() for before, after in (retitled or {}).items()}
        wanted = {*gone, *once}
        edits: dict[int, tuple[bytes, bytes]] = {}
        pure: dict[str, list[int]] = {}
        stays: dict[str, list[str]] = {}
        for start, end, links in _iter_linking(self._data):
            line = self._data[start:end]
            bare = line.rstrip(b"\r\n")
            if bare in old:
                edits[start] = (bare, old.pop(bare))
            names = {link.name for link in links} & wanted
            if names and _is_pure(self._data, start, end, len(links)):
                pure.setdefault(names.pop(), []).append(start)
            for name in names:
                stays.setdefault(name, []).append(line.decode("utf-8", "replace").strip())
        for name, starts in pure.items():
            for start in starts[1:] if name in once and name not in stays else starts:
                edits[start] = (self._data[start : self._data.find(b"\n", start) + 1 or len(self._data)], b"")
        self._edit(edits, entry)
        return stays

    def splices(self) -> list[tuple[int, Splice]]:
        """The changes as splices that can be applied one after the other."""
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

    def linked(self) -> set[str] | None:
        """The cards that the rendered index links to; None if they were not needed so far."""
        return None if self._linked is None else self._linked | self._added_names

    def _insertion(self) -> tuple[int, bytes]:
        """The offset for new lines, and the text needed before the first."""
        if self._place is None:
            self._place = self._find_place()
        return self._place

    def _find_place(self) -> tuple[int, bytes]:
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
        """The span of the text below our heading."""
        data = self._data
        if b"```" in data or b"~~~" in data or b"<!--" in data:
            return _parsed_section(data)
        return _plain_section(data)


def _plain_section(data: bytes) -> tuple[int, int] | None:
    """The text below our heading in a file without fences and comments."""
    match = _HEADING_LINE.search(data)
    if match is None:
        return None
    start = min(match.end() + 1, len(data))
    following = _NEXT_HEADING.search(data, start)
    return start, following.start() if following else len(data)


def _parsed_section(data: bytes) -> tuple[int, int] | None:
    """The text below our heading in a file with fences or comments, where a line may only look like a heading."""
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


class _Link(NamedTuple):
    """A link of the index."""

    name: str  # of a card, as its file is called
    is_sure: bool  # that a card is meant: [[words]] may be anything


def _link_of(match: re.Match[bytes]) -> _Link | None:
    """The card that a link leads to; None for other files."""
    if (wiki := match["wiki"]) is not None:
        name = unlinked(wiki.strip(b" \t").decode("utf-8", "surrogateescape"))
        is_sure = match["folder"] is not None or _SAFE.match(name) is not None
        name = f"{name.removesuffix('.md')}.md"
    else:
        raw = _ESCAPED.sub(rb"\1", match["angled"] or match["loose"] or match["bare"])
        part = raw.find(b".md#")
        name = unlinked(raw[: part + 3 if part >= 0 else None].decode("utf-8", "surrogateescape"))
        is_sure = True
    if not name.endswith(".md") or name[0] == "." or "/" in name or "\0" in name:
        return None
    return _Link(name, is_sure)


def card_links(data: bytes) -> Iterator[str]:
    """The card of every link in a text, by the name of its file."""
    return (link.name for match in _LINK.finditer(data) if (link := _link_of(match)) is not None)


def linked_cards(data: bytes) -> set[str]:
    """The cards that the index links to, by the names of their files."""
    return set(card_links(data))


def line_put_back(data: bytes, line: bytes) -> Splice | None:
    """How to insert a removed line again, where new lines go; None if the index links to its cards anyway."""
    if linked_cards(line) <= linked_cards(data):
        return None
    pointers = Pointers(data)
    pointers._added.append((0, "", line.rstrip(b"\r\n") + pointers._newline))
    return pointers.splices()[0][1]


def pointer_lines(data: bytes, is_card: Callable[[str], bool]) -> Iterator[tuple[int, str, set[str], bool]]:
    """Every line that links to cards: its number, its text, the cards, and whether it is nothing but a link to one.

    [[Words]] that do not name a card are left out.
    """
    number, seen = 1, 0
    for start, end, links in _iter_linking(data):
        number += data.count(b"\n", seen, start)
        seen = start
        names = {link.name for link in links if link.is_sure or is_card(link.name)}
        if names:
            text = data[start:end].decode("utf-8", "surrogateescape").strip()
            yield number, text, names, _is_pure(data, start, end, len(links))


def _iter_linking(data: bytes) -> Iterator[tuple[int, int, list[_Link]]]:
    """The spans of the lines that link to cards, with their newlines. Links in fences and comments do not count."""
    outside = _outside(data) if b"```" in data or b"~~~" in data or b"<!--" in data else None
    start = end = 0
    links: list[_Link] = []
    for match in _LINK.finditer(data):
        link = _link_of(match)
        if link is None:
            continue
        if match.start() >= end:
            if links:
                yield start, end, links
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.start()) + 1 or len(data)
            links = []
        if outside is None or start in outside:
            links.append(link)
    if links:
        yield start, end, links


def _outside(data: bytes) -> set[int]:
    """The starts of the lines outside of fences and comments."""
    text = data.decode("latin-1")  # one character a byte, so offsets hold
    numbers = {number for number, _ in iter_prose(text)}
    starts = accumulate((len(line) + 1 for line in text.split("\n")), initial=0)
    return {start for number, start in enumerate(starts, 1) if number in numbers}


def _is_pure(data: bytes, start: int, end: int, links: int) -> bool:
    """Whether a line is one link and nothing else, without lines below that belong to it."""
    line = data[start:end].removesuffix(b"\n")
    match = _PURE.match(line)
    if match is None or links != 1:
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
    """The span of the line with exactly this text, with its newline."""
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
