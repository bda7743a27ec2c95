"""The record of one workspace in the database: its version, its files, its ledger, and the lease of who may change it.

A change is one transaction. It goes through only if the lease is still the one that it was begun under (its fencing
number) and nothing changed since (the version); so a process that was paused, and lost the lease meanwhile, changes
nothing. Only the database's clock decides when a lease is over.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import TruekeepError
from truekeep.core.machine import Machine

if TYPE_CHECKING:
    from psycopg import Cursor

    from truekeep.server.database import TeamDatabase

LEASE_SECONDS = 20.0
_BLOBS_AT_ONCE = 200


class LeaseLost(TruekeepError):
    """Another process holds the lease, or changed the workspace. Nothing was written to the record."""

    code = "lease-lost"


class ChangedMeanwhile(Exception):
    """The record has a later version than the one that is being read: begin again."""


class Lease(NamedTuple):
    """The right to change a workspace, until it is over or another process takes it."""

    workspace: int
    holder: str
    fencing: int


class FileState(NamedTuple):
    """A file of the record; without a digest it was removed."""

    path: str
    sha256: bytes | None
    mtime_ns: int


class RecordChange(NamedTuple):
    """What differs between two versions: files, pages of the ledger, and how many pages it has then."""

    files: Sequence[FileState] = ()
    pages: Mapping[int, bytes] = {}
    page_count: int | None = None  # None: the ledger is as before

    @property
    def is_empty(self) -> bool:
        return not self.files and self.page_count is None


class Record:
    """The record of one workspace."""

    def __init__(self, database: TeamDatabase, workspace: int) -> None:
        self._database = database
        self.workspace = workspace

    # Reading.

    def version(self) -> int:
        with self._database.workspace(self.workspace) as cursor:
            row = cursor.execute("SELECT version FROM workspace WHERE id = %s", (self.workspace,)).fetchone()
        return int(row[0]) if row else 0

    def changes_since(self, base: int) -> tuple[RecordChange, int]:
        """All that changed since a version, and the version now; all of one moment. Contents are read apart."""
        with self._database.workspace(self.workspace, is_snapshot=True) as cursor:
            row = cursor.execute(
                "SELECT version, ledger_pages FROM workspace WHERE id = %s", (self.workspace,)
            ).fetchone()
            version, page_count = row or (0, 0)
            files = cursor.execute(
                "SELECT path, sha256, mtime_ns FROM memory_file WHERE workspace = %s AND version > %s ORDER BY path",
                (self.workspace, base),
            ).fetchall()
            pages = cursor.execute(
                "SELECT number, bytes FROM ledger_page WHERE workspace = %s AND version > %s AND number < %s",
                (self.workspace, base, page_count),
            ).fetchall()
        return RecordChange([FileState(*file) for file in files], dict(pages), page_count), int(version)

    def iter_contents(self, digests: Sequence[bytes]) -> Iterator[Mapping[bytes, bytes]]:
        """Contents, some at a time. No transaction is open meanwhile: whoever writes them to a disk may take long.

        Raises ChangedMeanwhile if one of them is not there any more, because a later version has another.
        """
        for start in range(0, len(digests), _BLOBS_AT_ONCE):
            some = list(digests[start : start + _BLOBS_AT_ONCE])
            with self._database.workspace(self.workspace) as cursor:
                found = dict(
                    cursor.execute(
                        "SELECT sha256, bytes FROM blob WHERE workspace = %s AND sha256 = ANY(%s)",
                        (self.workspace, some),
                    ).fetchall()
                )
            if len(found) < len(set(some)):
                raise ChangedMeanwhile
            yield found

    # The lease.

    def take_lease(self, holder: str) -> Lease | None:
        """The lease, if this process has it or nobody does; else None."""
        with self._database.workspace(self.workspace) as cursor:
            row = cursor.execute(
                "UPDATE workspace SET lease_holder = %(holder)s,"
                " fencing = fencing + CASE WHEN lease_holder = %(holder)s AND lease_until > clock_timestamp()"
                " THEN 0 ELSE 1 END,"
                " lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)"
                " WHERE id = %(id)s AND (lease_holder = %(holder)s OR lease_until <= clock_timestamp())"
                " RETURNING fencing",
                {"id": self.workspace, "holder": holder, "seconds": LEASE_SECONDS},
            ).fetchone()
        return Lease(self.workspace, holder, int(row[0])) if row else None

    def release(self, lease: Lease) -> None:
        """Give the lease back, so that another process need not wait until it is over."""
        with self._database.workspace(self.workspace) as cursor:
            cursor.execute(
                "UPDATE workspace SET lease_until = '-infinity', lease_holder = ''"
                " WHERE id = %s AND lease_holder = %s AND fencing = %s",
                (self.workspace, lease.holder, lease.fencing),
            )

    # Writing.

    def commit(
        self,
        lease: Lease,
        base: int,
        change: RecordChange,
        contents: Mapping[bytes, bytes],
        settle: Callable[[Cursor[Any]], None] = lambda _: None,
    ) -> int:
        """Make a change the next version, with all that `settle` notes about it: all of it, or nothing.

        Raises LeaseLost if it was not made. If the connection breaks, it may or may not have been made.
        """
        with self._database.workspace(self.workspace) as cursor:
            row = cursor.execute(
                "SELECT version, fencing, lease_holder, ledger_pages FROM workspace WHERE id = %s FOR UPDATE",
                (self.workspace,),
            ).fetchone()
            if row is None or row[:3] != (base, lease.fencing, lease.holder):
                raise LeaseLost("another server process took over this workspace", hint="it goes on there")
            settle(cursor)
            if change.is_empty:
                return base
            version = base + 1
            self._write_files(cursor, version, change.files, contents)
            if change.page_count is not None:
                self._write_pages(cursor, version, change.pages, change.page_count)
            cursor.execute(
                "UPDATE workspace SET version = %s, commit_id = %s, ledger_pages = coalesce(%s, ledger_pages),"
                " lease_until = clock_timestamp() + make_interval(secs => %s) WHERE id = %s",
                (version, uuid.uuid4(), change.page_count, LEASE_SECONDS, self.workspace),
            )
        return version

    def _write_files(
        self, cursor: Cursor[Any], version: int, files: Sequence[FileState], contents: Mapping[bytes, bytes]
    ) -> None:
        here = self.workspace
        before = self._digests_of(cursor, [file.path for file in files])
        cursor.executemany(
            "INSERT INTO blob VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [(here, digest, data) for digest, data in contents.items()],
        )
        cursor.executemany(
            "INSERT INTO memory_file VALUES (%s, %s, %s, %s, %s) ON CONFLICT (workspace, path)"
            " DO UPDATE SET sha256 = excluded.sha256, mtime_ns = excluded.mtime_ns, version = excluded.version",
            [(here, file.path, file.sha256, file.mtime_ns, version) for file in files],
        )
        # The ledger has what history and undo need of earlier contents.
        cursor.execute(
            "DELETE FROM blob b WHERE workspace = %s AND sha256 = ANY(%s) AND NOT EXISTS"
            " (SELECT 1 FROM memory_file f WHERE f.workspace = b.workspace AND f.sha256 = b.sha256)",
            (here, list(before)),
        )

    def _digests_of(self, cursor: Cursor[Any], paths: Collection[str]) -> set[bytes]:
        rows = cursor.execute(
            "SELECT sha256 FROM memory_file WHERE workspace = %s AND path = ANY(%s) AND sha256 IS NOT NULL",
            (self.workspace, list(paths)),
        ).fetchall()
        return {row[0] for row in rows}

    def _write_pages(self, cursor: Cursor[Any], version: int, pages: Mapping[int, bytes], count: int) -> None:
        cursor.executemany(
            "INSERT INTO ledger_page VALUES (%s, %s, %s, %s) ON CONFLICT (workspace, number)"
            " DO UPDATE SET bytes = excluded.bytes, version = excluded.version",
            [(self.workspace, number, data, version) for number, data in pages.items()],
        )
        cursor.execute("DELETE FROM ledger_page WHERE workspace = %s AND number >= %s", (self.workspace, count))


def read_identity(database: TeamDatabase) -> Machine:
    """The deployment as a host: one id and name for the folders of all its server processes."""
    with database.plain() as cursor:
        row = cursor.execute("SELECT id, name FROM deployment").fetchone()
    if row is None:
        from truekeep.core.errors import BadSetup

        raise BadSetup("the database was not prepared", hint="`truekeep server init` prepares it")
    return Machine(*row)
