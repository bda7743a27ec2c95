"""Somebody who signed in to a team server, without a browser: looks at pages, and sends the forms that are on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.support.visitor import Answer, form_of, shown

HOST = "https://memory.example"


class TeamVisitor:
    """One person's browser."""

    def __init__(self, app: Starlette, token: str = "", workspace: str = "team") -> None:
        self.client = TestClient(app, base_url=HOST, follow_redirects=False, raise_server_exceptions=False)
        self.base = f"/workspaces/{workspace}"
        if token:
            answer = self._post("/sign-in", {"token": token, "next": "/"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/"), answer.text

    def get(self, path: str, /, **query: str) -> Answer:
        return self.client.get(self.base + path, params=query or None)

    def at(self, address: str) -> Answer:
        """An address of the server itself."""
        return self.client.get(address)

    def see(self, path: str, /, **query: str) -> str:
        """A page of the workspace; it must be there."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.text

    def read(self, path: str, /, **query: str) -> str:
        """What somebody reads on a page."""
        return shown(self.see(path, **query))

    def press(self, page: str, action: str, **typed: str) -> Answer:
        """Send the form of a page that goes to an address of the workspace."""
        target, fields = form_of(page, self.base + action, is_whole=True)
        return self._post(target, {**fields, **typed})

    def send(self, path: str, fields: Mapping[str, str | Sequence[str]]) -> Answer:
        return self._post(self.base + path, fields)

    def follow(self, answer: Answer) -> str:
        """The page that an answer leads to."""
        assert answer.status_code == 303, answer.text
        return self.client.get(answer.headers["location"]).text

    def _post(self, address: str, fields: Mapping[str, str | Sequence[str]]) -> Answer:
        headers = {"content-type": "application/x-www-form-urlencoded", "origin": HOST}
        return self.client.post(address, content=urlencode(fields, doseq=True), headers=headers)
