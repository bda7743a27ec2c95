"""The formats of state files, each with a number: which ones this truekeep writes, and that newer ones are left alone.

A number is raised when its file is written or read differently. Then a derived file of another format is made anew,
and the ledger and the archive of sessions are brought up in place by a migration beside their schema. A sample of every
format that there ever was lies in tests/samples/state (tools/freeze.py makes one), and must be taken over for ever.
What a newer truekeep wrote is never touched: going back is a person's decision.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from truekeep.core.errors import NewerState

WORKSPACE = 1  # of the file `host`, and of what lies where in the state folder
_MAGIC = b"SQLite format 3\0"
_PLACE = slice(60, 64)  # of user_version in the head of a database


class Format(NamedTuple):
    """One kind of state file."""

    file: str  # below the state folder
    number: int
    is_derived: bool = True


LEDGER = Format("ledger.sqlite", 2, is_derived=False)
TRANSCRIPTS = Format("transcripts/archive.sqlite", 1, is_derived=False)
INDEX = Format("index.sqlite", 2)  # raise it also when more is masked
CATALOG = Format("catalog.sqlite", 3)
SURVEY = Format("survey.sqlite", 6)  # raise it also when memory files are read differently
FACTS = Format("facts.sqlite", 4)  # raise it also when code is read differently
FORMATS = {
    "ledger": LEDGER,
    "transcripts": TRANSCRIPTS,
    "index": INDEX,
    "catalog": CATALOG,
    "survey": SURVEY,
    "facts": FACTS,
}


def read_format(path: str) -> int:
    """The number in a database's head, without opening the database; 0 where there is none.

    What still waits in a write-ahead log is not seen: whoever opens the database asks it again.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.read(100)
    except OSError:
        return 0
    return int.from_bytes(head[_PLACE], "big", signed=True) if head.startswith(_MAGIC) and len(head) == 100 else 0


def find_newer(state: str, formats: Iterable[Format]) -> Iterator[tuple[str, int, Format]]:
    """The files of a state folder that a newer truekeep wrote: where, of which format, and what is known of it."""
    for known in formats:
        path = os.path.join(state, known.file)
        if (number := read_format(path)) > known.number:
            yield path, number, known


def check_newer(state: str, formats: Iterable[Format]) -> None:
    """Raise if a newer truekeep wrote one of these files."""
    for path, number, known in find_newer(state, formats):
        raise newer_state(path, number, known)


def newer_state(path: str, number: int, known: Format) -> NewerState:
    """What is said of a file that a newer truekeep wrote."""
    hint = "upgrade truekeep on this machine"
    if known.is_derived:
        hint += ", or delete the file: it is derived, and made anew"
    else:
        hint += "; to stay with this version, put back the .truekeep that was there before the newer one ran"
    return NewerState(
        f"{path} was written by a newer truekeep (format {number}, this one knows {known.number})", hint=hint
    )
