"""An edition: one state of an agent, ready to be written as an archive. Where it comes from does not matter here.

The same edition always gives the same bytes: no clock is read, and records stand by the time of their file, its path
and their place in it. Records and files pass through one by one; only their names, digests and counts are kept.
"""

from __future__ import annotations

import hashlib
import io
import mimetypes
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from truekeep.integrations.alf.files import INCLUDED, RAW, REFERENCED, THRESHOLD
from truekeep.integrations.alf.record_ids import own_id
from truekeep.integrations.alf.record_times import Quarter, quarter_of, shown_day, shown_moment
from truekeep.integrations.alf.records import RUNTIME, Record, dump_record, pretty
from truekeep.integrations.alf.sections import day_of
from truekeep.integrations.alf.zip_container import PIECE, Writer

VERSION = "1.0.0"
MANIFEST, INDEX, ATTACHMENTS = "manifest.json", "memory/index.json", "attachments.json"
FILES, PURGES = "truekeep/files.jsonl", "truekeep/purges.jsonl"
_RECORDS = 4  # how hard records are packed: the files say the same, and half of the time is worth two percent
DOCUMENTS = {"identity": "identity.json", "principals": "principals.json", "credentials": "credentials.json"}
"""The layers that are one document each, in the order in which they are written."""

Document = dict[str, Any]
Tell = Callable[[str, int, int], None]
"""What is being done, how far it is, and how far there is to go."""


class FileEntry(NamedTuple):
    """One file of the agent, as truekeep/files.jsonl has it."""

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
    def moment(self) -> str:
        """By what its records are ordered: the day in its name, else when it was written."""
        day = day_of(self.path)
        return shown_day(day) if day is not None else shown_moment(self.mtime_ns)

    def as_record(self) -> Record:
        return {**self._asdict(), "partitions": list(self.partitions)}


class Spool:
    """Records on their way into partitions: they come file by file, and go out quarter by quarter.

    In a file without a name; in memory where nothing may reach a disk unencrypted. What comes `late` stands after the
    rest, in the order of its keys.
    """

    def __init__(self, *, folder: str | None) -> None:
        self._file: IO[bytes] = (
            io.BytesIO() if folder is None else tempfile.TemporaryFile(dir=folder, buffering=PIECE)  # noqa: SIM115
        )
        self._end = 0
        self._places: dict[Quarter, list[tuple[int, int]]] = {}
        self._late: dict[Quarter, list[tuple[tuple[str, str], int, int]]] = {}
        self.counts: Counter[Quarter] = Counter()
        self.homes: dict[str, set[str]] = {}  # the partitions that a file's records are in
        self.has_embeddings = False

    def close(self) -> None:
        self._file.close()

    @property
    def is_large(self) -> bool:
        return self._end > 1 << 30

    def add(self, record: Record, *, path: str = "", line: bytes | None = None) -> None:
        """Put a record behind those of its quarter. One without a time that can be read is filed under 1970."""
        quarter = quarter_of(record) or Quarter(1970, 1)
        line = line if line is not None else dump_record(record)
        self._file.write(line)
        start, self._end = self._end, self._end + len(line)
        self.counts[quarter] += 1
        self.has_embeddings = self.has_embeddings or "embeddings" in record
        if not path:
            key = (
                str(record["temporal"].get("observed_at") or record["temporal"].get("created_at")),
                str(record["id"]),
            )
            self._late.setdefault(quarter, []).append((key, start, self._end))
            return
        places = self._places.setdefault(quarter, [])
        if places and places[-1][1] == start:
            places[-1] = (places[-1][0], self._end)
        else:
            places.append((start, self._end))
        self.homes.setdefault(path, set()).add(quarter.file)

    def pieces(self, quarter: Quarter) -> Iterator[bytes]:
        late = [(start, end) for _, start, end in sorted(self._late.get(quarter, ()))]
        for start, end in (*self._places.get(quarter, ()), *late):
            self._file.seek(start)
            while start < end:
                piece = self._file.read(min(PIECE, end - start))
                start += len(piece)
                yield piece


class Other(NamedTuple):
    """An entry of another tool, which is kept as it is."""

    name: str
    size: int
    pieces: Callable[[], Iterable[bytes]]


class Edition(NamedTuple):
    """A state of an agent."""

    head: Document  # the manifest, but for its layers
    documents: Mapping[str, Document]  # by layer
    spool: Spool  # the records, as lines
    files: Sequence[FileEntry]  # by path
    pieces: Callable[[FileEntry], Iterable[bytes]]
    layers: Document  # of other kinds, kept as they are; another tool's index of attachments is one of them
    others: Sequence[Other] = ()
    plain: bool = False  # only what the format's own tool would write


class WrittenArchive(NamedTuple):
    """What an archive holds."""

    manifest: Document
    records: int
    files: int
    size: int  # bytes of them
    referenced: int


def place_in_file(record: Record) -> tuple[int, str, str]:
    """The order of the records of one file: by line, the format's own before ours."""
    source, place = record.get("source"), record.get("raw_source_format")
    runtime = source.get("runtime") if isinstance(source, dict) else ""
    line = place.get("line_start") if isinstance(place, dict) else 0
    return line if isinstance(line, int) else 0, "" if runtime == RUNTIME else str(runtime), str(record.get("id"))


def write_edition(writer: Writer, edition: Edition, tell: Tell = lambda *_: None) -> WrittenArchive:
    """Write an archive; the manifest comes last."""
    layers: Document = {}
    for layer, name in DOCUMENTS.items():
        document = edition.documents.get(layer)
        if document is None:
            continue
        writer.add(name, pretty(document))
        if layer == "identity":
            layers[layer] = {"version": document.get("version", 1), "file": name}
        else:
            layers[layer] = {"count": len(document.get(layer, ())), "file": name}
    partitions = _write_records(writer, edition.spool, tell)
    lines, size = _write_files(writer, edition, tell)
    if partitions:
        layers["memory"] = {
            "record_count": sum(part["record_count"] for part in partitions),
            "index_file": INDEX,
            "partitions": partitions,
            "has_embeddings": edition.spool.has_embeddings,
            "has_raw_source": any(line.tier == RAW for line in lines),
        }
        if not edition.plain:
            writer.add(INDEX, pretty({"partitions": partitions}))
    attached = [line for line in lines if line.tier != RAW]
    if attached and "attachments" not in edition.layers:
        layers["attachments"] = _write_attachments(writer, attached, str(edition.head["agent"]["id"]))
    for other in edition.others:
        writer.add_pieces(other.name, other.pieces(), size=other.size)
    if not edition.plain:
        writer.add_pieces(FILES, (dump_record(line.as_record()) for line in lines))
    manifest = _assembled(edition.head, {**layers, **edition.layers})
    writer.add(MANIFEST, pretty(manifest))
    count = sum(part["record_count"] for part in partitions)
    return WrittenArchive(manifest, count, len(lines), size, sum(line.tier == REFERENCED for line in lines))


def _assembled(head: Document, layers: Document) -> Document:
    """The manifest, its layers where the format has them: after the agent."""
    first: Document = {key: head[key] for key in ("alf_version", "created_at", "agent") if key in head}
    return {**first, "layers": layers, **{key: value for key, value in head.items() if key not in first}}


def _write_records(writer: Writer, spool: Spool, tell: Tell) -> list[Document]:
    partitions: list[Document] = []
    for number, quarter in enumerate(sorted(spool.counts)):
        tell("records", number, len(spool.counts))
        size = 1 << 31 if spool.is_large else 0
        writer.add_pieces(quarter.file, spool.pieces(quarter), size=size, level=_RECORDS)
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


def _write_files(writer: Writer, edition: Edition, tell: Tell) -> tuple[list[FileEntry], int]:
    lines: list[FileEntry] = []
    size = 0
    for number, line in enumerate(edition.files):
        if number % 100 == 0:
            tell("files", number, len(edition.files))
        digest = hashlib.sha256()
        pieces = _digested(edition.pieces(line), digest.update)
        if line.entry is not None:
            size += line.size
            writer.add_pieces(line.entry, pieces, size=line.size)
        elif not line.sha256:
            for _ in pieces:
                pass
        known = line.sha256 if line.entry is None and line.sha256 else digest.hexdigest()
        homes = tuple(sorted(edition.spool.homes.get(line.path, ())))
        lines.append(line._replace(sha256=known, partitions=homes))
    tell("files", len(edition.files), len(edition.files))
    return lines, size


def _digested(pieces: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for piece in pieces:
        update(piece)
        yield piece


def _write_attachments(writer: Writer, lines: Sequence[FileEntry], agent: str) -> Document:
    attachments: list[Document] = [
        {
            "id": own_id(agent, "artifact", line.path),
            "filename": line.path.rpartition("/")[2],
            "media_type": mimetypes.guess_type(line.path, strict=False)[0] or "application/octet-stream",
            "size_bytes": line.size,
            "hash": {"algorithm": "sha256", "value": line.sha256},
            "source_path": line.path,
            "archive_path": line.entry,
            "remote_ref": None,
            "referenced_by": [],
        }
        for line in lines
    ]
    writer.add(ATTACHMENTS, pretty({"artifact_size_threshold": THRESHOLD, "attachments": attachments}))
    inside = [line.size for line in lines if line.entry is not None]
    outside = [line.size for line in lines if line.entry is None]
    return {
        "count": len(lines),
        "file": ATTACHMENTS,
        "included_count": len(inside),
        "included_size_bytes": sum(inside),
        "referenced_count": len(outside),
        "referenced_size_bytes": sum(outside),
    }
