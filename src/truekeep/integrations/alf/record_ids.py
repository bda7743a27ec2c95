"""Ids of the Agent Life Format: UUIDs by name, so that the same memory has the same ids wherever it is exported.

Two schemes. Positional: a file and the number of its section, as the first adapters had it. Content: the agent, the
file and what the section says; an id that is carried across edits then comes from an earlier archive (`carry`).
"""

from __future__ import annotations

import hashlib
import uuid

from truekeep.core.errors import BadInput

SCHEMES = ("content", "positional")
AGENT_FILE = ".alf-agent-id"

OPENCLAW = uuid.UUID(bytes=b"openclaw-alf-ns1")  # its records
AGENTS = uuid.UUID(bytes=b"alf-agent-id-ns1")  # agents without an id, by their folder
OTHERS = uuid.UUID(bytes=b"alf-id-ns-v5-001")  # identities, principals, profiles, and what an id is made anew for
OURS = uuid.UUID(bytes=b"truekeep-alf-ns1")  # what only truekeep tells
WHITESPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space, which is what the format trims; Python's own strip() takes four more."""


def _named(space: uuid.UUID, name: str) -> str:
    """A UUID by name, as uuid.uuid5 makes it; without its detours, since a large workspace has very many."""
    text = hashlib.sha1(space.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def positional_id(path: str, number: int) -> str:
    return _named(OPENCLAW, f"{path}:{number}")


def content_id(agent: str, path: str, content: str, occurrence: int) -> str:
    """`occurrence` counts the earlier sections of the file that say the same."""
    return _named(OPENCLAW, f"content-v1:{agent}:{path}:{digest_of(content)}:{occurrence}")


def digest_of(content: str) -> str:
    """What a section says, however many blanks it ends in."""
    return hashlib.sha256(content.rstrip(WHITESPACE).encode()).hexdigest()


def reminted_id(agent: str, scope: str, content: str, number: int) -> str:
    """For a new record whose own id an older one has carried away."""
    return _named(OTHERS, f"reconcile-remint:{agent}:{scope}:{digest_of(content)}:{number}")


def own_id(agent: str, kind: str, name: str) -> str:
    """For a record that only truekeep makes: a card, a row, a fact."""
    return _named(OURS, f"{kind}:{agent}:{name}")


def identity_id(agent: str) -> str:
    return _named(OTHERS, f"identity:{agent}")


def principal_id(agent: str) -> str:
    return _named(OTHERS, f"principal:{agent}:human")


def profile_id(principal: str) -> str:
    return _named(OTHERS, f"profile:{principal}")


def agent_id_for(workspace: str) -> str:
    """The id of an agent that has none yet, by the real path of its workspace."""
    return _named(AGENTS, workspace)


def parse_agent_id(text: str) -> str:
    """What .alf-agent-id says."""
    try:
        return str(uuid.UUID(text.strip(WHITESPACE)))
    except ValueError as error:
        raise BadInput(f"{AGENT_FILE} does not hold a UUID", hint="put the agent's id there, or remove it") from error
