"""JSON5, for reading only: OpenClaw's configuration as people write it. Anything that is not JSON5 is a ValueError."""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEEP = 100

_TOKEN = re.compile(
    r"""
    (?P<space> (?: \s | \ufeff | //[^\n\r]* | /\*.*?\*/ )+ )
    | (?P<mark> [{}\[\],:] )
    | (?P<text> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<number> [+-]?(?: 0[xX][0-9a-fA-F]+ | (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? | Infinity | NaN )(?![\w$]) )
    | (?P<name> [A-Za-z_$][\w$]* )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": "", "\r": ""}

Token = tuple[str, str]


def parse_json5(text: str) -> Any:
    """The value that a JSON5 text stands for."""
    tokens = _tokens(text)
    value, at = _value(tokens, 0, 0)
    if at != len(tokens) - 1:
        raise ValueError("something follows the value")
    return value


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"line {text.count(chr(10), 0, at) + 1} is not JSON5")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
        at = match.end()
    return [*found, ("end", "")]


def _value(tokens: list[Token], at: int, depth: int) -> tuple[Any, int]:
    kind, word = tokens[at]
    if depth > MOST_DEEP:
        raise ValueError("nested too deeply")
    if word == "{" and kind == "mark":
        return _object(tokens, at + 1, depth + 1)
    if word == "[" and kind == "mark":
        return _list(tokens, at + 1, depth + 1)
    if kind == "text":
        return _string(word), at + 1
    if kind == "number" or word in ("Infinity", "NaN"):
        return _number(word), at + 1
    if kind == "name" and word in _WORDS:
        return _WORDS[word], at + 1
    raise ValueError(f"a value is missing before {word or 'the end'!r}")


def _object(tokens: list[Token], at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while tokens[at] != ("mark", "}"):
        kind, word = tokens[at]
        if kind not in ("text", "name") or tokens[at + 1] != ("mark", ":"):
            raise ValueError(f"a key is missing before {word or 'the end'!r}")
        found[_string(word) if kind == "text" else word], at = _value(tokens, at + 2, depth)
        at = _after_item(tokens, at, "}")
    return found, at + 1


def _list(tokens: list[Token], at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while tokens[at] != ("mark", "]"):
        item, at = _value(tokens, at, depth)
        found.append(item)
        at = _after_item(tokens, at, "]")
    return found, at + 1


def _after_item(tokens: list[Token], at: int, close: str) -> int:
    if tokens[at] == ("mark", ","):
        return at + 1
    if tokens[at] == ("mark", close):
        return at
    raise ValueError(f"a comma or {close} is missing before {tokens[at][1] or 'the end'!r}")


def _string(word: str) -> str:
    if word.startswith('"'):
        try:
            return str(json.loads(word))
        except ValueError:
            pass
    return _ESCAPE.sub(lambda found: _unescape(found[1]), word[1:-1])


def _unescape(word: str) -> str:
    if word[0] in "ux" and len(word) > 1:
        return chr(int(word[1:], 16))
    return _ESCAPED.get(word, word)


def _number(word: str) -> float | int:
    bare = word.lstrip("+-")
    if bare[:2] in ("0x", "0X"):
        return int(bare, 16) * (-1 if word.startswith("-") else 1)
    try:
        return int(word)
    except ValueError:
        return float(word.replace("Infinity", "inf"))
