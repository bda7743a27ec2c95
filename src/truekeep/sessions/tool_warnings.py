"""What memory says against the file or command that an agent is about to touch, in one line. Hooks wait for this.

Corrections, gating policies and refuted memories that name files, flags or commands are prepared beforehand in one
small file (`workspace/tool_warning_file.py`); here they are only compared with one call of a tool. Nothing else of
memory is opened.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

FILE = "tool-warnings.json"  # below the state folder
FORMAT = 1
MAX_FILE_BYTES = 1_000_000
MAX_COMMAND_CHARS = 20_000
_TOKEN = re.compile(r""""[^"\n]*"|'[^'\n]*'|[;&|()\n]+|[^\s;&|()<>"']+""")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)[ \t]*$", re.MULTILINE)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_SHORT = re.compile(r"-[A-Za-z]{2,4}\Z")  # several flags in one word
_WRAPPERS = ("sudo", "env", "time", "nohup", "exec", "command", "npx", "uvx")


class ShellCommand(NamedTuple):
    """One simple command: its program, and its words and flags."""

    program: str
    words: tuple[str, ...]
    flags: frozenset[str]


class ToolCall(NamedTuple):
    """What a tool is about to touch: files, by path, and commands."""

    files: tuple[str, ...]
    commands: tuple[ShellCommand, ...]


class ToolWarning(NamedTuple):
    """One line for the agent, and its key."""

    key: str
    line: str


def is_outdated(workspace: str, sources: Sequence[str]) -> bool:
    """Whether one of these files of a workspace is newer than the warnings."""
    try:
        made = os.stat(os.path.join(workspace, ".truekeep", FILE)).st_mtime
    except OSError:
        made = 0.0
    for source in sources:
        with suppress(OSError):
            if os.stat(os.path.join(workspace, source)).st_mtime > made:
                return True
    return False


# --- The call --------------------------------------------------------------------------------------------------------


def read_call(given: Mapping[str, Any]) -> ToolCall:
    """What a tool's input names, as Claude Code and Codex write it."""
    files = [given[key] for key in ("file_path", "notebook_path", "path") if isinstance(given.get(key), str)]
    command = given.get("command") or given.get("cmd") or ""
    if isinstance(command, list):
        command = str(command[-1]) if command else ""
    if not isinstance(command, str):
        command = ""
    command = command[:MAX_COMMAND_CHARS]
    files += _PATCHED.findall(command)
    commands = () if command.startswith("*** Begin Patch") else tuple(split_commands(command))
    for item in commands:
        files += [word for word in item.words if "/" in word or "." in word]
    return ToolCall(tuple(files), commands)


def split_commands(text: str) -> Iterator[ShellCommand]:
    """The simple commands of a shell command line. Quoted texts are single words."""
    tokens: list[str] = []
    for token in (*_TOKEN.findall(text), ";"):
        if token[0] not in ";&|()\n":
            tokens.append(token.strip("\"'"))
            continue
        while tokens and (_ASSIGNED.match(tokens[0]) or tokens[0] in _WRAPPERS):
            del tokens[0]
        if tokens:
            words = [word for word in tokens[1:] if not word.startswith("-")]
            flags = [flag for word in tokens[1:] if word.startswith("-") for flag in split_flags(word)]
            yield ShellCommand(tokens[0].rpartition("/")[2], tuple(words), frozenset(flags))
        tokens = []


def split_flags(word: str) -> list[str]:
    """The flags in a word: `-rf` is two, and a value after an equals sign is not one."""
    word = word.partition("=")[0]
    return [f"-{letter}" for letter in word[1:]] if _SHORT.match(word) else [word]


# --- Comparison ------------------------------------------------------------------------------------------------------


def find_warning(path: str, call: ToolCall, *, repository: str, root: str, told: Container[str]) -> ToolWarning | None:
    """The first warning that this call calls for and the session was not told yet."""
    files = [_below(file, root) for file in call.files]
    for warning in _read(path):
        if warning["key"] in told or not _names_call(warning, files, call.commands):
            continue
        if _is_here(warning["where"], repository.casefold(), root):
            return ToolWarning(warning["key"], warning["line"])
    return None


def _read(path: str) -> list[dict[str, Any]]:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            stored = json.loads(file.read(MAX_FILE_BYTES))
        if stored["format"] != FORMAT:
            return []
        return [*stored["lessons"], *(item for items in (stored["refuted"] or {}).values() for item in items)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _below(file: str, root: str) -> str:
    """A file's path from the root of the repository, if it is inside."""
    file = os.path.normpath(os.path.expanduser(file))
    return file[len(root) + 1 :] if root and file.startswith(f"{root}/") else file


def _names_call(warning: Mapping[str, Any], files: Sequence[str], commands: Sequence[ShellCommand]) -> bool:
    if any(_is_file(pattern, file) for pattern in warning["files"] for file in files):
        return True
    for command in commands:
        for program, words, flags in warning["commands"]:
            if program in ("", command.program) and command.flags.issuperset(flags) and _follow(words, command.words):
                return True
    return False


def _is_file(pattern: str, file: str) -> bool:
    """Whether a pattern names a file: `./a.py` from the root, `a/` anything below, `*.sql` by the shell's rules."""
    if pattern.startswith("./"):
        return file == pattern[2:] or (pattern.endswith("/") and file.startswith(pattern[2:]))
    if pattern.endswith("/"):
        return f"/{pattern}" in f"/{file}"
    if "*" in pattern:
        from fnmatch import fnmatchcase

        return fnmatchcase(f"/{file}", f"*/{pattern}")
    return file == pattern or file.endswith(f"/{pattern}")


def _follow(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words are there in this order, the first of them first."""
    if not wanted:
        return True
    rest = iter(words)
    return next(rest, "") == wanted[0] and all(word in rest for word in wanted[1:])


def _is_here(where: Sequence[str], repository: str, root: str) -> bool:
    """Whether a warning applies to this repository: it names it, or a file in it. Without a place it applies to all."""
    for place in where:
        kind, _, name = place.partition(":")
        if kind == "repository" and f"/{repository}".endswith(f"/{name}"):
            return True
        if kind == "file" and root and os.path.lexists(os.path.join(root, name)):
            return True
    return not where
