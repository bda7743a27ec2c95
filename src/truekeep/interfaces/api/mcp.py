"""MCP on the team server: the tools of `truekeep mcp` over streamable HTTP, for whoever has a token.

/mcp/NAME serves one workspace; /mcp the only one that a token reaches. Tokens are read by the SDK's own middleware,
which also says where a program gets one (`oauth.py`). No session is kept, so that any server process answers any
request. What would tell of the server's machine is not offered: claims are verified where the code is, on the machines
of the members.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from truekeep.core.errors import TruekeepError
from truekeep.core.memory_copy import now_utc
from truekeep.handoffs.format import handoff_name
from truekeep.interfaces.api.access import Asked, Hidden, authorise
from truekeep.interfaces.api.errors import error_response
from truekeep.interfaces.mcp.responses import Reply, failed, said
from truekeep.interfaces.mcp.schemas import TOOLS, Tool
from truekeep.interfaces.mcp.server import MAX_REQUEST_BYTES, make_server
from truekeep.interfaces.mcp.tools import MemoryTools, writer_for
from truekeep.server.accounts import Caller, Refused, find_caller
from truekeep.server.handoff_queue import Quotas, hand_in

if TYPE_CHECKING:
    import mcp_types as types
    from starlette.types import ASGIApp, Receive, Scope, Send

    from truekeep.interfaces.api.metrics import Metrics
    from truekeep.interfaces.mcp.responses import Given
    from truekeep.server.team_server import TeamServer
    from truekeep.sessions.packing import Brief
    from truekeep.workspace.workspace import Workspace

Result = TypeVar("Result")
OFFERED = ("memory_search", "memory_get", "memory_write", "memory_wake", "memory_status")
_AT_ONCE = 8
_asked: ContextVar[Asked] = ContextVar("asked")  # by whom, for the request that runs


class TeamMemoryTools(MemoryTools):
    """The tools for one request, over the workspace as it is now."""

    def __init__(self, workspace: Workspace, server: TeamServer, asked: Asked, quotas: Quotas) -> None:
        super().__init__(workspace)
        self._server, self._asked, self._quotas = server, asked, quotas

    def _heed_settings(self) -> None:
        """Nothing: the workspace is as the record has it."""

    def _fresh(self) -> AbstractContextManager[Workspace]:
        return nullcontext(self._workspace)

    def write(self, given: Given, client: str) -> Reply:
        asked = authorise(self._asked.caller, self._asked.reach.name, "writer")
        text = self.compose(given)
        done = hand_in(
            self._server.database, asked.caller, asked.reach, text.encode("utf-8", "surrogateescape"),
            name=handoff_name(given["title"], now_utc()),
            writer=writer_for(client, self._workspace.config.writers),
            machine=asked.caller.name,
            repository="",
            quotas=self._quotas,
        )  # fmt: skip
        self._server.wake()
        data = {
            "status": "left", "path": done.digest, "writer": asked.caller.name,
            "outcome": done.outcome or done.state, "target": done.target, "filedHere": False, "hints": [],
        }  # fmt: skip
        return Reply(said(f"Handed in as {done.digest[:12]}; it is filed in a moment, or waits for a reviewer."), data)

    def brief(self, given: Given) -> Brief:
        tokens = given.get("budget")
        repository = given.get("repo", "")
        return self._workspace.sessions.wake(tokens=int(tokens) if tokens is not None else None, repository=repository)

    def status(self, _given: Given, _client: str) -> Reply:
        index, reach = self._workspace.search.status(), self._asked.reach
        host = {"name": reach.name, "isThisMachine": False}
        data = {
            "workspace": reach.name, "version": str(reach.version), "files": dict(index.files), "chunks": index.chunks,
            "waiting": index.waiting, "unembedded": index.unembedded,
            "embedder": {"provider": index.provider, "model": index.model}, "indexedAt": index.indexed_at,
            "sizeBytes": index.size, "drafts": len(self._workspace.review.drafts()), "canonicalHost": host,
        }  # fmt: skip
        files = ", ".join(f"{count} {store}" for store, count in index.files.items())
        return Reply(said(f"team workspace {reach.name}, version {reach.version}: {files}; you are {reach.role}"), data)


class TeamMemory:
    """What the protocol asks, answered in the workspace of the request that runs."""

    def __init__(self, server: TeamServer, quotas: Quotas) -> None:
        self._server, self._quotas = server, quotas

    def call(self, tool: Tool, arguments: Given, *, client: str = "") -> Reply:
        try:
            return self._with_tools(lambda tools: tools.call(tool, arguments, client=client))
        except TruekeepError as error:
            return failed(tool.name, dict(arguments), error)

    def known(self, error: Exception) -> TruekeepError:
        return error if isinstance(error, TruekeepError) else TruekeepError("a bug in truekeep; nothing is lost")

    def cards(self) -> list[types.Resource]:
        return self._with_tools(lambda tools: tools.cards())

    def read_card(self, uri: str) -> str:
        return self._with_tools(lambda tools: tools.read_card(uri))

    def _with_tools(self, act: Callable[[TeamMemoryTools], Result]) -> Result:
        asked = _asked.get()
        with self._server.reading(asked.reach) as workspace:
            return act(TeamMemoryTools(workspace, self._server, asked, self._quotas))


class TokenReader:
    """Reads tokens for the SDK's middleware. The caller goes along with the token."""

    def __init__(self, server: TeamServer) -> None:
        self._server = server

    async def verify_token(self, token: str) -> AccessToken | None:
        found = await anyio.to_thread.run_sync(partial(find_caller, is_mcp=True), self._server.database, token)
        if isinstance(found, Refused):
            return None
        return AccessToken(token=token, client_id=found.name, scopes=[], claims={"caller": found})


def mcp_route(
    server: TeamServer, quotas: Quotas, metrics: Metrics, url: str
) -> tuple[list[Route], Callable[[], AbstractAsyncContextManager[None]]]:
    """The routes of MCP, and what must run while they are served."""
    tools = {name: TOOLS[name] for name in OFFERED}
    manager = StreamableHTTPSessionManager(
        app=make_server(TeamMemory(server, quotas), tools=tools, at_once=_AT_ONCE),
        json_response=True,
        stateless=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        # A page in a browser has no token, so a name of its own for this address gives it nothing.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        user = scope["user"]
        assert isinstance(user, AuthenticatedUser)
        caller = (user.access_token.claims or {})["caller"]
        try:
            asked = _choose(caller, scope.get("path_params", {}).get("workspace", ""))
        except TruekeepError as error:
            await error_response(error)(scope, receive, send)
            return
        _asked.set(asked)
        await manager.handle_request(scope, receive, send)
        metrics.note("mcp", 200, perf_counter() - started)

    async def require_token(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"].rstrip("/")
        where = AnyHttpUrl(f"{url}/.well-known/oauth-protected-resource{quote(path)}") if url else None
        await RequireAuthMiddleware(serve, [], where)(scope, receive, send)

    guarded = AuthenticationMiddleware(require_token, backend=BearerAuthBackend(TokenReader(server)))
    return [
        Route("/mcp", endpoint=_McpEndpoint(guarded)),
        Route("/mcp/{workspace}", endpoint=_McpEndpoint(guarded)),
    ], manager.run


class _McpEndpoint:
    """An ASGI application as the endpoint of a route: Starlette takes functions for something else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _choose(caller: Caller, workspace: str) -> Asked:
    if workspace:
        return authorise(caller, workspace, "reader")
    if len(caller.workspaces) != 1:
        raise Hidden("no such workspace", hint="name one of yours, as in /mcp/NAME; GET /api/v1/workspaces lists them")
    return Asked(caller, caller.workspaces[0])
