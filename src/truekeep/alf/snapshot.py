"""An archive that is there: its manifest, its documents, its records one by one, its files. Read, never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from truekeep.alf.container import BadArchive, Reader, unsafe_name
from truekeep.alf.edition import ATTACHMENTS, DOCUMENTS, FILES, INDEX, MANIFEST, Document, Line
from truekeep.alf.records import RUNTIME, Record, parse_line

DELTA, CHANGES = "delta-manifest.json", "memory/delta.jsonl"
_RAW = f"raw/{RUNTIME}/"

Salvage = Callable[[BadArchive], None]
"""Hears of what cannot be read, when the rest is wanted all the same."""


class Snapshot:
    """A full archive, or a delta."""

    def __init__(self, reader: Reader, *, salvage: Salvage | None = None) -> None:
        self.reader = reader
        self._salvage = salvage
        self.is_delta = DELTA in reader.entries and MANIFEST not in reader.entries
        name = DELTA if self.is_delta else MANIFEST
        if name not in reader.entries:
            raise BadArchive("it has no manifest.json, so it is no archive of an agent", hint="is it an .alf file?")
        self.manifest = self.document(name)
        about = self.manifest.get("agent")
        self.agent: Document = about if isinstance(about, dict) else {}
        layers = self.manifest.get("layers")
        self.layers: Document = layers if isinstance(layers, dict) else {}
        changes = self.manifest.get("changes")
        self.changes: Document = changes if isinstance(changes, dict) else {}

    @property
    def agent_id(self) -> str:
        found = self.agent.get("id")
        if not isinstance(found, str):
            raise BadArchive("its manifest does not say which agent it is of", entry=MANIFEST)
        return found

    def document(self, name: str) -> Document:
        """A JSON document of the archive."""
        try:
            return parse_line(self.reader.read(name))
        except ValueError as error:
            raise BadArchive(f"{name} {error}", entry=name) from error

    def documents(self) -> dict[str, Document]:
        """Identity, principals and credentials, as far as the manifest names them."""
        place = self.changes if self.is_delta else self.layers
        found = {}
        for layer in DOCUMENTS:
            about = place.get(layer)
            name = about.get("file") if isinstance(about, dict) else None
            if not isinstance(name, str):
                continue
            try:
                found[layer] = self.document(name)
            except BadArchive as error:
                if self._salvage is None:
                    raise
                self._salvage(error)
        return found

    def partitions(self) -> list[str]:
        """The entries that hold records, in the manifest's order."""
        if self.is_delta:
            memory = self.changes.get("memory")
            name = memory.get("file") if isinstance(memory, dict) else None
            return [name] if isinstance(name, str) else []
        memory = self.layers.get("memory")
        parts: Any = memory.get("partitions") if isinstance(memory, dict) else None
        names = [part.get("file") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        return [name for name in dict.fromkeys(names) if isinstance(name, str)]

    def records(self, partitions: Iterable[str] | None = None) -> Iterator[tuple[Record, bytes]]:
        """Every record with its line. A line that is none is a BadArchive, unless the good ones are wanted alone."""
        for name in self.partitions() if partitions is None else partitions:
            yield from self._records(name)

    def _records(self, name: str) -> Iterator[tuple[Record, bytes]]:
        try:
            for number, line in self.reader.lines(name):
                try:
                    record = parse_line(line)
                    why = _unusable(record)
                except ValueError as error:
                    why = str(error)
                if not why:
                    yield record, line
                    continue
                problem = BadArchive(f"{name}:{number} {why}", entry=name, line=number)
                if self._salvage is None:
                    raise problem
                self._salvage(problem)
        except BadArchive as error:
            if self._salvage is None or error.problem.line:
                raise
            self._salvage(error)

    def files(self) -> dict[str, Line]:
        """The agent's files by path: as truekeep lists them, else as the entries show."""
        found: dict[str, Line] = {}
        if FILES in self.reader.entries:
            for _, raw in self.reader.lines(FILES):
                line = _line(raw)
                if line is not None and (line.entry is None or line.entry in self.reader.entries):
                    found[line.path] = line
        for name, info in self.reader.entries.items():
            path = path_of(name)
            if path and path not in found:
                found[path] = Line(path, name, info.file_size, 0, 0o644)
        return dict(sorted(found.items()))

    def others(self) -> list[str]:
        """Entries of other tools and runtimes, which are kept as they are."""
        place = self.changes if self.is_delta else self.layers
        named = {item.get("file") for item in place.values() if isinstance(item, dict)}
        known = {*named, *self.partitions(), MANIFEST, DELTA, INDEX, FILES, ATTACHMENTS}
        return [name for name in self.reader.entries if name not in known and not path_of(name)]


def path_of(entry: str) -> str:
    """The file in the workspace that an entry is; empty for entries of other kinds."""
    for prefix in (_RAW, "artifacts/"):
        path = entry.removeprefix(prefix)
        if path != entry and path and not path.endswith("/.keep") and path != ".keep":
            return path
    return ""


def _unusable(record: Record) -> str:
    """Why a line that is JSON is no record that anything could be done with."""
    for field, kind in (("id", str), ("content", str), ("source", dict), ("temporal", dict)):
        if not isinstance(record.get(field), kind):
            return f"has no {field} that can be read"
    return ""


def _line(raw: bytes) -> Line | None:
    """A line of the list of files, if it can be believed."""
    try:
        given = parse_line(raw)
        line = Line(
            path=given["path"],
            entry=given["entry"],
            size=given["size"],
            mtime_ns=given["mtime_ns"],
            mode=given.get("mode", 0o644),
            sha256=given["sha256"],
            partitions=tuple(given.get("partitions", ())),
        )
    except (ValueError, KeyError, TypeError):
        return None
    whole = isinstance(line.size, int) and isinstance(line.mtime_ns, int) and isinstance(line.mode, int)
    named = isinstance(line.path, str) and isinstance(line.sha256, str) and not unsafe_name(line.path)
    if not whole or not named or (line.entry is not None and path_of(str(line.entry)) != line.path):
        return None
    return line._replace(mode=line.mode & 0o777, mtime_ns=max(0, line.mtime_ns))
