"""One run over all routes, each on its own: a machine that does not answer delays nobody and spoils nothing."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.bugs import note_bug
from truekeep.core.errors import Busy, TruekeepError
from truekeep.handoffs.sync.contact_history import Contact, write_contact
from truekeep.handoffs.sync.mirror import slug
from truekeep.handoffs.sync.processes import ToolMissing
from truekeep.handoffs.sync.routes import Route

AT_ONCE = 16
LOCK = "sync.lock.d"
PATIENCE = 120.0  # seconds that one step of a route may take


class LocalMachine(NamedTuple):
    """This machine, as the routes see it."""

    state: Path  # where the mirror is: the workspace's on the canonical host, else the machine's own
    is_host: bool
    machine: str
    writers: Mapping[str, str]  # and their folders
    settle: float  # seconds that a file must have been left alone
    seconds: float = PATIENCE
    id: str = ""  # stays when the machine gets another name

    @property
    def folder(self) -> str:
        """What this machine's part of a shared place is called."""
        key = hashlib.sha256(f"truekeep route {self.id or self.machine}".encode()).hexdigest()[:10]
        return f"{slug(self.machine) or 'machine'}-{key}"

    def exchange(self, route: Route) -> Path:
        """The folder that a route's tool carries."""
        return self.state / "exchange" / route.name


class Unreachable(Exception):
    """A route that did not work, in words for a person."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


Transport = Callable[[Route, LocalMachine], Contact]
"""Does this machine's side of a route: brings or sends handoffs, gives or takes receipts. Raises Unreachable."""


def transport(via: str) -> Transport:
    found: Transport = import_module(f"truekeep.handoffs.sync.via_{via}").contact
    return found


def run_routes(
    routes: Sequence[Route], here: LocalMachine, *, tell: Callable[[Contact], None] = lambda _: None
) -> list[Contact]:
    """Contact every route, many at once. Two runs never overlap."""
    folder = here.state / LOCK
    file_io.make_private(folder)
    with file_io.locked(str(folder)) as held:
        if not held:
            raise Busy("another truekeep is syncing", hint="wait for it to end and run it again")
        return _run(routes, here, tell)


def _run(routes: Sequence[Route], here: LocalMachine, tell: Callable[[Contact], None]) -> list[Contact]:
    done: list[Contact] = []
    lock = threading.Lock()
    slots = threading.Semaphore(AT_ONCE)

    def work(route: Route) -> None:
        with slots:
            found = contact_route(route, here)
        with lock:
            write_contact(here.state, found)
            done.append(found)
            tell(found)

    threads = [threading.Thread(target=work, args=(route,), daemon=True) for route in routes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(done, key=lambda contact: contact.route)


def contact_route(route: Route, here: LocalMachine) -> Contact:
    """One contact; whatever goes wrong is told in it."""
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
        found = Contact(route.name, at, False, problem=problem, hint="nothing is lost; mend it and run it again")
    except Exception as error:  # noqa: BLE001 - one route's bug is not the others'
        note_bug(error, "sync")
        problem = f"a bug in truekeep: {type(error).__name__}"
        found = Contact(route.name, at, False, problem=problem, hint="the other routes went on; please report it")
    return found._replace(at=at, seconds=round(time.monotonic() - started, 2))
