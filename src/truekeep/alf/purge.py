"""Purge: an archive without some records and without what they said, anywhere in it.

The text is cut out of raw files, artifacts, documents and other records; a file that is no text and holds it is left
out as a whole. What stays is the record that something was purged: which ids, when, why, and none of what they said.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from truekeep.alf.carry import scope_of
from truekeep.alf.container import BadArchive
from truekeep.alf.edition import FILES, PURGES, Document, Edition, Line, Spool
from truekeep.alf.ids import WHITESPACE
from truekeep.alf.own import RUNTIME as OURS
from truekeep.alf.records import Record, dump_record, find_marks
from truekeep.alf.snapshot import Snapshot
from truekeep.errors import NotFound

REASONS = ("user_request", "security_incident", "gdpr_article_17", "ccpa_deletion")
LEAST = 16  # characters: what is shorter is cut out where it stands as lines of its own, and not inside others
MOST = 256 << 20  # bytes of a file that is looked into


class Purged(NamedTuple):
    """What was purged."""

    audit: Document
    records: int
    files: tuple[str, ...]  # that were edited
    dropped: tuple[str, ...]  # that are not in the archive any more


def purged(
    snapshot: Snapshot, ids: Sequence[str], *, spool: Spool, reason: str, at: str, by: str = ""
) -> tuple[Edition, Purged]:
    """The archive without these records and what they say."""
    if snapshot.is_delta:
        raise BadArchive("this is a delta", hint="apply it first, purge the full archive, and delete the delta")
    wanted = {_canonical(text) for text in ids}
    targets, partitions = _targets(snapshot, wanted)
    texts = sorted({str(record["content"]).strip(WHITESPACE) for record in targets} - {""}, key=len, reverse=True)
    cuts = [Cut(text) for text in texts]
    unreadable = {scope_of(record) for record in targets if record.get("namespace") == "facts"}
    files, contents, moved, dropped = _files(snapshot, cuts, unreadable)
    count = _records(snapshot, {str(record["id"]) for record in targets}, cuts, moved, files, spool)
    known = ("identity", "principals", "credentials", "memory", "attachments")
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
    others = [(name, _other(snapshot, name, cuts)) for name in snapshot.others() if name != PURGES]
    trail = b"".join(snapshot.reader.pieces(PURGES)) if PURGES in snapshot.reader.entries else b""
    others.append((PURGES, lambda: (trail + dump_record(audit),)))

    def pieces(line: Line) -> Iterable[bytes]:
        if line.entry is None:
            return ()
        found = contents.get(line.path)
        return (found,) if found is not None else snapshot.reader.pieces(line.entry)

    edition = Edition(
        {key: value for key, value in snapshot.manifest.items() if key not in ("layers", "checksum")},
        {layer: cut_values(document, cuts) for layer, document in snapshot.documents().items()},
        spool,
        [files[path] for path in sorted(files)],
        pieces,
        {layer: cut_values(about, cuts) for layer, about in snapshot.layers.items() if layer not in known},
        others,
        FILES not in snapshot.reader.entries,
    )
    return edition, Purged(audit, count, tuple(sorted(contents)), tuple(sorted(dropped)))


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


class Cut:
    """One text that must not be found afterwards, however its lines end."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.text = "\n".join(self.lines)
        self.is_long = len(self.text) >= LEAST

    def out_of(self, text: str) -> str:
        """A text without it."""
        return "\n".join(line for _, line in _without(_numbered(text), self)) if self.lines[0] in text else text


Numbered = list[tuple[int, str]]
"""Lines with the numbers that they had in the text before."""


def _numbered(text: str) -> Numbered:
    return list(enumerate(text.split("\n"), 1))


def _without(lines: Numbered, cut: Cut) -> Numbered:
    """The lines without a text: where it is whole lines, and where it begins or ends inside one."""
    wanted = cut.lines
    kept: Numbered = []
    at = 0
    while at < len(lines):
        number, line = lines[at]
        last = at + len(wanted) - 1
        if wanted[0] not in line or last >= len(lines):
            kept.append(lines[at])
            at += 1
            continue
        found = [text.rstrip("\r") for _, text in lines[at : last + 1]]
        if found == wanted:
            at = last + 1
        elif cut.is_long and len(wanted) == 1:
            kept.append((number, line.replace(wanted[0], "")))
            at += 1
        elif cut.is_long and _is_across(found, wanted):
            kept.append((number, found[0].removesuffix(wanted[0]) + lines[last][1].removeprefix(wanted[-1])))
            at = last + 1
        else:
            kept.append(lines[at])
            at += 1
    return kept


def _is_across(found: Sequence[str], wanted: Sequence[str]) -> bool:
    inside = found[1:-1] == wanted[1:-1]
    return inside and found[0].endswith(wanted[0]) and found[-1].startswith(wanted[-1])


def cut_values(value: Any, cuts: Sequence[Cut]) -> Any:
    """A JSON value with a text cut out of every string in it."""
    if isinstance(value, str):
        for cut in cuts:
            value = cut.out_of(value)
        return value
    if isinstance(value, dict):
        return {cut_values(key, cuts): cut_values(item, cuts) for key, item in value.items()}
    return [cut_values(item, cuts) for item in value] if isinstance(value, list) else value


def _files(
    snapshot: Snapshot, cuts: Sequence[Cut], unreadable: set[str]
) -> tuple[dict[str, Line], dict[str, bytes], dict[str, list[int]], list[str]]:
    """The files that stay, the new contents of those that were edited, the lines that went, and what had to go."""
    files: dict[str, Line] = {}
    contents: dict[str, bytes] = {}
    moved: dict[str, list[int]] = {}
    dropped: list[str] = []
    for path, line in snapshot.files().items():
        if line.entry is None:
            files[path] = line
            continue
        if path in unreadable or line.size > MOST:
            if path in unreadable or any(_is_in(snapshot.reader.pieces(line.entry), cut) for cut in cuts):
                dropped.append(path)
                continue
            files[path] = line
            continue
        data = b"".join(snapshot.reader.pieces(line.entry))
        if not any(cut.lines[0].encode() in data for cut in cuts):
            files[path] = line
            continue
        try:
            lines = _numbered(data.decode())
        except UnicodeDecodeError:
            if any(cut.text.encode() in data for cut in cuts):
                dropped.append(path)
            else:
                files[path] = line
            continue
        before = len(lines)
        for cut in cuts:
            lines = _without(lines, cut)
        text = "\n".join(line for _, line in lines).encode()
        if text != data:
            contents[path] = text
            moved[path] = sorted(set(range(1, before + 1)) - {number for number, _ in lines})
        files[path] = line._replace(size=len(text), sha256="")
    return files, contents, moved, dropped


def _is_in(pieces: Iterable[bytes], cut: Cut) -> bool:
    wanted = cut.text.encode()
    tail = b""
    for piece in pieces:
        if wanted in tail + piece:
            return True
        tail = (tail + piece)[-len(wanted) :]
    return False


def _records(
    snapshot: Snapshot,
    ids: set[str],
    cuts: Sequence[Cut],
    moved: dict[str, list[int]],
    files: dict[str, Line],
    spool: Spool,
) -> int:
    """The records that stay, into the spool. Gives the number of those that went."""
    gone = set(ids)
    if any(_is_derived(record, cuts, moved) for record, _ in snapshot.records()):
        gone |= {str(record["id"]) for record, _ in snapshot.records() if _is_derived(record, cuts, moved)}
    count = 0
    for record, line in snapshot.records():
        if str(record["id"]) in gone:
            count += 1
            continue
        changed = _changed(record, cuts, moved, gone)
        if changed is not None and not str(changed["content"]).strip(WHITESPACE):
            count += 1
            continue
        path = scope_of(record)
        at = path if path in files else ""
        spool.add(changed or record, path=at, line=None if changed else line + b"\n")
    return count


def _is_derived(record: Record, cuts: Sequence[Cut], moved: dict[str, list[int]]) -> bool:
    """Whether a record of truekeep's own tells of lines that went: it is made again by the next export."""
    if record["source"].get("runtime") != OURS:
        return False
    if any(cut.out_of(str(record["content"])) != record["content"] for cut in cuts):
        return True
    place = record.get("raw_source_format")
    gone = moved.get(scope_of(record), ())
    if not isinstance(place, dict) or not isinstance(place.get("line_start"), int):
        return False
    last = place.get("line_end")
    last = last if isinstance(last, int) else place["line_start"]
    return bisect_left(gone, place["line_start"]) < bisect_left(gone, last + 1)


def _changed(record: Record, cuts: Sequence[Cut], moved: dict[str, list[int]], gone: set[str]) -> Record | None:
    """A record as it is after the purge; None when nothing of it changed."""
    new = {key: cut_values(value, cuts) for key, value in record.items() if key not in ("id", "agent_id", "embeddings")}
    new = {**{key: record[key] for key in ("id", "agent_id") if key in record}, **new}
    if new.get("content") != record["content"] and isinstance(record.get("tags"), list):
        marks = find_marks(str(new["content"]), str(record.get("namespace", "")))
        new["tags"] = marks.tags
        for key, value in (("category", marks.category), ("confidence", marks.confidence)):
            if key in new and value is None:
                del new[key]
    related = new.get("related_records")
    if isinstance(related, list):
        left = [item for item in related if not isinstance(item, dict) or str(item.get("id")) not in gone]
        if left:
            new["related_records"] = left
        else:
            del new["related_records"]
    lines = moved.get(scope_of(record), ())
    place = new.get("raw_source_format")
    if lines and isinstance(place, dict):
        new["raw_source_format"] = {**place, **_shifted(place, lines)}
    if "embeddings" in record and not lines and new.get("content") == record["content"]:
        new = {
            key: record["embeddings"] if key == "embeddings" else new[key]
            for key in record
            if key in new or key == "embeddings"
        }
    return None if new == record else new


def _shifted(place: Document, gone: Sequence[int]) -> Document:
    """Line numbers after some lines went."""
    found: Document = {}
    for key in ("line_start", "line_end"):
        number = place.get(key)
        if isinstance(number, int):
            found[key] = max(1, number - bisect_left(gone, number + (key == "line_end")))
    return found


def _other(snapshot: Snapshot, name: str, cuts: Sequence[Cut]) -> Callable[[], Iterable[bytes]]:
    """An entry of another tool, without the texts; empty where it holds one and is no text."""

    def pieces() -> Iterable[bytes]:
        data = b"".join(snapshot.reader.pieces(name))
        if not any(cut.lines[0].encode() in data for cut in cuts):
            return (data,)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return () if any(cut.text.encode() in data for cut in cuts) else (data,)
        for cut in cuts:
            text = cut.out_of(text)
        return (text.encode(),)

    return pieces
