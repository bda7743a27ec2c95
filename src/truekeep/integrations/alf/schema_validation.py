"""Check single documents of an archive against ALF's own JSON schemas.

The schemas in `schemas/` are upstream's, unchanged. Upstream's tool does not follow them to the letter: its reader
accepts some documents that the schemas reject, and rejects some that they accept. `_adapt` makes the schemas agree with
the tool when they are loaded; rules that compare two members of a document are Python functions below.

Every problem has a level: `unreadable` if upstream's reader gives up, `error` if its validator complains, `warning` if
both let it pass. Rules that need more than one document are in validate.py.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from math import isfinite
from typing import Any, NamedTuple, TypeGuard

from truekeep.integrations.alf.documents import JsonObject, object_or_empty
from truekeep.integrations.alf.record_ids import parse_uuid
from truekeep.integrations.alf.timestamps import parse_date, parse_timestamp

UNREADABLE, ERROR, WARNING = "unreadable", "error", "warning"
LEVELS = (UNREADABLE, ERROR, WARNING)
MAX_PROBLEMS_PER_LEVEL = 100  # of one document

RECORD, DELTA_RECORD, MANIFEST, DELTA_MANIFEST = "memory-record", "delta-record", "manifest", "delta-manifest"
IDENTITY, PRINCIPALS, CREDENTIALS, ATTACHMENTS = "identity", "principals", "credentials", "attachments"
LISTED_FILE = "truekeep-file"
_WARN_ABOUT_UNKNOWN_MEMBERS = frozenset((RECORD, DELTA_RECORD, MANIFEST, DELTA_MANIFEST, IDENTITY))

Schema = JsonObject


class Problem(NamedTuple):
    """One violation in a document."""

    level: str
    place: str  # such as embeddings[0].vector; empty for the whole document
    what: str

    @property
    def message(self) -> str:
        return f"{self.place} {self.what}" if self.place else self.what


def check_document(kind: str, document: object) -> list[Problem]:
    """Every problem of a document, at most MAX_PROBLEMS_PER_LEVEL of each level. `kind`: the name of its schema."""
    found: list[Problem] = []
    counts: Counter[str] = Counter()
    for problem in _iter_problems(kind, document):
        counts[problem.level] += 1
        if counts[problem.level] <= MAX_PROBLEMS_PER_LEVEL:
            found.append(problem)
    return found


def _iter_problems(kind: str, document: object) -> Iterator[Problem]:
    schema = _schema(kind)
    yield from _check(schema, document, None)
    if not isinstance(document, dict):
        return
    if kind in _CROSS_CHECKS:
        yield from _CROSS_CHECKS[kind](document)
    if kind in _WARN_ABOUT_UNKNOWN_MEMBERS:
        for name in document:
            if name not in schema["properties"]:
                yield Problem(WARNING, quote_name(name), "is not in the format; it is kept")


# --- Loading the schemas --------------------------------------------------------------------------------------------

_NON_EMPTY = {
    "ALF Memory Record": ("content", "namespace"),
    "Source Provenance": ("runtime",),
    "Agent Metadata": ("name", "source_runtime"),
    "Names": ("primary",),
    "Capability": ("name",),
    "Sub-Agent": ("name",),
    "Credential Record": ("service", "encrypted_payload"),
    "Encryption Metadata": ("algorithm",),
}
"""Members that upstream's validator requires not to be empty, by the title of their object."""
_ENFORCED_LIMITS = {
    "ALF Memory Record": ("confidence",),
    "ALF Identity": ("version",),
    "Principal Profile": ("version",),
}
"""Numbers whose limits upstream's validator enforces; it ignores the other limits of the schemas."""
_UINT32 = frozenset(
    (
        *("version", "new_version", "identity_version", "count", "included_count", "referenced_count"),
        *("dimensions", "priority", "time_cost", "parallelism"),
    )
)
"""Integers that upstream's reader stores in 32 bits; the others have 64."""
_USED_KEYWORDS = ("title", "type", "required", "properties", "items", "enum", "pattern", "format", "x-unknown-default")


@cache
def _schema(kind: str) -> Schema:
    """The schema of one kind of document."""
    original = _load(RECORD if kind == DELTA_RECORD else kind)
    schema = _adapt(original, original.get("$defs", {})) if kind != LISTED_FILE else original
    if kind == DELTA_RECORD:
        operation = {"type": "string", "enum": ["create", "update", "delete"], "x-unknown-default": ""}
        schema["required"] = ["operation", *schema["required"]]
        schema["properties"] = {"operation": operation, **schema["properties"]}
    return schema


def _load(name: str) -> Schema:
    schema: Schema = json.loads((resources.files(__package__) / "schemas" / f"{name}.schema.json").read_bytes())
    return schema


def _adapt(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """A schema with its references resolved that accepts exactly what upstream's tool accepts."""
    if reference := schema.get("$ref"):
        schema = definitions[reference.removeprefix("#/$defs/")]
    if _is_opaque(schema):
        return {}
    adapted: Schema = {key: schema[key] for key in _USED_KEYWORDS if key in schema}
    if "items" in schema:
        adapted["items"] = _adapt(schema["items"], definitions)
    if isinstance(schema.get("additionalProperties"), dict):
        adapted["additionalProperties"] = _adapt(schema["additionalProperties"], definitions)
    if "properties" in schema:
        title, required = schema.get("title", ""), schema.get("required", ())
        members = {name: _adapt(member, definitions) for name, member in schema["properties"].items()}
        adapted["required"] = [name for name in required if "null" not in members[name].get("type", ())]
        adapted["properties"] = {
            name: _adapt_member(title, name, member, schema["properties"][name], name in adapted["required"])
            for name, member in members.items()
        }
    return adapted


def _is_opaque(schema: Schema) -> bool:
    """True for objects whose structure the format leaves open; the reader takes any JSON there."""
    return (
        schema.get("type") == "object"
        and "properties" not in schema
        and not isinstance(schema.get("additionalProperties"), dict)
    )


def _adapt_member(title: str, name: str, member: Schema, original: Schema, is_required: bool) -> Schema:
    if name in _NON_EMPTY.get(title, ()):
        member["minLength"] = 1
    if name in _ENFORCED_LIMITS.get(title, ()):
        member |= {key: original[key] for key in ("minimum", "maximum") if key in original}
    if member.get("type") == "integer":
        member.setdefault("minimum", 0)
        member["maximum"] = (1 << 32 if name in _UINT32 else 1 << 64) - 1
    if title == "ALF Memory Record" and name == "id":
        del member["pattern"]  # of UUIDv7, which no exporter writes
        member["format"] = "uuid"
    if name == "checksum":
        member["pattern"] = "[^:]+:[0-9a-fA-F]+"
    if name == "credential_type":
        member["enum"] = [*member["enum"], "account"]  # since spec 1.0.0-rc.2
    is_collection = "items" in member or isinstance(member.get("additionalProperties"), dict)
    if not is_required and not is_collection and isinstance(member.get("type"), str):
        member["type"] = [member["type"], "null"]
    return member


# --- Checking against an adapted schema -----------------------------------------------------------------------------
# Upstream's schemas use a dozen keywords; adapted, each means what upstream's tool does with it. A general validator,
# with most of them overridden, takes three times as long.

Place = tuple[Any, str | int] | None
"""A path, as a pair of the path above and a name or index: most are never printed."""
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _check(schema: Schema, value: Any, place: Place) -> Iterator[Problem]:
    types = schema.get("type", "")
    expected = types if isinstance(types, str) else types[0]
    if not expected:
        return
    if not _has_type(value, expected):
        if value is not None or "null" not in types:
            yield _problem(UNREADABLE, place, _wrong_type(value, expected))
    elif expected == "object":
        members, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield _problem(UNREADABLE, (place, name), "is missing")
        for name, member in value.items():
            if inner := members.get(name, others):
                yield from _check(inner, member, (place, name))
    elif expected == "array":
        yield from _check_items(schema.get("items", {}), value, place)
    elif expected == "string":
        yield from _check_text(schema, value, place)
    elif expected != "boolean":
        yield from _check_range(schema, value, place)


def _has_type(value: object, expected: str) -> bool:
    if not isinstance(value, _PYTHON_TYPES[expected]):
        return False
    if expected not in ("integer", "number"):
        return True
    try:
        return not isinstance(value, bool) and isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _check_items(schema: Schema, values: list[Any], place: Place) -> Iterator[Problem]:
    if schema == {"type": "number"} and set(map(type, values)) == {float} and all(map(isfinite, values)):
        return  # vectors have hundreds of numbers; checking each would take most of the time
    for number, item in enumerate(values if schema else ()):
        yield from _check(schema, item, (place, number))


def _check_text(schema: Schema, value: str, place: Place) -> Iterator[Problem]:
    form, pattern = schema.get("format"), schema.get("pattern", "")
    if form in _FORMATS and _FORMATS[form](value) is None:
        yield _problem(UNREADABLE, place, f"is {quote(value)}, not {_FORMAT_NAMES[form]}")
    elif form == "date-time" and ("t" in value or "z" in value):
        yield _problem(WARNING, place, "has its T or Z in lower case, which some readers reject")
    if "enum" in schema and value not in schema["enum"]:
        yield _problem(WARNING, place, f"is {quote(value)}, an unknown value; {_unknown_default(schema)}")
    if "minLength" in schema and not value:
        yield _problem(ERROR, place, "is empty")
    if pattern and not re.fullmatch(pattern.strip("^$"), value, re.ASCII):
        name = str(place[1]) if place is not None else ""
        yield _problem(ERROR, place, f"is {quote(value)}, not of the form {_PATTERN_NAMES.get(name, pattern)}")


def _check_range(schema: Schema, value: float, place: Place) -> Iterator[Problem]:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    if least <= value <= most:
        return
    if not is_whole(value) or most == 1:
        yield _problem(ERROR, place, f"is {quote(value)}; it must be between 0 and 1")
    elif value < 0:
        yield _problem(UNREADABLE, place, "is negative")
    elif value < least:
        yield _problem(ERROR, place, f"is {value}; it must be at least {least}")
    else:
        yield _problem(UNREADABLE, place, "is a number that is too large")


# --- Violations in plain words --------------------------------------------------------------------------------------

_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}
_FORMAT_NAMES = {
    "date-time": "a timestamp with its offset, such as 2026-01-15T10:30:00Z",
    "date": "a date such as 2026-01-15",
    "uuid": "a UUID",
}
_FORMATS: dict[str, Callable[[object], object]] = {
    "date-time": parse_timestamp,
    "date": parse_date,
    "uuid": parse_uuid,
}
_PATTERN_NAMES = {"alf_version": "1.0.0", "checksum": "sha256:0a1b2c", "sha256": "64 hexadecimal digits"}


def _wrong_type(value: object, expected: str) -> str:
    if expected in ("integer", "number") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"is {value}, not a whole number" if isinstance(value, float) else "is a number that is too large"
    return f"is {_type_of(value)}, not {_TYPE_NAMES[expected]}"


def _unknown_default(schema: Schema) -> str:
    default = schema.get("x-unknown-default")
    if default is None:
        return "it is kept as it is"
    return f"it is treated as {default}" if default else "the line is skipped"


def _problem(level: str, place: Place, what: str) -> Problem:
    return Problem(level, _place_of(place), what)


def _place_of(place: Place) -> str:
    if place is None:
        return ""
    above, step = _place_of(place[0]), place[1]
    if isinstance(step, int):
        return f"{above}[{step}]"
    return f"{above}.{quote_name(step)}" if above else quote_name(step)


def quote(value: object) -> str:
    """A value for a message: short, and without control characters."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:60]!r}…"
    if isinstance(value, float) or (is_whole(value) and abs(value) < 1 << 64):
        return str(value)
    return _type_of(value)


def quote_name(name: object) -> str:
    return name if isinstance(name, str) and name.isidentifier() and len(name) <= 60 else quote(name)


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "an object"


def is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


# --- Rules about two members of a document --------------------------------------------------------------------------
# The members may still have any type: a wrong type is already a problem of its own.

_NONCE_BYTES = {"xchacha20-poly1305": 24, "aes-256-gcm": 12}
_ARGON2ID_MINIMUM = {"memory_cost": 19_456, "time_cost": 2, "parallelism": 1}


def _objects(value: object) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a list, with their positions."""
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield number, item


def _check_dimensions(record: JsonObject) -> Iterator[Problem]:
    for number, embedding in _objects(record.get("embeddings")):
        dimensions, vector = embedding.get("dimensions"), embedding.get("vector")
        if is_whole(dimensions) and isinstance(vector, list) and dimensions != len(vector):
            what = f"says {quote(dimensions)} dimensions, but its vector has {len(vector)}"
            yield Problem(ERROR, f"embeddings[{number}]", what)


def _check_partitions(manifest: JsonObject) -> Iterator[Problem]:
    memory = object_or_empty(object_or_empty(manifest.get("layers")).get("memory"))
    partitions, before = memory.get("partitions"), None
    for number, partition in _objects(partitions):
        place = f"layers.memory.partitions[{number}]"
        if partition.get("sealed") is True and partition.get("to") is None:
            yield Problem(ERROR, place, "is sealed, but has no last day (to)")
        first, last = parse_date(partition.get("from")), parse_date(partition.get("to"))
        if first and last and last < first:
            yield Problem(ERROR, place, f"ends ({last}) before it begins ({first})")
        if first and before and first < before:
            yield Problem(ERROR, place, f"begins on {first}, before its predecessor ({before})")
        before = first or before
    stated = memory.get("record_count")
    counts = [count for _, partition in _objects(partitions) if is_whole(count := partition.get("record_count"))]
    is_complete = isinstance(partitions, list) and len(counts) == len(partitions)
    if is_complete and is_whole(stated) and sum(counts) != stated:
        what = f"is {quote(stated)}, but its partitions say {quote(sum(counts))}"
        yield Problem(ERROR, "layers.memory.record_count", what)


def _check_principals(document: JsonObject) -> Iterator[Problem]:
    for number, principal in _objects(document.get("principals")):
        named = parse_uuid(object_or_empty(principal.get("profile")).get("principal_id"))
        own = parse_uuid(principal.get("id"))
        if named and own and named != own:
            yield Problem(ERROR, f"principals[{number}].profile.principal_id", "is not the id of its principal")


def _check_credentials(document: JsonObject) -> Iterator[Problem]:
    for number, credential in _objects(document.get("credentials")):
        encryption = object_or_empty(credential.get("encryption"))
        if isinstance(encryption.get("algorithm"), str):
            yield from _check_encryption(f"credentials[{number}]", encryption, credential.get("encrypted_payload"))


def _check_encryption(place: str, encryption: JsonObject, payload: object) -> Iterator[Problem]:
    """The rules of upstream's 1.1; an entry without a secret (algorithm none) is no error."""
    algorithm, nonce = encryption["algorithm"], encryption.get("nonce")
    inside = f"{place}.encryption"
    if algorithm == "none":
        yield Problem(WARNING, f"{inside}.algorithm", "is none: the credential itself is not in the archive")
        return
    if nonce == "":
        yield Problem(ERROR, f"{inside}.nonce", "is empty")
    if algorithm in _NONCE_BYTES:
        decoded = _decode_base64(nonce) if isinstance(nonce, str) else None
        if isinstance(nonce, str) and decoded is None:
            yield Problem(ERROR, f"{inside}.nonce", "is not base64")
        elif decoded and len(decoded) != _NONCE_BYTES[algorithm]:
            what = f"has {len(decoded)} bytes; this algorithm needs {_NONCE_BYTES[algorithm]}"
            yield Problem(ERROR, f"{inside}.nonce", what)
        if isinstance(payload, str) and _decode_base64(payload) is None:
            yield Problem(ERROR, f"{place}.encrypted_payload", "is not base64")
    elif algorithm:
        yield Problem(WARNING, f"{inside}.algorithm", f"is {quote(algorithm)}, which is unknown")
    costs = object_or_empty(encryption.get("kdf_params"))
    for name, least in _ARGON2ID_MINIMUM.items() if encryption.get("kdf") == "argon2id" else ():
        if is_whole(cost := costs.get(name)) and 0 <= cost < least:
            yield Problem(ERROR, f"{inside}.kdf_params.{name}", f"is {cost}; argon2id needs at least {least}")


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


_CROSS_CHECKS: dict[str, Callable[[JsonObject], Iterator[Problem]]] = {
    RECORD: _check_dimensions,
    DELTA_RECORD: _check_dimensions,
    MANIFEST: _check_partitions,
    PRINCIPALS: _check_principals,
    CREDENTIALS: _check_credentials,
}
