"""OAuth for programs: who gets tokens, for what, and what goes wrong at each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from tests.support.helpers import Place, a_handoff
from tests.support.program import REDIRECT, Program, fields_of, pkce
from tests.support.team import Team
from truekeep.interfaces.api.app import PREFIX, Api
from truekeep.server import oauth
from truekeep.server.accounts import list_tokens, make_token, revoke_token, set_grant
from truekeep.server.administration import create_workspace
from truekeep.server.database import as_owner
from truekeep.server.handoff_queue import Quotas
from truekeep.server.oauth import list_clients, revoke_client

HOST = "https://memory.example"


@pytest.fixture
def http(team: Team, place: Place) -> Iterator[TestClient]:
    place.leave(a_handoff())
    place.ingest()
    team.add(place)
    create_workspace(team.url, "secret")
    with client_of(team) as http:
        yield http


def client_of(team: Team, name: str = "one") -> TestClient:
    app = Api(team.server(name), Quotas(), url=HOST).app()
    return TestClient(app, base_url=HOST, raise_server_exceptions=False)


@pytest.fixture
def program(team: Team, http: TestClient) -> Program:
    """A program that registered, and a browser in which ada, a writer, is signed in."""
    return program_of(team, http)


def program_of(team: Team, http: TestClient, account: str = "ada", role: str = "writer", **given: Any) -> Program:
    browser = TestClient(http.app, base_url=HOST, raise_server_exceptions=False)
    browser.post("/sign-in", data={"token": team.member(account, role)}, follow_redirects=False)
    program = Program(http, browser, HOST)
    assert program.register(**given).status_code == 201
    return program


def error_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


def test_a_program_finds_its_way(http: TestClient) -> None:
    """From the MCP address alone to every other address."""
    refused = http.post("/mcp/team", json={})
    told = refused.headers["www-authenticate"]
    where = f"{HOST}/.well-known/oauth-protected-resource/mcp/team"
    assert (refused.status_code, f'resource_metadata="{where}"' in told) == (401, True)
    resource = http.get(where).json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{HOST}/mcp/team", [HOST])
    metadata = http.get("/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == HOST, "as it is written: programs compare it letter by letter"
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["token_endpoint_auth_methods_supported"] == ["none"]
    for name in ("authorization", "token", "registration", "revocation"):
        assert metadata[f"{name}_endpoint"].startswith(f"{HOST}/oauth/")
    assert http.get("/.well-known/oauth-protected-resource").json()["resource"] == f"{HOST}/mcp"
    there, nowhere = (http.get(f"/.well-known/oauth-protected-resource/mcp/{name}") for name in ("secret", "nothing"))
    assert there.text.replace("secret", "nothing") == nowhere.text
    assert http.get("/.well-known/oauth-protected-resource/mcp/No%22such").status_code == 404


def test_without_a_public_address_there_is_no_oauth(team: Team, place: Place) -> None:
    team.add(place)
    with TestClient(Api(team.server(), Quotas()).app(), base_url=HOST) as http:
        assert "resource_metadata" not in http.post("/mcp/team", json={}).headers["www-authenticate"]
        assert http.get("/.well-known/oauth-authorization-server").status_code == 404
        assert http.post("/oauth/register", json={}).status_code == 404


def test_a_person_allows_a_program_to_read_and_write(team: Team, http: TestClient, program: Program) -> None:
    page = program.consent_page()
    for told in ("Claude Code", "http://localhost:33418", "team", "ada", "writer"):
        assert told in page.text
    assert "form-action 'self' http://localhost:33418;" in page.headers["content-security-policy"]
    answer = program.decide(page)
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert answer.headers["location"].startswith(f"{REDIRECT}?")
    assert (query["state"], query["iss"]) == (["a state"], [HOST])
    tokens = program.redeem(query["code"][0]).json()
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "read write")
    assert "version 1" in program.call(tokens["access_token"]).text
    wrote = program.call(tokens["access_token"], "memory_write", title="A port", summary="Port 1 is used.")
    assert wrote.json()["result"]["isError"] is False
    assert program.call(tokens["access_token"], path="/mcp").status_code == 200, "it reaches one workspace alone"
    header = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert http.get(f"{PREFIX}/team/status", headers=header).status_code == 401, "it is for MCP alone"
    (listed,) = [row for row in list_tokens(team.url) if row.is_oauth]
    assert (listed.account, listed.label, listed.workspace, listed.role) == ("ada", "Claude Code", "team", "writer")
    with as_owner(team.url) as connection:
        kept = connection.execute("SELECT hash FROM token UNION SELECT hash FROM oauth_refresh").fetchall()
        acts = connection.execute("SELECT actor, detail->>'name' FROM audit WHERE act = 'program-allowed'").fetchall()
    assert acts == [("ada", "Claude Code")]
    for token in (tokens["access_token"], tokens["refresh_token"]):
        assert token.encode() not in {bytes(row[0]) for row in kept}


def test_a_program_has_at_most_what_was_chosen_and_what_the_person_has(team: Team, http: TestClient) -> None:
    program = program_of(team, http, "eve", "reader")
    page = program.consent_page()
    assert 'value="writer"' not in page.text
    answer = program.decide(page, role="owner")
    tokens = program.redeem(parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]).json()
    assert tokens["scope"] == "read"
    refused = program.call(tokens["access_token"], "memory_write", title="A port", summary="Port 1 is used.")
    assert refused.json()["result"]["isError"]
    set_grant(team.url, "eve", "team", "owner")
    again = program.call(tokens["access_token"], "memory_write", title="A port", summary="Port 1 is used.")
    assert again.json()["result"]["isError"], "more for the person is not more for the program"
    set_grant(team.url, "eve", "team", "none")
    assert program.call(tokens["access_token"]).status_code == 404


def test_only_reading_can_be_asked_for_and_chosen(team: Team, program: Program) -> None:
    assert 'value="writer"' not in program.consent_page(scope="read").text
    answer = program.decide(program.consent_page(), role="reader")
    tokens = program.redeem(parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]).json()
    assert tokens["scope"] == "read"
    assert error_of(program.refresh(tokens["refresh_token"], scope="read write")) == (400, "invalid_scope")


def test_the_person_says_no(program: Program) -> None:
    answer = program.decide(program.consent_page(), decision="deny")
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert (query["error"], query["state"], query["iss"]) == (["access_denied"], ["a state"], [HOST])
    assert "code" not in query


def test_without_a_workspace_in_the_address_the_person_chooses(team: Team, http: TestClient) -> None:
    team.member("ada", "writer", "secret")
    program = program_of(team, http)
    page = program.consent_page(resource=f"{HOST}/mcp")
    assert '<option value="secret">' in page.text
    assert program.decide(page).status_code == 400
    answer = program.decide(page, workspace="secret")
    code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
    assert error_of(program.redeem(code)) == (400, "invalid_target"), "it was asked for another address"
    tokens = program.redeem(code, resource=f"{HOST}/mcp").json()
    assert "workspace secret" in program.call(tokens["access_token"], path="/mcp").text
    assert program.call(tokens["access_token"], path="/mcp/secret").status_code == 200
    assert program.call(tokens["access_token"], path="/mcp/team").status_code == 404


def test_a_hidden_workspace_and_a_missing_one_are_answered_alike(program: Program) -> None:
    pages = [program.consent_page(resource=f"{HOST}/mcp/{name}") for name in ("secret", "nothing")]
    assert {(page.status_code, page.content) for page in pages} == {(404, pages[0].content)}
    fields = fields_of(program.consent_page().text)
    answers = [
        program.browser.post(
            "/oauth/consent",
            data={**fields, "resource": f"{HOST}/mcp/{name}", "workspace": name, "decision": "allow"},
        )
        for name in ("secret", "nothing")
    ]
    assert {(page.status_code, page.content) for page in answers} == {(404, answers[0].content)}
    tokens = program.tokens()
    calls = [program.call(tokens["access_token"], path=f"/mcp/{name}") for name in ("secret", "nothing")]
    assert {(page.status_code, page.content) for page in calls} == {(404, calls[0].content)}


def test_who_is_not_signed_in_signs_in_and_goes_on(team: Team, http: TestClient) -> None:
    browser = TestClient(http.app, base_url=HOST)
    program = Program(http, browser, HOST)
    program.register()
    away = program.consent_page()
    assert away.headers["location"].startswith("/sign-in?next=%2Foauth%2Fconsent")
    shown = browser.get(away.headers["location"])
    back = browser.post(
        "/sign-in", data={**fields_of(shown.text), "token": team.member("ada")}, follow_redirects=False
    ).headers["location"]
    answer = program.decide(browser.get(back))
    assert program.redeem(parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]).status_code == 200


# Codes.


def test_a_code_is_used_once(program: Program) -> None:
    code = program.code()
    tokens = program.redeem(code).json()
    assert program.call(tokens["access_token"]).status_code == 200
    assert error_of(program.redeem(code)) == (400, "invalid_grant")
    assert program.call(tokens["access_token"]).status_code == 401, "a second use ends what the first one got"
    assert error_of(program.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"code_verifier": pkce()[0]}, "invalid_grant"),
        ({"code_verifier": None}, "invalid_request"),
        ({"redirect_uri": "http://localhost:33419/callback"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"code": "x"}, "invalid_grant"),
        ({"code": None}, "invalid_request"),
        ({"resource": f"{HOST}/mcp/secret"}, "invalid_target"),
        ({"grant_type": "password"}, "invalid_request"),
        ({"client_id": "x"}, "invalid_client"),
        ({"client_id": None}, "invalid_client"),
    ],
)
def test_a_wrong_redemption_gets_nothing(program: Program, given: dict[str, str | None], error: str) -> None:
    code = program.code()
    answer = program.redeem(code, **given) if "code" not in given else program.redeem(**given)  # type: ignore[arg-type]
    assert error_of(answer) == (401 if error == "invalid_client" else 400, error)
    assert program.redeem(code).status_code == 200, "the right one is not lost by it"


def test_a_code_expires_and_is_of_one_program(team: Team, http: TestClient, program: Program) -> None:
    code = program.code()
    other = program_of(team, http)
    other.verifier = program.verifier
    assert error_of(other.redeem(code)) == (400, "invalid_grant")
    with as_owner(team.url) as connection:
        connection.execute("UPDATE oauth_code SET expires_at = now()")
    assert error_of(program.redeem(code)) == (400, "invalid_grant")


def test_a_code_of_one_process_is_redeemed_at_another(team: Team, program: Program) -> None:
    with client_of(team, "two") as other:
        tokens = program.redeem(program.code(), at=other).json()
        assert program.call(tokens["access_token"]).status_code == 200
        again = program.refresh(tokens["refresh_token"], at=other).json()
        assert program.call(again["access_token"]).status_code == 200
        assert error_of(program.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
        assert error_of(program.refresh(again["refresh_token"], at=other)) == (400, "invalid_grant")


# Refresh, revoke, expire.


def test_a_refresh_token_is_used_once_and_a_second_use_ends_all(team: Team, program: Program) -> None:
    first = program.tokens()
    second = program.refresh(first["refresh_token"], resource=f"{HOST}/mcp/team").json()
    assert second["scope"] == "read write"
    narrow = program.refresh(second["refresh_token"], scope="read").json()
    assert narrow["scope"] == "read"
    assert program.call(first["access_token"]).status_code == 200, "what is not over goes on"
    refused = program.call(narrow["access_token"], "memory_write", title="A port", summary="Port 1 is used.")
    assert refused.json()["result"]["isError"]
    assert error_of(program.refresh(narrow["refresh_token"], resource=f"{HOST}/mcp")) == (400, "invalid_target")
    assert error_of(program.refresh(first["refresh_token"])) == (400, "invalid_grant")
    for token in (first, second, narrow):
        assert program.call(token["access_token"]).status_code == 401
    assert error_of(program.refresh(narrow["refresh_token"])) == (400, "invalid_grant")
    with as_owner(team.url) as connection:
        ended = connection.execute("SELECT actor, detail->>'why' FROM audit WHERE act = 'program-ended'").fetchall()
    assert ended == [("ada", "a refresh token was used twice")]


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_a_program_gives_its_tokens_back(team: Team, http: TestClient, program: Program, which: str) -> None:
    tokens = program.tokens()
    other = program_of(team, http)
    asked = {"token": tokens[which], "client_id": other.id}
    assert http.post("/oauth/revoke", data=asked).status_code == 200
    assert program.call(tokens["access_token"]).status_code == 200, "another program's tokens are not its to end"
    assert http.post("/oauth/revoke", data={**asked, "client_id": program.id}).status_code == 200
    assert program.call(tokens["access_token"]).status_code == 401
    assert error_of(program.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert http.post("/oauth/revoke", data={"token": "x", "client_id": program.id}).status_code == 200
    assert error_of(http.post("/oauth/revoke", data={"client_id": program.id})) == (400, "invalid_request")
    assert error_of(http.post("/oauth/revoke", data={"token": "x"})) == (401, "invalid_client")


def test_whoever_runs_the_server_ends_a_program_and_a_token(team: Team, http: TestClient, program: Program) -> None:
    tokens = program.tokens()
    number = next(row.id for row in list_tokens(team.url) if row.is_oauth)
    revoke_token(team.url, number)
    assert program.call(tokens["access_token"]).status_code == 401
    assert error_of(program.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    tokens, code, page = program.tokens(), program.code(), program.consent_page()
    assert [(row.name, row.allowed) for row in list_clients(team.url)] == [("Claude Code", 1)]
    revoke_client(team.url, program.id)
    assert program.call(tokens["access_token"]).status_code == 401
    assert error_of(program.refresh(tokens["refresh_token"])) == (401, "invalid_client")
    assert error_of(program.redeem(code)) == (401, "invalid_client")
    assert program.decide(page).status_code == 400
    assert program.ask().status_code == 400
    assert all(row.revoked_at for row in list_tokens(team.url) if row.is_oauth)


def test_tokens_end_with_what_was_signed_in_with_and_with_the_account(team: Team, http: TestClient) -> None:
    team.member("ada", "owner")
    number, token = make_token(team.url, "ada", role="reader", days=1)
    program = program_of(team, http)
    program.browser.cookies.clear()
    program.browser.post("/sign-in", data={"token": token}, follow_redirects=False)
    assert 'value="writer"' not in program.consent_page().text, "no more than the token that was signed in with"
    tokens, code = program.tokens(), program.code()
    revoke_token(team.url, number)
    assert program.call(tokens["access_token"]).status_code == 401
    assert all(row.revoked_at for row in list_tokens(team.url) if row.is_oauth), "and the list says so"
    assert error_of(program.refresh(tokens["refresh_token"])) == (400, "invalid_grant")
    assert error_of(program.redeem(code)) == (400, "invalid_grant")
    other = program_of(team, http)
    tokens = other.tokens()
    with as_owner(team.url) as connection:
        connection.execute("UPDATE account SET disabled_at = now() WHERE name = 'ada'")
    assert other.call(tokens["access_token"]).status_code == 401
    assert error_of(other.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


def test_tokens_expire(team: Team, program: Program) -> None:
    tokens = program.tokens()
    with as_owner(team.url) as connection:
        connection.execute("UPDATE token SET expires_at = now() WHERE oauth_grant IS NOT NULL")
    assert program.call(tokens["access_token"]).status_code == 401
    again = program.refresh(tokens["refresh_token"]).json()
    assert program.call(again["access_token"]).status_code == 200
    with as_owner(team.url) as connection:
        connection.execute("UPDATE oauth_grant SET expires_at = now()")
    assert program.call(again["access_token"]).status_code == 401
    assert error_of(program.refresh(again["refresh_token"])) == (400, "invalid_grant")


# What a program may ask for.


@pytest.mark.parametrize(
    "redirect",
    [
        "http://evil.example/callback", "http://localhost.evil.example/", "http://10.0.0.1/", "cursor://callback",
        "javascript:alert(1)", "https://u:p@good.example/", "https://good.example/#a", "data:text/html,x",
        "http://127.0.0.1.evil.example/", "https://good.example/" + "x" * 600, "ftp://localhost/",
        "https://good.example;sandbox/", "https://*/", "https://good.example,evil.example/",
    ],
)  # fmt: skip
def test_answers_go_to_https_or_this_machine_alone(program: Program, redirect: str) -> None:
    assert error_of(program.register(redirect_uris=[redirect])) == (400, "invalid_redirect_uri")
    asked = program.ask(redirect_uri=redirect)
    assert asked.status_code == 400
    assert "location" not in asked.headers


def test_a_program_on_this_machine_may_answer_on_any_port(program: Program) -> None:
    program.redirect = "http://localhost:1/callback"
    assert program.redeem(program.code()).status_code == 200
    for other in ("http://localhost:1/other", "http://127.0.0.1:1/callback", "https://localhost:1/callback"):
        assert program.ask(redirect_uri=other).status_code == 400


def test_registration_has_limits(team: Team, http: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(http, http, HOST)
    made = program.register(
        token_endpoint_auth_method="client_secret_basic", logo_uri="https://x/", jwks={"keys": []}, scope="read"
    ).json()
    assert made["token_endpoint_auth_method"] == "none"
    assert not {"client_secret", "logo_uri", "jwks"} & set(made)
    assert error_of(program.register(client_name="x" * 101)) == (400, "invalid_client_metadata")
    assert error_of(program.register(client_name="a\0b")) == (400, "invalid_client_metadata")
    assert error_of(program.register(scope="admin")) == (400, "invalid_client_metadata")
    assert error_of(program.register(redirect_uris=[])) == (400, "invalid_client_metadata")
    assert error_of(program.register(redirect_uris=[REDIRECT] * 11)) == (400, "invalid_redirect_uri")
    assert http.post("/oauth/register", content=b"x" * 70_000).status_code == 413
    monkeypatch.setattr(oauth, "MAX_UNUSED_CLIENTS", 2)
    assert program.register().status_code == 201
    full = program.register()
    assert (*error_of(full), full.headers["retry-after"]) == (429, "temporarily_unavailable", "30")
    with as_owner(team.url) as connection:
        connection.execute("UPDATE oauth_client SET created_at = now() - interval '2 days'")
    assert program.register().status_code == 201, "what nobody allowed anything goes after a day"
    assert len(list_clients(team.url)) == 1
    monkeypatch.setattr(oauth, "MAX_REGISTRATIONS", 1)
    assert program.register().status_code == 429


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"resource": f"{HOST}/api/v1"}, "invalid_target"),
        ({"resource": f"{HOST}/mcp/team/x"}, "invalid_target"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"state": "x" * 1_001}, "invalid_request"),
    ],
)
def test_a_wrong_request_is_told_to_the_program(program: Program, given: dict[str, str | None], error: str) -> None:
    where = program.ask(**given).headers["location"]
    query = parse_qs(urlsplit(where).query)
    assert where.startswith(REDIRECT)
    assert (query["error"], query["iss"]) == ([error], [HOST])


def test_a_request_without_a_known_program_is_told_to_the_person(program: Program) -> None:
    for given in ({"client_id": "x"}, {"client_id": None}, {"client_id": "00000000-0000-0000-0000-000000000000"}):
        answer = program.ask(**given)
        assert (answer.status_code, "location" in answer.headers) == (400, False)
        assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    "given",
    [
        {"csrf": "0" * 64}, {"csrf": ""}, {"client_id": "x"}, {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "x"}, {"challenge": "x"}, {"resource": "https://evil.example/mcp"}, {"workspace": ""},
    ],
)  # fmt: skip
def test_a_form_that_was_changed_allows_nothing(team: Team, program: Program, given: dict[str, str]) -> None:
    answer = program.decide(program.consent_page(), **given)
    assert answer.status_code in (400, 403)
    assert "location" not in answer.headers
    with as_owner(team.url) as connection:
        assert connection.execute("SELECT count(*) FROM oauth_code").fetchone() == (0,)


def test_a_page_elsewhere_cannot_allow_anything(program: Program) -> None:
    fields = {**fields_of(program.consent_page().text), "decision": "allow", "role": "writer"}
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = program.browser.post("/oauth/consent", data=fields, headers=headers, follow_redirects=False)
        assert answer.status_code == 403


def test_the_page_shows_a_program_as_what_it_says_and_no_more(team: Team, http: TestClient) -> None:
    program = program_of(team, http, client_name="<script>x</script>")
    page = program.consent_page()
    assert "<script>x" not in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    elsewhere = program_of(team, http, redirect_uris=["https://elsewhere.example/x"])
    elsewhere.redirect = "https://elsewhere.example/x"
    assert "It runs elsewhere" in elsewhere.consent_page().text


# The database.


def test_the_servers_role_reaches_rows_of_oauth_by_its_functions_alone(team: Team, program: Program) -> None:
    import psycopg

    program.tokens()
    for statement in (
        "SELECT * FROM oauth_client", "SELECT * FROM oauth_grant", "SELECT * FROM oauth_code",
        "SELECT * FROM oauth_refresh", "SELECT end_oauth_grant(1, 'x')",
        "SELECT add_oauth_tokens(1, 'writer', 'a', 'b', 1, 1)",
    ):  # fmt: skip
        with pytest.raises(Exception) as raised, team.servers[0].database.workspace(1) as cursor:  # noqa: PT011
            cursor.execute(statement)
        assert isinstance(raised.value.__cause__, psycopg.errors.InsufficientPrivilege), statement
