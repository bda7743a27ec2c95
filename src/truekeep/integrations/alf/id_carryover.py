"""Keep record ids across edits: a record takes over the id of the record that it was in an earlier archive.

Records are paired file by file: first those with the same text, in order, then those with the same heading, then those
with the same id. No other record gets an id that was carried over. Records with unchanged text keep their times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from truekeep.integrations.alf.documents import MemoryRecord, TemporalMetadata
from truekeep.integrations.alf.record_ids import content_digest, reminted_id
from truekeep.integrations.alf.records import OPENCLAW_RUNTIME

_CARRIED_TIMES = ("created_at", "observed_at", "updated_at")


class EarlierRecord(NamedTuple):
    """The parts of a record in an earlier archive that pairing needs."""

    id: str
    digest: str
    heading: str | None
    times: dict[str, Any]


def scope_of(record: MemoryRecord) -> str:
    """The group in which a record is paired: its file, else its namespace."""
    path: object = record["source"].get("origin_file")
    return path if isinstance(path, str) and path else f"ns:{record.get('namespace', '')}"


def _needs_carrying(record: MemoryRecord) -> bool:
    """True for records of upstream's exporter; the ids of truekeep's own do not depend on the text."""
    return record["source"].get("runtime") == OPENCLAW_RUNTIME


def _earlier_record(record: MemoryRecord) -> EarlierRecord:
    times = {key: value for key, value in record["temporal"].items() if key in _CARRIED_TIMES}
    return EarlierRecord(record["id"], content_digest(record["content"]), _heading(record), times)


def _heading(record: MemoryRecord) -> str | None:
    place = record.get("raw_source_format")
    if not isinstance(place, dict) or "heading" not in place:
        return None
    if isinstance(place["heading"], str):
        return place["heading"]
    first = record["content"].partition("\n")[0]
    return first if first.startswith("#") else None


def carry_ids(fresh: list[MemoryRecord], earlier: Iterable[EarlierRecord], *, agent: str, scope: str) -> None:
    """Change the ids and times of one file's records to those of the earlier records that they were."""
    old = list(earlier)
    if not old:
        return
    new, old = _pair(
        fresh, old, lambda record: content_digest(record["content"]), lambda item: item.digest, is_same=True
    )
    new, old = _pair(new, old, _heading, lambda item: item.heading)
    new, old = _pair(new, old, lambda record: record["id"], lambda item: item.id)
    unpaired = set(map(id, new))
    taken = {record["id"] for record in fresh if id(record) not in unpaired}
    taken |= {item.id for item in old}  # the ids of deleted records are not used again
    for record in new:
        number = 0
        while record["id"] in taken:
            record["id"] = reminted_id(agent, scope, record["content"], number)
            number += 1
        taken.add(record["id"])


def _pair(
    new: Sequence[MemoryRecord],
    old: list[EarlierRecord],
    key: Callable[[MemoryRecord], object],
    old_key: Callable[[EarlierRecord], object],
    *,
    is_same: bool = False,
) -> tuple[list[MemoryRecord], list[EarlierRecord]]:
    """Pair records with equal keys, in order, and carry over id and times. Returns the unpaired of both sides.

    `is_same`: the text is the same, so that updated_at is carried over as well.
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
        times = {name: at for name, at in match.times.items() if is_same or name != "updated_at"}
        record["temporal"] = cast(TemporalMetadata, {**record["temporal"], **times})
    return left, [item for item in old if id(item) not in paired]


def earlier_by_scope(records: Iterable[MemoryRecord]) -> dict[str, list[EarlierRecord]]:
    """The records of an earlier archive that pairing needs, grouped by file."""
    found: dict[str, list[EarlierRecord]] = {}
    for record in filter(_needs_carrying, records):
        found.setdefault(scope_of(record), []).append(_earlier_record(record))
    return found
