"""serve: the site for people, on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from truekeep.core.errors import BadInput
from truekeep.interfaces.cli.app import EXIT_INTERRUPTED
from truekeep.interfaces.cli.options import open_workspace, workspace_option
from truekeep.interfaces.cli.terminal import echo, style
from truekeep.interfaces.listener import in_url, listen, outward_address, parse_address, parse_public_url
from truekeep.interfaces.qr_code import render_qr_code
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
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but loopback needs --read-only, or TLS.",
)
@click.option("--name", multiple=True, metavar="HOST", help="Additional host name to answer to.")
@click.option("--read-only", is_flag=True, help="Do not allow any changes.")
@click.option("--tls-cert", metavar="FILE", help="Certificate; with --tls-key, serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option(
    "--public-url", metavar="URL", default="", help="Address of a proxy that does TLS, as https://laptop.example.net."
)
@click.option(
    "--qr/--no-qr", "has_qr", default=None, help="Print the link as a QR code. [default: if other machines can use it]"
)
@click.option("--open", "is_opened", is_flag=True, help="Open the site in a browser.")
@workspace_option
@click.pass_context
def serve(
    ctx: click.Context,
    port: int,
    host: str,
    name: tuple[str, ...],
    read_only: bool,
    tls_cert: str | None,
    tls_key: str | None,
    public_url: str,
    has_qr: bool | None,
    is_opened: bool,
    workspace: str | None,
) -> None:
    """Serve a local web UI for review, memory, search, history and health.

    Prints a link with a token, valid in that browser until the server stops; press Ctrl-C to stop it. Listens on this
    machine only. For a phone: --host with this machine's address, and --tls-cert and --tls-key, or --read-only; or
    --public-url with the address of a proxy. The link is also printed as a QR code then.

    Example: truekeep serve --open
    """
    from truekeep.interfaces.web.server import serve_site  # here: --help waits for no server

    with open_workspace(ctx, workspace) as opened:
        path = Path(opened.path)
        read_only = read_only or opened.source is not None  # a copy is only read
    address = parse_address(host)
    if bool(tls_cert) != bool(tls_key):
        raise BadInput("a certificate needs its key, and a key its certificate", hint="give both, or none")
    if not address.is_loopback and not read_only and not tls_cert:
        raise BadInput(
            f"{host} can be reached from other machines, and whoever reads along could change memory",
            hint="--tls-cert and --tls-key, or --read-only; or forward the port with ssh -L",
        )
    public_url = parse_public_url(public_url) if public_url else ""
    tls = _check_tls(tls_cert, tls_key) if tls_cert and tls_key else None
    listener = listen(str(address), port)
    keys = Keys()
    shown = in_url(str(address))
    names = {"localhost", "127.0.0.1", "[::1]"} if address.is_loopback else {shown}
    if address.is_unspecified:
        names = {"localhost", os.uname().nodename}  # the guard knows the address that a request came to
        shown = outward_address(listener.family) or os.uname().nodename
    if public_url:
        names.add(urlsplit(public_url).netloc)
    elif tls and name:
        shown = name[0]  # what its certificate is for
    scheme, taken = "https" if tls else "http", listener.getsockname()[1]
    here = public_url or f"{scheme}://{shown}:{taken}"
    link = f"{here}/?token={keys.token}"
    is_reached = bool(public_url) or not address.is_loopback
    if has_qr is None:
        has_qr = is_reached and sys.stdout.isatty()

    def announce() -> None:
        echo(f"serving {path}{' read-only' if read_only else ''}; open")
        echo(f"  {link}")
        if has_qr:
            _print_qr_code(link)
        if public_url:
            echo(f"  for the proxy, it is here: {scheme}://{in_url(str(address))}:{taken}")
        if is_reached and not here.startswith("https:"):
            echo("others on this network can read along; --tls-cert and --tls-key encrypt it (mkcert makes them),")
            echo("or a proxy whose address --public-url names (as `tailscale serve` or caddy)")
        echo("press Ctrl-C to stop")
        if is_opened:
            import webbrowser  # here: costs 50 ms, and is seldom asked for

            webbrowser.open(link)

    try:
        with listener:
            serve_site(path, keys, listener, hosts={*names, *name}, read_only=read_only, tls=tls, announce=announce)
    except KeyboardInterrupt:
        echo("stopped", err=True)
        ctx.exit(EXIT_INTERRUPTED)


def _check_tls(certificate: str, key: str) -> tuple[str, str]:
    """The two files, if they belong together."""
    import ssl  # here: costs 10 ms, and is seldom asked for

    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise BadInput(
            f"{certificate} and {key} cannot be used: {why}", hint="a PEM certificate and its key"
        ) from error
    return certificate, key


def _print_qr_code(link: str) -> None:
    for line in render_qr_code(link):
        echo(style(line, fg="bright_white", bg="black"))  # also where the terminal's ground is light
