"""The version, the commit, and the programs and libraries in use, for --version. Must be quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from truekeep import __version__
from truekeep.core.formats import FORMATS, WORKSPACE
from truekeep.core.git import git_version, head_commit

_EMBEDDER = "wordllama"


def read_about() -> dict[str, Any]:
    """Everything that a bug report should say; None for what is missing."""
    import platform

    import apsw

    return {
        "version": __version__,
        "commit": read_commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "git": git_version() or None,
        "embedder": f"static ({_EMBEDDER} {_package_version(_EMBEDDER) or 'missing'})",
        "formats": {"workspace": WORKSPACE} | {name: known.number for name, known in FORMATS.items()},
    }


def read_commit() -> str | None:
    """The commit that it was built from; in a checkout, the commit that is checked out. None if unknown."""
    package = Path(__file__).parents[1]
    try:
        return (package / "commit.txt").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    checkout = package.parent.parent
    if not (checkout / ".git").exists() or not (checkout / "pyproject.toml").exists():
        return None
    return head_commit(checkout) or None


def _package_version(name: str) -> str:
    """A package's version from the name of its metadata folder; importlib.metadata would load an email parser."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for found in names:
            if found.startswith(f"{name}-") and found.endswith(".dist-info"):
                return found.removeprefix(f"{name}-").removesuffix(".dist-info")
    return ""


def render_about(about: dict[str, Any]) -> str:
    """The same as text."""
    commit = f" (commit {about['commit'][:12]})" if about["commit"] else ""
    formats = ", ".join(f"{name} {number}" for name, number in about["formats"].items())
    return "\n".join(
        (
            f"truekeep {about['version']}{commit}",
            f"Python {about['python']} on {about['platform']}",
            f"SQLite {about['sqlite']} by apsw {about['apsw']}, git {about['git'] or 'not found'}",
            f"embedder {about['embedder']}",
            f"formats of state: {formats}",
        )
    )
