"""What copies on members' machines install: the state of a workspace, signed with the deployment's key.

It is the publication that a canonical host makes for its copies, with the record's version as its number. The first
process that is asked for a version makes it and puts it into the database; every process serves the same one from
there, and signs its head anew with the time of the request.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truekeep.core.dates import as_stamp
from truekeep.core.errors import NotFound
from truekeep.core.memory_copy import now_utc
from truekeep.handoffs.sync.publication import Head
from truekeep.handoffs.sync.publication_store import HostIdentity, PublicationStore
from truekeep.handoffs.sync.receipts import Signer
from truekeep.workspace.publishing import descriptions, iter_sources

if TYPE_CHECKING:
    from truekeep.server.database import TeamDatabase
    from truekeep.workspace.workspace import Workspace


def read_signer(database: TeamDatabase) -> Signer:
    """The deployment's key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    with database.plain() as cursor:
        row = cursor.execute("SELECT signing_key FROM deployment").fetchone()
    assert row is not None
    return Signer(Ed25519PrivateKey.from_private_bytes(bytes(row[0])))


class Publications:
    """The publications of one workspace."""

    def __init__(self, database: TeamDatabase, workspace: int, name: str, folder: Path, signer: Signer) -> None:
        self._database = database
        self._workspace = workspace
        self._name = name
        self._folder = folder
        self._signer = signer

    def current(self, version: int) -> bytes | None:
        """The head of this version or a later one, as of now; None if nobody made it yet."""
        with self._database.workspace(self._workspace) as cursor:
            row = cursor.execute(
                "SELECT head FROM publication WHERE workspace = %s AND version >= %s", (self._workspace, version)
            ).fetchone()
        return self._signed(row[0]) if row else None

    def _signed(self, given: dict[str, Any]) -> bytes:
        head = Head(**given)._replace(as_of=as_stamp(now_utc()), signature="")
        return head.signed(self._signer).render()

    def make(self, workspace: Workspace, version: int) -> None:
        """Publish the state of a workspace that has this version. Of two processes at once, the first one's counts."""
        from psycopg.types.json import Jsonb

        host = HostIdentity(workspace.machine.id, f"{workspace.machine.name}/{self._name}", 1)
        store = PublicationStore(self._folder)
        given = workspace.config.sync
        made = store.publish(
            iter_sources(workspace, given.private), descriptions(workspace), given.private, host, self._signer,
            at=as_stamp(now_utc()), sequence=version, public=given.public,
        )  # fmt: skip
        with self._database.workspace(self._workspace) as cursor:
            cursor.execute("SELECT 1 FROM workspace WHERE id = %s FOR UPDATE", (self._workspace,))
            row = cursor.execute(
                "SELECT version, objects FROM publication WHERE workspace = %s", (self._workspace,)
            ).fetchone()
            if row is not None and row[0] >= version:
                return
            cursor.executemany(
                "INSERT INTO publication_object VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [(self._workspace, name, (made.folder / "objects" / name).read_bytes()) for name in made.objects],
            )
            cursor.execute(
                "INSERT INTO publication VALUES (%s, %s, %s, %s) ON CONFLICT (workspace) DO UPDATE"
                " SET version = excluded.version, head = excluded.head, objects = excluded.objects",
                (self._workspace, version, Jsonb(made.head._asdict()), list(made.objects)),
            )
            is_purge = made.head.purged == made.head.sequence
            kept = [
                *made.objects,
                *(row[1] if row and not is_purge else ()),
            ]  # a machine may be fetching the one before
            cursor.execute(
                "DELETE FROM publication_object WHERE workspace = %s AND NOT digest = ANY(%s)", (self._workspace, kept)
            )

    def read_object(self, digest: str) -> bytes:
        with self._database.workspace(self._workspace) as cursor:
            row = cursor.execute(
                "SELECT bytes FROM publication_object WHERE workspace = %s AND digest = %s", (self._workspace, digest)
            ).fetchone()
        if row is None:
            raise NotFound("there is no such object any more", hint="begin again with the head")
        return bytes(row[0])
