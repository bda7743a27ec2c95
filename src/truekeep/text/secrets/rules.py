"""The formats of credentials, read from `rules.toml`: vendors' tokens, containers, and passwords in prose.

The gates of `scanner` look for the keywords and hook of each rule; its pattern is tried next, and its judge decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from truekeep.text.secrets import false_positives

Judge = Callable[[bytes, bytes, bytes], bool]
"""Decides, from a value and the text before and after it, whether a match is a credential or only looks like one."""

_FILE = os.path.join(os.path.dirname(__file__), "rules.toml")
_JUDGES: Mapping[str, Judge] = {
    "block": false_positives.is_block,
    "credential": false_positives.is_credential,
    "key": false_positives.is_key,
    "mixed-token": false_positives.is_mixed_token,
    "password": false_positives.is_password,
    "spoken-password": false_positives.is_spoken_password,
    "token": false_positives.is_token,
    "url-password": false_positives.is_url_password,
}
_TOKEN_HOOK_BYTES = 8  # of a body, behind a prefix that begins a word
_NAME = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")


class SecretRule(NamedTuple):
    """One format. The credential is the group of the pattern, if it has one, and else the whole match."""

    name: str
    pattern: str
    keywords: tuple[bytes, ...]
    """One of these is in the text, or the pattern is not tried."""
    hook: str
    """A gate looks for this behind a keyword; with `in_prose`, on its own."""
    judge: Judge
    is_word: bool = False
    """The keywords are at the beginning of a word."""
    joins: bool = False
    """The format is distinctive enough to be looked for across line breaks."""
    in_prose: bool = False
    """A value in the place where commands, headers and people put one. Keywords are in lower case."""


@cache
def load_rules() -> tuple[SecretRule, ...]:
    """The rules in the order of the file."""
    import tomllib  # only for programs that read untrusted text

    with open(_FILE, "rb") as file:
        content = tomllib.load(file)
    reader = _RuleReader(content["names"])
    return tuple(reader.read(entry) for entry in content["rule"])


class _RuleReader:
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def read(self, entry: dict[str, Any]) -> SecretRule:
        if "token" in entry:
            return self._read_token(entry["id"], self._expand(entry["token"]))
        return SecretRule(
            name=entry["id"],
            pattern=self._pattern(entry),
            keywords=_encode(entry["keywords"]),
            hook=self._expand(entry.get("hook", "{GIVEN}" if "vendor" in entry else "")),
            judge=_JUDGES[entry.get("judge", "token")],
            is_word=entry.get("word", False),
            joins=not _is_prose(entry) and entry.get("judge") != "block",
            in_prose=_is_prose(entry),
        )

    def _read_token(self, name: str, token: str) -> SecretRule:
        """A rule for published prefixes and the body behind them."""
        *prefixes, body = token.split(" ")
        is_word = prefixes[0] == r"\b"
        if is_word:
            prefixes = prefixes[1:]
        start = (r"\b" if is_word else "") + "(?:" + "|".join(map(re.escape, prefixes)) + ")"
        hook = _start_of(body.rpartition("{")[0]) if is_word else ""
        return SecretRule(
            name=name,
            pattern=start + body,
            keywords=_encode(prefixes),
            hook=hook,
            judge=_JUDGES["token"],
            is_word=is_word,
            joins=True,
        )

    def _pattern(self, entry: dict[str, Any]) -> str:
        if "vendor" in entry:
            name = rf"(?i:{entry['vendor']})[A-Za-z0-9_. -]{{0,24}}?(?i:key|token|secret|password|auth|credential)"
            return self._expand(rf"{name}[A-Za-z_]{{0,10}}{{GETS}}({entry['value']})(?:[^A-Za-z0-9]|\z)")
        if "spoken" in entry:
            value = f"{{FIRST}}{{PLAIN}}{{{entry['least'] - 2},}}{{LAST}}"
            return self._expand(f"(?i:{entry['spoken']}){entry['gap']}({value})")
        return self._expand(entry["pattern"])

    def _expand(self, expression: str) -> str:
        """The expression on one line, with names replaced."""
        if "\n" in expression:
            expression = "".join(line.lstrip(" ") for line in expression.split("\n"))
        if "{" not in expression:
            return expression
        return _NAME.sub(lambda match: self._expand(self._names[match[1]]), expression)


def _is_prose(entry: dict[str, Any]) -> bool:
    return "vendor" in entry or "spoken" in entry or entry.get("prose", False)


def _start_of(alphabet: str) -> str:
    """The first characters of a body, fewer if a line ends there."""
    return rf"(?:{alphabet}{{{_TOKEN_HOOK_BYTES}}}|{alphabet}{{0,{_TOKEN_HOOK_BYTES - 1}}}[ \t\\]*\r?\n)"


def _encode(words: list[str]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)
