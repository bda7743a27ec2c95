"""Parts of truekeep that are only installed when asked for, and how to ask for them where truekeep is installed."""

from __future__ import annotations

import sys
from pathlib import PurePath


def install_command(extra: str) -> str:
    """What to run so that an extra is there: by the tool that keeps this installation."""
    wanted = f"'truekeep[{extra}]'"
    parts = PurePath(sys.prefix).parts
    if parts[-3:-1] == ("pipx", "venvs"):
        return f"pipx install --force {wanted}"
    if parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install {wanted}"
    return f"pip install {wanted}"
