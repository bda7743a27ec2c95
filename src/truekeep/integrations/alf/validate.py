"""Everything that is wrong with an archive, at once: each thing with its entry, its line and how bad it is.

Reads all of the archive once, line by line and piece by piece, and changes nothing. What a single document may hold is
in rules.py; here is what takes more than one: counts, ids, who names which entry, and whether the bytes are those
that truekeep wrote down.
"""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from truekeep.integrations.alf import validation_rules
from truekeep.integrations.alf.files import CONTROL, path_of, refusal
from truekeep.integrations.alf.records import Record, parse_line
from truekeep.integrations.alf.value_kinds import (
    ERROR,
    LEVELS,
    UNREADABLE,
    WARNING,
    ValueKind,
    is_whole,
    look,
    parse_uuid,
    shown,
)
from truekeep.integrations.alf.zip_container import ArchiveProblem, BadArchive, Reader, unsafe_name

MANIFEST, DELTA_MANIFEST, FILES = "manifest.json", "delta-manifest.json", "truekeep/files.jsonl"
_CHANGES = "memory/delta.jsonl"  # where every writer puts them
_LAYERS = {
    "identity": validation_rules.IDENTITY,
    "principals": validation_rules.PRINCIPALS,
    "credentials": validation_rules.CREDENTIALS,
    "attachments": validation_rules.ATTACHMENTS,
}
_VERDICTS = {UNREADABLE: "unreadable", ERROR: "invalid", WARNING: "warning"}

Problems = Generator[ArchiveProblem, None, None]


def check_archive(reader: Reader, *, most: int = 1000) -> Iterator[ArchiveProblem]:
    """What is wrong with a snapshot or a delta; of each level, `most` at most, and then how many there are besides."""
    told: Counter[str] = Counter()
    for problem in _Inspection(reader).problems():
        told[problem.level] += 1
        if told[problem.level] <= most:
            yield problem
    for level, number in told.items():
        if number > most:
            yield ArchiveProblem(level, "", 0, f"and {number - most:,} more of this level")


def check_record(record: object) -> list[tuple[str, str]]:
    """What is wrong with a memory record: level and message."""
    return look(validation_rules.RECORD, record)


def sound_record(raw: bytes) -> Record:
    """The record in a line. Raises ValueError with the first reason for which it cannot be used."""
    record = _parsed(raw)
    for level, message in check_record(record):
        if level == UNREADABLE:
            raise ValueError(message)
    return record


def verdict(problems: Iterable[ArchiveProblem]) -> str:
    """What the worst of them makes of the archive: unreadable, invalid, warning or ok."""
    levels = {problem.level for problem in problems}
    return next((_VERDICTS[level] for level in LEVELS if level in levels), "ok")


class _Inspection:
    """One archive, and what has been seen of it so far."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._entries = reader.entries
        self._noted = {problem.entry for problem in reader.problems}
        self._named: set[str] = set()  # entries that the manifest or an index of the archive names
        self._ids: set[bytes] = set()
        self._counts: dict[str, int] = {}  # lines of the entries that hold records
        self._seen: set[str] = set()  # entries whose bytes were read, and told if they are damaged
        self._digests: dict[str, bytes | None] = {}  # None: damaged

    def problems(self) -> Problems:
        yield from self._reader.problems
        if DELTA_MANIFEST in self._entries:
            self._named.add(MANIFEST)  # a copy, for readers that look for it there
            manifest = yield from self._document(DELTA_MANIFEST, validation_rules.DELTA_MANIFEST)
            yield from self._delta(manifest or {})
        else:
            manifest = yield from self._document(MANIFEST, validation_rules.MANIFEST)
            yield from self._snapshot(manifest or {})
        if FILES in self._entries:
            yield from self._own_files()
        yield from self._rest()
        yield from self._unwelcome()

    # --- what the manifest names

    def _snapshot(self, manifest: Record) -> Problems:
        layers = manifest.get("layers")
        is_told = isinstance(layers, dict)
        layers = layers if isinstance(layers, dict) else self._usual_layers()
        for layer, kind in _LAYERS.items():
            told = _dict(layers.get(layer))
            if isinstance(file := told.get("file"), str):
                document = yield from self._document(file, kind)
                yield from self._compare(layer, file, document or {}, manifest, told)
        memory = _dict(layers.get("memory"))
        if isinstance(index := memory.get("index_file"), str):
            self._named.add(index)
        yield from self._partitions(memory, is_told=is_told)

    def _usual_layers(self) -> Record:
        """For an archive whose manifest does not say: what can be told by its name is looked at all the same."""
        names = sorted(name for name in self._entries if name.startswith("memory/") and name.endswith(".jsonl"))
        layers: Record = {layer: {"file": f"{layer}.json"} for layer in _LAYERS if f"{layer}.json" in self._entries}
        layers["memory"] = {"index_file": "memory/index.json", "partitions": [{"file": name} for name in names]}
        return layers

    def _partitions(self, memory: Record, *, is_told: bool) -> Problems:
        partitions = memory.get("partitions")
        files: Counter[str] = Counter()
        for partition in map(_dict, partitions if isinstance(partitions, list) else ()):
            file, told = partition.get("file"), partition.get("record_count")
            if not isinstance(file, str):
                continue
            if file in files:
                yield ArchiveProblem(WARNING, MANIFEST, 0, f"names {shown(file)} for two partitions")
            elif (yield from self._has(file)):
                yield from self._lines(file, validation_rules.RECORD)
            files[file] += 1
            found = self._counts.get(file)
            if is_whole(told) and found is not None and told != found:
                yield ArchiveProblem(WARNING, file, 0, f"has {_records(found)}; the manifest says {shown(told)}")
        told = memory.get("record_count")
        if not is_told or not is_whole(told) or files.keys() - self._counts.keys():
            return
        found = sum(self._counts[file] * times for file, times in files.items())
        if told != found:
            what = f"layers.memory.record_count is {shown(told)}, but the archive has {_records(found)}"
            yield ArchiveProblem(ERROR, MANIFEST, 0, what)

    def _delta(self, manifest: Record) -> Problems:
        changes = manifest.get("changes")
        if not isinstance(changes, dict):
            changes = {"memory": {"file": _CHANGES}} if _CHANGES in self._entries else {}
        for layer, kind in _LAYERS.items():
            if isinstance(file := _dict(changes.get(layer)).get("file"), str):
                document = yield from self._document(file, kind)
                yield from self._compare(layer, file, document or {}, manifest, {})
        memory = _dict(changes.get("memory"))
        if isinstance(file := memory.get("file"), str) and (yield from self._has(file)):
            yield from self._lines(file, validation_rules.CHANGE)
            told, found = memory.get("record_count"), self._counts[file]
            if is_whole(told) and told != found:
                yield ArchiveProblem(WARNING, file, 0, f"has {_records(found)}; the manifest says {shown(told)}")
        raw = _dict(changes.get("raw"))
        for name in _texts(raw.get("changed")):
            if (yield from self._has(name)) and not name.startswith("raw/"):
                yield ArchiveProblem(ERROR, DELTA_MANIFEST, 0, f"changes.raw.changed has {shown(name)}, not in raw/")
        for name in _texts(raw.get("deleted")):
            if (why := unsafe_name(name)) or not name.startswith("raw/"):
                what = f"changes.raw.deleted has {shown(name)}: it {why or 'is not in raw/'}"
                yield ArchiveProblem(UNREADABLE if why else ERROR, DELTA_MANIFEST, 0, what)
        for name in self._entries if "raw" in changes else ():
            if name.startswith("raw/") and name not in self._named:
                yield ArchiveProblem(WARNING, name, 0, "is not among the changed files that the manifest lists")

    def _compare(self, layer: str, file: str, document: Record, manifest: Record, told: Record) -> Problems:
        """What a layer's document and the manifest must agree on."""
        if layer == "identity":
            own, agent = parse_uuid(document.get("agent_id")), parse_uuid(_dict(manifest.get("agent")).get("id"))
            if own and agent and own != agent:
                yield ArchiveProblem(ERROR, file, 0, "agent_id is not the id of the manifest's agent")
            return
        items, count = document.get(layer), told.get("count")
        if isinstance(items, list) and is_whole(count) and count != len(items):
            yield ArchiveProblem(WARNING, file, 0, f"has {len(items)} {layer}; the manifest says {shown(count)}")
        if layer == "attachments" and isinstance(items, list):
            for number, item in enumerate(items):
                yield from self._artifact(_dict(item), file, f"attachments[{number}]")

    def _artifact(self, item: Record, file: str, place: str) -> Problems:
        name = item.get("archive_path")
        if not isinstance(name, str):
            return
        self._named.add(name)
        if name not in self._entries:
            if name not in self._noted:
                yield ArchiveProblem(WARNING, file, 0, f"{place} is said to be at {shown(name)}, which is not there")
            return
        if is_whole(size := item.get("size_bytes")) and size != self._entries[name].file_size:
            yield ArchiveProblem(WARNING, file, 0, f"{place}.size_bytes is not the size of {shown(name)}")
        told = _dict(item.get("hash"))
        if str(told.get("algorithm")).lower().replace("-", "") == "sha256":
            digest = yield from self._digest(name)
            if digest is not None and str(told.get("value")).lower() != digest.hex():
                yield ArchiveProblem(WARNING, file, 0, f"{place}.hash is not that of {shown(name)}")

    # --- entries

    def _has(self, name: str) -> Generator[ArchiveProblem, None, bool]:
        self._named.add(name)
        if name in self._entries:
            return True
        if name not in self._noted:
            yield ArchiveProblem(UNREADABLE, name, 0, "is not in the archive, which needs it")
        return False

    def _document(self, name: str, kind: ValueKind) -> Generator[ArchiveProblem, None, Record | None]:
        if not (yield from self._has(name)):
            return None
        self._seen.add(name)
        try:
            document = _parsed(self._reader.read(name))
        except BadArchive as error:
            yield _told(error)
            return None
        except ValueError as error:
            yield ArchiveProblem(UNREADABLE, name, 0, _why(error))
            return None
        for level, message in look(kind, document):
            yield ArchiveProblem(level, name, 0, message)
        return document

    def _lines(self, name: str, kind: ValueKind) -> Problems:
        """The records of an entry."""
        self._counts[name] = 0
        self._seen.add(name)
        try:
            for number, raw in self._reader.lines(name):
                self._counts[name] += 1
                try:
                    record = _parsed(raw)
                except ValueError as error:
                    yield ArchiveProblem(UNREADABLE, name, number, _why(error))
                    continue
                for level, message in look(kind, record):
                    yield ArchiveProblem(level, name, number, message)
                if record_id := parse_uuid(record.get("id")):
                    if record_id in self._ids:
                        yield ArchiveProblem(WARNING, name, number, "id is that of an earlier record")
                    self._ids.add(record_id)
        except BadArchive as error:
            yield _told(error)

    def _digest(self, name: str) -> Generator[ArchiveProblem, None, bytes | None]:
        """The SHA-256 of an entry; None for a damaged one, which is told once."""
        if name not in self._digests:
            digest = hashlib.sha256()
            try:
                for piece in self._reader.pieces(name):
                    digest.update(piece)
                self._digests[name] = digest.digest()
            except BadArchive as error:
                self._digests[name] = None
                if name not in self._seen:
                    yield _told(error)
            self._seen.add(name)
        return self._digests[name]

    # --- what truekeep wrote down, and what nobody did

    def _own_files(self) -> Problems:
        """Files and their digests, as they were at the export."""
        self._named.add(FILES)
        self._seen.add(FILES)
        paths: set[str] = set()
        listed: set[str] = set()
        try:
            for number, raw in self._reader.lines(FILES):
                try:
                    row = _parsed(raw)
                except ValueError as error:
                    yield ArchiveProblem(ERROR, FILES, number, _why(error))
                    continue
                wrong = look(validation_rules.OWN_FILE, row)
                for _, message in wrong:
                    yield ArchiveProblem(ERROR, FILES, number, message)
                path, entry = row.get("path"), row.get("entry")
                if isinstance(entry, str):
                    listed.add(entry)
                if wrong:
                    continue
                if why := unsafe_name(f"raw/{path}"):
                    yield ArchiveProblem(ERROR, FILES, number, f"path {why}")
                if path in paths:
                    yield ArchiveProblem(ERROR, FILES, number, f"{shown(path)} is listed twice")
                paths.add(str(path))
                if isinstance(entry, str):
                    yield from self._own_file(row, entry, number)
        except BadArchive as error:
            yield _told(error)
        for name in self._entries:
            if name.startswith("raw/") and name not in listed:
                yield ArchiveProblem(WARNING, name, 0, f"{FILES} does not list it")

    def _own_file(self, row: Record, entry: str, number: int) -> Problems:
        self._named.add(entry)
        if entry not in self._entries:
            if entry not in self._noted:
                yield ArchiveProblem(ERROR, FILES, number, f"{shown(entry)} is not in the archive")
            return
        digest = yield from self._digest(entry)
        if digest is None:
            return
        size = self._entries[entry].file_size
        if size != row["size"]:
            yield ArchiveProblem(ERROR, entry, 0, f"has {size} bytes; {FILES} says {row['size']}")
        elif digest.hex() != row["sha256"]:
            yield ArchiveProblem(ERROR, entry, 0, f"has other bytes than {FILES} says")

    def _rest(self) -> Problems:
        """Every entry that was not read yet is, for damage; one that nothing names is told."""
        for name in self._entries:
            if name not in self._seen:
                yield from self._digest(name)
            if name not in self._named and not name.startswith(("raw/", "truekeep/")):
                yield ArchiveProblem(WARNING, name, 0, "is named nowhere in the archive")

    def _unwelcome(self) -> Problems:
        """Files that an import would not put anywhere."""
        paths = {path: name for name in self._entries if (path := path_of(name)) and path not in CONTROL}
        folders = {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}
        for path, name in paths.items():
            why = refusal(path) or ("it is a file and a folder at once" if path in folders else "")
            if why:
                yield ArchiveProblem(WARNING, name, 0, f"would not be imported: {why}")


def _parsed(raw: bytes) -> Record:
    if raw.startswith(codecs.BOM_UTF8):
        raise ValueError("begins with a byte order mark")
    return parse_line(raw)


def _told(error: BadArchive) -> ArchiveProblem:
    """Its problem; the entry stands beside the message, not in it."""
    problem = error.problem
    return problem._replace(message=problem.message.removeprefix(f"{problem.entry} "))


def _why(error: ValueError) -> str:
    """Its message, which may quote a name of any length."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:299]}…"


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"


def _dict(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
