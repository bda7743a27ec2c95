"""Chooses the workspace that commands and hooks use after one was made, for `init` and `alf import`."""

from __future__ import annotations

import os
from pathlib import Path

from truekeep.core.default_workspace import (
    find_damaged,
    find_usual,
    find_workspace,
    is_workspace,
    read_remembered,
    remember,
)
from truekeep.core.errors import as_argument
from truekeep.core.machine import below_home
from truekeep.text.unicode import printable


def find_in_use() -> str:
    """The workspace that commands and hooks of this user use now, or "". Call it before making another."""
    return next(filter(is_workspace, (read_remembered() or find_usual(), find_workspace())), "")


def choose_workspace(path: Path, in_use: str, *, is_default: bool = False) -> list[str]:
    """Remember a workspace that was just made, unless another one is in use; what to say about it."""
    noted = read_remembered()
    if in_use and not is_same(in_use, path) and not is_default:
        if not noted and not os.environ.get("TRUEKEEP_WORKSPACE"):
            remember(in_use)  # or the one that was just made could come first, as OpenClaw's own folder
        return [
            f"commands and hooks still use {_shown(in_use)}",
            f"  `truekeep init {as_argument(path)} --default` makes them use this one",
        ]
    is_usual = not find_damaged() and is_same(find_workspace(), path)
    remember(path)
    if noted and is_same(noted, path):
        return []
    before = noted or in_use
    if before and not is_same(before, path):
        return [f"every later command and hook uses it, not {_shown(before)}"]
    return [] if is_usual else ["every later command and hook uses it"]


def _shown(path: str) -> str:
    return printable(below_home(path, os.path.expanduser("~")))


def is_same(one: str, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
