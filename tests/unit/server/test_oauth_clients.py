"""Real clients that sign in by OAuth to a real server process: the SDK's, Claude Code, Codex; and a real browser."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.support.harnesses import need_real_programs
from tests.support.helpers import Place, a_handoff
from tests.support.program import Program, fields_of
from tests.support.team import Team
from tests.support.website import chromium
from tests.unit.server.test_clients import start_server, stop
from truekeep.server.accounts import list_tokens
from truekeep.server.database import as_owner


@pytest.fixture
def url(team: Team, place: Place, tmp_path: Path) -> Iterator[str]:
    place.leave(a_handoff())
    place.ingest()
    team.add(place)
    process, url = start_server(team.url, tmp_path / "data")
    yield url
    stop(process)


def allow(address: str, token: str) -> str:
    """What a person does in a browser: sign in, allow it; gives the address that leads back to the program."""
    with httpx2.Client(follow_redirects=True) as browser:
        page = browser.get(address)
        if 'name="token"' in page.text:
            signed_in = browser.post(page.url.join("/sign-in"), data={**fields_of(page.text), "token": token})
            page = signed_in
        assert 'value="allow"' in page.text, page.text
        fields = {**fields_of(page.text), "decision": "allow", "role": "writer"}
        answer = browser.post(page.url.join("/oauth/consent"), data=fields, follow_redirects=False)
        return str(answer.headers["location"])


@contextmanager
def waiting_program() -> Iterator[tuple[str, list[str]]]:
    """A program that waits for its answer on this machine: the address, and what was asked of it."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"done; you can close this window")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}/callback", asked
        server.shutdown()
        thread.join()


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("decision", ["Allow", "Do not allow"])
def test_a_person_decides_in_a_real_browser(team: Team, url: str, decision: str) -> None:
    with waiting_program() as (redirect, asked), chromium() as browser, httpx2.Client(base_url=url) as http:
        program = Program(http, http, url, redirect=redirect)
        program.register()
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        query = {
            "response_type": "code", "client_id": program.id, "redirect_uri": redirect, "state": "s",
            "code_challenge": program.challenge, "code_challenge_method": "S256", "resource": f"{url}/mcp/team",
        }  # fmt: skip
        page.goto(f"{url}/oauth/authorize?{urlencode(query)}")
        page.get_by_label("Token").fill(team.member("ada", "writer"))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("only read (reader)").check()
        page.get_by_role("button", name=decision, exact=True).click()
        page.wait_for_url(f"{redirect}**")
        answer = parse_qs(urlsplit(next(path for path in asked if path.startswith("/callback"))).query)
        assert not [text for text in said if "Content Security Policy" in text], said
        if decision == "Allow":
            tokens = program.redeem(answer["code"][0]).json()
            assert tokens["scope"] == "read"
        else:
            assert answer["error"] == ["access_denied"]


class KeptTokens:
    """Where the SDK's client keeps what it got."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize("path", ["/mcp/team", "/mcp"])
def test_the_sdks_client_signs_in_by_itself(team: Team, url: str, path: str) -> None:
    kept, went = KeptTokens(), list[str]()
    token = team.member("ada", "writer")

    async def open_browser(address: str) -> None:
        went.append(await anyio.to_thread.run_sync(allow, address, token))

    async def wait_for_answer() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(went[-1]).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query["iss"][0])

    async def ask() -> str:
        metadata = OAuthClientMetadata.model_validate(
            {"client_name": "SDK", "redirect_uris": ["http://localhost:33418/callback"]}
        )
        auth = OAuthClientProvider(f"{url}{path}", metadata, kept, open_browser, wait_for_answer)
        async with (
            httpx2.AsyncClient(auth=auth, timeout=120) as http,
            Client(streamable_http_client(f"{url}{path}", http_client=http)) as client,
        ):
            found = await client.call_tool("memory_search", {"query": "staging port"})
            return str(found.content)

    assert "staging-proxy" in anyio.run(ask)
    assert len(went) == 1
    first = kept.tokens
    with as_owner(team.url) as connection:
        connection.execute("UPDATE token SET expires_at = now() WHERE oauth_grant IS NOT NULL")
    assert first is not None
    kept.tokens = first.model_copy(update={"expires_in": -10})
    assert "staging-proxy" in anyio.run(ask)
    assert kept.tokens is not None
    assert kept.tokens.access_token != first.access_token


class Harness:
    """One of the real programs, with a home of its own."""

    def __init__(self, name: str, home: Path) -> None:
        programs = need_real_programs()
        self._command = str(programs / name)
        home.mkdir()
        kept = {key: os.environ[key] for key in ("LANG", "TERM") if key in os.environ}
        self._env = {
            **kept, "HOME": str(home), "CODEX_HOME": str(home / ".codex"), "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "PATH": f"{programs}:{os.environ['PATH']}", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        (home / ".codex").mkdir()
        self._home = home

    def run(self, *arguments: str, **env: str) -> str:
        done = subprocess.run(
            [self._command, *arguments], cwd=self._home, env={**self._env, **env}, capture_output=True, text=True,
            timeout=180, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.stdout + done.stderr

    def sign_in(self, token: str) -> str:
        """`mcp login --no-browser`, in a terminal: it prints an address, and takes the one the browser ended at."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 4_000, 0, 0))  # so that no line is broken
        process = subprocess.Popen(
            [self._command, "mcp", "login", "--no-browser", "memory"], cwd=self._home, env=self._env,
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        said, is_answered = "", False
        try:
            while piece := _read(ours):
                said += piece
                found = re.search(r"http://[^\s\x1b\x07]+/oauth/authorize\?[^\s\x1b\x07]+(?=[\s\x1b\x07])", said)
                if found and not is_answered:
                    os.write(ours, f"{allow(found[0], token)}\r".encode())
                    is_answered = True
            process.wait(60)
        finally:
            process.kill()
            process.wait(30)
            os.close(ours)
        return said


def _read(terminal: int) -> str:
    """What a program wrote to its terminal; "" when it has ended, or says nothing for two minutes."""
    if not select.select([terminal], [], [], 120)[0]:
        return ""
    try:
        return os.read(terminal, 65_536).decode(errors="replace")
    except OSError:  # its end of the terminal is closed
        return ""


@pytest.mark.slow
def test_claude_code_signs_in_and_connects(team: Team, url: str, tmp_path: Path) -> None:
    claude = Harness("claude", tmp_path / "home")
    claude.run("mcp", "add", "--transport", "http", "memory", f"{url}/mcp/team")
    assert "authentication" in claude.run("mcp", "list").lower()
    said = claude.sign_in(team.member("ada", "writer"))
    (row,) = [row for row in list_tokens(team.url) if row.is_oauth]
    assert (row.account, row.workspace, row.role) == ("ada", "team", "writer"), said
    assert "Connected" in claude.run("mcp", "list")
    claude.run("mcp", "remove", "memory")
    header = f"Authorization: Bearer {team.tokens['ada']}"
    claude.run("mcp", "add", "--transport", "http", "memory", f"{url}/mcp/team", "--header", header)
    assert "Connected" in claude.run("mcp", "list"), "with a token of the person's own, too"


@pytest.mark.slow
def test_codex_signs_in(team: Team, url: str, tmp_path: Path) -> None:
    codex = Harness("codex", tmp_path / "home")
    (tmp_path / "home/.codex/config.toml").write_text(f'[mcp_servers.memory]\nurl = "{url}/mcp/team"\n')
    assert "Not logged in" in codex.run("mcp", "list")
    said = codex.sign_in(team.member("ada", "writer"))
    (row,) = [row for row in list_tokens(team.url) if row.is_oauth]
    assert (row.account, row.workspace, row.role) == ("ada", "team", "writer"), said
    assert "OAuth" in codex.run("mcp", "list")
