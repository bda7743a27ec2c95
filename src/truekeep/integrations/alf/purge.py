"""Purge records: rewrite an archive without some records, without the lines of their files, and without copies.

A copy is a line, in any file or document, that contains one of the purged lines, as it is or escaped as in JSON. Lines
under 16 characters, which may be anywhere by chance, are only removed where the record came from. Other records that
contain a purged line are removed as a whole: the next export makes them again of what is left in the file. Facts are
removed from their database; other binary files that contain a purged line are left out. An audit record remains: which
ids, when and why, without their text.
"""

from __future__ import annotations

import json
import re
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

from truekeep.core.dates import as_stamp
from truekeep.core.errors import NotFound
from truekeep.core.sqlite import SIDECAR_SUFFIXES
from truekeep.integrations.alf.archive_file import (
    create_archive,
    is_own_archive,
    open_archive,
    open_spool,
    remember_own_archive,
    require_same_encryption,
    require_undamaged,
)
from truekeep.integrations.alf.documents import (
    DOCUMENTS,
    PURGES,
    JsonObject,
    MemoryRecord,
    dump_document,
    dump_line,
    object_or_empty,
)
from truekeep.integrations.alf.export import ExportOptions, ExportReport
from truekeep.integrations.alf.files import MAX_TEXT_BYTES, ListedFile
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.record_ids import WHITESPACE, parse_uuid
from truekeep.integrations.alf.records import TRUEKEEP_RUNTIME
from truekeep.integrations.alf.timestamps import parse_timestamp
from truekeep.integrations.alf.writer import (
    ArchiveContents,
    ArchiveSummary,
    ForeignEntry,
    Progress,
    RecordSpool,
    write_archive,
)
from truekeep.integrations.alf.zip_container import BadArchive
from truekeep.memory.facts_db import FACTS_DB_PATH, Fact, without_facts

REASONS = ("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")
MIN_LINE_CHARACTERS = 16
_MARKUP = re.compile(r"(?:[\s>\ufeff]|#{1,6}(?=\s)|[-*+](?=\s|$)|\d{1,9}[.)](?=\s|$)|\[[ xX]\](?=\s))*")
_TITLE = re.compile(r"(?:topic|title|name|description):\s*(.+)", re.IGNORECASE)
_TABLE_RULE = re.compile(r"\|?[ :|-]*-[ :|-]*")
_BLANK = f"{WHITESPACE}\ufeff"
_PURGED = "[purged]"
_STRUCTURAL_MEMBERS = frozenset(("file", "index_file", "origin_file", "source_path", "archive_path", "media_type"))
_RECORD_TEXTS = ("content", "category", "entities", "tags", "raw_source_format")


class PurgeReport(NamedTuple):
    """The result of a purge."""

    audit: JsonObject
    records: int  # removed
    files: tuple[str, ...]  # edited
    dropped: tuple[str, ...]  # files that are no longer in the archive
    entries: tuple[str, ...]  # edited documents and entries of other tools
    notes: tuple[str, ...]

    @property
    def edited(self) -> tuple[str, ...]:
        """For `--json`, which has promised them: records are removed as a whole."""
        return ()


class EditedFile(NamedTuple):
    """A file without its purged lines."""

    data: bytes
    removed: Sequence[int] = ()  # line numbers, from 1; sorted


class PurgedFiles(NamedTuple):
    """The files after a purge."""

    kept: dict[str, ListedFile]
    edited: dict[str, EditedFile]
    dropped: list[str]
    facts: set[Fact]  # removed from their database


class PurgedLines:
    """The lines to remove wherever they are."""

    def __init__(self, texts: Iterable[str]) -> None:
        lines = {line for text in texts for line in identifying_lines(text)}
        forms = {form for line in lines for form in (line, _escaped(line), _escaped(line, ensure_ascii=False))}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._text = re.compile("|".join(map(re.escape, longest_first))) if forms else None
        encoded = [form.encode("utf-8", "surrogatepass") for form in longest_first]
        self._bytes = re.compile(b"|".join(map(re.escape, encoded))) if forms else None
        self._overlap = max(map(len, encoded), default=1) - 1

    def is_in(self, text: str) -> bool:
        return self._text is not None and self._text.search(text) is not None

    def is_in_bytes(self, pieces: Iterable[bytes]) -> bool:
        """True if bytes contain a purged line. They are read piece by piece."""
        tail = b""
        for piece in pieces if self._bytes is not None else ():
            window = tail + piece
            if self._bytes is not None and self._bytes.search(window):
                return True
            tail = window[-self._overlap :] if self._overlap else b""
        return False

    def remove(self, text: str, numbers: Iterable[int] = (), *, first: int = 1) -> tuple[str, list[int]]:
        """The text without purged lines and without the lines of these numbers, and the numbers of the removed ones."""
        also = set(numbers)
        lines = list(enumerate(text.split("\n"), start=first))
        removed = [number for number, line in lines if number in also or self.is_in(line)]
        gone = set(removed)
        return "\n".join(line for number, line in lines if number not in gone), removed

    def purge_value(self, value: Any, name: str = "") -> Any:
        """A JSON value without purged lines in its strings."""
        if isinstance(value, str):
            is_affected = name not in _STRUCTURAL_MEMBERS and self.is_in(value)
            return (self.remove(value)[0].strip(_BLANK) or _PURGED) if is_affected else value
        if isinstance(value, dict):
            return {self.purge_value(key): self.purge_value(item, key) for key, item in value.items()}
        return [self.purge_value(item, name) for item in value] if isinstance(value, list) else value


def _escaped(line: str, *, ensure_ascii: bool = True) -> str:
    return json.dumps(line, ensure_ascii=ensure_ascii)[1:-1]


def identifying_lines(text: str) -> set[str]:
    """The lines by which a text is recognised elsewhere.

    They are without indent, bullet and heading marks. Frontmatter other than titles, table headers, timestamps and ids
    are left out: other notes have the same ones.
    """
    lines = [line.strip(_BLANK) for line in text.split("\n")]
    if "---" in lines[1:] and lines[0] == "---":
        end = lines.index("---", 1)
        titles = [match[1].strip("\"'") for match in map(_TITLE.fullmatch, lines[1:end]) if match]
        lines = [*titles, *lines[end + 1 :]]
    headers = {
        at
        for at, (line, below) in enumerate(pairwise(lines))
        if "|" in line and "|" in below and _TABLE_RULE.fullmatch(below)
    }
    bare = {_MARKUP.sub("", line, count=1) for at, line in enumerate(lines) if at not in headers}
    return {line for line in bare if len(line) >= MIN_LINE_CHARACTERS and _is_distinctive(line)}


def _is_distinctive(line: str) -> bool:
    is_value = parse_timestamp(line) is not None or parse_uuid(line) is not None
    return any(map(str.isalnum, line)) and not is_value and not line.startswith(("```", "~~~"))


def purge_archive(
    source: Path,
    target: Path,
    ids: Sequence[str],
    reason: str,
    options: ExportOptions,
    progress: Progress = lambda *_: None,
) -> tuple[ExportReport[ArchiveSummary], PurgeReport]:
    """Write an archive without some records and without their text."""
    require_same_encryption([source], options.recipients)
    is_own = is_own_archive(source)
    at = as_stamp(datetime.now(UTC))
    with (
        open_archive(source, identities=options.identities, large=True) as reader,
        open_spool(target, options.recipients) as spool,
        create_archive(target, recipients=options.recipients, replace=options.replace) as writer,
    ):
        require_undamaged(reader)
        contents, report = purge_records(ArchiveReader(reader), ids, spool=spool, reason=reason, at=at)
        summary = write_archive(writer, contents, progress)
    if is_own:
        remember_own_archive(target)
    return ExportReport(target, target.stat().st_size, summary, (), ()), report


def purge_records(
    archive: ArchiveReader, ids: Sequence[str], *, spool: RecordSpool, reason: str, at: str
) -> tuple[ArchiveContents, PurgeReport]:
    """The contents of the archive without these records and their text."""
    if archive.is_delta:
        raise BadArchive("this is a delta", hint="apply it, purge the full archive, and delete the delta")
    targets = _find_records(archive, {_canonical_id(text) for text in ids})
    numbers, purged = _lines_to_remove(archive, targets)
    files = _purge_files(archive, targets, numbers, purged)
    removed = _spool_remaining(archive, targets, purged, files, spool)
    audit: JsonObject = {
        "purge_id": str(uuid.uuid4()),
        "agent_id": archive.agent_id,
        "scope": "record_purge",
        "record_ids": sorted(map(_canonical_id, removed)),
        "partitions_affected": list(dict.fromkeys(removed.values())),
        "reason": reason,
        "requested_at": at,
        "completed_at": at,
    }
    earlier_audits = archive.reader.read(PURGES) if PURGES in archive.reader.entries else b""
    documents = archive.documents()
    purged_documents = {layer: purged.purge_value(document) for layer, document in documents.items()}
    layers = archive.foreign_layers()
    foreign = [_purge_foreign_entry(archive, name, purged) for name in archive.foreign_entries() if name != PURGES]
    contents = ArchiveContents(
        head={key: value if key == "agent" else purged.purge_value(value) for key, value in archive.head().items()},
        documents=purged_documents,
        spool=spool,
        files=[files.kept[path] for path in sorted(files.kept)],
        pieces=lambda file: _pieces(archive, files, file),
        layers={name: purged.purge_value(layer) for name, layer in layers.items()},
        foreign_entries=[*(entry for entry, _ in foreign), ForeignEntry.of(PURGES, earlier_audits + dump_line(audit))],
        plain=not archive.is_by_truekeep,
    )
    edited_entries = [DOCUMENTS[layer] for layer in documents if purged_documents[layer] != documents[layer]]
    report = PurgeReport(
        audit,
        len(removed),
        tuple(sorted(files.edited)),
        tuple(sorted(files.dropped)),
        (*edited_entries, *(entry.name for entry, is_edited in foreign if is_edited)),
        tuple(_iter_notes(len(removed) - len(targets), files)),
    )
    return contents, report


def _pieces(archive: ArchiveReader, files: PurgedFiles, file: ListedFile) -> Iterable[bytes]:
    edited = files.edited.get(file.path)
    return (edited.data,) if edited is not None else archive.pieces(file)


def _iter_notes(more: int, files: PurgedFiles) -> Iterator[str]:
    if more:
        yield f"{more} more records were removed with their source; the audit record lists their ids"
    if FACTS_DB_PATH in files.dropped:
        yield f"{FACTS_DB_PATH} could not be rewritten and is left out, with its other facts"


def _canonical_id(text: str) -> str:
    found = parse_uuid(text.lower())
    return str(uuid.UUID(bytes=found)) if found else text


def _find_records(archive: ArchiveReader, wanted: set[str]) -> list[MemoryRecord]:
    found = [record for record, _ in archive.records() if _canonical_id(record["id"]) in wanted]
    missing = wanted - {_canonical_id(record["id"]) for record in found}
    if missing:
        raise NotFound(
            f"the archive has no record {', '.join(sorted(missing)[:5])}",
            hint="`truekeep alf show FILE --records` lists them",
        )
    return found


# --- Files ----------------------------------------------------------------------------------------------------------


def _lines_to_remove(
    archive: ArchiveReader, targets: Sequence[MemoryRecord]
) -> tuple[dict[str, set[int]], PurgedLines]:
    """The line numbers that the records were made of, by file, and the lines to remove everywhere."""
    texts = [record["content"] for record in targets]
    texts += [fact.value for fact in map(_fact_of, targets) if fact is not None]
    files = archive.files()
    numbers: dict[str, set[int]] = {}
    for record in targets:
        path = scope_of(record)
        text = _text_of(archive, files[path]) if path in files else None
        place = _lines_of(record)
        if text is None or place is None:
            continue
        lines = text.split("\n")[place.start - 1 : place.stop - 1]
        is_same = _trimmed("\n".join(lines)) == _trimmed(record["content"])
        if is_same or (archive.is_by_truekeep and record["source"]["runtime"] == TRUEKEEP_RUNTIME):
            numbers.setdefault(path, set()).update(place)
            texts.append("\n".join(lines))
    return numbers, PurgedLines(texts)


def _lines_of(record: MemoryRecord) -> range | None:
    place = object_or_empty(record.get("raw_source_format"))
    first, last = place.get("line_start"), place.get("line_end")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last:
        return None
    return range(first, last + 1)


def _trimmed(text: str) -> str:
    return text.replace("\r", "").strip(WHITESPACE)


def _text_of(archive: ArchiveReader, file: ListedFile) -> str | None:
    """The text of a file; None if it is only referenced, too large, or not UTF-8."""
    if file.entry is None or archive.reader.entries[file.entry].file_size > MAX_TEXT_BYTES:
        return None
    try:
        text = b"".join(archive.pieces(file)).decode()
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None


def _purge_files(
    archive: ArchiveReader, targets: Sequence[MemoryRecord], numbers: dict[str, set[int]], purged: PurgedLines
) -> PurgedFiles:
    """Remove the purged lines from all files; drop binary files that contain them, and files left empty."""
    result = PurgedFiles({}, {}, [], set())
    databases = {FACTS_DB_PATH, *(scope_of(record) for record in targets if record.get("namespace") == "facts")}
    for path, file in archive.files().items():
        edit = None
        if path in databases:
            edit, facts = _purge_database(archive, file, targets, purged)
            result.facts.update(facts)
            is_dropped = edit is None
        elif (text := _text_of(archive, file)) is not None:
            left, removed = purged.remove(text, numbers.get(path, ()))
            is_dropped = bool(removed) and not left.strip(_BLANK)
            edit = EditedFile(left.encode(), removed)
        else:
            is_dropped = purged.is_in_bytes(archive.pieces(file))
        if is_dropped:
            result.dropped.append(path)
        elif edit is not None and edit.removed:
            result.edited[path] = edit
            result.kept[path] = file._replace(size=len(edit.data), sha256="")
        else:
            result.kept[path] = file
    changed = databases & {*result.dropped, *result.edited}
    for journal in {f"{path}{suffix}" for path in changed for suffix in SIDECAR_SUFFIXES} & result.kept.keys():
        del result.kept[journal]
        result.dropped.append(journal)
    return result


def _purge_database(
    archive: ArchiveReader, file: ListedFile, targets: Sequence[MemoryRecord], purged: PurgedLines
) -> tuple[EditedFile | None, frozenset[Fact]]:
    """A facts database without the purged facts, and those facts; None if they cannot be removed completely."""
    here = [record for record in targets if scope_of(record) == file.path]
    wanted = {fact for fact in map(_fact_of, here) if fact is not None}
    if not here and not purged.is_in_bytes(archive.pieces(file)):
        return EditedFile(b""), frozenset()
    files = archive.files()
    has_journal = any(files[path].size for suffix in SIDECAR_SUFFIXES if (path := file.path + suffix) in files)
    if file.entry is None or has_journal or len(wanted) < len(here) or file.size > MAX_TEXT_BYTES:
        return None, frozenset()
    found = without_facts(b"".join(archive.pieces(file)), wanted, purged.is_in)
    if found is None or not wanted <= found[1] or purged.is_in_bytes([found[0]]):
        return None, frozenset()
    return EditedFile(found[0], range(1, len(found[1]) + 1)), found[1]


def _fact_of(record: MemoryRecord) -> Fact | None:
    """The database row that a record was made of."""
    row = object_or_empty(object_or_empty(record.get("raw_source_format")).get(TRUEKEEP_RUNTIME))
    if record.get("namespace") != "facts" or not all(isinstance(row.get(name), str) for name in Fact._fields):
        return None
    return Fact(*(row[name] for name in Fact._fields))


def _purge_foreign_entry(archive: ArchiveReader, name: str, purged: PurgedLines) -> tuple[ForeignEntry, bool]:
    """An entry of another tool without the purged lines, and whether it changed; a binary one is emptied."""
    file = ListedFile(name, name, archive.reader.entries[name].file_size, 0, 0)
    if not purged.is_in_bytes(archive.pieces(file)):
        return archive.foreign_entry(name), False
    text = _text_of(archive, file)
    if text is None:
        return ForeignEntry.of(name, b""), True
    try:
        return ForeignEntry.of(name, dump_document(purged.purge_value(json.loads(text)))), True
    except (ValueError, RecursionError):
        return ForeignEntry.of(name, purged.remove(text)[0].encode()), True


# --- Records --------------------------------------------------------------------------------------------------------


def _spool_remaining(
    archive: ArchiveReader,
    targets: Sequence[MemoryRecord],
    purged: PurgedLines,
    files: PurgedFiles,
    spool: RecordSpool,
) -> dict[str, str]:
    """Write the remaining records to the spool; returns the ids of the others, each with its partition."""
    ids = {record["id"] for record in targets}
    removed: dict[str, str] = {}
    for partition in archive.partitions():
        for record, line in archive.records([partition]):
            path = scope_of(record)
            if record["id"] in ids or _is_affected(record, line, purged, files):
                removed[record["id"]] = partition
            elif path in files.edited and _lines_of(record) is not None:
                spool.add(_with_shifted_lines(record, files.edited[path].removed), path=path)
            else:
                spool.add(record, path=path if path in files.kept else "", line=line + b"\n")
    return removed


def _is_affected(record: MemoryRecord, line: bytes, purged: PurgedLines, files: PurgedFiles) -> bool:
    """True if a record contains a purged line, or was made of one."""
    path, place = scope_of(record), _lines_of(record)
    if path in files.dropped or _fact_of(record) in files.facts:
        return True
    if path in files.edited and place is not None and any(number in place for number in files.edited[path].removed):
        return True
    texts = _iter_strings([record.get(name) for name in _RECORD_TEXTS]) if purged.is_in_bytes([line]) else ()
    return any(map(purged.is_in, texts))


def _iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _iter_strings(item)


def _with_shifted_lines(record: MemoryRecord, removed: Sequence[int]) -> MemoryRecord:
    """The record with the line numbers that it has after some lines of its file were removed."""
    place = record["raw_source_format"]
    shifted = {name: place[name] - bisect_left(removed, place[name]) for name in ("line_start", "line_end")}
    return cast(MemoryRecord, {**record, "raw_source_format": {**place, **shifted}})
