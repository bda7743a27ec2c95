"""Which machine this is, who is at it, and which one may write a workspace.

A machine's id comes from the operating system and survives a new host name; a workspace that is copied or synced to
another machine therefore does not match there. Only a keyed hash of the id is ever written down.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

FIRST, HOSTS = "host", "hosts"  # in the state folder: the machine that made a workspace, and those that ever wrote it
_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")


class Machine(NamedTuple):
    """This computer: an id that stays, and the name people know it by."""

    id: str
    name: str


def own_state() -> str:
    """The folder for what belongs to this machine and its user, and to no workspace."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "truekeep")


def below_home(path: object, home: object) -> str:
    """A path as people write it: what is in the home folder begins with a tilde."""
    text, above = str(path), f"{home}/"
    return f"~/{text.removeprefix(above)}" if text.startswith(above) else text


def has_routes() -> bool:
    """Whether this machine has ways of its own to send handoffs."""
    return os.path.isfile(os.path.join(own_state(), "sync.toml"))


def machine_name() -> str:
    return os.uname().nodename or "unnamed"


def person() -> str:
    """Who runs this, as the ledger names them."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def this_machine() -> Machine:
    return known_machine() or _machine(_own_id())


def known_machine() -> Machine | None:
    """This machine, if it has an id already. Makes none."""
    raw = os.environ.get("TRUEKEEP_MACHINE_ID") or _system_id()
    if not raw and os.path.exists(own_id_path()):
        raw = _own_id()
    return _machine(raw) if raw else None


def _machine(raw: str) -> Machine:
    import hashlib

    name = machine_name()
    return Machine(id=hashlib.sha256(f"truekeep machine {raw}".encode()).hexdigest()[:32], name=name)


def _system_id() -> str:
    for path in _FILES:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text != "uninitialized":
            return text
    return _mac_id() if sys.platform == "darwin" else ""


def _mac_id() -> str:
    import subprocess

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
    """A system without an id gets one that truekeep keeps in the user's state folder, outside any workspace."""
    path = Path(own_id_path())
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        pass
    import secrets

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="ascii") as file:
            file.write(secrets.token_hex(16) + "\n")
    except FileExistsError:
        pass
    return path.read_text(encoding="ascii").strip()
