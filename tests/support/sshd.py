"""A machine that answers ssh: a real sshd on loopback with keys, home and PATH of its own, run by the tests' own user.

with ssh_host(tmp_path, "laptop") as laptop:
    route = Route("laptop", "rsync", {**laptop.options, "repos": (f"{laptop.base}/repos/*",)})
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.helpers import wait_until
from tests.support.programs import need
from truekeep.handoffs.sync.routes import Option


class SshHost:
    """One such machine."""

    def __init__(self, base: Path, name: str) -> None:
        self.base, self.name = base, name
        self.home, self.bin = base / "home", base / "bin"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        for folder in (base, self.home, self.bin, base / "ssh"):
            folder.mkdir(parents=True, exist_ok=True)
        self.program("uname", f'if [ "$1" = -n ]; then echo {name}; else exec /usr/bin/uname "$@"; fi')
        self.make_key("host_key")
        self.make_key("user_key")
        (base / "ssh" / "authorized_keys").write_bytes((base / "ssh" / "user_key.pub").read_bytes())

    def program(self, name: str, script: str) -> None:
        """Put a program first on that machine's PATH."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def make_key(self, name: str) -> None:
        path = self.base / "ssh" / name
        path.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)

    @property
    def options(self) -> dict[str, Option]:
        """What a route to this machine needs, but for its repositories."""
        keys = self.base / "ssh"
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "ssh_options": (
                f'IdentityFile="{keys / "user_key"}"',
                "IdentitiesOnly=yes",
                "IdentityAgent=none",
                f'UserKnownHostsFile="{keys / "known_hosts"}"',
                "GlobalKnownHostsFile=/dev/null",
                "StrictHostKeyChecking=yes",
                "KexAlgorithms=curve25519-sha256",  # the quickest by far
            ),
        }

    def logins(self) -> int:
        """How often somebody came in."""
        return (self.base / "ssh" / "log").read_text(errors="replace").count("Accepted publickey")

    def trust(self) -> None:
        """Let the host key be known to whoever uses the options."""
        key = (self.base / "ssh" / "host_key.pub").read_text()
        (self.base / "ssh" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")

    def start(self) -> None:
        keys = self.base / "ssh"
        sshd = shutil.which("sshd")
        assert sshd is not None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", self.port))
            self.port = probe.getsockname()[1]
        (keys / "config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\n"
            f'HostKey "{keys / "host_key"}"\n'
            f'AuthorizedKeysFile "{keys / "authorized_keys"}"\n'
            f'PidFile "{keys / "pid"}"\n'
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nMaxStartups 100\nPrintMotd no\nUseDNS no\n"
            f'SetEnv "HOME={self.home}" "PATH={self.bin}:/usr/local/bin:/usr/bin:/bin"\n'
        )
        with open(keys / "log", "ab") as log:
            process = self._process = subprocess.Popen(
                [sshd, "-D", "-e", "-f", str(keys / "config")], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        if wait_until(lambda: process.poll() is not None or self._answers()) and process.poll() is None:
            self.trust()
            return
        said = (keys / "log").read_text(errors="replace").strip().splitlines()
        self.stop()
        pytest.skip(f"sshd does not start as this user: {said[-1] if said else 'it says nothing'}")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                return bool(connection.recv(4))
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None


@contextmanager
def ssh_host(base: Path, name: str = "laptop") -> Iterator[SshHost]:
    """A machine with its files below <base>/<name>; skips the test where there can be none."""
    need("ssh", "sshd", "ssh-keygen", "rsync")
    if os.getuid() == 0 and not os.path.isdir("/run/sshd"):
        os.makedirs("/run/sshd", 0o755, exist_ok=True)  # as its service does; sshd of root will not start without
    host = SshHost(base / name, name)
    host.start()
    try:
        yield host
    finally:
        host.stop()
