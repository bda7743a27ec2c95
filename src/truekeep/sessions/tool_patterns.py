"""Which files, flags and commands a sentence of memory names, so that a call of a tool can be compared with it. Pure.

Code between backticks counts as a whole; elsewhere, paths, long flags, and a known program with the word behind it do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.sessions.tool_warnings import split_commands, split_flags

_CODE = re.compile(r"`+([^`\n]+)`+")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_PATH = re.compile(r"(?<![\w/.~*-])(?:~/|\./|/)?(?:[\w.*-]+/)+[\w.*-]*|(?<![\w/.@-])[\w-]+\.[a-z][a-z0-9]{0,4}\b(?!/)")
_ENDING_WORDS = """
c cc cfg conf cpp css csv env go h hpp html ini java js json jsx kt lock lua md mjs php pl proto ps1 py rb rs
sass scala scss sh sql sqlite svelte swift tf toml ts tsx txt vue xml yaml yml zig
"""
_ENDINGS = frozenset(_ENDING_WORDS.split())
_NAMED = re.compile(r"(?:Make|Docker|Just|Proc|Rake|Gem|Vagrant|Jenkins|Caddy)file\Z|\.[a-z][\w.-]+\Z")
_PROGRAM_WORDS = """
alembic ansible ansible-playbook apt apt-get aws az bash brew bun bundle cargo composer crontab curl dd deno
django-admin docker docker-compose dotnet eslint find firebase flutter fly flyctl gcloud gh git go gradle grep
gsutil helm heroku jest just kill killall kubectl launchctl make mvn mysql netlify next node npm nx openclaw
pip pip3 pkill pnpm podman poetry prettier prisma psql pytest python python3 rails rake redis-cli rm rsync ruff
rustup scp sed serverless sqlite3 ssh sudo supabase systemctl tar terraform tofu tox truekeep tsc turbo uv
vercel vite vitest wget wrangler yarn
"""
PROGRAMS = frozenset(_PROGRAM_WORDS.split())
_COMMAND = re.compile(
    rf"(?<![\w/.-])(?:{'|'.join(sorted(map(re.escape, PROGRAMS), key=len, reverse=True))})"
    r"(?: --?[\w-]+)*(?: [a-z][\w:./-]*)(?: --?[\w-]+)*"
)


class ToolPatterns(NamedTuple):
    """The files and commands that a text names."""

    files: tuple[str, ...]
    commands: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]  # program ("" any), words, flags

    def __bool__(self) -> bool:
        return bool(self.files or self.commands)


def find_patterns(text: str) -> ToolPatterns:
    """What a text names."""
    files: dict[str, None] = {}
    commands: dict[tuple[str, tuple[str, ...], tuple[str, ...]], None] = {}
    flags: dict[str, None] = {}
    bare = _CODE.sub(" \0 ", text)
    for code in _CODE.findall(text):
        code = code.strip()
        first = code.split(" ", 1)[0]
        if code.startswith("-") and " " not in code:
            flags.update(dict.fromkeys(split_flags(code)))
        elif is_path(code):
            files[code] = None
        elif " " in code or first in PROGRAMS:
            commands.update(dict.fromkeys(_commands(code)))
    for match in _COMMAND.finditer(bare):
        commands.update(dict.fromkeys(_commands(match[0])))
    flags.update(dict.fromkeys(_FLAG.findall(bare)))
    files.update(dict.fromkeys(found for found in _PATH.findall(bare) if is_path(found)))
    programs = [program for program, _, _ in commands] or [""]
    for flag in flags:
        commands.update(dict.fromkeys((program, (), (flag,)) for program in programs))
    if flags:  # a command together with a flag is what was meant, not the command alone
        commands = {item: None for item in commands if item[2]}
    return ToolPatterns(tuple(files), tuple(commands))


def is_path(text: str) -> bool:
    """Whether a word is a file's path, a folder's with a slash at its end, or a pattern of them."""
    if not text or " " in text or "://" in text or text.startswith("-") or not text.strip("./"):
        return False
    name = text.rstrip("/").rpartition("/")[2]
    ending = name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""
    if ending in _ENDINGS or _NAMED.match(name):
        return True
    return text.endswith("/") or ("/" in text and "*" in name)


def _commands(code: str) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    for command in split_commands(code):
        # Names that stand for others, such as <branch> or BRANCH, match anything.
        words = tuple(word for word in command.words if word[:1].isalnum() and not word.isupper() and "…" not in word)
        if re.match(r"[a-z][\w.+-]*\Z", command.program) and (words or command.flags or command.program in PROGRAMS):
            yield command.program, words, tuple(sorted(command.flags))
