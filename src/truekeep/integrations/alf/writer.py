"""Write an archive: records, files and documents as ZIP entries, the manifest last.

The same contents always give the same bytes: no clock is read, and records are sorted by the time of their file, its
path and their place in it. Records and files are written one by one; memory only has their names, digests and counts.
"""

from __future__ import annotations

import hashlib
import io
import mimetypes
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from truekeep.integrations.alf.documents import (
    Document,
    JsonObject,
    MemoryRecord,
    Partition,
    dump_document,
    dump_line,
)
from truekeep.integrations.alf.files import ARTIFACT_THRESHOLD, INCLUDED, RAW, REFERENCED
from truekeep.integrations.alf.record_ids import truekeep_id
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.sections import daily_log_date
from truekeep.integrations.alf.timestamps import Quarter, format_midnight, format_timestamp, quarter_of
from truekeep.integrations.alf.zip_container import PIECE_BYTES, ZipWriter

ALF_VERSION = "1.0.0"
MANIFEST, INDEX, ATTACHMENTS = "manifest.json", "memory/index.json", "attachments.json"
FILES, PURGES = "truekeep/files.jsonl", "truekeep/purges.jsonl"
_RECORD_COMPRESSION_LEVEL = 4  # takes half the time of the default, and the archive is 2 % larger
DOCUMENTS = {"identity": "identity.json", "principals": "principals.json", "credentials": "credentials.json"}
"""The layers that are single documents, in the order in which they are written."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, how many items are done, and how many there are."""


class ListedFile(NamedTuple):
    """One file of the agent: a line of truekeep/files.jsonl."""

    path: str
    entry: str | None
    size: int
    mtime_ns: int
    mode: int
    sha256: str = ""
    partitions: tuple[str, ...] = ()

    @property
    def tier(self) -> str:
        return REFERENCED if self.entry is None else RAW if self.entry.startswith("raw/") else INCLUDED

    @property
    def timestamp(self) -> str:
        """The time by which its records are sorted: the date in its name, else its mtime."""
        day = daily_log_date(self.path)
        return format_midnight(day) if day is not None else format_timestamp(self.mtime_ns)

    def as_line(self) -> JsonObject:
        return {**self._asdict(), "partitions": list(self.partitions)}


class RecordSpool:
    """Temporary storage for records: they are added file by file and read quarter by quarter.

    It uses a temporary file, or memory if nothing may be written to a disk unencrypted. Records that belong to no file
    come after the others, sorted by time and id.
    """

    def __init__(self, *, folder: str | None) -> None:
        self._file: IO[bytes] = (
            io.BytesIO() if folder is None else tempfile.TemporaryFile(dir=folder, buffering=PIECE_BYTES)  # noqa: SIM115
        )
        self._end = 0
        self._ranges: dict[Quarter, list[tuple[int, int]]] = {}
        self._fileless: dict[Quarter, list[tuple[tuple[str, str], int, int]]] = {}
        self.counts: Counter[Quarter] = Counter()
        self.partitions_by_path: dict[str, set[str]] = {}  # the partitions with records of a file
        self.has_embeddings = False

    def close(self) -> None:
        self._file.close()

    @property
    def is_large(self) -> bool:
        return self._end > 1 << 30

    def add(self, record: MemoryRecord, *, path: str = "", line: bytes | None = None) -> None:
        """Add a record to its quarter; one without a valid time goes to 1970. `line`: the record, if it is encoded."""
        quarter = quarter_of(record) or Quarter(1970, 1)
        line = line if line is not None else dump_line(record)
        self._file.write(line)
        start, self._end = self._end, self._end + len(line)
        self.counts[quarter] += 1
        self.has_embeddings = self.has_embeddings or "embeddings" in record
        if not path:
            temporal = record["temporal"]
            key = (str(temporal.get("observed_at") or temporal.get("created_at")), str(record["id"]))
            self._fileless.setdefault(quarter, []).append((key, start, self._end))
            return
        ranges = self._ranges.setdefault(quarter, [])
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], self._end)
        else:
            ranges.append((start, self._end))
        self.partitions_by_path.setdefault(path, set()).add(quarter.file)

    def pieces(self, quarter: Quarter) -> Iterator[bytes]:
        fileless = [(start, end) for _, start, end in sorted(self._fileless.get(quarter, ()))]
        for start, end in (*self._ranges.get(quarter, ()), *fileless):
            self._file.seek(start)
            while start < end:
                piece = self._file.read(min(PIECE_BYTES, end - start))
                start += len(piece)
                yield piece


class ForeignEntry(NamedTuple):
    """An entry of another tool, which is copied."""

    name: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


class ArchiveContents(NamedTuple):
    """Everything that goes into an archive."""

    head: Document  # the manifest without its layers
    documents: Mapping[str, Document]  # by layer
    spool: RecordSpool
    files: Sequence[ListedFile]  # sorted by path
    pieces: Callable[[ListedFile], Iterable[bytes]]
    layers: Document  # of other tools, copied; may include another tool's index of attachments
    foreign_entries: Sequence[ForeignEntry] = ()
    plain: bool = False  # write only what upstream's tool would write


class ArchiveSummary(NamedTuple):
    """The counts of a new archive."""

    manifest: Document
    records: int
    files: int
    size: int  # bytes of the files
    referenced: int


class DeltaSummary(NamedTuple):
    """The counts of a new delta."""

    created: int
    updated: int
    deleted: int
    files: int
    removed: int
    documents: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not any(self)


def order_in_file(record: Document) -> tuple[int, str, str]:
    """Sort key for the records of one file: by line, upstream's before truekeep's."""
    source, place = record.get("source"), record.get("raw_source_format")
    runtime = source.get("runtime") if isinstance(source, dict) else ""
    line = place.get("line_start") if isinstance(place, dict) else 0
    return (
        line if isinstance(line, int) else 0,
        "" if runtime == OPENCLAW_RUNTIME else str(runtime),
        str(record.get("id")),
    )


def write_archive(writer: ZipWriter, contents: ArchiveContents, progress: Progress = lambda *_: None) -> ArchiveSummary:
    """Write an archive; the manifest comes last."""
    layers = _write_documents(writer, contents.documents)
    partitions = _write_records(writer, contents.spool, progress)
    record_count = sum(partition["record_count"] for partition in partitions)
    files, size = _write_files(writer, contents, progress)
    if partitions:
        layers["memory"] = {
            "record_count": record_count,
            "index_file": INDEX,
            "partitions": partitions,
            "has_embeddings": contents.spool.has_embeddings,
            "has_raw_source": any(file.tier == RAW for file in files),
        }
        if not contents.plain:
            writer.add(INDEX, dump_document({"partitions": partitions}))
    attached = [file for file in files if file.tier != RAW]
    if attached and "attachments" not in contents.layers:
        layers["attachments"] = _write_attachments(writer, attached, str(contents.head["agent"]["id"]))
    for other in contents.foreign_entries:
        writer.add_pieces(other.name, other.pieces(), size=other.size)
    if not contents.plain:
        writer.add_pieces(FILES, (dump_line(file.as_line()) for file in files))
    manifest = _manifest(contents.head, {**layers, **contents.layers})
    writer.add(MANIFEST, dump_document(manifest))
    return ArchiveSummary(manifest, record_count, len(files), size, sum(file.tier == REFERENCED for file in files))


def _write_documents(writer: ZipWriter, documents: Mapping[str, Document]) -> JsonObject:
    """Write identity, principals and credentials; returns their layers of the manifest."""
    layers: JsonObject = {}
    for layer, name in DOCUMENTS.items():
        document = documents.get(layer)
        if document is None:
            continue
        writer.add(name, dump_document(document))
        if layer == "identity":
            layers[layer] = {"version": document.get("version", 1), "file": name}
        else:
            layers[layer] = {"count": len(document.get(layer, ())), "file": name}
    return layers


def _manifest(head: Document, layers: JsonObject) -> JsonObject:
    """The manifest, with its layers after the agent, as upstream writes it."""
    first: JsonObject = {key: head[key] for key in ("alf_version", "created_at", "agent") if key in head}
    return {**first, "layers": layers, **{key: value for key, value in head.items() if key not in first}}


def _write_records(writer: ZipWriter, spool: RecordSpool, progress: Progress) -> list[Partition]:
    partitions: list[Partition] = []
    for number, quarter in enumerate(sorted(spool.counts)):
        progress("records", number, len(spool.counts))
        size = 1 << 31 if spool.is_large else 0
        writer.add_pieces(quarter.file, spool.pieces(quarter), size=size, level=_RECORD_COMPRESSION_LEVEL)
        partitions.append(
            {
                "file": quarter.file,
                "from": quarter.first.isoformat(),
                "to": quarter.last.isoformat(),
                "record_count": spool.counts[quarter],
                "sealed": False,
            }
        )
    return partitions


def _write_files(writer: ZipWriter, contents: ArchiveContents, progress: Progress) -> tuple[list[ListedFile], int]:
    """Write the files; returns them with their digests and partitions, and their size in bytes."""
    written: list[ListedFile] = []
    size = 0
    for number, file in enumerate(contents.files):
        if number % 100 == 0:
            progress("files", number, len(contents.files))
        is_known = file.entry is None and file.sha256
        sha256 = file.sha256 if is_known else write_file(writer, file, contents.pieces(file))
        size += file.size if file.entry is not None else 0
        partitions = tuple(sorted(contents.spool.partitions_by_path.get(file.path, ())))
        written.append(file._replace(sha256=sha256, partitions=partitions))
    progress("files", len(contents.files), len(contents.files))
    return written, size


def write_file(writer: ZipWriter, file: ListedFile, pieces: Iterable[bytes]) -> str:
    """Write a file to its entry, if it has one; returns its SHA-256."""
    digest = hashlib.sha256()
    digested = _digested(pieces, digest.update)
    if file.entry is not None:
        writer.add_pieces(file.entry, digested, size=file.size)
    else:
        for _ in digested:
            pass
    return digest.hexdigest()


def _digested(pieces: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def _write_attachments(writer: ZipWriter, files: Sequence[ListedFile], agent: str) -> JsonObject:
    attachments: list[JsonObject] = [
        {
            "id": truekeep_id(agent, "artifact", file.path),
            "filename": file.path.rpartition("/")[2],
            "media_type": mimetypes.guess_type(file.path, strict=False)[0] or "application/octet-stream",
            "size_bytes": file.size,
            "hash": {"algorithm": "sha256", "value": file.sha256},
            "source_path": file.path,
            "archive_path": file.entry,
            "remote_ref": None,
            "referenced_by": [],
        }
        for file in files
    ]
    writer.add(ATTACHMENTS, dump_document({"artifact_size_threshold": ARTIFACT_THRESHOLD, "attachments": attachments}))
    inside = [file.size for file in files if file.entry is not None]
    outside = [file.size for file in files if file.entry is None]
    return {
        "count": len(files),
        "file": ATTACHMENTS,
        "included_count": len(inside),
        "included_size_bytes": sum(inside),
        "referenced_count": len(outside),
        "referenced_size_bytes": sum(outside),
    }
