"""The application: routes, errors as JSON in one place, sizes and times of requests, health, metrics and MCP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from truekeep import __version__
from truekeep.core.errors import BadInput
from truekeep.interfaces.api.access import authenticate, authorise, bearer_of
from truekeep.interfaces.api.errors import error_response
from truekeep.interfaces.api.html import static_files
from truekeep.interfaces.api.mcp import mcp_route
from truekeep.interfaces.api.metrics import Metrics
from truekeep.interfaces.api.oauth import OAuthServer
from truekeep.interfaces.api.requests import read_body
from truekeep.interfaces.api.routes import ROUTES, Answer, ApiRoute, Call
from truekeep.interfaces.api.session import BrowserSessions
from truekeep.interfaces.web.team.app import TeamPages
from truekeep.server.handoff_queue import Quotas

if TYPE_CHECKING:
    from truekeep.server.sign_in import OpenIDSettings
    from truekeep.server.team_server import TeamServer

PREFIX = "/api/v1/workspaces"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers requests with one server process. `url` is the address that clients and browsers know it by."""

    def __init__(
        self, server: TeamServer, quotas: Quotas, *, url: str = "", openid: OpenIDSettings | None = None
    ) -> None:
        self._server = server
        self._quotas = quotas
        self._metrics = Metrics(server)
        self._url = url
        host = urlsplit(openid.issuer).netloc if openid is not None else ""
        self.sessions = BrowserSessions(server.database, url, provider=host)
        self.oauth = OAuthServer(server.database, url, self.sessions, self._metrics)
        self._openid = openid

    def app(self) -> Starlette:
        mcp, running = mcp_route(self._server, self._quotas, self._metrics, self._url)

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with running():
                yield

        routes = [
            Route("/healthz", self._handler("healthz", self._health), methods=["GET"]),
            Route("/metrics", self._handler("metrics", self._show_metrics), methods=["GET"]),
            Route(PREFIX, self._handler("workspaces", self._list_workspaces), methods=["GET"]),
            *(self._route(route) for route in ROUTES),
            *mcp,
            *self.sessions.routes(),
            *self.oauth.routes(),
            *self._openid_routes(),
            *TeamPages(self._server, self.sessions, self._metrics).routes(),
            static_files(),
        ]
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _no_route, 405: _no_route})

    def _openid_routes(self) -> list[Route]:
        if self._openid is None:
            return []
        from truekeep.interfaces.api.openid import OpenIDSignIn
        from truekeep.server.openid import OpenIDProvider

        provider = OpenIDProvider(self._openid)
        return OpenIDSignIn(self._server.database, self._url, self.sessions, provider).routes()

    def _route(self, route: ApiRoute) -> Route:
        path = f"{PREFIX}/{{workspace}}{route.path}"
        name = f"{route.method} {route.path}"
        return Route(path, self._handler(name, partial(self._answer, route)), methods=[route.method])

    def _handler(self, name: str, act: Handler) -> Handler:
        """Answer with `act`; every error becomes JSON here."""

        async def handle(request: Request) -> Response:
            started = perf_counter()
            try:
                response = await act(request)
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception as error:  # noqa: BLE001 - the one place where errors become answers
                response = error_response(error)
            for key, value in _HEADERS.items():
                response.headers.setdefault(key, value)
            self._metrics.note(name, response.status_code, perf_counter() - started)
            return response

        return handle

    async def _answer(self, route: ApiRoute, request: Request) -> Response:
        caller = await anyio.to_thread.run_sync(authenticate, self._server.database, bearer_of(request.headers))
        asked = authorise(caller, request.path_params["workspace"], route.role)
        body = await read_body(request, route.body) if route.body else b""
        call = Call(
            server=self._server,
            asked=asked,
            quotas=self._quotas,
            path=request.path_params,
            query=request.query_params,
            body=body,
            given=_parse_object(body) if route.is_json else None,
        )
        found = await anyio.to_thread.run_sync(route.answer, call)
        answer = found if isinstance(found, Answer) else Answer(found)
        if answer.is_bytes:
            return Response(answer.data, answer.status, media_type="application/octet-stream")
        return JSONResponse(answer.data, answer.status)

    async def _list_workspaces(self, request: Request) -> Response:
        caller = await anyio.to_thread.run_sync(authenticate, self._server.database, bearer_of(request.headers))
        listed = [{"name": reach.name, "role": reach.role} for reach in caller.workspaces]
        return JSONResponse({"account": caller.name, "truekeep": __version__, "workspaces": listed})

    async def _health(self, _: Request) -> Response:
        await anyio.to_thread.run_sync(self._server.totals)
        return JSONResponse({"status": "ok"})

    async def _show_metrics(self, _: Request) -> Response:
        text, kind = await anyio.to_thread.run_sync(self._metrics.render)
        return Response(text, headers={"Content-Type": kind})


def _parse_object(body: bytes) -> Mapping[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadInput("the body is not JSON", hint="send a JSON object") from error
    if not isinstance(given, dict):
        raise BadInput("the body is no JSON object", hint="send a JSON object")
    return given


async def _no_route(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    told = {"code": "no-route", "message": "there is nothing at this address", "hint": f"GET {PREFIX} lists yours"}
    return JSONResponse({"error": told}, status, headers=_HEADERS)
