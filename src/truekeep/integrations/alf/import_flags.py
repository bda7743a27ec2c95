"""Find files in an archive that a person should see before they are imported.

These are files that programs act on, and texts with findings of the handoff policy. Flags are shown before anything is
written; unless a person agrees, flagged files are not imported, and no file is imported as executable.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.handoffs.policy.text_checks import check_text
from truekeep.integrations.alf.import_plan import DIFFERENT, PlannedImport
from truekeep.text.encoding import decode_text
from truekeep.text.instruction_files import is_harness_config, is_instruction_file
from truekeep.text.secrets.scanner import find_secrets, withhold
from truekeep.text.unicode import printable

CONFIG, INSTRUCTIONS, UNLISTED = "config", "instructions", "unlisted"
EXECUTABLE, REPLACES_EXECUTABLE = "executable", "replaces-executable"
_MEANINGS = {
    CONFIG: "a harness, editor, shell or git acts on it",
    INSTRUCTIONS: "harnesses read a file of this name as instructions",
    EXECUTABLE: "is imported without its executable bit",
    REPLACES_EXECUTABLE: "the file that it would replace is executable",
    UNLISTED: "is not in the archive's own list of files",
}
_TEXT_SUFFIXES = (".md", ".markdown", ".mdx", ".mdc", ".txt")
MAX_SCANNED_BYTES = 8 << 20  # a longer text is flagged as too large
MAX_FINDINGS_PER_FILE = 20


class Flag(NamedTuple):
    """One reason to look at a file before it is imported."""

    path: str
    code: str  # config, instructions, executable, replaces-executable, unlisted, or the code of a finding
    what: str
    line: int = 0

    @property
    def holds_back(self) -> bool:
        """True if the file is not imported unless a person agrees."""
        return self.code != EXECUTABLE

    @property
    def place(self) -> str:
        path = withhold(printable(self.path))
        return f"{path}:{self.line}" if self.line else path


class FlaggedArchive(BadInput):
    """An archive with files that need a person's approval. Nothing was written."""

    code = "flagged-archive"

    def __init__(self, flags: tuple[Flag, ...]) -> None:
        count = len({flag.path for flag in flags if flag.holds_back})
        files = "1 file of the archive needs" if count == 1 else f"{count} files of the archive need"
        super().__init__(
            f"{files} your approval; nothing was written",
            hint="--trust imports everything, if the archive is your own; --skip-flagged leaves those files out",
            flags=[flag._asdict() for flag in flags],
        )
        self.flags = flags


def iter_flags(files: Iterable[PlannedImport], unlisted: frozenset[str], root: str) -> Iterator[Flag]:
    """The flags of files that would be written to a workspace, file by file."""
    for file in files:
        path = file.listed.path
        if is_harness_config(path):
            yield Flag(path, CONFIG, _MEANINGS[CONFIG])
        elif is_instruction_file(path):
            yield Flag(path, INSTRUCTIONS, _MEANINGS[INSTRUCTIONS])
        elif path.casefold().startswith("rules/"):
            yield Flag(path, INSTRUCTIONS, "agents follow the files in rules/")
        if path in unlisted:
            yield Flag(path, UNLISTED, _MEANINGS[UNLISTED])
        if file.state == DIFFERENT and _is_executable(os.path.join(root, path)):  # a replaced file keeps its mode
            yield Flag(path, REPLACES_EXECUTABLE, _MEANINGS[REPLACES_EXECUTABLE])
        elif file.listed.mode & 0o111:
            yield Flag(path, EXECUTABLE, _MEANINGS[EXECUTABLE])
        for secret in find_secrets(path)[:1]:
            yield Flag(path, "secret", f"the file name looks like a credential ({secret.rule})")
        if path.casefold().endswith(_TEXT_SUFFIXES):
            yield from _iter_findings(file)


def _is_executable(path: str) -> bool:
    with suppress(FileNotFoundError):
        return bool(os.lstat(path).st_mode & 0o111)
    return False


def _iter_findings(file: PlannedImport) -> Iterator[Flag]:
    """The findings of the handoff policy in a text."""
    path = file.listed.path
    pieces: list[bytes] = []
    size = 0
    for piece in file.pieces():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_SCANNED_BYTES:
            yield Flag(path, "too-large", f"has more than {MAX_SCANNED_BYTES:,} bytes and is not scanned")
            return
    text = decode_text(b"".join(pieces))
    if text is None:
        yield Flag(path, "not-text", "is not UTF-8 text and is not scanned")
        return
    for number, finding in enumerate(check_text(text)):
        if number == MAX_FINDINGS_PER_FILE:
            yield Flag(path, "more", "and more findings")
            return
        yield Flag(path, finding.code, withhold(printable(finding.message)), finding.line or 0)
