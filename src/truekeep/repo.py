"""Repositories: the only module that runs git.

Every call has a fixed argument list, no shell, a time limit, and nothing of the repository's configuration that could
run a program. A repository that git will not read is still a folder with a name.
"""

from __future__ import annotations

import os
from pathlib import Path

TIMEOUT = 10.0
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")


def find_top(folder: Path) -> Path | None:
    """The root of the repository that a folder is in: the nearest folder with a .git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def repository_name(root: Path) -> str:
    """How a repository is called in provenance: host/owner/name of its origin, else the folder's own name."""
    remote = _git(root, "config", "--local", "--get", "remote.origin.url")
    return (parse_remote(remote) if remote else "") or root.name


def parse_remote(url: str) -> str:
    """A remote as host/owner/name, without user, password, port or scheme. Empty for a path on this machine."""
    url = url.strip()
    scheme, separator, rest = url.partition("://")
    if not separator:
        if url.startswith(("/", ".", "~")) or ":" not in url:
            return ""
        rest = url
    elif scheme.lower() == "file":
        return ""
    # git takes the last @ before the path for the end of user and password, and so must we: a password may hold one.
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    host, colon, tail = authority.partition(":")
    if not separator and colon:
        path = f"{tail}{slash}{path}"  # host:path, as ssh writes it; with a scheme, what follows the colon is a port
    path = path.partition("?")[0].partition("#")[0].strip("/").removesuffix(".git")
    return f"{host.lower()}/{path}" if host and path else ""


def _git(root: Path, *arguments: str) -> str:
    """What git prints; empty when it fails, is missing or takes too long."""
    import subprocess

    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *_SAFE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
