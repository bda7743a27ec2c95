"""The instruction files (CLAUDE.md, AGENTS.md) of the repositories that are checked out here, and of the user."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING

from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.handoffs.policy_store import INSTRUCTION_FILES
from truekeep.maintenance.reconcile import values_in
from truekeep.memory.card import words_of
from truekeep.memory.file_scan import read_memory_file
from truekeep.memory.opposite_rules import Rule, find_rules
from truekeep.text.encoding import decode_text
from truekeep.verify.checkouts import choose_checkout

if TYPE_CHECKING:
    from truekeep.maintenance.survey.service import StatedValue
    from truekeep.verify.checkouts import Checkout
    from truekeep.workspace.workspace import Workspace

MAX_BYTES = 262_144
USER = "~"  # in place of a repository: the files in the user's home
_USER_FILES = (("CLAUDE_CONFIG_DIR", "~/.claude", "CLAUDE.md"), ("CODEX_HOME", "~/.codex", "AGENTS.md"))
_OWN_BLOCK = re.compile(rf"{re.escape(BEGIN_MARK)}.*?{re.escape(END_MARK)}[^\n]*", re.DOTALL)


class RepositoryInstructions:
    """Reads each instruction file once a run."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._texts = cache(self._read)
        self.values = cache(self._find_values)
        self.rules = cache(self._find_rules)

    @cached_property
    def _checkouts(self) -> list[Checkout]:
        return self._workspace.repositories.checkouts()

    def checkout_of(self, repository: str) -> str:
        """The folder of a repository's checkout on this machine, or ""."""
        chosen = choose_checkout(repository, self._checkouts)
        return chosen.root if chosen is not None and not chosen.problem else ""

    def paths(self, repository: str) -> list[str]:
        """The paths that instruction files of a repository, or of the user, may have."""
        if repository == USER:
            return [path for path, _ in _user_paths()]
        root = self.checkout_of(repository)
        return [os.path.join(root, name) for name in INSTRUCTION_FILES] if root else []

    def lines(self, repository: str) -> str:
        """The words of every line of the instruction files of a repository, for comparing."""
        texts = (text for _, text in self._texts(repository))
        return "\n".join(" ".join(words_of(line)) for text in texts for line in text.split("\n"))

    def _find_values(self, repository: str) -> list[StatedValue]:
        """The values that the instruction files of a repository state."""
        if not repository:
            return []
        return [
            item
            for path, text in self._texts(repository)
            for item in values_in(path, text, store="instructions", day="", repository=repository)
        ]

    def _find_rules(self, repository: str) -> list[tuple[str, Rule]]:
        """The rules and preferences of the instruction files of a repository, or of the user, with their files."""
        return [(path, rule) for path, text in self._texts(repository) for rule in find_rules(text)]

    def _read(self, repository: str) -> tuple[tuple[str, str], ...]:
        names = {path: f"{repository}/{os.path.basename(path)}" for path in self.paths(repository)}
        names |= dict(_user_paths()) if repository == USER else {}
        texts = ((name, _read_text(path)) for path, name in names.items())
        return tuple((name, _OWN_BLOCK.sub(_blank_lines, text)) for name, text in texts if text is not None)


def _user_paths() -> list[tuple[str, str]]:
    """The instruction files of the user: each path, and how it is shown."""
    found = []
    for variable, folder, name in _USER_FILES:
        root = os.environ.get(variable) or os.path.expanduser(folder)
        found.append((os.path.join(root, name), f"{folder}/{name}"))
    return found


def _blank_lines(match: re.Match[str]) -> str:
    """Empty lines in place of truekeep's own text, so that the lines below keep their numbers."""
    return "\n" * match[0].count("\n")


def _read_text(path: str) -> str | None:
    """The text of a file outside of the workspace; links are not followed."""
    with suppress(OSError):
        data, _ = read_memory_file(path)
        return decode_text(data[:MAX_BYTES])
    return None
