"""truekeep mcp: which transport, who may use it, and in whose name notes are left."""

from __future__ import annotations

from pathlib import Path

import click

from truekeep.core.repository import find_top
from truekeep.interfaces.cli.options import open_workspace, workspace_option
from truekeep.interfaces.cli.terminal import can_ask, echo
from truekeep.interfaces.listener import check_loopback, in_url, listen
from truekeep.interfaces.mcp.token import TOKEN_ENV, find_token
from truekeep.workspace.handoff_files import check_writer

PORT = 8377


@click.command()
@click.option("--http", "is_http", is_flag=True, help="Serve streamable HTTP on this machine instead of stdio.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on.")
@click.option("--writer", metavar="NAME", default="", help="Author name for handoffs. [default: the client's]")
@workspace_option
@click.pass_context
def mcp(ctx: click.Context, is_http: bool, port: int, host: str, writer: str, workspace: str | None) -> None:
    """Serve memory to agents over MCP.

    The tools: memory_search, memory_get, memory_verify, memory_write (which leaves a handoff), memory_wake,
    memory_checkpoint and memory_status; every card is also a resource. Register it once (claude mcp add truekeep --
    truekeep mcp); the harness then starts it and talks to it on standard input and output. With --http, clients on this
    machine send a bearer token: $TRUEKEEP_MCP_TOKEN, else a generated one, stored in .truekeep/mcp-token.

    Example: truekeep mcp --http --port 8377
    """
    opened = open_workspace(ctx, workspace)
    if writer:
        check_writer(opened, writer)
    from truekeep.interfaces.mcp.server import serve_http, serve_stdio  # here: --help waits for no server
    from truekeep.interfaces.mcp.tools import MemoryTools

    if not is_http:
        if can_ask():
            echo("waiting for an MCP client on standard input; press Ctrl-D to stop", err=True)
        # A client starts its server where it works: what it leaves comes from that repository.
        serve_stdio(MemoryTools(opened, writer=writer, root=find_top(Path.cwd())))
        return
    address = check_loopback(host)
    token, where = find_token(TOKEN_ENV, opened.state)
    with listen(address, port) as listener:
        echo(
            f"serving http://{in_url(address)}:{listener.getsockname()[1]}/mcp; the bearer token is in {where}",
            err=True,
        )
        serve_http(MemoryTools(opened, writer=writer), listener, token)
