"""Which team server a route of this machine goes to: its address, the token, and requests to it.

The token is in a file of its own below the user's state folder, that only the user can read; sync.toml has none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from truekeep import __version__
from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup, EditedSince, NotFound, TruekeepError
from truekeep.handoffs.sync.publication import MAX_HEAD_BYTES
from truekeep.handoffs.sync.runner import Unreachable
from truekeep.text.unicode import printable

if TYPE_CHECKING:
    import httpx

    from truekeep.handoffs.sync.routes import Route

TOKENS = "server-tokens"
_API = "/api/v1/workspaces"
_MAX_ANSWER = 16 << 20
_ERRORS: Mapping[str, type[TruekeepError]] = {
    "bad-input": BadInput, "not-found": NotFound, "edited-since": EditedSince, "forbidden": BadSetup,
    "unauthenticated": BadSetup,
}  # fmt: skip


def check_address(url: str) -> str:
    """The server's address. A token goes to nobody else: not in clear text over a network, nor into an address."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise BadInput(f"{printable(url)[:200]} is no server's address", hint="as in https://memory.example.com")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise BadInput(
            "the token would go over the network in clear text", hint="use the https:// address of the server"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def token_path(state: Path, route: str) -> Path:
    return state / TOKENS / route


def keep_token(state: Path, route: str, token: str) -> None:
    file_io.write_whole(token_path(state, route), token.encode() + b"\n", mode=0o600)


def forget_token(state: Path, route: str) -> None:
    token_path(state, route).unlink(missing_ok=True)


def read_token(state: Path, route: str) -> str:
    try:
        path = token_path(state, route)
        if path.stat().st_mode & 0o077:
            os.chmod(path, 0o600)
        return file_io.read_regular(path, follow=False).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreachable(f"there is no token for the route {route}", hint="`truekeep login URL` brings one") from error


class TeamClient:
    """Requests to one workspace on a server."""

    def __init__(self, url: str, token: str, workspace: str = "", *, seconds: float = 60.0) -> None:
        import httpx  # heavy, and only needed here

        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "User-Agent": f"truekeep/{__version__}"},
            timeout=httpx.Timeout(seconds, connect=15.0),
            follow_redirects=False,  # a redirect could take the token elsewhere
        )
        self._url = url
        self._workspace = workspace

    @classmethod
    def of_route(cls, route: Route, state: Path, *, seconds: float = 60.0) -> TeamClient:
        url = check_address(route.text("url"))
        return cls(url, read_token(state, route.name), route.text("workspace"), seconds=seconds)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> TeamClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def workspaces(self) -> dict[str, Any]:
        """The account, and the workspaces that the token reaches."""
        return self._json(self._send("GET", _API))

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return self._json(self._send("GET", self._path(path), params=query))

    def post(self, path: str, given: Mapping[str, Any]) -> dict[str, Any]:
        return self._json(self._send("POST", self._path(path), json=dict(given)))

    def hand_in(self, raw: bytes, **query: str) -> dict[str, Any]:
        """Hand in a handoff. When this returns, the server has it in its database."""
        return self._json(self._send("POST", self._path("/handoffs"), params=query, content=raw))

    def read_bytes(self, path: str, limit: int) -> bytes:
        return self._send("GET", self._path(path), limit=limit)

    def _path(self, path: str) -> str:
        return f"{_API}/{quote(self._workspace, safe='')}{path}"

    def _send(self, method: str, path: str, *, limit: int = _MAX_ANSWER, **given: Any) -> bytes:
        import httpx

        try:
            with self._http.stream(method, path, **given) as response:
                data = _read_limited(response, limit)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unreachable(
                f"{self._url} does not answer ({printable(str(error))[:200] or type(error).__name__})",
                hint="check the address and the network, and run it again; nothing was lost",
            ) from error
        if response.is_success:
            return data
        raise _error(response.status_code, data, self._url)

    def _json(self, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Unreachable(f"{self._url} gave no answer of a truekeep server", hint="is the address right?")
        return found


def _read_limited(response: httpx.Response, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in response.iter_bytes():
        size += len(piece)
        if size > limit:
            raise OSError("the answer is too long")
        pieces.append(piece)
    return b"".join(pieces)


def _error(status: int, data: bytes, url: str) -> Exception:
    """The server's error, with its own words if they are some."""
    told: dict[str, Any] = {}
    with suppress(ValueError, RecursionError, AttributeError, TypeError):
        told = dict(json.loads(data)["error"])
    code, message = str(told.get("code", "")), printable(str(told.get("message", "")))[:300]
    hint = printable(str(told.get("hint", "")))[:300]
    if not message:
        return Unreachable(f"{url} answered {status}", hint="is it a truekeep server? Nothing was lost")
    if status in (429, 503) or code not in _ERRORS:
        return Unreachable(f"{url}: {message}", hint=hint)
    if code == "unauthenticated":
        hint = "`truekeep login URL` with a new token"
    return _ERRORS[code](f"{url}: {message}", hint=hint)


class HttpPublication:
    """The publication that a server offers: as a copy installs it."""

    def __init__(self, client: TeamClient) -> None:
        self._client = client
        self._head: bytes | None = None

    def read_head(self) -> bytes | None:
        """The head as it was when it was first read."""
        self._head = self._head or self._client.read_bytes("/publication/head", MAX_HEAD_BYTES)
        return self._head

    def read_object(self, digest: str, limit: int) -> bytes | None:
        try:
            return self._client.read_bytes(f"/publication/objects/{digest}", limit)
        except NotFound:
            return None
