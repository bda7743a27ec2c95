"""List an agent's credentials without their secrets.

Reads the service, type, label and expiry of each profile from OpenClaw's auth-profiles.json, and the names of the files
in its credentials/ folder, so that a person who restores the agent knows where to log in again. No secret leaves this
module: a name, service or scope is only exported if it is short and printable, has no part in common with a value in
the file, and does not look like a credential. Profiles of an unknown shape are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from truekeep.core.openclaw_config import parse_config
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


class CredentialFile(NamedTuple):
    """A file with credentials. A folder has no text."""

    name: str
    text: str
    changed_at: str
    is_profiles: bool  # auth-profiles.json, which has several


def list_credentials(files: Iterable[CredentialFile], agent: str) -> list[CredentialRecord]:
    """The credentials in these files."""
    found: dict[str, CredentialRecord] = {}
    for file in files:
        profiles = credentials_of(file.text, agent=agent, at=file.changed_at)
        if not profiles and not file.is_profiles:
            profiles = _credential_of_file(file, agent)
        found |= {credential["id"]: credential for credential in profiles}
    return list(found.values())


def credentials_of(text: str, *, agent: str, at: str) -> list[CredentialRecord]:
    """A credential for each profile in the text of auth-profiles.json. Never raises; unreadable text has none."""
    profiles = list(_iter_profiles(_parse(text)))[:MAX_PROFILES]
    secrets = _texts_in([_unexported(profile) for _, profile in profiles])
    credentials = []
    for number, (name, profile) in enumerate(profiles):
        label = name if _is_safe(name, secrets) else None
        service = _service_of(name, profile)
        if _is_safe(service, secrets):
            key = f"number:{number}" if label is None else f"name:{label}"
            credentials.append(_credential(truekeep_id(agent, "credential", key), agent, service, profile, at))
            _add_details(credentials[-1], label, profile, secrets)
    return credentials


def _credential_of_file(file: CredentialFile, agent: str) -> list[CredentialRecord]:
    """The credential of a file that is not a list of profiles: its service is the name of the file."""
    service, content = file.name.partition(".")[0], _parse(file.text)
    if file.name.startswith(".") or not _is_safe(service, _texts_in([_unexported(content)])):
        return []
    credential = _credential(
        truekeep_id(agent, "credential", f"file:{file.name}"), agent, service, content, file.changed_at
    )
    _add_details(credential, None, content, _texts_in([_unexported(content)]))
    return [credential]


def _credential(id_: str, agent: str, service: str, profile: JsonObject, at: str) -> CredentialRecord:
    kind = profile.get("type", profile.get("mode"))
    return {
        "id": id_,
        "agent_id": agent,
        "service": service,
        "credential_type": _CREDENTIAL_TYPES.get(kind, "custom") if isinstance(kind, str) else "custom",
        "encrypted_payload": PAYLOAD,
        "encryption": dict(ENCRYPTION),
        "created_at": at,
    }


def _add_details(credential: CredentialRecord, label: str | None, profile: JsonObject, secrets: frozenset[str]) -> None:
    if label is not None:
        credential["label"] = label
    if scopes := [scope for scope in _scopes_of(profile) if _is_safe(scope, secrets)]:
        credential["capabilities_granted"] = scopes
    if (expires_at := _expiry_of(profile)) is not None:
        credential["expires_at"] = expires_at
    credential["tags"] = ["openclaw", "metadata-only"]


def _parse(text: str) -> JsonObject:
    found = parse_config(text.encode("utf-8", "replace")) if len(text) <= MAX_FILE_CHARACTERS else None
    return found or {}


def _iter_profiles(store: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """The profiles of the file; older files have them at the top level."""
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


def _unexported(profile: JsonObject) -> list[Any]:
    """The values of a profile that are neither exported nor references to a secret store."""
    return [
        value
        for name, value in profile.items()
        if name not in _EXPORTED_FIELDS and not (name.endswith("Ref") and isinstance(value, dict))
    ]


def _texts_in(values: list[Any]) -> frozenset[str]:
    """Every text in these values that is long enough to be a secret."""
    texts = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return frozenset(text for text in texts if len(text) >= MIN_SECRET_CHARACTERS)


def _is_safe(text: str, secrets: frozenset[str]) -> bool:
    if not (text.strip() and len(text) <= MAX_NAME_CHARACTERS and text.isprintable()):
        return False
    if any(secret in text for secret in secrets if len(secret) <= len(text)):
        return False
    if len(text) >= MIN_SECRET_PART_CHARACTERS and any(text in secret for secret in secrets):
        return False
    return not find_secrets(text)
