"""Purge: an archive without some records and without what they said, anywhere in it.

The lines that a record was made of go from its file, and what it said, as a whole and line by line, goes from every
other file, document and record, however it is spelled there (`spelling`). A fact goes from its database; any other file
that is no text and holds it is left out as a whole, and so is one of which nothing is left. What is too short to be
told from other things is cut only where it came from. What stays is the record that something was purged: which ids,
when, why, and none of what they said.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from truekeep.core.errors import NotFound
from truekeep.core.sqlite import SIDECAR_SUFFIXES
from truekeep.integrations.alf.delta import kept_of, layers_of
from truekeep.integrations.alf.files import LONGEST_TEXT
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.own_records import RUNTIME as OURS
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.record_ids import WHITESPACE
from truekeep.integrations.alf.records import Record, dump_record, find_marks, pretty
from truekeep.integrations.alf.text_variants import Cuts
from truekeep.integrations.alf.writer import DOCUMENTS, PURGES, Document, Edition, FileEntry, Other, Spool
from truekeep.integrations.alf.zip_container import BadArchive
from truekeep.memory.facts_db import FACTS_DB_PATH, Fact, without_facts

REASONS = ("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")
_SQLITE = b"SQLite format 3\0"
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_RETURNS = re.compile(r"\r+(?=\n)")
_EMPTY = f"{WHITESPACE}\ufeff"
_STRUCTURE = frozenset(
    (
        *("id", "agent_id", "principal_id", "supersedes", "memory_type", "status", "namespace", "runtime"),
        *("alf_version", "created_at", "updated_at", "observed_at", "valid_from", "valid_until", "last_accessed_at"),
        *("computed_at", "last_rotated_at", "expires_at", "origin_file", "source_path", "archive_path", "file"),
        *("index_file", "media_type", "extraction_method", "algorithm"),
    )
)
"""Members that the format cannot do without: what they hold is no memory."""
_DIGESTS = frozenset(("hash", "checksum"))
_MEMBER = re.compile(r"[a-z][a-z0-9_]*")  # a name of the format's own, or one like it


class PurgeReport(NamedTuple):
    """What was purged."""

    audit: Document
    records: int  # that went
    files: tuple[str, ...]  # that were edited
    dropped: tuple[str, ...]  # that are not in the archive any more
    changed: tuple[str, ...] = ()  # ids of the records that stay and of which something was cut
    entries: tuple[str, ...] = ()  # documents and other tools' entries of which something was cut
    notes: tuple[str, ...] = ()  # what went along that nobody asked for


class PurgedRecords(NamedTuple):
    """What became of the records."""

    ids: list[str]
    changed: list[str]
    partitions: list[str]  # that the ids were in


class Text(NamedTuple):
    """What a file says, and how it is encoded."""

    text: str
    codec: str


class PurgedFiles(NamedTuple):
    """What becomes of the files."""

    kept: dict[str, FileEntry]
    edited: dict[str, EditedText]
    dropped: list[str]
    facts: frozenset[Fact]  # that went from their database


class EditedText(NamedTuple):
    """A text file of which something was cut."""

    before: list[str]  # lines, without their ends
    after: list[str]
    numbers: list[int]  # which of the lines before those are that are left, from 1
    data: bytes

    @property
    def gone(self) -> list[int]:
        return sorted(set(range(1, len(self.before) + 1)) - set(self.numbers))


def purged(
    snapshot: Snapshot, ids: Sequence[str], *, spool: Spool, reason: str, at: str
) -> tuple[Edition, PurgeReport]:
    """The archive without these records and what they say."""
    if snapshot.is_delta:
        raise BadArchive("this is a delta", hint="apply it first, purge the full archive, and delete the delta")
    targets = _targets(snapshot, {_canonical(text) for text in ids})
    places, cuts = _sought(snapshot, targets)
    files = _files(snapshot, targets, places, cuts)
    gone = _records(snapshot, {str(record["id"]) for record in targets}, cuts, files, spool)
    audit: Document = {
        "purge_id": str(uuid.uuid4()),
        "agent_id": snapshot.agent_id,
        "scope": "record_purge",
        "record_ids": sorted(map(_canonical, gone.ids)),
        "partitions_affected": gone.partitions,
        "reason": reason,
        "requested_at": at,
        "completed_at": at,
    }
    layers = layers_of(snapshot, is_ours=snapshot.is_ours)
    attachments = None if snapshot.is_ours else snapshot.file_of("attachments")
    others = [
        _index(snapshot, name, cuts, files) if name == attachments else _other(snapshot, name, cuts)
        for name in kept_of(snapshot, layers)
        if name != PURGES
    ]
    trail = snapshot.reader.read(PURGES) if PURGES in snapshot.reader.entries else b""
    others.append(_held(PURGES, trail + dump_record(audit)))

    def pieces(line: FileEntry) -> Iterable[bytes]:
        if line.entry is None:
            return ()
        found = files.edited.get(line.path)
        return (found.data,) if found is not None else snapshot.reader.pieces(line.entry)

    head = {key: value for key, value in snapshot.manifest.items() if key not in ("layers", "checksum")}
    documents = snapshot.documents()
    left = {layer: cut_values(document, cuts) for layer, document in documents.items()}
    edition = Edition(
        {key: value if key == "agent" else cut_values(value, cuts, key) for key, value in head.items()},
        left,
        spool,
        [files.kept[path] for path in sorted(files.kept)],
        pieces,
        {layer: cut_values(about, cuts) for layer, about in layers.items()},
        others,
        not snapshot.is_ours,
    )
    cut = [DOCUMENTS[layer] for layer in documents if left[layer] != documents[layer]]
    cut += [
        name
        for name in kept_of(snapshot, layers)
        if name not in (PURGES, attachments) and _is_cut(snapshot, name, cuts)
    ]
    told = PurgeReport(audit, len(gone.ids), tuple(sorted(files.edited)), tuple(sorted(files.dropped)))
    return edition, told._replace(
        changed=tuple(gone.changed), entries=tuple(cut), notes=tuple(_notes(targets, files, gone))
    )


def _notes(targets: Sequence[Record], files: PurgedFiles, gone: PurgedRecords) -> Iterator[str]:
    more = len(gone.ids) - len(targets)
    if more:
        yield f"{more} more records went with what they were made of; the audit record has their ids"
    if FACTS_DB_PATH in files.dropped:
        yield f"{FACTS_DB_PATH} could not be written without it and is left out: its other facts went along"


def _canonical(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def _targets(snapshot: Snapshot, wanted: set[str]) -> list[Record]:
    found = [record for record, _ in snapshot.records() if _canonical(str(record["id"])) in wanted]
    missing = wanted - {_canonical(str(record["id"])) for record in found}
    if missing:
        raise NotFound(
            f"the archive has no record {', '.join(sorted(missing)[:5])}",
            hint="`truekeep alf show FILE --records` lists them",
        )
    return found


# --- Texts ----------------------------------------------------------------------------------------------------------


def cut_lines(text: str, cuts: Cuts, gone: Iterable[int] = (), *, codec: str = "utf-8") -> EditedText:
    """A text without these lines and without what is cut. Its line ends stay as they are."""
    ends = text.split("\n")
    lines = [line.rstrip("\r") for line in ends]
    numbers = list(range(1, len(lines) + 1))
    spare = [line[len(bare) :] for line, bare in zip(ends, lines, strict=True)]
    spare[-1], lines[-1] = "", ends[-1]  # the last one has no end, so that what it ends in is its own
    before, drop = lines, set(gone)
    kept = [at for at, number in enumerate(numbers) if number not in drop]
    lines, numbers, spare = [lines[at] for at in kept], [numbers[at] for at in kept], [spare[at] for at in kept]
    while spans := _merged(cuts.spans("\n".join(lines))):
        lines, first, last = _without("\n".join(lines), spans)
        numbers, spare = [numbers[at] for at in first], [spare[at] for at in last]
    data = "\n".join(line + end for line, end in zip(lines, spare, strict=True)).encode(codec)
    return EditedText(before, lines, numbers, data)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _without(text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[str], list[int], list[int]]:
    """The lines of a text without some spans, and for each the lines of the old text that it begins and ends in."""
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
                first[-1] = number  # nothing is left of the line that was cut
            parts[-1] += part
            last[-1] = number
        line += text.count("\n", at, end)
        at = end
    return parts, first, last


def cut_values(value: Any, cuts: Cuts, name: str = "") -> Any:
    """A JSON value with a text cut out of every string in it, but for what the format cannot do without."""
    if isinstance(value, str):
        return value if name in _STRUCTURE or not cuts.is_in(_lines_of(value)) else cut_lines(value, cuts).data.decode()
    if name in _DIGESTS:
        return value
    if isinstance(value, dict):
        return {
            key if _MEMBER.fullmatch(key) else cut_values(key, cuts): cut_values(item, cuts, key)
            for key, item in value.items()
        }
    return [cut_values(item, cuts, name) for item in value] if isinstance(value, list) else value


def _lines_of(text: str) -> str:
    return _RETURNS.sub("", text) if "\r" in text else text


# --- Files ----------------------------------------------------------------------------------------------------------


def _sought(snapshot: Snapshot, targets: Sequence[Record]) -> tuple[dict[str, set[int]], Cuts]:
    """The lines that the records were made of, by file, and what they say."""
    texts = {str(record["content"]) for record in targets}
    texts |= {fact.value for fact in map(_fact_of, targets) if fact is not None}
    lines = snapshot.files()
    places: dict[str, set[int]] = {}
    for path in {scope_of(record) for record in targets} & lines.keys():
        read = _text_of(snapshot, lines[path])
        if read is None:
            continue
        for record in targets:
            if scope_of(record) == path and (found := _place(record, read.text, is_trusted=snapshot.is_ours)):
                places.setdefault(path, set()).update(found)
                texts.add("\n".join(read.text.split("\n")[found.start - 1 : found.stop - 1]))
    return places, Cuts(map(_lines_of, texts))


def _files(snapshot: Snapshot, targets: Sequence[Record], places: dict[str, set[int]], cuts: Cuts) -> PurgedFiles:
    """The files without what is cut. One that is no text and holds it is dropped, and one of which nothing is left."""
    found = PurgedFiles({}, {}, [], frozenset())
    lines = snapshot.files()
    asked = {scope_of(record) for record in targets if record.get("namespace") == "facts"}
    for path, line in lines.items():
        read = _text_of(snapshot, line)
        new: EditedText | None = None
        database = _database(snapshot, line, targets, cuts) if path == FACTS_DB_PATH or path in asked else None
        if database is not None:
            if database[1]:
                found = found._replace(facts=found.facts | database[1])
                new = EditedText([], [], [], database[0])
        elif path in asked:
            found.dropped.append(path)
            continue
        elif read is None:
            if line.entry is not None and cuts.are_in(snapshot.reader.pieces(line.entry)):
                found.dropped.append(path)
                continue
        else:
            new = cut_lines(read.text, cuts, places.get(path, ()), codec=read.codec)
            if read.text.strip(_EMPTY) and not new.data.decode(read.codec).strip(_EMPTY):
                found.dropped.append(path)
                continue
            new = new if new.data != read.text.encode(read.codec) else None
        if new is not None:
            found.edited[path] = new
            line = line._replace(size=len(new.data), sha256="")
        found.kept[path] = line
    for path in [path for path in found.kept if _is_beside(path, {*found.dropped, *found.edited}, asked)]:
        del found.kept[path]
        found.edited.pop(path, None)
        found.dropped.append(path)
    return found


def _is_beside(path: str, touched: set[str], asked: set[str]) -> bool:
    """Whether a file is the log or journal of a database of facts that is not any more what it was."""
    return any(path == f"{known}{tail}" for known in touched & {FACTS_DB_PATH, *asked} for tail in SIDECAR_SUFFIXES)


def _database(
    snapshot: Snapshot, line: FileEntry, targets: Sequence[Record], cuts: Cuts
) -> tuple[bytes, frozenset[Fact]] | None:
    """A database of facts without some of them; None where that cannot be done, or not so that nothing is left."""
    here = [record for record in targets if scope_of(record) == line.path]
    wanted = {fact for fact in map(_fact_of, here) if fact is not None}
    lines = snapshot.files()
    beside = [lines[path] for tail in SIDECAR_SUFFIXES if (path := line.path + tail) in lines]
    if line.entry is None or len(wanted) < len(here) or any(other.size for other in beside):
        return None
    if snapshot.reader.entries[line.entry].file_size > LONGEST_TEXT:
        return None
    found = without_facts(b"".join(snapshot.reader.pieces(line.entry)), wanted, cuts.is_in)
    return None if found is None or not wanted <= found[1] or cuts.are_in([found[0]]) else found


def _fact_of(record: Record) -> Fact | None:
    """The row that a record is of."""
    place = record.get("raw_source_format")
    said = place.get(OURS) if isinstance(place, dict) and record.get("namespace") == "facts" else None
    if not isinstance(said, dict) or not all(isinstance(said.get(name), str) for name in Fact._fields):
        return None
    return Fact(*(said[name] for name in Fact._fields))


def _text_of(snapshot: Snapshot, line: FileEntry) -> Text | None:
    """The text of a file; None for one that is only named, is too large, or is no text."""
    if line.entry is None or snapshot.reader.entries[line.entry].file_size > LONGEST_TEXT:
        return None
    data = b"".join(snapshot.reader.pieces(line.entry))
    if data.startswith(_SQLITE):
        return None
    for codec in (*(codec for mark, codec in _MARKS if data.startswith(mark)), *_by_zeros(data), "utf-8"):
        try:
            return Text(data.decode(codec), codec)
        except UnicodeDecodeError:
            continue
    return None


def _by_zeros(data: bytes) -> tuple[str, ...]:
    """What a text without a mark is encoded in, by its zeros: those of UTF-16 are on one side of each pair."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    if len(data) % 2 or 4 * max(even, odd) < len(data) or min(even, odd) > len(data) // 50:
        return ()
    return ("utf-16-le",) if odd > even else ("utf-16-be",)


def _place(record: Record, text: str, *, is_trusted: bool) -> range | None:
    """The lines that a record was made of; None where nobody can be sure."""
    place = record.get("raw_source_format")
    first, last = (place.get("line_start"), place.get("line_end")) if isinstance(place, dict) else (None, None)
    lines = text.split("\n")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last <= len(lines):
        return None
    is_same = _trimmed("\n".join(lines[first - 1 : last])) == _trimmed(str(record["content"]))
    return range(first, last + 1) if is_same or (is_trusted and record["source"].get("runtime") == OURS) else None


def _held(name: str, data: bytes) -> Other:
    return Other(name, len(data), lambda: (data,))


def _other(snapshot: Snapshot, name: str, cuts: Cuts) -> Other:
    """An entry of another tool, without the texts; empty where it holds one and is no text."""
    size = snapshot.reader.entries[name].file_size

    def pieces() -> Iterable[bytes]:
        read = _text_of(snapshot, FileEntry(name, name, size, 0, 0))
        if read is None:
            is_held = cuts.are_in(snapshot.reader.pieces(name))
            return () if is_held else snapshot.reader.pieces(name)
        return (cut_lines(read.text, cuts, codec=read.codec).data,)

    return Other(name, size, pieces)


def _is_cut(snapshot: Snapshot, name: str, cuts: Cuts) -> bool:
    """Whether something is cut out of an entry of another tool."""
    read = _text_of(snapshot, FileEntry(name, name, 0, 0, 0))
    return cuts.are_in(snapshot.reader.pieces(name)) if read is None else cuts.is_in(_lines_of(read.text))


def _index(snapshot: Snapshot, name: str, cuts: Cuts, files: PurgedFiles) -> Other:
    """Another tool's index of attachments, with the digests of those that were edited."""
    document = cut_values(snapshot.document(name), cuts)
    known = {line.entry: line.path for line in snapshot.files().values()}
    items = document.get("attachments")
    for item in items if isinstance(items, list) else ():
        path = known.get(item.get("archive_path")) if isinstance(item, dict) else None
        if path is None:
            continue
        if path not in files.kept:
            item["archive_path"] = None
        elif path in files.edited:
            data = files.edited[path].data
            item |= {
                "size_bytes": len(data),
                "hash": {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()},
            }
    return _held(name, pretty(document))


# --- Records --------------------------------------------------------------------------------------------------------


def _records(snapshot: Snapshot, ids: set[str], cuts: Cuts, files: PurgedFiles, spool: Spool) -> PurgedRecords:
    """The records that stay, into the spool."""
    moved = {path: edit.gone for path, edit in files.edited.items()}
    baseless = (record for record, _ in snapshot.records() if _is_baseless(record, cuts, moved, files))
    gone = ids | {str(record["id"]) for record in baseless}
    done = PurgedRecords([], [], [])
    for name in snapshot.partitions():
        before = len(done.ids)
        for record, line in snapshot.records([name]):
            path, key = scope_of(record), str(record["id"])
            changed = None if key in gone else _changed(record, cuts, files.edited.get(path), gone)
            if key in gone or (changed and not str(changed["content"]).strip(WHITESPACE)):
                done.ids.append(key)
                continue
            if changed and changed["content"] != record["content"]:
                done.changed.append(key)
            spool.add(
                changed or record, path=path if path in files.kept else "", line=None if changed else line + b"\n"
            )
        if len(done.ids) > before:
            done.partitions.append(name)
    return done


def _is_baseless(record: Record, cuts: Cuts, moved: dict[str, list[int]], files: PurgedFiles) -> bool:
    """Whether what a record was made of is gone: its file, all of its lines, or, for one of truekeep's own, some.

    Truekeep makes its own again at the next export.
    """
    path = scope_of(record)
    if path in files.dropped or _fact_of(record) in files.facts:
        return True
    is_ours = record["source"].get("runtime") == OURS
    if is_ours and cut_values(record["content"], cuts) != record["content"]:
        return True
    place = record.get("raw_source_format")
    first, last = (place.get("line_start"), place.get("line_end")) if isinstance(place, dict) else (None, None)
    if not isinstance(first, int):
        return False
    last = last if isinstance(last, int) else first
    gone = moved.get(path, ())
    count = bisect_left(gone, last + 1) - bisect_left(gone, first)
    return count > 0 and (is_ours or count == last + 1 - first)


def _changed(record: Record, cuts: Cuts, edit: EditedText | None, gone: set[str]) -> Record | None:
    """A record as it is after the purge; None when nothing of it changed."""
    new = {key: cut_values(value, cuts, key) for key, value in record.items() if key != "embeddings"}
    place = new.get("raw_source_format")
    if edit is not None and isinstance(place, dict):
        new["content"] = _content(record, edit, new["content"])
        new["raw_source_format"] = {**place, **_shifted(place, edit.gone)}
    if new["content"] != record["content"] and isinstance(record.get("tags"), list):
        marks = find_marks(str(new["content"]), str(record.get("namespace", "")))
        new["tags"] = marks.tags
        for key, value in (("category", marks.category), ("confidence", marks.confidence)):
            if key in new and value is None:
                del new[key]
    related = new.get("related_records")
    if isinstance(related, list):
        left = [item for item in related if not isinstance(item, dict) or str(item.get("id")) not in gone]
        new["related_records"] = left
        if related and not left:
            del new["related_records"]
    if "embeddings" in record and edit is None and new["content"] == record["content"]:
        new = {key: new.get(key, record[key]) for key in record if key in new or key == "embeddings"}
    return None if new == record else new


def _content(record: Record, edit: EditedText, cut: str) -> str:
    """What a record says after its file was edited: the lines that are left of it, if it was these lines."""
    place = record["raw_source_format"]
    first, last = place.get("line_start"), place.get("line_end")
    if not isinstance(first, int) or not isinstance(last, int):
        return cut
    if "\n".join(edit.before[first - 1 : last]) != record["content"]:
        return cut
    start, end = bisect_left(edit.numbers, first), bisect_left(edit.numbers, last + 1)
    return "\n".join(edit.after[start:end])


def _trimmed(text: str) -> str:
    return _RETURNS.sub("", f"{text}\n").strip(WHITESPACE)


def _shifted(place: Document, gone: Sequence[int]) -> Document:
    """Line numbers after some lines went."""
    found: Document = {}
    for key in ("line_start", "line_end"):
        number = place.get(key)
        if isinstance(number, int):
            found[key] = max(1, number - bisect_left(gone, number + (key == "line_end")))
    return found
