"""Codex's own memories: a summary of its user, one file for each rollout, and notes that the user asked for.

They are in `memories_v2`, before that in `memories`; where both are there, the newer one counts. A rollout's summary
says where the session was held. An extension of our own holds our own memory, and is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from truekeep.core.errors import BadInput
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
)
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.transcripts.locations import find_root

OURS = "truekeep"
_HEADER = re.compile(r"([a-z_]+): (.*)")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-?(?:[A-Za-z0-9]{4}-)?")


def find_codex(place: AdoptionScope, *, given: Path | None = None, repo: Path | None = None) -> HarnessNotes:
    """The notes of Codex's memories: the summary, one for each rollout, and what the user asked it to note."""
    found = HarnessNotes([], [])
    if given is not None and not given.is_dir():
        raise BadInput(f"{given} is not a folder", hint="name a folder of memories, or ~/.codex")
    home = given or find_root(place.home, place.environ, "CODEX_HOME", ".codex")
    roots = [home / name for name in ("memories_v2", "memories") if (home / name).is_dir()]
    seen: set[str] = set()
    for root in roots or ([given] if given is not None else []):
        for folder, name, scope in _codex_files(root):
            inside = f"{folder.relative_to(root)}/{name}"
            if inside in seen:
                continue  # the older of two folders has an older state of it
            seen.add(inside)
            read = read_note(folder, name, place, found) if name.endswith(".md") else None
            note = _codex_note(folder / name, scope, *read, repo, place, found) if read is not None else None
            if note is not None:
                add(found, note)
    return found


def _codex_files(root: Path) -> Iterator[tuple[Path, str, str]]:
    if (root / "memory_summary.md").is_file():
        yield root, "memory_summary.md", "summary"
    yield from ((root / "rollout_summaries", name, "rollout") for name in list_names(root / "rollout_summaries"))
    for extension in list_folders(root / "extensions"):
        if extension.name != OURS:
            yield from ((extension / "notes", name, "note") for name in list_names(extension / "notes"))


def _codex_note(
    path: Path, scope: str, text: str, written: datetime, repo: Path | None, place: AdoptionScope, found: HarnessNotes
) -> Note | None:
    header, body = _split_header(text) if scope == "rollout" else ({}, text)
    root: Path | None = None
    if cwd := header.get("cwd", ""):
        folder = Path(cwd)
        if not folder.is_absolute() or not folder.is_dir():
            why = f"its repository, {withhold(printable(cwd))}, is not on this machine"
            found.skipped.append(SkippedNote(place.shown(path), why))
            return None
        root = find_top(folder) or folder
    if repo is not None and (root is None or not is_same(root, repo)):
        return None
    if scope == "summary":
        body = body.removeprefix("v1").lstrip("\n")
    plain = _STAMP.sub("", path.name.removesuffix(".md")).replace("-", " ").replace("_", " ").strip()
    title = "What Codex remembers of its user" if scope == "summary" else first_heading(body) or plain
    return make_note(
        "codex",
        path,
        place,
        scope=scope,
        title=title,
        body=body,
        modified_at=parse_moment(header.get("updated_at", "")) or written,
        session_id=header.get("thread_id", ""),
        root=root,
    )


def _split_header(text: str) -> tuple[dict[str, str], str]:
    """The `key: value` lines that a summary begins with, and the rest."""
    header: dict[str, str] = {}
    lines = text.split("\n")
    at = 0
    while at < len(lines) and (match := _HEADER.fullmatch(lines[at].strip())):
        header[match[1]] = match[2].strip()
        at += 1
    return header, "\n".join(lines[at:])
