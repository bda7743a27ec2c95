"""What an archive would bring besides knowledge: files that programs act upon, and texts that carry more than they say.

Pure but for reading the archive. Whoever imports shows the flags before anything is written; without a person's word,
flagged files stay in the archive, and no file comes in executable.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from truekeep.core.errors import BadInput
from truekeep.handoffs.policy import judge_text
from truekeep.integrations.alf.import_files import DIFFERENT, ImportedFile
from truekeep.text.encoding import decode_text
from truekeep.text.instruction_files import is_harness_config, is_instruction_file
from truekeep.text.secrets.scanner import find_secrets, withhold
from truekeep.text.unicode import printable

CONFIG, INSTRUCTIONS, UNLISTED = "config", "instructions", "unlisted"
EXECUTABLE, REPLACES_EXECUTABLE = "executable", "replaces-executable"
_MEANINGS = {
    CONFIG: "a harness, editor, shell or git acts upon it",
    INSTRUCTIONS: "harnesses read a file of this name as instructions",
    EXECUTABLE: "comes in without its executable bit",
    REPLACES_EXECUTABLE: "the file that it would replace may be run",
    UNLISTED: "is not in the archive's own list of files",
}
_TEXTS = (".md", ".markdown", ".mdx", ".mdc", ".txt")
_LONGEST = 8 << 20  # bytes of a text that is looked through; a longer one is flagged for that
_MOST = 20  # findings of a file that are told


class Flag(NamedTuple):
    """One thing that a person should know about a file before it comes in."""

    path: str
    code: str  # config, instructions, executable, replaces-executable, unlisted, or the code of a finding
    what: str
    line: int = 0

    @property
    def holds_back(self) -> bool:
        """Whether the file stays in the archive without a person's word."""
        return self.code != EXECUTABLE

    @property
    def place(self) -> str:
        path = withhold(printable(self.path))
        return f"{path}:{self.line}" if self.line else path


class FlaggedArchive(BadInput):
    """An archive with files that only a person lets in. Nothing was written."""

    code = "flagged-archive"

    def __init__(self, flags: tuple[Flag, ...]) -> None:
        count = len({flag.path for flag in flags if flag.holds_back})
        told = "1 file of the archive needs" if count == 1 else f"{count} files of the archive need"
        super().__init__(
            f"{told} your word before they come in; nothing was written" if count > 1 else
            f"{told} your word before it comes in; nothing was written",
            hint="--trust takes all of it, if the archive is your own; --skip-flagged leaves those files out",
            flags=[flag._asdict() for flag in flags],
        )  # fmt: skip
        self.flags = flags


def iter_flags(files: Iterable[ImportedFile], unlisted: frozenset[str], root: str) -> Iterator[Flag]:
    """The flags of files that are to be written to a workspace, file by file."""
    for file in files:
        path = file.line.path
        if is_harness_config(path):
            yield Flag(path, CONFIG, _MEANINGS[CONFIG])
        elif is_instruction_file(path):
            yield Flag(path, INSTRUCTIONS, _MEANINGS[INSTRUCTIONS])
        elif path.casefold().startswith("rules/"):
            yield Flag(path, INSTRUCTIONS, "agents follow what stands in rules/")
        if path in unlisted:
            yield Flag(path, UNLISTED, _MEANINGS[UNLISTED])
        if file.state == DIFFERENT and _may_be_run(os.path.join(root, path)):  # which stays so when it is replaced
            yield Flag(path, REPLACES_EXECUTABLE, _MEANINGS[REPLACES_EXECUTABLE])
        elif file.line.mode & 0o111:
            yield Flag(path, EXECUTABLE, _MEANINGS[EXECUTABLE])
        for secret in find_secrets(path)[:1]:
            yield Flag(path, "secret", f"the file name looks like a credential ({secret.rule})")
        if path.casefold().endswith(_TEXTS):
            yield from _judge(file)


def _may_be_run(path: str) -> bool:
    with suppress(FileNotFoundError):
        return bool(os.lstat(path).st_mode & 0o111)
    return False


def _judge(file: ImportedFile) -> Iterator[Flag]:
    """What the judge of handoffs finds in a text."""
    path = file.line.path
    pieces: list[bytes] = []
    size = 0
    for piece in file.pieces():
        pieces.append(piece)
        size += len(piece)
        if size > _LONGEST:
            yield Flag(path, "too-large", f"has more than {_LONGEST:,} bytes, and is not looked through")
            return
    text = decode_text(b"".join(pieces))
    if text is None:
        yield Flag(path, "not-text", "is not UTF-8 text, and is not looked through")
        return
    for number, finding in enumerate(judge_text(text)):
        if number == _MOST:
            yield Flag(path, "more", "and more of such")
            return
        yield Flag(path, finding.code, withhold(printable(finding.message)), finding.line or 0)
