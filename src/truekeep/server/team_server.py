"""One server process: readers and writers of the workspaces that it is asked for, and the thread that does what waits.

Any number of processes may run on one database, on any machines. Each answers reads; each tries to get the lease of a
workspace that has work, and the one that has it does the work.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep.core import file_io
from truekeep.core.bugs import note_bug
from truekeep.core.errors import BadSetup, TruekeepError
from truekeep.core.machine import machine_name
from truekeep.server import decisions
from truekeep.server.database import TeamDatabase
from truekeep.server.publications import Publications, read_signer
from truekeep.server.reader import RecordReader
from truekeep.server.record import LEASE_SECONDS, read_identity
from truekeep.server.webhooks import WebhookSender
from truekeep.server.writer import WorkspaceWriter

if TYPE_CHECKING:
    from truekeep.server.accounts import Caller, WorkspaceAccess
    from truekeep.workspace.workspace import Workspace

MAX_OPEN = 64  # workspaces that are kept open; each has a few files open
TICK_SECONDS = 1.0
_STUCK_SECONDS = 300.0  # a process whose work does not move on lets its leases run out
_EDIT_SECONDS = 5.0  # between looks for edits by hand


class TeamServer:
    """The workspaces of a deployment, as one process serves them."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        allow_private_webhooks: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.database = TeamDatabase(url)
        self.database.check_schema()
        self.identity = read_identity(self.database)
        self.holder = f"{machine_name()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._folder = folder
        self._report = report
        self._lock = threading.Lock()
        self._readers: OrderedDict[int, RecordReader] = OrderedDict()
        self._in_use: dict[int, int] = {}
        self._writers: dict[int, WorkspaceWriter] = {}
        self.signer = read_signer(self.database)
        self._sender = WebhookSender(
            self.database, self.holder, allow_private=allow_private_webhooks, report=self._report
        )
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._moved_at = time.monotonic()
        self._claim_folder()

    def _claim_folder(self) -> None:
        """A folder belongs to one process: two would write over each other."""
        file_io.make_private(self._folder / "lock.d")
        self._claim = file_io.locked(str(self._folder / "lock.d"))
        if not self._claim.__enter__():
            self._claim.__exit__(None, None, None)
            raise BadSetup(f"another server process uses {self._folder}", hint="give each process a --data of its own")
        owner = self._folder / "deployment"
        if owner.exists() and owner.read_text() != self.identity.id:
            raise BadSetup(f"{self._folder} belongs to another deployment", hint="name another folder with --data")
        file_io.write_whole(owner, self.identity.id.encode())

    # Reading.

    @contextmanager
    def reading(self, reach: WorkspaceAccess) -> Iterator[Workspace]:
        """The workspace as it is now."""
        with self._lock:
            reader = self._readers.pop(reach.id, None)
            if reader is None:
                reader = RecordReader(self.database, reach.id, self._place(reach.id) / "read", self.identity)
            self._readers[reach.id] = reader
            self._in_use[reach.id] = self._in_use.get(reach.id, 0) + 1
            self._close_idle()
        try:
            with reader.reading(reach.version) as workspace:
                yield workspace
        finally:
            with self._lock:
                self._in_use[reach.id] -= 1

    def _close_idle(self) -> None:
        for number in [number for number in self._readers if not self._in_use.get(number)]:
            if len(self._readers) <= MAX_OPEN:
                return
            self._readers.pop(number).close()

    def _place(self, workspace: int) -> Path:
        return self._folder / str(workspace)

    def read_head(self, reach: WorkspaceAccess) -> bytes:
        """The head of the state that copies install, made first if nobody made it."""
        published = self.publications(reach)
        head = published.current(reach.version)
        while head is None:
            with self.reading(reach) as workspace:
                published.make(workspace, self._readers[reach.id].version)
            head = published.current(reach.version)
        return head

    def publications(self, reach: WorkspaceAccess) -> Publications:
        folder = self._place(reach.id) / "published"
        return Publications(self.database, reach.id, reach.name, folder, self.signer)

    # Writing.

    def start(self) -> None:
        """Begin to do what waits, in threads of their own."""
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._work, self._renew, self._send)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the work that is begun, give the leases back, and close everything."""
        self._stop.set()
        self._wake.set()
        for thread in getattr(self, "_threads", ()):
            thread.join(timeout=30)
        for writer in self._writers.values():
            with suppress(TruekeepError):
                writer.close()
        for reader in self._readers.values():
            reader.close()
        self.database.close()
        self._claim.__exit__(None, None, None)

    def decide(
        self, caller: Caller, reach: WorkspaceAccess, verb: str, arguments: Mapping[str, Any], number: uuid.UUID
    ) -> dict[str, Any]:
        """Have the holder of the lease carry a decision out, and wait for its result."""
        decisions.submit(self.database, caller, reach, verb, arguments, number)
        self.wake()
        return decisions.wait_for(self.database, reach, number)

    def wake(self) -> None:
        """There is work: do not wait for the next look."""
        self._wake.set()

    def _work(self) -> None:
        looked = time.monotonic()
        while not self._stop.is_set():
            self._moved_at = time.monotonic()
            self._wake.wait(TICK_SECONDS)
            self._wake.clear()
            if self._stop.is_set():
                return
            chosen = self._with_work()
            if time.monotonic() - looked > _EDIT_SECONDS:
                looked = time.monotonic()
                chosen |= {number for number, writer in self._writers.items() if writer.lease is not None}
            for number in sorted(chosen):
                self._moved_at = time.monotonic()
                self.work_on(number)

    def _with_work(self) -> set[int]:
        try:
            with self.database.plain() as cursor:
                return {row[0] for row in cursor.execute("SELECT waiting_workspaces()").fetchall()}
        except TruekeepError as error:
            self._report(error.message)
            return set()

    def work_on(self, number: int) -> int:
        """Do what waits in one workspace. What fails is done again, by this process or another."""
        try:
            if number not in self._writers:
                place = self._place(number) / "write"
                self._writers[number] = WorkspaceWriter(self.database, number, place, self.identity, self.holder)
            return self._writers[number].work()
        except TruekeepError as error:
            self._report(f"workspace {number}: {error.message}")
        except Exception as error:  # noqa: BLE001 - one workspace's bug is not the others'
            where = note_bug(error, "server")
            self._report(f"workspace {number}: truekeep crashed ({type(error).__name__}); details are in {where}")
        return 0

    def _renew(self) -> None:
        while not self._stop.wait(LEASE_SECONDS / 4):
            if time.monotonic() - self._moved_at > _STUCK_SECONDS:
                continue
            with suppress(TruekeepError), self.database.plain() as cursor:
                cursor.execute("SELECT renew_leases(%s, %s)", (self.holder, LEASE_SECONDS))

    def _send(self) -> None:
        while not self._stop.wait(TICK_SECONDS):
            try:
                while not self._stop.is_set() and self._sender.send_next():
                    pass
            except TruekeepError as error:
                self._report(f"webhooks: {error.message}")
            except Exception as error:  # noqa: BLE001 - a bug here does not keep handoffs from being filed
                note_bug(error, "server")

    # Health.

    def totals(self) -> dict[str, Any]:
        with self.database.plain() as cursor:
            row = cursor.execute("SELECT workspaces, waiting, oldest_seconds, held FROM totals()").fetchone()
            sent = cursor.execute("SELECT waiting, failed FROM webhook_totals()").fetchone()
        assert row is not None
        assert sent is not None
        names = ("workspaces", "waiting", "oldest_seconds", "held", "webhooks_waiting", "webhooks_failed")
        return dict(zip(names, (*row, *sent), strict=True))
