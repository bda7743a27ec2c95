"""Paths of this user's harness configuration and of truekeep's plugin and backups. Opens nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Homes(NamedTuple):
    """Configuration paths of each harness, and truekeep's own folders, for one user."""

    home: Path
    claude: Path
    claude_json: Path
    codex: Path
    openclaw: Path
    openclaw_json: Path
    market: Path  # truekeep's plugin, at a path that no upgrade changes
    keep: Path  # the install record and the backups


def find_homes() -> Homes:
    """Resolve the paths as the harnesses themselves do: environment variables first, then defaults."""
    home = Path(os.environ.get("HOME") or Path.home())

    def folder(variable: str, default: str) -> Path:
        named = os.environ.get(variable)
        return Path(os.path.abspath(home / os.path.expanduser(named))) if named else home / default

    profile = os.environ.get("OPENCLAW_PROFILE") or "default"
    openclaw = folder("OPENCLAW_STATE_DIR", ".openclaw" if profile == "default" else f".openclaw-{profile}")
    claude = folder("CLAUDE_CONFIG_DIR", ".claude")
    return Homes(
        home=home,
        claude=claude,
        claude_json=(claude if os.environ.get("CLAUDE_CONFIG_DIR") else home) / ".claude.json",
        codex=folder("CODEX_HOME", ".codex"),
        openclaw=openclaw,
        openclaw_json=Path(os.environ.get("OPENCLAW_CONFIG_PATH") or openclaw / "openclaw.json"),
        market=folder("XDG_DATA_HOME", ".local/share") / "truekeep" / "plugin",
        keep=folder("XDG_STATE_HOME", ".local/state") / "truekeep" / "connect",
    )
