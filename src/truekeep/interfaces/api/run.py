"""Runs a team server until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from truekeep.interfaces.api.app import Api
from truekeep.interfaces.web.server import AnnouncingServer
from truekeep.server.handoff_queue import Quotas
from truekeep.server.sign_in import OpenIDSettings
from truekeep.server.team_server import TeamServer

_KEEP_ALIVE_SECONDS = 20
_MAX_REQUESTS = 500  # at once; further ones get 503 and Retry-After


def serve_team(
    url: str,
    folder: Path,
    listener: socket.socket,
    *,
    tls: tuple[str | None, str | None],
    public_url: str,
    openid: OpenIDSettings | None,
    allow_private_webhooks: bool,
    announce: Callable[[], None],
    report: Callable[[str], None],
) -> None:
    """Serve on a socket, and close it at the end. Leases are given back."""
    taken = socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())
    with taken:
        server = TeamServer(url, folder, allow_private_webhooks=allow_private_webhooks, report=report)
        try:
            config = uvicorn.Config(
                Api(server, Quotas(), url=public_url, openid=openid).app(),
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="critical",  # bugs are in the log of bugs, and invalid requests are not worth a line
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=10,
                limit_concurrency=_MAX_REQUESTS,
                ssl_certfile=tls[0],
                ssl_keyfile=tls[1],
            )
            server.start()
            AnnouncingServer(config, announce).run(sockets=[taken])
        finally:
            server.stop()
