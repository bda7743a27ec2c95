"""serve: the site for people, on this machine."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from pathlib import Path

import click

from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.output import open_workspace, workspace_option
from truekeep.interfaces.cli.terminal import echo
from truekeep.interfaces.web.auth import Keys

PORT = 8378


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; any but loopback needs --read-only."
)
@click.option("--name", multiple=True, metavar="HOST", help="Additional host name to answer to.")
@click.option("--read-only", is_flag=True, help="Do not allow any changes.")
@click.option("--open", "is_opened", is_flag=True, help="Open the site in a browser.")
@workspace_option
@click.pass_context
def serve(
    ctx: click.Context,
    port: int,
    host: str,
    name: tuple[str, ...],
    read_only: bool,
    is_opened: bool,
    workspace: str | None,
) -> None:
    """Serve a local web UI for review, memory, search, history and health.

    Prints a link with a token, valid in that browser until the server stops; press Ctrl-C to stop it. Listens on this
    machine only. To view it from a phone: --read-only --host with this machine's address.

    Example: truekeep serve --open
    """
    from truekeep.interfaces.web.server import serve_site  # here: --help waits for no server

    with open_workspace(ctx, workspace) as opened:
        path = Path(opened.path)
    address = host.strip("[]") if host.lower() != "localhost" else "127.0.0.1"
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise BadInput(f"{host!r} is not an address", hint="127.0.0.1, ::1, or an address of this machine") from None
    if not parsed.is_loopback and not read_only:
        raise BadInput(
            f"{host} can be reached from other machines, and whoever has the link could change memory",
            hint="add --read-only; to change things from elsewhere, forward the port with ssh -L",
        )
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    try:
        listener = socket.create_server((address, port), family=family)
    except OSError as error:
        raise _no_listener(address, port, error) from error
    keys = Keys()
    shown = f"[{address}]" if parsed.version == 6 else address
    names = {"localhost", "127.0.0.1", "[::1]"} if parsed.is_loopback else {shown}
    if parsed.is_unspecified:
        names = {"localhost", os.uname().nodename}  # the guard knows the address that a request came to
        shown = _way_out(family) or os.uname().nodename
    link = f"http://{shown}:{listener.getsockname()[1]}/?token={keys.token}"

    def announce() -> None:
        mode = " read-only" if read_only else ""
        echo(f"serving {path}{mode}; open")
        echo(f"  {link}")
        echo("press Ctrl-C to stop")
        if is_opened:
            import webbrowser  # here: costs 50 ms, and is seldom asked for

            webbrowser.open(link)

    try:
        with listener:
            serve_site(path, keys, listener, hosts={*names, *name}, read_only=read_only, announce=announce)
    except KeyboardInterrupt:
        echo("stopped", err=True)
        ctx.exit(EXIT_INTERRUPTED)


def _no_listener(address: str, port: int, error: OSError) -> BadInput:
    """Why it cannot listen there, and what helps."""
    why = os.strerror(error.errno) if error.errno else str(error)
    hint = "use --port 0 for any free port"
    if error.errno == errno.EADDRNOTAVAIL:
        hint = "--host takes an address of this machine; 0.0.0.0 stands for all of them"
    return BadInput(f"cannot listen on {address}:{port}: {why}", hint=hint)


def _way_out(family: int) -> str:
    """The address of this machine that others reach it by, as far as it knows: the one on its way out."""
    far = ("2001:db8::1", 9) if family == socket.AF_INET6 else ("192.0.2.1", 9)
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(far)  # sends nothing
            found = str(probe.getsockname()[0])
    except OSError:
        return ""
    if ipaddress.ip_address(found.partition("%")[0]).is_loopback:
        return ""
    return f"[{found}]" if family == socket.AF_INET6 else found
