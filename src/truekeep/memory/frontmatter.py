"""The frontmatter of a card: a small reader for the part of YAML that cards use, and edits that keep every other byte.

A hostile file can make a full YAML parser run for minutes, so this is not one. It knows `key: text`, `key: [a, b]`
and block lists; every scalar stays text; anything nested is carried along unread. Anchors, aliases, merge keys, tags,
doubled keys and lines that fit nothing are problems, and the caller decides what becomes of the card.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_CHARS = 16_384
MAX_FIELDS = 200

_FIELD = re.compile(r"(?:([A-Za-z_][\w.-]*)|\"([^\"\\]+)\"|'([^']+)')[ \t]*:(?:[ \t]+(.*)|[ \t]*)\Z")
# Patterns that plain cards do not need are compiled when they are used: hooks have no time for them.
_UNSAFE_FLOW = r"(?:^|[\[{,:])[ \t]*[&*!]"
_KEY = r"(?:(?:[\w.-]+|\"[^\"]*\"|'[^']*')[ \t]*:[ \t]+)?"
_FLOW_ITEM = rf"[ \t]*(?:[-?:][ \t]+)*{_KEY}[\[{{]"
_UNSAFE_ITEM = rf"[ \t]*(?:[-?:][ \t]+)*{_KEY}[&*!]"
_NEEDS_QUOTES = r"^[\s&*!|>%@`'\"#{}\[\],?:-]|: |:$| #|\s$|^$"
# What a YAML reader would turn into something else than the text: numbers, times, dates, truth values.
_NOT_TEXT = r"(?i)[-+.]?[0-9][0-9._:+-]*\Z|0[xob][0-9a-f_]+\Z|[-+.0-9]+e[-+0-9]+\Z"
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<", ".nan", ".inf"))


class InvalidFrontmatter(ValueError):
    """The frontmatter cannot be read safely. `line` counts from 1 at the opening dashes."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


class Field(NamedTuple):
    """One key with all the lines that belong to it, as they are in the file."""

    key: str  # "" for comments and blank lines before the first key
    value: str  # what stands behind the colon
    raw: str  # every line of it, newlines included


class Frontmatter(NamedTuple):
    """The fields in their order. Rendering gives back what was parsed, byte for byte."""

    fields: tuple[Field, ...] = ()

    def find(self, key: str) -> Field | None:
        for field in self.fields:
            if field.key == key:
                return field
        return None

    def names(self) -> tuple[str, ...]:
        return tuple(field.key for field in self.fields if field.key)

    def text(self, key: str) -> str:
        """The value as text, a list joined with commas; empty if the key is missing or its value is a mapping."""
        field = self.find(key)
        if field is None:
            return ""
        if field.value and field.value[0] not in "|>[{" and field.raw.count("\n") == 1:
            return _unquote(field.value)
        more = [bare for line in field.raw.split("\n")[1:] if (bare := line.strip()) and bare[0] != "#"]
        if field.value[:1] in ("|", ">"):
            return " ".join(more)
        if field.value[:1] == "[" or (not field.value and more and all(line[0] == "-" for line in more)):
            return ", ".join(self.items(key))
        if field.value[:1] == "{" or (not field.value and more):
            return ""
        return _unquote(" ".join([field.value, *more]))

    def items(self, key: str) -> tuple[str, ...]:
        """The value as a list: `[a, b]`, a block list, or one comma-separated text."""
        field = self.find(key)
        if field is None:
            return ()
        lines = [line.strip() for line in field.raw.split("\n")[1:]]
        if not field.value:
            return tuple(_unquote(line[1:].strip()) for line in lines if line.startswith("-") and line != "-")
        flow = " ".join([field.value, *lines]).strip()
        if flow.startswith("["):
            flow = flow[1 : flow.rfind("]")] if "]" in flow else flow[1:]
        return tuple(item for part in _split_commas(flow) if (item := _unquote(part)))

    def has_mapping(self, key: str) -> bool:
        """Whether the value is a mapping instead of a text."""
        field = self.find(key)
        return field is not None and not self.text(key) and bool(field.value or field.raw.count("\n") > 1)

    def with_text(self, key: str, value: str) -> Frontmatter:
        """A copy with this key set; only its lines change."""
        field = text_field(key, value)
        if self.find(key) is None:
            return Frontmatter((*self.fields, field))
        return Frontmatter(tuple(field if old.key == key else old for old in self.fields))

    def render(self) -> str:
        return "---\n" + "".join(field.raw for field in self.fields) + "---\n"


def text_field(key: str, value: str) -> Field:
    quoted = quote(value)
    return Field(key, quoted, f"{key}: {quoted}\n")


def quote(value: str) -> str:
    """A text as a YAML scalar that other programs read as the same text."""
    flat = " ".join(value.split())
    if flat[:1].isalpha() and flat.replace(" ", "").isalnum() and flat.casefold() not in _WORDS:
        return flat  # nothing below could fit
    if re.search(_NEEDS_QUOTES, flat) or flat.casefold() in _WORDS or re.match(_NOT_TEXT, flat):
        return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return flat


def split_frontmatter(text: str) -> tuple[Frontmatter | None, str]:
    """The frontmatter at the start of a text with plain newlines, or None, and the rest."""
    if not text.startswith("---") or text[3:4] not in ("\n", " ", "\t"):
        return None, text
    first_end = text.find("\n")
    if first_end < 0 or text[3:first_end].strip():
        return None, text
    head = text[: MAX_CHARS + 8]
    lines: list[str] = []
    position = first_end + 1
    while position < len(head):
        newline = head.find("\n", position)
        line = head[position:] if newline < 0 else head[position:newline]
        position = len(head) if newline < 0 else newline + 1
        if line.startswith(("---", "...")) and not line[3:].strip():
            return Frontmatter(_parse_fields(lines)), text[position:]
        lines.append(line)
    if len(text) > len(head):
        raise InvalidFrontmatter(f"the frontmatter is longer than {MAX_CHARS} characters", 1)
    raise InvalidFrontmatter("the frontmatter is never closed with ---", 1)


def _parse_fields(lines: list[str]) -> tuple[Field, ...]:
    fields: list[list[str]] = []  # [key, value, raw]
    seen: set[str] = set()
    for number, line in enumerate(lines, start=2):
        first = line[:1]
        if not line.strip() or first == "#":
            if not fields:
                fields.append(["", "", ""])
            fields[-1][2] += line + "\n"
            continue
        if first in (" ", "\t", "]", "}") or line == "-" or line.startswith("- "):
            if not fields or not fields[-1][0]:
                raise InvalidFrontmatter("a value stands before any key", number)
            if _is_unsafe_line(line, fields[-1][1]):
                raise InvalidFrontmatter("YAML tags, anchors and aliases are not taken; quote the text", number)
            fields[-1][2] += line + "\n"
            continue
        match = _FIELD.match(line)
        if match is None:
            what = "YAML merge keys are not taken" if line.startswith("<<") else "this line is not `key: value`"
            raise InvalidFrontmatter(what, number)
        key = match[1] or match[2] or match[3]
        value = (match[4] or "").strip()
        if key in seen:
            raise InvalidFrontmatter(f"the key {key!r} stands twice", number)
        if len(seen) >= MAX_FIELDS:
            raise InvalidFrontmatter(f"more than {MAX_FIELDS} keys", number)
        if value and (value[0] in "&*!" or (value[0] in "[{" and re.search(_UNSAFE_FLOW, value))):
            raise InvalidFrontmatter("YAML tags, anchors and aliases are not taken; quote the text", number)
        seen.add(key)
        fields.append([key, value, line + "\n"])
    return tuple(Field(key, value, raw) for key, value, raw in fields)


def _is_unsafe_line(line: str, value: str) -> bool:
    """Whether a continuation line of a value begins with a tag, an anchor or an alias."""
    if value[:1] in ("|", ">"):
        return False
    is_flow = value[:1] in ("[", "{") or re.match(_FLOW_ITEM, line) is not None
    return re.match(_UNSAFE_ITEM, line) is not None or (is_flow and re.search(_UNSAFE_FLOW, line) is not None)


def _unquote(raw: str) -> str:
    """The text of a scalar without quotes and trailing comment. Numbers and dates stay text."""
    value = raw.strip()
    if value[:1] == '"':
        out: list[str] = []
        position = 1
        while position < len(value):
            char = value[position]
            if char == '"':
                return "".join(out)
            if char == "\\" and position + 1 < len(value):
                position += 1
                char = {"n": "\n", "t": "\t"}.get(value[position], value[position])
            out.append(char)
            position += 1
        return value
    if value[:1] == "'":
        end = value.rfind("'")
        return value[1:end].replace("''", "'") if end > 0 else value
    comment = value.find(" #")
    return value if comment < 0 else value[:comment].rstrip()


def _split_commas(text: str) -> list[str]:
    parts: list[str] = []
    start = 0
    quoted = ""
    for position, char in enumerate(text):
        if quoted:
            if char == quoted:
                quoted = ""
        elif char in "\"'" and not text[start:position].strip():
            quoted = char
        elif char == ",":
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts
