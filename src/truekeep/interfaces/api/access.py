"""Who may do what over HTTP: the token of a request, the workspace it names, and the role that an act needs.

A workspace that a token does not reach and one that does not exist are answered alike, word for word, by the same
query. Only who has a token learns that it expired or was revoked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import NotFound, TruekeepError
from truekeep.server.accounts import Caller, Refused, WorkspaceAccess, find_caller

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from truekeep.server.database import TeamDatabase

REFUSALS = {
    "unknown": "a valid token is needed",
    "expired": "this token has expired",
    "revoked": "this token was revoked",
    "disabled": "this account is disabled",
}


class Unauthenticated(TruekeepError):
    """There is no valid token."""

    code = "unauthenticated"


class Forbidden(TruekeepError):
    """The workspace is visible, and the role there does not allow this."""

    code = "forbidden"


class Hidden(NotFound):
    """There is no such workspace, or this token does not reach it: which of them is not told."""


class Asked(NamedTuple):
    """A request that is allowed: by whom, and in which workspace."""

    caller: Caller
    reach: WorkspaceAccess


def bearer_of(headers: Headers) -> str:
    """The token of a request; "" without one, or with two."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


def authenticate(database: TeamDatabase, token: str) -> Caller:
    found = find_caller(database, token)
    if isinstance(found, Refused):
        raise Unauthenticated(REFUSALS[found.why], hint="`truekeep token create` on the server makes one")
    return found


def authorise(caller: Caller, workspace: str, role: str) -> Asked:
    """The request in this workspace, if the caller has this role there."""
    reach = caller.find(workspace)
    if reach is None:
        raise Hidden("no such workspace", hint="GET /api/v1/workspaces lists yours")
    if not reach.allows(role):
        raise Forbidden(f"this needs the role {role}; yours is {reach.role}", hint="ask an owner of the workspace")
    return Asked(caller, reach)
