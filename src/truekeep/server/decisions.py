"""Decisions of reviewers: any server process takes one, the holder of the lease carries it out, and the first one waits
for the result. So a request needs to know no other process, and a decision survives the process that took it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import BadInput, Busy, EditedSince, NotFound, TruekeepError
from truekeep.server import assignments
from truekeep.server.accounts import Caller, WorkspaceAccess, note

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.server.database import TeamDatabase
    from truekeep.workspace.workspace import Workspace

WAIT_SECONDS = 30.0
_PAUSE = 0.05
_KINDS = {kind.code: kind for kind in (BadInput, NotFound, EditedSince)}


class ReviewDecision(NamedTuple):
    """A decision that waits to be carried out."""

    id: uuid.UUID
    actor: str
    verb: str
    arguments: Mapping[str, Any]


def submit(
    database: TeamDatabase,
    caller: Caller,
    reach: WorkspaceAccess,
    verb: str,
    arguments: Mapping[str, Any],
    number: uuid.UUID,
) -> None:
    """Take a decision. The same number again is the same decision."""
    from psycopg.types.json import Jsonb

    with database.workspace(reach.id) as cursor:
        cursor.execute(
            "INSERT INTO decision (id, workspace, account, actor, verb, arguments) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (number, reach.id, caller.account, caller.name, verb, Jsonb(dict(arguments))),
        )


def wait_for(
    database: TeamDatabase, reach: WorkspaceAccess, number: uuid.UUID, *, seconds: float = WAIT_SECONDS
) -> dict[str, Any]:
    """The result of a decision. Raises the error that it ended with; Busy if it is not carried out in time."""
    end = time.monotonic() + seconds
    while True:
        with database.workspace(reach.id) as cursor:
            row = cursor.execute(
                "SELECT state, result FROM decision WHERE workspace = %s AND id = %s", (reach.id, number)
            ).fetchone()
        if row is not None and row[0] == "done":
            return _result(row[1])
        if time.monotonic() > end:
            raise Busy("the decision is taken and not carried out yet", hint="look at the review list in a minute")
        time.sleep(_PAUSE)


def _result(given: dict[str, Any]) -> dict[str, Any]:
    if "error" not in given:
        return given
    told = given["error"]
    raise _KINDS.get(told["code"], BadInput)(told["message"], hint=told["hint"])


# --- For the holder of the lease ------------------------------------------------------------------------------------


def waiting(database: TeamDatabase, workspace: int) -> list[ReviewDecision]:
    with database.workspace(workspace) as cursor:
        rows = cursor.execute(
            "SELECT id, actor, verb, arguments FROM decision WHERE workspace = %s AND state = 'waiting'"
            " ORDER BY created_at LIMIT 100",
            (workspace,),
        ).fetchall()
    return [ReviewDecision(*row) for row in rows]


def carry_out(workspace: Workspace, decision: ReviewDecision) -> dict[str, Any]:
    """Do what was decided, in the reviewer's name. An error that concerns the reviewer is a result."""
    workspace.context.actor = decision.actor
    given = decision.arguments
    try:
        if decision.verb == "approve":
            made = workspace.review.approve(
                given["draft"], target=given["target"], seen=given["seen"], anyway=given["anyway"]
            )
            return {"outcome": made.outcome, "target": made.target}
        draft = workspace.review.reject(given["draft"], reason=given["reason"], seen=given["seen"])
    except (BadInput, EditedSince) as error:
        return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    except TruekeepError:
        raise
    return {"outcome": "rejected", "target": draft.path}


def settle(cursor: Cursor[Any], workspace: int, decision: ReviewDecision, result: Mapping[str, Any]) -> None:
    """Note the result, in the transaction of the change."""
    from psycopg.types.json import Jsonb

    cursor.execute(
        "UPDATE decision SET state = 'done', result = %s, done_at = now() WHERE workspace = %s AND id = %s",
        (Jsonb(dict(result)), workspace, decision.id),
    )
    if "outcome" in result:
        assignments.forget(cursor, workspace, decision.arguments["draft"])
    done = "approved" if decision.verb == "approve" else "rejected"
    how = result.get("outcome") or f"not {done}: {result['error']['code']}"
    note(
        cursor, decision.actor, decision.verb, workspace=workspace,
        draft=decision.arguments["draft"], result=how, target=result.get("target", ""),
    )  # fmt: skip
