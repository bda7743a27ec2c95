"""The state folder, .truekeep: who may write the workspace, its configuration, its lock, its log. Never memory.

Everything in it can be read by a person; only the ledger and the catalogue, which have modules of their own, are
databases.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.config import Config, parse_config, render_config
from truekeep.core.errors import BadSetup, Busy, NewerState, as_argument
from truekeep.core.formats import FORMATS, LEDGER, WORKSPACE, check_newer
from truekeep.core.machine import FIRST, HOSTS, Machine
from truekeep.core.model import INDEX
from truekeep.core.toml import parse_toml

if TYPE_CHECKING:
    from truekeep.core.host_lease import HostStatus, Tenure

STATE = ".truekeep"
SYNCED = "synced"  # in it: what came from other machines
LOG_BYTES = 1_000_000
_HOST_BYTES = 65_536
FIRST_INDEX = "# Memory\n\n## Cards\n"  # as init makes it
_IGNORED = "*.sqlite*\nlogs/\nlexicon.bin\nindex.lock\nmcp-token\nsynced/\nexchange/\ncontacts/\nsync.lock.d/\n"


class Host(NamedTuple):
    """The machine that may write a workspace, as the workspace records it."""

    id: str
    name: str
    since: str


class StateFolder:
    """The state folder of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / STATE

    def host(self) -> Host:
        """The canonical host. Its id is empty while there is none, or more than one."""
        standing = self.standing()
        found = standing.canonical
        if found is None:
            return Host(id="", name="in doubt" if standing.is_split else "nobody", since="")
        return Host(id=found.id, name=found.name, since=found.taken_at)

    def standing(self) -> HostStatus:
        """What the workspace knows of its hosts."""
        from truekeep.core.host_lease import read_standing

        found = read_standing(str(self.path))
        if not found.tenures and not found.unreadable:
            raise self._no_host()
        return found

    def check_host(self, machine: Machine, what: str) -> Tenure:
        """Raise unless this machine is the canonical host, and knows the format of everything that is kept here."""
        from truekeep.core.host_lease import refusal

        standing = self.standing()
        found = standing.canonical
        if found is None or found.id != machine.id:
            raise refusal(standing, machine, what)
        check_newer(str(self.path), FORMATS.values())
        return found

    def write_tenure(self, tenure: Tenure) -> None:
        from truekeep.core.host_lease import write_tenure

        write_tenure(str(self.path), tenure)

    @property
    def is_begun(self) -> bool:
        """Whether some machine made this a workspace before."""
        return os.path.lexists(self.path / FIRST) or self._has_tenures()

    def _has_tenures(self) -> bool:
        from truekeep.core.host_lease import has_tenures

        return has_tenures(str(self.path))

    def check_format(self) -> None:
        """Raise unless this truekeep knows the format of the workspace, and of its history."""
        version = self._host_values().get("format", WORKSPACE)
        if not isinstance(version, int) or version > WORKSPACE:
            raise NewerState(
                f"{self.path / FIRST} was written by a newer truekeep (format {version}, this one knows {WORKSPACE})",
                hint="upgrade truekeep on this machine",
            )
        check_newer(str(self.path), (LEDGER,))

    def _host_values(self) -> dict[str, object]:
        path = self.path / FIRST
        try:
            top = file_io.open_root(str(self.path))
            try:
                raw, _ = file_io.read_file(top, FIRST, limit=_HOST_BYTES, shown=str(path))
            finally:
                os.close(top)
            return parse_toml(raw.decode())
        except FileNotFoundError as error:
            if self._has_tenures():
                return {}
            raise self._no_host() from error
        except (OSError, ValueError, RecursionError, file_io.ChangedSince) as error:
            raise BadSetup(
                f"{path} cannot be read: {error}", hint="restore it from a backup, or settle what git left in it"
            ) from error

    def _no_host(self) -> BadSetup:
        return BadSetup(f"{self.path / FIRST} is missing", hint=f"`truekeep init {as_argument(self.root)}` writes it")

    def config(self) -> Config:
        path = self.path / "config.toml"
        try:
            text = file_io.read_regular(path).decode()
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetup(f"{path} cannot be read: {error}", hint="mend or remove it") from error
        return parse_config(text, where=str(path))

    def make(self, machine: Machine, repositories: tuple[str, ...], *, at: str, is_new: bool) -> tuple[str, ...]:
        """Write what is missing, each file whole, and say what was written. What is there stays as it is."""
        from truekeep.core.host_lease import Tenure, quoted

        host = f'format = {WORKSPACE}\nid = "{machine.id}"\nname = {quoted(machine.name)}\nsince = "{at}"\n'
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
        # Last: their presence says that the rest is there. The machine's own file comes first, so that two machines
        # that both begin one are seen, even if a sync tool lets one `host` win.
        if not self.is_begun:
            self.write_tenure(Tenure(id=machine.id, name=machine.name, generation=1, taken_at=at))
            written.append(f"{STATE}/{HOSTS}/{machine.id}.toml")
        if self._write_missing(f"{STATE}/{FIRST}", host.encode()):
            written.append(f"{STATE}/{FIRST}")
        return tuple(written)

    def _name_repositories(self, text: str) -> bool:
        """Write the configuration anew, if it is as truekeep made it and names none: an import makes such a one."""
        path = self.path / "config.toml"
        if path.is_symlink() or path.read_bytes() != render_config(()).encode():
            return False
        file_io.write_whole(path, text.encode())
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
        """Be the only one who writes; wait some seconds for whoever does."""
        deadline = time.monotonic() + wait
        while True:
            with file_io.locked(str(self.path)) as held:
                if held:
                    yield
                    return
            if time.monotonic() >= deadline:
                raise Busy(f"another truekeep is writing {self.root}", hint="wait for it to end and run it again")
            time.sleep(0.02)

    def log(self, name: str, line: str) -> None:
        """Append a line to a log."""
        append_line(str(self.path / "logs"), name, line)

    def last_line(self, name: str) -> str:
        """The last line of a log; empty when there is none."""
        try:
            with open(self.path / "logs" / name, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 4_096))
                return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        except OSError:
            return ""


def append_line(folder: str, name: str, line: str) -> bool:
    """Append a line to a log in a folder, and give whether that worked.

    A full disk costs only the line, and a symlink is not written through.
    """
    path = os.path.join(folder, name)
    with suppress(OSError):
        if os.path.islink(folder):
            return False
        file_io.make_private(folder)
        if os.path.exists(path) and os.stat(path).st_size > LOG_BYTES:
            os.replace(path, f"{path}.1")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:
            file.write(line + "\n")
        return True
    return False
