"""The way from a producer to the canonical host: try a route, send a test handoff over it, wait for its receipt."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import NamedTuple

from truekeep.handoffs.sync.contact_history import Contact, forget_route
from truekeep.handoffs.sync.protocol import FolderSource, read_offers
from truekeep.handoffs.sync.routes import Route, read_routes, write_routes
from truekeep.handoffs.sync.runner import LocalMachine, run_routes
from truekeep.integrations.harnesses.test_handoff import Test

_PAUSE = 5.0  # seconds between two looks for the receipt


class TestResult(NamedTuple):
    """Where the test handoff is."""

    test: Test | None
    contact: Contact | None = None
    is_sent: bool = True

    @property
    def state(self) -> str:
        """One of: none, back, lost, on its way, not sent."""
        if self.test is None:
            return "none"
        if self.test.has_returned:
            return "back"
        return "lost" if self.test.is_lost else "on its way" if self.is_sent else "not sent"

    @property
    def path(self) -> str | None:
        return self.test.path if self.test else None

    @property
    def seconds(self) -> float | None:
        """How long it took to come back."""
        if self.test is None or self.test.returned_at is None:
            return None
        return round(max(0.0, self.test.returned_at - self.test.sent_at), 1)


def try_route(side: LocalMachine, route: Route, test: Test) -> TestResult:
    """One contact, with the test handoff. A new route is kept if it works."""
    time.sleep(side.settle + 0.2)  # a file that was just written waits
    contact = contact_route(side, route)
    routes = read_routes(side.state)
    if contact.ok:
        write_routes(side.state, {**routes, route.name: route})
    elif route.name not in routes:
        forget_route(side.state, route.name)
    return TestResult(test, contact, contact.ok and _is_sent(side, route, test))


def contact_route(side: LocalMachine, route: Route) -> Contact:
    (contact,) = run_routes([route], side)
    return contact


def wait_for_receipt(side: LocalMachine, route: Route | None, sent: TestResult, seconds: float) -> TestResult:
    """Look for the receipt until it is there, or the time is over."""
    deadline = time.monotonic() + seconds
    while sent.test is not None and not sent.test.has_returned and time.monotonic() < deadline:
        time.sleep(min(_PAUSE, max(0.1, deadline - time.monotonic())))
        sent = sent._replace(contact=contact_route(side, route) if route is not None else None)
    return sent


def _is_sent(side: LocalMachine, route: Route, test: Test) -> bool:
    """True if the route carries the test handoff, or its receipt is back."""
    if test.has_returned:
        return True
    try:
        digest = hashlib.sha256(Path(test.path).read_bytes()).hexdigest()
    except OSError:
        return False
    return any(digest in told.files.values() for told in read_offers(FolderSource(side.exchange(route))))
