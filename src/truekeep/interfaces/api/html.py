"""Pages of the team server: templates, headers, and errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import jinja2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from truekeep import __version__
from truekeep.interfaces.api.errors import known_error, retry_headers, status_of
from truekeep.interfaces.web.auth import HEADERS
from truekeep.text.unicode import printable


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("truekeep.interfaces.api"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["shown"] = lambda text: printable(str(text))
    templates.globals["version"] = __version__
    return templates


def render(template: str, *, status: int = 200, **given: Any) -> HTMLResponse:
    """A page. Texts are escaped; `|shown` shows hidden characters as what they are."""
    return HTMLResponse(_templates().get_template(template).render(given), status_code=status)


def html_answer(act: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Answer with `act`: errors become pages, who is not signed in is sent to sign in, nothing is cached or framed."""
    from truekeep.interfaces.api.session import NotSignedIn, sign_in_address  # it imports this module

    async def handle(request: Request) -> Response:
        try:
            response = await act(request)
        except NotSignedIn as error:
            response = RedirectResponse(sign_in_address(error.back), status_code=303)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the one place where errors become pages
            told = known_error(error)
            response = render("error.html", status=status_of(told), title="That did not work", error=told)
            response.headers.update(retry_headers(response.status_code))
        for name, value in HEADERS:
            response.headers.setdefault(name.decode(), value.decode())
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return handle


def static_files() -> Mount:
    """Styles and scripts, the same as those of `truekeep serve`."""
    return Mount("/static", StaticFiles(packages=[("truekeep.interfaces.web", "static")]))
