"""The Question type: one claim, with what the check needs to know of the memory that makes it."""

from __future__ import annotations

from typing import NamedTuple

from truekeep.verify.claim import Claim
from truekeep.verify.declared_folders import NOTHING, DeclaredFolder
from truekeep.verify.subject import Subject


class Question(NamedTuple):
    """One claim of one memory, and when the memory was written."""

    claim: Claim
    memory: str  # the memory's own path
    written_at: int | None  # seconds; None if unknown
    folder: str = ""  # of the memory's file, from the root of the repository; empty at the root and outside
    subject: Subject = Subject()  # what the line is about
    longer: tuple[str, ...] = ()  # paths near the claim that end with its file name
    is_rooted: bool = False  # the path is from the root, and not only a name
    declared: DeclaredFolder = NOTHING  # what the part of the document says that it is about
    named_above: tuple[str, ...] = ()  # words in code above the line in its section, that may be folders of the claim
    emptied: tuple[str, ...] = ()  # folders that the memory says are emptied again and again

    @property
    def path(self) -> str:
        """The path of the memory's own file, from the root of the repository."""
        name = self.memory.rpartition("/")[2]
        return f"{self.folder}/{name}" if self.folder and name else name
