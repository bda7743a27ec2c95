"""Signing in with a browser: sessions, cookies, forms of other sites, and what a session may see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.support.helpers import Place
from tests.support.team import Team
from truekeep.interfaces.api.app import Api
from truekeep.interfaces.api.html import html_answer
from truekeep.server.accounts import Caller, Refused, make_token, revoke_token, set_grant
from truekeep.server.database import as_owner
from truekeep.server.handoff_queue import Quotas
from truekeep.server.sign_in import find_signed_in, start_with_token

HOST = "https://memory.example"


def app_of(team: Team, name: str = "one") -> Starlette:
    """The application, and a page and a form as others would write them."""
    api = Api(team.server(name), Quotas(), url=HOST)
    app = api.app()

    async def page(request: Request) -> Response:
        signed_in = api.sessions.require(request)
        return PlainTextResponse(f"{signed_in.caller.name} {signed_in.csrf} {signed_in.caller.workspaces[0].role}")

    async def form(request: Request) -> Response:
        fields = await api.sessions.read_form(request, api.sessions.require(request))
        return PlainTextResponse(fields["word"])

    app.router.routes += [
        Route("/page", html_answer(page), methods=["GET"]),
        Route("/form", html_answer(form), methods=["POST"]),
    ]
    return app


@pytest.fixture
def app(team: Team, place: Place) -> Starlette:
    team.add(place)
    return app_of(team)


@pytest.fixture
def browser(app: Starlette) -> Iterator[TestClient]:
    with TestClient(app, base_url=HOST, raise_server_exceptions=False) as browser:
        yield browser


def test_a_token_signs_in_and_out(team: Team, browser: TestClient) -> None:
    asked = browser.get("/page?a=ö", follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=%2Fpage%3Fa%3D%25C3%25B6")
    shown = browser.get("/page?a=1")
    assert 'name="next" value="/page?a=1"' in shown.text
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    done = browser.post(
        "/sign-in", data={"token": team.member("ada", "writer"), "next": "/page?a=1"}, follow_redirects=False
    )
    assert (done.status_code, done.headers["location"]) == (303, "/page?a=1")
    cookie = done.headers["set-cookie"].lower()
    assert cookie.startswith("__host-truekeep-session=tks_")
    assert {"httponly", "secure", "samesite=lax", "path=/"} <= set(cookie.split("; "))
    name, word, role = browser.get("/page").text.split()
    assert (name, role) == ("ada", "writer")
    assert browser.post("/form", data={"word": "yes", "csrf": word}).text == "yes"
    assert browser.post("/form", data={"word": "yes", "csrf": "0" * 64}).status_code == 403
    assert browser.post("/sign-out", data={"csrf": "x"}).status_code == 403
    kept = browser.cookies["__Host-truekeep-session"]
    assert browser.post("/sign-out", data={"csrf": word}, follow_redirects=False).headers["location"] == "/sign-in"
    assert browser.get("/page", follow_redirects=False).status_code == 303
    browser.cookies.set("__Host-truekeep-session", kept)
    assert browser.get("/page", follow_redirects=False).status_code == 303, "it is over on the server, too"
    with as_owner(team.url) as connection:
        acts = connection.execute("SELECT act, actor FROM audit WHERE act LIKE 'signed%' ORDER BY id").fetchall()
        kept_bytes = connection.execute("SELECT hash FROM browser_session").fetchall()
    assert acts == [("signed-in", "ada"), ("signed-out", "ada")]
    assert kept.encode() not in kept_bytes[0][0]


def test_a_session_has_no_more_than_its_token_and_ends_with_it(team: Team, app: Starlette) -> None:
    team.member("ada", "owner")
    number, token = make_token(team.url, "ada", workspace="team", role="reader")
    database = team.servers[0].database
    session = start_with_token(database, token)
    assert isinstance(session, str)
    found = find_signed_in(database, session)
    assert isinstance(found, Caller)
    assert [(reach.name, reach.role) for reach in found.workspaces] == [("team", "reader")]
    set_grant(team.url, "ada", "team", "none")
    assert find_signed_in(database, session) == found._replace(workspaces=())
    revoke_token(team.url, number)
    assert find_signed_in(database, session) == Refused("revoked")
    assert start_with_token(database, token) == Refused("revoked")
    assert start_with_token(database, "tk1_x") == Refused("unknown")
    assert find_signed_in(database, token) == Refused("unknown"), "a token is no session"


def test_a_session_expires_and_a_disabled_account_has_none(team: Team, app: Starlette) -> None:
    database = team.servers[0].database
    session = start_with_token(database, team.member("ada"))
    assert isinstance(session, str)
    with as_owner(team.url) as connection:
        connection.execute("UPDATE browser_session SET expires_at = now()")
    assert find_signed_in(database, session) == Refused("expired")
    other = start_with_token(database, team.member("eve"))
    assert isinstance(other, str)
    with as_owner(team.url) as connection:
        connection.execute("UPDATE account SET disabled_at = now() WHERE name = 'eve'")
    assert find_signed_in(database, other) == Refused("disabled")
    assert start_with_token(database, team.tokens["eve"]) == Refused("disabled")


def test_any_process_knows_a_session(team: Team, app: Starlette) -> None:
    with (
        TestClient(app, base_url=HOST) as one,
        TestClient(app_of(team, "two"), base_url=HOST) as two,
    ):
        one.post("/sign-in", data={"token": team.member("ada")}, follow_redirects=False)
        two.cookies.update(one.cookies)
        assert two.get("/page").text.startswith("ada ")
        assert one.get("/page").text == two.get("/page").text, "the word of the forms, too"


def test_a_page_elsewhere_signs_nobody_in(team: Team, browser: TestClient) -> None:
    data = {"token": team.member("ada")}
    for headers in (
        {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"},
        {"origin": "http://memory.example"},
    ):  # fmt: skip
        refused = browser.post("/sign-in", data=data, headers=headers, follow_redirects=False)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
    own = {"origin": HOST, "sec-fetch-site": "same-origin"}
    assert browser.post("/sign-in", data=data, headers=own, follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    "given", ["//evil.example/x", "https://evil.example", "/\\evil.example", "\\\\evil.example", "/\tevil", "x" * 5_000]
)
def test_signing_in_leads_to_this_server_alone(team: Team, browser: TestClient, given: str) -> None:
    data = {"token": team.member("ada"), "next": given}
    where = browser.post("/sign-in", data=data, follow_redirects=False).headers["location"]
    assert where.startswith("/")
    assert not where.startswith(("//", "/\\"))


def test_wrong_tokens_and_forms_get_a_page(team: Team, browser: TestClient) -> None:
    wrong = browser.post("/sign-in", data={"token": "tk1_x", "next": "/page"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert "a valid token is needed" in wrong.text
    assert 'value="/page"' in wrong.text
    assert browser.post("/sign-in", content=b"x").status_code == 400
    large = browser.post(
        "/sign-in", content=b"x" * 300_000, headers={"content-type": "application/x-www-form-urlencoded"}
    )
    assert large.status_code == 413
    many = {f"f{number}": "" for number in range(1_500)}
    assert browser.post("/sign-in", data=many).status_code == 400
    assert browser.post("/sign-out", data={"csrf": "x"}, follow_redirects=False).status_code == 303


def test_over_loopback_without_tls_the_cookie_can_be_kept(team: Team, place: Place) -> None:
    team.add(place)
    api = Api(team.server(), Quotas(), url="http://127.0.0.1:8381")
    with TestClient(api.app(), base_url="http://127.0.0.1:8381") as browser:
        done = browser.post(
            "/sign-in", data={"token": team.member("ada")}, headers={"origin": "http://127.0.0.1:8381"},
            follow_redirects=False,
        )  # fmt: skip
        assert done.headers["set-cookie"].startswith("truekeep-session-8381=tks_")
        assert "secure" not in done.headers["set-cookie"].lower()


def test_the_servers_role_reaches_no_row_of_a_session(team: Team, app: Starlette) -> None:
    import psycopg

    with pytest.raises(Exception) as raised, team.servers[0].database.plain() as cursor:  # noqa: PT011
        cursor.execute("SELECT * FROM browser_session")
    assert isinstance(raised.value.__cause__, psycopg.errors.InsufficientPrivilege)
