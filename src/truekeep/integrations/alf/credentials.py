"""List an agent's credentials without their secrets.

Reads the service, type, label and expiry of each profile from OpenClaw's auth-profiles.json, so that a person who
restores the agent knows where to log in again. No secret leaves this module: a name, service or scope is only exported
if it is short and printable, has no part in common with a value in the file, and does not look like a credential.
Profiles of an unknown shape are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from truekeep.integrations.alf.documents import CredentialRecord, JsonObject
from truekeep.integrations.alf.record_ids import truekeep_id
from truekeep.integrations.alf.timestamps import format_timestamp, nanoseconds, parse_timestamp
from truekeep.text.secrets.scanner import find_secrets

PAYLOAD = "<not-exported>"
ENCRYPTION = {"algorithm": "none", "nonce": "bm9uZQ=="}
"""Upstream reads "none" as metadata without a secret. Its first validator requires a nonce: this one is b"none"."""

MAX_FILE_CHARACTERS = 1_000_000
MAX_PROFILES = 1000
MAX_SCOPES = 50
MAX_NAME_CHARACTERS = 100
MIN_SECRET_CHARACTERS = 4
MIN_SECRET_PART_CHARACTERS = 16  # a shorter text may be in a secret by accident
LATEST_MS = 253_402_300_799_999  # the end of the year 9999

_CREDENTIAL_TYPES = {"api_key": "api_key", "oauth": "oauth_token", "token": "oauth_token"}
_EXPORTED_FIELDS = frozenset(
    ("provider", "type", "mode", "email", "accountId", "projectId", "displayName", "expires", "expiresAt", "scopes")
)


class SecretTexts(NamedTuple):
    """The texts that must not be exported, and their lengths."""

    values: frozenset[str]
    lengths: frozenset[int]


def credentials_of(text: str, *, agent: str, at: str) -> list[CredentialRecord]:
    """A credential for each profile in the text of auth-profiles.json. Never raises; unreadable text has none."""
    profiles = list(_iter_profiles(text))[:MAX_PROFILES]
    secrets = _secrets_in([profile for _, profile in profiles])
    credentials = []
    for number, (name, profile) in enumerate(profiles):
        label = name if _is_safe(name, secrets) else None
        service = _service_of(name, profile)
        if not _is_safe(service, secrets):
            continue
        kind = profile.get("type", profile.get("mode"))
        credential: CredentialRecord = {
            "id": truekeep_id(agent, "credential", f"number:{number}" if label is None else f"name:{label}"),
            "agent_id": agent,
            "service": service,
            "credential_type": _CREDENTIAL_TYPES.get(kind, "custom") if isinstance(kind, str) else "custom",
            "encrypted_payload": PAYLOAD,
            "encryption": dict(ENCRYPTION),
            "created_at": at,
        }
        if label is not None:
            credential["label"] = label
        scopes = [scope for scope in _scopes_of(profile) if _is_safe(scope, secrets)]
        if scopes:
            credential["capabilities_granted"] = scopes
        expires_at = _expiry_of(profile)
        if expires_at is not None:
            credential["expires_at"] = expires_at
        credential["tags"] = ["openclaw", "metadata-only"]
        credentials.append(credential)
    return credentials


def _iter_profiles(text: str) -> Iterator[tuple[str, JsonObject]]:
    """The profiles of the file; older files have them at the top level."""
    if len(text) > MAX_FILE_CHARACTERS:
        return
    try:
        store = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(store, dict):
        return
    profiles = store.get("profiles")
    is_nested = isinstance(profiles, dict)
    for name, profile in (profiles if isinstance(profiles, dict) else store).items():
        if isinstance(profile, dict) and ("provider" in profile or (is_nested and ":" in name)):
            yield name, profile


def _service_of(name: str, profile: JsonObject) -> str:
    provider = profile.get("provider")
    return provider if isinstance(provider, str) and provider.strip() else name.partition(":")[0]


def _scopes_of(profile: JsonObject) -> list[str]:
    scopes = profile.get("scopes")
    if isinstance(scopes, str):
        scopes = scopes.split()
    return [scope for scope in scopes if isinstance(scope, str)][:MAX_SCOPES] if isinstance(scopes, list) else []


def _expiry_of(profile: JsonObject) -> str | None:
    """The expiry, from milliseconds as OpenClaw writes it, or from a timestamp."""
    expires = profile.get("expires", profile.get("expiresAt"))
    at = parse_timestamp(expires)
    if at is not None:
        return format_timestamp(nanoseconds(at))
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not 0 < expires <= LATEST_MS:
        return None
    return format_timestamp(int(expires) * 1_000_000)


def _secrets_in(profiles: list[JsonObject]) -> SecretTexts:
    """Every text in a profile that is neither an exported field nor a reference to a secret store."""
    values = set()
    waiting = [
        value
        for profile in profiles
        for name, value in profile.items()
        if name not in _EXPORTED_FIELDS and not (name.endswith("Ref") and isinstance(value, dict))
    ]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            values.add(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    long_enough = frozenset(value for value in values if len(value) >= MIN_SECRET_CHARACTERS)
    return SecretTexts(long_enough, frozenset(map(len, long_enough)))


def _is_safe(text: str, secrets: SecretTexts) -> bool:
    if not (text.strip() and len(text) <= MAX_NAME_CHARACTERS and text.isprintable()):
        return False
    for length in secrets.lengths:
        if any(text[start : start + length] in secrets.values for start in range(len(text) - length + 1)):
            return False
    if len(text) >= MIN_SECRET_PART_CHARACTERS and any(text in value for value in secrets.values):
        return False
    return not find_secrets(text)
