"""Read an archive: its manifest, documents and files, and its records one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from truekeep.core.errors import BadInput
from truekeep.integrations.alf.documents import JsonObject, MemoryRecord, object_or_empty, parse_object
from truekeep.integrations.alf.files import UNKNOWN_TIME, clamp_time, portable_mode, workspace_path
from truekeep.integrations.alf.record_ids import parse_agent_id
from truekeep.integrations.alf.validate import parse_valid_record
from truekeep.integrations.alf.writer import ATTACHMENTS, DOCUMENTS, FILES, INDEX, MANIFEST, ListedFile
from truekeep.integrations.alf.zip_container import BadArchive, ZipReader, is_ordinary, unsafe_name

DELTA_MANIFEST, DELTA_RECORDS = "delta-manifest.json", "memory/delta.jsonl"
_PLACEHOLDER = ".keep"  # some tools put this file into empty folders

OnDamage = Callable[[BadArchive], None]
"""Called for each part that cannot be read; reading then continues with the rest."""


class ArchiveReader:
    """A full archive or a delta. Damage raises BadArchive, unless `on_damage` is given."""

    def __init__(self, reader: ZipReader, *, on_damage: OnDamage | None = None) -> None:
        self.reader = reader
        self._on_damage = on_damage
        self._files: dict[str, ListedFile] | None = None
        self.is_delta = DELTA_MANIFEST in reader.entries  # which may also have a copy named manifest.json
        name = DELTA_MANIFEST if self.is_delta else MANIFEST
        if name not in reader.entries and on_damage is None:
            raise BadArchive("it has no manifest.json", hint="is it an .alf file?", of=reader.name)
        self.manifest = self._document_or_empty(name)
        self.agent = object_or_empty(self.manifest.get("agent"))
        self.layers = object_or_empty(self.manifest.get("layers"))
        self.changes = object_or_empty(self.manifest.get("changes"))

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

    def document(self, name: str) -> JsonObject:
        """Parse a JSON document of the archive."""
        try:
            return parse_object(self.reader.read(name))
        except ValueError as error:
            raise BadArchive(f"{name} {error}", entry=name, of=self.reader.name) from error

    def _document_or_empty(self, name: str) -> JsonObject:
        """A document; empty if it is damaged and `on_damage` is given."""
        try:
            return self.document(name)
        except BadArchive as error:
            if self._on_damage is None:
                raise
            self._on_damage(error)
            return {}

    def documents(self) -> dict[str, JsonObject]:
        """Identity, principals and credentials, if the manifest names them."""
        named = {layer: self.file_of(layer) for layer in DOCUMENTS}
        found = {layer: self._document_or_empty(name) for layer, name in named.items() if name is not None}
        return {layer: document for layer, document in found.items() if document}

    def file_of(self, layer: str) -> str | None:
        """The entry that the manifest names for a layer."""
        name = object_or_empty((self.changes if self.is_delta else self.layers).get(layer)).get("file")
        return name if isinstance(name, str) else None

    def partitions(self) -> list[str]:
        """The entries with records, in the manifest's order."""
        if self.is_delta:
            name = self.file_of("memory")
            return [name] if name is not None else []
        parts: Any = object_or_empty(self.layers.get("memory")).get("partitions")
        names = [part.get("file") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return [name for name in dict.fromkeys(names) if isinstance(name, str)]

    def records(
        self, partitions: Iterable[str] | None = None, *, likely_from: Collection[str] = ()
    ) -> Iterator[tuple[MemoryRecord, bytes]]:
        """Every record with its line.

        `likely_from`: the few files whose records are wanted. Most lines of other files are then skipped unparsed.
        """
        marks = [json.dumps(path, ensure_ascii=False).encode() for path in likely_from]
        for name in self.partitions() if partitions is None else partitions:
            yield from self._records(name, marks)

    def _records(self, name: str, marks: Sequence[bytes]) -> Iterator[tuple[MemoryRecord, bytes]]:
        try:
            for number, line in self.reader.lines(name):
                if marks and not _may_contain(line, marks):
                    continue
                try:
                    record = self._parse_record(line)
                    why = _unusable(record)
                except ValueError as error:
                    why = str(error)
                if not why:
                    yield cast(MemoryRecord, record), line
                    continue
                problem = BadArchive(f"{name}:{number} {why}", entry=name, line=number, of=self.reader.name)
                if self._on_damage is None:
                    raise problem
                self._on_damage(problem)
        except BadArchive as error:
            if self._on_damage is None or error.problem.line:
                raise
            self._on_damage(error)

    def _parse_record(self, line: bytes) -> JsonObject:
        """Parse a line. With `on_damage`, records that upstream's reader would reject raise ValueError as well."""
        if self._on_damage is None or self.is_delta:
            return parse_object(line)
        return parse_valid_record(line)

    def files(self) -> Mapping[str, ListedFile]:
        """The agent's files by path: from truekeep's list, else from the entries and the index of attachments."""
        if self._files is None:
            self._files = self._find_files()
        return self._files

    def _find_files(self) -> dict[str, ListedFile]:
        try:
            found = self._listed_files()
        except BadArchive as error:
            if self._on_damage is None:
                raise
            self._on_damage(error)
            found = {}
        if not (self.is_by_truekeep or self.is_delta):
            found = {file.path: file for file in self._attachments()}
        known = {file.entry for file in found.values()}
        for name, info in self.reader.entries.items():
            path = workspace_path(name) if name not in known else ""
            if path and path != _PLACEHOLDER and path not in found:
                found[path] = ListedFile(path, name, info.file_size, UNKNOWN_TIME, 0o644)
        return dict(sorted(found.items()))

    def _listed_files(self) -> dict[str, ListedFile]:
        if not self.is_by_truekeep:
            return {}
        found: dict[str, ListedFile] = {}
        reported = {problem.entry for problem in self.reader.problems}
        for number, raw in self.reader.lines(FILES):
            try:
                file = _parse_listed_file(raw)
                if file.path in found:
                    raise ValueError(f"lists {file.path} a second time")
                if file.entry is None or file.entry in self.reader.entries:
                    found[file.path] = file
                elif file.entry not in reported:
                    raise ValueError(f"lists {file.entry}, which is not in the archive")
            except ValueError as error:
                problem = BadArchive(f"{FILES}:{number} {error}", entry=FILES, line=number, of=self.reader.name)
                if self._on_damage is None:
                    raise problem from error
                self._on_damage(problem)
        return found

    def _attachments(self) -> Iterator[ListedFile]:
        """The attachments of another tool's archive, by their original paths."""
        name = self.file_of("attachments")
        items = (
            self._document_or_empty(name).get("attachments")
            if name is not None and name in self.reader.entries
            else None
        )
        for item in items if isinstance(items, list) else ():
            path, entry = (item.get("source_path"), item.get("archive_path")) if isinstance(item, dict) else ("", "")
            if not isinstance(path, str) or unsafe_name(path):
                continue
            if entry is None:
                size = item.get("size_bytes")
                yield ListedFile(path, None, size if isinstance(size, int) else 0, UNKNOWN_TIME, 0o644)
            elif isinstance(entry, str) and workspace_path(entry) and entry in self.reader.entries:
                yield ListedFile(path, entry, self.reader.entries[entry].file_size, UNKNOWN_TIME, 0o644)

    def foreign_entries(self) -> list[str]:
        """Entries of other tools and runtimes, which are copied to new archives."""
        layers = self.changes if self.is_delta else self.layers
        named = {layer.get("file") for layer in layers.values() if isinstance(layer, dict)}
        known = {*named, *self.partitions(), MANIFEST, DELTA_MANIFEST, INDEX, FILES, ATTACHMENTS}
        known |= {file.entry for file in self.files().values()}
        return [name for name in self.reader.entries if name not in known]


def _may_contain(line: bytes, marks: Sequence[bytes]) -> bool:
    """False if a line certainly names none of these files. Lines with escaped characters have to be parsed."""
    return any(mark in line for mark in marks) or b"\\u" in line or b"\\/" in line


def _unusable(record: JsonObject) -> str:
    """Why a JSON object cannot be used as a record; empty if it can."""
    for field, kind in (("id", str), ("content", str), ("source", dict), ("temporal", dict)):
        if not isinstance(record.get(field), kind):
            return f"has no valid {field}"
    return ""


_NAME, _NUMBER = rb"[\w./-]+", rb"(0|[1-9]\d{0,18})"
_OWN_LINE = re.compile(
    rb'\{"path":"(%b)","entry":(?:null|"((?:raw/openclaw|artifacts)/(%b))"),"size":%b,"mtime_ns":%b,"mode":%b'
    rb',"sha256":"([0-9a-f]*)","partitions":\[(?:"(%b(?:","%b)*)")?\]\}'
    % (_NAME, _NAME, _NUMBER, _NUMBER, _NUMBER, _NAME, _NAME)
)
"""A line as truekeep writes it, for a file with an ordinary name: matching it is faster than parsing JSON."""


def _parse_listed_file(raw: bytes) -> ListedFile:
    """Parse a line of truekeep/files.jsonl. Raises ValueError if it is invalid."""
    match = _OWN_LINE.fullmatch(raw)
    if match is not None:
        path, entry, inside, size, mtime_ns, mode, digest, partitions = match.groups()
        name = path.decode()
        if is_ordinary(name) and (entry is None or inside == path):
            return ListedFile(
                name,
                entry.decode() if entry is not None else None,
                int(size),
                clamp_time(int(mtime_ns)),
                portable_mode(int(mode)),
                digest.decode(),
                tuple(partitions.decode().split('","')) if partitions else (),
            )
    return _parse_listed_json(raw)


def _parse_listed_json(raw: bytes) -> ListedFile:
    given = parse_object(raw)
    try:
        file = ListedFile(
            path=given["path"],
            entry=given["entry"],
            size=given["size"],
            mtime_ns=clamp_time(given["mtime_ns"]),
            mode=portable_mode(given.get("mode", 0o644)),
            sha256=given["sha256"],
            partitions=tuple(given.get("partitions", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("is not a valid line of the file list") from error
    is_valid = all(isinstance(number, int) for number in (file.size, file.mtime_ns, file.mode))
    if not is_valid or not isinstance(file.path, str) or not isinstance(file.sha256, str):
        raise ValueError("is not a valid line of the file list")
    if why := unsafe_name(file.path):
        raise ValueError(f"lists a file whose name {why}")
    if file.entry is not None and workspace_path(str(file.entry)) != file.path:
        raise ValueError(f"lists {file.path} with an entry of another name")
    return file
