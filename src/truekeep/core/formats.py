"""Format numbers of the files in the state folder. Files of a newer format are never touched.

Raise a number when its file is written or read differently. Derived files of another format are rebuilt; the ledger and
the transcript store are migrated in place, by code beside their schema. tests/samples/state has a sample of every
format there ever was (made by tools/freeze.py), and each must stay readable. Downgrading is left to the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truekeep.core.errors import NewerState

WORKSPACE = 1  # of the file `host`, and of the layout of the state folder
PUBLICATION = 1  # of the memory that a host publishes for copies: head.json, manifest and packs
_SQLITE_MAGIC = b"SQLite format 3\0"
_USER_VERSION = slice(60, 64)  # in a database's header


class Format(NamedTuple):
    """One kind of state file."""

    file: str  # below the state folder
    number: int
    is_derived: bool = True


LEDGER = Format("ledger.sqlite", 2, is_derived=False)
TRANSCRIPTS = Format("transcripts/archive.sqlite", 1, is_derived=False)
INDEX = Format("index.sqlite", 5)  # raise it also when more text is masked
CATALOG = Format("catalog.sqlite", 5)
SURVEY = Format("survey.sqlite", 11)  # raise it also when memory files are read differently
FACTS = Format("facts.sqlite", 6)  # raise it also when code is read differently
FORMATS = {
    "ledger": LEDGER,
    "transcripts": TRANSCRIPTS,
    "index": INDEX,
    "catalog": CATALOG,
    "survey": SURVEY,
    "facts": FACTS,
}


def read_format(path: str) -> int:
    """The user_version in a database's header, without opening the database; 0 if there is no database.

    Does not see a write-ahead log, so the version is checked again when the database is opened.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(100)
    except OSError:
        return 0
    is_database = head.startswith(_SQLITE_MAGIC) and len(head) == 100
    return int.from_bytes(head[_USER_VERSION], "big", signed=True) if is_database else 0


def find_newer(state: str, formats: Iterable[Format]) -> Iterator[tuple[str, int, Format]]:
    """Files in a state folder that a newer truekeep wrote: path, format number, and the format known here."""
    for known in formats:
        path = os.path.join(state, known.file)
        if (number := read_format(path)) > known.number:
            yield path, number, known


def check_newer(state: str, formats: Iterable[Format]) -> None:
    """Raise if a newer truekeep wrote one of these files."""
    for path, number, known in find_newer(state, formats):
        raise newer_state(path, number, known)


def newer_state(path: str, number: int, known: Format) -> NewerState:
    """The error for a file that a newer truekeep wrote."""
    hint = "upgrade truekeep on this machine"
    if known.is_derived:
        hint += ", or delete the file: it is derived and will be rebuilt"
    else:
        hint += "; to stay on this version, restore the .truekeep folder from before the upgrade"
    return NewerState(
        f"{path} was written by a newer truekeep (format {number}, this one knows {known.number})", hint=hint
    )
