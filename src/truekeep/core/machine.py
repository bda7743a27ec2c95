"""The identity of this machine and its user.

A machine's id comes from the operating system and does not change with the host name, so a workspace copied to another
machine does not match there. Only a keyed hash of the id is ever written.
"""

from __future__ import annotations

import getpass
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from truekeep.core.digest import sha256

HOST_FILE = "host"  # in the state folder: the machine that created the workspace
HOSTS_FOLDER = "hosts"  # in the state folder: a file for each machine that ever was canonical host
_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")


class Machine(NamedTuple):
    """This computer: an id that stays, and the name people know it by."""

    id: str
    name: str


def own_state() -> str:
    """The folder for state of this machine and user that belongs to no workspace."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "truekeep")


def below_home(path: object, home: object) -> str:
    """The path with the home folder written as a tilde."""
    text, above = str(path), f"{home}/"
    return f"~/{text.removeprefix(above)}" if text.startswith(above) else text


def has_routes() -> bool:
    """True if this machine has its own sync routes."""
    return os.path.isfile(os.path.join(own_state(), "sync.toml"))


def machine_name() -> str:
    return os.uname().nodename or "unnamed"


def person() -> str:
    """The user's login name, as recorded in the ledger."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def running_harness() -> str:
    """The harness that runs this process, judged by its environment variables; "" for a person."""
    if "CLAUDECODE" in os.environ:
        return "claude"
    if any(key.startswith("CODEX_") for key in os.environ):
        return "codex"
    return "openclaw" if "OPENCLAW_SHELL" in os.environ else ""


def this_machine() -> Machine:
    return known_machine() or _machine(_own_id())


def known_machine() -> Machine | None:
    """This machine if it already has an id; never creates one."""
    raw = os.environ.get("TRUEKEEP_MACHINE_ID") or _system_id()
    if not raw and os.path.exists(own_id_path()):
        raw = _own_id()
    return _machine(raw) if raw else None


def _machine(raw: str) -> Machine:
    name = machine_name()
    return Machine(id=sha256(f"truekeep machine {raw}".encode()).hexdigest()[:32], name=name)


def _system_id() -> str:
    for path in _MACHINE_ID_FILES:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text != "uninitialized":
            return text
    return _mac_id() if sys.platform == "darwin" else ""


def _mac_id() -> str:
    import subprocess  # only on macOS

    try:
        done = subprocess.run(
            ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"], capture_output=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    for line in done.stdout.decode("ascii", "replace").splitlines():
        if "IOPlatformUUID" in line:
            return line.rpartition("=")[2].strip(' "')
    return ""


def own_id_path() -> str:
    return os.path.join(own_state(), "machine-id")


def _own_id() -> str:
    """The id in the user's state folder, for systems without a machine id; created if missing."""
    path = Path(own_id_path())
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    import secrets  # only on systems without a machine id

    from truekeep.core import file_io

    file_io.write_once(path, f"{secrets.token_hex(16)}\n".encode())
    return path.read_text(encoding="ascii").strip()
