"""Lazily opened components of a workspace, and its write lock.

All services share them. Reading needs no preparation. Writing needs this machine to be the canonical host, and first
finishes what a killed run left. A damaged ledger is set aside, and the next writer begins a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core.config import Config
from truekeep.core.dates import as_stamp
from truekeep.core.errors import Busy, LedgerDamaged, StorageFailed, hint_for, is_database_error
from truekeep.core.file_io import UnsafePath
from truekeep.core.machine import person, this_machine
from truekeep.core.memory_copy import read_source
from truekeep.core.state_dir import STATE, StateFolder
from truekeep.memory.ledger import Ledger, LedgerEntry, LedgerFileDamaged, Unwritable, set_aside
from truekeep.memory.staging import MemoryFiles, Staging

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostLease
    from truekeep.core.machine import Machine
    from truekeep.core.memory_copy import CopySource
    from truekeep.maintenance.survey.service import Survey
    from truekeep.memory.history import History
    from truekeep.memory.ledger import HandoffRow
    from truekeep.memory.similarity import Catalog
    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.search.service import SearchService
    from truekeep.verify.cache import FactsCache

LOCK_WAIT_SECONDS = 10.0  # for a session or a person; ingest does not wait


class WorkspaceContext:
    """The open files and databases of one workspace."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self.path = path
        self.state = StateFolder(path)
        self.now = now
        self.notices: list[str] = []  # messages to show the user after the command
        self.actor = ""  # who acts, if it is not who runs this process
        self._config: Config | None = None
        self._vault: MemoryFiles | None = None
        self._ledger: Ledger | None = None
        self._catalog: Catalog | None = None
        self._recall: SearchService | None = None
        self._facts: FactsCache | None = None
        self._survey: Survey | None = None
        self._is_writing = False
        self._is_empty = False  # just created: it cannot know any handoff
        self._tenure: HostLease | None = None

    def close(self) -> None:
        for component in (self._survey, self._facts, self._recall, self._catalog, self._ledger, self._vault):
            if component is not None:
                component.close()
        self._survey = self._facts = self._recall = self._catalog = self._ledger = self._vault = None

    @cached_property
    def machine(self) -> Machine:
        return this_machine()

    @property
    def source(self) -> CopySource | None:
        """Whose memory this is, if it is a copy; None for the workspace itself."""
        return read_source(self.path)

    @property
    def source_note(self) -> str:
        """The source of a copy, its age, and a warning if it is stale; "" for the workspace itself."""
        return self.source.note(self.now()) if self.source is not None else ""

    @property
    def config(self) -> Config:
        if self._config is None:
            self._config = self.state.config()
            self.notices += self._config.warnings
        return self._config

    @property
    def has_checkouts(self) -> bool:
        """True if any checkout is configured, or the workspace is one itself."""
        return bool(self.config.verify.checkouts or self.config.repositories) or os.path.lexists(self.path / ".git")

    @property
    def shows_verdicts(self) -> bool:
        """True if search results and briefs include verdicts."""
        return self.config.verify.recall and (self.has_checkouts or self.source is not None)

    def today(self) -> date:
        return self.now().date()

    def stamp(self) -> str:
        """The current time, as the ledger writes it."""
        return as_stamp(self.now())

    # Writing.

    @contextmanager
    def lock(self, *, patient: bool = False) -> Iterator[None]:
        """Take the write lock; `patient` waits for another truekeep to release it."""
        try:
            with self.state.lock(LOCK_WAIT_SECONDS if patient else 0):
                yield
        except OSError as error:
            raise StorageFailed(
                f"{error.filename or self.path}: {error.strerror}", hint="nothing is lost; repair it and run it again"
            ) from error
        except Exception as error:
            if not is_database_error(error):
                raise
            if is_database_error(error, "CorruptError", "NotADBError"):
                raise self._damaged_in_use() from error
            if is_database_error(error, "BusyError", "LockedError"):
                raise Busy(
                    f"{self.path / STATE}: another program keeps a database of it locked",
                    hint="nothing is lost; run it again in a moment",
                ) from error
            raise StorageFailed(
                f"{self.path / STATE}: {error}", hint="nothing is lost; make room or repair the disk, and run it again"
            ) from error

    @contextmanager
    def writing(self, what: str, *, patient: bool = False) -> Iterator[None]:
        """Check the host, take the lock, and finish what a killed run left."""
        self.state.check_host(self.machine, what)
        with self.lock(patient=patient):
            self._tenure = self.state.check_host(
                self.machine, what
            )  # again: a sync may have changed it while this waited
            self.open_for_writing()
            if self.ledger.has_pending():
                try:
                    recovered = self.transaction.recover()
                except UnsafePath as error:
                    raise StorageFailed(str(error), hint="put the folder back and run it again") from error
                self.notices.append(f"finished {recovered} batch(es) that an interrupted run had left")
            if (self.path / STATE / "importing").exists():
                from truekeep.memory.import_files import clear_interrupted_import

                clear_interrupted_import(self.path, self.vault)
                self.notices.append("cleared what a stopped import had left")
            if not self._tenure.wrote_at:
                self.note_take(self._tenure)
            yield

    def open_for_writing(self) -> None:
        self._is_writing = True
        if self._ledger is not None:
            self.close()  # it was opened for reading

    def begin_ledger(self, *, is_first: bool) -> None:
        """Create the ledger of a workspace.

        The first ledger of an empty memory knows no handoff: files in processed/ were filed into another memory, and
        may be filed into this one.
        """
        self._is_writing = True
        self._is_empty = is_first
        self._ledger = self._ledger or self._open_ledger()

    def note_write(self) -> None:
        """Record once a day that this machine writes, before it does, so that two hosts that both wrote are found."""
        now = self.stamp()
        if self._tenure is not None and self._tenure.wrote_at[:10] != now[:10]:
            noted = self._tenure._replace(wrote_at=now)
            self.state.write_lease(noted)
            self._tenure = noted

    def note_take(self, lease: HostLease) -> None:
        """Note in the ledger that this machine took over, unless it is noted already."""
        if lease.generation == 1:
            return
        by = f" from {lease.taken_from}" if lease.taken_from else ""
        note = f"generation {lease.generation}: {lease.name} took over{by}"
        if not self.ledger.has_entry("took-host", note):
            self.note_act("took-host", note, at=lease.taken_at or self.stamp())

    def note_act(self, verb: str, note: str, *, at: str) -> None:
        """Add a ledger entry for an act that changes no file."""
        from truekeep.memory.transaction import MemoryTransaction

        staging = Staging(self.vault)
        MemoryTransaction(self.vault, self.ledger).act(
            staging, LedgerEntry(at=at, verb=verb, actor=self.actor or person(), note=note)
        )

    # Components.

    @property
    def transaction(self) -> MemoryTransaction:
        from truekeep.memory.transaction import MemoryTransaction

        return MemoryTransaction(self.vault, self.ledger, before=self.note_write)

    @property
    def history(self) -> History:
        from truekeep.memory.history import History

        return History(self.transaction, actor=self.actor or person(), now=self.now())

    @property
    def vault(self) -> MemoryFiles:
        if self._vault is None:
            self._vault = MemoryFiles(str(self.path))
        return self._vault

    @property
    def catalog(self) -> Catalog:
        from truekeep.memory.similarity import Catalog

        if self._catalog is None:
            self._catalog = Catalog(str(self.path / STATE / "catalog.sqlite"), self.vault)
        return self._catalog

    @property
    def recall(self) -> SearchService:
        from truekeep.search.service import SearchService

        if self._recall is None:
            self._recall = SearchService(str(self.path), str(self.path / STATE), self.config.recall, now=self.now)
        return self._recall

    @property
    def facts(self) -> FactsCache:
        from truekeep.verify.cache import FactsCache

        if self._facts is None:
            self._facts = FactsCache(str(self.path / STATE / "facts.sqlite"))
        return self._facts

    @property
    def survey(self) -> Survey:
        from truekeep.maintenance.survey.service import Survey

        if self._survey is None:
            self._survey = Survey(str(self.path / STATE), str(self.path))
        return self._survey

    # The ledger, and recovery from a damaged one.

    def release_ledger(self) -> None:
        """Close the ledger; the next use opens it again. The search index stays open."""
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = self._open_ledger()
        return self._ledger

    def _open_ledger(self) -> Ledger:
        path = str(self.path / STATE / "ledger.sqlite")
        try:
            if self._is_writing:
                return self._open_for_writing(path)
            return Ledger(path) if os.path.exists(path) and os.path.getsize(path) else Ledger(":memory:")
        except Unwritable as error:
            if self._is_writing:
                raise StorageFailed(f"{path} cannot be written", hint=hint_for(error.__cause__ or error)) from error
            return Ledger(path, read_only=True)
        except LedgerFileDamaged as error:
            hint = "`truekeep doctor --fix` saves what can be read, and keeps the damaged one"
            raise LedgerDamaged(f"{path} is damaged", hint=hint) from error

    def _open_for_writing(self, path: str) -> Ledger:
        """The ledger; a damaged one is set aside and replaced by a new one."""
        try:
            return Ledger(path, known=self._dealt_with)
        except LedgerFileDamaged:
            self.notice_damage(self._set_ledger_aside())
            return Ledger(path, known=self._dealt_with)

    def _dealt_with(self) -> Iterator[HandoffRow]:
        """The handoffs that were filed before a new ledger begins, read from files."""
        if self._is_empty:
            return
        from truekeep.handoffs.inbox_discovery import all_inboxes
        from truekeep.handoffs.processed_handoffs import iter_processed_handoffs

        inboxes = all_inboxes(self.path, self.config)
        yield from iter_processed_handoffs(self.vault, inboxes, limit=self.config.limits.handoff_bytes, at=self.stamp())

    def _set_ledger_aside(self) -> str:
        stamp = self.now().astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        return Path(set_aside(str(self.path / STATE / "ledger.sqlite"), stamp=stamp)).name

    def notice_damage(self, kept: str) -> None:
        self.notices.append(
            f"the ledger was damaged; it is kept as {STATE}/{kept}, a new one begins, and history before that is only"
            " in the one that is kept"
        )

    def _damaged_in_use(self) -> LedgerDamaged:
        """The error for a ledger that opened but has broken pages. It is set aside; the next run begins a new one."""
        self.close()
        kept = self._set_ledger_aside()
        hint = "run it again: a new one begins; `truekeep doctor` says where earlier history is"
        return LedgerDamaged(f"the ledger was damaged; it is kept as {STATE}/{kept}", hint=hint, kept=kept)
