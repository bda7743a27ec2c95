"""Which files of an OpenClaw workspace become records, and where each record begins and ends.

Pure. Follows upstream's two generations exactly: "positional" is the first; "content" is the later one, which ignores
headings inside code fences and headings without a body. Only a line feed ends a line.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from truekeep.core.model import CARDS, REVIEW
from truekeep.integrations.alf.record_ids import WHITESPACE

HEADING = "## "
FENCE = "```"

_DAY = re.compile(r"memory/([0-9]{1,4})-([0-9]{1,2})-([0-9]{1,2})\.md", re.ASCII)
_LOG_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md", re.ASCII)
_SOLID = re.compile(f"[^{WHITESPACE}]")
_HEADINGS = re.compile(f"(?:{HEADING})+")


class SectionKind(NamedTuple):
    """The type and namespace of a file's records."""

    memory_type: str
    namespace: str
    is_split: bool  # into a record for each ## heading; otherwise the whole file is one record


class RecordSection(NamedTuple):
    """The part of a file that becomes one record. Lines count from 1, both ends included."""

    heading: str | None
    content: str
    line_start: int
    line_end: int


_CONTENT_KINDS = tuple(
    (re.compile(pattern, re.ASCII), SectionKind(*kind))
    for pattern, kind in (
        (r"MEMORY\.md", ("semantic", "curated", True)),
        (r"memory/[0-9]{4}-[0-9]{2}-[0-9]{2}\.md", ("episodic", "daily", True)),
        (r"memory/procedures/[^/]*\.md", ("procedural", "procedural", False)),
        (r"memory/curated/[^/]*\.md", ("semantic", "curated", False)),
        (r"memory/active-context\.md", ("summary", "active-context", False)),
        (r"memory/gating-policies\.md", ("procedural", "procedural", True)),
        (r"memory/project-[^/]*\.md", ("semantic", "project", True)),
        (r"memory/[^/]*\.md", ("semantic", "workspace", False)),
    )
)

ARCHIVE_FOLDERS = ("archive", "archived")
_FOLDER_KINDS = {
    "daily": SectionKind("episodic", "daily", True),
    "projects": SectionKind("semantic", "project", True),
    "ops": SectionKind("procedural", "procedural", True),
    "procedures": SectionKind("procedural", "procedural", True),
    "checkpoints": SectionKind("episodic", "checkpoints", True),
}


def classify(path: str, scheme: str, *, plain: bool = True) -> SectionKind | None:
    """The kind of a file by its path; None if upstream makes no records of it.

    Unless `plain`, every memory but the active context is split at its headings, as the adapter's documentation says;
    the later generation of upstream's exporter keeps most files whole, and skips those in folders.
    """
    if path != "MEMORY.md" and not (path.startswith("memory/") and path.endswith(".md") and not path.endswith("/.md")):
        return None
    if scheme != "content":
        return _positional_kind(path.lower())
    kind = next((kind for pattern, kind in _CONTENT_KINDS if pattern.fullmatch(path)), None)
    if plain:
        return kind
    if kind is not None:
        return kind._replace(is_split=kind.memory_type != "summary")
    return _folder_kind(path)


def _folder_kind(path: str) -> SectionKind | None:
    """The kind of a note in a folder; None for a card, which is a record of its own, for drafts and hidden files."""
    *folders, name = path.split("/")[1:]
    is_hidden = any(part.startswith(".") for part in (*folders, name))
    if is_hidden or path.startswith((f"{REVIEW}/", f"{CARDS}/")) or "processed" in folders:
        return None
    others = [folder for folder in folders if folder not in ARCHIVE_FOLDERS]
    by_folder = _FOLDER_KINDS.get(others[0] if others else "")
    is_log = _LOG_NAME.fullmatch(name) is not None
    return by_folder or SectionKind(*(("episodic", "daily") if is_log else ("semantic", "workspace")), True)


def _positional_kind(path: str) -> SectionKind:
    is_policy = "gating-policies" in path or "gating_policies" in path
    if daily_log_date(path) is not None:
        return SectionKind("episodic", "daily", True)
    if path == "memory.md":
        return SectionKind("semantic", "curated", True)
    if "active-context" in path:
        return SectionKind("summary", "active-context", False)
    if path.startswith("memory/project-"):
        return SectionKind("procedural" if is_policy else "semantic", "project", True)
    if is_policy:
        return SectionKind("procedural", "procedural", True)
    return SectionKind("semantic", "workspace", True)


def daily_log_date(path: str) -> date | None:
    """The date in the name of a daily log; None for other files and impossible dates."""
    match = _DAY.fullmatch(path.lower())
    if match is None:
        return None
    try:
        return date(*map(int, match.groups()))
    except ValueError:
        return None


def split_sections(text: str, *, is_split: bool, scheme: str) -> list[RecordSection]:
    """The sections of a file, in order. Sections get plain line feeds; an unsplit file keeps its line ends."""
    if not is_split:
        return [RecordSection(None, text, 1, _count_lines(text))] if text.strip(WHITESPACE) else []
    sections = []
    line = 1
    for chunk, has_heading in _iter_chunks(text, scheme):
        following = line + _count_lines(chunk)
        if _becomes_record(chunk, has_heading, scheme):
            content = chunk.replace("\r\n", "\n").removesuffix("\n")
            heading = _heading_of(content, scheme) if has_heading else None
            sections.append(RecordSection(heading, content, line, following - 1))
        line = following
    return sections


def _iter_chunks(text: str, scheme: str) -> Iterator[tuple[str, bool]]:
    """Cut the text before every heading; yields each piece and whether it begins with a heading."""
    cuts = list(_iter_lines_with(text, HEADING))
    if scheme == "content":
        fences = list(_iter_lines_with(text, FENCE))
        cuts = [cut for cut in cuts if bisect(fences, cut) % 2 == 0]
    if cuts[:1] != [0] and text:
        yield text[: cuts[0] if cuts else None], False
    for start, end in pairwise((*cuts, len(text))):
        yield text[start:end], True


def _iter_lines_with(text: str, mark: str) -> Iterator[int]:
    """The positions of lines that begin with the mark."""
    if text.startswith(mark):
        yield 0
    at = text.find(f"\n{mark}")
    while at >= 0:
        yield at + 1
        at = text.find(f"\n{mark}", at + 1)


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))


def _becomes_record(chunk: str, has_heading: bool, scheme: str) -> bool:
    if scheme == "content":
        if has_heading:
            end = chunk.find("\n")
            return end >= 0 and _SOLID.search(chunk, end) is not None
        return any(not line.startswith("#") for line in _iter_stripped(chunk))
    return has_heading or bool(chunk.strip(WHITESPACE))


def _iter_stripped(text: str) -> Iterator[str]:
    return filter(None, (line.strip(WHITESPACE) for line in text.split("\n")))


def _heading_of(content: str, scheme: str) -> str:
    line = content.partition("\n")[0]
    match = _HEADINGS.match(line) if scheme != "content" else None
    return line[match.end() if match else len(HEADING) :].strip(WHITESPACE)
