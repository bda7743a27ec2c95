"""Purge: an archive without some records and without what they said, anywhere in it.

The lines that a record was made of go from its file, and what it said goes from every other file, document and record,
however lines end there and however JSON escapes it. A file that is no text and holds it is left out as a whole, and so
is one of which nothing is left. What is too short to be told from other things is cut only where it came from. What
stays is the record that something was purged: which ids, when, why, and none of what they said.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from truekeep.alf.carry import scope_of
from truekeep.alf.container import BadArchive
from truekeep.alf.delta import kept_of, layers_of
from truekeep.alf.edition import PURGES, Document, Edition, Line, Other, Spool
from truekeep.alf.files import LONGEST_TEXT
from truekeep.alf.ids import WHITESPACE
from truekeep.alf.own import RUNTIME as OURS
from truekeep.alf.records import Record, dump_record, find_marks, pretty
from truekeep.alf.snapshot import Snapshot
from truekeep.errors import NotFound

REASONS = ("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")
LEAST = 16  # characters: what is shorter is not looked for inside of lines
LEAST_LINE = 8  # characters: what is shorter is no text that a line elsewhere would be known by
_RETURNS = re.compile(r"\r+(?=\n)")
_STRUCTURE = frozenset(
    (
        *("id", "agent_id", "principal_id", "supersedes", "memory_type", "status", "namespace", "runtime"),
        *("alf_version", "created_at", "updated_at", "observed_at", "valid_from", "valid_until", "last_accessed_at"),
        *("computed_at", "last_rotated_at", "expires_at"),
    )
)
"""Members that the format cannot do without: what they hold is no memory."""


class Purged(NamedTuple):
    """What was purged."""

    audit: Document
    records: int
    files: tuple[str, ...]  # that were edited
    dropped: tuple[str, ...]  # that are not in the archive any more


class Edited(NamedTuple):
    """A text file of which something was cut."""

    before: list[str]  # lines, without their ends
    after: list[str]
    numbers: list[int]  # which of the lines before those are that are left, from 1
    data: bytes

    @property
    def gone(self) -> list[int]:
        return sorted(set(range(1, len(self.before) + 1)) - set(self.numbers))


def purged(
    snapshot: Snapshot, ids: Sequence[str], *, spool: Spool, reason: str, at: str, by: str = ""
) -> tuple[Edition, Purged]:
    """The archive without these records and what they say."""
    if snapshot.is_delta:
        raise BadArchive("this is a delta", hint="apply it first, purge the full archive, and delete the delta")
    wanted = {_canonical(text) for text in ids}
    targets, partitions = _targets(snapshot, wanted)
    files, edited, dropped, cuts = _files(snapshot, targets)
    count = _records(snapshot, {str(record["id"]) for record in targets}, cuts, edited, files, spool)
    audit: Document = {
        "purge_id": str(uuid.uuid4()),
        "agent_id": snapshot.agent_id,
        "scope": "record_purge",
        "record_ids": sorted(wanted),
        "partitions_affected": partitions,
        "reason": reason,
        "requested_at": at,
        "completed_at": at,
    }
    if by:
        audit["requested_by"] = by
    layers = layers_of(snapshot, is_ours=snapshot.is_ours)
    attachments = None if snapshot.is_ours else snapshot.file_of("attachments")
    others = [
        _index(snapshot, name, cuts, edited, files) if name == attachments else _other(snapshot, name, cuts)
        for name in kept_of(snapshot, layers)
        if name != PURGES
    ]
    trail = snapshot.reader.read(PURGES) if PURGES in snapshot.reader.entries else b""
    others.append(_held(PURGES, trail + dump_record(audit)))

    def pieces(line: Line) -> Iterable[bytes]:
        if line.entry is None:
            return ()
        found = edited.get(line.path)
        return (found.data,) if found is not None else snapshot.reader.pieces(line.entry)

    head = {key: value for key, value in snapshot.manifest.items() if key not in ("layers", "checksum")}
    edition = Edition(
        {key: value if key == "agent" else cut_values(value, cuts, key) for key, value in head.items()},
        {layer: cut_values(document, cuts) for layer, document in snapshot.documents().items()},
        spool,
        [files[path] for path in sorted(files)],
        pieces,
        {layer: cut_values(about, cuts) for layer, about in layers.items()},
        others,
        not snapshot.is_ours,
    )
    return edition, Purged(audit, count, tuple(sorted(edited)), tuple(sorted(dropped)))


def _canonical(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def _targets(snapshot: Snapshot, wanted: set[str]) -> tuple[list[Record], list[str]]:
    found: list[Record] = []
    partitions = []
    for name in snapshot.partitions():
        here = [record for record, _ in snapshot.records([name]) if _canonical(str(record["id"])) in wanted]
        found += here
        partitions += [name] if here else []
    missing = wanted - {_canonical(str(record["id"])) for record in found}
    if missing:
        raise NotFound(
            f"the archive has no record {', '.join(sorted(missing)[:5])}",
            hint="`truekeep alf show FILE --records` lists them",
        )
    return found, partitions


# --- Texts ----------------------------------------------------------------------------------------------------------


class Cut:
    """One text that must not be found afterwards, however its lines end and however JSON writes it."""

    def __init__(self, text: str) -> None:
        self.text = _trimmed(text)
        self.is_long = len(self.text) >= LEAST
        self.is_line = not self.is_long and len(self.text) >= LEAST_LINE and not self.text.startswith("#")
        self.forms = tuple(dict.fromkeys((self.text, *self._escaped()))) if self.is_long else (self.text,)

    def _escaped(self) -> Iterator[str]:
        for text in (self.text, self.text.replace("\n", "\r\n")):
            yield json.dumps(text, ensure_ascii=False)[1:-1]
            yield json.dumps(text)[1:-1]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text whose lines end in line feeds: whole lines where it is alone in them."""
        for form in self.forms if self.is_long or self.is_line else ():
            at = text.find(form)
            while at >= 0:
                start, end, is_alone = _lines_around(text, at, at + len(form))
                if self.is_long or is_alone:
                    yield start, end
                at = text.find(form, at + 1)

    def is_in(self, data: bytes) -> bool:
        """Whether bytes that are no text hold it, or a line of it that is long enough to be known by."""
        lines = [line.strip(WHITESPACE) for line in self.text.split("\n")]
        needles = [line for line in lines if len(line) >= LEAST] or ([self.text] if self.is_long else [])
        return any(needle.encode() in data for needle in needles)


def _lines_around(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """A span of a text, widened to whole lines with their end where nothing else stands in them."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", end)
    last = last if last >= 0 else len(text)
    if text[first:start].strip(WHITESPACE) or text[end:last].strip(WHITESPACE):
        return start, end, False
    return first, min(last + 1, len(text)), True


def cut_lines(text: str, cuts: Sequence[Cut], gone: Iterable[int] = ()) -> Edited:
    """A text without these lines and without what is cut. Its line ends stay as they are."""
    ends = text.split("\n")
    lines = [line.rstrip("\r") for line in ends]
    numbers = list(range(1, len(lines) + 1))
    spare = [line[len(bare) :] for line, bare in zip(ends, lines, strict=True)]
    spare[-1], lines[-1] = "", ends[-1]  # the last one has no end, so that what it ends in is its own
    before, drop = lines, set(gone)
    kept = [at for at, number in enumerate(numbers) if number not in drop]
    lines, numbers, spare = [lines[at] for at in kept], [numbers[at] for at in kept], [spare[at] for at in kept]
    while spans := _merged(span for cut in cuts for span in cut.spans("\n".join(lines))):
        lines, first, last = _without("\n".join(lines), spans)
        numbers, spare = [numbers[at] for at in first], [spare[at] for at in last]
    data = "\n".join(line + end for line, end in zip(lines, spare, strict=True)).encode()
    return Edited(before, lines, numbers, data)


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


def cut_values(value: Any, cuts: Sequence[Cut], name: str = "") -> Any:
    """A JSON value with a text cut out of every string in it, but for what the format cannot do without."""
    if isinstance(value, str):
        if name in _STRUCTURE or not any(form in _RETURNS.sub("", value) for cut in cuts for form in cut.forms):
            return value
        return cut_lines(value, cuts).data.decode()
    if isinstance(value, dict):
        return {cut_values(key, cuts): cut_values(item, cuts, key) for key, item in value.items()}
    return [cut_values(item, cuts, name) for item in value] if isinstance(value, list) else value


# --- Files ----------------------------------------------------------------------------------------------------------


def _files(
    snapshot: Snapshot, targets: Sequence[Record]
) -> tuple[dict[str, Line], dict[str, Edited], list[str], list[Cut]]:
    """The files that stay, those that were edited, the paths of those that had to go, and what is to be cut."""
    texts = {str(record["content"]) for record in targets}
    unreadable = {
        f"{scope_of(record)}{tail}"
        for record in targets
        if record.get("namespace") == "facts"
        for tail in ("", "-wal", "-shm", "-journal")
    }
    lines = snapshot.files()
    places: dict[str, set[int]] = {}
    for path in {scope_of(record) for record in targets} & lines.keys() - unreadable:
        text = _text_of(snapshot, lines[path])
        if text is None:
            continue
        for record in targets:
            if scope_of(record) == path and (found := _place(record, text, is_trusted=snapshot.is_ours)):
                places.setdefault(path, set()).update(found)
                texts.add("\n".join(text.split("\n")[found.start - 1 : found.stop - 1]))
    cuts = [cut for cut in map(Cut, sorted(texts, key=len, reverse=True)) if cut.text]
    files: dict[str, Line] = {}
    edited: dict[str, Edited] = {}
    dropped: list[str] = []
    for path, line in lines.items():
        if path in unreadable:
            dropped.append(path)
            continue
        text = _text_of(snapshot, line)
        if text is None:
            is_held = line.entry is not None and _is_held(snapshot.reader.pieces(line.entry), cuts)
        else:
            new = cut_lines(text, cuts, places.get(path, ()))
            is_held = text.strip(WHITESPACE) != "" and not new.data.strip()
            if new.data != text.encode():
                edited[path] = new
                line = line._replace(size=len(new.data), sha256="")
        if is_held:
            dropped.append(path)
            edited.pop(path, None)
        else:
            files[path] = line
    return files, edited, dropped, cuts


def _text_of(snapshot: Snapshot, line: Line) -> str | None:
    """The text of a file; None for one that is only named, is too large, or is no text."""
    if line.entry is None or snapshot.reader.entries[line.entry].file_size > LONGEST_TEXT:
        return None
    try:
        return b"".join(snapshot.reader.pieces(line.entry)).decode()
    except UnicodeDecodeError:
        return None


def _place(record: Record, text: str, *, is_trusted: bool) -> range | None:
    """The lines that a record was made of; None where nobody can be sure."""
    place = record.get("raw_source_format")
    first, last = (place.get("line_start"), place.get("line_end")) if isinstance(place, dict) else (None, None)
    lines = text.split("\n")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last <= len(lines):
        return None
    is_same = _trimmed("\n".join(lines[first - 1 : last])) == _trimmed(str(record["content"]))
    return range(first, last + 1) if is_same or (is_trusted and record["source"].get("runtime") == OURS) else None


def _is_held(pieces: Iterable[bytes], cuts: Sequence[Cut]) -> bool:
    """Whether a file that is no text holds one of the texts; it passes through piece by piece."""
    overlap = max((len(cut.text.encode()) for cut in cuts), default=0)
    tail = b""
    for piece in pieces:
        data = tail + piece
        if any(cut.is_in(data) for cut in cuts):
            return True
        tail = data[-overlap:] if overlap else b""
    return False


def _held(name: str, data: bytes) -> Other:
    return Other(name, len(data), lambda: (data,))


def _other(snapshot: Snapshot, name: str, cuts: Sequence[Cut]) -> Other:
    """An entry of another tool, without the texts; empty where it holds one and is no text."""
    size = snapshot.reader.entries[name].file_size

    def pieces() -> Iterable[bytes]:
        text = _text_of(snapshot, Line(name, name, size, 0, 0))
        if text is None:
            is_held = _is_held(snapshot.reader.pieces(name), cuts)
            return () if is_held else snapshot.reader.pieces(name)
        return (cut_lines(text, cuts).data,)

    return Other(name, size, pieces)


def _index(
    snapshot: Snapshot, name: str, cuts: Sequence[Cut], edited: dict[str, Edited], files: dict[str, Line]
) -> Other:
    """Another tool's index of attachments, with the digests of those that were edited."""
    document = cut_values(snapshot.document(name), cuts)
    known = {line.entry: line.path for line in snapshot.files().values()}
    items = document.get("attachments")
    for item in items if isinstance(items, list) else ():
        path = known.get(item.get("archive_path")) if isinstance(item, dict) else None
        if path is None:
            continue
        if path not in files:
            item["archive_path"] = None
        elif path in edited:
            data = edited[path].data
            item |= {
                "size_bytes": len(data),
                "hash": {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()},
            }
    return _held(name, pretty(document))


# --- Records --------------------------------------------------------------------------------------------------------


def _records(
    snapshot: Snapshot,
    ids: set[str],
    cuts: Sequence[Cut],
    edited: dict[str, Edited],
    files: dict[str, Line],
    spool: Spool,
) -> int:
    """The records that stay, into the spool. Gives the number of those that went."""
    moved = {path: edit.gone for path, edit in edited.items()}
    lost = snapshot.files().keys() - files.keys()
    gone = ids | {str(record["id"]) for record, _ in snapshot.records() if _is_baseless(record, cuts, moved, lost)}
    count = 0
    for record, line in snapshot.records():
        changed = None if str(record["id"]) in gone else _changed(record, cuts, edited.get(scope_of(record)), gone)
        if str(record["id"]) in gone or (changed and not str(changed["content"]).strip(WHITESPACE)):
            count += 1
            continue
        path = scope_of(record)
        spool.add(changed or record, path=path if path in files else "", line=None if changed else line + b"\n")
    return count


def _is_baseless(record: Record, cuts: Sequence[Cut], moved: dict[str, list[int]], lost: set[str]) -> bool:
    """Whether what a record was made of is gone: its file, all of its lines, or, for one of truekeep's own, some.

    Truekeep makes its own again at the next export.
    """
    path = scope_of(record)
    if path in lost:
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


def _changed(record: Record, cuts: Sequence[Cut], edit: Edited | None, gone: set[str]) -> Record | None:
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


def _content(record: Record, edit: Edited, cut: str) -> str:
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
