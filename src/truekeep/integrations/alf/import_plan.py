"""Plan an import: the files that an archive contains, and how each compares with the workspace.

Files come from the archive's raw files, byte for byte, or are rebuilt from records if it has none (an archive of
another runtime). Nothing is written here. Paths outside of the workspace, and files of truekeep, git or other programs,
are blocked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from truekeep.core.file_io import open_regular
from truekeep.integrations.alf.documents import JsonObject, MemoryRecord, object_or_empty
from truekeep.integrations.alf.files import CONTROL_FILES, RAW, UNKNOWN_TIME, ListedFile, refusal_reason
from truekeep.integrations.alf.reader import ArchiveReader, OnDamage
from truekeep.integrations.alf.timestamps import parse_timestamp
from truekeep.integrations.alf.zip_container import BadArchive

NEW, SAME, DIFFERENT, BLOCKED, HELD = "new", "same", "different", "blocked", "held"
_SLUG = re.compile(r"[^a-z0-9]+")
_PROSE_FILES = {"soul": "SOUL.md", "operating_instructions": "AGENTS.md", "identity_profile": "IDENTITY.md"}
_NOT_RESTORED = ("deleted", "superseded")
_DAMAGE_HINT = "nothing was written; --salvage imports the intact files, `truekeep alf validate` lists the damage"


class PlannedImport(NamedTuple):
    """One file of the archive, compared with the workspace."""

    listed: ListedFile
    state: str  # new, same, different, blocked or held
    pieces: Callable[[], Iterable[bytes]]
    why: str = ""  # it is blocked or held back


class ImportPlan(NamedTuple):
    """Everything that an import would do."""

    files: tuple[PlannedImport, ...]
    is_rebuilt: bool  # from records, because there are no raw files
    referenced: tuple[ListedFile, ...]  # artifacts that the archive lists but does not contain
    credentials: tuple[str, ...]  # services where the agent has to log in again
    notes: tuple[str, ...]
    unlisted: frozenset[str] = frozenset()  # files that are missing from the archive's own file list

    def of(self, state: str) -> list[PlannedImport]:
        return [file for file in self.files if file.state == state]

    @property
    def changes(self) -> list[PlannedImport]:
        return [file for file in self.files if file.state != SAME]

    @property
    def counts(self) -> dict[str, int]:
        return {state: len(self.of(state)) for state in (NEW, SAME, DIFFERENT, BLOCKED, HELD)}

    @property
    def missing(self) -> list[str]:
        """Files that the archive only lists."""
        return [file.path for file in self.referenced]


def plan_import(archive: ArchiveReader, root: str, *, on_damage: OnDamage | None = None) -> ImportPlan:
    """Compare an archive with a workspace, which need not exist yet.

    Every file is read, so that a damaged archive is refused before anything is written. With `on_damage`, damaged files
    are blocked instead, and the others can be imported.
    """
    archive.require_full()
    notes: list[str] = []
    listed = archive.files()
    contained = [file for path, file in listed.items() if file.entry is not None and path not in CONTROL_FILES]
    is_rebuilt = not archive.is_by_truekeep and not any(file.tier == RAW for file in contained)
    wanted: dict[str, tuple[ListedFile, Callable[[], Iterable[bytes]]]] = {}
    if is_rebuilt:
        for path, text in rebuild_files(archive, notes).items():
            data = text.encode("utf-8", "replace")
            wanted[path] = (ListedFile(path, None, len(data), UNKNOWN_TIME, 0o644), partial(iter, (data,)))
    for file in contained:
        wanted[file.path] = (file, partial(archive.verified_pieces, file))
    folders = {folder for path in wanted for folder in _parents(path)}
    planned = []
    for path, (file, pieces) in sorted(wanted.items()):
        why = refusal_reason(path)
        if not why and path in folders:
            why = "is both a file and a folder"
        if not why and on_damage is not None and (error := _find_damage(pieces)) is not None:
            on_damage(error)
            why = "it is damaged"
        state, why = (BLOCKED, why) if why else _compare(root, path, pieces)
        if on_damage is None and state in (NEW, DIFFERENT) and (error := _find_damage(pieces)) is not None:
            raise BadArchive(error.message, entry=error.problem.entry, hint=_DAMAGE_HINT)
        planned.append(PlannedImport(file, state, pieces, why))
    referenced = tuple(file for file in listed.values() if file.entry is None)
    unlisted = frozenset(file.path for file in contained if archive.is_by_truekeep and not file.sha256)
    services = tuple(iter_credential_services(archive))
    return ImportPlan(tuple(planned), is_rebuilt, referenced, services, tuple(notes), unlisted)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _find_damage(pieces: Callable[[], Iterable[bytes]]) -> BadArchive | None:
    try:
        for _ in pieces():
            pass
    except BadArchive as error:
        return error
    return None


def _compare(root: str, path: str, pieces: Callable[[], Iterable[bytes]]) -> tuple[str, str]:
    """The state of a file in the workspace, and why it is blocked. No link is followed."""
    at = root
    parts = path.split("/")
    for number, part in enumerate(parts):
        at = os.path.join(at, part)
        is_last = number == len(parts) - 1
        if os.path.islink(at):
            return BLOCKED, "a symbolic link is in its place" if is_last else "a symbolic link is in its path"
        if not os.path.lexists(at):
            return NEW, ""
        if os.path.isdir(at) == is_last or (is_last and not os.path.isfile(at)):
            return BLOCKED, "a folder is in its place" if is_last else "a file is where a folder is needed"
    with open(open_regular(at, follow=False), "rb") as file:
        for piece in pieces():
            if file.read(len(piece)) != piece:
                return DIFFERENT, ""
        return (DIFFERENT if file.read(1) else SAME), ""


def iter_credential_services(archive: ArchiveReader) -> Iterator[str]:
    """The services where the agent has to log in again: an archive contains no secrets."""
    found = archive.documents().get("credentials", {}).get("credentials")
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict) and isinstance(item.get("service"), str):
            label = item.get("label")
            kind = item.get("credential_type")
            about = ", ".join(str(part) for part in (label, kind) if isinstance(part, str) and part)
            yield f"{item['service']} ({about})" if about else item["service"]


# --- Rebuilt from records -------------------------------------------------------------------------------------------


def rebuild_files(archive: ArchiveReader, notes: list[str]) -> dict[str, str]:
    """Markdown files from the documents and records of an archive without raw files."""
    documents = archive.documents()
    files = {path: text for path, text in _identity_files(documents) if text.strip()}
    sections: dict[str, list[str]] = {}
    skipped = 0
    for record, _ in archive.records():
        if record.get("status") in _NOT_RESTORED:
            skipped += 1
            continue
        sections.setdefault(_file_for(record), []).append(record["content"].rstrip("\n"))
    if skipped:
        notes.append(f"{skipped} deleted or superseded records were not restored")
    for path, texts in sections.items():
        text = "\n\n".join(texts) + "\n"
        files[path] = f"{files[path].rstrip()}\n\n{text}" if path in files else text
    return files


def _identity_files(documents: Mapping[str, JsonObject]) -> Iterator[tuple[str, str]]:
    identity = documents.get("identity", {})
    prose = identity.get("prose")
    if isinstance(prose, dict):
        for field, file in _PROSE_FILES.items():
            if isinstance(prose.get(field), str):
                yield file, prose[field]
    elif isinstance(structured := identity.get("structured"), dict):
        name = object_or_empty(structured.get("names")).get("primary")
        role = structured.get("role")
        yield "SOUL.md", f"# {name or 'Agent'}\n{role or ''}".rstrip() + "\n"
    principals = documents.get("principals", {}).get("principals")
    first: Any = principals[0] if isinstance(principals, list) and principals else {}
    profile = object_or_empty(object_or_empty(first).get("profile"))
    user_profile = object_or_empty(profile.get("prose")).get("user_profile")
    if isinstance(user_profile, str):
        yield "USER.md", user_profile


def _file_for(record: MemoryRecord) -> str:
    """The file of a record: its original Markdown file if that is allowed, else by its namespace and day."""
    namespace = str(record.get("namespace") or "default")
    origin: object = record["source"].get("origin_file")
    if namespace == "curated":
        return "MEMORY.md"
    if isinstance(origin, str) and origin.endswith(".md") and not refusal_reason(origin):
        return origin
    if namespace == "daily":
        temporal = record["temporal"]
        at = parse_timestamp(temporal.get("observed_at") or temporal.get("created_at"))
        if at is not None:
            return f"memory/{at:%Y-%m-%d}.md"
    return f"memory/{_SLUG.sub('-', namespace.lower()).strip('-')[:80] or 'default'}.md"
