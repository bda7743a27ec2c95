"""OAuth and sign-in when the database is away, when two ask at once, and when requests make no sense."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from tests.support.helpers import Place, a_card, a_handoff, wait_until
from tests.support.postgres import running_cluster
from tests.support.program import Program, fields_of, pkce
from tests.support.team import Team
from truekeep.interfaces.api.app import Api
from truekeep.server.accounts import Caller, find_caller, make_token, revoke_token, set_grant
from truekeep.server.administration import init_deployment
from truekeep.server.database import as_owner
from truekeep.server.handoff_queue import Quotas

HOST = "https://memory.example"
SPACES = ("alpha", "beta", "gamma")
WORDS = {"alpha": "quarzwald", "beta": "mondkranich", "gamma": "silberfuchs"}  # each only in its workspace


def client_of(team: Team) -> TestClient:
    app = Api(team.server(), Quotas(), url=HOST).app()
    return TestClient(app, base_url=HOST, raise_server_exceptions=False)


def signed_in(http: TestClient, token: str) -> TestClient:
    browser = TestClient(http.app, base_url=HOST, raise_server_exceptions=False)
    assert browser.post("/sign-in", data={"token": token}, follow_redirects=False).status_code == 303
    return browser


@pytest.mark.slow
def test_the_database_away_at_each_step(place: Place, tmp_path: Path) -> None:
    """Every step says to try again; and done again, it works: nothing was lost or half done."""
    with running_cluster() as cluster:
        init_deployment(cluster.url, "memory.example")
        team = Team(cluster.url, tmp_path / "servers")
        team.add(place)
        token = team.member("ada", "writer")
        with client_of(team) as http:
            browser = TestClient(http.app, base_url=HOST, raise_server_exceptions=False)
            program = Program(http, browser, HOST)

            def after_a_break(step: Callable[[], httpx2.Response]) -> httpx2.Response:
                cluster.stop()
                failed = step()
                assert (failed.status_code, failed.headers["retry-after"]) == (503, "30"), failed.text
                assert str(cluster.url) not in failed.text
                assert "psycopg" not in failed.text
                cluster.start()
                done: list[httpx2.Response] = []

                def is_answered() -> bool:
                    done.append(step())
                    return done[-1].status_code != 503

                assert wait_until(is_answered)
                assert done[-1].status_code < 400, done[-1].text
                return done[-1]

            after_a_break(lambda: http.get("/healthz"))
            after_a_break(program.register)
            after_a_break(lambda: browser.post("/sign-in", data={"token": token}, follow_redirects=False))
            where = after_a_break(program.ask).headers["location"]
            page = after_a_break(lambda: browser.get(where, follow_redirects=False))
            answer = after_a_break(lambda: program.decide(page))
            code = parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]
            tokens = after_a_break(lambda: program.redeem(code)).json()
            again = after_a_break(lambda: program.refresh(tokens["refresh_token"])).json()
            given_back = {"token": again["refresh_token"], "client_id": program.id}
            after_a_break(lambda: http.post("/oauth/revoke", data=given_back))
            assert program.call(again["access_token"]).status_code == 401
            csrf = fields_of(page.text)["csrf"]
            after_a_break(lambda: browser.post("/sign-out", data={"csrf": csrf}, follow_redirects=False))
        team.close()


@pytest.fixture
def program(team: Team, place: Place) -> Iterator[Program]:
    team.add(place)
    with client_of(team) as http:
        program = Program(http, signed_in(http, team.member("ada", "writer")), HOST)
        program.register()
        yield program


def at_once(acts: list[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    found: list[httpx2.Response] = []
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], httpx2.Response]) -> None:
        start.wait()
        found.append(act())

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_of_two_that_redeem_a_code_at_once_none_keeps_a_token(team: Team, program: Program) -> None:
    code = program.code()
    answers = at_once([lambda: program.redeem(code)] * 6)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400, 400, 400]
    (tokens,) = (answer.json() for answer in answers if answer.status_code == 200)
    assert program.call(tokens["access_token"]).status_code == 401
    with as_owner(team.url) as connection:
        assert connection.execute("SELECT count(*) FROM oauth_grant").fetchone() == (1,)


def test_of_two_that_refresh_at_once_none_keeps_a_token(program: Program) -> None:
    refresh = program.tokens()["refresh_token"]
    answers = at_once([lambda: program.refresh(refresh)] * 6)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400, 400, 400]
    (tokens,) = (answer.json() for answer in answers if answer.status_code == 200)
    assert program.call(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).status_code == 400


# Random requests.

ODD = (
    "", "x", "\0", "a\0b", "ö" * 50, "\ud7ff", "\U0010ffff", "'; DROP TABLE token; --", "../../etc/passwd", "%00", "[]",
    "x" * 3_000, "0" * 64, "null", "-1", "true", "http://localhost:33418/callback", "https://evil.example/", "[::1",
    "http://[::1", "{}", "\r\nSet-Cookie: a=b",
)  # fmt: skip


def test_random_requests_get_plain_answers_and_nothing_else(team: Team, program: Program) -> None:
    dice = random.Random(11)
    tokens, code = program.tokens(), program.code()
    page = fields_of(program.consent_page().text)
    known = {
        **page, "decision": "allow", "role": "writer", "token": tokens["access_token"], "code": code,
        "refresh_token": tokens["refresh_token"], "code_verifier": pkce()[0], "response_type": "code",
        "code_challenge": program.challenge, "code_challenge_method": "S256", "grant_type": "authorization_code",
        "next": "/x", "client_secret": "x",
    }  # fmt: skip
    doors = (
        ("POST", "/oauth/token"), ("POST", "/oauth/revoke"), ("POST", "/oauth/register"), ("GET", "/oauth/authorize"),
        ("GET", "/oauth/consent"), ("POST", "/oauth/consent"), ("POST", "/sign-in"), ("GET", "/sign-in"),
        ("POST", "/sign-out"),
    )  # fmt: skip
    statuses = set()
    for _ in range(600):
        method, path = dice.choice(doors)
        fields: dict[str, Any] = dict(known)
        for name in dice.sample(sorted(fields), dice.randrange(0, 8)):
            if dice.random() < 0.4:
                del fields[name]
            else:
                fields[name] = dice.choice(ODD)
        fields.pop("csrf", None)  # without it, nothing is allowed and nobody is signed out
        given: dict[str, Any] = {"params": fields} if method == "GET" else {"data": fields}
        if method == "POST" and dice.random() < 0.3:
            given = dice.choice(
                (
                    {"json": fields}, {"content": b"\xff\xfe\x00"}, {"files": {"client_id": b"\xff"}},
                    {"content": b"%ff%00=&&==", "headers": {"content-type": "application/x-www-form-urlencoded"}},
                    {"content": b"--x", "headers": {"content-type": "multipart/form-data; boundary=x"}},
                    {"content": b"[" * 30_000, "headers": {"content-type": "application/json"}},
                    {"json": {"redirect_uris": [dice.choice(ODD)], "client_name": dice.choice(ODD)}},
                )
            )  # fmt: skip
        http = dice.choice((program.http, program.browser))
        answer = http.request(method, path, **given, follow_redirects=False)
        statuses.add(answer.status_code)
        assert answer.status_code < 500, (method, path, given, answer.text)
        assert "evil.example" not in answer.headers.get("location", "").split("?")[0]
        assert "a=b" not in answer.headers.get("set-cookie", "")
        assert "Traceback" not in answer.text
        if answer.status_code == 200 and path == "/oauth/token":
            raise AssertionError("the verifier was wrong")
    assert {200, 302, 303, 400, 401, 403} <= statuses | {302}
    with as_owner(team.url) as connection:
        assert connection.execute("SELECT count(*) FROM oauth_code").fetchone() == (2,), "nothing more was allowed"


def test_programs_reach_what_the_model_says_and_nothing_else(
    team: Team, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random grants, tokens that are signed in with, consents and revocations, against a model of who may see what."""
    dice = random.Random(5)
    for name in SPACES:
        place = Place.make(tmp_path_factory.mktemp(name))
        content = a_card(f"The {WORDS[name]}", f"{WORDS[name]} is on port 8443.")
        place.leave(a_handoff(card=f"{WORDS[name]}.md", title=f"The {WORDS[name]}", content=content))
        place.ingest()
        team.add(place, name)
    ranks = ("reader", "writer", "reviewer", "owner")
    people = ("ada", "grace", "ida")
    for person in people:
        make_token(team.url, person)
    with client_of(team) as http:
        hidden: set[tuple[int, bytes]] = set()
        refused: set[tuple[int, bytes]] = set()
        allowed = 0
        for number in range(24):
            person = dice.choice(people)
            grants = {space: role for space in SPACES if (role := dice.choice((None, *ranks)))}
            for space in SPACES:
                set_grant(team.url, person, space, grants.get(space, "none"))
            only, most = dice.choice(("", *SPACES)), dice.choice(ranks)
            token_number, token = make_token(team.url, person, workspace=only, role=most)
            reach = {space: role for space, role in grants.items() if only in ("", space)}
            program = Program(http, signed_in(http, token), HOST)
            program.register(client_name=f"Program {number}")
            space = dice.choice((*SPACES, "delta"))
            page = program.consent_page(resource=f"{HOST}/mcp/{space}")
            if space not in reach:
                hidden.add((page.status_code, page.content))
                continue
            may_write = min(ranks.index(reach[space]), ranks.index(most)) >= 1
            assert ('value="writer"' in page.text) == may_write
            for other in SPACES:
                assert other == space or f">{other}<" not in page.text
            code = parse_qs(urlsplit(program.decide(page).headers["location"]).query)["code"][0]
            answer = program.redeem(code, resource=f"{HOST}/mcp/{space}").json()
            access = answer["access_token"]
            allowed += 1
            for other in (*SPACES, "delta"):
                found = program.call(access, "memory_search", f"/mcp/{other}", query="port 8443")
                if other != space:
                    refused.add((found.status_code, found.content))
                else:
                    assert WORDS[space] in found.text
                for foreign in set(SPACES) - {space}:
                    assert WORDS[foreign] not in found.text
            wrote = program.call(access, "memory_write", f"/mcp/{space}", title=f"T {number}", summary="The port is 1.")
            assert wrote.json()["result"]["isError"] != may_write
            caller = find_caller(team.servers[0].database, access, is_mcp=True)
            assert isinstance(caller, Caller)
            assert [item.name for item in caller.workspaces] == [space]
            if dice.random() < 0.5:
                revoke_token(team.url, token_number)
                assert program.call(access, path=f"/mcp/{space}").status_code == 401
            else:
                set_grant(team.url, person, space, "none")
                gone = program.call(access, path=f"/mcp/{space}")
                refused.add((gone.status_code, gone.content))
        assert allowed >= 6
        assert {status for status, _ in hidden} == {404}
        assert len(hidden) == 1, "a hidden workspace and a missing one are answered with the same bytes"
        assert ({status for status, _ in refused}, len(refused)) == ({404}, 1)
