"""The command that installs an optional extra of truekeep."""

from __future__ import annotations

import sys
from pathlib import PurePath


def install_command(extra: str) -> str:
    """The install command for an extra, with the tool that installed truekeep (pipx, uv or pip)."""
    requirement = f"'truekeep[{extra}]'"
    parts = PurePath(sys.prefix).parts
    if parts[-3:-1] == ("pipx", "venvs"):
        return f"pipx install --force {requirement}"
    if parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install {requirement}"
    return f"pip install {requirement}"
