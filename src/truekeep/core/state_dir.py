"""The state folder .truekeep: host leases, configuration, lock and logs of a workspace.

The databases in it have modules of their own.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core import file_io
from truekeep.core.config import Config, parse_config, render_config
from truekeep.core.errors import BadSetup, Busy, NewerState, as_argument
from truekeep.core.formats import FORMATS, LEDGER, WORKSPACE, check_newer
from truekeep.core.host_lease import (
    HostLease,
    HostStatus,
    has_leases,
    quote_toml,
    read_host_status,
    refusal,
    refuse_copy,
    write_lease,
)
from truekeep.core.machine import HOST_FILE, HOSTS_FOLDER, Machine
from truekeep.core.memory_copy import is_copy
from truekeep.core.model import INDEX

STATE = ".truekeep"
SYNCED = "synced"  # handoffs from other machines
LOG_BYTES = 1_000_000
_HOST_BYTES = 65_536
FIRST_INDEX = "# Memory\n\n## Cards\n"  # MEMORY.md as `init` writes it
_IGNORED = (
    "*.sqlite*\nlogs/\nlexicon.bin\nindex.lock\nmcp-token\nsynced/\nexchange/\ncontacts/\nsync.lock.d/\n"
    "tool-warnings.json\n"
)


class Host(NamedTuple):
    """The canonical host as recorded in the workspace."""

    id: str
    name: str
    since: str


class StateFolder:
    """The state folder of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / STATE

    def host(self) -> Host:
        """The canonical host. Its id is "" if there is none or more than one."""
        host_status = self.host_status()
        found = host_status.canonical
        if found is None:
            return Host(id="", name="in doubt" if host_status.is_split else "nobody", since="")
        return Host(id=found.id, name=found.name, since=found.taken_at)

    def host_status(self) -> HostStatus:
        """All host leases. Raises BadSetup if the folder has none."""
        found = read_host_status(str(self.path))
        if not found.leases and not found.unreadable:
            raise self._no_host()
        return found

    def check_host(self, machine: Machine, what: str) -> HostLease:
        """Raise unless this machine is the canonical host and knows the format of every state file."""
        host_status = self.host_status()
        found = host_status.canonical
        if is_copy(self.root):
            raise refuse_copy(host_status, machine, what)
        if found is None or found.id != machine.id:
            raise refusal(host_status, machine, what)
        check_newer(str(self.path), FORMATS.values())
        return found

    def write_lease(self, lease: HostLease) -> None:
        write_lease(str(self.path), lease)

    @property
    def is_begun(self) -> bool:
        """True if this folder was initialised before."""
        return os.path.lexists(self.path / HOST_FILE) or self._has_leases()

    def _has_leases(self) -> bool:
        return has_leases(str(self.path))

    def check_format(self) -> None:
        """Raise unless this truekeep knows the format of the workspace and of its ledger."""
        version = self._host_values().get("format", WORKSPACE)
        if not isinstance(version, int) or version > WORKSPACE:
            raise NewerState(
                f"{self.path / HOST_FILE} was written by a newer truekeep"
                f" (format {version}, this one knows {WORKSPACE})",
                hint="upgrade truekeep on this machine",
            )
        check_newer(str(self.path), (LEDGER,))

    def _host_values(self) -> dict[str, object]:
        path = self.path / HOST_FILE
        try:
            top = file_io.open_root(str(self.path))
            try:
                raw, _ = file_io.read_file(top, HOST_FILE, limit=_HOST_BYTES, shown=str(path))
            finally:
                os.close(top)
            return tomllib.loads(raw.decode())
        except FileNotFoundError as error:
            if self._has_leases():
                return {}
            raise self._no_host() from error
        except (OSError, ValueError, RecursionError, file_io.ChangedSince) as error:
            raise BadSetup(
                f"{path} cannot be read: {error}", hint="restore it from a backup, or resolve the git conflict in it"
            ) from error

    def _no_host(self) -> BadSetup:
        hint = f"run `truekeep init {as_argument(self.root)}` to create it"
        return BadSetup(f"{self.path / HOST_FILE} is missing", hint=hint)

    def config(self) -> Config:
        path = self.path / "config.toml"
        try:
            text = file_io.read_regular(path).decode()
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetup(f"{path} cannot be read: {error}", hint="correct or remove it") from error
        return parse_config(text, where=str(path))

    def make(self, machine: Machine, repositories: tuple[str, ...], *, at: str, is_new: bool) -> tuple[str, ...]:
        """Create missing files and return their names. Existing files stay as they are."""
        host = f'format = {WORKSPACE}\nid = "{machine.id}"\nname = {quote_toml(machine.name)}\nsince = "{at}"\n'
        files = {
            f"{STATE}/config.toml": render_config(repositories),
            f"{STATE}/.gitignore": _IGNORED,
        }
        (self.path / "logs").mkdir(exist_ok=True)
        if is_new:
            for folder in ("memory/cards", "memory/handoff-inbox"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            files[INDEX] = FIRST_INDEX
        written = [name for name, text in files.items() if self._write_missing(name, text.encode())]
        if repositories and self._name_repositories(files[f"{STATE}/config.toml"]):
            written.append(f"{STATE}/config.toml")
        # Last, because their presence means that the rest is complete. The lease file comes before `host`, so that two
        # machines that both initialise are noticed even if a sync tool overwrites one `host` with the other.
        if not self.is_begun:
            self.write_lease(HostLease(id=machine.id, name=machine.name, generation=1, taken_at=at))
            written.append(f"{STATE}/{HOSTS_FOLDER}/{machine.id}.toml")
        if self._write_missing(f"{STATE}/{HOST_FILE}", host.encode()):
            written.append(f"{STATE}/{HOST_FILE}")
        return tuple(written)

    def _name_repositories(self, text: str) -> bool:
        """Write the repositories into a configuration that sets nothing yet, as an import leaves it. Comments stay."""
        path = self.path / "config.toml"
        if path.is_symlink():
            return False
        present = path.read_bytes()
        if _settings(present) != _settings(render_config(()).encode()):
            return False
        line = next(line for line in _settings(text.encode()) if line.startswith(b"repositories"))
        file_io.write_whole(path, present.replace(b"repositories = []", line, 1))
        return True

    def _write_missing(self, name: str, data: bytes) -> bool:
        above, _, last = name.rpartition("/")
        folder = file_io.open_root(str(self.root / above))
        try:
            if os.path.lexists(self.root / name):
                return False
            file_io.write_beside(folder, last, data)
            file_io.put_new(folder, last, shown=name)
            os.fsync(folder)
        finally:
            os.close(folder)
        return True

    @contextmanager
    def lock(self, wait: float = 0) -> Iterator[None]:
        """Take the write lock, waiting up to `wait` seconds."""
        deadline = time.monotonic() + wait
        while True:
            with file_io.locked(str(self.path)) as is_locked:
                if is_locked:
                    yield
                    return
            if time.monotonic() >= deadline:
                raise Busy(
                    f"another truekeep is writing {self.root}", hint="wait until it has finished, then run this again"
                )
            time.sleep(0.02)

    def log(self, name: str, line: str) -> None:
        """Append a line to a log."""
        append_line(str(self.path / "logs"), name, line)

    def last_line(self, name: str) -> str:
        """The last line of a log; "" if there is none."""
        try:
            with open(self.path / "logs" / name, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4_096))
                return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        except OSError:
            return ""


def append_line(folder: str, name: str, line: str, *, is_private: bool = True) -> bool:
    """Append a line to a log. False if that fails, as on a full disk; symlinks are not followed.

    A private folder is made, and closed to other users; any other must exist.
    """
    path = os.path.join(folder, name)
    with suppress(OSError):
        if os.path.islink(folder):
            return False
        if is_private:
            file_io.make_private(folder)
        if os.path.exists(path) and os.stat(path).st_size > LOG_BYTES:
            os.replace(path, f"{path}.1")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:
            file.write(line + "\n")
        return True
    return False


def _settings(config: bytes) -> list[bytes]:
    """The lines of a configuration without comments and heads of tables: what it sets."""
    return [line for line in config.splitlines() if line.strip() and not line.startswith((b"#", b"["))]
