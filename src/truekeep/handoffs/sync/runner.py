"""Runs all sync routes in parallel; a machine that does not answer does not delay the others."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.bugs import note_bug
from truekeep.core.errors import Busy, TruekeepError
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.mirror import slug
from truekeep.handoffs.sync.processes import ToolMissing
from truekeep.handoffs.sync.routes import Route

if TYPE_CHECKING:
    from truekeep.handoffs.sync.copy_install import CopyReport, PublicationSource
    from truekeep.handoffs.sync.publication_store import Publication

MAX_PARALLEL_ROUTES = 16
LOCK = "sync.lock.d"
STEP_TIMEOUT = 120.0  # seconds


class LocalMachine(NamedTuple):
    """This machine, as the transports need it."""

    state: Path  # contains the mirror: the workspace's state folder on the canonical host, else the user's
    is_host: bool
    machine: str
    writers: Mapping[str, str]  # writer to inbox folder
    settle: float  # seconds that a file must be unchanged
    seconds: float = STEP_TIMEOUT
    id: str = ""  # does not change with the machine's name
    publish: Callable[[Route], Publication] | None = None  # on the host: publishes memory for the machines of a route
    receive: Callable[[PublicationSource, Route], CopyReport | None] | None = None  # on others: installs what came

    @property
    def folder(self) -> str:
        """The name of this machine's folder on a shared remote."""
        key = hashlib.sha256(f"truekeep route {self.id or self.machine}".encode()).hexdigest()[:10]
        return f"{slug(self.machine) or 'machine'}-{key}"

    def exchange(self, route: Route) -> Path:
        """The local folder that a route's tool syncs."""
        return self.state / "exchange" / route.name


class Unreachable(Exception):
    """A route failed; the message is for the user."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


Transport = Callable[[Route, LocalMachine], Contact]
"""Does this machine's side of a route: fetches or sends handoffs, writes or reads receipts. Raises Unreachable."""


def transport(via: str) -> Transport:
    found: Transport = import_module(f"truekeep.handoffs.sync.via_{via}").contact
    return found


def run_routes(
    routes: Sequence[Route], here: LocalMachine, *, on_contact: Callable[[Contact], None] = lambda _: None
) -> list[Contact]:
    """Run every route in parallel. Two runs never overlap."""
    folder = here.state / LOCK
    file_io.make_private(folder)
    with file_io.locked(str(folder)) as is_locked:
        if not is_locked:
            raise Busy("another truekeep is syncing", hint="wait until it has finished, then run this again")
        return _run(routes, here, on_contact)


def _run(routes: Sequence[Route], here: LocalMachine, on_contact: Callable[[Contact], None]) -> list[Contact]:
    done: list[Contact] = []
    lock = threading.Lock()
    slots = threading.Semaphore(MAX_PARALLEL_ROUTES)

    def work(route: Route) -> None:
        with slots:
            found = contact_route(route, here)
        with lock:
            write_contact(here.state, found)
            done.append(found)
            on_contact(found)

    threads = [threading.Thread(target=work, args=(route,), daemon=True) for route in routes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done, key=lambda contact: contact.route)


def contact_route(route: Route, here: LocalMachine) -> Contact:
    """Run one route; errors become part of the result."""
    started = time.monotonic()
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        found = transport(route.via)(route, here)
    except Unreachable as error:
        found = Contact(route.name, at, False, problem=error.problem, hint=error.hint)
    except ToolMissing as error:
        found = Contact(route.name, at, False, problem=f"{error.name} is not installed", hint=f"install {error.name}")
    except TruekeepError as error:
        found = Contact(route.name, at, False, problem=error.message, hint=error.hint)
    except OSError as error:
        problem = f"{error.filename or here.state}: {error.strerror or error}"
        found = Contact(route.name, at, False, problem=problem, hint="nothing was lost; correct it and run it again")
    except Exception as error:  # noqa: BLE001 - one route's bug is not the others'
        note_bug(error, "sync")
        problem = f"truekeep crashed ({type(error).__name__}); details are in bugs.log"
        found = Contact(route.name, at, False, problem=problem, hint="the other routes continued; please report it")
    return found._replace(at=at, seconds=round(time.monotonic() - started, 2))
