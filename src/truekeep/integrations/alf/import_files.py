"""Import, planned: which files an archive would give a workspace, and how each stands to what is there.

From the raw files where the archive has any, byte for byte; else rebuilt from records, for an archive of another
runtime. Pure but for reading: what is planned is written by the desk. No name of the archive is believed: what does not
lie inside the workspace, or belongs to truekeep, git or another program, is not written at all.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from truekeep.core.file_io import open_regular
from truekeep.integrations.alf.files import CONTROL, NO_TIME, RAW, refusal
from truekeep.integrations.alf.reader import Salvage, Snapshot
from truekeep.integrations.alf.record_times import parse_moment
from truekeep.integrations.alf.records import Record
from truekeep.integrations.alf.writer import Document, FileEntry
from truekeep.integrations.alf.zip_container import BadArchive

NEW, SAME, DIFFERENT, BLOCKED, HELD = "new", "same", "different", "blocked", "held"
_SLUG = re.compile(r"[^a-z0-9]+")
_PROSE = {"soul": "SOUL.md", "operating_instructions": "AGENTS.md", "identity_profile": "IDENTITY.md"}
_GONE = ("deleted", "superseded")
_SALVAGE = "nothing was written; --salvage takes what is good, `truekeep alf validate` shows what is not"


class ImportedFile(NamedTuple):
    """One file, and what becomes of it."""

    line: FileEntry
    state: str
    pieces: Callable[[], Iterable[bytes]]
    why: str = ""  # for what is blocked, or held back


class ImportPlan(NamedTuple):
    """What an import would do."""

    files: tuple[ImportedFile, ...]
    is_rebuilt: bool  # from records, because there are no raw files
    elsewhere: tuple[FileEntry, ...]  # artifacts that are named in the archive and not in it
    credentials: tuple[str, ...]  # to be entered again
    notes: tuple[str, ...]
    unlisted: frozenset[str] = frozenset()  # files that an archive with a list of its files does not list

    def of(self, state: str) -> list[ImportedFile]:
        return [file for file in self.files if file.state == state]


def plan_import(snapshot: Snapshot, root: str, *, salvage: Salvage | None = None) -> ImportPlan:
    """Hold an archive against a workspace, which need not be there yet.

    Each file is read beforehand, so that a damaged archive is refused before anything is written. `salvage` hears of
    those that are damaged, when the others are wanted all the same.
    """
    snapshot.require_full()
    notes: list[str] = []
    lines = snapshot.files()
    inside = [line for path, line in lines.items() if line.entry is not None and path not in CONTROL]
    is_rebuilt = not snapshot.is_ours and not any(line.tier == RAW for line in inside)
    wanted: dict[str, tuple[FileEntry, Callable[[], Iterable[bytes]]]] = {}
    if is_rebuilt:
        for path, text in rebuilt(snapshot, notes).items():
            data = text.encode("utf-8", "replace")
            wanted[path] = (FileEntry(path, None, len(data), NO_TIME, 0o644), partial(iter, (data,)))
    for line in inside:
        wanted[line.path] = (line, partial(_pieces, snapshot, line))
    folders = {folder for path in wanted for folder in _above(path)}
    planned = []
    for path, (line, pieces) in sorted(wanted.items()):
        why = refusal(path)
        if not why and path in folders:
            why = "is a file and a folder at once"
        if not why and salvage is not None and (error := _damage(pieces)) is not None:
            salvage(error)
            why = "it is damaged"
        state, why = (BLOCKED, why) if why else _state(root, line, pieces)
        if salvage is None and state in (NEW, DIFFERENT) and (error := _damage(pieces)) is not None:
            raise BadArchive(error.message, entry=error.problem.entry, hint=_SALVAGE)
        planned.append(ImportedFile(line, state, pieces, why))
    elsewhere = tuple(line for line in lines.values() if line.entry is None)
    unlisted = frozenset(line.path for line in inside if snapshot.is_ours and not line.sha256)
    return ImportPlan(tuple(planned), is_rebuilt, elsewhere, tuple(services_of(snapshot)), tuple(notes), unlisted)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _pieces(snapshot: Snapshot, line: FileEntry) -> Iterator[bytes]:
    """A file of the archive, held to the digest that the archive gives."""
    assert line.entry is not None
    digest = hashlib.sha256()
    for piece in snapshot.reader.pieces(line.entry):
        digest.update(piece)
        yield piece
    if line.sha256 and digest.hexdigest() != line.sha256:
        what = f"{line.entry} is not what the archive says it is"
        raise BadArchive(what, entry=line.entry, of=snapshot.reader.name)


def _damage(pieces: Callable[[], Iterable[bytes]]) -> BadArchive | None:
    try:
        for _ in pieces():
            pass
    except BadArchive as error:
        return error
    return None


def _state(root: str, line: FileEntry, pieces: Callable[[], Iterable[bytes]]) -> tuple[str, str]:
    """How a file stands to what is there: no link is followed to find out."""
    at = root
    parts = line.path.split("/")
    for number, part in enumerate(parts):
        at = os.path.join(at, part)
        is_last = number == len(parts) - 1
        if os.path.islink(at):
            return BLOCKED, "a symbolic link stands there" if is_last else "a symbolic link is on the way there"
        if not os.path.lexists(at):
            return NEW, ""
        if os.path.isdir(at) == is_last or (is_last and not os.path.isfile(at)):
            return BLOCKED, "a folder stands there" if is_last else "a file stands where a folder is needed"
    with open(open_regular(at, follow=False), "rb") as file:
        for piece in pieces():
            if file.read(len(piece)) != piece:
                return DIFFERENT, ""
        return (DIFFERENT if file.read(1) else SAME), ""


def services_of(snapshot: Snapshot) -> Iterator[str]:
    """What has to be logged in to again: an archive carries no secrets."""
    found = snapshot.documents().get("credentials", {}).get("credentials")
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict) and isinstance(item.get("service"), str):
            label = item.get("label")
            kind = item.get("credential_type")
            about = ", ".join(str(part) for part in (label, kind) if isinstance(part, str) and part)
            yield f"{item['service']} ({about})" if about else item["service"]


# --- Rebuilt from records -------------------------------------------------------------------------------------------


def rebuilt(snapshot: Snapshot, notes: list[str]) -> dict[str, str]:
    """The files of an archive without raw ones: people and memories as Markdown."""
    documents = snapshot.documents()
    files = {path: text for path, text in _people(documents) if text.strip()}
    sections: dict[str, list[str]] = {}
    passed = 0
    for record, _ in snapshot.records():
        if record.get("status") in _GONE:
            passed += 1
            continue
        sections.setdefault(_file_for(record), []).append(str(record["content"]).rstrip("\n"))
    if passed:
        notes.append(f"{passed} records that were deleted or superseded were not brought back")
    for path, texts in sections.items():
        text = "\n\n".join(texts) + "\n"
        files[path] = f"{files[path].rstrip()}\n\n{text}" if path in files else text
    return files


def _people(documents: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    identity = documents.get("identity", {})
    prose = identity.get("prose")
    if isinstance(prose, dict):
        for field, file in _PROSE.items():
            if isinstance(prose.get(field), str):
                yield file, prose[field]
    elif isinstance(structured := identity.get("structured"), dict):
        names = structured.get("names")
        name = names.get("primary") if isinstance(names, dict) else None
        role = structured.get("role")
        yield "SOUL.md", f"# {name or 'Agent'}\n{role or ''}".rstrip() + "\n"
    principals = documents.get("principals", {}).get("principals")
    first: Any = principals[0] if isinstance(principals, list) and principals else {}
    profile = first.get("profile") if isinstance(first, dict) else None
    said = profile.get("prose") if isinstance(profile, dict) else None
    if isinstance(said, dict) and isinstance(said.get("user_profile"), str):
        yield "USER.md", said["user_profile"]


def _file_for(record: Record) -> str:
    """Where a record belongs: where it came from, if that is a Markdown file here; else by its namespace and day."""
    namespace = str(record.get("namespace") or "default")
    origin = record["source"].get("origin_file")
    if namespace == "curated":
        return "MEMORY.md"
    if isinstance(origin, str) and origin.endswith(".md") and not refusal(origin):
        return origin
    if namespace == "daily":
        temporal = record["temporal"]
        moment = parse_moment(temporal.get("observed_at") or temporal.get("created_at"))
        if moment is not None:
            return f"memory/{moment:%Y-%m-%d}.md"
    return f"memory/{_SLUG.sub('-', namespace.lower()).strip('-')[:80] or 'default'}.md"


def count_states(files: Sequence[ImportedFile]) -> dict[str, int]:
    return {state: sum(file.state == state for file in files) for state in (NEW, SAME, DIFFERENT, BLOCKED, HELD)}
