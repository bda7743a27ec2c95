"""serve: the site for people, on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import click

from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.options import open_workspace, workspace_option
from truekeep.interfaces.cli.terminal import echo
from truekeep.interfaces.listener import in_url, listen, outward_address, parse_address
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
        read_only = read_only or opened.source is not None  # a copy is only read
    address = parse_address(host)
    if not address.is_loopback and not read_only:
        raise BadInput(
            f"{host} can be reached from other machines, and whoever has the link could change memory",
            hint="add --read-only; to change things from elsewhere, forward the port with ssh -L",
        )
    listener = listen(str(address), port)
    keys = Keys()
    shown = in_url(str(address))
    names = {"localhost", "127.0.0.1", "[::1]"} if address.is_loopback else {shown}
    if address.is_unspecified:
        names = {"localhost", os.uname().nodename}  # the guard knows the address that a request came to
        shown = outward_address(listener.family) or os.uname().nodename
    link = f"http://{shown}:{listener.getsockname()[1]}/?token={keys.token}"

    def announce() -> None:
        echo(f"serving {path}{' read-only' if read_only else ''}; open")
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
