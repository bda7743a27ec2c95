"""Who may what: accounts, their roles in workspaces, and tokens. Only the hash of a token is kept.

A role allows what the one before it allows, and more: a reader reads, a writer hands in, a reviewer decides, an owner
sees the audit log.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import BadInput, NotFound
from truekeep.server.database import TeamDatabase, as_owner

if TYPE_CHECKING:
    from psycopg import Connection

ROLES = ("reader", "writer", "reviewer", "owner")
PREFIX = "tk1_"
MCP_PREFIX = "tko_"  # of tokens that programs got by OAuth
_ACCOUNT = re.compile(r"[a-z0-9][a-z0-9._@+-]{0,63}\Z")
_WORKSPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}\Z")
_TOKEN = re.compile(r"tk1_[A-Za-z0-9_-]{43}\Z")
_MCP_TOKEN = re.compile(r"tk[1o]_[A-Za-z0-9_-]{43}\Z")


class WorkspaceAccess(NamedTuple):
    """A workspace that a token reaches, and the role it has there."""

    id: int
    name: str
    role: str
    version: int

    def allows(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Caller(NamedTuple):
    """Who asks, by a valid token or by the session of a browser."""

    account: int
    name: str
    credential: int  # number of the token, or of the session
    workspaces: tuple[WorkspaceAccess, ...]

    def find(self, workspace: str) -> WorkspaceAccess | None:
        return next((reach for reach in self.workspaces if reach.name == workspace), None)


class Refused(NamedTuple):
    """A token that is not valid now, and why. Only who has the token learns the reason."""

    why: str


def find_caller(database: TeamDatabase, token: str, *, is_mcp: bool = False) -> Caller | Refused:
    """Whose token this is, with every workspace that it reaches now. What OAuth gave a program is for MCP alone."""
    if not (_MCP_TOKEN.match(token) if is_mcp else is_token(token)):
        return Refused("unknown")
    digest = hash_of(token)
    with database.plain() as cursor:
        row = cursor.execute("SELECT token, account, name, problem FROM find_token(%s)", (digest,)).fetchone()
        if row is None or row[0] is None:
            return Refused("unknown")
        number, account, name, problem = row
        if problem:
            return Refused(problem)
        reaches = cursor.execute("SELECT workspace, name, role, version FROM reachable(%s)", (digest,)).fetchall()
        cursor.execute("SELECT note_use(%s)", (digest,))
    return Caller(account, name, number, tuple(WorkspaceAccess(*reach) for reach in reaches))


def is_token(text: str) -> bool:
    return _TOKEN.match(text) is not None


def hash_of(token: str) -> bytes:
    """What is kept of a token. It has 256 random bits, so that one round of SHA-256 is enough."""
    return hashlib.sha256(token.encode()).digest()


# --- Administration, as the owner of the database -------------------------------------------------------------------


class TokenRow(NamedTuple):
    """A token as lists show it."""

    id: int
    account: str
    label: str
    workspace: str | None
    role: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used: Any
    is_oauth: bool  # a program got it by OAuth


def make_token(
    url: str, account: str, *, workspace: str = "", role: str = "owner", days: int | None = 90, label: str = ""
) -> tuple[int, str]:
    """A new token of an account, which is made if it is missing. It is shown once."""
    check_role(role)
    token = PREFIX + secrets.token_urlsafe(32)
    with as_owner(url) as connection:
        number = account_id(connection, account, make=True)
        inside = workspace_id(connection, workspace) if workspace else None
        expires = timedelta(days=days) if days is not None else None
        row = connection.execute(
            "INSERT INTO token (account, hash, label, workspace, role, expires_at)"
            " VALUES (%s, %s, %s, %s, %s, now() + %s) RETURNING id",
            (number, hash_of(token), label, inside, role, expires),
        ).fetchone()
        assert row is not None
        note(connection, "admin", "token-created", workspace=inside, account=account, token=row[0], role=role)
    return int(row[0]), token


def list_tokens(url: str) -> list[TokenRow]:
    with as_owner(url) as connection:
        rows = connection.execute(
            "SELECT t.id, a.name, t.label, w.name, t.role, t.created_at, t.expires_at,"
            " coalesce(t.revoked_at, g.revoked_at, c.revoked_at, s.revoked_at), t.last_used, t.oauth_grant IS NOT NULL"
            " FROM token t JOIN account a ON a.id = t.account LEFT JOIN workspace w ON w.id = t.workspace"
            " LEFT JOIN oauth_grant g ON g.id = t.oauth_grant LEFT JOIN oauth_client c ON c.id = g.client"
            " LEFT JOIN token s ON s.id = g.signed_in_with ORDER BY t.id"
        ).fetchall()
    return [TokenRow(*row) for row in rows]


def revoke_token(url: str, number: int) -> None:
    """End a token. The next request with it is refused; a program that got it by OAuth gets no further one."""
    with as_owner(url) as connection:
        row = connection.execute(
            "UPDATE token SET revoked_at = coalesce(revoked_at, now()) WHERE id = %s RETURNING oauth_grant", (number,)
        ).fetchone()
        if row is None:
            raise NotFound(f"there is no token {number}", hint="`truekeep token list` shows them")
        if row[0] is not None:
            connection.execute("SELECT end_oauth_grant(%s, 'its token was revoked')", (row[0],))
        note(connection, "admin", "token-revoked", token=number)


def set_grant(url: str, account: str, workspace: str, role: str) -> None:
    """Give an account a role in a workspace; "none" takes it away."""
    if role != "none":
        check_role(role)
    with as_owner(url) as connection:
        number = account_id(connection, account, make=role != "none")
        inside = workspace_id(connection, workspace)
        connection.execute("DELETE FROM access_grant WHERE account = %s AND workspace = %s", (number, inside))
        if role != "none":
            connection.execute("INSERT INTO access_grant VALUES (%s, %s, %s)", (number, inside, role))
        note(connection, "admin", "grant", workspace=inside, account=account, role=role)


def list_grants(url: str) -> list[tuple[str, str, str]]:
    """Account, workspace and role of every grant."""
    with as_owner(url) as connection:
        return connection.execute(
            "SELECT a.name, w.name, g.role FROM access_grant g JOIN account a ON a.id = g.account"
            " JOIN workspace w ON w.id = g.workspace ORDER BY 2, 1"
        ).fetchall()


def is_account_name(name: str) -> bool:
    return _ACCOUNT.match(name) is not None


def account_id(connection: Connection[Any], name: str, *, make: bool = False) -> int:
    if not is_account_name(name):
        raise BadInput(f"{name[:80]!r} cannot name an account", hint="lower-case letters, digits, . _ @ + -; as ada")
    if make:
        connection.execute("INSERT INTO account (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
    row = connection.execute("SELECT id FROM account WHERE name = %s", (name,)).fetchone()
    if row is None:
        raise NotFound(f"there is no account {name!r}", hint="`truekeep token create NAME` makes one")
    return int(row[0])


def workspace_id(connection: Connection[Any], name: str) -> int:
    row = connection.execute("SELECT id FROM workspace WHERE name = %s", (name,)).fetchone()
    if row is None:
        raise NotFound(f"there is no workspace {name[:80]!r}", hint="`truekeep server status` lists them")
    return int(row[0])


def is_workspace_name(name: str) -> bool:
    return _WORKSPACE.match(name) is not None


def check_workspace_name(name: str) -> str:
    if not is_workspace_name(name):
        hint = "lower-case letters, digits, dots and dashes, at most 40; as platform"
        raise BadInput(f"{name[:80]!r} cannot name a workspace", hint=hint)
    return name


AUDIT_ROWS = 200  # of one page of the log


class AuditRow(NamedTuple):
    """An act in a workspace."""

    id: int
    at: datetime
    actor: str
    act: str
    detail: dict[str, Any]


def read_audit(database: TeamDatabase, workspace: int, before: int) -> list[AuditRow]:
    """A page of the audit log of a workspace, newest first: the acts before one."""
    with database.workspace(workspace) as cursor:
        rows = cursor.execute(
            "SELECT id, at, actor, act, detail FROM audit WHERE workspace = %s AND id < %s ORDER BY id DESC LIMIT %s",
            (workspace, before, AUDIT_ROWS),
        ).fetchall()
    return [AuditRow(*row) for row in rows]


def check_role(role: str) -> None:
    if role not in ROLES:
        raise BadInput(f"there is no role {role!r}", hint=f"one of {', '.join(ROLES)}")


def note(connection: Any, actor: str, act: str, *, workspace: int | None = None, **detail: Any) -> None:
    """A line of the audit log, in the transaction of the act itself. It never has text of memory."""
    from psycopg.types.json import Jsonb

    connection.execute(
        "INSERT INTO audit (workspace, actor, act, detail) VALUES (%s, %s, %s, %s)",
        (workspace, actor, act, Jsonb(detail)),
    )
