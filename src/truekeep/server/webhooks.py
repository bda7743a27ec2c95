"""Webhooks: a POST to an address of the team's choice when drafts begin to wait in a workspace.

A message is a row that is written in the transaction that makes the drafts; so none is lost, and none tells of what
did not happen. The holder of the workspace's lease sends it, signed as Standard Webhooks has it
(https://www.standardwebhooks.com), and tries again later if it was not taken. A second message while one waits takes
its place: the newer one has the newer count.
"""

from __future__ import annotations

import json
import secrets
import uuid
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from truekeep.core.dates import as_stamp
from truekeep.core.errors import BadInput, NotFound
from truekeep.core.model import REVIEW
from truekeep.handoffs.draft import parse_draft
from truekeep.handoffs.format import parse_handoff
from truekeep.server.accounts import note, workspace_id
from truekeep.server.database import as_owner
from truekeep.server.webhook_delivery import check_webhook_url, post
from truekeep.text.encoding import decode_text
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import clip, printable

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.server.database import TeamDatabase
    from truekeep.server.record import RecordChange

RETRY_SECONDS = (30.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0)  # after each attempt; the last one is given up
MAX_TITLES = 20
_SECRET_PREFIX = "whsec_"  # noqa: S105 - of Standard Webhooks, for every secret
_LEAST_SECRET_BYTES, _MOST_SECRET_BYTES = 24, 64


# --- When a change is committed -------------------------------------------------------------------------------------


def note_new_drafts(cursor: Cursor[Any], workspace: int, change: RecordChange, contents: Mapping[bytes, bytes]) -> None:
    """Leave a message for each webhook if a change brings drafts. The change is not written yet."""
    touched = {file.path: file.sha256 for file in change.files if _is_draft(file.path)}
    if not any(touched.values()):
        return
    hooks = cursor.execute(
        "SELECT id, with_titles, site FROM webhook WHERE workspace = %s ORDER BY id", (workspace,)
    ).fetchall()
    if not hooks:
        return
    before = {
        path
        for (path,) in cursor.execute(
            "SELECT path FROM memory_file WHERE workspace = %s AND sha256 IS NOT NULL AND path LIKE %s",
            (workspace, f"{REVIEW}/%"),
        )
        if _is_draft(path)
    }
    new = sorted(path for path, digest in touched.items() if digest is not None and path not in before)
    if not new:
        return
    count = len((before | set(new)) - {path for path, digest in touched.items() if digest is None})
    row = cursor.execute("SELECT name FROM workspace WHERE id = %s", (workspace,)).fetchone()
    assert row is not None
    titles = [_titled(path, contents.get(touched[path] or b"")) for path in new[:MAX_TITLES]]
    for hook, with_titles, site in hooks:
        data = {"workspace": row[0], "waiting": count, "new": len(new), **_link(site, row[0])}
        _queue(cursor, workspace, hook, "drafts.waiting", data | ({"drafts": titles} if with_titles else {}))


def _is_draft(path: str) -> bool:
    return path.startswith(f"{REVIEW}/") and path.endswith(".md") and "/" not in path[len(REVIEW) + 1 :]


def _titled(path: str, data: bytes | None) -> dict[str, str]:
    draft = parse_draft(path.rpartition("/")[2], data or b"")
    title = parse_handoff(decode_text(draft.body[:64_000]) or "").title
    return {"id": draft.id, "title": clip(withhold(printable(title)), 120)}


def _link(site: str, workspace: str) -> dict[str, str]:
    return {"link": f"{site}/workspaces/{workspace}/review"} if site else {}


def _queue(cursor: Cursor[Any], workspace: int, hook: int, kind: str, data: Mapping[str, Any]) -> None:
    earlier = cursor.execute(
        "DELETE FROM webhook_message WHERE workspace = %s AND webhook = %s AND state = 'waiting'"
        " RETURNING attempts, due_at",
        (workspace, hook),
    ).fetchone()  # an address that does not answer is not asked more often because there is more to tell
    attempts, due_at = earlier if earlier is not None and earlier[0] else (0, None)
    cursor.execute(
        "INSERT INTO webhook_message (id, workspace, webhook, body, attempts, due_at)"
        " VALUES (%s, %s, %s, %s, %s, coalesce(%s, now()))",
        (uuid.uuid4(), workspace, hook, _render(kind, data), attempts, due_at),
    )


def _render(kind: str, data: Mapping[str, Any]) -> str:
    return json.dumps({"type": kind, "timestamp": as_stamp(datetime.now(UTC)), "data": data}, ensure_ascii=False)


# --- Sending, for the holder of the lease ---------------------------------------------------------------------------


class WebhookSender:
    """Sends what is due in the workspaces that one server process holds."""

    def __init__(
        self, database: TeamDatabase, holder: str, *, allow_private: bool, report: Callable[[str], None]
    ) -> None:
        self._database, self._holder = database, holder
        self._allow_private, self._report = allow_private, report

    def send_next(self) -> bool:
        """Send one message that is due; False if there is none."""
        message = self._take()
        if message is None:
            return False
        workspace, number, attempts, body, url, secret = message
        problem = post(url, secret, str(number), body, allow_private=self._allow_private)
        self._settle(workspace, number, attempts, problem)
        if problem:
            self._report(f"workspace {workspace}: a webhook was not taken: {problem}")
        return True

    def _take(self) -> tuple[int, uuid.UUID, int, str, str, str] | None:
        with self._database.plain() as cursor:
            row: tuple[int, uuid.UUID, int, str, str, str] | None = cursor.execute(
                "SELECT workspace, id, attempts, body, url, secret FROM take_webhook_message(%s, %s)",
                (self._holder, list(RETRY_SECONDS)),
            ).fetchone()
        return row

    def _settle(self, workspace: int, number: uuid.UUID, attempts: int, problem: str) -> None:
        state = "done" if not problem else "failed" if attempts > len(RETRY_SECONDS) else "waiting"
        with self._database.workspace(workspace) as cursor:
            cursor.execute(
                "UPDATE webhook_message SET state = %s, problem = %s,"
                " done_at = CASE WHEN %s = 'waiting' THEN NULL ELSE now() END WHERE workspace = %s AND id = %s",
                (state, problem, state, workspace, number),
            )
            cursor.execute(
                "DELETE FROM webhook_message WHERE workspace = %s AND state <> 'waiting'"
                " AND done_at < now() - interval '30 days'",
                (workspace,),
            )


# --- Administration, as the owner of the database -------------------------------------------------------------------


class WebhookRow(NamedTuple):
    """A webhook as lists show it."""

    id: int
    workspace: str
    url: str
    with_titles: bool
    site: str
    waiting: int
    failed: int
    last_sent: datetime | None
    problem: str  # of the newest message, if it was not taken


def add_webhook(
    url: str, workspace: str, target: str, *, secret: str, with_titles: bool, site: str, allow_private: bool
) -> tuple[int, str]:
    """Add a webhook to a workspace; gives its number and secret, which is made if none is given."""
    target = check_webhook_url(target, allow_private=allow_private)
    secret = _check_secret(secret) if secret else _SECRET_PREFIX + b64encode(secrets.token_bytes(32)).decode()
    with as_owner(url) as connection:
        number = workspace_id(connection, workspace)
        row = connection.execute(
            "INSERT INTO webhook (workspace, url, secret, with_titles, site) VALUES (%s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING RETURNING id",
            (number, target, secret, with_titles, site),
        ).fetchone()
        if row is None:
            raise BadInput("the workspace tells this address already", hint="`truekeep server webhook list`")
        note(connection, "admin", "webhook-added", workspace=number, webhook=row[0], host=urlsplit(target).netloc)
    return int(row[0]), secret


def _check_secret(given: str) -> str:
    from base64 import b64decode

    try:
        size = len(b64decode(given.removeprefix(_SECRET_PREFIX) + "==", validate=False))
    except ValueError:
        size = 0
    if not given.startswith(_SECRET_PREFIX) or not _LEAST_SECRET_BYTES <= size <= _MOST_SECRET_BYTES:
        raise BadInput(
            "that is no secret of a webhook",
            hint=f"{_SECRET_PREFIX} and {_LEAST_SECRET_BYTES} to {_MOST_SECRET_BYTES} random bytes in base64;"
            " without --secret-file one is made",
        )
    return given


def list_webhooks(url: str) -> list[WebhookRow]:
    with as_owner(url) as connection:
        rows = connection.execute(
            "SELECT h.id, w.name, h.url, h.with_titles, h.site,"
            " count(m.id) FILTER (WHERE m.state = 'waiting'), count(m.id) FILTER (WHERE m.state = 'failed'),"
            " max(m.done_at) FILTER (WHERE m.state = 'done'),"
            " coalesce((array_agg(m.problem ORDER BY m.created_at DESC) FILTER (WHERE m.id IS NOT NULL))[1], '')"
            " FROM webhook h JOIN workspace w ON w.id = h.workspace"
            " LEFT JOIN webhook_message m ON m.webhook = h.id GROUP BY h.id, w.name ORDER BY w.name, h.id"
        ).fetchall()
    return [WebhookRow(*row) for row in rows]


def remove_webhook(url: str, number: int) -> None:
    """Remove a webhook, with what still waits for it."""
    with as_owner(url) as connection:
        row = connection.execute("DELETE FROM webhook WHERE id = %s RETURNING workspace", (number,)).fetchone()
        if row is None:
            raise _no_webhook(number)
        note(connection, "admin", "webhook-removed", workspace=row[0], webhook=number)


def send_test_message(url: str, number: int, *, allow_private: bool) -> str:
    """Send a test message now, from this machine; gives why it was not taken, or ""."""
    with as_owner(url) as connection:
        row = connection.execute(
            "SELECT h.url, h.secret, h.site, w.name FROM webhook h JOIN workspace w ON w.id = h.workspace"
            " WHERE h.id = %s",
            (number,),
        ).fetchone()
    if row is None:
        raise _no_webhook(number)
    target, secret, site, workspace = row
    body = _render("test", {"workspace": workspace, **_link(site, workspace)})
    return post(target, secret, str(uuid.uuid4()), body, allow_private=allow_private)


def _no_webhook(number: int) -> NotFound:
    return NotFound(f"there is no webhook {number}", hint="`truekeep server webhook list` shows them")
