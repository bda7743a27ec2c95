"""Two archives compared: records by id, files by what is in them, documents. One line for each thing that differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.integrations.alf.id_carryover import scope_of
from truekeep.integrations.alf.reader import Snapshot
from truekeep.integrations.alf.records import Record
from truekeep.integrations.alf.writer import FileEntry


class Difference(NamedTuple):
    """One thing that is not the same in both."""

    kind: str  # record, file, document, agent
    change: str  # added, removed, changed
    name: str  # an id, a path, a layer
    where: str = ""  # the file that a record is of
    fields: tuple[str, ...] = ()  # that differ
    text: str = ""  # how a record begins


def compare(one: Snapshot, other: Snapshot) -> Iterator[Difference]:
    """What the second has, lacks, or says otherwise."""
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


def _records(one: Snapshot, other: Snapshot) -> Iterator[Difference]:
    """Only digests are held: an archive may be larger than memory."""
    known = {str(record["id"]): _digests(record) for record, _ in one.records()}
    seen: set[str] = set()
    for record, _ in other.records():
        key = str(record["id"])
        seen.add(key)
        before, now = known.get(key), _digests(record)
        if before is None:
            yield Difference("record", "added", key, scope_of(record), text=first_words(record))
        elif before != now:
            fields = tuple(name for name in {**before, **now} if before.get(name) != now.get(name))
            yield Difference("record", "changed", key, scope_of(record), fields, first_words(record))
    gone = known.keys() - seen
    if gone:
        for record, _ in one.records():
            if str(record["id"]) in gone:
                yield Difference("record", "removed", str(record["id"]), scope_of(record), text=first_words(record))


def _digests(record: Record) -> dict[str, int]:
    return {key: hash(json.dumps(value, sort_keys=True)) for key, value in record.items()}


def first_words(record: Record) -> str:
    """By what a person would know a record: a note's topic or title, else its first line."""
    lines = [line.strip() for line in str(record["content"]).lstrip("\ufeff").split("\n")]
    told = [line for line in lines if line]
    if told[:1] == ["---"] and "---" in told[1:]:
        end = told.index("---", 1)
        front = dict(line.partition(":")[::2] for line in told[1:end])
        topic = next((front[key].strip(" \"'") for key in ("topic", "title", "name") if key in front), "")
        told = [*filter(None, (topic,)), *told[end + 1 :], *told[1:end]]
    return told[0][:120] if told else ""


def _files(one: Snapshot, other: Snapshot) -> Iterator[Difference]:
    before, after = one.files(), other.files()
    for path in sorted({*before, *after}):
        mine, theirs = before.get(path), after.get(path)
        if mine is None or theirs is None:
            yield Difference("file", _change(mine is not None, theirs is not None), path)
        elif mine.size != theirs.size or _digest(one, mine) != _digest(other, theirs):
            yield Difference("file", "changed", path)


def _digest(snapshot: Snapshot, line: FileEntry) -> str:
    if line.sha256 or line.entry is None:
        return line.sha256
    digest = hashlib.sha256()
    for piece in snapshot.reader.pieces(line.entry):
        digest.update(piece)
    return digest.hexdigest()
