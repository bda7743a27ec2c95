"""The connection to PostgreSQL: a pool of connections in the server's role, migrations, and errors in plain words.

A request works in the role truekeep_server, which owns nothing, and inside `TeamDatabase.workspace`, which names the
one workspace whose rows it may see. Administration (`truekeep server`, `truekeep token`) works as the owner.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import BadSetup, NewerState, StorageFailed
from truekeep.core.extras import install_command

try:
    import psycopg
    import psycopg_pool
except ImportError as error:
    raise BadSetup(
        "the team server needs a PostgreSQL client, which is not installed", hint=install_command("server")
    ) from error

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

ROLE = "truekeep_server"
SCHEMA = "truekeep"
DATABASE_ENV = "TRUEKEEP_DATABASE"
LEAST_POSTGRES = 16
CONNECT_SECONDS = 5
# A process that is paused inside a transaction must not keep others from taking over.
_SESSION = (
    f"SET search_path = {SCHEMA}, pg_temp; SET statement_timeout = '60s';"
    " SET idle_in_transaction_session_timeout = '15s'; SET lock_timeout = '20s'"
)
_MIGRATION = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql\Z")
_MIGRATION_LOCK = 0x746B6D67  # "tkmg"


_AWAY = (  # also a connection that the server ended, as when a transaction was idle for too long
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.InternalError,
    psycopg_pool.PoolTimeout,
    psycopg_pool.PoolClosed,
)


class DatabaseAway(StorageFailed):
    """The database does not answer. What was acknowledged is in it; nothing else was begun."""

    code = "database-away"


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """Every migration that this truekeep knows, in order."""
    return sorted(
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in files("truekeep.server.migrations").iterdir()
        if (match := _MIGRATION.match(file.name))
    )


class TeamDatabase:
    """The database of a deployment, as the server uses it."""

    def __init__(self, url: str, *, size: int = 16) -> None:
        def configure(connection: Connection[Any]) -> None:
            connection.autocommit = True
            connection.execute(f"{_SESSION}; SET ROLE {ROLE}")

        check_url(url)
        logging.getLogger("psycopg.pool").propagate = False  # what concerns a person is an error of ours
        self._pool = psycopg_pool.ConnectionPool(
            url,
            min_size=0,
            max_size=size,
            open=False,
            timeout=CONNECT_SECONDS,
            # Shorter than a request waits, or the growing pauses between attempts outlast it when the database is back.
            reconnect_timeout=CONNECT_SECONDS / 2,
            configure=configure,
            check=psycopg_pool.ConnectionPool.check_connection,
            kwargs={"connect_timeout": CONNECT_SECONDS, "application_name": "truekeep"},
        )
        self._url = url
        self._pool.open()

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def plain(self) -> Iterator[Cursor[Any]]:
        """A cursor outside of every workspace: no rows of one are visible."""
        with _explained(), self._pool.connection() as connection, connection.cursor() as cursor:
            yield cursor

    @contextmanager
    def workspace(self, number: int, *, is_snapshot: bool = False) -> Iterator[Cursor[Any]]:
        """A transaction inside one workspace; `is_snapshot`: all of it sees one moment."""
        with (
            _explained(),
            self._pool.connection() as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            if is_snapshot:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT set_config('truekeep.workspace', %s, true)", (str(number),))
            yield cursor

    def check_schema(self) -> None:
        """Raise unless the database has the schema of this truekeep."""
        with _explained(), psycopg.connect(self._url, connect_timeout=CONNECT_SECONDS) as connection:
            _check_version(connection)
            check_schema(connection)


@contextmanager
def as_owner(url: str) -> Iterator[Connection[Any]]:
    """A connection for administration, in one transaction. Row-level security does not hold for the owner."""
    check_url(url)
    with _explained(), psycopg.connect(url, connect_timeout=CONNECT_SECONDS, application_name="truekeep") as connection:
        _check_version(connection)
        connection.execute(_SESSION)
        yield connection


def check_url(url: str) -> None:
    """Raise unless this is something that libpq can read."""
    from psycopg.conninfo import conninfo_to_dict

    if not url:
        raise BadSetup(
            "no database is named", hint=f"set {DATABASE_ENV}=postgresql://USER@HOST/NAME, or give --database"
        )
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:  # its message may quote the password
        raise BadSetup(
            "the database's address cannot be read", hint="as in postgresql://USER@HOST:5432/NAME"
        ) from error


def migrate(url: str) -> list[str]:
    """Bring the schema up to date; gives the names of the migrations that ran. Two at once do it once."""
    with as_owner(url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN")
        if connection.execute("SELECT pg_has_role(current_user, %s, 'SET')", (ROLE,)).fetchone() != (True,):
            connection.execute(f"GRANT {ROLE} TO CURRENT_USER")
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL,"
            " at timestamptz NOT NULL DEFAULT now())"
        )
        done = _last_migration(connection)
        _check_newer(done)
        ran = []
        for step in migrations():
            if step.number > done:
                connection.execute(step.sql.encode())
                connection.execute("INSERT INTO migration (number, name) VALUES (%s, %s)", (step.number, step.name))
                ran.append(f"{step.number:04d}_{step.name}")
        return ran


def check_schema(connection: Connection[Any]) -> None:
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migration",)).fetchone()
    if found is None or found[0] is None:
        raise BadSetup("the database has no truekeep in it", hint="`truekeep server init` prepares it")
    connection.execute(f"SET search_path = {SCHEMA}, pg_temp")
    done, known = _last_migration(connection), migrations()[-1].number
    _check_newer(done)
    if done < known:
        raise BadSetup(
            f"the database has schema {done}, this truekeep needs {known}",
            hint="`truekeep server migrate`; servers that run may go on running meanwhile",
        )


def _last_migration(connection: Connection[Any]) -> int:
    row = connection.execute("SELECT coalesce(max(number), 0) FROM migration").fetchone()
    return int(row[0]) if row else 0


def _check_newer(done: int) -> None:
    known = migrations()[-1].number
    if done > known:
        raise NewerState(
            f"the database was migrated by a newer truekeep (schema {done}, this one knows {known})",
            hint="upgrade truekeep on this machine",
        )


def _check_version(connection: Connection[Any]) -> None:
    major = connection.info.server_version // 10_000
    if major < LEAST_POSTGRES:
        raise BadSetup(f"PostgreSQL {major} is too old", hint=f"version {LEAST_POSTGRES} or newer")


@contextmanager
def _explained() -> Iterator[None]:
    """Turn the driver's errors into ours. Their texts may name hosts and values, so only the first kind keeps one."""
    try:
        yield
    except _AWAY as error:
        raise DatabaseAway(f"the database cannot be used: {_why(error)}", hint=_hint(error)) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise BadSetup(
            "the database's user lacks a right", hint=f"use its owner, or a user with the role {ROLE}"
        ) from error


def _why(error: Exception) -> str:
    text = str(error).lower()
    if "password authentication failed" in text or "no password supplied" in text:
        return "it refuses this user and password"
    if "does not exist" in text and "database" in text:
        return "there is no such database"
    if isinstance(error, psycopg_pool.PoolTimeout) or "connection" in text:
        return "it does not answer"
    return type(error).__name__


def _hint(error: Exception) -> str:
    if "password" in str(error).lower():
        return "correct the user or password; a password can be in ~/.pgpass"
    return "start it, and try again; what was acknowledged is kept there"
