"""What the documents of the Agent Life Format hold: a table of their members, and what two of them must agree on.

Pure, and one document at a time; what lies between two documents is for check.py.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from truekeep.integrations.alf.value_kinds import (
    ANYTHING,
    COUNTED,
    DAY,
    ERROR,
    FILLED,
    FLAG,
    INTEGER,
    MOMENT,
    NUMBER,
    SHARE,
    TEXT,
    TEXTS,
    UUID,
    UUIDS,
    WARNING,
    WHOLE_32,
    WHOLE_64,
    DocumentErrors,
    ValueKind,
    is_whole,
    list_of,
    map_of,
    one_of,
    parse_day,
    parse_uuid,
    shape,
    shown,
    written,
)

_NONCES = {"xchacha20-poly1305": 24, "aes-256-gcm": 12}  # bytes
_KDF_LEAST = {"memory_cost": 19_456, "time_cost": 2, "parallelism": 1}  # of argon2id
_VERSION = written(re.compile(r"\d+\.\d+\.\d+", re.ASCII), "1.0.0")
_CHECKSUM = written(re.compile(r"[^:]+:[0-9a-fA-F]+"), "sha256:…, with hexadecimal digits")


# --- memory records


def _look_length(found: DocumentErrors, place: str, embedding: dict[str, Any]) -> None:
    dimensions, vector = embedding.get("dimensions"), embedding.get("vector")
    if is_whole(dimensions) and isinstance(vector, list) and dimensions != len(vector):
        found.add(ERROR, place, f"says {shown(dimensions)} dimensions, but its vector has {len(vector)}")


_MEMBERS: dict[str, ValueKind] = {
    "id": UUID,
    "agent_id": UUID,
    "content": FILLED,
    "memory_type": one_of("semantic episodic procedural preference summary", "taken for semantic"),
    "source": shape(
        {"runtime": FILLED},
        {
            "runtime_version": TEXT,
            "origin": TEXT,
            "origin_file": TEXT,
            "extraction_method": one_of("agent_written llm_extracted user_authored migrated", "kept as it is"),
            "session_id": TEXT,
            "interaction_id": TEXT,
            "identity_version": WHOLE_32,
        },
    ),
    "temporal": shape(
        {"created_at": MOMENT},
        {
            "updated_at": MOMENT,
            "observed_at": MOMENT,
            "valid_from": MOMENT,
            "valid_until": MOMENT,
            "last_accessed_at": MOMENT,
            "access_count": WHOLE_64,
        },
    ),
    "status": one_of("active superseded archived deleted", "taken for active"),
    "namespace": FILLED,
}
_ENTITY_TYPES = "person organization project location tool service other"
_OPTIONAL: dict[str, ValueKind] = {
    "category": TEXT,
    "supersedes": UUID,
    "confidence": SHARE,
    "entities": list_of(shape({"name": TEXT, "type": one_of(_ENTITY_TYPES, "taken for other")}, {"role": TEXT})),
    "tags": TEXTS,
    "embeddings": list_of(
        shape(
            {
                "model": TEXT,
                "dimensions": WHOLE_32,
                "vector": list_of(NUMBER),
                "computed_at": MOMENT,
                "source": one_of("runtime sync_service import_adapter", "taken for runtime"),
            },
            also=_look_length,
        )
    ),
    "related_records": list_of(shape({"id": UUID, "relation": TEXT})),
    "raw_source_format": ANYTHING,
}
RECORD = shape(_MEMBERS, _OPTIONAL, tells_unknown=True)
CHANGE = shape({"operation": one_of("create update delete", "skipped"), **_MEMBERS}, _OPTIONAL, tells_unknown=True)
"""A line of a delta: what happens to a record, and all of the record."""


# --- manifests


def _look_partition(found: DocumentErrors, place: str, partition: dict[str, Any]) -> None:
    if partition.get("sealed") is True and partition.get("to") is None:
        found.add(ERROR, place, "is sealed, but has no last day (to)")
    first, last = parse_day(partition.get("from")), parse_day(partition.get("to"))
    if first and last and last < first:
        found.add(ERROR, place, f"ends ({last}) before it begins ({first})")


def _look_order(found: DocumentErrors, place: str, partitions: list[Any]) -> None:
    before = None
    for number, partition in enumerate(partitions):
        first = parse_day(partition.get("from")) if isinstance(partition, dict) else None
        if first and before and first < before:
            found.add(ERROR, f"{place}[{number}]", f"begins on {first}, before the one that it follows ({before})")
        before = first or before


def _look_sum(found: DocumentErrors, place: str, memory: dict[str, Any]) -> None:
    partitions, told = memory.get("partitions"), memory.get("record_count")
    if not isinstance(partitions, list) or not is_whole(told):
        return
    total = 0
    for partition in partitions:
        count = partition.get("record_count") if isinstance(partition, dict) else None
        if not is_whole(count):
            return
        total += count
    if total != told:
        found.add(ERROR, f"{place}.record_count", f"is {shown(told)}, but its partitions say {shown(total)}")


_MEMORY = shape(
    {
        "record_count": WHOLE_64,
        "index_file": TEXT,
        "partitions": list_of(
            shape(
                {"file": TEXT, "from": DAY, "record_count": WHOLE_64, "sealed": FLAG}, {"to": DAY}, also=_look_partition
            ),
            also=_look_order,
        ),
    },
    {"has_embeddings": FLAG, "has_raw_source": FLAG},
    also=_look_sum,
)
MANIFEST = shape(
    {
        "alf_version": _VERSION,
        "created_at": MOMENT,
        "agent": shape({"id": UUID, "name": FILLED, "source_runtime": FILLED}, {"source_runtime_version": TEXT}),
        "layers": shape(
            {},
            {
                "identity": shape({"version": WHOLE_32, "file": TEXT}),
                "principals": shape({"count": WHOLE_32, "file": TEXT}),
                "credentials": shape({"count": WHOLE_32, "file": TEXT}),
                "attachments": shape(
                    {"count": WHOLE_32, "file": TEXT},
                    {
                        "included_count": WHOLE_32,
                        "included_size_bytes": WHOLE_64,
                        "referenced_count": WHOLE_32,
                        "referenced_size_bytes": WHOLE_64,
                    },
                ),
                "memory": _MEMORY,
            },
        ),
    },
    {
        "runtime_hints": shape(
            {"primary_model": TEXT, "last_model": TEXT}, {"provider": TEXT, "context_window": WHOLE_64, "notes": TEXT}
        ),
        "sync": shape({"last_sequence": WHOLE_64}, {"last_sync_at": MOMENT}),
        "raw_sources": TEXTS,
        "checksum": _CHECKSUM,
    },
    tells_unknown=True,
)
DELTA_MANIFEST = shape(
    {
        "alf_version": _VERSION,
        "created_at": MOMENT,
        "agent": shape({"id": UUID}, {"source_runtime": TEXT}),
        "sync": shape(
            {"base_sequence": WHOLE_64, "new_sequence": WHOLE_64}, {"base_timestamp": MOMENT, "new_timestamp": MOMENT}
        ),
        "changes": shape(
            {},
            {
                "identity": shape({}, {"file": TEXT, "new_version": WHOLE_32}),
                "principals": shape({}, {"file": TEXT, "changed_ids": UUIDS}),
                "credentials": shape({}, {"file": TEXT}),
                "memory": shape({}, {"file": TEXT, "record_count": WHOLE_64}),
                "raw": shape({}, {"changed": TEXTS, "deleted": TEXTS}),
            },
        ),
    },
    tells_unknown=True,
)


# --- the agent, its people, its credentials, its files


_CAPABILITY = shape(
    {"name": FILLED},
    {
        "description": TEXT,
        "priority": WHOLE_32,
        "portability": one_of("intrinsic host_dependent", "kept as it is"),
        "host_requirements": TEXT,
        "credential_ids": UUIDS,
    },
)
_SUB_AGENT = shape(
    {
        "name": FILLED,
        "capabilities": list_of(_CAPABILITY),
        "status": one_of("active inactive unavailable", "taken for active"),
    },
    {
        "agent_id": UUID,
        "description": TEXT,
        "model_hints": shape({}, {"primary_model": TEXT, "last_model": TEXT}),
        "routing_hints": TEXT,
        "last_invoked_at": MOMENT,
        "performance_notes": TEXT,
    },
)
IDENTITY = shape(
    {"id": UUID, "agent_id": UUID, "version": COUNTED, "updated_at": MOMENT},
    {
        "structured": shape(
            {},
            {
                "names": shape({"primary": FILLED}, {"nickname": TEXT, "full": TEXT}),
                "role": TEXT,
                "goals": TEXTS,
                "psychology": shape(
                    {},
                    {
                        "neural_matrix": map_of(NUMBER),
                        "personality_traits": shape({"framework": TEXT, "scores": map_of(NUMBER)}),
                        "moral_alignment": TEXT,
                        "mbti": TEXT,
                    },
                ),
                "linguistics": shape(
                    {},
                    {
                        "formality_level": NUMBER,
                        "verbosity": NUMBER,
                        "humor_level": NUMBER,
                        "slang_usage": FLAG,
                        "preferred_language": TEXT,
                        "idiolect": shape({}, {"catchphrases": TEXTS, "verbal_tics": TEXTS, "avoided_words": TEXTS}),
                    },
                ),
                "capabilities": list_of(_CAPABILITY),
                "sub_agents": list_of(_SUB_AGENT),
                "aieos_extensions": ANYTHING,
            },
        ),
        "prose": shape(
            {},
            {
                "soul": TEXT,
                "operating_instructions": TEXT,
                "identity_profile": TEXT,
                "custom_blocks": map_of(TEXT),
            },
        ),
        "source_format": TEXT,
        "raw_source": ANYTHING,
    },
    tells_unknown=True,
)


def _look_principal(found: DocumentErrors, place: str, principal: dict[str, Any]) -> None:
    profile = principal.get("profile")
    named = parse_uuid(profile.get("principal_id")) if isinstance(profile, dict) else None
    own = parse_uuid(principal.get("id"))
    if named and own and named != own:
        found.add(ERROR, f"{place}.profile.principal_id", "is not the id of the principal that it stands in")


_PROFILE = shape(
    {"id": UUID, "agent_id": UUID, "principal_id": UUID, "version": COUNTED, "updated_at": MOMENT},
    {
        "structured": shape(
            {},
            {
                "name": TEXT,
                "principal_type": TEXT,
                "timezone": TEXT,
                "locale": TEXT,
                "communication_preferences": shape({}, {"tone": TEXT, "response_length": TEXT, "formatting": TEXT}),
                "work_context": shape({}, {"role": TEXT, "company": TEXT, "projects": TEXTS}),
                "relationships": list_of(ANYTHING),
                "custom_fields": ANYTHING,
            },
        ),
        "prose": shape({}, {"user_profile": TEXT}),
        "source_format": TEXT,
        "raw_source": ANYTHING,
    },
)
PRINCIPALS = shape(
    {
        "principals": list_of(
            shape(
                {"id": UUID, "principal_type": one_of("human agent", "taken for human"), "profile": _PROFILE},
                {"agent_id": UUID},
                also=_look_principal,
            )
        )
    }
)


def _look_encryption(found: DocumentErrors, place: str, credential: dict[str, Any]) -> None:
    """As upstream's 1.1 has it: a row without a secret is no error."""
    encryption = credential.get("encryption")
    algorithm = encryption.get("algorithm") if isinstance(encryption, dict) else None
    if not isinstance(encryption, dict) or not isinstance(algorithm, str):
        return
    place = f"{place}.encryption"
    nonce = encryption.get("nonce")
    if algorithm == "none":
        found.add(WARNING, f"{place}.algorithm", "is none: the credential itself is not in the archive")
        return
    if nonce == "":
        found.add(ERROR, f"{place}.nonce", "is empty")
    if size := _NONCES.get(algorithm):
        _look_sealed(found, place, nonce, credential.get("encrypted_payload"), size)
    elif algorithm:
        found.add(WARNING, f"{place}.algorithm", f"is {shown(algorithm)}, an unknown one")
    costs = encryption.get("kdf_params")
    if encryption.get("kdf") == "argon2id" and isinstance(costs, dict):
        for name, least in _KDF_LEAST.items():
            if is_whole(cost := costs.get(name)) and 0 <= cost < least:
                found.add(ERROR, f"{place}.kdf_params.{name}", f"is {cost}; argon2id needs at least {least}")


def _look_sealed(found: DocumentErrors, place: str, nonce: Any, payload: Any, size: int) -> None:
    if isinstance(nonce, str) and nonce:
        plain = _decoded(nonce)
        if plain is None:
            found.add(ERROR, f"{place}.nonce", "is not base64")
        elif len(plain) != size:
            found.add(ERROR, f"{place}.nonce", f"has {len(plain)} bytes; this algorithm has {size}")
    if isinstance(payload, str) and payload and _decoded(payload) is None:
        found.add(ERROR, f"{place.removesuffix('encryption')}encrypted_payload", "is not base64")


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


_CREDENTIAL_TYPES = "api_key oauth_token webhook_secret session_token ssh_key certificate custom account"
CREDENTIALS = shape(
    {
        "credentials": list_of(
            shape(
                {
                    "id": UUID,
                    "agent_id": UUID,
                    "service": FILLED,
                    "credential_type": one_of(_CREDENTIAL_TYPES, "taken for custom"),
                    "encrypted_payload": FILLED,
                    "encryption": shape(
                        {"algorithm": FILLED, "nonce": TEXT},
                        {
                            "kdf": TEXT,
                            "kdf_params": shape(
                                {}, {"memory_cost": WHOLE_64, "time_cost": WHOLE_32, "parallelism": WHOLE_32}
                            ),
                        },
                    ),
                    "created_at": MOMENT,
                },
                {
                    "label": TEXT,
                    "description": TEXT,
                    "capabilities_granted": TEXTS,
                    "updated_at": MOMENT,
                    "last_rotated_at": MOMENT,
                    "expires_at": MOMENT,
                    "tags": TEXTS,
                },
                also=_look_encryption,
            )
        )
    }
)
ATTACHMENTS = shape(
    {
        "attachments": list_of(
            shape(
                {
                    "id": UUID,
                    "filename": TEXT,
                    "media_type": TEXT,
                    "size_bytes": WHOLE_64,
                    "hash": shape({"algorithm": TEXT, "value": TEXT}),
                    "source_path": TEXT,
                },
                {"archive_path": TEXT, "remote_ref": TEXT, "referenced_by": UUIDS},
            )
        )
    },
    {"artifact_size_threshold": WHOLE_64},
)
OWN_FILE = shape(
    {
        "path": FILLED,
        "size": WHOLE_64,
        "mtime_ns": INTEGER,
        "sha256": written(re.compile("[0-9a-f]{64}"), "64 hexadecimal digits"),
        "partitions": list_of(ANYTHING),
    },
    {"entry": TEXT, "mode": WHOLE_32},
)
"""A line of truekeep/files.jsonl."""
