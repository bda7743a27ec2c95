"""What OAuth keeps, in the database, so that any server process answers: programs, codes, grants and refresh tokens.

A grant is what one person allowed one program in one workspace, with at most a role. Codes and refresh tokens are used
once; a second use ends the grant. Access tokens are rows beside the other tokens, and only good for MCP.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import BadInput, NotFound
from truekeep.server.accounts import MCP_PREFIX, hash_of, note
from truekeep.server.database import as_owner
from truekeep.server.handoff_queue import QuotaExceeded

if TYPE_CHECKING:
    from truekeep.server.database import TeamDatabase

ROLES = ("reader", "writer")  # MCP has tools for these
CODE_SECONDS = 120.0
ACCESS_SECONDS = 3600.0
REFRESH_SECONDS = 30 * 86_400.0
GRANT_SECONDS = 90 * 86_400.0
MAX_REGISTRATIONS = 30  # in a minute
MAX_UNUSED_CLIENTS = 1_000  # registered, and allowed nothing yet; a day later they are removed
MAX_NAME = 100


class IssuedTokens(NamedTuple):
    """An access token and a refresh token."""

    access: str
    refresh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a person allows a program."""

    client: uuid.UUID
    workspace: int
    role: str
    resource: str
    redirect_uri: str
    is_redirect_given: bool
    challenge: str


class KeptCode(NamedTuple):
    """An authorization code, as it was issued. `seconds`: how long it is good for."""

    client: uuid.UUID
    role: str
    resource: str
    redirect_uri: str
    is_redirect_given: bool
    challenge: str
    seconds: float


class KeptRefresh(NamedTuple):
    """A refresh token, as it was issued."""

    client: uuid.UUID
    role: str
    resource: str
    seconds: float


class OAuthRecord:
    """Programs and grants of a deployment, as requests need them."""

    def __init__(self, database: TeamDatabase) -> None:
        self._database = database

    def _ask(self, call: str, *given: object) -> Any:
        with self._database.plain() as cursor:
            return cursor.execute(f"SELECT {call}".encode(), given).fetchone()

    def register(self, client: uuid.UUID, name: str, info: Mapping[str, Any]) -> None:
        from psycopg.types.json import Jsonb

        limits = MAX_REGISTRATIONS, MAX_UNUSED_CLIENTS
        row = self._ask("register_oauth_client(%s, %s, %s, %s, %s)", client, name, Jsonb(dict(info)), *limits)
        if not row[0]:
            raise QuotaExceeded("too many programs have registered and were allowed nothing", hint="try again later")

    def find_client(self, client: uuid.UUID) -> dict[str, Any] | None:
        """What a program registered; None if there is no such program, or it was revoked."""
        found: dict[str, Any] | None = self._ask("find_oauth_client(%s)", client)[0]
        return found

    def approve(self, session: str, given: Approval) -> str:
        """A code for what somebody who is signed in allows; raises if they may not."""
        code = secrets.token_urlsafe(32)
        (problem,) = self._ask(
            "approve_oauth(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            hash_of(session), given.client, given.workspace, given.role, hash_of(code), given.resource,
            given.redirect_uri, given.is_redirect_given, given.challenge, CODE_SECONDS,
        )  # fmt: skip
        if problem:
            told = {
                "session": "your session is over; nothing was allowed",
                "role": "you do not have this role there any more; nothing was allowed",
                "client": "this program was revoked; nothing was allowed",
            }
            raise BadInput(told[problem], hint="start again in the program")
        return code

    def find_code(self, code: str) -> KeptCode | None:
        row = self._ask(
            "client, role, resource, redirect_uri, is_redirect_given, challenge, seconds FROM find_oauth_code(%s)",
            hash_of(code),
        )
        return KeptCode(*row) if row is not None and row[0] is not None else None

    def redeem(self, client: uuid.UUID, code: str) -> IssuedTokens | None:
        """Tokens for a code; None if it is not good any more."""
        made = _new_tokens()
        (problem,) = self._ask(
            "redeem_oauth_code(%s, %s, %s, %s, %s, %s, %s)", client, hash_of(code), hash_of(made.access),
            hash_of(made.refresh), ACCESS_SECONDS, REFRESH_SECONDS, GRANT_SECONDS,
        )  # fmt: skip
        return None if problem else made

    def find_refresh(self, refresh: str) -> KeptRefresh | None:
        row = self._ask("client, role, resource, seconds FROM find_oauth_refresh(%s)", hash_of(refresh))
        return KeptRefresh(*row) if row is not None and row[0] is not None else None

    def rotate(self, client: uuid.UUID, refresh: str, role: str) -> IssuedTokens | None:
        """New tokens for a refresh token, with at most this role; None if it is not good any more."""
        made = _new_tokens()
        (problem,) = self._ask(
            "rotate_oauth_refresh(%s, %s, %s, %s, %s, %s, %s)", client, hash_of(refresh), role, hash_of(made.access),
            hash_of(made.refresh), ACCESS_SECONDS, REFRESH_SECONDS,
        )  # fmt: skip
        return None if problem else made

    def revoke(self, client: uuid.UUID, token: str) -> None:
        """End a grant by any token of it, if it is of this program."""
        self._ask("revoke_oauth(%s, %s)", client, hash_of(token))


def _new_tokens() -> IssuedTokens:
    return IssuedTokens(MCP_PREFIX + secrets.token_urlsafe(32), "tkr_" + secrets.token_urlsafe(32))


# --- Administration, as the owner of the database -------------------------------------------------------------------


class ClientRow(NamedTuple):
    """A program as lists show it."""

    id: str
    name: str
    redirects: tuple[str, ...]
    allowed: int
    created_at: datetime
    revoked_at: datetime | None


def list_clients(url: str) -> list[ClientRow]:
    with as_owner(url) as connection:
        rows = connection.execute(
            "SELECT c.id, c.name, c.info->'redirect_uris', count(g.id), c.created_at, c.revoked_at FROM oauth_client c"
            " LEFT JOIN oauth_grant g ON g.client = c.id AND g.revoked_at IS NULL AND g.expires_at > now()"
            " GROUP BY c.id ORDER BY c.created_at"
        ).fetchall()
    return [ClientRow(str(row[0]), row[1], tuple(row[2]), *row[3:]) for row in rows]


def revoke_client(url: str, client: str) -> None:
    """End a program: its tokens are refused at the next request."""
    try:
        number = uuid.UUID(client)
    except ValueError:
        raise BadInput(f"{client[:80]!r} names no program", hint="`truekeep server clients` lists them") from None
    with as_owner(url) as connection:
        row = connection.execute(
            "UPDATE oauth_client SET revoked_at = coalesce(revoked_at, now()) WHERE id = %s RETURNING name", (number,)
        ).fetchone()
        if row is None:
            raise NotFound("there is no such program", hint="`truekeep server clients` lists them")
        note(connection, "admin", "program-revoked", client=client, name=row[0])
