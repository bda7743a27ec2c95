"""Validate an archive: every problem at once, each with its level, entry and line.

Reads the whole archive once, line by line and piece by piece. schema_validation.py checks single documents; this module
checks what involves several: counts, ids, entries that the manifest names, and the digests that truekeep recorded.
"""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

from truekeep.integrations.alf import schema_validation
from truekeep.integrations.alf.archive_file import open_archive
from truekeep.integrations.alf.documents import (
    DELTA_MANIFEST,
    DELTA_RECORDS,
    FILES,
    MANIFEST,
    JsonObject,
    object_or_empty,
    parse_object,
    strings_in,
)
from truekeep.integrations.alf.files import CONTROL_FILES, refusal_reason, workspace_path
from truekeep.integrations.alf.record_ids import parse_uuid
from truekeep.integrations.alf.schema_validation import (
    ERROR,
    LEVELS,
    UNREADABLE,
    WARNING,
    check_document,
    is_whole,
    quote,
)
from truekeep.integrations.alf.zip_container import ArchiveProblem, BadArchive, ZipReader, unsafe_name

_LAYERS = ("identity", "principals", "credentials", "attachments")  # with one document each, and its schema
_VERDICTS = {UNREADABLE: "unreadable", ERROR: "invalid", WARNING: "warning"}

Problems = Generator[ArchiveProblem, None, None]


def validate_archive(path: Path, *, identities: Sequence[str] = (), large: bool = False) -> list[ArchiveProblem]:
    """The problems of an archive file, also if it cannot be opened at all."""
    try:
        with open_archive(path, identities=identities, large=large) as reader:
            return list(check_archive(reader))
    except BadArchive as error:
        return [error.problem]


def check_archive(reader: ZipReader, *, most: int = 1000) -> Iterator[ArchiveProblem]:
    """The problems of a full archive or a delta: of each level `most` at most, then the number of the others."""
    counts: Counter[str] = Counter()
    for problem in _ArchiveCheck(reader).problems():
        counts[problem.level] += 1
        if counts[problem.level] <= most:
            yield problem
    for level, number in counts.items():
        if number > most:
            yield ArchiveProblem(level, "", 0, f"and {number - most:,} more of this level")


def parse_valid_record(raw: bytes) -> JsonObject:
    """Parse a line of a partition. Raises ValueError if upstream's reader would reject it."""
    record = _parse(raw)
    for problem in check_document(schema_validation.RECORD, record):
        if problem.level == UNREADABLE:
            raise ValueError(problem.message)
    return record


def verdict(problems: Iterable[ArchiveProblem]) -> str:
    """The verdict on an archive by its worst problem: unreadable, invalid, warning or ok."""
    levels = {problem.level for problem in problems}
    return next((_VERDICTS[level] for level in LEVELS if level in levels), "ok")


class _ArchiveCheck:
    """The check of one archive."""

    def __init__(self, reader: ZipReader) -> None:
        self._reader = reader
        self._entries = reader.entries
        self._reported = {problem.entry for problem in reader.problems}
        self._named: set[str] = set()  # entries that the manifest or an index names
        self._ids: set[bytes] = set()
        self._line_counts: dict[str, int] = {}  # of entries with records
        self._read: set[str] = set()  # entries that were read; damage to them is reported
        self._digests: dict[str, bytes | None] = {}  # None for damaged entries

    def problems(self) -> Problems:
        yield from self._reader.problems
        if DELTA_MANIFEST in self._entries:
            self._named.add(MANIFEST)  # some writers add a copy under this name
            manifest = yield from self._document(DELTA_MANIFEST, schema_validation.DELTA_MANIFEST)
            yield from self._delta(manifest or {})
        else:
            manifest = yield from self._document(MANIFEST, schema_validation.MANIFEST)
            yield from self._snapshot(manifest or {})
        if FILES in self._entries:
            yield from self._listed_files()
        yield from self._other_entries()
        yield from self._refused_files()

    # --- Entries that the manifest names

    def _snapshot(self, manifest: JsonObject) -> Problems:
        layers = manifest.get("layers")
        has_layers = isinstance(layers, dict)
        layers = layers if isinstance(layers, dict) else self._guess_layers()
        for name in _LAYERS:
            layer = object_or_empty(layers.get(name))
            if isinstance(file := layer.get("file"), str):
                document = yield from self._document(file, name)
                yield from self._compare(name, file, document or {}, manifest, layer)
        memory = object_or_empty(layers.get("memory"))
        if isinstance(index := memory.get("index_file"), str):
            self._named.add(index)
        yield from self._partitions(memory, has_layers=has_layers)

    def _guess_layers(self) -> JsonObject:
        """The layers by the usual names of their entries, for a manifest that lists none."""
        names = sorted(name for name in self._entries if name.startswith("memory/") and name.endswith(".jsonl"))
        layers: JsonObject = {layer: {"file": f"{layer}.json"} for layer in _LAYERS if f"{layer}.json" in self._entries}
        layers["memory"] = {"index_file": "memory/index.json", "partitions": [{"file": name} for name in names]}
        return layers

    def _partitions(self, memory: JsonObject, *, has_layers: bool) -> Problems:
        partitions = memory.get("partitions")
        files: Counter[str] = Counter()
        for partition in map(object_or_empty, partitions if isinstance(partitions, list) else ()):
            file, stated = partition.get("file"), partition.get("record_count")
            if not isinstance(file, str):
                continue
            if file in files:
                yield ArchiveProblem(WARNING, MANIFEST, 0, f"names {quote(file)} for two partitions")
            elif (yield from self._has(file)):
                yield from self._lines(file, schema_validation.RECORD)
            files[file] += 1
            found = self._line_counts.get(file)
            if is_whole(stated) and found is not None and stated != found:
                yield ArchiveProblem(WARNING, file, 0, f"has {_records(found)}; the manifest says {quote(stated)}")
        stated = memory.get("record_count")
        if not has_layers or not is_whole(stated) or files.keys() - self._line_counts.keys():
            return
        found = sum(self._line_counts[file] * times for file, times in files.items())
        if stated != found:
            what = f"layers.memory.record_count is {quote(stated)}, but the archive has {_records(found)}"
            yield ArchiveProblem(ERROR, MANIFEST, 0, what)

    def _delta(self, manifest: JsonObject) -> Problems:
        changes = manifest.get("changes")
        if not isinstance(changes, dict):
            changes = {"memory": {"file": DELTA_RECORDS}} if DELTA_RECORDS in self._entries else {}
        for name in _LAYERS:
            if isinstance(file := object_or_empty(changes.get(name)).get("file"), str):
                document = yield from self._document(file, name)
                yield from self._compare(name, file, document or {}, manifest, {})
        memory = object_or_empty(changes.get("memory"))
        if isinstance(file := memory.get("file"), str) and (yield from self._has(file)):
            yield from self._lines(file, schema_validation.DELTA_RECORD)
            stated, found = memory.get("record_count"), self._line_counts[file]
            if is_whole(stated) and stated != found:
                yield ArchiveProblem(WARNING, file, 0, f"has {_records(found)}; the manifest says {quote(stated)}")
        raw = object_or_empty(changes.get("raw"))
        for name in strings_in(raw.get("changed")):
            if (yield from self._has(name)) and not name.startswith("raw/"):
                yield ArchiveProblem(
                    ERROR, DELTA_MANIFEST, 0, f"changes.raw.changed has {quote(name)}, which is not in raw/"
                )
        for name in strings_in(raw.get("deleted")):
            if (why := unsafe_name(name)) or not name.startswith("raw/"):
                what = f"changes.raw.deleted has {quote(name)}: it {why or 'is not in raw/'}"
                yield ArchiveProblem(UNREADABLE if why else ERROR, DELTA_MANIFEST, 0, what)
        for name in self._entries if "raw" in changes else ():
            if name.startswith("raw/") and name not in self._named:
                yield ArchiveProblem(WARNING, name, 0, "is not in the manifest's list of changed files")

    def _compare(self, name: str, file: str, document: JsonObject, manifest: JsonObject, layer: JsonObject) -> Problems:
        """Compare a layer's document with the manifest."""
        if name == "identity":
            own, agent = parse_uuid(document.get("agent_id")), object_or_empty(manifest.get("agent"))
            expected = parse_uuid(agent.get("id"))
            if own and expected and own != expected:
                yield ArchiveProblem(ERROR, file, 0, "agent_id is not the id of the manifest's agent")
            return
        items, count = document.get(name), layer.get("count")
        if isinstance(items, list) and is_whole(count) and count != len(items):
            yield ArchiveProblem(WARNING, file, 0, f"has {len(items)} {name}; the manifest says {quote(count)}")
        if name == "attachments" and isinstance(items, list):
            for number, item in enumerate(items):
                yield from self._artifact(object_or_empty(item), file, f"attachments[{number}]")

    def _artifact(self, item: JsonObject, file: str, place: str) -> Problems:
        name = item.get("archive_path")
        if not isinstance(name, str):
            return
        self._named.add(name)
        if name not in self._entries:
            if name not in self._reported:
                yield ArchiveProblem(WARNING, file, 0, f"{place} is at {quote(name)}, which is not in the archive")
            return
        if is_whole(size := item.get("size_bytes")) and size != self._entries[name].file_size:
            yield ArchiveProblem(WARNING, file, 0, f"{place}.size_bytes is not the size of {quote(name)}")
        stated = object_or_empty(item.get("hash"))
        if str(stated.get("algorithm")).lower().replace("-", "") == "sha256":
            digest = yield from self._digest(name)
            if digest is not None and str(stated.get("value")).lower() != digest.hex():
                yield ArchiveProblem(WARNING, file, 0, f"{place}.hash is not that of {quote(name)}")

    # --- Reading entries

    def _has(self, name: str) -> Generator[ArchiveProblem, None, bool]:
        self._named.add(name)
        if name in self._entries:
            return True
        if name not in self._reported:
            yield ArchiveProblem(UNREADABLE, name, 0, "is missing from the archive")
        return False

    def _document(self, name: str, kind: str) -> Generator[ArchiveProblem, None, JsonObject | None]:
        if not (yield from self._has(name)):
            return None
        self._read.add(name)
        try:
            document = _parse(self._reader.read(name))
        except BadArchive as error:
            yield _without_entry(error)
            return None
        except ValueError as error:
            yield ArchiveProblem(UNREADABLE, name, 0, _message(error))
            return None
        for problem in check_document(kind, document):
            yield ArchiveProblem(problem.level, name, 0, problem.message)
        return document

    def _lines(self, name: str, kind: str) -> Problems:
        """Check the records of an entry."""
        self._line_counts[name] = 0
        self._read.add(name)
        try:
            for number, raw in self._reader.lines(name):
                self._line_counts[name] += 1
                try:
                    record = _parse(raw)
                except ValueError as error:
                    yield ArchiveProblem(UNREADABLE, name, number, _message(error))
                    continue
                for problem in check_document(kind, record):
                    yield ArchiveProblem(problem.level, name, number, problem.message)
                if record_id := parse_uuid(record.get("id")):
                    if record_id in self._ids:
                        yield ArchiveProblem(WARNING, name, number, "id is the same as that of an earlier record")
                    self._ids.add(record_id)
        except BadArchive as error:
            yield _without_entry(error)

    def _digest(self, name: str) -> Generator[ArchiveProblem, None, bytes | None]:
        """The SHA-256 of an entry; None for a damaged one, which is reported once."""
        if name not in self._digests:
            digest = hashlib.sha256()
            try:
                for piece in self._reader.pieces(name):
                    digest.update(piece)
                self._digests[name] = digest.digest()
            except BadArchive as error:
                self._digests[name] = None
                if name not in self._read:
                    yield _without_entry(error)
            self._read.add(name)
        return self._digests[name]

    # --- The file list of truekeep, and everything else

    def _listed_files(self) -> Problems:
        """Compare the files with the sizes and digests that truekeep recorded."""
        self._named.add(FILES)
        self._read.add(FILES)
        paths: set[str] = set()
        listed: set[str] = set()
        try:
            for number, raw in self._reader.lines(FILES):
                try:
                    row = _parse(raw)
                except ValueError as error:
                    yield ArchiveProblem(ERROR, FILES, number, _message(error))
                    continue
                problems = check_document(schema_validation.LISTED_FILE, row)
                for problem in problems:
                    yield ArchiveProblem(ERROR, FILES, number, problem.message)
                path, entry = row.get("path"), row.get("entry")
                if isinstance(entry, str):
                    listed.add(entry)
                if problems:
                    continue
                if why := unsafe_name(f"raw/{path}"):
                    yield ArchiveProblem(ERROR, FILES, number, f"path {why}")
                if path in paths:
                    yield ArchiveProblem(ERROR, FILES, number, f"{quote(path)} is listed twice")
                paths.add(str(path))
                if isinstance(entry, str):
                    yield from self._listed_file(row, entry, number)
        except BadArchive as error:
            yield _without_entry(error)
        for name in self._entries:
            if name.startswith("raw/") and name not in listed:
                yield ArchiveProblem(WARNING, name, 0, f"{FILES} does not list it")

    def _listed_file(self, row: JsonObject, entry: str, number: int) -> Problems:
        self._named.add(entry)
        if entry not in self._entries:
            if entry not in self._reported:
                yield ArchiveProblem(ERROR, FILES, number, f"{quote(entry)} is not in the archive")
            return
        digest = yield from self._digest(entry)
        if digest is None:
            return
        size = self._entries[entry].file_size
        if size != row["size"]:
            yield ArchiveProblem(ERROR, entry, 0, f"has {size} bytes; {FILES} says {row['size']}")
        elif digest.hex() != row["sha256"]:
            yield ArchiveProblem(ERROR, entry, 0, f"does not have the digest that {FILES} says")

    def _other_entries(self) -> Problems:
        """Read the remaining entries to find damage, and report those that nothing names."""
        for name in self._entries:
            if name not in self._read:
                yield from self._digest(name)
            if name not in self._named and not name.startswith(("raw/", "truekeep/")):
                yield ArchiveProblem(WARNING, name, 0, "is not named anywhere in the archive")

    def _refused_files(self) -> Problems:
        """Report files that an import would refuse."""
        paths = {path: name for name in self._entries if (path := workspace_path(name)) and path not in CONTROL_FILES}
        folders = {path[:at] for path in paths for at, char in enumerate(path) if char == "/"}
        for path, name in paths.items():
            why = refusal_reason(path) or ("it is both a file and a folder" if path in folders else "")
            if why:
                yield ArchiveProblem(WARNING, name, 0, f"would not be imported: {why}")


def _parse(raw: bytes) -> JsonObject:
    if raw.startswith(codecs.BOM_UTF8):
        raise ValueError("begins with a byte order mark")
    return parse_object(raw)


def _without_entry(error: BadArchive) -> ArchiveProblem:
    """The problem of an error; its message does not repeat the entry."""
    problem = error.problem
    return problem._replace(message=problem.message.removeprefix(f"{problem.entry} "))


def _message(error: ValueError) -> str:
    """The message of an error, clipped: it may quote a name of any length."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:299]}…"


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"
