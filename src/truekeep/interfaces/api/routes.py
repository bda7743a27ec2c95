"""What the API offers: each route with the role it needs and the function that answers it.

A function gets the request as plain values and gives what becomes JSON. It runs in a thread and may wait.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truekeep import __version__
from truekeep.core.dates import parse_since
from truekeep.core.errors import BadInput, NotFound
from truekeep.handoffs.draft import render_draft
from truekeep.handoffs.format import handoff_name, parse_handoff
from truekeep.interfaces.api.access import Asked
from truekeep.interfaces.cli.json_fields import to_json
from truekeep.memory.file_scan import STORES
from truekeep.server import assignments, handoff_queue
from truekeep.server.accounts import read_audit
from truekeep.server.handoff_queue import Quotas, hand_in
from truekeep.server.reader import INDEXED_SECONDS
from truekeep.server.team_server import TeamServer
from truekeep.text.encoding import decode_text
from truekeep.workspace.review import DraftFilter

MAX_QUERY = 10_000
MAX_HITS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One allowed request."""

    server: TeamServer
    asked: Asked
    quotas: Quotas
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    given: Mapping[str, Any] | None = None  # the body, where it is JSON

    def text(self, key: str, default: str = "", *, limit: int = 300) -> str:
        value = self.query.get(key, default)
        if len(value) > limit or "\0" in value:
            raise BadInput(f"{key} is too long or has a zero byte", hint=f"at most {limit} characters")
        return value

    def number(self, key: str, default: int | None, *, least: int, most: int) -> int | None:
        value = self.query.get(key, "")
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and len(value) < 12 and least <= int(value) <= most):
            raise BadInput(f"{key} is no number from {least} to {most}", hint=f"{key}={least}")
        return int(value)


class Answer(NamedTuple):
    """An answer that is not plain JSON with status 200."""

    data: Any
    status: int = 200
    is_bytes: bool = False


def post_handoff(call: Call) -> Answer:
    name = call.text("name") or _name_of(call)
    done = hand_in(
        call.server.database, call.asked.caller, call.asked.reach, call.body,
        name=name,
        writer=call.text("writer", "claude"),
        machine=call.text("machine"),
        repository=call.text("repository"),
        quotas=call.quotas,
    )  # fmt: skip
    if done.is_new:
        call.server.wake()
    return Answer(_shown_handoff(done), 202 if done.state == "waiting" else 200)


def _name_of(call: Call) -> str:
    from truekeep.core.memory_copy import now_utc

    return handoff_name(parse_handoff(decode_text(call.body[:65_536]) or "").title, now_utc())


def _shown_handoff(done: handoff_queue.HandedIn) -> dict[str, str]:
    return {"sha256": done.digest, "state": done.state, "outcome": done.outcome, "target": done.target}


def get_handoff(call: Call) -> dict[str, str]:
    digest = call.path["digest"]
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise BadInput("a handoff is named by its SHA-256", hint="64 lower-case hexadecimal digits")
    with call.server.database.workspace(call.asked.reach.id) as cursor:
        found = handoff_queue.find(cursor, call.asked.reach.id, bytes.fromhex(digest))
    if found is None:
        raise NotFound("no such handoff was handed in here", hint="POST it to …/handoffs")
    return _shown_handoff(found)


def search(call: Call) -> dict[str, Any]:
    query = call.text("q", limit=MAX_QUERY)
    if not query.strip():
        raise BadInput("q is empty", hint="…/search?q=which+port")
    store = call.text("store")
    if store and store not in STORES:
        raise BadInput("there is no such store", hint=f"one of {', '.join(STORES)}")
    limit = call.number("limit", None, least=1, most=MAX_HITS)
    with call.server.reading(call.asked.reach) as workspace:
        found = workspace.search.find(
            query,
            limit=limit,
            stores=(store,) if store else (),
            since=parse_since(call.text("since"), workspace.today()),
            repository=call.text("repository"),
            within=INDEXED_SECONDS,
        )
        return {**to_json(found), "version": call.asked.reach.version}


def get_memory(call: Call) -> dict[str, Any]:
    path = call.path["path"]
    if "\0" in path or len(path) > 4096:
        raise NotFound("no such memory file", hint="use a path that search gave")
    first = call.number("from", None, least=1, most=10**9)
    lines = call.number("lines", None, least=1, most=10_000)
    with call.server.reading(call.asked.reach) as workspace:
        found: dict[str, Any] = to_json(workspace.search.get(path, first=first, lines=lines))
        return found


def wake(call: Call) -> dict[str, Any]:
    tokens = call.number("tokens", None, least=100, most=100_000)
    with call.server.reading(call.asked.reach) as workspace:
        return {"text": workspace.sessions.wake(tokens=tokens, repository=call.text("repository")).text}


def resolve(call: Call) -> dict[str, Any]:
    topic = call.text("topic", limit=MAX_QUERY)
    if not topic.strip():
        raise BadInput("topic is empty", hint="…/resolve?topic=staging+port")
    with call.server.reading(call.asked.reach) as workspace:
        found: dict[str, Any] = to_json(workspace.verification.resolve(topic))
        return found


def status(call: Call) -> dict[str, Any]:
    """How the workspace is. Nothing of the server's machine is in it."""
    reach = call.asked.reach
    with call.server.reading(reach) as workspace:
        index = workspace.search.status()
        drafts = len(workspace.review.drafts())
    waiting, failed = handoff_queue.count_waiting(call.server.database, reach.id)
    return {
        "workspace": reach.name, "role": reach.role, "version": reach.version, "truekeep": __version__,
        "files": dict(index.files), "chunks": index.chunks, "drafts": drafts, "waiting": waiting, "failed": failed,
    }  # fmt: skip


def list_drafts(call: Call) -> dict[str, Any]:
    assignees = assignments.assignees(call.server.database, call.asked.reach.id)
    with call.server.reading(call.asked.reach) as workspace:
        listed, _ = workspace.review.find(DraftFilter())
        return {
            "account": call.asked.caller.name,
            "drafts": [
                {
                    **to_json(item.draft),
                    "assignee": assignees.get(item.draft.id, ""),
                    "title": workspace.review.title(item.draft),
                    "outdated": list(item.outdated),
                    "file": _encoded(render_draft(item.draft)),
                }
                for item in listed
            ],
        }


def show_draft(call: Call) -> dict[str, Any]:
    """A draft with what approving it would write. `seen` goes along with the decision."""
    assignees = assignments.assignees(call.server.database, call.asked.reach.id)
    with call.server.reading(call.asked.reach) as workspace:
        proposal = workspace.review.show(call.path["draft"], target=call.text("target"))
        draft, decision = proposal.draft, proposal.decision
        return {
            **to_json(draft),
            "assignee": assignees.get(draft.id, ""),
            "title": decision.title,
            "outdated": workspace.review.outdated(draft),
            "file": _encoded(render_draft(draft)),
            "would": decision.outcome,
            "would_write": decision.target,
            "findings": to_json(decision.findings),
            "blocking": to_json(decision.blocking),
            "blocked": proposal.blocker.message if proposal.blocker is not None else "",
            "difference": to_json(proposal.difference),
            "edits": [[edit.path, _encoded(edit.before), _encoded(edit.after)] for edit in proposal.edits],
            "seen": proposal.seen,
        }


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def approve(call: Call) -> dict[str, Any]:
    anyway = (call.given or {}).get("anyway") is True
    return _decide(call, "approve", {"target": _given(call, "target"), "anyway": anyway})


def reject(call: Call) -> dict[str, Any]:
    return _decide(call, "reject", {"reason": _given(call, "reason")})


def _given(call: Call, key: str) -> str:
    value = (call.given or {}).get(key, "")
    if not isinstance(value, str) or len(value) > 1_000 or "\0" in value:
        raise BadInput(f"{key} is no text of at most 1,000 characters", hint="send a JSON object")
    return value


def assign(call: Call) -> dict[str, str]:
    """Give a draft to a reviewer; "" to nobody. `was` says who had it when the person looked."""
    given, draft = call.given or {}, call.path["draft"]
    was = _given(call, "was") if "was" in given else None
    with call.server.reading(call.asked.reach) as workspace:
        draft = workspace.review.show(draft).draft.id
    caller, reach = call.asked
    assignments.assign(call.server.database, caller, reach, draft, _given(call, "assignee"), was=was)
    return {"draft": draft, "assignee": _given(call, "assignee")}


def _decide(call: Call, verb: str, more: dict[str, Any]) -> dict[str, Any]:
    seen = (call.given or {}).get("seen")
    is_seen = isinstance(seen, dict) and all(
        isinstance(value, str) and "\0" not in key + value for key, value in seen.items()
    )
    if not is_seen or not seen:
        raise BadInput("seen is missing: what the reviewer saw", hint="GET the draft, and send its `seen` along")
    try:
        number = uuid.UUID(_given(call, "id")) if _given(call, "id") else uuid.uuid4()
    except ValueError as error:
        raise BadInput("id is no UUID", hint="leave it out, or send a new one with each decision") from error
    caller, reach = call.asked
    done = call.server.decide(caller, reach, verb, {"draft": call.path["draft"], "seen": seen, **more}, number)
    return {"id": str(number), **done}


def audit(call: Call) -> dict[str, Any]:
    before = call.number("before", 2**62, least=1, most=2**62) or 2**62
    rows = read_audit(call.server.database, call.asked.reach.id, before)
    return {
        "entries": [
            {"id": row.id, "at": row.at.isoformat(), "actor": row.actor, "act": row.act, **row.detail} for row in rows
        ]
    }


def publication_head(call: Call) -> Answer:
    return Answer(call.server.read_head(call.asked.reach), is_bytes=True)


def publication_object(call: Call) -> Answer:
    return Answer(call.server.publications(call.asked.reach).read_object(call.path["digest"]), is_bytes=True)


class ApiRoute(NamedTuple):
    """One route below /api/v1/workspaces/{workspace}."""

    method: str
    path: str
    role: str
    answer: Callable[[Call], Any]
    body: int = 0  # bytes at most
    is_json: bool = False


ROUTES = (
    ApiRoute("GET", "/status", "reader", status),
    ApiRoute("GET", "/search", "reader", search),
    ApiRoute("GET", "/memory/{path:path}", "reader", get_memory),
    ApiRoute("GET", "/wake", "reader", wake),
    ApiRoute("GET", "/resolve", "reader", resolve),
    ApiRoute("GET", "/publication/head", "reader", publication_head),
    ApiRoute("GET", "/publication/objects/{digest}", "reader", publication_object),
    ApiRoute("POST", "/handoffs", "writer", post_handoff, handoff_queue.MAX_BYTES),
    ApiRoute("GET", "/handoffs/{digest}", "writer", get_handoff),
    ApiRoute("GET", "/review", "reviewer", list_drafts),
    ApiRoute("GET", "/review/{draft}", "reviewer", show_draft),
    ApiRoute("POST", "/review/{draft}/approve", "reviewer", approve, 262_144, is_json=True),
    ApiRoute("POST", "/review/{draft}/reject", "reviewer", reject, 262_144, is_json=True),
    ApiRoute("POST", "/review/{draft}/assign", "reviewer", assign, 4_096, is_json=True),
    ApiRoute("GET", "/audit", "owner", audit),
)
