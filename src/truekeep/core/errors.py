"""Every failure that a person or a script can act on.

    TruekeepError
    ├── BadInput            3   what was given cannot be used: a handoff, a name, a draft, an entry
    │   ├── InvalidHandoff      a handoff with problems, all of them at once
    │   ├── AlreadyCovered      a card covers what a new one was to say
    │   ├── FlaggedArchive      an archive with files that only a person lets in (in integrations/alf/import_flags.py)
    │   └── NotFound            no such card, draft, entry or file
    ├── NotCanonical        4   this machine may not write this memory
    │   └── SplitHost           it cannot be told which machine may; none does
    ├── Busy                5   another truekeep is writing right now
    ├── BadSetup            6   no workspace, broken configuration, state of a newer version
    │   ├── NewerState          a newer truekeep wrote it; nothing is touched
    │   └── UnsafePath          a symlink or special file where truekeep keeps a plain one (in core/file_io.py)
    ├── StorageFailed       7   the disk said no: full, read-only, no permission
    │   └── LedgerDamaged       kept as evidence; whoever writes next, or doctor, begins a new one
    └── EditedSince         8   a person changed the file; nothing was touched

Expected outcomes (a handoff that waits for review, a skipped file) are values, not errors. Anything outside this
family is a bug in truekeep. The codes and numbers are listed in docs/operations.md and do not change meaning.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truekeep.core.model import Finding


class TruekeepError(Exception):
    """Something the reader can act on: shown plainly, never with a traceback."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class BadInput(TruekeepError):
    code, exit_code = "bad-input", 3


class InvalidHandoff(BadInput):
    code = "invalid-handoff"

    def __init__(self, message: str, findings: Sequence[Finding], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)


class AlreadyCovered(BadInput):
    code = "already-covered"


class NotFound(BadInput):
    code = "not-found"


class NotCanonical(TruekeepError):
    code, exit_code = "not-canonical-host", 4


class SplitHost(NotCanonical):
    code = "split-host"


class Busy(TruekeepError):
    code, exit_code = "busy", 5


class BadSetup(TruekeepError):
    code, exit_code = "bad-setup", 6


class NewerState(BadSetup):
    code = "newer-state"


class StorageFailed(TruekeepError):
    code, exit_code = "storage-failed", 7


class LedgerDamaged(StorageFailed):
    code = "ledger-damaged"


class EditedSince(TruekeepError):
    code, exit_code = "edited-since", 8


def hint_for(error: BaseException) -> str:
    """What helps against a disk that says no, or a database that cannot be used. apsw is not imported to tell."""
    no_room = (errno.ENOSPC, errno.EDQUOT)
    if getattr(error, "errno", None) in no_room or type(error).__name__ == "FullError":
        return "make room on the disk and run it again; nothing is lost"
    if getattr(error, "errno", None) == errno.EIO or type(error).__name__ == "IOError":
        return "make room on the disk or mend it, and run it again; nothing is lost"
    if type(error).__name__ in ("CorruptError", "NotADBError", "FormatError"):
        return "`truekeep doctor --fix` mends it"
    return "check the permissions and the disk; `truekeep doctor` tells more"


def as_argument(value: object) -> str:
    """A name or a path as a shell takes it: what a hint says works when it is pasted."""
    import shlex

    return shlex.quote(str(value))


def is_database_error(error: BaseException, *names: str) -> bool:
    """Whether SQLite raised it; with names, whether it is one of these errors of apsw.

    Many commands need no database: where apsw was not loaded, nothing of it can have been raised.
    """
    apsw = sys.modules.get("apsw")
    if apsw is None:
        return False
    kinds: tuple[type[Exception], ...] = tuple(getattr(apsw, name) for name in names) or (apsw.Error,)
    return isinstance(error, kinds)
