"""Figures for Prometheus. No name of a workspace, an account or a file is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from truekeep.server.team_server import TeamServer


class Metrics:
    """The figures of one server process."""

    def __init__(self, server: TeamServer) -> None:
        self._server = server
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "truekeep_requests_total", "Requests by route and status.", ("route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "truekeep_request_seconds", "Seconds until the answer, by route.", ("route",), registry=self._registry
        )
        self._gauges = {
            "workspaces": Gauge("truekeep_workspaces", "Workspaces in the database.", registry=self._registry),
            "waiting": Gauge("truekeep_handoffs_waiting", "Handoffs that wait to be filed.", registry=self._registry),
            "oldest_seconds": Gauge(
                "truekeep_oldest_handoff_seconds", "How long the oldest waits.", registry=self._registry
            ),
            "webhooks_waiting": Gauge(
                "truekeep_webhook_messages_waiting", "Messages to webhooks that wait.", registry=self._registry
            ),
            "webhooks_failed": Gauge(
                "truekeep_webhook_messages_failed", "Messages that were given up.", registry=self._registry
            ),
            "held": Gauge("truekeep_leases", "Workspaces that a process may write now.", registry=self._registry),
        }

    def note(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def render(self) -> tuple[bytes, str]:
        for name, value in self._server.totals().items():
            self._gauges[name].set(value)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
