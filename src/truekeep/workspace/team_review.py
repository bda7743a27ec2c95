"""The review queue of a team server, for a machine that has a copy of its memory.

Drafts are not in copies: they are read from the server, which also carries out what is decided. What a reviewer saw
goes along with the decision, so that nothing is filed that they did not see.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.machine import own_state
from truekeep.core.model import Finding
from truekeep.handoffs.draft import Draft, parse_draft
from truekeep.handoffs.policy.decision import Decision
from truekeep.handoffs.review import FileChange, Proposal
from truekeep.handoffs.sync.routes import read_routes
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.handoffs.sync.server_login import TeamClient
from truekeep.workspace.review import DraftFilter, ListedDraft

if TYPE_CHECKING:
    from truekeep.handoffs.sync.routes import Route
    from truekeep.workspace.review import ReviewQueue
    from truekeep.workspace.workspace import Workspace


def review_of(workspace: Workspace) -> ReviewQueue | TeamReview:
    """The queue that this machine decides on: the workspace's own, or the server's that its memory comes from."""
    route = _server_of(workspace)
    return TeamReview(route) if route is not None else workspace.review


def team_page(workspace: Workspace) -> str:
    """The address of the workspace's pages on the team server that its memory comes from; "" if from none."""
    route = _server_of(workspace)
    if route is None:
        return ""
    return f"{route.text('url')}/workspaces/{quote(route.text('workspace'), safe='')}"


def _server_of(workspace: Workspace) -> Route | None:
    source = workspace.source
    route = read_routes(Path(own_state())).get(source.route) if source is not None else None
    return route if route is not None and route.via == "server" else None


class TeamReview:
    """The drafts of one workspace on a server."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._outdated: dict[str, Sequence[str]] = {}
        self.account = ""  # of this machine's token, once the list was asked for

    def drafts(self) -> list[Draft]:
        return [listed.draft for listed in self._list()]

    def find(self, chosen: DraftFilter) -> tuple[Sequence[ListedDraft], int]:
        """The chosen drafts, oldest first, and the number of all drafts."""
        listed = self._list()
        return [item for item in listed if chosen.matches(item.draft)], len(listed)

    def _list(self) -> list[ListedDraft]:
        found = self._ask(lambda client: client.get("/review"))
        self.account = str(found.get("account", ""))
        listed = [
            ListedDraft(_draft(item), _texts(item.get("outdated")), str(item.get("assignee", "")))
            for item in _items(found.get("drafts"))
        ]
        self._outdated = {item.draft.id: item.outdated for item in listed}
        return listed

    def outdated(self, draft: Draft) -> Sequence[str]:
        """The cards that changed since the draft was made from them."""
        return self._outdated.get(draft.id, ())

    def show(self, wanted: str, *, target: str = "", exact: bool = False) -> Proposal:  # noqa: ARG002 - as the other one
        """One draft, with what approving it would write."""
        given = self._ask(lambda client: client.get(f"/review/{quote(wanted, safe='')}", target=target))
        draft = _draft(given)
        draft = replace(draft, file_digest=str(given["seen"].get(draft.path, "")))
        self._outdated[draft.id] = _texts(given.get("outdated"))
        decision = Decision(
            outcome=given["would"],
            target=str(given["would_write"]),
            title=str(given["title"]),
            findings=tuple(_finding(item) for item in _items(given.get("findings"))),
            blocking=tuple(_finding(item) for item in _items(given.get("blocking"))),
        )
        edits = tuple(FileChange(str(path), _bytes(before), _bytes(after)) for path, before, after in given["edits"])
        return Proposal(draft=draft, decision=decision, edits=edits)

    def approve(
        self, wanted: str, *, target: str = "", seen: Mapping[str, str] | None = None, anyway: bool = False
    ) -> Decision:
        """File a draft as it was seen; else as it is now."""
        proposal = self.show(wanted, target=target)
        given = {"target": target, "anyway": anyway}
        done = self._decide(proposal.draft.id, "approve", seen or proposal.seen, given)
        return Decision(outcome=done["outcome"], target=str(done["target"]))

    def reject(self, wanted: str, *, reason: str = "", seen: Mapping[str, str] | None = None) -> Draft:
        proposal = self.show(wanted)
        self._decide(proposal.draft.id, "reject", seen or proposal.seen, {"reason": reason})
        return proposal.draft

    def _decide(self, draft: str, verb: str, seen: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
        body = {"id": str(uuid.uuid4()), "seen": dict(seen), **given}
        return self._ask(lambda client: client.post(f"/review/{quote(draft, safe='')}/{verb}", body))

    def assign(self, wanted: str, to: str) -> tuple[str, str]:
        """Give a draft to a reviewer, "me" or "nobody"; gives its id and who has it now."""
        self._list()
        name = {"me": self.account, "nobody": ""}.get(to, to)
        body = {"assignee": name}
        done = self._ask(lambda client: client.post(f"/review/{quote(wanted, safe='')}/assign", body))
        return str(done["draft"]), str(done["assignee"])

    def edit(self, *_: object, **__: object) -> tuple[Draft, bool]:
        raise BadInput("a draft on a team server cannot be edited", hint="reject it, and hand in what it should say")

    def retry(self, *_: object) -> list[tuple[Draft, Decision]]:
        raise BadInput("drafts on a team server cannot be retried", hint="approve or reject them")

    def _ask(self, act: Callable[[TeamClient], dict[str, Any]]) -> dict[str, Any]:
        try:
            with TeamClient.of_route(self._route, Path(own_state())) as client:
                return act(client)
        except Unreachable as error:
            raise BadSetup(error.problem, hint=error.hint) from error


def _draft(given: Mapping[str, Any]) -> Draft:
    return parse_draft(f"{given['id']}.md", _bytes(given["file"]) or b"")


def _bytes(given: object) -> bytes | None:
    return base64.b64decode(given) if isinstance(given, str) else None


def _items(given: object) -> list[dict[str, Any]]:
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def _texts(given: object) -> list[str]:
    return [str(item) for item in given] if isinstance(given, list) else []


def _finding(given: Mapping[str, Any]) -> Finding:
    return Finding(str(given["code"]), str(given["message"]), given.get("line"))
