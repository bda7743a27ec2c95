"""A memory file, or some of its lines, for a reader: how old it is, and how to go on where it was cut.

Only what recall covers can be read here: Markdown memory and configured extra paths, through no link. A transcript is
shown as its dialogue, under the line numbers of the session file.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, NotFound
from truekeep.core.model import ARCHIVE
from truekeep.memory.document_scan import iter_workspace
from truekeep.memory.file_scan import MemoryFile, read_memory_file
from truekeep.memory.written_days import blob_id, committed_days
from truekeep.search.file_metadata import describe, written_day
from truekeep.search.refresh import decode
from truekeep.text.secrets.scanner import mask_lines
from truekeep.transcripts.parser import iter_dialogue

if TYPE_CHECKING:
    from truekeep.transcripts.parser import Turn
    from truekeep.verify.verdict import Verdict

LINES = 120
CHARACTERS = 12_000
_CITATION = re.compile(r"(.+?)(?:#L|:L?)(\d{1,9})(?:-L?(\d{1,9}))?\Z")


class Excerpt(NamedTuple):
    """Some lines of a memory file."""

    path: str
    first: int
    last: int
    total: int
    text: str
    store: str
    day: str
    age_days: int | None
    repository: str
    verdicts: tuple[Verdict, ...] = ()  # on the claims in these lines
    checked_at: str = ""
    unchecked: str = ""
    source: str = ""  # of a copy: whose memory it is, and of when

    @property
    def next(self) -> int | None:
        """Where to go on, if anything is left."""
        return self.last + 1 if self.last < self.total else None


class NotMemory(BadInput):
    """The path is outside what recall may read."""

    code = "not-memory"


def parse_citation(wanted: str) -> tuple[str, int | None, int | None]:
    """A path as it is cited, `path#L5-L9` or `path:5-9`: the path, its first line, how many."""
    match = _CITATION.match(wanted)
    if match is None:
        return wanted, None, None
    first = int(match[2])
    return match[1], first, max(1, int(match[3]) - first + 1) if match[3] else 1


def read_excerpt(
    root: str, wanted: str, *, first: int = 1, lines: int = LINES, extra: Sequence[str] = (), today: date
) -> Excerpt:
    """Lines of a memory file, as many as asked for and fit."""
    source = find_source(root, wanted, extra)
    try:
        data, info = read_memory_file(source.location)
    except FileNotFoundError as error:
        raise NotFound(f"{wanted} is gone", hint="`truekeep search` finds where it went") from error
    except OSError as error:
        raise BadInput(f"{wanted}: {error.strerror}", hint="it must be a plain readable file") from error
    try:
        text = mask_lines(decode(data).replace("\r\n", "\n"))
    except OSError as error:
        raise BadInput(f"{wanted}: {error.strerror}", hint="only text can be read here") from error
    about = describe(source.path, text)
    is_undated = not (about.day or about.day_in_name) and source.location.endswith("/" + source.path)
    committed = committed_days(root, {source.path: blob_id(data)}) if is_undated else {}
    day = written_day(about, committed.get(source.path)) or local_day(info.st_mtime).isoformat()
    everything = text.split("\n")
    if everything and everything[-1] == "":
        everything.pop()
    return cut_excerpt(source.path, source.store, everything, first, lines, day, about.repository, today)


def cut_excerpt(
    path: str, store: str, everything: Sequence[str], first: int, lines: int, day: str, repository: str, today: date
) -> Excerpt:
    total = len(everything)
    if first > max(1, total):
        raise NotFound(f"{path} has {total} lines, so there is no line {first}", hint=f"--from 1 to {max(1, total)}")
    chosen = list(everything[first - 1 : first - 1 + lines])
    size = 0
    for at, line in enumerate(chosen):
        size += len(line) + 1
        if size > CHARACTERS and at:
            del chosen[at:]
            break
    if chosen and len(chosen[0]) > CHARACTERS:
        chosen[0] = chosen[0][:CHARACTERS] + "…"
    try:
        age: int | None = (today - date.fromisoformat(day)).days
    except ValueError:
        age = None
    last = first + len(chosen) - 1
    return Excerpt(
        path, first, max(first, last) if chosen else 0, total, "\n".join(chosen), store, day, age, repository
    )


def find_source(root: str, wanted: str, extra: Sequence[str]) -> MemoryFile:
    """The memory file of that path. Asked of the sweep, so nothing that it does not see can be read."""
    path = os.path.normpath(wanted.replace("\x00", ""))
    if os.path.isabs(path):
        inside = os.path.relpath(path, root)
        path = path if inside.startswith("..") else inside
    path = path.replace(os.sep, "/")
    names = [path, f"{path}.md", f"memory/{path}", f"memory/cards/{path}", f"memory/cards/{path}.md"]
    if path.startswith("memory/"):
        names.append(f"{ARCHIVE}/{path.removeprefix('memory/')}")  # a log that was put away meanwhile, whole
    found = {source.path: source for source in iter_workspace(root, extra) if source.path in names}
    for name in names:
        if name in found:
            return found[name]
    if path.startswith("../") or path == ".." or os.path.isabs(path):
        raise NotMemory(f"{wanted} is outside the memory", hint="name a memory file, such as memory/cards/NAME.md")
    if os.path.lexists(os.path.join(root, path)):
        raise NotMemory(f"{wanted} is not a memory file that may be read here", hint="Markdown memory, through no link")
    raise NotFound(f"there is no {wanted} in the memory", hint=_near(path, root, extra))


def local_day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds).astimezone().date()


def _near(path: str, root: str, extra: Sequence[str]) -> str:
    names = [source.path for source in iter_workspace(root, extra)]
    close = difflib.get_close_matches(path, names, 3, 0.5)
    return f"did you mean {', '.join(close)}?" if close else "`truekeep search` finds what there is"


def cut_transcript(
    path: str, turns: Iterable[Turn], day: date, *, first: int, lines: int, today: date, repository: str = ""
) -> Excerpt:
    """The dialogue of a session from a line of its file on."""
    everything = list(iter_dialogue(turns))
    start = next((at for at, (_, origin) in enumerate(everything) if origin >= first), None)
    if start is None:
        raise NotFound(f"{path} says nothing from line {first} on", hint="--from 1")
    chosen: list[tuple[str, int]] = []
    size = 0
    for line, origin in everything[start:]:
        size += len(line) + 1
        if chosen and (len(chosen) >= lines or size > CHARACTERS) and origin != chosen[-1][1]:
            break  # between two turns: one that were cut could not be gone on with
        chosen.append((line, origin))
    last = chosen[-1][1]
    text = "\n".join(line for line, _ in chosen)
    total = everything[-1][1]
    age = (today - day).days
    return Excerpt(path, chosen[0][1], last, total, text, "transcripts", day.isoformat(), age, repository)
