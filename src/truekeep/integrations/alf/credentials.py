"""Which credentials an agent has, and none of what they say.

Reads OpenClaw's auth-profiles.json for the service, the kind, the label and the expiry of each, so that whoever
restores the agent knows what to enter again. No secret leaves this module: a name, service or scope does only if it is
short and printable, shares nothing with a value in the file, and is no credential by its looks. What has an unknown
shape is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from truekeep.integrations.alf.record_ids import own_id
from truekeep.integrations.alf.record_times import parse_moment, shown_moment
from truekeep.text.secrets.scanner import find_secrets

PAYLOAD = "<not-exported>"
ENCRYPTION = {"algorithm": "none", "nonce": "bm9uZQ=="}
"""Upstream knows "none" as metadata only, with a warning; its first validator wants some nonce: this one says none."""

LARGEST_FILE = 1_000_000
MOST_PROFILES = 1000
MOST_SCOPES = 50
LONGEST_TEXT = 100
SHORTEST_SECRET = 4
LONG_ENOUGH = 16  # to be a good part of a secret, and no word that happens to be in it
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999  # the end of the year 9999

_TYPES = {"api_key": "api_key", "oauth": "oauth_token", "token": "oauth_token"}
_TOLD = frozenset(
    ("provider", "type", "mode", "email", "accountId", "projectId", "displayName", "expires", "expiresAt", "scopes")
)


class SecretTexts(NamedTuple):
    """The texts that must not be told, and how long they are."""

    values: frozenset[str]
    lengths: frozenset[int]


def credentials_of(text: str, *, agent: str, at: str) -> list[dict[str, Any]]:
    """A record for each profile in the text of auth-profiles.json, none for what cannot be read. Never raises."""
    profiles = list(_iter_profiles(text))[:MOST_PROFILES]
    hidden = _hidden_in([profile for _, profile in profiles])
    credentials = []
    for number, (name, profile) in enumerate(profiles):
        label = name if _is_safe(name, hidden) else None
        service = _service_of(name, profile)
        if not _is_safe(service, hidden):
            continue
        kind = profile.get("type", profile.get("mode"))
        credential: dict[str, Any] = {
            "id": own_id(agent, "credential", f"number:{number}" if label is None else f"name:{label}"),
            "agent_id": agent,
            "service": service,
            "credential_type": _TYPES.get(kind, "custom") if isinstance(kind, str) else "custom",
            "encrypted_payload": PAYLOAD,
            "encryption": dict(ENCRYPTION),
            "created_at": at,
        }
        if label is not None:
            credential["label"] = label
        scopes = [scope for scope in _scopes_of(profile) if _is_safe(scope, hidden)]
        if scopes:
            credential["capabilities_granted"] = scopes
        expires_at = _expiry_of(profile)
        if expires_at is not None:
            credential["expires_at"] = expires_at
        credential["tags"] = ["openclaw", "metadata-only"]
        credentials.append(credential)
    return credentials


def _iter_profiles(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The profiles of today's file, or of one where they stand at the top, as upstream's first adapter expects."""
    if len(text) > LARGEST_FILE:
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


def _service_of(name: str, profile: dict[str, Any]) -> str:
    provider = profile.get("provider")
    return provider if isinstance(provider, str) and provider.strip() else name.partition(":")[0]


def _scopes_of(profile: dict[str, Any]) -> list[str]:
    scopes = profile.get("scopes")
    if isinstance(scopes, str):
        scopes = scopes.split()
    return [scope for scope in scopes if isinstance(scope, str)][:MOST_SCOPES] if isinstance(scopes, list) else []


def _expiry_of(profile: dict[str, Any]) -> str | None:
    """OpenClaw counts milliseconds; a moment in words is taken too."""
    expires = profile.get("expires", profile.get("expiresAt"))
    moment = parse_moment(expires)
    if moment is not None:
        return shown_moment((moment - EPOCH) // timedelta(microseconds=1) * 1000)
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not 0 < expires <= LAST_MS:
        return None
    return shown_moment(int(expires) * 1_000_000)


def _hidden_in(profiles: list[dict[str, Any]]) -> SecretTexts:
    """Every text in a profile that is neither a field we tell nor a reference to where a secret is kept."""
    values = set()
    waiting = [
        value
        for profile in profiles
        for name, value in profile.items()
        if name not in _TOLD and not (name.endswith("Ref") and isinstance(value, dict))
    ]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            values.add(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    secret = frozenset(value for value in values if len(value) >= SHORTEST_SECRET)
    return SecretTexts(secret, frozenset(map(len, secret)))


def _is_safe(text: str, hidden: SecretTexts) -> bool:
    if not (text.strip() and len(text) <= LONGEST_TEXT and text.isprintable()):
        return False
    for length in hidden.lengths:
        if any(text[start : start + length] in hidden.values for start in range(len(text) - length + 1)):
            return False
    if len(text) >= LONG_ENOUGH and any(text in value for value in hidden.values):
        return False
    return not find_secrets(text)
