"""A program that gets tokens by OAuth, and a person with a browser who allows it; step by step, for tests."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

REDIRECT = "http://localhost:33418/callback"


def pkce() -> tuple[str, str]:
    """A verifier and its challenge."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).decode().rstrip("=")


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the page's first form."""
    form = page.split("</form>")[0]
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in found}


class Program:
    """One program. `http` reaches the server; so does `browser`, where a person is signed in."""

    def __init__(self, http: httpx2.Client, browser: httpx2.Client, url: str, *, redirect: str = REDIRECT) -> None:
        self.http, self.browser, self.url, self.redirect = http, browser, url, redirect
        self.verifier, self.challenge = pkce()
        self.id = ""

    def register(self, **given: Any) -> httpx2.Response:
        said = {"client_name": "Claude Code", "redirect_uris": [self.redirect], **given}
        answer = self.http.post("/oauth/register", json=said)
        self.id = answer.json().get("client_id", self.id)
        return answer

    def ask(self, **given: str | None) -> httpx2.Response:
        """Open what the program wants allowed in the browser."""
        asked: dict[str, str | None] = {
            "response_type": "code", "client_id": self.id, "redirect_uri": self.redirect, "state": "a state",
            "code_challenge": self.challenge, "code_challenge_method": "S256", "resource": f"{self.url}/mcp/team",
        }  # fmt: skip
        wanted = {key: value for key, value in (asked | given).items() if value is not None}
        return self.browser.get("/oauth/authorize", params=wanted, follow_redirects=False)

    def consent_page(self, **given: str | None) -> httpx2.Response:
        return self.browser.get(self.ask(**given).headers["location"], follow_redirects=False)

    def decide(self, page: httpx2.Response, **given: str) -> httpx2.Response:
        fields = {**fields_of(page.text), "decision": "allow", "role": "writer", **given}
        return self.browser.post("/oauth/consent", data=fields, follow_redirects=False)

    def code(self, **given: str | None) -> str:
        """A code, after the person allowed it."""
        answer = self.decide(self.consent_page(**given))
        assert answer.status_code == 303, answer.text
        return parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]

    def redeem(self, code: str, *, at: httpx2.Client | None = None, **given: str | None) -> httpx2.Response:
        asked: dict[str, str | None] = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect, "client_id": self.id,
            "code_verifier": self.verifier, "resource": f"{self.url}/mcp/team",
        }  # fmt: skip
        wanted = {key: value for key, value in (asked | given).items() if value is not None}
        return (at or self.http).post("/oauth/token", data=wanted)

    def refresh(self, token: str, *, at: httpx2.Client | None = None, **given: str) -> httpx2.Response:
        asked = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.id, **given}
        return (at or self.http).post("/oauth/token", data=asked)

    def tokens(self) -> dict[str, Any]:
        answer = self.redeem(self.code())
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def call(
        self, token: str, tool: str = "memory_status", path: str = "/mcp/team", **arguments: Any
    ) -> httpx2.Response:
        params = {"name": tool, "arguments": arguments}
        return self.http.post(
            path,
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"},
        )
