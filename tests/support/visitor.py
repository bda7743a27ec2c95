"""Somebody who came in by the site's link, without a browser: looks at pages, and sends the forms that are on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Protocol
from urllib.parse import urlencode

from starlette.testclient import TestClient

from tests.support.helpers import OPENED, Place
from truekeep.interfaces.web.app import make_app
from truekeep.interfaces.web.auth import Keys
from truekeep.interfaces.web.local_site import LocalSite

KEYS = Keys("a token")
_FORM = re.compile(r'<form method="post" action="([^"]*)"[^>]*>(.*?)</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class Answer(Protocol):
    """What comes back."""

    @property
    def status_code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Visitor:
    """Looks at one workspace's site."""

    def __init__(self, place: Place, *, read_only: bool = False) -> None:
        self.site = LocalSite(place.workspace, KEYS, read_only=read_only)
        OPENED.append(self.site)
        self.client = TestClient(make_app(self.site, {"testserver"}), follow_redirects=False)
        self.client.get("/memory", params={"token": KEYS.token})

    def get(self, path: str, **query: str) -> Answer:
        return self.client.get(path, params=query or None)

    def see(self, path: str, **query: str) -> str:
        """A page's HTML; it must be there."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.text

    def read(self, path: str, **query: str) -> str:
        """What somebody reads on a page."""
        return shown(self.see(path, **query))

    def send(self, path: str, fields: Mapping[str, str | Sequence[str]], *, with_word: bool = True) -> Answer:
        given = {"csrf": KEYS.form, **fields} if with_word else dict(fields)
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self.client.post(path, content=urlencode(given, doseq=True), headers=headers)

    def press(self, page: str, action: str, **typed: str) -> Answer:
        """Send the form of a page that goes to an address beginning so."""
        target, fields = form_of(page, action)
        return self.send(target, {**fields, **typed})

    def close(self) -> None:
        self.site.close()


def form_of(page: str, action: str, *, is_whole: bool = False) -> tuple[str, dict[str, list[str]]]:
    """The first form of a page that goes to an address beginning so (or being so), with what it carries."""
    for target, inside in _FORM.findall(page):
        if unescape(target).startswith(action) and not (is_whole and unescape(target).partition("?")[0] != action):
            fields: dict[str, list[str]] = {}
            for name, value in _HIDDEN.findall(inside):
                fields.setdefault(unescape(name), []).append(unescape(value))
            return unescape(target), fields
    raise AssertionError(f"no form goes to {action}")


def shown(page: str) -> str:
    """What somebody reads of some HTML, without what only marks it up."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())
