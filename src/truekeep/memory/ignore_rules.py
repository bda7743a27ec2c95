"""The rules of a .gitignore file, as git reads them: which names of a folder, and below it, are not kept."""

from __future__ import annotations

import re
from typing import NamedTuple

_MAX_DEEP_WILDCARDS = 3  # "**" in one line; a line with more is left out
_TOKEN = re.compile(r"\*\*/|/\*\*\Z|\*+|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)


class _IgnoreRule(NamedTuple):
    pattern: re.Pattern[str]
    is_kept: bool  # a line with an exclamation mark
    is_folder: bool  # a line with a slash at its end


class IgnoreRules(NamedTuple):
    """The rules of one .gitignore file."""

    base: str  # the folder that it lies in, with a slash at its end; empty for the top
    rules: tuple[_IgnoreRule, ...]

    def find(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path is ignored (True) or kept (False); None if no rule is about it. The last rule decides."""
        inside = path.removeprefix(self.base)
        for rule in reversed(self.rules):
            if (is_folder or not rule.is_folder) and rule.pattern.match(inside):
                return not rule.is_kept
        return None


def parse_ignore_rules(base: str, text: str) -> IgnoreRules:
    """Read a .gitignore. A line that is no valid pattern is left out."""
    rules = (_parse_line(line) for line in text.splitlines())
    return IgnoreRules(base, tuple(rule for rule in rules if rule is not None))


def is_ignored(path: str, files: tuple[IgnoreRules, ...], *, is_folder: bool) -> bool:
    """Whether a path is ignored: the .gitignore nearest to it decides first."""
    for file in reversed(files):
        found = file.find(path, is_folder=is_folder)
        if found is not None:
            return found
    return False


def _parse_line(line: str) -> _IgnoreRule | None:
    line = line.rstrip() if not line.rstrip().endswith("\\") else line.rstrip() + " "
    if not line or line.startswith("#"):
        return None
    is_kept = line.startswith("!")
    line = line.removeprefix("!")
    is_folder = line.endswith("/")
    line = line.rstrip("/")
    prefix = "" if "/" in line else "(?:.*/)?"
    line = line.removeprefix("/")
    if not line:
        return None
    if line.count("**") > _MAX_DEEP_WILDCARDS:
        return None
    try:
        return _IgnoreRule(re.compile(prefix + _translate_line(line) + r"\Z"), is_kept, is_folder)
    except re.error:
        return None


def _translate_line(line: str) -> str:
    """The expression of a pattern. Text between two stars is matched at its first place only, so no line is slow."""
    parts = [""]
    for piece in _TOKEN.findall(line):
        if piece[0] == "*" and piece != "**/":
            parts.append("")
        else:
            parts[-1] += _translate(piece)
    first, *middle = parts
    last = middle.pop() if middle else None
    return first + "".join(f"(?>[^/]*?{part})" for part in middle if part) + ("" if last is None else f"[^/]*{last}")


def _translate(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "/**":
        return "/.*"
    if piece == "?":
        return "[^/]"
    if piece[0] == "[" and len(piece) > 2:
        return "[" + piece[1:].replace("\\", "\\\\").replace("!", "^", 1 if piece[1] == "!" else 0)
    return re.escape(piece[-1])
