"""Runs the site until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

import uvicorn

from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.site import Site


def serve_site(path: Path, keys: Keys, listener: socket.socket, *, hosts: Iterable[str], read_only: bool) -> None:
    """Serve a workspace on a socket, under these names. The socket is taken over."""
    # asyncio sends small pieces at once only where it is told the protocol; else each page waits 40 ms for the client.
    taken = socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())
    site = Site(path, keys, read_only=read_only)
    config = uvicorn.Config(
        make_app(site, hosts),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",  # what strangers send is no news; bugs are in the site's own log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    with taken:
        uvicorn.Server(config).run(sockets=[taken])
