"""Signing in with an OpenID provider: a real one in a process of its own, over HTTP."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from tests.support.helpers import Place, run_cli
from tests.support.openid_provider import CLIENT, SECRET, RunningProvider, running_provider
from tests.support.program import Program
from tests.support.team import Team
from truekeep.core.errors import BadInput, BadSetup
from truekeep.interfaces.api.app import Api
from truekeep.server.accounts import Caller, set_grant
from truekeep.server.database import as_owner
from truekeep.server.handoff_queue import Quotas
from truekeep.server.openid import OpenIDProvider, verified_email
from truekeep.server.sign_in import OpenIDSettings, find_signed_in, link, list_links, unlink

HOST = "https://memory.example"
COOKIE = "__Host-truekeep-session"


@pytest.fixture(scope="module")
def provider() -> Iterator[RunningProvider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
def ready(team: Team, place: Place) -> Team:
    team.add(place)
    team.server()
    return team


def browser_of(team: Team, provider: RunningProvider, name: str = "", **given: Any) -> TestClient:
    settings = OpenIDSettings(
        **{
            "issuer": provider.issuer,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "domains": ("team.example",),
            **given,
        }
    )
    server = team.server(name) if name else team.servers[0]
    app = Api(server, Quotas(), url=HOST, openid=settings).app()
    return TestClient(app, base_url=HOST, raise_server_exceptions=False)


def begin(browser: TestClient, after: str = "/x") -> str:
    """To the provider and back, as a browser goes; gives the address that leads back."""
    there = browser.get("/sign-in/openid", params={"next": after}, follow_redirects=False)
    assert there.status_code == 303, there.text
    answer = httpx2.get(there.headers["location"], follow_redirects=False)
    assert answer.headers["location"].startswith(f"{HOST}/sign-in/openid/callback?")
    return answer.headers["location"]


def sign_in(browser: TestClient, after: str = "/x") -> Any:
    return browser.get(begin(browser, after), follow_redirects=False)


def who(team: Team, browser: TestClient) -> str:
    found = find_signed_in(team.servers[0].database, browser.cookies.get(COOKIE) or "")
    return found.name if isinstance(found, Caller) else ""


def test_somebody_who_is_linked_signs_in(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, email="Ada@Elsewhere.example")
    set_grant(ready.url, "ada", "team", "reviewer")
    browser = browser_of(ready, provider)
    shown = browser.get("/sign-in?next=/x")
    assert urlsplit(provider.issuer).netloc in shown.text
    assert "/sign-in/openid?next=%2Fx" in shown.text
    provider.sign_in_as("1", "ada@elsewhere.example")
    asked = parse_qs(urlsplit(browser.get("/sign-in/openid", follow_redirects=False).headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert all(len(asked[name][0]) >= 43 for name in ("state", "nonce", "code_challenge"))
    done = sign_in(browser)
    assert (done.status_code, done.headers["location"]) == (303, "/x")
    assert "__Host-truekeep-openid=" in done.headers["set-cookie"], "what waited in the browser is gone"
    assert who(ready, browser) == "ada"
    found = find_signed_in(ready.servers[0].database, browser.cookies[COOKIE])
    assert isinstance(found, Caller)
    assert [(reach.name, reach.role) for reach in found.workspaces] == [("team", "reviewer")]
    with as_owner(ready.url) as connection:
        acts = connection.execute("SELECT actor, detail->>'issuer' FROM audit WHERE act = 'signed-in'").fetchall()
    assert acts == [("ada", provider.issuer)]


def test_an_address_belongs_to_whom_it_first_brought(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, email="ada@elsewhere.example")
    browser = browser_of(ready, provider)
    provider.sign_in_as("1", "ada@elsewhere.example")
    assert sign_in(browser).status_code == 303
    provider.sign_in_as("1", "lovelace@elsewhere.example")
    assert sign_in(browser).status_code == 303, "the same person with another address"
    other = browser_of(ready, provider)
    provider.sign_in_as("2", "ada@elsewhere.example")
    refused = sign_in(other)
    assert (refused.status_code, who(ready, other)) == (403, "")
    assert "your subject there is 2" in refused.text
    assert [(row.account, row.subject) for row in list_links(ready.url)] == [("ada", "1")]
    set_grant(ready.url, "ada", "team", "reader")
    with browser:
        program = Program(browser, browser, HOST)
        program.register()
        tokens = program.tokens()
        assert program.call(tokens["access_token"]).status_code == 200
        assert unlink(ready.url, "ada") == 1
        assert who(ready, browser) == "", "sessions end, too"
        assert program.call(tokens["access_token"]).status_code == 401
        assert program.refresh(tokens["refresh_token"]).status_code == 400


def test_a_code_that_waits_ends_with_the_link(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, email="ada@elsewhere.example")
    set_grant(ready.url, "ada", "team", "reader")
    browser = browser_of(ready, provider)
    provider.sign_in_as("1", "ada@elsewhere.example")
    sign_in(browser)
    with browser:
        program = Program(browser, browser, HOST)
        program.register()
        code = program.code()
        unlink(ready.url, "ada")
        assert program.redeem(code).status_code == 400


def test_a_subject_can_be_linked(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, subject="auth0|7")
    browser = browser_of(ready, provider)
    provider.sign_in_as("auth0|7")
    assert sign_in(browser).status_code == 303
    assert who(ready, browser) == "ada"
    with pytest.raises(BadInput, match="signs in as ada already"):
        link(ready.url, "eve", provider.issuer, subject="auth0|7")


@pytest.mark.parametrize("is_verified", [False, None, "no", 1])
def test_an_address_that_was_not_verified_is_nobodys(ready: Team, provider: RunningProvider, is_verified: Any) -> None:
    link(ready.url, "ada", provider.issuer, email="ada@elsewhere.example")
    browser = browser_of(ready, provider)
    provider.sign_in_as("9", "ada@elsewhere.example", claims={"email_verified": is_verified})
    assert sign_in(browser).status_code == 403
    assert who(ready, browser) == ""


def test_addresses_of_a_domain_get_an_account_and_nothing_else(ready: Team, provider: RunningProvider) -> None:
    browser = browser_of(ready, provider)
    provider.sign_in_as("3", "Grace@Team.example")
    assert sign_in(browser).status_code == 303
    assert who(ready, browser) == "grace@team.example"
    found = find_signed_in(ready.servers[0].database, browser.cookies[COOKIE])
    assert isinstance(found, Caller)
    assert found.workspaces == ()
    for subject, email in (("4", "eve@evil.example"), ("5", "eve@sub.team.example"), ("6", "eve@evilteam.example")):
        other = browser_of(ready, provider)
        provider.sign_in_as(subject, email)
        assert (sign_in(other).status_code, who(ready, other)) == (403, "")
    set_grant(ready.url, "ida@team.example", "team", "owner")  # made by whoever runs the server
    other = browser_of(ready, provider)
    provider.sign_in_as("7", "ida@team.example")
    refused = sign_in(other)
    assert (refused.status_code, who(ready, other)) == (403, "")
    assert "nobody linked it to you" in refused.text


def test_claims_can_come_from_userinfo(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, email="ada@elsewhere.example")
    found = {"sub": "other", "email": "ada@elsewhere.example", "email_verified": True}
    browser = browser_of(ready, provider)
    provider.sign_in_as("1", userinfo=found)
    assert sign_in(browser).status_code == 403, "of somebody else"
    provider.sign_in_as("1", userinfo={**found, "sub": "1"})
    assert sign_in(browser).status_code == 303


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"forged": True}, 403),
        ({"unsigned": True}, 403),
        ({"claims": {"iss": "https://evil.example"}}, 403),
        ({"claims": {"aud": "another"}}, 403),
        ({"claims": {"aud": ["another", "truekeep"], "azp": "another"}}, 403),
        ({"claims": {"nonce": "x"}}, 403),
        ({"claims": {"nonce": None}}, 403),
        ({"claims": {"at_hash": "x"}}, 403),
        ({"claims": {"sub": None}}, 403),
        ({"claims": {"sub": 7}}, 403),
        ({"claims": {"sub": "x" * 300}}, 502),
        ({"times": {"exp": -200, "iat": -400}}, 403),
        ({"times": {"iat": 400, "exp": 800}}, 403),
        ({"times": {"exp": -60, "iat": -360}}, 303),  # the clocks differ by a minute
        ({"times": {"iat": 60, "nbf": 60}}, 303),
        ({"token": {"id_token": None}}, 502),
        ({"token": {"id_token": "x"}}, 403),
        ({"token": {"token_type": "mac"}}, 403),
        ({"status": 400}, 403),
        ({"status": 500}, 502),
        ({"error": "access_denied"}, 403),
        ({"new_keys": True}, 303),
    ],
)
def test_what_a_provider_may_and_may_not_say(
    ready: Team, provider: RunningProvider, told: dict[str, Any], status: int
) -> None:
    link(ready.url, "ada", provider.issuer, subject="1")
    browser = browser_of(ready, provider)
    provider.sign_in_as("1")
    assert sign_in(browser).status_code == 303
    browser.cookies.delete(COOKIE)
    provider.sign_in_as("1", **told)
    done = sign_in(browser)
    assert (done.status_code, bool(who(ready, browser))) == (status, status == 303), done.text
    assert SECRET not in done.text


def test_a_sign_in_is_finished_where_it_was_begun_and_once(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, subject="1")
    provider.sign_in_as("1")
    browser, other = browser_of(ready, provider), browser_of(ready, provider, "two")
    back = begin(browser)
    stolen = other.get(back, follow_redirects=False)
    assert (stolen.status_code, "not begun in this browser" in stolen.text) == (400, True)
    assert "__Host-truekeep-session" not in stolen.headers.get("set-cookie", "")
    assert browser.get(back.replace("state=", "state=x"), follow_redirects=False).status_code == 400
    assert browser.get(f"{back}&iss=https://evil.example", follow_redirects=False).status_code == 400
    kept = dict(browser.cookies)
    assert browser.get(back, follow_redirects=False).status_code == 303
    assert browser.get(back, follow_redirects=False).status_code == 400
    browser.cookies.update(kept)
    assert browser.get(back, follow_redirects=False).status_code == 403, "the code was used"
    back = begin(browser)
    other.cookies.update(browser.cookies)
    assert other.get(back, follow_redirects=False).status_code == 303, "any server process finishes it"


def test_a_code_of_somebody_else_cannot_be_brought_in(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "eve", provider.issuer, subject="eve")
    victim, attacker = browser_of(ready, provider), browser_of(ready, provider)
    provider.sign_in_as("eve")
    theirs = parse_qs(urlsplit(begin(attacker)).query)["code"][0]
    state = parse_qs(urlsplit(begin(victim)).query)["state"][0]
    done = victim.get("/sign-in/openid/callback", params={"code": theirs, "state": state}, follow_redirects=False)
    assert (done.status_code, who(ready, victim)) == (403, "")


def test_a_wrong_secret_and_a_provider_that_is_away(ready: Team) -> None:
    with running_provider() as provider:
        provider.sign_in_as("1")
        wrong = browser_of(ready, provider, client_secret="wrong")
        refused = sign_in(wrong)
        assert (refused.status_code, "invalid_client" in refused.text) == (403, True)
        assert "wrong" not in refused.text
        browser = browser_of(ready, provider)
        back = begin(browser)
        provider.tell(description={"issuer": "http://127.0.0.1:1"})
        assert browser_of(ready, provider).get("/sign-in/openid").status_code == 502
        provider.tell(description={"token_endpoint": "http://evil.example/token"})
        assert sign_in_status(browser_of(ready, provider)) == 500
    away = browser.get(back, follow_redirects=False)
    assert (away.status_code, "does not answer" in away.text) == (502, True)
    fresh = browser_of(ready, provider)
    assert fresh.get("/sign-in/openid").status_code == 502
    assert fresh.get("/sign-in").status_code == 200, "a token still signs in"


def sign_in_status(browser: TestClient) -> int:
    return int(sign_in(browser).status_code)


def test_a_provider_that_never_answers_holds_nothing_else_up(ready: Team, provider: RunningProvider) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent, ThreadPoolExecutor(60) as people:
        browser = browser_of(ready, provider, issuer=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with browser:
            waiting = [people.submit(browser.get, "/sign-in/openid") for _ in range(60)]
            connection, _ = silent.accept()  # by now the first one waits
            with connection:
                while sum(request.running() for request in waiting) < len(waiting):
                    time.sleep(0.01)
                assert browser.get("/api/v1/workspaces").status_code == 401
                assert not any(request.done() for request in waiting), "they still wait for the provider"
            silent.close()
            assert {request.result().status_code for request in waiting} == {502}


def test_a_disabled_account_stays_out(ready: Team, provider: RunningProvider) -> None:
    link(ready.url, "ada", provider.issuer, subject="1")
    with as_owner(ready.url) as connection:
        connection.execute("UPDATE account SET disabled_at = now()")
    browser = browser_of(ready, provider)
    provider.sign_in_as("1")
    assert (sign_in(browser).status_code, who(ready, browser)) == (403, "")


@pytest.mark.parametrize("issuer", ["http://login.example.com", "login.example.com", "ftp://x", ""])
def test_a_provider_is_reached_over_https(issuer: str) -> None:
    with pytest.raises(BadSetup):
        OpenIDProvider(OpenIDSettings(issuer=issuer, client_id="x"))
    assert SECRET not in repr(OpenIDSettings(issuer=issuer, client_id="x", client_secret=SECRET))


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": " Ada@X.example ", "email_verified": True}, "ada@x.example"),
        ({"email": "ada@x.example", "email_verified": "true"}, "ada@x.example"),
        ({"email": "ada@x@y.example", "email_verified": True}, ""),
        ({"email": "ada\n@x.example", "email_verified": True}, ""),
        ({"email": ["ada@x.example"], "email_verified": True}, ""),
        ({"email": "ada@x.example"}, ""),
        ({"email_verified": True}, ""),
    ],
)
def test_only_a_verified_address_counts(claims: dict[str, Any], email: str) -> None:
    assert verified_email(claims) == email


def test_commands_link_and_say_what_is_missing(ready: Team, provider: RunningProvider) -> None:
    env: dict[str, Any] = {"TRUEKEEP_DATABASE": ready.url}
    missing = run_cli("server", "link", "ada", "--email", "ada@x.example", **env)
    assert (missing.returncode, "no OpenID provider is named" in missing.stderr) == (3, True)
    env["TRUEKEEP_OIDC_ISSUER"] = provider.issuer
    assert run_cli("server", "link", "ada", "--email", "ada@x.example", **env).returncode == 0
    assert run_cli("server", "link", "ada", **env).returncode == 3
    assert "ada@x.example" in run_cli("server", "links", **env).stdout
    assert run_cli("server", "unlink", "ada", **env).returncode == 0
    assert run_cli("server", "unlink", "ada", **env).returncode == 3
    run = ("server", "run", "--port", "0")
    assert "--oidc-client-id" in run_cli(*run, **env).stderr
    env["TRUEKEEP_OIDC_CLIENT_ID"] = "x"
    assert "--public-url" in run_cli(*run, "--behind-proxy", **env).stderr
    assert "cannot be read" in run_cli(*run, "--oidc-secret-file", "/nowhere", **env).stderr
