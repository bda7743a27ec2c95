"""Which folder a part of a document says that it is about: a label, a heading, or the words above a list or table.

"**Path:** `~/projects/shop`" says where everything below it is, "Files in `reports/`:" where the files of the list are.
A document of a workspace may be about a project that is elsewhere; its names are then no names of the workspace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from truekeep.text.phrases import load_phrases
from truekeep.verify.claims.patterns import is_file

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s|\s*\||\s+\S")  # also the lines below an item
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FOLDER = re.compile(
    r"(?<![\w./~:@-])(?P<path>(?:~|/(?:home|Users|root|opt|srv|mnt|data|var|workspace|app)\b)(?:/[\w.@+-]+)+/?"
    r"|(?:\./)?[\w.@+-]+(?:/[\w.@+-]+)*/)(?![\w/@<{\[$]|\*(?!\*))"  # a folder, and no pattern; perhaps in bold letters
)
_REPOSITORY = re.compile(r"(?:https?://|git@)(?P<name>(?:github|gitlab|bitbucket|codeberg)\.\w+[/:][\w.-]+/[\w-]+)")
_MAX_LABEL_LINES = 12  # below the heading: further down, a label is of one thing among many
_MAX_LINE_CHARS = 400


class DeclaredFolder(NamedTuple):
    """What a part of a document is about: a folder, as written, or a repository (host/owner/name)."""

    folder: str = ""
    repository: str = ""


NOTHING = DeclaredFolder()


@cache
def _label() -> re.Pattern[str]:
    labels = load_phrases("claims").any_of("folder.label")
    return re.compile(
        rf"(?:[-*+>|] ?)?[*_`]*(?:\w+ ){{0,2}}?(?:{labels})[*_`]*\s*[:：|][*_]*\s*(?P<value>\S.*)", re.IGNORECASE
    )


def find_declared_folders(lines: Sequence[str], *, is_log: bool = False) -> list[DeclaredFolder]:
    """For each line, what the part that it is in says that it is about. The innermost part counts.

    The head of a document speaks for all of it; a log tells of one thing after another, and has no head.
    """
    reader = _PartsReader(is_log)
    return [reader.read(line[:_MAX_LINE_CHARS]) for line in lines]


class _PartsReader:
    """Reads a document line by line, and keeps what its head, its sections and its lists declare."""

    def __init__(self, is_log: bool) -> None:
        self._is_log = is_log
        self._head = _Part(0)
        self._sections: list[_Part] = []
        self._of_list = NOTHING
        self._headings = self._below_heading = 0
        self._is_fenced = False

    def read(self, line: str) -> DeclaredFolder:
        """What the part of the next line declares."""
        if _FENCE.match(line):
            self._is_fenced = not self._is_fenced
        self._below_heading += 1
        if not self._is_fenced:
            self._read_text(line)
        if self._of_list != NOTHING:
            return self._of_list
        parts = (part.declared for part in reversed(self._sections) if part.declared != NOTHING)
        return next(parts, self._head.declared)

    def _read_text(self, line: str) -> None:
        if (heading := _HEADING.match(line)) is not None:
            level = len(heading[1])
            self._headings, self._below_heading, self._of_list = self._headings + 1, 0, NOTHING
            self._sections = [part for part in self._sections if part.level < level]
            self._sections.append(_Part(level, _named_folder(heading[2])))
            return
        if line.strip() and not _ITEM.match(line):
            self._of_list = _named_folder(line) if line.rstrip(" *_").endswith((":", "：")) else NOTHING
        if self._below_heading <= _MAX_LABEL_LINES and (declared := _labelled_folder(line)) != NOTHING:
            is_head = self._headings <= 1
            if is_head and not self._is_log and not _ITEM.match(line):
                self._head.declare(declared)
            elif not is_head:
                self._sections[-1].declare(declared)


class _Part:
    """A section, or the head of a document. Two labels with different folders are of two things, so neither counts."""

    def __init__(self, level: int, declared: DeclaredFolder = NOTHING) -> None:
        self.level, self.declared = level, declared
        self._is_torn = False

    def declare(self, declared: DeclaredFolder) -> None:
        if self.declared.folder and declared.repository:
            return
        self._is_torn = self._is_torn or self.declared not in (NOTHING, declared)
        self.declared = NOTHING if self._is_torn else declared


def _named_folder(text: str) -> DeclaredFolder:
    """The only folder that a heading or the words above a list name."""
    paths = {match["path"].rstrip("/") for match in _FOLDER.finditer(text) if not _is_file_path(match["path"])}
    return DeclaredFolder(folder=paths.pop()) if len(paths) == 1 else NOTHING


def _labelled_folder(text: str) -> DeclaredFolder:
    match = _label().match(text)
    if match is None:
        return NOTHING
    value = match["value"].strip(" `*_|()")
    if (repository := _REPOSITORY.search(value)) is not None:
        return DeclaredFolder(repository=repository["name"].replace(":", "/").removesuffix(".git").lower())
    named = _FOLDER.match(value)
    if named is None or _is_file_path(named["path"]):
        return NOTHING
    return DeclaredFolder(folder=named["path"].rstrip("/"))


def _is_file_path(path: str) -> bool:
    return not path.endswith("/") and is_file(path.rpartition("/")[2])
