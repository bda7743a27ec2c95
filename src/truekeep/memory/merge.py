"""Merge two texts about one topic: the old text unchanged, plus the statements that only the new one has. Pure.

What is new goes below the heading that it stands under, at the end of that section, else to the end of the text; what
has no heading, to the end of what the old text says before its sections. What the old text says already is not said
twice: a statement is known by its words, however it is wrapped or bulleted, and by the item that it stands below; code,
by its lines. Steps stay in their order: where two numbered lists cannot surely be made one, the new section is added
whole, under a heading of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from truekeep.text.markdown import Heading, TooComplex, fenced_lines, outline
from truekeep.text.markdown_lines import closes_fence

_MARK = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)?")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_STEP = re.compile(r" {0,3}\d{1,9}[.)][ \t]+\S")
_FENCE = re.compile("`{3,}|~{3,}")
CODE_INDENT = 4
_ENDED = re.compile(r"[.!?:;…。！？][)\]\"'`*_]*\Z")


class MergeStatement(NamedTuple):
    """One statement: a sentence or list item on its lines, or a code fence."""

    lines: tuple[str, ...]
    is_code: bool
    has_gap: bool  # a blank line stands before it
    end: int  # the line behind it, from 0

    @property
    def key(self) -> str:
        """A key that is equal for the same words."""
        if self.is_code:
            return "\n".join(line.strip() for line in self.lines)
        return _words(" ".join(_bare(line) for line in self.lines))

    @property
    def keys(self) -> list[str]:
        """A key for each line, equal for the same words."""
        return [] if self.is_code else [_words(_bare(line)) for line in self.lines]

    @property
    def head(self) -> str:
        """A key of the first line, equal for the same words."""
        return self.keys[0] if self.keys else self.key

    @property
    def is_item(self) -> bool:
        return not self.is_code and _ITEM.match(self.lines[0]) is not None

    @property
    def is_step(self) -> bool:
        return not self.is_code and _STEP.match(self.lines[0]) is not None

    @property
    def indent(self) -> int:
        """The blanks in front of it."""
        first = self.lines[0].expandtabs(CODE_INDENT)
        return len(first) - len(first.lstrip(" "))


class Node:
    """A statement and those below it: nested items, and the paragraphs of an item."""

    def __init__(self, statement: MergeStatement) -> None:
        self.statement = statement
        self.below: list[Node] = []

    @property
    def end(self) -> int:
        """The line after all of it."""
        return self.below[-1].end if self.below else self.statement.end

    @property
    def start(self) -> int:
        return self.statement.end - len(self.statement.lines)


class MergePart(NamedTuple):
    """A heading, or none, and the statements below it up to the next one."""

    heading: Heading | None
    first: int  # its first line below the heading, from 0
    last: int  # the line behind it
    statements: tuple[MergeStatement, ...]

    def nodes(self) -> list[Node]:
        """The statements as a tree."""
        found: list[Node] = []
        open_items: list[Node] = []
        for statement in self.statements:
            while open_items and open_items[-1].statement.indent >= statement.indent:
                open_items.pop()
            node = Node(statement)
            (open_items[-1].below if open_items else found).append(node)
            if statement.is_item:
                open_items.append(node)
        return found


def lists_of(nodes: Iterable[Node]) -> Iterator[list[Node]]:
    """The numbered lists among these nodes."""
    run: list[Node] = []
    for node in nodes:
        if node.statement.is_step:
            run.append(node)
        elif run:
            yield run
            run = []
    if run:
        yield run


def merge_texts(old: str, new: str, *, mark: str = "updated") -> str:
    """The old text plus the statements that only the new one has. Both have plain newlines; nothing is removed.

    `mark`: added to the heading of a section that could not be merged.
    """
    return _TextMerge(old, new, mark).text() if old.strip() else new


_Rows = list[tuple[str, bool]]
"""Lines, and whether a blank one stands before each."""


class _KnownStatements:
    """The statements of the old text, by their words and by the words of each line."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes: dict[str, list[Node]] = {}
        for node in nodes:
            for key in dict.fromkeys((node.statement.key, *node.statement.keys)):
                self._nodes.setdefault(key, []).append(node)

    def find(self, statement: MergeStatement) -> list[Node]:
        """The place of a statement, if all of it is there."""
        keys = statement.keys
        if statement.key in self._nodes:
            return self._nodes[statement.key]
        return self._nodes[keys[0]] if keys and all(key in self._nodes for key in keys) else []


class _TextMerge:
    """The merge of one text into another."""

    def __init__(self, old: str, new: str, mark: str) -> None:
        self._lines, self._new, self._mark = old.split("\n"), new.split("\n"), mark
        self._parts = parts_of(new)
        told = parts_of(old)
        nodes = [part.nodes() for part in told]
        self._known = _KnownStatements(node for some in nodes for node in some)
        self._lists = [run for some in nodes for run in lists_of(some)]
        self._places = _OldText(told)
        self._indents: dict[Node, int] = {}  # of what is added below a statement
        self._added: dict[int, list[tuple[int, _Rows]]] = {}  # behind a line, the deepest first

    def text(self) -> str:
        for part in self._parts:
            self._merge_part(part, part.nodes())
        added = {}
        for at, some in self._added.items():
            some.sort(key=lambda item: -item[0])
            added[at] = [row for _, rows in some for row in rows]
        return _inserted(self._lines, added)

    def _merge_part(self, part: MergePart, nodes: list[Node]) -> None:
        """Merge a part of the new text: statement by statement, or as a whole if its steps cannot be matched."""
        steps: dict[Node, Node | None] = {}
        for run in lists_of(nodes):
            found = self._matched(run, is_counted=self._places.is_counted(part.heading))
            if found is None:
                at, heading = self._places.apart(part.heading, self._mark)
                self._add(at, 0, [(heading, True), *self._rows(nodes[0].start, part.last, has_gap=True)])
                return
            steps.update(zip(run, found, strict=True))
        known = {node: self._known.find(node.statement) for node in nodes}
        known |= {node: [there, *known[node]] if there is not None else [] for node, there in steps.items()}
        at, headings = self._places.place(part.heading, has_text=not all(known.values()))
        self._add(at, 0, [(f"{'#' * heading.level} {heading.text}", True) for heading in headings])
        counted: Node | None = None  # the step that is there, and that the next one goes on with
        is_next = False  # to what was added just before
        for node in nodes:
            statement = node.statement
            counted = next(iter(known[node]), counted) if node in steps else None
            if known[node] or counted is not None:
                is_next = False
            if known[node]:
                self._merge_below(known[node], node, 1)
            elif counted is not None:
                self._add(counted.end, 1, self._rows(node.start, node.end, has_gap=False))
            else:
                joins = statement.is_item and _is_list(self._line_above(at))
                has_gap = statement.has_gap if is_next else not joins
                shift = 0 if statement.indent >= CODE_INDENT and not statement.is_item else statement.indent
                self._add(at, 0, self._rows(node.start, node.end, has_gap=has_gap, shift=shift))
                is_next = True

    def _merge_below(self, there: Sequence[Node], node: Node, depth: int) -> None:
        """Merge the statements below one that the old text has, once or several times."""
        first, below = there[0], [child for one in there for child in one.below]
        known = _KnownStatements(below)
        for child in node.below:
            statement, own = child.statement, known.find(child.statement)
            if own:
                self._merge_below(own, child, depth + 1)
                continue
            moved = statement.indent - node.statement.indent + first.statement.indent
            indent = self._indents.setdefault(first, first.below[-1].statement.indent if first.below else moved)
            shift = statement.indent - indent
            has_gap = statement.has_gap and not statement.is_item
            self._add(first.end, depth + 1, self._rows(child.start, child.end, has_gap=has_gap, shift=shift))

    def _matched(self, run: Sequence[Node], *, is_counted: bool) -> list[Node | None] | None:
        """The existing step for each step of a list, or None; None for the whole list if that is not certain.

        Certain are steps that are all there in their order, that go on with a list that is there, or are all new.
        `is_counted`: they would stand behind steps that they have nothing to do with.
        """
        for there in self._lists:
            rest = iter(there)
            found = [next((other for other in rest if _says_the_same(other, step)), None) for step in run]
            if None not in found:
                return found
        is_new = [not self._known.find(step.statement) for step in run]
        for there in self._lists:
            count = len(there)
            if count < len(run) and all(map(_says_the_same, there, run)) and all(is_new[count:]):
                return [*there, *(None for _ in run[count:])]
        return None if is_counted or not all(is_new) else [None for _ in run]

    def _add(self, at: int, depth: int, rows: _Rows) -> None:
        if rows:
            self._added.setdefault(at, []).append((depth, rows))

    def _rows(self, first: int, last: int, *, has_gap: bool, shift: int = 0) -> _Rows:
        """Lines of the new text, adapted to the old one."""
        lines = self._new[first:last]
        return [(_moved(line, shift), has_gap and not number) for number, line in enumerate(lines)]

    def _line_above(self, at: int) -> str:
        some = self._added.get(at)
        if some:
            return some[-1][1][-1][0]
        return next((line for line in reversed(self._lines[:at]) if line.strip()), "")


def _says_the_same(there: Node, node: Node) -> bool:
    """Whether an existing statement says the same as another, without those below it."""
    own, keys = there.statement, node.statement.keys
    return own.key == node.statement.key or (bool(keys) and set(keys) <= set(own.keys))


def _moved(line: str, shift: int) -> str:
    """A line with its indent changed."""
    if shift <= 0 or not line.strip():
        return " " * -shift + line if line.strip() else line
    wide = line.expandtabs(CODE_INDENT) if "\t" in line[:shift] else line
    return wide[min(shift, len(wide) - len(wide.lstrip(" "))) :]


def _is_list(line: str) -> bool:
    return _ITEM.match(line) is not None or line[:1] in (" ", "\t")


def _inserted(lines: list[str], added: dict[int, _Rows]) -> str:
    out: list[str] = []
    for at in range(len(lines) + 1):
        for line, has_gap in added.get(at, ()):
            if has_gap and out and out[-1].strip():
                out.append("")
            out.append(line)
        if at == len(lines):
            break
        if at in added and lines[at].strip() and not (_is_list(lines[at]) and _is_list(out[-1])):
            out.append("")
        out.append(lines[at])
    return "\n".join(out)


class _OldText:
    """The places of the old text where parts of the new one belong."""

    def __init__(self, told: Sequence[MergePart]) -> None:
        self._told = told
        self._path: list[tuple[Heading, int, int]] = []  # the headings above, where each is in the old text, or -1
        self._missing: list[Heading] = []  # of these, the ones that nothing was said below so far

    def place(self, heading: Heading | None, *, has_text: bool) -> tuple[int, list[Heading]]:
        """The line of the old text after which it goes, and the headings that have to be written first."""
        if heading is None:
            return self._lead(), []
        self._path = [item for item in self._path if item[0].level < heading.level]
        self._missing = [item for item in self._missing if item.level < heading.level]
        above = self._path[-1] if self._path else None
        found = self._find(heading, above)
        if found is not None:
            self._path.append((heading, found, self._own_end(found)))
            return self._own_end(found), []
        if above is None:
            at = self._last_line(len(self._told))
        else:
            at = above[2] if above[1] < 0 else self._tree_end(above[1])
        self._path.append((heading, -1, at))
        self._missing.append(heading)
        if not has_text:
            return at, []
        headings, self._missing = self._missing, []
        return at, headings

    def is_counted(self, heading: Heading | None) -> bool:
        """Whether the part of the old text that this one belongs to ends with a numbered list."""
        if heading is None:
            at = self._lead()
        else:
            above = next((item for item in reversed(self._path) if item[0].level < heading.level), None)
            number = self._find(heading, above)
            if number is None:
                return False
            at = self._own_end(number)
        part = next((part for part in self._told if part.first < at <= part.last), None)
        nodes = part.nodes() if part is not None else []
        return bool(nodes) and nodes[-1].statement.is_step

    def apart(self, heading: Heading | None, mark: str) -> tuple[int, str]:
        """The line of the old text after which a separate section goes, and its heading."""
        if heading is None:
            return self._last_line(len(self._told)), f"## Steps ({mark})"
        self.place(heading, has_text=False)
        found = self._path[-1][1]
        at = self._path[-1][2] if found < 0 else self._tree_end(found)
        return at, f"{'#' * max(2, heading.level)} {heading.text} ({mark})"  # a text has one title

    def _find(self, heading: Heading, above: tuple[Heading, int, int] | None) -> int | None:
        """The section of this name; below the same parent, if there is one."""
        if above is not None and above[1] < 0:
            return None
        first = above[1] + 1 if above else 0
        for number in range(first, len(self._told)):
            own = self._told[number].heading
            if own is None:
                continue
            if above is not None and own.level <= above[0].level:
                return None
            if own.level == heading.level and own.text.casefold() == heading.text.casefold():
                return number
        return None

    def _lead(self) -> int:
        """The line after the statements before the first section. The title of the text is not a section."""
        for number, part in enumerate(self._told):
            if part.heading is not None and (part.heading.level > 1 or number > 1):
                return self._last_line(number)
        return self._last_line(len(self._told))

    def _own_end(self, number: int) -> int:
        return self._last_line(number + 1)

    def _tree_end(self, number: int) -> int:
        own = self._told[number].heading
        level = own.level if own is not None else 0
        for following in range(number + 1, len(self._told)):
            heading = self._told[following].heading
            if heading is not None and heading.level <= level:
                return self._last_line(following)
        return self._last_line(len(self._told))

    def _last_line(self, number: int) -> int:
        """The line after the last statement before a part."""
        while number > 0:
            part = self._told[number - 1]
            if part.last > part.first:
                return part.last
            if part.heading is not None:
                return part.first
            number -= 1
        return 0


def parts_of(text: str) -> list[MergePart]:
    """The parts of a text: headings with the statements below them. A text that cannot be parsed is one part."""
    lines = text.split("\n")
    try:
        seen = outline(text)
        headings: Sequence[Heading] = seen.headings if seen.open_at is None else ()
        code = fenced_lines(text) if "```" in text or "~~~" in text else set()
    except TooComplex:
        headings, code = (), set()
    starts = [0, *(heading.line for heading in headings)]
    ends = [*(heading.line - 1 for heading in headings), len(lines)]
    parts = []
    for heading, first, end in zip((None, *headings), starts, ends, strict=True):
        last = end
        while last > first and not lines[last - 1].strip():
            last -= 1
        parts.append(MergePart(heading, first, last, tuple(_statements(lines, first, last, code))))
    return parts


def _statements(lines: Sequence[str], first: int, last: int, code: set[int]) -> Iterator[MergeStatement]:
    said: list[str] = []
    is_code = has_gap = False
    for number in range(first, last):
        line = lines[number]
        is_in = number in code
        if said and (is_in != is_code or (_is_closed(said) if is_in else _begins(line, said))):
            yield MergeStatement(tuple(said), is_code, has_gap, number)
            said, has_gap = [], False
        if not line.strip() and not is_in:
            has_gap = True
            continue
        is_code = is_in
        said.append(line)
    if said:
        yield MergeStatement(tuple(said), is_code, has_gap, last)


def _is_closed(code: Sequence[str]) -> bool:
    """Whether these lines of code are a closed fence."""
    opened = _FENCE.search(code[0])
    return len(code) > 1 and opened is not None and closes_fence(code[-1].strip(" \t>"), opened[0])


def _begins(line: str, said: Sequence[str]) -> bool:
    """Whether a line begins a new statement."""
    if not line.strip() or _ITEM.match(line):
        return True
    if _ITEM.match(said[0]) and line[:1] in (" ", "\t"):
        return False
    return _ENDED.search(said[-1].rstrip()) is not None


def _bare(line: str) -> str:
    match = _MARK.match(line)
    return line[match.end() :] if match else line


def _words(text: str) -> str:
    return " ".join(text.split())
