"""Every failure that a person or a script can act on.

    TruekeepError
    ├── BadInput            3   unusable input: a handoff, a name, a draft, an entry
    │   ├── InvalidHandoff      a handoff with problems, all of them at once
    │   ├── AlreadyCovered      an existing card covers the new one
    │   ├── FlaggedArchive      an archive with files that a person must allow (in integrations/alf/import_flags.py)
    │   └── NotFound            no such card, draft, entry or file
    ├── NotCanonical        4   this machine is not the canonical host
    │   └── SplitHost           the canonical host is unclear, so no machine may write
    ├── Busy                5   another truekeep is writing right now
    ├── BadSetup            6   no workspace, broken configuration, state of a newer version
    │   ├── NewerState          a newer truekeep wrote it; nothing is touched
    │   └── UnsafePath          a symlink or special file in place of a regular file (in core/file_io.py)
    ├── StorageFailed       7   disk full, read-only file system, or no permission
    │   └── LedgerDamaged       the damaged file is kept; the next write or `doctor --fix` starts a new one
    └── EditedSince         8   a person changed the file; nothing was touched

Expected outcomes (a handoff that waits for review, a skipped file) are values, not errors. Anything outside this
family is a bug in truekeep. The codes and numbers are listed in docs/operations.md and do not change meaning.
"""

from __future__ import annotations

import errno
import shlex
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
    """The hint for a disk or database error. Recognises apsw's errors by name, without importing apsw."""
    no_room = (errno.ENOSPC, errno.EDQUOT)
    if getattr(error, "errno", None) in no_room or type(error).__name__ == "FullError":
        return "free some disk space and run it again; nothing was lost"
    if getattr(error, "errno", None) == errno.EIO or type(error).__name__ == "IOError":
        return "free some disk space or repair the disk, then run it again; nothing was lost"
    if type(error).__name__ in ("CorruptError", "NotADBError", "FormatError"):
        return "run `truekeep doctor --fix`"
    return "check permissions and the disk, or run `truekeep doctor`"


def as_argument(value: object) -> str:
    """A name or path quoted for the shell, so that a hint can be pasted."""
    return shlex.quote(str(value))


def is_database_error(error: BaseException, *names: str) -> bool:
    """True if SQLite raised the error; with names, only for these apsw error classes.

    apsw is not imported here: if it is not loaded, it cannot have raised anything.
    """
    apsw = sys.modules.get("apsw")
    if apsw is None:
        return False
    kinds: tuple[type[Exception], ...] = tuple(getattr(apsw, name) for name in names) or (apsw.Error,)
    return isinstance(error, kinds)
