"""Addresses that a server of this machine may listen on."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from urllib.parse import urlsplit

from truekeep.core.errors import BadInput

_HOST = re.compile(r"[a-z0-9.:-]+")


def parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    name = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        raise BadInput(f"{host!r} is not an address", hint="127.0.0.1, ::1, or an address of this machine") from None


def check_loopback(host: str) -> str:
    """The address, if it is one that only this machine reaches."""
    hint = "127.0.0.1 or ::1; from another machine, forward the port with ssh -L"
    try:
        address = parse_address(host)
    except BadInput:
        address = None
    if address is None or not address.is_loopback:
        raise BadInput(f"{host!r} is not a loopback address: memory is served to this machine only", hint=hint)
    return str(address)


def listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        hint = "use --port 0 for any free port"
        if error.errno == errno.EADDRNOTAVAIL:
            hint = "--host takes an address of this machine; 0.0.0.0 stands for all of them"
        raise BadInput(f"cannot listen on {address}:{port}: {why}", hint=hint) from error


def in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def outward_address(family: int) -> str:
    """The address of this machine that others reach it by, as far as it knows: the one on its way out."""
    far = ("2001:db8::1", 9) if family == socket.AF_INET6 else ("192.0.2.1", 9)
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(far)  # sends nothing
            found = str(probe.getsockname()[0])
    except OSError:
        return ""
    if ipaddress.ip_address(found.partition("%")[0]).is_loopback:
        return ""
    return in_url(found)


def parse_public_url(given: str) -> str:
    """The address that a server is known by, as scheme and host: https, or http on loopback."""
    told = given.rstrip("/").lower()
    hint = "as https://memory.example.com, without a path"
    try:
        url = urlsplit(told)
        host, port = url.hostname or "", url.port
    except ValueError:
        raise BadInput(f"{given!r} is not an address of a server", hint=hint) from None
    if not _HOST.fullmatch(host) or told != f"{url.scheme}://{in_url(host)}{f':{port}' if port else ''}":
        raise BadInput(f"{given!r} is not an address of a server", hint=hint)
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback_name(host)):
        raise BadInput(f"tokens would go to {given} in clear text", hint=hint)
    return told


def _is_loopback_name(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
