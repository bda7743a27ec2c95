"""Who may use the site: a request that is meant for it, from its own pages, from a browser that has the link.

A web page elsewhere can make a browser send requests here, under a name of its own (DNS rebinding) or with the
browser's cookies (CSRF). So the host must be one that is served, an origin must be the site's own, the cookie is
strict, and every change carries a word that only the site's pages know. What is sent back may load nothing from
anywhere else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "truekeep"
MAX_FORM_BYTES = 2_000_000  # of one form
MAX_FORM_FIELDS = 1_000
TEXT_FIELDS = ("text", "title", "summary", "facts", "reason")  # form fields that people type into
FORM = "application/x-www-form-urlencoded"
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
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers send forms with `Origin: null`
    (b"x-dns-prefetch-control", b"off"),  # looking up the host of a link would tell its owner
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Keys:
    """The secrets of one site: for its link, its cookie and its forms."""

    def __init__(self, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._key = hashlib.sha256(f"truekeep {self.token}".encode()).digest()

    @property
    def cookie(self) -> str:
        return self._sign("cookie")

    @property
    def form(self) -> str:
        return self._sign("form")

    def seal(self, told: str) -> str:
        """A signature of a message that the site itself puts into an address."""
        return self._sign(f"told {told}")[:16]

    def _sign(self, what: str) -> str:
        return hmac.new(self._key, what.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return _is_same(given, self.token)

    def is_cookie(self, given: str) -> bool:
        return _is_same(given, self.cookie)

    def is_form(self, given: str) -> bool:
        return _is_same(given, self.form)

    def is_seal(self, given: str, told: str) -> bool:
        return _is_same(given, self.seal(told))


def _is_same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


class Refusal(NamedTuple):
    """The answer to a refused request.

    `onward` is an address to link to; `typed` is the text of a form that is not accepted any more.
    """

    status: int
    sentence: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    onward: str = ""
    typed: tuple[str, ...] = ()


class WebRequestGuard:
    """Refuses requests that may not use the site, and adds the site's headers to every response."""

    def __init__(
        self, app: ASGIApp, keys: Keys, hosts: Iterable[str], *, read_only: bool = False, has_tls: bool = False
    ) -> None:
        self._app = app
        self._keys = keys
        self._hosts = frozenset(host.lower() for host in hosts)
        self._read_only = read_only
        self._has_tls = has_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        port = f"{scope['server'][1]}" if scope.get("server") else ""
        refusal = self._judge(scope, port)
        if refusal is not None:
            if refusal.status == 401 and scope["method"] == "POST":
                refusal = refusal._replace(typed=await _typed(scope, receive))
            if scope["method"] not in SAFE:
                refusal = refusal._replace(headers=(*refusal.headers, (b"connection", b"close")))  # unread is its body
            await send_refusal(send, refusal)
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

    def _judge(self, scope: Scope, port: str) -> Refusal | None:
        """Why a request is not let through, if it is not."""

        method, hosts = scope["method"], _all_of(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower().removesuffix(f":{port}") not in {*self._hosts, _reached(scope)}:
            return Refusal(421, "This is not a host that is served here.")
        if (refusal := judge_origin(scope, hosts[0])) is not None:
            return refusal
        is_foreign = _is_foreign(scope)
        if method == "POST" and self._read_only:
            return Refusal(403, "This site is only for looking: it was opened with --read-only.")
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(name == "token" for name, _ in query):
            return self._enter(scope, query, port)
        if scope["path"].startswith("/static/"):
            return None
        name = _cookie_name(port)
        if any(self._keys.is_cookie(value) for value in _cookies(_all_of(scope, b"cookie"), name)):
            return None
        # After a link from elsewhere, the browser withholds the cookie once; a reload sends it.
        onward = _address(scope, query) if is_foreign else ""
        return Refusal(401, "Open the link that `truekeep serve` printed: it lets this browser in.", onward=onward)

    def _enter(self, scope: Scope, query: list[tuple[str, str]], port: str) -> Refusal:
        """Answer the printed link: set the cookie, and redirect to the address without the token."""
        tokens = [value for name, value in query if name == "token"]
        if scope["method"] not in SAFE or len(tokens) != 1 or not self._keys.is_token(tokens[0]):
            return Refusal(401, "This link is not valid any more: `truekeep serve` prints a new one each time.")
        cookie = f"{_cookie_name(port)}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict"
        cookie += "; Secure" if self._has_tls else ""
        where = _address(scope, [(name, value) for name, value in query if name != "token"])
        return Refusal(303, "", ((b"location", where.encode()), (b"set-cookie", cookie.encode())))


def judge_origin(scope: Scope, host: str) -> Refusal | None:
    """Why a request is refused that a page elsewhere sends, if it is one."""
    method = scope["method"]
    own = {f"http://{host.lower()}", f"https://{host.lower()}"}
    if any(origin.lower() not in own for origin in _all_of(scope, b"origin")):
        return Refusal(403, "This is not an origin that is served here.")
    is_visit = method in SAFE and _all_of(scope, b"sec-fetch-mode") == ["navigate"]
    if _is_foreign(scope) and not is_visit:
        return Refusal(403, "What a page elsewhere asks for is not answered; a link to here is.")
    if method not in (*SAFE, "POST"):
        return Refusal(405, "Only GET, HEAD and POST are served here.", ((b"allow", b"GET, HEAD, POST"),))
    return None


def _all_of(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _is_foreign(scope: Scope) -> bool:
    return any(site not in ("same-origin", "none") for site in _all_of(scope, b"sec-fetch-site"))


def _reached(scope: Scope) -> str:
    """The address of this machine that a request arrived at; as a host name it is always ours."""
    address = str(scope["server"][0]).lower() if scope.get("server") else ""
    return f"[{address}]" if ":" in address else address


def parse_fields(body: bytes) -> list[tuple[str, str]]:
    """The fields of a form; ValueError where they are too many."""
    return parse_qsl(body.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)


def typed_in(fields: Iterable[tuple[str, str]]) -> list[str]:
    """The text fields of a form, to show them again."""
    return [value for name, value in fields if name in TEXT_FIELDS and value.strip()]


async def _typed(scope: Scope, receive: Receive) -> tuple[str, ...]:
    """The text typed into a page of an earlier run of the site. Only its own pages get here."""
    if not any(
        name == b"content-type" and value.decode("latin-1").startswith(FORM) for name, value in scope["headers"]
    ):
        return ()
    body = bytearray()
    while len(body) <= MAX_FORM_BYTES:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    try:
        return tuple(typed_in(parse_fields(bytes(body[:MAX_FORM_BYTES]))))
    except ValueError:
        return ()


def _cookie_name(port: str) -> str:
    """Cookies belong to a host, whatever the port: two sites on one machine must not take each other's."""
    return f"{COOKIE}-{port}" if port else COOKIE


def _address(scope: Scope, query: Sequence[tuple[str, str]]) -> str:
    """A page of this site. It begins with one slash and holds no character that could make it another host's."""
    return "/" + quote(scope["path"].lstrip("/\\")) + (f"?{urlencode(query)}" if query else "")


def _cookies(headers: Iterable[str], name: str) -> Iterator[str]:
    """All cookies of a name; invalid and additional ones are harmless."""
    for header in headers:
        for pair in header.split(";"):
            given, _, value = pair.strip().partition("=")
            if given == name:
                yield value


async def send_refusal(send: Send, refusal: Refusal) -> None:
    body, kind = f"{refusal.sentence}\n", "plain"
    if refusal.onward:
        kind = "html"
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>truekeep</title><main><h1>truekeep</h1>'
            f'<p>A link elsewhere leads here: <a href="{escape(refusal.onward)}">go on</a>.</p>'
            f"<p>{escape(refusal.sentence)}</p></main>\n"
        )
    if refusal.typed:
        kind = "html"
        kept = "".join(
            f'<textarea aria-label="Yours" rows="16" readonly>\n{escape(one)}</textarea>' for one in refusal.typed
        )
        body = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>truekeep</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<link rel="stylesheet" href="/static/style.css"><main><h1>The site was restarted</h1>'
            f"<p>{escape(refusal.sentence)} Nothing was done. What you typed is below, so that it is not lost.</p>"
            f"{kept}</main>\n"
        )
    data = body.encode("utf-8", "replace")
    start = [(b"content-type", f"text/{kind}; charset=utf-8".encode()), (b"content-length", b"%d" % len(data))]
    start += [*refusal.headers, *HEADERS, (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": start})
    await send({"type": "http.response.body", "body": data})
