"""Sign-in of browsers with an OpenID provider: there, and back with a code.

Between the two, state, nonce and PKCE verifier wait in a cookie of the browser that began: only it can finish, any
server process can answer it, and strangers fill no table.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truekeep.core.errors import BadInput
from truekeep.interfaces.api.access import REFUSALS
from truekeep.interfaces.api.html import html_answer
from truekeep.interfaces.api.session import OPENID, local_path
from truekeep.server import sign_in
from truekeep.server.accounts import Refused
from truekeep.server.sign_in import OpenIDIdentity, SignInRefused

if TYPE_CHECKING:
    from truekeep.interfaces.api.session import BrowserSessions
    from truekeep.server.database import TeamDatabase
    from truekeep.server.openid import OpenIDProvider

CALLBACK = f"{OPENID}/callback"
WAIT_SECONDS = 600
AT_ONCE = 8  # sign-ins that wait for the provider; others wait for them, and not for threads that all pages need
_COOKIE = "openid"
_MAX_NEXT = 3_000  # a cookie has 4,096 bytes


class BegunSignIn(NamedTuple):
    """What a browser keeps while its person is at the provider."""

    state: str
    nonce: str
    verifier: str
    next: str

    @classmethod
    def make(cls, after: str) -> BegunSignIn:
        state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
        return cls(state, nonce, verifier, after if len(after) <= _MAX_NEXT else "/")


class OpenIDSignIn:
    """The routes, where a provider is configured."""

    def __init__(self, database: TeamDatabase, url: str, sessions: BrowserSessions, provider: OpenIDProvider) -> None:
        self._database = database
        self._redirect = url + CALLBACK
        self._sessions = sessions
        self._provider = provider
        self._room = anyio.CapacityLimiter(AT_ONCE)

    def routes(self) -> list[Route]:
        return [
            Route(OPENID, html_answer(self._begin), methods=["GET"]),
            Route(CALLBACK, html_answer(self._finish), methods=["GET"]),
        ]

    async def _begin(self, request: Request) -> Response:
        begun = BegunSignIn.make(local_path(request.query_params.get("next", "")))

        def where() -> str:
            return self._provider.authorization_url(
                self._redirect, state=begun.state, nonce=begun.nonce, verifier=begun.verifier
            )

        response = RedirectResponse(await anyio.to_thread.run_sync(where, limiter=self._room), status_code=303)
        self._sessions.set_cookie(response, ".".join(begun), what=_COOKIE, seconds=WAIT_SECONDS)
        return response

    async def _finish(self, request: Request) -> Response:
        begun = self._begun(request)
        given = request.query_params
        if "error" in given:
            said = " ".join(filter(None, (given["error"], given.get("error_description"))))
            raise SignInRefused(f"{self._host} did not sign you in: {said[:300]}", hint="/sign-in begins again")
        if given.get("iss", self._provider.settings.issuer) != self._provider.settings.issuer or not given.get("code"):
            raise BadInput("the provider's answer is not valid", hint="/sign-in begins again")

        def redeem() -> str:
            identity = self._provider.redeem(self._redirect, given["code"], nonce=begun.nonce, verifier=begun.verifier)
            return self._start(identity)

        session = await anyio.to_thread.run_sync(redeem, limiter=self._room)
        response = RedirectResponse(local_path(begun.next), status_code=303)
        self._sessions.set_cookie(response, session)
        self._sessions.set_cookie(response, "", what=_COOKIE)
        return response

    @property
    def _host(self) -> str:
        return urlsplit(self._provider.settings.issuer).netloc

    def _begun(self, request: Request) -> BegunSignIn:
        words = request.cookies.get(self._sessions.cookie_name(_COOKIE), "").split(".", 3)
        state = request.query_params.get("state", "")
        if len(words) != 4 or not hmac.compare_digest(words[0].encode(), state.encode("utf-8", "replace")):
            raise BadInput(
                "this sign-in was not begun in this browser, or it took more than ten minutes",
                hint="/sign-in begins again",
            )
        return BegunSignIn(*words)

    def _start(self, identity: OpenIDIdentity) -> str:
        session = sign_in.start_with_identity(self._database, identity, self._provider.settings.domains)
        if not isinstance(session, Refused):
            return session
        who = identity.email or "you, without a verified e-mail address"
        subject = f"your subject there is {identity.subject}"
        if session.why == "disabled":
            raise SignInRefused(REFUSALS["disabled"], hint="ask whoever runs the server")
        if session.why == "name-taken":
            raise SignInRefused(
                f"there is an account {identity.email} already, and nobody linked it to you",
                hint=f"ask whoever runs the server for `truekeep server link`; {subject}",
            )
        raise SignInRefused(
            f"{self._host} vouches for {who}, but no account here is linked to that",
            hint=f"ask whoever runs the server for `truekeep server link`; {subject}",
        )
