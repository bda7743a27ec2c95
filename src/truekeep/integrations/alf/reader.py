"""Read an archive: its manifest, documents and files, and its records one by one.

With `on_damage`, a part that cannot be read is reported and skipped; without it, BadArchive is raised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from truekeep.core.errors import BadInput
from truekeep.integrations.alf.documents import (
    ATTACHMENTS,
    DELTA_MANIFEST,
    DOCUMENTS,
    FILES,
    INDEX,
    MANIFEST,
    JsonObject,
    MemoryRecord,
    object_or_empty,
    parse_object,
)
from truekeep.integrations.alf.files import UNKNOWN_TIME, ListedFile, clamp_time, portable_mode, workspace_path
from truekeep.integrations.alf.record_ids import parse_agent_id
from truekeep.integrations.alf.validate import parse_valid_record
from truekeep.integrations.alf.writer import ForeignEntry
from truekeep.integrations.alf.zip_container import BadArchive, ZipReader, unsafe_name

_PLACEHOLDER = ".keep"  # some tools put this file into empty folders

OnDamage = Callable[[BadArchive], None]


class ArchiveReader:
    """A full archive or a delta."""

    def __init__(self, reader: ZipReader, *, on_damage: OnDamage | None = None) -> None:
        self.reader = reader
        self._on_damage = on_damage
        self._files: dict[str, ListedFile] | None = None
        self.is_delta = DELTA_MANIFEST in reader.entries  # which may also have a copy named manifest.json
        name = DELTA_MANIFEST if self.is_delta else MANIFEST
        if name not in reader.entries and on_damage is None:
            raise BadArchive("it has no manifest.json", hint="is it an .alf file?", of=reader.name)
        self.manifest = self._document(name)
        self.agent = object_or_empty(self.manifest.get("agent"))
        self.layers = object_or_empty(self.manifest.get("changes" if self.is_delta else "layers"))
        """Of a delta, the layers that it changes."""

    def _report(self, message: str, entry: str, line: int = 0) -> None:
        self._skip(BadArchive(message, entry=entry, line=line, of=self.reader.name))

    def _skip(self, error: BadArchive) -> None:
        if self._on_damage is None:
            raise error
        self._on_damage(error)

    def require_full(self) -> None:
        """Refuse a delta."""
        if self.is_delta:
            raise BadArchive(
                "this is a delta",
                hint="`truekeep alf apply` combines it with its base into a full archive",
                of=self.reader.name,
            )

    @property
    def is_by_truekeep(self) -> bool:
        """True if truekeep made it; then it lists its files."""
        return FILES in self.reader.entries

    # --- The manifest and documents

    @property
    def agent_id(self) -> str:
        found = self.find_agent_id()
        if found is None:
            raise BadArchive("its manifest has no valid agent id", entry=MANIFEST, of=self.reader.name)
        return found

    def find_agent_id(self) -> str | None:
        """The agent's id in canonical form; None if the manifest has no valid one."""
        found = self.agent.get("id")
        try:
            return parse_agent_id(found) if isinstance(found, str) else None
        except BadInput:
            return None

    def head(self) -> JsonObject:
        """The manifest without its layers."""
        return {key: value for key, value in self.manifest.items() if key not in ("layers", "checksum")}

    @property
    def last_sequence(self) -> int:
        """The sequence number of an archive; 0 if it has none."""
        number = object_or_empty(self.manifest.get("sync")).get("last_sequence")
        return number if isinstance(number, int) and number >= 0 else 0

    @property
    def record_count(self) -> int:
        """The number of records according to the manifest."""
        count = object_or_empty(self.layers.get("memory")).get("record_count")
        return count if isinstance(count, int) else 0

    def _document(self, name: str) -> JsonObject:
        """A JSON document of the archive; empty if it is damaged."""
        try:
            return parse_object(self.reader.read(name))
        except BadArchive as error:
            self._skip(error)
        except ValueError as error:
            self._report(f"{name} {error}", name)
        return {}

    def documents(self) -> dict[str, JsonObject]:
        """Identity, principals and credentials, if the manifest names them."""
        named = {layer: self.file_of(layer) for layer in DOCUMENTS}
        found = {layer: self._document(name) for layer, name in named.items() if name is not None}
        return {layer: document for layer, document in found.items() if document}

    def file_of(self, layer: str) -> str | None:
        """The entry that the manifest names for a layer."""
        name = object_or_empty(self.layers.get(layer)).get("file")
        return name if isinstance(name, str) else None

    # --- Records

    def partitions(self) -> list[str]:
        """The entries with records, in the manifest's order."""
        memory = object_or_empty(self.layers.get("memory"))
        parts: Any = [memory] if self.is_delta else memory.get("partitions")
        names = [part.get("file") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return [name for name in dict.fromkeys(names) if isinstance(name, str)]

    def records(self, partitions: Iterable[str] | None = None) -> Iterator[tuple[MemoryRecord, bytes]]:
        """Every record with its line."""
        for name in self.partitions() if partitions is None else partitions:
            try:
                for number, line in self.reader.lines(name):
                    record = self._record(name, number, line)
                    if record is not None:
                        yield record, line
            except BadArchive as error:
                if error.problem.line:
                    raise
                self._skip(error)

    def _record(self, name: str, number: int, line: bytes) -> MemoryRecord | None:
        """Parse a line. With `on_damage`, a record that upstream's reader would reject is skipped as well."""
        is_strict = self._on_damage is not None and not self.is_delta
        try:
            record = parse_valid_record(line) if is_strict else parse_object(line)
            for field, kind in (("id", str), ("content", str), ("source", dict), ("temporal", dict)):
                if not isinstance(record.get(field), kind):
                    raise ValueError(f"has no valid {field}")
        except ValueError as error:
            self._report(f"{name}:{number} {error}", name, number)
            return None
        return cast(MemoryRecord, record)

    # --- Files

    def files(self) -> Mapping[str, ListedFile]:
        """The agent's files by path: from truekeep's list, else from the entries and the index of attachments."""
        if self._files is None:
            try:
                found = self._listed_files() if self.is_by_truekeep else {}
            except BadArchive as error:
                self._skip(error)
                found = {}
            if not (self.is_by_truekeep or self.is_delta):
                found = {file.path: file for file in self._attachments()}
            known = {file.entry for file in found.values()}
            for name, info in self.reader.entries.items():
                path = workspace_path(name) if name not in known else ""
                if path and path != _PLACEHOLDER and path not in found:
                    found[path] = ListedFile(path, name, info.file_size, UNKNOWN_TIME, 0o644)
            self._files = dict(sorted(found.items()))
        return self._files

    def pieces(self, file: ListedFile) -> Iterator[bytes]:
        """The bytes of a file; none if it is only referenced."""
        return self.reader.pieces(file.entry) if file.entry is not None else iter(())

    def verified_pieces(self, file: ListedFile) -> Iterator[bytes]:
        """The bytes of a file. Raises BadArchive if they do not have the listed digest."""
        digest = hashlib.sha256()
        for piece in self.pieces(file):
            digest.update(piece)
            yield piece
        if file.sha256 and digest.hexdigest() != file.sha256:
            what = f"{file.entry} does not have the digest that the archive lists"
            raise BadArchive(what, entry=file.entry or "", of=self.reader.name)

    def _listed_files(self) -> dict[str, ListedFile]:
        found: dict[str, ListedFile] = {}
        reported = {problem.entry for problem in self.reader.problems}
        for number, line in self.reader.lines(FILES):
            try:
                file = _parse_listed_file(line)
                if file.path in found:
                    raise ValueError(f"lists {file.path} a second time")
                if file.entry is None or file.entry in self.reader.entries:
                    found[file.path] = file
                elif file.entry not in reported:
                    raise ValueError(f"lists {file.entry}, which is not in the archive")
            except ValueError as error:
                self._report(f"{FILES}:{number} {error}", FILES, number)
        return found

    def _attachments(self) -> Iterator[ListedFile]:
        """The attachments of another tool's archive, by their original paths."""
        name = self.file_of("attachments")
        items = self._document(name).get("attachments") if name is not None and name in self.reader.entries else None
        for item in map(object_or_empty, items if isinstance(items, list) else ()):
            path, entry, size = item.get("source_path"), item.get("archive_path"), item.get("size_bytes")
            if not isinstance(path, str) or unsafe_name(path):
                continue
            if entry is None:
                yield ListedFile(path, None, size if isinstance(size, int) else 0, UNKNOWN_TIME, 0o644)
            elif isinstance(entry, str) and workspace_path(entry) and entry in self.reader.entries:
                yield ListedFile(path, entry, self.reader.entries[entry].file_size, UNKNOWN_TIME, 0o644)

    # --- What other tools put into the archive

    def foreign_layers(self, *, is_by_truekeep: bool | None = None) -> JsonObject:
        """The layers that a new archive copies. Another tool's index of attachments is one of them."""
        is_ours = self.is_by_truekeep if is_by_truekeep is None else is_by_truekeep
        known = {*DOCUMENTS, "memory", *(("attachments",) if is_ours else ())}
        return {name: layer for name, layer in self.layers.items() if name not in known}

    def foreign_entries(self, *, is_by_truekeep: bool | None = None) -> list[str]:
        """The entries that a new archive copies: those of other tools and runtimes, and of foreign layers."""
        named = {object_or_empty(layer).get("file") for layer in self.layers.values()}
        copied = {object_or_empty(it).get("file") for it in self.foreign_layers(is_by_truekeep=is_by_truekeep).values()}
        known = {*named, *self.partitions(), MANIFEST, DELTA_MANIFEST, INDEX, FILES, ATTACHMENTS}
        known |= {file.entry for file in self.files().values()}
        return [name for name in self.reader.entries if name not in known or name in copied]

    def foreign_entry(self, name: str) -> ForeignEntry:
        return ForeignEntry(name, self.reader.entries[name].file_size, partial(self.reader.pieces, name))


def _parse_listed_file(line: bytes) -> ListedFile:
    """Parse a line of truekeep/files.jsonl. Raises ValueError if it is invalid."""
    try:
        given = json.loads(line)
        file = ListedFile(
            path=given["path"],
            entry=given["entry"],
            size=given["size"],
            mtime_ns=clamp_time(given["mtime_ns"]),
            mode=portable_mode(given.get("mode", 0o644)),
            sha256=given["sha256"],
            partitions=tuple(given.get("partitions", ())),
        )
        file.path.encode()  # not possible with half of a surrogate pair
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("is not a valid line of the file list") from error
    is_valid = isinstance(file.size, int) and isinstance(file.sha256, str) and isinstance(file.entry, str | None)
    if not is_valid:
        raise ValueError("is not a valid line of the file list")
    if why := unsafe_name(file.path):
        raise ValueError(f"lists a file whose name {why}")
    if file.entry is not None and workspace_path(file.entry) != file.path:
        raise ValueError(f"lists {file.path} with an entry of another name")
    return file
