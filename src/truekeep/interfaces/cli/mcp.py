"""truekeep mcp: which transport, who may use it, and in whose name notes are left."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.git import find_top
from truekeep.interfaces.cli.output import open_workspace, workspace_option
from truekeep.interfaces.cli.terminal import echo

if TYPE_CHECKING:
    from truekeep.core.state_dir import StateFolder

PORT = 8377
TOKEN_ENV = "TRUEKEEP_MCP_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "mcp-token"  # noqa: S105 - the name of a file
LEAST_TOKEN = 16


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
@click.option(
    "--token-env", metavar="NAME", default=TOKEN_ENV, show_default=True, help="Environment variable with the token."
)
@click.option("--writer", metavar="NAME", default="", help="Author name for handoffs. [default: the client's]")
@workspace_option
@click.pass_context
def mcp(
    ctx: click.Context, is_http: bool, port: int, host: str, token_env: str, writer: str, workspace: str | None
) -> None:
    """Serve memory to agents over MCP.

    The tools: memory_search, memory_get, memory_verify, memory_write (which leaves a handoff), memory_wake,
    memory_checkpoint and memory_status; every card is also a resource. Register it once (claude mcp add truekeep --
    truekeep mcp); the harness then starts it and talks to it on standard input and output. With --http, clients on this
    machine send a bearer token: the one in the environment variable, else a generated one, stored in
    .truekeep/mcp-token.

    Example: truekeep mcp --http --port 8377
    """
    opened = open_workspace(ctx, workspace)
    writers = opened.config.writers
    if writer and writer not in writers:
        raise BadInput(
            f"no writer is called {writer!r}", hint=f"known: {', '.join(writers)}; add others in config.toml"
        )
    from truekeep.interfaces.mcp.server import serve_http, serve_stdio  # here: --help waits for no server
    from truekeep.interfaces.mcp.tools import MemoryTools

    if not is_http:
        if sys.stdin.isatty():
            echo("waiting for an MCP client on standard input; press Ctrl-D to stop", err=True)
        # A client starts its server where it works: what it leaves comes from that repository.
        serve_stdio(MemoryTools(opened, writer=writer, root=find_top(Path.cwd())))
        return
    address = _loopback(host)
    token, where = _token(token_env, opened.state)
    with _listen(address, port) as listener:
        shown = f"[{address}]" if ":" in address else address
        echo(f"serving http://{shown}:{listener.getsockname()[1]}/mcp; the bearer token is in {where}", err=True)
        serve_http(MemoryTools(opened, writer=writer), listener, token)


def _loopback(host: str) -> str:
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise BadInput(
            f"{host!r} is not a loopback address: memory is served to this machine only",
            hint="127.0.0.1 or ::1; from another machine, forward the port with ssh -L",
        )
    return name


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise BadInput(
            f"cannot listen on {address}:{port}: {error.strerror}", hint="use --port 0 for any free port"
        ) from error


def _token(variable: str, state: StateFolder) -> tuple[str, str]:
    """The token, and where a person finds it. What we start must not inherit it, so the variable goes."""
    given = os.environ.pop(variable, "").strip()
    if not given:
        path = state.path / TOKEN_FILE
        return _kept_token(path), str(path)
    if len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise BadInput(f"${variable} is not a valid token", hint=f"{LEAST_TOKEN} or more letters and digits, no spaces")
    return given, f"${variable}"


def _kept_token(path: Path) -> str:
    """The token in the state folder; creates one on first use."""
    try:
        return _read_token(path)
    except FileNotFoundError:
        pass
    _hide_from_git(path)
    folder = file_io.open_root(str(path.parent))
    by = f".{os.getpid()}-{os.urandom(4).hex()}"  # two servers may start at once
    try:
        file_io.write_beside(folder, path.name, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600, by=by)
        try:
            file_io.put_new(folder, path.name, by=by)
        except file_io.ChangedSince:
            file_io.discard(folder, path.name, by)
    finally:
        os.close(folder)
    return _read_token(path)


def _read_token(path: Path) -> str:
    hint = "delete it, and a new one is made"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadSetup(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise BadSetup(f"{path} is readable by others or belongs to another user", hint=hint)
        token = file.read(1_000).decode("ascii", "replace").strip()
    if len(token) < 32 or not token.replace("-", "").replace("_", "").isalnum() or not token.isascii():
        raise BadSetup(f"{path} contains no token", hint=hint)
    return token


def _hide_from_git(path: Path) -> None:
    """People keep workspaces in git. Those made before there was a token do not know that it stays here."""
    ignored = path.parent / ".gitignore"
    try:
        with open(os.open(ignored, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC), "r+") as file:
            text = file.read()
            if path.name not in text.split():
                file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{path.name}\n")
    except (OSError, UnicodeDecodeError):
        return
