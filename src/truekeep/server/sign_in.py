"""Sessions of people in browsers, in the database, so that any server process knows them.

A session belongs to an account. One that was started with a token reaches no more than the token does, and ends with
it. Only the hash of what the cookie has is kept.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from truekeep.server.accounts import Caller, Refused, WorkspaceAccess, hash_of, is_token

if TYPE_CHECKING:
    from truekeep.server.database import TeamDatabase

SESSION_SECONDS = 12 * 3600.0
PREFIX = "tks_"
_SESSION = re.compile(r"tks_[A-Za-z0-9_-]{43}\Z")


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
