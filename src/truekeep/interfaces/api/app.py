"""The application: routes, errors as JSON in one place, sizes and times of requests, health, metrics and MCP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from truekeep import __version__
from truekeep.core.bugs import note_bug
from truekeep.core.errors import BadInput, Busy, EditedSince, NotFound, StorageFailed, TruekeepError, is_database_error
from truekeep.interfaces.api.access import Forbidden, Unauthenticated, authenticate, authorise, bearer_of
from truekeep.interfaces.api.mcp import mcp_route
from truekeep.interfaces.api.metrics import Metrics
from truekeep.interfaces.api.routes import ROUTES, Answer, ApiRoute, Call
from truekeep.server.database import DatabaseAway
from truekeep.server.handoff_queue import HandoffTooLarge, QuotaExceeded, Quotas

if TYPE_CHECKING:
    from truekeep.server.team_server import TeamServer

PREFIX = "/api/v1/workspaces"
BODY_SECONDS = 30.0
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_STATUS: tuple[tuple[type[TruekeepError], int], ...] = (  # the first that fits
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (HandoffTooLarge, 413),
    (QuotaExceeded, 429),
    (BadInput, 400),
    (EditedSince, 409),
    (Busy, 503),
    (DatabaseAway, 503),
    (StorageFailed, 503),
)
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers requests with one server process."""

    def __init__(self, server: TeamServer, quotas: Quotas) -> None:
        self._server = server
        self._quotas = quotas
        self._metrics = Metrics(server)

    def app(self) -> Starlette:
        mcp, running = mcp_route(self._server, self._quotas, self._metrics)

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
        ]
        return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: _no_route, 405: _no_route})

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
        body = await _read_body(request, route.body) if route.body else b""
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


async def _read_body(request: Request, most: int) -> bytes:
    """The body, if it is no longer than allowed and comes in time. More than that is never kept."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise HandoffTooLarge(f"the body has more than {most} bytes", hint="nothing was taken")
    pieces: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_SECONDS) as scope:
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise HandoffTooLarge(f"the body has more than {most} bytes", hint="nothing was taken")
            pieces.append(piece)
    if scope.cancelled_caught:
        raise BadInput("the body did not come in time", hint="nothing was taken; send it again")
    return b"".join(pieces)


def _parse_object(body: bytes) -> Mapping[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadInput("the body is not JSON", hint="send a JSON object") from error
    if not isinstance(given, dict):
        raise BadInput("the body is no JSON object", hint="send a JSON object")
    return given


def error_response(error: Exception) -> Response:
    """Any error as an answer. Internal errors are reported without details."""
    if not isinstance(error, TruekeepError):
        if isinstance(error, OSError) or is_database_error(error):
            note_bug(error, "server")
            error = StorageFailed("the server's disk or a database on it cannot be used", hint="tell who runs it")
        else:
            note_bug(error, "server")
            error = TruekeepError("a bug in truekeep; nothing is lost", hint="tell who runs the server")
            error.code = "bug"
    elif isinstance(error, DatabaseAway):  # its text is for who runs the server
        error = DatabaseAway("the database cannot be reached now", hint="try again in a minute; nothing was taken")
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {"Retry-After": "30"} if status in (429, 503) else {}
    told = {"code": error.code, "message": error.message, "hint": error.hint}
    return JSONResponse({"error": told}, status, headers=headers)


async def _no_route(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    told = {"code": "no-route", "message": "there is nothing at this address", "hint": f"GET {PREFIX} lists yours"}
    return JSONResponse({"error": told}, status, headers=_HEADERS)
