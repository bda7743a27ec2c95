"""Who looks at a draft: a reviewer of its workspace, or nobody. Any other reviewer may still decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truekeep.core.errors import BadInput, EditedSince
from truekeep.server.accounts import Caller, WorkspaceAccess, note

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.server.database import TeamDatabase


def reviewers(database: TeamDatabase, workspace: int) -> list[str]:
    """Who may decide on drafts of a workspace."""
    with database.workspace(workspace) as cursor:
        return [name for _, name in _reviewers(cursor)]


def _reviewers(cursor: Cursor[Any]) -> list[tuple[int, str]]:
    return cursor.execute("SELECT account, name FROM reviewers()").fetchall()


def assignees(database: TeamDatabase, workspace: int) -> dict[str, str]:
    """The assignee of each draft that has one. Who is no reviewer any more is none."""
    with database.workspace(workspace) as cursor:
        return dict(
            cursor.execute(
                "SELECT a.draft, r.name FROM assignment a JOIN reviewers() r ON r.account = a.account"
                " WHERE a.workspace = %s",
                (workspace,),
            ).fetchall()
        )


def assign(
    database: TeamDatabase, caller: Caller, reach: WorkspaceAccess, draft: str, name: str, *, was: str | None = None
) -> None:
    """Give a draft to a reviewer; "" takes it from whoever has it. `was`: who had it when the person looked."""
    with database.workspace(reach.id) as cursor:
        known = {reviewer: account for account, reviewer in _reviewers(cursor)}
        if name and name not in known:
            raise BadInput("there is no such reviewer here", hint=f"one of {', '.join(known) or 'nobody yet'}")
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", (draft, reach.id))
        row = cursor.execute(
            "SELECT r.name FROM assignment a JOIN reviewers() r ON r.account = a.account"
            " WHERE a.workspace = %s AND a.draft = %s",
            (reach.id, draft),
        ).fetchone()
        has = row[0] if row else ""
        if was is not None and was != has:
            raise EditedSince(
                f"meanwhile it was given to {has}" if has else "meanwhile it was taken from its reviewer",
                hint="look at it again",
            )
        if name == has:
            return
        cursor.execute("DELETE FROM assignment WHERE workspace = %s AND draft = %s", (reach.id, draft))
        if name:
            cursor.execute(
                "INSERT INTO assignment (workspace, draft, account, assigned_by) VALUES (%s, %s, %s, %s)",
                (reach.id, draft, known[name], caller.name),
            )
        note(cursor, caller.name, "assigned", workspace=reach.id, draft=draft, to=name)


def forget(cursor: Cursor[Any], workspace: int, draft: str) -> None:
    """A draft was decided, in this transaction."""
    cursor.execute("DELETE FROM assignment WHERE workspace = %s AND draft = %s", (workspace, draft))


def handed_in_by(database: TeamDatabase, workspace: int, digests: list[bytes]) -> dict[str, str]:
    """The accounts that handed these in, by the hexadecimal digest of the handoff."""
    if not digests:
        return {}
    with database.workspace(workspace) as cursor:
        rows = cursor.execute("SELECT digest, name FROM handed_in_by(%s)", (digests,)).fetchall()
    return {bytes(digest).hex(): name for digest, name in rows}
