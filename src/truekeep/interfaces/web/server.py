"""Runs the site until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn

from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.local_site import LocalSite


class AnnouncingServer(uvicorn.Server):
    """Calls back when it listens; from then on, Ctrl-C reaches its own handler."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


def serve_site(
    path: Path,
    keys: Keys,
    listener: socket.socket,
    *,
    hosts: Iterable[str],
    read_only: bool,
    tls: tuple[str, str] | None = None,
    announce: Callable[[], None] = lambda: None,
) -> None:
    """Serve a workspace on a socket, under these host names, and close the socket at the end."""
    # With an explicit protocol asyncio sets TCP_NODELAY; else each page waits 40 ms for the client.
    taken = socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())
    site = LocalSite(path, keys, read_only=read_only)
    config = uvicorn.Config(
        make_app(site, hosts, has_tls=tls is not None),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="critical",  # invalid requests are not worth a message; bugs are in the site's own log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    with taken:
        AnnouncingServer(config, announce).run(sockets=[taken])
