"""Sets up a deployment and brings workspaces in and out, as the owner of the database."""

from __future__ import annotations

import hashlib
import os
import secrets
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.state_dir import STATE
from truekeep.core.toml import render_text
from truekeep.handoffs.sync.private_files import PrivateFiles
from truekeep.handoffs.sync.private_text import PrivateText
from truekeep.handoffs.sync.publication_choice import choose_files
from truekeep.server.accounts import check_workspace_name, note, workspace_id
from truekeep.server.database import as_owner, check_schema, migrate
from truekeep.server.ledger_pages import PAGE, open_emptied, write_pages
from truekeep.server.working_folder import MAX_FILE_BYTES, scan_memory
from truekeep.text.encoding import decode_text
from truekeep.workspace.publishing import iter_sources

if TYPE_CHECKING:
    from psycopg import Connection

    from truekeep.workspace.workspace import Workspace

_KEPT_SETTINGS = ("limits", "decay", "policy")
"""Tables of config.toml that go along. The others name paths, addresses and commands of one machine, which a server
must not follow for a stranger."""


class Deployment(NamedTuple):
    id: str
    name: str
    migrations: list[str]


def init_deployment(url: str, name: str) -> Deployment:
    """Prepare a database. A second time it only migrates."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    ran = migrate(url)
    with as_owner(url) as connection:
        connection.execute(
            "INSERT INTO deployment (id, name, signing_key) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (secrets.token_hex(16), name, Ed25519PrivateKey.generate().private_bytes_raw()),
        )
        row = connection.execute("SELECT id, name FROM deployment").fetchone()
    assert row is not None
    return Deployment(row[0], row[1], ran)


class WorkspaceImport(NamedTuple):
    workspace: str
    files: int
    size: int
    ledger: bool
    left_out: tuple[str, ...]
    masked: tuple[str, ...]  # files of which lines stayed here


def create_workspace(url: str, name: str) -> None:
    """An empty workspace, with the files that `truekeep init` makes."""
    check_workspace_name(name)
    with as_owner(url) as connection:
        number = _new_workspace(connection, name)
        _put(connection, number, "MEMORY.md", b"# Memory\n\n## Cards\n", 0)
        _put(connection, number, f"{STATE}/config.toml", _settings(b""), 0)
        connection.execute("UPDATE workspace SET version = 1 WHERE id = %s", (number,))


def import_workspace(url: str, name: str, opened: Workspace, *, with_history: bool = False) -> WorkspaceImport:
    """Bring an existing workspace into the record, whole or not at all. The folder itself stays as it is.

    Nothing that is private goes along, nor what says the same. The ledger has earlier bytes of every file, so where
    something is private it only goes along `with_history`.
    """
    check_workspace_name(name)
    left_out: list[str] = []
    count = size = pages = 0
    with opened.locked(), as_owner(url) as connection:
        shared = _SharedFiles(opened)
        number = _new_workspace(connection, name)
        for path, info in scan_memory(opened.path):
            if path == f"{STATE}/config.toml":
                continue
            data = shared.read(path) if info.st_size <= MAX_FILE_BYTES else None
            if data is None:
                left_out.append(path)
                continue
            _put(connection, number, path, data, info.st_mtime_ns)
            count, size = count + 1, size + len(data)
        _put(connection, number, f"{STATE}/config.toml", _settings(_own_settings(opened.path)), 0)
        if with_history or not shared.is_some_private:
            pages = _import_ledger(connection, number, opened)
        connection.execute("UPDATE workspace SET version = 1, ledger_pages = %s WHERE id = %s", (pages, number))
        note(connection, "admin", "imported", workspace=number, files=count)
    return WorkspaceImport(name, count, size, pages > 0, tuple(left_out), shared.masked)


class _SharedFiles:
    """What others may have of a workspace's files, by the rules of its copies on other machines."""

    def __init__(self, opened: Workspace) -> None:
        self._root = opened.path
        patterns = (*opened.config.sync.private, "USER.md")  # of one person
        self._private = PrivateFiles(patterns, opened.config.sync.public)
        self._choice = choose_files(iter_sources(opened, patterns), self._private, {}, lambda _: ())
        if self._private.unread:
            raise BadSetup(
                f"{self._private.unread[0]} is private and cannot be read, so nobody knows where else its text is",
                hint="correct its permissions, and run it again",
            )
        self._said = PrivateText(self._private.prints())
        self.masked = tuple(masked.path for masked in self._choice.masked)
        self.is_some_private = bool(self._choice.private or self._choice.withheld or self.masked)

    def read(self, path: str) -> bytes | None:
        """The bytes that others may have; None if they may not have the file."""
        if self._private.is_listed(path):
            return None
        chosen = self._choice.files.get(path)
        if chosen is not None and (not chosen.digest or chosen.is_masked):
            return self._choice.contents[chosen.digest] if chosen.digest else None
        data = file_io.read_regular(self._root / path, follow=False)
        text = decode_text(data) if chosen is None else None  # a draft, or no Markdown
        return None if text and self._said.find(text) else data


def _new_workspace(connection: Connection[Any], name: str) -> int:
    check_schema(connection)
    row = connection.execute(
        "INSERT INTO workspace (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id", (name,)
    ).fetchone()
    if row is None:
        raise BadInput(f"there is a workspace {name!r} already", hint="choose another name")
    note(connection, "admin", "workspace-created", workspace=row[0], name=name)
    return int(row[0])


def _put(connection: Connection[Any], number: int, path: str, data: bytes, mtime_ns: int) -> None:
    digest = hashlib.sha256(data).digest()
    connection.execute("INSERT INTO blob VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (number, digest, data))
    connection.execute("INSERT INTO memory_file VALUES (%s, %s, %s, %s, 1)", (number, path, digest, mtime_ns))


def _import_ledger(connection: Connection[Any], number: int, opened: Workspace) -> int:
    path = opened.path / STATE / "ledger.sqlite"
    opened.context.release_ledger()
    if not path.is_file() or not path.stat().st_size:
        return 0
    with open_emptied(path), path.open("rb") as file:
        count = 0
        while page := file.read(PAGE):
            connection.execute("INSERT INTO ledger_page VALUES (%s, %s, %s, 1)", (number, count, page))
            count += 1
    return count


def _own_settings(root: Path) -> bytes:
    try:
        return file_io.read_regular(root / STATE / "config.toml")
    except FileNotFoundError:
        return b""


def _settings(given: bytes) -> bytes:
    """The settings of a workspace on a server: those that concern memory alone, and no checkouts to verify against."""
    found = tomllib.loads(given.decode())
    lines = ["# Settings of a team workspace; what names a path or an address of one machine is not in it."]
    for table in _KEPT_SETTINGS:
        if isinstance(found.get(table), dict):
            lines += ["", f"[{table}]", *(f"{key} = {_toml(value)}" for key, value in found[table].items())]
    if extra := _inside(found.get("recall", {}).get("extra_paths", [])):
        lines += ["", "[recall]", f"extra_paths = {_toml(extra)}"]
    lines += ["", "[verify]", "recall = false", "ingest = false", "", "[logs]", 'ingest = "none"', ""]
    return "\n".join(lines).encode()


def _inside(paths: Sequence[str]) -> list[str]:
    """Those that lie in the workspace itself."""
    return [path for path in paths if not path.startswith(("/", "~")) and ".." not in Path(path).parts]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return str(value) if isinstance(value, (int, float)) else render_text(str(value))


def export_workspace(url: str, name: str, target: Path) -> int:
    """Write a workspace of the record into an empty folder, byte for byte, with its ledger; gives how many files."""
    if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
        raise BadInput(f"{target} is not empty", hint="name a new folder")
    with as_owner(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        check_schema(connection)
        number = workspace_id(connection, name)
        file_io.make_private(target / STATE)
        count = 0
        for path, data, mtime_ns in _iter_files(connection, number):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            os.utime(place, ns=(mtime_ns, mtime_ns))
            count += 1
        pages = dict(
            connection.execute("SELECT number, bytes FROM ledger_page WHERE workspace = %s", (number,)).fetchall()
        )
        write_pages(target / STATE / "ledger.sqlite", pages, len(pages))
    return count


def _iter_files(connection: Connection[Any], number: int) -> Iterator[tuple[str, bytes, int]]:
    with connection.cursor(name="export") as cursor:
        cursor.execute(
            "SELECT f.path, b.bytes, f.mtime_ns FROM memory_file f JOIN blob b USING (workspace, sha256)"
            " WHERE f.workspace = %s ORDER BY f.path",
            (number,),
        )
        for path, data, mtime_ns in cursor:
            yield path, bytes(data), mtime_ns


class WorkspaceStatus(NamedTuple):
    name: str
    version: int
    files: int
    size: int
    waiting: int
    failed: int
    members: int
    holder: str
    webhooks_waiting: int = 0
    webhooks_failed: int = 0


class ServerStatus(NamedTuple):
    name: str
    schema: int
    workspaces: tuple[WorkspaceStatus, ...]


def read_status(url: str) -> ServerStatus:
    with as_owner(url) as connection:
        check_schema(connection)
        named = connection.execute("SELECT name FROM deployment").fetchone()
        if named is None:
            raise BadSetup("the database was not prepared", hint="`truekeep server init` prepares it")
        last = connection.execute("SELECT max(number) FROM migration").fetchone()
        rows = connection.execute(
            "SELECT w.name, w.version,"
            " (SELECT count(*) FROM memory_file f WHERE f.workspace = w.id AND f.sha256 IS NOT NULL),"
            " (SELECT coalesce(sum(length(b.bytes)), 0) FROM blob b WHERE b.workspace = w.id),"
            " (SELECT count(*) FROM handoff_queue q WHERE q.workspace = w.id AND q.state = 'waiting'),"
            " (SELECT count(*) FROM handoff_queue q WHERE q.workspace = w.id AND q.state = 'failed'),"
            " (SELECT count(*) FROM access_grant g WHERE g.workspace = w.id),"
            " CASE WHEN w.lease_until > now() THEN w.lease_holder ELSE '' END,"
            " (SELECT count(*) FROM webhook_message m WHERE m.workspace = w.id AND m.state = 'waiting'),"
            " (SELECT count(*) FROM webhook_message m WHERE m.workspace = w.id AND m.state = 'failed')"
            " FROM workspace w ORDER BY w.name"
        ).fetchall()
    workspaces = tuple(WorkspaceStatus(row[0], row[1], row[2], int(row[3]), *row[4:]) for row in rows)
    return ServerStatus(named[0], last[0] if last else 0, workspaces)


def retry_failed(url: str, name: str) -> int:
    """Let handoffs that could not be filed be tried again."""
    with as_owner(url) as connection:
        number = workspace_id(connection, name)
        done = connection.execute(
            "UPDATE handoff_queue SET state = 'waiting', attempts = 0 WHERE workspace = %s AND state = 'failed'",
            (number,),
        )
        return done.rowcount
