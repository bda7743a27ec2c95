"""Ids of the Agent Life Format: name-based UUIDs, so that the same memory gets the same ids wherever it is exported.

There are two schemes. Positional ids name a file and the number of the section, as the first adapters did. Content ids
name the agent, the file and the text of the section; id_carryover.py then keeps an id when the text is edited.
"""

from __future__ import annotations

import hashlib
import re
import uuid

from truekeep.core.errors import BadInput

SCHEMES = ("content", "positional")
AGENT_ID_FILE = ".alf-agent-id"

_RECORD_NAMESPACE = uuid.UUID(bytes=b"openclaw-alf-ns1")
_AGENT_NAMESPACE = uuid.UUID(bytes=b"alf-agent-id-ns1")
_OTHER_NAMESPACE = uuid.UUID(bytes=b"alf-id-ns-v5-001")  # identities, principals, profiles and reminted ids
_TRUEKEEP_NAMESPACE = uuid.UUID(bytes=b"truekeep-alf-ns1")
WHITESPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space, which is what the format trims; Python's strip() removes four more characters."""

_HYPHENATED = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(rf"(?P<urn>urn:uuid:)?{_HYPHENATED}|[0-9a-f]{{32}}|\{{{_HYPHENATED}\}}", re.IGNORECASE | re.ASCII)


def _uuid5(namespace: uuid.UUID, name: str) -> str:
    """The same as str(uuid.uuid5()), but faster: a large workspace has very many records."""
    text = hashlib.sha1(namespace.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def positional_id(path: str, number: int) -> str:
    return _uuid5(_RECORD_NAMESPACE, f"{path}:{number}")


def content_id(agent: str, path: str, content: str, occurrence: int) -> str:
    """`occurrence`: the number of earlier sections in the file with the same text."""
    return _uuid5(_RECORD_NAMESPACE, f"content-v1:{agent}:{path}:{content_digest(content)}:{occurrence}")


def content_digest(content: str) -> str:
    """The digest of a section, ignoring whitespace at its end."""
    return hashlib.sha256(content.rstrip(WHITESPACE).encode()).hexdigest()


def reminted_id(agent: str, scope: str, content: str, number: int) -> str:
    """An id for a new record whose own id was carried over to another record."""
    return _uuid5(_OTHER_NAMESPACE, f"reconcile-remint:{agent}:{scope}:{content_digest(content)}:{number}")


def truekeep_id(agent: str, kind: str, name: str) -> str:
    """The id of a record that only truekeep makes, such as a card, a rule or a fact."""
    return _uuid5(_TRUEKEEP_NAMESPACE, f"{kind}:{agent}:{name}")


def identity_id(agent: str) -> str:
    return _uuid5(_OTHER_NAMESPACE, f"identity:{agent}")


def principal_id(agent: str) -> str:
    return _uuid5(_OTHER_NAMESPACE, f"principal:{agent}:human")


def profile_id(principal: str) -> str:
    return _uuid5(_OTHER_NAMESPACE, f"profile:{principal}")


def agent_id_for(workspace: str) -> str:
    """An id for an agent without one, derived from the real path of its workspace."""
    return _uuid5(_AGENT_NAMESPACE, workspace)


def parse_agent_id(text: str) -> str:
    """Parse the content of .alf-agent-id."""
    try:
        return str(uuid.UUID(text.strip(WHITESPACE)))
    except ValueError as error:
        raise BadInput(
            f"{AGENT_ID_FILE} does not contain a UUID", hint="write the agent's id into it, or delete it"
        ) from error


def parse_uuid(value: object) -> bytes | None:
    """The 16 bytes of a UUID in any spelling that the format accepts."""
    match = _UUID.fullmatch(value) if isinstance(value, str) else None
    if match is None or match["urn"] not in (None, "urn:uuid:"):
        return None
    return bytes.fromhex(match[0].removeprefix("urn:uuid:").strip("{}").replace("-", ""))
