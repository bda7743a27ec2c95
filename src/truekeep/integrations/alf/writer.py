"""Write an archive: records, files and documents as ZIP entries, the manifest last.

The same contents always give the same bytes: no clock is read, and records are sorted by the time of their file, its
path and their place in it. Records and files are written one by one; memory only has their names, digests and counts.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, NamedTuple

from truekeep.integrations.alf.documents import (
    ATTACHMENTS,
    DOCUMENTS,
    FILES,
    INDEX,
    MANIFEST,
    Document,
    JsonObject,
    MemoryRecord,
    Partition,
    dump_document,
    dump_line,
)
from truekeep.integrations.alf.files import ARTIFACT_THRESHOLD, RAW, REFERENCED, ListedFile
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.record_ids import truekeep_id
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME
from truekeep.integrations.alf.timestamps import Quarter, quarter_of
from truekeep.integrations.alf.zip_container import PIECE_BYTES, ZipWriter

_RECORD_COMPRESSION_LEVEL = 4  # takes half the time of the default, and the archive is 2 % larger

Progress = Callable[[str, int, int], None]
"""Called with the current step, how many items are done, and how many there are."""


class RecordSpool:
    """Records on their way into an archive: added in the archive's order, read partition by partition.

    They are kept in temporary files, or in memory if nothing may be written to a disk unencrypted.
    """

    def __init__(self, *, folder: str | None) -> None:
        self._folder = folder
        self._files: dict[Quarter, IO[bytes]] = {}
        self.counts: Counter[Quarter] = Counter()
        self.partitions_by_path: dict[str, set[str]] = {}  # the partitions with records of a file
        self.has_embeddings = False

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def add(self, record: MemoryRecord, *, path: str = "", line: bytes | None = None) -> None:
        """Add a record to its quarter; one without a valid time goes to 1970. `line`: the record, if it is encoded."""
        quarter = quarter_of(record) or Quarter(1970, 1)
        if quarter not in self._files:
            most = 0 if self._folder is None else PIECE_BYTES  # 0: never to a disk
            self._files[quarter] = tempfile.SpooledTemporaryFile(most, dir=self._folder)  # noqa: SIM115
        self._files[quarter].write(line if line is not None else dump_line(record))
        self.counts[quarter] += 1
        self.has_embeddings = self.has_embeddings or "embeddings" in record
        if path:
            self.partitions_by_path.setdefault(path, set()).add(quarter.file)

    def size(self, quarter: Quarter) -> int:
        return self._files[quarter].seek(0, os.SEEK_END)

    def pieces(self, quarter: Quarter) -> Iterator[bytes]:
        self._files[quarter].seek(0)
        while piece := self._files[quarter].read(PIECE_BYTES):
            yield piece


class ForeignEntry(NamedTuple):
    """An entry of another tool, which is copied."""

    name: str
    size: int
    pieces: Callable[[], Iterable[bytes]]

    @classmethod
    def of(cls, name: str, data: bytes) -> ForeignEntry:
        return cls(name, len(data), lambda: (data,))


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


RecordOrder = tuple[str, str, tuple[int, str, str]]


def record_order(record: MemoryRecord, files: Mapping[str, ListedFile]) -> RecordOrder:
    """Sort key for the records of an archive: by the time of their file, its path and their place in it.

    Records of no file, such as sessions, come last.
    """
    path = scope_of(record)
    if path in files:
        return files[path].timestamp, path, order_in_file(record)
    temporal = record["temporal"]
    return "~", str(temporal.get("updated_at") or temporal.get("created_at")), (0, "", str(record["id"]))


def order_in_file(record: MemoryRecord) -> tuple[int, str, str]:
    """Sort key for the records of one file: by line, upstream's before truekeep's."""
    runtime, place = str(record["source"].get("runtime")), record.get("raw_source_format")
    line = place.get("line_start") if isinstance(place, dict) else 0
    return line if isinstance(line, int) else 0, "" if runtime == OPENCLAW_RUNTIME else runtime, str(record["id"])


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
        size = spool.size(quarter)
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
