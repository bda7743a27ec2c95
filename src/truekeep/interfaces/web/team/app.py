"""All pages of a team server: who asks, which workspace is meant, and that its pages are for them.

A workspace that a person may not see and one that does not exist are answered with the same bytes.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from time import perf_counter
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truekeep.core.errors import NotFound, TruekeepError
from truekeep.interfaces.api.access import REFUSALS, Asked, Forbidden, Hidden
from truekeep.interfaces.api.errors import known_error, retry_headers, status_of
from truekeep.interfaces.api.session import BrowserSessions, SignedIn, sign_in_address
from truekeep.interfaces.web.auth import HEADERS, judge_origin, send_refusal
from truekeep.interfaces.web.site import FRAME
from truekeep.interfaces.web.team.pages import ROLES, routes
from truekeep.interfaces.web.team.site import TeamSite, deployment_keys, frame, plain_page
from truekeep.server.accounts import Refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from truekeep.interfaces.api.metrics import Metrics
    from truekeep.server.accounts import WorkspaceAccess
    from truekeep.server.team_server import TeamServer

MAX_SITES = 64
_ADDRESS = re.compile(r"/workspaces/([^/]*)(/.*)?\Z", re.DOTALL)


class TeamPages:
    """The pages, as one ASGI application."""

    def __init__(self, server: TeamServer, sessions: BrowserSessions, metrics: Metrics) -> None:
        self._server, self._sessions, self._metrics = server, sessions, metrics
        self._keys = deployment_keys(server)
        self._sites: OrderedDict[int, ASGIApp] = OrderedDict()
        self._lock = threading.Lock()

    def routes(self) -> list[Route]:
        methods = None  # judged here
        return [
            Route("/", _Endpoint(self), methods=methods),
            Route("/workspaces", _Endpoint(self), methods=methods),
            Route("/workspaces/{rest:path}", _Endpoint(self), methods=methods),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        status = 500

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                added = [*HEADERS, (b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in there)]
            await send(message)

        request = Request(scope, receive)
        if (refusal := judge_origin(scope, request.headers.get("host", ""))) is not None:
            await send_refusal(guarded, refusal._replace(headers=(*refusal.headers, (b"connection", b"close"))))
        else:
            await (await self._answer(request))(scope, receive, guarded)
        self._metrics.note("pages", status, perf_counter() - started)

    async def _answer(self, request: Request) -> ASGIApp:
        try:
            found = await to_thread.run_sync(self._sessions.find, request)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the one place where errors become pages
            return _failed(known_error(error), None)
        if isinstance(found, Refused):
            return _to_sign_in(request, found)
        try:
            return self._choose(request, found)
        except TruekeepError as error:
            return _failed(error, found)

    def _choose(self, request: Request, signed_in: SignedIn) -> ASGIApp:
        """The page, or the workspace's pages, that a person asks for."""
        path: str = request.scope["path"]
        if path in ("/", "/workspaces", "/workspaces/"):
            return _list(signed_in) if path == "/" else RedirectResponse("/", status_code=303)
        match = _ADDRESS.match(path)
        if match is None:
            raise _no_page()
        reach = signed_in.caller.find(match[1])
        if reach is None:
            raise Hidden("there is no such page, or it is not yours", hint="the list of workspaces has yours")
        if match[2] is None:
            return RedirectResponse(f"/workspaces/{reach.name}/", status_code=303)
        role = ROLES.get(match[2].strip("/").partition("/")[0])
        if role is None:
            raise _no_page()
        if not reach.allows(role):
            raise Forbidden(f"this needs the role {role}; yours is {reach.role}", hint="ask an owner of the workspace")
        request.state.signed_in, request.state.asked = signed_in, Asked(signed_in.caller, reach)
        return self._site(reach)

    def _site(self, reach: WorkspaceAccess) -> ASGIApp:
        with self._lock:
            app = self._sites.pop(reach.id, None)
            if app is None:
                app = _make_app(TeamSite(self._server, reach.id, reach.name, self._keys))
            self._sites[reach.id] = app
            while len(self._sites) > MAX_SITES:
                self._sites.popitem(last=False)
        return app


class _Endpoint:
    """An ASGI application as the endpoint of a route: Starlette takes functions for something else."""

    def __init__(self, app: TeamPages) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _make_app(site: TeamSite) -> ASGIApp:
    async def failed(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return site.failed(request, site.known(error))
        response = site.failed(request, _no_page())
        response.status_code = error.status_code
        return response

    return Starlette(routes=routes(site), exception_handlers={HTTPException: failed, Exception: failed})


def _no_page() -> NotFound:
    return NotFound("there is no such page", hint="the pages are named above")


def _list(signed_in: SignedIn) -> Response:
    """The workspaces that a person may see."""
    return plain_page(
        "team/workspaces.html",
        {**frame(signed_in), "title": "Workspaces", "path": "/", "workspaces": signed_in.caller.workspaces},
    )


def _to_sign_in(request: Request, found: Refused) -> Response:
    """On to the sign-in page, and from there back. A form is not sent again."""
    if request.method not in ("GET", "HEAD"):
        told = TruekeepError(f"you are not signed in: {REFUSALS[found.why]}; nothing was done", hint="sign in again")
        response = _failed(told, None)
        response.status_code = 401
        response.headers["connection"] = "close"  # what the form has is not read
        return response
    query = request.scope["query_string"].decode("latin-1")
    back = request.url.path + (f"?{query}" if query else "")
    return RedirectResponse(sign_in_address(back), status_code=303)


def _failed(error: TruekeepError, signed_in: SignedIn | None) -> Response:
    context = FRAME if signed_in is None else frame(signed_in)
    given = {"title": "That did not work", "error": error, "findings": (), "difference": (), "typed": (), "back": "/"}
    status = status_of(error)
    response = plain_page("error.html", {**context, **given}, status=status)
    response.headers.update(retry_headers(status))
    return response
