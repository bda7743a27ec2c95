"""A record that only truekeep makes, beside those that upstream's exporter would make: what all of them have.

Their runtime is truekeep, so that nobody takes them for upstream's, and their fields stand in upstream's order. What is
empty is left out: the format has no empty lists for things that are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from truekeep.integrations.alf.records import Record

RUNTIME = "truekeep"

_OPTIONAL = (
    "category", "supersedes", "confidence", "entities", "tags", "related_records", "raw_source_format"
)  # fmt: skip
_TIMES = ("created_at", "updated_at", "observed_at", "valid_from", "valid_until", "last_accessed_at", "access_count")
_SOURCES = ("origin", "origin_file", "extraction_method", "session_id")


def own_record(
    *,
    id: str,  # noqa: A002 - it is the field's name
    agent: str,
    content: str,
    memory_type: str,
    namespace: str,
    source: Mapping[str, Any],
    temporal: Mapping[str, Any],
    status: str = "active",
    **optional: Any,
) -> Record:
    """A record in the format's own order, without what is empty."""
    assert optional.keys() <= set(_OPTIONAL), optional.keys()
    record: Record = {
        "id": id,
        "agent_id": agent,
        "content": content,
        "memory_type": memory_type,
        "source": {"runtime": RUNTIME, **_filled(source, _SOURCES)},
        "temporal": _filled(temporal, _TIMES),
        "status": status,
        "namespace": namespace,
    }
    return record | _filled(optional, _OPTIONAL)


def tags_of(namespace: str, *tags: str) -> list[str]:
    """The namespace first, then the tags, each once."""
    return [tag for tag in dict.fromkeys((namespace, *tags)) if tag]


def _filled(values: Mapping[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key in order if (value := values.get(key)) or value == 0}
