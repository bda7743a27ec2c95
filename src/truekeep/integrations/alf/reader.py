"""An archive that is there: its manifest, its documents, its records one by one, its files. Read, never changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from truekeep.core.errors import BadInput
from truekeep.integrations.alf.files import NO_TIME, path_of, sane_mode, sane_time
from truekeep.integrations.alf.record_ids import parse_agent_id
from truekeep.integrations.alf.records import Record, parse_line
from truekeep.integrations.alf.validate import sound_record
from truekeep.integrations.alf.writer import ATTACHMENTS, DOCUMENTS, FILES, INDEX, MANIFEST, Document, FileEntry
from truekeep.integrations.alf.zip_container import BadArchive, Reader, is_usual, unsafe_name

DELTA, CHANGES = "delta-manifest.json", "memory/delta.jsonl"
_PLACEHOLDER = ".keep"  # what some tools put into a folder of the archive that would have nothing in it

Salvage = Callable[[BadArchive], None]
"""Hears of what cannot be read, when the rest is wanted all the same."""


class Snapshot:
    """A full archive, or a delta."""

    def __init__(self, reader: Reader, *, salvage: Salvage | None = None) -> None:
        self.reader = reader
        self._salvage = salvage
        self._files: dict[str, FileEntry] | None = None
        self.is_delta = DELTA in reader.entries  # some write a copy under the other name, too
        name = DELTA if self.is_delta else MANIFEST
        if name not in reader.entries and salvage is None:
            what = "it has no manifest.json, so it is no archive of an agent"
            raise BadArchive(what, hint="is it an .alf file?", of=reader.name)
        self.manifest = self._saved(name)
        about = self.manifest.get("agent")
        self.agent: Document = about if isinstance(about, dict) else {}
        layers = self.manifest.get("layers")
        self.layers: Document = layers if isinstance(layers, dict) else {}
        changes = self.manifest.get("changes")
        self.changes: Document = changes if isinstance(changes, dict) else {}

    @property
    def agent_id(self) -> str:
        found = self.find_agent_id()
        if found is None:
            raise BadArchive("its manifest does not say which agent it is of", entry=MANIFEST, of=self.reader.name)
        return found

    def find_agent_id(self) -> str | None:
        """The agent's id as truekeep writes ids; None where the manifest has none that could be one."""
        found = self.agent.get("id")
        try:
            return parse_agent_id(found) if isinstance(found, str) else None
        except BadInput:
            return None

    def require_full(self) -> None:
        """Refuse a delta where all of an agent is needed."""
        if self.is_delta:
            raise BadArchive(
                "this is a delta",
                hint="`truekeep alf apply` makes a full archive of it and its base",
                of=self.reader.name,
            )

    @property
    def is_ours(self) -> bool:
        """Whether truekeep made it, and so lists its files."""
        return FILES in self.reader.entries

    def document(self, name: str) -> Document:
        """A JSON document of the archive."""
        try:
            return parse_line(self.reader.read(name))
        except ValueError as error:
            raise BadArchive(f"{name} {error}", entry=name, of=self.reader.name) from error

    def _saved(self, name: str) -> Document:
        """A document; an empty one for what is damaged, where the rest is wanted all the same."""
        try:
            return self.document(name)
        except BadArchive as error:
            if self._salvage is None:
                raise
            self._salvage(error)
            return {}

    def documents(self) -> dict[str, Document]:
        """Identity, principals and credentials, as far as the manifest names them."""
        named = {layer: self.file_of(layer) for layer in DOCUMENTS}
        found = {layer: self._saved(name) for layer, name in named.items() if name is not None}
        return {layer: document for layer, document in found.items() if document}

    def file_of(self, layer: str) -> str | None:
        """The entry that the manifest names for a layer."""
        about = (self.changes if self.is_delta else self.layers).get(layer)
        name = about.get("file") if isinstance(about, dict) else None
        return name if isinstance(name, str) else None

    def partitions(self) -> list[str]:
        """The entries that hold records, in the manifest's order."""
        if self.is_delta:
            name = self.file_of("memory")
            return [name] if name is not None else []
        memory = self.layers.get("memory")
        parts: Any = memory.get("partitions") if isinstance(memory, dict) else None
        names = [part.get("file") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return [name for name in dict.fromkeys(names) if isinstance(name, str)]

    def records(
        self, partitions: Iterable[str] | None = None, *, about: Collection[str] = ()
    ) -> Iterator[tuple[Record, bytes]]:
        """Every record with its line. A line that is none is a BadArchive, unless the good ones are wanted alone.

        `about`: the few files whose records are wanted; other lines are passed over where that is cheaply seen.
        """
        marks = [json.dumps(path, ensure_ascii=False).encode() for path in about]
        for name in self.partitions() if partitions is None else partitions:
            yield from self._records(name, marks)

    def _records(self, name: str, marks: Sequence[bytes]) -> Iterator[tuple[Record, bytes]]:
        try:
            for number, line in self.reader.lines(name):
                if marks and not _may_hold(line, marks):
                    continue
                try:
                    record = self._parsed(line)
                    why = _unusable(record)
                except ValueError as error:
                    why = str(error)
                if not why:
                    yield record, line
                    continue
                problem = BadArchive(f"{name}:{number} {why}", entry=name, line=number, of=self.reader.name)
                if self._salvage is None:
                    raise problem
                self._salvage(problem)
        except BadArchive as error:
            if self._salvage is None or error.problem.line:
                raise
            self._salvage(error)

    def _parsed(self, line: bytes) -> Record:
        """A record. Where only the good ones are wanted, it has to be one that `validate` would let pass."""
        if self._salvage is None or self.is_delta:
            return parse_line(line)
        return sound_record(line)

    def files(self) -> Mapping[str, FileEntry]:
        """The agent's files by path: as truekeep lists them, else as the entries and the artifacts' index show."""
        if self._files is None:
            self._files = self._find_files()
        return self._files

    def _find_files(self) -> dict[str, FileEntry]:
        try:
            found = self._listed()
        except BadArchive as error:
            if self._salvage is None:
                raise
            self._salvage(error)
            found = {}
        if not (self.is_ours or self.is_delta):
            found = {line.path: line for line in self._attached()}
        known = {line.entry for line in found.values()}
        for name, info in self.reader.entries.items():
            path = path_of(name) if name not in known else ""
            if path and path != _PLACEHOLDER and path not in found:
                found[path] = FileEntry(path, name, info.file_size, NO_TIME, 0o644)
        return dict(sorted(found.items()))

    def _listed(self) -> dict[str, FileEntry]:
        if not self.is_ours:
            return {}
        found: dict[str, FileEntry] = {}
        told = {problem.entry for problem in self.reader.problems}
        for number, raw in self.reader.lines(FILES):
            try:
                line = _line(raw)
                if line.path in found:
                    raise ValueError(f"lists {line.path} a second time")
                if line.entry is None or line.entry in self.reader.entries:
                    found[line.path] = line
                elif line.entry not in told:
                    raise ValueError(f"lists {line.entry}, which is not in the archive")
            except ValueError as error:
                what = f"{FILES}:{number} {error}"
                problem = BadArchive(what, entry=FILES, line=number, of=self.reader.name)
                if self._salvage is None:
                    raise problem from error
                self._salvage(problem)
        return found

    def _attached(self) -> Iterator[FileEntry]:
        """The artifacts of another tool's archive, under the paths that they come from."""
        name = self.file_of("attachments")
        items = self._saved(name).get("attachments") if name is not None and name in self.reader.entries else None
        for item in items if isinstance(items, list) else ():
            path, entry = (item.get("source_path"), item.get("archive_path")) if isinstance(item, dict) else ("", "")
            if not isinstance(path, str) or unsafe_name(path):
                continue
            if entry is None:
                size = item.get("size_bytes")
                yield FileEntry(path, None, size if isinstance(size, int) else 0, NO_TIME, 0o644)
            elif isinstance(entry, str) and path_of(entry) and entry in self.reader.entries:
                yield FileEntry(path, entry, self.reader.entries[entry].file_size, NO_TIME, 0o644)

    def others(self) -> list[str]:
        """Entries of other tools and runtimes, which are kept as they are."""
        place = self.changes if self.is_delta else self.layers
        named = {item.get("file") for item in place.values() if isinstance(item, dict)}
        known = {*named, *self.partitions(), MANIFEST, DELTA, INDEX, FILES, ATTACHMENTS}
        known |= {line.entry for line in self.files().values()}
        return [name for name in self.reader.entries if name not in known]


def _may_hold(line: bytes, marks: Sequence[bytes]) -> bool:
    """Whether a line can name one of these files. One that writes letters or slashes as escapes has to be parsed."""
    return any(mark in line for mark in marks) or b"\\u" in line or b"\\/" in line


def _unusable(record: Record) -> str:
    """Why a line that is JSON is no record that anything could be done with."""
    for field, kind in (("id", str), ("content", str), ("source", dict), ("temporal", dict)):
        if not isinstance(record.get(field), kind):
            return f"has no {field} that can be read"
    return ""


_NAME, _NUMBER = rb"[\w./-]+", rb"(0|[1-9]\d{0,18})"
_OWN_LINE = re.compile(
    rb'\{"path":"(%b)","entry":(?:null|"((?:raw/openclaw|artifacts)/(%b))"),"size":%b,"mtime_ns":%b,"mode":%b'
    rb',"sha256":"([0-9a-f]*)","partitions":\[(?:"(%b(?:","%b)*)")?\]\}'
    % (_NAME, _NAME, _NUMBER, _NUMBER, _NUMBER, _NAME, _NAME)
)
"""A line as truekeep writes it, about a file with a plain name: it says the same without a parser."""


def _line(raw: bytes) -> FileEntry:
    """A line of the list of files. Raises ValueError where it cannot be believed."""
    match = _OWN_LINE.fullmatch(raw)
    if match is not None:
        path, entry, inside, size, mtime_ns, mode, digest, partitions = match.groups()
        name = path.decode()
        if is_usual(name) and (entry is None or inside == path):
            return FileEntry(
                name,
                entry.decode() if entry is not None else None,
                int(size),
                sane_time(int(mtime_ns)),
                sane_mode(int(mode)),
                digest.decode(),
                tuple(partitions.decode().split('","')) if partitions else (),
            )
    return _parsed_line(raw)


def _parsed_line(raw: bytes) -> FileEntry:
    given = parse_line(raw)
    try:
        line = FileEntry(
            path=given["path"],
            entry=given["entry"],
            size=given["size"],
            mtime_ns=sane_time(given["mtime_ns"]),
            mode=sane_mode(given.get("mode", 0o644)),
            sha256=given["sha256"],
            partitions=tuple(given.get("partitions", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("is no line of a list of files") from error
    whole = isinstance(line.size, int) and isinstance(line.mtime_ns, int) and isinstance(line.mode, int)
    if not whole or not isinstance(line.path, str) or not isinstance(line.sha256, str):
        raise ValueError("is no line of a list of files")
    if why := unsafe_name(line.path):
        raise ValueError(f"lists a file whose name {why}")
    if line.entry is not None and path_of(str(line.entry)) != line.path:
        raise ValueError(f"says that {line.path} is in an entry of another name")
    return line
