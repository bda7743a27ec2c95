"""The title, day, repository and headings of a memory file."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from truekeep.memory.file_scan import day_in, project_in
from truekeep.text.markdown_lines import FenceReader

if TYPE_CHECKING:
    from truekeep.memory.written_days import CommittedDay

_HEADING = re.compile(r"(#{1,6})[ \t]+(.{1,300}?)[ \t#]*$", re.MULTILINE)
_MAY_BE_FENCE = re.compile(r"^ {0,3}((?:```|~~~).*)", re.MULTILINE)
_KEY = re.compile(r"^(topic|title|tags|repository|created|updated|day|date):[ \t]*(.{0,500}?)[ \t]*$", re.MULTILINE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_YEAR_MONTH_DAY = r"(20[0-9]{2})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})(?![0-9])"
_DAY_IN_NAME = re.compile(r"(?<![0-9])(20[0-9]{2})[-_.年]?([0-9]{2})[-_.月]?([0-9]{2})(?![0-9])")
HEADING_SEPARATOR = " > "
FRONT = 4_000  # characters within which frontmatter must end


class About(NamedTuple):
    """Title, day, repository and headings of a file."""

    title: str
    day: str
    repository: str
    headings: tuple[tuple[int, int, str], ...]  # line, level, text
    day_in_name: str = ""  # of a file that is no log
    day_in_text: str = ""  # "Last updated: 2026-02-27"


def describe(path: str, text: str) -> About:
    """Read the metadata of a file. Broken frontmatter counts as missing."""
    keys = _keys(text)
    name = path.rsplit("/", 1)[-1].removesuffix(".md")
    topic = keys.get("topic") or keys.get("title") or ""
    day = day_in(path)
    for key in ("updated", "created", "date", "day"):
        match = _DAY.match(keys.get(key, ""))
        if not day and match:
            day = match[0]
    title = " ".join(part for part in (name.replace("-", " ").replace("_", " "), topic, keys.get("tags", "")) if part)
    in_name = _DAY_IN_NAME.search(path.rsplit("/", 1)[-1]) if not day else None
    in_text = _written().search(text, 0, FRONT) if not day and in_name is None else None
    return About(
        title,
        day,
        keys.get("repository") or project_in(path),
        tuple(_headings(text)),
        day_in_name=_as_day(in_name),
        day_in_text=_as_day(in_text),
    )


def words_of_path(path: str) -> str:
    """The folders of a path and its name as words, without the first folder of all memory."""
    name = path.removesuffix(".md").removeprefix("memory/")
    return name.replace("/", " ").replace("-", " ").replace("_", " ")


def _as_day(match: re.Match[str] | None) -> str:
    """The day that a pattern found; empty if there is none."""
    try:
        return date(*map(int, match.groups())).isoformat() if match is not None else ""
    except ValueError:
        return ""


@cache
def _written() -> re.Pattern[str]:
    from truekeep.text.phrases import load_phrases  # hooks do without

    words = load_phrases("dates").any_of("written")
    return re.compile(rf"^\W{{0,6}}(?:{words})\W{{1,8}}{_YEAR_MONTH_DAY}", re.MULTILINE | re.IGNORECASE)


def written_day(about: About, committed: CommittedDay | None) -> str:
    """The day on which a file was written: as it says, as its name says, as git knows; empty if nothing tells.

    The first commit of a repository often brings in older files, so a day in the text comes before it.
    """
    day = about.day or about.day_in_name
    if committed is not None and not committed.is_first:
        day = day or committed.day
    return day or about.day_in_text or (committed.day if committed is not None else "")


def topic_in(head: str) -> str:
    """The topic or title in a file's frontmatter; empty if it has none."""
    keys = _keys(head)
    return keys.get("topic") or keys.get("title") or ""


def _keys(text: str) -> dict[str, str]:
    end = text.find("\n---", 3, FRONT) if text.startswith("---") else 0
    return {match[1]: match[2].strip().strip("\"'[]") for match in _KEY.finditer(text, 0, end)} if end > 0 else {}


def _headings(text: str) -> list[tuple[int, int, str]]:
    at = 0 if text.startswith("#") else text.find("\n#") + 1
    if at == 0 and not text.startswith("#"):
        return []
    fences = _fences(text)
    found: list[tuple[int, int, str]] = []
    line, counted = 1, 0
    while True:
        match = _HEADING.match(text, at)
        if match and not (fences and bisect_right(fences, at) % 2):  # inside a fence it is a comment in code
            line += text.count("\n", counted, at)
            counted = at
            found.append((line, len(match[1]), match[2]))
        following = text.find("\n#", at)
        if following < 0:
            return found
        at = following + 1


def _fences(text: str) -> list[int]:
    """The offsets at which code fences open and close, alternately."""
    if "```" not in text and "~~~" not in text:
        return []
    places: list[int] = []
    fences = FenceReader()
    for match in _MAY_BE_FENCE.finditer(text):
        was_open = bool(fences.marks)
        fences.see(match[1])
        if bool(fences.marks) != was_open:
            places.append(match.start())
    return places


def heading_at(about: About, line: int) -> str:
    """The headings above a line, outermost first."""
    trail: list[tuple[int, str]] = []
    for at, level, text in about.headings:
        if at > line:
            break
        while trail and trail[-1][0] >= level:
            trail.pop()
        trail.append((level, text))
    return HEADING_SEPARATOR.join(text for _, text in trail)
