"""A server process that takes no requests: it files handoffs, carries out decisions and sends webhooks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

from truekeep.server.team_server import TeamServer


def run_worker(
    url: str, folder: Path, *, allow_private_webhooks: bool, announce: Callable[[], None], report: Callable[[str], None]
) -> None:
    """Work until SIGTERM, or Ctrl-C. Leases are given back."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    server = TeamServer(url, folder, allow_private_webhooks=allow_private_webhooks, report=report)
    try:
        server.start()
        announce()
        ended.wait()
    finally:
        server.stop()
