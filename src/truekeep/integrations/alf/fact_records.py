"""Facts of memory/facts.db as ALF records."""

from __future__ import annotations

from collections.abc import Iterator

from truekeep.integrations.alf.own_records import own_record, tags_of
from truekeep.integrations.alf.record_ids import own_id
from truekeep.integrations.alf.record_times import shown_moment
from truekeep.integrations.alf.records import Record
from truekeep.memory.facts_db import FACTS_DB_PATH, FactRow, fact_time, iter_facts

_ENTITIES = {
    "person": "person", "people": "person", "family": "person", "friend": "person", "user": "person",
    "project": "project", "repository": "project", "tool": "tool", "software": "tool", "automation": "tool",
    "infrastructure": "service", "service": "service", "server": "service",
    "organization": "organization", "company": "organization", "team": "organization",
    "location": "location", "place": "location",
}  # fmt: skip


def iter_fact_records(path: str, *, agent: str, mtime_ns: int) -> Iterator[Record]:
    """A record for each fact of a database, one at a time. Raises UnreadableFacts; a missing file has none."""
    for row in iter_facts(path):
        yield _fact_record(row, agent, mtime_ns)


def _fact_record(row: FactRow, agent: str, mtime_ns: int) -> Record:
    fact = row.fact
    values = row.values
    category = values.get("category", "")
    changed = shown_moment(mtime_ns)
    return own_record(
        id=own_id(agent, "fact", "\0".join((fact.table, fact.entity, fact.key, str(row.occurrence)))),
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
            "access_count": _count(values.get("access_count", "")),
        },
        category=category,
        confidence=_share(values.get("confidence", "")),
        entities=[{"name": fact.entity, "type": _ENTITIES.get(category.casefold(), "other")}],
        tags=tags_of("facts", category),
        raw_source_format={"truekeep": fact._asdict()},
    )


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _share(text: str) -> float | None:
    """A number from 0 to 1; anything else says nothing about how sure a fact is."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
