"""Sessions of people in browsers, in the database, so that any server process knows them.

A session belongs to an account. One that was started with a token reaches no more than the token does, and ends with
it. Only the hash of what the cookie has is kept.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.errors import BadInput, NotFound, TruekeepError
from truekeep.server.accounts import (
    Caller,
    Refused,
    WorkspaceAccess,
    account_id,
    hash_of,
    is_account_name,
    is_token,
    note,
)
from truekeep.server.database import as_owner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truekeep.server.database import TeamDatabase

SESSION_SECONDS = 12 * 3600.0
PREFIX = "tks_"
_SESSION = re.compile(r"tks_[A-Za-z0-9_-]{43}\Z")


class ProviderFailed(TruekeepError):
    """The OpenID provider does not answer, or not as it should."""

    code = "openid-provider"


class SignInRefused(TruekeepError):
    """The provider did not vouch for anybody, or for somebody who may not sign in here."""

    code = "sign-in-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenIDSettings:
    """How an OpenID provider knows a deployment. The secret comes from the environment or a file, not the database."""

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    domains: tuple[str, ...] = ()  # people with a verified address there get an account when they first sign in


class OpenIDIdentity(NamedTuple):
    """Whom an OpenID provider vouches for. `email` is "" unless the provider says that it verified the address."""

    issuer: str
    subject: str
    email: str


def start_with_token(database: TeamDatabase, token: str) -> str | Refused:
    """Sign in with a token; gives what the cookie gets."""
    if not is_token(token):
        return Refused("unknown")
    session = _new_session()
    with database.plain() as cursor:
        row = cursor.execute(
            "SELECT start_token_session(%s, %s, %s)", (hash_of(token), hash_of(session), SESSION_SECONDS)
        ).fetchone()
    assert row is not None
    return Refused(row[0]) if row[0] else session


def start_with_identity(database: TeamDatabase, identity: OpenIDIdentity, domains: Sequence[str]) -> str | Refused:
    """Sign in whom an OpenID provider vouched for; a verified address in one of the domains gets an account."""
    _, _, domain = identity.email.rpartition("@")
    new_name = identity.email if domain in domains and is_account_name(identity.email) else ""
    session = _new_session()
    with database.plain() as cursor:
        row = cursor.execute(
            "SELECT problem FROM start_identity_session(%s, %s, %s, %s, %s, %s)",
            (identity.issuer, identity.subject, identity.email, new_name, hash_of(session), SESSION_SECONDS),
        ).fetchone()
    assert row is not None
    return Refused(row[0]) if row[0] else session


def _new_session() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def find_signed_in(database: TeamDatabase, session: str) -> Caller | Refused:
    """Whose session this is, with every workspace that it reaches now."""
    if not _SESSION.match(session):
        return Refused("unknown")
    digest = hash_of(session)
    with database.plain() as cursor:
        row = cursor.execute("SELECT session, account, name, problem FROM find_session(%s)", (digest,)).fetchone()
        if row is None or row[0] is None:
            return Refused("unknown")
        number, account, name, problem = row
        if problem:
            return Refused(problem)
        reaches = cursor.execute(
            "SELECT workspace, name, role, version FROM session_reachable(%s)", (digest,)
        ).fetchall()
    return Caller(account, name, number, tuple(WorkspaceAccess(*reach) for reach in reaches))


def end(database: TeamDatabase, session: str) -> None:
    """Sign out. The next request with this session is refused."""
    if _SESSION.match(session):
        with database.plain() as cursor:
            cursor.execute("SELECT end_session(%s)", (hash_of(session),))


# --- Administration, as the owner of the database -------------------------------------------------------------------


class LinkRow(NamedTuple):
    """Somebody of an OpenID provider, and the account that is theirs."""

    account: str
    issuer: str
    subject: str | None
    email: str | None


def link(url: str, account: str, issuer: str, *, subject: str = "", email: str = "") -> None:
    """Let somebody of an OpenID provider sign in as this account, by their subject or a verified address."""
    email = email.strip().lower()
    if bool(subject) == bool(email) or (email and email.count("@") != 1):
        raise BadInput("a link names a subject or an e-mail address", hint="--email ada@example.com")
    with as_owner(url) as connection:
        number = account_id(connection, account, make=True)
        taken = connection.execute(
            "SELECT a.name FROM identity i JOIN account a ON a.id = i.account"
            " WHERE i.issuer = %s AND (i.subject = %s OR (i.subject IS NULL AND i.email = %s))",
            (issuer, subject, email),
        ).fetchone()
        if taken is not None:
            raise BadInput(f"{subject or email} signs in as {taken[0]} already", hint="`truekeep server unlink` first")
        connection.execute(
            "INSERT INTO identity (account, issuer, subject, email) VALUES (%s, %s, nullif(%s, ''), nullif(%s, ''))",
            (number, issuer, subject, email),
        )
        note(connection, "admin", "linked", account=account, issuer=issuer, subject=subject, email=email)


def unlink(url: str, account: str) -> int:
    """End all links of an account, and what was begun by them: sessions, and programs that were allowed something.

    Gives how many links there were.
    """
    with as_owner(url) as connection:
        number = account_id(connection, account)
        ended = connection.execute("DELETE FROM identity WHERE account = %s", (number,)).rowcount
        if not ended:
            raise NotFound(f"{account} is linked to nobody", hint="`truekeep server links` lists the links")
        connection.execute(
            "UPDATE browser_session SET revoked_at = now() WHERE account = %s AND revoked_at IS NULL AND token IS NULL",
            (number,),
        )
        connection.execute(
            "SELECT end_oauth_grant(id, 'the account was unlinked') FROM oauth_grant"
            " WHERE account = %s AND signed_in_with IS NULL",
            (number,),
        )
        connection.execute(  # what was allowed, and not fetched yet
            "DELETE FROM oauth_code WHERE account = %s AND signed_in_with IS NULL AND used_at IS NULL", (number,)
        )
        note(connection, "admin", "unlinked", account=account)
        return ended


def list_links(url: str) -> list[LinkRow]:
    with as_owner(url) as connection:
        rows = connection.execute(
            "SELECT a.name, i.issuer, i.subject, i.email FROM identity i"
            " JOIN account a ON a.id = i.account ORDER BY 1, 2"
        ).fetchall()
    return [LinkRow(*row) for row in rows]
