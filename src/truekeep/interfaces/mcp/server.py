"""The MCP protocol: the tools over stdio or loopback HTTP.

Blocking work runs in a thread, one call at a time, so that the event loop keeps listening.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from truekeep import __version__
from truekeep.core.errors import BadInput
from truekeep.interfaces.mcp.responses import one_line
from truekeep.interfaces.mcp.schemas import TOOLS, Tool
from truekeep.interfaces.mcp.tools import CARD_URI, MemoryTools

if TYPE_CHECKING:
    import socket

    from mcp.server.context import ServerRequestContext
    from starlette.types import ASGIApp, Receive, Scope, Send

    from truekeep.core.errors import TruekeepError
    from truekeep.interfaces.mcp.responses import Given, Reply

_FIRST = (
    "truekeep is the long-term memory that all agents of this person share: decisions, setup, conventions, past bugs."
    " Search it (memory_search) before you ask the person or guess about earlier work, and read more of a hit with"
    " memory_get and its path."
)
_VERDICTS = (
    " Each note says how old it is and whether what it names is still there; what is gone or moved is said below it,"
    " and memory_verify checks any other text."
)
_NO_VERDICTS = (
    " Each note says how old it is. What it names is not checked against the code here: check it before you act on it."
)
_WAKE = " memory_wake tells what to know before you begin, if nobody told you yet"
_CHECKPOINT = ", and memory_checkpoint notes where your work stands for whoever goes on"
_LAST = (
    ". When you learn something that will still matter in another session, leave it with memory_write: one topic,"
    " plain facts, no credentials, no task state. It is reviewed and filed later; memory is never changed directly."
)


def instructions_for(tools: Mapping[str, Tool]) -> str:
    """What a harness is told about the memory: it names only tools that are offered."""
    verdicts = _VERDICTS if "memory_verify" in tools else _NO_VERDICTS
    checkpoint = _CHECKPOINT if "memory_checkpoint" in tools else ""
    return f"{_FIRST}{verdicts}{_WAKE}{checkpoint}{_LAST}"


MAX_REQUEST_BYTES = 1 << 20  # four times the largest handoff
STOP_SECONDS = 5.0  # for running calls when the server stops
LAST_REPLIES_SECONDS = 30.0  # for running calls when standard input ends

T = TypeVar("T")
Context: TypeAlias = "ServerRequestContext[Any, Any]"


class Memory(Protocol):
    """What the protocol needs of the tools and resources."""

    def call(self, tool: Tool, arguments: Given, *, client: str = "") -> Reply: ...
    def known(self, error: Exception) -> TruekeepError: ...
    def cards(self) -> list[types.Resource]: ...
    def read_card(self, uri: str) -> str: ...


def make_server(memory: Memory, *, tools: Mapping[str, Tool] = TOOLS, at_once: int = 1) -> Server[Any]:
    """The protocol's side of it: every request becomes one call of `memory`, in a thread; by default in turn."""
    turn = anyio.CapacityLimiter(at_once)

    async def ask(call: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(call, limiter=turn)

    async def ask_for_resource(call: Callable[[], T]) -> T:
        try:
            return await ask(call)
        except Exception as error:  # noqa: BLE001 - as in Memory.call
            known = memory.known(error)
            code = types.INVALID_PARAMS if isinstance(known, BadInput) else types.INTERNAL_ERROR
            lines = (one_line(known.message, 500), one_line(known.hint, 500))
            raise MCPError(code, "\n".join(filter(None, lines))) from None

    async def list_tools(_context: Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.shown() for tool in tools.values()])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {one_line(params.name, 80)!r}")
        who = context.session.client_params
        reply = await ask(
            partial(memory.call, tool, params.arguments or {}, client=who.client_info.name if who else "")
        )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)],
            structured_content=reply.data,
            is_error=reply.is_error,
        )

    async def list_resources(_context: Context, _params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=await ask_for_resource(memory.cards))

    async def list_templates(_context: Context, _params: Any) -> types.ListResourceTemplatesResult:
        card = types.ResourceTemplate(
            uri_template=CARD_URI + "{name}", name="card", title="A memory card", mime_type="text/markdown"
        )
        return types.ListResourceTemplatesResult(resource_templates=[card])

    async def read_resource(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = await ask_for_resource(partial(memory.read_card, params.uri))
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[contents])

    return Server(
        "truekeep",
        version=__version__,
        title="truekeep",
        instructions=instructions_for(tools),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


class _ToLog(logging.Handler):
    """Send warnings of libraries to our log, shortened: they could quote a request."""

    def __init__(self, memory: MemoryTools) -> None:
        super().__init__(logging.WARNING)
        self._memory = memory

    def emit(self, record: logging.LogRecord) -> None:
        self._memory.log(f"{record.levelname} {record.name}: {one_line(record.getMessage(), 200)}")


@asynccontextmanager
async def _until_told(memory: MemoryTools, stop: Callable[[], None] | None = None) -> AsyncIterator[None]:
    """Run until the body ends or a SIGTERM or SIGINT arrives; nothing is printed."""
    logging.getLogger().handlers[:] = [_ToLog(memory)]

    async def listen(scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                # A call may be stuck in a disk or a pipe. What it writes is written whole or not at all.
                last = threading.Timer(STOP_SECONDS, os._exit, (1,))
                last.daemon = True
                last.start()
                (stop or scope.cancel)()

    async with anyio.create_task_group() as group:
        group.start_soon(listen, group.cancel_scope)
        yield
        group.cancel_scope.cancel()


# --- Standard input and output --------------------------------------------------------------------------------------


def serve_stdio(memory: MemoryTools) -> None:
    """Serve the client that started us, until it closes standard input or sends a signal."""
    try:
        anyio.run(_serve_stdio, memory)
    except* (BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the client closed the connection


async def _serve_stdio(memory: MemoryTools) -> None:
    from mcp.server.stdio import stdio_server

    server = make_server(memory)
    # The SDK's own reader waits in a thread that cannot be interrupted: SIGTERM would have to wait for another line.
    lines = cast("anyio.AsyncFile[str]", _iter_lines(_take_stdin()))
    async with _until_told(memory), stdio_server(stdin=lines) as (read, write):
        to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception]()
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
        owed = _PendingRequests()

        async def take() -> None:
            async with to_server:
                async for item in read:
                    owed.note(item)
                    await to_server.send(item)
                # The SDK drops running calls when input ends, but a client that pipes requests wants the replies.
                with anyio.move_on_after(LAST_REPLIES_SECONDS):
                    await owed.nothing()

        async def give() -> None:
            async with write:
                async for item in from_server:
                    await write.send(item)
                    owed.note(item)

        async with anyio.create_task_group() as group:
            group.start_soon(take)
            group.start_soon(give)
            await server.run(from_client, to_client, server.create_initialization_options())


class _PendingRequests:
    """The requests that have no answer yet."""

    def __init__(self) -> None:
        self._ids: set[types.RequestId] = set()
        self._change = anyio.Event()

    def note(self, item: SessionMessage | Exception) -> None:
        match item:
            case SessionMessage(message=types.JSONRPCRequest(id=number)):
                self._ids.add(number)
            case SessionMessage(message=types.JSONRPCResponse(id=number) | types.JSONRPCError(id=number)):
                self._ids -= {number}
            case SessionMessage(message=types.JSONRPCNotification(method="notifications/cancelled", params=params)):
                self._ids -= {(params or {}).get("requestId", "")}
        self._change.set()

    async def nothing(self) -> None:
        """Wait until nothing is owed."""
        while self._ids:
            self._change = anyio.Event()
            await self._change.wait()


def _take_stdin() -> int:
    """Standard input under another number; nothing that runs here or is started from here reads the client's words."""
    mine = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return mine


async def _iter_lines(source: int) -> AsyncIterator[str]:
    pieces: list[bytes] = []
    while True:
        try:
            await anyio.wait_readable(source)
        except PermissionError:
            await anyio.lowlevel.checkpoint()  # a plain file: always readable, and no system waits for one
        chunk = os.read(source, 1 << 16)
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            yield b"".join((*pieces, end)).decode(errors="replace")
            pieces.clear()
        pieces.append(rest)
        if not chunk:
            break
    if last := b"".join(pieces):
        yield last.decode(errors="replace")


# --- HTTP -----------------------------------------------------------------------------------------------------------


def serve_http(memory: MemoryTools, listener: socket.socket, token: str) -> None:
    """Serve clients that have the token, on a loopback socket, until a signal."""
    anyio.run(_serve_http, memory, listener, token)


async def _serve_http(memory: MemoryTools, listener: socket.socket, token: str) -> None:
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    class Quiet(uvicorn.Server):
        """Leaves the signals to us: it would raise them again when it is done."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    app = make_server(memory).streamable_http_app(
        json_response=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # Guard looks
    )
    server = Quiet(
        uvicorn.Config(
            McpRequestGuard(app, token),
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )

    def stop() -> None:
        server.should_exit = True

    async with _until_told(memory, stop):
        await server.serve(sockets=[listener])


class McpRequestGuard:
    """Lets a request through that is meant for this machine and knows the token. Everything else learns nothing.

    A web page can make a browser send requests to loopback, under a name of its own (DNS rebinding). Such a request
    carries that name as its host, or the page's own as its origin.
    """

    _NAME = rb"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?"
    _HOST = re.compile(_NAME, re.IGNORECASE)
    _ORIGIN = re.compile(rb"https?://" + _NAME, re.IGNORECASE)

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._judge(scope["headers"]) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, why = refusal
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(why)).encode())]
        headers += [(b"connection", b"close")] + [(b"www-authenticate", b"Bearer")] * (status == 401)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": why})

    def _judge(self, headers: Sequence[tuple[bytes, bytes]]) -> tuple[int, bytes] | None:
        def all_of(name: bytes) -> list[bytes]:
            return [value for key, value in headers if key == name]

        hosts, origins, given = all_of(b"host"), all_of(b"origin"), all_of(b"authorization")
        if len(hosts) != 1 or self._HOST.fullmatch(hosts[0]) is None:
            return 421, b"not a host that is served here\n"
        if any(self._ORIGIN.fullmatch(origin) is None for origin in origins):
            return 403, b"not an origin that is served here\n"
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if not hmac.compare_digest(token.strip(), self._token) or scheme.lower() != b"bearer":
            return 401, b"a bearer token is needed\n"
        return None
