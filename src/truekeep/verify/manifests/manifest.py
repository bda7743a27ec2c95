"""What one file says, as values."""

from __future__ import annotations

from typing import NamedTuple


class Package(NamedTuple):
    """One package that a file asks for or locks."""

    name: str  # as it compares within its ecosystem
    spec: str  # as written; "" when the file says nothing
    version: str  # the exact version when the file pins or locks one
    line: int
    is_locked: bool
    is_direct: bool  # False for what a lock file has for other packages' sake, or cannot tell


class Script(NamedTuple):
    """Something that can be run by name: a make target, an npm script, an entry point."""

    tool: str
    name: str
    line: int


class Manifest(NamedTuple):
    """What one file says."""

    ecosystem: str
    name: str = ""
    version: str = ""
    packages: tuple[Package, ...] = ()
    scripts: tuple[Script, ...] = ()
    runtimes: tuple[tuple[str, str, int], ...] = ()  # (name, as written, line)
    ports: tuple[tuple[int, int], ...] = ()  # (port, line)
    services: tuple[tuple[str, int], ...] = ()  # (name, line)
    problem: str = ""
