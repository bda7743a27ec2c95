"""JSON, YAML, XML and INI with the line of every entry, and helpers that read any text line by line.

TOML is in `toml`. Hostile files cost no more than their size: every reader has limits, and none expands anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from json import JSONDecoder
from typing import Any, NamedTuple

from truekeep.verify.manifests.model import (
    MAX_DEPTH,
    MAX_JSON_BRACKETS,
    MAX_JSON_COMMAS,
    MAX_LINE_LENGTH,
    MAX_YAML_VALUES,
    UnreadableManifest,
)

# --- Lines -----------------------------------------------------------------------------------------------------------


class LazyPattern:
    """A pattern that is compiled on first use: a repository needs few of them, and compiling all takes 40 ms."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source, self._flags = source, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.match

    @cached_property
    def search(self) -> Callable[..., re.Match[str] | None]:
        return self._compiled.search

    @cached_property
    def finditer(self) -> Callable[..., Iterator[re.Match[str]]]:
        return self._compiled.finditer

    @cached_property
    def findall(self) -> Callable[..., list[Any]]:
        return self._compiled.findall

    @cached_property
    def sub(self) -> Callable[..., str]:
        return self._compiled.sub


class LineCounter:
    """Gives the line number of an offset. Fast as long as the offsets mostly grow."""

    def __init__(self, text: str) -> None:
        self.text, self._at, self._line = text, 0, 1

    def line_at(self, at: int) -> int:
        if at >= self._at:
            self._line += self.text.count("\n", self._at, at)
        else:
            self._line -= self.text.count("\n", at, self._at)
        self._at = at
        return self._line


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; long lines are cut, so that no pattern can take long on one."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line[:MAX_LINE_LENGTH].rstrip("\r")


def matching_lines(pattern: LazyPattern, text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the lines that begin with the pattern."""
    match_at = pattern.match
    for number, line in numbered_lines(text):
        match = match_at(line)
        if match:
            yield number, match


# --- Tables ----------------------------------------------------------------------------------------------------------


class Leaf(NamedTuple):
    """A scalar as text, with its line."""

    text: str
    line: int


NO_VALUE = Leaf("", 0)


class ValueTable(dict[str, "Leaf | ValueTable"]):
    """A mapping, or a list (keys "0", "1", …), with its line."""

    def __init__(self, line: int, *, is_list: bool = False) -> None:
        super().__init__()
        self.line, self.is_list = line, is_list

    def table(self, *path: str) -> ValueTable:
        """Return the table at a path; an empty one if it does not exist."""
        node: Leaf | ValueTable | None = self
        for key in path:
            node = node.get(key) if isinstance(node, ValueTable) else None
        return node if isinstance(node, ValueTable) else ValueTable(0)

    def leaf(self, *path: str) -> Leaf:
        """Return the scalar at a path; `NO_VALUE` if it does not exist."""
        node = self.table(*path[:-1]).get(path[-1])
        return node if isinstance(node, Leaf) else NO_VALUE

    def leaves(self, *path: str) -> list[Leaf]:
        """Return the scalars of a list; a single scalar counts as a list of one."""
        node = self.table(*path[:-1]).get(path[-1])
        if isinstance(node, Leaf):
            return [node] if node.text else []
        return [item for item in node.values() if isinstance(item, Leaf)] if node is not None else []

    def tables(self, *path: str) -> Iterator[tuple[str, ValueTable]]:
        """Yield the tables directly inside the table at a path."""
        for key, node in self.table(*path).items():
            if isinstance(node, ValueTable):
                yield key, node


# --- JSON ------------------------------------------------------------------------------------------------------------

_JSON_SPACE = LazyPattern(r"[ \t\n\r]*+")


class Member(NamedTuple):
    """A member of a JSON object, or an item of a list."""

    key: str  # for an item of a list, its position
    value: object
    line: int
    at: int  # offset of the value
    members: list[Member] | None = None  # of the value, if they were read already


class Json:
    """Finds the members of JSON objects with their lines; values are decoded by the standard library."""

    def __init__(self, text: str) -> None:
        if text.count("{") + text.count("[") > MAX_JSON_BRACKETS or text.count(",") > MAX_JSON_COMMAS:
            raise UnreadableManifest("too many parts")
        self.text = text
        self.lines = LineCounter(text)
        # Numbers stay text: int() of a very long one takes quadratic time.
        self._raw_decode = JSONDecoder(parse_int=str, parse_float=str, strict=False).raw_decode

    def _decode(self, text: str, at: int) -> tuple[Any, int]:
        try:
            return self._raw_decode(text, at)
        except ValueError as error:
            raise UnreadableManifest(f"line {self.lines.line_at(at)}: {error}") from error

    def _skip_space(self, at: int) -> int:
        text = self.text
        while text.startswith((" ", "\n", "\t", "\r"), at):
            match = _JSON_SPACE.match(text, at)
            at = match.end() if match else at
        return at

    def _walk(self, at: int, deep: tuple[str, ...] = ()) -> tuple[list[Member], int]:
        """Return the members of the value that begins here, and where it ends. Values of `deep` keys are walked too."""
        text, skip_space, decode, line = self.text, self._skip_space, self._decode, self.lines.line_at
        at = skip_space(at)
        opening = text[at : at + 1]
        if opening not in ("{", "["):
            raise UnreadableManifest("it is not a JSON object")
        closing = "}" if opening == "{" else "]"
        members: list[Member] = []
        at = skip_space(at + 1)
        while not (text.startswith(closing, at) and not members):
            key, place = str(len(members)), line(at)
            if opening == "{":
                if not text.startswith('"', at):
                    raise UnreadableManifest(f"line {place}: a key is missing")
                key, at = decode(text, at)
                at = skip_space(at)
                if not text.startswith(":", at):
                    raise UnreadableManifest(f"line {place}: a colon is missing")
                at = skip_space(at + 1)
            if key in deep and text.startswith(("{", "["), at):
                inner, end = self._walk(at)
                value: object = {member.key: member.value for member in inner}
                members.append(Member(key, value, place, at, inner))
            else:
                value, end = decode(text, at)
                members.append(Member(key, value, place, at))
            at = skip_space(end)
            if text.startswith(closing, at):
                break
            if not text.startswith(",", at):
                raise UnreadableManifest(f"line {line(at)}: a comma is missing")
            at = skip_space(at + 1)
        return members, at + 1

    def top(self, *deep: str) -> dict[str, Member]:
        """Return the top-level members. Name the keys that hold most of the file as `deep`: they are then read once."""
        return {member.key: member for member in self._walk(0, deep)[0]}

    def inside(self, member: Member | None) -> Iterable[Member]:
        """Return the members of a value, none for a scalar. Of repeated keys the last counts, as in json.loads."""
        if member is None or not isinstance(member.value, (dict, list)):
            return ()
        members = self._walk(member.at)[0] if member.members is None else member.members
        return {inner.key: inner for inner in members}.values()


def string_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def find_in(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def keys_of(value: object) -> Iterable[str]:
    return value.keys() if isinstance(value, dict) else ()


# --- YAML ------------------------------------------------------------------------------------------------------------


def parse_yaml(text: str) -> ValueTable:
    """Return the first document that is not empty: every scalar as text, aliases and merge keys followed."""
    import yaml

    try:
        return _YamlReader().read(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UnreadableManifest(f"line {line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UnreadableManifest(str(error)) from error


class _OpenCollection:
    """A YAML mapping or list that is still being read."""

    def __init__(self, table: ValueTable, nodes_before: int, anchor: str | None) -> None:
        self.table, self.nodes_before, self.anchor = table, nodes_before, anchor
        self.key: Leaf | None = None  # of a mapping, when the value comes next


class _YamlReader:
    """Builds tables from the events of PyYAML's parser.

    From events and not with `yaml.compose`, which recurses in C: deep nesting overflows the stack. An alias counts
    for as many values as its anchor holds, so a file whose aliases or merge keys double each other is refused early.
    """

    def __init__(self) -> None:
        self._count = 0
        self._open: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Leaf | ValueTable, int]] = {}  # finished ones, with the values they hold

    def read(self, events: Iterable[Any]) -> ValueTable:
        import yaml

        for event in events:
            line = event.start_mark.line + 1
            if isinstance(event, yaml.ScalarEvent):
                self._add_values(1, line)
                is_null = not event.value and event.implicit[0]
                self._place(ValueTable(line) if is_null else Leaf(event.value, line), 1, event.anchor)
            elif isinstance(event, yaml.AliasEvent):
                node, size = self._anchors.get(event.anchor or "", (NO_VALUE, 1))
                self._add_values(size, line)
                self._place(node, size, None)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(line, event.anchor, is_list=isinstance(event, yaml.SequenceStartEvent))
            elif isinstance(event, yaml.CollectionEndEvent):
                table = self._finish()
                if not self._open and table and not table.is_list:
                    return table
        return ValueTable(1)

    def _add_values(self, count: int, line: int) -> None:
        self._count += count
        if self._count > MAX_YAML_VALUES:
            raise UnreadableManifest(f"line {line}: more than {MAX_YAML_VALUES} values")

    def _begin(self, line: int, anchor: str | None, *, is_list: bool) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise UnreadableManifest(f"line {line}: nested too deeply")
        key = self._open[-1].key if self._open else None
        table = ValueTable(key.line if key else line, is_list=is_list)
        self._open.append(_OpenCollection(table, self._count, anchor))
        self._add_values(1, line)

    def _finish(self) -> ValueTable:
        closed = self._open.pop()
        if not closed.table.is_list:
            _merge(closed.table)
        self._place(closed.table, self._count - closed.nodes_before, closed.anchor)
        return closed.table

    def _place(self, node: Leaf | ValueTable, size: int, anchor: str | None) -> None:
        """Put a finished node into the collection it is in: as an item, a key or the value of the last key."""
        if anchor:
            self._anchors[anchor] = (node, size)
        if not self._open:
            return
        parent = self._open[-1]
        if parent.table.is_list:
            parent.table[str(len(parent.table))] = node
        elif parent.key is None:
            parent.key = node if isinstance(node, Leaf) else NO_VALUE
        else:
            if parent.key.text:
                parent.table[parent.key.text] = node
            parent.key = None


def _merge(table: ValueTable) -> None:
    """Apply the merge key of a mapping (`<<: *base`); keys of its own win."""
    merged = table.pop("<<", None)
    if isinstance(merged, ValueTable):
        for source in [inner for _, inner in merged.tables()] if merged.is_list else [merged]:
            for key, node in source.items():
                table.setdefault(key, node)


# --- INI -------------------------------------------------------------------------------------------------------------

_INI_KEY = LazyPattern(r"([^\s=:#;\[][^=:]{0,200}?)\s*[=:]\s*(.*)\Z")


class Setting(NamedTuple):
    """A key of an INI file, or a section header (then the key is empty)."""

    section: str
    key: str
    values: list[Leaf]  # one for each line


def parse_ini(text: str) -> list[Setting]:
    found: list[Setting] = []
    section = ""
    for number, line in numbered_lines(text):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] == "[":
            section = line[1:].partition("]")[0].strip()
            found.append(Setting(section, "", []))
            found[-1].values.append(Leaf(section, number))
        elif line[0] in " \t":
            if found and found[-1].key:
                found[-1].values.append(Leaf(bare, number))
        else:
            match = _INI_KEY.match(line)
            if match:
                found.append(Setting(section, match[1], [Leaf(match[2].strip(), number)] if match[2] else []))
    return found


# --- XML -------------------------------------------------------------------------------------------------------------

_TAG = LazyPattern(r"<(/?)([A-Za-z_][\w.:-]{0,100})((?:\s[^<>]{0,1000})?)>([^<]{0,500})")
_ATTRIBUTE = LazyPattern(r"([A-Za-z]{1,40})\s{0,10}=\s{0,10}(?:\"([^\"<>]*)\"|'([^'<>]*)')")


def iter_tags(text: str) -> Iterator[tuple[str, list[str], str, str, int]]:
    """Yield the tags in order: kind ("open", "close" or "whole"), path, attributes, text and line.

    No entity is ever looked up.
    """
    text = _without_markup(text)
    lines = LineCounter(text)
    path: list[str] = []
    for match in _TAG.finditer(text):
        closing, name, attributes, inner = match.groups()
        if closing:
            yield "close", path, "", "", 0
            if name in path[-4:]:  # also closes tags that a broken file left open
                while path.pop() != name:
                    pass
            continue
        line = lines.line_at(match.start())
        if len(path) > MAX_DEPTH:
            raise UnreadableManifest(f"line {line}: nested too deeply")
        path.append(name)
        is_whole = attributes.endswith("/")
        yield ("whole" if is_whole else "open"), path, attributes, inner.strip(), line
        if is_whole:
            path.pop()


def attributes_of(text: str) -> dict[str, str]:
    """Parse the attributes of a tag."""
    return {key: first or second for key, first, second in _ATTRIBUTE.findall(text)}


def _without_markup(text: str) -> str:
    """Remove comments, declarations and CDATA; the line breaks stay."""
    if "<!" not in text:
        return text
    pieces: list[str] = []
    position = 0
    ends = {"<!--": "-->", "<![CDATA[": "]]>"}
    while (start := text.find("<!", position)) >= 0:
        pieces.append(text[position:start])
        opening = next((known for known in ends if text.startswith(known, start)), "")
        if opening:
            end = text.find(ends[opening], start + len(opening))
            stop = end + 3 if end >= 0 else len(text)
        else:  # <!DOCTYPE x [ <!ENTITY ...> ]>
            end, subset = text.find(">", start), text.find("[", start)
            if 0 <= subset < end:
                close = text.find("]", subset)
                end = text.find(">", close) if close >= 0 else -1
            stop = end + 1 if end >= 0 else len(text)
        pieces.append("\n" * text.count("\n", start, stop))
        position = stop
    return "".join([*pieces, text[position:]])
