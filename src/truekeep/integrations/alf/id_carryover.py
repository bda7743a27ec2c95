"""Ids across edits: a record of today takes the id of the record that it was in an earlier archive.

Compared file by file: first what says the same, in order, then what stands under the same heading, then what has the
same id by birth. Nobody else gets an id that was carried away. What has not changed keeps its times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from truekeep.integrations.alf.record_ids import digest_of, reminted_id
from truekeep.integrations.alf.records import RUNTIME, Record


class EarlierRecord(NamedTuple):
    """What is remembered of an earlier record."""

    id: str
    digest: str
    heading: str | None
    times: dict[str, Any]


def scope_of(record: Record) -> str:
    """Within what a record is looked for again: its file, else its namespace."""
    source = record.get("source")
    path = source.get("origin_file") if isinstance(source, dict) else None
    return path if isinstance(path, str) and path else f"ns:{record.get('namespace', '')}"


def is_carried(record: Record) -> bool:
    """Records of truekeep's own have ids that stay anyway."""
    source = record.get("source")
    return isinstance(source, dict) and source.get("runtime") == RUNTIME


def known_of(record: Record) -> EarlierRecord:
    times = record.get("temporal")
    content = record.get("content")
    return EarlierRecord(
        str(record.get("id")),
        digest_of(content) if isinstance(content, str) else "",
        _heading(record),
        {key: times[key] for key in ("created_at", "observed_at", "updated_at") if key in times}
        if isinstance(times, dict)
        else {},
    )


def _heading(record: Record) -> str | None:
    place, content = record.get("raw_source_format"), record.get("content")
    if not isinstance(place, dict) or "heading" not in place:
        return None
    if isinstance(place["heading"], str):
        return place["heading"]
    first = content.partition("\n")[0] if isinstance(content, str) else ""
    return first if first.startswith("#") else None


def carry(fresh: list[Record], known: Iterable[EarlierRecord], *, agent: str, scope: str) -> None:
    """Give the fresh records of one file the ids and times of those they were before. Changes them."""
    old = list(known)
    if not old:
        return
    new = fresh  # those that were none of the old ones
    new, old = _pair(new, old, lambda record: digest_of(str(record["content"])), lambda item: item.digest, is_same=True)
    new, old = _pair(new, old, _heading, lambda item: item.heading)
    new, old = _pair(new, old, lambda record: record["id"], lambda item: item.id)
    unpaired = set(map(id, new))
    taken = {record["id"] for record in fresh if id(record) not in unpaired}
    taken |= {item.id for item in old}  # an id that is deleted now is nobody's
    for record in new:
        number = 0
        while record["id"] in taken:
            record["id"] = reminted_id(agent, scope, str(record["content"]), number)
            number += 1
        taken.add(record["id"])


def _pair(
    new: Sequence[Record],
    old: list[EarlierRecord],
    key: Callable[[Record], object],
    old_key: Callable[[EarlierRecord], object],
    *,
    is_same: bool = False,
) -> tuple[list[Record], list[EarlierRecord]]:
    """Let those that have the same key, in order, take over id and times. Gives what is left on both sides.

    `is_same`: what they say is the same, so that it was updated when it was.
    """
    waiting: dict[object, list[EarlierRecord]] = {}
    for item in reversed(old):
        if (found := old_key(item)) is not None:
            waiting.setdefault(found, []).append(item)
    left = []
    paired: set[int] = set()
    for record in new:
        wanted = key(record)
        match = waiting[wanted].pop() if wanted is not None and waiting.get(wanted) else None
        if match is None:
            left.append(record)
            continue
        paired.add(id(match))
        record["id"] = match.id
        temporal = record["temporal"]
        for name in ("created_at", "observed_at", *(("updated_at",) if is_same else ())):
            if name in match.times:
                temporal[name] = match.times[name]
    return left, [item for item in old if id(item) not in paired]


def by_scope(records: Iterable[Record]) -> dict[str, list[EarlierRecord]]:
    """The earlier records, by the file they were in."""
    found: dict[str, list[EarlierRecord]] = {}
    for record in _carried(records):
        found.setdefault(scope_of(record), []).append(known_of(record))
    return found


def _carried(records: Iterable[Record]) -> Iterator[Record]:
    return (record for record in records if is_carried(record))
