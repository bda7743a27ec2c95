"""Facts of memory/facts.db as ALF records."""

from __future__ import annotations

from collections.abc import Iterator

from truekeep.integrations.alf.documents import MemoryRecord
from truekeep.integrations.alf.record_ids import truekeep_id
from truekeep.integrations.alf.records import truekeep_record, unique_tags
from truekeep.integrations.alf.timestamps import format_timestamp
from truekeep.memory.facts_db import FACTS_DB_PATH, FactRow, fact_time, iter_facts

_ENTITY_TYPES = {
    "person": "person", "people": "person", "family": "person", "friend": "person", "user": "person",
    "project": "project", "repository": "project", "tool": "tool", "software": "tool", "automation": "tool",
    "infrastructure": "service", "service": "service", "server": "service",
    "organization": "organization", "company": "organization", "team": "organization",
    "location": "location", "place": "location",
}  # fmt: skip


def iter_fact_records(path: str, *, agent: str, mtime_ns: int) -> Iterator[MemoryRecord]:
    """A record for each fact of a database, one at a time. Raises UnreadableFacts; a missing file has no facts."""
    for row in iter_facts(path):
        yield _fact_record(row, agent, mtime_ns)


def _fact_record(row: FactRow, agent: str, mtime_ns: int) -> MemoryRecord:
    fact = row.fact
    values = row.values
    category = values.get("category", "")
    changed = format_timestamp(mtime_ns)
    return truekeep_record(
        id=truekeep_id(agent, "fact", "\0".join((fact.table, fact.entity, fact.key, str(row.occurrence)))),
        agent=agent,
        content=f"{fact.entity} · {fact.key}: {fact.value}" if fact.key else f"{fact.entity}: {fact.value}",
        memory_type="preference",
        namespace="facts",
        source={"origin": "workspace", "origin_file": FACTS_DB_PATH},
        temporal={
            "created_at": row.created_at or changed,
            "updated_at": row.updated_at or changed,
            "observed_at": row.created_at,
            "last_accessed_at": fact_time(values.get("accessed_at", "")),
            "access_count": _parse_count(values.get("access_count", "")),
        },
        category=category,
        confidence=_parse_confidence(values.get("confidence", "")),
        entities=[{"name": fact.entity, "type": _ENTITY_TYPES.get(category.casefold(), "other")}],
        tags=unique_tags("facts", category),
        raw_source_format={"truekeep": fact._asdict()},
    )


def _parse_count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _parse_confidence(text: str) -> float | None:
    """A number from 0 to 1; None for anything else."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
