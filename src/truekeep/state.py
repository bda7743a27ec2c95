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
from typing import NamedTuple

from truekeep import __version__, disk
from truekeep.config import Config, parse_config, render_config
from truekeep.errors import BadSetup, Busy, NotCanonical
from truekeep.host import Machine

STATE = ".truekeep"
FORMAT = 1
LOG_BYTES = 1_000_000
_IGNORED = "*.sqlite*\nlogs/\nlexicon.bin\nindex.lock\nmcp-token\nsynced/\nexchange/\ncontacts/\nsync.lock.d/\n"


class Host(NamedTuple):
    """The machine that may write a workspace, as the workspace records it."""

    id: str
    name: str
    since: str


class State:
    """The state folder of one workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / STATE

    def host(self) -> Host:
        values = self._host_values()
        return Host(id=str(values.get("id", "")), name=str(values.get("name", "?")), since=str(values.get("since", "")))

    def check_host(self, machine: Machine, what: str) -> None:
        """Raise unless this machine is the canonical host."""
        host = self.host()
        if host.id != machine.id:
            other = host.name if host.name != machine.name else f"another machine that is called {host.name} too"
            raise NotCanonical(
                f"this machine ({machine.name}) may not {what}: the canonical host is {other}",
                hint="run it there; here, `truekeep handoff new` leaves a handoff (docs/operations.md, Moving)",
                host=host.name,
            )

    def check_format(self) -> None:
        version = self._host_values().get("format", FORMAT)
        if not isinstance(version, int) or version > FORMAT:
            raise BadSetup(
                f"{self.root} has format {version}; truekeep {__version__} knows {FORMAT}", hint="upgrade truekeep"
            )

    def _host_values(self) -> dict[str, object]:
        import tomllib

        path = self.path / "host"
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise BadSetup(f"{path} is missing", hint=f"`truekeep init {self.root}` writes it") from error
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadSetup(f"{path} cannot be read: {error}", hint="restore it from a backup") from error

    def config(self) -> Config:
        path = self.path / "config.toml"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetup(f"{path} cannot be read: {error}", hint="mend or remove it") from error
        return parse_config(text, where=str(path))

    def make(self, machine: Machine, repositories: tuple[str, ...], *, at: str, is_new: bool) -> tuple[str, ...]:
        """Write what is missing, each file whole, and say what was written. What is there stays as it is."""
        import json

        host = f'format = {FORMAT}\nid = "{machine.id}"\nname = {json.dumps(machine.name)}\nsince = "{at}"\n'
        files = {
            f"{STATE}/config.toml": render_config(repositories),
            f"{STATE}/.gitignore": _IGNORED,
        }
        (self.path / "logs").mkdir(exist_ok=True)
        if is_new:
            for folder in ("memory/cards", "memory/handoff-inbox"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            files["MEMORY.md"] = "# Memory\n\n## Cards\n"
        files[f"{STATE}/host"] = host  # last: its presence says that the rest is there
        return tuple(name for name, text in files.items() if self._write_missing(name, text.encode()))

    def _write_missing(self, name: str, data: bytes) -> bool:
        above, _, last = name.rpartition("/")
        folder = disk.open_root(str(self.root / above))
        try:
            if os.path.lexists(self.root / name):
                return False
            disk.write_beside(folder, last, data)
            disk.put_new(folder, last, shown=name)
            os.fsync(folder)
        finally:
            os.close(folder)
        return True

    @contextmanager
    def lock(self, wait: float = 0) -> Iterator[None]:
        """Be the only one who writes; wait some seconds for whoever does."""
        deadline = time.monotonic() + wait
        while True:
            with disk.locked(str(self.path)) as held:
                if held:
                    yield
                    return
            if time.monotonic() >= deadline:
                raise Busy(f"another truekeep is writing {self.root}", hint="wait for it to end and run it again")
            time.sleep(0.02)

    def log(self, name: str, line: str) -> None:
        """Append a line to a log."""
        append_line(str(self.path / "logs"), name, line)


def append_line(folder: str, name: str, line: str) -> None:
    """Append a line to a log in a folder. A full disk costs only the line, and a symlink is not written through."""
    path = os.path.join(folder, name)
    with suppress(OSError):
        if os.path.islink(folder):
            return
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(path) and os.stat(path).st_size > LOG_BYTES:
            os.replace(path, f"{path}.1")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:
            file.write(line + "\n")
