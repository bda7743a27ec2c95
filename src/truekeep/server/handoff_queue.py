"""The queue of handoffs: what was handed in and is not filed yet. Once a handoff is in it, it is acknowledged.

A handoff is its bytes: handing the same in again, at the same time or years later, gives the first one's state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import BadInput, TruekeepError
from truekeep.core.model import WRITERS
from truekeep.handoffs.sync.mirror import unwanted
from truekeep.server.accounts import Caller, WorkspaceAccess, note
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.memory.ledger import HandoffRow
    from truekeep.server.database import TeamDatabase

MAX_BYTES = 1 << 20
MAX_ATTEMPTS = 20  # of filing one handoff; then it stays in the queue as failed, and a person is told
BATCH = 100
_ALONE_AFTER = 3  # attempts; then it is filed without others, so that it cannot hold them up


class Quotas(NamedTuple):
    """How much may wait, and how much one account may hand in."""

    waiting: int = 20_000  # in one workspace
    daily: int = 2_000  # of one account in one workspace, in 24 hours


class QuotaExceeded(TruekeepError):
    """Too much is waiting, or too much came from one account. Nothing was taken."""

    code = "quota-exceeded"


class HandoffTooLarge(BadInput):
    code = "too-large"


class HandedIn(NamedTuple):
    """A handoff of the queue, as the one who handed it in is told."""

    digest: str
    state: str  # waiting, done, failed
    outcome: str  # once it is done: promoted, routed, review, refused, already
    target: str
    is_new: bool = False


class QueuedHandoff(NamedTuple):
    """A handoff that waits."""

    id: int
    digest: bytes
    name: str
    writer: str
    machine: str
    repository: str
    raw: bytes
    attempts: int


def hand_in(
    database: TeamDatabase,
    caller: Caller,
    reach: WorkspaceAccess,
    raw: bytes,
    *,
    name: str,
    writer: str,
    machine: str,
    repository: str,
    quotas: Quotas,
) -> HandedIn:
    """Put a handoff into the queue, durably; or say what became of the same one before."""
    if len(raw) > MAX_BYTES:
        raise HandoffTooLarge(f"a handoff has at most {MAX_BYTES >> 10} KiB", hint="one topic, plain facts")
    if not raw.strip():
        raise BadInput("the handoff is empty", hint="`truekeep handoff new` writes one")
    if why := unwanted(name, len(raw)):
        raise BadInput(f"the handoff's name {why}", hint="as in 2026-11-14-0900-proxy.md")
    if writer not in WRITERS:
        raise BadInput("there is no such writer", hint=f"one of {', '.join(WRITERS)}")
    digest = hashlib.sha256(raw).digest()
    with database.workspace(reach.id) as cursor:
        if (known := find(cursor, reach.id, digest)) is not None:
            return known
        _check_quotas(cursor, caller, reach, quotas)
        row = cursor.execute(
            "INSERT INTO handoff_queue (workspace, digest, account, name, writer, machine, repository, bytes)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING id",
            (
                reach.id,
                digest,
                caller.account,
                printable(name),
                writer,
                _plain(machine, 80),
                _plain(repository, 300),
                raw,
            ),
        ).fetchone()
        if row is None:  # another request was faster; its transaction is over, or this one would still wait
            known = find(cursor, reach.id, digest)
            assert known is not None
            return known
        note(cursor, caller.name, "handed-in", workspace=reach.id, sha256=digest.hex(), bytes=len(raw))
    return HandedIn(digest.hex(), "waiting", "", "", is_new=True)


def _plain(text: str, size: int) -> str:
    return withhold(printable(text))[:size]


def _check_quotas(cursor: Cursor[Any], caller: Caller, reach: WorkspaceAccess, quotas: Quotas) -> None:
    row = cursor.execute(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM handoff_queue WHERE workspace = %(w)s AND state = 'waiting'"
        " LIMIT %(waiting)s) AS few),"
        " (SELECT count(*) FROM (SELECT 1 FROM handoff_queue WHERE workspace = %(w)s AND account = %(a)s"
        " AND received_at > now() - interval '1 day' LIMIT %(daily)s) AS few)",
        {"w": reach.id, "a": caller.account, "waiting": quotas.waiting, "daily": quotas.daily},
    ).fetchone()
    assert row is not None
    if row[0] >= quotas.waiting:
        raise QuotaExceeded("too many handoffs wait to be filed here", hint="hand it in again in a few minutes")
    if row[1] >= quotas.daily:
        raise QuotaExceeded(f"this account handed in {quotas.daily} handoffs in a day", hint="hand it in tomorrow")


def find(cursor: Cursor[Any], workspace: int, digest: bytes) -> HandedIn | None:
    row = cursor.execute(
        "SELECT state, outcome, target FROM handoff_queue WHERE workspace = %s AND digest = %s", (workspace, digest)
    ).fetchone()
    return HandedIn(digest.hex(), *row) if row else None


def count_waiting(database: TeamDatabase, workspace: int) -> tuple[int, int]:
    """How many handoffs wait to be filed, and how many could not be."""
    with database.workspace(workspace) as cursor:
        row = cursor.execute(
            "SELECT count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'failed')"
            " FROM handoff_queue WHERE workspace = %s AND state <> 'done'",
            (workspace,),
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


# --- For the holder of the lease ------------------------------------------------------------------------------------


def take_batch(database: TeamDatabase, workspace: int) -> list[QueuedHandoff]:
    """The next handoffs to file, oldest first; one attempt more is noted of each, whatever becomes of it."""
    with database.workspace(workspace) as cursor:
        cursor.execute(
            "UPDATE handoff_queue SET state = 'failed', note = 'filing it did not succeed' WHERE workspace = %s"
            " AND state = 'waiting' AND attempts >= %s",
            (workspace, MAX_ATTEMPTS),
        )
        rows = cursor.execute(
            "SELECT id, digest, name, writer, machine, repository, bytes, attempts FROM handoff_queue"
            " WHERE workspace = %s AND state = 'waiting' ORDER BY id LIMIT %s",
            (workspace, BATCH),
        ).fetchall()
        waiting = [QueuedHandoff(*row) for row in rows]
        troubled = [item for item in waiting if item.attempts >= _ALONE_AFTER]
        chosen = [item for item in waiting if item not in troubled] or troubled[:1]
        cursor.execute(
            "UPDATE handoff_queue SET attempts = attempts + 1 WHERE workspace = %s AND id = ANY(%s)",
            (workspace, [item.id for item in chosen]),
        )
    return chosen


def settle(cursor: Cursor[Any], workspace: int, batch: Sequence[QueuedHandoff], known: dict[bytes, HandoffRow]) -> None:
    """Note what became of handoffs, in the transaction that files them. What the ledger does not know still waits."""
    for item in batch:
        if (row := known.get(item.digest)) is not None:
            cursor.execute(
                "UPDATE handoff_queue SET state = 'done', outcome = %s, target = %s, done_at = now()"
                " WHERE workspace = %s AND id = %s AND state = 'waiting'",
                (row.outcome, row.target, workspace, item.id),
            )
            note(cursor, "ingest", row.outcome, workspace=workspace, sha256=item.digest.hex(), target=row.target)
