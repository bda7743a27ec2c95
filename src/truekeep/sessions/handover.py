"""HANDOVER.md: one part for each repository, each below a heading of its own, the latest checkpoint's first. Text only.

A part begins with `# Handover of REPOSITORY`, or with `# Handover` where a checkpoint was made outside of repositories,
and in files of older versions, whose time stamp may name the repository. Text before the first heading belongs to the
first part. Hooks read this, so it needs no Markdown parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from truekeep.memory.card import project_slug, short_name

STAMP = re.compile(r"(?:Updated )?(?P<at>\d{4}-\d{2}-\d{2} \d{2}:\d{2})(?:,(?P<by>.*))?")
_TITLE = re.compile(r"^# Handover(?: of (?P<repository>\S.*?))?[ \t]*$", re.MULTILINE)
_HARNESSES = ("claude", "codex", "openclaw")  # a time stamp with only such a name is of no repository


class RepositoryHandover(NamedTuple):
    """The handover of one repository."""

    repository: str  # "" if it names none
    text: str  # without its title
    is_old: bool = False  # the time stamp names the repository, without its owner


def split_handovers(text: str) -> list[RepositoryHandover]:
    """The parts of HANDOVER.md, in order."""
    titles = list(_TITLE.finditer(text))
    if not titles:
        return [_part("", text)] if text.strip() else []
    found = []
    for number, title in enumerate(titles):
        end = titles[number + 1].start() if number + 1 < len(titles) else len(text)
        above = text[: title.start()] if number == 0 else ""
        found.append(_part(title["repository"] or "", f"{above}{text[title.end() : end]}"))
    return found


def _part(repository: str, text: str) -> RepositoryHandover:
    text = text.strip("\n")
    if repository:
        return RepositoryHandover(repository, text)
    stamp = find_stamp(text)
    name = (stamp["by"] or "").rpartition(",")[2].strip() if stamp is not None else ""
    name = "" if name in _HARNESSES else name
    return RepositoryHandover(name, text, is_old=bool(name))


def find_stamp(text: str) -> re.Match[str] | None:
    """The time stamp of a handover, in one of its first lines."""
    return next((match for line in text.split("\n")[:6] if (match := STAMP.match(line)) is not None), None)


def is_of(part: RepositoryHandover, repository: str) -> bool:
    """Whether a part is the handover of this repository."""
    if not part.repository or not repository:
        return part.repository == repository
    if part.is_old or "/" not in part.repository or "/" not in repository:
        return project_slug(short_name(part.repository)) == project_slug(short_name(repository))
    return part.repository.casefold() == handover_name(repository).casefold()


def handover_name(repository: str) -> str:
    """A repository's name for a heading."""
    return re.sub(r"[^\w./:@+~-]+", "-", repository).strip("-")[:100]


def render_handovers(parts: list[RepositoryHandover]) -> str:
    return "\n\n".join(f"{_title(part)}\n\n{part.text.strip()}" for part in parts) + "\n"


def _title(part: RepositoryHandover) -> str:
    name = handover_name(part.repository)
    return f"# Handover of {name}" if name else "# Handover"


def without_titles(text: str) -> str:
    """A text without lines that would begin another part."""
    return _TITLE.sub(lambda title: f" {title[0]}", text)
