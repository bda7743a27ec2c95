"""Compare two archives: records by id, files by content, and documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from truekeep.integrations.alf.archive_file import open_archive
from truekeep.integrations.alf.documents import MemoryRecord
from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.reader import ArchiveReader
from truekeep.integrations.alf.writer import ListedFile


class Difference(NamedTuple):
    """One difference between two archives."""

    kind: str  # record, file, document, agent
    change: str  # added, removed, changed
    name: str  # the id of a record, the path of a file, or a layer
    where: str = ""  # the file of a record
    fields: tuple[str, ...] = ()  # the members that differ
    text: str = ""  # the title of a record


def diff_archives(one: Path, other: Path, *, identities: Sequence[str] = (), large: bool = False) -> list[Difference]:
    """The differences between two archive files."""
    with (
        open_archive(one, identities=identities, large=large) as left,
        open_archive(other, identities=identities, large=large) as right,
    ):
        return list(iter_differences(ArchiveReader(left), ArchiveReader(right)))


def iter_differences(one: ArchiveReader, other: ArchiveReader) -> Iterator[Difference]:
    """The differences of the second archive from the first. Two deltas or two full archives can be compared."""
    for archive in () if one.is_delta and other.is_delta else (one, other):
        archive.require_full()
    if one.agent != other.agent:
        fields = tuple(key for key in {**one.agent, **other.agent} if one.agent.get(key) != other.agent.get(key))
        yield Difference("agent", "changed", str(other.agent.get("name", "")), fields=fields)
    before, after = one.documents(), other.documents()
    for layer in sorted({*before, *after}):
        if before.get(layer) != after.get(layer):
            yield Difference("document", _change(layer in before, layer in after), layer)
    yield from _records(one, other)
    yield from _files(one, other)


def _change(is_before: bool, is_after: bool) -> str:
    return "changed" if is_before and is_after else "added" if is_after else "removed"


def _records(one: ArchiveReader, other: ArchiveReader) -> Iterator[Difference]:
    """Compare digests: an archive may be larger than memory."""
    known = {str(record["id"]): _digests(record) for record, _ in one.records()}
    seen: set[str] = set()
    for record, _ in other.records():
        key = str(record["id"])
        seen.add(key)
        before, now = known.get(key), _digests(record)
        if before is None:
            yield Difference("record", "added", key, scope_of(record), text=record_title(record))
        elif before != now:
            fields = tuple(name for name in {**before, **now} if before.get(name) != now.get(name))
            yield Difference("record", "changed", key, scope_of(record), fields, record_title(record))
    gone = known.keys() - seen
    if gone:
        for record, _ in one.records():
            if str(record["id"]) in gone:
                yield Difference("record", "removed", str(record["id"]), scope_of(record), text=record_title(record))


def _digests(record: MemoryRecord) -> dict[str, int]:
    return {key: hash(json.dumps(value, sort_keys=True)) for key, value in record.items()}


def record_title(record: MemoryRecord) -> str:
    """The topic or title in a record's frontmatter, else its first line."""
    lines = [line.strip() for line in record["content"].lstrip("\ufeff").split("\n")]
    filled = [line for line in lines if line]
    if filled[:1] == ["---"] and "---" in filled[1:]:
        end = filled.index("---", 1)
        front = dict(line.partition(":")[::2] for line in filled[1:end])
        topic = next((front[key].strip(" \"'") for key in ("topic", "title", "name") if key in front), "")
        filled = [*filter(None, (topic,)), *filled[end + 1 :], *filled[1:end]]
    return filled[0][:120] if filled else ""


def _files(one: ArchiveReader, other: ArchiveReader) -> Iterator[Difference]:
    before, after = one.files(), other.files()
    for path in sorted({*before, *after}):
        mine, theirs = before.get(path), after.get(path)
        if mine is None or theirs is None:
            yield Difference("file", _change(mine is not None, theirs is not None), path)
        elif mine.size != theirs.size or _digest(one, mine) != _digest(other, theirs):
            yield Difference("file", "changed", path)


def _digest(archive: ArchiveReader, file: ListedFile) -> str:
    if file.sha256 or file.entry is None:
        return file.sha256
    digest = hashlib.sha256()
    for piece in archive.reader.pieces(file.entry):
        digest.update(piece)
    return digest.hexdigest()
