"""The bearer token of the MCP server over HTTP: from the environment, else from a private file in the state folder."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup

if TYPE_CHECKING:
    from truekeep.core.state_dir import StateFolder

TOKEN_ENV = "TRUEKEEP_MCP_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE = "mcp-token"  # noqa: S105 - the name of a file
LEAST_TOKEN = 16


def find_token(variable: str, state: StateFolder) -> tuple[str, str]:
    """The token, and where a person finds it. What we start must not inherit it, so the variable goes."""
    given = os.environ.pop(variable, "").strip()
    if not given:
        path = state.path / TOKEN_FILE
        return kept_token(path), str(path)
    if len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        raise BadInput(f"${variable} is not a valid token", hint=f"{LEAST_TOKEN} or more letters and digits, no spaces")
    return given, f"${variable}"


def kept_token(path: Path) -> str:
    """The token in the state folder; creates one on first use."""
    try:
        return _read_token(path)
    except FileNotFoundError:
        pass
    _hide_from_git(path)
    folder = file_io.open_root(str(path.parent))
    by = f".{os.getpid()}-{os.urandom(4).hex()}"  # two servers may start at once
    try:
        file_io.write_beside(folder, path.name, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600, by=by)
        try:
            file_io.put_new(folder, path.name, by=by)
        except file_io.ChangedSince:
            file_io.discard(folder, path.name, by)
    finally:
        os.close(folder)
    return _read_token(path)


def _read_token(path: Path) -> str:
    hint = "delete it, and a new one is made"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise BadSetup(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise BadSetup(f"{path} is readable by others or belongs to another user", hint=hint)
        token = file.read(1_000).decode("ascii", "replace").strip()
    if len(token) < 32 or not token.replace("-", "").replace("_", "").isalnum() or not token.isascii():
        raise BadSetup(f"{path} contains no token", hint=hint)
    return token


def _hide_from_git(path: Path) -> None:
    """People keep workspaces in git. Those made before there was a token do not know that it stays here."""
    ignored = path.parent / ".gitignore"
    try:
        with open(os.open(ignored, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC), "r+") as file:
            text = file.read()
            if path.name not in text.split():
                file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{path.name}\n")
    except (OSError, UnicodeDecodeError):
        return
