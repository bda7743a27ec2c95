"""Finds what listens on a port, without connecting to it: /proc/net on Linux, lsof on macOS."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from truekeep.verify.live_system.answers import SystemAnswer, ask_program, make_answer

_PROC = "/proc"
_HOST_NAMESPACE_MARKER = "/proc/sys/net/core/netdev_max_backlog"  # only in the first network namespace
_OWNER_SEARCH_SECONDS = 0.05


class _Listener(NamedTuple):
    """An open port."""

    port: int
    protocol: str
    address: str
    inode: str = ""
    owner: str = ""
    pid: str = ""


def query_ports(ports: Iterable[int]) -> dict[int, SystemAnswer]:
    """Find which of these ports something listens on (TCP) or is bound to (UDP)."""
    wanted: dict[int, list[_Listener]] = {port: [] for port in ports}
    listeners, blind_spot = _read_lsof() if sys.platform == "darwin" else _read_proc_net()
    for listener in listeners:
        if listener.port in wanted:
            wanted[listener.port].append(listener)
    owners = _find_owners({one.inode for found in wanted.values() for one in found if one.inode})
    return {port: _answer_for_port(port, found, owners, blind_spot) for port, found in wanted.items()}


def _answer_for_port(
    port: int, found: list[_Listener], owners: Mapping[str, tuple[str, str]], blind_spot: str
) -> SystemAnswer:
    if not 0 < port < 65536:
        return make_answer("unknown", f"{port} is not a port number")
    if not found:
        return (
            make_answer("unknown", blind_spot)
            if blind_spot
            else make_answer("absent", f"nothing listens on port {port}")
        )
    places = [f"{one.address}:{port}" + (" (UDP)" if one.protocol == "udp" else "") for one in found]
    known = [owner for one in found if (owner := owners.get(one.inode, (one.owner, one.pid)))[0]]
    where = ", ".join(dict.fromkeys(places[:4]))
    detail = {"address": where, "protocol": " ".join(sorted({one.protocol for one in found}))}
    if not known:
        return make_answer("there", f"open on {where}; the program is not visible to this user", detail)
    who = "; ".join(dict.fromkeys(f"{owner}, pid {pid}" for owner, pid in known[:4]))
    return make_answer("there", f"listening on {where} ({who})", detail | {"owner": known[0][0], "pid": known[0][1]})


def _read_proc_net() -> tuple[list[_Listener], str]:
    """Return every open port of this network namespace, and why there may be others; "" when the list is complete."""
    found: list[_Listener] = []
    blind_spot = (
        ""
        if os.path.exists(_HOST_NAMESPACE_MARKER)
        else "this container or sandbox cannot see the ports of the machine"
    )
    for table in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"{_PROC}/net/{table}", encoding="ascii", errors="replace") as lines:
                next(lines, "")
                for line in lines:
                    _, local, _, state, *rest = line.split()
                    if state == ("0A" if table.startswith("tcp") else "07"):  # listening; bound, with no peer
                        address, _, port = local.partition(":")
                        found.append(_Listener(int(port, 16), table[:3], _parse_address(address), inode=rest[5]))
        except FileNotFoundError:
            if table == "tcp":  # the others may be missing: a kernel without IPv6 has no tcp6
                return [], "this system does not list its open ports"
        except (OSError, ValueError, IndexError):
            blind_spot = "the list of open ports cannot be read"
    return found, blind_spot


def _parse_address(digits: str) -> str:
    """Parse an address as the kernel prints it: 32-bit words in the byte order of this machine."""
    words = [bytes.fromhex(digits[at : at + 8]) for at in range(0, len(digits), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    if len(words) == 1:
        return socket.inet_ntop(socket.AF_INET, packed)
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]"


def _find_owners(inodes: set[str]) -> dict[str, tuple[str, str]]:
    """Return program and pid for each socket, as far as this user may see them and they are found in time."""
    owners: dict[str, tuple[str, str]] = {}
    deadline = time.monotonic() + _OWNER_SEARCH_SECONDS
    for pid, link in _iter_open_files() if inodes else ():
        inode = link[8:-1] if link.startswith("socket:[") else ""
        if inode in inodes and inode not in owners:
            owners[inode] = (_read_name(pid), str(pid))
        if len(owners) == len(inodes) or time.monotonic() > deadline:
            break
    return owners


def _iter_open_files() -> Iterator[tuple[int, str]]:
    """Yield the open files of every process, and once "" for each process, so that the caller can check the time."""
    for pid in sorted(int(name) for name in os.listdir(_PROC) if name.isdecimal()):  # parents first
        yield pid, ""
        with suppress(OSError):  # of another user, or gone
            for number in os.listdir(f"{_PROC}/{pid}/fd"):
                with suppress(OSError):
                    yield pid, os.readlink(f"{_PROC}/{pid}/fd/{number}")


def _read_name(pid: int) -> str:
    try:
        with open(f"{_PROC}/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.readline(64).strip()
    except OSError:
        return ""


def _read_lsof() -> tuple[list[_Listener], str]:
    """Return the listeners of this user's programs; without privileges lsof lists no others."""
    output = ask_program("lsof", "-nP", "-iTCP", "-sTCP:LISTEN", "-Fpcn")
    found: list[_Listener] = []
    pid = owner = ""
    for line in output.text.split("\n"):  # one field to a line, named by its first letter
        if line.startswith("p"):
            pid, owner = line[1:], ""
        elif line.startswith("c"):
            owner = line[1:]
        elif line.startswith("n"):
            address, _, port = line[1:].rpartition(":")
            if re.fullmatch("[0-9]{1,5}", port):
                found.append(_Listener(int(port), "tcp", address, owner=owner, pid=pid))
    blind_spot = "lsof shows no such listener, but without privileges it does not see those of other users"
    return found, blind_spot if found else output.problem or blind_spot
