"""Reads Claude Code's own memory: a folder of topic files for each project, with MEMORY.md as their index.

A project's folder is named after its path, with a dash for everything but letters and digits, which cannot be reversed.
So the path is taken from the project's sessions, if it would get this name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from truekeep.core.errors import BadInput
from truekeep.core.file_io import ChangedSince, UnsafePath, read_head
from truekeep.core.repository import find_top
from truekeep.handoffs.adopt.note import (
    AdoptionScope,
    HarnessNotes,
    Note,
    SkippedNote,
    add,
    first_heading,
    is_same,
    list_folders,
    list_names,
    make_note,
    parse_moment,
    read_note,
    read_text,
)
from truekeep.memory.frontmatter import Frontmatter, InvalidFrontmatter, split_frontmatter
from truekeep.transcripts.locations import find_root
from truekeep.transcripts.session_file import read_session

SCOPES = ("user", "feedback", "project", "reference")
_MAX_SESSIONS_READ = 5  # of a project, to find its path
_MAX_FOLDER_NAME = 200  # Claude Code cuts longer names
_POINTER = re.compile(r"\s*[-*+]\s+\[([^\]]+)\]\(\s*<?(?:\./)?([^)>\s]+\.md)>?\s*\)\s*(?:[-—–:]+\s*)?(.*)")
_TYPE = re.compile(r"""^[ \t]+type:[ \t]*["']?([A-Za-z-]+)""", re.MULTILINE)
_SESSION = re.compile(r"""^[ \t]+originSessionId:[ \t]*["']?([A-Za-z0-9-]{1,64})""", re.MULTILINE)


def find_claude(place: AdoptionScope, *, given: Path | None = None, repo: Path | None = None) -> HarnessNotes:
    """Claude Code's notes: of every project, of one repository, or in a given folder."""
    found = HarnessNotes([], [])
    for folder, project, root in _claude_folders(place, given, repo):
        if project is not None and given is not None and repo is not None:
            root = repo
        elif project is not None:
            root, is_known = _repository_of(project, place)
            if not is_known and _has_notes(folder):
                why = "its repository is unknown; name it with --from and --repo"
                found.skipped.append(SkippedNote(place.shown(folder), why))
            if not is_known or (repo is not None and (root is None or not is_same(root, repo))):
                continue
        _read_claude(folder, root, place, found)
    return found


def _claude_folders(
    place: AdoptionScope, given: Path | None, repo: Path | None
) -> Iterator[tuple[Path, Path | None, Path | None]]:
    """Memory folders, each with its project folder, from which the repository is found, or with the repository."""
    if given is not None:
        if not given.is_dir():
            raise BadInput(f"{given} is not a folder", hint="give a memory folder, a project's folder, or ~/.claude")
        if (given / "projects").is_dir():
            yield from _projects(given / "projects")
        elif (given / "memory").is_dir():
            yield given / "memory", given, None
        elif any(folder.is_dir() for folder in given.glob("*/memory")):
            yield from _projects(given)
        else:
            yield given, (given.parent if given.name == "memory" and repo is None else None), repo
        return
    root = find_root(place.home, place.environ, "CLAUDE_CONFIG_DIR", ".claude")
    yield from _projects(root / "projects")
    if (moved := _memory_directory(root / "settings.json", place)) is not None and repo is None:
        yield moved, None, None
        yield from ((folder, folder, None) for folder in list_folders(moved))
    for checkout in place.folders:
        # Not the settings committed in a repository: their author could name any folder of this machine.
        local = _memory_directory(checkout / ".claude" / "settings.local.json", place)
        if local is not None and (repo is None or is_same(checkout, repo)):
            yield local, None, checkout


def _projects(folder: Path) -> Iterator[tuple[Path, Path | None, Path | None]]:
    for project in list_folders(folder):
        if (project / "memory").is_dir() and not (project / "memory").is_symlink():
            yield project / "memory", project, None


def _memory_directory(settings: Path, place: AdoptionScope) -> Path | None:
    """The existing memory folder that a settings file sets; None if it sets none."""
    try:
        value = json.loads(read_head(settings, 1_000_000, follow=True)).get("autoMemoryDirectory")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(value, str) or not value.startswith(("/", "~/")):
        return None
    folder = place.home / value[2:] if value.startswith("~/") else Path(value)
    return folder if folder.is_dir() else None


def _has_notes(folder: Path) -> bool:
    return any(name.endswith(".md") for name in list_names(folder))


def _repository_of(project: Path, place: AdoptionScope) -> tuple[Path | None, bool]:
    """The repository of a project folder, and True if its path is known.

    The path comes from the project's sessions or their parent folders, or from a known repository with that name. Notes
    from outside any repository belong to the user.
    """
    folders = (part for cwd in _session_folders(project) for part in (Path(cwd), *Path(cwd).parents[:-1]))
    for folder in (*folders, *place.folders):
        if folder.is_absolute() and _is_named(folder, project) and folder.is_dir():
            is_known = any(is_same(folder, known) for known in place.folders)
            return find_top(folder) or (folder if is_known else None), True
    return None, False


def _session_folders(project: Path) -> Iterator[str]:
    """The working directories of a project's newest sessions."""
    files = [project / name for name in list_names(project) if name.endswith(".jsonl")]
    newest = sorted(files, key=lambda path: (-_mtime(path), path.name))
    for path in newest[:_MAX_SESSIONS_READ]:
        with suppress(OSError, UnsafePath):
            if cwd := read_session(path, "claude").cwd:
                yield cwd


def _is_named(folder: Path, project: Path) -> bool:
    """True if Claude Code would give this folder's project that name."""
    name = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    return name == project.name or (len(name) > _MAX_FOLDER_NAME and project.name.startswith(name[:_MAX_FOLDER_NAME]))


def _mtime(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _read_claude(folder: Path, root: Path | None, place: AdoptionScope, found: HarnessNotes) -> None:
    """Read the topic files of a memory folder, and the text of its index that is not a link to them."""
    index, written = "", place.now
    with suppress(OSError, UnsafePath, ChangedSince):
        index, written = read_text(folder, "MEMORY.md")
    lines = index.split("\n")
    pointers = {match[2]: (match[1], match[3]) for line in lines if (match := _POINTER.fullmatch(line))}
    for name in list_names(folder):
        if not name.endswith(".md") or name.startswith((".", "~")) or name == "MEMORY.md":
            continue
        if (read := read_note(folder, name, place, found)) is not None:
            title, hook = pointers.get(name, ("", ""))
            add(found, _claude_note(folder / name, *read, title, hook, root, place))
    rest = [line for line in lines if not _POINTER.fullmatch(line)]
    if any(line.strip() and not line.startswith("#") for line in rest):
        title = f"What Claude Code noted about {root.name}" if root is not None else "What Claude Code noted"
        body = "\n".join(rest)
        path = folder / "MEMORY.md"
        add(
            found,
            make_note("claude", path, place, scope="", title=title, body=body, modified_at=written, root=root),
        )


def _claude_note(
    path: Path, text: str, written: datetime, title: str, hook: str, root: Path | None, place: AdoptionScope
) -> Note:
    try:
        front, body = split_frontmatter(text)
    except InvalidFrontmatter:
        front, body = None, text
    front = front or Frontmatter()
    metadata = front.find("metadata")
    more = metadata.raw if metadata is not None else ""
    kind = match[1].lower() if (match := _TYPE.search(more)) else front.text("type").lower()
    session = match[1] if (match := _SESSION.search(more)) else ""
    named = (front.text("name") or path.name.removesuffix(".md")).replace("-", " ").replace("_", " ")
    return make_note(
        "claude",
        path,
        place,
        scope=kind if kind in SCOPES else "",
        title=title or first_heading(body) or named,
        summary=front.text("description") or hook,
        hook=hook,
        body=body,
        modified_at=parse_moment(front.text("modified")) or written,
        session_id=session,
        root=None if kind == "user" else root,
    )
