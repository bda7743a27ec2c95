"""Purge records: rewrite an archive without some records and without their text anywhere in it.

The lines that a record was made of are removed from its file, and its text, as a whole and line by line, from every
other file, document and record, in any spelling (purged_text.py). Facts are removed from their database. Other binary
files that contain the text are dropped, and so are files that would be empty. Text that is too short to be unique is
only removed where it came from. An audit record remains: which ids, when and why, without their text.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from truekeep.core.dates import as_stamp
from truekeep.core.errors import NotFound
from truekeep.core.sqlite import SIDECAR_SUFFIXES
from truekeep.integrations.alf.apply_delta import foreign_entry_names, foreign_layers
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
    JsonObject,
    MemoryRecord,
    dump_document,
    dump_line,
    object_or_empty,
)
from truekeep.integrations.alf.export import ExportOptions, ExportReport
from truekeep.integrations.alf.files import MAX_TEXT_BYTES
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.purged_text import PurgedText
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.record_ids import WHITESPACE
from truekeep.integrations.alf.records import TRUEKEEP_RUNTIME, find_marks
from truekeep.integrations.alf.writer import (
    DOCUMENTS,
    PURGES,
    ArchiveContents,
    ArchiveSummary,
    ForeignEntry,
    ListedFile,
    Progress,
    RecordSpool,
    write_archive,
)
from truekeep.integrations.alf.zip_container import BadArchive
from truekeep.memory.facts_db import FACTS_DB_PATH, Fact, without_facts

REASONS = ("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")
_SQLITE_HEADER = b"SQLite format 3\0"
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CARRIAGE_RETURNS = re.compile(r"\r+(?=\n)")
_BLANK_CHARACTERS = f"{WHITESPACE}\ufeff"
_STRUCTURAL_MEMBERS = frozenset(
    (
        *("id", "agent_id", "principal_id", "supersedes", "memory_type", "status", "namespace", "runtime"),
        *("alf_version", "created_at", "updated_at", "observed_at", "valid_from", "valid_until", "last_accessed_at"),
        *("computed_at", "last_rotated_at", "expires_at", "origin_file", "source_path", "archive_path", "file"),
        *("index_file", "media_type", "extraction_method", "algorithm"),
    )
)
"""Members that the format requires and that contain no memory: they are never changed."""
_DIGEST_MEMBERS = frozenset(("hash", "checksum"))
_MEMBER_NAME = re.compile(r"[a-z][a-z0-9_]*")


class PurgeReport(NamedTuple):
    """The result of a purge."""

    audit: JsonObject
    records: int  # removed
    files: tuple[str, ...]  # edited
    dropped: tuple[str, ...]  # files that are no longer in the archive
    changed: tuple[str, ...] = ()  # ids of edited records
    entries: tuple[str, ...] = ()  # edited documents and entries of other tools
    notes: tuple[str, ...] = ()  # what else was removed


class PurgedRecords(NamedTuple):
    """The records after a purge."""

    removed: list[str]
    edited: list[str]
    partitions: list[str]  # with removed records


class FileText(NamedTuple):
    """The text of a file and its encoding."""

    text: str
    codec: str


class PurgedFiles(NamedTuple):
    """The files after a purge."""

    kept: dict[str, ListedFile]
    edited: dict[str, EditedText]
    dropped: list[str]
    facts: set[Fact]  # removed from their database


class EditedText(NamedTuple):
    """A text file without the purged text."""

    before: list[str]  # lines without their ends
    after: list[str]
    numbers: list[int]  # of the remaining lines before the edit, from 1
    data: bytes

    @property
    def removed(self) -> list[int]:
        return sorted(set(range(1, len(self.before) + 1)) - set(self.numbers))


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
    lines, purged = _purged_lines_and_text(archive, targets)
    files = _purge_files(archive, targets, lines, purged)
    records = _spool_remaining(archive, {record["id"] for record in targets}, purged, files, spool)
    audit: JsonObject = {
        "purge_id": str(uuid.uuid4()),
        "agent_id": archive.agent_id,
        "scope": "record_purge",
        "record_ids": sorted(map(_canonical_id, records.removed)),
        "partitions_affected": records.partitions,
        "reason": reason,
        "requested_at": at,
        "completed_at": at,
    }
    layers = foreign_layers(archive, is_by_truekeep=archive.is_by_truekeep)
    attachments = None if archive.is_by_truekeep else archive.file_of("attachments")
    foreign = [name for name in foreign_entry_names(archive, layers) if name != PURGES]
    documents = archive.documents()
    purged_documents = {layer: purge_value(document, purged) for layer, document in documents.items()}
    contents = ArchiveContents(
        head=_purge_head(archive, purged),
        documents=purged_documents,
        spool=spool,
        files=[files.kept[path] for path in sorted(files.kept)],
        pieces=lambda file: _pieces(archive, files, file),
        layers={name: purge_value(layer, purged) for name, layer in layers.items()},
        foreign_entries=[
            *(
                _purge_attachments(archive, name, purged, files)
                if name == attachments
                else _purge_foreign_entry(archive, name, purged)
                for name in foreign
            ),
            _audit_trail(archive, audit),
        ],
        plain=not archive.is_by_truekeep,
    )
    edited_entries = [DOCUMENTS[layer] for layer in documents if purged_documents[layer] != documents[layer]]
    edited_entries += [name for name in foreign if name != attachments and _contains_purged(archive, name, purged)]
    report = PurgeReport(
        audit,
        len(records.removed),
        tuple(sorted(files.edited)),
        tuple(sorted(files.dropped)),
        tuple(records.edited),
        tuple(edited_entries),
        tuple(_iter_notes(targets, files, records)),
    )
    return contents, report


def _pieces(archive: ArchiveReader, files: PurgedFiles, file: ListedFile) -> Iterable[bytes]:
    if file.entry is None:
        return ()
    edited = files.edited.get(file.path)
    return (edited.data,) if edited is not None else archive.reader.pieces(file.entry)


def _purge_head(archive: ArchiveReader, purged: PurgedText) -> JsonObject:
    """The manifest without its layers and without the purged text."""
    head = {key: value for key, value in archive.manifest.items() if key not in ("layers", "checksum")}
    return {key: value if key == "agent" else purge_value(value, purged, key) for key, value in head.items()}


def _audit_trail(archive: ArchiveReader, audit: JsonObject) -> ForeignEntry:
    """The audit records of earlier purges, and the new one."""
    earlier = archive.reader.read(PURGES) if PURGES in archive.reader.entries else b""
    return _entry_from(PURGES, earlier + dump_line(audit))


def _iter_notes(targets: Sequence[MemoryRecord], files: PurgedFiles, records: PurgedRecords) -> Iterator[str]:
    more = len(records.removed) - len(targets)
    if more:
        yield f"{more} more records were removed with their source; the audit record lists their ids"
    if FACTS_DB_PATH in files.dropped:
        yield f"{FACTS_DB_PATH} could not be rewritten and is left out, with its other facts"


def _canonical_id(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def _find_records(archive: ArchiveReader, wanted: set[str]) -> list[MemoryRecord]:
    found = [record for record, _ in archive.records() if _canonical_id(record["id"]) in wanted]
    missing = wanted - {_canonical_id(record["id"]) for record in found}
    if missing:
        raise NotFound(
            f"the archive has no record {', '.join(sorted(missing)[:5])}",
            hint="`truekeep alf show FILE --records` lists them",
        )
    return found


# --- Texts ----------------------------------------------------------------------------------------------------------


def purge_text(text: str, purged: PurgedText, removed: Iterable[int] = (), *, codec: str = "utf-8") -> EditedText:
    """The text without these lines and without the purged text. Other lines keep their line ends."""
    ends = text.split("\n")
    lines = [line.rstrip("\r") for line in ends]
    numbers = list(range(1, len(lines) + 1))
    line_ends = [line[len(bare) :] for line, bare in zip(ends, lines, strict=True)]
    line_ends[-1], lines[-1] = "", ends[-1]  # the last line has no line end
    before, drop = lines, set(removed)
    kept = [at for at, number in enumerate(numbers) if number not in drop]
    lines, numbers = [lines[at] for at in kept], [numbers[at] for at in kept]
    line_ends = [line_ends[at] for at in kept]
    while spans := _merge_spans(purged.spans("\n".join(lines))):
        lines, first, last = _remove_spans("\n".join(lines), spans)
        numbers, line_ends = [numbers[at] for at in first], [line_ends[at] for at in last]
    data = "\n".join(line + end for line, end in zip(lines, line_ends, strict=True)).encode(codec)
    return EditedText(before, lines, numbers, data)


def _merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _remove_spans(text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[str], list[int], list[int]]:
    """The lines of a text without some spans, and for each the old lines in which it begins and ends."""
    parts: list[str] = []
    first: list[int] = []
    last: list[int] = []
    at = line = 0
    for start, end in (*spans, (len(text), len(text))):
        for number, part in enumerate(text[at:start].split("\n"), line):
            if number > line or not parts:
                parts.append("")
                first.append(number)
                last.append(number)
            elif not parts[-1]:
                first[-1] = number  # nothing is left of the line before
            parts[-1] += part
            last[-1] = number
        line += text.count("\n", at, end)
        at = end
    return parts, first, last


def purge_value(value: Any, purged: PurgedText, name: str = "") -> Any:
    """A JSON value without the purged text in its strings, except for structural members."""
    if isinstance(value, str):
        is_affected = name not in _STRUCTURAL_MEMBERS and purged.is_in(_with_line_feeds(value))
        return purge_text(value, purged).data.decode() if is_affected else value
    if name in _DIGEST_MEMBERS:
        return value
    if isinstance(value, dict):
        return {
            key if _MEMBER_NAME.fullmatch(key) else purge_value(key, purged): purge_value(item, purged, key)
            for key, item in value.items()
        }
    return [purge_value(item, purged, name) for item in value] if isinstance(value, list) else value


def _with_line_feeds(text: str) -> str:
    return _CARRIAGE_RETURNS.sub("", text) if "\r" in text else text


# --- Files ----------------------------------------------------------------------------------------------------------


def _purged_lines_and_text(
    archive: ArchiveReader, targets: Sequence[MemoryRecord]
) -> tuple[dict[str, set[int]], PurgedText]:
    """The lines that the records were made of, by file, and the text to remove everywhere."""
    texts = {record["content"] for record in targets}
    texts |= {fact.value for fact in map(_fact_of, targets) if fact is not None}
    files = archive.files()
    lines: dict[str, set[int]] = {}
    for path in {scope_of(record) for record in targets} & files.keys():
        file_text = _text_of(archive, files[path])
        if file_text is None:
            continue
        for record in targets:
            found = _lines_of(record, file_text.text, is_trusted=archive.is_by_truekeep)
            if scope_of(record) == path and found is not None:
                lines.setdefault(path, set()).update(found)
                texts.add("\n".join(file_text.text.split("\n")[found.start - 1 : found.stop - 1]))
    return lines, PurgedText(map(_with_line_feeds, texts))


def _purge_files(
    archive: ArchiveReader, targets: Sequence[MemoryRecord], lines: dict[str, set[int]], purged: PurgedText
) -> PurgedFiles:
    """Remove the purged text from all files; drop binary files that contain it, and files left empty."""
    result = PurgedFiles({}, {}, [], set())
    databases = {scope_of(record) for record in targets if record.get("namespace") == "facts"}
    for path, file in archive.files().items():
        is_database = path == FACTS_DB_PATH or path in databases
        database = _purge_database(archive, file, targets, purged) if is_database else None
        if database is not None:
            edit = EditedText([], [], [], database[0]) if database[1] else None
            result.facts.update(database[1])
        elif path in databases:
            edit = _DROPPED
        else:
            edit = _purge_file(archive, file, purged, lines.get(path, ()))
        if edit is _DROPPED:
            result.dropped.append(path)
        elif edit is None:
            result.kept[path] = file
        else:
            result.edited[path] = edit
            result.kept[path] = file._replace(size=len(edit.data), sha256="")
    changed = {*result.dropped, *result.edited}
    for path in [path for path in result.kept if _is_database_journal(path, changed, databases)]:
        del result.kept[path]
        result.edited.pop(path, None)
        result.dropped.append(path)
    return result


_DROPPED = EditedText([], [], [], b"")
"""Stands for a file that is left out."""


def _purge_file(
    archive: ArchiveReader, file: ListedFile, purged: PurgedText, removed_lines: Iterable[int]
) -> EditedText | None:
    """A file without the purged text; None if it does not change, _DROPPED if it is left out."""
    file_text = _text_of(archive, file)
    if file_text is None:
        is_affected = file.entry is not None and purged.is_in_binary(archive.reader.pieces(file.entry))
        return _DROPPED if is_affected else None
    text, codec = file_text
    edit = purge_text(text, purged, removed_lines, codec=codec)
    if text.strip(_BLANK_CHARACTERS) and not edit.data.decode(codec).strip(_BLANK_CHARACTERS):
        return _DROPPED
    return edit if edit.data != text.encode(codec) else None


def _is_database_journal(path: str, changed: set[str], databases: set[str]) -> bool:
    """True for the journal of a facts database that was changed or dropped."""
    return any(
        path == f"{database}{tail}" for database in changed & {FACTS_DB_PATH, *databases} for tail in SIDECAR_SUFFIXES
    )


def _purge_database(
    archive: ArchiveReader, file: ListedFile, targets: Sequence[MemoryRecord], purged: PurgedText
) -> tuple[bytes, frozenset[Fact]] | None:
    """A facts database without the purged facts, and those facts; None if they cannot be removed completely."""
    here = [record for record in targets if scope_of(record) == file.path]
    wanted = {fact for fact in map(_fact_of, here) if fact is not None}
    files = archive.files()
    journals = [files[path] for tail in SIDECAR_SUFFIXES if (path := file.path + tail) in files]
    if file.entry is None or len(wanted) < len(here) or any(journal.size for journal in journals):
        return None
    if archive.reader.entries[file.entry].file_size > MAX_TEXT_BYTES:
        return None
    found = without_facts(b"".join(archive.reader.pieces(file.entry)), wanted, purged.is_in)
    return None if found is None or not wanted <= found[1] or purged.is_in_binary([found[0]]) else found


def _fact_of(record: MemoryRecord) -> Fact | None:
    """The database row that a record was made of."""
    if record.get("namespace") != "facts":
        return None
    row = object_or_empty(object_or_empty(record.get("raw_source_format")).get(TRUEKEEP_RUNTIME))
    if not all(isinstance(row.get(name), str) for name in Fact._fields):
        return None
    return Fact(*(row[name] for name in Fact._fields))


def _text_of(archive: ArchiveReader, file: ListedFile) -> FileText | None:
    """The text of a file; None if it is only referenced, too large, or binary."""
    if file.entry is None or archive.reader.entries[file.entry].file_size > MAX_TEXT_BYTES:
        return None
    data = b"".join(archive.reader.pieces(file.entry))
    if data.startswith(_SQLITE_HEADER):
        return None
    marked = [codec for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark)]
    for codec in (*marked, *_guess_utf16(data), "utf-8"):
        try:
            return FileText(data.decode(codec), codec)
        except UnicodeDecodeError:
            continue
    return None


def _guess_utf16(data: bytes) -> tuple[str, ...]:
    """The byte order of UTF-16 without a mark, by its zero bytes: they are on one side of each pair."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if len(data) % 2 or 4 * max(even, odd) < len(data) or min(even, odd) > len(data) // 50:
        return ()
    return ("utf-16-le",) if odd > even else ("utf-16-be",)


def _lines_of(record: MemoryRecord, text: str, *, is_trusted: bool) -> range | None:
    """The lines of a file that a record was made of; None if that is not certain."""
    place = object_or_empty(record.get("raw_source_format"))
    first, last = place.get("line_start"), place.get("line_end")
    lines = text.split("\n")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last <= len(lines):
        return None
    is_same = _trimmed("\n".join(lines[first - 1 : last])) == _trimmed(record["content"])
    is_certain = is_same or (is_trusted and record["source"].get("runtime") == TRUEKEEP_RUNTIME)
    return range(first, last + 1) if is_certain else None


# --- Entries of other tools -----------------------------------------------------------------------------------------


def _entry_from(name: str, data: bytes) -> ForeignEntry:
    return ForeignEntry(name, len(data), lambda: (data,))


def _purge_foreign_entry(archive: ArchiveReader, name: str, purged: PurgedText) -> ForeignEntry:
    """An entry of another tool without the purged text; empty if it is binary and contains it."""
    size = archive.reader.entries[name].file_size

    def pieces() -> Iterable[bytes]:
        file_text = _text_of(archive, ListedFile(name, name, size, 0, 0))
        if file_text is None:
            is_affected = purged.is_in_binary(archive.reader.pieces(name))
            return () if is_affected else archive.reader.pieces(name)
        return (purge_text(file_text.text, purged, codec=file_text.codec).data,)

    return ForeignEntry(name, size, pieces)


def _contains_purged(archive: ArchiveReader, name: str, purged: PurgedText) -> bool:
    file_text = _text_of(archive, ListedFile(name, name, 0, 0, 0))
    if file_text is None:
        return purged.is_in_binary(archive.reader.pieces(name))
    return purged.is_in(_with_line_feeds(file_text.text))


def _purge_attachments(archive: ArchiveReader, name: str, purged: PurgedText, files: PurgedFiles) -> ForeignEntry:
    """Another tool's index of attachments, with the new digests of edited files."""
    document = purge_value(archive.document(name), purged)
    paths = {file.entry: file.path for file in archive.files().values()}
    attachments = document.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        path = paths.get(attachment.get("archive_path")) if isinstance(attachment, dict) else None
        if path is None:
            continue
        if path not in files.kept:
            attachment["archive_path"] = None
        elif path in files.edited:
            data = files.edited[path].data
            digest = {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}
            attachment |= {"size_bytes": len(data), "hash": digest}
    return _entry_from(name, dump_document(document))


# --- Records --------------------------------------------------------------------------------------------------------


def _spool_remaining(
    archive: ArchiveReader, ids: set[str], purged: PurgedText, files: PurgedFiles, spool: RecordSpool
) -> PurgedRecords:
    """Write the remaining records to the spool."""
    removed_lines = {path: edit.removed for path, edit in files.edited.items()}
    orphans = (record for record, _ in archive.records() if _has_lost_source(record, purged, removed_lines, files))
    removed = ids | {record["id"] for record in orphans}
    result = PurgedRecords([], [], [])
    for partition in archive.partitions():
        before = len(result.removed)
        for record, line in archive.records([partition]):
            path, record_id = scope_of(record), record["id"]
            edited = None if record_id in removed else _purge_record(record, purged, files.edited.get(path), removed)
            if record_id in removed or (edited and not edited["content"].strip(WHITESPACE)):
                result.removed.append(record_id)
                continue
            if edited and edited["content"] != record["content"]:
                result.edited.append(record_id)
            spool.add(edited or record, path=path if path in files.kept else "", line=None if edited else line + b"\n")
        if len(result.removed) > before:
            result.partitions.append(partition)
    return result


def _has_lost_source(
    record: MemoryRecord, purged: PurgedText, removed_lines: dict[str, list[int]], files: PurgedFiles
) -> bool:
    """True if a record's file or all of its lines were removed; for one of truekeep's own, any of its lines.

    The next export makes truekeep's own records again.
    """
    path = scope_of(record)
    if path in files.dropped or _fact_of(record) in files.facts:
        return True
    is_own = record["source"].get("runtime") == TRUEKEEP_RUNTIME
    if is_own and purge_value(record["content"], purged) != record["content"]:
        return True
    place = object_or_empty(record.get("raw_source_format"))
    first, last = place.get("line_start"), place.get("line_end")
    if not isinstance(first, int):
        return False
    last = last if isinstance(last, int) else first
    removed = removed_lines.get(path, ())
    count = bisect_left(removed, last + 1) - bisect_left(removed, first)
    return count > 0 and (is_own or count == last + 1 - first)


def _purge_record(
    record: MemoryRecord, purged: PurgedText, edit: EditedText | None, removed: set[str]
) -> MemoryRecord | None:
    """A record after the purge; None if it does not change."""
    new: JsonObject = {key: purge_value(value, purged, key) for key, value in record.items() if key != "embeddings"}
    place = new.get("raw_source_format")
    if edit is not None and isinstance(place, dict):
        new["content"] = _remaining_content(record, edit, new["content"])
        new["raw_source_format"] = {**place, **_shifted_lines(place, edit.removed)}
    if new["content"] != record["content"] and isinstance(record.get("tags"), list):
        marks = find_marks(str(new["content"]), str(record.get("namespace", "")))
        new["tags"] = marks.tags
        for key, value in (("category", marks.category), ("confidence", marks.confidence)):
            if key in new and value is None:
                del new[key]
    related = new.get("related_records")
    if isinstance(related, list):
        left = [item for item in related if not isinstance(item, dict) or str(item.get("id")) not in removed]
        new["related_records"] = left
        if related and not left:
            del new["related_records"]
    if "embeddings" in record and edit is None and new["content"] == record["content"]:
        new = {key: new.get(key, value) for key, value in record.items() if key in new or key == "embeddings"}
    return None if new == record else cast(MemoryRecord, new)


def _remaining_content(record: MemoryRecord, edit: EditedText, purged_content: str) -> str:
    """The remaining lines of a record, if its content was exactly these lines of its file."""
    place = record["raw_source_format"]
    first, last = place.get("line_start"), place.get("line_end")
    if not isinstance(first, int) or not isinstance(last, int):
        return purged_content
    if "\n".join(edit.before[first - 1 : last]) != record["content"]:
        return purged_content
    start, end = bisect_left(edit.numbers, first), bisect_left(edit.numbers, last + 1)
    return "\n".join(edit.after[start:end])


def _trimmed(text: str) -> str:
    return _CARRIAGE_RETURNS.sub("", f"{text}\n").strip(WHITESPACE)


def _shifted_lines(place: JsonObject, removed: Sequence[int]) -> JsonObject:
    """The line numbers of a record after some lines were removed."""
    shifted: JsonObject = {}
    for key in ("line_start", "line_end"):
        number = place.get(key)
        if isinstance(number, int):
            shifted[key] = max(1, number - bisect_left(removed, number + (key == "line_end")))
    return shifted
