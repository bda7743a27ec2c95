"""The JSON documents of the Agent Life Format: their types, and how they are parsed and written.

Types describe what truekeep writes. A document read from an archive may have other members and other types; unknown
members are kept. `validate.py` checks documents, `reader.py` makes sure that a record has its id, content, source and
temporal members.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn, NotRequired, TypedDict

ALF_VERSION = "1.0.0"
MANIFEST, INDEX, ATTACHMENTS = "manifest.json", "memory/index.json", "attachments.json"
DELTA_MANIFEST, DELTA_RECORDS = "delta-manifest.json", "memory/delta.jsonl"
FILES, PURGES = "truekeep/files.jsonl", "truekeep/purges.jsonl"
DOCUMENTS = {"identity": "identity.json", "principals": "principals.json", "credentials": "credentials.json"}
"""The layers that are single documents, with their entries, in the order in which they are written."""
MAX_DEPTH = 127  # upstream's reader rejects deeper nesting

JsonObject = dict[str, Any]
"""A JSON object whose members have not been checked."""


class SourceProvenance(TypedDict):
    """Where a memory comes from."""

    runtime: str
    runtime_version: NotRequired[str]
    origin: NotRequired[str]
    origin_file: NotRequired[str]
    extraction_method: NotRequired[str]
    session_id: NotRequired[str]


class TemporalMetadata(TypedDict):
    """When a memory was made, observed and valid."""

    created_at: str
    updated_at: NotRequired[str]
    observed_at: NotRequired[str]
    valid_from: NotRequired[str]
    valid_until: NotRequired[str]
    last_accessed_at: NotRequired[str]
    access_count: NotRequired[int]


class EntityReference(TypedDict):
    """A person, project or thing that a memory is about."""

    name: str
    type: str


class RelatedRecord(TypedDict):
    """A link to another record."""

    id: str
    relation: str


class Embedding(TypedDict):
    """A vector of one model."""

    model: str
    dimensions: int
    vector: list[float]
    computed_at: str
    source: str


class OptionalMembers(TypedDict, total=False):
    """The members of a record that may be missing, in the order in which upstream writes them."""

    category: str | None
    supersedes: str | None
    confidence: float | None
    entities: list[EntityReference] | None
    tags: list[str]
    embeddings: list[Embedding]
    related_records: list[RelatedRecord] | None
    raw_source_format: Any  # free in the format; truekeep writes heading, line_end and line_start


class MemoryRecord(OptionalMembers):
    """One memory: a line of a partition."""

    id: str
    agent_id: str
    content: str
    memory_type: str
    source: SourceProvenance
    temporal: TemporalMetadata
    status: str
    namespace: str


class AgentMetadata(TypedDict):
    """The agent that an archive belongs to, as the manifest describes it."""

    id: str
    name: str
    source_runtime: str
    source_runtime_version: NotRequired[str]


Partition = TypedDict("Partition", {"file": str, "from": str, "to": str, "record_count": int, "sealed": bool})
"""The records of one quarter."""


class SubAgent(TypedDict):
    """An agent that works for the agent."""

    agent_id: str | None
    name: str
    capabilities: list[dict[str, str]]
    status: str
    description: NotRequired[str]
    model_hints: NotRequired[dict[str, str]]
    routing_hints: NotRequired[str]


class Identity(TypedDict):
    """identity.json: who the agent is."""

    id: str
    agent_id: str
    version: int
    updated_at: str
    structured: JsonObject
    prose: dict[str, str]
    source_format: str


class PrincipalProfile(Identity):
    """What the agent knows about a principal."""

    principal_id: str


class Principal(TypedDict):
    """A person that the agent works for."""

    id: str
    principal_type: str
    profile: PrincipalProfile


class Principals(TypedDict):
    """principals.json."""

    principals: list[Principal]


class CredentialRecord(TypedDict):
    """A login of the agent, without its secret."""

    id: str
    agent_id: str
    service: str
    credential_type: str
    encrypted_payload: str
    encryption: dict[str, str]
    created_at: str
    label: NotRequired[str]
    capabilities_granted: NotRequired[list[str]]
    expires_at: NotRequired[str]
    tags: NotRequired[list[str]]


class Credentials(TypedDict):
    """credentials.json."""

    credentials: list[CredentialRecord]


Document = Mapping[str, Any]
"""Any of the documents above, or one from an archive."""


# --- JSON -----------------------------------------------------------------------------------------------------------


def dump_line(document: Document) -> bytes:
    """A document as one line of a JSONL entry, such as a partition."""
    return f"{_encode(document)}\n".encode()


def dump_document(document: Document) -> bytes:
    """A document as an entry of its own, such as the manifest."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False).encode()


def parse_object(raw: bytes) -> JsonObject:
    """Parse a JSON object. Raises ValueError for anything that upstream's reader would reject."""
    try:
        parsed = _DECODER.decode(raw.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if not isinstance(parsed, dict):
        raise ValueError("is not a JSON object")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _refuse_depth(parsed)
    if b"\\ud" in raw or b"\\uD" in raw:
        _refuse_surrogates(parsed)
    return parsed


def strings_in(value: object) -> list[str]:
    """The strings of a JSON list; empty if it is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def object_or_empty(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _refuse_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise ValueError("is nested too deeply")


def _refuse_surrogates(document: JsonObject) -> None:
    try:
        dump_line(document)
    except UnicodeEncodeError as error:
        raise ValueError("has half of a surrogate pair") from error


def _unique_members(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"has two members named {name!r}")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("has a number that is too large")
    return number


def _exact(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("has a number with too many digits") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"has {name}, which is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False).encode
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_finite, parse_int=_exact, parse_constant=_refuse_constant
)
