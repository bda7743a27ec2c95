"""Programs that some tests run: a test that needs a missing one is skipped, and the end of the run says how to get it.

@pytest.mark.needs("rsync")     on a test, or as a module's pytestmark
need("ssh", "rsync")            in a fixture or a helper
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

import pytest

_PREFIX = "not installed: "


class Source(NamedTuple):
    """Where a program comes from; empty where a system does not have it."""

    apt: str
    brew: str = ""
    command: str = ""  # that installs it, when it is in no package
    others: tuple[str, ...] = ()  # other names of the same program


PROGRAMS = {
    "bash": Source("bash", "bash"),
    "busybox": Source("busybox"),
    "chromium": Source("chromium", "chromium", others=("chromium-browser",)),
    "crontab": Source("cron"),
    "ctags": Source("universal-ctags", "universal-ctags"),
    "dash": Source("dash", "dash"),
    "debootstrap": Source("debootstrap"),
    "dpkg-deb": Source("dpkg"),
    "fish": Source("fish", "fish"),
    "groff": Source("groff", "groff"),
    "lsof": Source("lsof", "lsof"),
    "man": Source("man-db"),
    "mandoc": Source("mandoc", "mandoc"),
    "mksh": Source("mksh", "mksh"),
    "node": Source("nodejs", "node"),
    "openssl": Source("openssl", "openssl"),
    "pipx": Source("pipx", "pipx"),
    "rclone": Source("rclone", "rclone"),
    "rsync": Source("rsync", "rsync"),
    "scp": Source("openssh-client", "openssh"),
    "ssh": Source("openssh-client", "openssh"),
    "ssh-keygen": Source("openssh-client", "openssh"),
    "sshd": Source("openssh-server", "openssh"),
    "strace": Source("strace"),
    "systemctl": Source("systemd"),
    "systemd-analyze": Source("systemd"),
    "toybox": Source("toybox"),
    "uv": Source("", "uv", command="pip install uv"),
    "unshare": Source("util-linux"),
    "zsh": Source("zsh", "zsh"),
    **dict.fromkeys(("claude", "codex", "openclaw"), Source("", command="make harnesses")),
}


def find(name: str) -> str | None:
    """The path of a program, under any of its names."""
    return next(filter(None, map(shutil.which, (name, *PROGRAMS[name].others))), None)


def need(*names: str) -> None:
    """Skip the test unless all of these programs are here."""
    if missing := [name for name in names if find(name) is None]:
        skip_without(*missing)


def skip_without(*names: str) -> NoReturn:
    """Skip the test, as one that cannot run without these programs."""
    pytest.skip(_PREFIX + ", ".join(names))


def how_to_get(reasons: Iterable[str], platform: str = sys.platform) -> str:
    """The programs that tests were skipped for, and what installs them; empty if there were none."""
    skipped = [reason.partition(_PREFIX)[2] for reason in reasons if _PREFIX in reason]
    missing = sorted({name for names in skipped for name in names.split(", ")})
    if not missing:
        return ""
    sources = [PROGRAMS[name] for name in missing]
    if platform == "darwin":
        manager, packages = "brew install", {source.brew for source in sources}
    else:
        manager, packages = "apt-get install", {source.apt for source in sources}
    commands = [" ".join((manager, *sorted(packages - {""})))] if packages - {""} else []
    commands += sorted({source.command for source in sources} - {""})
    tests = "1 test was" if len(skipped) == 1 else f"{len(skipped)} tests were"
    what = f"{tests} skipped, as these programs are not installed: {', '.join(missing)}."
    return f"{what} To run them: {'; '.join(commands)}" if commands else what
