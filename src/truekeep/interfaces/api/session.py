"""Who a browser's session belongs to: cookies, the word in every form, sign-in with a token, sign-out.

How a page gets its caller (`sessions` is the application's `BrowserSessions`; all of it runs in a thread):

    signed_in = sessions.require(request)                          # NotSignedIn otherwise: goes to the sign-in page
    asked = authorise(signed_in.caller, "platform", "reader")      # as for a token
    fields = await sessions.read_form(request, signed_in)          # of a POST; Forbidden without the form's word

Every form has `<input type="hidden" name="csrf" value="{{ signed_in.csrf }}">`, and a button to POST /sign-out has it,
too. `html_answer` of `html.py` around a function turns these errors into pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from truekeep.core.errors import BadInput, TruekeepError
from truekeep.interfaces.api.access import REFUSALS, Forbidden
from truekeep.interfaces.api.html import html_answer, render
from truekeep.interfaces.api.requests import read_body
from truekeep.interfaces.web.auth import FORM, Keys, parse_fields
from truekeep.server import sign_in
from truekeep.server.accounts import Caller, Refused

if TYPE_CHECKING:
    from truekeep.server.database import TeamDatabase

SIGN_IN, SIGN_OUT, OPENID = "/sign-in", "/sign-out", "/sign-in/openid"
MAX_FORM_BYTES = 262_144


class NotSignedIn(TruekeepError):
    """There is no valid session: html_answer redirects to the sign-in page, and from there back."""

    code = "not-signed-in"

    def __init__(self, why: str, back: str) -> None:
        super().__init__(why, hint=f"{SIGN_IN} signs you in")
        self.back = back


class SignedIn(NamedTuple):
    """A person who signed in, and the word that their forms must carry."""

    caller: Caller
    csrf: str
    session: str


class BrowserSessions:
    """The sessions of a deployment, as requests have them. `url` is the address that browsers know it by."""

    def __init__(self, database: TeamDatabase, url: str = "", *, provider: str = "") -> None:
        self._database = database
        self._provider = provider  # host of the OpenID provider, for the sign-in page
        self._url = url
        self._is_clear = url.startswith("http://")  # on loopback only
        self._cookie = self.cookie_name("session")

    def cookie_name(self, what: str) -> str:
        """Browsers let only this host set a cookie with __Host-; without TLS, cookies are told apart by the port."""
        return f"truekeep-{what}-{urlsplit(self._url).port or 80}" if self._is_clear else f"__Host-truekeep-{what}"

    def find(self, request: Request) -> SignedIn | Refused:
        """Who asks. Waits for the database."""
        session = request.cookies.get(self._cookie, "")
        found = sign_in.find_signed_in(self._database, session)
        return found if isinstance(found, Refused) else SignedIn(found, Keys(session).form, session)

    def require(self, request: Request) -> SignedIn:
        found = self.find(request)
        if isinstance(found, Refused):
            raise NotSignedIn(f"sign in first: {REFUSALS[found.why]}", _back(request))
        return found

    async def read_form(self, request: Request, signed_in: SignedIn | None) -> Mapping[str, str]:
        """The fields of a form of ours. Without `signed_in`, only its origin can be checked."""
        self._check_origin(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise BadInput("this is not what a form of this site sends", hint="load the page again")
        try:
            fields = dict(parse_fields(await read_body(request, MAX_FORM_BYTES)))
        except ValueError:
            raise BadInput("this form has too many fields", hint="load the page again") from None
        if signed_in is not None and not Keys(signed_in.session).is_form(fields.get("csrf", "")):
            raise Forbidden(
                "this form does not come from a page of your session; nothing was done", hint="load it again"
            )
        return fields

    def _check_origin(self, request: Request) -> None:
        """A page elsewhere must not sign somebody in, or act for somebody who is."""
        host = request.headers.get("host", "").lower()
        own = {f"https://{host}", *([f"http://{host}"] if self._is_clear else []), self._url}
        origins = [origin.lower() for origin in request.headers.getlist("origin")]
        sites = request.headers.getlist("sec-fetch-site")
        if any(origin not in own for origin in origins) or any(site not in ("same-origin", "none") for site in sites):
            raise Forbidden("a form of another site is not taken; nothing was done", hint=f"open {SIGN_IN}")

    def set_cookie(self, response: Response, value: str, *, what: str = "session", seconds: int | None = None) -> None:
        """Give a browser its session, what `sign_in.start_…` gave; "" takes it away."""
        name, secure = self.cookie_name(what), not self._is_clear
        if value:
            response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="lax", secure=secure)
        else:
            response.delete_cookie(name, httponly=True, samesite="lax", secure=secure)

    # The routes.

    def routes(self) -> list[Route]:
        return [
            Route(SIGN_IN, html_answer(self._show), methods=["GET"]),
            Route(SIGN_IN, html_answer(self._sign_in), methods=["POST"]),
            Route(SIGN_OUT, html_answer(self._sign_out), methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        return self._page(request.query_params.get("next", ""))

    def _page(self, after: str, *, problem: str = "", status: int = 200) -> Response:
        return render(
            "sign_in.html", status=status, title="Sign in", next=local_path(after), problem=problem,
            provider=self._provider, start=f"{OPENID}?{urlencode({'next': local_path(after)})}",
        )  # fmt: skip

    async def _sign_in(self, request: Request) -> Response:
        fields = await self.read_form(request, None)
        token, after = fields.get("token", "").strip(), fields.get("next", "")
        session = await anyio.to_thread.run_sync(sign_in.start_with_token, self._database, token)
        if isinstance(session, Refused):
            return self._page(after, problem=REFUSALS[session.why], status=401)
        response = RedirectResponse(local_path(after), status_code=303)
        self.set_cookie(response, session)
        return response

    async def _sign_out(self, request: Request) -> Response:
        signed_in = await anyio.to_thread.run_sync(self.require, request)
        await self.read_form(request, signed_in)
        await anyio.to_thread.run_sync(sign_in.end, self._database, signed_in.session)
        response = RedirectResponse(SIGN_IN, status_code=303)
        self.set_cookie(response, "")
        return response


def _back(request: Request) -> str:
    """Where to go after signing in: the page that was asked for, if it only shows."""
    if request.method != "GET":
        return "/"
    query = request.scope["query_string"].decode("latin-1")
    return quote(request.scope["path"]) + (f"?{query}" if query else "")


def local_path(given: str) -> str:
    """A page of this server. It begins with one slash and has nothing that could make it another host's."""
    if not given.isprintable() or "\\" in given or len(given) > 4_000 or not given.isascii():
        return "/"
    return "/" + given.lstrip("/")


def sign_in_address(back: str) -> str:
    return f"{SIGN_IN}?{urlencode({'next': back})}" if back not in ("", "/") else SIGN_IN
