"""The site of one workspace of a team server: whose request it is, what they may do, and where decisions go."""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from truekeep.core.errors import TruekeepError
from truekeep.interfaces.api.access import Asked
from truekeep.interfaces.api.errors import known_error, retry_headers, status_of
from truekeep.interfaces.api.session import SignedIn
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.site import FRAME, Allowed, Site, Tab, templates
from truekeep.server import assignments
from truekeep.server.reader import INDEXED_SECONDS
from truekeep.server.record import Record

if TYPE_CHECKING:
    from truekeep.server.team_server import TeamServer
    from truekeep.workspace.workspace import Workspace

AT_ONCE = 8  # requests of one workspace; they wait for each other
NEWS_SECONDS = 15  # between two questions of an open page: each costs the database a few queries
_TABS = (
    ("reader", Tab("Home", "/", "t")),
    ("reviewer", Tab("Review", "/review", "r")),
    ("reader", Tab("Memory", "/memory", "m")),
    ("reader", Tab("Search", "/search", "s")),
    ("reader", Tab("History", "/history", "h")),
    ("owner", Tab("Audit", "/audit", "a")),
)


def asked_of(request: Request) -> Asked:
    """By whom a request is, and in which workspace."""
    asked: Asked = request.state.asked
    return asked


def frame(signed_in: SignedIn) -> dict[str, Any]:
    """What every page has for a person who signed in."""
    return {**FRAME, "account": signed_in.caller.name, "csrf": signed_in.csrf}


def deployment_keys(server: TeamServer) -> Keys:
    """The keys by which every process of a deployment knows what another one put into an address."""
    return Keys(sha256(server.signer.sign(b"truekeep pages").encode()).hexdigest())


class TeamSite(Site):
    """The site of one workspace, for whoever may see it."""

    is_local = False
    scan_seconds = INDEXED_SECONDS

    def __init__(self, server: TeamServer, workspace: int, name: str, keys: Keys) -> None:
        super().__init__(keys, at_once=AT_ONCE)
        self.server = server
        self.base = f"/workspaces/{name}"
        self._record = Record(server.database, workspace)
        self._surveyed = -1  # the version that the last survey is of

    def lend(self, request: Request) -> AbstractContextManager[Workspace]:
        return self._lend(asked_of(request))

    @contextmanager
    def _lend(self, asked: Asked) -> Iterator[Workspace]:
        with self.server.reading(asked.reach) as workspace:
            if self._surveyed < asked.reach.version:
                workspace.maintenance.survey()
                self._surveyed = asked.reach.version
            yield workspace
            workspace.notices.clear()  # of this machine's folders

    def allowed(self, request: Request) -> Allowed:
        is_reviewer = asked_of(request).reach.allows("reviewer")
        return Allowed(decide=is_reviewer, edit=False, see_drafts=is_reviewer)

    def context(self, request: Request) -> Mapping[str, Any]:
        signed_in: SignedIn = request.state.signed_in
        reach = asked_of(request).reach
        return {
            "account": signed_in.caller.name,
            "csrf": signed_in.csrf,
            "workspace_name": reach.name,
            "role": reach.role,
            "nav": [tab for role, tab in _TABS if reach.allows(role)],
            "news_seconds": NEWS_SECONDS,
        }

    def news_word(self, request: Request, page: str) -> str:  # noqa: ARG002 - the version is of every page
        return str(asked_of(request).reach.version)

    def is_form(self, request: Request, word: str) -> bool:
        signed_in: SignedIn = request.state.signed_in
        return hmac.compare_digest(word.encode("utf-8", "replace"), signed_in.csrf.encode())

    # Decisions.

    def approve(self, request: Request, draft: str, *, target: str = "", seen: Mapping[str, str]) -> None:
        self._decide(request, "approve", {"draft": draft, "seen": dict(seen), "target": target, "anyway": False})

    def reject(self, request: Request, draft: str, *, reason: str, seen: Mapping[str, str]) -> None:
        self._decide(request, "reject", {"draft": draft, "seen": dict(seen), "reason": reason})

    def _decide(self, request: Request, verb: str, arguments: Mapping[str, Any]) -> None:
        caller, reach = asked_of(request)
        try:
            self.server.decide(caller, reach, verb, arguments, uuid.uuid4())
        finally:  # what follows shows the state after it
            version = self._record.version()
            request.state.asked = Asked(caller, reach._replace(version=max(version, reach.version)))

    # People.

    def assignees(self, request: Request) -> Mapping[str, str]:
        return assignments.assignees(self.server.database, asked_of(request).reach.id)

    def reviewers(self, request: Request) -> Sequence[str]:
        return assignments.reviewers(self.server.database, asked_of(request).reach.id)

    def accounts(self, request: Request, digests: Iterable[bytes]) -> Mapping[str, str]:
        return assignments.handed_in_by(self.server.database, asked_of(request).reach.id, list(set(digests)))

    # Errors.

    def known(self, error: Exception) -> TruekeepError:
        return known_error(error)

    def failed(self, request: Request, error: TruekeepError, *, typed: Sequence[str] = ()) -> Response:
        response = super().failed(request, error, typed=typed)
        response.status_code = status_of(error)
        response.headers.update(retry_headers(response.status_code))
        return response


def plain_page(template: str, context: Mapping[str, Any], *, status: int = 200) -> Response:
    """A page of no workspace."""
    return Response(
        templates().get_template(template).render({**context, "is_team": True}), status, media_type="text/html"
    )
