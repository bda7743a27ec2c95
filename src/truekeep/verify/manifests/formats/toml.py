"""TOML, with lines."""

from __future__ import annotations

import re

from truekeep.verify.manifests.formats.table import Leaf, ValueTable
from truekeep.verify.manifests.limits import DEEPEST
from truekeep.verify.manifests.text import Pattern, Places, UnreadableManifest

_GAP = Pattern(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_END = Pattern(r"[ \t\r]*+(?:#[^\n]*+)?(?:\n|\Z)")
_KEY = Pattern(r"[ \t]*+(?:([A-Za-z0-9_-]++)|\"((?:[^\"\\\n]++|\\.)*+)\"|'([^'\n]*+)')[ \t]*+(\.)?")
_LONG = Pattern(r"\"\"\"((?:[^\"\\]++|\\.|\"\"?(?!\"))*+)\"{3,5}", re.DOTALL)
_BASIC = Pattern(r"\"((?:[^\"\\\n]++|\\.)*+)\"")
_BARE = Pattern(r"[^\s,\[\]{}#\"'=][^,\[\]{}#\"'=\n]*+")
_ESCAPE = Pattern(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[ \t]*\n\s*|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


def parse_toml(text: str) -> ValueTable:
    """A file as a table. Every scalar stays text; dates and numbers are not looked into."""
    return _TomlReader(text).read()


class _TomlReader:
    """A text on its way to a table."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places = Places(text)

    def read(self) -> ValueTable:
        root = table = ValueTable(1)
        text, at = self.text, 0
        while True:
            at = self._gap(at)
            if at >= len(text):
                return root
            line = self.places.line(at)
            if text[at] == "[":
                is_list = text.startswith("[[", at)
                keys, at = self._key(at + 1 + is_list)
                closing = "]]" if is_list else "]"
                if not text.startswith(closing, at):
                    raise UnreadableManifest(f"line {line}: a table's name is not closed")
                at += len(closing)
                table = self._open(root, keys, line, is_list=is_list)
            else:
                at = self._pair(table, at, line, 0)
            end = _END.match(text, at)
            if end is None:
                raise UnreadableManifest(f"line {line}: something stands after the value")
            at = end.end()

    def _gap(self, at: int) -> int:
        match = _GAP.match(self.text, at)
        return match.end() if match else at

    def _key(self, at: int) -> tuple[list[str], int]:
        keys: list[str] = []
        while len(keys) < DEEPEST:
            match = _KEY.match(self.text, at)
            if match is None:
                break
            at = match.end()
            keys.append(match[1] or (_unescaped(match[2]) if match[2] is not None else match[3]) or "")
            if not match[4]:
                return keys, at
        raise UnreadableManifest(f"line {self.places.line(at)}: this is not `key = value`")

    def _open(self, table: ValueTable, keys: list[str], line: int, *, is_list: bool = False) -> ValueTable:
        """The table of a header, made when it is new; in a list of tables always a new one."""
        for key in keys[:-1] if is_list else keys:
            node = table.setdefault(key, ValueTable(line))
            if isinstance(node, ValueTable) and node.is_list and node:
                node = node[str(len(node) - 1)]
            if not isinstance(node, ValueTable):
                raise UnreadableManifest(f"line {line}: {key[:60]!r} stands twice")
            table = node
        if is_list:
            nodes = table.setdefault(keys[-1], ValueTable(line, is_list=True))
            if not isinstance(nodes, ValueTable) or not nodes.is_list:
                raise UnreadableManifest(f"line {line}: {keys[-1][:60]!r} stands twice")
            table = ValueTable(line)
            nodes[str(len(nodes))] = table
        return table

    def _pair(self, table: ValueTable, at: int, line: int, depth: int) -> int:
        keys, at = self._key(at)
        if not self.text.startswith("=", at):
            raise UnreadableManifest(f"line {line}: this is not `key = value`")
        value, at = self._value(at + 1, depth)
        table = self._open(table, keys[:-1], line)
        if keys[-1] in table:
            raise UnreadableManifest(f"line {line}: {keys[-1][:60]!r} stands twice")
        if isinstance(value, Leaf):
            value = Leaf(value.text, line)  # of a long text the line of its key
        else:
            value.line = line
        table[keys[-1]] = value
        return at

    def _value(self, at: int, depth: int) -> tuple[Leaf | ValueTable, int]:
        text = self.text
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        line = self.places.line(at)
        first = text[at : at + 1]
        if first in ("[", "{") and first:
            if depth >= DEEPEST:
                raise UnreadableManifest(f"line {line}: nested too deeply")
            return self._nested(at, line, depth + 1)
        if text.startswith("'''", at):
            end = text.find("'''", at + 3)
            if end >= 0:
                close = end + 3
                while close < end + 5 and text[close : close + 1] == "'":
                    close += 1
                return Leaf(text[at + 3 : close - 3].removeprefix("\n"), line), close
        elif first == "'":
            end = text.find("'", at + 1)
            if end >= 0 and "\n" not in text[at:end]:
                return Leaf(text[at + 1 : end], line), end + 1
        else:
            pattern = _LONG if text.startswith('"""', at) else _BASIC if first == '"' else _BARE
            match = pattern.match(text, at)
            if match:
                if pattern is _BARE:
                    return Leaf(match[0].rstrip(), line), match.end()
                extra = match.end() - match.end(1) - 3 if pattern is _LONG else 0
                body = _unescaped(match[1].removeprefix("\n") if pattern is _LONG else match[1])
                return Leaf(body + '"' * extra, line), match.end()
        raise UnreadableManifest(f"line {line}: this value is not TOML")

    def _nested(self, at: int, line: int, depth: int) -> tuple[ValueTable, int]:
        text = self.text
        is_list = text[at] == "["
        closing = "]" if is_list else "}"
        table = ValueTable(line, is_list=is_list)
        at = self._gap(at + 1)
        while not text.startswith(closing, at):
            here = self.places.line(at)
            if is_list:
                value, at = self._value(at, depth)
                table[str(len(table))] = value
            else:
                at = self._pair(table, at, here, depth)
            at = self._gap(at)
            if text.startswith(",", at):
                at = self._gap(at + 1)
            elif not text.startswith(closing, at):
                raise UnreadableManifest(f"line {here}: a comma or {closing} is missing")
        return table, at + 1


def _unescaped(raw: str) -> str:
    return _ESCAPE.sub(_character, raw) if "\\" in raw else raw


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
    return _ESCAPES.get(match[3], match[3]) if match[3] else ""
