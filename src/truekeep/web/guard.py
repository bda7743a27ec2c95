"""Who may use the site: a request that is meant for it, from its own pages, by somebody who has the link.

A web page elsewhere can make a browser send requests here, under a name of its own (DNS rebinding) or with the
browser's cookies (CSRF). So the host must be one that is served, an origin must be the site's own, the cookie is
strict, and every change carries a word that only the site's pages know. What is sent back may load nothing from
anywhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "truekeep"
MOST_BYTES = 2_000_000  # of a form
SAFE = ("GET", "HEAD")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Keys:
    """The secrets of one site: the word in its link, what the cookie holds, and what forms carry."""

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._key = hashlib.sha256(f"truekeep {self.token}".encode()).digest()

    @property
    def cookie(self) -> str:
        return self._sign("cookie")

    @property
    def form(self) -> str:
        return self._sign("form")

    def _sign(self, what: str) -> str:
        return hmac.new(self._key, what.encode(), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def is_cookie(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.cookie.encode())

    def is_form(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.form.encode())


class Guard:
    """Lets through what may come in, and puts the site's headers on everything that goes out."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Iterable[str], *, read_only: bool = False) -> None:
        self._app = app
        self._keys = keys
        self._hosts = frozenset(host.lower() for host in hosts)
        self._read_only = read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        port = f":{scope['server'][1]}" if scope.get("server") else ""
        refusal = self._judge(scope, port)
        if refusal is not None:
            await _answer(send, *refusal)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in HEADERS if header[0] not in there),
                    *([] if b"cache-control" in there else [(b"cache-control", b"no-store")]),
                ]
            await send(message)

        await self._app(scope, receive, guarded)

    def _judge(self, scope: Scope, port: str) -> tuple[int, str, Sequence[tuple[bytes, bytes]]] | None:
        """Why a request is not let through: the status, a sentence, and headers."""

        def all_of(name: bytes) -> list[str]:
            return [value.decode("latin-1") for key, value in scope["headers"] if key == name]

        hosts, origins = all_of(b"host"), all_of(b"origin")
        if len(hosts) != 1 or hosts[0].lower().removesuffix(port) not in self._hosts:
            return 421, "This is not a host that is served here.", ()
        own = {f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}"}
        if any(origin.lower() not in own for origin in origins):
            return 403, "This is not an origin that is served here.", ()
        if (
            any(site not in ("same-origin", "none") for site in all_of(b"sec-fetch-site"))
            and scope["method"] not in SAFE
        ):
            return 403, "A change comes from the site's own pages only.", ()
        if scope["method"] not in (*SAFE, "POST"):
            return 405, "Only GET, HEAD and POST are served here.", ()
        if scope["method"] == "POST" and self._read_only:
            return 403, "This site is only for looking: it was opened with --read-only.", ()
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if "token" in query:
            return self._enter(scope, query)
        if scope["path"].startswith("/static/"):
            return None
        if not any(
            self._keys.is_cookie(value) for value in _cookies(all_of(b"cookie"), f"{COOKIE}{port.replace(':', '-')}")
        ):
            return 401, "Open the link that `truekeep serve` printed: it lets this browser in.", ()
        return None

    def _enter(self, scope: Scope, query: dict[str, str]) -> tuple[int, str, Sequence[tuple[bytes, bytes]]]:
        """The link that was printed: it leaves a cookie and goes on without the token in the address."""
        if scope["method"] not in SAFE or not self._keys.is_token(query.pop("token")):
            return 401, "This link is not valid any more: `truekeep serve` prints a new one each time.", ()
        port = f"-{scope['server'][1]}" if scope.get("server") else ""
        # The path begins with one slash, so that it cannot name another host.
        rest = "/" + scope["path"].lstrip("/\\") + (f"?{urlencode(query)}" if query else "")
        cookie = f"{COOKIE}{port}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        return 303, "", ((b"location", rest.encode("ascii", "ignore")), (b"set-cookie", cookie.encode()))


def _cookies(headers: Sequence[str], name: str) -> list[str]:
    found = []
    for header in headers:
        try:
            jar = SimpleCookie(header)
        except CookieError:
            continue
        if name in jar:
            found.append(jar[name].value)
    return found


async def _answer(send: Send, status: int, text: str, headers: Sequence[tuple[bytes, bytes]]) -> None:
    body = f"{text}\n".encode()
    start = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode()), *headers]
    start += [*HEADERS, (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})
