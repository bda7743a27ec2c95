"""A Markdown file as lines and as a tree of sections, for moving sections between files. Pure, and exact in every byte.

Headings in code, comments and lists do not count; lines keep their line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from truekeep.text.markdown_lines import Scan

_ITEM = re.compile(r"[-*+][ \t]+\S")
_BLOCK_EDGE = re.compile(r"[ ]{0,3}<!--.*?\b(?:(begin|start)|end)\b", re.IGNORECASE)
_RULE = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*\Z")


class SectionNode:
    """A heading with its lines and the sections below it; the file itself at level 0."""

    def __init__(self, level: int, title: str, first: int) -> None:
        self.level, self.title, self.first = level, title, first
        self.last = first  # behind its last line
        self.own_last = first  # behind the last line before its first subsection
        self.above: tuple[str, ...] = ()
        self.children: list[SectionNode] = []

    @property
    def titles(self) -> tuple[str, ...]:
        return (*self.above, self.title)


class SectionFile:
    """A file as lines with their kinds, and as a tree of sections."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = split_lines(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))
        self.sizes = [len(line.encode("utf-8", "surrogateescape")) for line in self.lines]
        self.headings: list[tuple[int, int, str]] = []  # line, level, title
        self.code: set[int] = set()
        self.open_at: int | None = None  # the line of a fence or comment that is never closed
        self._read_lines()
        self.managed = self._managed_lines()
        self.root = self._tree()

    def _read_lines(self) -> None:
        scan = Scan()
        opened = 0
        for number in range(front_lines(self.lines), len(self.lines)):
            opened = opened if scan.fence or scan.is_html else number
            line = scan.see(self.lines[number].rstrip("\r\n"))
            if line.kind == "heading":
                self.headings.append((number, line.level, line.title))
            elif line.kind == "code":
                self.code.add(number)
        scan.see("")
        if scan.see("## Heading").kind != "heading":
            self.open_at = opened

    def _managed_lines(self) -> set[int]:
        """The lines between markers that a program wrote, such as `<!-- name:begin -->` and `<!-- name:end -->`."""
        found: set[int] = set()
        opened: int | None = None
        for number, line in enumerate(self.lines):
            match = _BLOCK_EDGE.match(line) if number not in self.code else None
            if match is None:
                continue
            if match[1]:
                opened = number if opened is None else opened
            elif opened is not None:
                found.update(range(opened, number + 1))
                opened = None
        return found

    def _tree(self) -> SectionNode:
        root = SectionNode(0, "", 0)
        root.last = len(self.lines)
        firsts = [number for number, level, _ in self.headings if level == 1]
        is_titled = bool(self.headings) and self.headings[0][1] == 1 and len(firsts) == 1
        path = [root]
        for number, level, title in self.headings[1:] if is_titled else self.headings:
            while path[-1].level >= level:
                path.pop().last = number
            if not path[-1].children:
                path[-1].own_last = number
            node = SectionNode(level, title, number)
            node.above = path[-1].titles if path[-1].level else ()
            path[-1].children.append(node)
            path.append(node)
        for node in path:
            node.last = len(self.lines)
        for node in walk(root):
            if not node.children:
                node.own_last = node.last
        return root

    def size(self, first: int, last: int) -> int:
        return sum(self.sizes[first:last])

    def part(self, first: int, last: int) -> str:
        return "".join(self.lines[first:last])

    def is_empty(self, first: int, last: int) -> bool:
        return all(not line.strip() or is_rule(line) for line in self.lines[first:last])

    def items(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The list items at the margin, each with what belongs to it."""
        begun: int | None = None
        for number in range(first, last):
            line = self.lines[number]
            if number in self.code or line[:1] in (" ", "\t") or not line.strip():
                continue
            if begun is not None:
                yield begun, number
            begun = number if _ITEM.match(line) else None
        if begun is not None:
            yield begun, last


def split_lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def front_lines(lines: Sequence[str]) -> int:
    """The number of lines of the frontmatter."""
    if not lines or lines[0].rstrip("\r\n") != "---":
        return 0
    ends = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    return next(ends, -1) + 1


def card_body(text: str) -> str:
    """The text of a card without its frontmatter and the empty line below it, exact in every byte."""
    lines = split_lines(text)
    rest = lines[front_lines(lines) :]
    return "".join(rest[1:] if rest and not rest[0].strip() else rest)


def walk(node: SectionNode) -> Iterator[SectionNode]:
    yield node
    for child in node.children:
        yield from walk(child)


def is_rule(line: str) -> bool:
    """Whether a line is a horizontal rule."""
    return _RULE.match(line) is not None
