"""Records how the last attempts on each sync route went, in one small file per route.

`status` reads them. A machine that could not be reached is recorded too.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from truekeep.core import file_io

FOLDER = "contacts"


class Contact(NamedTuple):
    """One attempt to reach a machine."""

    route: str
    at: str  # UTC, in the ledger's format
    ok: bool
    seconds: float = 0.0
    brought: int = 0  # handoffs received or sent
    receipts: int = 0  # handoffs confirmed as processed
    refused: int = 0  # receipts without a valid signature of the host; ignored
    waiting: int = 0  # handoffs that could not be fetched yet
    machines: tuple[str, ...] = ()
    problem: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    memory: str = ""  # the state of memory that went or came, as its time; "" if none does by this route
    memory_files: int = 0
    memory_changed: int = 0
    memory_masked: int = 0  # files of which lines stayed on the host


class RouteHistory(NamedTuple):
    """The recorded state of a route."""

    last: Contact | None
    last_ok_at: str = ""
    failures: int = 0  # in a row


def read_history(state: Path, route: str) -> RouteHistory:
    try:
        given: dict[str, Any] = json.loads((state / FOLDER / f"{route}.json").read_bytes())
        last = {key: value for key, value in given["last"].items() if key in Contact._fields}
        for key in ("machines", "notes"):
            last[key] = tuple(str(item) for item in last.get(key, ()))
        return RouteHistory(Contact(**last), str(given.get("last_ok_at", "")), int(given.get("failures", 0)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return RouteHistory(None)


def write_contact(state: Path, contact: Contact) -> None:
    """Record an attempt. A disk error only loses the record."""
    before = read_history(state, contact.route)
    if not contact.ok and not contact.machines and before.last is not None:
        contact = contact._replace(machines=before.last.machines)  # the machines that are unreachable now
    record = {
        "last": contact._asdict(),
        "last_ok_at": contact.at if contact.ok else before.last_ok_at,
        "failures": 0 if contact.ok else before.failures + 1,
    }
    with suppress(OSError):
        file_io.write_whole(state / FOLDER / f"{contact.route}.json", json.dumps(record, indent=1).encode())


def forget_route(state: Path, route: str) -> None:
    with suppress(OSError):
        os.unlink(state / FOLDER / f"{route}.json")
