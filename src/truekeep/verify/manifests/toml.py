"""TOML with the line of every entry, which neither tomllib nor tomlkit gives."""

from __future__ import annotations

import re

from truekeep.verify.manifests.formats import LazyPattern, Leaf, LineCounter, ValueTable
from truekeep.verify.manifests.model import MAX_DEPTH, UnreadableManifest

_GAP = LazyPattern(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_END = LazyPattern(r"[ \t\r]*+(?:#[^\n]*+)?(?:\n|\Z)")
_KEY = LazyPattern(r"[ \t]*+(?:([A-Za-z0-9_-]++)|\"((?:[^\"\\\n]++|\\.)*+)\"|'([^'\n]*+)')[ \t]*+(\.)?")
_LONG = LazyPattern(r"\"\"\"((?:[^\"\\]++|\\.|\"\"?(?!\"))*+)\"{3,5}", re.DOTALL)
_BASIC = LazyPattern(r"\"((?:[^\"\\\n]++|\\.)*+)\"")
_BARE = LazyPattern(r"[^\s,\[\]{}#\"'=][^,\[\]{}#\"'=\n]*+")
_ESCAPE = LazyPattern(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[ \t]*\n\s*|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}


def parse_toml(text: str) -> ValueTable:
    """Parse a file into a table. Every scalar stays text; dates and numbers are not checked."""
    return _TomlReader(text).read()


class _TomlReader:
    """Reads one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = LineCounter(text)

    def read(self) -> ValueTable:
        root = table = ValueTable(1)
        text, at = self.text, 0
        while True:
            at = self._gap(at)
            if at >= len(text):
                return root
            line = self.lines.line_at(at)
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
                raise UnreadableManifest(f"line {line}: unexpected text after the value")
            at = end.end()

    def _gap(self, at: int) -> int:
        match = _GAP.match(self.text, at)
        return match.end() if match else at

    def _key(self, at: int) -> tuple[list[str], int]:
        keys: list[str] = []
        while len(keys) < MAX_DEPTH:
            match = _KEY.match(self.text, at)
            if match is None:
                break
            at = match.end()
            keys.append(match[1] or (_unescaped(match[2]) if match[2] is not None else match[3]) or "")
            if not match[4]:
                return keys, at
        raise UnreadableManifest(f"line {self.lines.line_at(at)}: this is not `key = value`")

    def _open(self, table: ValueTable, keys: list[str], line: int, *, is_list: bool = False) -> ValueTable:
        """Return the table of a header, made if needed; in a list of tables always a new one."""
        for key in keys[:-1] if is_list else keys:
            node = table.setdefault(key, ValueTable(line))
            if isinstance(node, ValueTable) and node.is_list and node:
                node = node[str(len(node) - 1)]
            if not isinstance(node, ValueTable):
                raise UnreadableManifest(f"line {line}: {key[:60]!r} is defined twice")
            table = node
        if is_list:
            nodes = table.setdefault(keys[-1], ValueTable(line, is_list=True))
            if not isinstance(nodes, ValueTable) or not nodes.is_list:
                raise UnreadableManifest(f"line {line}: {keys[-1][:60]!r} is defined twice")
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
            raise UnreadableManifest(f"line {line}: {keys[-1][:60]!r} is defined twice")
        if isinstance(value, Leaf):
            value = Leaf(value.text, line)  # for a long text, the line of its key
        else:
            value.line = line
        table[keys[-1]] = value
        return at

    def _value(self, at: int, depth: int) -> tuple[Leaf | ValueTable, int]:
        text = self.text
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        line = self.lines.line_at(at)
        first = text[at : at + 1]
        if first in ("[", "{") and first:
            if depth >= MAX_DEPTH:
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
            here = self.lines.line_at(at)
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
