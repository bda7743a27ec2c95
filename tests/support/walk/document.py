"""The walk as a page of the documents: what was typed, on which machine, and what was seen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.walk.world import Told, Typed

DOCUMENT = Path(__file__).parents[3] / "docs" / "walk.md"
_HEAD = """\
# A walk through all of it

One memory on three machines, from the first command to the day on which a fourth takes over. This page is what a run
printed: `make walk` writes it, and `tests/integration/test_walk.py` walks the same way in CI, with real ssh between the
machines, a real browser, and the real Claude Code and Codex (with a stub for their models) where they are installed. In
the middle all clocks go ahead by fourteen weeks. Long output is cut where it says `[…]`.
"""
_WIDE = 100  # characters of a command
_SHORT = 14  # lines that are shown of what is long
_BREAKS = re.compile(r" (?=--(?:title|summary|fact|card|decision|content|permission-mode|dangerously)|&& )")
_PLAYED = re.compile(r"\w+ \S+\$ (?:claude -p|codex exec|truekeep serve)")


def render(story: Iterable[Typed | Told]) -> str:
    return "\n".join([_HEAD, *_parts(story)])


def _parts(story: Iterable[Typed | Told]) -> Iterator[str]:
    block: list[str] = []
    for item in story:
        if isinstance(item, Typed):
            block += [f"{item.machine} {item.folder}$ {_wrapped(item.command)}", *_shown(item), ""]
            continue
        if block:
            yield "\n".join(["```", *block[:-1], "```", ""])
            block = []
        yield f"## {item.text}\n" if item.is_heading else f"{textwrap.fill(item.text, 120, break_on_hyphens=False)}\n"
    if block:
        yield "\n".join(["```", *block[:-1], "```", ""])


def _wrapped(command: str) -> str:
    """A long command over several lines, as a shell takes it."""
    return _BREAKS.sub(" \\\n    ", command) if len(command) > _WIDE else command


def _shown(item: Typed) -> list[str]:
    """What was seen, but for what says little here: the middle of long texts, and how a harness begins."""
    lines = [line.rstrip() for line in item.said.strip("\n").splitlines()]
    if item.part == "agent":
        return lines if len(lines) <= _SHORT else ["[…]", *lines[-_SHORT:]]
    kept: list[str] = []
    added = 0
    for line in lines:
        added = added + 1 if line.startswith("+ ") or line == "+" else 0
        if added <= _SHORT // 3:
            kept.append(line)
        elif kept[-1] != "[…]":
            kept.append("[…]")
    return kept


def headings_of(text: str) -> list[str]:
    """The chapters of a page."""
    return re.findall(r"(?m)^## (.*)$", re.sub(r"(?ms)^```$.*?^```$", "", text))


def commands_of(text: str) -> list[str]:
    """The commands of a page, with machine and folder, but for those of agents and reviewers."""
    found: list[str] = re.findall(r"(?m)^\w+ ~\S*\$ (?:.*\\\n)*.*$", text)
    return [command for command in found if not _PLAYED.match(command)]


def commands_typed(story: Iterable[Typed | Told]) -> list[str]:
    """The same of a walk."""
    typed = [item for item in story if isinstance(item, Typed) and not item.part]
    return [f"{item.machine} {item.folder}$ {_wrapped(item.command)}" for item in typed]
